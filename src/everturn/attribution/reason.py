"""Why a turn wrote what it wrote: the request, what it agreed to, decisions, the words before the edit, tests after it.

A turn is often started by a bare go-ahead ("do it"). Then the request is the last real one before it, and the go-ahead is
shown with what it agrees to: the proposal, the question or the plan of the agent. A subagent was asked by another agent; its
request leads to the turn of the human behind it. Nothing here claims a cause: words before an edit are only that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import find_decisions
from everturn.derive.intent import (
    asks_for_work,
    command_words,
    goal_words,
    is_approval,
    word_count,
)
from everturn.derive.offers import find_offer, join_reply
from everturn.model.archive import MessageRow, Session
from everturn.model.conversation import Message
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import Store
from everturn.text.printable import one_line

_LONGEST = 300
_FURTHEST = 30  # turns that a go-ahead may be away from its request
_BEFORE = 40  # messages before an edit that may hold the words before it
_TESTS = 4
_CALLS = 40  # last shell calls of a turn that are read for tests
_CHECK_KINDS = ("test", "build", "lint", "types", "check", "ci")
#: A command without any of these words runs no check.
_CHECKS = re.compile(
    r"test|lint|build|check|tsc|mypy|pyright|ruff|make|cargo|\bgo\b|npm|yarn|pnpm|bun|spec|vet|gradle|mvn|tox|nox|jest|dotnet|swift|ctest"
)
_DECISIONS = 4
_TYPED = ("text", "queued", "command")
_GENERATIONS = 4
_GO_AHEAD = re.compile(
    r"(?:please |ok(?:ay)?,? |yes,? |yep,? |now |great,? |good,? |and |let['’]?s |(?:that )?sounds (?:good|great)[.,!]? )*(?:continue|proceed|go ahead|go on|go|implement|start|execute|begin|do|run|resume|"
    r"apply|keep going|carry on|next|finish|try again|retry|commit|get)(?: on| with)?(?: it| this| that| the| all| your| these| everything)*"
    r"(?: plan| implementation| fix| fixes| change| changes| work| task| tasks| steps?| suggestions?| recommendations?| options? \w{1,2}| going| both| too| now|"
    r" from where you left off)*"
    r"(?: please)?[.!\s]*",
    re.IGNORECASE,
)


class ToolOutcome(Struct, frozen=True):
    """A check that ran after the edit, and how it ended."""

    what: str
    verdict: str  # passed | failed
    line: str = ""


class Reason(Struct, frozen=True):
    """The request that led to the edits of a turn. `asked_session` and `asked_turn` (from 0) say where the request is."""

    asked: str = ""
    asked_session: str = ""
    asked_turn: int = -1
    go_ahead: str = ""  # the words that started the turn if they only agree
    approves: str = ""  # what they agree to
    task: str = ""  # what a subagent was told
    decisions: tuple[str, ...] = ()
    said_before: str = ""
    tests: tuple[ToolOutcome, ...] = ()


class ReasonFinder:
    """Finds reasons in one archive."""

    def __init__(self, store: Store, sources: Sources) -> None:
        self._store, self._sources = store, sources
        self._known: dict[tuple[int, int], Reason] = {}

    def find_request(self, session: Session, turn: int) -> Reason:
        """Return the request behind a turn, without what happened in it."""
        key = (session.id, turn)
        if key not in self._known:
            self._known[key] = self._trace_request(session, turn, _GENERATIONS)
        return self._known[key]

    def full(self, session: Session, turn: int, seq: int) -> Reason:
        """Return all about an edit at message `seq` of a turn."""
        asked = self._trace_request(session, turn, _GENERATIONS, seq)
        marks = [mark.text for _, text in self._requests(session, turn) for mark in find_decisions(text)]
        return replace(
            asked, decisions=tuple(dict.fromkeys(marks))[:_DECISIONS], said_before=self._said_before(session, turn, seq),
            tests=tuple(self._tests_after(session, turn, seq))[-_TESTS:],
        )  # fmt: skip

    # --- requests ---
    def _trace_request(self, session: Session, turn: int, generations: int, before: int | None = None) -> Reason:
        """Return the request behind a turn, or behind the message `before` of it."""
        if session.kind != "main" and generations:
            from everturn.sessions.lineage import ancestors  # most sessions have no parent

            parent = next((one for one in ancestors(self._store, session) if one.relation == "subagent_of"), None)
            task = " ".join(text for _, text in self._requests(session, turn) or self._requests(session, 0))
            if parent is not None and parent.session is not None and parent.session.id != session.id:
                at = parent.call.turn if parent.call is not None else max(parent.session.n_turns - 1, 0)
                above = self._trace_request(parent.session, at, generations - 1)
                return Reason(
                    above.asked, above.asked_session, above.asked_turn, above.go_ahead, above.approves,
                    one_line(goal_words(task), _LONGEST),
                )  # fmt: skip
        return self._own_request(session, turn, before)

    def _own_request(self, session: Session, turn: int, before: int | None) -> Reason:
        # What was asked later did not lead to an edit; of what was asked before, the last request did.
        requests = [text for seq, text in self._requests(session, turn) if before is None or seq <= before]
        real = [text for text in requests if not is_go_ahead(text)]
        if real:
            return Reason(_shorten(_most_telling(real if before is None else real[::-1])), session.native_id, turn)
        words = requests[-1] if requests else ""
        approves = self._read_approved(session, turn, words)
        for earlier in range(turn - 1, max(-1, turn - 1 - _FURTHEST), -1):
            real = [text for _, text in self._requests(session, earlier) if not is_go_ahead(text)]
            if real:
                return Reason(
                    _shorten(_most_telling(real)), session.native_id, earlier, one_line(words, _LONGEST), approves
                )
        return Reason(_shorten(words), session.native_id, turn if words else -1, "", approves)

    def _requests(self, session: Session, turn: int) -> list[tuple[int, str]]:
        """Return what a person or an agent asked for in a turn."""
        found = []
        for row, message in self._messages(session, turn, lambda row: row.origin in ("human", "agent")):
            text = "\n".join(block.text for block in message.blocks if block.field == "prompt" and block.text).strip()
            text = command_words(text) if text.startswith("<command-") else text  # "" for one that asks for nothing
            if text and row.kind in _TYPED:
                found.append((row.seq, text))
        return found

    def _read_approved(self, session: Session, turn: int, words: str) -> str:
        """Return what a go-ahead agrees to: the plan, the proposal or the question before it."""
        if turn == 0:
            return ""
        answer, plan = "", ""
        for _, message in self._messages(session, turn - 1, lambda row: row.role == "assistant"):
            for block in message.blocks:
                if block.field == "answer" and block.text.strip():
                    answer = block.text
                given = block.call.input if block.call is not None and block.call.kind == "plan" else None
                if isinstance(given, dict) and isinstance(given.get("plan"), str):
                    plan = given["plan"]
        if plan:
            return one_line(next((line.strip("# *") for line in plan.splitlines() if line.strip("# *")), ""), _LONGEST)
        offer = find_offer(answer, 0) if answer else None
        joined = join_reply(words, offer) if offer is not None else None
        if joined is not None:
            return one_line(joined.question, _LONGEST)
        return one_line(offer.proposal or offer.question, _LONGEST) if offer is not None else ""

    def _messages(
        self, session: Session, turn: int, is_wanted: Callable[[MessageRow], bool]
    ) -> Iterator[tuple[MessageRow, Message]]:
        for one in self._store.turns(session.id, turn, turn):
            rows = [row for row in self._store.messages(session.id, one.first_seq, one.last_seq) if is_wanted(row)]
            records = Records(self._store, self._sources, session, until=0)
            yield from ((row, records.message(row)) for row in rows)

    # --- around the edit ---
    def _tests_after(self, session: Session, turn: int, seq: int) -> Iterator[ToolOutcome]:
        """Yield the checks that ran after the edit in the same turn."""
        records = Records(self._store, self._sources, session, until=0)
        later = [one for one in self._store.calls(session.id, turn) if one.kind == "shell" and one.seq > seq]
        workspace = self._store.session(session.id)[1].workspace if later else ""
        for call in later[-_CALLS:]:
            start = records.start(call)
            if start is None or not _CHECKS.search(start.command):
                continue
            from everturn.derive.call_results import judge_checks  # its rules take a while to compile

            result = records.result(call)
            for check in judge_checks(
                records.with_status(call), start, result.text if result is not None else "", workspace
            ):
                if check.run.kind in _CHECK_KINDS:
                    yield ToolOutcome(one_line(start.command, 120), check.verdict, one_line(check.line, 160))

    def _said_before(self, session: Session, turn: int, seq: int) -> str:
        """Return the last words of the agent before the edit, in the same turn."""
        first = max(next((one.first_seq for one in self._store.turns(session.id, turn, turn)), seq), seq - _BEFORE)
        records = Records(self._store, self._sources, session, until=0)
        for row in reversed([row for row in self._store.messages(session.id, first, seq) if row.role == "assistant"]):
            words = [
                block.text for block in records.message(row).blocks if block.field == "answer" and block.text.strip()
            ]
            if words:
                return one_line(words[-1], _LONGEST)
        return ""


def is_go_ahead(text: str) -> bool:
    """Whether a request only agrees, or tells the agent to go on."""
    words = text.strip()
    if is_approval(words) or _GO_AHEAD.fullmatch(words):
        return True
    return word_count(words) <= 2 and not asks_for_work(words) and "/" not in words and "." not in words


def _most_telling(texts: list[str]) -> str:
    """Return the first request that asks for work: what is queued behind it is often about the commit. Else the first."""
    return next((text for text in texts if asks_for_work(text)), texts[0])


def _shorten(text: str) -> str:
    words = one_line(goal_words(text), _LONGEST)
    if not words.endswith(":"):
        return words
    below = (line.strip("# *") for line in text.splitlines()[1:])  # "Implement the following plan:"
    return one_line(f"{words} {next((line for line in below if line), '')}", _LONGEST)
