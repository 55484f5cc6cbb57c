"""Tool calls of an agent's run in a journal: recorded before they run and with their result, each durable at once.

    journal = ToolJournal("archive.db", "id")
    await journal.recover(session)                     # after a crash
    await Runner.run(agent, "…", session=session, hooks=journal)

The runner of the OpenAI Agents SDK hands a step to its session when all tools have ended. If the process dies before, the
session does not know that anything ran, and the model repeats it. `recover` puts the response of the model into the
session with a truthful result for each call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any

from agents import RunHooks  # type: ignore[import-not-found, unused-ignore]

from everturn.integrations.archive import Archive, as_archive, as_store
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, ReplyTokens
from everturn.loop.journal import Journal, JournalAbout
from everturn.loop.journal_state import DONE, IN_DOUBT, CallProgress
from everturn.loop.records import IntendedCall
from everturn.store.sql_store import SqlStore

WIRE = "responses"

IN_DOUBT_TEXT = (
    "This call was begun, and the process ended before its outcome was known. It may or may not have taken effect: "
    "find out before it is repeated."
)
NOT_STARTED_TEXT = "This call was not begun: the process ended before. It has had no effect."


class ToolJournal(RunHooks[Any]):  # type: ignore[misc, unused-ignore]
    """Hooks for `Runner.run` that keep a journal of one session. Raise Busy if another process runs the session."""

    def __init__(
        self, archive: Archive | str | PathLike[str], session_id: str, about: JournalAbout | None = None
    ) -> None:
        self.session_id, self.about = session_id, about or JournalAbout(client="openai-agents")
        self.archive = as_archive(archive)
        self._journal: Journal | None = None

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """Record results without a tool of ours (a handoff), and the messages of the human."""
        await self.archive.ado(self._record_request, system_prompt or "", list(input_items))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Record the response before its calls run."""
        items = [item if isinstance(item, dict) else item.model_dump(mode="json") for item in response.to_input_items()]
        usage = ReplyTokens(input=response.usage.input_tokens, output=response.usage.output_tokens)
        await self.archive.ado(self._record_response, items, usage)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Record that the call is about to run."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            await self.archive.ado(self._record_intent, call_id, tool.name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        """Record the result."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            await self.archive.ado(self._record_result, call_id, _content_text(result), "ok")

    async def recover(self, session: Any) -> dict[str, str]:
        """Bring the session up to date after a crash. Return by call id: done | in doubt | not started."""
        states, items = await self.archive.ado(self._open_calls)
        if items:
            known_ids = {item.get("call_id") for item in await session.get_items() if isinstance(item, dict)}
            if not known_ids.intersection(states):
                await session.add_items(items)
        await self.archive.ado(self._settle_calls)
        return states

    def close(self) -> None:
        """Release the session."""
        if self._journal is not None:
            self.archive.do(self._close)

    # --- in the archive's thread ---
    def _open(self, store: SqlStore) -> Journal:
        if self._journal is None:
            self._journal = Journal.open(as_store(store), self.session_id, self.about, clock=self.archive.clock)
        self._journal.renew()
        return self._journal

    def _record_request(self, store: SqlStore, system: str, items: Sequence[Any]) -> None:
        journal = self._open(store)
        for item in items:
            state = journal.past.calls.get(item.get("call_id", "")) if _is_result(item) else None
            if state is not None and state.result is None:
                journal.result(state.part.call_id, _content_text(item.get("output")))
        self._settle_calls(store)
        if system:
            journal.setup(system)
        parts: list[ChatPart] = []
        for item in reversed(items):
            if not isinstance(item, dict) or item.get("role") != "user":
                break
            parts.append(ChatPart("text", _content_text(item.get("content"))))
        prompt = tuple(reversed(parts))
        if prompt and not (journal.past.messages and journal.past.messages[-1] == ChatMessage("user", prompt)):
            journal.accept(prompt)

    def _record_response(self, store: SqlStore, items: Sequence[Any], usage: ReplyTokens) -> None:
        journal = self._open(store)
        parts = tuple(map(_item_part, items))
        stop = "calls" if any(part.kind == "call" for part in parts) else "end"
        journal.response(Reply(ChatMessage("assistant", parts, wire=WIRE), stop, usage))

    def _record_intent(self, store: SqlStore, call_id: str, name: str) -> None:
        journal = self._open(store)
        if call_id in journal.past.calls:
            attempt = len(journal.past.calls[call_id].intents) + 1
            journal.intend([IntendedCall(call_id, name, attempt)])

    def _record_result(self, store: SqlStore, call_id: str, text: str, outcome: str) -> None:
        journal = self._open(store)
        if call_id in journal.past.calls:
            journal.result(call_id, text, outcome=outcome)

    def _open_calls(self, store: SqlStore) -> tuple[dict[str, str], list[Any]]:
        past = self._open(store).past
        if not past.open_calls:
            return {}, []
        response = next(message for message in reversed(past.messages) if message.role == "assistant")
        items = [part.raw for part in response.parts]
        outputs = [
            {"type": "function_call_output", "call_id": call_id, "output": _call_outcome(call)[1]}
            for call_id, call in past.calls.items()
        ]
        return {call_id: call.state for call_id, call in past.calls.items()}, [*items, *outputs]

    def _settle_calls(self, store: SqlStore) -> None:
        """Give each call without a result a truthful one."""
        journal = self._open(store)
        for call in journal.past.open_calls:
            outcome, text = _call_outcome(call)
            journal.result(call.part.call_id, text, is_error=True, outcome=outcome)

    def _close(self, store: SqlStore) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _call_outcome(call: CallProgress) -> tuple[str, str]:
    """Return the outcome of a call and its text."""
    if call.state == DONE and call.result is not None:
        return call.result.outcome, call.result.text
    return ("in_doubt", IN_DOUBT_TEXT) if call.state == IN_DOUBT else ("not_started", NOT_STARTED_TEXT)


def _item_part(item: Any) -> ChatPart:
    if item.get("type") == "function_call":
        return ChatPart("call", "", item.get("call_id", ""), item.get("name", ""), _call_arguments(item), raw=item)
    if item.get("role") == "assistant":
        return ChatPart("text", _content_text(item.get("content")), raw=item)
    return ChatPart("opaque", raw=item)


def _call_arguments(item: Any) -> Any:
    text = item.get("arguments", "")
    try:
        decoded = json.loads(text)
    except ValueError:
        return text
    return decoded if isinstance(decoded, dict) else text


def _is_result(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call_output"


def _content_text(value: Any) -> str:
    """Return the text of an output or of the content of a message."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        if texts and all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
