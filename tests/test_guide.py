"""docs/guide.md: its programs are written, its commands typed, and what it says they print is compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.durable.sides import ADDRESS, SIDES, deadly, lines
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "guide.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python|console)\n(.*?)^```$", GUIDE, re.S | re.M)
CALLS = (Call("price", {"item": "honey"}), Call("reserve", {"item": "honey"}), Call("pay", {"amount": 9}))


def answers(asked: Asked) -> Says:
    """Call what is offered, one tool after another, then answer."""
    offered = {tool["function"]["name"] for tool in asked.body.get("tools") or ()}
    if "buyer" in offered:
        wanted: tuple[Call, ...] = (Call("buyer", {"task": "honey"}), Call("deliver", {"order": {"item": "honey"}}))
    else:
        wanted = tuple(call for call in CALLS if call.name in offered)
    done = sum(message["role"] == "tool" for message in asked.body["messages"])
    return Says(calls=(wanted[done],)) if done < len(wanted) else Says("Bought honey.")


def typed(block: str) -> list[tuple[str, str]]:
    """Each command, and what it is said to print."""
    return [(words, said.strip()) for words, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)]


@pytest.mark.slow
def test_everything_in_the_guide_works_as_it_says(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("python", ""), ("everturn", "-m everturn")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (tools / name).chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    with ModelServer(answers, strict=True) as server:
        for kind, block in BLOCKS:
            if kind == "python":
                name = block.partition("\n")[0].removeprefix("# ")
                (tmp_path / name).write_text(block.replace(ADDRESS, server.base), "utf-8")
                if name == "bank.py":
                    subprocess.run(["python", name], cwd=tmp_path, env=env, check=True)
                continue
            for words, said in typed(block):
                done = subprocess.run(
                    words, cwd=tmp_path, env=env, shell=True, capture_output=True, text=True, check=False
                )
                assert _lines(said) in _lines(done.stdout + done.stderr), (words, done.stdout, done.stderr)


@pytest.mark.slow
def test_our_side_of_the_comparison_continues_after_a_crash_and_reserves_once(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    with ModelServer(answers, strict=True) as server:
        (tmp_path / "side.py").write_text(deadly(SIDES["everturn"]).replace(ADDRESS, server.base), "utf-8")
        words = [sys.executable, "side.py"]
        killed = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, check=False)
        done = subprocess.run(words, cwd=tmp_path, env=env, input="n\ny\n", capture_output=True, text=True, check=True)
    assert killed.returncode == -9
    assert done.stdout.endswith("Bought honey.\n")
    assert (tmp_path / "ledger").read_text() == "reserved\n"


def _lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


@pytest.mark.parametrize("page", ["guide.md", "comparison.md"])
def test_the_lines_beside_others_are_counted_as_the_pages_say(page: str) -> None:
    counts = {name: lines(code) for name, code in SIDES.items()}
    said = " ".join((ROOT / "docs" / page).read_text("utf-8").split())
    assert ", ".join(f"{name} {count}" for name, count in counts.items()) in said
    assert counts["everturn"] == min(counts.values())


def test_no_program_of_the_guide_is_too_long_to_read() -> None:
    assert max(len(block.splitlines()) for kind, block in BLOCKS if kind == "python") <= 50
