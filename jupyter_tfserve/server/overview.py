"""What is served, by which pools, on which devices: everything that is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .description import (
    describe_all,
    describe_model,
    describe_pool,
    known_model,
    known_pool,
    models_told,
)

if TYPE_CHECKING:
    from .configuration import Configuration
    from .fleet import Fleet
    from .placer import Placer
    from .pool_registry import PoolRegistry


class Overview:
    """Descriptions in the form of the management API. None of them starts anything."""

    def __init__(
        self, fleet: Fleet, registry: PoolRegistry, configuration: Configuration, placer: Placer
    ) -> None:
        self._fleet = fleet
        self._registry = registry
        self._configuration = configuration
        self._placer = placer

    # Asked of the pools

    async def models(self) -> list[dict[str, Any]]:
        """Every model that is configured or served, by name."""
        pools = self._registry.pools
        told: dict[tuple[str, str], Mapping[str, Any]] = {}
        for pool, answer in zip(pools, await describe_all(pools), strict=True):
            told |= {(pool.pool_id, name): model for name, model in models_told(answer).items()}
        aspired = self._configuration.aspired
        described = []
        for name in self.known_names():
            pool = self._registry.pool_for(name) or aspired.homes[name].mirror
            described.append(
                describe_model(name, pool, told.get((pool.pool_id, name)), aspired.find(name))
            )
        return described

    async def pools(self) -> list[dict[str, Any]]:
        """Every pool; the managed ones are there even while they do not run."""
        await self._registry.rescan()
        pools = self._registry.pools
        answers = await describe_all(pools)
        return [
            describe_pool(pool, told, self._fleet.of(pool))
            for pool, told in zip(pools, answers, strict=True)
        ]

    async def devices(self) -> dict[str, Any]:
        """Every device and who holds it."""
        return (await self._placer.ledger()).describe()

    # Known without asking

    def known_names(self) -> list[str]:
        """The names of all models that are configured or served, sorted."""
        return sorted({*self._registry.names(), *self._configuration.aspired.homes})

    def known_model(self, name: str) -> dict[str, Any] | None:
        """What is known of a model; None where there is none."""
        aspired = self._configuration.aspired
        pool, home = self._registry.pool_for(name), aspired.homes.get(name)
        if pool is None:
            if home is None:
                return None
            pool = home.mirror
        return known_model(name, pool, aspired.find(name))

    def known_pools(self) -> dict[str, dict[str, Any]]:
        """What is known of all pools, by id."""
        return {
            pool.pool_id: known_pool(pool, self._fleet.of(pool)) for pool in self._registry.pools
        }
