"""A session as Markdown for people: one heading per turn, prompts, answers, tool calls with their output.

Text of a transcript cannot leave its position on the page. Messages are block quotes, output has a fence longer than any
inside, names and paths are code. So no answer can look like a heading of ours, and nothing left open swallows the rest.
Control characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from everturn.export.json_document import source_facts
from everturn.model.archive import Call, Session, SessionText
from everturn.sessions.lineage import Relative, lineage
from everturn.sessions.messages import Passage, Sources, has_words, is_shown, passages, read_turns
from everturn.store.contract import Store
from everturn.text.printable import one_line, printable
from everturn.text.times import duration, minute, turn_ms

Clean = Callable[[str], str]

_SPEAKERS = {
    "prompt": "User",
    "answer": "Agent",
    "thinking": "Thinking",
    "output": "Output",
    "context": "Context",
    "notice": "Notice",
    "notification": "Notification",
    "summary": "Summary",
    "unknown": "Unknown record",
}
_MARKS = {"compaction": "The context was compacted here.", "interrupt": "Interrupted by the user."}
_BLANK = re.compile(r"^> $", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")


def as_markdown(
    store: Store,
    sources: Sources,
    session: Session,
    clean: Clean | None = None,
    thinking: bool = False,
    context: bool = False,
) -> Iterator[str]:
    """Yield the parts of the page. Text that the client injected and the model's thinking are optional."""
    page = _MarkdownPage(clean or (lambda text: text))
    yield from _write_head(store, session, page)
    for view in read_turns(store, session):
        turn, lasted = view.turn, turn_ms(view.turn)
        parts = [f"## Turn {turn.idx + 1}"]
        parts += [minute(turn.started)] if turn.started is not None else []
        parts += [duration(lasted)] if lasted else []
        parts += ["taken back"] * turn.taken_back
        yield " · ".join(parts) + "\n\n"
        for passage in passages(store, sources, session, view, results=True):
            if is_shown(passage, thinking, context):
                yield from _write_passage(passage, page)


class _MarkdownPage:
    """Puts text of the archive on the page."""

    def __init__(self, clean: Clean) -> None:
        self._clean = clean

    def text(self, text: str) -> str:
        """Return text without secrets and with visible control characters."""
        return printable(self._clean(text)).strip("\n")

    def quote(self, text: str) -> str:
        return _BLANK.sub(">", "> " + self.text(text).replace("\n", "\n> ")) + "\n\n"

    def fence(self, text: str) -> Iterator[str]:
        """Yield text as it is, in a fence longer than any inside."""
        shown = self.text(text)
        fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
        yield f"{fence}\n"
        yield shown
        yield f"\n{fence}\n\n"

    def code(self, text: str, width: int = 200) -> str:
        shown = one_line(self._clean(text), width)
        ticks = "`" * (1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
        pad = " " if shown.startswith("`") or shown.endswith("`") else ""
        return f"{ticks}{pad}{shown}{pad}{ticks}" if shown else ""

    def title(self, text: str) -> str:
        """Return text on one line with all Markdown characters escaped."""
        return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", one_line(self._clean(text), 120))


def _write_head(store: Store, session: Session, page: _MarkdownPage) -> Iterator[str]:
    text = store.session(session.id)[1]
    yield f"# {page.title(text.title or text.first_prompt or session.native_id)}\n\n"
    for name, value in _head_facts(store, session, text, page):
        if value:
            yield f"- {name}: {value}\n"
    if not has_words(session):
        yield "\nOnly the structure of this session was kept (mode `structure`): there are no words to show.\n"
    yield "\n"


def _head_facts(store: Store, session: Session, text: SessionText, page: _MarkdownPage) -> Iterator[tuple[str, str]]:
    yield "Session", page.code(session.native_id)
    yield "Agent", page.code(" ".join(filter(None, (session.agent, session.client))))
    yield "Model", page.code(session.model)
    yield "Workspace", page.code(text.workspace)
    yield "Branch", page.code(text.branch)
    yield "Time", " to ".join(minute(ms) for ms in (session.started, session.ended) if ms is not None)
    yield "Turns", f"{session.n_turns:,}"
    yield "Tool calls", f"{session.n_calls:,}" + (f", {session.n_errors:,} failed" if session.n_errors else "")
    source = source_facts(store, session)
    yield "Source", f"{page.code(source['path'], 1000)}, version {source['version']}"
    relatives = lineage(store, session)
    for one in (*relatives.ancestors, *relatives.forks, *relatives.children):
        yield _RELATIONS.get(one.relation, one.relation), _relative(one, relatives.ancestors, page)


_RELATIONS = {
    "subagent_of": "Subagent",
    "forked_from": "Fork",
    "continues": "Continued",
    "output_of": "Saved output",
    "teammate_of": "Team",
}


def _relative(one: Relative, ancestors: list[Relative], page: _MarkdownPage) -> str:
    text = f"of {page.code(one.native_id)}" if one in ancestors else page.code(one.native_id)
    if one.call is not None:
        text += f", started in turn {one.call.turn + 1}"
    return text if one.session is not None else f"{text} (not in the archive)"


def _write_passage(passage: Passage, page: _MarkdownPage) -> Iterator[str]:
    if passage.kind in ("call", "result"):
        yield from _call(passage, page)
    elif passage.kind in _MARKS:
        yield f"*{_MARKS[passage.kind]}*\n\n"
    elif passage.kind == "problem":
        yield f"*Could not be read: {page.title(passage.text)}*\n\n"
    elif passage.text:
        yield f"**{_speaker_name(passage)}**\n\n{page.quote(passage.text)}"


def _speaker_name(passage: Passage) -> str:
    name = _SPEAKERS.get(passage.kind, passage.kind.capitalize())
    row = passage.row
    if passage.kind == "prompt" and row is not None:
        name = "Agent's request" if row.origin == "agent" else name
        return f"{name} ({row.kind})" if row.kind != "text" else name
    return name


def _call(passage: Passage, page: _MarkdownPage) -> Iterator[str]:
    call, start = passage.call, passage.start
    name = start.name if start else "result without a call"
    about = (start.command or start.path) if start else ""
    parallel = ", in parallel" if passage.batch > 1 else ""
    facts = " · ".join(filter(None, (page.code(name, 80), status(call) + parallel, page.code(about))))
    yield f"- {facts}\n\n"
    if passage.result is not None and passage.result.text:
        yield from page.fence(passage.result.text)


def status(call: Call | None) -> str:
    """Describe how a call ended in a few words."""
    if call is None or call.status == "open":
        return "no result"
    words = "ok" if call.status == "ok" or (call.status == "orphan" and not call.error_class) else "error"
    return ", ".join(filter(None, (words, call.failure, duration(call.duration_ms))))
