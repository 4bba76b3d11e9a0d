"""HTTP/1.1 for the standalone door: a server protocol over httptools and asyncio.

It knows neither pool nor server: an :data:`Application` gets requests and answers them.
"""

from .limits import Limits
from .message import Application, Request, Respond, Response
from .server import HttpServer, listen

__all__ = ["Application", "HttpServer", "Limits", "Request", "Respond", "Response", "listen"]
