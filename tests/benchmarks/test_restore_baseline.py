"""The plain document that a restored one is held against."""

from __future__ import annotations

from benchmarks.restore.baseline import plain_document
from everturn.derive.session_state import SessionState
from everturn.model.archive import MessageRow
from everturn.model.conversation import Block, Message
from everturn.text.tokens import fits_tokens


def said(seq: int, origin: str, field: str, text: str) -> tuple[MessageRow, Message]:
    return MessageRow(seq=seq, origin=origin), Message(
        role="x", origin=origin, blocks=(Block(kind="text", field=field, text=text),)
    )


def test_it_holds_the_last_answer_and_the_requests_with_what_they_reply_to() -> None:
    talk = [
        said(0, "human", "prompt", "add a cart to the shop"),
        said(1, "model", "answer", "Shall it keep its content?"),
        said(2, "human", "prompt", "yes, for a week"),
        said(3, "injected", "prompt", "a reminder of the client"),
        said(4, "model", "answer", "It keeps it for seven days."),
    ]
    text = plain_document(talk, SessionState(), 500)
    assert text.splitlines() == [
        "It keeps it for seven days.", "yes, for a week (after: Shall it keep its content?)", "add a cart to the shop",
    ]  # fmt: skip
    long = plain_document([*talk, said(5, "model", "answer", "word " * 3_000)], SessionState(), 500)
    assert fits_tokens(long, 500) and "yes, for a week" in long
