"""Both sides prove the secret, and unequal versions are told whom to update."""

from __future__ import annotations

import json

import pytest

from jupyter_tfserve.wire import WIRE_VERSION, DoorHandshake, HandshakeError, PoolHandshake


def test_both_sides_that_know_the_secret_agree() -> None:
    door, pool = DoorHandshake("secret"), PoolHandshake("secret")
    pool.check(door.answer(pool.answer(door.hello())))


def test_a_pool_that_does_not_know_the_secret_is_not_spoken_to() -> None:
    door, pool = DoorHandshake("secret"), PoolHandshake("guess")
    with pytest.raises(HandshakeError, match="does not know its secret"):
        door.answer(pool.answer(door.hello()))


def test_a_door_that_does_not_know_the_secret_is_turned_away() -> None:
    pool = PoolHandshake("secret")
    pool.answer(DoorHandshake("guess").hello())
    with pytest.raises(HandshakeError, match="does not know the pool's secret"):
        pool.check(json.dumps({"proof": "0" * 64}).encode())


def test_a_proof_is_of_no_use_in_another_connection() -> None:
    door, pool = DoorHandshake("secret"), PoolHandshake("secret")
    proof = door.answer(pool.answer(door.hello()))
    another = PoolHandshake("secret")
    another.answer(door.hello())
    with pytest.raises(HandshakeError):
        another.check(proof)


@pytest.mark.parametrize(
    ("theirs", "side"), [(WIRE_VERSION - 1, "pool"), (WIRE_VERSION + 1, "server")]
)
def test_the_older_side_is_named(theirs: int, side: str) -> None:
    door = DoorHandshake("secret")
    hello = json.loads(PoolHandshake("secret").answer(door.hello())) | {"wire": theirs}
    with pytest.raises(HandshakeError, match=f"environment of the {side}"):
        door.answer(json.dumps(hello).encode())


@pytest.mark.parametrize("payload", [b"", b"\xff", b"[]", b'{"nonce": {}}', b"GET / HTTP/1.1\r\n"])
def test_strangers_are_told_apart(payload: bytes) -> None:
    with pytest.raises(HandshakeError):
        PoolHandshake("secret").answer(payload)
    with pytest.raises(HandshakeError):
        DoorHandshake("secret").answer(payload)
