"""Watches the file system for versions, and aspires those that the configuration asks for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...config import ModelConfig, Specific
from .directory import Listing, explain, list_versions
from .policy import aspired_versions

log = logging.getLogger(__name__)

Aspire: TypeAlias = Callable[[ModelConfig, Mapping[int, str]], None]
"""Receives all aspired versions of a model with their paths; none means that all are to go."""


class FileSystemSource:
    """Lists the base path of every model at each poll, and tells which versions are aspired.

    TensorFlow Serving gives up the whole poll when one base path is missing; here that holds up
    only its own model, whose loaded versions stay, and :meth:`problem` says why.

    Args:
        aspire: Called within :meth:`poll` and :meth:`set_models`, one call at a time.
    """

    def __init__(self, aspire: Aspire) -> None:
        self._aspire = aspire
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}

    def set_models(self, models: Iterable[ModelConfig]) -> None:
        """Watch these models from the next poll on; those left out are aspired no more, at once."""
        with self._lock:
            before = self._watched
            self._watched = {}
            for model in models:
                watched = before.get(model.name) or _Watched(model)
                watched.model = model
                self._watched[model.name] = watched
            for name in before.keys() - self._watched.keys():
                self._aspire(before[name].model, {})

    def poll(self) -> None:
        """Look at every base path once; blocks on the file system."""
        with self._lock:
            for watched in self._watched.values():
                self._poll_model(watched)

    def look(self, model: ModelConfig) -> str | None:
        """Why a model would have no version to serve, were it configured so; None where it has.

        Blocks on the file system, and changes nothing.
        """
        watched = _Watched(model)
        return None if self._find(watched) else watched.problem

    def problem(self, name: str) -> str | None:
        """What kept versions of a model from being aspired at the last poll, in words."""
        watched = self._watched.get(name)
        return watched.problem if watched is not None else None

    def problems(self) -> dict[str, str]:
        """All problems, by the model's name."""
        watched = self._watched.items()
        return {name: each.problem for name, each in watched if each.problem is not None}

    def starved(self, name: str) -> str | None:
        """Why no version of a model is aspired at all; None where one is."""
        watched = self._watched.get(name)
        if watched is None or watched.num_aspired:
            return None
        path = watched.model.base_path
        return watched.problem or f"Base path {path} of servable {name} was not looked at yet"

    def _poll_model(self, watched: _Watched) -> None:
        before = watched.problem
        found = self._find(watched)
        if watched.problem is not None and watched.problem != before:
            log.warning("%s", watched.problem)  # once, not at every poll
        if found is not None:
            watched.num_aspired = len(found)
            self._aspire(watched.model, found)

    @staticmethod
    def _find(watched: _Watched) -> dict[int, str] | None:
        """The aspired versions with their paths; None where the base path cannot be listed."""
        model = watched.model
        try:
            listing = list_versions(model.base_path)
        except OSError as error:
            watched.problem = (
                f"Could not find base path {model.base_path} for servable {model.name} "
                f"with error {error.strerror}"
            )
            return None
        watched.problem = explain(listing, model.base_path, model.name) or _missed(model, listing)
        chosen = aspired_versions(model.policy, listing.versions)
        return {version: listing.versions[version] for version in chosen}


@dataclass(slots=True)
class _Watched:
    """A model, and what the last poll said of it."""

    model: ModelConfig
    num_aspired: int = 0
    problem: str | None = None


def _missed(model: ModelConfig, listing: Listing) -> str | None:
    """What a specific policy asks for in vain."""
    if not isinstance(model.policy, Specific):
        return None
    if not model.policy.versions:
        return f"The version policy of servable {model.name} lists no version"
    missing = model.policy.versions - listing.versions.keys()
    if not missing:
        return None
    return (
        f"Version(s) {_numbers(missing)} of servable {model.name} not found under base path "
        f"{model.base_path}, which holds {_numbers(listing.versions)}"
    )


def _numbers(versions: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(versions)))
