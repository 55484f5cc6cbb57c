"""Histories of an agent made up from nothing, with the truth about them.

`write_history` writes a tree of transcripts in the shapes that real clients of several ages leave behind, and returns
what is in it: every record is made together with a `Deed` that says what it means, and the truth is summed up from the
deeds, never read back from the files. The same seed gives the same bytes.

`stream_file` writes one file of any size quickly, `append_turn` makes a file grow, `alter_copy` makes another history out
of a line of a real one. No test framework is needed here: benchmarks use it too.
"""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

Tokens = tuple[int, int, int, int]  # input, output, cache read, cache write
Touches = tuple[tuple[str, str], ...]  # (action, path)
Event = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START = 1_767_600_000_000  # 2026-01-05T08:00:00Z


# the truth ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Deed:
    """What one record means."""

    what: str = "other"  # human | queued | model | notice (an error in the model's place) | result | other | known
    uuid: str = ""
    at: int | None = None
    response: str = ""
    tokens: Tokens = (0, 0, 0, 0)
    calls: tuple[tuple[str, str], ...] = ()  # (call id, name)
    ends: str = ""  # the call this is the result of
    error_class: str = ""
    reported_ms: int | None = None
    touches: Touches = ()


@dataclass
class CallTruth:
    """One tool call."""

    call_id: str
    name: str
    turn: int
    batch: int  # number within its response
    batch_size: int = 1
    status: str = "open"
    error_class: str = ""
    duration_ms: int | None = None


@dataclass
class SessionTruth:
    """One session: counts are of this file alone, with what it inherited."""

    native_id: str
    path: Path
    kind: str = "main"
    parent: str = ""
    workspace: str = ""
    title: str = ""
    client: str = ""  # the last one
    turns: int = 0
    steps: int = 0
    messages: int = 0  # records that say something, and words that only the queue has
    prompts: int = 0  # typed by a human, queued ones too
    calls: list[CallTruth] = field(default_factory=list)
    artifacts: list[tuple[int, str, str]] = field(default_factory=list)  # (turn, action, path)
    tokens: Tokens = (0, 0, 0, 0)  # each response once
    forked_from: str = ""
    shared: int = 0  # messages that are copies
    marks: dict[str, str] = field(default_factory=dict)  # field of the index → a word that is nowhere else

    @property
    def parallel_pairs(self) -> int:
        """Pairs of calls that were issued in one response."""
        return sum(call.batch for call in self.calls)

    @property
    def errors(self) -> int:
        """Calls that failed."""
        return sum(call.status == "error" for call in self.calls)


@dataclass
class Truth:
    """A whole history."""

    root: Path
    sessions: dict[str, SessionTruth] = field(default_factory=dict)  # by native id
    files: list[Path] = field(default_factory=list)  # transcripts
    notes: list[Path] = field(default_factory=list)  # files beside them: about subagents, and outputs kept apart
    lines: int = 0
    glued: int = 0  # records beyond the first on one line
    types: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """Bytes of all transcripts."""
        return sum(path.stat().st_size for path in self.files)


def tell(truth: SessionTruth, deeds: list[Deed]) -> SessionTruth:
    """Sum up what was done in a session."""
    told = [deed for deed in deeds if deed.what != "known"]
    truth.messages = len(told)
    truth.prompts = sum(deed.what in ("human", "queued") for deed in told)
    open_calls: dict[str, tuple[CallTruth, int | None]] = {}
    early = {deed.ends: deed for deed in told if deed.ends}
    responses: dict[str, list[CallTruth]] = {}
    used: dict[str, Tokens] = {}
    turn, answered = 0, False
    for deed in told:
        if deed.what == "human" and answered:
            turn, answered = turn + 1, False
        answered = answered or deed.what in ("model", "notice")
        if deed.what == "model":
            batch = responses.setdefault(deed.response, [])
            used[deed.response] = max(used.get(deed.response, deed.tokens), deed.tokens)
            for call_id, name in deed.calls:
                batch.append(CallTruth(call_id, name, turn, len(batch)))
                open_calls[call_id] = batch[-1], deed.at
    for call_id, (call, started) in open_calls.items():
        if call_id in early:
            _end(truth, call, started, early[call_id])
    truth.turns, truth.steps = turn + 1 if told else 0, len(responses)
    truth.calls = [call for batch in responses.values() for call in batch]
    for batch in responses.values():
        for call in batch:
            call.batch_size = len(batch)
    truth.tokens = tuple(map(sum, zip(*used.values(), strict=True))) if used else (0, 0, 0, 0)  # type: ignore[assignment]
    return truth


def _end(truth: SessionTruth, call: CallTruth, started: int | None, deed: Deed) -> None:
    call.status, call.error_class = ("error", deed.error_class) if deed.error_class else ("ok", "")
    measured = deed.at - started if deed.at is not None and started is not None else None
    call.duration_ms = deed.reported_ms if deed.reported_ms is not None else measured
    if not deed.error_class:
        truth.artifacts += [(call.turn, action, path) for action, path in dict.fromkeys(deed.touches)]


# words ----------------------------------------------------------------------------------------------------------------
_PROSE = (
    "the parser reads every line of a session and keeps what it cannot understand because nothing may be lost when files "
    "grow shrink move or vanish while another process is writing to them so we count check compare repair explain and "
    "measure before anything is changed in tests docs config network storage cache index queue worker request response"
).split()
_NAMES = (
    "parse_json_line read_chunk SessionStore append_turn find_roots MessageRow load_config retry_after open_archive "
    "test_a_broken_line flushQueue httpClient max_retries auth.py store/sqlite.py README.md Makefile main() i18n x86_64"
).split()
_FOREIGN = ("会话记录", "检索结果为空", "セッションを再開する", "파일을 읽는 중", "Größe geändert", "déjà vu", "—", "→ ok", "✓")
_FOLDERS = ("src", "tests", "docs", "src/store", "lib/net", "web/app")


class Words:
    """Text of a few kinds."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self._lines = [self.sentence(dice.randint(4, 16)) for _ in range(60)]

    def sentence(self, size: int = 12) -> str:
        """Prose with names of code and, now and then, another script in it."""
        words = self.dice.choices(_PROSE, k=size)
        words[self.dice.randrange(size)] = self.dice.choice(_NAMES)
        if self.dice.random() < 0.15:
            words.append(self.dice.choice(_FOREIGN))
        return " ".join(words)

    def output(self, size: int) -> str:
        """About so many bytes of what a program prints."""
        count = max(1, size // 70)
        lines = self.dice.choices(self._lines, k=count)
        return "\n".join(f"{number:4} {line}" for number, line in enumerate(lines, self.dice.randrange(1000)))

    def path(self, ending: str = "py") -> str:
        """A file of the workspace."""
        return f"{self.dice.choice(_FOLDERS)}/{self.dice.choice(_PROSE)}_{self.dice.randrange(100)}.{ending}"

    def uuid(self) -> str:
        """A random id."""
        bits = f"{self.dice.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"

    def key(self, kind: str) -> str:
        """An id as the provider makes them."""
        letters = "".join(self.dice.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", k=22))
        return f"{kind}_01{letters}"


def stamp(ms: int) -> str:
    """A time as it stands in records."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# tools ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Tool:
    """A call with its result."""

    name: str
    input: Event
    output: Any
    outcome: Any = None  # what the client notes beside the result
    error_class: str = ""
    reported_ms: int | None = None
    touches: Touches = ()


_REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def _shell(words: Words, size: int) -> Tool:
    old, new = words.path(), words.path()
    command, output, touches = words.dice.choice(
        (
            ("git status --short", words.output(size), ()),
            (f"python -m pytest {old} -q", words.output(size), ()),
            (f"cat {old}", words.output(size), (("read", old),)),
            (f"rm -f {old} && ls", words.output(size), (("deleted", old),)),
            (f"mv {old} {new}", "", (("deleted", old), ("created", new))),
            (f"cat > {new} <<'EOF'\nrm everything\nEOF", "", (("created", new),)),
            ("git commit -qm 'Keep going'", f" 1 file changed\n create mode 100644 {new}", (("created", new),)),
        )
    )
    outcome = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return Tool("Bash", {"command": command, "description": words.sentence(5)}, output, outcome, touches=touches)


def _read(words: Words, size: int) -> Tool:
    path = "/home/ann/shop/" + words.path()
    text = words.output(size)
    file = {"filePath": path, "content": text, "numLines": 9, "startLine": 1, "totalLines": 9}
    return Tool("Read", {"file_path": path}, text, {"type": "text", "file": file}, touches=(("read", path),))


def _edit(words: Words, size: int) -> Tool:
    path, old, new = "/home/ann/shop/" + words.path(), words.sentence(), words.sentence()
    outcome = {"filePath": path, "oldString": old, "newString": new, "originalFile": words.output(size // 2),
               "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-" + old, "+" + new]}],
               "userModified": False, "replaceAll": False}  # fmt: skip
    given = {"file_path": path, "old_string": old, "new_string": new}
    return Tool("Edit", given, f"The file {path} has been updated.", outcome, touches=(("edited", path),))


def _write(words: Words, size: int) -> Tool:
    path, text = "/home/ann/shop/" + words.path("md"), words.output(size)
    outcome = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
    return Tool("Write", {"file_path": path, "content": text}, f"File created successfully at: {path}", outcome, touches=(("created", path),))


def _overwrite(words: Words, size: int) -> Tool:
    tool = _write(words, size)
    path = tool.touches[0][1]
    return replace(tool, outcome={**tool.outcome, "type": "update"}, touches=(("edited", path),))


def _grep(words: Words, size: int) -> Tool:
    names = [words.path() for _ in range(max(1, size // 60))]
    outcome = {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)}
    return Tool("Grep", {"pattern": words.dice.choice(_NAMES)}, "\n".join(names), outcome)


def _glob(words: Words, size: int) -> Tool:
    names = [words.path() for _ in range(max(1, size // 60))]
    spent = words.dice.randint(3, 400)
    outcome = {"filenames": names, "durationMs": spent, "numFiles": len(names), "truncated": False}
    return Tool("Glob", {"pattern": "**/*.py"}, "\n".join(names), outcome, reported_ms=spent)


def _other(words: Words, size: int) -> Tool:
    blocks = [{"type": "text", "text": words.output(size)}]
    return Tool("mcp__browser__open_page", {"url": "http://localhost:5173/", "note": words.dice.choice(_FOREIGN)}, blocks, blocks)


def _failing(words: Words, size: int) -> Tool:
    if words.dice.random() < 0.5:
        text = f"Exit code 1\n{words.output(size)}"
        return Tool("Bash", {"command": f"rm {words.path()}"}, text, f"Error: {text}", "exit_status")
    text = "<tool_use_error>File does not exist.</tool_use_error>"
    return Tool("Read", {"file_path": words.path()}, text, "Error: File does not exist.", "not_found")


_TOOLS: tuple[Callable[[Words, int], Tool], ...] = (_shell, _read, _edit, _write, _overwrite, _grep, _glob, _other)


# one session ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Age:
    """What clients of some time write."""

    client: str
    layout: str  # of subagents: inline | flat | nested
    task: str = "Task"
    interleaved: bool = False  # results stand between the calls of one response
    progress: bool = False
    attachments: bool = False


AGES = (
    Age("2.0.5", "inline"),
    Age("2.0.35", "flat"),
    Age("2.1.49", "nested", interleaved=True, progress=True),
    Age("2.1.150", "nested", "Agent", interleaved=True, attachments=True),
)


class Writer:
    """Writes the records of one file and notes their deeds, by session."""

    def __init__(self, truth: SessionTruth, words: Words, age: Age, start: int, output: int = 400) -> None:
        self.truth, self.words, self.dice, self.age = truth, words, words.dice, age
        self.at, self.output = start, output
        self.session_id = truth.parent or truth.native_id
        self.agent_id = truth.native_id.rpartition("agent-")[2] if truth.kind == "subagent" else ""
        self.client = age.client
        self.last_uuid: str | None = None
        self.records: list[tuple[Event, Deed]] = []
        self.glued: set[int] = set()  # numbers of records that stand on the line of the one before
        self.chains: dict[str, list[Deed]] = {}  # deeds of subagents inside this file

    # records ----------------------------------------------------------------------------------------------------------
    def event(self, kind: str, deed: Deed, **more: Any) -> str:
        """A record with the usual envelope; its id."""
        self.at += self.dice.randint(20, 3000)
        uuid = self.words.uuid()
        record: Event = {
            "parentUuid": self.last_uuid, "isSidechain": bool(self.agent_id), "userType": "external", "cwd": self.truth.workspace,
            "sessionId": self.session_id, "version": self.client, "gitBranch": "main", "type": kind, **more,
            "uuid": uuid, "timestamp": stamp(self.at),
        }  # fmt: skip
        if self.agent_id:
            record["agentId"] = self.agent_id
        self.records.append((record, replace(deed, uuid=uuid, at=self.at)))
        self.last_uuid = uuid
        return uuid

    def note(self, kind: str, what: str = "known", **more: Any) -> None:
        """A record without an envelope."""
        self.records.append(({"type": kind, **more}, Deed(what)))

    def user(self, content: Any, what: str = "other", **more: Any) -> str:
        """A record in the user's role."""
        if what == "human" and self.age.attachments:
            more |= {"origin": {"kind": "human"}, "promptSource": "typed"}
        return self.event("user", Deed(what), message={"role": "user", "content": content}, **more)

    def system(self, subtype: str, **more: Any) -> None:
        """A notice of the client."""
        self.event("system", Deed(), subtype=subtype, level="info", **more)

    def attach(self, kind: str, **more: Any) -> None:
        """Something the client puts into the conversation, or notes beside it."""
        self.event("attachment", Deed(), attachment={"type": kind, **more})

    # responses --------------------------------------------------------------------------------------------------------
    def respond(self, blocks: list[Event], tools: list[Tool], lost: bool = False) -> None:
        """One response of the model with the calls it makes; `lost` ones never get a result."""
        response, usage = self.words.key("msg"), [self.dice.randint(1, 30), 1, self.dice.randint(0, 90_000), self.dice.randint(0, 3000)]
        calls = [({"type": "tool_use", "id": self.words.key("toolu"), "name": tool.name, "input": tool.input}, tool) for tool in tools]
        groups: list[list[Event]] = [[block] for block in (*blocks, *(call for call, _ in calls))]
        if len(groups) > 1 and self.dice.random() < 0.1:
            groups = [[block for group in groups for block in group]]  # all in one record: rare, but it happens
        waiting = dict(zip((call["id"] for call, _ in calls), tools, strict=True))
        for group in groups:
            usage[1] += self.dice.randint(0, 300)
            uuid = self._part(response, group, usage, bool(tools))
            ready = [block["id"] for block in group if block["type"] == "tool_use"]
            if self.age.interleaved and not lost and self.dice.random() < 0.8:
                for call_id in ready:
                    self.result(call_id, waiting.pop(call_id), uuid)
        for call_id, tool in waiting.items() if not lost else ():
            self.result(call_id, tool, self.last_uuid or "")

    def _part(self, response: str, blocks: list[Event], usage: list[int], more: bool) -> str:
        message = {
            "model": "model-large-1", "id": response, "type": "message", "role": "assistant", "content": blocks,
            "stop_reason": ("tool_use" if more else "end_turn") if self.age.attachments else None, "stop_sequence": None,
            "usage": {"input_tokens": usage[0], "cache_creation_input_tokens": usage[3], "cache_read_input_tokens": usage[2],
                      "output_tokens": usage[1], "service_tier": "standard"},
        }  # fmt: skip
        calls = tuple((block["id"], block["name"]) for block in blocks if block["type"] == "tool_use")
        deed = Deed("model", response=response, tokens=(usage[0], usage[1], usage[2], usage[3]), calls=calls)
        return self.event("assistant", deed, message=message, requestId="req_" + response[4:])

    def result(self, call_id: str, tool: Tool, caller: str) -> None:
        """The result of a call."""
        block: Event = {"tool_use_id": call_id, "type": "tool_result", "content": tool.output}
        if tool.error_class:
            block["is_error"] = True
        bare = bool(self.agent_id)  # subagents note nothing beside a result
        more: Event = {} if bare or tool.outcome is None else {"toolUseResult": tool.outcome}
        if self.age.interleaved:
            more["sourceToolAssistantUUID"] = caller
        deed = Deed("result", ends=call_id, error_class=tool.error_class, reported_ms=None if bare else tool.reported_ms, touches=tool.touches)
        self.event("user", deed, message={"role": "user", "content": [block]}, **more)

    def say(self, text: str) -> None:
        """An answer without calls."""
        self.respond([_text(text)], [])

    # turns ------------------------------------------------------------------------------------------------------------
    def work(self, steps: int, marks: dict[str, str] | None = None) -> None:
        """Some steps with calls, and an answer."""
        for number in range(steps):
            tools = [self.tool() for _ in range(self.dice.choice((1, 1, 2, 3, 5)))]
            if marks and not number:
                tools[0] = _marked(_grep(self.words, self.output), marks)
            thought = self.words.sentence(30) + (f" {marks['thinking']}" if marks and not number else "")
            thinking = {"type": "thinking", "thinking": thought, "signature": base64.b64encode(self.dice.randbytes(90)).decode()}
            self.respond([thinking], tools)
        self.say(self.words.sentence(40) + (f" {marks['answer']}" if marks else ""))

    def tool(self) -> Tool:
        """Any tool; about one in eight fails."""
        if self.dice.random() < 0.12:
            return _failing(self.words, self.output)
        # Without a note of the client nobody can tell that a file was there before it was written.
        return self.dice.choice([make for make in _TOOLS if not (self.agent_id and make is _overwrite)])(self.words, self.output)

    def end_turn(self) -> None:
        """What the client notes at the end of a turn."""
        if self.age.progress or self.age.attachments:
            self.system("stop_hook_summary", hookCount=1, hookInfos=[{"command": "make lint"}], hookErrors=[], preventedContinuation=False)
            self.system("turn_duration", durationMs=self.dice.randint(100, 90_000))

    def resume(self) -> None:
        """Some days later the file grows again, with a newer client; old ones glue a summary to the last line."""
        self.at += self.dice.randint(1, 5) * 86_400_000
        self.client = self.client[:-1] + "9"
        if self.age.layout == "inline":
            self.glued.add(len(self.records))
            self.truth.title = self.words.sentence(5)
            self.note("summary", "other", summary=self.truth.title, leafUuid=self.last_uuid)

    def lines(self) -> bytes:
        """The file."""
        parts = []
        for number, (record, _) in enumerate(self.records):
            if number and number not in self.glued:
                parts.append(b"\n")
            parts.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
        return b"".join((*parts, b"\n"))


def _text(text: str) -> Event:
    return {"type": "text", "text": text}


def _marked(tool: Tool, marks: dict[str, str]) -> Tool:
    return replace(tool, input={**tool.input, "pattern": marks["tool_input"]}, output=f"{tool.output}\n{marks['tool_output']}")


# kinds of turns -------------------------------------------------------------------------------------------------------
def _plain(writer: Writer) -> None:
    writer.user(writer.words.sentence(20), "human")
    writer.work(writer.dice.randint(1, 3))
    writer.end_turn()


def _list(writer: Writer) -> None:
    picture = base64.b64encode(writer.dice.randbytes(300)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    writer.user([_text(writer.words.sentence()), image], "human")
    writer.work(1)


def _twice(writer: Writer) -> None:
    """Two prompts in a row are one request; between them a local command nobody answers."""
    writer.user(writer.words.sentence(), "human")
    writer.user("<local-command-caveat>Caveat: local commands follow</local-command-caveat>", isMeta=True)
    writer.user("<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>", "human")
    writer.user("<local-command-stdout>Set model to large</local-command-stdout>")
    writer.user(writer.words.sentence(), "human")
    writer.say(writer.words.sentence())


def _command(writer: Writer) -> None:
    writer.user("<command-message>review</command-message>\n<command-name>/review</command-name>", "human")
    writer.user([_text(writer.words.sentence(60))], isMeta=True)
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
        writer.attach("queued_command", prompt=text, commandMode="prompt")
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
    writer.system("compact_boundary", content="Conversation compacted", logicalParentUuid=before, compactMetadata=metadata)
    text = f"This session is being continued from a previous conversation that ran out of context. {writer.words.sentence(60)}"
    writer.user(text, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    writer.work(1)


def _interrupted(writer: Writer) -> None:
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [_shell(writer.words, 100)], lost=True)
    writer.user([_text("[Request interrupted by user for tool use]")])


def _refused(writer: Writer) -> None:
    writer.user(writer.words.sentence(), "human")
    edit = _edit(writer.words, 100)
    sibling = replace(_grep(writer.words, 100), output="Sibling tool call errored", outcome="Sibling tool call errored", error_class="cancelled")
    writer.respond([], [replace(edit, output=_REFUSED, outcome="User rejected tool use", error_class="rejected"), sibling])
    writer.user([_text("[Request interrupted by user for tool use]")])


def _failed(writer: Writer) -> None:
    """The provider fails: its error stands where the answer would."""
    writer.user(writer.words.sentence(), "human")
    writer.system("api_error", error={"status": 529}, retryInMs=500, retryAttempt=1, maxRetries=10)
    content = [_text("API Error: 529 overloaded")]
    message = {"model": "<synthetic>", "id": writer.words.uuid(), "role": "assistant", "type": "message", "content": content,
               "stop_reason": "stop_sequence", "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
    writer.event("assistant", Deed("notice"), message=message, isApiErrorMessage=True)


def _notified(writer: Writer) -> None:
    """A background task wakes the model: no human, no turn."""
    writer.user(writer.words.sentence(), "human")
    writer.work(1)
    more = {"origin": {"kind": "task-notification"}} if writer.age.attachments else {}
    writer.user(f"<task-notification>\n<task-id>b1</task-id>\n{writer.words.sentence()}\n</task-notification>", **more)
    writer.work(1)


def _hooked(writer: Writer) -> None:
    """Hooks and reminders around a call."""
    writer.user(writer.words.sentence(), "human")
    writer.note("file-history-snapshot", messageId=writer.last_uuid, snapshot={"trackedFileBackups": {}}, isSnapshotUpdate=False)
    if writer.age.progress:
        for kind in ("hook_progress", "bash_progress"):
            data = {"type": kind, "hookEvent": "PostToolUse", "command": "make lint"}
            writer.event("progress", Deed("known"), data=data, toolUseID="x", parentToolUseID="x")
    if writer.age.attachments:
        writer.attach("hook_success", hookName="PostToolUse:Edit", hookEvent="PostToolUse", stdout="ok", stderr="", exitCode=0, command="make lint")
        writer.attach("nested_memory", path="AGENTS.md", content=writer.words.sentence(), displayPath="AGENTS.md")
    writer.work(1)
    writer.end_turn()


def _early(writer: Writer) -> None:
    """A result that stands before its call in the file."""
    writer.user(writer.words.sentence(), "human")
    writer.respond([], [replace(_grep(writer.words, 100), output="found")])
    if "tool_use" in str(writer.records[-2][0]["message"]["content"]):
        writer.records[-2:] = reversed(writer.records[-2:])
    writer.say(writer.words.sentence())


TURNS = (_plain, _queued, _list, _compacted, _twice, _interrupted, _command, _refused, _hooked, _bang, _failed, _notified, _early)


# histories ------------------------------------------------------------------------------------------------------------
def write_history(
    root: Path, seed: int = 0, sessions: int = 8, turns: int = 13, bytes_per_output: int = 400,
    forks: bool = True, subagents: bool = True, notes: bool = True,
) -> Truth:  # fmt: skip
    """Write `projects/<folder>/…` under `root`: so many main sessions, and what hangs on them."""
    history = _History(root, seed, bytes_per_output)
    for number in range(sessions):
        writer = history.main(number, turns, subagents, notes)
        if forks and number % 3 == 2:
            history.fork(writer, number)
    return history.truth


class _History:
    def __init__(self, root: Path, seed: int, output: int) -> None:
        self.words = Words(random.Random(seed))
        self.output, self.seed = output, seed
        self.truth = Truth(root)

    def main(self, number: int, turns: int, subagents: bool, notes: bool) -> Writer:
        age = AGES[number % len(AGES)]
        workspace = f"/home/ann/shop.{number % 5}"
        sid = self.words.uuid()
        path = self._folder(workspace) / f"{sid}.jsonl"
        marks = {name: f"zq{self.seed}s{number}{name[:6].replace('_', '')}{name[-2:]}" for name in _MARKED}
        session = SessionTruth(sid, path, workspace=workspace, marks=marks)
        writer = Writer(session, self.words, age, _START + number * 7_200_000, self.output)
        if age.attachments:
            writer.note("mode", mode="normal", sessionId=sid)
            writer.attach("hook_success", hookName="SessionStart:startup", hookEvent="SessionStart", stdout=self.words.sentence(), exitCode=0, command="hi")
        writer.user(f"{self.words.sentence()} {marks['prompt']} {self.words.dice.choice(_FOREIGN)}", "human")
        writer.work(1, marks)
        for turn in range(1, turns):
            if subagents and turn == 1:
                self._task(writer, number)
            else:
                TURNS[(number + turn) % len(TURNS)](writer)
            if turn == turns // 2 and number % 2 == 0:
                writer.resume()
        self._entitle(writer)
        if notes and age.layout == "nested":
            self._persist(writer)
        self._finish(writer)
        return writer

    def fork(self, old: Writer, number: int) -> None:
        """A new file with the whole history under another session id, and a life of its own."""
        sid = self.words.uuid()
        copied = [(record, deed) for record, deed in old.records if deed.uuid]
        session = SessionTruth(sid, old.truth.path.with_name(f"{sid}.jsonl"), workspace="/home/ann/shop.fork", forked_from=old.truth.native_id)
        session.shared = sum(deed.what != "known" for _, deed in copied)
        session.marks = {"prompt": f"zq{self.seed}f{number}prompt"}
        writer = Writer(session, self.words, old.age, old.at + 600_000, self.output)
        session.title = f"{self.words.sentence(4)} (fork)"
        writer.note("custom-title", customTitle=session.title, sessionId=sid)
        writer.records += [({**record, "sessionId": sid, "cwd": session.workspace}, deed) for record, deed in copied]
        writer.last_uuid = old.last_uuid
        writer.user(f"{self.words.sentence()} {session.marks['prompt']}", "human")
        writer.work(1)
        self._finish(writer)

    def _entitle(self, writer: Writer) -> None:
        title = writer.words.sentence(6)
        if writer.age.attachments:
            writer.note("ai-title", aiTitle=title, sessionId=writer.session_id)
            writer.note("last-prompt", lastPrompt="…", leafUuid=writer.last_uuid, sessionId=writer.session_id)
        elif writer.age.progress:
            writer.note("custom-title", customTitle=title, sessionId=writer.session_id)
        else:
            writer.note("summary", "other", summary=title, leafUuid=writer.last_uuid)
        writer.truth.title = title

    def _task(self, writer: Writer, number: int) -> None:
        """A turn whose work is done by a subagent."""
        prompt, answer = f"Look into {self.words.sentence()}", self.words.sentence()
        writer.user(self.words.sentence(), "human")
        layout = writer.age.layout
        agent_id = f"{self.words.dice.getrandbits(68 if layout == 'nested' else 32):0{17 if layout == 'nested' else 8}x}"
        spent = self.words.dice.randint(1000, 90_000)
        outcome: Event = {"content": [_text(answer)], "prompt": prompt, "status": "completed", "totalDurationMs": spent, "totalTokens": 99, "totalToolUseCount": 1}
        if layout != "inline":
            outcome["agentId"] = agent_id
        tool = Tool(writer.age.task, {"description": "look", "prompt": prompt, "subagent_type": "general"}, [_text(answer)], outcome, reported_ms=spent)
        if layout == "inline":
            self._inline(writer, prompt, answer, tool)
        else:
            self._apart(writer, agent_id, prompt, answer)
            writer.respond([], [tool])
        writer.say(self.words.sentence())

    def _inline(self, writer: Writer, prompt: str, answer: str, tool: Tool) -> None:
        """The subagent's records stand in the main file, between the call and its result."""
        child = Writer(SessionTruth("", writer.truth.path, "sidechain", writer.session_id, writer.truth.workspace), self.words, writer.age, writer.at, self.output)
        child.agent_id = ""
        child.user(prompt, "human")
        child.work(1)
        first = child.records[0][1].uuid
        child.truth.native_id = f"{writer.session_id}/sidechain-{first[:8]}"
        child.truth.client = child.client
        for record, _ in child.records:
            record["isSidechain"] = True
        deeds = [replace(deed, what="other" if deed.what == "human" else deed.what) for _, deed in child.records]
        self.truth.sessions[child.truth.native_id] = tell(child.truth, deeds)
        writer.respond([], [tool], lost=True)
        call_id = writer.records[-1][1].calls[-1][0]
        writer.records += [(record, Deed("elsewhere")) for record, _ in child.records]
        writer.at = child.at
        writer.result(call_id, tool, writer.last_uuid or "")

    def _apart(self, writer: Writer, agent_id: str, prompt: str, answer: str) -> None:
        sid = writer.session_id
        nested = writer.age.layout == "nested"
        folder = writer.truth.path.with_suffix("") / "subagents" if nested else writer.truth.path.parent
        session = SessionTruth(f"{sid}/agent-{agent_id}", folder / f"agent-{agent_id}.jsonl", "subagent", sid, writer.truth.workspace)
        child = Writer(session, self.words, writer.age, writer.at, self.output)
        child.user(prompt)
        child.work(2)
        child.say(answer)
        self._finish(child)
        if nested:
            self._write_note(folder / f"agent-{agent_id}.meta.json", json.dumps({"agentType": "general", "description": "look"}))

    def _persist(self, writer: Writer) -> None:
        """An output too long for the transcript lies in a file beside it."""
        writer.user(self.words.sentence(), "human")
        command = "make all"
        writer.respond([], [Tool("Bash", {"command": command}, "", None)], lost=True)
        call_id = writer.records[-1][1].calls[-1][0]
        path = writer.truth.path.with_suffix("") / "tool-results" / f"{call_id}.txt"
        self._write_note(path, self.words.output(20_000))
        text = f"<persisted-output>\nOutput too large. Full output saved to: {path}\n</persisted-output>"
        writer.result(call_id, Tool("Bash", {}, text, {"stdout": "", "stderr": "", "persistedOutputPath": str(path)}), writer.last_uuid or "")
        writer.say(self.words.sentence())

    def _finish(self, writer: Writer) -> None:
        session = writer.truth
        session.client = writer.client
        data = writer.lines()
        session.path.parent.mkdir(parents=True, exist_ok=True)
        session.path.write_bytes(data)
        self.truth.sessions[session.native_id] = tell(session, [deed for _, deed in writer.records if deed.what != "elsewhere"])
        self.truth.files.append(session.path)
        self.truth.lines += data.count(b"\n")
        self.truth.glued += len(writer.glued)
        self.truth.types.update(record["type"] for record, _ in writer.records)

    def _write_note(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.truth.notes.append(path)

    def _folder(self, workspace: str) -> Path:
        return self.truth.root / "projects" / re.sub(r"[/._:\\]", "-", workspace)


_MARKED = ("prompt", "answer", "thinking", "tool_input", "tool_output")
