"""Words are found where they stand, and the answer says how to get there."""

from __future__ import annotations

import pytest

from everturn.capture.policy import Policy
from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS
from everturn.retrieval.attempts import NOTES
from everturn.retrieval.hits import BEST_FIRST, SearchHit
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import Results, search
from everturn.secrets.redaction import redact_text
from everturn.sessions.lookup import ResultPage, resolve_session
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.text.times import parse_when
from tests.capture.history import OTHER, SID
from tests.recall.archives import AGENT, Archive

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


def find(store: Store, words: str, limit: int = 20, cursor: str = "", **filters: object) -> Results:
    return search(store, all_sources(), words, SearchFilters(**filters), limit, cursor, redact_text)  # type: ignore[arg-type]


def places(page: ResultPage[SearchHit]) -> list[tuple[str, int, str]]:
    return [(one.session.native_id, one.row.seq if one.row else -1, one.field) for one in page.items]


def marked(found: SearchHit) -> list[str]:
    return [found.snippet[start:end] for start, end in found.spans]


def test_a_match_says_where_it_is(archive: Archive) -> None:
    archive.take_in(archive.history.turn("first", "one"), archive.history.turn("fix parse_json_line", "done"))
    found = find(archive.store, "parse json").items[0]
    assert (found.session.native_id, found.session.agent, found.text.workspace) == (SID, AGENT, "/home/ann/shop")
    assert found.row is not None and (found.row.turn, found.row.seq, found.row.role) == (1, 2, "user")
    assert (found.field, found.snippet, marked(found)) == ("prompt", "fix parse_json_line", ["parse", "json"])


def test_every_part_of_a_message_is_found_under_its_name(archive: Archive) -> None:
    thought = {"type": "thinking", "thinking": "ponder walrus", "signature": "x"}
    archive.take_in(
        archive.history.line("user", "prompted walrus"),
        archive.history.line("assistant", [thought]),
        archive.use("Bash", "t1", command="echo walrus"),
        archive.back("t1", "printed walrus"),
        archive.history.line("assistant", [{"type": "text", "text": "answered walrus"}]),
    )
    names = {field for _, _, field in places(find(archive.store, "walrus"))}
    assert names == {"prompt", "thinking", "tool_input", "tool_output", "answer"}
    for name in names:
        assert {field for _, _, field in places(find(archive.store, "walrus", fields=(name,)))} == {name}


def test_what_holds_all_the_words_comes_first(archive: Archive) -> None:
    archive.take_in(
        archive.history.turn("red", "x"), archive.history.turn("red apple", "x"), archive.history.turn("apple", "x")
    )
    page = find(archive.store, "red apple")
    assert (places(page)[0], page.note) == ((SID, 2, "prompt"), "")


def test_what_holds_some_of_the_words_is_shown_and_the_answer_says_so(archive: Archive) -> None:
    archive.take_in(archive.history.turn("red", "x"), archive.history.turn("apple", "x"))
    page = find(archive.store, "red apple")
    assert sorted(places(page)) == [(SID, 0, "prompt"), (SID, 2, "prompt")]
    assert page.note == NOTES["any"] and page.notes == (NOTES["any"],)


def test_words_of_grammar_need_not_be_there(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the red apple", "x"))
    page = find(archive.store, "what is a red apple")
    assert (page.note, marked(page.items[0])) == ("", ["red", "apple"])


def test_another_form_of_a_word_counts_as_the_word(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the parser was failing", "x"))
    page = find(archive.store, "parser fails")
    assert (places(page), page.note) == ([(SID, 0, "prompt")], "")
    assert marked(page.items[0]) == ["parser", "failing"]


def test_a_slip_of_the_pen_is_mended_and_told(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the walrus parser", "ok"), archive.history.turn("else", "ok"))
    page = find(archive.store, "wlarus parser")
    assert (places(page)[0], marked(page.items[0])) == ((SID, 0, "prompt"), ["walrus", "parser"])
    assert page.notes == ("no message contains 'wlarus'; also searched for 'walrus'",)


def test_a_word_of_any_length_can_be_asked_for(archive: Archive) -> None:
    archive.take_in(archive.history.turn("digest " + "a" * 64, "ok"))
    assert find(archive.store, "b" * 100_000).items == []
    assert places(find(archive.store, "a" * 64)) == [(SID, 0, "prompt")]
    assert find(archive.store, "a" * 63 + "b").items == []


def test_a_quoted_phrase_must_be_there(archive: Archive) -> None:
    archive.take_in(archive.history.turn("red apple", "x"), archive.history.turn("apple red", "red, an apple"))
    assert places(find(archive.store, '"red apple"')) == [(SID, 0, "prompt")]
    assert places(find(archive.store, 'apple "apple red"')) == [(SID, 2, "prompt")]


def test_nothing_is_nothing(archive: Archive) -> None:
    archive.take_in(archive.history.turn("red", "x"))
    assert find(archive.store, "walrus zebra") == Results([])


def test_what_the_client_put_in_is_left_out_while_there_is_anything_else(archive: Archive) -> None:
    context = [{"type": "text", "text": "skill about walrus and zebra"}]
    archive.take_in(
        archive.history.turn("walrus", "fine"), *(archive.history.line("user", context, isMeta=True) for _ in range(30))
    )
    assert places(find(archive.store, "walrus")) == [(SID, 0, "prompt")]
    page = find(archive.store, "zebra", limit=5)
    assert (len(page.items), page.note, page.items[0].field) == (5, NOTES["injected"], "meta")
    assert len(find(archive.store, "zebra", 50, page.next).items) == 25
    assert len(find(archive.store, "walrus", 50, origins=("injected",)).items) == 30
    assert len(find(archive.store, "walrus", 50, fields=("meta",)).items) == 30


def test_pages_follow_each_other_without_gaps_or_repeats(archive: Archive) -> None:
    context = [{"type": "text", "text": "walrus rules"}]
    pieces = [archive.history.turn(f"walrus {n}", "ok") for n in range(45)]
    hidden = [archive.history.line("user", context, isMeta=True) for _ in range(45)]
    archive.take_in(*(piece for pair in zip(pieces, hidden, strict=True) for piece in pair))
    seen: list[tuple[str, int, str]] = []
    cursor = ""
    for _ in range(10):
        page = find(archive.store, "walrus", 7, cursor)
        seen += places(page)
        cursor = page.next
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 45
    assert cursor == ""


def test_a_page_goes_on_behind_the_last_although_new_messages_arrive(archive: Archive) -> None:
    turns = [archive.history.turn(f"walrus number {n}", "ok") for n in range(12)]
    archive.take_in(*turns)
    first = find(archive.store, "walrus", 5)
    archive.take_in(*turns, *(archive.history.turn(f"walrus late {n}", "ok") for n in range(6)))
    archive.take_in(*(archive.history.turn(f"the walrus {n}", "ok", OTHER) for n in range(6)), sid=OTHER)
    seen, cursor = places(first), first.next
    while cursor:
        page = find(archive.store, "walrus", 5, cursor)
        seen += places(page)
        cursor = page.next
    assert len(seen) == len(set(seen))
    assert {(SID, 2 * n, "prompt") for n in range(12)} <= set(seen)


def test_a_page_goes_on_where_it_was_when_its_last_match_is_gone(archive: Archive) -> None:
    turns = [archive.history.turn(f"walrus number {n}", "ok") for n in range(6)]
    archive.take_in(*turns)
    archive.take_in(archive.history.turn("walrus elsewhere", "ok", OTHER), sid=OTHER)
    everything = places(find(archive.store, "walrus"))
    first = find(archive.store, "walrus", 3)
    last = first.items[-1]
    assert last.row is not None
    gone = first.next.replace(f".{last.session.id}.{last.row.seq}.", ".999999.0.")
    assert gone != first.next
    rest = places(find(archive.store, "walrus", 20, gone))
    assert not set(rest) & set(everything[:3])


def test_a_moving_since_does_not_make_a_cursor_foreign(archive: Archive) -> None:
    archive.take_in(*(archive.history.turn(f"walrus {n}", "ok") for n in range(5)))
    first = find(archive.store, "walrus", 2, since=1000)
    assert len(find(archive.store, "walrus", 20, first.next, since=2000).items) == 3


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "words", "words.everything.0.1.1.1", "words.everything.0.1.1.1.ffffffff", "none.everything.0.1.1.1.{}"),
        *("words.nowhere.0.1.1.1.{}", "words.everything.²..1.1.1.{}", "words.everything.0.1." + "9" * 30 + ".1.{}"),
    ],
)
def test_a_cursor_of_another_search_is_a_mistake(archive: Archive, cursor: str) -> None:
    archive.take_in(*(archive.history.turn(f"walrus {n}", "ok") for n in range(5)))
    mark = find(archive.store, "walrus", 2).next.rpartition(".")[2]
    with pytest.raises(UsageError, match="does not belong to this search"):
        find(archive.store, "walrus", 2, cursor.format(mark))


@pytest.mark.parametrize("words", ["", "   ", "-walrus", "***", '""'])
def test_a_search_for_nothing_is_a_mistake(store: Store, words: str) -> None:
    with pytest.raises(UsageError, match="no word to search for"):
        find(store, words)


def test_filters_narrow_the_search(archive: Archive) -> None:
    archive.take_in(archive.history.turn("walrus in the shop", "yes walrus"))
    archive.take_in(archive.history.turn("walrus elsewhere", "no", OTHER, cwd="/srv/zoo"), sid=OTHER)
    store = archive.store
    assert {name for name, _, _ in places(find(store, "walrus", workspace="ZOO"))} == {OTHER}
    assert {name for name, _, _ in places(find(store, "walrus", session=resolve_session(store, SID)))} == {SID}
    assert [field for _, _, field in places(find(store, "walrus", origins=("model",)))] == ["answer"]
    assert find(store, "walrus", agent="nobody").items == []
    late = parse_when("2026-03-01T10:00:02Z", 0)
    assert {seq for _, seq, _ in places(find(store, "walrus", until=late))} == {0}
    assert (SID, 0, "prompt") not in places(find(store, "walrus", since=late))


def test_what_only_an_older_edition_says_is_found_there(archive: Archive) -> None:
    first = archive.history.turn("keep", "yes")
    archive.take_in(first, archive.history.turn("second", "zebra"))
    archive.take_in(first)
    (found,) = find(archive.store, "zebra").items
    assert (found.session.native_id, found.session.state) == (SID, "superseded")
    (kept,) = find(archive.store, "keep").items
    assert kept.session.state == "current"


def test_a_title_is_found(archive: Archive) -> None:
    title = b'{"type":"custom-title","customTitle":"Walrus migration","sessionId":"%s"}\n' % SID.encode()
    archive.take_in(archive.history.turn("go", "yes"), title)
    (found,) = find(archive.store, "walrus").items
    assert (found.row, found.field, found.snippet) == (None, "title", "Walrus migration")


def test_a_snippet_has_no_secret_not_even_half_of_one(archive: Archive) -> None:
    archive.take_in(archive.history.turn("x " * 70 + f"walrus {KEY} tail", "ok"))
    (found,) = find(archive.store, "walrus").items
    assert "[REDACTED:aws_access_key]" in found.snippet and KEY[:8] not in found.snippet
    (open_,) = search(archive.store, all_sources(), "walrus").items
    assert KEY in open_.snippet


def test_a_search_for_a_secret_does_not_show_it(archive: Archive) -> None:
    archive.take_in(archive.history.turn(f"my key {KEY}", "ok"))
    (found,) = find(archive.store, KEY).items
    assert KEY not in found.snippet and found.spans == []


def test_a_session_without_words_is_not_found(archive: Archive) -> None:
    archive.take_in(archive.history.turn("walrus", "ok"), policy=Policy("structure"))
    assert find(archive.store, "walrus").items == []


def test_every_field_has_its_rank() -> None:
    assert set(BEST_FIRST) == set(FIELDS)


def test_a_long_text_says_that_its_quotes_are_not_required(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the walrus ate a lemon", "so it did"))
    words = 'what did the "very hungry" walrus eat in that garden behind our house near the old river last summer'
    found = find(archive.store, words)
    assert found.items and NOTES["prose"] in found.notes
    assert NOTES["prose"] not in find(archive.store, 'walrus "a lemon"').notes
