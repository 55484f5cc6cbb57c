"""`open_session`: read turns of one conversation, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from everturn.mcp.archive import McpArchive
from everturn.mcp.tools.contract import MaxTokens, McpTool, SessionName, ToolAnswer, schema

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.store.contract import Store

_DEFAULT_TURNS = 10  # turns, when only one end is named, or none
_TURNS_AROUND = 2  # turns on either side of one


class OpenSessionArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What it can be asked."""

    session: SessionName = ""
    start_turn: Annotated[int, Meta(ge=1, description="First turn to read, counted from 1.")] | UnsetType = UNSET
    end_turn: Annotated[int, Meta(ge=1, description="Last turn to read, inclusive.")] | UnsetType = UNSET
    around_turn: Annotated[int, Meta(ge=1, description="Read this turn and its neighbours.")] | UnsetType = UNSET
    max_tokens: MaxTokens = 4000


def _run(archive: McpArchive, given: dict[str, Any]) -> ToolAnswer:
    asked = msgspec.convert(given, OpenSessionArguments)
    return archive.read(lambda store: _read_session(archive, store, asked))


def _read_session(archive: McpArchive, store: Store, asked: OpenSessionArguments) -> ToolAnswer:
    from everturn.mcp.archive import find_session, read_page

    session = find_session(archive, store, asked.session)
    told = read_page(archive, store, session, *_turn_range(session, asked), asked.max_tokens)
    return ToolAnswer(told.text, is_error=told.status == "mistake")


def _turn_range(session: Session, asked: OpenSessionArguments) -> tuple[int, int]:
    """The first and last turn asked for, counted from 1; whether they exist is told by who reads them."""
    start, end = asked.start_turn or None, asked.end_turn or None
    if asked.around_turn:
        return max(asked.around_turn - _TURNS_AROUND, 1), asked.around_turn + _TURNS_AROUND
    if start is None:
        end = min(end or session.n_turns, session.n_turns) or 1
        return max(end - _DEFAULT_TURNS + 1, 1), end
    return start, end or start + _DEFAULT_TURNS - 1


TOOL = McpTool(
    name="open_session",
    title="Read a past session",
    description=(
        "Reads turns of one past conversation: what was asked, what was answered, which tools ran and what they gave back. "
        "Without a range the latest turns; around_turn reads a place that a search found. Long tool output is cut first; the "
        "answer says how to get what was cut."
    ),
    input=schema(OpenSessionArguments),
    run=_run,
)
