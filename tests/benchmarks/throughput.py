"""The works under load, and the large requests: all contenders in turn, round by round."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from contenders import Contender, bare
from load import Client, Target, measure
from plan import Plan, say
from results import Load, Results, RoundTrip
from works import Model, Work, agree

NAIVE = "`json` and NumPy alone"
ONCE_OVER_S = 10.0
"""A request that takes longer than this is not repeated."""


def run(
    works: Sequence[Work],
    contenders: Sequence[Contender],
    models: Path,
    scratch: Path,
    plan: Plan,
    results: Results,
) -> None:
    """Serve each model with all contenders at once, and give them its works one after the other."""
    by_model: dict[Model, list[Work]] = {}
    for work in works:
        by_model.setdefault(work.model, []).append(work)
    for model, its_works in by_model.items():
        folder = scratch / model.name
        with _serving(model, contenders, models, folder, results) as targets:
            for work in its_works:
                able, reference = _able(work, targets, results)
                if not able:
                    continue
                if work.is_large:
                    _large(work, able, plan, results)
                    continue
                with bare(len(reference), folder / f"bare-{work.name}") as yardstick:
                    _loaded(work, [yardstick, *able], plan, results)


@contextmanager
def _serving(
    model: Model, contenders: Sequence[Contender], models: Path, scratch: Path, results: Results
) -> Iterator[list[Target]]:
    """All contenders with one model; those that do not start are left out, and said to be."""
    with ExitStack() as stack:
        targets: list[Target] = []
        for contender in contenders:
            folder = model.folder(tf1=contender.loads_tf1)
            say(f"Starting {contender.name} with {folder}")
            start = contender.start(model.name, models / folder, scratch / contender.name)
            try:
                targets += stack.enter_context(start)
            except (RuntimeError, TimeoutError, OSError) as error:
                results.skipped[f"{contender.name}, {model.name}"] = f"did not start: {error}"
        yield targets


def _able(work: Work, targets: list[Target], results: Results) -> tuple[list[Target], bytes]:
    """Who gives the right answer, which is the first one's."""
    able: list[Target] = []
    reference = b""
    for target in targets:
        client = Client(target)
        try:
            answer = client.call(work.body)
            if not able:
                reference = answer
            elif not agree(work, answer, reference):
                raise RuntimeError(f"another answer than {able[0].name}")
            able.append(target)
        except (RuntimeError, OSError, ValueError) as error:
            results.skipped[f"{target.name}, {work.name}"] = str(error)
        finally:
            client.close()
    return able, reference


def _loaded(work: Work, targets: list[Target], plan: Plan, results: Results) -> None:
    for number in range(plan.rounds):
        for connections in plan.connections:
            say(f"{work.name}, round {number + 1} of {plan.rounds}, {connections} connections")
            for target in _turn(targets, number):
                sample = measure(target, work.body, connections, plan.seconds)
                load = results.load(work.name, target.name, connections)
                if load is None:
                    load = Load(work.name, target.name, connections)
                    results.loads.append(load)
                load.requests_per_s.append(sample.requests_per_s)
                load.p50_ms.append(sample.p50_ms)
                load.p99_ms.append(sample.p99_ms)
                load.failed += sample.failed


def _large(work: Work, targets: list[Target], plan: Plan, results: Results) -> None:
    body = work.body
    assert body is not None
    trips = {target.name: RoundTrip(work.name, target.name) for target in targets}
    naive = RoundTrip(work.name, NAIVE)
    results.round_trips += [naive, *trips.values()]
    with ExitStack() as stack:
        clients = {}
        for target in targets:
            clients[target.name] = client = Client(target)
            stack.callback(client.close)
        for number in range(plan.rounds):
            say(f"{work.name}, round {number + 1} of {plan.rounds}")
            naive.ms.append(1e3 * _naive(body))
            for target in _turn(targets, number):
                taken = trips[target.name].ms
                if not taken or taken[0] < 1e3 * ONCE_OVER_S:
                    taken.append(1e3 * clients[target.name].timed(body))


def _naive(body: bytes) -> float:
    """How long Python's ``json`` and NumPy take for a body, without model or network."""
    start = perf_counter()
    tensor = np.array(json.loads(body)["instances"], np.float32)
    json.dumps({"predictions": tensor.tolist()})
    return perf_counter() - start


def _turn(targets: list[Target], number: int) -> list[Target]:
    """Another order each round, so that nobody always comes after the same one."""
    first = number % len(targets)
    return targets[first:] + targets[:first]
