"""`conversation_recall`: the archive as a tool that a model calls.

Four actions: `search` finds turns by words, `range` returns turns by number, `tool_calls` the calls of a tool, `summary`
an overview of the session from its records alone. The answer is text: a lead of our own, then a quotation
(`quote_for_model`) in compact form (`recall.answer`), then what was cut and the exact call that gets it. It never exceeds
its budget. Secrets are masked before anything is cut. A mistake of the model is answered, not raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from everturn.clock import Clock
from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session
from everturn.recall.answer import (
    AnswerDraft,
    NextPointers,
    RecallAnswer,
    RecallRequest,
    Spell,
    as_call,
    handle,
    pointers,
    session_line,
    show_entry,
)
from everturn.recall.budget import MAX_TOKENS, MIN_TOKENS, SEARCH_TOKENS, cost, fit_entries
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
    """Return the tool as an entry of `tools` in the chat completions format."""
    return FUNCTION.openai()


def anthropic_tool() -> dict[str, Any]:
    """Return the tool as an entry of `tools` in the messages format."""
    return FUNCTION.anthropic()


class ConversationRecall:
    """The tool for one archive and the current session, if any. It only reads."""

    def __init__(  # noqa: PLR0913 -- all but three have a default
        self,
        store: Store,
        sources: Sources,
        session: Session | None = None,
        clean: Clean = redact_text,
        now: Clock | int = 0,
        budget: int | None = None,
        spell: Spell = as_call,
        meaning: MeaningSearch | None = None,
        turns_in_view: int | None = None,
    ) -> None:
        """`spell` formats a follow-up request in the form the reader of the answer would use.

        `budget` limits every answer, in tokens; without it a search takes 2,000 and other actions up to 8,000.
        `turns_in_view` are the last turns of the session that the asker has in its context, where the records do not tell.
        """
        self._store = store
        self._sources = sources
        self._session = session
        self._clean = clean
        self._now = now
        self._given_budget = budget
        self._spell = spell
        self._meaning = meaning
        self._turns_in_view = turns_in_view

    def __call__(
        self,
        action: str,
        query: str | None = None,
        tool_name: str | None = None,
        start_turn: int | None = None,
        end_turn: int | None = None,
        limit: int | None = DEFAULT_LIMIT,
    ) -> str:
        values = {
            "query": query,
            "tool_name": tool_name,
            "start_turn": start_turn,
            "end_turn": end_turn,
            "limit": limit,
        }
        return self.answer({"action": action, **values}).text

    def call(self, arguments: Mapping[str, Any] | str) -> str:
        """Answer the arguments of a model, an object or the text of one."""
        return self.answer(arguments).text

    def answer(self, arguments: Mapping[str, Any] | str) -> RecallAnswer:
        """Answer with the parts of the answer. Only the archive itself raises, whatever is passed."""
        values = given_arguments(FUNCTION, arguments)
        if isinstance(values, str):
            return RecallAnswer(values, "mistake")
        limit = values.get("limit", DEFAULT_LIMIT)
        if not 1 <= limit <= MAX_LIMIT:
            return RecallAnswer(
                f"conversation_recall: limit must be between 1 and {MAX_LIMIT}, not {limit}.", "mistake"
            )
        try:
            with self._store.reading():
                budget = self._budget(values["action"])
                return _compose_answer(self._draft_answer(values, limit, budget), budget)
        except NothingFound as error:
            return RecallAnswer(f"conversation_recall: {error}.", "nothing")
        except UsageError as error:
            return RecallAnswer(f"conversation_recall: {error}.", "mistake")

    def hint(self, prompt: str) -> str:
        """Return a hint for a prompt that refers to something out of view; "" if the search is not sure (`recall.hint`)."""
        from everturn.recall.hint import HINT_TOKENS, find_hint

        try:
            with self._store.reading():
                return find_hint(self._build_request(NextPointers(""), HINT_TOKENS), prompt)
        except (NothingFound, UsageError):
            return ""

    def _budget(self, action: str) -> int:
        budget = self._given_budget
        if budget is None:
            budget = SEARCH_TOKENS if action == "search" else MAX_TOKENS
        return max(MIN_TOKENS, min(budget, MAX_TOKENS))

    def _draft_answer(self, values: dict[str, Any], limit: int, budget: int) -> AnswerDraft:
        action = values["action"]
        parsed = pointers(values.get("query", ""), parts=action != "search")
        if parsed.mistake:
            return AnswerDraft(f"{action}: {parsed.mistake}.", status="mistake")
        request = self._build_request(parsed, budget)
        if action == "search":
            from everturn.recall.search_action import answer_search

            return answer_search(request, parsed.words, limit)
        if request.session is None:
            rows, _ = request.store.sessions(SessionFilter(), 5)
            if not rows:
                return AnswerDraft("The archive holds no sessions yet.", status="nothing")
            shorts = short_ids((session for session, _ in rows), request.store)
            lines = [session_line(session, text, shorts[session.id], request.clean) for session, text in rows]
            lead = f"{action}: say in which session, with session:ID in query. The newest ones:"
            return AnswerDraft(lead, body="\n".join(lines), status="mistake")
        from everturn.recall.read_actions import answer_range, answer_summary, answer_tool_calls

        if action == "range":
            return answer_range(request, request.session, values.get("start_turn"), values.get("end_turn"), parsed.part)
        if action == "tool_calls":
            return answer_tool_calls(request, request.session, values.get("tool_name", ""), limit)
        return answer_summary(request, request.session)

    def _build_request(self, parsed: NextPointers, budget: int) -> RecallRequest:
        own = self._session and best_match(
            self._store.sessions_of(self._session.agent, self._session.native_id) or [self._session]
        )
        session = resolve_session(self._store, parsed.session) if parsed.session else own
        return RecallRequest(
            self._store, self._sources, self._clean, self._now if isinstance(self._now, int) else self._now(),
            budget, self._spell, session,
            short=handle(short_ids([session], self._store)[session.id]) if session else "",
            is_own=session is None or (own is not None and own.id == session.id),
            meaning=self._meaning, turns_in_view=self._turns_in_view,
        )  # fmt: skip


def _compose_answer(draft: AnswerDraft, budget: int) -> RecallAnswer:
    """Cut the draft to the budget. The size of the hints depends on the cut, so a few tries find it."""
    if draft.write is not None:
        return draft.write(budget)
    room = budget - cost(draft.lead) - 80
    for _ in range(8):
        answer = _write_answer(draft, max(room, 0), hints=max(1, budget // 250))
        excess = cost(answer.text) - budget
        if excess <= 0:
            return answer
        room -= excess + 10
    return RecallAnswer(draft.lead[:budget], draft.status)


def _write_answer(draft: AnswerDraft, room: int, hints: int) -> RecallAnswer:
    """Return the answer with `room` tokens of entries and at most `hints` hints."""
    if not draft.entries:
        body = _cut_body(draft.body, room)
        return RecallAnswer(f"{draft.lead}\n{quote_for_model(body)}" if body else draft.lead, draft.status)
    fitted = fit_entries(draft.entries, room, draft.leave_first, draft.from_start)
    missing = draft.hints(fitted.cut, fitted.left_out)[:hints] if draft.hints else []
    parts = [draft.lead, quote_for_model("\n\n".join(map(show_entry, fitted.entries)))]
    if missing:
        parts.append("Not shown here:\n" + "\n".join(f"- {hint}" for hint in missing))
    return RecallAnswer("\n".join(parts), draft.status, fitted.entries, missing)


def _cut_body(body: str, room: int) -> str:
    while body and cost(body) > room:
        body = body[: len(body) * 9 // 10].rpartition("\n")[0]
    return body
