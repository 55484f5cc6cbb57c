"""What is in a history that was made up: summed up from deeds, never read back from the files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

Tokens = tuple[int, int, int, int]  # input, output, cache read, cache write
Touches = tuple[tuple[str, str], ...]  # (action, path)


@dataclass(frozen=True)
class Deed:
    """What one record means."""

    #: human | queued | echo (of queued words) | model | notice (an error in its place) | result | other | known
    what: str = "other"
    uuid: str = ""
    at: int | None = None
    response: str = ""
    tokens: Tokens = (0, 0, 0, 0)
    calls: tuple[tuple[str, str], ...] = ()  # (call id, name)
    ends: str = ""  # the call this is the result of
    error_class: str = ""
    reported_ms: int | None = None
    touches: Touches = ()


@dataclass
class CallTruth:
    """One tool call."""

    call_id: str
    name: str
    turn: int
    batch: int  # number within its response
    batch_size: int = 1
    status: str = "open"
    error_class: str = ""
    duration_ms: int | None = None


@dataclass
class SessionTruth:
    """One session: counts are of this file alone, with what it inherited."""

    native_id: str
    path: Path
    kind: str = "main"
    parent: str = ""
    workspace: str = ""
    title: str = ""
    client: str = ""  # the last one
    turns: int = 0
    steps: int = 0
    messages: int = 0  # records that say something, and words that only the queue has
    prompts: int = 0  # typed by a human, queued ones too
    calls: list[CallTruth] = field(default_factory=list)
    artifacts: list[tuple[int, str, str]] = field(default_factory=list)  # (turn, action, path)
    tokens: Tokens = (0, 0, 0, 0)  # each response once
    forked_from: str = ""
    shared: int = 0  # messages that are copies
    marks: dict[str, str] = field(default_factory=dict)  # field of the index → a word that is nowhere else

    @property
    def parallel_pairs(self) -> int:
        """Pairs of calls that were issued in one response."""
        return sum(call.batch for call in self.calls)

    @property
    def errors(self) -> int:
        """Calls that failed."""
        return sum(call.status == "error" for call in self.calls)


@dataclass
class Truth:
    """A whole history."""

    root: Path
    sessions: dict[str, SessionTruth] = field(default_factory=dict)  # by native id
    files: list[Path] = field(default_factory=list)  # transcripts
    notes: list[Path] = field(default_factory=list)  # files beside them: about subagents, and outputs kept apart
    lines: int = 0
    glued: int = 0  # records beyond the first on one line
    types: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """Bytes of all transcripts."""
        return sum(path.stat().st_size for path in self.files)


def tell(truth: SessionTruth, deeds: list[Deed]) -> SessionTruth:
    """Sum up what was done in a session."""
    told = [deed for deed in deeds if deed.what != "known"]
    truth.messages = len(told)
    truth.prompts = sum(deed.what in ("human", "queued") for deed in told)
    turns = _turns(told)
    truth.turns = turns[-1] + 1 if turns else 0
    responses: dict[str, list[CallTruth]] = {}
    used: dict[str, Tokens] = {}
    results = {deed.ends: deed for deed in told if deed.ends}  # by call: some stand before it
    for deed, turn in zip(told, turns, strict=True):
        if deed.what == "model":
            batch = responses.setdefault(deed.response, [])
            batch += [CallTruth(call_id, name, turn, len(batch) + n) for n, (call_id, name) in enumerate(deed.calls)]
            used[deed.response] = max(used.get(deed.response, deed.tokens), deed.tokens)
            for call in batch[len(batch) - len(deed.calls) :]:
                _end(truth, call, deed.at, results.get(call.call_id))
    for batch in responses.values():
        truth.calls += [replace(call, batch_size=len(batch)) for call in batch]
    truth.steps = len(responses)
    truth.tokens = _sum(list(used.values()))
    return truth


def _turns(told: list[Deed]) -> list[int]:
    """The turn of each: a human starts one, unless nobody has answered since the last."""
    turns, turn, answered = [], 0, False
    for deed in told:
        if deed.what == "human" and answered:
            turn, answered = turn + 1, False
        answered = answered or deed.what in ("model", "notice")
        turns.append(turn)
    return turns


def _sum(used: list[Tokens]) -> Tokens:
    first, second, third, fourth = (sum(column) for column in zip((0, 0, 0, 0), *used, strict=True))
    return first, second, third, fourth


def _end(truth: SessionTruth, call: CallTruth, started: int | None, deed: Deed | None) -> None:
    if deed is None:
        return
    call.status, call.error_class = ("error", deed.error_class) if deed.error_class else ("ok", "")
    measured = deed.at - started if deed.at is not None and started is not None else None
    call.duration_ms = deed.reported_ms if deed.reported_ms is not None else measured
    if not deed.error_class:
        truth.artifacts += [(call.turn, action, path) for action, path in dict.fromkeys(deed.touches)]
