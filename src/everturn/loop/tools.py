"""Tools that a model may call: a function, the schema of its arguments, and hints for recovery.

    @tool(read_only=True)
    def look_up(word: str) -> str:
        "What a word means."

The schema comes from the signature and the description from the docstring. Arguments may be dataclasses, msgspec structs and
pydantic models. A tool is called like its function. A parameter of type `ToolContext` is hidden from the model: it holds the
call's id, its idempotency key, whether it runs again after a crash, and the stop signal; its `step` and `sleep_until` are
durable. Hints say what may be done with a call that was begun and never finished (see `settlement`).
"""

from __future__ import annotations

import inspect
import json
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, get_type_hints, overload

import msgspec

from everturn.deprecations import warn_renamed
from everturn.errors import UsageError
from everturn.llm import protocol
from everturn.model.conversation import prepared

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

Policy = Literal["", "retry", "reconcile", "ask", "fail", "compensate"]
#: Policies for a call in doubt.
POLICIES = ("", "retry", "reconcile", "ask", "fail", "compensate")


class StopSignal(threading.Event):
    """Set when the result of a call is no longer needed. `then` runs something at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self._then: list[Callable[[], None]] = []

    def then(self, work: Callable[[], None]) -> None:
        """Run `work` when the signal is set; now, if it is."""
        self._then.append(work)
        if self.is_set():
            work()

    def set(self) -> None:
        super().set()
        for work in self._then:
            work()


class StepLog(Protocol):
    """Where the steps of a call are recorded: a `Journal`."""

    def step(self, name: str, work: Callable[[], T], once: bool = False) -> T:
        """See `Journal.step`."""

    def wake_time(self, name: str, when: int) -> int:
        """See `Journal.wake_time`."""

    def now(self) -> int:
        """Return the time in ms UTC."""


@dataclass(frozen=True)
class ToolContext:
    """The context of a call, for its tool."""

    call_id: str
    session: str = ""
    is_resume: bool = False  # it may have run before, wholly or in part
    idempotency_key: str = ""  # the same in every attempt at this call only
    attempt: int = 1
    stop: StopSignal = field(default_factory=StopSignal)
    steps: StepLog | None = field(default=None, repr=False, compare=False)

    def step(self, name: str, work: Callable[[], T], once: bool = False) -> T:
        """Run `work` and record its value, a JSON value. A later attempt at this call gets the recorded one.

        A process that dies in between runs it again, unless `once`: then a later attempt raises ToolIdempotencyError.
        """
        return work() if self.steps is None else self.steps.step(f"{self.idempotency_key}/{name}", work, once)

    async def astep(self, name: str, work: Callable[[], Awaitable[T]], once: bool = False) -> T:
        """Do the same with an asynchronous function."""
        import asyncio

        loop = asyncio.get_running_loop()
        run = lambda: asyncio.run_coroutine_threadsafe(_await(work), loop).result()  # noqa: E731
        return await asyncio.to_thread(self.step, name, run, once)

    def sleep_until(self, when: datetime | int, name: str = "") -> None:
        """Sleep until a time (aware, or ms UTC). It is recorded once: a later attempt only sleeps for what is left.

        Return early when `stop` is set.
        """
        if self.steps is None:
            raise UsageError("sleep_until works in a call of a loop only")
        wake = self.steps.wake_time(f"{self.idempotency_key}/{name}", milliseconds(when))
        while (left := wake - self.steps.now()) > 0 and not self.stop.wait(min(left / 1000, 1.0)):
            pass


def milliseconds(when: datetime | int) -> int:
    """Return a time in ms UTC. Raise UsageError for a datetime without a time zone."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise UsageError(f"{when} has no time zone; say datetime.now(UTC) or the like")
        return round(when.timestamp() * 1000)
    if not isinstance(when, int | float):
        raise UsageError(f"{when!r} is no time: say a datetime with a time zone, or milliseconds since 1970")
    return round(when)


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


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
    destructive: bool = False  # what it does cannot be undone: in doubt it is not retried unless `policy` says so
    policy: Policy = ""  # for a call in doubt; "" follows the hints
    reconcile: Callable[[ToolContext, dict[str, Any]], Any] | None = None  # ReconciledResult, NotDone or None
    compensate: Callable[[ToolContext, dict[str, Any]], Any] | None = None  # must be safe to run twice
    timeout: float | None = None  # seconds
    approval: bool | Callable[[dict[str, Any]], Any] = False  # a human must agree before it runs
    alone: bool = False  # never in parallel with another call
    takes: type | None = None  # struct that validates the arguments
    context: str = ""  # name of the parameter for the ToolContext

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function itself. Without a context it gets one of no session."""
        if self.context and self.context not in inspect.signature(self.fn).bind_partial(*given, **named).arguments:
            named[self.context] = ToolContext("")
        return self.fn(*given, **named)

    @property
    def spec(self) -> protocol.ToolSpec:
        """Return the tool as the model sees it."""
        return protocol.ToolSpec(self.name, self.description, self.parameters)

    @property
    def shown(self) -> protocol.ToolSpec:
        """Old name of `spec`."""
        warn_renamed("Tool.shown", "Tool.spec")
        return self.spec

    def checked(self, arguments: Any) -> dict[str, Any]:
        """Old name of `validate_arguments`."""
        warn_renamed("Tool.checked", "Tool.validate_arguments")
        return self.validate_arguments(arguments)

    def needs_approval(self, arguments: Any) -> Any:
        """Whether a human must agree to this call; awaitable if the function is asynchronous."""
        return self.approval(arguments) if callable(self.approval) else self.approval

    def validate_arguments(self, arguments: Any) -> dict[str, Any]:
        """Return the validated arguments. Raise ValueError with a message for the model."""
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not a JSON object")
        if self.takes is None:
            return arguments
        given: Any = msgspec.convert(arguments, prepared(self.takes), dec_hook=decode_model)
        return {name: getattr(given, name) for name in self.takes.__struct_fields__}  # type: ignore[attr-defined]


@dataclass(frozen=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool that a type checker knows by the signature of its function."""

    def __call__(self, *given: P.args, **named: P.kwargs) -> R:
        """See `Tool.__call__`."""
        made: R = super().__call__(*given, **named)
        return made


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`, as fields of `Tool`."""

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool
    policy: Policy
    reconcile: Callable[[ToolContext, dict[str, Any]], Any] | None
    compensate: Callable[[ToolContext, dict[str, Any]], Any] | None
    timeout: float | None
    approval: bool | Callable[[dict[str, Any]], Any]
    alone: bool


class ToolMaker(Protocol):
    """`@tool` with options."""

    def __call__(self, fn: Callable[P, R], /) -> FunctionTool[P, R]:
        """Make the tool."""


@overload
def tool(given: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> ToolMaker: ...
def tool(given: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function. The options are those of `ToolOptions`; raise UsageError for another one."""
    for name in options.keys() - ToolOptions.__annotations__.keys():
        near = get_close_matches(name, ToolOptions.__annotations__, 1)
        raise UsageError(f"@tool has no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return (lambda fn: _make_tool(fn, options)) if given is None else _make_tool(given, options)


def make_idempotency_key(session: str, response: int, call_id: str) -> str:
    """Return a key that is the same for every attempt at a call and differs for every other call.

    It includes the number of the response, because some providers reuse call ids.
    """
    return blake2b(f"{session}\0{response}\0{call_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def decode_model(kind: type, value: Any) -> Any:
    """Validate a value for a pydantic model. msgspec calls this for types it does not know, and expects this error."""
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{kind.__name__} is no type of an argument")
    return validate(value)


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a dataclass, msgspec struct or pydantic model, in one object."""
    (schema,), parts = msgspec.json.schema_components([kind], schema_hook=_model_schema, ref_template="#/$defs/{name}")
    own, name = dict(schema), getattr(kind, "__name__", "")
    own = dict(parts.pop(name)) if "$ref" in own and name in parts else own
    own.pop("title", None)
    definitions = dict(parts)
    own = _without_definitions(own, definitions)
    definitions = {name: _without_definitions(one, definitions) for name, one in list(definitions.items())}
    return {**own, "$defs": definitions} if definitions else own


def _model_schema(kind: type) -> dict[str, Any]:
    schema = getattr(kind, "model_json_schema", None)
    if schema is None:
        raise NotImplementedError(f"{kind.__name__} is no type of an argument")
    made: dict[str, Any] = schema(ref_template="#/$defs/{model}")
    return made


def _without_definitions(value: Any, found: dict[str, Any]) -> Any:
    """Move the definitions of inner schemas to the outermost one, which their references name."""
    if isinstance(value, dict):
        inner = value.get("$defs")
        if isinstance(inner, dict):
            found.update({name: _without_definitions(one, found) for name, one in inner.items()})
        return {name: _without_definitions(one, found) for name, one in value.items() if name != "$defs"}
    return [_without_definitions(one, found) for one in value] if isinstance(value, list) else value


def _make_tool(fn: Callable[..., Any], options: dict[str, Any]) -> Tool:
    name = options.get("name", fn.__name__)
    if options.get("policy", "") not in POLICIES:
        raise UsageError(f"tool {name}: there is no policy {options['policy']!r}; there are {', '.join(POLICIES[1:])}")
    context, takes = _signature(fn, name)
    try:
        schema = options.get("parameters") or json_schema(takes)
    except TypeError as failure:  # msgspec names the type in its last line
        reason = str(failure).strip().rpartition("\n")[2]
        raise UsageError(f"tool {name}: an argument cannot be described to a model: {reason}") from failure
    description = options.get("description") or inspect.getdoc(fn) or ""
    made = FunctionTool[Any, Any](fn, name, description, schema, takes=takes, context=context)
    return replace(made, **{key: value for key, value in options.items() if key not in ("parameters", "description")})


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


# --- Typed answers: a dataclass, msgspec struct or pydantic model that the model is asked for, as JSON ---
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.S)


def output_request(kind: Any) -> str:
    """Return the words that ask for this type; "" for none."""
    if kind is None:
        return ""
    return f"Answer with one JSON object and nothing else. Its schema: {json.dumps(output_schema(kind))}"


def output_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of the type."""
    own = getattr(kind, "model_json_schema", None)
    return dict(own()) if own is not None else json_schema(kind)


def read_output(text: str, kind: Any) -> Any:
    """Return the value in an answer. Raise ValueError with a reason for the model."""
    for place in [text.strip(), *_FENCE.findall(text), text[text.find("{") : text.rfind("}") + 1]]:
        try:
            value = msgspec.json.decode(place)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)  # its ValidationError is a ValueError
        return msgspec.convert(value, prepared(kind), dec_hook=decode_model)
    raise ValueError("it holds no JSON object")
