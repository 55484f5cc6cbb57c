"""Questions are understood, and the search prefers what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.retrieval.query import parse_query
from everturn.retrieval.question import NOTHING, UnderstoodQuery, split_literal, understand, understand_query
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import Results, search
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from tests.quick import QUICK, some
from tests.recall.archives import Archive

NOW = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)  # a Wednesday
NOW_MS = int(NOW.timestamp() * 1000)
DAY_MS = 86_400_000


def read(text: str, **filters: object) -> UnderstoodQuery:
    return understand_query(parse_query(text), SearchFilters(**filters), NOW_MS)  # type: ignore[arg-type]


def content(understood: UnderstoodQuery) -> list[str]:
    return [piece.text for piece in understood.query.wanted_phrases]


# --- who spoke, and what kind of answer ---


def test_a_long_text_that_is_no_question_wants_answers() -> None:
    prompt = "We need something more extensible for future tag values. The field, as a plain list of words, feels too basic to me now."
    assert understand(prompt, NOW_MS).intent == "answer"
    assert understand(f"Which of these fits, if {prompt}", NOW_MS).intent != "answer"
    assert understand("We need something more extensible.", NOW_MS).intent == ""


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("What did I answer when you claimed that there was no changelog?", "user"),
        ("When did I ask for an update of the notes?", "user"),
        ("Which command was run when I typed test?", ""),
        ("What did the program print after you said it was done?", ""),
        ("what did I say about caching", "user"),
        ("What did I tell you about the port?", "user"),
        ("did I ask you to rename it", "user"),
        ("the limit I asked for", "user"),
        ("what did the user say about tabs", "user"),
        ("what was my original request about the port", "user"),
        ("what did you answer about caching", "assistant"),
        ("you said the port is free", "assistant"),
        ("what have you recommended for the linter", "assistant"),
        ("your suggestion for the index", "assistant"),
        ("what did you answer when I asked about timeouts", "assistant"),
        ("was habe ich über den Cache gesagt", "user"),
        ("was hast du zum Cache vorgeschlagen", "assistant"),
        ("qu'ai-je dit à propos du cache", "user"),
        ("qu'as-tu proposé pour le cache", "assistant"),
        ("qué dije sobre la caché", "user"),
        ("qué sugeriste para la caché", "assistant"),
        ("私がキャッシュについて言ったこと", "user"),
        ("あなたが提案した方法", "assistant"),
        ("我昨天说了什么", "user"),
        ("你建议用什么缓存", "assistant"),
        ("what did we say about caching", ""),
        ("what did you do yesterday", ""),
        ("the user interface", ""),
        ("why does my request fail", ""),
    ],
)
def test_who_spoke_is_understood(text: str, speaker: str) -> None:
    assert understand(text, NOW_MS).speaker == speaker


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("which command did we use to restart it", "command"),
        ("how did you run the server", "command"),
        ("what error came up in the build", "error"),
        ("why did the deploy fail", "error"),
        ("which files did we change", "file"),
        ("what did we decide about the schema", "decision"),
        ("when was the port changed", "when"),
        ("what did I say you must not touch", "prohibition"),
        ("parse error", ""),
        ("command line parser", ""),
        ("have I worked with queues before", "told"),
        ("I need a new laptop. What would fit?", "told"),
        ("when is my first deadline", "when"),
        ("what did I say about the queue", ""),
        ("can you remind me which queue it was", ""),
        ("my first deadline", ""),
    ],
)
def test_the_kind_of_answer_is_understood(text: str, intent: str) -> None:
    assert understand(text).intent == intent


# --- the words that are left ---


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("what did I say about caching 3 days ago", ["what", "about", "caching"]),
        ("cache errors since last Tuesday, please", ["cache", "errors", "please"]),
        ("昨天我说了什么关于缓存的话", ["什么关于缓存的话"]),
        ("release notes of 2026-01-31", ["release", "notes"]),
        ("report-2026-01-31.md from yesterday", ["report-2026-01-31.md"]),
    ],
)
def test_words_for_the_time_and_the_speaker_are_not_searched_for(text: str, left: list[str]) -> None:
    assert content(read(text)) == left


@pytest.mark.parametrize("text", ["yesterday", "what did I say", "what did we do last week?", "昨天"])
def test_some_words_are_always_left(text: str) -> None:
    found = read(text)
    assert found.query == parse_query(text) and found.is_listing


@pytest.mark.parametrize(
    "text", ['"yesterday" cache', "cache -yesterday", "cache OR yesterday", "cache yesterda*", "/yesterday/"]
)
def test_marked_words_are_searched_for_as_they_are(text: str) -> None:
    assert read(text) == UnderstoodQuery(parse_query(text))


def test_a_quoted_word_separates_the_words_around_it() -> None:
    assert read('3 "x" days ago').meant == NOTHING


def test_filters_win() -> None:
    text = "what did I say about the build error yesterday"
    assert read(text, since=1).meant.times == () and content(read(text, until=1))[-1] == "yesterday"
    by_tool = read(text, origins=("tool",))
    assert (by_tool.meant.speaker, by_tool.meant.intent) == ("", "") and "say" in content(by_tool)
    assert read(text, tools=("Bash",)).meant.intent == ""


def test_literal_is_a_filter() -> None:
    assert split_literal(parse_query("cache literal:yes")) == (parse_query("cache"), True)
    assert split_literal(parse_query("cache literal:no"))[1] is False
    assert split_literal(parse_query("cache -literal:yes"))[1] is False
    with pytest.raises(UsageError, match="literal:perhaps is not valid; give literal:yes or literal:no"):
        split_literal(parse_query("cache literal:perhaps"))


@settings(deadline=None)
@given(st.text())
def test_no_text_raises(text: str) -> None:
    meant = understand(text, NOW_MS)
    assert all(time.first <= time.last for time in meant.times)
    assert all(start < end for start, end in meant.used_ranges)
    assert isinstance(meant.describe(), str)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from('what did i you say ask yesterday 3 days ago cache about last week "x" -a b* OR'.split()),
        max_size=12,
    )
)
def test_a_query_keeps_a_word_if_it_had_one(words: list[str]) -> None:
    query = parse_query(" ".join(words))
    found = understand_query(query, SearchFilters(), NOW_MS)
    assert bool(found.query.wanted_phrases) == bool(query.wanted_phrases)
    assert [piece for piece in found.query.pieces if piece.quoted or piece.negated or piece.prefix] == [
        piece for piece in query.pieces if piece.quoted or piece.negated or piece.prefix
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from("what did I say you answer about the cache error which file yesterday".split()), max_size=10
    ),
    st.randoms(use_true_random=False),
)
def test_white_space_and_case_do_not_matter(words: list[str], random: Random) -> None:
    text = " ".join(words)
    other = "  ".join(random.choice((word.upper(), word.title(), word.lower())) for word in words)
    assert understand(f"\n{other} ", NOW_MS) == understand(text, NOW_MS)


# --- the search ---

TOPICS = ("cache", "parser", "retry", "login", "upload", "index", "queue", "banner")
#: Days back of a session, with expressions that mean it.
TIMES = {
    0: ("today", "this morning"),
    1: ("yesterday", "a day ago"),
    3: ("3 days ago", "on Sunday", "last Sunday"),
    5: ("five days ago", "last Friday", "on Friday"),
    14: ("two weeks ago", "on 4 November", "2 weeks ago"),
    33: ("a month ago", "last month", "in October"),
    66: ("in September", "two months ago", "2026-09-13"),
    400: ("last year", "in October 2025"),
}


class TimedArchive:
    """Sessions with nearly the same words, each at its own time."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.sessions = {back: f"{back:08d}-2222-4333-8444-555555555555" for back in TIMES}
        for back, sid in self.sessions.items():
            archive.history.write(b"".join(self._lines(back, sid)), sid)
        archive.take_in(sid=self.sessions[0])

    def _lines(self, back: int, sid: str) -> Iterator[bytes]:
        start = (NOW - timedelta(days=back)).replace(hour=9, minute=0)
        for number, topic in enumerate(TOPICS):
            at = (start + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
            asked, done = (
                f"please set the {topic} limit to {back + number}",
                f"The {topic} limit is {back + number} now.",
            )
            yield self.archive.history.line("user", asked, sid, timestamp=at)
            yield self.archive.history.line(
                "assistant",
                [{"type": "text", "text": f"{done} The {topic} reads the limit at start."}],
                sid,
                timestamp=at,
            )

    def find(self, text: str, understand: bool = True, limit: int = 20, **filters: object) -> Results:
        given = SearchFilters(**filters)  # type: ignore[arg-type]
        return search(
            self.archive.store, all_sources(), text, given, limit, "", redact_text, NOW_MS, understand=understand
        )  # fmt: skip


@pytest.fixture
def timed(archive: Archive) -> TimedArchive:
    return TimedArchive(archive)


def is_hit(page: Results, sid: str, topic: str, role: str = "") -> bool:
    return any(
        found.session.native_id == sid and topic in found.snippet and found.row and (not role or found.row.role == role)
        for found in page.items[:5]
    )


_FORMS = (
    "what did we do about the {topic} limit {when}",
    "{topic} limit {when}",
    "{when}, how was the {topic} limit changed?",
)


def count_hits(timed: TimedArchive, understand: bool) -> tuple[int, int]:
    """Ask for every time and speaker; return the right ones among the first five, and the questions."""
    right = asked = 0
    for back, expressions in TIMES.items():
        for number, when in enumerate(expressions):
            for topic in TOPICS[number :: 6 if QUICK else 2]:
                form = _FORMS[(number + asked) % len(_FORMS)]
                page = timed.find(form.format(topic=topic, when=when), understand)
                right, asked = right + is_hit(page, timed.sessions[back], topic), asked + 1
    for topic in some(TOPICS, 4):
        for back, when in ((3, "3 days ago"), (14, "two weeks ago")):
            for role, form in (
                ("user", "what did I say about the {} limit {}"),
                ("assistant", "what did you answer about the {} limit {}"),
            ):
                page = timed.find(form.format(topic, when), understand)
                right, asked = right + is_hit(page, timed.sessions[back], topic, role), asked + 1
    return right, asked


@pytest.mark.few(1)
def test_questions_with_a_time_or_a_speaker_find_their_answer(timed: TimedArchive) -> None:
    right, asked = count_hits(timed, understand=True)
    literal, _ = count_hits(timed, understand=False)
    print(f"hit@5: {right} of {asked} understood, {literal} of {asked} literal")
    assert asked >= (40 if QUICK else 60)
    assert right >= 0.95 * asked
    assert literal < right  # the questions are hard enough to need it


def test_the_page_says_what_was_understood(timed: TimedArchive) -> None:
    page = timed.find("what did I say about the cache limit yesterday")
    assert page.notes[0] == (
        "looked first at what you said, 17 November 2026; literal:yes searches for the words as they are"
    )
    assert page.note.startswith(page.notes[0]) and page.fits
    first = page.items[0]
    assert first.row and (first.session.native_id, first.row.origin) == (timed.sessions[1], "human")


def test_other_times_and_speakers_follow(timed: TimedArchive) -> None:
    page = timed.find("what did I say about the cache limit yesterday", limit=200)
    assert {found.session.native_id for found in page.items} == set(timed.sessions.values())
    assert {found.row.role for found in page.items if found.row} == {"user", "assistant"}


def test_where_nothing_fits_the_page_says_so(timed: TimedArchive) -> None:
    page = timed.find("the cache limit on 3 January")
    assert page.items and not page.fits
    assert page.notes[0].startswith("found nothing in 3 January 2026: these are other messages; literal:yes")
    counted = timed.find("what did we decide about the queue 3 weeks ago")
    assert counted.notes[0].startswith("found nothing in 25–31 October 2026: these are other messages")
    assert all("queue" in found.snippet for found in counted.items[:8])  # not whatever holds a 3


def test_who_asks_about_oneself_gets_prompts_first(timed: TimedArchive) -> None:
    mine, ours = timed.find("which limit has my cache?"), timed.find("which limit has our cache?")
    assert mine.notes[0].startswith("looked first at prompts; literal:yes")
    assert [page.items[0].row and page.items[0].row.origin for page in (mine, ours)] == ["human", "model"]


def test_without_other_words_the_messages_of_that_time_are_listed(timed: TimedArchive) -> None:
    page = timed.find("what did I say yesterday?")
    assert {(found.session.native_id, found.field) for found in page.items[:8]} == {(timed.sessions[1], "prompt")}
    assert "banner" in page.items[0].snippet  # the newest first


@pytest.mark.parametrize("text", ["cache limit yesterday literal:yes", "literal:true cache limit yesterday"])
def test_understanding_can_be_turned_off(timed: TimedArchive, text: str) -> None:
    plain = timed.find("cache limit yesterday", understand=False)
    page = timed.find(text)
    assert [found.score for found in page.items] == [found.score for found in plain.items]
    assert not any("looked first" in note for note in (*page.notes, *plain.notes))


def test_a_typed_filter_decides(timed: TimedArchive) -> None:
    page = timed.find("what did I say about the cache limit yesterday role:assistant since:2026-11-15")
    assert {found.row.role for found in page.items if found.row} == {"assistant"}
    assert not any("looked first" in note for note in page.notes)


def test_pages_of_an_understood_question_fit_together(timed: TimedArchive) -> None:
    text, given = "what did I say about the cache limit 3 days ago", SearchFilters()
    args = (timed.archive.store, all_sources(), text, given)
    whole = [(found.session.id, found.row and found.row.seq) for found in search(*args, 40, now=NOW_MS).items]
    pages, cursor = [], ""
    while True:
        page = search(*args, 7, cursor, now=NOW_MS + 5)
        pages += [(found.session.id, found.row and found.row.seq) for found in page.items]
        cursor = page.next
        if not cursor:
            break
    assert pages[: len(whole)] == whole and len(set(pages)) == len(pages)
    with pytest.raises(UsageError, match="does not belong"):
        search(*args, 7, search(*args, 7, now=NOW_MS).next, now=NOW_MS, understand=False)


def test_a_wider_scope_is_searched_if_the_time_is_not_in_the_nearest(timed: TimedArchive) -> None:
    named = next(one.session for one in timed.find("cache limit today").items)
    assert named.native_id == timed.sessions[0]
    page = timed.find("cache limit two weeks ago", session=named, widen=True)
    assert page.scope != "session" and page.items[0].session.native_id == timed.sessions[14]


def test_a_command_is_preferred_where_one_is_asked_for(archive: Archive) -> None:
    archive.take_in(
        archive.history.turn("we restart nginx by hand", "ok"),
        archive.history.turn("other things", "ok"),
        archive.history.line("user", "go on"),
        archive.use("Bash", "t1", command="systemctl restart nginx"),
        archive.back("t1", "done"),
    )

    def share(text: str) -> float:
        page = search(archive.store, all_sources(), text, now=NOW_MS)
        by_field = {found.field: found.score for found in page.items}
        return by_field["tool_input"] / by_field["prompt"]

    assert share("which command to restart nginx") > share("restart nginx")
