"""The aspired configuration, and which managed pool each of its models is placed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..config import ModelConfig, ModelServerConfig
from ..errors import Code, ServingError

if TYPE_CHECKING:
    from .managed_pool import ManagedPool


@dataclass(frozen=True, slots=True)
class Aspired:
    """A value: changes make another.

    Attributes:
        config: All models.
        homes: The pool that each of them is placed on, by name.
        leaving: Models that another pool still serves, as it has them, until they are available at
            home.
    """

    config: ModelServerConfig = field(default_factory=ModelServerConfig)
    homes: dict[str, ManagedPool] = field(default_factory=dict)
    leaving: dict[str, tuple[ManagedPool, ModelConfig]] = field(default_factory=dict)

    def find(self, name: str) -> ModelConfig | None:
        """The model of that name."""
        return next((m for m in self.config.models if m.name == name), None)

    def get(self, name: str) -> ModelConfig:
        """The same.

        Raises:
            ServingError: NOT_FOUND where it is not configured.
        """
        model = self.find(name)
        if model is None:
            raise ServingError(Code.NOT_FOUND, f"Model {name} is not configured")
        return model

    def owner(self, name: str) -> ManagedPool | None:
        """The pool that callers of a model are sent to."""
        return self.leaving[name][0] if name in self.leaving else self.homes.get(name)

    def of(self, pool: ManagedPool) -> ModelServerConfig:
        """What one pool is to be told."""
        stay = [m for m in self.config.models if self.homes.get(m.name) is pool]
        go = [model for other, model in self.leaving.values() if other is pool]
        return ModelServerConfig((*stay, *go))

    def pools(self) -> list[ManagedPool]:
        """The pools that have something to serve."""
        leaving = (pool for pool, _ in self.leaving.values())
        return list({id(p): p for p in (*self.homes.values(), *leaving)}.values())

    def having(self, model: ModelConfig, home: ManagedPool) -> Aspired:
        """With the model added, or put in the place of the one of its name."""
        models = self.config.models
        if self.find(model.name) is None:
            models = (*models, model)
        config = ModelServerConfig(tuple(model if m.name == model.name else m for m in models))
        return self.having_all(config, {**self.homes, model.name: home})

    def having_all(self, config: ModelServerConfig, homes: dict[str, ManagedPool]) -> Aspired:
        """With another configuration; what changes its home stays served where it was."""
        leaving = {}
        for model in config.models:
            name, owner = model.name, self.owner(model.name)
            if owner is not None and owner is not homes[name]:
                leaving[name] = self.leaving.get(name) or (owner, self.get(name))
        return Aspired(config, {m.name: homes[m.name] for m in config.models}, leaving)

    def without(self, name: str) -> Aspired:
        """With the model taken out."""
        models = tuple(m for m in self.config.models if m.name != name)
        return self.having_all(ModelServerConfig(models), self.homes)

    def arrived(self, name: str) -> Aspired:
        """With the model served at home, and nowhere else."""
        left = {n: where for n, where in self.leaving.items() if n != name}
        return Aspired(self.config, self.homes, left)
