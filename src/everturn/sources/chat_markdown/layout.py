"""What the lines of a saved conversation are.

    # <Agent> Conversation               then **Session ID:**, **Date:**, **Agent:**, … up to a rule
    ## Session Restored (HH:MM:SS)       then **Context:**, **Previous Session:** and what the agent said to it
    ## Query 1 (HH:MM:SS)
    **You:** …
    **<Agent>:** …
    *Time: 3.2s | Tokens: 345 (in: 123, out: 222)*
    ---
    <!-- SESSION_SUMMARY_START -->       … <!-- SESSION_SUMMARY_END -->

What is said may look like any of these. A heading counts only after a rule and with a higher number than the last one, a
summary only after a rule, the time or another summary, and each speaker once per section. `guard_words` puts a backslash before
a line that would still be taken for the layout, and `unguard_words` takes it off: that is what our own files have.
"""

from __future__ import annotations

import re

from msgspec import Struct

RULE = "---"
START, END = "<!-- SESSION_SUMMARY_START -->", "<!-- SESSION_SUMMARY_END -->"

QUERY = re.compile(r"## Query (\d{1,9}) \((\d\d:\d\d:\d\d)\)\s*")
RESTORED = re.compile(r"## Session Restored \((\d\d:\d\d:\d\d)\)\s*")
SPOKEN = re.compile(r"\*\*([^*\n]{1,200}):\*\*(?: |$)")
METRICS = re.compile(r"\*Time: ([\d.,]+) ?s(?: \| Tokens: ([\d.,]+[KkM]?)(?: \(in: ([\d.,]+[KkM]?), out: ([\d.,]+[KkM]?)\))?)?\*\s*")  # fmt: skip
_LAYOUT_TITLE = re.compile(r"(?:\ufeff)?# (.{1,200}) Conversation\s*")
_AGENT = re.compile(r"\*\*Agent:\*\* +(\S.{0,199}?)\s*")
_YOU = "**You:**"
_GUARDED = re.compile(
    r"(\\*)(?:(## (?:Query \d{1,9}|Session Restored) \(\d\d:\d\d:\d\d\)|<!-- SESSION_SUMMARY_(?:START|END) -->)|(---|\*Time: .*\*))\s*$"
    r"|(\\*)\*\*([^*\n]{1,200}):\*\*"
)


class ChatLineState(Struct):
    """What is known of the lines before."""

    begun: bool = False
    part: str = ""  # header restored query prompt answer summary after
    agent: str = ""
    query: int = 0
    mark: str = ""  # what the last line with words was: rule metrics end, or nothing of these


def opens(known: ChatLineState, line: str) -> bool:
    """Does a passage begin with this line? (`Passages` asks for every line in order.)"""
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
    if not line.startswith("## ") or mark not in ("rule", "end"):
        return False
    query = QUERY.fullmatch(line)
    if query is not None and int(query[1]) > known.query:
        known.part, known.query = "query", int(query[1])
        return True
    if RESTORED.fullmatch(line) and known.part == "header":
        known.part = "restored"
        return True
    return False


def _begins_summary(known: ChatLineState, line: str, mark: str) -> bool:
    if line.strip() != START or mark not in ("rule", "metrics", "end"):
        return False
    known.part = "summary"
    return True


def _begins_answer(known: ChatLineState, line: str) -> bool:
    if known.part == "query" and line.startswith(_YOU):
        known.part = "prompt"  # one passage with its heading
    elif known.part in ("query", "prompt", "restored"):
        name = SPOKEN.match(line)
        if name and (
            name[1] == known.agent or (not known.agent and name[1] not in ("You", "Context", "Previous Session"))
        ):
            known.part = "answer"
            return True
    return False


def guard_words(text: str, agent: str = "") -> str:
    """Words that nothing in the layout can be mistaken for: neither a heading nor the agent's name nor what ends a section."""
    lines = text.split("\n")
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    return "\n".join(
        f"\\{line}" if _is_layout_line(line, agent, number == last) else line for number, line in enumerate(lines)
    )


def unguard_words(text: str) -> str:
    """The words again."""
    return "\n".join(line[1:] if line[:1] == "\\" and _GUARDED.match(line) else line for line in text.split("\n"))


def _is_layout_line(line: str, agent: str, is_last: bool) -> bool:
    found = _GUARDED.match(line)
    if found is None:
        return False
    backslashes, heading, ending, before, name = found.groups()
    return bool(backslashes or before or heading or (ending and is_last) or (agent and name == agent))
