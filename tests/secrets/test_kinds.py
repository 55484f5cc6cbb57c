"""Every kind of secret by itself, and what looks like one: samples of `benchmarks.secret_samples`."""

from __future__ import annotations

import json

import pytest

from benchmarks.redaction import is_leaked
from benchmarks.secret_samples import kinds, look_alikes, positives
from everturn.secrets.redaction import redact_bytes, redact_text

_SAMPLES: dict[str, list[tuple[str, str]]] = {}
for _kind, _text, _secret in positives(4):
    _SAMPLES.setdefault(_kind, []).append((_text, _secret))


def test_there_are_at_least_120_kinds() -> None:
    assert len(kinds()) == len(_SAMPLES) >= 120


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_of_secret_is_masked_in_text_and_in_a_line_of_json(kind: str) -> None:
    for text, secret in _SAMPLES[kind]:
        if kind == "url" and {"#", "?"} & set(secret):
            continue  # these end the address, unless they are encoded
        assert not is_leaked(secret, redact_text(text)), text
        line = redact_bytes(json.dumps({"content": text}).encode())
        assert not is_leaked(secret, json.loads(line)["content"]), text


def test_look_alikes_are_left_alone() -> None:
    assert [text for text in look_alikes(1200) if redact_text(text) != text] == []


def test_masking_twice_changes_nothing() -> None:
    for samples in _SAMPLES.values():
        masked = redact_text(samples[0][0])
        assert redact_text(masked) == masked
