"""Filters typed among the words, and where a search looks."""

from __future__ import annotations

import pytest

from everturn.errors import UnknownSession, UsageError
from everturn.retrieval.attempts import NOTES
from everturn.retrieval.hits import with_neighbours
from everturn.retrieval.scope import SearchFilters, family_ids
from everturn.retrieval.search import Results, search
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER, SID
from tests.recall.archives import AGENT, Archive

#: Some hours after the time of the transcripts.
NOW = 1_772_380_000_000
KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


def find(archive: Archive, words: str, **filters: object) -> Results:
    given = SearchFilters(**filters)  # type: ignore[arg-type]
    return search(archive.store, all_sources(), words, given, clean=redact_text, now=NOW)


def seqs(archive: Archive, words: str, **filters: object) -> set[tuple[str, int]]:
    return {(one.session.native_id[:1], one.row.seq) for one in find(archive, words, **filters).items if one.row}


@pytest.fixture
def zoo(archive: Archive) -> Archive:
    """Two sessions: 0 prompt, 1 read, 2 its result, 3 a command, 4 its failure, 5 answer, 6 prompt, 7 answer; and 0, 1."""
    archive.take_in(
        archive.history.line("user", "find the walrus"),
        archive.use("Read", "t1", file_path="/home/ann/shop/src/walrus.py"),
        archive.back("t1", "class Walrus:"),
        archive.use("Bash", "t2", command="feed walrus"),
        archive.back("t2", "walrus: permission denied", failed=True),
        archive.history.line("assistant", [{"type": "text", "text": "the walrus does not eat"}]),
        archive.history.turn("again walrus", "walrus ate"),
    )
    archive.take_in(
        archive.history.turn("walrus elsewhere", "no walrus", OTHER, cwd="/srv/zoo", gitBranch="wip"), sid=OTHER
    )
    return archive


@pytest.mark.few(30)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("walrus", {("1", n) for n in range(8)} | {("9", 0), ("9", 1)}),
        ("walrus session:11111111", {("1", n) for n in range(8)}),
        ("walrus -session:11111111", {("9", 0), ("9", 1)}),
        ("walrus workspace:ZOO", {("9", 0), ("9", 1)}),
        ("walrus -workspace:shop", {("9", 0), ("9", 1)}),
        ("walrus branch:wip", {("9", 0), ("9", 1)}),
        ("walrus -branch:main", {("9", 0), ("9", 1)}),
        (f"walrus agent:{AGENT} turn:2", {("1", 6), ("1", 7)}),
        (f"walrus -agent:{AGENT}", set()),
        ("walrus role:user", {("1", 0), ("1", 6), ("9", 0)}),
        ("walrus -role:tool -role:assistant", {("1", 0), ("1", 6), ("9", 0)}),
        ("walrus role:user,assistant -field:tool_input", {("1", 0), ("1", 5), ("1", 6), ("1", 7), ("9", 0), ("9", 1)}),
        ("walrus in:tool_output", {("1", 2), ("1", 4)}),
        ("walrus field:prompt,answer turn:1", {("1", 0), ("1", 5), ("9", 0), ("9", 1)}),
        ("walrus tool:Bash", {("1", 3), ("1", 4)}),
        ("walrus tool:bash,read -tool:Read", {("1", 3), ("1", 4)}),
        ("walrus -tool:Bash session:1111 turn:1", {("1", 0), ("1", 1), ("1", 2), ("1", 5)}),
        ("walrus path:src/", {("1", 1), ("1", 2)}),
        ("walrus -path:walrus.py session:1111 turn:1", {("1", 0), ("1", 3), ("1", 4), ("1", 5)}),
        ("walrus error:yes", {("1", 3), ("1", 4)}),
        ("walrus -error:yes session:1111 turn:1", {("1", 0), ("1", 1), ("1", 2), ("1", 5)}),
        ("walrus turn:2-", {("1", 6), ("1", 7)}),
        ("walrus -turn:1", {("1", 6), ("1", 7)}),
        ("walrus since:2026-03-01T10:00:07Z", {("1", 6), ("1", 7), ("9", 0), ("9", 1)}),
        ("walrus until:2026-03-01T10:00:02Z", {("1", 0)}),
        ("walrus since:1h", set()),
        ("walrus since:1d turn:2", {("1", 6), ("1", 7)}),
    ],
)
def test_a_filter_keeps_what_it_says(zoo: Archive, words: str, found: set[tuple[str, int]]) -> None:
    assert seqs(zoo, words) == found


@pytest.mark.parametrize(
    "words", ["walrus tool:Bash", "walrus path:src/", "walrus error:yes", "walrus turn:2", "walrus -tool:Read"]
)
def test_a_pattern_and_plain_text_are_filtered_alike(zoo: Archive, words: str) -> None:
    pattern = words.replace("walrus", "/[Ww]alrus/")
    part = words.replace("walrus", "alrus")  # no word of the index begins so
    assert seqs(zoo, words) == seqs(zoo, pattern) == seqs(zoo, part)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x role:nobody", "one of user, assistant, human"),
        ("x field:nowhere", "one of prompt"),
        ("x turn:0", "a number like 12"),
        ("x turn:7-3", "a range like 3-7"),
        ("x turn:left", 'with "turn left"'),
        ("x error:maybe", "one of yes"),
        ("x since:someday", "someday"),
        ("x -since:7d", "use until:7d"),
        ("x -until:7d", "use since:7d"),
        ("x since:7d since:8d", "given twice"),
        ("x agent:codex agent:gemini", "given twice"),
        ('x tool:""', "has no value"),
        ("x " + " ".join(f"-role:{name}" for name in ("user", "assistant", "tool", "system")), "leaves nothing"),
    ],
)
def test_a_value_that_means_nothing_is_told_with_what_would(zoo: Archive, words: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        find(zoo, words)
    assert said in str(told.value)


def test_an_unknown_session_is_told(zoo: Archive) -> None:
    with pytest.raises(UnknownSession):
        find(zoo, "x session:nope")


def test_filters_alone_list_the_newest_that_pass_them(zoo: Archive) -> None:
    page = find(zoo, "tool:Bash error:yes")
    assert [one.row.seq for one in page.items if one.row] == [4, 3]
    assert page.note == "no words to search for: newest first, from all 2 messages"
    assert find(zoo, "tool:Bash -error:yes").items == []
    assert seqs(zoo, "role:user workspace:zoo") == {("9", 0)}


def test_pages_of_filters_alone_fit_together(zoo: Archive) -> None:
    first = search(zoo.store, all_sources(), "role:user", limit=2)
    second = search(zoo.store, all_sources(), "role:user", limit=2, cursor=first.next)
    assert len(first.items) == 2
    assert len(second.items) == 1
    assert len({(one.session.id, one.row.seq) for one in (*first.items, *second.items) if one.row}) == 3


def test_what_must_not_be_there_alone_asks_for_nothing(zoo: Archive) -> None:
    with pytest.raises(UsageError, match="no word to search for"):
        find(zoo, "tool:Bash -walrus")


# scope ----------------------------------------------------------------------------------------------------------------
@pytest.fixture
def kin(archive: Archive) -> Archive:
    """A session, a fork of it, and a subagent of the fork."""
    data = archive.history.turn("the walrus plan", "ok")
    archive.take_in(data)
    archive.subagent("abc1234", archive.helper("abc1234", "user", "count zebras", OTHER), sid=OTHER)
    archive.take_in(
        archive.history.fork(data, OTHER),
        archive.history.turn("go on", "yes", OTHER),
        archive.history.fork(archive.use("Task", "toolu_1", prompt="count zebras"), OTHER),
        archive.history.fork(archive.back("toolu_1", "none", agentId="abc1234"), OTHER),
        sid=OTHER,
    )
    third = "77777777-2222-4333-8444-555555555555"
    archive.take_in(archive.history.turn("a unicorn", "ok", third), sid=third)
    fourth = "66666666-2222-4333-8444-555555555555"
    archive.take_in(archive.history.turn("a griffin", "ok", fourth, cwd="/srv/zoo"), sid=fourth)
    return archive


def session_of(archive: Archive, sid: str) -> dict[str, object]:
    from everturn.sessions.lookup import resolve_session

    return {"session": resolve_session(archive.store, sid)}


def test_a_family_is_what_a_session_came_from_and_what_it_started(kin: Archive) -> None:
    fork = session_of(kin, OTHER)["session"]
    names = {kin.store.session(one)[0].native_id for one in family_ids(kin.store, fork)}  # type: ignore[arg-type]
    assert names == {SID, OTHER, f"{OTHER}/agent-abc1234"}


def test_a_session_can_be_searched_with_its_lineage(kin: Archive) -> None:
    fork = session_of(kin, OTHER)
    assert find(kin, "role:user zebras", **fork).items == []
    page = find(kin, "role:agent,user zebras", **fork, lineage=True)
    assert {one.session.kind for one in page.items} == {"subagent"} and page.scope == "lineage"
    assert find(kin, "unicorn", **fork, lineage=True).items == []


def test_a_search_widens_until_there_is_an_answer_and_says_where_it_is_from(kin: Archive) -> None:
    fork = session_of(kin, OTHER)
    here = find(kin, "walrus", **fork, lineage=True, widen=True)
    assert (here.scope, here.note) == ("session", "")
    folder = find(kin, "unicorn", **fork, lineage=True, widen=True)
    assert (folder.scope, len(folder.items)) == ("workspace", 1) and "same folder" in folder.note
    everywhere = find(kin, "griffin", **fork, widen=True)
    assert (everywhere.scope, len(everywhere.items)) == ("everything", 1) and "from all sessions" in everywhere.note
    assert find(kin, "griffin", workspace="/home/ann/shop", widen=True).scope == "everything"
    assert find(kin, "griffin", workspace="/home/ann/shop").items == []


def test_what_holds_all_the_words_farther_away_is_better_than_some_of_them_here(kin: Archive) -> None:
    own = session_of(kin, SID)
    page = find(kin, "plan griffin", **own, widen=True)
    assert (page.scope, NOTES["any"] in page.notes) == ("session", True)
    sid = "44444444-2222-4333-8444-555555555555"
    kin.take_in(kin.history.turn("the griffin plan", "ok", sid, cwd="/srv/zoo"), sid=sid)
    page = find(kin, "plan griffin", **own, widen=True)
    assert (page.scope, page.items[0].session.native_id, NOTES["any"] in page.notes) == ("everything", sid, False)


def test_the_next_page_of_a_widened_search_stays_where_the_first_was(kin: Archive) -> None:
    fork = SearchFilters(**session_of(kin, SID), widen=True)  # type: ignore[arg-type]
    third = "55555555-2222-4333-8444-555555555555"
    kin.take_in(*(kin.history.turn(f"the unicorn {n}", "ok", third) for n in range(4)), sid=third)
    first = search(kin.store, all_sources(), "unicorn", fork, 3)
    rest = search(kin.store, all_sources(), "unicorn", fork, 3, first.next)
    assert (first.scope, rest.scope, len(first.items) + len(rest.items)) == ("workspace", "workspace", 5)


# context --------------------------------------------------------------------------------------------------------------
def test_the_turns_beside_a_match_come_as_their_first_words(archive: Archive) -> None:
    context = [{"type": "text", "text": "put in by the client"}]
    archive.take_in(
        archive.history.line("user", context, isMeta=True),
        archive.history.turn(f"first\nask {KEY}", "one"),
        archive.history.turn("the walrus", "two"),
        archive.history.turn("third \x1b[31mask", "three"),
    )
    (found,) = [one for one in find(archive, "walrus").items if one.row]
    shown = with_neighbours(archive.store, all_sources(), found, 1, redact_text)
    (before,), (after,) = shown.before, shown.after
    assert (before.turn, before.role, before.text) == (0, "user", "first ask [REDACTED:aws_access_key]")
    assert (after.turn, after.text) == (2, "third ask")
    assert len(with_neighbours(archive.store, all_sources(), found, 5, redact_text).before) == 1
