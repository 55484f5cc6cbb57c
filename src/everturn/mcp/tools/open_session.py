"""`open_session`: turns of one session, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from everturn.mcp.archive import McpArchive, find_session, read_page
from everturn.mcp.tools.contract import MaxTokens, SessionName, ToolAnswer, reading_tool

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.store.contract import Store

_DEFAULT_TURNS = 10  # when one end of the range, or none, is given
_TURNS_AROUND = 2  # on either side of a turn


class OpenSessionArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool."""

    session: SessionName = ""
    start_turn: Annotated[int, Meta(ge=1, description="First turn to read, counted from 1.")] | UnsetType = UNSET
    end_turn: Annotated[int, Meta(ge=1, description="Last turn to read, inclusive.")] | UnsetType = UNSET
    around_turn: Annotated[int, Meta(ge=1, description="Read this turn and its neighbours.")] | UnsetType = UNSET
    max_tokens: MaxTokens = 4000


def _read_session(archive: McpArchive, store: Store, arguments: OpenSessionArguments) -> ToolAnswer:
    session = find_session(archive, store, arguments.session)
    page = read_page(archive, store, session, *_turn_range(session, arguments), arguments.max_tokens)
    return ToolAnswer(page.text, is_error=page.status == "mistake")


def _turn_range(session: Session, arguments: OpenSessionArguments) -> tuple[int, int]:
    """Return the first and last turn to read, counted from 1. They need not exist: `read_page` says so."""
    start, end = arguments.start_turn or None, arguments.end_turn or None
    if arguments.around_turn:
        return max(arguments.around_turn - _TURNS_AROUND, 1), arguments.around_turn + _TURNS_AROUND
    if start is None:
        end = min(end or session.n_turns, session.n_turns) or 1
        return max(end - _DEFAULT_TURNS + 1, 1), end
    return start, end or start + _DEFAULT_TURNS - 1


TOOL = reading_tool(
    OpenSessionArguments,
    _read_session,
    name="open_session",
    title="Read a past session",
    description=(
        "Reads turns of one past conversation: what was asked, what was answered, which tools ran and what they gave back. "
        "Without a range the latest turns; around_turn reads a place that a search found. Long tool output is cut first; the "
        "answer says how to get what was cut."
    ),
)
