"""Redaction: how fast secrets are taken out of words as messages hold them, and how often ordinary words are taken for one."""

from __future__ import annotations

import base64
import json
import random
import string
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.processes import ROOT
from benchmarks.secret_samples import kinds, look_alikes, positives
from everturn.secrets.redaction import find_secrets, redact_bytes, redact_text

FLOOR = 40.0  # MB for each CPU second
MISTAKES = 0.3  # per MB
RECALL, PRECISION = 0.98, 0.99
_HEAD, _TELLING = 12, 10
_MB = 1e6
_MOST = 30_000_000  # bytes of each sort that are gone through
_REAL = ROOT.parent / "shared" / "corpus"
_WORDS = "the parser reads a line of the file and returns its tokens when key or value are missing it raises".split()


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Speed on text of several sorts; mistakes where real transcripts are at hand."""
    for name, texts in _sorts():
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        speed = _speed(redact_text, texts, size)
        bar = FLOOR if name in ("prose", "messages of real transcripts") else None
        yield Figure(
            f"redact, {name}", speed, "MB/CPU-s", bar, at_least=True, note=f"{len(texts):,} texts, {size / _MB:.0f} MB"
        )
    lines = _lines()
    size = sum(map(len, lines))
    speed = _speed(redact_bytes, lines, size)
    yield Figure(
        "redact_bytes, lines of transcripts", speed, "MB/CPU-s", note=f"{len(lines):,} lines, {size / _MB:.0f} MB"
    )
    yield _mistakes()
    yield from _quality()


def _quality() -> Iterator[Figure]:
    """Recall on synthetic secrets, and precision with look-alikes beside them."""
    samples = list(positives(13))
    found = sum(not is_leaked(secret, redact_text(text)) for _, text, secret in samples)
    others = list(look_alikes())
    mistaken = sum(redact_text(text) != text for text in others)
    note = f"{len(samples):,} secrets of {len(kinds())} kinds"
    yield Figure("redact, recall", found / len(samples), "", RECALL, at_least=True, note=note)
    note = f"{mistaken:,} of {len(others):,} look-alikes were masked"
    yield Figure("redact, precision", found / (found + mistaken), "", PRECISION, at_least=True, note=note)


def is_leaked(secret: str, shown: str) -> bool:
    """Whether ten characters in a row of a secret can be read; of a short one, all of it. Heads of families are public."""
    if len(secret) < _HEAD + _TELLING:
        return secret in shown
    return any(secret[at : at + _TELLING] in shown for at in range(_HEAD, len(secret) - _TELLING + 1))


def _sorts() -> Iterator[tuple[str, list[str]]]:
    dice = random.Random(3)
    prose = [" ".join(dice.choices(_WORDS, k=600)) for _ in range(3000)]
    yield "prose", prose
    yield "short ones: titles and snippets", [text[:80] for text in prose] * 10
    yield "base64", [base64.b64encode(dice.randbytes(300_000)).decode() for _ in range(20)]
    hashes = (" ".join("".join(dice.choices(string.hexdigits[:16], k=40)) for _ in range(50)) for _ in range(2000))
    yield "hashes", list(hashes)
    if _REAL.is_dir():
        yield "messages of real transcripts", _messages()


def _messages() -> list[str]:
    """Words of real messages, as surfaces show them: every longer string of the lines."""
    texts: list[str] = []
    size = 0
    for line in _lines():
        found = [text for text in _strings(json.loads(line)) if len(text) > 100]
        texts += found
        size += sum(map(len, found))
        if size > _MOST:
            break
    return texts


def _lines() -> list[bytes]:
    """Lines of real transcripts, or of made ones."""
    if not _REAL.is_dir():
        return [json.dumps({"role": "user", "content": " ".join(_WORDS) * 20, "n": n}).encode() for n in range(5000)]
    lines: list[bytes] = []
    size = 0
    for path in sorted(_REAL.rglob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            if line.startswith(b"{") and _is_json(line):
                lines.append(line)
                size += len(line)
        if size > _MOST:
            break
    return lines


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _speed(work: Callable[[Any], object], texts: Iterable[Any], size: int) -> float:
    begun = time.process_time()
    for text in texts:
        work(text)
    return size / _MB / (time.process_time() - begun)


def _mistakes() -> Figure:
    """The transcripts were looked through before they were given away: what is found is an example, or a mistake."""
    name = "found in transcripts known to hold none"
    if not _REAL.is_dir():
        return Figure(name, None, note="the real transcripts are not beside this checkout")
    size = found = 0
    for path in (path for path in _REAL.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        size += len(text)
        found += len(find_secrets(text))
    return Figure(name, found / size * _MB, "per MB", MISTAKES, note=f"{found} in {size / _MB:.0f} MB")
