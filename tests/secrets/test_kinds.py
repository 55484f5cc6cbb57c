"""Every kind of secret by itself, and what looks like one: samples of `benchmarks.secret_samples`."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.redaction import is_leaked
from benchmarks.secret_samples import kinds, look_alikes, positives
from everturn.secrets.redaction import find_spans, redact_bytes, redact_text
from everturn.secrets.rules import PatternSet

_SAMPLES: dict[str, list[tuple[str, str]]] = {}
for _kind, _text, _secret in positives(4):
    _SAMPLES.setdefault(_kind, []).append((_text, _secret))


def test_there_are_at_least_120_kinds() -> None:
    assert len(kinds()) == len(_SAMPLES) >= 120


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_of_secret_is_masked_in_text_and_in_a_line_of_json(kind: str) -> None:
    for text, secret in _SAMPLES[kind]:
        assert not is_leaked(secret, redact_text(text)), text
        line = redact_bytes(json.dumps({"content": text}).encode())
        assert not is_leaked(secret, json.loads(line)["content"]), text


def test_look_alikes_are_left_alone() -> None:
    assert [text for text in look_alikes(1200) if redact_text(text) != text] == []


def test_masking_twice_changes_nothing() -> None:
    for samples in _SAMPLES.values():
        masked = redact_text(samples[0][0])
        assert redact_text(masked) == masked


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1 << 30))
def test_the_pass_that_selects_rules_loses_no_match(seed: int) -> None:
    dice = random.Random(seed)
    samples = [text for kind in _SAMPLES.values() for text, _ in kind]
    texts = [_damaged(dice, dice.choice(samples)) for _ in range(40)]
    selected = [find_spans(text.encode()) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PatternSet, "search", lambda self, data: list(range(len(self._patterns))))
        assert [find_spans(text.encode()) for text in texts] == selected, texts


def _damaged(dice: random.Random, text: str) -> str:
    """Return the text with a few other characters in it, or without its beginning or end."""
    chars = list(text)
    for _ in range(dice.randint(0, 4)):
        at = dice.randrange(len(chars))
        chars[at] = dice.choice((chars[at].upper(), chars[at].lower(), dice.choice(" =:\"'_-.\n/&$\\"), ""))
    at = dice.randrange(len(chars)) if dice.random() < 0.3 else 0
    return "".join(chars[at:] if dice.random() < 0.5 else chars[: len(chars) - at])
