"""Spans of the GenAI conventions and of OpenInference."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import SourceCandidate
from everturn.sources.otel import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "spans.jsonl"]


def test_what_was_said_before_is_not_said_again() -> None:
    with goldens.ingest("otel", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("otel", "conv-1")
        assert [(call.name, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "ok", ""),
            ("bash", "error", "exit_status"),
        ]
        assert (session.n_turns, session.n_steps, session.n_prompts, session.client) == (1, 2, 1, "zoo")
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (110, 22, 300)
        (other,) = taken.store.sessions_of("otel", "conv-2")
        assert (other.n_turns, other.n_calls, other.model, other.tokens_in) == (1, 1, "gpt-x", 7)
        assert taken.hits("paint the seals") == ["conv-2"]


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=100)
def test_spans_may_hold_anything(tmp_path_factory: pytest.TempPathFactory, seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    lines = [json.loads(line) for line in PATHS[0].read_bytes().splitlines()]
    data = "".join(json.dumps(goldens.with_odd_value(line, odd, dice)) + "\n" for line in lines)
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_text(data)
    for _, lines_of, whole in goldens.readings(SOURCE, path):
        goldens.assert_keeps_promises(SOURCE, lines_of, whole)


def _framed(*requests: bytes) -> bytes:
    return b"".join(len(one).to_bytes(4, "big") + one for one in requests)


def test_protobuf_says_the_same_as_json(tmp_path: Path) -> None:
    assert SOURCE.wire is not None
    expected = goldens.readings(SOURCE, PATHS[0])
    packed = [SOURCE.wire.pack(line) for line in PATHS[0].read_bytes().splitlines()]
    for name, data in (("one.binpb", b"".join(packed)), ("several.binpb", _framed(*packed))):
        path = tmp_path / name
        path.write_bytes(data)
        assert [whole for _, _, whole in goldens.readings(SOURCE, path)] == [whole for _, _, whole in expected]
        with goldens.ingest("otel", path) as taken:
            assert [len(taken.store.sessions_of("otel", name)) for name in ("conv-1", "conv-2")] == [1, 1]


@given(seed=st.integers(0, 2**64))
@settings(max_examples=60)
def test_damaged_protobuf_is_refused_with_a_sentence(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    assert SOURCE.wire is not None and SOURCE.unpack is not None
    dice = random.Random(seed)
    data = bytearray(SOURCE.wire.pack(PATHS[0].read_bytes()))
    for _ in range(dice.randint(1, 5)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path = tmp_path_factory.getbasetemp() / "damaged.binpb"
    path.write_bytes(data[: dice.randint(1, len(data))] if dice.random() < 0.3 else data)
    try:
        for member in SOURCE.unpack(SourceCandidate(path, "container", "damaged"), path):
            assert all(json.loads(line) for line in member.lines)
    except OSError as failure:
        assert failure.strerror


def test_openinference_spreads_messages_over_attributes_or_has_their_text_only(tmp_path: Path) -> None:
    parts = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "count the walruses",
        "llm.input_messages.0.message.contents.1.message_content.image.image.url": "https://zoo.example/walrus.png",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": "one, two",
        "llm.output_messages.0.message.contents.1.message_content.text": "two",
    }
    plain = {"input.value": "and seals?", "output.value": "none", "output.mime_type": "text/plain"}
    lines = []
    for number, fields in enumerate((parts, plain), 1):
        about = {"openinference.span.kind": "LLM", "session.id": "s", **fields}
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in about.items()]
        span = {"traceId": "0b" * 16, "spanId": f"{number:016x}", "startTimeUnixNano": f"{number}000000000"}
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | {"attributes": attributes}]}]}]}))
    path = tmp_path / "phoenix.jsonl"
    path.write_text("\n".join(lines))
    ((_, _, whole),) = goldens.readings(SOURCE, path)
    said = [[(block.kind, block.field, block.text) for block in one.blocks] for one in whole.messages["s"]]
    assert said == [
        [("text", "prompt", "count the walruses"), ("image", "meta", "https://zoo.example/walrus.png")],
        [("thinking", "thinking", "one, two"), ("text", "answer", "two")],
        [("text", "prompt", "and seals?")],
        [("text", "answer", "none")],
    ]
