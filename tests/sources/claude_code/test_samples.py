"""Each sample shows one thing, with its expected result beside it. `UPDATE_EXPECTED=1` rewrites these."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import fingerprint
from everturn.sources.claude_code import SOURCE
from tests.sources.claude_code.reading import SAMPLES, corpus, found_for, read, samples
from tests.sources.goldens import Whole, assert_accounted, assert_storable, assert_vocabulary


def whole_of(path: Path) -> tuple[bytes, Whole]:
    data = path.read_bytes()
    return data, read(found_for(path, data), data)


@pytest.mark.skipif(not corpus(), reason="no real transcripts beside the checkout")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.stem)
def test_of_a_real_transcript_every_record_is_counted_in_words_of_the_vocabulary(path: Path) -> None:
    data, whole = whole_of(path)
    assert_accounted(data, whole)
    assert_vocabulary(whole)


@pytest.mark.few(20)
@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_a_record_by_itself_says_what_the_reader_said(path: Path) -> None:
    data, whole = whole_of(path)
    for message in whole.all():
        viewed = SOURCE.view(data[message.start : message.start + message.size])
        assert viewed is not None
        assert [block.text for block in viewed.blocks] == [block.text for block in message.blocks]
        assert viewed.role == message.role
        assert viewed.fingerprint == message.fingerprint
        repeated = message.kind == "context" and viewed.kind == "queued"  # said before, as the reader knows
        assert repeated or (viewed.origin, viewed.kind) == (message.origin, message.kind)


@pytest.mark.few(20)
@pytest.mark.skipif(not corpus(), reason="no real transcripts beside the checkout")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.stem)
def test_everything_read_can_be_stored_as_utf8(path: Path) -> None:
    assert_storable(whole_of(path)[1])


def test_copies_in_a_fork_have_the_fingerprints_of_the_original() -> None:
    _, original = whole_of(SAMPLES / "fork-original.jsonl")
    _, copy = whole_of(SAMPLES / "fork-copy.jsonl")
    first = [message.fingerprint for message in original.all()]
    second = [message.fingerprint for message in copy.all()]
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
    queued = [message for message in whole.all() if message.kind == "queued"]
    assert [message.blocks[0].text for message in queued] == ["use port 8080", "and no TLS", "last wish"]
    for message in queued:
        assert b'"enqueue"' in data[message.start : message.start + message.size]
    _, newer = whole_of(SAMPLES / "queue-new.jsonl")
    human = [m.blocks[0].text for m in newer.all() if m.origin == "human" and m.kind == "queued"]
    assert human == ["keep the names", "add a test"]


def test_the_real_transcripts_are_here_or_it_is_said_that_they_are_not() -> None:
    if not corpus():
        pytest.skip("no real transcripts beside the checkout: only samples were read")
    assert len(corpus()) > 90
