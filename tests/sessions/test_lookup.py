"""A session is found by what people type, and by nothing that a transcript says."""

from __future__ import annotations

import pytest

from everturn.errors import AmbiguousSession, NothingFound, UnknownSession, UsageError
from everturn.sessions.lookup import list_sessions, resolve_session, session_edition, short_ids
from everturn.store.contract import SessionFilter, Store
from tests.recall.archives import put

ONE = "11111111-2222-4333-8444-555555555555"
TWO = "11111111-9999-4333-8444-555555555555"


def test_a_full_id_and_any_unique_beginning_name_a_session(store: Store) -> None:
    one, two = put(store, ONE), put(store, TWO)
    assert resolve_session(store, ONE).id == one.id
    assert resolve_session(store, "11111111-2").id == one.id
    assert resolve_session(store, " 11111111-9 ").id == two.id


def test_a_beginning_that_fits_several_is_told_with_their_ids(store: Store) -> None:
    put(store, ONE), put(store, TWO)
    with pytest.raises(AmbiguousSession, match=f"fits 2 sessions .*{ONE}.*{TWO}.*give more characters"):
        resolve_session(store, "1111")


def test_a_full_id_is_never_ambiguous(store: Store) -> None:
    short, long = put(store, "abc"), put(store, "abcdef")
    assert resolve_session(store, "abc").id == short.id
    assert resolve_session(store, "abcd").id == long.id


def test_a_main_session_comes_before_what_hangs_on_it(store: Store) -> None:
    main = put(store, ONE)
    for n in range(30):
        put(store, f"{ONE}/agent-{n:08x}", "subagent")
    assert resolve_session(store, ONE[:8]).id == main.id
    assert resolve_session(store, ONE).id == main.id


def test_a_subagent_goes_by_the_part_after_the_slash(store: Store) -> None:
    put(store, ONE)
    agent = put(store, f"{ONE}/agent-a1b2c3d4", "subagent")
    assert resolve_session(store, "agent-a1b2").id == agent.id
    assert resolve_session(store, f"{ONE}/agent-a1").id == agent.id


def test_a_saved_output_comes_last(store: Store) -> None:
    agent = put(store, f"{ONE}/toolu_1", "subagent")
    put(store, f"{ONE}/toolu_12", "output")
    assert resolve_session(store, "toolu_").id == agent.id


def test_sessions_go_by_age(store: Store) -> None:
    rows = {n: put(store, f"id-{n}", ended=n * 1000) for n in (3, 1, 2)}
    put(store, "id-9/agent-1", "subagent", ended=9000)
    assert resolve_session(store, "@last").id == resolve_session(store, "@-1").id == rows[3].id
    assert resolve_session(store, "@-2").id == rows[2].id
    assert resolve_session(store, "@-3").id == rows[1].id


@pytest.mark.parametrize("wanted", ["@-4", "@-999999"])
def test_an_age_beyond_the_oldest_is_unknown(store: Store, wanted: str) -> None:
    for n in range(3):
        put(store, f"id-{n}")
    with pytest.raises(UnknownSession, match=wanted):
        resolve_session(store, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "  ",
        "@",
        "@0",
        "@-0",
        "@first",
        "@-1x",
        "nope",
        "%",
        "_",
        "*",
        "1111'; --",
        "../..",
        "/etc/passwd",
        "\x00",
        "\x1b[2J",
    ],
)
def test_what_names_nothing_is_unknown(store: Store, wanted: str) -> None:
    put(store, ONE)
    with pytest.raises(UnknownSession):
        resolve_session(store, wanted)


def test_an_id_that_looks_like_a_path_or_a_pattern_is_only_compared(store: Store) -> None:
    hostile = put(store, "../../etc/passwd")
    put(store, "%_%")
    assert resolve_session(store, "../../etc").id == hostile.id
    assert resolve_session(store, "%").native_id == "%_%"


def test_of_several_editions_the_current_one_is_meant_then_the_fullest(store: Store) -> None:
    old = put(store, ONE, path="/a", n_messages=50)
    new = put(store, ONE, path="/a", n_messages=10)
    assert (store.session(old.id)[0].state, new.state) == ("superseded", "current")
    assert resolve_session(store, ONE).id == new.id
    elsewhere = put(store, ONE, path="/b", n_messages=20)
    assert resolve_session(store, ONE[:4]).id == elsewhere.id


def test_the_same_id_of_two_agents_is_ambiguous(store: Store) -> None:
    put(store, ONE)
    put(store, ONE, agent="another", path="/elsewhere")
    with pytest.raises(AmbiguousSession):
        resolve_session(store, ONE)


def test_an_older_edition_goes_by_the_number_of_its_version(store: Store) -> None:
    old, new = put(store, ONE, path="/a"), put(store, ONE, path="/a")
    assert (session_edition(store, new, 1).id, session_edition(store, new, 2).id) == (old.id, new.id)
    with pytest.raises(NothingFound, match=r"no version 3; there are: 1, 2$"):
        session_edition(store, new, 3)


def test_a_list_is_cut_into_pages_that_stay_where_they_are(store: Store) -> None:
    for n in range(7):
        put(store, f"id-{n}", ended=n)
    first = list_sessions(store, SessionFilter(), 3)
    put(store, "newest", ended=99)
    second = list_sessions(store, SessionFilter(), 3, first.next)
    third = list_sessions(store, SessionFilter(), 3, second.next)
    names = [item.session.native_id for page in (first, second, third) for item in page.items]
    assert names == [f"id-{n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    assert third.next == ""


def test_a_cursor_that_is_none_is_a_mistake_of_the_user(store: Store) -> None:
    with pytest.raises(UsageError):
        list_sessions(store, SessionFilter(), 3, "nonsense")


def test_short_ids_tell_the_sessions_of_a_list_apart(store: Store) -> None:
    rows = [put(store, ONE), put(store, TWO), put(store, "ffff"), put(store, f"{ONE}/agent-a1b2c3d4e5", "subagent")]
    shorts = short_ids(rows)
    assert [shorts[row.id] for row in rows] == ["11111111-2222", "11111111-9999", "ffff", "agent-a1b2c3d4e5"]
    for row in rows:
        assert resolve_session(store, shorts[row.id]).id == row.id


def test_short_ids_tell_a_session_from_all_of_the_archive(store: Store) -> None:
    names = ("2025-04-07_a", "2025-04-28_10-tea", "2025-04-28_19-milk", "2025-05-01", f"{ONE}/agent-1", TWO, ONE)
    rows = [put(store, name, "subagent" if "/" in name else "main") for name in names]
    shorts = [short_ids([row], store)[row.id] for row in rows]
    assert shorts == [
        "2025-04-07_a", "2025-04-28_10", "2025-04-28_19", "2025-05", "agent-1", "11111111-9999", "11111111-2222"
    ]  # fmt: skip
    assert [resolve_session(store, short).id for short in shorts] == [row.id for row in rows]
    assert [one.short for one in list_sessions(store, SessionFilter(kinds=("main",)), 1).items] == [shorts[-1]]


def test_two_editions_of_a_session_share_their_short_id(store: Store) -> None:
    rows = [put(store, ONE, path="/a"), put(store, ONE, path="/a")]
    assert set(short_ids(rows).values()) == {"11111111"}
