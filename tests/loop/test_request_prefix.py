"""The prefix check: what changed before an answer is named, what may change is not."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.loop.request_prefix import digest_body
from tests.llm.histories import WIRES, request

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
TEXT = {"type": "text", "text": "So."}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"system": "Be brief.", "tools": [{"name": "t"}], "messages": list(messages), **more}


ASK = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": [THOUGHT, TEXT]}
NEXT = {"role": "user", "content": "and?"}


def test_a_history_that_only_grew_is_the_same() -> None:
    prefix = digest_body(body(ASK)).prefix
    assert digest_body(body(ASK, ANSWER, NEXT)).changed_parts(prefix) == []
    assert digest_body(body(ASK)).changed_parts(prefix) == []


@pytest.mark.parametrize(
    ("request_body", "what"),
    [
        (body(ASK, ANSWER, NEXT, system="Be long."), ["system"]),
        (body(ASK, ANSWER, NEXT, tools=[{"name": "u"}]), ["tools"]),
        (body(NEXT, ANSWER, NEXT), ["messages"]),
        (body(NEXT), ["messages"]),
        (body(ASK, {**ANSWER, "content": [TEXT]}, NEXT), ["thinking"]),
        (body(ASK, {**ANSWER, "content": [{**THOUGHT, "signature": "t"}, TEXT]}, NEXT), ["thinking"]),
        (body(ASK, NEXT, system="", tools=[]), ["system", "tools", "messages"]),
    ],
)
def test_what_changed_is_named(request_body: dict[str, Any], what: list[str]) -> None:
    assert digest_body(request_body).changed_parts(digest_body(body(ASK, ANSWER, NEXT)).prefix) == what


def test_marks_for_caching_and_the_order_of_members_do_not_count() -> None:
    marked = {"content": [{**TEXT, "cache_control": {"type": "ephemeral"}}], "role": "user"}
    prefix = digest_body(body({"role": "user", "content": [TEXT]})).prefix
    assert digest_body(body(marked, ANSWER, NEXT)).changed_parts(prefix) == []


def test_a_compaction_of_the_provider_begins_the_prefix_anew() -> None:
    compact = {"role": "assistant", "content": [{"type": "compaction", "content": "all of it"}]}
    before = digest_body(body(ASK, ANSWER, NEXT)).prefix
    assert digest_body(body(ASK, compact, NEXT)).changed_parts(before) == []
    after = digest_body(body(ASK, compact, NEXT)).prefix
    assert digest_body(body(compact, NEXT, ANSWER)).changed_parts(after) == []
    assert digest_body(body(compact, ASK, ANSWER)).changed_parts(after) == ["messages"]


@pytest.mark.parametrize("wire", WIRES)
def test_every_earlier_request_is_a_prefix_of_a_later_one(wire: str) -> None:
    name = "input" if wire == "responses" else "messages"
    for seed in range(10):
        whole = request(wire, seed)
        for end in range(1, len(whole[name])):
            prefix = digest_body({**whole, name: whole[name][:end]}).prefix
            assert (
                digest_body(whole).changed_parts(prefix) == []
                and digest_body({**whole, name: whole[name][1:]}).changed_parts(prefix) != []
            )


def test_half_an_emoji_does_not_stop_the_check() -> None:
    broken = body({"role": "user", "content": "a\ud83d"})
    assert digest_body(broken).changed_parts(digest_body(broken).prefix) == []
