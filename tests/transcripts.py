"""Histories of an agent made up from nothing, with the truth about them.

`write_history` writes a tree of transcripts in the shapes that real clients of several ages leave behind, and returns
what is in it: every record is made together with a `Deed` that says what it means, and the truth is summed up from the
deeds, never read back from the files. The same seed gives the same bytes.

`stream_file` writes one file of any size quickly, `append_turn` makes a file grow, `alter_copy` makes another history out
of the lines of a real one. No test framework is needed here: benchmarks use it too.
"""

from __future__ import annotations

import json
import os
import random
import re
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from tests.transcript_records import AGES, FOREIGN, Event, Tool, Words, Writer, grep, said, stamp
from tests.transcript_truth import CallTruth, Deed, SessionTruth, Truth, tell
from tests.transcript_turns import TURNS

__all__ = [
    "CallTruth",
    "SessionTruth",
    "Streamed",
    "Truth",
    "alter_copy",
    "alter_name",
    "append_turn",
    "stream_file",
    "write_history",
]

_START = 1_767_600_000_000  # 2026-01-05T08:00:00Z
_MARKED = ("prompt", "answer", "thinking", "tool_input", "tool_output")


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
            writer.attach(
                "hook_success",
                hookName="SessionStart:startup",
                hookEvent="SessionStart",
                stdout=self.words.sentence(),
                exitCode=0,
                command="hi",
            )
        writer.user(f"{self.words.sentence()} {marks['prompt']} {self.words.dice.choice(FOREIGN)}", "human")
        writer.work(1, marks)
        for turn in range(1, turns):
            if subagents and turn == 1:
                self._task(writer)
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
        # The queue is not copied, so that an echo of it becomes the words themselves.
        copied = [(record, _first_hand(deed)) for record, deed in old.records if deed.uuid]
        session = SessionTruth(
            sid,
            old.truth.path.with_name(f"{sid}.jsonl"),
            workspace="/home/ann/shop.fork",
            forked_from=old.truth.native_id,
        )
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

    def _task(self, writer: Writer) -> None:
        """A turn whose work is done by a subagent."""
        prompt, answer = f"Look into {self.words.sentence()}", self.words.sentence()
        writer.user(self.words.sentence(), "human")
        layout = writer.age.layout
        agent_id = (
            f"{self.words.dice.getrandbits(68 if layout == 'nested' else 32):0{17 if layout == 'nested' else 8}x}"
        )
        spent = self.words.dice.randint(1000, 90_000)
        outcome: Event = {
            "content": [said(answer)],
            "prompt": prompt,
            "status": "completed",
            "totalDurationMs": spent,
            "totalTokens": 99,
            "totalToolUseCount": 1,
        }
        if layout != "inline":
            outcome["agentId"] = agent_id
        tool = Tool(
            writer.age.task,
            {"description": "look", "prompt": prompt, "subagent_type": "general"},
            [said(answer)],
            outcome,
            reported_ms=spent,
        )
        if layout == "inline":
            self._inline(writer, prompt, tool)
        else:
            self._apart(writer, agent_id, prompt, answer)
            writer.respond([], [tool])
        writer.say(self.words.sentence())

    def _inline(self, writer: Writer, prompt: str, tool: Tool) -> None:
        """The subagent's records stand in the main file, between the call and its result."""
        session = SessionTruth("", writer.truth.path, "sidechain", writer.session_id, writer.truth.workspace)
        child = Writer(session, self.words, writer.age, writer.at, self.output)
        child.user(prompt)
        child.work(1)
        session.native_id = f"{writer.session_id}/sidechain-{child.records[0][1].uuid[:8]}"
        self.truth.sessions[session.native_id] = tell(session, [deed for _, deed in child.records])
        writer.respond([], [tool], lost=True)
        call_id = writer.records[-1][1].calls[-1][0]
        writer.records += [({**record, "isSidechain": True}, Deed("elsewhere")) for record, _ in child.records]
        writer.at = child.at
        writer.result(call_id, tool, writer.last_uuid or "")

    def _apart(self, writer: Writer, agent_id: str, prompt: str, answer: str) -> None:
        sid = writer.session_id
        nested = writer.age.layout == "nested"
        folder = writer.truth.path.with_suffix("") / "subagents" if nested else writer.truth.path.parent
        session = SessionTruth(
            f"{sid}/agent-{agent_id}", folder / f"agent-{agent_id}.jsonl", "subagent", sid, writer.truth.workspace
        )
        child = Writer(session, self.words, writer.age, writer.at, self.output)
        child.user(prompt)
        child.work(2)
        child.say(answer)
        self._finish(child)
        if nested:
            self._write_note(
                folder / f"agent-{agent_id}.meta.json", json.dumps({"agentType": "general", "description": "look"})
            )

    def _persist(self, writer: Writer) -> None:
        """An output too long for the transcript lies in a file beside it."""
        writer.user(self.words.sentence(), "human")
        command = "make all"
        writer.respond([], [Tool("Bash", {"command": command}, "", None)], lost=True)
        call_id = writer.records[-1][1].calls[-1][0]
        path = writer.truth.path.with_suffix("") / "tool-results" / f"{call_id}.txt"
        self._write_note(path, self.words.output(20_000))
        shown = f"/home/ann/{path.relative_to(self.truth.root).as_posix()}"
        text = f"<persisted-output>\nOutput too large. Full output saved to: {shown}\n</persisted-output>"
        outcome = {"stdout": "", "stderr": "", "persistedOutputPath": shown}
        writer.result(call_id, Tool("Bash", {}, text, outcome), writer.last_uuid or "")
        writer.say(self.words.sentence())

    def _finish(self, writer: Writer) -> None:
        session = writer.truth
        data = writer.lines()
        session.path.parent.mkdir(parents=True, exist_ok=True)
        session.path.write_bytes(data)
        self.truth.sessions[session.native_id] = tell(
            session, [deed for _, deed in writer.records if deed.what != "elsewhere"]
        )
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


def _first_hand(deed: Deed) -> Deed:
    return replace(deed, what="queued") if deed.what == "echo" else deed


# one long file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Streamed:
    """What `stream_file` wrote."""

    session_id: str
    size: int
    lines: int
    turns: int
    steps: int
    calls: int


_SLOT = "5107f00d"  # stands in every id of the pattern where each copy has a number of its own
_MINUTE = "2000-01-01T00:00"
_FILL = "FILLFILLFILL"
_FILLED = 6000
_VARIED = ("varied_alpha", "varied_bravo", "varied_carol", "varied_delta")


def stream_file(path: Path, size: int, seed: int = 0) -> Streamed:
    """Write one session of at least `size` bytes: one turn again and again, each with other ids, times and text."""
    dice = random.Random(seed)
    words = Words(dice)
    session_id = words.uuid()
    pattern, steps, calls = _pattern(session_id, words)
    names = [name.encode() for name in (f"{word}_{seed}_{number}" for word in words.some(250) for number in range(4))]
    pool = b" ".join(dice.choices([word.encode() for word in words.some(250)] + names, k=400_000))
    written = turn = 0
    with path.open("wb") as file:
        while written < size:
            written += file.write(_turn(pattern, pool, names, turn, seed))
            turn += 1
    lines = pattern.count(b"\n") * turn
    return Streamed(session_id, written, lines, turn, steps * turn, calls * turn)


def _pattern(session_id: str, words: Words) -> tuple[bytes, int, int]:
    """One turn as bytes, with the number of its responses and calls."""
    writer = Writer(SessionTruth(session_id, Path(), workspace="/home/ann/long"), words, AGES[3], 0)
    writer.user(f"{words.sentence(20)} {' '.join(_VARIED)}", "human")
    for count in (1, 3, 2):
        tools = [
            Tool("Bash", {"command": f"make {_VARIED[0]}"}, _FILL, {"stdout": _FILL, "stderr": ""})
            for _ in range(count)
        ]
        writer.respond([said(f"{words.sentence(30)} {_VARIED[1]}")], tools)
    writer.say(f"{words.sentence(40)} {_VARIED[2]} {_VARIED[3]}")
    told = tell(writer.truth, [deed for _, deed in writer.records])
    text = writer.lines().decode()
    text = re.sub(r'"(uuid|parentUuid|sourceToolAssistantUUID)":"[0-9a-f]{8}', rf'"\1":"{_SLOT}', text)
    text = re.sub(r"\b(msg|toolu|req)_01\w{8}", rf"\1_01{_SLOT}", text)
    text = re.sub(r"1970-01-01T00:\d\d:\d\d", lambda found: f"{_MINUTE}:{found[0][-2:]}", text)
    return text.encode(), told.steps, len(told.calls)


def _turn(pattern: bytes, pool: bytes, names: list[bytes], turn: int, seed: int) -> bytes:
    line = pattern.replace(_SLOT.encode(), b"%08x" % ((seed * 7_919 + turn) & 0xFFFFFFFF))
    line = line.replace(_MINUTE.encode(), stamp(_START + turn * 60_000)[:16].encode())
    for number, word in enumerate(_VARIED):
        line = line.replace(word.encode(), names[(turn * 7 + number) % len(names)])
    parts = line.split(_FILL.encode())
    filled = [parts[0]]
    for number, part in enumerate(parts[1:]):
        start = (turn * 104_729 + number // 2 * 15_485_863) % (len(pool) - _FILLED)
        filled += pool[start : start + _FILLED], part
    return b"".join(filled)


# growth ---------------------------------------------------------------------------------------------------------------
def append_turn(path: Path, n: int = 0) -> bytes:
    """Let a session's file grow by one turn with one call; what was added. Different `n` give different turns."""
    session_id = path.stem
    words = Words(random.Random(f"{session_id}/{n}"))
    session = SessionTruth(session_id, path, workspace="/home/ann/shop.0")
    writer = Writer(session, words, AGES[3], _START + 90 * 86_400_000 + n * 600_000)
    writer.user(f"{words.sentence()} appended{n}", "human")
    writer.respond([], [grep(words, 300)])
    writer.say(words.sentence(30))
    data = writer.lines()
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            data = data if file.read(1) == b"\n" else b"\n" + data
        file.write(data)
    return data


# copies of real lines -------------------------------------------------------------------------------------------------
# Each begins with literal text, so that it is searched for at memory speed.
_UUID_REST = re.compile(rb"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KEYS = [re.compile(rb"%b_([0-9A-Za-z]{12,40})" % kind) for kind in (b"msg", b"toolu", b"req")]
_AGENTS = [re.compile(beginning + rb"([0-9a-f]{7,17})\b") for beginning in (rb"agent-", rb'"agentId":"')]
_WORD = re.compile(rb" ([a-z]{5,14})(?=[ .,])")
_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
#: Words of sentences by which records are told apart, and of reports that are read: they stay.
_KEPT = frozenset(
    b"request interrupted session being continued previous conversation context messages below generated while running local "
    b"commands doesn proceed rejected sibling errored exists modified since command timed found maximum allowed exceeds "
    b"create delete rename patching output saved error cannot directory permission denied matches string replace input "
    b"validation unexpectedly large access available blocked commit merge rebase revert touch patch".split()
)
_SHARE = 40  # per cent of the words that are others in each copy


def alter_copy(line: bytes, n: int) -> bytes:
    """A line (or a file name) of a real history as it stands in copy `n`: other ids and other words, the same ones
    for the same ones throughout the copy. Copy 0 is the original."""
    if n == 0:
        return line
    mask, table, words = _alteration(n)
    line = _with_uuids(line, mask)
    for pattern in _KEYS:
        line = pattern.sub(lambda found: found[0][: -len(found[1])] + found[1].translate(table), line)
    for pattern in _AGENTS:
        line = pattern.sub(lambda found: found[0][:-6] + _masked(found[1][-6:], mask), line)
    return _WORD.sub(lambda found: words[found[0]], line)


def alter_name(name: str, n: int) -> str:
    """The name that a file has in copy `n`: always another than in the other copies."""
    other = alter_copy(name.encode(), n).decode()
    stem, dot, ending = name.partition(".")
    return f"{stem}-{n}{dot}{ending}" if n and other == name else other


def _with_uuids(line: bytes, mask: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    for found in _UUID_REST.finditer(line):
        start = found.start()
        if start - at >= 8:
            parts += line[at : start - 6], _masked(line[start - 6 : start], mask)
            at = start
    return b"".join((*parts, line[at:]))


def _masked(digits: bytes, mask: int) -> bytes:
    try:
        return b"%06x" % (int(digits, 16) ^ mask)
    except ValueError:  # dashes behind something else than an id
        return digits


@lru_cache(64)
def _alteration(n: int) -> tuple[int, bytes, dict[bytes, bytes]]:
    dice = random.Random(f"copy {n}")
    return dice.getrandbits(24) | 1, bytes.maketrans(_DIGITS, bytes(dice.sample(_DIGITS, len(_DIGITS)))), _Altered(n)


class _Altered(dict[bytes, bytes]):
    """Word, with the space before it → its word in one copy, worked out when first met."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self._n = n
        self._table = bytes.maketrans(_LETTERS, bytes(random.Random(f"words {n}").sample(_LETTERS, 26)))

    def __missing__(self, word: bytes) -> bytes:
        changes = word[1:] not in _KEPT and zlib.crc32(word, self._n) % 100 < _SHARE
        self[word] = found = word.translate(self._table) if changes else word
        return found
