"""The layout of a saved conversation, and the conversion of one passage into a message, independently of the others.

    # <Agent> Conversation               then **Session ID:**, **Date:**, **Agent:**, … up to a rule
    ## Session Restored (HH:MM:SS)       then **Context:**, **Previous Session:** and the agent's reply to them
    ## Query 1 (HH:MM:SS)
    **You:** …
    **<Agent>:** …
    *Time: 3.2s | Tokens: 345 (in: 123, out: 222)*
    ---
    <!-- SESSION_SUMMARY_START -->       … <!-- SESSION_SUMMARY_END -->

Where several agents answered, the header names the others under **Also Answered:**, and each answer has its agent's name.
Messages may contain lines that look like any of these. A heading counts only after a rule and with a higher number than the
last one, a summary only after a rule, the metrics line or another summary, and each speaker once per section. Where our own
writer meets a line that would still be mistaken for the layout, `guard_text` escapes it with a backslash and `unguard_text`
removes that again.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple

from msgspec import Struct

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.toolkit.line_reader import text_of
from everturn.sources.toolkit.values import milliseconds, text_blocks, word
from everturn.text.lazy_pattern import lazy_pattern

RULE = "---"
START, END = "<!-- SESSION_SUMMARY_START -->", "<!-- SESSION_SUMMARY_END -->"

QUERY = lazy_pattern(r"## Query (\d{1,9}) \((\d\d:\d\d:\d\d)\)\s*")
RESTORED = lazy_pattern(r"## Session Restored \((\d\d:\d\d:\d\d)\)\s*")
SPOKEN = lazy_pattern(r"\*\*([^*\n]{1,200}):\*\*(?: |$)")
METRICS = lazy_pattern(r"\*Time: ([\d.,]+) ?s(?: \| Tokens: ([\d.,]+[KkM]?)(?: \(in: ([\d.,]+[KkM]?), out: ([\d.,]+[KkM]?)\))?)?\*\s*")  # fmt: skip
_LAYOUT_TITLE = lazy_pattern(r"(?:\ufeff)?# (.{1,200}) Conversation\s*")
_AGENT = lazy_pattern(r"\*\*Agent:\*\* +(\S.{0,199}?)\s*")
_ALSO = lazy_pattern(r"\*\*Also Answered:\*\* +(\S.{0,999}?)\s*")
_MOST_AGENTS = 20
_YOU = "**You:**"
_GUARDED = lazy_pattern(
    r"(\\*)(?:(## (?:Query \d{1,9}|Session Restored) \(\d\d:\d\d:\d\d\)|<!-- SESSION_SUMMARY_(?:START|END) -->)|(---|\*Time: .*\*))\s*$"
    r"|(\\*)\*\*([^*\n]{1,200}):\*\*"
)


class ChatLineState(Struct):
    """The state that `opens` carries from line to line."""

    begun: bool = False
    part: str = ""  # header restored query prompt answer summary after
    agent: str = ""
    query: int = 0
    others: list[str] = []  # further agents that answered
    mark: str = ""  # the kind of the last line that was not blank: rule metrics end, or none of these


def opens(known: ChatLineState, line: str) -> bool:
    """Return whether a passage begins with this line. `Passages` calls it for every line in order."""
    mark = known.mark
    if line.strip():
        bare = line.strip()
        known.mark = "rule" if bare == RULE else "metrics" if METRICS.fullmatch(line) else "end" if bare == END else ""
    if known.part == "summary":
        if mark == "end" and line.strip():
            known.part = "after"
            return _begins_section(known, line, mark) or _begins_summary(known, line, mark) or True
        return _begins_section(known, line, mark)
    return _begins_section(known, line, mark) or _begins_summary(known, line, mark) or _begins_answer(known, line)


def _begins_section(known: ChatLineState, line: str, mark: str) -> bool:
    if not known.part:
        title = _LAYOUT_TITLE.fullmatch(line)
        known.part, known.agent = "header", title[1] if title else ""
        return False
    if known.part == "header":
        agent = _AGENT.fullmatch(line)
        known.agent = agent[1] if agent else known.agent
        also = _ALSO.fullmatch(line)
        known.others = [one.strip() for one in also[1].split(",")][:_MOST_AGENTS] if also else known.others
    if not line.startswith("## ") or mark not in ("rule", "end"):
        return False
    if (query := QUERY.fullmatch(line)) is not None and int(query[1]) > known.query:
        known.part, known.query = "query", int(query[1])
        return True
    if RESTORED.fullmatch(line) and known.part == "header":
        known.part = "restored"
        return True
    return False


def _begins_summary(known: ChatLineState, line: str, mark: str) -> bool:
    if line.strip() not in (START, END) or mark not in ("rule", "metrics", "end"):
        return False
    known.part = "summary"
    return True


def _begins_answer(known: ChatLineState, line: str) -> bool:
    if known.part == "query" and line.startswith(_YOU):
        known.part = "prompt"  # one passage with its heading
    elif known.part in ("query", "prompt", "restored"):
        name = SPOKEN.match(line)
        if name and (
            name[1] in (known.agent, *known.others)
            or (not known.agent and name[1] not in ("You", "Context", "Previous Session"))
        ):
            known.part = "answer"
            return True
    return False


def guard_text(text: str, *agents: str) -> str:
    """Escape the lines that would be mistaken for a heading, an agent's name or the end of a section."""
    lines = text.split("\n")
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    return "\n".join(
        f"\\{line}" if _is_layout_line(line, agents, number == last) else line for number, line in enumerate(lines)
    )


def unguard_text(text: str) -> str:
    """Undo `guard_text`."""
    return "\n".join(line[1:] if line[:1] == "\\" and _GUARDED.match(line) else line for line in text.split("\n"))


def _is_layout_line(line: str, agents: tuple[str, ...], is_last: bool) -> bool:
    if (match := _GUARDED.match(line)) is None:
        return False
    backslashes, heading, ending, before, name = match.groups()
    return bool(backslashes or before or heading or (ending and is_last) or (name and name in agents))


_FIELD = lazy_pattern(r"^\*\*([A-Z][A-Za-z ]{1,30}):\*\*[ \t]+(\S[^\r\n]*?)[ \t\r]*$", re.MULTILINE)
_TITLE = lazy_pattern(r"\s*# ([^\n]{1,200}) Conversation\s*$", re.MULTILINE)
_RESUMED = lazy_pattern(r"[Rr]esumed from (\S+)")
_FACTOR = {"K": 1000, "k": 1000, "M": 1_000_000}


class ChatHeader(NamedTuple):
    """The facts at the beginning of a file."""

    session: str = ""
    agent: str = ""
    date: str = ""
    agent_path: str = ""
    resumed_from: str = ""
    previous: str = ""  # the file of the previous session
    queries: str = ""
    folder: str = ""  # the workspace, if the file names it
    others: str = ""  # further agents that answered

    @property
    def workspace(self) -> str:
        """Return the workspace, or else the folder of the agent."""
        path = self.agent_path
        if self.folder or not ("/" in path or "\\" in path):
            return self.folder
        windows = "\\" in path and "/" not in path
        if path[-1] in "/\\":
            return path.rstrip("/\\") or path[:1]
        return str((PureWindowsPath if windows else PurePosixPath)(path).parent)


def view(record: bytes) -> Message | None:
    text, _ = text_of(record)
    return build(part_of(text), text)


def part_of(text: str) -> str:
    """Return the part of the layout that a passage is, judged by its first line."""
    first = text.lstrip("\ufeff\r\n ").partition("\n")[0].rstrip("\r")
    if QUERY.fullmatch(first):
        return "prompt"
    if RESTORED.fullmatch(first):
        return "restored"
    if first.strip() in (START, END):
        return "summary"
    if _TITLE.match(first):
        return "header"
    return "answer" if SPOKEN.match(first) or not _FIELD.match(first) else "header"


def build(part: str, text: str) -> Message:
    """Return the message of a passage; `rest` is a prompt's text that was appended after the prompt was read."""
    if part == "header":
        at, precision = milliseconds(parse_header(text).date)
        return Message("system", "system", "notice", at, precision, blocks=_meta_blocks(text), fidelity="rendered")
    if part == "restored":
        return Message("user", "injected", "context", blocks=_meta_blocks(text), fidelity="rendered")
    if part == "summary":
        return _build_summary(text)
    if part in ("prompt", "rest"):
        typed = text.strip().partition("\n")[2] if part == "prompt" else text
        blocks = text_blocks(unguard_text(_strip_rule(typed).removeprefix("**You:**").strip()), "prompt")
        return Message("user", "human", "text", blocks=blocks, starts_turn=True, fidelity="rendered")
    return _build_answer(text)


def parse_header(text: str) -> ChatHeader:
    """Return the facts at the beginning of a file."""
    start = text.partition("\n---")[0]
    title = _TITLE.match(start.lstrip("\ufeff"))
    fields = _parse_fields(start)
    return ChatHeader(
        fields.get("Session ID", ""), fields.get("Agent", "") or (word(title[1]) if title else ""),
        fields.get("Date", ""), fields.get("Agent Path", ""), fields.get("Resumed From", ""),
        fields.get("Previous Session", ""), fields.get("Total Queries", ""), fields.get("Workspace", ""),
        fields.get("Also Answered", ""),
    )  # fmt: skip


def resumed_from(text: str) -> tuple[str, str]:
    """Return the session that a restored one continues, and its file."""
    fields = _parse_fields(text)
    named = _RESUMED.search(fields.get("Context", ""))
    return named[1] if named else "", fields.get("Previous Session", "")


def _parse_fields(text: str) -> dict[str, str]:
    return {name: word(value) for name, value in reversed(_FIELD.findall(text))}


def summary_text(text: str) -> str | None:
    """Return the text between the summary marks; None when they do not pair."""
    if not text.strip().startswith(START):
        return None
    inside = text.strip().removeprefix(START)
    end = inside.find("\n" + END)
    return inside[:end].strip() if end >= 0 else None


def _build_summary(text: str) -> Message:
    if (inside := summary_text(text)) is None:
        return Message("system", "system", "notice", blocks=_meta_blocks(text), fidelity="rendered")
    blocks = text_blocks(unguard_text(inside), "summary")
    return Message("system", "system", "summary", blocks=blocks, fidelity="rendered")


def _build_answer(text: str) -> Message:
    body = _strip_rule(text)
    *lines, last = body.split("\n") if body else [""]
    if (metrics := METRICS.fullmatch(last)) is not None:
        body = "\n".join(lines)
    spoken = SPOKEN.match(body)
    answer = unguard_text(body[spoken.end() if spoken else 0 :].strip())
    usage = None
    if metrics and metrics[3]:
        usage = TokenUsage(round(_parse_number(metrics[3])), round(_parse_number(metrics[4])))
    return Message(
        "assistant", "model", "text", blocks=text_blocks(answer, "answer"), usage=usage, speaker=spoken[1] if spoken else "",
        reported_ms=round(_parse_number(metrics[1]) * 1000) if metrics else None, fidelity="rendered",
    )  # fmt: skip


def _parse_number(text: str) -> float:
    factor = _FACTOR.get(text[-1:], 1)
    try:
        return min(float(text.rstrip("KkM").replace(",", "")) * factor, float(1 << 50))
    except ValueError:
        return 0.0


def _strip_rule(text: str) -> str:
    lines = text.strip().split("\n")
    while lines and lines[-1].strip() in ("", RULE):
        lines.pop()
    return "\n".join(lines).rstrip()


def _meta_blocks(text: str) -> tuple[Block, ...]:
    return text_blocks(_strip_rule(text.lstrip("\ufeff")), "meta")
