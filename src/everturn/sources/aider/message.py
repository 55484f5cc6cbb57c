"""One passage → one message, without knowing the passages around it: used by the reader and by `view` alike.

The edits a model asks for in its answer: SEARCH/REPLACE blocks, unified diffs, or whole files.

aider applies them and says so in a line of its own; there is no id, so a call is named after its file.

Who wrote a line of a history file: the human, aider itself, or the model.

    # aider chat started at 2025-04-07 03:59:01     a session begins
    #### what the human typed␠␠                      each line of it
    > what aider said␠␠                              only the first line of it has the mark
    anything else                                   the model

The model writes headings and quotations too. aider ends its own lines and the human's with two blanks (all but its oldest
releases do), and puts a blank line before what the model said: by these the two are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage
from everturn.sources.toolkit.blocks import error_class
from everturn.sources.toolkit.line_reader import text_of
from everturn.sources.toolkit.values import milliseconds, word

_SEARCH = re.compile(r"<{5,9} (?:SEARCH|ORIGINAL)\s*")
_MIDDLE = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} (?:REPLACE|UPDATED)\s*")
_FENCE = re.compile(r"(`{3,}|~{3,})([\w+#.-]*)\s*")
_PATH = re.compile(r"[\w@.~+\-()\[\]]+(?:[/\\][\w@.~+\-()\[\] ]+)*")
_ABOVE = 3  # how many lines above a block its file may stand


class Edit(Struct, frozen=True):
    """All that an answer asks to do to one file."""

    path: str
    text: str
    creates: bool = False


def edits(text: str) -> list[Edit]:
    """The edits in an answer, one per file, in order."""
    if "<<<<<" not in text and "```" not in text and "~~~" not in text:
        return []
    lines = text.split("\n")
    found = list(_replacements(lines)) or list(_diffs(lines)) or list(_whole_files(lines))
    by_path: dict[str, list[Edit]] = {}
    for edit in found:
        by_path.setdefault(edit.path, []).append(edit)
    return [Edit(path, "\n".join(one.text for one in them), them[0].creates) for path, them in by_path.items()]


def call_id(path: str) -> str:
    """The name of the call that edits a file."""
    return f"edit {path}"


def _replacements(lines: list[str]) -> Iterator[Edit]:
    path, number = "", 0
    while number < len(lines):
        if not _SEARCH.fullmatch(lines[number]):
            number += 1
            continue
        path = next(filter(None, (_path(line) for line in reversed(lines[max(number - _ABOVE, 0) : number]))), path)
        end = _end(lines, number)
        if path and end:
            block = lines[number : end + 1]
            yield Edit(path, "\n".join(block), creates=bool(_MIDDLE.fullmatch(block[1])))
        number = (end or number) + 1


def _end(lines: list[str], start: int) -> int:
    for number in range(start + 1, len(lines)):
        if _REPLACE.fullmatch(lines[number]):
            return number
        if _SEARCH.fullmatch(lines[number]):
            return 0
    return 0


def _diffs(lines: list[str]) -> Iterator[Edit]:
    for opening, start, end in _find_fences(lines):
        if opening != "diff":
            continue
        heads = [n for n in range(start, end - 1) if lines[n].startswith("--- ") and lines[n + 1].startswith("+++ ")]
        for head, after in pairwise([*heads, end]):
            path = _path(lines[head + 1][4:].removeprefix("b/"))
            if path:
                yield Edit(path, "\n".join(lines[head:after]), creates=lines[head][4:].strip() == "/dev/null")


def _whole_files(lines: list[str]) -> Iterator[Edit]:
    for _, start, end in _find_fences(lines):
        line = lines[start - 2] if start > 1 else ""
        path = _path(line)
        if path and ("." in path or "/" in path) and " " not in line.strip():
            yield Edit(path, "\n".join(lines[start:end]))


def _find_fences(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """What is in fences: the language, the first line and the one after the last."""
    opening, start = None, 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if opening is None:
            opening, start = fence, number + 1
        elif fence and fence[1] == opening[1] and not fence[2]:
            yield opening[2], start, number
            opening = None


def _path(line: str) -> str:
    """The file a line names, if it names one and nothing else."""
    if _FENCE.fullmatch(line):
        return ""
    bare = line.strip().strip("`*#: ").strip()
    return bare if len(bare) <= 300 and _PATH.fullmatch(bare) else ""


HEAD = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_HUMAN = "####"
_AIDER = ">"

#: What aider says that means something: the first that fits.
_SAYINGS = (
    ("usage", re.compile(r"> Tokens: [\d.,]+[kM]? sent")),
    ("result", re.compile(r"> (?:Applied edit to|Did not apply edit to|Skipping edits to|#+ \d+ SEARCH/REPLACE blocks? failed) ?")),
    ("interrupt", re.compile(r"> \s*\^C")),
    ("failure", re.compile(r"> (?:litellm\.|openai\.|The API provider|Retrying in|Unable to (?:connect|authenticate)|API Error)")),
)  # fmt: skip


class AiderLineState(Struct):
    """What is known of the lines before."""

    begun: bool = False
    speaker: str = ""  # head human model gap, or what aider says: notice usage result interrupt failure
    blanks: int = -1  # whether lines of this session end with two blanks; -1 before the first
    after_blank: bool = True
    more: bool = False  # aider's words go on without a mark


def opens(known: AiderLineState, line: str) -> bool:
    """Does a passage begin with this line? (`Passages` asks for every line in order.)"""
    before, was_blank = known.speaker, known.after_blank
    known.after_blank = not line.strip()
    if known.after_blank:
        return _note_blank_line(known)
    if HEAD.fullmatch(line.lstrip("\ufeff")):
        known.speaker, known.blanks, known.more = "head", -1, False
        return True
    known.speaker = _speaker(known, line, was_blank)
    if known.speaker == "model":
        return before not in ("model", "gap", "")
    if before == "head" and known.speaker == "notice":  # what aider says when it starts is one passage
        known.speaker = "head"
        return False
    return known.speaker != before or (known.speaker == "human" and was_blank)


def _note_blank_line(known: AiderLineState) -> bool:
    """A blank line ends what the human or aider said. With it begins what the model says, if it is the next to speak."""
    if known.more or known.speaker in ("", "model", "gap"):
        return False
    if known.speaker == "head":
        return False
    known.speaker = "gap"
    return True


def _speaker(known: AiderLineState, line: str, was_blank: bool) -> str:
    ended = line.endswith("  ")
    if line.startswith((_HUMAN + " ", _AIDER + " ")) or line.rstrip() in (_HUMAN, _AIDER):
        if known.blanks < 0:
            known.blanks = int(ended)
        if ended or not known.blanks:
            known.more = False
            return "human" if line.startswith(_HUMAN) else _aider_line_kind(line)
        if line.startswith(_AIDER) and not was_blank and known.speaker != "model":
            known.more = True
            return _aider_line_kind(line)
    if known.more:
        known.more = not ended
        return known.speaker
    return "model"


def _aider_line_kind(line: str) -> str:
    return next((name for name, pattern in _SAYINGS if pattern.match(line)), "notice")


_NUMBER = r"([\d.,]+)([kM]?)"
_TOKENS = {
    "input": re.compile(rf"{_NUMBER} sent"),
    "output": re.compile(rf"{_NUMBER} received"),
    "cache_read": re.compile(rf"{_NUMBER} cache hit"),
    "cache_write": re.compile(rf"{_NUMBER} cache write"),
}
_FACTOR = {"": 1, "k": 1000, "M": 1_000_000}
_RESULT = re.compile(r"> (Applied edit to|Did not apply edit to|Skipping edits to) (\S[^\n]{0,300}?)(?: \([^()\n]*\)| that matches[^\n]*)?\s*")  # fmt: skip
_MISMATCH = re.compile(r"failed to (?:exactly )?match lines in (\S[^\n]{0,300}?)\s*$", re.MULTILINE)
_BLANK = "<blank>"


def view(record: bytes) -> Message | None:
    """The message of a passage, judged by itself."""
    return build(speaker_of(record), text_of(record)[0])


def speaker_of(record: bytes) -> str:
    """Who wrote a passage, judged by its first line: a blank one stands before what the model says."""
    known = AiderLineState()
    first = record.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    if not first.strip():
        return "gap" if not record.strip() else "model"
    opens(known, first)
    return known.speaker


def build(speaker: str, text: str) -> Message:
    """The message of a passage of one speaker."""
    if speaker in ("model", "gap"):
        return _answer(text.strip("\r\n"))
    if speaker == "human":
        return _prompt(_prompt_text(text))
    if speaker == "usage":
        return Message("assistant", "model", "notice", blocks=_words(text), usage=_usage(text), fidelity="rendered")
    if speaker == "failure":  # an error in the model's place
        return Message("assistant", "system", "notice", blocks=_words(text), fidelity="rendered")
    if speaker == "result":
        return Message("tool", "tool", "result", blocks=tuple(_results(text)), fidelity="rendered")
    if speaker == "head":
        at, precision = _start_time(text)
        return Message("system", "system", "notice", at, precision, blocks=_words(text), fidelity="rendered")
    return Message(
        "system",
        "system",
        "interrupt" if speaker == "interrupt" else "notice",
        blocks=_words(text),
        fidelity="rendered",
    )


def _answer(text: str) -> Message:
    blocks = [Block("text", text, "answer")] if text.strip() else []
    for edit in edits(text):
        path = word(edit.path)
        start = CallStart(
            call_id(path), "edit", "create" if edit.creates else "edit", path, input={"path": path, "edit": edit.text}
        )
        blocks.append(Block("call", f"edit\n{path}", "tool_input", call=start))
    return Message("assistant", "model", "text", blocks=tuple(blocks), fidelity="rendered")


def _prompt(text: str) -> Message:
    if text == _BLANK:
        return Message("user", "human", "text", fidelity="rendered")
    kind = "shell" if text.startswith(("!", "/run ")) else "command" if re.match(r"/[a-z]", text) else "text"
    blocks = (Block("text", text, "prompt"),)
    return Message("user", "human", kind, blocks=blocks, starts_turn=True, fidelity="rendered")


def _prompt_text(text: str) -> str:
    lines = [line.rstrip("\r").removesuffix("  ") for line in text.rstrip("\r\n").split("\n")]
    return "\n".join(line.removeprefix("####").removeprefix(" ") for line in lines)


def _results(text: str) -> list[Block]:
    found = []
    for line in text.splitlines():
        said = _RESULT.fullmatch(line)
        if said:
            path, failed = word(said[2]), said[1] != "Applied edit to"
            end = CallEnd(call_id(path), failed, "rejected" if failed else "", path=path)
            found.append(Block("result", _strip_marks(line), "tool_output", result=end))
    for mismatch in dict.fromkeys(match[1] for match in _MISMATCH.finditer(text)):
        end = CallEnd(call_id(word(mismatch)), True, error_class(text), path=word(mismatch))
        found.append(Block("result", _strip_marks(text), "tool_output", result=end))
    return found or [Block("text", _strip_marks(text), "tool_output")]


def _start_time(text: str) -> tuple[int | None, str]:
    found = HEAD.match(text.lstrip("\ufeff\r\n "))
    return milliseconds(f"{found[1]} {found[2]}") if found else (None, "")


def _usage(text: str) -> TokenUsage | None:
    counts = {name: _tokens(found) for name, pattern in _TOKENS.items() if (found := pattern.search(text))}
    return TokenUsage(**counts) if counts else None


def _tokens(found: re.Match[str]) -> int:
    try:
        return min(round(float(found[1].replace(",", "")) * _FACTOR[found[2]]), 1 << 50)
    except (ValueError, OverflowError):
        return 0


def _words(text: str) -> tuple[Block, ...]:
    bare = _strip_marks(text)
    return (Block("text", bare, "meta"),) if bare else ()


def _strip_marks(text: str) -> str:
    """aider's words without the marks."""
    lines = (line.removeprefix(">").removeprefix(" ").rstrip() for line in text.strip("\ufeff\r\n").splitlines())
    return "\n".join(lines).strip()
