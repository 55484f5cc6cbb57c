"""The estimator against numbers counted once with a public vocabulary of 200,000 tokens."""

from __future__ import annotations

import base64
import random
import warnings
from importlib import import_module
from importlib.util import find_spec

import pytest

from everturn.text.tokens import MARGIN, cut_to_tokens, estimate_tokens, fits_tokens

PROSE = (
    "The archive keeps every byte of every session, so that nothing is lost when an agent forgets. A search looks "
    "through all of them at once and shows the turn in which something was said, with the turn before and after it."
)
CODE = '''
def read_lines(path: Path, limit: int = 1000) -> Iterator[str]:
    """Lines of a file, at most `limit` of them."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file):
            if number >= limit:
                return
            yield line.rstrip("\\n")
'''
RECORD = (
    '{"type":"assistant","uuid":"7f3c9a12-44de-4b0e-9a57-1c2d3e4f5a6b","timestamp":"2026-03-01T10:15:42.731Z",'
    '"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01A","name":"Bash","input":'
    '{"command":"pytest -q tests/store"}}],"usage":{"input_tokens":1532,"output_tokens":87}}}'
)
HAN = "我们需要在数据库中保存每一次对话的完整内容，然后可以随时搜索和恢复。"
KANA = "このプログラムはすべての会話を保存して、あとから検索することができます。"
HANGUL = "이 프로그램은 모든 대화를 저장하고 나중에 검색할 수 있습니다."
RUSSIAN = "Эта программа сохраняет все разговоры и позволяет искать в них позже."
PACKED = base64.b64encode(random.Random(1).randbytes(3000)).decode()
HEX = random.Random(2).randbytes(2000).hex()

#: text, tokens by the vocabulary, how far off the estimate may be (share)
COUNTED = [
    ("prose", PROSE, 47, 0.2),
    ("code", CODE, 78, 0.15),
    ("a record", RECORD, 110, 0.15),
    ("Han", HAN, 21, 0.3),
    ("kana", KANA, 23, 0.2),
    ("Hangul", HANGUL, 16, 0.4),
    ("Russian", RUSSIAN, 15, 0.25),
    ("packed bytes", PACKED, 2723, 0.1),
    ("hexadecimal", HEX, 2282, 0.12),
]


@pytest.mark.parametrize(("name", "text", "tokens", "off"), COUNTED, ids=[one[0] for one in COUNTED])
def test_the_estimate_is_near_what_a_vocabulary_counts(name: str, text: str, tokens: int, off: float) -> None:
    assert abs(estimate_tokens(text) - tokens) <= off * tokens, f"{name}: {estimate_tokens(text)} for {tokens}"


@pytest.mark.skipif(find_spec("bpe_openai") is None, reason="the optional tokenizer is not installed")
def test_the_numbers_of_these_tests_are_those_of_the_tokenizer() -> None:
    with warnings.catch_warnings():  # it reads its data in a deprecated way
        warnings.simplefilter("ignore", DeprecationWarning)
        encoding = import_module("bpe_openai").get_encoding("o200k_base")
    counted = {name: len(encoding.encode_ordinary(text)) for name, text, _, _ in COUNTED}
    assert counted == {name: tokens for name, _, tokens, _ in COUNTED}


def test_nothing_has_no_tokens_and_a_sign_has_one() -> None:
    assert (estimate_tokens(""), estimate_tokens("."), estimate_tokens(" ")) == (0, 1, 1)


def test_an_odd_text_is_counted_too() -> None:
    assert estimate_tokens("\ud800 \x00 \x1b[31m \U0010ffff") > 0
    assert estimate_tokens("a" * 1_000_000) > 10_000


@pytest.mark.parametrize(
    "text", [PROSE * 20, CODE * 20, HAN * 20, PACKED, RECORD * 20, "x" * 50_000, "\n" * 5000 + "a"]
)
@pytest.mark.parametrize("budget", [0, 1, 10, 100, 1000])
def test_what_was_cut_fits_the_budget_with_its_margin(text: str, budget: int) -> None:
    kept = cut_to_tokens(text, budget)
    assert fits_tokens(kept, budget) and estimate_tokens(kept) * MARGIN <= max(budget, 0)
    assert text.startswith(kept.removesuffix("…").rstrip())


def test_a_cut_uses_the_room_there_is() -> None:
    assert estimate_tokens(cut_to_tokens(PROSE * 20, 500)) * MARGIN > 450


def test_a_text_that_fits_is_left_alone() -> None:
    assert cut_to_tokens(PROSE, 100) == PROSE


def test_a_cut_is_made_between_words() -> None:
    assert cut_to_tokens(PROSE, 20).removesuffix("…") in PROSE
    assert PROSE[len(cut_to_tokens(PROSE, 20)) - 1] == " "
