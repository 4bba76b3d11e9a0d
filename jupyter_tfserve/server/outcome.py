"""Waits until a model that was just configured is up, or known to have failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..errors import Code, ServingError
from ..state import ManagerState, ServableState
from .pool_client import lost_error

if TYPE_CHECKING:
    from .pool_client import PoolClient
    from .pool_mirror import PoolMirror

_LOOK_S = 0.5
_MAX_LOOKS = 20
"""Looks without a version in sight until a model counts as one that has none to load."""


class FirstOutcome:
    """Follows one model from before its configuration is sent. A context manager.

    Args:
        pool: where it is to be served.
        name: the model's.
        versions: those that have to be up or given up as well, if they are among the aspired.
        problem: asks the pool why it finds nothing to load, if it does not.
    """

    def __init__(
        self,
        pool: PoolMirror,
        name: str,
        versions: Iterable[int],
        problem: Callable[[], Awaitable[str | None]],
    ) -> None:
        self._pool = pool
        self._name = name
        self._versions = frozenset(versions)
        self._problem = problem
        self._available = False
        self._outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsubscribe = pool.bus.subscribe(self._on_state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._unsubscribe()
        self._outcome.cancel()

    async def wait(self, client: PoolClient) -> None:
        """Return once a version has become available since this was made, or none had to.

        Raises:
            ServingError: the error of the version that failed first; NOT_FOUND where there is no
                version to load, saying what was looked for; UNAVAILABLE where the pool is lost.
        """
        looks = 0
        while not self._outcome.done():
            await asyncio.wait(
                {self._outcome, client.closed},
                timeout=_LOOK_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if client.closed.done():
                raise lost_error()
            if self._outcome.done() or self._is_coming():
                continue
            looks += 1
            problem = await self._problem()
            # Looked at twice: a version that was found may not have been announced at first.
            if problem and looks > 1:
                raise ServingError(Code.NOT_FOUND, problem)
            if looks > _MAX_LOOKS:
                if self._pool.is_live(self._name):
                    return  # it serves as before: nothing of it had to change
                text = f"No version of model {self._name} is wanted by its version policy"
                raise ServingError(Code.NOT_FOUND, text)
        self._outcome.result()

    def _is_coming(self) -> bool:
        """Whether a version is on its way; one that is up may still be of the old configuration."""
        return any(
            state.state < ManagerState.AVAILABLE
            for state in self._pool.monitor.versions(self._name)
        )

    def _on_state(self, state: ServableState) -> None:
        if state.id.name != self._name or self._outcome.done():
            return
        self._available |= state.state is ManagerState.AVAILABLE
        if not self._available:
            if state.state is ManagerState.END and state.code is not Code.OK:
                self._outcome.set_exception(ServingError(state.code, state.message))
        elif not any(
            s.id.version in self._versions and s.state < ManagerState.AVAILABLE
            for s in self._pool.monitor.versions(self._name)
        ):
            self._outcome.set_result(None)
