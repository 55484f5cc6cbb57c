"""The documents: every link leads somewhere, every page is in the site, and the first steps print what their page says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

import pytest

from scripts.newcomer import PAGE, comparable, follow, make_program, newcomer_environment, typed

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
_CODE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"(`+).+?\1")
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.MULTILINE)


def links_of(document: Path) -> list[str]:
    text = _INLINE_CODE.sub("", _CODE.sub("", document.read_text("utf-8")))
    return [link for link in _LINK.findall(text) if not re.match(r"[a-z]+:", link)]


@cache
def anchors_of(document: Path) -> frozenset[str]:
    """The names that headings get, as GitHub and the site make them."""
    found: list[str] = []
    for heading in _HEADING.findall(_CODE.sub("", document.read_text("utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return frozenset(found)


def broken_links(document: Path, root: Path = ROOT) -> Iterator[str]:
    """Links of a document to files and headings that are not there; those of the site may not leave its folder."""
    docs = root / "docs"
    for link in links_of(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        is_there = target.exists() and target.is_relative_to(docs if docs in document.parents else root)
        if not is_there or (anchor and anchor not in anchors_of(target)):
            yield link


def test_every_link_leads_somewhere() -> None:
    assert {document.name: found for document in DOCUMENTS if (found := list(broken_links(document)))} == {}
    assert sum(len(links_of(document)) for document in DOCUMENTS) > 80


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Here")
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "# A page: `one`\n\n[a](#a-page-one) [b](#b-page) [c](gone.md) [d](https://example.org/x.md) `[e](code.md)` [f](../README.md)\n"
    )
    assert list(broken_links(page, tmp_path)) == ["#b-page", "gone.md", "../README.md"]


def pages_in(nav: Any) -> Iterator[str]:
    """The files that a nav names."""
    if isinstance(nav, str):
        yield nav
    for item in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages_in(item)


def test_every_page_is_in_the_site_once() -> None:
    named = list(pages_in(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]))
    assert len(named) == len(set(named))
    assert [page for page in named if not (DOCS / page).is_file()] == []
    assert sorted(page for page in named if "/" not in page) == sorted(path.name for path in DOCS.glob("*.md"))


@pytest.mark.slow
@pytest.mark.needs("module:zensical")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    copytree(DOCS, tmp_path / "docs")
    copyfile(ROOT / "zensical.toml", tmp_path / "zensical.toml")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "first-steps.html").is_file()


def test_the_first_steps_are_those_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = [command for command, _ in typed(PAGE.read_text("utf-8"))]
    assert len(commands) >= 6
    assert [command for command in commands if command not in readme] == []


def test_the_first_steps_print_what_their_page_says(tmp_path: Path) -> None:
    folder = tmp_path / "you" / "everturn"
    folder.mkdir(parents=True)
    env = newcomer_environment(folder.parent, make_program(tmp_path / "bin"))
    env["EVERTURN_HOME"] = str(folder / ".everturn")
    for command, said, printed in follow(PAGE.read_text("utf-8"), folder, env):
        assert comparable(printed) == comparable(said), command
    assert b"<!doctype html" in (folder / "last.html").read_bytes()[:100].lower()
