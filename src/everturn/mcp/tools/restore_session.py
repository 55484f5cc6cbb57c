"""`restore_session`: what a fresh agent must know to continue a past session, each statement with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from everturn.mcp.archive import McpArchive, sources
from everturn.mcp.tools.contract import MOST_TOKENS, McpTool, SessionName, ToolAnswer, schema

if TYPE_CHECKING:
    from everturn.store.contract import Store

_LEAST_TOKENS = 600  # tokens: headings, frame, and a few statements
_FRAME_TOKENS = 60

MaxTokens = Annotated[
    int, Meta(ge=_LEAST_TOKENS, le=MOST_TOKENS, description=f"How long the answer may be, in tokens (≤ {MOST_TOKENS}).")
]


class RestoreSessionArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool."""

    session: SessionName = ""
    last_turn: Annotated[int, Meta(ge=1, description="As it stood after this turn, counted from 1.")] | UnsetType = (
        UNSET
    )
    max_tokens: MaxTokens = 4000


def _run(archive: McpArchive, given: dict[str, Any]) -> ToolAnswer:
    asked = msgspec.convert(given, RestoreSessionArguments)
    return archive.read(lambda store: _restore_document(archive, store, asked))


def _restore_document(archive: McpArchive, store: Store, asked: RestoreSessionArguments) -> ToolAnswer:
    from everturn.mcp.archive import find_session
    from everturn.restore.job import RestoreOptions, RestoreTarget, restore_session
    from everturn.restore.markdown import document_markdown
    from everturn.sessions.secrets import archive_cleaner
    from everturn.text.printable import quote_for_model

    session = find_session(archive, store, asked.session)
    options = RestoreOptions(max_turns=None if isinstance(asked.last_turn, UnsetType) else asked.last_turn)
    document = restore_session(RestoreTarget(store, session), sources(), options)
    return ToolAnswer(
        quote_for_model(document_markdown(document, archive_cleaner(store), asked.max_tokens - _FRAME_TOKENS))
    )


TOOL = McpTool(
    name="restore_session",
    title="Restore a past session",
    description=(
        "Tells what a past conversation was about and how it stands, so that it can be continued: goal, task in progress, constraints, "
        "files changed, what still fails, open plan items and questions, next steps, commits, last requests. Made from its "
        "records without a model; every statement names turn and message, which open_session reads."
    ),
    input=schema(RestoreSessionArguments),
    run=_run,
)
