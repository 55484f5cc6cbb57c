"""`conversation_recall`: the archive as a tool that a model calls.

    recall = ConversationRecall(store, sources, session, clean=redact, now=clock.now)
    recall(action="search", query="refresh token")          -> text
    recall.call({"action": "range", "start_turn": 5, "end_turn": 8})

Four actions: `search` finds turns by words, `range` gives turns by number, `tool_calls` gives the calls of a tool,
`summary` what the session is about, from its records alone. The answer is text: our own words first, then a quotation
(`framing`) in compact form (`answers`), then what was cut and the very call that gets it. It is never longer than its
budget, 8,000 tokens at most. Secrets are taken out before anything is cut. A model's mistake is answered, not raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from everturn.clock import Clock
from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session
from everturn.recall.answer import (
    AnswerDraft,
    AnswerEntry,
    NextPointers,
    RecallRequest,
    Spell,
    TurnPart,
    as_call,
    handle,
    pointers,
    session_line,
    show_entry,
)
from everturn.recall.budget import MAX_TOKENS, MIN_TOKENS, cost, fit_entries
from everturn.recall.schema import (
    ACTIONS,
    DEFAULT_LIMIT,
    DESCRIPTION,
    INSTRUCTION,
    MAX_LIMIT,
    SCHEMA,
    Function,
    given_arguments,
)
from everturn.secrets.redaction import redact_text
from everturn.sessions.lookup import best_match, resolve_session, short_ids
from everturn.sessions.messages import Sources
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import Clean, quote_for_model

if TYPE_CHECKING:  # few have one
    from everturn.retrieval.meaning import MeaningSearch

__all__ = [
    "ACTIONS",
    "DESCRIPTION",
    "FUNCTION",
    "INSTRUCTION",
    "SCHEMA",
    "ConversationRecall",
    "RecallAnswer",
    "anthropic_tool",
    "openai_tool",
]  # fmt: skip

FUNCTION = Function("conversation_recall", DESCRIPTION, SCHEMA)


def openai_tool() -> dict[str, Any]:
    """The tool as an entry of `tools` in the chat completions form."""
    return FUNCTION.openai()


def anthropic_tool() -> dict[str, Any]:
    """The tool as an entry of `tools` in the messages form."""
    return FUNCTION.anthropic()


class RecallAnswer(Struct, frozen=True):
    """What the tool says. `status`: found, nothing (a fine request without an answer) or mistake."""

    text: str
    status: str = "found"
    entries: list[AnswerEntry] = []  # what is quoted, for those who want it in parts
    hints: list[str] = []


class ConversationRecall:
    """The tool, for one archive and the session one is in, if any. It only reads."""

    def __init__(
        self,
        store: Store,
        sources: Sources,
        session: Session | None = None,
        clean: Clean = redact_text,
        now: Clock | int = 0,
        budget: int = MAX_TOKENS,
        spell: Spell = as_call,
        meaning: MeaningSearch | None = None,
    ) -> None:
        """`spell` writes a request down as those who read the answer would make it."""
        self._store = store
        self._sources = sources
        self._session = session
        self._clean = clean
        self._now = now
        self._budget = max(MIN_TOKENS, min(budget, MAX_TOKENS))
        self._spell = spell
        self._meaning = meaning

    def __call__(
        self,
        action: str,
        query: str | None = None,
        tool_name: str | None = None,
        start_turn: int | None = None,
        end_turn: int | None = None,
        limit: int | None = DEFAULT_LIMIT,
    ) -> str:
        """The answer to one request as text."""
        values = {
            "query": query,
            "tool_name": tool_name,
            "start_turn": start_turn,
            "end_turn": end_turn,
            "limit": limit,
        }
        return self.answer({"action": action, **values}).text

    def call(self, arguments: Mapping[str, Any] | str) -> str:
        """The answer to what a model passed, an object or the text of one."""
        return self.answer(arguments).text

    def answer(self, arguments: Mapping[str, Any] | str) -> RecallAnswer:
        """The answer with its parts. Whatever is passed, nothing is raised but by the archive itself."""
        asked = given_arguments(FUNCTION, arguments)
        if isinstance(asked, str):
            return RecallAnswer(asked, "mistake")
        limit = asked.get("limit", DEFAULT_LIMIT)
        if not 1 <= limit <= MAX_LIMIT:
            return RecallAnswer(
                f"conversation_recall: limit must be between 1 and {MAX_LIMIT}, not {limit}.", "mistake"
            )
        try:
            with self._store.reading():
                return self._compose_answer(self._draft_answer(asked, limit))
        except NothingFound as error:
            return RecallAnswer(f"conversation_recall: {error}.", "nothing")
        except UsageError as error:
            return RecallAnswer(f"conversation_recall: {error}.", "mistake")

    def _draft_answer(self, asked: dict[str, Any], limit: int) -> AnswerDraft:
        action = asked["action"]
        pointed = pointers(asked.get("query", ""), parts=action != "search")
        if pointed.mistake:
            return AnswerDraft(f"{action}: {pointed.mistake}.", status="mistake")
        asking = self._asking(pointed)
        if action == "search":
            from everturn.recall.search_action import answer_search

            return answer_search(asking, pointed.words, limit)
        if asking.session is None:
            return _ask_which_session(asking, action)
        return _answer_about_session(asking, asking.session, asked, pointed.part, limit)

    def _asking(self, pointed: NextPointers) -> RecallRequest:
        own = self._session and best_match(
            self._store.sessions_of(self._session.agent, self._session.native_id) or [self._session]
        )
        session = resolve_session(self._store, pointed.session) if pointed.session else own
        return RecallRequest(
            self._store, self._sources, self._clean, self._now if isinstance(self._now, int) else self._now(),
            self._budget, self._spell, session,
            short=handle(short_ids([session], self._store)[session.id]) if session else "",
            is_own=session is None or (own is not None and own.id == session.id),
            meaning=self._meaning,
        )  # fmt: skip

    def _compose_answer(self, draft: AnswerDraft) -> RecallAnswer:
        """The draft cut to the budget. The room for hints is known only when they are: a few tries find it."""
        room = self._budget - cost(draft.lead) - 80
        for _ in range(8):
            answer = _write_answer(draft, max(room, 0), hints=max(1, self._budget // 250))
            excess = cost(answer.text) - self._budget
            if excess <= 0:
                return answer
            room -= excess + 10
        return RecallAnswer(draft.lead[: self._budget], draft.status)


def _answer_about_session(
    asking: RecallRequest, session: Session, asked: dict[str, Any], part: TurnPart, limit: int
) -> AnswerDraft:
    """The answer about one session."""
    if asked["action"] == "range":
        from everturn.recall.read_actions import answer_range

        return answer_range(asking, session, asked.get("start_turn"), asked.get("end_turn"), part)
    if asked["action"] == "tool_calls":
        from everturn.recall.read_actions import answer_tool_calls

        return answer_tool_calls(asking, session, asked.get("tool_name", ""), limit)
    from everturn.recall.read_actions import answer_summary

    return answer_summary(asking, session)


def _ask_which_session(asking: RecallRequest, action: str) -> AnswerDraft:
    """Asked outside of any session: the newest ones to choose from."""
    rows, _ = asking.store.sessions(SessionFilter(), 5)
    if not rows:
        return AnswerDraft("The archive holds no sessions yet.", status="nothing")
    shorts = short_ids((session for session, _ in rows), asking.store)
    lines = [session_line(session, text, shorts[session.id], asking.clean) for session, text in rows]
    lead = f"{action}: say in which session, with session:ID in query. The newest ones:"
    return AnswerDraft(lead, body="\n".join(lines), status="mistake")


def _write_answer(draft: AnswerDraft, room: int, hints: int) -> RecallAnswer:
    """The answer, with so many tokens of what was found and at most so many hints."""
    if not draft.entries:
        body = _cut_body(draft.body, room)
        return RecallAnswer(f"{draft.lead}\n{quote_for_model(body)}" if body else draft.lead, draft.status)
    fitted = fit_entries(draft.entries, room, draft.leave_first, draft.from_start)
    missing = draft.hints(fitted.cut, fitted.left_out)[:hints] if draft.hints else []
    said = [draft.lead, quote_for_model(_answer_body(fitted.entries, draft.heads))]
    if missing:
        said.append("Not shown here:\n" + "\n".join(f"- {hint}" for hint in missing))
    return RecallAnswer("\n".join(said), draft.status, fitted.entries, missing)


def _answer_body(entries: list[AnswerEntry], heads: dict[int, str]) -> str:
    pieces = []
    before = None
    for entry in entries:
        if entry.session != before and entry.session in heads:
            pieces.append(heads[entry.session])
        before = entry.session
        pieces.append(show_entry(entry))
    return "\n\n".join(pieces)


def _cut_body(body: str, room: int) -> str:
    while body and cost(body) > room:
        body = body[: len(body) * 9 // 10].rpartition("\n")[0]
    return body
