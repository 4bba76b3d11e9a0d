"""Which requests the fast lane may take: those for which Jupyter's own checks come down to a token.

A request passes only if the ordinary lane would serve it, and serve it in no special way. All else
is left to the ordinary lane, which may serve it too; so whatever is not understood here fails safe.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jupyter_server.auth import AllowAllAuthorizer, IdentityProvider
from jupyter_server.auth.identity import PasswordIdentityProvider
from jupyter_server.base.handlers import AuthenticatedHandler

from .handlers import RestHandler

if TYPE_CHECKING:
    from tornado.httputil import HTTPServerRequest
    from tornado.web import Application

_PROVIDERS = (IdentityProvider, PasswordIdentityProvider)
_SPECIAL_HEADERS = frozenset(
    {
        "Cookie",  # another identity than the token's
        "Expect",
        "Origin",  # a page of a browser: CORS
        "Sec-Fetch-Site",
        "Sec-Websocket-Origin",
        "Transfer-Encoding",  # a body of unknown length
    }
)
"""Headers that the ordinary lane does something about, as Tornado spells them."""
_PORT = re.compile(r":\d+$")


class Gate:
    """Judges requests by the settings that an application has at that moment."""

    def __init__(self, application: Application, log: logging.Logger) -> None:
        self._application = application
        self._settings: dict[str, Any] = application.settings
        self._log = log

    def admits(self, request: HTTPServerRequest) -> bool:
        """Whether Jupyter would let the request pass, without a word and with no more to do."""
        return (
            _SPECIAL_HEADERS.isdisjoint(request.headers)
            and self._shows_the_token(request)
            and self._is_plain()
            and self._allows_host(request.host)
        )

    def _shows_the_token(self, request: HTTPServerRequest) -> bool:
        provider = self._settings.get("identity_provider")
        if provider is None or type(provider) not in _PROVIDERS or not provider.token:
            return False
        header = request.headers.get("Authorization", "")
        match = provider.auth_header_pat.match(header)
        return match is not None and hmac.compare_digest(
            match[2].encode("utf-8", "surrogatepass"),
            provider.token.encode("utf-8", "surrogatepass"),
        )

    def _is_plain(self) -> bool:
        """Whether nothing is added to what a stock server does for such a request."""
        return (
            type(self._settings.get("authorizer")) is AllowAllAuthorizer
            and not self._application.transforms
            # Before Jupyter Server 2 providers were mixed into its handlers; some still are.
            and RestHandler.get_current_user.__module__ == AuthenticatedHandler.__module__
            # Jupyter tells at this level what it does with each request.
            and not _is_debugging(self._log)
        )

    def _allows_host(self, host: str) -> bool:
        if self._settings.get("allow_remote_access", False):
            return True
        name = _PORT.sub("", host)
        return _is_loopback(name) or name in self._settings.get("local_hostnames", ())


def _is_debugging(log: logging.Logger) -> bool:
    """Whether debug messages come out anywhere.

    Jupyter's logger lets all of them through to its handlers, which have the level that is asked
    for.
    """
    if not log.isEnabledFor(logging.DEBUG):
        return False
    logger: logging.Logger | None = log
    while logger is not None:
        for handler in logger.handlers:
            if handler.level <= logging.DEBUG:
                return True
        logger = logger.parent if logger.propagate else None
    return False


@lru_cache(maxsize=64)
def _is_loopback(name: str) -> bool:
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
