"""Messages of the wire formats, made by hypothesis: every kind of block, known and unknown."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text(st.sampled_from("abcxyz019_-"), min_size=1, max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    words,
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)),
    max_size=4,
)


def block(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A block of a kind, sometimes with a member nobody knows."""
    known = st.fixed_dictionaries({"type": st.just(kind), **members})
    return st.builds(
        lambda made, more: {**more, **made}, known, st.just({}) | st.just({"cache_control": {"type": "e"}})
    )


unknown_blocks = st.builds(lambda kind, more: {**more, "type": f"new_{kind}"}, words, objects)

# /v1/messages ---------------------------------------------------------------------------------------------------------

results = block("tool_result", tool_use_id=words, content=texts | st.lists(block("text", text=texts), max_size=2))
assistant_blocks = st.one_of(
    block("text", text=texts),
    block("thinking", thinking=texts, signature=words),
    block("redacted_thinking", data=words),
    block("tool_use", id=words, name=words, input=objects),
    unknown_blocks,
)
user_blocks = st.one_of(
    block("text", text=texts),
    results,
    block("image", source=st.just({"type": "base64", "media_type": "image/png", "data": "AAAA"})),
    unknown_blocks,
)
anthropic_history = st.one_of(
    st.fixed_dictionaries({"role": st.just("assistant"), "content": texts | st.lists(assistant_blocks, max_size=4)}),
    st.fixed_dictionaries({"content": texts | st.lists(user_blocks, max_size=4), "role": st.just("user")}),
)
anthropic_answers = st.fixed_dictionaries(
    {
        "id": words,
        "type": st.just("message"),
        "role": st.just("assistant"),
        "model": words,
        "content": st.lists(assistant_blocks, max_size=4),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal"]),
        "stop_sequence": st.none(),
        "usage": st.fixed_dictionaries({"input_tokens": st.integers(0, 99), "output_tokens": st.integers(0, 99)}),
    }
)


def anthropic_events(answer: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """An answer as its provider streams it, texts in pieces of `size`."""
    start = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, whole in enumerate(answer["content"]):
        events += _block_events(index, whole, size)
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer["usage"]["output_tokens"]}}
    )
    return [*events, {"type": "message_stop"}]


def _block_events(index: int, whole: dict[str, Any], size: int) -> list[dict[str, Any]]:
    member, delta = {
        "text": ("text", "text_delta"),
        "thinking": ("thinking", "thinking_delta"),
        "tool_use": ("input", "input_json_delta"),
    }.get(whole["type"], ("", ""))
    hollow = dict(whole)
    pieces: list[dict[str, Any]] = []
    if whole["type"] == "tool_use":
        hollow["input"] = {}
        pieces = [{"type": delta, "partial_json": piece} for piece in split(json.dumps(whole["input"]), size)]
    elif member:
        hollow[member] = ""
        pieces = [{"type": delta, member: piece} for piece in split(whole[member], size)]
    if whole["type"] == "thinking":
        hollow["signature"] = ""
        pieces.append({"type": "signature_delta", "signature": whole["signature"]})
    events = [{"type": "content_block_start", "index": index, "content_block": hollow}]
    events += [{"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces]
    return [*events, {"type": "content_block_stop", "index": index}]


def split(text: str, size: int) -> list[str]:
    """A text in pieces."""
    return [text[start : start + size] for start in range(0, len(text), size)]


# /chat/completions ----------------------------------------------------------------------------------------------------

calls = st.lists(
    st.builds(
        lambda id, name, given: {"id": id, "type": "function", "function": {"name": name, "arguments": given}},
        words,
        words,
        objects.map(json.dumps) | texts,
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: str(call["id"]),
)
content_blocks = st.one_of(
    block("text", text=texts),
    block("image_url", image_url=st.just({"url": "data:image/png;base64,AA"})),
    unknown_blocks,
)
chat_answers = st.builds(
    lambda content, more: {"role": "assistant", "content": content, **more},
    st.none() | texts,
    st.fixed_dictionaries(
        {}, optional={"tool_calls": calls, "reasoning_content": texts, "refusal": st.none(), "new_member": objects}
    ),
)
chat_history = st.one_of(
    chat_answers,
    st.fixed_dictionaries({"role": st.just("user"), "content": texts | st.lists(content_blocks, max_size=3)}),
    st.fixed_dictionaries({"role": st.just("system"), "content": texts}),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": words, "content": texts}),
)
