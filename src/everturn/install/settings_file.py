"""Adds our entries to the text of a settings file, and removes them again. Every other character stays.

Entries of JSON files are identified by path and value, those of TOML files by the two comments around them. Comments and
trailing commas in JSON are accepted, as many agents allow them. Removing an entry restores the old text, except that a
container of nothing but white space comes back as `{}` or `[]`. Text that is not JSON raises ValueError.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from everturn.sources.contract import Edit, JsonSetting, TomlSection

JsonPath = Sequence[str]


@dataclass
class _JsonNode:
    """A value with its range in the text. `inner` are the values of a container, `keys` the starts of their keys."""

    value: Any
    start: int
    end: int = 0
    inner: list[_JsonNode] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def at(self, name: str) -> _JsonNode | None:
        """Return the last member of that name, which is the effective one."""
        return next((node for key, node in reversed([*zip(self.names, self.inner, strict=True)]) if key == name), None)


def value_at(text: str, at: JsonPath) -> Any:
    node = _find_node(_parse_document(text), at)
    return node.value if node is not None else None


def depth(text: str, at: JsonPath) -> int:
    """Return how many names of a path exist."""
    node, known = _parse_document(text), 0
    for name in at:
        if not isinstance(node.value, dict) or (inner := node.at(name)) is None:
            break
        node, known = inner, known + 1
    return known


def put_entry(text: str, at: JsonPath, value: Any) -> str:
    """Return the text with a member at a path, replaced if it exists; missing objects are created."""
    root = _parse_document(text)
    existing = _find_node(root, at)
    if existing is not None:
        formatted = _format_value(value, _indent_at(text, existing.start), _indent_step(text))
        return text[: existing.start] + formatted + text[existing.end :]
    known = depth(text, at)
    for name in reversed(at[known + 1 :]):
        value = {name: value}
    return _insert_member(text, _object_at(root, at[:known]), at[known], value)


def append_item(text: str, at: JsonPath, value: Any) -> str:
    """Return the text with an item appended to a list, created if missing."""
    node = _find_node(_parse_document(text), at)
    if node is None:
        return put_entry(text, at, [value])
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(at)} is not a list")
    return _insert_member(text, node, None, value)


def take_entry(text: str, at: JsonPath) -> str:
    """Return the text without the member at a path, if it exists."""
    holder = _find_node(_parse_document(text), at[:-1])
    if holder is None or not isinstance(holder.value, dict) or at[-1] not in holder.names:
        return text
    return _remove_member(text, holder, len(holder.names) - 1 - holder.names[::-1].index(at[-1]))


def take_items(text: str, at: JsonPath, unwanted: Callable[[Any], bool]) -> str:
    while True:
        node = _find_node(_parse_document(text), at)
        if node is None or not isinstance(node.value, list):
            return text
        number = next((number for number, item in enumerate(node.value) if unwanted(item)), None)
        if number is None:
            return text
        text = _remove_member(text, node, number)


# --- changing JSON text ---


def _insert_member(text: str, holder: _JsonNode, name: str | None, value: Any) -> str:
    indent, step = _indent_at(text, holder.start), _indent_step(text)
    key = "" if name is None else f"{json.dumps(name, ensure_ascii=False)}: "
    close = holder.end - 1
    if not holder.inner:
        has_comment = bool(text[holder.start + 1 : close].strip(_BLANK))
        end = _blanks_start(text, close) if has_comment else holder.start + 1
        return f"{text[:end]}\n{indent}{step}{key}{_format_value(value, indent + step, step)}\n{indent}{text[close:]}"
    last = holder.inner[-1]
    comma = _find_comma(text, last.end, close)
    text, close = (text, close) if comma is not None else (text[: last.end] + "," + text[last.end :], close + 1)
    end = _blanks_start(text, close)
    if "\n" not in text[holder.start : close]:
        return f"{text[:end]} {key}{json.dumps(value, ensure_ascii=False)}{text[end:]}"
    inner = _indent_at(text, holder.keys[-1])
    return f"{text[:end]}\n{inner}{key}{_format_value(value, inner, step)}{text[end:]}"


def _remove_member(text: str, holder: _JsonNode, number: int) -> str:
    node, start = holder.inner[number], holder.keys[number]
    before = _blanks_start(text, start)
    close = holder.end - 1
    comma = _find_comma(text, node.end, close)
    end = node.end if comma is None else comma + 1
    if len(holder.inner) == 1:
        rest = text[holder.start + 1 : before] + text[end:close]
        return text[: holder.start + 1] + (rest if rest.strip() else "") + text[close:]
    if number < len(holder.inner) - 1 or comma is not None:
        return text[:before] + text[end:]
    previous = _find_comma(text, holder.inner[number - 1].end, start)
    assert previous is not None
    return text[:previous] + text[previous + 1 : before] + text[end:]


def _find_node(node: _JsonNode, at: JsonPath) -> _JsonNode | None:
    for name in at:
        if not isinstance(node.value, dict) or (inner := node.at(name)) is None:
            return None
        node = inner
    return node


def _object_at(root: _JsonNode, at: JsonPath) -> _JsonNode:
    node = _find_node(root, at)
    if node is None or not isinstance(node.value, dict):
        raise ValueError(f"{'.'.join(at) or 'the file'} is not an object")
    return node


def _format_value(value: Any, indent: str, step: str) -> str:
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_step(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _blanks_start(text: str, at: int) -> int:
    """Return where the white space before a position begins."""
    return len(text[:at].rstrip(_BLANK))


def _find_comma(text: str, at: int, end: int) -> int | None:
    at = _skip_trivia(text, at)
    return at if at < end and text[at] == "," else None


# --- parsing JSON with comments ---

_BLANK = " \t\r\n\ufeff"
_TRIVIA = re.compile(r"[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLAIN = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')
_DEEPEST = 100


def _parse_document(text: str) -> _JsonNode:
    node = _parse_value(text, _skip_trivia(text, 0), 0)
    if _skip_trivia(text, node.end) != len(text):
        raise ValueError(f"not JSON: more after its end, at character {node.end}")
    return node


def _parse_value(text: str, at: int, level: int) -> _JsonNode:
    if level > _DEEPEST:
        raise ValueError("not JSON we can read: nested too deep")
    if text[at : at + 1] in ("{", "["):
        return _parse_container(text, at, level)
    found = _PLAIN.match(text, at)
    if found is None:
        raise ValueError(f"not JSON at character {at}")
    return _JsonNode(json.loads(found[0]), at, found.end())


def _parse_container(text: str, start: int, level: int) -> _JsonNode:
    is_object = text[start] == "{"
    node = _JsonNode({} if is_object else [], start)
    at = _skip_trivia(text, start + 1)
    while text[at : at + 1] != ("}" if is_object else "]"):
        node.keys.append(at)
        if is_object:
            key = _parse_value(text, at, 0)
            colon = _skip_trivia(text, key.end)
            if not isinstance(key.value, str) or text[colon : colon + 1] != ":":
                raise ValueError(f"not JSON at character {at}")
            node.names.append(key.value)
            at = _skip_trivia(text, colon + 1)
        inner = _parse_value(text, at, level + 1)
        node.inner.append(inner)
        at = _skip_trivia(text, inner.end)
        if text[at : at + 1] == ",":
            at = _skip_trivia(text, at + 1)
        elif text[at : at + 1] not in ("}", "]"):
            raise ValueError(f"not JSON at character {at}")
    node.end = at + 1
    values = [inner.value for inner in node.inner]
    node.value = dict(zip(node.names, values, strict=True)) if is_object else values
    return node


def _skip_trivia(text: str, at: int) -> int:
    """Return the next position that is neither white space nor a comment."""
    while found := _TRIVIA.match(text, at):
        at = found.end()
    return at


_BEGIN = "# everturn: begin (written by `everturn install`, taken out by `everturn uninstall`)"
_END = "# everturn: end"
_BLOCK = re.compile(rf"\n?{re.escape(_BEGIN)}\n.*?{re.escape(_END)}\n?", re.DOTALL)


class SettingsEntry(msgspec.Struct, frozen=True):
    """An entry in a file: for JSON its path and value, and how many names of the path existed before."""

    at: tuple[str, ...] = ()
    value: Any = None
    item: bool = False
    there: int = 0
    section: bool = False


def apply_entries(text: str, edits: Sequence[Edit]) -> tuple[str, tuple[SettingsEntry, ...], list[str]]:
    """Return the text with the edits, the new entries, and why others were left out. Raises ValueError for bad syntax."""
    entries: tuple[SettingsEntry, ...] = ()
    left: list[str] = []
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        text, entries, left = apply_entries(text.replace("\r\n", "\n"), edits)
        return text.replace("\n", "\r\n"), entries, left
    for edit in edits:
        if isinstance(edit, JsonSetting):
            text, entry, why = _apply_setting(text, edit)
        else:
            assert isinstance(edit, TomlSection)
            text, entry, why = _apply_section(text, edit)
        entries += (entry,) if entry else ()
        left += [why] if why else []
    return text, entries, left


def undo_entries(text: str, entries: Sequence[SettingsEntry]) -> str:
    """Return the text without the entries, whatever else has changed in it. Raises ValueError for bad syntax."""
    for entry in reversed(entries):
        if entry.section:
            text = _BLOCK.sub("", text)
        elif text.strip():
            text = _remove_entry(text, entry)
    return text


def _apply_setting(text: str, edit: JsonSetting) -> tuple[str, SettingsEntry | None, str]:
    if edit.only_new and text.strip():
        return text, None, ""
    text = text if text.strip() else "{}\n"
    existing = depth(text, edit.at)
    value = value_at(text, edit.at)
    entry = SettingsEntry(edit.at, edit.value, edit.item, existing)
    if edit.item:
        if isinstance(value, list) and edit.value in value:
            return text, None, ""
        return append_item(text, edit.at, edit.value), entry, ""
    if value is not None:
        why = f"{'.'.join(edit.at)} says something else; it is left as it is"
        return text, None, why if value != edit.value else ""
    return put_entry(text, edit.at, edit.value), entry, ""


def _apply_section(text: str, edit: TomlSection) -> tuple[str, SettingsEntry | None, str]:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    changed = f"{text}{gap}{_BEGIN}\n{edit.text}\n{_END}\n"
    tomllib.loads(text)
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return text, None, f"it has {edit.text.splitlines()[0]} already; it is left as it is"
    return changed, SettingsEntry(section=True), ""


def _remove_entry(text: str, entry: SettingsEntry) -> str:
    if entry.item:
        unwanted: Callable[[Any], bool] = lambda item: item == entry.value  # noqa: E731
        text = take_items(text, entry.at, unwanted)
        created = entry.at[entry.there :]
    else:
        text = take_entry(text, entry.at)
        created = entry.at[entry.there : -1]
    for level in range(len(created)):  # remove containers that were created for it and are empty
        at = entry.at[: entry.there + len(created) - level]
        if value_at(text, at) in ({}, []):
            text = take_entry(text, at)
    return text
