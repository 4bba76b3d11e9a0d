"""Who may talk: a proof of the pool's secret in both directions, before any other frame.

The secret stands in the announcement file, which only its user can read. It never crosses the wire:
each side shows an HMAC over both nonces. The two ends may be two installs, so the wire
version is compared first. Both classes are pure: payloads in, payloads out.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import Any

from .._version import __version__
from .messages import WIRE_VERSION

TIMEOUT_S = 5.0
"""How long a peer may take to prove itself, in seconds."""


class HandshakeError(ConnectionError):
    """The peer is not one of ours, or of another wire version; the text says which."""


def _proof(secret: str, role: str, door_nonce: str, pool_nonce: str) -> str:
    message = f"{role}:{door_nonce}:{pool_nonce}".encode()
    return hmac.new(secret.encode(), message, "sha256").hexdigest()


def _read(payload: bytes | bytearray) -> dict[str, Any]:
    try:
        data = json.loads(payload)
    except ValueError as error:
        raise HandshakeError("the peer does not speak the pool's protocol") from error
    if not isinstance(data, dict) or not all(isinstance(v, str | int) for v in data.values()):
        raise HandshakeError("the peer does not speak the pool's protocol")
    return data


def _check_version(hello: dict[str, Any], peer: str, here: str) -> None:
    theirs = hello.get("wire")
    if theirs == WIRE_VERSION:
        return
    older = peer if isinstance(theirs, int) and theirs < WIRE_VERSION else here
    raise HandshakeError(
        f"The {peer} speaks wire version {theirs} (jupyter_tfserve {hello.get('version', '?')}), "
        f"the {here} version {WIRE_VERSION} (jupyter_tfserve {__version__}). "
        f"Update jupyter_tfserve in the environment of the {older}."
    )


class DoorHandshake:
    """The door's side: it speaks first."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._nonce = secrets.token_hex(16)

    def hello(self) -> bytes:
        """The first payload to send."""
        return json.dumps(
            {"wire": WIRE_VERSION, "version": __version__, "nonce": self._nonce}
        ).encode()

    def answer(self, pool_hello: bytes | bytearray) -> bytes:
        """Check the pool's hello and return the payload of the proof to send.

        Raises:
            HandshakeError: for another wire version, or a peer that does not know the secret.
        """
        hello = _read(pool_hello)
        _check_version(hello, "pool", "server")
        pool_nonce = str(hello.get("nonce"))
        expected = _proof(self._secret, "pool", self._nonce, pool_nonce)
        if not hmac.compare_digest(expected, str(hello.get("proof"))):
            raise HandshakeError("the process behind the pool's address does not know its secret")
        proof = _proof(self._secret, "door", self._nonce, pool_nonce)
        return json.dumps({"proof": proof}).encode()


class PoolHandshake:
    """The pool's side, one for each connection."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._nonce = secrets.token_hex(16)
        self._door_nonce = ""

    def answer(self, door_hello: bytes | bytearray) -> bytes:
        """Take the door's hello and return the pool's, with its proof.

        An unequal wire version is answered as well: the door words the error, as it has a user.
        """
        self._door_nonce = str(_read(door_hello).get("nonce"))
        return json.dumps(
            {
                "wire": WIRE_VERSION,
                "version": __version__,
                "nonce": self._nonce,
                "proof": _proof(self._secret, "pool", self._door_nonce, self._nonce),
            }
        ).encode()

    def check(self, door_proof: bytes | bytearray) -> None:
        """Check the door's proof; after this its frames may be read.

        Raises:
            HandshakeError: for a peer that does not know the secret.
        """
        expected = _proof(self._secret, "door", self._door_nonce, self._nonce)
        if not hmac.compare_digest(expected, str(_read(door_proof).get("proof"))):
            raise HandshakeError("the door does not know the pool's secret")
