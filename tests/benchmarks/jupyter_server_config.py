"""Configuration of the Jupyter server whose responsiveness is measured."""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from traitlets.config import get_config


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Sends at once: waiting for the client's acknowledgement is TCP's time, not the server's."""

    def connect(self) -> Any:
        """Jupyter: the websocket is open."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


get_config().ServerApp.kernel_websocket_connection_class = PromptConnection
