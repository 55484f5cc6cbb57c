"""`conversation_recall`: search and read all messages and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everturn.errors import UsageError
from everturn.mcp.archive import McpArchive, session_name, session_pointer, sources
from everturn.mcp.tools.contract import LEAST_TOKENS, MOST_TOKENS, McpTool, ToolAnswer
from everturn.recall.schema import DESCRIPTION, SCHEMA

if TYPE_CHECKING:
    from everturn.store.contract import Store

#: Arguments of this server beyond the schema of the tool.
_EXTRA_PROPERTIES: dict[str, Any] = {
    "session": {
        "type": "string",
        "description": "Look only in this session: its id or a unique prefix of it, a handle, or @last.",
    },
    "max_tokens": {
        "type": "integer",
        "minimum": LEAST_TOKENS,
        "maximum": MOST_TOKENS,
        "description": f"How long the answer may be, in tokens. Default 2000 for search, else {MOST_TOKENS}.",
    },
}


def _run(archive: McpArchive, given: dict[str, Any]) -> ToolAnswer:
    tokens = given.pop("max_tokens", None)
    if tokens is not None and (not isinstance(tokens, int) or not LEAST_TOKENS <= tokens <= MOST_TOKENS):
        raise UsageError(f"max_tokens is a whole number between {LEAST_TOKENS} and {MOST_TOKENS}")
    session = given.pop("session", "")
    if not isinstance(session, str):
        raise UsageError("session is a string")
    return archive.read(lambda store: _answer_recall(archive, store, given, session, tokens))


def _answer_recall(
    archive: McpArchive, store: Store, given: dict[str, Any], session: str, tokens: int | None
) -> ToolAnswer:
    from everturn.recall.tool import ConversationRecall
    from everturn.sessions.lookup import resolve_session
    from everturn.sessions.secrets import archive_cleaner

    if session:
        words = given.get("query", "")
        named = session_pointer(resolve_session(store, session_name(session)).native_id)
        given = {**given, "query": f"{named} {words}".strip() if isinstance(words, str) else words}
    current, clean, meaning = archive.current(store), archive_cleaner(store), archive.meaning(store)
    recall = ConversationRecall(store, sources(), current, clean, archive.clock, tokens, meaning=meaning)
    answer = recall.answer(given)
    return ToolAnswer(answer.text, is_error=answer.status == "mistake")


TOOL = McpTool(
    name="conversation_recall",
    title="Recall past conversations",
    description=DESCRIPTION,
    input={**SCHEMA, "properties": {**SCHEMA["properties"], **_EXTRA_PROPERTIES}, "additionalProperties": False},
    run=_run,
)
