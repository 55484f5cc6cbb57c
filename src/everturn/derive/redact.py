"""Secrets found in text and taken out of it.

`secrets` says where they are, `redact` and `redact_bytes` put `[REDACTED:kind]` in their place, or with a key
`[REDACTED:kind:hmac8]`, so that equal secrets stay equal without being told. `redact_bytes` works on raw JSON lines and
promises that valid JSON stays valid. Doing it twice changes nothing more. Time is linear in the text, whatever is in it.

The rules are in `derive.secretrules`. Everything runs on UTF-8: one scan for text and for raw lines, lower-casing that
keeps positions, and searches that run at memory speed.
"""

from __future__ import annotations

import hmac
from typing import Any

import msgspec
from msgspec import Struct

from everturn.derive.secretrules import PLACEHOLDER, Span, find_spans

_KEY_FREE = b""


class Secret(Struct, frozen=True):
    """Where a secret stands in a text, and what it is."""

    kind: str
    start: int
    end: int


def secrets(text: str) -> list[Secret]:
    """The secrets of a text, in order, without overlaps."""
    data = _encoded(text)
    found, at, chars = [], 0, 0
    for kind, start, end in find_spans(data):
        chars += _length(data[at:start])
        size = _length(data[start:end])
        found.append(Secret(kind, chars, chars + size))
        at, chars = end, chars + size
    return found


def redact(text: str, key: bytes = _KEY_FREE) -> str:
    """The text without its secrets; a text without any comes back as it is."""
    data = _encoded(text)
    spans = find_spans(data)
    return _replaced(data, spans, key).decode("utf-8", "surrogatepass") if spans else text


def redact_bytes(line: bytes, key: bytes = _KEY_FREE) -> bytes:
    """One raw JSON line, or several whole ones, without their secrets."""
    spans = find_spans(line, raw=True)
    if not spans:
        return line
    if line.find(b"\n", 0, -1) >= 0:
        return b"".join(redact_bytes(one, key) for one in line.splitlines(keepends=True))
    new = _replaced(line, spans, key)
    if _is_json(new) or not _is_json(line):
        return new
    return _redacted_by_value(line, key)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _length(part: bytes) -> int:
    return len(part) if part.isascii() else len(part.decode("utf-8", "surrogatepass"))


def _replaced(data: bytes, spans: list[Span], key: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    for kind, start, end in spans:
        parts += data[at:start], _stand_in(kind, data[start:end], key)
        at = end
    return b"".join((*parts, data[at:]))


def _stand_in(kind: str, secret: bytes, key: bytes) -> bytes:
    if not key:
        return b"%s%s]" % (PLACEHOLDER, kind.encode())
    # Escapes and line ends differ between a raw line and its text; the secret is the same.
    plain = secret.replace(b"\\r", b"").replace(b"\\n", b"").replace(b"\\", b"")
    digest = hmac.new(key, b"".join(plain.split()), "sha256").hexdigest()[:8]
    return b"%s%s:%s]" % (PLACEHOLDER, kind.encode(), digest.encode())


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _redacted_by_value(line: bytes, key: bytes) -> bytes:
    """The slow and sure way, for a line where a rule took a piece of JSON itself for a secret."""
    body = line.rstrip(b"\r\n")
    return msgspec.json.encode(_walk(msgspec.json.decode(body), key)) + line[len(body) :]


def _walk(value: Any, key: bytes) -> Any:
    if isinstance(value, str):
        return redact(value, key)
    if isinstance(value, list):
        return [_walk(item, key) for item in value]
    if isinstance(value, dict):
        return {redact(name, key): _walk(item, key) for name, item in value.items()}
    return value
