"""Segments that show parts of a conversation become one, item by item: nothing is dropped, nothing comes twice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.sources.terminal.redraws import find_redrawn
from everturn.sources.terminal.talks import TalkBuilder, align, finish_talk, is_other_session, merge, squash, title_of
from everturn.sources.terminal.transcript import (
    DrawnCall,
    DrawnSaying,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)
from tests.sources.terminal.random_screens import Dice


def user(text: str, time: str = "02:36 PM", **fields: object) -> DrawnSaying:
    return DrawnSaying("user", text=text, time_text=time, **fields)  # type: ignore[arg-type]


def model(text: str = "", **fields: object) -> DrawnSaying:
    return DrawnSaying("assistant", text=text, **fields)  # type: ignore[arg-type]


def called(title: str, output: str = "", status: str = "ok") -> DrawnSaying:
    return model(calls=(DrawnCall("read", title=title, output=output, status=status),))


def long(number: int) -> str:
    return f"Answer number {number} is long enough that nobody would repeat it by chance."


def turns(first: int, last: int) -> list[DrawnSaying]:
    """Some turns, each like no other."""
    said: list[DrawnSaying] = []
    for number in range(first, last + 1):
        said += [user(f"question {number}", f"02:{number:02} PM"), model(long(number))]
    return said


def texts(said: list[DrawnSaying]) -> list[str]:
    return [item.text or "".join(call.title for call in item.calls) for item in said]


# the same item twice --------------------------------------------------------------------------------------------------
def test_what_follows_is_added() -> None:
    assert merge(turns(1, 2), turns(3, 4)) == turns(1, 4)
    assert merge([], turns(1, 2)) == turns(1, 2)
    assert merge(turns(1, 2), []) == turns(1, 2)


def test_what_is_shown_again_is_not_added_again() -> None:
    assert merge(turns(1, 4), turns(1, 4)) == turns(1, 4)
    assert merge(turns(1, 4), turns(3, 4)) == turns(1, 4)
    assert merge(turns(1, 6), turns(2, 4)) == turns(1, 6)


def test_a_segment_that_begins_with_known_items_adds_only_the_rest() -> None:
    assert merge(turns(1, 4), turns(3, 6)) == turns(1, 6)


def test_a_segment_scrolled_back_beyond_the_beginning_is_put_in_front() -> None:
    assert merge(turns(3, 8), turns(2, 6)) == turns(2, 8)


def test_a_segment_scrolled_back_far_beyond_the_beginning_adds_nothing_twice() -> None:
    assert merge(turns(3, 6), turns(1, 4)) == turns(1, 6)


def test_the_same_words_at_the_same_time_are_sent_again_when_the_beginning_is_known() -> None:
    known = [user("continue"), model(long(1)), user("question 2"), model("some words")]
    shown = [model(long(2)), user("continue"), model("more words")]
    assert texts(merge(known, shown, cut_top=False)) == texts([*known, *shown])


def test_a_turn_that_is_drawn_again_with_more_of_its_calls_comes_once() -> None:
    known = [user("is late, jumps and shrinks", ""), called("← Write a.txt", status="open"), called("$ seq 3 59")]
    shown = [user("is late, jumps and shrinks", ""), called("# Wrote a.txt"), called("$ seq 3 59"), model("done")]
    assert texts(merge(known, shown)).count("is late, jumps and shrinks") == 1
    assert texts(merge(known, shown))[-2:] == ["$ seq 3 59", "done"]
    again = [user("yes", ""), called("$ ls"), model("done")]
    assert texts(merge(again, [user("yes", ""), called("$ cat b"), called("$ ls")])).count("yes") == 2


def test_a_message_that_waited_is_kept_though_the_same_words_were_sent_later_within_the_minute() -> None:
    talk = TalkBuilder("boxes", cut_top=False)
    segment = TranscriptSegment((), program="boxes", follows=True)
    talk.take([user("hello"), user("yes", kind="queued", queued=True)], segment)
    talk.take([user("yes"), model(long(1)), user("yes"), model(long(2))], segment)
    found = finish_talk([talk], TerminalTranscript((TranscriptSegment((TranscriptLine(""),)),), 80, 24))
    assert texts(list(found[0].said)) == ["hello", "yes", long(1), "yes", long(2)]


@pytest.mark.parametrize(
    ("fidelity", "place", "kept"),
    [
        ("partial", 300, ["first row\nsecond row of it\nthe end"]),
        ("partial", 100, ["first row\nsecond row", "first row\nsecond row of it\nthe end"]),
        ("rendered", 300, ["first row\nsecond row", "first row\nsecond row of it\nthe end"]),
    ],
)
def test_a_part_of_a_prompt_that_was_drawn_after_it_and_stands_above_it_is_the_same_prompt(
    fidelity: str, place: int, kept: list[str]
) -> None:
    part = user("first row\nsecond row", bytes=(place, place + 50), fidelity=fidelity)
    whole = user("first row\nsecond row of it\nthe end", bytes=(200, 290))
    talk = TalkBuilder("boxes", cut_top=False)
    talk.said = [part, whole]
    found = finish_talk([talk], TerminalTranscript((TranscriptSegment((TranscriptLine(""),)),), 80, 24))
    assert texts(list(found[0].said)) == kept


def test_a_prompt_whose_ends_are_covered_is_the_prompt_of_its_time() -> None:
    known = [*turns(1, 2), user("a question that is long\nenough for two rows", "02:40 PM"), called("Read a.py")]
    shown = [user("a question that\nenough for", "02:40 PM", fidelity="partial"), called("Read a.py", "1")]
    assert texts(merge(known, shown)) == texts(known)
    other = [user("a question this\nenough for", "02:40 PM", fidelity="partial"), called("Read b.py", "1")]
    assert texts(merge(known, other)) == texts([*known, *other])


def test_what_was_left_out_between_known_items_comes_in_between() -> None:
    known = [*turns(1, 2), *turns(5, 6)]
    assert merge(known, turns(1, 6)) == turns(1, 6)


def test_other_wrapping_is_the_same_item() -> None:
    wrapped = [user("question 1", "02:01 PM"), model(long(1).replace(" ", "\n"))]
    assert len(merge(turns(1, 1), wrapped)) == 2


def test_two_equal_prompts_of_one_segment_stay_two() -> None:
    said = [user("continue"), model("Part one is done."), user("continue"), user("continue"), model("All is done.")]
    assert merge([], said) == said
    assert merge(said, said) == said


def test_an_equal_prompt_sent_later_is_another_one() -> None:
    known = [user("continue", "02:36 PM"), model("Part one is done.")]
    assert texts(merge(known, [user("continue", "02:40 PM"), model("Part two is done.")])) == [
        "continue",
        "Part one is done.",
        "continue",
        "Part two is done.",
    ]


def test_an_answer_that_grew_is_seen_best_in_the_later_segment() -> None:
    known = [*turns(1, 1), user("question 2"), model("It begins")]
    shown = [*turns(1, 1), user("question 2"), model("It begins and it goes on to its end.")]
    assert merge(known, shown) == shown


def test_an_answer_whose_beginning_scrolled_away_is_not_shortened() -> None:
    known = turns(1, 2)
    shown = [model("nobody would repeat it by chance."), *turns(3, 3)]
    assert texts(merge(known, shown)) == texts(turns(1, 3))


def test_the_end_and_the_beginning_of_an_answer_are_joined_where_they_overlap() -> None:
    lines = [f"Line {number} of a long answer says something of its own." for number in range(8)]
    known = [user("tell me"), model("\n".join(lines[:5]))]
    (_, answer, last) = merge(known, [model("\n".join(lines[3:])), user("thanks", "02:50 PM")])
    assert squash(answer.text) == squash("".join(lines))
    assert last.text == "thanks"


def test_a_call_that_was_running_becomes_the_call_with_its_result() -> None:
    known = [*turns(1, 1), called("Read a.py", status="open")]
    shown = [*turns(1, 1), called("Read a.py", "one = 1")]
    assert merge(known, shown) == shown


def test_what_is_known_of_a_call_is_not_lost_to_a_drawing_that_shows_less() -> None:
    known = [*turns(1, 1), called("Read a.py", "one = 1"), *turns(2, 2)]
    shown = [*turns(1, 1), called("Read a.py", "one = 1"), *turns(2, 3)]
    assert texts(merge(known, shown)) == [*texts(known), *texts(turns(3, 3))]


def test_a_whole_drawing_is_better_than_a_partial_one() -> None:
    part = user("question 1", "02:01 PM", fidelity="partial")
    whole = user("question 1", "02:01 PM")
    assert merge([part, model(long(1))], [whole, model(long(1))])[0] == whole
    assert merge([whole, model(long(1))], [part, model(long(1))])[0] == whole


def test_what_a_shell_printed_joins_nothing_and_is_kept() -> None:
    printed = DrawnSaying("system", "output", "$ opencode")
    said = merge([printed, *turns(1, 2)], turns(2, 3))
    assert said == [printed, *turns(1, 3)]


# which items are the same ---------------------------------------------------------------------------------------------
def test_pairs_rise_on_both_sides() -> None:
    assert align(turns(1, 3), turns(2, 4)) == [(2, 0), (3, 1), (4, 2), (5, 3)]


def test_nothing_in_common_gives_no_pairs() -> None:
    assert align(turns(1, 3), turns(4, 6)) == []
    assert align([], turns(1, 2)) == []
    assert align(turns(1, 2), []) == []


def test_a_few_equal_words_in_a_session_of_its_own_are_not_the_same_items() -> None:
    known = [user("hello"), model("Hello!"), *turns(1, 2)]
    shown = [user("hello", "03:10 PM"), model("Hello!"), *turns(3, 4)]
    assert align(known, shown, joins=False) == []


def test_a_conversation_opened_again_is_recognised_without_joining_its_end() -> None:
    assert align(turns(1, 6), turns(2, 4), joins=False) == [(place + 2, place) for place in range(6)]


@pytest.mark.parametrize("seed", range(30))
def test_any_windows_on_a_conversation_give_that_conversation(seed: int) -> None:
    """However somebody scrolls between the beginning and the end, each window showing something that was seen before."""
    dice = Dice(seed)
    conversation = turns(1, 16)
    last = 6
    known = conversation[:last]
    for _ in range(16):
        begin = dice.roll(last - 1)
        end = min(len(conversation), begin + 3 + dice.roll(8))
        known = merge(known, conversation[begin:end])
        last = max(last, end)
        assert texts(known) == texts(conversation[:last])


# which talk a segment belongs to --------------------------------------------------------------------------------------
def segment(title: str = "", **fields: object) -> TranscriptSegment:
    return TranscriptSegment((), title=f"# {title}" if title else "", program="boxes", **fields)  # type: ignore[arg-type]


def begun(*titles: str) -> TalkBuilder:
    """A talk of two turns that had these titles."""
    talk = TalkBuilder("boxes", cut_top=False)
    for title in titles:
        talk.take(turns(1, 2), segment(title))
    return talk


def test_a_segment_that_follows_under_the_same_title_goes_on() -> None:
    assert begun("A title").continues(turns(7, 8), segment("A title", follows=True, cut_top=True), fresh=False)


def test_a_segment_with_the_same_items_belongs_to_the_talk_even_after_the_home_screen() -> None:
    assert begun("A title").continues(turns(1, 2), segment("Another"), fresh=True)


def test_other_words_after_the_home_screen_are_another_talk() -> None:
    assert not begun("A title").continues(turns(7, 8), segment("A title"), fresh=True)


def test_another_title_is_another_talk() -> None:
    assert not begun("A title").continues(turns(7, 8), segment("Another", follows=True, cut_top=True), fresh=False)


def test_the_first_title_of_a_session_may_be_replaced() -> None:
    assert begun("New session").continues(turns(7, 8), segment("A title", follows=True, cut_top=True), fresh=False)


def test_a_session_without_a_name_after_one_that_was_named_is_another_talk() -> None:
    talk = begun("New session", "A title")
    assert not talk.continues(turns(7, 8), segment("New session", follows=True, cut_top=True), fresh=False)


def test_a_talk_remembers_every_title_once_in_a_row() -> None:
    assert begun("New session", "New session", "A title").titles == ["New session", "A title"]


def test_an_item_recovered_is_put_where_its_time_is() -> None:
    talk = TalkBuilder("boxes", cut_top=False)
    talk.said = [user("one", bytes=(10, 20)), user("three", bytes=(50, 60))]
    talk.recover([user("two", bytes=(30, 40)), user("four", bytes=(70, 80))])
    assert texts(talk.said) == ["one", "two", "three", "four"]


def test_the_beginning_of_a_prompt_and_any_part_of_an_answer_are_not_recovered() -> None:
    talk = begun("A title")
    before = len(talk.said)
    talk.recover([user("question"), model("nobody would\nrepeat it")])
    assert len(talk.said) == before
    talk.recover([user("nobody would repeat it"), model("question 1")])
    assert len(talk.said) == before + 2


# titles ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("frame", "title"),
    [
        ("# A title\n/share to create a link", "A title"),
        ("# A title   12K/6%", "A title"),
        ("┃  # A title  ┃", "A title"),
        ("no title", ""),
        ("", ""),
    ],
)
def test_the_title_is_what_stands_behind_the_mark(frame: str, title: str) -> None:
    assert title_of(frame) == title


def test_only_a_real_title_that_changes_names_another_session() -> None:
    assert is_other_session("# One", "# Two")
    assert not is_other_session("# One", "# One")
    assert not is_other_session("# New session", "# Two")
    assert not is_other_session("", "# Two")
    assert not is_other_session("# One", "")


# what looks alike and is not, and the other way round ----------------------------------------------------------------
def test_a_segment_with_nothing_in_common_comes_where_its_time_is() -> None:
    known = [replace(item, bytes=(number * 100, number * 100 + 9)) for number, item in enumerate(turns(1, 3))]
    older = [replace(user("an old one", "01:59 PM"), bytes=(150, 160)), replace(model("yes"), bytes=(160, 170))]
    assert texts(merge(known, older)) == texts([*known[:2], *older, *known[2:]])


def test_a_part_from_the_middle_of_a_long_answer_is_not_another_answer() -> None:
    lines = [f"line {number} of an answer that is taller than the screen" for number in range(20)]
    known = [*turns(1, 1), user("long one", "02:05 PM"), model("\n".join(lines)), *turns(6, 7)]
    assert merge(known, [model("\n".join(lines[4:12]), fidelity="partial")]) == known


def test_a_call_that_was_waiting_and_is_shown_again_as_it_was_run_is_one() -> None:
    known = [*turns(1, 1), user("run both"), called("first", status="open"), called("second", status="open")]
    merged = merge(known, [called("first", "done"), called("second", "done too")])
    assert texts(merged) == texts(known)
    assert [call.output for item in merged for call in item.calls] == ["done", "done too"]


def test_the_rest_of_an_output_goes_to_the_call_that_stands_where_the_others_say() -> None:
    rest = model(calls=(DrawnCall("unknown", output="the last row"),))
    known = [user("run it"), called("first"), called("second", "some output"), called("third")]
    merged = merge(known, [rest, called("second", "some output"), called("third"), called("fourth")])
    assert texts(merged) == ["run it", "first", "second", "third", "fourth"]
    assert merged[1].calls[0].output == "the last row"


def test_a_prompt_of_which_only_the_time_is_left_is_the_one_of_that_time() -> None:
    known = [*turns(1, 2), user("the last one", "02:09 PM")]
    assert texts(merge(known, [user("", "02:09 PM", fidelity="partial"), model("an answer")])) == [
        *texts(known),
        "an answer",
    ]


# drawn again, or sent again -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("emptied", "kept"),
    [
        ((90, 300), ["question 1", "yes", long(1), long(2)]),  # one text left the field for each of two prompts
        ((90, 300, 600), ["question 1", "yes", long(1), "yes", long(2)]),  # and one for the third
        ((300,), ["question 1", "yes", long(1), "yes", long(2)]),  # the field is no witness: one prompt is without
        ((), ["question 1", "yes", long(1), "yes", long(2)]),
    ],
)
def test_a_prompt_that_comes_again_counts_where_something_was_sent_for_it(
    emptied: tuple[int, ...], kept: list[str]
) -> None:
    talk = TalkBuilder("boxes", cut_top=False)
    talk.said = [
        user("question 1", "", starts_turn=True, bytes=(100, 190)),
        user("yes", "", starts_turn=True, bytes=(310, 390)),
        model(long(1), bytes=(400, 490)),
        user("yes", "", starts_turn=True, bytes=(610, 690)),
        model(long(2), bytes=(700, 790)),
    ]
    transcript = TerminalTranscript((TranscriptSegment((TranscriptLine(""),)),), 80, 24, emptied=emptied)
    assert texts(list(finish_talk([talk], transcript)[0].said)) == kept


def test_rows_of_a_prompt_that_are_drawn_again_are_no_prompt_unless_something_was_sent() -> None:
    whole = user("one row\nanother row\nthe last row", starts_turn=True, bytes=(100, 190))
    part = user("another row\nthe last", starts_turn=True, bytes=(300, 390), fidelity="partial")
    assert find_redrawn([whole, model(long(1)), part], (90,)) == {2}
    assert find_redrawn([whole, model(long(1)), part], (90, 250)) == set()
    assert find_redrawn([whole, model(long(1)), replace(part, text="the last\nanother row")], (90,)) == set()
    assert find_redrawn([whole, model(long(1)), replace(part, time_text="02:37 PM")], (90,)) == set()
