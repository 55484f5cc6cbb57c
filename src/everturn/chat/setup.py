"""What a chat stands on: archive, model, tools, places and the clock, all passed in by the surface.

How full the context window is, and how many tokens were spent on what.

The provider's own count is used where there is one; everything else is an estimate and shown with `~`. Programs that
report a running total (`TokenTotals`) are taken by differences. At 80, 90 and 95 % of the window compacting is suggested,
once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

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

#: Shares of the window at which compacting is suggested, in percent.
THRESHOLDS = (80, 90, 95)

#: Taken for the window of a model when nobody says how large it is.
ASSUMED_WINDOW = 128_000


class SessionTokens(Struct, frozen=True):
    """Tokens of one session: what restoring cost, and what the conversation did."""

    restoration: int = 0
    restoration_in: int = 0
    restoration_out: int = 0
    session: int = 0
    summaries: int = 0  # made out of band while this program ran
    is_estimate: bool = False

    @property
    def combined(self) -> int:
        """Restoration and session together."""
        return self.restoration + self.session


def total_tokens(usage: ReplyTokens) -> int:
    """All tokens of a usage, those of the cache too."""
    return input_tokens(usage) + usage.output


def input_tokens(usage: ReplyTokens) -> int:
    """What went in, those of the cache too."""
    return usage.input + usage.cache_read + usage.cache_write


def short(tokens: int) -> str:
    """`2.3K` as people say it; small numbers as they are."""
    if tokens < 1000:
        return str(tokens)
    size, unit = (tokens / 1000, "K") if tokens < 999_950 else (tokens / 1_000_000, "M")
    return f"{size:.1f}{unit}"


@dataclass
class Meter:
    """The window of one model."""

    window: int = 0  # 0: nobody said
    used: int = 0
    is_estimate: bool = True
    _told: int = 0  # the highest threshold that was told

    @property
    def size(self) -> int:
        """The window, an assumed one where nobody said."""
        return self.window or ASSUMED_WINDOW

    @property
    def percent(self) -> int:
        """How much of it is used."""
        return 100 * self.used // self.size

    def answered(self, usage: ReplyTokens) -> None:
        """Take the count of the last answer: what went in and what came out is what the next request begins with."""
        if total_tokens(usage):
            self.used, self.is_estimate = total_tokens(usage), usage.source != "api"

    def estimated(self, tokens: int) -> None:
        """Take our own count of a request, until the provider says better."""
        self.used, self.is_estimate = tokens, True

    def suggestion(self) -> str:
        """What to tell the person now; nothing when there is nothing new."""
        reached = max((one for one in THRESHOLDS if self.percent >= one), default=0)
        if reached <= self._told:
            self._told = min(self._told, reached)
            return ""
        self._told = reached
        urgency = {80: "consider", 90: "better use", 95: "it is time for"}[reached]
        return f"⚠️  Context {self.described()}: {urgency} /compact to go on in a fresh session"

    def described(self) -> str:
        """`81% full (~103.7K of 128.0K tokens)`."""
        about, assumed = "~" if self.is_estimate else "", "" if self.window else ", assumed"
        return f"{self.percent}% full ({about}{short(self.used)} of {short(self.size)} tokens{assumed})"


@dataclass
class TokenTotals:
    """Turns running totals into what each answer cost. A total that falls has begun anew."""

    input: int = 0
    output: int = 0

    def since(self, input: int, output: int) -> tuple[int, int]:
        """The tokens since the last time it was asked."""
        fell = input < self.input or output < self.output
        new = (input, output) if fell else (input - self.input, output - self.output)
        self.input, self.output = input, output
        return new


def report(spent: SessionTokens, queries: int) -> str:
    """What /tokens shows."""
    about = "~" if spent.is_estimate else ""
    lines = [f"Total Queries: {queries}"]
    if spent.restoration:
        lines.append(
            f"Restoration: {spent.restoration:,} tokens (in: {spent.restoration_in:,}, out: {spent.restoration_out:,})"
        )
    lines.append(f"Session Tokens: {about}{spent.session:,} tokens")
    if spent.restoration:
        lines.append(f"Combined Total: {about}{spent.combined:,} tokens")
    if spent.summaries:
        lines.append(f"Summaries: {spent.summaries:,} tokens (out of band)")
    return "\n".join(lines)


#: For a model that nobody gave another system prompt.
SYSTEM = (
    "You are a careful assistant that works with the user in a workspace, in a terminal. Answer in Markdown, briefly and "
    "precisely. Look before you change something, and say what you did and what you could not do."
)


@dataclass(frozen=True)
class Agent:
    """Whom the person talks to: the name on screen and in saved files, and the file it was loaded from, if any."""

    name: str = "Assistant"
    path: str = ""


@dataclass(frozen=True)
class ChatSetup:
    """One chat program. `store` is the connection of the journals; one journal is open on it at a time."""

    store: Store
    sources: Sources
    asker: Asker
    clock: Clock
    summariser: Asker | None = None  # whom summaries are asked of, out of band; None: they are made mechanically
    workspace: str = ""
    machine: str = ""
    owner: str = ""
    agent: Agent = Agent()
    system: str = SYSTEM
    tools: Sequence[Tool] = ()
    clean: Clean = lambda text: text
    folder: Path | None = None  # where conversations are saved as Markdown; None: nowhere
    write: Callable[[SessionPart], str] | None = None  # a session → the text of such a file
    summary_seconds: float = 60.0
    reserve: int = RESERVE

    @property
    def backend(self) -> CountedBackend:
        """The model, asked through the asker: counted, within its budget."""
        assert self.asker.backend is not None
        return CountedBackend(self.asker, self.asker.backend)

    @property
    def window(self) -> int:
        """Tokens of one request and its answer."""
        return (self.asker.backend.window if self.asker.backend else 0) or ASSUMED_WINDOW

    @property
    def instructions(self) -> str:
        """The system prompt, with the word about recall where the model can use it."""
        has_recall = self.asker.backend is not None and self.asker.backend.takes_tools and bool(self.tools)
        return f"{self.system}\n\n{INSTRUCTION}" if has_recall else self.system


class CountedBackend:
    """A backend whose every request goes through an asker: with a receipt, and an estimate where the provider is silent.

    What else it tells of itself (`resume.requests`) is passed on.
    """

    def __init__(self, asker: Asker, backend: Backend) -> None:
        self._asker = asker
        self.name, self.model, self.window = backend.name, backend.model, backend.window
        self.max_tokens, self.takes_tools = backend.max_tokens, backend.takes_tools
        self.wire, self.bound = getattr(backend, "wire", ""), bool(getattr(backend, "bound", False))
        self.body: Callable[[ModelRequest], Mapping[str, Any]] | None = getattr(backend, "body", None)

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `llm.Backend`."""
        return self._asker.stream(request, "chat")

    def ask(self, request: ModelRequest) -> Reply:
        """See `llm.Backend`."""
        return self._asker.ask(request, "chat")
