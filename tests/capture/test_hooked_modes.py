"""What stays of a workspace that hooks have told about, by its mode: of `structure` no word and no folder, of `off` nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.store.contract import open_store
from tests.capture.history import SID, History

CANARY = "qzwvxkjyq"


class Machine:
    """A person's machine with one mode for everything, an agent's history full of one word, and hooks that tell of it."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.home = folder / "ev"
        self.home.mkdir()
        (self.home / "config.toml").write_text(f'[capture]\nmode = "{mode}"\n')
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "EVERTURN_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        history = History(folder / ".claude")
        call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": f"cat {CANARY}"}}
        end = {"type": "tool_result", "tool_use_id": "c1", "content": f"Exit code 1\n{CANARY}", "is_error": True}
        self.cwd = f"/home/{CANARY}/shop"
        self.transcript = history.write(
            history.line("user", f"{CANARY} please", cwd=self.cwd, gitBranch=CANARY)
            + history.line("assistant", [{"type": "text", "text": CANARY}, call])
            + history.line("user", [end])
        )

    def tell(self, event: str, *words: str, **more: Any) -> None:
        """As an agent calls its hook."""
        about = {"session_id": SID, "transcript_path": str(self.transcript), "cwd": self.cwd, "hook_event_name": event}
        self._run("everturn.hook", *words, told=json.dumps(about | more).encode())

    def everturn(self, *words: str) -> None:
        self._run("everturn", *words)

    def canaries(self) -> list[Path]:
        """Files of ours that hold the word, anywhere in their bytes."""
        files = [path for path in self.home.rglob("*") if path.is_file()]
        assert self.home / "archive.db" in files
        return [path for path in files if CANARY.encode() in path.read_bytes()]

    def _run(self, module: str, *words: str, told: bytes = b"") -> None:
        subprocess.run(
            [sys.executable, "-m", module, *words], input=told, env=self.env, check=True, capture_output=True
        )


@pytest.mark.few(1)
@pytest.mark.parametrize(("mode", "calls"), [("structure", 1), ("off", 0)])
def test_hooks_bring_no_word_and_no_folder_into_a_workspace_that_wants_none(
    tmp_path: Path, mode: str, calls: int
) -> None:
    machine = Machine(tmp_path, mode)
    machine.tell("SessionStart", "--where-you-were", source="startup")
    machine.tell("UserPromptSubmit", "--hints", prompt=f"{CANARY} as we discussed")
    machine.tell("PostToolUse", tool_name="Bash", tool_use_id="c1", tool_input=CANARY, tool_response=CANARY)
    machine.tell("Stop")
    assert machine.home / "state" / "spool" / "hooks.jsonl" in (machine.home / "state").rglob("*")
    machine.everturn("sync")
    machine.everturn("drain")
    machine.everturn("export", "--analytics", "--as", "csv", "--out", str(machine.home / "numbers"))
    assert machine.canaries() == []
    store = open_store(str(machine.home / "archive.db"))
    heard = [(row.event, row.own is not None) for row in store.hook_events() if row.call_id]
    assert heard == [("PostToolUse", True)] * calls
    assert sum(row[0] for row in store.totals("tool_total").values()) == calls
    store.close()


def test_the_word_is_found_where_everything_is_kept(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "full")
    machine.everturn("sync")
    assert machine.canaries()
