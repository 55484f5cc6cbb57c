"""The config file `config.toml`: read, validated, and changed one value at a time.

Errors name the wrong key and the nearest right one. Changing a value leaves every other line as it is.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from everturn.errors import BadConfig

Mode = Literal["full", "redacted", "structure", "off"]
AutoPush = Literal["never", "masked", "full"]


class CaptureTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The [capture] table: the defaults for workspaces without a rule."""

    mode: Mode | None = None
    exclude: tuple[str, ...] | None = None
    unknown: Mode | None = None
    processes: Annotated[int, Meta(ge=1)] | None = None


class SecretsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The [secrets] table: what is masked besides the built-in kinds."""

    patterns: tuple[str, ...] | None = None  # compiled by `everturn.secrets.rules`


class RetentionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The [retention] table: how long sessions are kept. The spans are parsed by `everturn.maintenance.retention`."""

    keep: str | None = None


class EncryptionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The [encryption] table: where keys come from, as `everturn.store.cipher` reads it. No keys."""

    key: str | None = None
    previous: str | None = None  # while `rekey` is at work


class TeamTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The [team] table: whether every sync pushes to the team's server, in which form, and how fast."""

    push: AutoPush | None = None
    limit: str | None = None  # a size, of what a push sends in a second


class Workspace(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule for the workspaces that match a glob."""

    path: str
    mode: Mode | None = None
    keep: str | None = None  # a span, as in [retention]


class ConfigFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `config.toml`. None: not set."""

    db: str | None = None
    machine: str | None = None
    owner: str | None = None
    capture: CaptureTable = CaptureTable()
    secrets: SecretsTable = SecretsTable()
    retention: RetentionTable = RetentionTable()
    encryption: EncryptionTable = EncryptionTable()
    team: TeamTable = TeamTable()
    workspace: tuple[Workspace, ...] | None = None
    sources: dict[str, tuple[str, ...]] | None = None
    models: dict[str, str | dict[str, Any]] | None = None  # validated by `everturn.llm.config` when used
    meaning: dict[str, Any] | None = None  # validated by `everturn.llm.embedder` when used


#: The keys of `config get` and `config set`. `sources.NAME` is a list too.
KEYS = (
    "db",
    "machine",
    "owner",
    "capture.mode",
    "capture.exclude",
    "capture.unknown",
    "capture.processes",
    "secrets.patterns",
    "retention.keep",
    "encryption.key",
    "encryption.previous",
    "team.push",
    "team.limit",
    "models.default",
)


def read_config(path: Path) -> ConfigFile:
    """Read the config file; without one, return defaults."""
    return parse_config(_read_text(path), path)


def parse_config(text: str, path: Path) -> ConfigFile:
    """Parse and validate a config text. Raises BadConfig with the key."""
    try:
        return msgspec.convert(tomllib.loads(text), ConfigFile)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(str(path), f"not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        key, why = _explain_error(str(error))
        raise BadConfig(key, f"{why} (in {path})") from None


def change_config(path: Path, key: str, value: str) -> None:
    """Set one key in the file, which is created if missing, readable by its owner only."""
    table, name = _split_key(key)
    text = _read_text(path)
    parse_config(text, path)
    line = f"{_toml_key(name)} = {_toml_value(key, value)}"
    expected = _value_at(parse_config(config_with_line(table, line), path), key)
    changed = _put_line(text, table, name, line)
    try:
        is_changed = _value_at(parse_config(changed, path), key) == expected
    except BadConfig:
        is_changed = False
    if not is_changed:
        raise BadConfig(key, f"is written in {path} in a way that cannot be changed for you, edit the file by hand")
    _replace_file(path, changed)


def config_with_line(table: str, line: str) -> str:
    """Return a config file with one line."""
    return f"[{table}]\n{line}\n" if table else f"{line}\n"


def unknown_key(key: str, known: tuple[str, ...] = KEYS) -> BadConfig:
    """Return the error for an unknown key, with the nearest known one."""
    return BadConfig(key, _no_such_key(key, known))


# --- validation messages ---

_TABLES: dict[str, type[Struct]] = {
    "capture": CaptureTable,
    "secrets": SecretsTable,
    "retention": RetentionTable,
    "encryption": EncryptionTable,
    "team": TeamTable,
    "workspace": Workspace,
}


def _explain_error(message: str) -> tuple[str, str]:
    """Return the key and a sentence for a validator message such as ``Expected `str`, got `int` - at `$.db` ``."""
    what, _, where = message.partition(" - at `$")
    place = re.sub(r"\[(?:\.\.\.|\d+)\]", "", where.rstrip("`")).lstrip(".")
    unknown = re.search(r"unknown field `(.*)`", what)
    if unknown:
        table = _TABLES.get(place, ConfigFile)
        key = f"{place}.{unknown.group(1)}".lstrip(".")
        known = (
            tuple(f"{place}.{name}" for name in table.__struct_fields__)
            if place
            else (*KEYS, "workspace", "sources", "models", "meaning")
        )
        return key, _no_such_key(key, known)
    value = re.match(r"Invalid enum value (.*)", what)
    if value:
        return (
            place,
            f"{value.group(1)} is not one of {', '.join(get_args(AutoPush if place == 'team.push' else Mode))}",
        )
    return place or "config", what[:1].lower() + what[1:].replace("`", "").replace(" | null", "")


def _no_such_key(key: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    ends = {name.rpartition(".")[2]: name for name in known}
    end = key.rpartition(".")[2]
    near = [end] if end in ends else get_close_matches(key, known, 1, 0.8) or get_close_matches(end, list(ends), 1, 0.5)
    if near:
        return f"there is no such key, did you mean {ends.get(near[0], near[0])}?"
    return f"unknown key; known keys are {', '.join(known)}"


def _split_key(key: str) -> tuple[str, str]:
    table, dot, name = key.rpartition(".")
    if key not in KEYS and not (key.startswith("sources.") and len(key) > len("sources.")):
        raise unknown_key(key, (*KEYS, "sources.NAME"))
    return ("sources", key[len("sources.") :]) if key.startswith("sources.") else (table, name if dot else key)


def _value_at(config: ConfigFile, key: str) -> Any:
    table, name = _split_key(key)
    if table == "sources":
        return (config.sources or {}).get(name)
    if table == "models":
        return (config.models or {}).get(name)
    return getattr(getattr(config, table) if table else config, name)


# --- changing the file ---


def _put_line(text: str, table: str, name: str, line: str) -> str:
    """Return the text with `line` in place of the key's old line, or as the last one of its table."""
    lines = text.splitlines()
    first, last = _table_bounds(lines, table)
    if first is None:
        return "\n".join([*lines, *([""] if lines else []), f"[{table}]", line, ""])
    for number in range(first, last):
        if re.match(rf"\s*(?:{re.escape(name)}|\"{re.escape(name)}\")\s*=", lines[number]):
            end = _statement_end(lines, number, last)
            return "\n".join([*lines[:number], line, *lines[end:], ""])
    while last > first and not lines[last - 1].strip():
        last -= 1
    gap = [""] if last < len(lines) and lines[last].strip() else []
    return "\n".join([*lines[:last], line, *gap, *lines[last:], ""])


def _table_bounds(lines: list[str], table: str) -> tuple[int | None, int]:
    """Return the first line of a table's body and the line after it; the table "" is before the first header."""
    headers = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line) and _is_header(line)]
    after: Callable[[int], int] = lambda start: min((h for h in headers if h >= start), default=len(lines))  # noqa: E731
    if not table:
        return 0, after(0)
    for number in headers:
        if re.match(rf"\s*\[\s*{re.escape(table)}\s*\]", lines[number]):
            return number + 1, after(number + 1)
    return None, len(lines)


def _is_header(line: str) -> bool:
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:  # the first line of an array's value
        return False
    return True


def _statement_end(lines: list[str], start: int, last: int) -> int:
    """Return the line after a key's value, which may span several lines."""
    for end in range(start + 1, last + 1):
        try:
            tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return start + 1


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_string(name)


def _toml_value(key: str, value: str) -> str:
    if key == "secrets.patterns":
        return "[" + ", ".join(map(_toml_string, pattern_list(value))) + "]"
    if key == "capture.exclude" or key.startswith("sources."):
        return "[" + ", ".join(map(_toml_string, _split_list(value))) + "]"
    if key == "capture.processes" and value.isdecimal():
        return str(int(value))
    return _toml_string(value)


def pattern_list(value: str) -> list[str]:
    """Parse one pattern, which may contain commas and brackets, or a list of quoted patterns in TOML or JSON syntax."""
    if value.lstrip().startswith("["):
        try:
            patterns = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            patterns = None
        if isinstance(patterns, list) and all(isinstance(pattern, str) for pattern in patterns):
            return patterns
    return [value]


def _split_list(value: str) -> list[str]:
    """Parse a list: separated by commas, or in TOML or JSON syntax."""
    if value.lstrip().startswith("["):
        try:
            return [str(part) for part in tomllib.loads(f"x = {value}")["x"]]
        except tomllib.TOMLDecodeError:  # a glob may begin with a bracket too
            pass
    return [part.strip() for part in value.split(",") if part.strip()]


def _toml_string(value: str) -> str:
    """Encode as a JSON string, which is a TOML basic string except for DEL and lone surrogates."""
    return msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode().replace("\x7f", "\\u007f")


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(str(path), f"cannot be read: {error}") from None


def _replace_file(path: Path, text: str) -> None:
    """Write the file atomically: a crash leaves the old one or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise BadConfig(str(path), f"cannot be written: {error.strerror}") from None
