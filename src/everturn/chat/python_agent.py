"""An agent written in Python, loaded from a file and used like a model.

The file has an `agent` (or `root_agent`), or a function `create_agent()` that makes one. An agent is called with the
user's message and returns text: a string, or events in any of the shapes that frameworks use. The file runs with all rights
of the user.

Each session has an agent of its own: `create_agent()` makes it, or else the file is run again. An agent that remembers what
it was told gets each message once, and the messages so far when it comes into a session that has some. One whose function
takes any of these arguments by name gets them with every message, as a model does:

    system     the system prompt and the session state
    history    the messages so far, as many as fit: [{"role": "user", "content": "…"}, …]
    recall     a function: `recall(action="search", query="…")` looks something up in the archive

`create_agent(recall=…)` gets the function once. Without `system`, the state is part of the message whenever it has changed.
After a failure the next message goes to a new agent that is told the history: nobody knows what the old one remembers.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from everturn.chat.setup import TokenTotals
from everturn.errors import MissingPath, ModelRefused, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply, ReplyTokens
from everturn.loop.context import STATE

_AGENT_NAMES = ("agent", "root_agent", "AGENT")
_TEXT_KEYS = ("data", "delta", "text", "content", "message", "output", "value")
_DEEPEST = 5
_COUNTERS = ("turn_count:", "total_tokens:", "current_focus:")  # change with every message

#: Looks something up in the archive, with the arguments of `conversation_recall`.
Recall: TypeAlias = Callable[..., str]
AgentFactory: TypeAlias = Callable[[Recall], Any]


def load_agent(path: str) -> AgentBackend:
    """Load the agent of a file. Raises MissingPath, UsageError."""
    file = Path(path).absolute()
    if not file.is_file():
        raise MissingPath(path)
    module = _run_file(file, path)
    make = _factory(module, file, path)
    agent = make(_no_recall)
    takes_recall = "recall" in _argument_names(getattr(module, "create_agent", None))
    return AgentBackend(agent, str(file), _agent_title(module, agent, file), make, takes_recall)


def _run_file(file: Path, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"everturn_agent_{abs(hash(str(file)))}", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file; give one with an `agent` in it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        raise UsageError(f"{path} cannot be loaded: {type(failure).__name__}: {failure}") from failure
    return module


def _factory(module: ModuleType, file: Path, path: str) -> AgentFactory:
    """Return a function that makes a new agent. The first one is that of the module as it was run."""
    first = [module]
    own = getattr(module, "create_agent", None)

    def make(recall: Recall) -> Any:
        if callable(own):
            agent = own(recall=recall) if "recall" in _argument_names(own) else own()
        else:
            fresh = first.pop() if first else _run_file(file, path)
            agent = next((found for name in _AGENT_NAMES if (found := getattr(fresh, name, None)) is not None), None)
        if agent is None or not (callable(agent) or hasattr(agent, "stream") or hasattr(agent, "stream_async")):
            raise UsageError(f"{path} has no agent: it needs an `agent` that can be called or has a `stream`")
        return agent

    return make


def _no_recall(**asked: Any) -> str:
    return "There is no session yet."


class AgentBackend:
    max_tokens = 0
    takes_tools = False  # it has its own

    def __init__(self, agent: Any, path: str, name: str, make: AgentFactory, takes_recall: bool = False) -> None:
        self.path, self.name, self._make = path, name, make
        self.model = str(getattr(agent, "model_name", "") or name)
        self.window = int(getattr(agent, "context_window", 0) or 0)
        self._agent: Any = agent
        self._session, self._recall = "", _no_recall
        self._told_state, self._counter = "", TokenTotals()
        self._knows_history = False
        self._names = _argument_names(self._speak)
        self.takes_recall = takes_recall or "recall" in self._names

    @property
    def _speak(self) -> Callable[..., Any]:
        """The function that answers: `stream`, `stream_async`, or the agent itself."""
        found = (getattr(self._agent, name, None) for name in ("stream", "stream_async"))
        speak: Callable[..., Any] = next((one for one in found if one is not None), self._agent)
        return speak

    def enter(self, session: str, recall: Recall) -> None:
        """Come into a session. Another one has another agent."""
        if session != self._session:
            is_used = bool(self._session) or self._knows_history
            self._session, self._recall = session, recall
            self._agent = None if is_used or self.takes_recall else self._agent
            self._forget_told()
        self._recall = recall

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        words: list[str] = []
        if self._agent is None:
            self._agent = self._make(self._recall)
            self._names = _argument_names(self._speak)
        is_done = False
        try:
            for event in self._events(request):
                if text := text_of(event):
                    words.append(text)
                    yield Delta("text", text)
            is_done = True
        except Exception as failure:
            raise ModelRefused(self.name, f"the agent failed: {type(failure).__name__}: {failure}") from failure
        finally:
            if not is_done:  # failed or stopped: the next message goes to a new agent
                self._agent = None
                self._forget_told()
        self._knows_history, self._told_state = True, _system_news(request.system)
        reply = Reply(
            ChatMessage("assistant", (ChatPart("text", "".join(words)),)), usage=self._usage(), model=self.model
        )
        yield Delta("end", reply=reply)

    def ask(self, request: ModelRequest) -> Reply:
        return next(delta.reply for delta in self.stream(request) if delta.reply is not None)

    def another(self) -> AgentBackend:
        """Return a second agent without this conversation, for requests out of band. It forgets each one."""
        return _ForgetfulAgent(self._make(self._recall), self.path, self.name, self._make)

    def _forget_told(self) -> None:
        self._knows_history, self._told_state, self._counter = False, "", TokenTotals()

    def _events(self, request: ModelRequest) -> Iterable[Any]:
        takes, (earlier, new) = self._names, _split_new(request)
        given = {
            "system": request.system,
            "history": [{"role": one.role, "content": text} for one in earlier if (text := _message_text(one))],
            "recall": self._recall,
        }
        is_told = self._knows_history or "history" in takes
        news = _system_news(request.system)
        system = "" if "system" in takes or news == self._told_state else request.system
        prompt = _prompt_text(() if is_told else earlier, new, system if news else "")
        return _iterate_answer(self._speak(prompt, **{name: value for name, value in given.items() if name in takes}))

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


class _ForgetfulAgent(AgentBackend):
    """An agent that is made anew for each request."""

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        try:
            yield from super().stream(request)
        finally:
            self._agent = None
            self._forget_told()


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


def _split_new(request: ModelRequest) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """Return the messages so far, and those since the last answer."""
    new = len(request.messages)
    while new and request.messages[new - 1].role == "user":
        new -= 1
    return request.messages[:new], request.messages[new:]


def _prompt_text(earlier: Sequence[ChatMessage], new: Sequence[ChatMessage], system: str) -> str:
    """Return the new messages, after the system text and the earlier messages if the agent does not know them."""
    words = "\n\n".join(map(_message_text, new))
    told = "\n\n".join(f"{one.role}: {text}" for one in earlier if (text := _message_text(one)))
    parts = [system, f"The conversation so far:\n\n{told}" if told else ""]
    return "\n\n".join([*filter(None, parts), f"The user now says:\n\n{words}"]) if any(parts) else words


def _system_news(system: str) -> str:
    """Return what an agent must know of the system text: all but the counters of the state; "" if the state is empty."""
    prompt, _, state = system.partition(STATE)
    lines = [line for line in state.splitlines() if not line.strip().startswith(_COUNTERS)]
    says_something = any(line.startswith(("  - ", "## ", "# ")) for line in lines)
    return "\n".join([prompt, *lines]) if prompt.strip() or says_something else ""


def _argument_names(function: Any) -> frozenset[str]:
    """Return the names of the arguments that a function takes; none if that cannot be told."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))


def _message_text(message: ChatMessage) -> str:
    return "".join(part.text for part in message.parts if part.kind == "text")


def _agent_title(module: Any, agent: Any, file: Path) -> str:
    named = getattr(agent, "name", None) or getattr(module, "AGENT_NAME", None)
    if isinstance(named, str) and named.strip():
        return " ".join(named.split())
    stem = file.parent.name if file.stem in ("agent", "__init__", "main") else file.stem
    return stem.replace("_", " ").replace("-", " ").title()
