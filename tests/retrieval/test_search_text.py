"""What the index cannot say is looked for in the text itself, as far as the work is bounded, and the answer says so."""

from __future__ import annotations

import pytest

from everturn.errors import UsageError
from everturn.retrieval import attempts
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import Results, search
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER
from tests.recall.archives import Archive

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


def find(archive: Archive, words: str, limit: int = 20, cursor: str = "", **filters: object) -> Results:
    given = SearchFilters(**filters)  # type: ignore[arg-type]
    return search(archive.store, all_sources(), words, given, limit, cursor, redact_text)


def seqs(page: Results) -> list[int]:
    return [one.row.seq for one in page.items if one.row]


def marked(page: Results) -> list[list[str]]:
    return [[one.snippet[start:end] for start, end in one.spans] for one in page.items]


def test_signs_are_found_and_the_answer_says_how(archive: Archive) -> None:
    archive.take_in(archive.history.turn("map x => y", "no"), archive.history.turn("a != b", "c => d"))
    page = find(archive, "=>")
    assert seqs(page) == [3, 0] and marked(page) == [["=>"], ["=>"]]
    assert page.note == "the index does not contain these words; searched the text itself in all 4 messages"
    assert seqs(find(archive, "!=")) == [2]
    nothing = find(archive, "<=>")
    assert nothing.items == [] and "in all 4 messages" in nothing.note


def test_where_a_quoted_phrase_stands_nowhere_the_plain_words_are_looked_for_and_the_answer_says_so(
    archive: Archive,
) -> None:
    archive.take_in(archive.history.turn("the walrus likes fish", "ok"), archive.history.turn("other", "ok"))
    page = find(archive, 'what does the walrus think of "grey shades" -whale')
    assert seqs(page) == [0]
    assert page.note.startswith('no message contains "grey shades"; these contain other words')
    assert find(archive, '"grey shades"').items == []
    assert find(archive, 'walrus "grey shades" -fish').items == []
    assert seqs(find(archive, 'walrus "likes fish"')) == [0]


def test_a_part_of_a_word_is_found_when_no_word_is(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the reparse_jsonlines job", "ok"), archive.history.turn("other", "ok"))
    page = find(archive, "parse_jsonl")
    assert seqs(page) == [0] and "the text itself" in page.note
    assert seqs(find(archive, "PARSE_jsonl -other")) == [0]
    assert find(archive, "parse_jsonl -job").items == []


def test_text_is_looked_at_newest_first_up_to_a_bound(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.take_in(*(archive.history.turn(f"ask => {n} " + "x" * 300, "ok") for n in range(30)))
    archive.take_in(archive.history.turn("newer =>", "ok", OTHER), sid=OTHER)
    monkeypatch.setattr(attempts, "READ", 6000)
    monkeypatch.setattr(attempts, "_ROWS", 5)
    page = find(archive, "=>")
    assert page.items[0].session.native_id == OTHER and 1 < len(page.items) < 25
    assert seqs(page)[1:] == sorted(seqs(page)[1:], reverse=True)
    assert "the newest" in page.note and "back to 2026-03-01" in page.note


def test_pages_of_a_look_through_the_text_follow_each_other(archive: Archive) -> None:
    archive.take_in(*(archive.history.turn(f"ask => {n}", "ok") for n in range(9)))
    first = find(archive, "=>", 4)
    archive.take_in(archive.history.turn("new =>", "ok", OTHER), sid=OTHER)
    second = find(archive, "=>", 20, first.next)
    assert seqs(first) + seqs(second) == list(range(16, -1, -2))


def test_what_the_client_put_in_is_not_looked_at(archive: Archive) -> None:
    context = [{"type": "text", "text": "rules =>"}]
    archive.take_in(archive.history.turn("x", "y"), archive.history.line("user", context, isMeta=True))
    assert find(archive, "=>").items == []
    assert seqs(find(archive, "=> in:meta")) == [2]


# patterns -------------------------------------------------------------------------------------------------------------
def test_a_pattern_is_found_by_its_literal_part_and_marked(archive: Archive) -> None:
    archive.take_in(archive.history.turn("see line 12: denied", "line x: denied"), archive.history.turn("line 7", "no"))
    page = find(archive, r"/line \d+: \w+/")
    assert seqs(page) == [0] and marked(page) == [["line 12: denied"]]
    assert "the pattern was tried on" in page.note


def test_a_pattern_is_found_within_words(archive: Archive) -> None:
    archive.take_in(archive.history.turn("reparsed twice", "no"))
    assert marked(find(archive, "/parse[dr]/")) == [["parsed"]]


def test_a_pattern_without_a_literal_part_is_looked_for_in_the_newest_text(archive: Archive) -> None:
    archive.take_in(archive.history.turn("on 2026-01-31", "ok"), archive.history.turn("no date", "ok"))
    page = find(archive, r"/\d{4}-\d\d-\d\d/")
    assert seqs(page) == [0] and page.note == "the pattern was tried on all 4 messages"


def test_a_pattern_may_stand_among_words(archive: Archive) -> None:
    archive.take_in(archive.history.turn("walrus 12", "ok"), archive.history.turn("walrus x", "zebra 12"))
    assert seqs(find(archive, r"walrus /\d\d/")) == [0]
    assert seqs(find(archive, r"/WALRUS \d/i")) == [0]
    assert find(archive, r"/WALRUS \d/").items == []


def test_pages_of_a_pattern_follow_each_other(archive: Archive) -> None:
    archive.take_in(*(archive.history.turn(f"walrus {n}", "ok") for n in range(9)))
    first = find(archive, r"/walrus \d/", 4)
    second = find(archive, r"/walrus \d/", 20, first.next)
    assert sorted(seqs(first) + seqs(second)) == list(range(0, 17, 2)) and not second.next


def test_a_pattern_that_takes_too_much_work_is_stopped_and_the_answer_says_so(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everturn.text import regex

    monkeypatch.setattr(regex, "EFFORT", 30_000)
    archive.take_in(archive.history.turn("xy", "ok"), *(archive.history.turn("x" * 9000, "-") for _ in range(6)))
    page = find(archive, "/(x+x+)+[yz]|^xy/")
    assert "stopped there" in page.note
    assert find(archive, "/^xy$/ -zebra").items


def test_a_pattern_does_not_show_a_secret(archive: Archive) -> None:
    archive.take_in(archive.history.turn(f"my key {KEY} here", "ok"))
    (found,) = find(archive, "/AKIA[A-Z0-9]+/").items
    assert KEY not in found.snippet and "[REDACTED" in found.snippet and found.spans == []


@pytest.mark.parametrize("words", ["/(a/", "/" + "a" * 201 + "/", "/a/ /b/", r"/(?=x)/"])
def test_a_pattern_that_cannot_be_used_is_a_mistake(archive: Archive, words: str) -> None:
    with pytest.raises(UsageError):
        find(archive, words)
