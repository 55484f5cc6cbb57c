"""How sessions hang together, as far as their own words can be trusted."""

from __future__ import annotations

from everturn.model.archive import Call, LinkRow, Session, SessionGrowth
from everturn.sessions.lineage import lineage
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import Store
from tests.capture.history import OTHER, SID
from tests.recall.archives import Archive, put


def say(store: Store, session: Session, *links: LinkRow, calls: tuple[Call, ...] = ()) -> None:
    with store.write():
        store.append(session.id, SessionGrowth([], [], [], list(calls), [], list(links), [], [], []))


def test_a_subagent_is_found_with_the_call_that_started_it(archive: Archive) -> None:
    child = archive.helper("abc1234", "user", "look around") + archive.helper("abc1234", "assistant", "seen")
    archive.subagent("abc1234", child)
    session = archive.take_in(
        archive.history.line("user", "please"),
        archive.use("Task", "toolu_1", prompt="look around", description="look"),
        archive.back("toolu_1", "seen", agentId="abc1234"),
    )
    (one,) = lineage(archive.store, session).children
    assert (one.relation, one.native_id) == ("subagent_of", f"{SID}/agent-abc1234")
    assert one.session is not None and one.session.kind == "subagent"
    assert one.call is not None and (one.call.call_id, one.call.turn, one.call.seq) == ("toolu_1", 0, 1)


def test_a_subagent_knows_what_it_hangs_on(archive: Archive) -> None:
    archive.subagent("abc1234", archive.helper("abc1234", "user", "look around"))
    archive.take_in(archive.history.turn("please", "yes"))
    (one,) = lineage(archive.store, resolve_session(archive.store, "agent-abc")).ancestors
    assert (one.relation, one.native_id) == ("subagent_of", SID)
    assert one.session is not None


def test_a_fork_knows_its_origin_and_the_origin_its_fork(archive: Archive) -> None:
    data = archive.history.turn("first", "one") + archive.history.turn("second", "two")
    origin = archive.take_in(data)
    fork = archive.take_in(archive.history.fork(data, OTHER), archive.history.turn("third", "three", OTHER), sid=OTHER)
    (up,) = lineage(archive.store, fork).ancestors
    assert (up.relation, up.native_id, up.shared) == ("forked_from", SID, 4)
    (down,) = lineage(archive.store, origin).forks
    assert (down.relation, down.native_id, down.shared) == ("forked_from", OTHER, 4)


def test_subagents_with_the_same_prompt_get_a_call_each_in_order_of_time(store: Store) -> None:
    parent = put(store, SID)
    links = [LinkRow(0, "spawned", "", call, hint=77) for call in ("call_b", "call_a")]
    calls = (Call(seq=1, call_id="call_b", name="Task"), Call(seq=5, call_id="call_a", name="Task"))
    say(store, parent, *links, calls=calls)
    for name, started in (("late", 900), ("early", 100)):
        child = put(store, f"{SID}/{name}", "subagent", started=started)
        say(store, child, LinkRow(0, "subagent_of", SID, hint=77))
    found = [(one.native_id, one.call.call_id if one.call else "") for one in lineage(store, parent).children]
    assert found == [(f"{SID}/early", "call_b"), (f"{SID}/late", "call_a")]


def test_a_child_that_is_not_in_the_archive_keeps_its_id(store: Store) -> None:
    parent = put(store, SID)
    say(store, parent, LinkRow(0, "spawned", f"{SID}/agent-gone", "call_1"), calls=(Call(call_id="call_1"),))
    (one,) = lineage(store, parent).children
    assert (one.native_id, one.session, one.call is not None) == (f"{SID}/agent-gone", None, True)


def test_a_saved_output_hangs_on_its_call(store: Store) -> None:
    parent = put(store, SID)
    say(store, parent, calls=(Call(seq=3, call_id="call_1"),))
    output = put(store, f"{SID}/call_1.txt", "output")
    say(store, output, LinkRow(0, "output_of", SID, "call_1"))
    (one,) = lineage(store, parent).children
    assert (one.relation, one.call.seq if one.call else None) == ("output_of", 3)


def test_sessions_that_name_each_other_in_a_circle_do_not_hang_us(store: Store) -> None:
    rows = [put(store, name) for name in ("a", "b", "c")]
    for row, above in zip(rows, ("b", "c", "a"), strict=True):
        say(store, row, LinkRow(0, "continues", above))
    assert [one.native_id for one in lineage(store, rows[0]).ancestors] == ["b", "c"]


def test_a_session_that_names_itself_has_no_relatives(store: Store) -> None:
    row = put(store, "a")
    say(store, row, LinkRow(0, "subagent_of", "a"), LinkRow(0, "forked_from", "a"))
    found = lineage(store, row)
    assert (found.ancestors, found.forks, found.children) == ([], [], [])


def test_an_older_edition_of_a_child_is_no_second_child(store: Store) -> None:
    parent = put(store, SID)
    for _ in range(2):
        say(store, put(store, f"{SID}/agent-1", "subagent", path="/agent-1"), LinkRow(0, "subagent_of", SID))
    (one,) = lineage(store, parent).children
    assert one.session is not None and one.session.state == "current"
