"""How a new session is told what came before it.

The prompt holds the summary of the session before, and only of that one (several, when several are taken up together);
what lies further back is reached by recall. It is put into the conversation as something nobody typed, and the model's
short acknowledgment is the first thing said: counted in tokens, not as a query.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from everturn.chat.meter import short
from everturn.chat.saved import path_of
from everturn.chat.setting import ChatSetup
from everturn.chat.summaries import END, START
from everturn.derive.times import iso
from everturn.model.archive import Session
from everturn.recall.lineage import ancestors

_ACKNOWLEDGE_TASK = """Task: Review the above and provide a brief acknowledgment (2-6 sentences or bullets) that includes:
1. Main topics discussed
2. Key decisions made
3. Confirmation you're ready to continue

Keep your response concise."""


class EarlierSummary(Struct, frozen=True):
    """A session that another goes on from."""

    session: str
    agent: str = ""  # whose session it is in the archive
    date: str = ""
    queries: int = 0
    tokens: int = 0
    came_from: str = ""
    path: str = ""  # of its saved conversation
    text: str = ""  # its summary, or a document about it
    strategy: str = "summary"  # summary | document

    @property
    def counts(self) -> str:
        """`5 queries, 2.3K tokens`."""
        return f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}, {short(self.tokens)} tokens"


def tell_earlier(setting: ChatSetup, session: Session, text: str, strategy: str = "summary") -> EarlierSummary:
    """What there is to say about a session that is taken up again."""
    elders = ancestors(setting.store, session)
    path = path_of(setting, session)
    return EarlierSummary(
        session.native_id,
        session.agent,
        iso(session.ended or session.started)[:16].replace("T", " "),
        session.n_prompts,
        tokens_of(session),
        elders[0].native_id if elders else "",
        str(path) if path is not None and path.is_file() else "",
        text,
        strategy,
    )


def tokens_of(session: Session) -> int:
    """All tokens of a session."""
    return session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write


def restoration_prompt(sessions: Sequence[EarlierSummary]) -> str:
    """What the model is told, and asked to acknowledge."""
    dates = ", ".join(dict.fromkeys(one.date for one in sessions if one.date))
    several = "several previous conversations" if len(sessions) > 1 else "a previous conversation"
    head = f"CONTEXT RESTORATION: You are continuing {several}{f' from {dates}' if dates else ''}."
    return "\n\n".join([head, *(_summary_section(one) for one in sessions), _ACKNOWLEDGE_TASK])


def restoration_heading(sessions: Sequence[EarlierSummary], clock: str) -> str:
    """The section of a saved conversation that stands before the acknowledgment."""
    lines = [f"## Session Restored ({clock})"]
    lines += [f"**Context:** Resumed from {one.session} ({one.counts})" for one in sessions]
    lines += [f"**Previous Session:** {one.path}" for one in sessions if one.path]
    return "\n".join(lines)


def _summary_section(one: EarlierSummary) -> str:
    what = "summary" if one.strategy == "summary" else "document"
    lines = [f"Previous session {what} (Session ID: {one.session}, {one.counts}):"]
    about = [f"This session was resumed from: {one.came_from}"] if one.came_from else []
    about += [f"Previous session file: {one.path}"] if one.path else []
    block = f"{START}\n{one.text.strip()}\n{END}"
    return "\n\n".join([*lines, *(["\n".join(about)] if about else []), block])
