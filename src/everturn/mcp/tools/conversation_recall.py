"""`conversation_recall`: search and read everything that was said and done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everturn.errors import Usage
from everturn.mcp.archive import Archive, sources
from everturn.mcp.tools import LEAST_TOKENS, MOST_TOKENS, Answer, Tool
from everturn.recall.schema import DESCRIPTION, SCHEMA

if TYPE_CHECKING:
    from everturn.store import Store

#: What this server takes beyond the schema of the tool.
_MORE: dict[str, Any] = {
    "session": {
        "type": "string",
        "description": "Look only in this session: its id or a unique beginning of it, a handle, or @last.",
    },
    "max_tokens": {
        "type": "integer",
        "minimum": LEAST_TOKENS,
        "maximum": MOST_TOKENS,
        "description": f"How long the answer may be, in tokens. Default {MOST_TOKENS}.",
    },
}


def _run(archive: Archive, given: dict[str, Any]) -> Answer:
    tokens = given.pop("max_tokens", MOST_TOKENS)
    if not isinstance(tokens, int) or not LEAST_TOKENS <= tokens <= MOST_TOKENS:
        raise Usage(f"max_tokens is a whole number between {LEAST_TOKENS} and {MOST_TOKENS}")
    session = given.pop("session", "")
    if not isinstance(session, str):
        raise Usage("session is a string")
    return archive.ask(lambda store: _answer(archive, store, given, session, tokens))


def _answer(archive: Archive, store: Store, given: dict[str, Any], session: str, tokens: int) -> Answer:
    from everturn.mcp.handles import session_name
    from everturn.mcp.pages import pointer
    from everturn.recall.secrets import cleaner
    from everturn.recall.sessions import resolve
    from everturn.recall.tool import ConversationRecall

    if session:
        words = given.get("query", "")
        named = pointer(resolve(store, session_name(session)).native_id)
        given = {**given, "query": f"{named} {words}".strip() if isinstance(words, str) else words}
    recall = ConversationRecall(
        store, sources(), archive.current(store), cleaner(store), archive.clock, tokens, meaning=archive.meaning(store)
    )
    answer = recall.answer(given)
    return Answer(answer.text, is_error=answer.status == "mistake")


TOOL = Tool(
    name="conversation_recall",
    title="Recall past conversations",
    description=DESCRIPTION,
    input={**SCHEMA, "properties": {**SCHEMA["properties"], **_MORE}, "additionalProperties": False},
    run=_run,
)
