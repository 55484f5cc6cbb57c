"""What one reading has found so far: messages and facts by session, problems, and a count of everything."""

from __future__ import annotations

from everturn.model.conversation import Census, Link, Message, Problem, ReadResult, SessionFacts, SessionPart
from everturn.sources.claude_code.events import ClaudeRecord, word
from everturn.sources.claude_code.state import ClaudeSeen
from everturn.sources.jsonl import BLANK, REASONS


class ClaudeSessionTally:
    """One session, as far as this reading adds to it."""

    __slots__ = ("_facts", "kind", "links", "messages", "native_id", "parent", "seen")

    def __init__(self, native_id: str, kind: str, parent: str, seen: ClaudeSeen) -> None:
        self.native_id, self.kind, self.parent, self.seen = native_id, kind, parent, seen
        self.messages: list[Message] = []
        self.links: list[Link] = []
        self._facts: dict[str, str | int] = {}

    def learn(self, event: ClaudeRecord) -> None:
        """Take the facts that a record of the session states."""
        facts = self._facts
        if event.version:
            facts["client"] = event.version
        if event.git_branch:
            facts["branch"] = event.git_branch
        if event.cwd and not self.seen.workspace:
            facts["workspace"] = event.cwd
            self.seen.workspace = True
        if event.team_name:
            facts["team"] = event.team_name
        if event.agent_name:
            facts["agent_name"] = event.agent_name

    def entitle(self, title: str, rank: int) -> None:
        """Take a title, unless there was one of higher rank."""
        if title and rank >= self.seen.title_rank:
            self.seen.title_rank = rank
            self._facts.update(title=title, title_rank=rank)

    def part(self) -> SessionPart | None:
        """What to hand on; None when there is nothing."""
        if not (self.messages or self.links or self._facts):
            return None
        facts = {name: word(value) if isinstance(value, str) else value for name, value in self._facts.items()}
        return SessionPart(self.native_id, SessionFacts(self.kind, self.parent, **facts), self.messages, self.links)  # type: ignore[arg-type]


class ClaudeTally:
    """The whole of it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._sessions: dict[str, ClaudeSessionTally] = {}
        self._census: dict[tuple[str, str, str], int] = {}

    def session(self, native_id: str) -> ClaudeSessionTally | None:
        """A session this reading has added to."""
        return self._sessions.get(native_id)

    def open(self, native_id: str, kind: str, parent: str, seen: ClaudeSeen) -> ClaudeSessionTally:
        """Start adding to a session."""
        session = self._sessions[native_id] = ClaudeSessionTally(native_id, kind, parent, seen)
        return session

    def count(self, kind: str, client: str, disposition: str) -> None:
        """Count one record."""
        key = kind, client, disposition
        self._census[key] = self._census.get(key, 0) + 1

    def trouble(self, start: int, size: int, trouble: str, is_record: bool) -> None:
        """Note a trouble; one that is all there is of a record is counted as such."""
        if trouble == BLANK:
            self.count(f"({BLANK})", "", "known")
            return
        self.problems.append(Problem(trouble, REASONS[trouble], start, size))
        if is_record:
            self.count(f"({trouble})", "", "problem")

    def reading(self, consumed: int, lines: int, glued: int) -> ReadResult:
        """The result."""
        parts = [part for session in self._sessions.values() if (part := session.part()) is not None]
        census = [Census(*key, n) for key, n in self._census.items()]
        return ReadResult(consumed, parts, self.problems, census, lines, glued)
