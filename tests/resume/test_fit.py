"""A session that is too long for another agent is trimmed: old outputs first, then old turns, and it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.resume.handoff import NativeOptions, open_session, plan_native
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter
from tests.recall.archives import Archive
from tests.sources import goldens

SOURCES = all_sources()
WRITTEN = [name for name, source in SOURCES.items() if source.native is not None]
LONG = "lorem ipsum dolor " * 400


@pytest.fixture
def session(kept: Archive) -> Session:
    turns = [kept.history.tool_turn(f"ask {n} {'please ' * 300}", f"echo {n}", f"out {n} {LONG}") for n in range(8)]
    return kept.take_in(*turns, kept.history.turn("last question", "last answer"))


def wanted(home: Path, agent: str, fit: int) -> NativeOptions:
    places = SearchPlaces(home, {}, "linux")
    return NativeOptions(SOURCES[agent], places, "0123456789abcdef" * 2, 1_800_000_000_000, home / "ours", fit=fit)


def test_outputs_go_first_from_the_oldest_on(kept: Archive, session: Session, tmp_path: Path) -> None:
    whole = plan_native(kept.store, SOURCES, session, wanted(tmp_path, "codex", 0)).history
    fit = whole.tokens // 2
    plan = plan_native(kept.store, SOURCES, session, wanted(tmp_path, "codex", fit))
    assert plan.history.tokens <= fit < whole.tokens
    outputs = [block.text for message in plan.history.messages for block in message.blocks if block.kind == "result"]
    kept_whole = [text.startswith("out") for text in outputs]
    assert kept_whole == sorted(kept_whole) and True in kept_whole and False in kept_whole
    assert [m.blocks[0].text[:5] for m in plan.history.messages if m.role == "user"][:2] == ["ask 0", "ask 1"]
    assert any("outputs of tools" in note for note in plan.history.notes)


@pytest.mark.parametrize("agent", WRITTEN)
def test_then_turns_go_and_a_document_takes_their_place(
    kept: Archive, session: Session, tmp_path: Path, agent: str
) -> None:
    fit = 1_800
    plan = plan_native(kept.store, SOURCES, session, wanted(tmp_path, agent, fit))
    first, *rest = plan.history.messages
    assert plan.history.tokens <= fit
    assert "SESSION SUMMARY" in first.blocks[0].text and session.native_id in first.blocks[0].text
    assert rest[-1].blocks[0].text == "last answer" and rest[0].role == "user"
    gone = plan.history.left_out["turns"]
    assert 0 < gone < 9 and gone + sum(m.role == "user" for m in rest) == 9
    path = tmp_path / plan.path.name
    path.write_bytes(plan.content)
    with goldens.ingest(agent, path) as again:
        [(back, _)] = again.store.sessions(SessionFilter())[0]
        assert back.native_id == plan.new.id and again.store.problems() == []


def test_what_fits_is_not_touched_and_what_does_not_is_a_new_session(
    kept: Archive, session: Session, tmp_path: Path
) -> None:
    fits = open_session(kept.store, SOURCES, session, wanted(tmp_path, session.agent, 500_000), session.machine)
    assert (fits.way, fits.plan) == ("own", None)
    trimmed = open_session(kept.store, SOURCES, session, wanted(tmp_path, session.agent, 1_800), session.machine)
    assert trimmed.way == "native" and trimmed.tokens <= 1_800
    assert any("trimmed to 1,800 tokens" in note for note in trimmed.notes)


def test_a_last_turn_that_is_too_long_stays_and_is_told(kept: Archive, tmp_path: Path) -> None:
    session = kept.take_in(kept.history.turn("first", "one"), kept.history.turn(LONG, LONG))
    opened = open_session(kept.store, SOURCES, session, wanted(tmp_path, "codex", 1_000), session.machine)
    assert opened.tokens > 1_000 and any("the last turn alone" in note for note in opened.notes)


def test_calls_that_the_other_agent_has_no_tool_for_are_told_as_text(kept: Archive, tmp_path: Path) -> None:
    pieces = (
        kept.history.line("user", "do both"),
        kept.use("Bash", "a", "msg", command="ls"),
        kept.use("mcp__jira__find", "b", "msg", q="walnut"),
        kept.back("a", "files"),
        kept.back("b", "no issue", failed=True),
    )
    session = kept.take_in(*pieces, kept.history.turn("thanks", "welcome"))
    for agent in WRITTEN:
        found = plan_native(kept.store, SOURCES, session, wanted(tmp_path, agent, 0)).history
        calls = [block.call.name for message in found.messages for block in message.blocks if block.call]
        texts = [block.text for message in found.messages for block in message.blocks if block.kind == "text"]
        if agent == session.agent:
            assert calls == ["Bash", "mcp__jira__find"]
            continue
        assert calls == ["Bash"] and found.told == 1
        assert '[Called the tool mcp__jira__find of the agent before: {"q":"walnut"}]' in texts
        assert "[Error of the tool mcp__jira__find]\nno issue" in texts
        assert any("told as text" in note for note in found.notes)
