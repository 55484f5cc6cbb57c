"""The state of sessions taken in by a real sync: every item with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from everturn.capture.policy import Policy
from everturn.derive.session_state import SessionState, unanswered_questions, unresolved_failures
from everturn.derive.state_yaml import as_yaml, prune_state
from everturn.model.archive import KeptRow, Session
from everturn.model.vocabulary import SESSION_KINDS
from everturn.sessions.state import continue_state, session_state
from everturn.store.contract import SessionFilter, Store, open_store
from everturn.text.tokens import fits_tokens
from tests.capture.history import OTHER, SID, SOURCES, WORKSPACE, run
from tests.recall.archives import AGENT, Archive
from tests.transcripts import write_history


def state_of(archive: Archive, session: Session) -> SessionState:
    return session_state(archive.store, SOURCES, session)


def evidence(state: SessionState) -> Iterator[tuple[int, int]]:
    """(turn, seq) of everything the state holds."""
    lists = (
        state.requests, state.files.values(), state.decisions, state.constraints, state.errors, state.commands,
        state.commits, state.plan, state.questions, state.next_steps,
    )  # fmt: skip
    for items in lists:
        yield from ((one.turn, one.seq) for one in items)
    yield from ((one.last_turn, one.last_seq) for one in state.errors)
    yield from ((one.resolved_by, one.resolved_seq or 0) for one in state.errors if one.resolved_by is not None)


def test_a_session_is_told_in_facts(archive: Archive) -> None:
    history = archive.history
    session = archive.take_in(
        history.line("user", "Build the shop.\nNever use an ORM."),
        archive.use("Bash", "c1", command="make test"),
        archive.back("c1", "Exit code 2\nError: no rule", failed=True),
        archive.use("Write", "c2", file_path=f"{WORKSPACE}/Makefile", content="test:"),
        archive.back("c2", "File created successfully at: Makefile"),
        archive.use("Bash", "c3", command="make test 2>&1"),
        archive.back("c3", "ok"),
        archive.use("Bash", "c4", command='git add . && git commit -m "Add tests"'),
        archive.back("c4", "[main 1a2b3c4] Add tests\n 1 file changed"),
        archive.use("TodoWrite", "c5", todos=[{"content": "docs", "status": "pending", "activeForm": "x"}]),
        archive.back("c5", "ok"),
        history.line("assistant", [{"type": "text", "text": "Done.\n\nShall I write the docs?"}]),
        history.turn("Paint it blue\nplease", "I could not.\n\n## Next steps\n\n- buy paint"),
        archive.use("Bash", "c6", command="paint blue"),
        archive.back("c6", "Exit code 1\npaint: command failed", failed=True),
    )
    state = state_of(archive, session)
    assert (state.id, state.workspace, state.model, state.turn_count) == (SID, WORKSPACE, "model-1", 2)
    assert (state.total_tokens, state.token_source) == (5 * 8, "api")
    assert state.goal and state.goal.text == "Build the shop. Never use an ORM."
    assert state.current_focus == "Paint it blue"
    assert [(one.text, one.kind) for one in state.constraints] == [("Never use an ORM.", "imperative")]
    assert [(one.path, one.action, one.turn) for one in state.files.values()] == [("Makefile", "created", 0)]
    assert [(one.hash, one.subject) for one in state.commits] == [("1a2b3c4", "Add tests")]
    assert [(one.what, one.text, one.resolved_by) for one in state.errors] == [
        ("make test", "Error: no rule", 0),
        ("paint blue", "paint: command failed", None),
    ]
    assert state.errors[0].between == ("Makefile",)
    assert [one.what for one in unresolved_failures(state)] == ["paint blue"]
    assert [(one.text, one.status) for one in state.plan] == [("docs", "open")]
    assert [(one.text, one.answered_by) for one in state.questions] == [("Shall I write the docs?", 1)]
    assert [one.text for one in state.next_steps] == ["buy paint"]
    assert [one.exit_status for one in state.commands][-1] == 1
    assert state.covers == session.n_messages - 1


def test_a_state_carried_on_is_that_of_the_whole(archive: Archive) -> None:
    history = archive.history
    first = history.tool_turn("Build it.", "make", "ok") + history.turn("Always test.", "Yes. Shall I?")
    session = archive.take_in(first)
    before = state_of(archive, session)
    history.grow(history.turn("yes", "Done.") + history.tool_turn("again", "make", "ok"))
    session = archive.take_in()
    after = continue_state(archive.store, SOURCES, session, before)
    assert after == state_of(archive, session) != before
    assert unanswered_questions(before) and not unanswered_questions(after)


def test_a_turn_that_grew_is_folded_anew(archive: Archive) -> None:
    history = archive.history
    session = archive.take_in(history.turn("Build it.", "Working."))
    before = state_of(archive, session)
    history.grow(history.line("assistant", [{"type": "text", "text": "Shall I push?"}]))
    session = archive.take_in()
    after = continue_state(archive.store, SOURCES, session, before)
    assert after == state_of(archive, session)
    assert [one.text for one in unanswered_questions(after)] == ["Shall I push?"]


def test_a_fork_knows_the_past_it_inherited(archive: Archive) -> None:
    history = archive.history
    past = history.turn("Never push.", "Understood.")
    archive.take_in(past)
    fork = archive.take_in(history.fork(past, OTHER) + history.turn("Go on.", "Yes.", OTHER), sid=OTHER)
    state = state_of(archive, fork)
    assert fork.n_inherited
    assert [one.text for one in state.constraints] == ["Never push."]
    assert state.goal and state.goal.text == "Never push."


def test_files_of_subagents_count_where_they_were_sent_out(archive: Archive) -> None:
    history = archive.history
    edit = {"type": "tool_use", "id": "e1", "name": "Edit", "input": {"file_path": f"{WORKSPACE}/a.py"}}
    look = {"type": "tool_use", "id": "e2", "name": "Read", "input": {"file_path": f"{WORKSPACE}/b.py"}}
    archive.subagent(
        "abc123",
        archive.helper("abc123", "user", "do it"),
        archive.helper("abc123", "assistant", [edit]),
        archive.helper("abc123", "user", [{"type": "tool_result", "tool_use_id": "e1", "content": "updated"}]),
        archive.helper("abc123", "assistant", [look]),
        archive.helper("abc123", "user", [{"type": "tool_result", "tool_use_id": "e2", "content": "text"}]),
    )
    session = archive.take_in(
        history.turn("Hello", "Hello."),
        history.line("user", "Send somebody."),
        archive.use("Task", "c1", prompt="do it", description="d", subagent_type="t"),
        archive.back("c1", "done", agentId="abc123", status="completed"),
    )
    files = state_of(archive, session).files
    assert [(one.path, one.action, one.turn, one.by) for one in files.values()] == [("a.py", "edited", 1, "subagent")]


def test_what_somebody_pinned_is_a_constraint(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("Hello", "Hello."))
    with archive.store.write():
        archive.store.keep(KeptRow("pin", AGENT, SID, "1", '"The API is frozen."'))
        archive.store.keep(KeptRow("pin", AGENT, SID, "2", '{"text": "No network."}'))
        archive.store.keep(KeptRow("pin", "another", SID, "3", '"not ours"'))
    pins = [one for one in state_of(archive, session).constraints if one.pinned]
    assert [one.text for one in pins] == ["The API is frozen.", "No network."]


def test_without_words_there_is_a_state_of_numbers(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("Never push.", "make", "ok"), policy=Policy(mode="structure"))
    state = state_of(archive, session)
    assert (state.turn_count, state.goal, state.constraints) == (1, None, ())


def test_text_of_the_client_is_nobodys_wish(archive: Archive) -> None:
    history = archive.history
    session = archive.take_in(
        history.line("user", "Caveat: never answer this.", isMeta=True), history.turn("Hello", "Never use tabs.")
    )
    state = state_of(archive, session)
    assert state.constraints == ()
    assert state.goal and state.goal.text == "Hello"


def test_every_item_of_made_up_histories_rests_on_a_message_of_its_turn(tmp_path: Path) -> None:
    archive = Archive(open_store("memory:"), tmp_path / "agent")
    write_history(archive.history.root, seed=3, sessions=6, turns=13)
    with closing(archive.store) as store:
        run(store, archive.history)
        for session in _sessions(store):
            state = session_state(store, SOURCES, session)
            turns = {row.seq: row.turn for row in store.messages(session.id)}
            assert all(turns[seq] == turn for turn, seq in evidence(state))
            assert state.turn_count == session.n_turns and state.covers == session.n_messages - 1
            assert msgspec.json.decode(msgspec.json.encode(state), type=SessionState) == state
            assert fits_tokens(as_yaml(prune_state(state)), 1000)


def _sessions(store: Store) -> list[Session]:
    return [session for session, _ in store.sessions(SessionFilter(kinds=SESSION_KINDS), 500)[0]]
