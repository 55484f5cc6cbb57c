"""One passage → one message, without knowing the passages around it: used by the reader and by `view` alike."""

from __future__ import annotations

import re

from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage
from everturn.sources.aider.edits import call_id, edits
from everturn.sources.aider.lines import HEAD, AiderLineState, opens
from everturn.sources.foreign import milliseconds, word
from everturn.sources.passages import text_of
from everturn.sources.tools import error_class

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
