"""An agent written in Python, loaded from a file and used like a model.

The file has an `agent` (or `root_agent`), or a function `create_agent()` that makes one. An agent is called with the
user's message and returns text: a string, or events in any of the shapes that frameworks use. It keeps its own
conversation, so earlier messages are sent only with its first request of this process. The file runs with all rights of
the user.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from everturn.chat.setup import TokenTotals
from everturn.errors import MissingPath, ModelRefused, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply, ReplyTokens

_AGENT_NAMES = ("agent", "root_agent", "AGENT")
_TEXT_KEYS = ("data", "delta", "text", "content", "message", "output", "value")
_DEEPEST = 5


def load_agent(path: str) -> AgentBackend:
    """Load the agent of a file. Raises MissingPath, UsageError."""
    file = Path(path).absolute()
    if not file.is_file():
        raise MissingPath(path)
    spec = importlib.util.spec_from_file_location(f"everturn_agent_{abs(hash(str(file)))}", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file; give one with an `agent` in it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        raise UsageError(f"{path} cannot be loaded: {type(failure).__name__}: {failure}") from failure
    agent = next((found for name in _AGENT_NAMES if (found := getattr(module, name, None)) is not None), None)
    make = getattr(module, "create_agent", None)
    make = make if callable(make) else None
    agent = make() if agent is None and make is not None else agent
    if agent is None or not (callable(agent) or hasattr(agent, "stream") or hasattr(agent, "stream_async")):
        raise UsageError(f"{path} has no agent: it needs an `agent` that can be called or has a `stream`")
    return AgentBackend(agent, str(file), _agent_title(module, agent, file), make)


class AgentBackend:
    max_tokens = 0
    takes_tools = False  # it has its own

    def __init__(self, agent: Any, path: str, name: str, make: Callable[[], Any] | None = None) -> None:
        self.path, self.name, self._make = path, name, make
        self.model = str(getattr(agent, "model_name", "") or name)
        self.window = int(getattr(agent, "context_window", 0) or 0)
        self._agent, self._has_history, self._counter = agent, False, TokenTotals()

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        words: list[str] = []
        try:
            for event in self._events(_prompt_text(request, self._has_history)):
                if text := text_of(event):
                    words.append(text)
                    yield Delta("text", text)
        except Exception as failure:
            raise ModelRefused(self.name, f"the agent failed: {type(failure).__name__}: {failure}") from failure
        self._has_history = True
        reply = Reply(
            ChatMessage("assistant", (ChatPart("text", "".join(words)),)), usage=self._usage(), model=self.model
        )
        yield Delta("end", reply=reply)

    def ask(self, request: ModelRequest) -> Reply:
        return next(delta.reply for delta in self.stream(request) if delta.reply is not None)

    def another(self) -> AgentBackend | None:
        """Return a second agent without this conversation, for requests out of band; None if it cannot be made."""
        return AgentBackend(self._make(), self.path, self.name) if self._make is not None else None

    def _events(self, prompt: str) -> Iterable[Any]:
        for name in ("stream", "stream_async"):
            stream: Callable[[str], Any] | None = getattr(self._agent, name, None)
            if stream is not None:
                return _iterate_answer(stream(prompt))
        return _iterate_answer(self._agent(prompt))

    def _usage(self) -> ReplyTokens:
        """Return the usage from the running totals of the agent; an empty one, to be estimated, if it has none."""
        metrics = getattr(self._agent, "event_loop_metrics", None)
        found = getattr(metrics, "accumulated_usage", None) or getattr(self._agent, "usage", None)
        if not isinstance(found, dict):
            return ReplyTokens()
        given = [
            int(found.get(a) or found.get(b) or 0) for a, b in (("inputTokens", "input"), ("outputTokens", "output"))
        ]
        return ReplyTokens(*self._counter.since(*given))


def text_of(event: Any, depth: int = 0) -> str:
    """Return the text of an event of any shape; "" if it has none."""
    if isinstance(event, str):
        return event
    if event is None or isinstance(event, bool | int | float | bytes) or depth > _DEEPEST:
        return ""
    if isinstance(event, list | tuple):
        return "".join(text_of(one, depth + 1) for one in event)
    for name in _TEXT_KEYS:
        found = event.get(name) if isinstance(event, dict) else getattr(event, name, None)
        if found is not None and not callable(found) and (text := text_of(found, depth + 1)):
            return text
    return ""


def _iterate_answer(given: Any) -> Iterator[Any]:
    if inspect.isawaitable(given):
        given = asyncio.run(_await_value(given))
    if hasattr(given, "__aiter__"):
        yield from _drain_events(given)
    elif isinstance(given, str | dict) or not hasattr(given, "__iter__"):
        yield text_of(given) or ("" if given is None else str(given))
    else:
        yield from given


async def _await_value(given: Any) -> Any:
    return await given


def _drain_events(events: AsyncIterator[Any]) -> Iterator[Any]:
    """Yield the events of an asynchronous stream, in an event loop of their own."""
    with asyncio.Runner() as runner:
        while True:
            try:
                yield runner.run(_await_value(anext(events)))
            except StopAsyncIteration:
                return


def _prompt_text(request: ModelRequest, has_history: bool) -> str:
    """Return the new messages, with the earlier ones the first time."""
    messages = list(request.messages)
    new: list[str] = []
    while messages and messages[-1].role == "user":
        new.insert(0, _message_text(messages.pop()))
    words = "\n\n".join(new)
    if has_history or not messages:
        return words
    earlier = "\n\n".join(f"{message.role}: {_message_text(message)}" for message in messages if _message_text(message))
    return f"The conversation so far:\n\n{earlier}\n\nThe user now says:\n\n{words}"


def _message_text(message: ChatMessage) -> str:
    return "".join(part.text for part in message.parts if part.kind == "text")


def _agent_title(module: Any, agent: Any, file: Path) -> str:
    named = getattr(agent, "name", None) or getattr(module, "AGENT_NAME", None)
    if isinstance(named, str) and named.strip():
        return " ".join(named.split())
    stem = file.parent.name if file.stem in ("agent", "__init__", "main") else file.stem
    return stem.replace("_", " ").replace("-", " ").title()
