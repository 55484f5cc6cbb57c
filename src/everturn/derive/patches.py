"""The files a patch in the `*** Begin Patch` envelope is about: several agents hand such text to a tool of theirs."""

from __future__ import annotations

import re

_BEGIN = "*** Begin Patch"
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE)
_KINDS = {"Add": "create", "Update": "edit", "Delete": "delete"}
_LOOKED_AT = 1 << 20


def patched_files(text: str) -> list[tuple[str, str]]:
    """The neutral kind of each change and the path it is made to, in order; nothing for what is no patch."""
    if _BEGIN not in text:
        return []
    return [(_KINDS[verb], path) for verb, path in _FILE.findall(text[:_LOOKED_AT])]
