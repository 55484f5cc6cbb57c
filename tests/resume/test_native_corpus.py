"""Real sessions of four agents, converted for each of them: every word, call and result is there, read by the receiver."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.model.conversation import Block
from everturn.resume.handoff import NativeOptions, plan_native
from everturn.resume.history import INTERRUPTED, History, read_history
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store
from tests.sources import goldens

FOLDERS = {
    "claude_code": "claude-code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode-export",
}
MOST = 6  # sessions of each format
NOW, RANDOM = 1_800_000_000_000, "0123456789abcdef0123456789abcdef"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not goldens.CORPUS.is_dir(), reason="no real files beside the checkout"),
]


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


#: A copy of a compacted session has the notice of the compaction with its own id.
_OWN_ID = re.compile(r"(?<=archive, )session [0-9a-f-]{36}")


def said(told: History) -> list[tuple[str, str]]:
    """Who said what, in order; a neighbour of the same side goes on with it."""
    found: list[tuple[str, str]] = []
    for message in told.messages:
        for block in message.blocks:
            if block.kind == "text":
                found.append((message.role, digest(_OWN_ID.sub("session", block.text.strip(), count=1))))
    return found


def calls(told: History) -> list[str]:
    """What each call gave back, in the order of the calls."""
    results = {b.result.call_id: b.text for m in told.messages for b in m.blocks if b.result is not None}
    starts = [block.call for message in told.messages for block in message.blocks if block.call is not None]
    assert len({start.call_id for start in starts}) == len(starts)
    # Some readers put a word for an image into the text of a result.
    return [digest(results[start.call_id].replace("[image]", "").strip()) for start in starts]


def chosen(store: Store) -> Iterator[Session]:
    """The sessions with most to lose: the most calls first."""
    listed = [session for session, _ in store.sessions(SessionFilter(), 1000)[0] if session.n_calls]
    yield from sorted(listed, key=lambda one: (-one.n_calls, one.native_id))[:MOST]


@pytest.fixture(scope="module", params=FOLDERS)
def taken(request: pytest.FixtureRequest) -> Iterator[tuple[str, Store]]:
    """The real sessions of one agent, in an archive."""
    paths = goldens.corpus_files(FOLDERS[request.param])
    if not paths:
        pytest.skip(f"no real files of {request.param} beside the checkout")
    with goldens.ingest(request.param, *paths) as archive:
        yield request.param, archive.store


def converted(store: Store, session: Session, taker: str, folder: Path) -> tuple[History, History]:
    """What was to be told, and what the receiving format's reader makes of what was written."""
    wanted = NativeOptions(
        all_sources()[taker], SearchPlaces(folder, {}, "linux"), RANDOM, NOW, folder, str(folder / "work")
    )
    made = plan_native(store, all_sources(), session, wanted)
    path = folder / made.path.name
    path.write_bytes(made.content)
    with goldens.ingest(taker, path) as again:
        [(back, _)] = again.store.sessions(SessionFilter())[0]
        assert back.native_id == made.new.id
        assert again.store.problems() == []
        assert [row for row in again.store.census() if row.disposition in ("unknown", "problem")] == []
        return made.history, read_history(again.store, all_sources(), back, keep_thoughts=True)


@pytest.mark.parametrize("taker", FOLDERS)
def test_every_word_call_and_result_goes_over(taken: tuple[str, Store], taker: str, tmp_path: Path) -> None:
    giver, store = taken
    tried = 0
    for session in chosen(store):
        given, got = converted(store, session, taker, tmp_path)
        assert said(got) == said(given), (giver, taker, session.native_id)
        assert calls(got) == calls(given), (giver, taker, session.native_id)
        assert given.answered == told_as(given, INTERRUPTED), session.native_id
        tried += 1
    assert tried


def told_as(told: History, words: str) -> int:
    """How many results are these words, of calls or of calls that are told as text."""
    blocks = [block for message in told.messages for block in message.blocks]
    as_text = sum(block.text == f"[Error of the tool {name}]\n{words}" for block in blocks if (name := _tool(block)))
    return as_text + sum(block.kind == "result" and block.text == words for block in blocks)


def _tool(block: Block) -> str:
    return block.text[len("[Error of the tool ") :].partition("]")[0] if block.text.startswith("[Error of the") else ""


def test_nothing_that_was_said_is_missing_from_what_is_told(taken: tuple[str, Store]) -> None:
    """Counted from the records themselves, in sessions that were never compacted."""
    _, store = taken
    for session in chosen(store):
        told = read_history(store, all_sources(), session)
        if told.compacted:
            continue
        spoken: Counter[str] = Counter()
        for row, message in read_messages(store, all_sources(), session):
            if row.origin in ("human", "agent", "model") and message.kind in ("text", "command", "queued"):
                spoken.update(digest(b.text) for b in message.blocks if b.kind == "text" and b.text.strip())
        there = Counter(digest(b.text) for m in told.messages for b in m.blocks if b.kind == "text")
        assert spoken - there == Counter(), session.native_id
        rows = store.calls(session.id)
        assert told.count("call") == sum(row.status != "orphan" for row in rows)
        assert told.count("result") == told.count("call")
        assert told.answered == sum(row.status == "open" for row in rows)


def test_thoughts_that_stay_behind_are_counted(taken: tuple[str, Store]) -> None:
    _, store = taken
    for session in chosen(store):
        told = read_history(store, all_sources(), session)
        if not told.compacted:
            thoughts = sum(
                block.kind == "thinking"
                for _, message in read_messages(store, all_sources(), session)
                for block in message.blocks
            )
            assert told.left_out.get("thoughts", 0) == thoughts
            assert told.count("thinking") == 0
