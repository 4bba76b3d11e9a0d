"""Holds what shall be served, and keeps the managed pools that serve it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..config import ModelConfig, ModelServerConfig
from ..errors import Code, ServingError
from ..metrics import RequestMetrics
from ..servable import ModelSpec
from ..state import ServableState, ServableStateMonitor
from .admission import Limits
from .config_file import ConfigFile
from .configuration import CALL_S, Configuration, Unloaded
from .description import describe_all, describe_pool
from .fleet import Fleet
from .ledger import is_shortage
from .managed_pool import ManagedPool, Phase
from .overview import Overview
from .placer import Placer
from .pool_kernel import PoolKernel
from .pool_registry import PoolRegistry
from .pool_settings import PoolSettings
from .pool_spec import PoolSpec, read_specs

if TYPE_CHECKING:
    from .managed_pool import Host
    from .pool_client import PoolClient
    from .pool_mirror import PoolMirror

_UNPUBLISH_S = 60.0
"""Withdrawing a model waits for its calls under way."""
_NOTHING = ServableStateMonitor()
_EMPTY = "model_config_list {\n}\n"


class PoolManager(PoolSettings):
    """The aspired configuration and the pools; knows nothing of HTTP.

    Managed pools are started on first need and never by a read. All calls come in one loop.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_phase: Callable[[Phase], None] = lambda _phase: None
        self.on_config: Callable[[], None] = lambda: None
        self.limits = Limits(self.max_in_flight, self.max_in_flight_per_model)
        self.registry = PoolRegistry(self._is_placed, self.limits)
        self.fleet = Fleet(
            read_specs(self.pools),
            self._new_pool,
            on_added=self._pool_added,
            on_dropped=lambda pool: self.registry.remove(pool.mirror),
        )
        self._placer = Placer(self.fleet, self.registry)
        self.configuration = Configuration(
            self.fleet,
            self._placer,
            on_changed=self._tell_config,
            on_moved=self.registry.elect,
        )
        self.overview = Overview(self.fleet, self.registry, self.configuration, self._placer)
        self.requests = RequestMetrics(self._is_known)  # answered without a pool
        self._config_file = ConfigFile(self._read_config_file, self.reload_config, self.log)
        self._starting: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def managed(self) -> ManagedPool:
        """The first managed pool, which does what any could; the only one by default."""
        return self.fleet.first

    @property
    def _any_pool(self) -> ManagedPool:
        """A managed pool that can be asked what all know, one that runs if there is any."""
        return self.fleet.running or self.managed

    @property
    def config_in_force(self) -> ModelServerConfig:
        """What shall be served."""
        return self.configuration.aspired.config

    # Life

    def start(self) -> None:
        """Begin with what the traits configure, in the background; nothing where they do not."""
        if self.model_base_path or self.model_config_file:
            self._starting = asyncio.get_running_loop().create_task(self._start_in_background())

    async def start_configured(self) -> None:
        """Start the pools that are needed for what the traits configure, and send it to them.

        Raises:
            ServingError: why a pool cannot start, or what is wrong with the configuration.
        """
        if not self.model_config_file:
            model = ModelConfig(self.model_name, self.model_base_path)
            ModelServerConfig((model,)).validate()
            # Its name is known while the pool starts.
            await (await self.configuration.begin_with(model)).ensure_running()
            return
        if self.model_base_path:
            self.log.warning("model_base_path is ignored, as model_config_file is set")
        await self._config_file.load()

    def follow_config_file(self) -> None:
        """Keep to the model config file from now on, where the traits say so."""
        if self.model_config_file and self.model_config_file_poll_wait_seconds > 0:
            follow = self._config_file.follow(self.model_config_file_poll_wait_seconds)
            self._following = asyncio.get_running_loop().create_task(follow)

    async def stop(self) -> None:
        """End every pool in bounded time."""
        for task in (self._starting, self._following):
            if task is not None:
                task.cancel()
        await self.fleet.stop()
        await self.registry.close()

    async def _start_in_background(self) -> None:
        try:
            await self.start_configured()
        except ServingError as error:
            self.log.error(  # noqa: TRY400 - the text is the whole reason
                "The configured models are not served: %s", error.message
            )
        self.follow_config_file()

    # What is served

    def is_configured(self, name: str) -> bool:
        """Whether a model stands in the configuration."""
        return self.configuration.aspired.find(name) is not None

    def _is_known(self, name: str) -> bool:
        return self.is_configured(name) or self.registry.pool_for(name) is not None

    def _publisher_of(self, name: str) -> PoolMirror | None:
        """The notebook's pool that a model belongs to; None for one that belongs to no notebook."""
        pool = self.registry.pool_for(name)
        published = pool is not None and pool.kind == "notebook" and not self.is_configured(name)
        return pool if published else None

    async def load(self, model: ModelConfig) -> None:
        """Add a model, or replace the one of that name, and wait until it is served.

        Raises:
            ServingError: why it was refused or could not be loaded, with those who hold the memory
                where it was too little; the configuration is then as it was, except where the pool
                was too late to tell (DEADLINE_EXCEEDED).
        """
        others = (m for m in self.config_in_force.models if m.name != model.name)
        ModelServerConfig((*others, model)).validate()  # what is refused anyway starts no pool
        (pool,) = await self._placer.place([model], self.configuration.aspired)
        try:
            await self.configuration.load(model, pool)
        except ServingError as error:
            if not is_shortage(error):
                raise
            hint = (await self._placer.ledger()).shortage(pool)
            raise ServingError(error.code, error.message, hint) from error

    async def unload(self, name: str, *, release: bool = False) -> Unloaded:
        """Take a model out of the configuration, or withdraw one that a notebook has published.

        Args:
            name: the model's.
            release: whether to end the process of its pool where that has nothing else to serve.

        Raises:
            ServingError: NOT_FOUND where it is neither; FAILED_PRECONDITION where the process is a
                notebook's.
        """
        pool = self._publisher_of(name)
        if pool is not None:
            if release:
                text = f"Model {name} is in the kernel of {pool.name}, which only its user may end"
                raise ServingError(Code.FAILED_PRECONDITION, text)
            client = pool.client_for(ModelSpec(name))
            await client.call("unpublish", {"name": name}, _UNPUBLISH_S)
            return Unloaded(pool.name)
        home = await self.configuration.unload(name)
        if not release:
            return Unloaded(home.spec.name)
        left = await self.configuration.release(home, name)
        return Unloaded(home.spec.name, home.phase is Phase.STOPPED, tuple(left))

    async def record(self, name: str, action: str, **parameters: Any) -> dict[str, Any]:
        """Record calls of a model for its warm-up, or tell how far that is.

        Args:
            name: the model's.
            action: ``start``, ``stop``, ``save`` or ``state``.
            parameters: ``version`` and ``limit`` of a start, ``path`` and ``replace`` of a save.

        Returns:
            The state of the recording.

        Raises:
            ServingError: NOT_FOUND for a model that is not served; the pool's refusal.
        """
        client = self.client_for(ModelSpec(name))
        if client is None:
            raise ServingError(Code.NOT_FOUND, f"Could not find any versions of model {name}")
        call = {"model": name, "action": action, **parameters}
        answer: dict[str, Any] = await client.call("record", call, CALL_S)
        return answer

    async def label(self, name: str, label: str, version: int | None) -> Mapping[str, int]:
        """Let a label of a model stand for a version, or remove it with None.

        Returns:
            All labels of the model.

        Raises:
            ServingError: NOT_FOUND for a model that nobody serves, or a label to remove that it
                does not have; the pool's refusal.
        """
        pool = self._publisher_of(name)
        if pool is not None:
            parameters = {"name": name, "label": label, "version": version}
            answer = await pool.client_for(ModelSpec(name)).call("label", parameters, CALL_S)
            told: Mapping[str, int] = answer["labels"]
            return told
        return await self.configuration.label(name, label, version)

    async def reload_config(self, config: ModelServerConfig) -> None:
        """Replace the whole configuration; models are loaded and unloaded afterwards.

        Raises:
            ServingError: the refusal; the configuration is then as it was.
        """
        await self.configuration.replace_all(config)

    async def parse_config(self, text: str) -> ModelServerConfig:
        """Read TensorFlow Serving's text format, in a pool, as the server has no protos.

        Raises:
            ServingError: the refusal, naming line and field; why the pool cannot start.
        """
        client = await self._any_pool.ensure_running()
        answer = await client.call("parse_config", {"text": text}, CALL_S)
        return ModelServerConfig.from_dict(answer["config"])

    async def config_text(self) -> str:
        """The configuration in force in TensorFlow Serving's text format; starts nothing.

        Raises:
            ServingError: UNAVAILABLE while there is a configuration and no pool to write it.
        """
        if not self.config_in_force.models:
            return _EMPTY
        pool = self._any_pool
        if pool.mirror.client is None:
            raise ServingError(Code.UNAVAILABLE, pool.explanation)
        parameters = {"config": self.config_in_force.to_dict()}
        answer = await pool.mirror.client.call("config_text", parameters, CALL_S)
        return str(answer["text"])

    async def reload(self) -> bool:
        """Read the model config file again, and look for new versions now.

        Returns:
            Whether there was anything new in the file.

        Raises:
            ServingError: why the file cannot be read or is refused; what is served stays.
        """
        changed = bool(self.model_config_file) and await self._config_file.load()
        await self.poll()
        return changed

    async def poll(self) -> None:
        """Look for new versions now; nothing without a running pool."""
        for pool in self.fleet:
            if pool.mirror.client is not None:
                await pool.mirror.client.call("poll", timeout_s=CALL_S)

    # Pools

    async def start_pool(self, spec: PoolSpec) -> dict[str, Any]:
        """Have one more managed pool, start it and describe it.

        Raises:
            ServingError: ALREADY_EXISTS where its name is taken; why it cannot start, and then it
                is forgotten.
        """
        await self._placer.require(spec.device)
        pool = self.fleet.add(spec, on_trial=True)
        await self.fleet.start(pool)
        (told,) = await describe_all([pool.mirror])
        return describe_pool(pool.mirror, told, pool)

    async def adopt(self, pool_id: str) -> dict[str, Any]:
        """Take in a notebook pool that has just been announced, and describe it.

        Raises:
            ServingError: NOT_FOUND where this server sees no such announcement.
        """
        pool = await self.registry.adopt(pool_id)
        (told,) = await describe_all([pool])
        return describe_pool(pool, told, None)

    # What doors ask

    def knows(self, name: str) -> bool:
        """Whether a name can be asked for at once, without :meth:`look_for` it."""
        return self.registry.knows(name)

    async def look_for(self, name: str) -> None:
        """See whether a notebook has published a name that nobody knows."""
        await self.registry.find(name)

    def client_for(self, spec: ModelSpec) -> PoolClient | None:
        """The way to a model; a managed pool's for a name that nobody knows, None without one.

        Raises:
            ServingError: UNAVAILABLE, saying what is happening, while the model's pool is down.
        """
        pool = self.registry.pool_for(spec.name)
        if pool is None:
            home = self.configuration.aspired.owner(spec.name)
            managed = home or self._any_pool
        else:
            owner = self.fleet.of(pool)
            if owner is None:
                return pool.client_for(spec)
            managed = owner
        if managed.phase is Phase.RUNNING:
            return managed.mirror.client_for(spec)
        if self._may_come(spec.name) or (pool is not None and managed.phase is not Phase.STOPPED):
            raise ServingError(Code.UNAVAILABLE, managed.explanation)
        return None  # what a pool that was released has served, it serves no more

    def status(self, spec: ModelSpec) -> list[ServableState]:
        """What a status request shows; never starts anything.

        Raises:
            ServingError: NOT_FOUND for a model or version never seen; UNAVAILABLE for one that may
                come once the pool has started.
        """
        pool = self.registry.pool_for(spec.name)
        if pool is not None:
            return pool.monitor.status(spec)
        managed = self.configuration.aspired.owner(spec.name) or self.managed
        if managed.phase is not Phase.RUNNING and self._may_come(spec.name):
            raise ServingError(Code.UNAVAILABLE, managed.explanation)
        return _NOTHING.status(spec)

    def _may_come(self, name: str) -> bool:
        starting = self._starting is not None and not self._starting.done()
        return self.is_configured(name) or (starting and bool(self.model_config_file))

    # Managed pools

    async def _read_config_file(self) -> ModelServerConfig:
        client = await self._any_pool.ensure_running()
        parameters = {"path": self.model_config_file}
        answer = await client.call("load_config_file", parameters, CALL_S)
        return ModelServerConfig.from_dict(answer["config"])

    def _tell_config(self) -> None:
        self.on_config()

    def _is_placed(self, name: str, pool: PoolMirror) -> bool:
        owner = self.configuration.aspired.owner(name)
        return owner is not None and owner.mirror is pool

    def _new_pool(self, spec: PoolSpec) -> ManagedPool:
        pool = ManagedPool(
            partial(self._new_host, spec),
            lambda client: self.configuration.replay(pool, client),
            limits=self.limits,
            on_phase=partial(self._phase_changed, spec),
            spec=spec,
        )
        return pool

    def _pool_added(self, pool: ManagedPool) -> None:
        self.registry.add(pool.mirror)
        pool.mirror.bus.subscribe(partial(self._state_told, pool))

    def _state_told(self, pool: ManagedPool, state: ServableState) -> None:
        self.configuration.state_told(pool, state)

    def _new_host(self, spec: PoolSpec, pool_id: str) -> Host:
        return PoolKernel(pool_id, self.kernel_options(spec), self.kernel_spec_manager)

    def _phase_changed(self, spec: PoolSpec, phase: Phase) -> None:
        self.log.debug("The managed pool %s is %s", spec.name, phase)
        self.on_phase(phase)
