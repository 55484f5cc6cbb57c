"""The tools of an agent's run in a journal: begun before they run, ended with their result, each durable at once.

    journal = ToolJournal("archive.db", "id")
    await journal.recover(session)                     # after a crash: what was done, and what is in doubt
    await Runner.run(agent, "…", session=session, hooks=journal)

The runner of the OpenAI Agents SDK hands a step to its session when all tools have ended. If the process dies before, the
session does not know that anything ran, and the model has it done again. The journal knows: `recover` puts the response of
the model into the session with a truthful result for each call: what it gave, or that it was begun and nobody knows what
became of it, or that it was not begun. What is in the journal can be searched like any other session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any

from agents import RunHooks  # type: ignore[import-not-found, unused-ignore]

from everturn.integrations.archive import Archive, as_archive, whole
from everturn.llm import Message, Part, Reply, Usage
from everturn.resume.journal import About, Journal
from everturn.resume.past import DONE, IN_DOUBT, CallState
from everturn.resume.records import Intended
from everturn.store.sql import SqlStore

WIRE = "responses"

IN_DOUBT_TEXT = (
    "This call was begun, and the process ended before its outcome was known. It may or may not have taken effect: "
    "find out before it is repeated."
)
NOT_STARTED_TEXT = "This call was not begun: the process ended before. It has had no effect."


class ToolJournal(RunHooks[Any]):  # type: ignore[misc, unused-ignore]
    """Hooks for `Runner.run` that keep a journal of one session. One process at a time runs a session: Busy otherwise."""

    def __init__(self, archive: Archive | str | PathLike[str], session_id: str, about: About | None = None) -> None:
        self.session_id, self.about = session_id, about or About(client="openai-agents")
        self.archive = as_archive(archive)
        self._journal: Journal | None = None

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """Results that came without a tool of ours (a handoff), and what the human said."""
        await self.archive.ado(self._heard, system_prompt or "", list(input_items))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """The response, before anything it asks for is done."""
        items = [item if isinstance(item, dict) else item.model_dump(mode="json") for item in response.to_input_items()]
        usage = Usage(input=response.usage.input_tokens, output=response.usage.output_tokens)
        await self.archive.ado(self._responded, items, usage)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """It is about to run."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            await self.archive.ado(self._begun, call_id, tool.name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        """What it gave."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            await self.archive.ado(self._ended, call_id, _words(result), "ok")

    async def recover(self, session: Any) -> dict[str, str]:
        """After a crash: bring the session up to what was done. Call id → done | in doubt | not started."""
        states, items = await self.archive.ado(self._left)
        if items:
            have = {item.get("call_id") for item in await session.get_items() if isinstance(item, dict)}
            if not have.intersection(states):
                await session.add_items(items)
        await self.archive.ado(self._settle)
        return states

    def close(self) -> None:
        """Let others have the session."""
        if self._journal is not None:
            self.archive.do(self._close)

    # the work, in the archive's thread --------------------------------------------------------------------------------
    def _open(self, store: SqlStore) -> Journal:
        if self._journal is None:
            self._journal = Journal.open(whole(store), self.session_id, self.about, clock=self.archive.clock)
        self._journal.renew()
        return self._journal

    def _heard(self, store: SqlStore, system: str, items: Sequence[Any]) -> None:
        journal = self._open(store)
        for item in items:
            state = journal.past.calls.get(item.get("call_id", "")) if _is_result(item) else None
            if state is not None and state.result is None:
                journal.result(state.part.call_id, _words(item.get("output")))
        self._settle(store)
        if system:
            journal.setup(system)
        said = _said(items)
        if said and not (journal.past.messages and journal.past.messages[-1] == Message("user", said)):
            journal.accept(said)

    def _responded(self, store: SqlStore, items: Sequence[Any], usage: Usage) -> None:
        journal = self._open(store)
        parts = tuple(map(_part, items))
        stop = "calls" if any(part.kind == "call" for part in parts) else "end"
        journal.response(Reply(Message("assistant", parts, wire=WIRE), stop, usage))

    def _begun(self, store: SqlStore, call_id: str, name: str) -> None:
        journal = self._open(store)
        if call_id in journal.past.calls:
            attempt = len(journal.past.calls[call_id].intents) + 1
            journal.intend([Intended(call_id, name, attempt)])

    def _ended(self, store: SqlStore, call_id: str, text: str, outcome: str) -> None:
        journal = self._open(store)
        if call_id in journal.past.calls:
            journal.result(call_id, text, outcome=outcome)

    def _left(self, store: SqlStore) -> tuple[dict[str, str], list[Any]]:
        past = self._open(store).past
        if not past.open_calls:
            return {}, []
        response = next(message for message in reversed(past.messages) if message.role == "assistant")
        items = [part.raw for part in response.parts]
        outputs = [
            {"type": "function_call_output", "call_id": call_id, "output": _told(call)[1]}
            for call_id, call in past.calls.items()
        ]
        return {call_id: call.state for call_id, call in past.calls.items()}, [*items, *outputs]

    def _settle(self, store: SqlStore) -> None:
        """Give each call that has no result a truthful one."""
        journal = self._open(store)
        for call in journal.past.open_calls:
            outcome, text = _told(call)
            journal.result(call.part.call_id, text, is_error=True, outcome=outcome)

    def _close(self, store: SqlStore) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _told(call: CallState) -> tuple[str, str]:
    """What became of a call, and the words for it."""
    if call.state == DONE and call.result is not None:
        return call.result.outcome, call.result.text
    return ("in_doubt", IN_DOUBT_TEXT) if call.state == IN_DOUBT else ("not_started", NOT_STARTED_TEXT)


def _part(item: Any) -> Part:
    if item.get("type") == "function_call":
        return Part("call", "", item.get("call_id", ""), item.get("name", ""), _arguments(item), raw=item)
    if item.get("role") == "assistant":
        return Part("text", _words(item.get("content")), raw=item)
    return Part("opaque", raw=item)


def _arguments(item: Any) -> Any:
    text = item.get("arguments", "")
    try:
        decoded = json.loads(text)
    except ValueError:
        return text
    return decoded if isinstance(decoded, dict) else text


def _is_result(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call_output"


def _said(items: Sequence[Any]) -> tuple[Part, ...]:
    """The messages of the human at the end."""
    parts: list[Part] = []
    for item in reversed(items):
        if not isinstance(item, dict) or item.get("role") != "user":
            break
        parts.append(Part("text", _words(item.get("content"))))
    return tuple(reversed(parts))


def _words(value: Any) -> str:
    """The text of an output or of a message's content."""
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
