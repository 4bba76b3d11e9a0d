"""Requests over HTTP: pooled connections, time-outs, and retries of what is safe.

urllib3 moves bodies of many megabytes at the speed of the socket and holds a pool that threads
share; it comes with every JupyterLab.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from .errors import DeadlineExceededError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONNECT_S = 10.0
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 5.0
_REFUSED_S = 1.0
"""How long a server that listens nowhere is looked for: it may be about to start."""
# Statuses with which a server turns a request away until later, if it says when.
_LATER = frozenset((429, 503))
# A server of ours says so where the model may have run.
_MAY_HAVE_RUN = b"under way"
_HERE = frozenset(("localhost", "127.0.0.1", "::1"))
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer."""

    status: int
    body: bytes
    retry_after: str = ""


class Transport:
    """The connections to one server. Threads may share it.

    Args:
        url: The root of the server; paths are appended to it.
        headers: Go with every request.
        timeout: Seconds without a byte of the answer before a request is given up.
        patience: Seconds over which a request that was turned away is sent again.
        verify: Whether the certificate of an https server is checked, or the file of those to
            trust.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        timeout: float,
        patience: float,
        verify: bool | str,
    ) -> None:
        self.url = url
        self._headers = {"Content-Type": "application/json", "Accept": "*/*", **headers}
        self._timeout = timeout
        self._patience = patience
        self._pool = _pool(url, verify=verify)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Reply:
        """Send one request and wait for its answer, whatever its status.

        It is sent again, within ``patience``, where that cannot run a model twice: when no
        connection was made, when the server turns it away and says when to come back, and, for GET
        alone, when the connection is lost.

        Raises:
            UnavailableError: where the server cannot be reached, or does not finish its answer.
            DeadlineExceededError: where it does not answer in time.
        """
        patience = self._patience if patience is None else patience
        timeout = timeout or self._timeout
        wait, start = _FIRST_WAIT_S, time.monotonic()
        while True:
            failure: Exception | None = None
            try:
                reply = self._once(method, path, body, headers or {}, timeout)
                if not _turned_away(method, reply):
                    return reply
                wait = max(wait, _seconds(reply.retry_after))
            except ReadTimeoutError:
                raise self._too_late(timeout) from None
            except (NewConnectionError, ConnectTimeoutError) as error:
                failure = error
            except (ProtocolError, HTTPError) as error:
                if method != "GET":
                    raise self._unreachable(error) from None
                failure = error
            limit = patience if failure is None else min(patience, _REFUSED_S)
            if time.monotonic() + wait > start + limit:
                if failure is not None:
                    raise self._unreachable(failure) from None
                return reply
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)

    def _once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> Reply:
        response = self._pool.request(
            method,
            self.url + path,
            body=body,
            headers={**self._headers, **headers},
            timeout=urllib3.Timeout(connect=min(_CONNECT_S, timeout), read=timeout),
            retries=False,
            redirect=False,
        )
        return Reply(response.status, response.data, response.headers.get("Retry-After", ""))

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._pool.clear()

    def _unreachable(self, error: Exception) -> UnavailableError:
        reason = getattr(error, "reason", None) or error.__cause__ or error
        return UnavailableError(
            f"{self.url} does not answer: {reason}", "Is the Jupyter server running?"
        )

    def _too_late(self, timeout: float) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"{self.url} gave no answer within {timeout:g} s",
            "A longer time-out is Client(timeout=...).",
        )


def _turned_away(method: str, reply: Reply) -> bool:
    """Whether the request was not carried out, and may come again."""
    if reply.status not in _LATER or not reply.retry_after:
        return False
    return method == "GET" or _MAY_HAVE_RUN not in reply.body


def _seconds(retry_after: str) -> float:
    """The header as seconds; a date counts as no wait of its own."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


def _pool(url: str, *, verify: bool | str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    options: dict[str, Any] = {"maxsize": CONNECTIONS, "block": False}
    if parts.scheme == "https":
        options["cert_reqs"] = "CERT_NONE" if verify is False else "CERT_REQUIRED"
        if isinstance(verify, str):
            options["ca_certs"] = verify
    host = parts.hostname or ""
    proxy = getproxies().get(parts.scheme)
    if proxy and host not in _HERE and not proxy_bypass(host):
        return urllib3.ProxyManager(proxy, **options)
    return urllib3.PoolManager(**options)
