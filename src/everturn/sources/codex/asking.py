"""Codex as a model: `codex exec` prints one JSON object per line.

Without a shell, web search and other agents, in a read-only sandbox, and without a session in its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everturn.sources import ProgramReply
from everturn.sources.foreign import count, decode_value, word

_OFF = ("features.shell_tool=false", "features.unified_exec=false", "features.multi_agent=false", "web_search=disabled")


def command(model: str) -> list[str]:
    """See `Ask`."""
    words = ["codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
    words += ["--color", "never", *(word for setting in _OFF for word in ("-c", setting))]
    return [*words, *(("--model", model) if model else ()), "-"]


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `Ask`."""
    return {}


def read(printed: bytes) -> ProgramReply:
    """See `Ask`. Items of type `error` are warnings: a turn that failed says so itself."""
    texts: list[str] = []
    used: dict[str, Any] = {}
    failure = ""
    for line in printed.splitlines():
        event = _object(decode_value(line))
        kind, item = event.get("type"), _object(event.get("item"))
        if kind == "item.completed" and item.get("type") == "agent_message":
            texts.append(word(item.get("text")))
        elif kind == "turn.completed":
            used, failure = _object(event.get("usage")), ""
        elif kind in ("turn.failed", "error"):
            failure = word(_object(event.get("error")).get("message")) or word(event.get("message")) or "it failed"
    cached = count(used.get("cached_input_tokens")) or 0
    return ProgramReply(
        text="\n\n".join(texts),
        input=max(0, (count(used.get("input_tokens")) or 0) - cached),
        output=count(used.get("output_tokens")) or 0,
        cache_read=cached,
        cache_write=count(used.get("cache_write_input_tokens")) or 0,
        failure=failure,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
