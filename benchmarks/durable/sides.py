"""The agent of docs/comparison.md in each system: its lines, and whether it answers, also after it was killed in a tool."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.durable.peer import PeerPython, Unobtainable
from benchmarks.figures import Figure
from tests.model_server import Asked, Call, ModelServer, Says

ROOT = Path(__file__).parents[2]
SIDES: dict[str, str] = dict(
    re.findall(r"^```py\n# (.*?)\n(.*?)^```$", (ROOT / "docs" / "comparison.md").read_text("utf-8"), re.S | re.M)
)
#: The base address that the agents have in the documentation.
ADDRESS = "http://127.0.0.1:11434/v1"
ANSWER = "Bought honey."
CALLS = (Call("price", {"item": "honey"}), Call("reserve", {"item": "honey"}), Call("pay", {"amount": 9}))
_PACKAGES = {
    "LangGraph": ("langgraph", "langgraph-checkpoint-sqlite", "langchain", "langchain-openai"),
    "OpenAI Agents": ("openai-agents",),
    "Pydantic AI with DBOS": ("pydantic-ai-slim[openai,dbos]",),
}
#: What a human says after the crash: ours asks about the call in doubt first, and it was done.
_DECISIONS = {"everturn": "ny"}
#: In the place of what the tool returns: the effect, and once the end of the process.
_DEADLY = """__import__("pathlib").Path("ledger").open("a").write("reserved\\n")
    if not __import__("os").path.exists("killed"):
        __import__("pathlib").Path("killed").touch()
        __import__("os").kill(__import__("os").getpid(), 9)
    return "reserved"
"""


def lines(code: str) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for line in code.splitlines())


def answers(asked: Asked) -> Says:
    """Call one tool after another, then answer."""
    items = asked.body.get("messages") or asked.body.get("input") or []
    done = sum(item.get("role") == "tool" or item.get("type") == "function_call_output" for item in items)
    return Says(calls=(CALLS[done],)) if done < len(CALLS) else Says(ANSWER)


def side_by_side(python: PeerPython, folder: Path) -> Iterator[Figure]:
    """Each agent, run undisturbed, and killed in `reserve` and started again."""
    folder.mkdir()
    for name, code in SIDES.items():
        title = f"lines of the same agent, {name}"
        try:
            python.install(*_PACKAGES[name]) if name in _PACKAGES else None
        except Unobtainable as failure:
            yield Figure(title, lines(code), "lines", note=f"not run: {failure}")
            continue
        here = folder / name.replace(" ", "-")
        here.mkdir()
        interpreter = python.path if name in _PACKAGES else Path(sys.executable)
        with ModelServer(answers, strict=True) as server:
            whole = _run(interpreter, here, code, server.base, "y")
            for old in here.glob("orders.db*"):
                old.unlink()
            _run(interpreter, here, deadly(code), server.base)
            after = _run(interpreter, here, deadly(code), server.base, *_DECISIONS.get(name, "y"))
        ledger = here / "ledger"
        effects = len(ledger.read_text().split()) if ledger.exists() else 0
        note = f"{whole}; killed in `reserve` and started again: {after}, {effects} × reserved"
        yield Figure(title, lines(code), "lines", note=note)


def deadly(code: str) -> str:
    """The same agent, whose `reserve` ends the process the first time it is called."""
    changed = code.replace('return "reserved"\n', _DEADLY)
    assert changed != code
    return changed


def _run(interpreter: Path, folder: Path, code: str, base: str, *decisions: str) -> str:
    """Say how it ended."""
    (folder / "agent.py").write_text(code.replace(ADDRESS, base), "utf-8")
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src"), "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": base, "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }  # fmt: skip
    given = "".join(f"{one}\n" for one in decisions)
    done = subprocess.run(
        [interpreter, "agent.py"], cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    if done.stdout.strip().endswith(ANSWER):
        return "answers"
    return f"ends with {done.returncode}: {(done.stderr.strip().splitlines() or ['no words'])[-1][:120]}"
