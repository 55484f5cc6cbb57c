"""A search answer within a budget: the best turn first, and a larger budget never shows less."""

from __future__ import annotations

import random

import pytest

from everturn.recall.budget import MAX_TOKENS, MIN_TOKENS, SEARCH_TOKENS, cost
from everturn.recall.quotation import ladder_steps
from everturn.recall.tool import ConversationRecall
from everturn.recall.turn_quote import MATCH, TurnMatch
from everturn.recall.windows import QueryWords, show_spans
from everturn.sources.contract import all_sources
from tests.recall.archives import Archive
from tests.recall.test_tool import body

WORDS = "river stone lamp window paper engine garden copper silver market winter summer yellow purple anchor".split()


def prose(rng: random.Random, n: int) -> str:
    """Lines of words that nobody asks for."""
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(n)]
    return "\n".join(lines)


def busy_archive(archive: Archive, seed: int) -> None:
    """Sessions whose turns say `walrus quota` in prompts, answers and output, amid much else."""
    rng = random.Random(seed)
    for number in range(3):
        sid = f"{number}1111111-2222-4333-8444-555555555555"
        pieces = []
        for turn in range(5):
            said = [prose(rng, rng.randint(0, 30)) for _ in range(3)]
            where = rng.randrange(4)
            if where < 3:
                said[where] = (
                    f"{said[where]}\nthe walrus quota {number}{turn} is {rng.randint(1, 99)}\n{prose(rng, 20)}"
                )
            pieces.append(archive.history.tool_turn(said[0] or "go", f"cat {turn}", said[1], sid))
            pieces.append(archive.history.line("assistant", [{"type": "text", "text": said[2] or "ok"}], sid))
        archive.take_in(*pieces, sid=sid)


def shown_lines(text: str) -> set[str]:
    """The lines of a transcript in an answer, without the marks of what is left out."""
    lines = (line.strip().strip("…").strip() for line in body(text).split("\n") if line.startswith("  "))
    return {line for line in lines if line}


@pytest.mark.parametrize("seed", range(6))
def test_a_larger_budget_shows_all_that_a_smaller_one_shows(archive: Archive, seed: int) -> None:
    busy_archive(archive, seed)
    before: set[str] = set()
    for budget in (MIN_TOKENS, 300, 450, 700, 1000, 1500, 2000, 3000, 5000, MAX_TOKENS):
        text = ConversationRecall(archive.store, all_sources(), budget=budget)(action="search", query="walrus quota")
        now = shown_lines(text)
        assert cost(text) <= budget
        assert any("walrus quota" in line for line in now)
        assert not [line for line in before if not any(line in other for other in now)]
        before = now


def test_the_first_hit_is_the_same_at_every_budget(archive: Archive) -> None:
    busy_archive(archive, 7)
    firsts = set()
    for budget in (MIN_TOKENS, 600, 2000, MAX_TOKENS):
        answer = ConversationRecall(archive.store, all_sources(), budget=budget).answer(
            {"action": "search", "query": "walrus quota"}
        )
        first = next(entry for entry in answer.entries if entry.is_match)
        firsts.add((first.session, first.turn))
    assert len(firsts) == 1


def test_a_search_takes_two_thousand_tokens_unless_more_is_wanted(archive: Archive) -> None:
    busy_archive(archive, 3)
    asked = {"action": "search", "query": "walrus quota"}
    short = ConversationRecall(archive.store, all_sources()).call(asked)
    long = ConversationRecall(archive.store, all_sources(), budget=MAX_TOKENS).call(asked)
    assert SEARCH_TOKENS // 2 < cost(short) <= SEARCH_TOKENS < cost(long)
    whole = ConversationRecall(archive.store, all_sources()).call(
        {"action": "range", "start_turn": 1, "end_turn": 5, "query": "session:01111111"}
    )
    assert cost(whole) > SEARCH_TOKENS


def test_the_prompt_of_a_turn_stands_before_its_match(archive: Archive) -> None:
    output = "\n".join(f"row {n}" if n != 80 else "the walrus is 42" for n in range(400))
    archive.take_in(archive.history.tool_turn("count the animals", "cat zoo", output))
    told = body(ConversationRecall(archive.store, all_sources(), budget=400)(action="search", query="walrus"))
    assert told.index("count the animals") < told.index("the walrus is 42") and "row 300" not in told


def test_several_hits_of_one_turn_are_one_entry(archive: Archive) -> None:
    archive.take_in(
        archive.history.line("user", "feed the walrus"),
        *(archive.history.line("assistant", [{"type": "text", "text": f"walrus step {n}"}]) for n in range(4)),
    )
    text = ConversationRecall(archive.store, all_sources())(action="search", query="walrus")
    assert text.startswith("1 matching turn ") and body(text).count("[Session ") == 1
    assert "walrus step 0" in text and "walrus step 3" in text


def test_the_same_text_is_quoted_once_with_a_count(archive: Archive) -> None:
    for number in range(3):
        sid = f"{number}1111111-2222-4333-8444-555555555555"
        failure = "error: the walrus daemon refused connection on port 8080 while starting the zoo service"
        archive.take_in(archive.history.tool_turn(f"start it, try {number}", "make up", failure, sid), sid=sid)
    told = body(ConversationRecall(archive.store, all_sources())(action="search", query="walrus daemon refused"))
    assert told.count("the walrus daemon refused") == 1
    assert "the same in 2 more turns: " in told


def test_a_line_that_matches_is_never_cut() -> None:
    line = "the walrus " + "word " * 35 + "quota is 42"
    text = "\n".join(["filler " * 20] * 30 + [line] + ["filler " * 20] * 30)
    words = QueryWords(["walrus", "quota"])
    for size in (0, 100, 300, 900):
        assert line in show_spans(text, words.windows(text, size))


def test_words_that_are_far_apart_get_windows_of_their_own() -> None:
    text = "\n".join(["the walrus"] + ["filler"] * 300 + ["the quota"] + ["filler"] * 300)
    words = QueryWords(["walrus", "quota"])
    assert "quota" not in show_spans(text, words.windows(text, 200, 1))
    both = show_spans(text, words.windows(text, 200, 2))
    assert "walrus" in both and "quota" in both and len(both) < 600


def test_the_rarest_word_decides_where_the_window_is() -> None:
    text = "the token file\n" + "filler\n" * 100 + "the walrus token\n" + "filler\n" * 100 + "the token file token file"
    shown = show_spans(text, QueryWords(["token", "file", "walrus"], {"walrus": 1}).windows(text, 100))
    assert "walrus" in shown


def test_another_good_turn_comes_before_more_of_the_same_one(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("a", "b"))
    text = archive.store.session(session.id)[1]
    rows = tuple(archive.store.messages(session.id))
    good = [TurnMatch(session, text, turn, rows, (10.0 - turn / 10, 5.0)) for turn in range(3)]
    poor = TurnMatch(session, text, 3, rows, (2.0, 1.0))
    steps = ladder_steps([*good, poor])
    begun = [number for number, stage, _ in steps if stage == MATCH]
    assert begun == [0, 1, 2, 3]
    assert [number for number, _, _ in steps[:9]] == [0] * 3 + [1] * 3 + [2] * 3
    assert steps.index((3, MATCH, 0)) > 12, "a poor turn comes after more of the good ones"
