"""Writes the columns of a table from the struct in `model/archive.py` that describes it, for `docs/schema.md`."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "everturn" / "model" / "archive.py"
TYPES = {"str": "text", "int": "integer", "bytes": "bytes", "int | None": "integer or null"}


def columns(struct: str) -> str:
    """A list of columns, with the notes that stand beside the fields."""
    body = re.search(rf"^class {struct}\(Struct.*?(?=^class |\Z)", SOURCE.read_text("utf-8"), re.M | re.S)
    assert body, f"there is no struct {struct}"
    fields = re.findall(r"^    (\w+): ([^=\n#]+?)(?: = [^#\n]*?)?(?:  # (.*))?$", body.group(), re.M)
    rows = [
        f"| `{name}` | {TYPES.get(kind, kind)} | {note.replace('|', chr(92) + '|')} |" for name, kind, note in fields
    ]
    return "\n".join(["| column | type | |", "|---|---|---|", *rows]) + "\n"
