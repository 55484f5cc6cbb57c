"""What a chat stands on: archive, model, tools, places and the clock, all passed in by the surface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everturn.chat.meter import ASSUMED_WINDOW
from everturn.clock import Clock
from everturn.llm import Backend, Delta, ModelRequest, Reply
from everturn.llm.asking import Asker
from everturn.model.conversation import SessionPart
from everturn.recall.framing import Clean
from everturn.recall.reading import Sources
from everturn.recall.schema import INSTRUCTION
from everturn.resume.context import RESERVE
from everturn.resume.tools import Tool
from everturn.store import Store

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
