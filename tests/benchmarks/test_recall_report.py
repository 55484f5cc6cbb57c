"""What the recall benchmark reports: bars, intervals, and histories in their scope and time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.recall import histories
from benchmarks.recall.archive import Archive
from benchmarks.recall.baselines import Baselines
from benchmarks.recall.intervals import intervals
from benchmarks.recall.measuring import OURS, PLAIN, Answered
from benchmarks.recall.questions import Place, Question, session_id
from benchmarks.recall.report import Row, figures_of, rows


def answered(*firsts: str) -> list[Answered]:
    """Questions whose right session is `a`, each with the session that came first."""
    return [Answered(Question(str(n), frozenset({"a"})), [(first, 0)], 0.0) for n, first in enumerate(firsts)]


def row(found: list[Row], metric: str) -> Row:
    return next(one for one in found if (one.method, one.level, one.metric) == (OURS, "session", metric))


def test_a_figure_below_fts5_fails_and_an_equal_one_passes() -> None:
    worse = list(rows("made up", {OURS: answered("b", "a"), PLAIN: answered("a", "a")}))
    equal = list(rows("made up", {OURS: answered("b", "a"), PLAIN: answered("a", "b")}))

    assert (row(worse, "hit@1").bar, row(worse, "hit@1").verdict) == (100, "FAIL")
    assert (row(equal, "hit@1").bar, row(equal, "hit@1").verdict) == (50, "pass")
    assert row(worse, "MRR").verdict == "–"


def test_the_higher_of_two_bars_counts() -> None:
    found = list(rows("LoCoMo", {OURS: answered("a", "b"), PLAIN: answered("b", "b")}))

    assert (row(found, "hit@1").bar, row(found, "hit@1").verdict) == (77.5, "FAIL")


def test_the_note_gives_fts5_and_the_interval() -> None:
    found = list(rows("made up", {OURS: answered(*"aaaa"), PLAIN: answered(*"bbbb")}))
    figure = next(one for one in figures_of(found) if one.name == "made up, session: hit@1")

    assert figure.note == "4 questions; FTS5 0; more than FTS5 by +100.0 to +100.0"


def test_an_interval_is_the_same_each_time_and_holds_the_difference() -> None:
    ours = [{"hit@1": float(n % 3 > 0)} for n in range(60)]
    theirs = [{"hit@1": float(n % 2)} for n in range(60)]
    low, high = intervals(ours, theirs, 200)["hit@1"]

    assert low < 1 / 6 < high
    assert low >= -1 and high <= 1
    assert intervals(ours, theirs, 200) == {"hit@1": (low, high)}
    assert intervals([], []) == {}


def test_only_what_was_said_before_the_asking_session_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def session(archive: str, number: int, text: str) -> str:
        said = [{"role": "user", "text": text}, {"role": "assistant", "text": "fine"}]
        at = f"2025-03-0{number}T08:00:00Z"
        return json.dumps({"archive": archive, "session": f"{archive}/{number}", "at": at, "messages": said})

    told = [session("ann", n, f"the canoe is in harbour {n}") for n in (1, 2, 3)] + [session("bob", 1, "a canoe")]
    asked = [
        {"archive": "ann", "type": "opening/x", "question": "canoe", "before": "ann/2", "gold": [["ann/1", 0]],
         "gold_sessions": ["ann/1"]},
        {"archive": "ann", "type": "later/x", "question": "canoe", "before": "ann/3", "gold": [], "gold_sessions": []},
    ]  # fmt: skip
    (tmp_path / "realmem").mkdir()
    (tmp_path / "realmem" / "sessions.jsonl").write_text("\n".join(told), "utf-8")
    (tmp_path / "realmem" / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)), "utf-8")
    monkeypatch.setattr(histories, "BENCH", tmp_path)
    questions = histories.realmem(tmp_path / "in")
    assert questions is not None
    (question,) = questions
    archive = Archive.of(tmp_path / "in", tmp_path / "archive.db")
    try:
        plain = Baselines((one.scope, one.place, one.text, one.at) for one in archive.documents())
        right: list[Place] = [(session_id("ann/1"), 0)]
        assert question.messages == frozenset(right)
        assert plain.fts5(question.text, question.scope, question.until) == right
        assert archive.ask(question.text, question.scope, question.until) == right
        assert histories.beam100k(tmp_path / "in") is None
    finally:
        archive.close()
