"""OpenCode as a model: `opencode run` prints one JSON object per line.

It has no option to leave the session out of its history, so its database is one in memory for this run. All tools are off
and whatever asks for permission is denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everturn.sources import ProgramReply
from everturn.sources.foreign import count, decode_value, word

_CONFIG = '{"tools": {"*": false}, "permission": {"*": "deny"}, "share": "disabled", "autoupdate": false}'


def command(model: str) -> list[str]:
    """See `Ask`. A model is named PROVIDER/MODEL."""
    words = ["opencode", "run", "--format", "json"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `Ask`."""
    return {"OPENCODE_DB": ":memory:", "OPENCODE_CONFIG_CONTENT": _CONFIG}


def read(printed: bytes) -> ProgramReply:
    """See `Ask`. Each step counts its own tokens."""
    texts: list[str] = []
    spent = [0, 0, 0, 0]
    failure = ""
    for line in printed.splitlines():
        event = _object(decode_value(line))
        part = _object(event.get("part"))
        if event.get("type") == "text":
            texts.append(word(part.get("text")))
        elif event.get("type") == "step_finish":
            spent = [before + more for before, more in zip(spent, _tokens(part), strict=True)]
        elif event.get("type") == "error":
            error = _object(event.get("error"))
            failure = word(_object(error.get("data")).get("message")) or word(error.get("name")) or "it failed"
    told, answered, read_again, kept = spent
    text = "\n\n".join(texts)
    return ProgramReply(text, "", told, answered, read_again, kept, failure)


def _tokens(part: dict[str, Any]) -> tuple[int, int, int, int]:
    tokens = _object(part.get("tokens"))
    cache = _object(tokens.get("cache"))
    output = (count(tokens.get("output")) or 0) + (count(tokens.get("reasoning")) or 0)
    return count(tokens.get("input")) or 0, output, count(cache.get("read")) or 0, count(cache.get("write")) or 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
