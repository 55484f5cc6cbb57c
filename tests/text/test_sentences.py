"""What a person says in a message, and what they only pasted into it."""

from __future__ import annotations

import pytest

from everturn.text.sentences import split_sentences


def said(text: str) -> list[str]:
    return [one.text for one in split_sentences(text) if not one.pasted]


def test_sentences_end_where_they_end() -> None:
    assert said("Use version 3.11. It works! Does it? see setup.py now") == [
        "Use version 3.11.", "It works!", "Does it?", "see setup.py now",
    ]  # fmt: skip


def test_a_sentence_over_two_lines_is_one() -> None:
    assert said("Please look at the parser in the file that I opened and tell me\nwhat it does.") == [
        "Please look at the parser in the file that I opened and tell me what it does."
    ]


def test_the_items_of_a_list_are_sentences_of_their_own() -> None:
    assert said("1. fix it\n2. test it\n- [ ] ship it") == ["fix it", "test it", "ship it"]


def test_a_dash_within_a_sentence_is_no_item() -> None:
    assert said("where it lives - and how to move it") == ["where it lives - and how to move it"]


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nnever do this\n```",
        "~~~python\nnever = 1\n~~~",
        "> never do this",
        "$ never --do this",
        "<notes>\nNever do this.\n</notes>",
        "2026-03-01 10:00:00 never do this",
        "[ERROR] app/main.py: never do this",
        "Traceback (most recent call last):",
        '  File "main.py", line 3, in never',
        "    at Object.never (/app/index.js:10:3)",
        "src/main.py:10:3: never do this",
        '  "never": "do this",',
        "| never | do this |",
        "+    never(do, this)",
        "@@ -1,3 +1,3 @@ never",
        "(.venv) ann@box~/shop>never do this",
    ],
)
def test_what_is_not_said_is_left_out(pasted: str) -> None:
    assert said(f"Look at this:\n\n{pasted}\n\nThanks.") == ["Look at this:", "Thanks."]


def test_an_open_fence_reaches_to_the_end() -> None:
    assert said("What is this?\n```\nnever do this\n") == ["What is this?"]


def test_a_document_that_was_handed_over_is_marked() -> None:
    found = list(split_sentences("Implement this plan:\n\n# Plan\n\nAlways be quick.\n\n## Steps\n\nNever stop."))
    assert [(one.text, one.pasted) for one in found] == [
        ("Implement this plan:", False), ("Plan", True), ("Always be quick.", True), ("Steps", True), ("Never stop.", True),
    ]  # fmt: skip


def test_a_message_longer_than_anyone_types_is_a_document() -> None:
    found = list(split_sentences("Never stop. " * 1000))
    assert found and all(one.pasted for one in found)


def test_odd_texts_do_no_harm() -> None:
    for text in ("", "\n" * 100, "```", "<a>" * 5000, "[" * 5000, "\x00\ud800", "- " * 3000, "a" * 100_000):
        assert all(one.text.strip() for one in split_sentences(text)), text[:10]


@pytest.mark.parametrize("fence", ["````", "~~~~", "`````"])
def test_a_longer_fence_holds_shorter_ones(fence: str) -> None:
    inner = fence[0] * 3
    text = f"It is written.\n\n{fence}markdown\nInstall it:\n{inner}bash\nmake\n{inner}\nOpen the page.\n{fence}\n\nLook at it."
    assert [one.text for one in split_sentences(text)] == ["It is written.", "Look at it."]


def test_a_wide_question_mark_is_left_out_and_remembered() -> None:
    found = [(one.text, one.asks) for one in split_sentences("画好了。先画哪个港口？请选一个")]
    assert found == [("画好了", False), ("先画哪个港口", True), ("请选一个", False)]
    assert not any(one.asks for one in split_sentences("Is it done? It is."))
