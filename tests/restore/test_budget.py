"""What must hold of a document whatever it says and whatever its budget is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.restore.budget import NAMES, Entry, order_entries, stands_in
from everturn.restore.document import FACTS, LEAST, SECTIONS, Document, DocumentSection, Evidence, Statement
from everturn.restore.markdown import document_json, document_markdown
from everturn.text.tokens import fits_tokens

KEYS = (*SECTIONS, *FACTS)
NOISE = ("commands", "mentioned")
LAST = (*NOISE, "files", "summaries", "errors_fixed", "plan_done")  # these wait for the others
SESSION_ID = "abc"


def plain(text: str) -> str:
    return text


def stated(number: int, key: str, size: int, weight: float) -> Statement:
    words = " ".join(f"{key.replace('_', '')}{number}w{place}" for place in range(size))
    text = f"`{key}Name{number}`" if key == NAMES else words
    return Statement(
        text, (Evidence(1, 1, number % 9, native_id=SESSION_ID),), True, weight=weight
    )  # several cite one message


@st.composite
def documents(draw: st.DrawFn) -> Document:
    made: dict[str, tuple[Statement, ...]] = {}
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=8)):
        sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=40))
        weights = draw(st.lists(st.integers(1, 100), min_size=len(sizes), max_size=len(sizes)))
        both = enumerate(zip(sizes, weights, strict=True))
        made[key] = tuple(stated(number, key, size, float(weight)) for number, (size, weight) in both)
    return document(made)


def document(made: Mapping[str, tuple[Statement, ...]]) -> Document:
    return Document(
        1, SESSION_ID, "agent", turns=2, last_seq=9,
        sections=tuple(DocumentSection(key, made.get(key, ())) for key in SECTIONS),
        facts=tuple(DocumentSection(key, made.get(key, ())) for key in FACTS),
    )  # fmt: skip


def words_of(text: str) -> set[str]:
    """The words of statements in a document: each belongs to one statement."""
    return set(re.findall(r"\b[a-z]+\d+w\d+\b|\b[a-z]+Name\d+\b", text))


@settings(max_examples=60, deadline=None)
@given(documents(), st.integers(LEAST, 6_000))
def test_a_document_is_never_over_its_budget(whole: Document, budget: int) -> None:
    assert fits_tokens(document_markdown(whole, plain, budget), budget)


@settings(max_examples=60, deadline=None)
@given(documents(), st.integers(LEAST, 4_000), st.integers(0, 2_000))
def test_more_budget_never_shows_less(whole: Document, budget: int, more: int) -> None:
    less_text, text = (document_markdown(whole, plain, one) for one in (budget, budget + more))
    assert words_of(less_text) <= words_of(text)


@settings(max_examples=60, deadline=None)
@given(documents(), st.integers(LEAST, 4_000))
def test_nothing_stands_there_twice(whole: Document, budget: int) -> None:
    text = document_markdown(whole, plain, budget)
    told = re.findall(r"\b[a-z]+\d+w\d+\b|\b[a-z]+Name\d+\b", text)
    assert len(told) == len(set(told))


@settings(max_examples=60, deadline=None)
@given(documents())
def test_every_section_with_something_to_say_has_a_share(whole: Document) -> None:
    text = document_markdown(whole, plain, 4_000)
    for one in (*whole.sections, *whole.facts):
        if one.statements and one.key not in LAST:
            assert words_of(text) & words_of(" ".join(two.text for two in one.statements)), one.key


@settings(max_examples=60, deadline=None)
@given(documents(), st.integers(LEAST, 4_000))
def test_every_citation_that_is_shown_resolves(whole: Document, budget: int) -> None:
    text = document_markdown(whole, plain, budget).split("\n## ", 1)[1]
    cited = {int(one) for one in re.findall(r"#(\d+)", text)}
    assert cited <= set(range(1, whole.last_seq + 2))


def test_a_long_list_does_not_crowd_out_the_others() -> None:
    many = {
        key: tuple(stated(number, key, 30, 90.0) for number in range(200)) for key in ("requests", "commits", *NOISE)
    }
    few = {key: (stated(0, key, 30, 10.0),) for key in ("key_decisions", "constraints", "next_steps", "still_failing")}
    text = document_markdown(document(many | few), plain, 2_000)
    assert all(f"{key.replace('_', '')}0w29" in text for key in few)
    assert (
        not any(one in text for one in ("commands0w0", "mentioned0w0")) and "Commands and how they ended (+200" in text
    )


def test_a_name_that_stands_elsewhere_is_not_listed_and_one_that_does_not_is() -> None:
    names = tuple(
        Statement(f"`{one}`", (Evidence(1, 0, 3),), True, weight=50) for one in ("zoneCount", "cartSize", "cart")
    )
    told = (Statement("the zoneCount is set", (Evidence(1, 0, 1),), True, weight=1),)
    text = document_markdown(document({NAMES: names, "constraints": told}), plain)
    assert text.partition(f"## {FACTS[NAMES]}\n")[2].startswith("`cartSize` [t1 #4]\n")


def test_names_of_one_message_share_its_citation_and_those_of_the_newest_come_first() -> None:
    names = tuple(stated(number, NAMES, 1, 50.0 - number) for number in (0, 1, 9))
    text = document_markdown(document({NAMES: names}), plain)
    assert "`namesName1` [t2 #2]; `namesName0`, `namesName9` [t2 #1]" in text


@pytest.mark.parametrize(
    ("name", "stands"),
    [
        ("/home/ann/shop/src/basket/total.py", True), ("a/src/basket/total.py", True), ("src\\basket\\total.py", True),
        ("src/basket/total.py:41", True), ("src/basket/total.py:41-60", True), ("addtotal(item, count)", True),
        ("/home/ann/shop/src/basket/totals.py", False), ("/tmp/total.py", False), ("addtotals(item)", False),
    ],
)  # fmt: skip
def test_a_path_that_ends_like_a_listed_one_is_that_one(name: str, stands: bool) -> None:
    assert stands_in(name, "- `src/basket/total.py` edited [t1 #3]\n- addtotal sums up [t1 #4]") is stands


@pytest.mark.parametrize(("budget", "times"), [(0, 2), (4_000, 1), (620, 1)])
def test_the_beginning_of_a_task_entry_that_is_shown_whole_is_not_repeated(budget: int, times: int) -> None:
    whole = (
        "The total now counts every coupon once, and the basket is saved after each change. " + "More follows. " * 20
    )
    proof = stated(0, "primary_task", 1, 1.0).evidence
    first = Statement(f"the agent's last answer: {whole[:60]}…", proof, weight=96.0)
    full = Statement(f"the agent's last answer, in full: {whole}", proof, weight=83.0)
    text = document_markdown(document({"primary_task": (first, full)}), plain, budget)
    assert text.count("The total now counts every coupon once") == times


def test_a_statement_that_is_too_long_for_the_rest_is_shown_in_part() -> None:
    long = {"requests": (stated(0, "requests", 900, 5.0),), "constraints": (stated(0, "constraints", 20, 5.0),)}
    text = document_markdown(document(long), plain, 1_200)
    assert "constraints0w19" in text and "requests0w50" in text and "requests0w899" not in text and "… [t2 #1]" in text


def test_within_a_section_the_weightiest_comes_first() -> None:
    entries = [Entry("requests", number, stated(number, "requests", 3, float(number))) for number in range(5)]
    assert [one.number for one in order_entries(entries)] == [4, 3, 2, 1, 0]


def test_a_document_for_programs_keeps_its_budget_too() -> None:
    whole = document({key: tuple(stated(number, key, 20, 9.0) for number in range(60)) for key in ("requests", NAMES)})
    made = document_json(whole, plain, 3_000)
    assert fits_tokens(json.dumps(made, ensure_ascii=False), 3_000) and made["not_shown"]["requests"] > 0
    assert len(made["facts"][NAMES]) == len(made["evidence"][NAMES]) > 0


def test_what_names_do_not_need_falls_to_the_rest() -> None:
    """Names have a third of the room; where there are few of them, other statements have it."""
    decisions = tuple(stated(number, "key_decisions", 20, 60.0) for number in range(40))
    names = tuple(stated(number, NAMES, 1, 50.0) for number in range(2))
    budget = 1_500
    without = document_markdown(document({"key_decisions": decisions}), plain, budget)
    beside = document_markdown(document({"key_decisions": decisions, NAMES: names}), plain, budget)
    assert {"namesName0", "namesName1"} <= words_of(beside)
    assert len(words_of(beside)) >= len(words_of(without)) - 20  # all but about one statement
