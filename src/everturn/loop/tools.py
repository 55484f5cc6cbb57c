"""What a model may call: a function, what its arguments are, and what the loop may trust it with.

    @tool(read_only=True)
    def look_up(word: str) -> str:
        "What a word means."

The schema of the arguments comes from the signature and the description from the docstring. A parameter of type
`ToolContext` is not shown to the model: it gets the call's id, its idempotency key, whether it runs again after a crash,
and the sign to stop. Hints say what may be done with a call that was begun and never finished (see `policies`).
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar, get_type_hints, overload

import msgspec

from everturn.errors import UsageError
from everturn.llm import protocol

F = TypeVar("F", bound=Callable[..., Any])

#: What to do with a call in doubt.
POLICIES = ("", "retry", "reconcile", "ask", "fail", "compensate")


@dataclass(frozen=True)
class ToolContext:
    """What a tool may know about the call it serves."""

    call_id: str
    session: str = ""
    is_resume: bool = False  # it may have run before, and nobody knows how far
    idempotency_key: str = ""  # the same in every attempt at this call, and in no other
    attempt: int = 1
    stop: threading.Event = field(default_factory=threading.Event)  # set when the result is not waited for any more


@dataclass(frozen=True)
class ReconciledResult:
    """What `reconcile` found out: it was done, and this is what it gave. Unlike None, which says: not known."""

    text: str = ""
    is_error: bool = False


class NotDone:
    """What `reconcile` found out: it had no effect, and may run."""


@dataclass(frozen=True)
class Tool:
    """A function with what there is to know about it. `reconcile` and `compensate` take (context, arguments)."""

    fn: Callable[..., Any]
    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    read_only: bool = False
    idempotent: bool = False  # a second run with the same key has no second effect
    destructive: bool = False
    policy: str = ""  # of POLICIES; "" = what the hints say
    reconcile: Callable[[ToolContext, dict[str, Any]], ReconciledResult | NotDone | None] | None = None
    compensate: Callable[[ToolContext, dict[str, Any]], str | None] | None = None  # must bear being run twice
    timeout: float | None = None  # seconds
    approval: bool | Callable[[dict[str, Any]], bool] = False  # a human must agree before it runs
    alone: bool = False  # never beside another call
    takes: type | None = None  # the arguments, to be checked
    context: str = ""  # name of the parameter for the ToolContext

    @property
    def shown(self) -> protocol.ToolSpec:
        """What the model is told."""
        return protocol.ToolSpec(self.name, self.description, self.parameters)

    def needs_approval(self, arguments: Any) -> bool:
        """Must a human agree to this call?"""
        return self.approval(arguments) if callable(self.approval) else self.approval

    def checked(self, arguments: Any) -> dict[str, Any]:
        """The arguments for the function. Raises ValueError in words for the model."""
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not a JSON object")
        if self.takes is None:
            return arguments
        given: Any = msgspec.convert(arguments, self.takes)
        return {name: getattr(given, name) for name in self.takes.__struct_fields__}  # type: ignore[attr-defined]


@overload
def tool(given: F) -> Tool: ...
@overload
def tool(**hints: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(given: Callable[..., Any] | None = None, **hints: Any) -> Any:
    """Make a tool of a function; `hints` are fields of `Tool`."""
    if given is None:
        return lambda fn: _make_tool(fn, hints)
    return _make_tool(given, hints)


def make_idempotency_key(session: str, response: int, call_id: str) -> str:
    """The same for every attempt at a call, after any number of crashes; another for every other call.

    The number of the response is part of it because some providers use the same ids again and again.
    """
    return blake2b(f"{session}\0{response}\0{call_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _make_tool(fn: Callable[..., Any], hints: dict[str, Any]) -> Tool:
    name = hints.pop("name", fn.__name__)
    if hints.get("policy", "") not in POLICIES:
        raise UsageError(f"tool {name}: there is no policy {hints['policy']!r}; there are {', '.join(POLICIES[1:])}")
    context, takes = _signature(fn, name)
    schema = hints.pop("parameters", None) or _schema(takes)
    description = hints.pop("description", None) or inspect.getdoc(fn) or ""
    return Tool(fn, name, description, schema, takes=takes, context=context, **hints)


def _signature(fn: Callable[..., Any], name: str) -> tuple[str, type]:
    """The parameter for the context, and a struct of all others."""
    types, context = get_type_hints(fn), ""
    fields: list[Any] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"tool {name}: its arguments must have names; *{parameter.name} has none")
        kind = types.get(parameter.name, Any)
        if kind is ToolContext:
            context = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, msgspec.field(default_factory=_make_constant(parameter.default))))
    return context, msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _make_constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _schema(takes: type) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    own = dict(parts.pop(takes.__name__)) if "$ref" in schema else dict(schema)
    own.pop("title", None)
    return {**own, "$defs": parts} if parts else own
