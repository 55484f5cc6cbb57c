"""The live path of a session: the messages that the agent would continue from.

A person may go back before an earlier message and continue from there. What came after it stays in the records and in the
archive, marked as taken back. Agents record this in three ways: a second prompt under one parent (`takes_back_at`), a number
of turns, or the id of the first message that is taken back (`takes_back`). A message that was taken back stays so.

The result depends only on rows and records, so that reading a file at once or in any pieces gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from everturn.model.archive import MessageRow, TakenBack, TakesBack
from everturn.model.conversation import Message

_PROMPT_KINDS = ("text", "command")


def takes_back(seq: int, message: Message) -> TakesBack | None:
    """Return what a message takes back, as it says; None if it takes nothing back."""
    said = message.takes_back
    if message.takes_back_at is not None:
        return TakesBack(seq, start=message.takes_back_at)
    if isinstance(said, str):
        return TakesBack(seq, native_id=said) if said else None
    return TakesBack(seq, turns=said) if said > 0 else None


def find_taken_back(
    said: Sequence[TakesBack], rows: Iterable[MessageRow], name_of: Callable[[MessageRow], str]
) -> list[TakenBack]:
    """Return the messages that are taken back, among all rows of a session. `name_of` reads the native id of one."""
    waiting = {one.seq: one for one in said}
    path: list[MessageRow] = []
    found = []
    for row in rows:
        if row.taken_back:
            continue
        if (one := waiting.get(row.seq)) is not None and (place := _find_place(path, one, name_of)) < len(path):
            found.append(TakenBack(path[place].seq, row.seq - 1, row.seq))
            del path[place:]
        path.append(row)
    return found


def is_live(row: MessageRow, last: int | None = None) -> bool:
    """Whether a message is on the live path, or was when `last` was the last message."""
    return not row.taken_back or (last is not None and row.taken_back > last)


def _find_place(path: list[MessageRow], said: TakesBack, name_of: Callable[[MessageRow], str]) -> int:
    """Return where the messages that are taken back begin in the path; its length if there are none."""
    end = len(path)
    if said.start >= 0:
        return next((place for place, row in enumerate(path) if row.start == said.start), end)
    if said.native_id:
        return next((place for place, row in enumerate(path) if name_of(row) == said.native_id), end)
    prompts = [place for place, row in enumerate(path) if _is_prompt(row)]
    return prompts[max(0, len(prompts) - said.turns)] if prompts else end


def _is_prompt(row: MessageRow) -> bool:
    return row.role == "user" and row.origin in ("human", "agent") and row.kind in _PROMPT_KINDS
