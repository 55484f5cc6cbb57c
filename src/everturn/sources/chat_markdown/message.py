"""One passage → one message, without knowing the passages around it: used by the reader and by `view` alike."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.chat_markdown.layout import END, METRICS, QUERY, RESTORED, RULE, SPOKEN, START, unguard_words
from everturn.sources.foreign import milliseconds, word
from everturn.sources.passages import text_of

_FIELD = re.compile(r"^\*\*([A-Z][A-Za-z ]{1,30}):\*\*[ \t]+(\S[^\r\n]*?)[ \t\r]*$", re.MULTILINE)
_TITLE = re.compile(r"\s*# ([^\n]{1,200}) Conversation\s*$", re.MULTILINE)
_RESUMED = re.compile(r"[Rr]esumed from (\S+)")
_FACTOR = {"K": 1000, "k": 1000, "M": 1_000_000}


class ChatHeader(NamedTuple):
    """What the beginning of a file says."""

    session: str = ""
    agent: str = ""
    date: str = ""
    agent_path: str = ""
    resumed_from: str = ""
    previous: str = ""  # the file of the session before
    queries: str = ""

    @property
    def workspace(self) -> str:
        """The folder of the agent."""
        path = self.agent_path
        if not path:
            return ""
        windows = "\\" in path and "/" not in path
        if path[-1] in "/\\":
            return path.rstrip("/\\") or path[:1]
        return str((PureWindowsPath if windows else PurePosixPath)(path).parent)


def view(record: bytes) -> Message | None:
    """The message of a passage, judged by itself."""
    text, _ = text_of(record)
    return build(part_of(text), text)


def part_of(text: str) -> str:
    """What a passage is, judged by its first line."""
    first = text.lstrip("\ufeff\r\n ").partition("\n")[0].rstrip("\r")
    if QUERY.fullmatch(first):
        return "prompt"
    if RESTORED.fullmatch(first):
        return "restored"
    if first.strip() == START:
        return "summary"
    if _TITLE.match(first):
        return "header"
    return "answer" if SPOKEN.match(first) or not _FIELD.match(first) else "header"


def build(part: str, text: str) -> Message:
    """The message of a passage; `rest` is what came later of a prompt."""
    if part == "header":
        at, precision = milliseconds(header(text).date)
        return Message("system", "system", "notice", at, precision, blocks=_words(text, "meta"), fidelity="rendered")
    if part == "restored":
        return Message("user", "injected", "context", blocks=_words(text, "meta"), fidelity="rendered")
    if part == "summary":
        return _summary(text)
    if part in ("prompt", "rest"):
        typed = text.strip().partition("\n")[2] if part == "prompt" else text
        said = unguard_words(_without_rule(typed).removeprefix("**You:**").strip())
        blocks = (Block("text", said, "prompt"),) if said else ()
        return Message("user", "human", "text", blocks=blocks, starts_turn=True, fidelity="rendered")
    return _answer(text)


def header(text: str) -> ChatHeader:
    """The facts in the beginning of a file."""
    start = text.partition("\n---")[0]
    title = _TITLE.match(start.lstrip("\ufeff"))
    found = {name: word(value) for name, value in reversed(_FIELD.findall(start))}
    return ChatHeader(
        found.get("Session ID", ""),
        found.get("Agent", "") or (word(title[1]) if title else ""),
        found.get("Date", ""),
        found.get("Agent Path", ""),
        found.get("Resumed From", ""),
        found.get("Previous Session", ""),
        found.get("Total Queries", ""),
    )


def resumed_from(text: str) -> tuple[str, str]:
    """The session a restored one goes on from, and its file."""
    found = {name: word(value) for name, value in reversed(_FIELD.findall(text))}
    named = _RESUMED.search(found.get("Context", ""))
    return named[1] if named else "", found.get("Previous Session", "")


def summary_text(text: str) -> str | None:
    """The words between the marks; None where they do not pair."""
    inside = text.strip().removeprefix(START)
    end = inside.find("\n" + END)
    return inside[:end].strip() if end >= 0 else None


def _summary(text: str) -> Message:
    inside = summary_text(text)
    if inside is None:
        return Message("system", "system", "notice", blocks=_words(text, "meta"), fidelity="rendered")
    blocks = (Block("text", unguard_words(inside), "summary"),) if inside else ()
    return Message("system", "system", "summary", blocks=blocks, fidelity="rendered")


def _answer(text: str) -> Message:
    body = _without_rule(text)
    *lines, last = body.split("\n") if body else [""]
    metrics = METRICS.fullmatch(last)
    if metrics is not None:
        body = "\n".join(lines)
    spoken = SPOKEN.match(body)
    said = unguard_words(body[spoken.end() if spoken else 0 :].strip("\r\n").strip())
    return Message(
        "assistant",
        "model",
        "text",
        blocks=(Block("text", said, "answer"),) if said else (),
        usage=_usage(metrics) if metrics else None,
        reported_ms=round(_number(metrics[1]) * 1000) if metrics else None,
        fidelity="rendered",
    )


def _usage(metrics: re.Match[str]) -> TokenUsage | None:
    if not metrics[3]:
        return None
    return TokenUsage(round(_number(metrics[3])), round(_number(metrics[4])))


def _number(text: str) -> float:
    factor = _FACTOR.get(text[-1:], 1)
    try:
        return min(float(text.rstrip("KkM").replace(",", "")) * factor, float(1 << 50))
    except ValueError:
        return 0.0


def _without_rule(text: str) -> str:
    lines = text.strip().split("\n")
    while lines and lines[-1].strip() in ("", RULE):
        lines.pop()
    return "\n".join(lines).rstrip()


def _words(text: str, field: str) -> tuple[Block, ...]:
    bare = _without_rule(text.lstrip("\ufeff"))
    return (Block("text", bare, field),) if bare else ()
