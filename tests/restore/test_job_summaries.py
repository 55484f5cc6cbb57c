"""Summaries of models are kept with model, prompts and cost, and are erased with their session."""

from __future__ import annotations

from pathlib import Path

from everturn.capture.sync import writer_for
from everturn.llm.protocol import Receipt, ReplyTokens
from everturn.maintenance.forget import forget_sessions
from everturn.model.archive import KeptRow, Session
from everturn.restore.document import Document
from everturn.restore.job import SUMMARY_KIND, is_stale, keep_summary, kept_summaries
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import Store
from tests.capture.history import SOURCES, job
from tests.recall.archives import Archive

RECEIPT = Receipt("local", "model-1", "synthesis", ReplyTokens(100, 20), 1, 5, 900, "end")


def document(session: Session, **more: object) -> Document:
    fields = {"model": "local/model-1", "prompt_version": "p1", "turns": 3, "last_seq": session.n_messages - 1}
    return Document(session.id, session.native_id, receipts=(RECEIPT,), **{**fields, **more})  # type: ignore[arg-type]


def test_a_summary_comes_back_with_all_that_is_known_about_it(store: Store, session: Session) -> None:
    keep_summary(store, session, document(session), "the text", at=1000)
    (found,) = kept_summaries(store, session)
    assert (found.model, found.prompt_version, found.turns, found.last_seq) == ("local/model-1", "p1", 3, 11)
    assert (found.text, found.at) == ("the text", 1000)
    assert found.receipts[0]["usage"]["input"] == 100
    assert not is_stale(session, found)


def test_the_same_model_over_the_same_turns_replaces_what_it_made(store: Store, session: Session) -> None:
    keep_summary(store, session, document(session), "old", at=1)
    keep_summary(store, session, document(session), "new", at=2)
    keep_summary(store, session, document(session, prompt_version="p2"), "with other prompts", at=3)
    assert [one.text for one in kept_summaries(store, session)] == ["with other prompts", "new"]


def test_a_newer_turn_makes_a_summary_stale(store: Store, tmp_path: Path) -> None:
    archive = Archive(store, tmp_path / "agent")
    session = archive.take_in(archive.history.turn("a question", "an answer"))
    keep_summary(store, session, document(session, turns=1), "the text", at=1)
    archive.history.grow(archive.history.turn("one more", "fine"))
    grown = archive.take_in()
    (found,) = kept_summaries(store, grown)
    assert is_stale(grown, found) and found.turns == 1


def test_what_cannot_be_read_is_left_out(store: Store, session: Session) -> None:
    with store.write():
        store.keep(KeptRow(SUMMARY_KIND, session.agent, session.native_id, "x", "no json", 0))
        store.keep(KeptRow(SUMMARY_KIND, "somebody", session.native_id, "x", "{}", 0))
    assert kept_summaries(store, session) == []


def test_forgetting_a_session_erases_what_was_kept_about_it(store: Store, tmp_path: Path) -> None:
    archive = Archive(store, tmp_path / "agent")
    session = archive.take_in(archive.history.turn("a question", "an answer"))
    keep_summary(store, session, document(session), "the canary sings", at=1)
    with store.write():
        store.keep(KeptRow("turn_summary", session.agent, session.native_id, "1", '"canary"', 0))
        store.keep(KeptRow("note", session.agent, "another", "1", '"stays"', 0))
    forget_sessions(writer_for(job(store, archive.history)), SOURCES, [session])
    assert [row.value for row in store.kept()] == ['"stays"']


def test_summaries_of_a_fork_go_with_the_messages_it_inherited(store: Store, tmp_path: Path) -> None:
    from tests.capture.history import OTHER, SID

    archive = Archive(store, tmp_path / "agent")
    first = archive.history.turn("a question", "an answer")
    archive.history.write(first)
    fork = archive.take_in(archive.history.fork(first, OTHER), archive.history.turn("on", "yes", OTHER), sid=OTHER)
    keep_summary(store, fork, document(fork), "quotes the question", at=1)
    forget_sessions(writer_for(job(store, archive.history)), SOURCES, [resolve_session(store, SID)])
    assert kept_summaries(store, fork) == []
