"""Tools that a model may call: a function, the schema of its arguments, and hints for recovery.

    @tool(read_only=True)
    def look_up(word: str) -> str:
        "What a word means."

The schema comes from the signature and the description from the docstring. A parameter of type `ToolContext` is hidden from
the model: it holds the call's id, its idempotency key, whether it runs again after a crash, and the stop event. Hints say
what may be done with a call that was begun and never finished (see `execution`).
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

#: Policies for a call in doubt.
POLICIES = ("", "retry", "reconcile", "ask", "fail", "compensate")


@dataclass(frozen=True)
class ToolContext:
    """The context of a call, for its tool."""

    call_id: str
    session: str = ""
    is_resume: bool = False  # it may have run before, wholly or in part
    idempotency_key: str = ""  # the same in every attempt at this call only
    attempt: int = 1
    stop: threading.Event = field(default_factory=threading.Event)  # set when the result is no longer needed


@dataclass(frozen=True)
class ReconciledResult:
    """The answer of `reconcile` that the call was done, with its result. None means unknown."""

    text: str = ""
    is_error: bool = False


class NotDone:
    """The answer of `reconcile` that the call had no effect and may run."""


@dataclass(frozen=True)
class Tool:
    """A function with its schema and hints. `reconcile` and `compensate` take (context, arguments)."""

    fn: Callable[..., Any]
    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    read_only: bool = False
    idempotent: bool = False  # a second run with the same key has no second effect
    destructive: bool = False
    policy: str = ""  # of POLICIES; "": derived from the hints
    reconcile: Callable[[ToolContext, dict[str, Any]], ReconciledResult | NotDone | None] | None = None
    compensate: Callable[[ToolContext, dict[str, Any]], str | None] | None = None  # must be safe to run twice
    timeout: float | None = None  # seconds
    approval: bool | Callable[[dict[str, Any]], bool] = False  # a human must agree before it runs
    alone: bool = False  # never in parallel with another call
    takes: type | None = None  # struct that validates the arguments
    context: str = ""  # name of the parameter for the ToolContext

    @property
    def shown(self) -> protocol.ToolSpec:
        """Return the tool as the model sees it."""
        return protocol.ToolSpec(self.name, self.description, self.parameters)

    def needs_approval(self, arguments: Any) -> bool:
        """Whether a human must agree to this call."""
        return self.approval(arguments) if callable(self.approval) else self.approval

    def checked(self, arguments: Any) -> dict[str, Any]:
        """Return the validated arguments. Raise ValueError with a message for the model."""
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
    """Return a key that is the same for every attempt at a call and differs for every other call.

    It includes the number of the response, because some providers reuse call ids.
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
    """Return the name of the context parameter and a struct of all other parameters."""
    types, context = get_type_hints(fn), ""
    fields: list[Any] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"tool {name}: its arguments must have names; *{parameter.name} has none")
        if (kind := types.get(parameter.name, Any)) is ToolContext:
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
