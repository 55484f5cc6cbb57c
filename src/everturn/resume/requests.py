"""The next request of a loop: what the model gets to see of a session, mended, and compared with what it saw before.

As long as everything fits, everything is sent, as it is; else what `context` says. The history that goes out is one that
providers take (`llm.repair`). Nothing is written here, and nothing is sent.

Some providers seal what a model thought, and bind it to all that stood before. With `bound` nothing before an answer is ever
changed: state comes as a new message, nothing is left out, and a request that would begin otherwise than the one before is
an error. Without, sealed thoughts are sent as long as that holds anyway; after that, those of earlier turns are left out.

A backend may have more members than `llm.Backend` asks for: `bound`, and `wire` with `body(request)`, the request as it is
sent. Where it has no `body`, the neutral form is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from everturn.errors import PrefixChanged
from everturn.llm import Backend, Message, Part, Request
from everturn.llm.prefix import changed, prefix_of
from everturn.llm.repair import repair
from everturn.resume import context
from everturn.resume.context import Context
from everturn.resume.past import Past
from everturn.resume.records import Sent

#: Tokens of one request and its answer, where neither backend nor caller says how many.
WINDOW = 128_000

#: Words for a request, asked for before each.
Words = Callable[[Past], str]


@dataclass(frozen=True)
class View:
    """What the model gets besides what was said, and how much of that."""

    window: int = 0  # tokens; 0: what the backend says
    reserve: int = context.RESERVE  # of them, at least, for the answer
    system: Words = lambda past: past.system
    state: Words = lambda past: ""
    recalled: Words = lambda past: ""
    bound: bool = False  # the provider binds its answers to what stood before them; also where the backend says so


@dataclass(frozen=True)
class Prepared:
    """A request that can be sent. `append` is recorded first: it is the last thing in it."""

    request: Request
    sent: Sent
    append: str = ""
    said: tuple[str, ...] = ()  # what was left out, cut or mended, for people


def prepare(past: Past, backend: Backend, view: View, answer: int) -> Prepared:
    """The next request, for an answer of so many tokens. Raises PrefixChanged."""
    window = view.window or backend.window or WINDOW
    tools = past.tools if backend.takes_tools else ()
    fit = partial(
        context.assemble, most=context.budget(window, max(view.reserve, answer)), system=view.system(past),
        state=view.state(past), recalled=view.recalled(past), tools=tools, sizes=past.sizes,
    )  # fmt: skip
    made = partial(_made, past, backend, Request((), "", tools, past.model, answer))
    history = past.history
    if _is_bound(backend, view):
        return _checked(past, made(fit(history, append_only=True)))
    if any(map(is_sealed, history)):
        seen = fit(history, append_only=True)
        if seen.fits and not (prepared := made(seen)).sent.changed:
            return prepared
        history = unsealed(history)
    whole = _whole(fit(()), history, past, fit.keywords["most"])
    return made(whole or fit(history))


def compared(past: Past, backend: Backend, view: View, request: Request) -> Prepared:
    """A request of the caller's own, mended and compared. Raises PrefixChanged."""
    seen = Context(request.system, request.messages, 0, 0, ())
    made = _made(past, backend, request, seen)
    return _checked(past, made) if _is_bound(backend, view) else made


def is_sealed(message: Message) -> bool:
    """Has it thoughts that only its provider can read?"""
    return any(map(_is_sealed_thought, message.parts))


def unsealed(history: Sequence[Message]) -> list[Message]:
    """Without the sealed thoughts of earlier turns; providers want those of the one that is going on."""
    newest = max((place for place, one in enumerate(history) if one.role == "user"), default=0)
    return [_bare(one) if place < newest and is_sealed(one) else one for place, one in enumerate(history)]


def _is_bound(backend: Backend, view: View) -> bool:
    return view.bound or bool(getattr(backend, "bound", False))


def _checked(past: Past, made: Prepared) -> Prepared:
    if made.sent.changed:
        raise PrefixChanged(past.session, list(made.sent.changed))
    return made


def _whole(around: Context, history: Sequence[Message], past: Past, most: int) -> Context | None:
    """Everything, where it fits: then nothing is weighed against anything."""
    tokens = around.tokens
    for message in reversed(history):  # what is far beyond the window is never counted
        tokens += past.sizes.message(message)
        if tokens > most:
            return None
    if around.said:
        return None
    return structs.replace(around, messages=tuple(history), tokens=tokens)


def _made(past: Past, backend: Backend, request: Request, seen: Context) -> Prepared:
    wire, shown = str(getattr(backend, "wire", "")), getattr(backend, "body", None)
    mended = repair(seen.messages, wire=wire)
    request = structs.replace(request, messages=mended.messages, system=seen.system)
    body, form = (shown(request), wire) if shown is not None else (_plain(request), "")
    last = past.sent if past.sent is not None and past.sent.wire == form else None  # another provider sealed for itself
    sent = Sent(prefix_of(body), form, tuple(changed(last.prefix, body)) if last is not None else ())
    append = seen.append.parts[0].text if seen.append is not None else ""
    return Prepared(request, sent, append, (*seen.said, *mended.mended))


# sealed thoughts --------------------------------------------------------------------------------------------------------
def _is_sealed_thought(part: Part) -> bool:
    return part.kind == "thinking" and isinstance(part.raw, dict)


def _bare(message: Message) -> Message:
    return structs.replace(message, parts=tuple(part for part in message.parts if not _is_sealed_thought(part)))


# the neutral form -------------------------------------------------------------------------------------------------------
def _plain(request: Request) -> Mapping[str, Any]:
    messages = [{"role": one.role, "content": list(map(_block, one.parts))} for one in request.messages]
    return {"system": request.system, "tools": msgspec.to_builtins(request.tools), "messages": messages}


def _block(part: Part) -> dict[str, Any]:
    raw = part.raw if isinstance(part.raw, dict) else {}
    kind = raw.get("type", part.kind) if part.kind == "opaque" else part.kind
    given = {"text": part.text, "id": part.call_id, "name": part.name, "input": part.arguments, "raw": part.raw}
    return {"type": kind, **given, "is_error": part.is_error}
