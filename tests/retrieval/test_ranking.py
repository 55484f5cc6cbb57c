"""The order of what is found, on every engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from everturn.model.archive import SessionText
from everturn.retrieval.query import build_index_query, parse_query
from everturn.retrieval.ranking import DAY, WEIGHTS, RankedHits, Weights, rank_candidates
from everturn.store.contract import Store, open_store
from tests.store.building import NOON, answer, new_session, prompt, result, tell

NOW = NOON + 400 * DAY


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.needs("module:psycopg"))])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    opened = open_store(request.getfixturevalue("postgres_archive") if request.param == "postgres" else "memory:")
    yield opened
    opened.close()


def ranked(store: Store, text: str, now: int = NOW) -> RankedHits:
    return rank_candidates(store, build_index_query(parse_query(text), now), now)


def order(store: Store, text: str, now: int = NOW) -> list[tuple[int, int]]:
    return [(hit.session, hit.seq) for hit in ranked(store, text, now).hits]


def fill(store: Store) -> None:
    """Something to be rare among."""
    for number in range(6):
        tell(store, new_session(store, f"fill{number}"), *[prompt(f"filler talk {number} {n}") for n in range(6)])


def test_a_message_with_more_of_the_words_comes_first(store: Store) -> None:
    fill(store)
    session = new_session(store)
    tell(store, session, prompt("the lemon"), answer("nothing"), answer("none"), prompt("lemon walrus"))
    assert order(store, "walrus with lemon")[0] == (session, 3)


def test_a_rare_word_counts_more_than_a_common_one(store: Store) -> None:
    fill(store)
    session = new_session(store)
    tell(store, session, prompt("walrus"), answer("x"), answer("y"), prompt("filler"))
    assert order(store, "filler walrus")[0] == (session, 0)


def test_what_was_said_comes_before_what_was_printed(store: Store) -> None:
    fill(store)
    one, two = new_session(store, "printed"), new_session(store, "said")
    tell(store, one, answer("", call="c"), result("c", "walrus"))
    tell(store, two, prompt("walrus"))
    assert order(store, "walrus") == [(two, 0), (one, 1)]


def test_a_neighbour_with_the_words_lifts_a_message(store: Store) -> None:
    fill(store)
    near, far = new_session(store, "near"), new_session(store, "far")
    tell(store, near, prompt("walrus"), answer("lemon"), answer("x"))
    tell(store, far, prompt("lemon"), answer("x"), answer("y"), answer("z"))
    assert order(store, "walrus lemon").index((near, 1)) < order(store, "walrus lemon").index((far, 0))


def test_the_title_of_a_session_lifts_what_is_said_in_it(store: Store) -> None:
    fill(store)
    named, other = new_session(store, "named"), new_session(store, "other")
    for session in (named, other):
        tell(store, session, prompt("lemon"))
    with store.write():
        store.set_text(SessionText(named, title="about the walrus"))
    found = order(store, "walrus lemon")
    assert found.index((named, 0)) < found.index((other, 0))


def test_words_side_by_side_count_more(store: Store) -> None:
    fill(store)
    apart, together = new_session(store, "apart"), new_session(store, "together")
    tell(store, together, prompt("green walrus is here"))
    tell(store, apart, prompt("walrus is here green"))
    assert order(store, "green walrus")[0] == (together, 0)


def test_a_sentence_as_it_stands_is_found_first(store: Store) -> None:
    fill(store)
    session = new_session(store)
    output = "many other words " * 300 + "cannot open the lemon file at line"
    tell(store, session, answer("", call="c"), result("c", output))
    other = new_session(store, "other")
    tell(store, other, prompt("the lemon is here"))
    assert order(store, "cannot open the lemon file")[0] == (session, 1)


def test_of_equals_the_newer_comes_first(store: Store) -> None:
    old, new = new_session(store, "old"), new_session(store, "new")
    tell(store, new, prompt("walrus", at=NOW - DAY))
    tell(store, old, prompt("walrus", at=NOW - 300 * DAY))
    assert order(store, "walrus") == [(new, 0), (old, 0)]


def test_a_time_that_is_spoken_of_decides_between_equals(store: Store) -> None:
    fill(store)
    sessions = [new_session(store, f"s{n}") for n in range(3)]
    for number, session in enumerate(sessions):
        tell(store, session, prompt("walrus", at=NOON + number * 60 * DAY))  # NOON is 2023-11-14
    assert order(store, "walrus on 14 November 2023")[0] == (sessions[0], 0)
    assert order(store, "walrus in January 2024")[0] == (sessions[1], 0)
    assert order(store, "walrus in early March 2024")[0] == (sessions[2], 0), "said soon after"


def test_a_slip_is_mended_and_told(store: Store) -> None:
    fill(store)
    session = new_session(store)
    tell(store, session, prompt("the walrus"))
    found = ranked(store, "wallrus")
    assert found.replaced == {"wallrus": ["walrus"]}
    assert [(hit.session, hit.seq) for hit in found.hits] == [(session, 0)]
    assert ranked(store, "walrus").replaced == {}
    assert ranked(store, '"wallrus"').hits == [], "what is quoted is meant"


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("json parser", "class JsonParser:"),
        ("JsonParser", "the json parser"),
        ("parser", "class JsonParser:"),
        ("parse_json", "def parsejson():"),
        ("parseJson", "def parse_json():"),
        ("auth.py", "see src/auth.py"),
        ("example.org", "https://example.org/guide"),
        ("会话", "这个会话已经结束"),
        ("walrus's", "the walrus"),
    ],
)
def test_names_are_found_however_they_are_written(store: Store, typed: str, text: str) -> None:
    fill(store)
    session = new_session(store)
    tell(store, session, prompt(text))
    assert order(store, typed)[:1] == [(session, 0)]


def test_the_order_is_the_same_every_time(store: Store) -> None:
    fill(store)
    assert order(store, "filler talk 3") == order(store, "filler talk 3")
    scores = [hit.score for hit in ranked(store, "filler talk 3").hits]
    assert scores == sorted(scores, reverse=True)


def test_nothing_asked_for_is_nothing_found(store: Store) -> None:
    fill(store)
    assert ranked(store, "").hits == ranked(store, "zzyzxq").hits == []


def test_one_session_does_not_fill_the_page(store: Store) -> None:
    fill(store)
    talkative, quiet = new_session(store, "talkative"), new_session(store, "quiet")
    tell(store, talkative, *[prompt(f"walrus and lemon {n}") for n in range(30)])
    tell(store, quiet, prompt("walrus"))
    found = order(store, "walrus lemon")
    assert found[0][0] == talkative
    assert (quiet, 0) in found[:20]
    assert len(found) == 31


def score_of(store: Store, place: tuple[int, int], weights: Weights) -> float:
    found = rank_candidates(store, build_index_query(parse_query("walrus lemon"), NOW), NOW, weights)
    return next(hit.score for hit in found.hits if (hit.session, hit.seq) == place)


def test_a_neighbour_adds_the_words_that_a_message_lacks_more_than_those_it_has(store: Store) -> None:
    fill(store)
    session = new_session(store, "both")
    tell(store, session, prompt("walrus"), prompt("walrus"), *[prompt("talk")] * 6, prompt("walrus"), prompt("lemon"))
    alike, missing = (session, 0), (session, 8)
    alone = replace(WEIGHTS, beside=0.0, near=0.0)
    added = {place: score_of(store, place, WEIGHTS) - score_of(store, place, alone) for place in (alike, missing)}
    assert added[missing] > 2 * added[alike] > 0


def test_the_first_message_is_not_behind_for_want_of_messages_before_it(store: Store) -> None:
    fill(store)
    session = new_session(store, "first")
    tell(store, session, prompt("walrus"), prompt("lemon"), prompt("talk"), prompt("talk"))
    assert score_of(store, (session, 0), WEIGHTS) > score_of(store, (session, 0), replace(WEIGHTS, edge=0.0))


def test_quotes_in_a_long_text_are_not_required(store: Store) -> None:
    fill(store)
    session = new_session(store, "long")
    tell(store, session, prompt("the walrus ate a lemon in the garden behind the house near the river"))
    text = (
        'what did the "very hungry" walrus eat in that garden behind our house near the old river last summer evening'
    )
    assert order(store, text)[0] == (session, 0)
    assert order(store, 'walrus "very hungry"') == []
