"""The contract of a store, second part: sessions and what is in them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.errors import UnknownSession, UsageError
from everturn.model.archive import Artifact, CensusRow, LinkRow, ProblemRow, Session, SessionText, TakenBack
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from tests.store.building import NOON, answer, growth_of, look_for, new_session, new_version, prompt, result, tell


def test_a_session_is_found_by_its_version_and_native_id(store: Store) -> None:
    version = new_version(store)
    row = Session(agent="a", native_id="n", version=version, kind="subagent", parent="p", machine="m", owner="o")
    with store.write():
        made = store.open_session(row)
        again = store.open_session(replace(row, kind="main"))
        other = store.open_session(replace(row, native_id="n2"))
    assert made == again == replace(row, id=made.id)
    assert other.id > made.id
    assert store.session(made.id) == (made, SessionText(made.id))
    assert store.sessions_in(version) == store.sessions_of("a", "n") + store.sessions_of("a", "n2")


def test_main_sessions_and_subagents_are_listed_once(store: Store) -> None:
    main, child = new_session(store, "one"), new_session(store, "two", kind="subagent", parent="one")
    listed = store.listed_sessions()
    assert {number: (row.session, row.kind) for number, row in listed.items()} == {
        main: (main, "main"),
        child: (child, "subagent"),
    }
    assert store.listed_sessions([child]) == {child: listed[child]}


def test_the_calls_of_a_session_are_counted_by_turn_and_kind(store: Store) -> None:
    session, other = new_session(store), new_session(store, "two")
    assert store.work(session) == []
    tell(
        store, session, prompt("a"), answer("b", 2, "c1", 10), result("c1", "x"), answer("b", 3, "c2", 11), prompt("c")
    )
    tell(store, session, prompt("d"), answer("e", 5, "c3", 12))
    tell(store, other, prompt("a"), answer("b", 2, "c1", 10))
    by_turn = [(call.turn, call.kind) for call in store.calls(session)]
    assert len(by_turn) == 3
    assert store.work(session) == [(*pair, by_turn.count(pair)) for pair in sorted(set(by_turn))]


def test_a_session_that_is_not_there_is_unknown(store: Store) -> None:
    with pytest.raises(UnknownSession):
        store.session(5)
    assert store.tail(5).next_seq == 0


def test_rows_come_back_as_they_were_grown(store: Store) -> None:
    session = new_session(store)
    growth = growth_of(
        store, session, [prompt("list it", 1), answer("yes", 2, "c1", 10), result("c1", "a.py", 3), answer("done", 4)]
    )
    growth.artifacts = [Artifact(0, 1, 1, 0, 0, "read", "/a.py"), Artifact(0, 1, 1, 1, 0, "edited", "/b.py")]
    growth.links = [LinkRow(0, "subagent_of", "up", "c9", 1 << 62)]
    with store.write():
        store.append(session, growth)
    assert list(store.messages(session)) == growth.messages
    assert store.turns(session) == growth.turns
    assert store.steps(session) == growth.steps
    assert store.calls(session) == growth.calls
    assert store.artifacts(session) == growth.artifacts
    assert store.links(session) == store.links_to("up") == [LinkRow(session, "subagent_of", "up", "c9", 1 << 62)]
    assert {row.session for row in growth.messages} == {session}


def test_counters_follow_the_rows(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("go", at=NOON + 5), answer("", None, "c1", 10), answer("", None, "c2", 100))
    row = store.session(session)[0]
    assert (row.n_messages, row.n_turns, row.n_steps, row.n_calls, row.n_errors) == (3, 1, 2, 2, 0)
    assert (row.n_prompts, row.tokens_in, row.tokens_cache_write, row.model) == (1, 110, 110, "m1")
    assert (row.started, row.ended) == (NOON, NOON + 5)
    tell(store, session, result("c1", failed=True), result("c2"), answer("end", tokens=1, at=NOON + 9, model="m2"))
    row = store.session(session)[0]
    assert (row.n_messages, row.n_turns, row.n_steps, row.n_calls, row.n_errors) == (6, 1, 3, 2, 1)
    assert (row.tokens_out, row.model, row.ended) == (111, "m2", NOON + 9)


def test_a_result_after_its_turn_is_counted_in_the_turn_of_the_call(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("one"), answer("", None, "c1"), prompt("two"), answer("two"))
    tell(store, session, result("c1", failed=True))
    assert [(turn.n_calls, turn.n_errors) for turn in store.turns(session)] == [(1, 1), (0, 0)]
    assert store.session(session)[0].n_errors == 1


def test_an_orphan_is_not_a_call_and_goes_when_the_call_turns_up(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("one"), result("c1"))
    assert [call.status for call in store.calls(session)] == ["orphan"]
    assert store.session(session)[0].n_calls == 0
    assert list(store.tail(session).open_calls) == ["c1"]
    tell(store, session, answer("", None, "c1"))
    assert [(call.seq, call.status) for call in store.calls(session)] == [(2, "ok")]
    assert store.session(session)[0].n_calls == 1
    assert store.tail(session).open_calls == {}


def test_a_tail_is_all_that_is_needed_to_go_on(store: Store) -> None:
    session = new_session(store)
    assert store.tail(session).next_seq == 0
    tell(store, session, prompt("one"), answer("a", None, "c1"), answer("b", None, "c2"), result("c1"))
    tail = store.tail(session)
    assert (tail.next_seq, tail.next_turn, tail.next_step) == (4, 1, 2)
    assert tail.turn == store.turns(session)[-1]
    assert tail.step == store.steps(session)[-1]
    assert {name: [call.seq for call in calls] for name, calls in tail.open_calls.items()} == {"c2": [2]}
    assert [step.provider_id for step in tail.recent] == ["a", "b"]


def test_a_part_of_a_session_can_be_asked_for(store: Store) -> None:
    session = new_session(store)
    for n in range(4):
        tell(store, session, prompt(f"p{n}"), answer(f"a{n}", None, f"c{n}"), result(f"c{n}"))
    assert [row.seq for row in store.messages(session, 3, 5)] == [3, 4, 5]
    assert [row.seq for row in store.messages(session, 10)] == [10, 11]
    assert list(store.messages(session, 12)) == []
    assert [turn.idx for turn in store.turns(session, 1, 2)] == [1, 2]
    assert [turn.idx for turn in store.turns(session, 3)] == [3]
    assert [step.turn for step in store.steps(session, 2)] == [2]
    assert [call.call_id for call in store.calls(session, 2)] == ["c2"]
    assert not store.calls(session, 9)
    assert not store.steps(session, 9)


def test_a_long_session_is_streamed_whole(store: Store) -> None:
    session = new_session(store)
    tell(store, session, *[prompt(f"p{n}", n) for n in range(2500)])
    assert [row.fingerprint for row in store.messages(session)] == list(range(2500))
    # Others may be asked, and written to, while one is read.
    seen = 0
    for row in store.messages(session):
        if row.seq in (0, 1500):
            tell(store, session, prompt("more"))
        seen += 1
    assert seen >= 2500


def test_text_that_no_database_takes_does_not_stop_a_session(store: Store) -> None:
    session = new_session(store)
    growth = growth_of(store, session, [prompt("a\ud800b\0c"), answer("x", None, "call\udcff")])
    growth.artifacts = [Artifact(0, 1, 1, n, 0, "read", path) for n, path in enumerate(("/a", "/b\udcff", "/c"))]
    with store.write():
        store.append(session, growth)
        store.set_text(SessionText(session, title="t\udc00"))
    assert [row.path[:2] for row in store.artifacts(session)] == ["/a", "/b", "/c"]
    assert store.session(session)[1].title[0] == "t"
    assert {hit.seq for hit in look_for(store, "b")} == {0}


# what a session is about ------------------------------------------------------------------------------------------


def test_the_text_of_a_session_is_replaced(store: Store) -> None:
    session = new_session(store)
    text = SessionText(session, "Old name", 1, "about apples", "/home/me/repo", "main", "first", "t", "n")
    with store.write():
        store.set_text(text)
    assert store.session(session)[1] == text
    assert [hit.seq for hit in look_for(store, "apples")] == [-1]
    with store.write():
        store.set_text(replace(text, summary="about pears"))
    assert look_for(store, "apples") == []
    assert [hit.seq for hit in look_for(store, "old pears")] == [-1]
    with store.write():
        store.set_text(SessionText(session))
    assert look_for(store, "pears") == []


def test_links_are_replaced_by_their_key(store: Store) -> None:
    session = new_session(store)
    for _ in range(2):
        growth = growth_of(store, session, [prompt("x")])
        growth.links = [LinkRow(0, "spawned", "child", "c1"), LinkRow(0, "spawned", "child", "c2")]
        with store.write():
            store.append(session, growth)
    assert [(row.native_id, row.call_id) for row in store.links(session)] == [("child", "c1"), ("child", "c2")]


# lists ------------------------------------------------------------------------------------------------------------


def put(store: Store, native_id: str, started: int | None, ended: int | None, **text: str) -> int:
    session = new_session(store, native_id)
    with store.write():
        store.set_session(session, started=started, ended=ended)
        if text:
            store.set_text(SessionText(session, **text))  # type: ignore[arg-type]
    return session


def names(store: Store, wanted: SessionFilter, limit: int = 50) -> list[str]:
    rows = store.sessions(wanted, limit)[0]
    assert store.count_sessions(wanted) == len(rows)
    return [session.native_id for session, _ in rows]


def test_sessions_are_listed_newest_first_page_by_page(store: Store) -> None:
    for number, ended in enumerate((5, 9, None, 9, 1, None, 7)):
        put(store, f"s{number}", 0, ended)
    seen: list[str] = []
    cursor = ""
    while True:
        rows, cursor = store.sessions(SessionFilter(), 2, cursor)
        seen += [session.native_id for session, _ in rows]
        if not cursor:
            break
        assert len(rows) == 2
    assert seen == ["s3", "s1", "s6", "s0", "s4", "s5", "s2"]


def test_a_cursor_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(UsageError):
        store.sessions(SessionFilter(), 2, "nonsense")


def test_a_page_that_is_exactly_full_is_the_last(store: Store) -> None:
    put(store, "s0", 0, 1)
    assert store.sessions(SessionFilter(), 1)[1] == ""


def test_sessions_can_be_filtered(store: Store) -> None:
    put(store, "old", 10, 20, title="Fix the Parser", workspace="/home/me/Repo_1", first_prompt="please")
    put(store, "new", 30, 40, summary="100% done", workspace="/srv/x", first_prompt="ÄRGER im Parser")
    put(store, "none", None, None)
    child = put(store, "child", 30, 40)
    with store.write():
        store.set_session(child, kind="subagent", machine="box", owner="me")
    assert names(store, SessionFilter(text="parser")) == ["new", "old"]
    assert names(store, SessionFilter(text="ärger")) == ["new"]
    assert names(store, SessionFilter(text="100%")) == ["new"]
    assert names(store, SessionFilter(text="%")) == ["new"]
    assert names(store, SessionFilter(workspace="repo_1")) == ["old"]
    assert names(store, SessionFilter(workspace="repo_")) == []  # a folder, not a part of its name
    assert names(store, SessionFilter(workspace="repo-")) == []
    assert names(store, SessionFilter(since=21)) == ["new"]
    assert names(store, SessionFilter(until=30)) == ["old"]
    assert names(store, SessionFilter(kinds=())) == ["child", "new", "old", "none"]
    assert names(store, SessionFilter(kinds=("subagent",), machine="box", owner="me")) == ["child"]
    assert names(store, SessionFilter(kinds=("subagent",), machine="other")) == []
    assert names(store, SessionFilter(agent="agent")) == ["new", "old", "none"]
    assert names(store, SessionFilter(agent="another")) == []


def test_superseded_sessions_are_listed_on_request(store: Store) -> None:
    for _ in range(2):
        new_session(store, "one", new_version(store, "/a"))
    assert [row.state for row in store.sessions_of("agent", "one")] == ["superseded", "current"]
    assert len(names(store, SessionFilter())) == 1
    assert len(names(store, SessionFilter(states=("superseded",)))) == 1
    assert len(names(store, SessionFilter(states=()))) == 2


def test_sessions_are_found_by_the_start_of_their_id(store: Store) -> None:
    for native_id in ("abc-1", "abd-2", "ABC-3", "abc-1/agent-xyz", "abc-1/x/agent-q", "a%c"):
        new_session(store, native_id)

    def like(prefix: str, limit: int = 20) -> list[str]:
        return [session.native_id for session in store.sessions_like(prefix, limit)]

    assert like("abc") == ["abc-1/x/agent-q", "abc-1/agent-xyz", "abc-1"]
    assert like("agent-x") == ["abc-1/agent-xyz"]
    assert like("x/agent") == []
    assert like("a%") == ["a%c"]
    assert like("A_C") == []
    assert like("ab", 2) == ["abc-1/x/agent-q", "abc-1/agent-xyz"]


def test_the_sessions_beside_one_are_the_next_in_order_of_the_same_agent(store: Store) -> None:
    for native_id in ("b", "B", "b/agent-1", "c", "ä", "a"):
        new_session(store, native_id, kind="subagent" if "/" in native_id else "main")
    new_session(store, "bb", agent="other")
    agent = store.sessions_like("c")[0].agent
    assert store.neighbours(agent, "b") == ("a", "c")
    assert store.neighbours(agent, "B") == ("", "a")
    assert store.neighbours(agent, "not there") == ("c", "ä")
    assert store.neighbours("nobody", "b") == ("", "")


# dropping and deleting --------------------------------------------------------------------------------------------


def test_dropping_what_was_derived_keeps_the_bytes_and_the_ids(store: Store) -> None:
    version = new_version(store)
    session = new_session(store, "one", version, kind="subagent", client="1.0")
    tell(store, session, prompt("hello"), answer("x", None, "c1"))
    with store.write():
        store.append_raw(version, 0, b"raw")
        store.set_text(SessionText(session, title="world"))
        store.add_problems([ProblemRow(version, 0, 1, "k", "r")])
        store.add_census([CensusRow(version, "t", "", "message", 1)])
        store.set_version(version, parsed=3, parser=4, state=b"s", lines=5, glued=1)
        store.drop_derived(version)
    for part in (store.messages, store.turns, store.steps, store.calls, store.artifacts, store.links):
        assert not list(part(session))
    assert not [*store.problems(), *store.census(), *look_for(store, "hello OR world")]
    assert store.session(session) == (
        Session(session, "agent", "one", version, kind="", state="current"),
        SessionText(session),
    )
    row = store.version(version)
    assert (row.parsed, row.parser, row.state, row.lines, row.glued) == (0, 0, b"", 0, 0)
    assert store.read_raw(version, 0, 3) == b"raw"
    with store.write():
        again = store.open_session(Session(agent="agent", native_id="one", version=version, kind="main", client="2.0"))
    assert (again.id, again.kind, again.client) == (session, "main", "2.0")
    assert store.session(session)[0] == again
    tell(store, session, prompt("hello"))
    assert [hit.seq for hit in look_for(store, "hello")] == [0]


def test_a_deleted_file_leaves_nothing(store: Store) -> None:
    versions = [new_version(store, "/a") for _ in range(2)]
    for version in versions:
        session = new_session(store, "one", version)
        tell(store, session, prompt("hello", 1), answer("x", 2, "c1"))
        with store.write():
            store.append_raw(version, 0, b"raw %d" % version)
            store.set_text(SessionText(session, title="world"))
            store.add_problems([ProblemRow(version, 0, 1, "k", "r")])
            store.add_census([CensusRow(version, "t", "", "message", 1)])
    other = new_session(store, "two")
    tell(store, other, prompt("hello"))
    with store.write():
        store.delete_file(store.version(versions[0]).source)
    assert [file.path for file, _ in store.files()] == ["/two"]
    assert names(store, SessionFilter(states=(), kinds=())) == ["two"]
    assert {hit.session for hit in look_for(store, "hello OR world")} == {other}
    assert not [*store.problems(), *store.census()]
    assert [store.chunks(version) for version in versions] == [[], []]
    assert store.check().problems == []


def test_scrubbing_changes_nothing_that_can_be_seen(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("apple"), prompt("pear"))
    store.scrub()
    assert sorted(hit.seq for hit in look_for(store, "pear OR apple")) == [0, 1]
    assert len(list(store.messages(session))) == 2


def test_messages_that_were_taken_back_are_marked_once_and_so_are_turns_without_others(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("a"), answer("b"), prompt("c"), answer("d", call="c1"))
    with store.write():
        growth = growth_of(store, session, [prompt("e"), answer("f")])
        growth.taken_back = [TakenBack(2, 3, 4)]
        store.append(session, growth)
    with store.write():
        growth = growth_of(store, session, [prompt("g")])
        growth.taken_back = [TakenBack(0, 5, 6)]
        store.append(session, growth)
    assert [row.taken_back for row in store.messages(session)] == [6, 6, 4, 4, 6, 6, 0]
    assert [turn.taken_back for turn in store.turns(session)] == [1, 1, 1, 0]
    found = store.taken_back_turns()
    assert [(turn.session, turn.idx, turn.n_calls) for turn in found] == [
        (session, 0, 0),
        (session, 1, 1),
        (session, 2, 0),
    ]
    assert store.taken_back_turns(AnalyticsScope(only=(session + 1,))) == []
    assert store.taken_back_turns(AnalyticsScope(SessionFilter(agent="nobody"))) == []
