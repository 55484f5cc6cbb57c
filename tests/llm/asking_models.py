"""What the tests of models share: backends for a scripted server, requests, and a clock that counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Wire
from tests.model_server import ModelServer

KEY = "sk-test-" + "Zq7w" * 8
WIRES: dict[str, Wire] = {"messages": anthropic_messages, "chat": chat_completions}

#: Quick enough for tests; the pauses are noted instead of waited for.
QUICK = Patience(connect=20, read=20, total=20, tries=3)


def asks(text: str = "hello", **more: Any) -> ModelRequest:
    """One question."""
    return ModelRequest((ChatMessage("user", (ChatPart("text", text),)),), **more)


def backend(server: ModelServer, wire: str = "messages", patience: Patience = QUICK, **more: Any) -> HttpBackend:
    """A backend that asks the server and notes in `pauses` how long it would have waited."""
    pauses: list[float] = []
    endpoint = Endpoint(server.base, patience, **more)
    made = HttpBackend("test", "scripted", WIRES[wire], endpoint, lambda: KEY, pauses.append)
    made.pauses = pauses  # type: ignore[attr-defined]
    return made


def pauses_of(asked: HttpBackend) -> list[float]:
    """The pauses noted."""
    noted: list[float] = asked.pauses  # type: ignore[attr-defined]
    return noted


def ticking(step: int = 10) -> Callable[[], int]:
    """A clock that goes on by `step` ms each time it is looked at."""
    ticks = count(1000, step)
    return lambda: next(ticks)
