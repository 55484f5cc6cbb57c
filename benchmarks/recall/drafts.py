"""Writes made-up sessions of an agent as Claude Code records: prompts, answers, calls, compactions, copies of other sessions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.recall.questions import session_id

RECALL = "mcp__everturn__conversation_recall"


class SessionDraft:
    """A session that grows record by record. Ids follow from its name, so every run writes the same bytes."""

    def __init__(self, name: str, workspace: str, at: datetime) -> None:
        self.native_id = session_id(name)
        self.workspace = workspace
        self.at = at
        self.records: list[dict[str, Any]] = []
        self._client = "2.1.50"

    def prompt(self, text: str, **more: Any) -> None:
        """What the person says."""
        self._add("user", {"role": "user", "content": text}, **more)

    def say(self, text: str) -> None:
        """What the agent answers."""
        self._respond({"type": "text", "text": text})

    def call(self, tool: str, given: dict[str, Any], output: str | None) -> None:
        """A call with its result; without one as long as it runs."""
        call = f"toolu_{len(self.records)}_{self.native_id[:8]}"
        self._respond({"type": "tool_use", "id": call, "name": tool, "input": given})
        if output is not None:
            block = {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": output}]}
            self._add("user", {"role": "user", "content": [block]})

    def compact(self, summary: str) -> None:
        """The client cuts the window and goes on with a summary."""
        about = {"trigger": "auto", "preTokens": 150_000}
        self._add("system", None, subtype="compact_boundary", content="Conversation compacted", compactMetadata=about)
        text = f"This session is being continued from a previous conversation that ran out of context. {summary}"
        self.prompt(text, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def wait(self, **time: float) -> None:
        """Let time pass."""
        self.at += timedelta(**time)

    def resume(self) -> None:
        """The person comes back after some days, with a newer client."""
        self.wait(days=3)
        self._client = "2.1.59"

    def copy(self, name: str, keep_id: bool = False) -> SessionDraft:
        """A session in a file of its own that begins with everything so far; copied records may keep the old id."""
        new = SessionDraft(name, self.workspace, self.at + timedelta(minutes=10))
        new.records = [one if keep_id else {**one, "sessionId": new.native_id} for one in self.records]
        return new

    def write(self, folder: Path) -> Path:
        """The file, as it stands now."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.native_id}.jsonl"
        path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in self.records), "utf-8")
        return path

    def _respond(self, block: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": [block], "model": "model-1", "type": "message"}
        message["id"] = f"msg_{self.native_id}_{len(self.records)}"
        self._add("assistant", message)

    def _add(self, kind: str, message: dict[str, Any] | None, **more: Any) -> None:
        self.wait(seconds=20)
        record: dict[str, Any] = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": self.workspace,
            "sessionId": self.native_id, "version": self._client, "type": kind,
            "uuid": session_id(f"{self.native_id}/{len(self.records)}"), "timestamp": iso_time(self.at),
        }  # fmt: skip
        self.records.append({**record, **({"message": message} if message else {}), **more})


def iso_time(at: datetime) -> str:
    """As agents write it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
