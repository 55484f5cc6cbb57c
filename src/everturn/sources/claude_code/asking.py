"""Claude Code as a model: `claude -p` prints one JSON object with the answer and the usage.

Without tools, MCP servers and skills, and without a session in its history. The settings of the user are read, because the
way to log in may stand there; those of projects are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everturn.sources import ProgramReply
from everturn.sources.foreign import count, decode_value, word


def command(model: str) -> list[str]:
    """See `Ask`."""
    words = ["claude", "-p", "--output-format", "json", "--no-session-persistence", "--tools", ""]
    words += ["--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "user"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `Ask`. With the first two it takes itself for a session within another one."""
    return {"CLAUDECODE": None, "CLAUDE_CODE_ENTRYPOINT": None, "DISABLE_AUTOUPDATER": "1"}


def read(printed: bytes) -> ProgramReply:
    """See `Ask`."""
    said = decode_value(printed)
    if not isinstance(said, dict):
        return ProgramReply()
    text = word(said.get("result"))
    if said.get("is_error") or said.get("subtype") not in (None, "success"):
        return ProgramReply(failure=text or word(said.get("subtype")) or "it failed")
    used: dict[str, Any] = _object(said.get("usage"))
    return ProgramReply(
        text=text,
        model=next(iter(_object(said.get("modelUsage"))), ""),
        input=count(used.get("input_tokens")) or 0,
        output=count(used.get("output_tokens")) or 0,
        cache_read=count(used.get("cache_read_input_tokens")) or 0,
        cache_write=count(used.get("cache_creation_input_tokens")) or 0,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
