"""The next request of a loop: what the model gets to see of a session, mended, and compared with what it saw before.

As long as everything fits, everything is sent, as it is; else what `context` says. The history that goes out is one that
providers take (`llm.repair`). Nothing is written here, and nothing is sent.

Some providers seal what a model thought, and bind it to all that stood before. With `bound` nothing before an answer is ever
changed: state comes as a new message, nothing is left out, and a request that would begin otherwise than the one before is
an error. Without, sealed thoughts are sent as long as that holds anyway; after that, those of earlier turns are left out.

A backend may have more members than `llm.Backend` asks for: `bound`, and `wire` with `body(request)`, the request as it is
sent. Where it has no `body`, the neutral form is compared.

Asks the model in a thread of its own, so that it can be left at any time.

Closing the stream stops the request. A stream that is left is closed by its own thread as soon as it says something.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
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
from everturn.loop.context import RequestContext
from everturn.loop.journal_state import JournalState
from everturn.loop.records import Prefix, RequestRecord

#: Tokens of one request and its answer, where neither backend nor caller says how many.
WINDOW = 128_000

#: Words for a request, asked for before each.
Words = Callable[[JournalState], str]


@dataclass(frozen=True)
class RequestView:
    """What the model gets besides what was said, and how much of that."""

    window: int = 0  # tokens; 0: what the backend says
    reserve: int = context.RESERVE  # of them, at least, for the answer
    system: Words = lambda past: past.system
    state: Words = lambda past: ""
    recalled: Words = lambda past: ""
    bound: bool = False  # the provider binds its answers to what stood before them; also where the backend says so


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be sent. `append` is recorded first: it is the last thing in it."""

    request: ModelRequest
    sent: RequestRecord
    append: str = ""
    said: tuple[str, ...] = ()  # what was left out, cut or mended, for people


def prepare_request(past: JournalState, backend: Backend, view: RequestView, answer: int) -> PreparedRequest:
    """The next request, for an answer of so many tokens. Raises PrefixChanged."""
    window = view.window or backend.window or WINDOW
    tools = past.tools if backend.takes_tools else ()
    fit = partial(
        context.assemble_context, most=context.context_budget(window, max(view.reserve, answer)), system=view.system(past),
        state=view.state(past), recalled=view.recalled(past), tools=tools, sizes=past.sizes,
    )  # fmt: skip
    made = partial(_make_request, past, backend, ModelRequest((), "", tools, past.model, answer))
    history = past.history
    if _is_prefix_bound(backend, view):
        return _check_prefix(past, made(fit(history, append_only=True)))
    if any(map(is_sealed, history)):
        seen = fit(history, append_only=True)
        if seen.fits and not (prepared := made(seen)).sent.changed:
            return prepared
        history = drop_sealed_thoughts(history)
    whole = _fit_whole(fit(()), history, past, fit.keywords["most"])
    return made(whole or fit(history))


def compare_request(past: JournalState, backend: Backend, view: RequestView, request: ModelRequest) -> PreparedRequest:
    """A request of the caller's own, mended and compared. Raises PrefixChanged."""
    seen = RequestContext(request.system, request.messages, 0, 0, ())
    made = _make_request(past, backend, request, seen)
    return _check_prefix(past, made) if _is_prefix_bound(backend, view) else made


def is_sealed(message: ChatMessage) -> bool:
    """Has it thoughts that only its provider can read?"""
    return any(map(_is_sealed_thought, message.parts))


def drop_sealed_thoughts(history: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Without the sealed thoughts of earlier turns; providers want those of the one that is going on."""
    newest = max((place for place, one in enumerate(history) if one.role == "user"), default=0)
    return [_drop_thoughts(one) if place < newest and is_sealed(one) else one for place, one in enumerate(history)]


def _is_prefix_bound(backend: Backend, view: RequestView) -> bool:
    return view.bound or bool(getattr(backend, "bound", False))


def _check_prefix(past: JournalState, made: PreparedRequest) -> PreparedRequest:
    if made.sent.changed:
        raise PrefixChanged(past.session, list(made.sent.changed))
    return made


def _fit_whole(
    around: RequestContext, history: Sequence[ChatMessage], past: JournalState, most: int
) -> RequestContext | None:
    """Everything, where it fits: then nothing is weighed against anything."""
    tokens = around.tokens
    for message in reversed(history):  # what is far beyond the window is never counted
        tokens += past.sizes.message(message)
        if tokens > most:
            return None
    if around.said:
        return None
    return structs.replace(around, messages=tuple(history), tokens=tokens)


def _make_request(past: JournalState, backend: Backend, request: ModelRequest, seen: RequestContext) -> PreparedRequest:
    wire, shown = str(getattr(backend, "wire", "")), getattr(backend, "body", None)
    mended = repair_history(seen.messages, wire=wire)
    request = structs.replace(request, messages=mended.messages, system=seen.system)
    body, form = (shown(request), wire) if shown is not None else (_plain_body(request), "")
    last = past.sent if past.sent is not None and past.sent.wire == form else None  # another provider sealed for itself
    sent = RequestRecord(request_prefix(body), form, tuple(changed_parts(last.prefix, body)) if last is not None else ())
    append = seen.append.parts[0].text if seen.append is not None else ""
    return PreparedRequest(request, sent, append, (*seen.said, *mended.mended))


# sealed thoughts --------------------------------------------------------------------------------------------------------
def _is_sealed_thought(part: ChatPart) -> bool:
    return part.kind == "thinking" and isinstance(part.raw, dict)


def _drop_thoughts(message: ChatMessage) -> ChatMessage:
    return structs.replace(message, parts=tuple(part for part in message.parts if not _is_sealed_thought(part)))


# the neutral form -------------------------------------------------------------------------------------------------------
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


_MARKS = "cache_control"
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


def request_prefix(body: Mapping[str, Any]) -> Prefix:
    """The prefix of an answer: what the request was that it answers, in any wire format."""
    messages, start = _messages_after_compaction(body)
    return Prefix(
        _hash(body.get("system", body.get("instructions"))),
        _hash(body.get("tools")),
        _hash_messages(messages),
        _hash_messages(map(_without_thoughts, messages)),
        len(messages),
        start,
    )


def changed_parts(prefix: Prefix, body: Mapping[str, Any]) -> list[str]:
    """What of a prefix is not the same in a new request; nothing when the provider will take it.

    Words: system, tools, thinking (thoughts of earlier messages were changed or left out), messages.
    """
    messages, start = _messages_after_compaction(body)
    found = []
    if _hash(body.get("system", body.get("instructions"))) != prefix.system:
        found.append("system")
    if _hash(body.get("tools")) != prefix.tools:
        found.append("tools")
    if start != prefix.start and start:  # compacted since then: the thoughts before that are gone with the words
        return found
    earlier = messages[: prefix.count]
    if len(earlier) < prefix.count or _hash_messages(map(_without_thoughts, earlier)) != prefix.words:
        found.append("messages")
    elif _hash_messages(earlier) != prefix.messages:
        found.append("thinking")
    return found


def _messages_after_compaction(body: Mapping[str, Any]) -> tuple[list[Any], str]:
    given = body.get("messages", body.get("input"))
    messages = list(given) if isinstance(given, list) else [given] if given else []
    for place in range(len(messages) - 1, -1, -1):
        if _is_compaction(messages[place]):
            return messages[place:], _hash(messages[place])
    return messages, ""


def _is_compaction(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(one, dict) and one.get("type") == "compaction" for one in [message, *blocks])


def _hash_messages(messages: Any) -> str:
    value = hashlib.sha256()
    for message in messages:
        value.update(b"\0" if message is None else _encode_value(message) + b"\n")
    return value.hexdigest()


def _without_thoughts(message: Any) -> Any:
    if not isinstance(message, dict) or message.get("type") == "reasoning":
        return None if isinstance(message, dict) else message
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept = [one for one in content if not (isinstance(one, dict) and one.get("type") in _THOUGHTS)]
    return message if len(kept) == len(content) else {**message, "content": kept}


def _hash(value: Any) -> str:
    return hashlib.sha256(_encode_value(value)).hexdigest()


def _encode_value(value: Any) -> bytes:
    bare = _without_cache_marks(value)
    try:
        return msgspec.json.encode(bare, order="deterministic")
    except UnicodeEncodeError:  # half a surrogate pair, which transcripts do hold
        return json.dumps(bare, sort_keys=True).encode()


def _without_cache_marks(value: Any) -> Any:
    """Without marks for caching; the same object where there is none."""
    if isinstance(value, dict):
        return {name: _without_cache_marks(one) for name, one in value.items() if name != _MARKS}
    return [_without_cache_marks(one) for one in value] if isinstance(value, list) else value
