"""The full-text index as the shared code sees it: put text in, take it out, and say in SQL which entries match.

Which sessions and messages a search is about is the same SQL for every engine (`questions.search`); an engine only
says how words are matched and scored. Only messages that are a session's own are in the index, each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from everturn.model.archive import IndexRow
from everturn.store import Query

#: How much a word counts, by the field it stands in (`words.FIELDS`).
WEIGHTS = {
    "prompt": 8.0,
    "summary": 8.0,
    "answer": 5.0,
    "tool_input": 3.0,
    "thinking": 2.0,
    "tool_output": 1.0,
    "meta": 1.0,
}


class Index(Protocol):
    """The entries of one archive."""

    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter the text of messages that have no entry yet."""

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry (title and summary, field `summary`); without text there is none."""

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take entries of messages out; those that are not there do not matter."""

    def remove_session(self, session: int) -> None:
        """Take out every entry of a session, its own one included."""

    def matching(self, query: Query) -> tuple[str, list[Any]]:
        """A SELECT of `session`, `seq` and `score` of every entry that fits `groups`, `without` and `fields`.

        `seq` is -1 for a session's own entry, a higher score is better, no entry comes twice. The other parts of the
        query are not looked at here. `groups` is not empty.
        """
