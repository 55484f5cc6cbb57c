"""The setup of a chat: archive, model, tools, folders and the clock, all passed in by the surface; and its token meter.

The provider's own token count is used if there is one. Everything else is an estimate and shown with `~`. Programs that
report a running total (`TokenTotals`) are counted by differences. Compacting is suggested once each at 80, 90 and 95 % of
the context window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.capture.policy import Policy
from everturn.clock import Clock
from everturn.llm.asker import Asker
from everturn.llm.protocol import Backend, Delta, ModelRequest, Reply, ReplyTokens
from everturn.loop.context import RESERVE
from everturn.loop.tools import Tool
from everturn.model.conversation import SessionPart
from everturn.recall.schema import INSTRUCTION
from everturn.sessions.messages import Sources
from everturn.store.contract import Store
from everturn.text.printable import Clean

#: Percentages of the window at which compacting is suggested.
THRESHOLDS = (80, 90, 95)

#: The window of a model whose size is unknown.
ASSUMED_WINDOW = 128_000


class SessionTokens(Struct, frozen=True):
    """Tokens of one session: for the restoration and for the conversation."""

    restoration: int = 0
    restoration_in: int = 0
    restoration_out: int = 0
    session: int = 0
    summaries: int = 0  # written out of band while this program ran
    is_estimate: bool = False

    @property
    def total(self) -> int:
        """Restoration and session together."""
        return self.restoration + self.session


def total_tokens(usage: ReplyTokens) -> int:
    """Return all tokens of a usage, with those of the cache."""
    return input_tokens(usage) + usage.output


def input_tokens(usage: ReplyTokens) -> int:
    """Return the input tokens of a usage, with those of the cache."""
    return usage.input + usage.cache_read + usage.cache_write


def short(tokens: int) -> str:
    """Format a token count: `2.3K`, small numbers as they are."""
    if tokens < 1000:
        return str(tokens)
    size, unit = (tokens / 1000, "K") if tokens < 999_950 else (tokens / 1_000_000, "M")
    return f"{size:.1f}{unit}"


@dataclass
class Meter:
    """The context window of one model, and how much of it is used."""

    window: int = 0  # 0: unknown
    used: int = 0
    is_estimate: bool = True
    _suggested: int = 0  # the highest threshold that was shown

    @property
    def size(self) -> int:
        """The window, an assumed one if it is unknown."""
        return self.window or ASSUMED_WINDOW

    @property
    def percent(self) -> int:
        return 100 * self.used // self.size

    def record_usage(self, usage: ReplyTokens) -> None:
        """Record the usage of the last answer: its input and output are what the next request begins with."""
        if total_tokens(usage):
            self.used, self.is_estimate = total_tokens(usage), usage.source != "api"

    def record_estimate(self, tokens: int) -> None:
        """Record our own estimate of a request, until the provider reports better."""
        self.used, self.is_estimate = tokens, True

    def suggestion(self) -> str:
        """Return the suggestion to show now; "" if there is nothing new."""
        reached = max((one for one in THRESHOLDS if self.percent >= one), default=0)
        if reached <= self._suggested:
            self._suggested = min(self._suggested, reached)
            return ""
        self._suggested = reached
        urgency = {80: "consider", 90: "better use", 95: "it is time for"}[reached]
        return f"⚠️  Context {self.describe()}: {urgency} /compact to go on in a fresh session"

    def describe(self) -> str:
        """Describe the window, such as `81% full (~103.7K of 128.0K tokens)`."""
        about, assumed = "~" if self.is_estimate else "", "" if self.window else ", assumed"
        return f"{self.percent}% full ({about}{short(self.used)} of {short(self.size)} tokens{assumed})"


@dataclass
class TokenTotals:
    """Turns running totals into the usage of each answer. A total that falls has been reset."""

    input: int = 0
    output: int = 0

    def since(self, input: int, output: int) -> tuple[int, int]:
        """Return the tokens since the last call."""
        fell = input < self.input or output < self.output
        new = (input, output) if fell else (input - self.input, output - self.output)
        self.input, self.output = input, output
        return new


def report(spent: SessionTokens, queries: int) -> str:
    about = "~" if spent.is_estimate else ""
    lines = [f"Total Queries: {queries}"]
    if spent.restoration:
        lines.append(
            f"Restoration: {spent.restoration:,} tokens (in: {spent.restoration_in:,}, out: {spent.restoration_out:,})"
        )
    lines.append(f"Session Tokens: {about}{spent.session:,} tokens")
    if spent.restoration:
        lines.append(f"Combined Total: {about}{spent.total:,} tokens")
    if spent.summaries:
        lines.append(f"Summaries: {spent.summaries:,} tokens (out of band)")
    return "\n".join(lines)


#: The default system prompt.
SYSTEM = (
    "You are a careful assistant that works with the user in a workspace, in a terminal. Answer in Markdown, briefly and "
    "precisely. Look before you change something, and say what you did and what you could not do."
)


@dataclass(frozen=True)
class Agent:
    """The agent: its name on screen and in saved files, and the file it was loaded from, if any."""

    name: str = "Assistant"
    path: str = ""


@dataclass(frozen=True)
class ChatSetup:
    """The setup of one chat program. `store` is the connection of the journals; one is open on it at a time."""

    store: Store
    sources: Sources
    asker: Asker
    clock: Clock
    summariser: Asker | None = None  # writes summaries out of band; None: they are made mechanically
    workspace: str = ""
    machine: str = ""
    owner: str = ""
    agent: Agent = Agent()
    system: str = SYSTEM
    tools: Sequence[Tool] = ()
    clean: Clean = lambda text: text
    folder: Path | None = None  # where conversations are saved as Markdown; None: nowhere
    write: Callable[[SessionPart], Iterable[str]] | None = None  # a session → the text of such a file, in pieces
    summary_seconds: float = 60.0
    policy: Policy = field(default_factory=Policy)  # the capture rules
    summary_form: str = ""  # a form of the user's own for summaries; "": that of `summaries`
    reserve: int = RESERVE

    @property
    def backend(self) -> CountedBackend:
        """The model behind the asker: counted, within its budget."""
        assert self.asker.backend is not None
        return CountedBackend(self.asker, self.asker.backend, self.agent)

    @property
    def window(self) -> int:
        """Tokens of one request and its answer."""
        return (self.asker.backend.window if self.asker.backend else 0) or ASSUMED_WINDOW

    @property
    def has_recall(self) -> bool:
        """Whether the agent can use recall: as a tool of the loop, or as an argument that it takes."""
        backend = self.asker.backend
        return backend is not None and (backend.takes_tools or bool(getattr(backend, "takes_recall", False)))

    @property
    def instructions(self) -> str:
        """The system prompt, with the instruction about recall if the agent can use it."""
        return "\n\n".join(filter(None, (self.system, INSTRUCTION if self.has_recall else "")))

    def enter_session(self, session: str, recall: Callable[..., str]) -> None:
        """Tell an agent with a memory of its own which session comes next; a model needs no telling."""
        enter = getattr(self.asker.backend, "enter", None)
        if enter is not None:
            enter(session, recall)


class CountedBackend:
    """A backend whose requests go through an asker, with a receipt. Each reply has the name and path of the agent."""

    def __init__(self, asker: Asker, backend: Backend, agent: Agent) -> None:
        self._asker, self._agent = asker, agent
        self.name, self.model, self.window = backend.name, backend.model, backend.window
        self.max_tokens, self.takes_tools = backend.max_tokens, backend.takes_tools
        self.wire, self.bound = getattr(backend, "wire", ""), bool(getattr(backend, "bound", False))
        self.body: Callable[[ModelRequest], Mapping[str, Any]] | None = getattr(backend, "body", None)

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        for delta in self._asker.stream(request, "chat"):
            yield delta if delta.reply is None else replace(delta, reply=self._sign(delta.reply))

    def ask(self, request: ModelRequest) -> Reply:
        return self._sign(self._asker.ask(request, "chat"))

    def _sign(self, reply: Reply) -> Reply:
        return replace(reply, agent=self._agent.name, agent_path=self._agent.path)
