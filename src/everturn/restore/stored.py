"""Summaries that a model wrote, kept with what one must know about them: model, prompts, cost, and what they cover.

They are artefacts beside the records and never in their place. A summary is stale as soon as the session has a message it
does not cover. The text is kept without secrets. `forget` erases them with their session.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from everturn.model.archive import KeptRow, Session
from everturn.restore import Document
from everturn.store import Store

KIND = "summary"


class KeptSummary(Struct, frozen=True):
    """A kept summary."""

    model: str = ""
    prompt_version: str = ""
    turns: int = 0  # it covers the first so many turns
    last_seq: int = -1  # up to this message
    text: str = ""
    receipts: list[Any] = []
    at: int = 0  # ms UTC


def keep_summary(store: Store, session: Session, document: Document, text: str, at: int) -> None:
    """Keep what a model made of a session; the same model and prompts over the same turns replace what they made before."""
    value = KeptSummary(
        document.model, document.prompt_version, document.turns, document.last_seq, text,
        msgspec.to_builtins(list(document.receipts)), at,
    )  # fmt: skip
    key = f"{document.model}/{document.prompt_version}/{document.last_seq}"
    row = KeptRow(KIND, session.agent, session.native_id, key, msgspec.json.encode(value).decode(), at)
    with store.write():
        store.keep(row)


def kept_summaries(store: Store, session: Session) -> list[KeptSummary]:
    """The kept summaries of a session, the newest first. What cannot be read is left out."""
    found = []
    for row in store.kept(KIND, session.native_id):
        if row.agent == session.agent:
            try:
                found.append(msgspec.json.decode(row.value, type=KeptSummary))
            except msgspec.DecodeError:
                continue
    return sorted(found, key=lambda one: (-one.at, -one.last_seq))


def is_stale(session: Session, one: KeptSummary) -> bool:
    """Whether the session has gone on since."""
    return session.n_messages - 1 > one.last_seq
