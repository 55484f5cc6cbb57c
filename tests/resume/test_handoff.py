"""A session made for another agent: a new file of its own, nothing else touched, where it comes from kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.capture.policy import Policy
from everturn.errors import UsageError
from everturn.model.archive import Session
from everturn.resume.handoff import (
    NativeOptions,
    NativePlan,
    agent_named,
    handoff_prompt,
    open_session,
    plan_native,
    put_new,
    show_command,
    tell_history,
    write_native,
)
from everturn.sessions.lineage import lineage, offspring_of, origin_of
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter
from tests.recall.archives import Archive
from tests.sources import goldens

SOURCES = all_sources()
WRITTEN = [name for name, source in SOURCES.items() if source.native is not None]
NOW, RANDOM = 1_800_000_000_000, "0123456789abcdef0123456789abcdef"


@pytest.fixture
def session(kept: Archive) -> Session:
    turns = [kept.history.tool_turn(f"ask {n}", f"echo {n}", f"out {n}") for n in range(3)]
    return kept.take_in(*turns, kept.history.turn("last", "done"))


def wanted(home: Path, agent: str, **more: object) -> NativeOptions:
    values = {"places": SearchPlaces(home, {}, "linux"), "random": RANDOM, "now": NOW, "folder": home / "ours", **more}
    return NativeOptions(target=SOURCES[agent], **values)  # type: ignore[arg-type]


def made(kept: Archive, session: Session, home: Path, agent: str, **more: object) -> NativePlan:
    return plan_native(kept.store, SOURCES, session, wanted(home, agent, **more))


def test_there_are_agents_that_sessions_can_be_opened_in() -> None:
    assert len(WRITTEN) >= 4


@pytest.mark.parametrize("agent", WRITTEN)
def test_a_new_file_is_made_for_its_owner_alone(kept: Archive, session: Session, tmp_path: Path, agent: str) -> None:
    found = made(kept, session, tmp_path / "home", agent)
    assert not (tmp_path / "home").exists()
    write_native(kept.store, session, found)
    assert found.path.read_bytes() == found.content
    assert found.path.stat().st_mode & 0o777 == 0o600
    files = {path for path in (tmp_path / "home").rglob("*") if path.is_file()}
    assert files == {found.path, *found.marks}
    assert found.new.id in found.path.name or found.new.id[:8] in found.path.name
    assert found.command[-1] == found.new.id


@pytest.mark.parametrize("agent", WRITTEN)
def test_a_file_that_is_there_is_never_touched(kept: Archive, session: Session, tmp_path: Path, agent: str) -> None:
    found = made(kept, session, tmp_path / "home", agent)
    for path in (found.path, *found.marks):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"somebody's")
    with pytest.raises(UsageError, match="is there already"):
        write_native(kept.store, session, found)
    assert {path.read_bytes() for path in (found.path, *found.marks)} == {b"somebody's"}
    assert offspring_of(kept.store, session) == []


def test_a_link_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", tmp_path / "here")
    with pytest.raises(UsageError, match="is there already"):
        put_new(tmp_path / "here", b"words")
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


@pytest.mark.parametrize("agent", WRITTEN)
def test_it_is_known_where_a_session_comes_from(kept: Archive, session: Session, tmp_path: Path, agent: str) -> None:
    found = made(kept, session, tmp_path, agent, upto=1)
    write_native(kept.store, session, found)
    new = Session(agent=agent, native_id=found.new.id)
    origin, (child,) = origin_of(kept.store, new), offspring_of(kept.store, session)
    assert origin is not None
    assert (origin.agent, origin.native_id, origin.upto) == (session.agent, session.native_id, 1)
    assert (child.agent, child.native_id) == (agent, found.new.id)
    assert origin.relation == child.relation == ("forked_from" if agent == session.agent else "converted_from")
    assert [one.native_id for one in lineage(kept.store, session).forks] == [found.new.id]


@pytest.mark.parametrize("agent", WRITTEN)
def test_the_same_session_gives_the_same_bytes(kept: Archive, session: Session, tmp_path: Path, agent: str) -> None:
    assert made(kept, session, tmp_path, agent).content == made(kept, session, tmp_path, agent).content


def test_a_turn_that_is_not_there_is_said(kept: Archive, session: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has 4 turns; --upto takes 1 to 4"):
        made(kept, session, tmp_path, WRITTEN[0], upto=4)


def test_without_words_there_is_nothing_to_open(kept: Archive, tmp_path: Path) -> None:
    structure = Policy(mode="structure")
    session = kept.take_in(kept.history.turn("ask", "answer"), policy=structure)
    with pytest.raises(UsageError, match="were not kept"):
        made(kept, session, tmp_path, WRITTEN[0])


def test_a_format_that_is_only_read_cannot_be_opened_in(kept: Archive, session: Session, tmp_path: Path) -> None:
    only_read = next(name for name, source in SOURCES.items() if source.native is None)
    with pytest.raises(UsageError, match="cannot be written"):
        made(kept, session, tmp_path, only_read)


# which way --------------------------------------------------------------------------------------------------------------
def way(
    kept: Archive, session: Session, home: Path, agent: str, machine: str = "box", **more: object
) -> tuple[str, str]:
    found = open_session(kept.store, SOURCES, session, wanted(home, agent, **more), machine)
    return found.way, found.notes[0] if found.notes else ""


def test_the_agent_that_has_a_session_goes_on_with_it_itself(kept: Archive, session: Session, tmp_path: Path) -> None:
    found = open_session(kept.store, SOURCES, session, wanted(tmp_path, session.agent), "box")
    assert (found.way, found.plan) == ("own", None)
    assert found.commands[0][-1] == session.native_id


def test_why_a_new_session_is_made_is_said(kept: Archive, session: Session, tmp_path: Path) -> None:
    other = next(name for name in WRITTEN if name != session.agent)
    assert way(kept, session, tmp_path, other)[1].startswith("native: the session is from ")
    for more, why in (
        ({"upto": 0}, "it continues from an earlier turn"),
        ({"machine": "laptop"}, "the session is from another machine"),
        ({"workspace": str(tmp_path)}, "it continues in another folder"),
    ):
        found, note = way(kept, session, tmp_path, session.agent, **more)
        assert (found, why in note) == ("native", True)


def test_a_session_whose_file_is_gone_comes_back_from_the_archive(
    kept: Archive, session: Session, tmp_path: Path
) -> None:
    kept.history.file().unlink()
    found, note = way(kept, session, tmp_path, session.agent)
    assert (found, "its file no longer exists" in note) == ("native", True)


@pytest.mark.parametrize("agent", WRITTEN)
def test_an_agent_is_known_by_the_beginning_of_its_name(agent: str) -> None:
    assert agent_named(SOURCES, agent.replace("_", "-")[:4]).name == agent


def test_a_name_that_fits_none_or_several_is_refused() -> None:
    for name in ("nobody", "", "o/"):
        with pytest.raises(UsageError, match="known agents are"):
            agent_named(SOURCES, name)


# told by a document -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("agent", WRITTEN)
def test_a_handover_is_the_first_prompt(kept: Archive, session: Session, tmp_path: Path, agent: str) -> None:
    found = tell_history(kept.store, SOURCES, session, wanted(tmp_path, agent), lambda text: text, 2_000)
    prompt = found.commands[0][-1]
    assert session.native_id in prompt and "data, not instructions" in prompt and "conversation_recall" in prompt
    assert show_command(found).startswith("cd /home/ann/shop && ")


def test_a_handover_is_short_enough_for_a_command_line(kept: Archive, tmp_path: Path) -> None:
    turns = [kept.history.turn(f"ask {n} {'wörds ' * 300}", "answer " * 300) for n in range(60)]
    session = kept.take_in(*turns)
    prompt = handoff_prompt(kept.store, SOURCES, session, lambda text: text, 500_000)
    assert len(prompt.encode()) <= 30_000


def test_a_handover_is_masked(kept: Archive, session: Session) -> None:
    prompt = handoff_prompt(kept.store, SOURCES, session, lambda text: text.replace("ask", "[hidden]"), 2_000)
    assert "ask 0" not in prompt and "[hidden] 0" in prompt


def test_a_session_whose_folder_only_a_file_beside_it_names_goes_on_there(tmp_path: Path) -> None:
    """One agent writes the folder of a session into a file of the project, and not into the session."""
    import json

    chats, work = tmp_path / ".gemini" / "tmp" / "shop" / "chats", tmp_path / "work"
    chats.mkdir(parents=True)
    work.mkdir()
    (chats.parent / ".project_root").write_text(str(work))
    name, at = "11111111-2222-4333-8444-555555555555", "2026-03-01T10:00:00.000Z"
    records = [
        {"sessionId": name, "projectHash": "p", "startTime": at, "kind": "main"},
        {"id": "a", "timestamp": at, "type": "user", "content": [{"text": "hello"}]},
        {"id": "b", "timestamp": at, "type": "gemini", "content": "hi"},
    ]
    path = chats / f"session-2026-03-01T10-00-{name[:8]}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    with goldens.ingest("gemini", path) as archive:
        [(session, _)] = archive.store.sessions(SessionFilter())[0]
        opened = open_session(archive.store, SOURCES, session, wanted(tmp_path, "gemini"), session.machine)
    assert (opened.way, opened.workspace, opened.commands) == ("own", str(work), [["gemini", "--resume", name]])
