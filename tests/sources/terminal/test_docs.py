"""docs/terminal.md: its example does what it says, and what it names is there."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from dataclasses import fields
from importlib import import_module
from io import StringIO
from pathlib import Path

from everturn.sources.terminal import rounds
from everturn.sources.terminal.recordings import timing_names
from everturn.sources.terminal.rows import without_secret

PAGE = (Path(__file__).parents[3] / "docs" / "terminal.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_says() -> None:
    code, printed = re.search(r"```python\n(.*?)```", PAGE, re.S), re.search(r"```text\n(.*?)```", PAGE, re.S)
    assert code is not None
    assert printed is not None
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code[1], "docs/terminal.md", "exec"), {})
    assert out.getvalue() == printed[1]
    assert "edited" in printed[1] or "read" in printed[1]


def test_every_public_name_is_there_and_explained() -> None:
    table = PAGE[PAGE.index("| name | is |") :]
    elsewhere = re.findall(r"^\| ([^|\n]+) in `(everturn[a-z_.]+)` \|", table, re.M)
    for cell, module in elsewhere:
        assert all(hasattr(import_module(module), name) for name in re.findall(r"`([A-Z][A-Za-z_]+)`", cell)), cell
    names = re.findall(r"`([A-Z][A-Za-z_]+)`", re.sub(r"^\| [^|\n]+ in `everturn[a-z_.]+` \|", "", table, flags=re.M))
    assert {"TurnParser", "TurnRound", "ArtifactAction", "MAX_EVIDENCE_SEARCHES"} <= set(names)
    assert [name for name in names if not hasattr(rounds, name)] == []
    for shown in (rounds.TurnRound, rounds.ArtifactAction):
        assert [field.name for field in fields(shown) if f"`{field.name}`" not in table] == []


def test_timing_files_lie_where_the_page_says() -> None:
    for ending in re.findall(r"`([.-][a-z]+)`", PAGE[PAGE.index("A timing file") : PAGE.index("with or without")]):
        assert f"talk.typescript{ending}" in timing_names("talk.typescript")
        assert f"talk{ending}" in timing_names("talk.typescript")


def test_what_is_typed_at_the_prompts_the_page_names_is_left_out() -> None:
    for prompt in ("[sudo] password for ann:", "Password:", "ann@box's password:", "Enter passphrase for key:"):
        assert without_secret(f"{prompt} walrus") == prompt
