"""`restore_session`: what a fresh agent must know to continue a past session, each statement with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from everturn.errors import UsageError
from everturn.mcp.archive import McpArchive, find_session, sources
from everturn.mcp.tools.contract import MOST_TOKENS, McpTool, SessionName, ToolAnswer, schema
from everturn.model.conversation import prepared
from everturn.text.printable import quote_for_model

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
    with_model: Annotated[
        bool,
        Meta(
            description="Let the model that the user configured for this server write it and look for evidence, in the "
            "folder that the user allowed, if any. Slower; an error if the user configured none."
        ),
    ] = False


def _run(archive: McpArchive, given: dict[str, Any]) -> ToolAnswer:
    asked = msgspec.convert(given, prepared(RestoreSessionArguments))
    run = archive.run_separately if asked.with_model else archive.read  # what a model wrote is kept, and paid for once
    return run(lambda store: _restore_document(archive, store, asked))


def _restore_document(archive: McpArchive, store: Store, asked: RestoreSessionArguments) -> ToolAnswer:
    from everturn.restore.job import RestoreOptions, RestoreTarget, restore_session
    from everturn.restore.markdown import document_markdown
    from everturn.sessions.secrets import archive_cleaner

    session = find_session(archive, store, asked.session)
    if asked.with_model and archive.open_model is None:
        raise UsageError("no model may be asked: the user starts the server with `everturn mcp --restore-model NAME`")
    asker = archive.open_model(store, session) if asked.with_model and archive.open_model is not None else None
    last = None if isinstance(asked.last_turn, UnsetType) else asked.last_turn
    options = RestoreOptions(max_turns=last, workspace=archive.evidence_folder if asker is not None else "")
    document = restore_session(RestoreTarget(store, session), sources(), options, asker)
    return ToolAnswer(
        quote_for_model(document_markdown(document, archive_cleaner(store), asked.max_tokens - _FRAME_TOKENS))
    )


TOOL = McpTool(
    name="restore_session",
    title="Restore a past session",
    description=(
        "Tells what a past conversation was about and how it stands, so that it can be continued: goal, task in progress, constraints, "
        "files changed, what still fails, open plan items and questions, next steps, commits, last requests. Made from its "
        "records, without a model unless with_model; every statement names turn and message, which open_session reads."
    ),
    input=schema(RestoreSessionArguments),
    run=_run,
)
