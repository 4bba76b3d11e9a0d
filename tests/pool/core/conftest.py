"""A loader that does as it is told, and a log of the states that were published."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from jupyter_tfserve.config import Latest, ModelConfig, ModelServerConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.core.harness import AspiredVersion
from jupyter_tfserve.pool.core.loader import Loader
from jupyter_tfserve.pool.core.manager import AspiredVersionsManager
from jupyter_tfserve.pool.core.server_core import CoreOptions, ServerCore
from jupyter_tfserve.servable import ServableId
from jupyter_tfserve.state import EventBus, ManagerState

TIMEOUT = 20.0


class FakeServable:
    def __init__(self, id_, path):
        self.id = id_
        self.path = path
        self.unloaded = False


class FakeLoader(Loader[FakeServable]):
    def __init__(self, loaders, id_, path):
        self.loaders = loaders
        self.id = id_
        self.path = path
        self.servable = None

    def load(self):
        self.servable = self.loaders.load(self.id, self.path)
        return self.servable

    def unload(self):
        self.servable.unloaded = True
        self.loaders.num_unloads[self.id] += 1


class FakeLoaders:
    """A loader factory; tells beforehand which loads block or fail, and counts them afterwards."""

    def __init__(self):
        self.num_loads = Counter()
        self.num_unloads = Counter()
        self._gates = {}
        self._failures = {}

    def __call__(self, model, id_, path):
        return FakeLoader(self, id_, path)

    def block(self, name, version):
        """Loads of this version wait for the event that is returned."""
        return self._gates.setdefault(ServableId(name, version), threading.Event())

    def fail(self, name, version, *, times=10**9, error=None):
        error = error or ServingError(Code.DATA_LOSS, f"bad {name} {version}")
        self._failures[ServableId(name, version)] = [error] * min(times, 1000)

    def mend(self, name, version):
        del self._failures[ServableId(name, version)]

    def open_all(self):
        for gate in self._gates.values():
            gate.set()

    def load(self, id_, path):
        self.num_loads[id_] += 1
        gate = self._gates.get(id_)
        if gate is not None:
            assert gate.wait(TIMEOUT)
        failures = self._failures.get(id_)
        if failures:
            raise failures.pop()
        return FakeServable(id_, path)

    def aspired(self, name, *versions, **more):
        return [
            AspiredVersion(v, lambda v=v: FakeLoader(self, ServableId(name, v), ""), **more)
            for v in versions
        ]


class EventLog:
    def __init__(self, bus):
        self.states = []
        self._changed = threading.Condition()
        bus.subscribe(self._record)

    def _record(self, state):
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def trail(self, name, version):
        """The states that a version went through, as one line."""
        id_ = ServableId(name, version)
        return " ".join(state.state.name for state in list(self.states) if state.id == id_)

    def wait(self, name, version, state, *, times=1):
        """The ``times``-th event of this version and state, once it has come."""
        key = (ServableId(name, version), ManagerState[state])

        def found():
            return [event for event in self.states if (event.id, event.state) == key]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= times, TIMEOUT), (
                f"{name} {version} never was {state}: {self.trail(name, version)}"
            )
            return found()[times - 1]


@pytest.fixture
def loaders():
    loaders = FakeLoaders()
    yield loaders
    loaders.open_all()


@pytest.fixture
def bus():
    return EventBus()


@pytest.fixture
def events(bus):
    return EventLog(bus)


@pytest.fixture
def make_manager(bus, loaders):
    made = []

    def make(**options):
        manager = AspiredVersionsManager(bus, **options)
        made.append(manager)
        return manager

    yield make
    loaders.open_all()
    for manager in made:
        manager.close(TIMEOUT)


@pytest.fixture
def manager(make_manager):
    return make_manager()


@pytest.fixture
def make_core(loaders):
    """Makes cores that poll when told to, each with its event log."""
    made = []

    def make(**options):
        core = ServerCore(loaders, CoreOptions(**{"file_system_poll_wait_seconds": 0, **options}))
        made.append(core)
        return core, EventLog(core.bus)

    yield make
    loaders.open_all()
    for core in made:
        core.close(TIMEOUT)


@pytest.fixture
def add_version():
    """Writes a version directory with the files named."""

    def add(base: Path, name, *files):
        directory = base / str(name)
        directory.mkdir(parents=True, exist_ok=True)
        for file in files or ("saved_model.pb",):
            (directory / file).write_text("model")
        return directory

    return add


@pytest.fixture
def configure():
    """Makes a configuration from names and base paths."""

    def make(policy=None, labels=None, **paths):
        return ModelServerConfig(
            tuple(
                ModelConfig(name, str(path), policy=policy or Latest(), labels=labels or {})
                for name, path in paths.items()
            )
        )

    return make
