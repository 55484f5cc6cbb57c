"""Asks the model in a thread of its own, so that it can be left at any time.

Closing the stream stops the request. A stream that is left is closed by its own thread as soon as it says something.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from everturn.errors import BadAnswer
from everturn.llm import Backend, Delta, ModelRequest, Reply


@dataclass
class ModelAnswer:
    """What came back: a whole reply, or only some words when the turn was stopped."""

    reply: Reply | None = None
    words: list[str] = field(default_factory=list)


def ask_model(
    backend: Backend,
    request: ModelRequest,
    cancelled: threading.Event,
    inbox: queue.SimpleQueue[Any],
    say: Callable[[Delta], None],
    tick: Callable[[], float],
) -> ModelAnswer:
    """Ask, and hand on every piece as it comes. `tick` is called now and then; it says when it wants to be called again.

    None put into `inbox` makes us look at `cancelled`. Raises what the backend raises.
    """
    asked, left = ModelAnswer(), threading.Event()
    threading.Thread(target=_read_stream, args=(backend, request, inbox, left), name="model", daemon=True).start()
    try:
        while not cancelled.is_set():
            try:
                item = inbox.get(timeout=tick())
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Delta):
                _take_delta(asked, item, say)
            elif item is _STREAM_END:
                return _require_reply(asked, backend)
    finally:
        left.set()
    return asked


_STREAM_END = object()


def _take_delta(asked: ModelAnswer, delta: Delta, say: Callable[[Delta], None]) -> None:
    if delta.reply is not None:
        asked.reply = delta.reply
    elif delta.kind == "text":
        asked.words.append(delta.text)
    say(delta)


def _require_reply(asked: ModelAnswer, backend: Backend) -> ModelAnswer:
    if asked.reply is None:
        raise BadAnswer(backend.name, "the stream ended without an answer")
    return asked


def _read_stream(backend: Backend, request: ModelRequest, inbox: queue.SimpleQueue[Any], left: threading.Event) -> None:
    try:
        stream = backend.stream(request)
        try:
            for delta in stream:
                if left.is_set():
                    return
                inbox.put(delta)
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        inbox.put(_STREAM_END)
    except BaseException as failure:  # told where somebody waits for it
        inbox.put(failure)
