"""Replay waits as long as it was then, faster, and never longer than is bearable."""

from __future__ import annotations

from everturn.sessions.messages import Pace


def waits(times: list[int | None], speed: float = 1, longest: float = 100) -> list[float]:
    slept: list[float] = []
    pace = Pace(speed, longest, slept.append)
    told = [pace.wait_for(at) for at in times]
    assert slept == [wait for wait in told if wait]
    return told


def test_it_waits_for_the_time_between_two_moments() -> None:
    assert waits([1000, 3000, 3000, 3500]) == [0, 2, 0, 0.5]


def test_it_can_be_faster() -> None:
    assert waits([0, 10_000], speed=20) == [0, 0.5]
    assert waits([0, 10_000, 99_000], speed=0) == [0, 0, 0]


def test_it_does_not_wait_for_days() -> None:
    assert waits([0, 86_400_000, 86_401_000], longest=3) == [0, 3, 1]


def test_times_out_of_order_or_missing_cost_nothing() -> None:
    assert waits([5000, 1000, None, 6000]) == [0, 0, 0, 1]
    assert waits([None, None, 4000, 5000]) == [0, 0, 0, 1]
