"""What is asked of the archive: in which session, for which part of a turn, and how to ask for the next one.

`conversation_recall` has no argument for these, so they stand in its `query`: `session:3f2a9c1b` names a session by any
beginning of its id, `message:7` or `message:7-12` messages of a turn by their numbers, `line:200-` lines of a message.
An answer that could not show everything ends with such calls, ready to be made (`Asking.again`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from everturn.derive.printable import printable
from everturn.model.archive import Session
from everturn.recall.answers import WHOLE, TurnPart
from everturn.recall.framing import Clean
from everturn.recall.reading import Sources
from everturn.store import Store

if TYPE_CHECKING:  # few have one
    from everturn.recall.meaning import MeaningSearch

Spell = Callable[[dict[str, Any]], str]

_POINTER = re.compile(r'(?<!\S)(session|message|line):("[^"]*"|[^\s"]+)(?!\S)')
_NUMBERS = re.compile(r"([1-9][0-9]{0,8})(?:(-)([1-9][0-9]{0,8})?)?")


class NextPointers(Struct, frozen=True):
    """What a query points to, and the words that are left of it."""

    words: str
    session: str = ""
    part: TurnPart = WHOLE
    mistake: str = ""


class RecallRequest(Struct, frozen=True):
    """One request: where to look, as of when, how words leave, how much room there is."""

    store: Store
    sources: Sources
    clean: Clean
    now: int
    budget: int
    spell: Spell
    session: Session | None = None
    short: str = ""  # its handle
    is_own: bool = True  # the session one is in: it needs no name
    meaning: MeaningSearch | None = None

    def again(self, action: str, part: str = "", **arguments: Any) -> str:
        """The request that goes on from here, as it is to be written."""
        named = "" if self.is_own or self.session is None else f"session:{self.short}"
        query = " ".join(filter(None, (named, part)))
        return self.spell({"action": action, **arguments, **({"query": query} if query else {})})


def pointers(query: str, parts: bool) -> NextPointers:
    """Take the pointers out of a query; `parts`: also those to messages and lines, which are words otherwise."""
    values: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        if found[1] != "session" and not parts:
            return found[0]
        values[found[1]] = found[2].strip('"')
        return ""

    words = " ".join(_POINTER.sub(take, query).split()) if ":" in query else query.strip()
    ranges = {}
    for name in values.keys() - {"session"}:
        if (found := _NUMBERS.fullmatch(values[name])) is None:
            return NextPointers(
                words, mistake=f"{name}: takes a number or a range, as in {name}:7, {name}:7-12 or {name}:7-"
            )
        ranges[name] = (int(found[1]), int(found[3]) if found[3] else None if found[2] else int(found[1]))
    part = TurnPart(*ranges.get("message", (1, None)), *ranges.get("line", (1, None)))
    return NextPointers(words, values.get("session", ""), part)


def as_call(arguments: dict[str, Any]) -> str:
    """A request as a call of the tool."""
    shown = (
        f"{name}={value}" if isinstance(value, int) else f"{name}={_json_string(value)}"
        for name, value in arguments.items()
    )
    return f"conversation_recall({', '.join(shown)})"


def _json_string(value: str) -> str:
    return json.dumps(printable(value), ensure_ascii=False)
