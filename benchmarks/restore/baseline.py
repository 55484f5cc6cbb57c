"""The plain document: what anybody could copy out of a session without understanding it.

The last answer (up to half of the budget), the changed files, the commits, and the requests, the latest first, each with the end of the
answer that it replies to, as far as the budget reaches. A restored document should never show less of what readers call key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.derive.session_state import SessionState
from everturn.model.archive import MessageRow
from everturn.model.conversation import Message
from everturn.text.printable import one_line
from everturn.text.tokens import cut_to_tokens, fits_tokens

_REQUEST, _QUESTION = 600, 160  # cells of a request, and characters of the answer before it


def plain_document(messages: Iterable[tuple[MessageRow, Message]], state: SessionState, budget: int) -> str:
    """Return the plain document of a session within a budget of tokens."""
    requests: list[str] = []
    answer = ""
    for row, message in messages:
        for field, text in _spoken(row, message):
            if field == "prompt":
                asked = f" (after: {one_line(answer[-_QUESTION:], _QUESTION)})" if answer else ""
                requests.append(f"{one_line(text, _REQUEST)}{asked}")
            else:
                answer = text
    files = "\n".join(one.path for one in reversed(state.files.values()) if one.action != "read")
    commits = "\n".join(f"{one.hash} {one.subject}" for one in reversed(state.commits))
    shares = ((answer, budget // 2), (files, budget // 4), (commits, budget // 8))
    return _fill("\n".join(cut_to_tokens(text, share) for text, share in shares if text), reversed(requests), budget)


def _spoken(row: MessageRow, message: Message) -> Iterator[tuple[str, str]]:
    """Yield what a person asked and a model answered."""
    said_by = {"prompt": "human", "answer": "model"}
    for block in message.blocks:
        if block.text.strip() and said_by.get(block.field) == row.origin:
            yield block.field, block.text


def _fill(text: str, requests: Iterable[str], budget: int) -> str:
    """Add requests while there is room."""
    for words in requests:
        if fits_tokens(f"{text}\n{words}", budget):
            text = f"{text}\n{words}"
    return text
