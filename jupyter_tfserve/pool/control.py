"""The pool's management interface: what its owner may ask for, and the events that it is told.

Calls that may block run in threads of their own; they never hold up a request.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ..config import ModelServerConfig, model_from_dict, options_to_dict, policy_to_dict
from ..errors import Code, ServingError
from ..servable import ModelSpec
from ..state import ManagerState, ServableState
from ..wire import Connection, Kind
from . import config_text
from .memory import rss_bytes
from .monitoring_text import load_monitoring_file
from .recorder import DEFAULT_LIMIT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from .core.server_core import ServerCore
    from .metrics import PoolMetrics
    from .publisher import Publisher
    from .recorder import Recorder
    from .servables.base import Servable
    from .statistics import Statistics

log = logging.getLogger(__name__)

_THREADS = 4
"""A reload may wait for minutes; other calls must not wait behind it."""


class Control:
    """Answers CALL frames; lives in the pool's loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        core: ServerCore[Servable],
        statistics: Statistics,
        *,
        metrics: PoolMetrics,
        recorder: Recorder,
        runtime: Callable[[], dict[str, Any]],
        open_http: Callable[[str | None], None],
        shut_down: Callable[[], None],
        publisher: Publisher,
    ) -> None:
        """Take part in the pool.

        Args:
            loop: the pool's.
            core: what is managed.
            statistics: counts of calls, for ``describe``.
            metrics: everything in numbers, for ``metrics``.
            recorder: of calls, for ``record``.
            runtime: tells of the model runtime: its version and its devices.
            open_http: lets the standalone door answer, with the metrics at the path that is given;
                called in the loop's thread.
            shut_down: ends the pool; called in the loop's thread after the reply.
            publisher: holds the published models, which can be labelled and withdrawn.
        """
        self._loop = loop
        self._core = core
        self._statistics = statistics
        self._metrics = metrics
        self._recorder = recorder
        self._runtime = runtime
        self._open_http = open_http
        self._shut_down = shut_down
        self._publisher = publisher
        self._threads = ThreadPoolExecutor(_THREADS, "tfserve-control")
        self._subscribers: dict[Connection, int] = {}
        self._sequence = 0
        self._methods: dict[str, Callable[[dict[str, Any]], Any]] = {
            "reload_config": self._reload_config,
            "load_config_file": self._load_config_file,
            "parse_config": self._parse_config,
            "config_text": self._config_text,
            "look": self._look,
            "load_monitoring_file": self._load_monitoring_file,
            "metrics": self._tell_metrics,
            "counts": self._counts,
            "record": self._record,
            "poll": self._poll,
            "label": self._label,
            "unpublish": self._unpublish,
            "describe": self._describe,
        }
        self._unsubscribe = core.bus.subscribe(self._state_published)
        publisher.on_labels = self._labels_changed

    def close(self) -> None:
        """Take no more calls; those that run are left to end by themselves."""
        self._unsubscribe()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Calls

    def call(self, connection: Connection, exchange: int, payload: bytes | bytearray) -> None:
        """Take one CALL frame; its REPLY follows, now or later."""
        try:
            call = json.loads(payload)
            method, params = call["method"], call["params"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError("a CALL frame holds a method and its params") from error
        if method == "subscribe":
            self._reply(connection, exchange, self._subscribe(connection))
        elif method == "open_http":
            self._send_reply(connection, exchange, self._run(self._open, params))
        elif method == "shutdown":
            self._reply(connection, exchange, {})
            self._shut_down()
        elif method in self._methods:
            future = self._threads.submit(self._run, self._methods[method], params)
            future.add_done_callback(
                lambda done: self._loop.call_soon_threadsafe(
                    self._send_reply, connection, exchange, done.result()
                )
            )
        else:
            text = f"The pool has no method {method!r}; it may be older than the server"
            self._send_reply(connection, exchange, _error(ServingError(Code.UNIMPLEMENTED, text)))

    def _open(self, params: dict[str, Any]) -> dict[str, Any]:
        self._open_http(params.get("metrics_path"))
        return {}

    @staticmethod
    def _run(method: Callable[[dict[str, Any]], Any], params: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": method(params)}
        except ServingError as error:
            return _error(error)
        except Exception as error:
            log.exception("A management call failed in an unforeseen way")
            return _error(ServingError(Code.INTERNAL, f"{type(error).__name__}: {error}"))

    def _reply(self, connection: Connection, exchange: int, result: Any) -> None:
        self._send_reply(connection, exchange, {"result": result})

    @staticmethod
    def _send_reply(connection: Connection, exchange: int, reply: dict[str, Any]) -> None:
        connection.send(Kind.REPLY, exchange, json.dumps(reply).encode())

    # Events

    def _subscribe(self, connection: Connection) -> dict[str, Any]:
        # The sequence is taken first: a state that is published meanwhile is told twice, not never.
        self._subscribers[connection] = sequence = self._sequence
        states = [state.to_dict() for state in self._core.monitor.states()]
        return {"seq": sequence, "states": states, "labels": self._publisher.labels()}

    def _state_published(self, state: ServableState) -> None:
        if state.state is ManagerState.END:
            self._statistics.forget(state.id)
        self._loop.call_soon_threadsafe(self._tell, {"event": "state", "state": state.to_dict()})

    def _labels_changed(self, name: str, labels: Mapping[str, int]) -> None:
        event = {"event": "labels", "name": name, "labels": labels}
        self._loop.call_soon_threadsafe(self._tell, event)

    def _tell(self, event: dict[str, Any]) -> None:
        self._sequence += 1
        payload = json.dumps({**event, "seq": self._sequence}).encode()
        for connection in self._subscribers:
            connection.send(Kind.EVENT, 0, payload)

    def door_lost(self, connection: Connection) -> None:
        """A door that had proved itself is gone."""
        self._subscribers.pop(connection, None)

    # Methods: each blocks in a thread of its own

    def _reload_config(self, params: dict[str, Any]) -> dict[str, Any]:
        config = ModelServerConfig.from_dict(params["config"])
        wait, replay = params.get("wait", True), params.get("replay", False)
        self._core.reload_config(config, wait=wait, replay=replay)
        return {}

    def _load_config_file(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"config": config_text.load_config_file(params["path"]).to_dict()}

    def _parse_config(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"config": config_text.parse_config(params["text"]).to_dict()}

    def _config_text(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"text": config_text.to_text(ModelServerConfig.from_dict(params["config"]))}

    def _load_monitoring_file(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"metrics_path": load_monitoring_file(params["path"])}

    def _tell_metrics(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"families": [family.to_dict() for family in self._metrics.families()]}

    def _counts(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {
            "versions": [
                {"name": name, "version": version, **counts.describe()}
                for name, version, counts in self._statistics.versions()
            ]
        }

    def _record(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params["model"]
        match params["action"]:
            case "start":
                limit = params.get("limit") or DEFAULT_LIMIT
                return self._recorder.start(name, params.get("version"), limit)
            case "stop":
                return self._recorder.stop(name)
            case "save":
                replace = params.get("replace", False)
                return self._recorder.save(name, params.get("path"), replace=replace)
            case _:
                return self._recorder.state(name)

    def _poll(self, _params: dict[str, Any]) -> dict[str, Any]:
        self._core.poll_now()
        return {}

    def _look(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"problem": self._core.look(model_from_dict(params["model"]))}

    def _label(self, params: dict[str, Any]) -> dict[str, Any]:
        name, label, version = params["name"], params["label"], params["version"]
        return {"labels": self._publisher.label(name, label, version)}

    def _unpublish(self, params: dict[str, Any]) -> dict[str, Any]:
        self._publisher.unpublish(params["name"])
        return {}

    def _describe(self, _params: dict[str, Any]) -> dict[str, Any]:
        config = {model.name: model for model in self._core.config().models}
        problems = self._core.problems()
        names = sorted({*config, *self._core.monitor.names()})
        models = []
        for name in names:
            model = config.get(name)
            models.append(
                {
                    "name": name,
                    "base_path": model.base_path if model else None,
                    "policy": policy_to_dict(model.policy) if model else None,
                    "labels": dict(self._core.labels(name)),
                    "options": options_to_dict(model) if model else {},
                    "problem": problems.get(name),
                    "versions": [self._version(s) for s in self._core.monitor.versions(name)],
                }
            )
        return {"models": models, "process": self._process()}

    def _version(self, state: ServableState) -> dict[str, Any]:
        described: dict[str, Any] = {
            "version": state.id.version,
            "state": state.state.name,
            "error": state.message or None,
            "since": state.since,
            **self._statistics.describe(state.id),
        }
        if state.state is ManagerState.AVAILABLE:
            described |= self._loaded(state)
        return described

    def _loaded(self, state: ServableState) -> dict[str, Any]:
        try:
            with self._core.handle(ModelSpec(state.id.name, state.id.version)) as handle:
                servable = handle.servable
                footprint, warmup = servable.footprint, servable.warmup
                batching = servable.batching.describe()
        except ServingError:  # it has been unloaded since
            return {}
        memory = {
            "host": footprint.host_bytes,
            "device": footprint.device_bytes,
            "estimate": True,
        }
        replayed = {"records": warmup.records, "seconds": warmup.seconds} if warmup else None
        return {
            "device": footprint.device,
            "memory": memory,
            "warmup": replayed,
            "batching": batching,
        }

    def _process(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "rss_bytes": rss_bytes(),
            "python": platform.python_version(),
            **self._runtime(),
        }


def _error(error: ServingError) -> dict[str, Any]:
    return {"error": {"code": error.code.name, "message": error.message}}
