"""`restore_session`: what a fresh agent must know to go on with a past session, each statement with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from everturn.mcp.archive import Archive, sources
from everturn.mcp.tools import MOST_TOKENS, Answer, SessionName, Tool, schema

if TYPE_CHECKING:
    from everturn.store import Store

_LEAST = 600  # tokens: headings, frame, and a few statements
_FRAME = 60

MaxTokens = Annotated[
    int, Meta(ge=_LEAST, le=MOST_TOKENS, description=f"How long the answer may be, in tokens (≤ {MOST_TOKENS}).")
]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What it can be asked."""

    session: SessionName = ""
    last_turn: Annotated[int, Meta(ge=1, description="As it stood after this turn, counted from 1.")] | UnsetType = (
        UNSET
    )
    max_tokens: MaxTokens = 4000


def _run(archive: Archive, given: dict[str, Any]) -> Answer:
    asked = msgspec.convert(given, Arguments)
    return archive.ask(lambda store: _restored(archive, store, asked))


def _restored(archive: Archive, store: Store, asked: Arguments) -> Answer:
    from everturn.mcp.pages import meant
    from everturn.recall.framing import quoted
    from everturn.recall.secrets import cleaner
    from everturn.restore.document import mechanical
    from everturn.restore.writing import markdown

    session = meant(archive, store, asked.session)
    last = None if isinstance(asked.last_turn, UnsetType) else asked.last_turn - 1
    document = mechanical(store, sources(), session, last)
    return Answer(quoted(markdown(document, cleaner(store), asked.max_tokens - _FRAME)))


TOOL = Tool(
    name="restore_session",
    title="Restore a past session",
    description=(
        "Tells what a past conversation was about and how it stands, to go on with it: goal, task in progress, constraints, "
        "files changed, what still fails, open plan items and questions, next steps, commits, last requests. Made from its "
        "records without a model; every statement names turn and message, which open_session reads."
    ),
    input=schema(Arguments),
    run=_run,
)
