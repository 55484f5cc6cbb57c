"""The models of the config file: `[models.NAME]` tables become backends, when one is asked for by its name.

    [models]
    default = "fast"                      # what --model means without a name

    [models.fast]
    kind = "anthropic"                    # openai | openai_responses | anthropic | program | the name of an entry point
    model = "…"
    key_env = "ANTHROPIC_API_KEY"

What stands in a table is checked when it is used: a wrong one does not stop what needs no model. Keys are taken from the
environment or the keyring, never from the file. Other packages add kinds by entry points of the group `everturn.backends`:
a function from `ModelConfig` to a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from everturn.errors import BadConfig
from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience
from everturn.llm.program_backend import Program, ProgramBackend, ProgramLimits
from everturn.llm.protocol import Backend, Wire

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "everturn.backends"
WIRES: dict[str, Wire] = {"openai": chat_completions, "openai_responses": responses, "anthropic": anthropic_messages}
_KEY_HEADERS = {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"}
_BASES = {
    "openai": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}


class ModelConfig(Struct, frozen=True):
    """What the config file says about one model."""

    kind: str
    name: str = ""
    base_url: str = ""
    model: str = ""
    program: str = ""  # of kind program: which
    key_env: str = ""
    keyring: str = ""  # SERVICE/USER
    timeout: float = 600.0  # for everything
    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    tries: int = 4
    max_tokens: int = 0
    window: int = 0
    stream: bool = True
    bound: bool = False  # takes a conversation only as it was, word by word
    proxy: str = ""
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}  # members of every request, as the server wants them
    options: dict[str, Any] = {}  # for kinds of other packages


@dataclass(frozen=True)
class Surroundings:
    """What a backend needs of the machine: passed in by the surfaces."""

    env: Mapping[str, str]
    programs: Mapping[str, Program] = field(default_factory=dict)  # by the name that `program = …` uses
    keyring: Callable[[str, str], str | None] | None = None  # (service, user) → secret; None: the system's


def model_names(models: Mapping[str, Any]) -> list[str]:
    """The models that are configured."""
    return sorted(name for name, table in models.items() if isinstance(table, Mapping))


def choose_model(models: Mapping[str, Any], wanted: str = "") -> str:
    """The name and model meant by `--model`; the default for none. "" where there is no default either."""
    default = models.get("default")
    return wanted or (default if isinstance(default, str) else "")


def read_model_config(models: Mapping[str, Any], wanted: str) -> ModelConfig:
    """What the config says about `NAME` or `NAME/MODEL`. Raises `BadConfig`, which names the known ones."""
    wanted = choose_model(models, wanted)
    name, _, model = wanted.partition("/")
    table = models.get(name)
    if not name or not isinstance(table, Mapping):
        known = ", ".join(model_names(models)) or "none: add a [models.NAME] table to the config file"
        why = f"there is no such model; known are {known}" if name else f"no model is named; known are {known}"
        raise BadConfig(f"models.{name}" if name else "models.default", why)
    described = structs.replace(_convert_table(name, table), name=name)
    return structs.replace(described, model=model) if model else described


def open_backend(models: Mapping[str, Any], wanted: str, around: Surroundings) -> Backend:
    """The backend for `NAME` or `NAME/MODEL`, "" for the default. Nothing is sent yet. Raises `BadConfig`."""
    described = read_model_config(models, wanted)
    if described.kind in WIRES:
        return _open_http_backend(described, around)
    if described.kind == "program":
        return _open_program_backend(described, around)
    return _open_plugin_backend(described)


def plugin_backends() -> Iterator[EntryPoint]:
    """Kinds that other packages add; not imported yet."""
    from importlib import metadata

    yield from metadata.entry_points(group=GROUP)


def _convert_table(name: str, table: Mapping[str, Any]) -> ModelConfig:
    known = set(ModelConfig.__struct_fields__) - {"name"}
    for stranger in sorted(set(table) - known):
        raise BadConfig(f"models.{name}.{stranger}", f"there is no such key, known are {', '.join(sorted(known))}")
    try:
        return msgspec.convert(dict(table), ModelConfig)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        key = ".".join(["models", name, *filter(None, [where.strip("`.")])])
        raise BadConfig(key, what[:1].lower() + what[1:].replace("`", "")) from None


def _open_http_backend(described: ModelConfig, around: Surroundings) -> Backend:
    key = f"models.{described.name}"
    if not described.model:
        raise BadConfig(f"{key}.model", f"say which model, here or as {described.name}/MODEL")
    if described.tries < 1 or min(described.timeout, described.read_timeout, described.connect_timeout) <= 0:
        raise BadConfig(key, "timeouts must be greater than 0 and tries at least 1")
    for header in described.headers:
        if header.lower() in _KEY_HEADERS:
            raise BadConfig(f"{key}.headers.{header}", "a key does not belong into the file: use key_env or keyring")
    patience = Patience(described.connect_timeout, described.read_timeout, described.timeout, described.tries)
    endpoint = Endpoint(
        base=described.base_url or _BASES[described.kind],
        patience=patience,
        headers=described.headers,
        extra=described.extra,
        proxy=described.proxy,
        window=described.window,
        max_tokens=described.max_tokens,
        is_streamed=described.stream,
        bound=described.bound,
    )
    secret = _read_key(described, around)
    return HttpBackend(described.name, described.model, WIRES[described.kind], endpoint, lambda: secret)


def _read_key(described: ModelConfig, around: Surroundings) -> str:
    if described.key_env:
        secret = around.env.get(described.key_env, "")
        if not secret.strip():
            raise BadConfig(f"models.{described.name}.key_env", f"the environment has no {described.key_env}")
        return secret
    if described.keyring:
        return _read_keyring(described, around)
    return ""


def _read_keyring(described: ModelConfig, around: Surroundings) -> str:
    service, slash, user = described.keyring.rpartition("/")
    key = f"models.{described.name}.keyring"
    if not slash or not service or not user:
        raise BadConfig(key, "is written SERVICE/USER")
    lookup = around.keyring or _system_keyring(key)
    try:
        secret = lookup(service, user)
    except Exception as failure:  # whatever the keyring of this system raises
        raise BadConfig(key, f"the keyring cannot be read ({type(failure).__name__})") from None
    if not secret:
        raise BadConfig(key, f"the keyring has nothing for {described.keyring}")
    return secret


def _system_keyring(key: str) -> Callable[[str, str], str | None]:
    import importlib

    try:
        module = importlib.import_module("keyring")
    except ImportError:
        raise BadConfig(key, "the package keyring is not installed: `pip install keyring`, or use key_env") from None
    lookup: Callable[[str, str], str | None] = module.get_password
    return lookup


def _open_program_backend(described: ModelConfig, around: Surroundings) -> Backend:
    program = around.programs.get(described.program)
    if program is None:
        known = ", ".join(sorted(around.programs)) or "none"
        raise BadConfig(f"models.{described.name}.program", f"there is no such program; known are {known}")
    limits = ProgramLimits(seconds=described.timeout, window=described.window)
    return ProgramBackend(described.name, described.model, program, around.env, limits)


def _open_plugin_backend(described: ModelConfig) -> Backend:
    """A kind of another package. One that is broken is told, and only when it is the one asked for."""
    found = {point.name: point for point in plugin_backends()}
    key = f"models.{described.name}.kind"
    if described.kind not in found:
        known = ", ".join(sorted([*WIRES, "program", *found]))
        raise BadConfig(key, f"there is no kind {described.kind!r}; known are {known}")
    point = found[described.kind]
    try:
        backend: Backend = point.load()(described)
    except BadConfig:
        raise
    except Exception as failure:
        raise BadConfig(key, f"{point.value} cannot be used: {type(failure).__name__}: {failure}") from failure
    return backend
