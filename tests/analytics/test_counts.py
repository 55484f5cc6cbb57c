"""Every number of the plane is right after whatever happened to the archive, and costs what has changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.analytics import counts as plane
from everturn.derive.trails import pack, turns_of, unpack
from everturn.model.analytics import ARROW, EDGE, Trail, bucket_of, bucket_start
from everturn.model.archive import Call, Session, Step, Turn
from everturn.model.conversation import Message, TokenUsage
from everturn.store.contract import AnalyticsScope, SessionFilter, Store, open_store
from everturn.store.sql import CALLS, SESSIONS, STEPS, TURNS
from everturn.store.sqlite import SqliteStore, open_sqlite
from tests.analytics.histories import chain, fill, session
from tests.analytics.tool_sessions import rows, stored, told, working
from tests.quick import QUICK
from tests.store.building import NOON, answer, new_session, new_version, prompt, tell


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    yield opened
    opened.close()


def one_of(store: Store, table: str, *key: int | str) -> list[int]:
    return rows(store)[table][key]


# what the numbers mean --------------------------------------------------------------------------------------------


def test_a_tool_is_counted_with_its_errors_its_place_and_its_time(store: Store) -> None:
    told(store, new_session(store, "a"), "Read Read", "Edit!", "Read", "Bash?")
    told(store, new_session(store, "b"), "Read")
    plane.catch_up(store)
    by_name = {row.tool: row for row in plane.read_counts(store, AnalyticsScope()).tools()}
    read, edit, bash = by_name["Read"], by_name["Edit"], by_name["Bash"]
    assert (read.n, read.errors, read.sessions, read.turns, read.parallel, read.position) == (4, 0, 2, 2, 2, 2)
    assert (read.timed, read.duration_ms, edit.errors, bash.open, bash.timed) == (4, 2000, 1, 1, 0)
    counts = plane.read_counts(store, AnalyticsScope())
    assert counts.positions("Read") == {0: (3, 0), 2: (1, 0)}
    assert counts.failures() == {("Edit", "other"): (1, 1)}
    assert plane.percentile(counts.times("Read"), 0.5) == bucket_start(bucket_of(500))
    assert counts.lengths() == {1: (1, 0), 5: (1, 1)}
    assert [counts.total(what) for what in ("sessions", "turns", "calls", "errors", "batches", "parallel")] == [
        2, 2, 6, 1, 5, 1,
    ]  # fmt: skip


def test_a_path_takes_a_repeated_tool_as_one_step(store: Store) -> None:
    told(store, new_session(store), "Read Read", "Read", "Edit", "Bash!")
    plane.catch_up(store)
    (path,) = plane.read_counts(store, AnalyticsScope()).paths(3)
    assert (path.steps, path.n, path.sessions, path.turns, path.errors) == (("Read", "Edit", "Bash"), 1, 1, 1, 1)
    assert (path.position, path.repeated) == (0, (1, 0, 0))
    counts = plane.read_counts(store, AnalyticsScope())
    assert [counts.total(f"path{length}") for length in range(1, 7)] == [3, 2, 1, 0, 0, 0]
    assert {path.steps for path in counts.paths(2)} == {("Read", "Edit"), ("Edit", "Bash")}


def test_a_path_never_crosses_a_turn(store: Store) -> None:
    session = new_session(store)
    told(store, session, "Read")
    told(store, session, "Edit")
    assert {key for key in rows(store)["tool_path"] if key[0] != 1} == set()


def test_pairs_tell_what_follows_what_stands_beside_and_what_is_tried_after_a_failure(store: Store) -> None:
    told(store, new_session(store), "Read Grep Read", "Edit!", "Read")
    pairs = rows(store)["tool_pair"]
    assert pairs["next", EDGE, "Read"][0] == pairs["next", EDGE, "Grep"][0] == 1
    assert pairs["next", "Read", "Edit"] == [1, 1, 1] and pairs["next", "Grep", "Edit"] == [1, 1, 1]
    assert pairs["next", "Read", EDGE] == [1, 0, 1]
    assert pairs["parallel", "Read", "Read"] == [1, 0, 1] and pairs["parallel", "Grep", "Read"] == [2, 0, 1]
    assert pairs["recovery", "Edit", "Read"] == [1, 0, 1]


def test_a_failed_call_is_retried_by_the_next_batch_that_uses_its_tool(store: Store) -> None:
    session = new_session(store)
    told(store, session, "Edit! Edit", "Read", "Edit Edit", "Edit")
    plane.catch_up(store)
    ((_, trail),) = store.trails()
    ((_, uses),) = turns_of(trail)
    assert [(use.tool, use.batch, use.number, use.retry_of) for use in uses] == [
        ("Edit", 0, 0, -1), ("Edit", 0, 1, -1), ("Read", 1, 0, -1), ("Edit", 2, 0, 0), ("Edit", 2, 1, -1), ("Edit", 3, 0, -1),
    ]  # fmt: skip
    assert one_of(store, "tool_total", "Edit")[5] == 1


def test_what_a_fork_repeats_is_counted_once_and_what_it_adds_in_its_place(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    shared = working("Read", "Edit")
    longer = [*shared, *working("Bash", "Read")[1:]]  # the same turn goes on
    tell(store, first, *shared)
    tell(store, fork, *longer)
    found = rows(store)
    assert found["tool_total"]["Read",][:1] == [2] and found["tool_total"]["Edit",][:1] == [1]
    assert found["tool_path"][2, ARROW.join(("Read", "Edit"))][0] == 1
    assert found["tool_path"][3, ARROW.join(("Read", "Edit", "Bash"))][0] == 1
    assert found["tool_position"]["Bash", 2] == [1, 0]
    ((_, _), (_, trail)) = store.trails()
    ((_, uses),) = turns_of(trail)
    assert [use.own for use in uses] == [False, False, True, True]


def test_subagents_are_counted_apart(store: Store) -> None:
    told(store, new_session(store, "main"), "Task")
    told(store, new_session(store, "sub", kind="subagent"), "Read", "Task")
    assert {key[0]: row[0] for key, row in rows(store)["tool_total"].items()} == {"Task": 2, "Read": 1}
    own = rows(store, AnalyticsScope(subagents=False))["tool_total"]
    assert {key[0]: row[0] for key, row in own.items()} == {"Task": 1}
    assert [session for session, _ in store.trails(AnalyticsScope(subagents=False))] == [1]


def test_a_choice_of_sessions_is_counted_as_the_totals_are(store: Store) -> None:
    for n in range(12):
        told(store, new_session(store, f"s{n}", kind="subagent" if n % 3 == 0 else "main"), *_random_turn(n))
    everything = rows(store)
    assert rows(store, AnalyticsScope(only=tuple(range(1, 13)))) == everything
    assert rows(store, AnalyticsScope(sessions=SessionFilter(since=0))) == everything
    assert rows(store, AnalyticsScope(only=()))["tool_total"] == {}
    for least in (2, 3, 5):
        kept = {key: row for key, row in everything["tool_path"].items() if row[0] >= least}
        for scope in (AnalyticsScope(), AnalyticsScope(only=tuple(range(1, 13)))):
            assert plane.read_counts(store, scope, ("tool_path",), least).tables["tool_path"] == kept


def _random_turn(seed: int) -> list[str]:
    dice = random.Random(seed)
    names = ["Read", "Edit", "Bash", "Grep", "Edit!", "Bash!"]
    return [" ".join(dice.choices(names, k=dice.choice((1, 1, 1, 2, 3)))) for _ in range(dice.randint(1, 9))]


# whatever happens -------------------------------------------------------------------------------------------------

_TURN = st.lists(
    st.lists(st.sampled_from(["Read", "Edit", "Bash!", "Grep"]), min_size=1, max_size=3).map(" ".join), max_size=5
)
_DEED = st.one_of(
    st.tuples(st.just("tell"), st.integers(0, 4), _TURN),
    st.tuples(st.just("fork"), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.just("drop"), st.integers(0, 4), st.none()),
    st.tuples(st.just("forget"), st.integers(0, 4), st.none()),
    st.tuples(st.just("kind"), st.integers(0, 4), st.sampled_from(["main", "subagent"])),
    st.tuples(st.just("count"), st.none(), st.none()),
)


class _World:
    """Five sessions and what was said in them."""

    def __init__(self) -> None:
        self.store = open_store("memory:")
        self.said: dict[int, list[Message]] = {n: [] for n in range(5)}
        self.ids: dict[int, int] = {}

    def do(self, what: str, n: int, more: object) -> None:
        if what == "count":
            plane.catch_up(self.store)
        elif what == "tell":
            self._tell(n, working(*more))  # type: ignore[misc]
        elif what == "fork" and n != more and not self.said[n]:
            self._tell(n, self.said[int(str(more))])
        elif n in self.ids:
            self._undo(what, n, more)

    def _tell(self, n: int, messages: list[Message]) -> None:
        self.ids.setdefault(n, 0)
        self.ids[n] = self.ids[n] or new_session(self.store, f"s{n}")
        tell(self.store, self.ids[n], *messages)
        self.said[n] = [*self.said[n], *messages]

    def _undo(self, what: str, n: int, more: object) -> None:
        session = self.store.session(self.ids[n])[0]
        with self.store.write():
            if what == "kind":
                self.store.set_session(session.id, kind=more)
                return
            if what == "forget":
                self.store.delete_file(self.store.version(session.version).source)
                del self.ids[n]
            else:
                self.store.drop_derived(session.version)
                self.store.open_session(session)
            self.said[n] = []


@given(st.lists(_DEED, max_size=25))
def test_totals_are_what_a_count_from_the_beginning_gives(deeds: list[tuple[str, int, object]]) -> None:
    world = _World()
    for deed in deeds:
        world.do(*deed)
    plane.catch_up(world.store)
    kept = stored(world.store)
    with world.store.write():
        world.store.reset_counts()  # type: ignore[attr-defined]
    plane.catch_up(world.store)
    assert stored(world.store) == kept
    calls = world.store.driver.one('SELECT COUNT(*) FROM "invocations"')  # type: ignore[attr-defined]
    assert sum(row[0] for row in rows(world.store)["tool_total"].values()) == calls[0]
    world.store.close()


def test_a_forgotten_session_leaves_no_name_of_a_tool(store: Store) -> None:
    kept, gone = new_session(store, "kept"), new_session(store, "gone")
    told(store, kept, "Read", "Bash")
    told(store, gone, "mcp__secret__tool", "Read")
    plane.catch_up(store)
    before = stored(store)
    assert "mcp__secret__tool" in repr(before)
    with store.write():
        store.delete_file(store.version(store.session(gone)[0].version).source)
    assert "mcp__secret__tool" not in repr(stored(store))
    assert store.stale_sessions() == []


def test_counting_anew_begins_when_the_rules_are_others(store: Store) -> None:
    told(store, new_session(store), "Read")
    before = rows(store)
    with store.write():
        store.set_setting("plane rules", "0")
        store.driver.run('UPDATE "tool_total" SET "n"=77')  # type: ignore[attr-defined]
    assert plane.catch_up(store) == 1
    assert rows(store) == before


def test_a_turn_has_the_same_name_in_every_archive_that_holds_it(store: Store) -> None:
    messages = working("Read", at=NOON + 5), working("Edit", at=NOON + 9)
    other = open_store("memory:")
    new_session(other, "somebody else")
    for archive in (store, other):
        for turn in messages:
            session = archive.sessions_of("agent", "one")
            tell(archive, session[0].id if session else new_session(archive), *turn)
        plane.catch_up(archive)
    names = [
        [row[0] for row in archive.driver.all('SELECT "turn_id" FROM "turn_key" ORDER BY "session","idx"')]  # type: ignore[attr-defined]
        for archive in (store, other)
    ]
    other.close()
    assert names[0] == names[1] and len(set(names[0])) == 2


# cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_more_session_costs_the_same_in_an_archive_of_ten_thousand() -> None:
    many = 2_000 if QUICK else 10_000
    (few_rows, few_steps), (many_rows, many_steps) = _work_of_one_more(10), _work_of_one_more(many)
    assert few_rows == many_rows and abs(many_steps - few_steps) < 20


def _work_of_one_more(sessions: int) -> tuple[int, int]:
    """Rows written and steps of SQLite's machine for a question after one session has come."""
    store = open_sqlite("memory:")
    _fill(store, sessions)
    plane.catch_up(store)
    told(store, new_session(store, "one more"), "Read", "Edit", "Read")
    steps = 0

    def note(event: dict[str, dict[str, int]]) -> None:
        nonlocal steps
        steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    connection = store.driver.connection
    before = connection.total_changes()
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    assert plane.catch_up(store) == 1
    connection.trace_v2(0, None)
    written = connection.total_changes() - before
    store.close()
    return written, steps


def _fill(store: SqliteStore, sessions: int) -> None:
    version = new_version(store)
    with store.write():
        ids = range(1, sessions + 1)
        rows = [Session(0, "agent", f"n{n}", version, n_messages=3, n_turns=1, n_calls=3) for n in ids]
        store.driver.many(SESSIONS.insert, map(SESSIONS.values, rows))
        store.driver.many(TURNS.insert, (TURNS.values(Turn(n, started=NOON)) for n in ids))
        store.driver.many(STEPS.insert, (STEPS.values(Step(n, k, model="m1")) for n in ids for k in range(3)))
        names = ("Read", "Edit", "Read")
        calls = (Call(n, k, call_id=f"{k}", step=k, name=names[k], status="ok") for n in ids for k in range(3))
        store.driver.many(CALLS.insert, map(CALLS.values, calls))
        store.driver.run('INSERT INTO "plane_stale" ("session") SELECT "id" FROM "session"')


def test_it_is_told_how_far_the_counting_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, (session(f"s{n}", chain("Read", "Edit")) for n in range(5)))
    monkeypatch.setattr(plane, "_CALLS", 4)
    steps: list[tuple[int, int]] = []
    assert plane.catch_up(store, lambda done, total: steps.append((done, total))) == 5
    assert steps == [(2, 5), (4, 5), (5, 5)]


def test_nothing_is_asked_when_nothing_has_changed(store: Store) -> None:
    told(store, new_session(store), "Read")
    assert plane.catch_up(store) == 1
    before = store.driver.connection.total_changes()  # type: ignore[attr-defined]
    assert plane.catch_up(store) == 0
    assert store.driver.connection.total_changes() == before  # type: ignore[attr-defined]


# small things -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 40))
def test_a_duration_is_within_a_thirtieth_of_its_bucket(duration: int) -> None:
    start = bucket_start(bucket_of(duration))
    assert start <= duration <= start * 33 / 32 + (duration < 64)
    assert bucket_of(start) == bucket_of(duration) and bucket_start(bucket_of(duration) + 1) > duration


def test_a_trail_comes_back_as_it_was() -> None:
    trail = Trail(["Read"], [0, 0], [0, 0], [0, 1], [0, 128], [-1, 70_000])
    assert unpack(pack(trail)) == trail


@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_a_response_that_was_cut_in_two_is_counted_to_its_end(store: Store, pieces: int) -> None:
    def part(name: str, said: int) -> Message:
        return replace(answer("a", provider_id=name), usage=TokenUsage(2, said, 5, 7, 1))

    messages = [prompt("a"), part("r1", 1), part("r1", 3), part("r2", 4), part("r1", 9), part("r1", 30)]
    session = new_session(store)
    for n in range(pieces):
        tell(store, session, *messages[n * 6 // pieces : (n + 1) * 6 // pieces])
    plane.catch_up(store)
    (row,) = store.usage()
    assert (row.responses, row.tokens_in, row.tokens_out, row.tokens_cache_write_1h) == (2, 4, 34, 2)
    assert store.session(session)[0].tokens_out == 34
