"""JSON as it goes out: one line, secrets taken out of every value, nothing in it that a terminal acts on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

#: What JSON may hold raw but a terminal acts on; escaped it means the same.
_ACTIVE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def to_json(value: Any, clean: Callable[[str], str] | None = None) -> bytes:
    """The value, whose strings go through `clean`."""
    plain = msgspec.to_builtins(value)
    if clean is not None:
        plain = _clean_strings(plain, clean)
    try:
        text = msgspec.json.encode(plain).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as transcripts do have them
        text = json.dumps(plain, separators=(",", ":"))
    return _ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _clean_strings(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _clean_strings(one, clean) for key, one in value.items()}
    return [_clean_strings(one, clean) for one in value] if isinstance(value, list) else value
