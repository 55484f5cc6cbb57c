"""What a person reads is plain technical English: retired words stay out, and every figure has its plural."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest


@cache
def words() -> ModuleType:
    path = Path(__file__).parent.parent / "scripts" / "words.py"
    spec = importlib.util.spec_from_file_location("everturn_words", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def test_no_retired_word_is_said() -> None:
    listed = list(words().sayings())
    assert len(listed) > 1_000
    found = [
        f"{one.path.name}:{one.line}: {one.text[:120]} → {instead}"
        for one in listed
        for instead in words().retired(one)
    ]
    assert found == []


@pytest.mark.parametrize(
    "said",
    [
        "no model is named; known are none",
        "66 will be deleted now by the agent itself",
        "2s in the middle, 37s for 95 of 100",
        "Where it stands",
        "called by what is no name of a tool at all",
    ],
)
def test_what_was_said_once_would_be_found(said: str) -> None:
    assert words().retired(words().Saying(Path("x"), 1, said))


def test_the_glossary_names_every_word_once() -> None:
    text = (Path(__file__).parent.parent / "docs" / "glossary.md").read_text("utf-8")
    terms = [
        term
        for row in re.findall(r"^\| (\*\*.*?) \|", text, re.MULTILINE)
        for term in re.findall(r"\*\*(.+?)\*\*", row)
    ]
    assert len(terms) == len(set(terms)) > 20


def test_the_extra_all_is_every_other_extra() -> None:
    import tomllib

    text = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    assert set(extras.pop("all")) == {one for needed in extras.values() for one in needed}
