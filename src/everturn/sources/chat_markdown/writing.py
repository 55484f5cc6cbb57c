"""A session written out as a saved conversation: what was asked and answered, and the summary.

What the format has no place for is left out (thinking, what tools printed, what a client put in); a tool call is one line of
the answer. Read again, the file gives the same prompts, answers, times, tokens, summary and links.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.times import iso
from everturn.model.conversation import Message, SessionPart
from everturn.sources.chat_markdown.layout import END, RULE, START, guard_words
from everturn.sources.chat_markdown.message import ChatHeader, header, resumed_from

_DAY_MILLISECONDS = 86_400_000


def write(part: SessionPart) -> str:
    """The text of a file. Turns are told by `Message.starts_turn`."""
    before, turns = _turns(part.messages)
    head = _header(part, before, len(turns))
    sections = [_head_text(head)]
    restored = _restored_section(head, before)
    sections += [restored] if restored else []
    sections += [_query(number, head.agent, turn) for number, turn in enumerate(turns, 1)]
    text = f"\n\n{RULE}\n\n".join(sections) + f"\n\n{RULE}\n"
    if part.facts.summary:
        text += f"\n{START}\n{guard_words(part.facts.summary)}\n{END}\n"
    return text


def _turns(messages: list[Message]) -> tuple[list[Message], list[list[Message]]]:
    """What stands before the first prompt, and the turns: prompts in a row are one."""
    before: list[Message] = []
    turns: list[list[Message]] = []
    answered = True
    for message in messages:
        if message.starts_turn and answered:
            turns.append([])
            answered = False
        (turns[-1] if turns else before).append(message)
        answered = answered or message.role == "assistant"
    return before, turns


def _header(part: SessionPart, before: list[Message], queries: int) -> ChatHeader:
    facts = part.facts
    own = next((header(block.text) for m in before for block in m.blocks if m.kind == "notice" and block.text[:2] == "# "), ChatHeader())  # fmt: skip
    started = next((message.at for message in part.messages if message.at is not None), None)
    said = any(resumed_from(_text(message, "meta"))[0] for message in before if message.kind == "context")
    continued = "" if said else next((link.native_id for link in part.links if link.relation == "continues"), "")
    return ChatHeader(
        part.native_id,
        _line(own.agent or facts.agent_name).replace("*", "") or "Agent",
        own.date or iso(started).removesuffix("Z"),
        own.agent_path or (facts.workspace.rstrip("/\\") + "/" if facts.workspace else ""),
        own.resumed_from or continued,
        own.previous,
        str(queries),
    )


def _head_text(head: ChatHeader) -> str:
    fields = (
        ("Session ID", head.session),
        ("Date", head.date),
        ("Agent", head.agent),
        ("Agent Path", head.agent_path),
        ("Total Queries", head.queries),
        ("Resumed From", head.resumed_from),
        ("Previous Session", head.previous),
    )
    lines = [f"**{name}:** {_line(value)}" for name, value in fields if value]
    return "\n".join([f"# {head.agent} Conversation", "", *lines])


def _restored_section(head: ChatHeader, before: list[Message]) -> str:
    """What was said before the first prompt: the agent has read the summary of the session before."""
    context = next((text for m in before if (text := _text(m, "meta")).startswith("## Session Restored")), "")
    answer = _answer(head.agent, before)
    if not context and not answer:
        return ""
    resumed_from = f"\n**Context:** Resumed from {head.resumed_from}" if head.resumed_from else ""
    return f"{context or f'## Session Restored ({_clock(before)}){resumed_from}'}{answer}"


def _query(number: int, agent: str, turn: list[Message]) -> str:
    asked = "\n\n".join(filter(None, (_text(message, "prompt") for message in turn if message.starts_turn)))
    return f"## Query {number} ({_clock(turn)})\n**You:** {guard_words(asked, agent)}{_answer(agent, turn)}"


def _answer(agent: str, messages: list[Message]) -> str:
    answers = [message for message in messages if message.role == "assistant"]
    if not answers:
        return ""
    words = guard_words("\n\n".join(text for message in answers for text in _answer_texts(message)), agent)
    return f"\n\n**{agent}:** {words}{_metrics(answers)}"


def _answer_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if block.call is not None:
            about = block.call.path or block.call.command
            yield f"[tool: {block.call.name}{' ' + about if about else ''}]"
        elif block.field == "answer" and block.text:
            yield block.text


def _metrics(messages: list[Message]) -> str:
    took = sum(message.reported_ms or 0 for message in messages)
    used = [message.usage for message in messages if message.usage is not None]
    if not took and not used and not any(message.reported_ms is not None for message in messages):
        return ""
    given, said = sum(usage.input for usage in used), sum(usage.output for usage in used)
    tokens = f" | Tokens: {given + said} (in: {given}, out: {said})" if used else ""
    return f"\n\n*Time: {took / 1000:g}s{tokens}*"


def _text(message: Message, field: str) -> str:
    return "\n".join(block.text for block in message.blocks if block.field == field)


def _clock(messages: list[Message]) -> str:
    at = next((message.at for message in messages if message.at is not None and message.kind != "notice"), 0)
    seconds = at % _DAY_MILLISECONDS // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _line(text: str) -> str:
    return " ".join(text.split())
