"""The text of a settings file with our entries in it, and without them again. Every other character stays.

Entries of JSON files are found again by their place and value, those of TOML files by the two comments around them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from everturn.derive import jsontext
from everturn.sources import Edit, JsonSetting, TomlSection

_BEGIN = "# everturn: begin (written by `everturn install`, taken out by `everturn uninstall`)"
_END = "# everturn: end"
_BLOCK = re.compile(rf"\n?{re.escape(_BEGIN)}\n.*?{re.escape(_END)}\n?", re.DOTALL)


class SettingsEntry(msgspec.Struct, frozen=True):
    """What was put into a file: of JSON its place and value, and how many of the names on the way were there before."""

    at: tuple[str, ...] = ()
    value: Any = None
    item: bool = False
    there: int = 0
    section: bool = False


def apply_entries(text: str, edits: Sequence[Edit]) -> tuple[str, tuple[SettingsEntry, ...], list[str]]:
    """The text with the edits, what was put in, and why others were not. Raises ValueError where it is no such file."""
    entries: tuple[SettingsEntry, ...] = ()
    left: list[str] = []
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        text, entries, left = apply_entries(text.replace("\r\n", "\n"), edits)
        return text.replace("\n", "\r\n"), entries, left
    for edit in edits:
        if isinstance(edit, JsonSetting):
            text, entry, why = _with_setting(text, edit)
        else:
            assert isinstance(edit, TomlSection)
            text, entry, why = _with_section(text, edit)
        entries += (entry,) if entry else ()
        left += [why] if why else []
    return text, entries, left


def undo_entries(text: str, entries: Sequence[SettingsEntry]) -> str:
    """The text without what was put in, whatever else has happened to it. Raises ValueError where it is no such file."""
    for entry in reversed(entries):
        if entry.section:
            text = _BLOCK.sub("", text)
        elif text.strip():
            text = _remove_entry(text, entry)
    return text


def _with_setting(text: str, edit: JsonSetting) -> tuple[str, SettingsEntry | None, str]:
    if edit.only_new and text.strip():
        return text, None, ""
    text = text if text.strip() else "{}\n"
    there = jsontext.depth(text, edit.at)
    value = jsontext.value_at(text, edit.at)
    entry = SettingsEntry(edit.at, edit.value, edit.item, there)
    if edit.item:
        if isinstance(value, list) and edit.value in value:
            return text, None, ""
        return jsontext.append_item(text, edit.at, edit.value), entry, ""
    if value is not None:
        why = f"{'.'.join(edit.at)} says something else; it is left as it is"
        return text, None, why if value != edit.value else ""
    return jsontext.put_entry(text, edit.at, edit.value), entry, ""


def _with_section(text: str, edit: TomlSection) -> tuple[str, SettingsEntry | None, str]:
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
        text = jsontext.take_items(text, entry.at, unwanted)
        made = entry.at[entry.there :]
    else:
        text = jsontext.take_entry(text, entry.at)
        made = entry.at[entry.there : -1]
    for level in range(len(made)):  # containers that were made for it go when nothing else came into them
        at = entry.at[: entry.there + len(made) - level]
        if jsontext.value_at(text, at) in ({}, []):
            text = jsontext.take_entry(text, at)
    return text
