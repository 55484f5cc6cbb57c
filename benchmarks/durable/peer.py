"""An environment with LangGraph in it, made for the occasion."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "langchain-core")


class Unobtainable(Exception):
    """Why there is none."""


def peer_python(folder: Path) -> tuple[Path, str]:
    """Its Python, and the version of LangGraph. Raises Unobtainable."""
    try:
        venv.create(folder / "peer", with_pip=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise Unobtainable(f"no environment can be made: {failure}") from failure
    python = folder / "peer" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unobtainable(f"cannot be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    ask = "import importlib.metadata as m; print(m.version('langgraph'))"
    return python, subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
