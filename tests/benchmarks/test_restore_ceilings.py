"""What limits a section: the figures are shares of what readers marked."""

from __future__ import annotations

from collections import Counter

from benchmarks.restore.ceilings import ceiling_figures


def test_the_figures_are_those_of_the_counts() -> None:
    messages = Counter({(True, "firm"): 6, (True, "none"): 2, (True, "doubtful"): 5, (False, "firm"): 4})
    places = Counter({("the last turn", True): 3, ("the last turn", False): 1, ("earlier turns", False): 4})
    found = {one.name: (one.value, one.note) for one in ceiling_figures(messages, places)}
    assert found["constraints, a reader of single messages: precision"] == (0.75, "6 of 8; 5 doubtful")
    assert found["constraints, a reader of single messages: messages found"] == (0.6, "6 of 10")
    assert found["open points in the last turn"] == (0.5, "4 of 8; the document names 3")
    assert found["open points in earlier turns"] == (0.5, "4 of 8; the document names 0")
    assert found["open points in the turn before"][0] == 0
