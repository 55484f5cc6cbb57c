"""The contract of a store, third part: full-text search. Every engine finds the same; the order may differ."""

from __future__ import annotations

import pytest

from everturn.errors import UsageError
from everturn.model.archive import IndexRow, MessageRow, SessionGrowth, SessionText
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexQuery, SessionFilter, Store
from everturn.text.folders import folder_filter
from tests.store.building import NOON, answer, look_for, new_session, new_version, places, prompt, result, tell


def enter(store: Store, session: int, **texts: str) -> None:
    """One more message, with text in these fields."""
    seq = store.tail(session).next_seq
    message = MessageRow(seq=seq, role="user", origin="human", kind="text")
    index = IndexRow(seq, tuple(texts.get(name) for name in FIELDS))
    with store.write():
        store.append(session, SessionGrowth([message], [], [], [], [], [], [index], []))


def found(store: Store, words: str, *fields: str) -> list[int]:
    return sorted(hit.seq for hit in look_for(store, words, fields=fields, limit=100))


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_can_be_searched_alone(store: Store, field: str) -> None:
    session = new_session(store)
    for name in FIELDS:
        enter(store, session, **{name: "needle"})
    assert found(store, "needle") == list(range(len(FIELDS)))
    assert found(store, "needle", field) == [FIELDS.index(field)]
    assert len(found(store, "needle", field, "meta")) == (1 if field == "meta" else 2)


def test_a_field_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(UsageError):
        found(store, "needle", "colour")


def test_words_phrases_prefixes_and_what_is_unwanted(store: Store) -> None:
    session = new_session(store)
    texts = ("red apple pie", "apple red", "green apples", "pie in the sky", "RED. Apple!")
    for text in texts:
        enter(store, session, prompt=text)
    assert found(store, "apple") == found(store, "apples") == [0, 1, 2, 4]
    assert found(store, "apple pie") == [0]
    assert found(store, '"red apple"') == [0, 4]
    assert found(store, "appl*") == [0, 1, 2, 4]
    assert found(store, '"green app"*') == [2]
    assert found(store, "apple -pie") == [1, 2, 4]
    assert found(store, 'apple -"apple pie"') == [1, 2, 4]
    assert found(store, "sky OR green") == [2, 3]
    assert found(store, "sky OR green apples") == [2]
    assert found(store, "banana") == []


def test_words_of_one_message_may_stand_in_different_fields(store: Store) -> None:
    session = new_session(store)
    enter(store, session, prompt="apple", tool_output="pie")
    enter(store, session, answer="apple", meta="apple pie")
    assert found(store, "apple pie") == [0, 1]
    assert found(store, '"apple pie"') == [1]
    assert found(store, "apple pie", "prompt", "answer") == []
    assert found(store, "apple -pie", "answer", "prompt") == [0, 1], "what is unwanted is looked for in the same fields"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def parse_json_line(text):", "parse_json_line"),
        ("def parse_json_line(text):", "json"),
        ("in src/auth.py at 5", "auth.py"),
        ("in src/auth.py at 5", "src/auth"),
        ("这个会话已经结束", "会话"),
        ("これは東京です", "東京"),
        ("Café au lait", "cafe"),
        ("see ISSUE-42", "issue-42"),
        ("x = getUserName()", "getusername"),
        ("nul\0byte", "nul byte"),
        ('it\'s "quoted" AND NOT (a)', '"quoted and not"'),
    ],
)
def test_code_and_other_scripts_are_found(store: Store, text: str, words: str) -> None:
    session = new_session(store)
    enter(store, session, tool_output=text)
    enter(store, session, tool_output="something else")
    assert found(store, words) == [0]


def test_characters_that_do_not_stand_together_are_not_found(store: Store) -> None:
    session = new_session(store)
    enter(store, session, prompt="会议的话")
    enter(store, session, prompt="json parse")
    assert found(store, "会话") == found(store, "parse_json") == []


def test_a_term_cannot_smuggle_in_syntax(store: Store) -> None:
    session = new_session(store)
    enter(store, session, prompt="apple")
    for term in ('"', "apple OR", "prompt : apple", "NEAR(", "a'b", "\\", ")", "&", "|", "!"):
        assert store.search(IndexQuery((((term,),),))) in ([], store.search(IndexQuery(((("apple",),),))))


def test_nothing_asked_is_nothing_found(store: Store) -> None:
    enter(store, new_session(store), prompt="apple")
    assert store.search(IndexQuery(())) == []


def test_the_best_hit_comes_first_and_pages_do_not_overlap(store: Store) -> None:
    session = new_session(store)
    for n in range(7):
        enter(store, session, tool_output=f"apple and {n} more words about something else entirely")
    enter(store, session, prompt="apple")
    hits = look_for(store, "apple", limit=100)
    assert hits[0].seq == 7
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    pages = [hit for offset in range(0, 8, 3) for hit in look_for(store, "apple", limit=3, offset=offset)]
    assert pages == hits


def test_hits_can_be_limited_to_messages_of_a_kind_and_time(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("apple", at=NOON), answer("apple", at=NOON + 10), result("c", "apple", at=NOON + 20))
    with store.write():
        store.set_text(SessionText(session, title="apple"))
    assert {hit.seq for hit in look_for(store, "apple")} == {-1, 0, 1, 2}
    assert {hit.seq for hit in look_for(store, "apple", origins=("human", "tool"))} == {0, 2}
    assert {hit.seq for hit in look_for(store, "apple", since=NOON + 10)} == {1, 2}
    assert {hit.seq for hit in look_for(store, "apple", until=NOON + 10)} == {0}


def test_hits_can_be_limited_to_sessions(store: Store) -> None:
    main, child = new_session(store, "main"), new_session(store, "child", kind="subagent")
    for session in (main, child):
        tell(store, session, prompt("apple"))
    with store.write():
        store.set_text(SessionText(main, title="My Title", workspace="/home/repo"))
    assert places(look_for(store, "apple")) == {(main, 0), (child, 0)}
    assert places(look_for(store, "apple", session=child)) == {(child, 0)}
    assert places(look_for(store, "apple", sessions=SessionFilter())) == {(main, 0)}
    assert places(look_for(store, "apple", sessions=SessionFilter(kinds=()))) == {(main, 0), (child, 0)}
    assert places(look_for(store, "apple", sessions=SessionFilter(workspace="REPO"))) == {(main, 0)}
    assert look_for(store, "apple", sessions=SessionFilter(workspace="other")) == []
    assert look_for(store, "apple", sessions=SessionFilter(agent="other")) == []


def test_a_message_in_several_sessions_is_found_once_in_the_first(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, first, prompt("apple", 1))
    tell(store, fork, prompt("apple", 1), prompt("apple pie", 2))
    assert places(look_for(store, "apple")) == {(first, 0), (fork, 1)}


def test_inside_one_session_what_it_inherited_is_found_too(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, first, prompt("pear"), prompt("apple", 1), prompt("apple", 3))
    tell(store, fork, prompt("apple", 1), prompt("apple pie", 2))
    assert places(look_for(store, "apple", session=fork)) == {(fork, 0), (fork, 1)}
    assert places(look_for(store, "apple", session=first)) == {(first, 1), (first, 2)}


def test_a_hit_in_an_old_version_is_reported_for_the_current_one(store: Store) -> None:
    old = new_session(store, "one", new_version(store, "/a"))
    tell(store, old, prompt("apple one", 1), prompt("apple two", 2))
    new = new_session(store, "one", new_version(store, "/a"))
    tell(store, new, prompt("fresh", 9), prompt("apple two", 2), prompt("apple three", 3))
    assert places(look_for(store, "apple")) == {(old, 0), (new, 1), (new, 2)}
    assert places(look_for(store, "apple", sessions=SessionFilter())) == {(new, 1), (new, 2)}
    assert places(look_for(store, "apple", session=new)) == {(new, 1), (new, 2)}
    assert places(look_for(store, "apple", session=old)) == {(old, 0), (old, 1)}
    assert len(look_for(store, "apple", origins=("human",))) == 3


def test_what_was_once_read_without_words_is_found_when_it_is_read_with_them(store: Store) -> None:
    bare = new_session(store, "one", new_version(store, "/a", mode="structure"), mode="structure")
    with store.write():
        message = MessageRow(seq=0, role="user", origin="human", kind="text", fingerprint=5)
        store.append(bare, SessionGrowth([message], [], [], [], [], [], [], []))
    full = new_session(store, "one", new_version(store, "/a"))
    tell(store, full, prompt("apple", 5))
    assert places(look_for(store, "apple")) == {(full, 0)}


def test_a_beginning_is_not_taken_for_a_word_that_has_a_stem(store: Store) -> None:
    tell(store, new_session(store), prompt("parsing"), prompt("parsnip"), prompt("parsingtables"), prompt("party"))
    assert {seq for _, seq in places(look_for(store, "parsing*"))} == {0, 2}
    assert {seq for _, seq in places(look_for(store, "pars*"))} == {0, 1, 2}


def test_candidates_hold_the_entries_of_a_query_and_how_much_of_each_phrase(store: Store) -> None:
    session = new_session(store)
    for text in ("red apple", "green apple", "red door"):
        enter(store, session, prompt=text)
    query = IndexQuery(((("apple",),),), optional=(("red",),), weights=(0.5,))
    candidates = store.candidates(query)
    assert candidates.phrases == (("apple",), ("red",)) and candidates.weights == (1.0, 0.5)
    assert candidates.counts[0] == 2 and candidates.complete
    shares = {(entry.session, entry.seq): dict(entry.held) for entry in candidates.entries}
    assert {place: set(share) for place, share in shares.items()} == {(session, 0): {0, 1}, (session, 1): {0}}
    assert all(0 < share <= 1 for held in shares.values() for share in held.values())
    some = store.candidates(query, most=1_000)
    assert {(entry.session, entry.seq) for entry in some.entries} == set(shares) and some.complete
    for _ in range(9):
        enter(store, session, prompt="an apple a day")
    assert 0 < len(store.candidates(query, most=4).entries) <= 4


def test_words_that_the_archive_knows_come_with_their_counts(store: Store) -> None:
    session = new_session(store)
    for text in ("walrus fish", "walrus", "parsing"):
        enter(store, session, prompt=text)
    assert store.count_words(["walrus", "fish", "unicorn"]) == {"walrus": 2, "fish": 1}
    assert set(store.vocabulary("wal", 5)) <= {"walru", "walrus"}
    assert store.vocabulary("zzz", 5) == []


def test_the_times_of_sessions_can_be_asked_together(store: Store) -> None:
    first, second, empty = (new_session(store, name) for name in ("first", "second", "empty"))
    tell(store, first, prompt("a"), answer("b", at=NOON + 5))
    tell(store, second, prompt("c", at=NOON + 9))
    assert store.times([first, second, empty, 999_999]) == {
        first: (NOON, NOON + 5), second: (NOON + 9, NOON + 9), empty: (None, None),
    }  # fmt: skip
    assert store.times([]) == {}


def test_a_workspace_is_compared_as_a_path(store: Store) -> None:
    folders = (
        *("/x/t12", "/x/t12/src", "/x/t12b", "/x/T12", "/x/t12/", "/y/x/t12", "", "t12", "t12b"),
        *("C:\\x\\t12", "c:/x/t12/src", "C:\\x\\t12b", "/x/100%/a_b", "/x/100x/aXb", "/x/é t12"),
    )
    by_folder = {folder: new_session(store, f"s{number}") for number, folder in enumerate(folders)}
    for folder, session in by_folder.items():
        tell(store, session, prompt("apple"))
        with store.write():
            store.set_text(SessionText(session, workspace=folder))
    for wanted in (
        "/x/t12",
        "/x/t12/",
        "t12",
        "T12",
        "x/t12",
        "/",
        "c:/x/t12",
        "C:\\x\\t12",
        "100%",
        "a_b",
        "é t12",
        "É t12",
    ):
        matching = {folder for folder in folders if folder_filter(wanted).matches(folder)}
        listed, _ = store.sessions(SessionFilter(workspace=wanted))
        found = look_for(store, "apple", sessions=SessionFilter(workspace=wanted))
        assert {text.workspace for _, text in listed} == matching, wanted
        assert {hit.session for hit in found} == {by_folder[folder] for folder in matching}, wanted
        assert store.count_sessions(SessionFilter(workspace=wanted)) == len(matching)
    listed, _ = store.sessions(SessionFilter(workspace="/x/t12"))
    assert {text.workspace for _, text in listed} == {"/x/t12", "/x/t12/", "/x/t12/src"}


def test_messages_are_read_by_session_and_seq(store: Store) -> None:
    one, other = new_session(store, "one"), new_session(store, "other")
    tell(store, one, prompt("a"), answer("b"), prompt("c"))
    tell(store, other, prompt("d"))
    wanted = [(one, 0), (one, 2), (other, 0), (other, 7), (one, 2)]
    assert {(row.session, row.seq) for row in store.messages_at(wanted)} == set(wanted) - {(other, 7)}
    assert len(store.messages_at([(one, seq) for seq in range(700)])) == 3
    assert store.messages_at([]) == []


def test_messages_are_read_together_with_their_sessions(store: Store) -> None:
    one, other = new_session(store, "one"), new_session(store, "other")
    tell(store, one, prompt("a"), answer("b"))
    keys = [(one, 1), (one, -1), (other, 5), (99_999, 0), (one, 1)]
    found = {
        (session.native_id, text.session, row and (row.session, row.seq))
        for session, text, row in store.entries_at(keys)
    }
    assert found == {("one", one, (one, 1)), ("one", one, None), ("other", other, None)}
    assert {row.seq for _, _, row in store.entries_at([(one, seq) for seq in range(700)]) if row} == {0, 1}
    assert store.entries_at([]) == []


def test_sessions_are_read_by_id(store: Store) -> None:
    ids = [new_session(store, f"s{number}") for number in range(3)]
    found = store.sessions_at([ids[2], ids[0], ids[2], 99_999])
    assert {session.id for session, _ in found} == {ids[0], ids[2]}
    assert {session.native_id for session, _ in store.sessions_at([*ids, *range(1000, 1700)])} == {"s0", "s1", "s2"}
    assert store.sessions_at([]) == []
