"""Find history files and read them: which session each passage belongs to, and which edit each result reports.

aider writes into the root of each repository, so it has no folder of its own. Searched are the file in the home folder, the
one named by AIDER_CHAT_HISTORY_FILE, and every repository below the folders that the user names. A history file elsewhere is
recognised by its content.

Convert one passage of a history file into a message, independently of the passages around it.

A line of the file is written by the human, by aider itself, or by the model:

    # aider chat started at 2025-04-07 03:59:01     a session begins
    #### a line of the human's prompt␠␠
    > a line of aider's output␠␠                     only its first line has the mark
    anything else                                   the model

The model writes headings and quotations too. All but the oldest releases end the lines of aider and of the human with two
blanks, and write a blank line before the model's answer: `opens` tells the writers apart by these.

With an architect and an editor, aider sends the architect's answer to the editor and writes it down as a prompt. Its words are
those of a model: a prompt that begins like an answer to the last one is the agent's.

The model requests edits in its answer as SEARCH/REPLACE blocks, unified diffs or whole files. aider applies them and reports
each in a line. There are no call ids, so a call is named after its file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Message, ReadResult, TokenUsage, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.line_reader import Passages, ReadTally, SessionTally, text_of
from everturn.sources.toolkit.values import (
    digest,
    error_class,
    message_digest,
    milliseconds,
    plain,
    remember,
    state_of,
    text_blocks,
    word,
)
from everturn.text.lazy_pattern import lazy_pattern

HISTORY = ".aider.chat.history.md"

_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".cache", "site-packages"))
_HEAD = re.compile(rb"\s*(?:\xef\xbb\xbf)?# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*(?:\n|\Z)")
_ANY_HEAD = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE)
_PROMPT = re.compile(rb"^#### \S", re.MULTILINE)


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the history files below a root, or the root itself where it is a file."""
    if root.is_file():
        return iter((SourceCandidate(root),))
    return find_files(root, _pick_history, skipped=_SKIPPED)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    usual = path.name == HISTORY and (_ANY_HEAD.search(head) or _PROMPT.search(head))
    return SourceCandidate(path) if usual or _HEAD.match(head) else None


def _pick_history(entry: os.DirEntry[str]) -> SourceCandidate | None:
    return SourceCandidate(Path(entry.path)) if entry.name == HISTORY and entry.is_file() else None


# --- Convert one passage of a history file into a message, independently of the passages around it ---
_SEARCH = lazy_pattern(r"<{5,9} (?:SEARCH|ORIGINAL)\s*")
_MIDDLE = lazy_pattern(r"={5,9}\s*")
_REPLACE = lazy_pattern(r">{5,9} (?:REPLACE|UPDATED)\s*")
_FENCE = lazy_pattern(r"(`{3,}|~{3,})([\w+#.-]*)\s*")
_PATH = lazy_pattern(r"[\w@.~+$#,=\-()\[\]]+(?:[/\\][\w@.~+$#,=\-()\[\] ]+)*")
_ABOVE = 3  # the name of the file is at most so many lines above its block


class AiderEdit(Struct, frozen=True):
    """All edits of one file that an answer requests."""

    path: str
    text: str
    creates: bool = False


def find_edits(text: str) -> list[AiderEdit]:
    """Return the edits in an answer, one per file, in order."""
    if "<<<<<" not in text and "```" not in text and "~~~" not in text:
        return []
    lines = text.split("\n")
    by_path: dict[str, list[AiderEdit]] = {}
    for edit in list(_find_replacements(lines)) or list(_find_diffs(lines)) or list(_find_whole_files(lines)):
        by_path.setdefault(edit.path, []).append(edit)
    return [AiderEdit(path, "\n".join(one.text for one in them), them[0].creates) for path, them in by_path.items()]


def call_id(path: str) -> str:
    return f"edit {path}"


def _find_replacements(lines: list[str]) -> Iterator[AiderEdit]:
    path, number = "", 0
    while number < len(lines):
        if not _SEARCH.fullmatch(lines[number]):
            number += 1
            continue
        path = next(filter(None, map(_parse_path, reversed(lines[max(number - _ABOVE, 0) : number]))), path)
        end = _find_replacement_end(lines, number)
        if path and end:
            block = lines[number : end + 1]
            yield AiderEdit(path, "\n".join(block), creates=bool(_MIDDLE.fullmatch(block[1])))
        number = (end or number) + 1


def _find_replacement_end(lines: list[str], start: int) -> int:
    for number in range(start + 1, len(lines)):
        if _REPLACE.fullmatch(lines[number]):
            return number
        if _SEARCH.fullmatch(lines[number]):
            return 0
    return 0


def _find_diffs(lines: list[str]) -> Iterator[AiderEdit]:
    for language, start, end in _find_fences(lines):
        if language != "diff":
            continue
        heads = [n for n in range(start, end - 1) if lines[n].startswith("--- ") and lines[n + 1].startswith("+++ ")]
        for head, after in pairwise([*heads, end]):
            if path := _parse_path(lines[head + 1][4:].removeprefix("b/")):
                yield AiderEdit(path, "\n".join(lines[head:after]), creates=lines[head][4:].strip() == "/dev/null")


def _find_whole_files(lines: list[str]) -> Iterator[AiderEdit]:
    for _, start, end in _find_fences(lines):
        line = lines[start - 2] if start > 1 else ""
        if (path := _parse_path(line)) and ("." in path or "/" in path) and " " not in line.strip():
            yield AiderEdit(path, "\n".join(lines[start:end]))


def _find_fences(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the language, the first line and the line after the last of each fenced block."""
    opening, start = None, 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if opening is None:
            opening, start = fence, number + 1
        elif fence and fence[1] == opening[1] and not fence[2]:
            yield opening[2], start, number
            opening = None


def _parse_path(line: str) -> str:
    """Return the file a line names, if it names one and nothing else."""
    if _FENCE.fullmatch(line):
        return ""
    bare = line.strip().strip("`*#: ").strip()
    return bare if len(bare) <= 300 and _PATH.fullmatch(bare) else ""


# --- lines and their writers ---
HEAD = lazy_pattern(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_MESSAGE_GIVEN = lazy_pattern(r"> \S{0,300}aider\S{0,20} .{0,2000}?--?m(?:essage|sg)?\b")
_HUMAN = "####"
_AIDER = ">"

#: Lines of aider with a meaning of their own: the first match counts.
_AIDER_LINES = (
    ("usage", lazy_pattern(r"> Tokens: [\d.,]+[kM]? sent")),
    ("result", lazy_pattern(r"> (?:Applied edit to|Did not apply edit to|Skipping edits to|#+ \d+ SEARCH/REPLACE blocks? failed) ?")),
    ("interrupt", lazy_pattern(r"> \s*\^C")),
    ("failure", lazy_pattern(r"> (?:litellm\.|openai\.|The API provider|Retrying in|Unable to (?:connect|authenticate)|API Error)")),
)  # fmt: skip


class AiderLineState(Struct):
    """The state that `opens` carries from line to line."""

    begun: bool = False
    speaker: str = ""  # head human model gap, or the kind of aider's output: notice usage result interrupt failure
    blanks: int = -1  # whether lines of this session end with two blanks; -1 before the first
    after_blank: bool = True
    more: bool = False  # aider's output continues without a mark


def opens(known: AiderLineState, line: str) -> bool:
    """Return whether a passage begins with this line. `Passages` calls it for every line in order."""
    before, was_blank = known.speaker, known.after_blank
    known.after_blank = not line.strip()
    if known.after_blank:
        return _note_blank_line(known)
    if HEAD.fullmatch(line.lstrip("\ufeff")):
        known.speaker, known.blanks, known.more = "head", -1, False
        return True
    known.speaker = _find_speaker(known, line, was_blank)
    if known.speaker == "model":
        return before not in ("model", "gap", "")
    if before == "head" and known.speaker == "notice":  # aider's output at its start is one passage
        known.speaker = "head"
        return False
    return known.speaker != before or (known.speaker == "human" and was_blank)


def _note_blank_line(known: AiderLineState) -> bool:
    """Return whether a blank line ends the lines of the human or of aider; the model's answer may begin with it."""
    if known.more or known.speaker in ("", "model", "gap", "head"):
        return False
    known.speaker = "gap"
    return True


def _find_speaker(known: AiderLineState, line: str, was_blank: bool) -> str:
    ended = line.endswith("  ")
    if line.startswith((_HUMAN + " ", _AIDER + " ")) or line.rstrip() in (_HUMAN, _AIDER):
        if known.blanks < 0 and _MESSAGE_GIVEN.match(line) and not ended:
            known.more = True  # a message of several lines, repeated in the first line
            return "notice"
        if known.blanks < 0:
            known.blanks = int(ended)
        if ended or not known.blanks:
            known.more = False
            return "human" if line.startswith(_HUMAN) else _aider_line_kind(line)
        if line.startswith(_AIDER) and not was_blank and known.speaker != "model":
            known.more = _RESULT.fullmatch(line) is None  # some editors strip blanks at the end
            return _aider_line_kind(line)
    if known.more:
        known.more = not ended
        return known.speaker
    return "model"


def _aider_line_kind(line: str) -> str:
    return next((name for name, pattern in _AIDER_LINES if pattern.match(line)), "notice")


# --- passages ---
_NUMBER = r"([\d.,]+)([kM]?)"
_TOKENS = {
    "input": lazy_pattern(rf"{_NUMBER} sent"),
    "output": lazy_pattern(rf"{_NUMBER} received"),
    "cache_read": lazy_pattern(rf"{_NUMBER} cache hit"),
    "cache_write": lazy_pattern(rf"{_NUMBER} cache write"),
}
_FACTOR = {"": 1, "k": 1000, "M": 1_000_000}
_RESULT = lazy_pattern(r"> (Applied edit to|Did not apply edit to|Skipping edits to) (\S[^\n]{0,300}?)(?: \([^()\n]*\)| that matches[^\n]*)?\s*")  # fmt: skip
_COMMIT = lazy_pattern(r"^> Commit ([0-9a-f]{7,40}) (\S.{0,1000}?)[ \t\r]*$", re.MULTILINE)
_MISMATCH = lazy_pattern(r"failed to (?:exactly )?match lines in (\S[^\n]{0,300}?)\s*$", re.MULTILINE)
_BLANK = "<blank>"


def view(record: bytes) -> Message | None:
    return build(speaker_of(record), text_of(record)[0])


def speaker_of(record: bytes) -> str:
    """Return the writer of a passage, judged by its first line: a blank one precedes an answer of the model."""
    known = AiderLineState()
    first = record.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    if not first.strip():
        return "gap" if not record.strip() else "model"
    opens(known, first)
    return known.speaker


def build(speaker: str, text: str) -> Message:
    if speaker in ("model", "gap"):
        return _build_answer(text.strip("\r\n"))
    if speaker == "human":
        return _build_prompt(_prompt_text(text))
    if speaker == "result":
        return Message("tool", "tool", "result", blocks=tuple(_result_blocks(text)), fidelity="rendered")
    blocks = text_blocks(_strip_marks(text), "meta")
    if speaker == "usage":
        return Message("assistant", "model", "notice", blocks=blocks, usage=_parse_usage(text), fidelity="rendered")
    if speaker == "failure":  # an error instead of an answer
        return Message("assistant", "system", "notice", blocks=blocks, fidelity="rendered")
    at, precision = _start_time(text) if speaker == "head" else (None, "")
    kind = "interrupt" if speaker == "interrupt" else "notice"
    commits = tuple(_commit_blocks(text)) if "> Commit " in text else ()
    return Message("system", "system", kind, at, precision, blocks=(*blocks, *commits), fidelity="rendered")


def _build_answer(text: str) -> Message:
    blocks = [Block("text", text, "answer")] if text.strip() else []
    for edit in find_edits(text):
        path = word(edit.path)
        start = CallStart(
            call_id(path), "edit", "create" if edit.creates else "edit", path, input={"path": path, "edit": edit.text}
        )
        blocks.append(Block("call", f"edit\n{path}", "tool_input", call=start))
    return Message("assistant", "model", "text", blocks=tuple(blocks), fidelity="rendered")


def _build_prompt(text: str) -> Message:
    if text == _BLANK:
        return Message("user", "human", "text", fidelity="rendered")
    kind = "shell" if text.startswith(("!", "/run ")) else "command" if re.match(r"/[a-z]", text) else "text"
    blocks = (Block("text", text, "prompt"),)
    return Message("user", "human", kind, blocks=blocks, starts_turn=True, fidelity="rendered")


def _prompt_text(text: str) -> str:
    lines = [line.rstrip("\r").removesuffix("  ") for line in text.rstrip("\r\n").split("\n")]
    return "\n".join(line.removeprefix("####").removeprefix(" ") for line in lines)


def _result_blocks(text: str) -> list[Block]:
    blocks = []
    for line in text.splitlines():
        if report := _RESULT.fullmatch(line):
            path, failed = word(report[2]), report[1] != "Applied edit to"
            end = CallEnd(call_id(path), failed, "rejected" if failed else "", path=path)
            blocks.append(Block("result", _strip_marks(line), "tool_output", result=end))
    for mismatch in dict.fromkeys(match[1] for match in _MISMATCH.finditer(text)):
        end = CallEnd(call_id(word(mismatch)), True, error_class(text), path=word(mismatch))
        blocks.append(Block("result", _strip_marks(text), "tool_output", result=end))
    return blocks or [Block("text", _strip_marks(text), "tool_output")]


def _commit_blocks(text: str) -> Iterator[Block]:
    """Yield the commits that aider made, each as a call with its result."""
    for made in _COMMIT.finditer(text):
        call, subject = f"commit {made[1]}", word(made[2])
        start = CallStart(call, "git_commit", "other", input={"command": "commit", "message": subject})
        yield Block("call", "git_commit", "tool_input", call=start)
        yield Block("result", f"Commit {made[1]} {subject}", "tool_output", result=CallEnd(call))


def _start_time(text: str) -> tuple[int | None, str]:
    head = HEAD.match(text.lstrip("\ufeff\r\n "))
    return milliseconds(f"{head[1]} {head[2]}") if head else (None, "")


def _parse_usage(text: str) -> TokenUsage | None:
    counts = {name: _parse_tokens(match) for name, pattern in _TOKENS.items() if (match := pattern.search(text))}
    return TokenUsage(**counts) if counts else None


def _parse_tokens(match: re.Match[str]) -> int:
    try:
        return min(round(float(match[1].replace(",", "")) * _FACTOR[match[2]]), 1 << 50)
    except (ValueError, OverflowError):
        return 0


def _strip_marks(text: str) -> str:
    """Return aider's lines without their marks."""
    lines = (line.removeprefix(">").removeprefix(" ").rstrip() for line in text.strip("\ufeff\r\n").splitlines())
    return "\n".join(lines).strip()


# --- reading a file ---
_CLIENT = re.compile(r"^> Aider v(\S+)", re.MULTILINE | re.IGNORECASE)
_MODEL = re.compile(r"^> (?:Main model|Model|Models?): (\S+)", re.MULTILINE)
_MOST_OPEN = 200
_MOST_ANSWERS = 8
_LEAST_SAME, _COMPARED, _READ = 40, 120, 1_000  # characters; nobody types 40 of the model's again
_NOT_BLANK = re.compile(r"[^\s#>]+")


class AiderReaderState(Struct):
    known: AiderLineState = msgspec.field(default_factory=AiderLineState)
    native_id: str = ""
    started: str = ""
    same: int = 0  # sessions before this one that started in the same second
    index: int = 0  # messages of the session so far
    answers: int = 0
    client: str = ""
    model: str = ""
    waiting: dict[str, int] = {}  # file → edits requested and not yet applied
    answered: list[str] = []  # beginnings of the answers since the last prompt, without blanks


class AiderReader:
    """Reads one history file, which holds many sessions."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, AiderReaderState)
        self._passages = Passages(opens, self._state.known)
        path = candidate.path
        self._workspace = str(path.parent) if path.name == HISTORY and path.is_absolute() else ""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        tally, passages = ReadTally(), self._passages
        before = passages.state.speaker
        for start, raw in passages.split(data, base, last, whole_lines=True):
            continues = passages.continues and before not in ("", "gap")
            self._read_passage(tally, start, raw, before if continues else speaker_of(raw))
        self._state.known = passages.state
        if passages.tail is not None:
            tally.trouble("torn_tail", *passages.tail, is_record=False, provisional=True)
        return tally.reading(passages.consumed)

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self._state)

    def _read_passage(self, tally: ReadTally, start: int, raw: bytes, speaker: str) -> None:
        state = self._state
        if speaker == "gap" or not raw.strip():
            return
        text, is_utf8 = text_of(raw)
        if not is_utf8:
            tally.trouble("invalid_utf8", start, len(raw), is_record=False)
        head = HEAD.match(text.lstrip("\ufeff\r\n ")) if speaker == "head" else None
        if head:
            self._begin_session(f"{head[1]}_{head[2].replace(':', '-')}")
        elif not state.native_id:
            state.native_id = f"undated-{digest(text)}"
        session = tally.session(state.native_id)
        self._learn(session, speaker, text)
        message = self._add_context(build(speaker, text), speaker)
        identity = fingerprint(f"{state.native_id}/{state.index}", message_digest(message))
        session.messages.append(replace(message, start=start, size=len(raw), fingerprint=identity))
        state.index += 1
        tally.count(speaker, "message", state.client)

    def _begin_session(self, started: str) -> None:
        state = self._state
        state.same = state.same + 1 if started == state.started else 0
        state.started = started
        state.native_id = f"{started}-{state.same + 1}" if state.same else started
        state.index = state.answers = 0
        state.client = state.model = ""
        state.waiting, state.answered = {}, []

    def _learn(self, session: SessionTally, speaker: str, text: str) -> None:
        if speaker in ("head", "notice"):
            client, model = _CLIENT.search(text), _MODEL.search(text)
            self._state.client = plain(client[1]) if client else self._state.client
            self._state.model = model[1][:200].replace("\0", "\ufffd") if model else self._state.model
        session.learn(client=self._state.client, workspace=self._workspace)

    def _add_context(self, message: Message, speaker: str) -> Message:
        """Return the message with the response it is part of, and its results with the call they answer."""
        state = self._state
        beginning = _begin(message) if speaker in ("model", "human") else ""
        if speaker == "human":
            is_passed_on = len(beginning) >= _LEAST_SAME and beginning in state.answered
            state.answered = []
            return replace(message, origin="agent", starts_turn=False) if is_passed_on else message
        if speaker == "model":
            state.answers += 1
            state.answered = [*state.answered, beginning][-_MOST_ANSWERS:]
            message = replace(message, blocks=tuple(map(self._number_call, message.blocks)))
        if message.origin == "model":
            return replace(message, provider_id=f"{state.native_id}/{state.answers}", model=state.model)
        if speaker == "result":
            return replace(message, blocks=tuple(map(self._match_result, message.blocks)))
        return message

    def _number_call(self, block: Block) -> Block:
        """Number an edit of a file whose previous edit was never applied, so that its call id is unique."""
        if block.call is None:
            return block
        path, waiting = block.call.path, self._state.waiting
        n = waiting.get(path, 0) + 1
        remember(waiting, path, n, _MOST_OPEN)
        return block if n == 1 else replace(block, call=replace(block.call, call_id=f"{call_id(path)} {n}"))

    def _match_result(self, block: Block) -> Block:
        """Give a result the id of the last edit of that file, whose path may be relative to another folder."""
        if block.result is None:
            return block
        waiting, path = self._state.waiting, block.result.path
        name = path if path in waiting else next((other for other in waiting if _is_same_file(path, other)), "")
        n = waiting.pop(name, 1)
        call = call_id(name or path)
        return replace(block, result=replace(block.result, call_id=call if n == 1 else f"{call} {n}"))


def _begin(message: Message) -> str:
    """Return the beginning of a message without blanks and marks: aider writes its lines down in another form."""
    return "".join(_NOT_BLANK.findall(message.blocks[0].text[:_READ] if message.blocks else ""))[:_COMPARED]


def _is_same_file(one: str, other: str) -> bool:
    return one.endswith("/" + other) or other.endswith("/" + one)
