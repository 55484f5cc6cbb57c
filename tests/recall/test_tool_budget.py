"""An answer never outgrows its budget, says what was cut, and names the call that gets it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.model.archive import Session
from everturn.recall.answer import AnswerEntry, show_entry
from everturn.recall.budget import MAX_TOKENS, cost, fit_entries
from everturn.recall.tool import ConversationRecall
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.recall.test_tool import body

CALL = re.compile(r"conversation_recall\((.*)\)$", re.M)


def tool(store: Store, session: Session, budget: int = MAX_TOKENS) -> ConversationRecall:
    return ConversationRecall(store, all_sources(), session, budget=budget)


def calls(text: str) -> Iterator[dict[str, Any]]:
    """The calls an answer offers, as arguments."""
    for found in CALL.findall(text):
        strings = dict(re.findall(r'(\w+)="([^"]*)"', found))
        yield {**strings, **{name: int(value) for name, value in re.findall(r"(\w+)=([0-9]+)", found)}}


def read_on(recall: ConversationRecall, asked: dict[str, Any], seen: list[str], depth: int = 0) -> list[str]:
    """An answer and all those it names, the whole way down."""
    key = repr(sorted(asked.items()))
    assert depth < 60 and key not in seen, "an answer must not lead back to itself"
    seen.append(key)
    text = recall.call(asked)
    found = [text]
    for call in calls(text):
        if repr(sorted(call.items())) not in seen:
            found += read_on(recall, call, seen, depth + 1)
    return found


def test_even_a_small_answer_quotes_something_and_names_the_next_call(archive: Archive) -> None:
    words = "all work and no play " * 60
    session = archive.take_in(*(archive.history.turn(f"walrus {n}: {words}", words) for n in range(12)))
    for asked in ({"action": "range", "start_turn": 1, "end_turn": 12}, {"action": "search", "query": "walrus"}):
        text = tool(archive.store, session, 250).call(asked)
        assert "all work" in body(text) and list(calls(text))


def entry(number: int, text: str, is_output: bool = False) -> AnswerEntry:
    return AnswerEntry(1, number, number, "tool:x()" if is_output else "user:", text, text.count("\n") + 1, is_output)


def test_output_is_cut_before_any_message_goes(archive: Archive) -> None:
    big = "\n".join(f"row {n} of the output" for n in range(3000))
    session = archive.take_in(
        *(archive.history.tool_turn(f"ask {n}", f"run {n}", big) for n in range(6)), archive.history.turn("end", "fine")
    )
    text = tool(archive.store, session)(action="range", start_turn=1, end_turn=7)
    assert cost(text) <= MAX_TOKENS and len(text.encode()) <= 32_000
    told = body(text)
    assert all(f"  ask {n}\n" in told for n in range(6)) and "  fine" in told
    assert told.count("[3,000 lines — content truncated, use range action for full output]") == 6
    assert "left out" not in text and "cut in turn 6, message 18 (3,000 lines)" not in told


def test_the_oldest_messages_go_next_and_the_answer_says_how_to_get_them(archive: Archive) -> None:
    words = "all work and no play " * 60
    session = archive.take_in(*(archive.history.turn(f"ask {n}: {words}", words) for n in range(60)))
    recall = tool(archive.store, session)
    text = recall(action="range", start_turn=1, end_turn=60)
    assert cost(text) <= MAX_TOKENS and "ask 59:" in text and "ask 0:" not in text
    seen = "\n".join(read_on(recall, {"action": "range", "start_turn": 1, "end_turn": 60}, []))
    assert all(f"ask {n}:" in seen for n in range(60))


def test_a_turn_longer_than_an_answer_is_read_message_by_message(archive: Archive) -> None:
    pieces = [archive.history.line("user", "go")]
    for n in range(150):
        pieces.append(archive.history.line("assistant", [{"type": "text", "text": f"thought {n}. " + "words " * 80}]))
    session = archive.take_in(*pieces)
    recall = tool(archive.store, session)
    seen = "\n".join(read_on(recall, {"action": "range", "start_turn": 1, "end_turn": 1}, []))
    assert all(f"thought {n}. " in seen for n in range(150))


def test_an_output_longer_than_an_answer_is_read_line_by_line(archive: Archive) -> None:
    output = "\n".join(f"row {n}: " + "x" * 40 for n in range(4000)) + "\n" + "y" * 100_000 + "END"
    session = archive.take_in(archive.history.tool_turn("go", "run", output))
    recall = tool(archive.store, session)
    seen = "\n".join(read_on(recall, {"action": "range", "start_turn": 1, "end_turn": 1}, []))
    assert all(f"row {n}: " in seen for n in range(4000)) and "yEND" in seen


TEXTS = {
    "words": "word " * 4000,
    "han": "日本語の文章" * 3000,
    "lines": "a\n" * 15_000,
    "pictures": "🦭" * 6000,
    "one long word": "x" * 40_000,
    "tabs": "\t" * 9999 + "x",
}


@pytest.mark.few(3)
@pytest.mark.parametrize("budget", [200, pytest.param(1000, marks=pytest.mark.slow), 8000])
@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_no_answer_is_over_its_budget(archive: Archive, budget: int, text: str) -> None:
    session = archive.take_in(
        archive.history.turn("walrus " + text, text), archive.history.tool_turn(text[:500], "walrus " + text, text)
    )
    recall = tool(archive.store, session, budget)
    for asked in (
        {"action": "range", "start_turn": 1, "end_turn": 2}, {"action": "search", "query": "walrus"},
        {"action": "tool_calls", "tool_name": "Bash"}, {"action": "summary"}, {"action": "search", "query": text},
    ):  # fmt: skip
        answer = recall.call(asked)
        assert answer and cost(answer) <= budget, asked


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=400), st.integers(1, 60), st.booleans()), min_size=1, max_size=12),
    st.integers(100, 3000),
)
def test_what_fits_is_within_the_room_whatever_the_texts(parts: list[tuple[str, int, bool]], tokens: int) -> None:
    entries = [entry(n, text * times, is_output) for n, (text, times, is_output) in enumerate(parts)]
    fitted = fit_entries(entries, tokens)
    assert sum(cost(show_entry(one)) + 1 for one in fitted.entries) <= tokens or len(fitted.entries) == 1
    assert len(fitted.entries) + len(fitted.left_out) == len(entries)
    assert [one.turn for one in fitted.left_out] == list(range(len(fitted.left_out)))
    assert all(one.is_cut for one in fitted.cut)


def test_what_fits_is_left_alone() -> None:
    entries = [entry(0, "short"), entry(1, "out\nput", True)]
    assert fit_entries(entries, 1000).entries == entries


def test_short_outputs_stay_whole_beside_long_ones() -> None:
    fitted = fit_entries([entry(0, "tiny", True), entry(1, "row\n" * 20_000, True), entry(2, "small", True)], 1000)
    assert [one.is_cut for one in fitted.entries] == [False, True, False]
    assert fitted.entries[1].text.startswith("row\n") and fitted.entries[1].text.rstrip().endswith("row")


def test_the_order_to_leave_out_is_the_callers() -> None:
    entries = [entry(n, "word " * 200) for n in range(4)]
    fitted = fit_entries(entries, 600, leave_first=[3, 2, 1, 0])
    assert [one.turn for one in fitted.left_out][-1] == 3 and fitted.entries[0].turn == 0
