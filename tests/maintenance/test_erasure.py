"""Erasures that finish: what was made from a session goes with it, and an interruption at any point is completed later."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.capture.writer import ArchiveWriter
from everturn.errors import EverturnError
from everturn.loop.journal import Journal, JournalAbout
from everturn.loop.journal_state import AGENT
from everturn.maintenance.forget import (
    find_matching,
    finish_erasures,
    forget_messages,
    forget_sessions,
    pending_erasures,
    text_pattern,
)
from everturn.model.archive import KeptRow, Session
from everturn.sources.contract import all_sources
from everturn.store.checkpoints import Channel, GraphCheckpoint
from everturn.store.contract import Store, open_store
from tests.capture.history import SID, History, run

WORD = "qzwvxkjyq"


def desk(store: Store) -> ArchiveWriter:
    return ArchiveWriter(store, "m", "o", 1)


def session_of(store: Store, name: str, agent: str = AGENT) -> Session:
    return store.sessions_of(agent, name)[-1]


def plant(store: Store) -> None:
    """A session full of one word, and everything that may be made from it: a child, a grandchild, rows, lists, checkpoints."""
    with Journal.open(store, "elder", JournalAbout(workspace="/w", title=WORD), policy=Policy()) as journal:
        journal.setup(f"system {WORD}")
        journal.accept(f"prompt {WORD}")
        journal.state("anything", {"said": WORD})
        journal.inject(f"hint {WORD}", "hint")
        journal.note(f"note {WORD}")
    for name, parent in (("child", "elder"), ("grandchild", "child")):
        about = JournalAbout(workspace="/w", parent=parent, relation="continues")
        with Journal.open(store, name, about, policy=Policy()) as journal:
            journal.inject(f"CONTEXT RESTORATION {WORD}", "restoration")
            journal.state("restored", {"summary": WORD})
            journal.accept("an own question of the child")
            journal.inject(f"state {WORD}", "state")
    with store.write():
        for name in ("elder", "child", "grandchild"):
            for kind in ("summary", "turn_summary", "synthesis", "chat", "inherited"):
                store.keep(KeptRow(kind, AGENT, name, "k", f'"{WORD}"', 1))
            store.keep(KeptRow("pin", AGENT, name, "1", f'{{"text":"{WORD}","session":"elder"}}', 1))
        store.keep(KeptRow("pin", AGENT, "child", "2", '{"text":"stays"}', 1))
        engine: Any = store
        engine.add_items("f", "elder", [("", WORD.encode())], 1)
        row = GraphCheckpoint("elder", "", "c1", "", "", "k", WORD.encode(), "k", WORD.encode(), 1)
        engine.put_checkpoint(row, [Channel("messages", "1", ("k", WORD.encode()))])


def found(folder: Path) -> list[str]:
    """Where the word is: in the bytes of any file, or in any unpacked chunk or row."""
    places = [path.name for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    with closing(open_store(str(folder / "archive.db"))) as store:
        driver = store.driver  # type: ignore[attr-defined]
        for (name,) in driver.all("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite%'"):
            if WORD in repr(driver.all(f'SELECT * FROM "{name}"')):
                places.append(name)
        chunks = driver.all('SELECT "digest" FROM "blob"')
        places += ["chunk" for (digest,) in chunks if WORD.encode() in store.read_chunk(digest)]
    return places


def test_what_was_made_from_a_session_goes_with_it(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "archive.db"))) as store:
        plant(store)
    assert len(set(found(tmp_path))) >= 5
    with closing(open_store(str(tmp_path / "archive.db"))) as store:
        forget_sessions(desk(store), all_sources(), [session_of(store, "elder")])
        child = session_of(store, "child")
        own = [store.read_raw(child.version, row.start, row.size) for row in store.messages(child.id)]
        assert any(b"own question" in one for one in own)
        assert [row.value for row in store.kept("pin", "child")] == ['{"text":"stays"}']
        assert pending_erasures(store) == []
        with Journal.open(store, "child", policy=Policy()) as journal:  # it can still be continued
            journal.accept("go on")
    assert found(tmp_path) == []


class Killed(Exception):
    pass


def kill_at(store: Store, statement: int) -> None:
    """End the process, as it were, before the statement of that number."""
    driver: Any = store.driver  # type: ignore[attr-defined]
    execute, count = driver._execute, 0

    def counted(sql: str, params: Any) -> Any:
        nonlocal count
        count += 1
        if count >= statement:
            raise Killed
        return execute(sql, params)

    driver._execute = counted


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_an_erasure_that_was_killed_anywhere_is_completed_later(tmp_path: Path, part: int) -> None:
    whole = tmp_path / "whole.db"
    with closing(open_store(str(whole))) as store:
        plant(store)
    dice = random.Random(part)
    for round_number in range(25):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        (folder / "archive.db").write_bytes(whole.read_bytes())
        store = open_store(str(folder / "archive.db"))
        session = session_of(store, "elder")
        kill_at(store, dice.randrange(1, 200))
        is_killed = False
        try:
            forget_sessions(desk(store), all_sources(), [session])
        except Killed:
            is_killed = True
        store.driver.connection.close(True)  # type: ignore[attr-defined]
        with closing(open_store(str(folder / "archive.db"))) as again:
            was_begun = bool(pending_erasures(again))
            finish_erasures(desk(again), all_sources())
            if again.sessions_of(AGENT, "elder"):
                assert is_killed and not was_begun  # it was killed before it was recorded: nothing is gone
                forget_sessions(desk(again), all_sources(), [session_of(again, "elder")])
        assert found(folder) == []


def test_a_reader_that_holds_the_log_leaves_a_pending_erasure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.store.sqlite.BUSY_MS", 50)
    path = str(tmp_path / "archive.db")
    with closing(open_store(path)) as store:
        plant(store)
        with closing(open_store(path)) as reader:
            with reader.reading():
                assert reader.kept("pin")
                with pytest.raises(EverturnError):
                    forget_sessions(desk(store), all_sources(), [session_of(store, "elder")])
            assert len(pending_erasures(store)) == 1
        finish_erasures(desk(store), all_sources())
        assert pending_erasures(store) == []
    assert found(tmp_path) == []


def test_messages_that_match_go_from_every_session_and_do_not_return(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    history.write(history.turn(f"first {WORD}", "fine") + history.turn("second", "kept"))
    with closing(open_store(str(tmp_path / "archive.db"))) as store:
        plant(store)
        run(store, history)
        pattern = text_pattern(WORD.upper())
        rows = find_matching(store, pattern)
        forget_messages(desk(store), all_sources(), rows, pattern)
        assert find_matching(store, pattern) == []
        run(store, history)
        assert find_matching(store, pattern) == []
        one = session_of(store, SID, "claude_code")
        assert one.n_messages and "kept" in repr(
            [store.read_raw(one.version, row.start, row.size) for row in store.messages(one.id)]
        )
    assert [name for name in found(tmp_path) if not name.endswith(".jsonl")] == []  # the agent's own file stays


def test_one_turn_goes_and_the_others_stay(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    history.write(history.turn(f"first {WORD}", f"yes {WORD}") + history.turn("second", "kept"))
    with closing(open_store(str(tmp_path / "archive.db"))) as store:
        run(store, history)
        one = session_of(store, SID, "claude_code")
        forget_messages(desk(store), all_sources(), [row for row in store.messages(one.id) if row.turn == 0])
        assert session_of(store, SID, "claude_code").n_prompts == 1
    assert [name for name in found(tmp_path) if not name.endswith(".jsonl")] == []
