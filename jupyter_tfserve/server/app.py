"""The extension: what it adds to a Jupyter server, wired together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import url_path_join
from traitlets import Bool, Unicode

from .._version import __version__
from .api_handlers import (
    ConfigHandler,
    DescriptionHandler,
    LabelHandler,
    MetricsHandler,
    ModelHandler,
    ModelsHandler,
    RecordHandler,
    ReloadHandler,
)
from .event_hub import EventHub
from .event_stream import EventsHandler
from .fast_lane import FastLane
from .pool_handlers import DevicesHandler, PoolRestartHandler, PoolsHandler
from .pool_manager import PoolManager
from .rates import RateWatch
from .small_bodies import SmallBodies
from .upload_handler import UploadHandler

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp
    from tornado.routing import Router
    from tornado.web import Application


class TFServeExtension(ExtensionApp):
    """TensorFlow Serving's REST API at ``{base_url}v1/``, and its management beside it.

    Nothing is launched before it is needed.
    """

    name = "jupyter_tfserve"
    version = __version__
    description = "Serve TensorFlow models from the notebook server."
    load_other_extensions = True
    classes = [PoolManager]  # noqa: RUF012 - as traitlets wants it

    url_prefix = Unicode(
        "",
        config=True,
        help="Where below the server's base URL the REST API is mounted: /v1/… comes after it.",
    )
    track_predictions = Bool(
        True,
        config=True,
        help="Whether predictions count as activity of the server, so that it is not shut down as "
        "idle. Status requests never do.",
    )

    fast_lane = Bool(
        True,
        config=True,
        help="Whether requests that show the server's token in a header, and need nothing else of "
        "what Jupyter does for a request, are answered without it. They are answered alike, only "
        "sooner.",
    )

    def initialize_settings(self) -> None:
        """Make the manager and let other extensions find it."""
        assert self.serverapp is not None
        self.manager = PoolManager(
            parent=self, kernel_spec_manager=self.serverapp.kernel_spec_manager
        )
        self.settings["tfserve_pool_manager"] = manager = self.manager
        told = manager.overview
        self.hub = hub = EventHub(told.known_model, told.known_names, told.known_pools)
        self.rates = RateWatch(manager.registry, hub.set_rates)
        manager.registry.on_model = hub.refresh_model
        manager.registry.on_pools = hub.refresh_pools
        manager.on_phase = lambda _phase: hub.refresh_pools()
        manager.on_config = hub.refresh

    def initialize_handlers(self) -> None:
        """Mount both APIs below the server's base URL."""
        assert self.serverapp is not None
        mount = url_path_join(self.serverapp.base_url, self.url_prefix, "/").rstrip("/")
        rest: dict[str, Any] = {
            "manager": self.manager,
            "prefix_length": len(mount),
            "track_predictions": self.track_predictions,
        }
        api = {"manager": self.manager}
        events = {**api, "hub": self.hub, "rates": self.rates}
        # No groups: a path that is no UTF-8 is the grammar's to judge, not Tornado's.
        path = url_path_join("/", self.url_prefix, "(?i:v1)/.*")
        application: Application = self.serverapp.web_app
        self.lane = FastLane(application, self.serverapp.log, **rest) if self.fast_lane else None
        routers: list[Router] = [SmallBodies(application, rest)]
        if self.lane is not None:
            routers.insert(0, self.lane)
        pattern = url_path_join(self.serverapp.base_url, path)
        application.add_handlers(".*$", [(pattern, router) for router in routers])
        self.handlers.extend(
            [
                (path, UploadHandler, rest),
                (r"/tfserve/api/models", ModelsHandler, api),
                (r"/tfserve/api/models/([^/]+)", ModelHandler, api),
                (r"/tfserve/api/models/([^/]+)/record", RecordHandler, api),
                (r"/tfserve/api/models/([^/]+)/labels/([^/]+)", LabelHandler, api),
                (r"/tfserve/api/pools", PoolsHandler, api),
                (r"/tfserve/api/pools/([^/]+)/restart", PoolRestartHandler, api),
                (r"/tfserve/api/config", ConfigHandler, api),
                (r"/tfserve/api/reload", ReloadHandler, api),
                (r"/tfserve/api/metrics", MetricsHandler, api),
                (r"/tfserve/api/spec\.yaml", DescriptionHandler, api),
                (r"/tfserve/api/events", EventsHandler, events),
                (r"/tfserve/api/devices", DevicesHandler, api),
            ]
        )

    async def _start_jupyter_server_extension(self, serverapp: ServerApp) -> None:
        """Jupyter: the loop runs."""
        self.manager.start()

    async def stop_extension(self) -> None:
        """Jupyter: the server ends, and every pool with it."""
        self.hub.close()
        await self.manager.stop()
