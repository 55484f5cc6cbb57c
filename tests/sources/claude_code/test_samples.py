"""Each sample shows one thing, with its expected result beside it. `UPDATE_EXPECTED=1` rewrites these."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from everturn.model import vocabulary
from everturn.model.conversation import Message, fingerprint
from everturn.sources.claude_code import SOURCE
from tests.sources.claude_code.reading import SAMPLES, Whole, corpus, found_for, read, samples, shown
from tests.sources.goldens import assert_golden


def whole_of(path: Path) -> tuple[bytes, Whole]:
    data = path.read_bytes()
    return data, read(found_for(path, data), data)


def all_messages(whole: Whole) -> list[Message]:
    return [message for messages in whole.messages.values() for message in messages]


@pytest.mark.parametrize("path", samples(), ids=lambda path: path.stem)
def test_a_sample_reads_as_expected(path: Path) -> None:
    _, whole = whole_of(path)
    assert_golden(path, shown(whole))


@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_every_record_is_counted_once_and_every_byte_dealt_with(path: Path) -> None:
    data, whole = whole_of(path)
    assert sum(whole.census.values()) == whole.lines + whole.glued
    complete = data.count(b"\n")
    assert whole.lines in (complete, complete + 1)
    left = data[whole.consumed :]
    assert not left.strip() or [(p.start, p.size) for p in whole.tail] == [(whole.consumed, len(left))]
    troubled = sum(n for (_, _, disposition), n in whole.census.items() if disposition == "problem")
    assert troubled <= len(whole.problems)


@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_only_words_of_the_vocabulary_are_used(path: Path) -> None:
    _, whole = whole_of(path)
    for message in all_messages(whole):
        assert message.role in vocabulary.ROLES
        assert message.origin in vocabulary.ORIGINS
        assert message.kind in vocabulary.MESSAGE_KINDS
        assert message.precision in vocabulary.PRECISIONS
        for block in message.blocks:
            assert block.field in ("", *vocabulary.FIELDS)
            assert block.call is None or block.call.kind in vocabulary.CALL_KINDS
            assert block.result is None or block.result.error_class in vocabulary.ERROR_CLASSES
            assert block.result is None or block.result.action in ("", *vocabulary.ACTIONS)
    assert {link.relation for links in whole.links.values() for link in links} <= set(vocabulary.RELATIONS)
    assert {facts["kind"] for facts in whole.facts.values()} <= set(vocabulary.SESSION_KINDS)
    assert {disposition for _, _, disposition in whole.census} <= set(vocabulary.DISPOSITIONS)


@pytest.mark.few(20)
@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_a_record_by_itself_says_what_the_reader_said(path: Path) -> None:
    data, whole = whole_of(path)
    for message in all_messages(whole):
        viewed = SOURCE.view(data[message.start : message.start + message.size])
        assert viewed is not None
        assert [block.text for block in viewed.blocks] == [block.text for block in message.blocks]
        assert viewed.role == message.role
        assert viewed.fingerprint == message.fingerprint
        repeated = message.kind == "context" and viewed.kind == "queued"  # said before, as the reader knows
        assert repeated or (viewed.origin, viewed.kind) == (message.origin, message.kind)


@pytest.mark.few(20)
@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_everything_read_can_be_stored_as_utf8(path: Path) -> None:
    _, whole = whole_of(path)
    msgspec.json.encode(shown(whole))  # refuses lone surrogates
    for facts in whole.facts.values():
        assert not any("\0" in value for value in facts.values() if isinstance(value, str))


def test_copies_in_a_fork_have_the_fingerprints_of_the_original() -> None:
    _, original = whole_of(SAMPLES / "fork-original.jsonl")
    _, copy = whole_of(SAMPLES / "fork-copy.jsonl")
    first = [message.fingerprint for message in all_messages(original)]
    second = [message.fingerprint for message in all_messages(copy)]
    assert first[:2] == second[:2]
    assert not set(first) & set(second[2:])


def test_a_subagents_prompt_and_the_call_that_asked_for_it_have_one_hint() -> None:
    _, whole = whole_of(SAMPLES / "sidechain.jsonl")
    main = "0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10"
    hint = fingerprint("prompt", "Read parser.py and list risks")
    assert hint in [link.hint for link in whole.links[main] if link.relation == "spawned"]
    children = [links for name, links in whole.links.items() if name != main]
    assert hint in [link.hint for links in children for link in links if link.relation == "subagent_of"]


def test_words_put_into_the_running_turn_are_read_once_and_from_the_record_that_holds_them() -> None:
    data, whole = whole_of(SAMPLES / "queue-old.jsonl")
    queued = [message for message in all_messages(whole) if message.kind == "queued"]
    assert [message.blocks[0].text for message in queued] == ["use port 8080", "and no TLS", "last wish"]
    for message in queued:
        assert b'"enqueue"' in data[message.start : message.start + message.size]
    _, newer = whole_of(SAMPLES / "queue-new.jsonl")
    human = [m.blocks[0].text for m in all_messages(newer) if m.origin == "human" and m.kind == "queued"]
    assert human == ["keep the names", "add a test"]


def test_the_real_transcripts_are_here_or_it_is_said_that_they_are_not() -> None:
    if not corpus():
        pytest.skip("no real transcripts beside the checkout: only samples were read")
    assert len(corpus()) > 90
