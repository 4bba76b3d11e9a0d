"""Changes to what shall be served: sent to the pools, waited for, taken back where they fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traitlets.log import get_logger

from ..config import model_to_dict
from ..errors import Code, ServingError
from ..state import ManagerState, ServableState
from .aspired import Aspired
from .outcome import FirstOutcome

if TYPE_CHECKING:
    from ..config import ModelConfig, ModelServerConfig
    from .fleet import Fleet
    from .managed_pool import ManagedPool
    from .placer import Placer
    from .pool_client import PoolClient

CALL_S = 30.0
"""A call that waits for no model is answered within this time, in seconds."""
_RELEASE_S = 60.0
"""A pool's end waits for calls under way of its last model."""


@dataclass(frozen=True, slots=True)
class Unloaded:
    """What became of the pool of a model that is no longer served.

    Attributes:
        pool: Its name.
        released: Whether its process has been ended.
        remaining: The models that it still serves.
    """

    pool: str
    released: bool = False
    remaining: tuple[str, ...] = ()


class Configuration:
    """The configuration in force, and all that changes it. Everything comes in one loop.

    Args:
        fleet: the pools that it is sent to.
        placer: chooses the pools of models.
        on_changed: called once a change is in force.
        on_moved: called with the name of a model that another pool serves from now on.

    Attributes:
        aspired: It as a value; nobody else assigns to it.
    """

    def __init__(
        self,
        fleet: Fleet,
        placer: Placer,
        on_changed: Callable[[], None],
        on_moved: Callable[[str], None],
    ) -> None:
        self.aspired = Aspired()
        self._on_changed = on_changed
        self._fleet = fleet
        self._placer = placer
        self._on_moved = on_moved
        self._changing = asyncio.Lock()
        self._arriving: Counter[ManagedPool] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    # Changes

    async def begin_with(self, model: ModelConfig) -> ManagedPool:
        """Configure a first model, whose pool learns of it when it starts; returns that pool."""
        (home,) = await self._placer.place([model], self.aspired)
        self.aspired = self.aspired.having(model, home)
        self._on_changed()
        return home

    async def load(self, model: ModelConfig, pool: ManagedPool) -> None:
        """Add a model, or replace the one of that name, and wait until ``pool`` serves it.

        One that moves is answered for by its old pool until then.

        Raises:
            ServingError: see :meth:`.PoolManager.load`.
        """
        with self._arrival(pool):
            await self._load(model, pool, await self._fleet.start(pool))

    async def _load(self, model: ModelConfig, pool: ManagedPool, client: PoolClient) -> None:
        name = model.name

        async def problem() -> str | None:
            described = await client.call("describe", timeout_s=CALL_S)
            return next((m["problem"] for m in described["models"] if m["name"] == name), None)

        # Labels come last: they may only point at versions that are available.
        staged = replace(model, labels={})
        with FirstOutcome(pool.mirror, name, model.labels.values(), problem) as outcome:
            async with self._changing:
                before = self.aspired
                there = next((m for m in before.of(pool).models if m.name == name), None)
                if there is not None and there.base_path == model.base_path:
                    if pool.mirror.is_live(name):
                        await _must_serve(client, model)
                        await self._send(before.having(model, pool))
                        return  # what it changes comes with the next poll, as in TF Serving
                    # A failed version is tried again only after it was let go.
                    await self._send(before.without(name))
                await self._send(self.aspired.having(staged, pool))
            try:
                await outcome.wait(client)
                if model.labels:
                    await self.set_labels(name, model.labels)
            except (ServingError, asyncio.CancelledError):
                await asyncio.shield(self._take_back(staged, pool, before))
                raise

    async def unload(self, name: str) -> ManagedPool:
        """Take a model out; returns the pool that it was placed on.

        Raises:
            ServingError: NOT_FOUND where it is not configured.
        """
        async with self._changing:
            self.aspired.get(name)
            home = self.aspired.homes[name]
            await self._apply(self.aspired.without(name))
            return home

    async def release(self, pool: ManagedPool, name: str) -> list[str]:
        """End a pool's process if it has nothing to serve, so that its memory returns.

        Args:
            pool: whose process it is.
            name: the model that it has served last; its calls under way are answered first.

        Returns:
            The models for whose sake the process stays.
        """
        await self._until_gone(pool, name)
        async with self._changing:
            left = [model.name for model in self.aspired.of(pool).models]
            if not left and not self._arriving[pool]:
                await pool.stop()
            return left

    async def label(self, name: str, label: str, version: int | None) -> Mapping[str, int]:
        """Let a label stand for a version, or remove it with None; returns all labels.

        Raises:
            ServingError: NOT_FOUND for a model that is not configured, or a label to remove that it
                does not have; the pool's refusal.
        """
        async with self._changing:
            model = self.aspired.get(name)
            labels = dict(model.labels)
            if version is not None:
                labels[label] = version
            elif labels.pop(label, None) is None:
                raise ServingError(Code.NOT_FOUND, f"Model {name} has no label {label}")
            model = replace(model, labels=labels)
            await self._apply(self.aspired.having(model, self.aspired.homes[name]))
            return labels

    async def set_labels(self, name: str, labels: Mapping[str, int]) -> None:
        """Replace the labels of a model.

        Raises:
            ServingError: NOT_FOUND where it is not configured; the pool's refusal.
        """
        async with self._changing:
            model = replace(self.aspired.get(name), labels=dict(labels))
            await self._apply(self.aspired.having(model, self.aspired.homes[name]))

    async def replace_all(self, config: ModelServerConfig) -> None:
        """Replace the whole configuration; models are loaded and unloaded afterwards.

        Raises:
            ServingError: the refusal; the configuration is then as it was.
        """
        config.validate()
        async with self._changing:
            homes = await self._placer.place(config.models, self.aspired)
            placed = {m.name: home for m, home in zip(config.models, homes, strict=True)}
            await self._apply(self.aspired.having_all(config, placed))

    # What pools do

    async def replay(self, pool: ManagedPool, client: PoolClient) -> None:
        """Tell a new process everything that its pool is to serve."""
        config = self.aspired.of(pool)
        if not config.models:
            return
        try:
            await self._reload(client, config, replay=True)
        except ServingError as error:
            if error.code is Code.UNAVAILABLE:
                raise
            get_logger().warning("The new pool refuses the configuration: %s", error.message)

    def state_told(self, pool: ManagedPool, state: ServableState) -> None:
        """A model that is available at its new home leaves the old one."""
        name = state.id.name
        if state.state is not ManagerState.AVAILABLE or name not in self.aspired.leaving:
            return
        if self.aspired.homes.get(name) is pool:
            old, _ = self.aspired.leaving[name]
            self.aspired = self.aspired.arrived(name)
            self._on_moved(name)
            task = asyncio.get_running_loop().create_task(self._refresh(old))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # Under the lock

    async def _apply(self, aspired: Aspired) -> None:
        for pool in self._changed(aspired):
            if pool.mirror.client is None and aspired.of(pool).models:
                await self._fleet.start(pool)
        await self._send(aspired)

    async def _send(self, aspired: Aspired) -> None:
        aspired.config.validate()
        changed = self._changed(aspired)
        before, self.aspired = self.aspired, aspired
        told: list[ManagedPool] = []
        try:
            for pool in changed:
                told.append(pool)
                # Where there is no process, the next one will be told.
                if pool.mirror.client is not None:
                    await self._reload(pool.mirror.client, aspired.of(pool))
        except ServingError as error:
            # A pool that is only late has been told, and will carry it out.
            if error.code is not Code.DEADLINE_EXCEEDED:
                self.aspired = before
                for pool in told[:-1]:
                    await self._resend(pool)
            raise
        finally:
            self._on_changed()

    async def _take_back(self, staged: ModelConfig, pool: ManagedPool, before: Aspired) -> None:
        name = staged.name
        async with self._changing:
            if self.aspired.find(name) != staged or self.aspired.homes[name] is not pool:
                return  # changed again since
            old = before.find(name)
            aspired = self.aspired.without(name)
            if old is not None:
                aspired = self.aspired.having(old, before.homes[name])
            changed, self.aspired = self._changed(aspired), aspired
            self._on_changed()
            for other in changed:
                await self._resend(other)

    async def _refresh(self, pool: ManagedPool) -> None:
        async with self._changing:
            await self._resend(pool)

    async def _resend(self, pool: ManagedPool) -> None:
        if pool.mirror.client is None:
            return
        try:
            await self._reload(pool.mirror.client, self.aspired.of(pool))
        except ServingError as error:
            get_logger().warning("Pool %s could not be told: %s", pool.spec.name, error.message)

    def _changed(self, aspired: Aspired) -> list[ManagedPool]:
        return [pool for pool in self._fleet if self.aspired.of(pool) != aspired.of(pool)]

    @staticmethod
    async def _reload(
        client: PoolClient, config: ModelServerConfig, *, replay: bool = False
    ) -> None:
        parameters = {"config": config.to_dict(), "wait": False}
        if replay:
            parameters["replay"] = True
        await client.call("reload_config", parameters, CALL_S)

    # Waiting

    @contextmanager
    def _arrival(self, pool: ManagedPool) -> Iterator[None]:
        """While a model is on its way to a pool, its process is needed."""
        self._arriving[pool] += 1
        try:
            yield
        finally:
            self._arriving[pool] -= 1

    async def _until_gone(self, pool: ManagedPool, name: str) -> None:
        changed = asyncio.Event()
        unsubscribe = pool.mirror.bus.subscribe(lambda _state: changed.set())
        try:
            async with asyncio.timeout(_RELEASE_S):
                while pool.mirror.client is not None and pool.mirror.is_live(name):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            text = "Calls of model %s have held up the end of its pool for %g s: it ends now"
            get_logger().warning(text, name, _RELEASE_S)
        finally:
            unsubscribe()


async def _must_serve(client: PoolClient, model: ModelConfig) -> None:
    """Refuse a change by which a model that is served would lose all its versions."""
    answer = await client.call("look", {"model": model_to_dict(model)}, CALL_S)
    if answer["problem"] is not None:
        raise ServingError(Code.NOT_FOUND, answer["problem"])
