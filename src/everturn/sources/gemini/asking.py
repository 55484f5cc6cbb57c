"""Gemini CLI as a model: `gemini -o json` prints one JSON object with the answer and its statistics.

It always writes the session down. With a key in the environment it gets a home of its own for the run, which is thrown away;
with a login, which lies in the real home, it runs there, in a folder whose name says that everturn asked. It has no tools
in the first case, and those that only read in the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everturn.sources import ProgramReply
from everturn.sources.foreign import count, decode_value, word

_SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "tools": {"core": []}}'


def command(model: str) -> list[str]:
    """See `Ask`. Without a terminal, what stands at its input is the prompt."""
    words = ["gemini", "--output-format", "json", "--skip-trust", "--approval-mode", "plan"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `Ask`."""
    if not env.get("GEMINI_API_KEY"):
        return {}
    home = folder / "home"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(_SETTINGS, "utf-8")
    return {"GEMINI_CLI_HOME": str(home)}


def read(printed: bytes) -> ProgramReply:
    """See `Ask`."""
    said = decode_value(printed[max(0, printed.find(b"{")) :])  # warnings may stand before it
    if not isinstance(said, dict):
        return ProgramReply()
    if error := _object(said.get("error")):
        return ProgramReply(failure=word(error.get("message")) or "it failed")
    models = _object(_object(said.get("stats")).get("models"))
    counts = [_object(_object(one).get("tokens")) for one in models.values()]
    cached = _sum(counts, "cached")
    return ProgramReply(
        text=word(said.get("response")),
        model=next(iter(models), ""),
        input=max(0, _sum(counts, "prompt") - cached),
        output=_sum(counts, "candidates") + _sum(counts, "thoughts"),
        cache_read=cached,
    )


def _sum(counts: list[dict[str, Any]], name: str) -> int:
    return sum(count(one.get(name)) or 0 for one in counts)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
