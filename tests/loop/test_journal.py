"""What the journal says is written is in the archive, like everything else there."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.capture import writer
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.errors import Conflict, EverturnError, UnknownSession, UsageError
from everturn.export.original import raw_bytes, read_original
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, ToolSpec
from everturn.loop.journal import Journal, JournalAbout, open_archive
from everturn.loop.records import IntendedCall
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.verify import verify_archive
from everturn.model.archive import Session
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import IndexQuery, Store
from everturn.store.sqlite import SqliteStore
from everturn.text.terms import terms
from tests.loop.scripted_model import calls, says

ABOUT = JournalAbout("box", "ann", "/home/ann/space", "model-1")
VERBATIM = Reply(
    ChatMessage(
        "assistant",
        (
            ChatPart("thinking", "let me see", raw={"type": "thinking", "thinking": "let me see", "signature": "c2ln"}),
            ChatPart("opaque", raw={"type": "redacted_thinking", "data": "abc", "new": [1, {"x": None}]}),
            ChatPart("call", call_id="a", name="read", arguments={"path": "src/rare.py"}, raw={"id": "a", "odd": True}),
        ),
        "msg_1",
        "wire",
        {"stop_details": None},
    ),
    "calls",
)


def talk(store: Store) -> Journal:
    journal = Journal.open(store, "s1", ABOUT)
    journal.setup("be brief", [ToolSpec("read", "reads", {"type": "object"})])
    journal.accept("please look at the wombat")
    journal.response(VERBATIM, [IntendedCall("a", "read")])
    journal.result("a", "a wombat indeed", ms=12)
    journal.response(says("It is a marsupial."))
    return journal


def found(store: Store, words: str) -> list[int]:
    return [hit.seq for hit in store.search(IndexQuery(((tuple(terms(words)),),)))]


def session(store: Store) -> Session:
    return store.sessions_of("journal", "s1")[0]


def test_what_was_written_is_there_for_the_next_process_word_for_word(store: Store) -> None:
    first = talk(store)
    first.close()
    again = Journal.open(store, "s1", ABOUT)
    assert again.past.messages == first.past.messages
    assert again.past.messages[1] == VERBATIM.message
    assert [message.role for message in again.past.messages] == ["user", "assistant", "tool", "assistant"]
    assert (again.past.system, again.past.tools) == ("be brief", (ToolSpec("read", "reads", {"type": "object"}),))
    assert (again.past.model, again.past.workspace) == ("model-1", "/home/ann/space")
    assert again.past.token == first.past.token + 1


def test_it_can_be_searched_at_once_and_is_a_session_like_any_other(store: Store) -> None:
    talk(store)
    assert len(found(store, "wombat")) == 2
    assert len(found(store, "marsupial")) == 1
    assert len(found(store, "rare.py")) == 1
    row, text = store.session(session(store).id)
    assert (row.n_turns, row.n_steps, row.n_calls, row.n_prompts) == (1, 2, 1, 1)
    assert (row.machine, row.owner, row.tokens_in, row.tokens_out) == ("box", "ann", 100, 10)
    assert (text.workspace, text.first_prompt) == ("/home/ann/space", "please look at the wombat")
    (call,) = store.calls(row.id)
    assert (call.name, call.kind, call.status, call.duration_ms) == ("read", "read", "ok", 12)
    assert [(one.action, one.path) for one in store.artifacts(row.id)] == [("read", "src/rare.py")]


def test_a_journal_can_be_verified_rebuilt_and_exported(store: Store) -> None:
    journal = talk(store)
    assert verify_archive(store, "box", lambda *numbers: None).wrong == []
    before = [store.session(session(store).id), list(store.messages(session(store).id)), store.calls(session(store).id)]
    rebuild_archive(ArchiveWriter(store, "box", "ann", 5), all_sources(), lambda *numbers: None)
    after = [store.session(session(store).id), list(store.messages(session(store).id)), store.calls(session(store).id)]
    assert before == after
    lines = b"".join(raw_bytes(store, read_original(store, session(store)).version.id)).splitlines()
    assert len(lines) == journal.past.count == 7
    journal.accept("and now?")
    assert found(store, "and now") != []


def test_an_exported_journal_is_read_as_the_same_session(archive: Store, tmp_path: Path) -> None:
    talk(archive).close()
    exported = tmp_path / "exported.jsonl"
    exported.write_bytes(b"".join(raw_bytes(archive, read_original(archive, session(archive)).version.id)))
    claims = [source.name for source in all_sources().values() if source.sniff(exported, exported.read_bytes())]
    assert claims == ["journal"]
    other = open_archive("memory:")
    from everturn.capture.sync import add_paths

    job = SyncJob(other, all_sources(), SearchPlaces(tmp_path / "none", {}, "linux"), Policy(), "box", "ann", lambda: 1)
    assert add_paths(job, [exported]).failed == []
    assert list(other.messages(1)) == list(archive.messages(session(archive).id))
    other.close()


def test_a_sync_does_not_take_a_journal_for_a_lost_file(store: Store, tmp_path: Path) -> None:
    talk(store)
    report = sync_all(
        SyncJob(store, all_sources(), SearchPlaces(tmp_path, {}, "linux"), Policy(), "box", "ann", lambda: 1)
    )
    assert (report.gone, report.files, report.failed) == (0, 0, [])
    assert store.files()[0][0].state == "live"
    findings = verify_archive(store, "box", lambda *numbers: None)
    assert (findings.gone, findings.differs) == (0, [])


def test_what_was_forgotten_cannot_be_written_to_or_taken_up(store: Store) -> None:
    journal = talk(store)
    forget_sessions(ArchiveWriter(store, "box", "ann", 5), all_sources(), [session(store)])
    assert found(store, "wombat") == []
    with pytest.raises(Conflict):
        journal.accept("are you there?")
    with pytest.raises(UnknownSession):
        Journal.open(store, "s1", ABOUT)


def test_a_call_has_one_result_and_never_a_second(store: Store) -> None:
    journal = Journal.open(store, "s1", ABOUT)
    journal.accept("go")
    journal.response(calls(("a", "x"), ("b", "x")), [IntendedCall("a", "x")])
    journal.result("a", "one")
    with pytest.raises(Conflict):
        journal.result("a", "two")
    with pytest.raises(Conflict):
        journal.intend([IntendedCall("a", "x", 2)])
    with pytest.raises(UsageError, match="no open call"):
        journal.result("z", "what?")
    journal.result("b", "three")
    assert [part.text for part in journal.past.messages[-1].parts] == ["one", "three"]
    with pytest.raises(UsageError, match="has no call z"):
        journal.response(calls(("c", "x")), [IntendedCall("z", "x")])


def test_nothing_is_said_while_a_call_has_no_result(store: Store) -> None:
    journal = Journal.open(store, "s1", ABOUT)
    journal.accept("go")
    journal.response(calls(("a", "x")))
    with pytest.raises(UsageError, match="without a result"):
        journal.accept("hello?")
    with pytest.raises(UsageError, match="without a result"):
        journal.response(says("never mind"))
    journal.result("a", "done")
    journal.accept("hello?")
    assert [message.role for message in journal.past.messages] == ["user", "assistant", "tool", "user"]


def test_the_same_call_id_in_another_response_is_another_call(store: Store) -> None:
    journal = Journal.open(store, "s1", ABOUT)
    journal.accept("go")
    for text in ("one", "two"):
        journal.response(calls(("call_0", "x")), [IntendedCall("call_0", "x")])
        journal.result("call_0", text)
    journal.close()
    again = Journal.open(store, "s1", ABOUT)
    told = [message.parts[0].text for message in again.past.messages if message.role == "tool"]
    assert told == ["one", "two"]


def test_text_that_is_not_quite_unicode_comes_back_as_it_was(archive: Store) -> None:
    journal = Journal.open(archive, "s1", ABOUT)
    journal.accept("half \ud83d of a pair and a \0 byte")
    journal.close()
    again = Journal.open(archive, "s1", ABOUT)
    assert again.past.messages == journal.past.messages
    assert found(archive, "of a pair") == [0]


def test_notes_states_and_titles_are_kept_beside_the_conversation(store: Store) -> None:
    journal = Journal.open(store, "s1", ABOUT)
    journal.accept("go")
    journal.note("about marsupials", "title")
    journal.note("the budget is low", "budget", {"left": 3})
    journal.state("slice", {"items": [1]})
    journal.state("slice", {"items": [1, 2]})
    journal.close()
    again = Journal.open(store, "s1", ABOUT)
    assert again.past.states == {"slice": {"items": [1, 2]}}
    assert len(again.past.messages) == 1
    assert store.session(session(store).id)[1].title == "about marsupials"
    assert found(store, "budget is low") != []


def test_a_record_of_a_newer_everturn_is_not_skipped(archive: Store) -> None:
    journal = talk(archive)
    journal._end.append(b'{"type":"teleport","n":7,"at":1}\n')
    journal.close()
    with pytest.raises(EverturnError, match="cannot read"):
        Journal.open(archive, "s1", ABOUT)
    assert verify_archive(archive, "box", lambda *numbers: None).wrong == []


def test_rows_that_cannot_be_made_do_not_cost_what_was_said(archive: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(archive, "s1", ABOUT)
    with monkeypatch.context() as patch:
        patch.setattr("everturn.capture.writer.grow_session", None)
        journal.accept("said while we were broken")
        journal.response(says("and answered"))
    journal.close()
    assert found(archive, "broken") == []
    later = open_archive(archive.url)
    again = Journal.open(later, "s1", ABOUT, clock=lambda: 10**14)  # tried again when its time has come
    assert [message.role for message in again.past.messages] == ["user", "assistant"]
    assert found(later, "while we were broken") == [0]
    later.close()


@pytest.mark.parametrize("moment", ["before", "half way", "after"])
def test_rows_that_another_process_makes_again_do_not_get_out_of_order(tmp_path: Path, moment: str) -> None:
    url = str(tmp_path / "archive.db")
    ours, others = open_archive(url), open_archive(url)
    journal = talk(ours)
    source, desk = all_sources()["journal"], ArchiveWriter(others, "box", "ann", 5)
    file, version = others.files()[0]
    if moment == "before":
        rebuild_archive(desk, all_sources(), lambda *numbers: None)
    elif moment == "half way":
        with others.write():
            writer._start_over(desk, version)
        journal.accept("said in between")
        writer.derive_version(desk, source, file, version)
        assert found(ours, "said in between") == []  # its bytes are there, its rows come with the next
    journal.note("and then")
    if moment == "after":
        rebuild_archive(desk, all_sources(), lambda *numbers: None)
        journal.note("the last")
    journal.close()
    live = [(row.seq, row.kind, row.start) for row in ours.messages(session(ours).id)]
    assert verify_archive(ours, "box", lambda *numbers: None).wrong == []
    rebuild_archive(desk, all_sources(), lambda *numbers: None)
    assert [(row.seq, row.kind, row.start) for row in ours.messages(session(ours).id)] == live
    assert [start for _, _, start in live] == sorted(start for _, _, start in live)
    ours.close()
    others.close()


def test_what_was_left_unread_is_read_when_the_journal_is_closed(tmp_path: Path) -> None:
    url = str(tmp_path / "archive.db")
    ours, others = open_archive(url), open_archive(url)
    journal = talk(ours)
    file, version = others.files()[0]
    with others.write():
        writer._start_over(ArchiveWriter(others, "box", "ann", 5), version)
    journal.accept("the last words")
    writer.derive_version(ArchiveWriter(others, "box", "ann", 5), all_sources()["journal"], file, version)
    journal.close()
    assert len(found(ours, "the last words")) == 1
    ours.close()
    others.close()


def test_a_failed_write_closes_the_journal_and_is_told(archive: SqliteStore) -> None:
    journal = Journal.open(archive, "s1", ABOUT)
    journal.accept("hello")
    archive.driver.run("PRAGMA max_page_count=1")
    with pytest.raises(EverturnError, match="the disk is full"):
        for _ in range(100):
            journal.note("x" * 5000)
    with pytest.raises(EverturnError, match="a write failed; open it again"):
        journal.accept("more")
    archive.driver.run("PRAGMA max_page_count=1000000")
    journal.close()
    assert Journal.open(archive, "s1", ABOUT).past.messages[0].parts[0].text == "hello"


def test_how_durable_it_is_was_chosen_by_name(tmp_path: Path) -> None:
    for durability, level in (("power", 2), ("process", 1)):
        store = open_archive(str(tmp_path / durability), durability)
        assert isinstance(store, SqliteStore)
        assert store.driver.one("PRAGMA synchronous") == (level,)
        store.close()
    with pytest.raises(UsageError, match="power or process"):
        open_archive(str(tmp_path / "x"), "eventually")


def test_a_server_is_asked_to_sync(postgres_url: str) -> None:
    store = open_archive(postgres_url)
    with store.driver.write():  # type: ignore[attr-defined]
        assert store.driver.one("SHOW synchronous_commit") == ("on",)  # type: ignore[attr-defined]
    store.close()


def test_the_work_of_a_message_does_not_grow_with_the_journal(archive: SqliteStore) -> None:
    """Counted in rows read and changed by SQLite, not in time."""
    journal = Journal.open(archive, "s1", ABOUT)
    steps: list[int] = []

    def note() -> bool:
        steps.append(1)
        return False

    archive.driver.connection.set_progress_handler(note, 100)
    costs = []
    for n in range(400):
        before = len(steps)
        journal.accept(f"message number {n} about {n * 7919 % 1000}")
        costs.append(len(steps) - before)
    assert sum(costs[300:]) <= 1.2 * sum(costs[100:200])
    assert len(archive.files()[0][1].state) < 100
