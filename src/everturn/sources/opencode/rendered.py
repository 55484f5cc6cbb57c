"""Reads transcripts that the client rendered as Markdown (`/export`).

    # TITLE / **Session ID:** ses_… / **Created:** DATE / **Updated:** DATE / ---
    ## User · ## Assistant (AGENT · MODEL · 1.2s) · ## Shell, with --- between them

There are no times but that of the session. Nothing marks where thinking ends and the answer begins: before a tool all text
counts as thinking, at the end the first paragraph.

An output is between two fences, and nothing in it is escaped. Its end is found by following the fences inside it: an opening
fence has a word after it, and a true end has a blank line behind it. What follows distinguishes an output that was cut off
inside a fence from one that quotes a transcript: no fence may be left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message, fingerprint
from everturn.sources.opencode.files import UNTITLED, created_at
from everturn.sources.opencode.parts import call_start, error_class
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.values import call_text, decode_value, digest, message_digest

FENCE = "```"
THINKING = "_Thinking:_"
HEADING = re.compile(r"## (User|Assistant|Shell)(?: \((.*)\))?\s*")
_TOOL = re.compile(r"\*\*Tool: (.+?)\*\*\s*")
_OLD_TOOL = "Tool: "
_INPUT, _RESULTS = "**Input:**", ("**Output:**", "**Error:**")
_TEXT_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")

#: How many lines are searched ahead or back, so that no file takes quadratic time.
_FAR = 400

Lines = Sequence[str]


class OpencodeToolSection(NamedTuple):
    """A tool's section; None for absent parts. `end` is the line after it."""

    name: str
    input: str | None
    output: str | None
    error: str | None
    end: int


def is_boundary(lines: Lines, at: int) -> bool:
    """Return whether a message begins here: a heading after a rule."""
    if not lines[at].startswith("## ") or HEADING.fullmatch(lines[at]) is None:
        return False
    for before in range(at - 1, max(at - _FAR, -1), -1):
        if lines[before].strip():
            return lines[before].strip() == "---"
    return True


def tool_at(lines: Lines, at: int) -> OpencodeToolSection | None:
    """Return the tool section that begins here, of either generation of the client; None without one."""
    name, old = _tool_name(lines, at)
    if not name:
        return None
    found: dict[str, str] = {}
    end = at + 1 + old
    while (label := _skip_blank(lines, end)) < len(lines) - 1:
        opening, key = lines[label + 1], lines[label]
        if key == _INPUT and opening == f"{FENCE}json" and not found:
            # Arguments are JSON, in which no line can begin with a fence.
            close = next((end for end in range(label + 2, len(lines)) if lines[end] == FENCE), len(lines))
        elif key in _RESULTS and opening == FENCE:
            close = _output_end(lines, label + 2, old)
        else:
            break
        found[key] = "\n".join(lines[label + 2 : close])
        end = close + 1
        if key in _RESULTS:
            break
    if old and (close := _skip_blank(lines, end)) < len(lines) and lines[close] == FENCE:
        end = close + 1
    return OpencodeToolSection(
        name, found.get(_INPUT), found.get(_RESULTS[0]), found.get(_RESULTS[1]), min(end, len(lines))
    )


def skip_fence(lines: Lines, at: int) -> int:
    """Return the line after the fenced block that begins here; `at` itself without one, or if it is never closed."""
    if (opening := _TEXT_FENCE.match(lines[at])) is None:
        return at
    marks, about = opening[1], opening[2].strip()
    for end in range(at + 1, min(at + _FAR, len(lines))):
        line = lines[end].strip()
        if line.startswith(marks) and not line.strip(marks[0]):
            return end + 1
        if line.startswith("## ") and about not in ("markdown", "md") and is_boundary(lines, end):
            break
    return at


def _tool_name(lines: Lines, at: int) -> tuple[str, bool]:
    line = lines[at]
    if line.startswith("**Tool: "):
        return (found[1], False) if (found := _TOOL.fullmatch(line)) else ("", False)
    if line == FENCE and at + 1 < len(lines) and lines[at + 1].startswith(_OLD_TOOL):
        return lines[at + 1][len(_OLD_TOOL) :].strip(), True
    return "", False


def _skip_blank(lines: Lines, at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _output_end(lines: Lines, at: int, old: bool) -> int:
    """Return the fence that ends an output which begins at `at`."""
    inside: list[bool] = []  # open fences: whether each belongs to a quoted tool section
    perhaps = -1  # the last fence that seemed to end something
    for end in range(at, len(lines)):
        if not lines[end].startswith(FENCE):
            if perhaps >= 0 and not inside and _is_outside(lines, end):
                return perhaps
        elif lines[end].strip() != FENCE:
            inside.append(False)
        elif inside:
            perhaps = perhaps if inside.pop() else end
            if perhaps == end and _continues(lines, end, old):
                return end
        elif _may_end(lines, end, old):
            return end
        else:
            inside.append(lines[end - 1] in _RESULTS)
    return len(lines) if perhaps < 0 else perhaps


def _may_end(lines: Lines, at: int, old: bool) -> bool:
    """Return whether a fence may end an output: a blank line follows, or in the older form the section's fence."""
    if lines[at - 1] in _RESULTS:  # it opens a quoted one
        return False
    after = lines[at + 1] if at + 1 < len(lines) else ""
    return after == FENCE if old else not after.strip()


def _continues(lines: Lines, at: int, old: bool) -> bool:
    """Return whether the transcript itself continues behind this fence: a message or a tool, and no fence left over."""
    after = _skip_blank(lines, at + 1)
    if old and after < len(lines) and lines[after] == FENCE:  # the end of the section
        after = _skip_blank(lines, after + 1)
    if after >= len(lines):
        return True
    if lines[after].strip() == "---":
        after = _skip_blank(lines, after + 1)
        if after >= len(lines):
            return True
        return is_boundary(lines, after) and _has_closed_fences(lines, after + 1)
    return bool(_tool_name(lines, after)[0]) or lines[after] == THINKING


def _is_outside(lines: Lines, at: int) -> bool:
    """Return whether something begins here that can only begin outside an output."""
    if lines[at].startswith("**Tool: "):
        return True
    return is_boundary(lines, at) and _has_closed_fences(lines, at + 1)


def _has_closed_fences(lines: Lines, at: int) -> bool:
    """Return whether all fences up to the next tool are closed; an output that quotes messages leaves one over."""
    fences = 0
    for here in range(at, min(at + _FAR, len(lines))):
        if lines[here].startswith("**Tool: "):
            break
        fences += lines[here].startswith(FENCE)
    return fences % 2 == 0


_TITLE = re.compile(r"# (.+)")
_SESSION = re.compile(r"\*\*Session ID:\*\* (ses_\w+)")
_CREATED = re.compile(r"\*\*Created:\*\* (.+)")
_LASTED = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)s")

_SHELL = re.compile(r"```sh\n\$ (.*?)\n```(?:\n+```text\n(.*)\n```)?\s*", re.DOTALL)
_HEAD_LINES = 12


def read_text(tally: ReadTally, session_tally: SessionTally, data: bytes, base: int, n: int) -> int:
    """Read a transcript, or an addition to one; return the new number of messages."""
    began: tuple[int | None, str] = None, ""
    for start, end in _split_messages(data):
        raw = data[start:end]
        if not base and not start and not HEADING.fullmatch(_lines(raw)[0]):
            began = _read_head(session_tally, _lines(raw))
            tally.count("(head)", "known")
            continue
        message = view_text(raw)
        at, precision = began if message.starts_turn else (began[0], began[1] and "day")
        mark = fingerprint(f"{session_tally.native_id}/{n}", message_digest(message))
        session_tally.messages.append(
            replace(message, at=at, precision=precision, start=base + start, size=len(raw), fingerprint=mark)
        )
        known = message.kind != "unknown"
        tally.count(message.role if known else "?", "message" if known else "unknown")
        began, n = (None, ""), n + 1
    return n


def view_text(record: bytes) -> Message:
    """Return the message of a range of a transcript."""
    lines = _lines(record)
    if (heading := HEADING.fullmatch(lines[0])) is None:
        block = Block("unknown", "\n".join(lines).strip("\n"), "meta")
        return Message("system", "system", "unknown", blocks=(block,), fidelity="rendered")
    who, name = heading[1], digest(record.decode("utf-8", "replace"))
    if who == "User":
        return _user("\n".join(lines[1:]).strip("\n"))
    return _shell("\n".join(lines[1:]), name) if who == "Shell" else _assistant(lines[1:], heading[2] or "", name)


# --- messages ---
def _user(text: str) -> Message:
    """Return a user's message; an empty one held only the client's insertions, which are not rendered."""
    blocks = (Block("text", text, "prompt"),) if text else ()
    origin, kind = ("human", "text") if text else ("injected", "context")
    return Message("user", origin, kind, blocks=blocks, starts_turn=bool(text), fidelity="rendered")


def _shell(text: str, name: str) -> Message:
    found = _SHELL.fullmatch(text.strip("\n"))
    blocks = [Block("text", text.strip("\n"), "prompt")]
    if found is not None:
        start = call_start(name, "bash", {"command": found[1]})
        blocks = [Block("call", f"bash\n{found[1]}", "tool_input", call=start)]
        blocks.append(Block("result", found[2] or "", "tool_output", result=CallEnd(name)))
    return Message("assistant", "human", "shell", blocks=tuple(blocks), starts_turn=True, fidelity="rendered")


def _assistant(lines: list[str], facts: str, name: str) -> Message:
    parts = facts.split(" · " if " · " in facts else " - ")  # the second is that of the client's second generation
    lasted = _LASTED.fullmatch(parts[-1]) if len(parts) > 1 else None
    model = " · ".join(parts[1:-1] if lasted else parts[1:])
    return Message(
        "assistant", "model", model=model, blocks=tuple(_blocks(lines, name)), fidelity="rendered",
        reported_ms=round(float(lasted[1]) * 1000) if lasted else None,
    )  # fmt: skip


def _blocks(lines: list[str], name: str) -> Iterator[Block]:
    at, prose, thinking, n = 0, list[str](), False, 0
    while at < len(lines):
        if (tool := tool_at(lines, at)) is None and lines[at] != THINKING:
            after = max(skip_fence(lines, at), at + 1)
            prose += lines[at:after]
            at = after
            continue
        yield from _prose_blocks(prose, thinking, False)
        prose, thinking = [], tool is None
        at = tool.end if tool is not None else at + 1
        if tool is not None:
            yield from _call_blocks(tool, f"{name}/{n}")
            n += 1
    yield from _prose_blocks(prose, thinking, True)


def _prose_blocks(prose: list[str], thinking: bool, at_end: bool) -> Iterator[Block]:
    text = "\n".join(prose).strip("\n")
    if thinking and at_end and text:
        first, _, rest = text.partition("\n\n")
        if first.startswith("**") and first.endswith("**"):  # the title of the thought
            more, _, rest = rest.partition("\n\n")
            first = f"{first}\n\n{more}"
        yield Block("thinking", first, "thinking")
        thinking, text = False, rest.strip("\n")
    if text:
        yield Block("thinking", text, "thinking") if thinking else Block("text", text, "answer")


def _call_blocks(tool: OpencodeToolSection, call_id: str) -> Iterator[Block]:
    """Yield a call and its result. Without arguments the result is unknown; with them, an empty one is not shown."""
    given = decode_value(tool.input.encode("utf-8", "replace")) if tool.input is not None else None
    start = call_start(call_id, tool.name, given if given is not None else tool.input)
    yield Block("call", call_text(start), "tool_input", call=start)
    if tool.error is not None:
        end = CallEnd(call_id, True, error_class(tool.error))
        yield Block("result", tool.error, "tool_output", result=end)
    elif tool.output is not None or tool.input is not None:
        yield Block("result", tool.output or "", "tool_output", result=CallEnd(call_id))


# --- the file ---
def _read_head(session_tally: SessionTally, lines: list[str]) -> tuple[int | None, str]:
    """Read what comes before the first message; return when the session began."""
    head = lines[:_HEAD_LINES]
    title = next((found[1] for line in head if (found := _TITLE.fullmatch(line))), "")
    if title and not title.startswith(UNTITLED):
        session_tally.learn(title=title, title_rank=1)
    session = next((found[1] for line in head if (found := _SESSION.fullmatch(line))), "")
    written = next((found[1] for line in head if (found := _CREATED.fullmatch(line))), "")
    at, precision = created_at(session, written)
    return at, "min" if precision == "ms" else precision


def _split_messages(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the head and of each message, without the rules between them."""
    lines, offsets, at = _lines(data), [0], 0
    for line in data.split(b"\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    begin, inside = 0, False
    while at < len(lines):
        if is_boundary(lines, at):
            yield from _trim_range(lines, offsets, begin, at)
            begin, inside = at, True
            at += 1
            continue
        tool = tool_at(lines, at) if inside else None
        at = max(tool.end if tool is not None else skip_fence(lines, at), at + 1)
    yield from _trim_range(lines, offsets, begin, len(lines), len(data))


def _trim_range(
    lines: list[str], offsets: list[int], begin: int, end: int, limit: int = 1 << 62
) -> Iterator[tuple[int, int]]:
    while end > begin and lines[end - 1].strip() in ("", "---"):
        end -= 1
    if end > begin:
        yield offsets[begin], min(offsets[end] - 1, limit)


def _lines(data: bytes) -> list[str]:
    """Split into lines. A carriage return ends a line only if it does so in the first line: outputs have their own."""
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in lines] if lines[0].endswith("\r") else lines
