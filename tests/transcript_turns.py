"""Kinds of turns: one function for each thing that happens between a human, a client and a model."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from tests.transcript_records import Writer, edit, grep, said, shell, stamp
from tests.transcript_truth import Deed

_REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def _plain(writer: Writer) -> None:
    writer.user(writer.words.sentence(20), "human")
    writer.work(writer.dice.randint(1, 3))
    writer.end_turn()


def _list(writer: Writer) -> None:
    picture = base64.b64encode(writer.dice.randbytes(300)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    writer.user([said(writer.words.sentence()), image], "human")
    writer.work(1)


def _twice(writer: Writer) -> None:
    """Two prompts in a row are one request; between them a local command nobody answers."""
    writer.user(writer.words.sentence(), "human")
    writer.user("<local-command-caveat>Caveat: local commands follow</local-command-caveat>", isMeta=True)
    writer.user(
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>",
        "human",
    )
    writer.user("<local-command-stdout>Set model to large</local-command-stdout>")
    writer.user(writer.words.sentence(), "human")
    writer.say(writer.words.sentence())


def _command(writer: Writer) -> None:
    writer.user("<command-message>review</command-message>\n<command-name>/review</command-name>", "human")
    writer.user([said(writer.words.sentence(60))], isMeta=True)
    writer.work(1)


def _bang(writer: Writer) -> None:
    writer.user("<bash-input>make test</bash-input>", "human")
    writer.user(f"<bash-stdout>{writer.words.output(200)}</bash-stdout><bash-stderr></bash-stderr>")
    writer.user(writer.words.sentence(), "human")
    writer.work(1)


def _queued(writer: Writer) -> None:
    """Words put into the running turn: old clients have them only in the queue."""
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [writer.tool()])
    text = f"Also {writer.words.sentence()}"
    when = {"timestamp": stamp(writer.at), "sessionId": writer.session_id}
    writer.note("queue-operation", operation="enqueue", content=text, **when)
    writer.note("queue-operation", "queued", operation="remove", **when)
    if writer.age.attachments:
        writer.attach("queued_command", "echo", prompt=text, commandMode="prompt")
    writer.respond([], [writer.tool()])
    writer.note("queue-operation", operation="enqueue", content=(later := f"Later {writer.words.sentence()}"), **when)
    writer.say(writer.words.sentence())
    writer.note("queue-operation", operation="dequeue", **when)
    writer.user(later, "human")
    writer.say(writer.words.sentence())


def _compacted(writer: Writer) -> None:
    """A compaction in the middle of a turn is no boundary."""
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [writer.tool(), writer.tool()])
    before, writer.last_uuid = writer.last_uuid, None
    metadata = {"trigger": "auto", "preTokens": 150_000}
    writer.system(
        "compact_boundary", content="Conversation compacted", logicalParentUuid=before, compactMetadata=metadata
    )
    text = f"This session is being continued from a previous conversation that ran out of context. {writer.words.sentence(60)}"
    writer.user(text, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    writer.work(1)


def _interrupted(writer: Writer) -> None:
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [shell(writer.words, 100)], lost=True)
    writer.user([said("[Request interrupted by user for tool use]")])


def _refused(writer: Writer) -> None:
    writer.user(writer.words.sentence(), "human")
    change = edit(writer.words, 100)
    sibling = replace(
        grep(writer.words, 100),
        output="Sibling tool call errored",
        outcome="Sibling tool call errored",
        error_class="cancelled",
    )
    writer.respond(
        [], [replace(change, output=_REFUSED, outcome="User rejected tool use", error_class="rejected"), sibling]
    )
    writer.user([said("[Request interrupted by user for tool use]")])


def _failed(writer: Writer) -> None:
    """The provider fails: its error stands where the answer would."""
    writer.user(writer.words.sentence(), "human")
    writer.system("api_error", error={"status": 529}, retryInMs=500, retryAttempt=1, maxRetries=10)
    content = [said("API Error: 529 overloaded")]
    message = {"model": "<synthetic>", "id": writer.words.uuid(), "role": "assistant", "type": "message", "content": content,
               "stop_reason": "stop_sequence", "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
    writer.event("assistant", Deed("notice"), message=message, isApiErrorMessage=True)


def _notified(writer: Writer) -> None:
    """A background task wakes the model: no human, no turn."""
    writer.user(writer.words.sentence(), "human")
    writer.work(1)
    more: dict[str, Any] = {"origin": {"kind": "task-notification"}} if writer.age.attachments else {}
    writer.user(f"<task-notification>\n<task-id>b1</task-id>\n{writer.words.sentence()}\n</task-notification>", **more)
    writer.work(1)


def _hooked(writer: Writer) -> None:
    """Hooks and reminders around a call."""
    writer.user(writer.words.sentence(), "human")
    writer.note(
        "file-history-snapshot", messageId=writer.last_uuid, snapshot={"trackedFileBackups": {}}, isSnapshotUpdate=False
    )
    if writer.age.progress:
        for kind in ("hook_progress", "bash_progress"):
            data = {"type": kind, "hookEvent": "PostToolUse", "command": "make lint"}
            writer.event("progress", Deed("known"), data=data, toolUseID="x", parentToolUseID="x")
    if writer.age.attachments:
        writer.attach(
            "hook_success",
            hookName="PostToolUse:Edit",
            hookEvent="PostToolUse",
            stdout="ok",
            stderr="",
            exitCode=0,
            command="make lint",
        )
        writer.attach("nested_memory", path="AGENTS.md", content=writer.words.sentence(), displayPath="AGENTS.md")
    writer.work(1)
    writer.end_turn()


def _early(writer: Writer) -> None:
    """A result that stands before its call in the file."""
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [replace(grep(writer.words, 100), output="found")])
    writer.records[-2:] = reversed(writer.records[-2:])
    writer.say(writer.words.sentence())


TURNS = (
    _plain,
    _queued,
    _list,
    _compacted,
    _twice,
    _interrupted,
    _command,
    _refused,
    _hooked,
    _bang,
    _failed,
    _notified,
    _early,
)
