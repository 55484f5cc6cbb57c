"""Transcripts with known open failures: nothing is missed and nothing is invented."""

from __future__ import annotations

import pytest

from everturn.derive.open_failures import still_failing, unconfirmed_reports
from tests.derive.failure_lab import play


@pytest.mark.few(2)
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_what_still_fails_is_exactly_what_was_played(first: int) -> None:
    for seed in range(first, first + 50):
        run = play(seed)
        left = (*still_failing(run.state), *unconfirmed_reports(run.state))
        found = {one.last_seq for one in left if one.complaint is None or one.complaint.sure}
        assert found == run.expected(), f"seed {seed}\n" + "\n".join(run.log)


def test_the_lab_plays_failures_and_their_end() -> None:
    runs = [play(seed) for seed in range(100)]
    assert sum(bool(run.expected()) for run in runs) > 50
    assert sum(not run.expected() for run in runs) > 5
    assert play(7).log == play(7).log
