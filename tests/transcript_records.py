"""Records of made-up transcripts: the words in them, the tools that are called, and a writer for one file."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.transcript_truth import Deed, SessionTruth, Touches

Event = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
#: Words of other scripts, and signs.
FOREIGN = (
    "会话记录",
    "检索结果为空",
    "セッションを再開する",
    "파일을 읽는 중",
    "Größe geändert",
    "déjà vu",
    "—",
    "→ ok",
    "✓",
)
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
            words.append(self.dice.choice(FOREIGN))
        return " ".join(words)

    def some(self, count: int) -> list[str]:
        """Single words."""
        return self.dice.choices(_PROSE, k=count)

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


def shell(words: Words, size: int) -> Tool:
    """A command."""
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


def edit(words: Words, size: int) -> Tool:
    """A change of a file."""
    path, old, new = "/home/ann/shop/" + words.path(), words.sentence(), words.sentence()
    outcome = {"filePath": path, "oldString": old, "newString": new, "originalFile": words.output(size // 2),
               "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-" + old, "+" + new]}],
               "userModified": False, "replaceAll": False}  # fmt: skip
    given = {"file_path": path, "old_string": old, "new_string": new}
    return Tool("Edit", given, f"The file {path} has been updated.", outcome, touches=(("edited", path),))


def _write(words: Words, size: int) -> Tool:
    path, text = "/home/ann/shop/" + words.path("md"), words.output(size)
    outcome = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
    return Tool(
        "Write",
        {"file_path": path, "content": text},
        f"File created successfully at: {path}",
        outcome,
        touches=(("created", path),),
    )


def _overwrite(words: Words, size: int) -> Tool:
    tool = _write(words, size)
    path = tool.touches[0][1]
    return replace(tool, outcome={**tool.outcome, "type": "update"}, touches=(("edited", path),))


def grep(words: Words, size: int) -> Tool:
    """A search, which touches nothing."""
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
    return Tool(
        "mcp__browser__open_page", {"url": "http://localhost:5173/", "note": words.dice.choice(FOREIGN)}, blocks, blocks
    )


def _failing(words: Words, size: int) -> Tool:
    if words.dice.random() < 0.5:
        text = f"Exit code 1\n{words.output(size)}"
        return Tool("Bash", {"command": f"rm {words.path()}"}, text, f"Error: {text}", "exit_status")
    text = "<tool_use_error>File does not exist.</tool_use_error>"
    return Tool("Read", {"file_path": words.path()}, text, "Error: File does not exist.", "not_found")


_TOOLS: tuple[Callable[[Words, int], Tool], ...] = (shell, _read, edit, _write, _overwrite, grep, _glob, _other)


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
        self.last_uuid, self.truth.client = uuid, self.client
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

    def attach(self, kind: str, what: str = "other", **more: Any) -> None:
        """Something the client puts into the conversation, or notes beside it."""
        self.event("attachment", Deed(what), attachment={"type": kind, **more})

    # responses --------------------------------------------------------------------------------------------------------
    def respond(self, blocks: list[Event], tools: list[Tool], lost: bool = False) -> None:
        """One response of the model with the calls it makes; `lost` ones never get a result."""
        response = self.words.key("msg")
        usage = [self.dice.randint(1, 30), 1, self.dice.randint(0, 90_000), self.dice.randint(0, 3000)]
        waiting = {self.words.key("toolu"): tool for tool in tools}
        calls = [
            {"type": "tool_use", "id": key, "name": tool.name, "input": tool.input} for key, tool in waiting.items()
        ]
        groups: list[list[Event]] = [[block] for block in (*blocks, *calls)]
        if len(groups) > 1 and self.dice.random() < 0.1:
            groups = [[block for group in groups for block in group]]  # all in one record: rare, but it happens
        for group in groups:
            usage[1] += self.dice.randint(0, 300)
            uuid = self._part(response, group, usage, bool(tools))
            ready = [block["id"] for block in group if block["type"] == "tool_use"]
            if self.age.interleaved and not lost and self.dice.random() < 0.8:
                for call_id in ready:
                    self.result(call_id, waiting.pop(call_id), uuid)
        if not lost:
            self._results_of(waiting)

    def _results_of(self, waiting: dict[str, Tool]) -> None:
        """Results after all calls; what was done first is not always written first."""
        for call_id, tool in waiting.items():
            self.result(call_id, tool, self.last_uuid or "")
        if len(waiting) > 1 and self.dice.random() < 0.4:
            (first, deed), (second, later) = self.records[-2:]
            first["timestamp"], second["timestamp"] = second["timestamp"], first["timestamp"]
            self.records[-2:] = [(first, replace(deed, at=later.at)), (second, replace(later, at=deed.at))]

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
        deed = Deed(
            "result",
            ends=call_id,
            error_class=tool.error_class,
            reported_ms=None if bare else tool.reported_ms,
            touches=tool.touches,
        )
        self.event("user", deed, message={"role": "user", "content": [block]}, **more)

    def say(self, text: str) -> None:
        """An answer without calls."""
        self.respond([said(text)], [])

    # turns ------------------------------------------------------------------------------------------------------------
    def work(self, steps: int, marks: dict[str, str] | None = None) -> None:
        """Some steps with calls, and an answer."""
        for number in range(steps):
            tools = [self.tool() for _ in range(self.dice.choice((1, 1, 2, 3, 5)))]
            if marks and not number:
                tools[0] = _marked(grep(self.words, self.output), marks)
            thought = self.words.sentence(30) + (f" {marks['thinking']}" if marks and not number else "")
            thinking = {
                "type": "thinking",
                "thinking": thought,
                "signature": base64.b64encode(self.dice.randbytes(90)).decode(),
            }
            self.respond([thinking], tools)
        self.say(self.words.sentence(40) + (f" {marks['answer']}" if marks else ""))

    def tool(self) -> Tool:
        """Any tool; about one in eight fails."""
        if self.dice.random() < 0.12:
            return _failing(self.words, self.output)
        # Without a note of the client nobody can tell that a file was there before it was written.
        return self.dice.choice([make for make in _TOOLS if not (self.agent_id and make is _overwrite)])(
            self.words, self.output
        )

    def end_turn(self) -> None:
        """What the client notes at the end of a turn."""
        if self.age.progress or self.age.attachments:
            self.system(
                "stop_hook_summary",
                hookCount=1,
                hookInfos=[{"command": "make lint"}],
                hookErrors=[],
                preventedContinuation=False,
            )
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


def said(text: str) -> Event:
    """A block of text."""
    return {"type": "text", "text": text}


def _marked(tool: Tool, marks: dict[str, str]) -> Tool:
    return replace(
        tool, input={**tool.input, "pattern": marks["tool_input"]}, output=f"{tool.output}\n{marks['tool_output']}"
    )
