"""Where a session stopped, in a few lines for the next one; and the words that its model still sees.

For sessions that begin in a folder where one has been before, and for prompts that point to what is out of view. What is
quoted is framed as data and without secrets, as everything that recall answers.
"""

from __future__ import annotations

from everturn.derive.dangling import HINT
from everturn.derive.printable import one_line
from everturn.model.archive import Session
from everturn.recall.framing import Clean
from everturn.recall.reading import Sources, has_words
from everturn.recall.tool import ConversationRecall
from everturn.resume.history import read_history
from everturn.store import Store

#: Tokens of what is told of a session; a hint as a whole stays below 2,000.
BUDGET = 1_200
#: Characters of a window that are kept, the newest.
WINDOW = 400_000
_CALL = 2_000


def where_you_were(store: Store, sources: Sources, session: Session, clean: Clean, now: int) -> str:
    """How the last session of a folder stands, quoted; "" where its words were not kept."""
    if not has_words(session) or not session.n_turns:
        return ""
    recall = ConversationRecall(store, sources, session, clean, now, BUDGET)
    answer = recall.answer({"action": "summary", "query": f"session:{session.native_id}"})
    if answer.status != "found":
        return ""
    return (
        "[everturn: the last session in this folder, for orientation; it may be about something else than what the user "
        f"wants now. More of it by the tool conversation_recall.]\n{answer.text}"
    )


def where_hint(where: str) -> str:
    """What is told when a prompt points to what is out of view, with the last session quoted."""
    return f"{HINT}\n\n{where}" if where else HINT


def texts_in_view(store: Store, sources: Sources, session: Session, clean: Clean) -> list[str]:
    """The texts that the model of a session still sees, the newest last: prompts, answers, calls and results."""
    texts: list[str] = []
    size = 0
    for message in reversed(read_history(store, sources, session).messages if has_words(session) else []):
        for block in reversed(message.blocks):
            said = block.text or (one_line(str(block.call.input), _CALL) if block.call else "")
            size += len(said)
            if size > WINDOW:
                return texts[::-1]
            texts += [clean(said)] if said else []
    return texts[::-1]
