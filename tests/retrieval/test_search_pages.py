"""Pages of a search: their notes, their order, and hits with the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.retrieval.attempts import NOTES
from everturn.retrieval.hits import collect_groups, text_key
from everturn.retrieval.search import Results, search
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER, SID
from tests.recall.archives import Archive


def find(
    archive: Archive, words: str, limit: int = 20, cursor: str = "", sort: str = "best", collapse: bool = False
) -> Results:
    return search(archive.store, all_sources(), words, limit=limit, cursor=cursor, sort=sort, collapse=collapse)


def every_page(archive: Archive, words: str, limit: int, sort: str = "best", collapse: bool = False) -> list[Results]:
    pages = [find(archive, words, limit, "", sort, collapse)]
    while pages[-1].next:
        pages.append(find(archive, words, limit, pages[-1].next, sort, collapse))
    return pages


def seqs(page: Results) -> list[int]:
    return [one.row.seq for one in page.items if one.row]


# --- notes ---


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "words", ["red apple", "red apple pie", '"red" apple', "JsonParser red", "red OR blue apple", "会话 red"]
)
def test_notes_are_the_same_for_every_limit_and_page(archive: Archive, words: str) -> None:
    archive.take_in(
        *(archive.history.turn(f"red {n}", f"apple {n}") for n in range(8)),
        archive.history.turn("long " * 300 + "a red rose, then an apple", "json_parser is blue 会话"),
    )
    notes = {page.notes for limit in (1, 3, 50) for page in every_page(archive, words, limit)}
    assert len(notes) == 1


def test_the_note_says_whether_a_message_has_all_the_words(archive: Archive) -> None:
    archive.take_in(
        archive.history.turn("red apple", "x"),
        archive.history.turn("a json_parser, blue", "no overrating here"),
        archive.history.turn("migrating the database", "x"),
    )
    for words in (
        "red apple",
        "apples red",
        "JsonParser blue",
        "red OR green apple",
        "databse migration",
        "the red apple",
    ):
        assert NOTES["any"] not in find(archive, words, 1).notes, words
    for words in ("red blue", "blue apple", "red rate here", "green OR blue apple", "databse red"):
        assert NOTES["any"] in find(archive, words, 1).notes, words


def test_text_that_clients_inserted_does_not_hold_the_words(archive: Archive) -> None:
    context = [{"type": "text", "text": "red apple"}]
    archive.take_in(
        *(archive.history.line("user", context, isMeta=True) for _ in range(3)),
        archive.history.turn("red", "x"), archive.history.turn("apple", "x"),
    )  # fmt: skip
    assert NOTES["any"] in find(archive, "red apple").notes
    archive.take_in(archive.history.turn("an apple, red", "x", OTHER), sid=OTHER)
    assert NOTES["any"] not in find(archive, "red apple").notes


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("agnt:codex red", "'agnt:codex' was searched as text; did you mean agent:?"),
        ("red -tools:Bash", "'tools:Bash' was searched as text; did you mean tool:?"),
        ("Agent:codex red", "'Agent:codex' was searched as text; did you mean agent:?"),
        ("worksapce:shop red", "'worksapce:shop' was searched as text; did you mean workspace:?"),
        ("zebra snice:7d", "'snice:7d' was searched as text; did you mean since:?"),
    ],
)
def test_a_misspelt_filter_is_pointed_out(archive: Archive, words: str, hint: str) -> None:
    archive.take_in(archive.history.turn("red", "x"))
    page = find(archive, words)
    assert hint in page.notes and hint in page.note


@pytest.mark.parametrize(
    "words", ["http://red", "red foo:bar", "red pool:5", "red note:x", '"agnt:codex" red', "red tool:Bash"]
)
def test_other_words_with_a_colon_are_text(archive: Archive, words: str) -> None:
    archive.take_in(archive.history.turn("red", "x"))
    assert not [note for note in find(archive, words).notes if "did you mean" in note]


# --- order ---


def test_the_newest_can_come_first(archive: Archive) -> None:
    archive.take_in(*(archive.history.turn(f"walrus {'walrus ' * (n % 3)}", "ok") for n in range(9)))
    archive.take_in(archive.history.turn("a walrus there", "ok", OTHER), sid=OTHER)
    everything = find(archive, "walrus", sort="time")
    times = [one.at for one in everything.items]
    assert len(times) == 10 and times == sorted(times, key=lambda at: at or 0, reverse=True)
    assert seqs(everything) != seqs(find(archive, "walrus"))
    pages = every_page(archive, "walrus", 3, "time")
    assert [one for page in pages for one in page.items] == everything.items
    assert [len(page.items) for page in pages] == [3, 3, 3, 1]


def test_a_page_by_time_goes_on_although_new_messages_arrive(archive: Archive) -> None:
    turns = [archive.history.turn(f"walrus number {n}", "ok") for n in range(6)]
    archive.take_in(*turns)
    first = find(archive, "walrus", 3, sort="time")
    archive.take_in(*turns, *(archive.history.turn(f"walrus late {n}", "ok") for n in range(3)))
    assert seqs(first) + seqs(find(archive, "walrus", 3, first.next, "time")) == [10, 8, 6, 4, 2, 0]


def test_a_cursor_belongs_to_its_order(archive: Archive) -> None:
    archive.take_in(*(archive.history.turn(f"walrus {n}", "ok") for n in range(3)))
    with pytest.raises(UsageError, match="does not belong"):
        find(archive, "walrus", 1, find(archive, "walrus", 1).next, "time")
    with pytest.raises(UsageError, match="unknown order 'random'"):
        find(archive, "walrus", sort="random")


# --- hits with the same text ---


def repeated(archive: Archive) -> None:
    archive.take_in(
        archive.history.turn("make the walrus", "fine"),
        *(
            piece
            for n in range(4)
            for piece in (
                archive.use("Bash", f"t{n}", command="make"),
                archive.back(f"t{n}", f"walrus built in {n}.5s"),
            )
        ),
        archive.history.turn("the walrus  weighs 5", "ok"),
        archive.history.turn("the walrus weighs 5", "ok"),
        archive.history.turn("the walrus weighs 6", "ok"),
    )


def test_hits_with_the_same_text_are_one(archive: Archive) -> None:
    repeated(archive)
    plain, page = find(archive, "walrus"), find(archive, "walrus", collapse=True)
    assert (len(plain.items), len(page.items)) == (8, 4)
    by_field = {(one.field, one.snippet): len(one.similar) for one in page.items}
    assert sorted(by_field.values()) == [0, 0, 1, 3]
    [output] = [one for one in page.items if one.field == "tool_output"]
    assert len(output.similar) == 3, "numbers of tool output do not matter"
    assert all(one.similar == () for one in plain.items)
    assert [(one.session.native_id, one.at is not None) for one in output.similar] == [(SID, True)] * 3


@pytest.mark.parametrize("sort", ["best", "time"])
@pytest.mark.parametrize("limit", [1, 2, 3, 20])
def test_every_hit_is_shown_or_counted_once(archive: Archive, limit: int, sort: str) -> None:
    repeated(archive)
    wanted = sorted(seqs(find(archive, "walrus")))
    pages = every_page(archive, "walrus", limit, sort, collapse=True)
    hits = [hit for page in pages for hit in page.items]
    counted = [hit.row.seq for hit in hits if hit.row] + [one.row.seq for hit in hits for one in hit.similar if one.row]
    assert sorted(counted) == wanted and all(len(page.items) <= limit for page in pages)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 5))
def test_groups_lose_nothing(hits: list[int], limit: int) -> None:
    numbered, seen = list(enumerate(hits)), 0
    while True:
        page = collect_groups(iter(numbered[seen:]), limit, lambda hit: hit[1])
        taken = sorted(hit for group in page.groups for hit in group)
        assert taken == numbered[seen : seen + len(taken)] and len(page.groups) <= limit
        assert page.last == (taken[-1] if taken else None)
        assert all(len({value for _, value in group}) == 1 for group in page.groups)
        seen += len(taken)
        if not page.has_more:
            break
        assert taken
    assert seen == len(hits)


def test_what_people_say_keeps_its_numbers() -> None:
    assert text_key([("answer", "port 80 \n")]) == text_key([("answer", "port  80")])
    assert text_key([("answer", "port 80")]) != text_key([("answer", "port 81")])
    assert text_key([("tool_output", "took 80 ms")]) == text_key([("tool_output", "took 7 ms")])
    assert text_key([("tool_output", "a")]) != text_key([("answer", "a")])


# --- times ---


def test_every_hit_has_a_time(archive: Archive) -> None:
    title = b'{"type":"custom-title","customTitle":"A walrus","sessionId":"%s"}\n' % SID.encode()
    archive.take_in(archive.history.turn("walrus", "ok"), title)
    page = find(archive, "walrus")
    assert {one.row is None for one in page.items} == {True, False}
    assert all(one.at is not None for one in page.items)
