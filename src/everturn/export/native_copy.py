"""A session in its agent's own format with secrets masked, to pass on and to open in the agent.

Only secrets differ from the file: the records, their order and every other byte stay. Masking keeps JSON valid, in lines as in one
document over many lines, and equal secrets get equal placeholders, so that references between records still fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from everturn.secrets.redaction import Cleaner, is_json

_PEEK = 20  # lines that tell records in lines from one document
_LARGEST = 256 << 20  # bytes of a document that are masked as a whole


def masked_copy(pieces: Iterable[bytes], clean: Cleaner) -> Iterator[bytes]:
    """Yield the bytes of a file with secrets masked: line by line if its lines are records, else as a whole."""
    lines = _lines(pieces)
    first = list(islice(lines, _PEEK))
    if any(line.lstrip().startswith(b"{") and is_json(line) for line in first):
        yield from map(clean.line, chain(first, lines))
        return
    part: list[bytes] = []
    size = 0
    for line in chain(first, lines):
        part.append(line)
        size += len(line)
        if size > _LARGEST:
            yield clean.document(b"".join(part))
            part, size = [], 0
    yield clean.document(b"".join(part))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for piece in pieces:
        for line in piece.splitlines(keepends=True):
            rest.append(line)
            if line.endswith(b"\n"):
                yield b"".join(rest)
                rest = []
    if rest:
        yield b"".join(rest)
