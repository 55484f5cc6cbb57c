"""The next request of a loop: as much of the session as fits, repaired, compared with the request before, and sent.

While everything fits, everything is sent unchanged; otherwise `context` selects. The history is one that providers accept
(`llm.history_repair`). Preparing writes nothing.

Some providers seal the thoughts of a model and bind them to everything before them. With `bound` nothing before an answer
ever changes: state comes as a new message, nothing is left out, and a request with another beginning than the one before
is an error. Without it, sealed thoughts are sent while the beginning happens to be unchanged; after that, those of earlier
turns are left out. Compaction marks of the provider start the prefix anew; marks for caching do not count.

A backend may have more members than `llm.Backend`: `bound`, and `wire` with `body(request)`, the request as sent. Without
`body`, the neutral form is compared. With `adds_bodies`, the messages in the body of a history are those of its parts, one
after the other (see `request_prefix`): then only new messages are prepared.

`ask_model` asks in a thread of its own, so that the caller can leave at any time. Leaving aborts the request if the stream has
a method `abort`; another stream is closed by its own thread at the next delta.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from everturn.errors import BadAnswer, PrefixChanged
from everturn.llm.history_repair import repair_history
from everturn.llm.protocol import Backend, ChatMessage, ChatPart, Delta, ModelRequest, Reply
from everturn.loop import context
from everturn.loop.context import RequestContext, is_sealed, is_sealed_thought
from everturn.loop.journal_state import JournalState
from everturn.loop.records import RequestRecord
from everturn.loop.request_prefix import digest_body

#: Default tokens of one request and its answer.
WINDOW = 128_000

#: Returns a text for the next request.
Words = Callable[[JournalState], str]


@dataclass(frozen=True)
class RequestView:
    """Additions to the conversation in a request, and its size."""

    window: int = 0  # tokens; 0: the window of the backend
    reserve: int = context.RESERVE  # tokens kept free for the answer, at least
    system: Words = lambda past: past.system
    state: Words = lambda past: ""
    recalled: Words = lambda past: ""
    bound: bool = False  # the provider binds its answers to everything before them; a backend may set it too


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be sent. `append` is recorded first: it is its last message."""

    request: ModelRequest
    sent: RequestRecord
    append: str = ""
    said: tuple[str, ...] = ()  # what was left out, cut or mended, for people


def prepare_request(past: JournalState, backend: Backend, view: RequestView, answer: int) -> PreparedRequest:
    """Return the next request, for an answer of so many tokens. Raise PrefixChanged."""
    window = view.window or backend.window or WINDOW
    tools = past.tools if backend.takes_tools else ()
    fit = partial(
        context.assemble_context, most=context.context_budget(window, max(view.reserve, answer)), system=view.system(past),
        state=view.state(past), recalled=view.recalled(past), tools=tools, sizes=past.sizes,
    )  # fmt: skip
    make = partial(_make_request, past, backend, ModelRequest((), "", tools, past.model, answer))
    history = past.history
    if _is_prefix_bound(backend, view):
        return _check_prefix(past, make(fit(history, append_only=True)))
    if (selected := _select_unchanged(past, history, fit.keywords["most"], fit)) is not None:
        return make(selected)
    earlier = _count_earlier(history, past.sizes, fit.keywords["most"])
    history = history[earlier:] if earlier else history
    if any(map(is_sealed, history)):
        selected = fit(history, append_only=True)
        if selected.fits and not earlier and not (prepared := make(selected)).sent.changed:
            return prepared
        history = drop_sealed_thoughts(history)
    whole = None if earlier else _fit_whole(fit(()), history, past, fit.keywords["most"])
    return make(whole or fit(history, earlier=earlier))


def _select_unchanged(
    past: JournalState, history: Sequence[ChatMessage], most: int, fit: Callable[..., RequestContext]
) -> RequestContext | None:
    """Return all messages from a block of turns on, if nothing has to be cut or sealed. Only new messages cost."""
    around = fit(())
    place = None if around.said else past.view.place(history, past.dropped, most - around.tokens, past.sizes)
    if place is None or past.view.has_seals:
        return None
    head = past.view.head
    around = fit((), earlier=past.dropped + place - len(head)) if place else around
    return structs.replace(around, messages=(*head, *history[place:]), tokens=around.tokens + past.view.tokens)


def _count_earlier(history: Sequence[ChatMessage], sizes: context.Sizes, most: int) -> int:
    """Count the oldest messages that cannot be in view: the turns after them fill the window. They are not looked at."""
    tokens = 0
    for place in range(len(history) - 1, 0, -1):
        tokens += sizes.message(history[place])
        if tokens > most and history[place].role == "user" and not context.is_result(history[place]):
            return place
    return 0


def compare_request(past: JournalState, backend: Backend, view: RequestView, request: ModelRequest) -> PreparedRequest:
    """Return the caller's own request, repaired and compared. Raise PrefixChanged."""
    selected = RequestContext(request.system, request.messages, 0, 0, ())
    prepared = _make_request(past, backend, request, selected)
    return _check_prefix(past, prepared) if _is_prefix_bound(backend, view) else prepared


def drop_sealed_thoughts(history: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop the sealed thoughts of earlier turns; providers require those of the current one."""
    newest = max((place for place, one in enumerate(history) if one.role == "user"), default=0)
    return [_drop_thoughts(one) if place < newest and is_sealed(one) else one for place, one in enumerate(history)]


def _is_prefix_bound(backend: Backend, view: RequestView) -> bool:
    return view.bound or bool(getattr(backend, "bound", False))


def _check_prefix(past: JournalState, prepared: PreparedRequest) -> PreparedRequest:
    if prepared.sent.changed:
        raise PrefixChanged(past.session, list(prepared.sent.changed))
    return prepared


def _fit_whole(
    around: RequestContext, history: Sequence[ChatMessage], past: JournalState, most: int
) -> RequestContext | None:
    tokens = around.tokens
    for message in reversed(history):  # messages far beyond the window are never counted
        tokens += past.sizes.message(message)
        if tokens > most:
            return None
    return None if around.said else structs.replace(around, messages=tuple(history), tokens=tokens)


def _make_request(
    past: JournalState, backend: Backend, request: ModelRequest, selected: RequestContext
) -> PreparedRequest:
    wire, shown = str(getattr(backend, "wire", "")), getattr(backend, "body", None)
    request = structs.replace(request, messages=selected.messages, system=selected.system)
    mended: list[str] = []
    digest = None
    if shown is None or getattr(backend, "adds_bodies", False):
        digest = past.digest.digest(request, shown or _plain_body, wire, backend)
    if digest is None:
        repaired = repair_history(selected.messages, wire=wire)
        mended, request = repaired.mended, structs.replace(request, messages=repaired.messages)
        digest = digest_body(shown(request) if shown is not None else _plain_body(request))
    form = wire if shown is not None else ""
    # The seals of another provider do not matter.
    last = past.sent if past.sent is not None and past.sent.wire == form else None
    sent = RequestRecord(digest.prefix, form, tuple(digest.changed_parts(last.prefix)) if last is not None else ())
    append = selected.append.parts[0].text if selected.append is not None else ""
    return PreparedRequest(request, sent, append, (*selected.said, *mended))


def _drop_thoughts(message: ChatMessage) -> ChatMessage:
    return structs.replace(message, parts=tuple(part for part in message.parts if not is_sealed_thought(part)))


def _plain_body(request: ModelRequest) -> Mapping[str, Any]:
    messages = [{"role": one.role, "content": list(map(_part_block, one.parts))} for one in request.messages]
    return {"system": request.system, "tools": msgspec.to_builtins(request.tools), "messages": messages}


def _part_block(part: ChatPart) -> dict[str, Any]:
    raw = part.raw if isinstance(part.raw, dict) else {}
    kind = raw.get("type", part.kind) if part.kind == "opaque" else part.kind
    given = {"text": part.text, "id": part.call_id, "name": part.name, "input": part.arguments, "raw": part.raw}
    return {"type": kind, **given, "is_error": part.is_error}


@dataclass
class ModelAnswer:
    """A whole reply, or only some text if the turn was stopped or its time was over."""

    reply: Reply | None = None
    words: list[str] = field(default_factory=list)
    is_late: bool = False  # the time was over before the reply was whole


def ask_model(
    backend: Backend,
    request: ModelRequest,
    cancelled: threading.Event,
    inbox: queue.SimpleQueue[Any],
    on_delta: Callable[[Delta], None],
    tick: Callable[[], float],
    ends: float | None = None,
) -> ModelAnswer:
    """Ask the model and pass on every delta. `tick` is called regularly and returns the seconds until its next call.

    None in `inbox` triggers a check of `cancelled`. At `ends`, a time of `time.monotonic`, the request is cancelled.
    Raise the errors of the backend.
    """
    answer, reader = ModelAnswer(), _StreamReader(backend, request, inbox)
    threading.Thread(target=reader.run, name="model", daemon=True).start()
    try:
        while not cancelled.is_set():
            try:
                item = inbox.get(timeout=_wait_seconds(tick(), ends))
            except queue.Empty:
                if ends is not None and time.monotonic() >= ends:
                    answer.is_late = True
                    return answer
                continue
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Delta):
                _take_delta(answer, item, on_delta)
            elif item is _STREAM_END:
                if answer.reply is None:
                    raise BadAnswer(backend.name, "the stream ended without an answer")
                return answer
    finally:
        reader.leave()
    return answer


def _wait_seconds(tick: float, ends: float | None) -> float:
    return tick if ends is None else max(0.0, min(tick, ends - time.monotonic()))


_STREAM_END = object()


def _take_delta(answer: ModelAnswer, delta: Delta, on_delta: Callable[[Delta], None]) -> None:
    if delta.reply is not None:
        answer.reply = delta.reply
    elif delta.kind == "text":
        answer.words.append(delta.text)
    on_delta(delta)


class _StreamReader:
    """Reads a stream in a thread of its own. `leave` stops the request, at once if the stream can be aborted."""

    def __init__(self, backend: Backend, request: ModelRequest, inbox: queue.SimpleQueue[Any]) -> None:
        self._backend, self._request, self._inbox = backend, request, inbox
        self._left = threading.Event()
        self._stream: Any = None

    def leave(self) -> None:
        self._left.set()
        if (abort := getattr(self._stream, "abort", None)) is not None:
            abort()

    def run(self) -> None:
        try:
            self._stream = stream = self._backend.stream(self._request)
            try:
                for delta in stream:
                    if self._left.is_set():
                        return
                    self._inbox.put(delta)
            finally:
                if (close := getattr(stream, "close", None)) is not None:
                    close()
            self._inbox.put(_STREAM_END)
        except BaseException as failure:  # raised in the waiting thread
            self._inbox.put(failure)
