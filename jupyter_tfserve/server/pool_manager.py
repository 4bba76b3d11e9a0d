"""Holds what shall be served, and keeps the managed pool that serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..config import ModelConfig, ModelServerConfig
from ..errors import Code, ServingError
from ..metrics import RequestMetrics
from ..servable import ModelSpec
from ..state import ServableState, ServableStateMonitor
from .admission import Limits
from .description import describe_all, describe_model, describe_pool, known_model, known_pool
from .managed_pool import ManagedPool, Phase
from .outcome import FirstOutcome
from .pool_kernel import PoolKernel
from .pool_registry import PoolRegistry
from .pool_settings import PoolSettings

if TYPE_CHECKING:
    from .managed_pool import Host
    from .pool_client import PoolClient

_CALL_S = 30.0
"""A call that waits for no model is answered within this time, in seconds."""
_UNPUBLISH_S = 60.0
"""Withdrawing a model waits for its calls under way."""
_NOTHING = ServableStateMonitor()
_EMPTY = "model_config_list {\n}\n"


class PoolManager(PoolSettings):
    """The aspired configuration and the pools; knows nothing of HTTP.

    The managed pool is started on first need and never by a read. All calls come in one loop.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config_in_force = ModelServerConfig()
        self.on_phase: Callable[[Phase], None] = lambda _phase: None
        self.on_config: Callable[[], None] = lambda: None
        self.limits = Limits(self.max_in_flight, self.max_in_flight_per_model)
        self.registry = PoolRegistry(self.is_configured, self.limits)
        self.managed = ManagedPool(
            self._new_host, self._replay, limits=self.limits, on_phase=self._phase_changed
        )
        self.registry.add(self.managed.mirror)
        self.requests = RequestMetrics(self._is_known)  # answered without a pool
        self._changing = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None

    # Life

    def start(self) -> None:
        """Begin with what the traits configure, in the background; nothing where they do not."""
        if self.model_base_path or self.model_config_file:
            self._starting = asyncio.get_running_loop().create_task(self._start_in_background())

    async def start_configured(self) -> None:
        """Start the pool and send it what the traits configure.

        Raises:
            ServingError: why the pool cannot start, or what is wrong with the configuration.
        """
        if not self.model_config_file:
            model = ModelConfig(self.model_name, self.model_base_path)
            config = ModelServerConfig((model,))
            config.validate()
            self.config_in_force = config  # its name is known while the pool starts
            self.on_config()
            await self.managed.ensure_running()
            return
        if self.model_base_path:
            self.log.warning("model_base_path is ignored, as model_config_file is set")
        client = await self.managed.ensure_running()
        parameters = {"path": self.model_config_file}
        answer = await client.call("load_config_file", parameters, _CALL_S)
        await self.reload_config(ModelServerConfig.from_dict(answer["config"]))

    async def stop(self) -> None:
        """End every pool in bounded time."""
        if self._starting is not None:
            self._starting.cancel()
        await self.managed.stop()
        await self.registry.close()

    async def _start_in_background(self) -> None:
        try:
            await self.start_configured()
        except ServingError as error:
            self.log.error(  # noqa: TRY400 - the text is the whole reason
                "The configured models are not served: %s", error.message
            )

    # What is served

    def is_configured(self, name: str) -> bool:
        """Whether a model stands in the configuration."""
        return any(model.name == name for model in self.config_in_force.models)

    def _is_known(self, name: str) -> bool:
        return self.is_configured(name) or self.registry.pool_for(name) is not None

    async def load(self, model: ModelConfig) -> None:
        """Add a model, or replace the one of that name, and wait until it is served.

        Raises:
            ServingError: why it was refused or could not be loaded; the configuration is then as
                it was, except where the pool was too late to tell (DEADLINE_EXCEEDED).
        """
        self._with(model).validate()  # what is refused anyway starts no pool
        client = await self.managed.ensure_running()
        pool = self.managed.mirror

        async def problem() -> str | None:
            described = await client.call("describe", timeout_s=_CALL_S)
            return next(
                (m["problem"] for m in described["models"] if m["name"] == model.name), None
            )

        # Labels come last: they may only point at versions that are available.
        staged = replace(model, labels={})
        with FirstOutcome(pool, model.name, model.labels.values(), problem) as outcome:
            async with self._changing:
                before = self._find(model.name)
                if before is not None and before.base_path == model.base_path:
                    if pool.is_live(model.name):
                        await self._send(client, self._with(model))
                        return  # what it changes comes with the next poll, as in TF Serving
                    # A failed version is tried again only after it was let go.
                    await self._send(client, self._without(model.name))
                await self._send(client, self._with(staged))
            try:
                await outcome.wait(client)
                if model.labels:
                    await self.set_labels(model.name, model.labels)
            except (ServingError, asyncio.CancelledError):
                await asyncio.shield(self._take_back(client, staged, before))
                raise

    async def unload(self, name: str) -> None:
        """Take a model out of the configuration, or withdraw one that a notebook has published.

        Raises:
            ServingError: NOT_FOUND where it is neither.
        """
        pool = self.registry.pool_for(name)
        if pool is not None and pool.kind == "notebook" and not self.is_configured(name):
            client = pool.client_for(ModelSpec(name))
            await client.call("unpublish", {"name": name}, _UNPUBLISH_S)
            return
        async with self._changing:
            self._get(name)
            await self._apply(self._without(name))

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
        answer: dict[str, Any] = await client.call("record", call, _CALL_S)
        return answer

    async def set_labels(self, name: str, labels: Mapping[str, int]) -> None:
        """Replace the labels of a model.

        Raises:
            ServingError: NOT_FOUND where it is not configured; the pool's refusal.
        """
        async with self._changing:
            await self._apply(self._with(replace(self._get(name), labels=dict(labels))))

    async def reload_config(self, config: ModelServerConfig) -> None:
        """Replace the whole configuration; models are loaded and unloaded afterwards.

        Raises:
            ServingError: the refusal; the configuration is then as it was.
        """
        config.validate()
        async with self._changing:
            await self._apply(config)

    async def parse_config(self, text: str) -> ModelServerConfig:
        """Read TensorFlow Serving's text format, in a pool, as the server has no protos.

        Raises:
            ServingError: the refusal, naming line and field; why the pool cannot start.
        """
        client = await self.managed.ensure_running()
        answer = await client.call("parse_config", {"text": text}, _CALL_S)
        return ModelServerConfig.from_dict(answer["config"])

    async def config_text(self) -> str:
        """The configuration in force in TensorFlow Serving's text format; starts nothing.

        Raises:
            ServingError: UNAVAILABLE while there is a configuration and no pool to write it.
        """
        if not self.config_in_force.models:
            return _EMPTY
        client = self.managed.mirror.client
        if client is None:
            raise self._down()
        parameters = {"config": self.config_in_force.to_dict()}
        answer = await client.call("config_text", parameters, _CALL_S)
        return str(answer["text"])

    async def poll(self) -> None:
        """Look for new versions now; nothing without a running pool."""
        if self.managed.mirror.client is not None:
            await self.managed.mirror.client.call("poll", timeout_s=_CALL_S)

    def labels(self, name: str) -> Mapping[str, int]:
        """The labels of a configured model.

        Raises:
            ServingError: NOT_FOUND where it is not configured.
        """
        return self._get(name).labels

    # What is told

    async def describe_models(self) -> list[dict[str, Any]]:
        """Every model that is configured or served, by name; starts nothing."""
        pools = self.registry.pools
        told: dict[tuple[str, str], Mapping[str, Any]] = {}
        for pool, answer in zip(pools, await describe_all(pools), strict=True):
            told |= {(pool.pool_id, model["name"]): model for model in answer.get("models", ())}
        described = []
        for name in self.known_names():
            pool = self.registry.pool_for(name) or self.managed.mirror
            described.append(
                describe_model(name, pool, told.get((pool.pool_id, name)), self._find(name))
            )
        return described

    async def describe_pools(self) -> list[dict[str, Any]]:
        """Every pool; the managed one is there even while it does not run."""
        await self.registry.rescan()
        pools = self.registry.pools
        answers = await describe_all(pools)
        return [
            describe_pool(pool, told, self.managed if pool is self.managed.mirror else None)
            for pool, told in zip(pools, answers, strict=True)
        ]

    def known_names(self) -> list[str]:
        """The names of all models that are configured or served, sorted."""
        configured = {model.name for model in self.config_in_force.models}
        return sorted({*self.registry.names(), *configured})

    def known_model(self, name: str) -> dict[str, Any] | None:
        """What is known of a model without asking a pool; None where there is none."""
        pool, config = self.registry.pool_for(name), self._find(name)
        if pool is None and config is None:
            return None
        return known_model(name, pool or self.managed.mirror, config)

    def known_pools(self) -> dict[str, dict[str, Any]]:
        """What is known of all pools without asking them, by id."""
        managed = self.managed
        return {
            pool.pool_id: known_pool(pool, managed if pool is managed.mirror else None)
            for pool in self.registry.pools
        }

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
        """The way to a model; the managed pool's for a name that nobody knows, None without one.

        Raises:
            ServingError: UNAVAILABLE, saying what is happening, while the model's pool is down.
        """
        pool = self.registry.pool_for(spec.name)
        if pool is not None and pool is not self.managed.mirror:
            return pool.client_for(spec)
        if self.managed.phase is Phase.RUNNING:
            return self.managed.mirror.client_for(spec)
        if pool is not None or self._may_come(spec.name):
            raise self._down()
        return None

    def status(self, spec: ModelSpec) -> list[ServableState]:
        """What a status request shows; never starts anything.

        Raises:
            ServingError: NOT_FOUND for a model or version never seen; UNAVAILABLE for one that may
                come once the pool has started.
        """
        pool = self.registry.pool_for(spec.name)
        if pool is not None:
            return pool.monitor.status(spec)
        if self.managed.phase is not Phase.RUNNING and self._may_come(spec.name):
            raise self._down()
        return _NOTHING.status(spec)

    def _may_come(self, name: str) -> bool:
        starting = self._starting is not None and not self._starting.done()
        return self.is_configured(name) or (starting and bool(self.model_config_file))

    def _down(self) -> ServingError:
        return ServingError(Code.UNAVAILABLE, self.managed.explanation)

    # Changes, under the lock

    async def _apply(self, config: ModelServerConfig) -> None:
        client = self.managed.mirror.client
        if client is None and config.models:
            client = await self.managed.ensure_running()
        if client is None:
            self.config_in_force = config
            self.on_config()
        else:
            await self._send(client, config)

    async def _send(self, client: PoolClient, config: ModelServerConfig) -> None:
        config.validate()
        before, self.config_in_force = self.config_in_force, config
        try:
            await self._reload(client, config)
        except ServingError as error:
            # A pool that is only late has been told, and will carry it out.
            if error.code is not Code.DEADLINE_EXCEEDED:
                self.config_in_force = before
            raise
        finally:
            self.on_config()

    async def _take_back(
        self, client: PoolClient, model: ModelConfig, before: ModelConfig | None
    ) -> None:
        async with self._changing:
            if self._find(model.name) != model:
                return  # changed again since
            self.config_in_force = (
                self._without(model.name) if before is None else self._with(before)
            )
            self.on_config()
            try:
                await self._reload(client, self.config_in_force)
            except ServingError as error:
                self.log.warning("A failed load could not be taken back: %s", error.message)

    async def _reload(self, client: PoolClient, config: ModelServerConfig) -> None:
        parameters = {"config": config.to_dict(), "wait": False}
        await client.call("reload_config", parameters, _CALL_S)

    async def _replay(self, client: PoolClient) -> None:
        if not self.config_in_force.models:
            return
        parameters = {"config": self.config_in_force.to_dict(), "wait": False, "replay": True}
        try:
            await client.call("reload_config", parameters, _CALL_S)
        except ServingError as error:
            if error.code is Code.UNAVAILABLE:
                raise
            self.log.warning("The new pool refuses the configuration: %s", error.message)

    def _find(self, name: str) -> ModelConfig | None:
        return next((m for m in self.config_in_force.models if m.name == name), None)

    def _get(self, name: str) -> ModelConfig:
        model = self._find(name)
        if model is None:
            raise ServingError(Code.NOT_FOUND, f"Model {name} is not configured")
        return model

    def _with(self, model: ModelConfig) -> ModelServerConfig:
        models = [model if m.name == model.name else m for m in self.config_in_force.models]
        return ModelServerConfig(tuple(models if model in models else [*models, model]))

    def _without(self, name: str) -> ModelServerConfig:
        return ModelServerConfig(tuple(m for m in self.config_in_force.models if m.name != name))

    # The managed pool's process

    def _new_host(self, pool_id: str) -> Host:
        return PoolKernel(pool_id, self.kernel_options(), self.kernel_spec_manager)

    def _phase_changed(self, phase: Phase) -> None:
        self.log.debug("The managed pool is %s", phase)
        self.on_phase(phase)
