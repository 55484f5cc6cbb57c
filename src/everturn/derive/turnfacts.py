"""What one turn says, in facts: requests, calls and how they ended, files, commits, plan, questions, next steps.

`turn_facts` takes the messages of a turn one by one and keeps excerpts only, so that a turn of any length costs the memory
of its facts. The rows say how calls ended (`Call.status`), the messages hold the words. Every fact carries the seq of the
message it rests on. Nothing is judged here; `derive.state` folds turns into a state.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from everturn.derive.closing import next_steps, questions, questions_of
from everturn.derive.commits import Commit, commits
from everturn.derive.decisions import LONGEST, Mark, announced, stated
from everturn.derive.failures import attempt, outcome, proves, proves_anywhere
from everturn.derive.mentions import mentioned
from everturn.derive.plans import Plan, planned
from everturn.derive.printable import one_line
from everturn.derive.tokens import estimate
from everturn.model.archive import Artifact, Call, MessageRow, Step, Turn
from everturn.model.conversation import Block, CallStart, Message

_FOCUS = 100
_SPOKEN = 300
_TYPED = ("text", "queued")
_NAMING = ("prompt", "answer", "tool_output", "summary")  # fields in which a file that is named may matter
_ANSWER = 20_000  # characters of an answer that are looked at, from its end


class Said(Struct, frozen=True):
    """Some words and the message they stand in."""

    text: str
    seq: int


class Deed(Struct, frozen=True):
    """One call that did something, or tried to."""

    seq: int
    what: str  # the command, or the tool and what it was given
    kind: str
    status: str  # of CALL_STATUSES
    exit_status: int | None = None
    outcome: str = ""  # of failures.OUTCOMES when it did not go well
    error: str = ""  # the beginning of what it said then
    keys: tuple[str, ...] = ()  # of what it tried when it failed, of what it proved when it went well
    tool: str = ""  # its name where `what` begins with it


class Touch(Struct, frozen=True):
    """A file and what was done to it; `by` is "subagent" when another agent did it for this one."""

    path: str
    action: str
    seq: int
    by: str = ""


class Mention(Struct, frozen=True):
    """A name of a file that stands in some words, how often, and the last message it stands in."""

    path: str
    count: int
    seq: int


class TurnFacts(Struct, frozen=True):
    """All the facts of one turn."""

    turn: int  # 0-based
    last_seq: int
    starter: str = "none"
    requests: tuple[Said, ...] = ()
    focus: str = ""
    marks: tuple[tuple[Mark, int], ...] = ()
    deeds: tuple[Deed, ...] = ()
    files: tuple[Touch, ...] = ()
    commits: tuple[tuple[Commit, int], ...] = ()
    plans: tuple[tuple[Plan, int], ...] = ()
    asked: tuple[Said, ...] = ()
    steps: tuple[Said, ...] = ()
    mentions: tuple[Mention, ...] = ()
    answer: Said | None = None  # how the last thing the model said begins
    model: str = ""
    tokens: int = 0
    token_source: str = ""
    interrupted: bool = False


def turn_facts(
    turn: Turn,
    messages: Iterable[tuple[MessageRow, Message]],
    calls: Iterable[Call],
    steps: Iterable[Step] = (),
    artifacts: Iterable[Artifact] = (),
    workspace: str = "",
) -> TurnFacts:
    """The facts of a turn from its rows and its messages, which are read once and in order."""
    steps = list(steps)
    tokens = sum(step.tokens_in + step.tokens_out + step.tokens_cache_write for step in steps if not step.inherited)
    gathering = _Gathering(calls, workspace, tokens)
    for row, message in messages:
        gathering.add(row, message)
    return gathering.facts(turn, list(artifacts))


class _Gathering:
    def __init__(self, calls: Iterable[Call], workspace: str, tokens: int) -> None:
        self.workspace, self.tokens = workspace, tokens
        self.calls = {(call.seq, call.idx): call for call in calls}
        self.waiting: dict[str, tuple[Call, CallStart]] = {}
        self.requests: list[Said] = []
        self.focus = ""
        self.marks: list[tuple[Mark, int]] = []
        self.deeds: dict[tuple[int, int], Deed] = {}
        self.commits: list[tuple[Commit, int]] = []
        self.plans: list[tuple[Plan, int]] = []
        self.asked: list[Said] = []
        self.answer = Said("", -1)
        self.model = ""
        self.estimated = 0
        self.mentions: Counter[str] = Counter()
        self.mentioned_in: dict[str, int] = {}

    def add(self, row: MessageRow, message: Message) -> None:
        """Take in the next message."""
        self.model = message.model or self.model
        spoken = "\n".join(block.text for block in message.blocks if block.field == "prompt" and block.text)
        if spoken and row.origin in ("human", "agent") and row.kind in _TYPED:
            self._request(row, spoken)
        for idx, block in enumerate(message.blocks):
            if block.field in _NAMING and block.text:
                self._mention(row, block.text)
            self.estimated += estimate(block.text) if block.text and not self.tokens else 0
            if block.call is not None:
                self._call(self.calls.get((row.seq, idx)), block.call)
            elif block.result is not None:
                self._result(block, block.result.call_id)
            elif block.field == "answer" and row.origin == "model" and block.text.strip():
                self._answer(row, block.text)

    def facts(self, turn: Turn, artifacts: list[Artifact]) -> TurnFacts:
        """What was gathered."""
        for call, start in self.waiting.values():
            self._done(call, start, "")
        ending = self.answer.text
        closing = [] if turn.interrupted else questions(ending)
        return TurnFacts(
            turn=turn.idx,
            last_seq=turn.last_seq,
            starter=turn.starter,
            requests=tuple(self.requests),
            focus=self.focus,
            marks=tuple(self.marks),
            deeds=tuple(self.deeds[place] for place in sorted(self.deeds)),
            files=tuple(Touch(one.path, one.action, one.seq) for one in artifacts),
            commits=tuple(self.commits),
            plans=tuple(self.plans),
            asked=(*self.asked, *(Said(words, self.answer.seq) for words in closing)),
            steps=tuple(Said(words, self.answer.seq) for words in next_steps(ending)),
            mentions=tuple(Mention(path, n, self.mentioned_in[path]) for path, n in self.mentions.items()),
            answer=Said(one_line(ending, _SPOKEN), self.answer.seq) if ending else None,
            model=self.model,
            tokens=self.tokens or self.estimated,
            token_source="api" if self.tokens else "estimate" if self.estimated else "",
            interrupted=bool(turn.interrupted),
        )

    def _request(self, row: MessageRow, text: str) -> None:
        self.requests.append(Said(one_line(text, LONGEST), row.seq))
        if row.origin == "human":
            first = next((line for line in text.splitlines() if line.strip()), "")
            self.focus = one_line(first, _FOCUS)
            self.marks += [(mark, row.seq) for mark in stated(text)]

    def _mention(self, row: MessageRow, text: str) -> None:
        found = mentioned(text)
        self.mentions.update(found)
        self.mentioned_in.update(dict.fromkeys(found, row.seq))

    def _answer(self, row: MessageRow, text: str) -> None:
        self.answer = Said(text[-_ANSWER:], row.seq)
        if "Deci" in text:
            self.marks += [(mark, row.seq) for mark in announced(text)]

    def _call(self, call: Call | None, start: CallStart) -> None:
        if call is None:
            return
        if call.result_seq is None:
            self._done(call, start, "")
        else:
            self.waiting[start.call_id] = call, start

    def _result(self, block: Block, call_id: str) -> None:
        waiting = self.waiting.pop(call_id, None)
        if waiting is not None:
            self._done(*waiting, block.text)

    def _done(self, call: Call, start: CallStart, output: str) -> None:
        went_well = call.status == "ok" and not call.exit_status
        self.deeds[call.seq, call.idx] = self._deed(call, start, output, went_well)
        self.commits += [(commit, call.seq) for commit in commits(start, output, went_well)]
        if call.status == "ok":
            plan = planned(start, output)
            if plan is not None:
                self.plans.append((plan, call.seq))
        elif start.kind == "ask":
            self.asked += [Said(words, call.seq) for words in questions_of(start)]

    def _deed(self, call: Call, start: CallStart, output: str, went_well: bool) -> Deed:
        failed = call.status == "error" or (call.status == "ok" and not went_well)
        return Deed(
            seq=call.seq,
            what=_what(start),
            kind=start.kind,
            status=call.status,
            exit_status=call.exit_status,
            outcome=outcome(start, call.error_class, call.exit_status) if failed else "",
            error=complaint(output) if failed else "",
            keys=self._keys(start, output, failed, went_well),
            tool="" if start.kind == "shell" and start.command else start.name,
        )

    def _keys(self, start: CallStart, output: str, failed: bool, went_well: bool) -> tuple[str, ...]:
        if failed:
            return attempt(start, self.workspace, output)
        return (*proves(start, self.workspace), *proves_anywhere(start)) if went_well else ()


def _what(start: CallStart) -> str:
    if start.kind == "shell" and start.command:
        return one_line(start.command, LONGEST)
    about = start.path or start.command
    if not about and isinstance(start.input, dict):
        about = next((value for value in start.input.values() if isinstance(value, str)), "")
    return one_line(f"{start.name} {about}", LONGEST)


def complaint(output: str) -> str:
    """The line of an output that says most about what went wrong: the first with such a word, else the first."""
    shown = output if len(output) <= 8000 else f"{output[:4000]}\n{output[-4000:]}"
    lines = [
        line for line in _TAG.sub("", shown).splitlines() if _LETTERS.search(line) and not _BARE_STATUS.fullmatch(line)
    ]
    telling = next((line for line in lines if _tells(line)), lines[0] if lines else "")
    return one_line(telling, LONGEST)


_LETTERS = re.compile(r"\w{2}")  # a drawn line says nothing
_TAG = re.compile(r"</?[\w-]{1,40}>")
_BARE_STATUS = re.compile(r"\s*(?:exit(?:ed)?(?: with)?(?: code| status)?:? -?\d+)\s*", re.IGNORECASE)


def _tells(line: str) -> bool:
    low = line.lower()
    return any(
        word in low for word in ("error", "fail", "exception", "not found", "cannot", "denied", "fatal", "no such")
    )
