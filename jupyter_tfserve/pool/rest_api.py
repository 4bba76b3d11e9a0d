"""TensorFlow Serving's REST API, bytes to bytes, whatever door they came by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Code, ServingError, json_string
from ..routes import Api, Route, parse_route
from ..state import status_json
from ..wire import Response
from .call import error_response
from .rest_calls import PredictCall, ScoreCall
from .statistics import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..servable import ModelSpec
    from ..wire import Request
    from .call import Call
    from .core.server_core import ServerCore
    from .recorder import Recorder
    from .scheduler import Scheduler
    from .servables.base import Servable
    from .statistics import Statistics

_METADATA = """{{
"model_spec":{{
 "name": {name},
 "version": "{version}",
 "signature_name": ""
}}
,
"metadata": {{"signature_def": {signature_def}
}}
}}
"""


class RestApi:
    """Answers REST requests from the servables of a core."""

    def __init__(
        self,
        core: ServerCore[Servable],
        scheduler: Scheduler,
        statistics: Statistics,
        recorder: Recorder,
        *,
        check_method_name: bool = False,
    ) -> None:
        self._core = core
        self._scheduler = scheduler
        self._statistics = statistics
        self._recorder = recorder
        self._check_method = check_method_name

    def handle(
        self, request: Request, respond: Callable[[Response], None]
    ) -> Callable[[], None] | None:
        """Answer one request; called in the loop's thread and never blocks for long.

        Returns:
            What gives the call up, or None where it has been answered already.
        """
        tally = Tally(self._statistics, respond)
        try:
            tally.route = route = parse_route(request.method, request.target)
            if not route.is_inference:
                tally.respond(Response(200, self._tell(route)))
                return None
        except ServingError as error:
            tally.respond(error_response(error))
            return None
        spec = route.spec
        call: Call
        if route.api is Api.PREDICT:
            call = PredictCall(self._core, tally, spec, request)
        else:
            call = ScoreCall(self._core, tally, route, request, check_method=self._check_method)
        call = self._recorder.watch(route.api, spec.name, call)
        # The time that a call takes goes with the size of its body, here by powers of two.
        kind = (request.target, len(request.body).bit_length())
        return tally.cancellable(
            self._scheduler.submit(kind, spec.name, call, tally.respond, request.timeout_ms / 1000)
        )

    def preflight(self, *, allowed: bool) -> None:
        """Count a request of CORS, which the HTTP door answers by itself."""
        self._statistics.requests.record("", "", Code.OK if allowed else Code.INVALID_ARGUMENT, 0)

    def _tell(self, route: Route) -> bytes:
        if route.api is Api.STATUS:
            return status_json(self._core.status(route.spec))
        return self._metadata(route.spec)

    def _metadata(self, spec: ModelSpec) -> bytes:
        with self._core.handle(spec) as handle:
            text = _METADATA.format(
                name=json_string(spec.name),
                version=handle.id.version,
                signature_def=handle.servable.metadata,
            )
        return text.encode("utf-8", "surrogateescape")
