"""What is in the archive only because somebody searched it."""

from __future__ import annotations

import pytest

from everturn.recall.asking_session import is_same_project
from everturn.recall.echo import content_stems, is_recall_command, is_same_question

ASKED = content_stems("What did we decide about the Redis TTL?")


@pytest.mark.parametrize(
    "prompt",
    [
        "What did we decide about the Redis TTL?",
        "what was decided about redis ttl",
        "Good morning. What did we decide about the Redis TTL? Please be brief.",
        "did we decide on a redis ttl yet?",
    ],
)
def test_a_prompt_that_asks_the_same_is_a_question(prompt: str) -> None:
    assert is_same_question(ASKED, prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "We decided: the Redis TTL is 300 seconds, because the session cookie lives that long.",
        "Set the Redis TTL to 300 seconds and write the decision into the readme.",
        "What did we decide about the Postgres pool size?",
        "How should we decide about the Redis TTL?",
        "Can you decide about the Redis TTL?",
        "",
    ],
)
def test_a_prompt_that_says_something_is_none(prompt: str) -> None:
    assert not is_same_question(ASKED, prompt)


def test_a_short_statement_with_the_words_of_a_short_query_is_no_question() -> None:
    assert not is_same_question(content_stems("walrus fish"), "fish for the walrus")
    assert is_same_question(content_stems("walrus fish"), "walrus fish?")


@pytest.mark.parametrize(
    "command",
    ["everturn search redis ttl", "cd /x && everturn recall search x", "uv run everturn -q show @last", "/opt/bin/everturn search a"],
)  # fmt: skip
def test_a_shell_command_that_searches_the_archive_is_a_recall(command: str) -> None:
    assert is_recall_command(command)


@pytest.mark.parametrize("command", ["grep -r everturn .", "everturn sync", "echo search", "neverturn search x"])
def test_another_command_is_none(command: str) -> None:
    assert not is_recall_command(command)


def test_a_workspace_is_compared_as_a_path() -> None:
    assert is_same_project("/home/ann/shop", "/home/ann/shop")
    assert is_same_project("/home/ann/shop", "/home/ann/shop/web") and is_same_project(
        "/home/ann/shop/web", "/home/ann/shop"
    )
    assert not is_same_project("/home/ann/shop", "/home/ann/shop-old")
    assert not is_same_project("/home/ann/shop", "/home/ann") and not is_same_project("", "")
