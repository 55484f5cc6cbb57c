"""Decisions and constraints by the words that say so, and the many sentences that only look like them."""

from __future__ import annotations

import pytest

from everturn.derive.choices import find_announcements, weigh_choices
from everturn.derive.decisions import LONGEST, MAX_LISTED, DecisionMark, find_decisions, likeness, sentence_mark
from everturn.derive.intent import find_revisions, revised_status
from everturn.text.sentences import split_sentences


def kinds(text: str) -> list[tuple[str, bool]]:
    return [(one.kind, one.binds) for one in find_decisions(text)]


@pytest.mark.parametrize(
    "text",
    [
        "If it failed, explain it and do NOT check off the item.",
        "Never use an ORM, raw SQL only.",
        "never commit to main",
        "Always run the linter first.",
        "Please don't touch the vendored files.",
        "do NOT add dependencies",
        "dont overwrite, error",
        "Fix the parser and don't bump the version.",
        "The icons must be PNGs.",
        "Invalid themes must NEVER explode",
        "ok, make sure the docs are consistent",
        "Be sure to commit after the tests pass.",
        "we explicitly don't want snapshot tests",
        "we don't need backward compatibility here",
        "I'd rather click than script the browser.",
        "The snapshot should not be updated, ever.",
        "The main version should be linked, not this one.",
        "Each rule should be a file of its own.",
        "Update the changelog after each device.",
        "Use table driven tests where possible.",
        "keep all the colours we made",
        "From now on write commit messages in English.",
        "Only change the footer.",
        "No new dependencies.",
        "Use tabs, not spaces.",
        "use `argparse` instead of click",
        "We never use mocks here.",
        "Avoid global state.",
        "tasks.md should always use that format",
    ],
)
def test_an_order_is_a_constraint(text: str) -> None:
    assert kinds(text) == [("imperative", True)]


@pytest.mark.parametrize(
    "text",
    [
        "Let's go with the second option.",
        "I decided to drop Windows support.",
        "we've settled on PostgreSQL",
        "I'd prefer the blue one.",
        "Let's use apple containers for that",
        "Decision: raw SQL only",
    ],
)
def test_a_choice_is_a_decision(text: str) -> None:
    assert kinds(text) == [("marker", False)]


@pytest.mark.parametrize(
    "text",
    [
        "Continue with it and make sure everything is working",
        "No fixes applied.",
        "can you fix the conflicts without introducing regressions",
        "why is the map blue?",
        "I don't know what this is.",
        "It never works on my machine.",
        "It always fails here.",
        "This should not happen.",
        "looks like i dont need the token",
        "a list of the code that needs to be written",
        "The tests stopped running after lunch.",
        "Don't you think this is too slow?",
        "Should we never use mocks?",
        "don't worry about it",
        "No, that is wrong.",
        "No problem.",
        "no it doesn't",
        "It must have been the cache.",
        "I must have got it mixed up.",
        "You never ran the tests.",
        "only if it is easy",
        "They don't have an order number.",
        "Run it again to make sure.",
        "Never mind.",
        "that should never happen",
        "We decided if it is worth it?",
        "Have you decided?",
        "hello",
        "",
        "```\nnever do this\n```",
        "> always be closing",
        "ERROR: must not be null",
    ],
)
def test_what_only_looks_like_one_matches_no_pattern(text: str) -> None:
    assert [sentence_mark(one) for one in split_sentences(text)] in ([None], [])


def test_a_pinned_line_is_marked_as_such() -> None:
    assert find_decisions("pin: the API stays frozen") == [
        DecisionMark("the API stays frozen", "marker", binds=True, pinned=True)
    ]
    assert [one.pinned for one in find_decisions("Constraint: no network\n\nDon't ask again.")] == [True, False]


def test_each_is_told_once_and_in_order() -> None:
    found = find_decisions("Never push.\n\nAlways test.\n\nnever push!")
    assert [one.text for one in found] == ["Never push.", "Always test."]


def test_an_excerpt_is_short_and_on_one_line() -> None:
    (mark,) = find_decisions("Never do\nthis: " + "word " * 50 + "\x1b[31m")
    assert len(mark.text) <= LONGEST and "\n" not in mark.text and "\x1b" not in mark.text


def test_a_message_full_of_orders_does_not_fill_the_state() -> None:
    assert len(find_decisions("\n".join(f"Never do thing {number}." for number in range(100)))) <= MAX_LISTED


def test_in_a_document_only_plain_orders_count() -> None:
    plan = "Do it:\n\n# Plan\n\nUse X instead of Y.\n\nNever drop a table.\n\n## More\n\nThe ferry is fast."
    assert [one.text for one in find_decisions(plan)] == ["Use X instead of Y.", "Never drop a table."]


def test_of_a_model_only_marked_decisions_count() -> None:
    text = "I'll go with X.\n\n**Decision:** keep SQLite\n\n- Decision: no ORM\n\n```\nDecision: none\n```\nNever do Y."
    assert [(one.text, one.binds) for one in find_announcements(text)] == [("keep SQLite", False), ("no ORM", False)]


def test_words_are_compared_without_case_and_signs() -> None:
    assert likeness("Never push!") == likeness("never  **push**")


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("Since the bank has no filter for days, I'll filter the rows in the client instead.", "between"),
        ("The root cause is that the cache is never cleared, so I switched to reading the file directly.", "end"),
        ("Let's go with PostgreSQL instead of SQLite for the orders.", "person"),
        ("改为使用 PostgreSQL 存储订单，不再使用 SQLite。", "end"),
    ],
)
def test_a_choice(text: str, by: str) -> None:
    assert [one.text for one in weigh_choices(text, by, True)] == [text.rstrip("。")]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("Let me look at the tests.", "between"),
        ("All tests pass now.", "end"),
        ("Run `make` to see it.", "end"),
        ("thanks!", "person"),
        ("Should I look at the page again?", "end"),
    ],
)
def test_a_finding_or_a_step_is_no_choice(text: str, by: str) -> None:
    assert weigh_choices(text, by, True) == []


def test_an_explanation_needs_more_than_a_report_to_be_a_choice() -> None:
    text = "The shop uses PostgreSQL for the orders."
    assert weigh_choices(text, "end", False) == []
    assert {one.text for one in weigh_choices(text, "end", False)} <= {
        one.text for one in weigh_choices(text, "end", True)
    }


@pytest.mark.parametrize(
    "text",
    [
        "Bitte niemals auf main pushen.",
        "Die Tabelle darf nicht geändert werden.",
        "Ne touche pas à la base.",
        "Nunca cambies la tabla.",
        "既存のコードは絶対に変更しないでください",
        "不要修改数据库",
    ],
)
def test_rules_in_other_languages(text: str) -> None:
    assert [one.binds for one in find_decisions(text)] == [True]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("On second thought keep the tokens in PostgreSQL instead of Redis.", "superseded"),
        ("Scrap the Redis tokens.", "rejected"),
        ("Doch lieber die Tokens nicht in Redis.", "superseded"),
        ("取消 Redis tokens 吧", "rejected"),
        ("Should we drop the Redis tokens?", ""),
        ("Actually the button should be blue.", ""),
        ("Add the tokens to Redis.", ""),
    ],
)
def test_a_later_sentence_changes_what_was_decided(said: str, status: str) -> None:
    assert revised_status("Let's keep the tokens in Redis.", find_revisions(said)) == status


def test_in_a_long_prompt_of_a_program_milder_rules_count_too() -> None:
    rules = "Never edit the generated files.\nYou can only enter one command at a time.\nAvoid long outputs.\nAlways run the tests."
    story = "You are the keeper of a shop. " + "The shop sells tea and coffee to people in the street. " * 20
    assert [one.text for one in find_decisions(f"{story}\n\n{rules}")] == rules.splitlines()
    assert find_decisions(f"{story}\n\nYou can only enter one command at a time.") == []  # nothing strict beside it


def test_weights_find_rules_that_no_pattern_knows() -> None:
    text = "we want to use the same colours and only show ferries"
    assert sentence_mark(next(split_sentences(text))) is None
    assert [(one.text, one.binds) for one in find_decisions(text)] == [(text, True)]


def test_rules_of_a_template_hardly_count() -> None:
    steps = "\n".join(
        f"## Pier {number}\n\n- The user must name pier {number} if the user did not.\n" for number in range(20)
    )
    template = f"---\ndescription: Plan a ferry\n---\n\n## Input\n\n$ARGUMENTS\n\n{steps}"
    assert len(find_decisions(template)) <= 1


def test_in_a_prompt_of_a_program_each_order_of_a_list_is_a_rule() -> None:
    story = "The shop sells tea and coffee to people in the street. " * 20
    orders = "- Never push to main.\n- Commit with a short message\n- Search for helpers before you write new ones\n"
    assert [one.text for one in find_decisions(f"You are an agent of the shop. {story}\n\n{orders}")][1:] == [
        "Commit with a short message",
        "Search for helpers before you write new ones",
    ]


def test_of_many_rules_the_strict_ones_are_kept_and_none_twice() -> None:
    mild = [f"- Keep entry {number} of the harbour log short and use only plain words in it." for number in range(40)]
    text = "\n".join(("# Log", *mild, "- Be kind. Never rewrite the log."))
    rules = [one.text for one in find_decisions(text)]
    assert "Be kind. Never rewrite the log." in rules
    assert sum(map(len, rules)) <= 1_350 and not any(one != other and one in other for one in rules for other in rules)


def test_a_sentence_that_repeats_a_decision_does_not_revise_it() -> None:
    said = "Keep the colour changes of the list view."
    assert revised_status(said, find_revisions(f"Revert the rest of the list view work: {said}")) == ""
    assert revised_status(said, find_revisions("Revert the colour changes of the list view.")) == "rejected"


@pytest.mark.parametrize(
    "text",
    [
        "Decision: [what was chosen]",
        "- **Decision**: <the choice>",
        "DECISION: {{choice}}",
        "Note: [NEEDS CLARIFICATION]",
    ],
)
def test_a_placeholder_of_a_template_is_no_decision(text: str) -> None:
    assert find_decisions(text) == []
    assert [mark.text for mark in find_decisions("Decision: [Redis] for baskets")] == ["[Redis] for baskets"]
