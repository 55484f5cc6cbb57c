"""Backends from the `[models.NAME]` tables of the config file.

    [models]
    default = "fast"                      # the model of --model without a name

    [models.fast]
    kind = "anthropic"                    # openai | openai_responses | anthropic | program | the name of an entry point
    model = "…"
    key_env = "ANTHROPIC_API_KEY"

A table is validated when it is used, so a wrong one does not stop commands that need no model. Keys come from the
environment or the keyring, never from the file. Other packages add kinds by entry points of the group `everturn.backends`:
a function from `ModelConfig` to a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from everturn.errors import BadConfig, UsageError
from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience
from everturn.llm.program_backend import Program, ProgramBackend, ProgramLimits
from everturn.llm.protocol import Backend, Wire
from everturn.model.conversation import prepared

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
    """One `[models.NAME]` table."""

    kind: str
    name: str = ""
    base_url: str = ""
    model: str = ""
    program: str = ""  # name of the program, for kind program
    key_env: str = ""
    keyring: str = ""  # SERVICE/USER
    timeout: float = 600.0  # seconds in all, retries included
    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    tries: int = 4
    max_tokens: int = 0
    window: int = 0
    stream: bool = True
    bound: bool = False  # accepts only an unchanged history before its own answers
    proxy: str = ""
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}  # members added to every request
    options: dict[str, Any] = {}  # for kinds of other packages


@dataclass(frozen=True)
class Surroundings:
    """The environment, programs and keyring a backend may use, passed in by the surfaces."""

    env: Mapping[str, str]
    programs: Mapping[str, Program] = field(default_factory=dict)  # by the name in `program = …`
    keyring: Callable[[str, str], str | None] | None = None  # (service, user) → secret; None: the system's


def model_names(models: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, table in models.items() if isinstance(table, Mapping))


def choose_model(models: Mapping[str, Any], wanted: str = "") -> str:
    """Return the name in `--model`, or the default, or "" if there is no default."""
    default = models.get("default")
    return wanted or (default if isinstance(default, str) else "")


def read_model_config(models: Mapping[str, Any], wanted: str) -> ModelConfig:
    """Read the table of `NAME` or `NAME/MODEL`. Raise `BadConfig`, which lists the known models."""
    wanted = choose_model(models, wanted)
    name, _, model = wanted.partition("/")
    table = models.get(name)
    if not name or not isinstance(table, Mapping):
        known = ", ".join(model_names(models))
        if not known:
            why = "no model is configured; add a [models.NAME] table to the config file"
        else:
            why = f"{'this model is not configured' if name else 'no default model is set'}; configured models: {known}"
        raise BadConfig(f"models.{name}" if name else "models.default", why)
    config = structs.replace(_convert_table(name, table), name=name)
    return structs.replace(config, model=model) if model else config


def open_backend(models: Mapping[str, Any], wanted: str, surroundings: Surroundings) -> Backend:
    """Return the backend for `NAME` or `NAME/MODEL`; "" means the default. Send nothing yet. Raise `BadConfig`."""
    config = read_model_config(models, wanted)
    if config.kind in WIRES:
        return _open_http_backend(config, surroundings)
    if config.kind == "program":
        return _open_program_backend(config, surroundings)
    return _open_plugin_backend(config)


def plugin_backends() -> Iterator[EntryPoint]:
    """Yield the entry points of kinds that other packages add, not yet imported."""
    from importlib import metadata

    yield from metadata.entry_points(group=GROUP)


def _convert_table(name: str, table: Mapping[str, Any]) -> ModelConfig:
    known = set(ModelConfig.__struct_fields__) - {"name"}
    for stranger in sorted(set(table) - known):
        raise BadConfig(f"models.{name}.{stranger}", f"unknown key; known keys are {', '.join(sorted(known))}")
    try:
        return msgspec.convert(dict(table), prepared(ModelConfig))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        key = ".".join(["models", name, *filter(None, [where.strip("`.")])])
        raise BadConfig(key, what[:1].lower() + what[1:].replace("`", "")) from None


def _open_http_backend(config: ModelConfig, surroundings: Surroundings) -> Backend:
    key = f"models.{config.name}"
    if not config.model:
        raise BadConfig(f"{key}.model", f"name a model, here or as {config.name}/MODEL")
    if config.tries < 1 or min(config.timeout, config.read_timeout, config.connect_timeout) <= 0:
        raise BadConfig(key, "timeouts must be greater than 0 and tries at least 1")
    for header in config.headers:
        if header.lower() in _KEY_HEADERS:
            raise BadConfig(f"{key}.headers.{header}", "keys do not belong in the config file; use key_env or keyring")
    patience = Patience(config.connect_timeout, config.read_timeout, config.timeout, config.tries)
    endpoint = Endpoint(
        base=config.base_url or _BASES[config.kind], patience=patience, headers=config.headers, extra=config.extra,
        proxy=config.proxy, window=config.window, max_tokens=config.max_tokens, is_streamed=config.stream,
        bound=config.bound,
    )  # fmt: skip
    secret = _read_key(config, surroundings)
    return HttpBackend(config.name, config.model, WIRES[config.kind], endpoint, lambda: secret)


def _read_key(config: ModelConfig, surroundings: Surroundings) -> str:
    if config.key_env:
        secret = surroundings.env.get(config.key_env, "")
        if not secret.strip():
            raise BadConfig(f"models.{config.name}.key_env", f"the environment variable {config.key_env} is not set")
        return secret
    if config.keyring:
        return _read_keyring(config, surroundings)
    return ""


def _read_keyring(config: ModelConfig, surroundings: Surroundings) -> str:
    service, slash, user = config.keyring.rpartition("/")
    key = f"models.{config.name}.keyring"
    if not slash or not service or not user:
        raise BadConfig(key, "must have the form SERVICE/USER")
    lookup = surroundings.keyring or _system_keyring(key)
    try:
        secret = lookup(service, user)
    except Exception as failure:  # whatever the keyring of this system raises
        raise BadConfig(key, f"the keyring cannot be read ({type(failure).__name__})") from None
    if not secret:
        raise BadConfig(key, f"the keyring has no entry {config.keyring}")
    return secret


def _system_keyring(key: str) -> Callable[[str, str], str | None]:
    import importlib

    try:
        module = importlib.import_module("keyring")
    except ImportError:
        raise BadConfig(key, "the package keyring is not installed; run `pip install keyring` or use key_env") from None
    lookup: Callable[[str, str], str | None] = module.get_password
    return lookup


def _open_program_backend(config: ModelConfig, surroundings: Surroundings) -> Backend:
    if (program := surroundings.programs.get(config.program)) is None:
        known = ", ".join(sorted(surroundings.programs)) or "none"
        raise BadConfig(f"models.{config.name}.program", f"unknown program; known programs are {known}")
    limits = ProgramLimits(seconds=config.timeout, window=config.window)
    return ProgramBackend(config.name, config.model, program, surroundings.env, limits)


def _open_plugin_backend(config: ModelConfig) -> Backend:
    """Open a backend of another package. Only a request for a broken one raises."""
    found = {point.name: point for point in plugin_backends()}
    key = f"models.{config.name}.kind"
    if config.kind not in found:
        known = ", ".join(sorted([*WIRES, "program", *found]))
        raise BadConfig(key, f"unknown kind {config.kind!r}; use one of {known}")
    point = found[config.kind]
    try:
        backend: Backend = point.load()(config)
    except BadConfig:
        raise
    except Exception as failure:
        raise BadConfig(key, f"{point.value} cannot be used: {type(failure).__name__}: {failure}") from failure
    return backend


def open_model(kind: str, model: str, *, key: str = "", base_url: str = "", patience: Patience = Patience()) -> Backend:  # noqa: B008 -- frozen
    """Return a model over HTTP for a program: kind `openai`, `openai_responses` or `anthropic`, and its key.

    `base_url` is for servers that speak the same format, such as a local one.
    """
    if kind not in WIRES:
        raise UsageError(f"unknown kind {kind!r}; use one of {', '.join(WIRES)}")
    return HttpBackend(model, model, WIRES[kind], Endpoint(base_url or _BASES[kind], patience), lambda: key)
