"""Configuration of the Jupyter server whose responsiveness is measured."""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from traitlets.config import get_config


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Sends at once: waiting for the client's acknowledgement is TCP's time, not the server's."""

    async def connect(self):
        """Jupyter: the websocket is open."""
        self.websocket_handler.set_nodelay(True)
        return await super().connect()


get_config().ServerApp.kernel_websocket_connection_class = PromptConnection
