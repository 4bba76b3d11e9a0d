"""Which kinds of calls may hold the loop."""

from __future__ import annotations

import time

from jupyter_tfserve.pool.pace import SHORT_S, Pace, Watch

SHORT, LONG = SHORT_S / 10, SHORT_S * 50


def calls(pace: Pace, number: int, wall: float, computing: float) -> None:
    """So many calls, each where the pace sends it."""
    for _ in range(number):
        if pace.is_short:
            pace.ran_in_loop(wall, wall - computing, waited=wall > computing)
        else:
            pace.ran_in_worker(wall, computing)


def test_a_new_kind_starts_in_a_worker_and_comes_home_when_it_is_short() -> None:
    pace = Pace()
    assert not pace.is_short
    calls(pace, 2, SHORT, SHORT)
    assert pace.is_short


def test_a_slow_first_call_is_forgotten_in_time() -> None:
    pace = Pace()
    pace.ran_in_worker(LONG, LONG)
    calls(pace, 400, SHORT, SHORT)
    assert pace.is_short


def test_calls_that_compute_long_never_hold_the_loop() -> None:
    pace = Pace()
    for _ in range(1000):
        assert not pace.is_short
        pace.ran_in_worker(LONG, LONG)


def test_waiting_for_the_interpreter_lock_in_a_crowd_does_not_make_a_call_long() -> None:
    pace = Pace()
    for _ in range(10):
        pace.ran_in_worker(LONG, SHORT)
    assert pace.is_short


def test_a_call_that_waits_for_something_else_is_found_out_after_a_few() -> None:
    pace = Pace()
    held = 0
    for _ in range(1000):
        if pace.is_short:
            held += 1
            pace.ran_in_loop(LONG, LONG - SHORT, waited=True)
        else:
            pace.ran_in_worker(LONG, SHORT)
    assert 1 <= held <= 3


def test_one_hiccup_of_the_machine_does_not_send_a_kind_away() -> None:
    pace = Pace()
    calls(pace, 10, SHORT, SHORT)
    for _ in range(20):
        pace.ran_in_loop(LONG, LONG - SHORT, waited=True)
        calls(pace, 100, SHORT, SHORT)
        assert pace.is_short


def test_a_call_that_only_ran_beside_a_slow_one_stays_in_the_loop() -> None:
    pace = Pace()
    calls(pace, 10, SHORT, SHORT)
    for _ in range(100):
        pace.ran_in_loop(SHORT, LONG, waited=True)
        assert pace.is_short


def test_being_made_to_wait_by_a_busy_machine_sends_no_kind_away() -> None:
    pace = Pace()
    calls(pace, 10, SHORT, SHORT)
    for _ in range(1000):
        pace.ran_in_loop(LONG, LONG - SHORT, waited=False)
        assert pace.is_short


def test_waiting_is_told_from_computing() -> None:
    watch = Watch()
    time.sleep(0.05)
    idle, waited = watch.read()
    assert waited
    assert idle > 0.04
    watch = Watch()
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        sum(range(1000))
    assert not watch.read()[1]
