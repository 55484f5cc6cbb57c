"""All turns of a session at a glance, and the list of them: what colours say, and that neither grows."""

from __future__ import annotations

import pytest

from everturn.export.page.head import MinimapEntry, draw_minimap, list_turns
from everturn.model.archive import Turn
from everturn.model.vocabulary import CALL_KINDS
from tests.export.pages import Seen


def test_a_map_of_ten_thousand_turns_is_no_larger_than_of_some_hundred() -> None:
    turns = [Turn(idx=n, n_messages=5, n_calls=n % 7, n_errors=n % 2, started=n * 60_000) for n in range(10_000)]
    drawn = draw_minimap(turns, work=[(n, kind, 2) for n in range(10_000) for kind in CALL_KINDS])
    assert len(drawn) < 120_000
    assert Seen(drawn).wrong == []
    assert '<a href="#t1" tabindex="-1">' in drawn
    assert "Turns 1–41" in drawn


def test_a_map_is_coloured_by_kind_of_work() -> None:
    turns = [Turn(n_messages=4, n_calls=4), Turn(idx=1), Turn(idx=2, n_calls=2), Turn(idx=3, n_calls=1, inherited=1)]
    drawn = draw_minimap(
        turns, work=[(0, "edit", 1), (0, "create", 2), (0, "search", 1), (2, "shell", 2), (3, "shell", 1)]
    )
    shapes = {given["class"]: given["d"] or "" for tag, given in Seen(drawn).elements if tag == "path"}
    assert {kind: shape.count("M") for kind, shape in shapes.items()} == {
        "edit": 1, "read": 1, "shell": 1, "talk": 1, "inherited": 1,
    }  # fmt: skip
    heights = {kind: float(shape.partition("v")[2].partition("h")[0]) for kind, shape in shapes.items()}
    assert heights["edit"] == pytest.approx(3 * heights["read"], abs=0.2)
    assert "changes 3 · reading 1" in drawn


def test_calls_of_an_unknown_kind_are_other_tools() -> None:
    drawn = draw_minimap([Turn(n_calls=3), Turn(idx=1, n_calls=1)], work=[(0, "juggle", 3)])
    assert [given["class"] for tag, given in Seen(drawn).elements if tag == "path"] == ["other"]


def test_a_map_tells_failures_compactions_and_interruptions() -> None:
    turns = [Turn(n_messages=4, n_calls=4, n_errors=2), Turn(idx=1, compacted=1), Turn(idx=2, interrupted=1)]
    drawn = draw_minimap(turns, lambda number: f"?at={number}")
    assert [name in drawn for name in ("4 calls · 2 failed", '"compacted"', '"interrupted"', "?at=3")] == [True] * 4
    assert draw_minimap([]) == ""


def test_a_list_of_turns_holds_words_only() -> None:
    assert "&lt;script&gt;" in list_turns([MinimapEntry(1, "<script>")])
