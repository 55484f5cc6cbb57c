"""Transcripts that arrive in memory: kept once, given back, and searchable as the session they are."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import pytest

from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.integrations.agent_sdk import TranscriptStore
from everturn.integrations.archive import Archive, as_store
from everturn.maintenance.forget import forget_sessions
from everturn.sources.contract import all_sources
from everturn.store.contract import IndexQuery, SessionFilter
from everturn.store.sql_store import SqlStore
from everturn.text.terms import terms

SESSION = "0c1f5a30-9c2b-4a56-8f1e-3d2f8a4b6c7d"
KEY = {"project_key": "-home-me-shop", "session_id": SESSION}
SUB = {**KEY, "subpath": "subagents/agent-7"}


def fold(before: Any, key: Any, entries: Any) -> Any:
    """Stands for the SDK's own: counts."""
    return {
        "session_id": key["session_id"],
        "mtime": 0,
        "data": {"n": (before or {"data": {"n": 0}})["data"]["n"] + len(entries)},
    }


def said(n: int, role: str, text: str) -> dict[str, Any]:
    return {
        "parentUuid": None, "isSidechain": False, "type": role, "uuid": f"00000000-0000-4000-8000-{n:012d}",
        "sessionId": SESSION, "cwd": "/home/me/shop", "version": "2.1.0", "timestamp": f"2026-05-04T10:00:{n:02d}.000Z",
        "message": {"role": role, "content": text},
    }  # fmt: skip


TALK = [said(1, "user", "why is the till café slow"), said(2, "user", "and the \ud800 lamp")]


def run(work: Any) -> Any:
    return asyncio.run(work)


def sessions(archive: Archive) -> list[str]:
    return archive.do(lambda store: [row.native_id for row, _ in store.sessions(SessionFilter(kinds=()))[0]])


@pytest.fixture
def store(archive: Archive) -> TranscriptStore:
    return TranscriptStore(archive, fold)


def test_entries_come_back_as_they_were(store: TranscriptStore) -> None:
    assert run(store.load(KEY)) is None
    run(store.append(KEY, TALK[:1]))
    run(store.append(KEY, TALK[1:]))
    assert run(store.load(KEY)) == TALK


def test_an_entry_with_a_uuid_is_there_once_and_one_without_each_time(store: TranscriptStore) -> None:
    title = {"type": "custom-title", "customTitle": "till"}
    run(store.append(KEY, [TALK[0], TALK[0], title]))
    run(store.append(KEY, [TALK[0], title]))
    assert run(store.load(KEY)) == [TALK[0], title, title]


def test_what_is_mirrored_is_a_session_and_can_be_searched(store: TranscriptStore) -> None:
    run(store.append(KEY, TALK))
    assert sessions(store.archive) == [SESSION]
    words = IndexQuery(groups=((tuple(terms("café")),),))
    hits = store.archive.do(lambda archive: [archive.session(hit.session)[0] for hit in archive.search(words)])
    assert [session.native_id for session in hits] == [SESSION]


def test_the_lines_are_those_the_agent_writes(store: TranscriptStore) -> None:
    run(store.append(KEY, TALK[:1]))

    def raw(archive: SqlStore) -> bytes:
        _, version = archive.files()[0]
        return archive.read_raw(version.id, 0, version.size)

    assert store.archive.do(raw) == json.dumps(TALK[0], ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def test_a_format_that_shows_late_is_read_from_the_beginning(store: TranscriptStore) -> None:
    run(store.append(KEY, [{"type": "x", "n": 1}]))
    assert sessions(store.archive) == []
    run(store.append(KEY, TALK))
    assert sessions(store.archive) == [SESSION]
    run(store.append(KEY, [said(3, "user", "one more")]))
    messages = store.archive.do(lambda archive: archive.sessions(SessionFilter())[0][0][0].n_messages)
    assert messages >= 3
    assert len(run(store.load(KEY))) == 4


def test_a_rebuild_makes_the_same_rows(store: TranscriptStore) -> None:
    run(store.append(KEY, TALK))

    def rows(archive: SqlStore) -> Any:
        return [(row.native_id, row.n_messages, row.n_turns) for row, _ in archive.sessions(SessionFilter())[0]]

    before = store.archive.do(rows)
    store.archive.do(
        lambda archive: rebuild_archive(ArchiveWriter(as_store(archive), "", "", 1), all_sources(), lambda *_: None)
    )
    assert store.archive.do(rows) == before
    assert run(store.load(KEY)) == TALK


def test_forgetting_the_session_takes_the_transcript_and_its_summary(store: TranscriptStore) -> None:
    run(store.append(KEY, TALK))

    def erase(archive: SqlStore) -> None:
        forget_sessions(
            ArchiveWriter(as_store(archive), "", "", 1), all_sources(), [archive.sessions(SessionFilter())[0][0][0]]
        )

    store.archive.do(erase)
    assert run(store.load(KEY)) is None
    assert run(store.list_sessions(KEY["project_key"])) == []
    assert run(store.list_session_summaries(KEY["project_key"])) == []


def test_deleting_takes_the_subagents_and_nothing_else(store: TranscriptStore) -> None:
    other = {"project_key": "another/project", "session_id": SESSION}
    for key in (KEY, SUB, other):
        run(store.append(key, TALK))
    assert run(store.list_subkeys(KEY)) == ["subagents/agent-7"]
    run(store.delete(KEY))
    assert (run(store.load(KEY)), run(store.load(SUB)), run(store.list_subkeys(KEY))) == (None, None, [])
    assert run(store.load(other)) == TALK


def test_names_with_slashes_are_not_mixed_up(store: TranscriptStore) -> None:
    keys = [{"project_key": "a/b", "session_id": "c"}, {"project_key": "a", "session_id": "b/c"},
            {"project_key": "a", "session_id": "b", "subpath": "c"}]  # fmt: skip
    for n, key in enumerate(keys):
        run(store.append(key, [{"type": "x", "n": n}]))
    assert [run(store.load(key)) for key in keys] == [[{"type": "x", "n": n}] for n in range(3)]


def test_summaries_are_folded_from_what_is_new_and_times_only_grow(archive: Archive) -> None:
    archive.clock = lambda: 1_700_000_000_000
    store = TranscriptStore(archive, fold)
    run(store.append(KEY, TALK[:1]))
    run(store.append(KEY, TALK))
    run(store.append(SUB, TALK))
    [summary], [listed] = (
        run(store.list_session_summaries(KEY["project_key"])),
        run(store.list_sessions(KEY["project_key"])),
    )
    assert summary == {"session_id": SESSION, "mtime": 1_700_000_000_001, "data": {"n": 2}}
    assert listed == {"session_id": SESSION, "mtime": 1_700_000_000_001}


@pytest.mark.needs("module:claude_agent_sdk")
def test_the_sdk_agrees_in_all_fourteen_points(archive: Archive, request: pytest.FixtureRequest, tmp_path: Any) -> None:
    from claude_agent_sdk import fold_session_summary  # type: ignore[import-not-found, unused-ignore]
    from claude_agent_sdk.testing import (  # type: ignore[import-not-found, unused-ignore]
        run_session_store_conformance,
    )

    numbers, opened = count(1), []

    def fresh() -> TranscriptStore:
        url = f"{archive.url}_{next(numbers)}" if "postgres" in archive.url else str(tmp_path / f"{next(numbers)}.db")
        opened.append(Archive(url, "process"))
        return TranscriptStore(opened[-1], fold_session_summary)

    run(run_session_store_conformance(fresh))
    for one in opened:
        one.close()
    assert len(opened) == 15  # one for each point, and one to look at
