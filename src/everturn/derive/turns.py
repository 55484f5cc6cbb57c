"""Group messages into turns and steps, pair calls with results, number parallel batches.

`grow_session(tail, messages)` is a pure function of the state of a session and its new messages, so reading a file at once
or in any pieces gives the same rows. File order is the base order; times only give durations.

A turn starts with a message that `starts_turn`, unless the model has not answered since the last one: several messages in a
row are one request. A step is all messages of one model response (same provider id). A compaction is not a boundary.

The live path of a session: the messages that the agent would continue from.

A person may go back before an earlier message and continue from there. What came after it stays in the records and in the
archive, marked as taken back. Agents record this in three ways: a second prompt under one parent (`takes_back_at`), a number
of turns, or the id of the first message that is taken back (`takes_back`). A message that was taken back stays so.

The result depends only on rows and records, so that reading a file at once or in any pieces gives the same.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import astuple

from everturn.derive.artifacts import touched_files
from everturn.derive.edits import added_lines, file_edits
from everturn.derive.intent import asked_words, opens_session
from everturn.model.archive import (
    RECENT_STEPS,
    Artifact,
    Call,
    EditLines,
    IndexRow,
    JournalTail,
    MessageRow,
    MessageText,
    ReportedWork,
    SessionGrowth,
    Step,
    TakenBack,
    TakesBack,
    Turn,
)
from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage
from everturn.model.vocabulary import FIELDS
from everturn.text.lazy_pattern import lazy_pattern

#: Finds the arguments of a call read in an earlier piece, for the artifacts of its result.
StartOf = Callable[[Call], CallStart | None]

_COLUMN = {name: number for number, name in enumerate(FIELDS)}
_TYPED = frozenset(("text", "command", "shell", "queued"))
_PLAIN_NAME = lazy_pattern(r"[\w.:/@-]{1,80}", re.ASCII)
_FIRST_PROMPT = 300
#: A prompt of one line that holds no text of a command.
_PLAIN = lazy_pattern(r"\w[^\n<>/#$]{0,298}")
_COARSE = ("day", "min")
ODD_NAME = "(odd name)"
#: Fields of a step that hold token usage, in the order of TokenUsage.
_TOKENS = ("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write", "tokens_cache_write_1h")


def grow_session(
    tail: JournalTail, messages: Iterable[Message], start_of: StartOf | None = None
) -> tuple[SessionGrowth, JournalTail]:
    """Return the rows that `messages` add to a session at `tail`, and its new tail."""
    grower = _Grower(tail, start_of or (lambda call: None))
    for message in messages:
        grower.add(message)
    return grower.finish()


def plain_name(name: str) -> str:
    """Return the name of a tool, or ODD_NAME: models invent names that contain whole sentences."""
    return name if _PLAIN_NAME.fullmatch(name) else ODD_NAME


class _Grower:
    def __init__(self, tail: JournalTail, start_of: StartOf) -> None:
        self.seq, self.n_turns, self.n_steps = tail.next_seq, tail.next_turn, tail.next_step
        self.turn, self.step = tail.turn, tail.step
        self.recent = deque(tail.recent, maxlen=RECENT_STEPS)
        if self.recent and tail.step is not None:
            self.recent[-1] = tail.step  # the same step, which may still grow
        self.recent_ids = deque([step.provider_id for step in self.recent], maxlen=RECENT_STEPS)
        self.open_calls = {call_id: list(calls) for call_id, calls in tail.open_calls.items()}
        self.start_of = start_of
        self.is_asked = False  # the first prompt asks for something
        self.starts: dict[tuple[int, int], CallStart] = {}
        self.turns: dict[int, Turn] = {}
        self.steps: dict[int, Step] = {}
        self.calls: dict[tuple[int, int], Call] = {}
        self.growth = SessionGrowth([], [], [], [], [], [], [], [], [])

    def add(self, message: Message) -> None:
        turn = self._turn_for(message)
        step = self._step_for(message, turn)
        at = message.at
        if at is not None:
            turn.started = at if turn.started is None else turn.started
            turn.ended = at if turn.ended is None else max(turn.ended, at)
        turn.last_seq = self.seq
        turn.n_messages += 1
        self._update_flags(message, turn)
        row_step = self._add_calls_and_results(message, turn, step)
        self.growth.messages.append(
            MessageRow(
                0, self.seq, turn.idx, row_step, message.role, message.origin, message.kind, at, message.precision,
                message.fingerprint, message.start, message.size, message.fidelity,
            )
        )  # fmt: skip
        if message.takes_back or message.takes_back_at is not None:
            self._note_taken_back(message)
        self._add_index_row(message)
        self._update_totals(message)
        self.seq += 1

    def finish(self) -> tuple[SessionGrowth, JournalTail]:
        growth = self.growth
        growth.turns, growth.steps = list(self.turns.values()), list(self.steps.values())
        growth.calls = list(self.calls.values())
        growth.stale_turns = sorted(set(growth.stale_turns))
        still_open = {call_id: calls for call_id, calls in self.open_calls.items() if calls}
        return growth, JournalTail(
            self.seq, self.n_turns, self.n_steps, self.turn, self.step, still_open, list(self.recent)
        )

    # --- turns and steps ---
    def _turn_for(self, message: Message) -> Turn:
        turn = self.turn
        if turn is None or (message.starts_turn and turn.answered):
            turn = self.turn = Turn(idx=self.n_turns, first_seq=self.seq)
            self.n_turns += 1
        if message.starts_turn and turn.starter == "none" and not turn.answered:
            turn.starter = "human" if message.origin == "human" else "agent"
        self.turns[turn.idx] = turn
        return turn

    def _step_for(self, message: Message, turn: Turn) -> Step | None:
        if message.role != "assistant":
            return None
        turn.answered = 1
        if message.origin != "model":
            return None
        step, provider_id = self.step, message.provider_id
        if step is None or not provider_id or provider_id != step.provider_id or step.turn != turn.idx:
            step = self.step = Step(idx=self.n_steps, turn=turn.idx, first_seq=self.seq, provider_id=provider_id)
            step.resumes = int(bool(provider_id) and provider_id in self.recent_ids)
            self.n_steps += 1
            turn.n_steps += 1
            self.recent.append(step)
            self.recent_ids.append(provider_id)
        self.steps[step.idx] = step
        step.model = message.model or step.model
        if message.at is not None:
            step.started = message.at if step.started is None else step.started
            step.ended = message.at if step.ended is None else max(step.ended, message.at)
        if message.usage is not None:
            self._set_usage(step, message.usage)
        return step

    def _set_usage(self, step: Step, usage: TokenUsage) -> None:
        """Set the usage of a step. One response is several messages that repeat the usage, and the last one counts.

        An empty usage says nothing. If a response was split in two, the second step gets what exceeds that of the first.
        """
        now = astuple(usage)
        if not any(now):
            return
        if step.resumes or min(now) < 0:
            halves = [old for old in self.recent if old.provider_id == step.provider_id and old.idx != step.idx]
            halves = halves if step.resumes else []
            counted = [sum(getattr(old, name) for old in halves) for name in _TOKENS]
            now = tuple(max(0, new - before) for new, before in zip(now, counted, strict=True))
        (
            step.tokens_in, step.tokens_out, step.tokens_cache_read, step.tokens_cache_write, step.tokens_cache_write_1h,
        ) = now  # fmt: skip

    def _update_flags(self, message: Message, turn: Turn) -> None:
        if message.kind == "compaction":
            turn.compacted = 1
        elif message.kind == "interrupt":
            turn.interrupted = 1
        if message.reported_ms is not None:
            turn.reported_ms = (turn.reported_ms or 0) + message.reported_ms

    # --- calls ---
    def _add_calls_and_results(self, message: Message, turn: Turn, step: Step | None) -> int:
        """Add the calls and results of a message; return the step it belongs to, or -1."""
        row_step = -1 if step is None else step.idx
        for idx, block in enumerate(message.blocks):
            if block.call is not None:
                self._add_call(message, turn, step, idx, block, block.call)
            if block.result is not None:
                row_step = self._add_result(message, turn, idx, block, block.result)
        return row_step

    def _add_call(
        self, message: Message, turn: Turn, step: Step | None, idx: int, block: Block, start: CallStart
    ) -> None:
        call = Call(
            seq=self.seq, idx=idx, call_id=start.call_id, turn=turn.idx, step=-1, name=plain_name(start.name),
            kind=start.kind, started=message.at, input_size=len(block.text),
        )  # fmt: skip
        if step is not None:
            turn.n_batches += step.n_calls == 0
            call.step, call.batch = step.idx, step.n_calls
            step.n_calls += 1
        call.position = max(turn.n_batches - 1, 0)
        turn.n_calls += 1
        self.calls[call.seq, idx] = call
        self.starts[call.seq, idx] = start
        waiting = self.open_calls.setdefault(start.call_id, [])
        early = next((other for other in waiting if other.status == "orphan"), None)
        if early is None:
            waiting.append(call)
            return
        waiting.remove(early)
        if self.calls.pop((early.seq, early.idx), None) is None:
            self.growth.dropped_calls.append((early.seq, early.idx))
        status = "error" if early.error_class else "ok"
        self._close_call(call, status, early.error_class, early.exit_status, early.ended, early.seq, turn)
        call.output_size = early.output_size
        # Its output may have been read in an earlier piece: never use it, so that any pieces give the same rows.
        if start.kind != "shell":
            self._add_artifacts(call, CallEnd(early.call_id, status == "error", exit_status=early.exit_status), "")

    def _add_result(self, message: Message, turn: Turn, idx: int, block: Block, end: CallEnd) -> int:
        call = self._call_of(end)
        error_class = (end.error_class or "other") if end.is_error else ""
        if call is None:
            orphan = Call(
                seq=self.seq, idx=idx, call_id=end.call_id, turn=turn.idx, step=-1, status="orphan",
                error_class=error_class, exit_status=end.exit_status, ended=message.at,
                output_size=len(block.text), result_seq=self.seq,
            )  # fmt: skip
            self.calls[orphan.seq, idx] = orphan
            self.open_calls.setdefault(end.call_id, []).append(orphan)
            return -1
        self.open_calls[call.call_id].remove(call)
        self.calls[call.seq, call.idx] = call
        status = "error" if end.is_error else "ok"
        self._close_call(call, status, error_class, end.exit_status, message.at, self.seq, turn)
        if message.precision in _COARSE:  # two times of the same day say nothing about how long a call took
            call.duration_ms = None
        call.output_size = len(block.text)
        if end.duration_ms is not None:
            call.duration_ms = end.duration_ms
        if end.reported_tokens or end.reported_calls:
            self.growth.reported.append(
                ReportedWork(
                    0, call.seq, call.idx, call.turn, message.at, end.child, end.reported_tokens, end.reported_calls,
                    end.duration_ms,
                )
            )  # fmt: skip
        self._add_artifacts(call, end, block.text)
        if self.step is not None and self.step.idx == call.step and message.at is not None:
            self.step.ended = message.at if self.step.ended is None else max(self.step.ended, message.at)
            self.steps[self.step.idx] = self.step
        return call.step

    def _call_of(self, end: CallEnd) -> Call | None:
        """Return the open call that a result answers: of calls with its id the one in the message that it names.

        A result whose id no open call has answers the only open call of that message.
        """
        same_id = [call for call in self.open_calls.get(end.call_id, ()) if call.status == "open"]
        if len(same_id) == 1 or not end.asked_in:
            return same_id[0] if same_id else None
        every = same_id or [call for calls in self.open_calls.values() for call in calls if call.status == "open"]
        asked = [call for call in every if (start := self._start(call)) is not None and start.asked_in == end.asked_in]
        if same_id:
            return (asked or same_id)[0]
        return asked[0] if len(asked) == 1 else None

    def _start(self, call: Call) -> CallStart | None:
        return self.starts.get((call.seq, call.idx)) or self.start_of(call)

    def _close_call(
        self, call: Call, status: str, error_class: str, exit_status: int | None, at: int | None, seq: int, turn: Turn
    ) -> None:
        call.status, call.error_class, call.exit_status = status, error_class, exit_status
        call.ended, call.result_seq = at, seq
        if at is not None and call.started is not None and at >= call.started:
            call.duration_ms = at - call.started
        if call.turn != turn.idx:
            self.growth.stale_turns.append(call.turn)
        elif status == "error":
            turn.n_errors += 1

    def _add_artifacts(self, call: Call, end: CallEnd, output: str) -> None:
        start = self._start(call)
        if start is None:
            return
        for n, (action, path) in enumerate(touched_files(start, end, output)):
            self.growth.artifacts.append(Artifact(0, call.seq, call.idx, n, call.turn, action, path))
        for n, edit in enumerate(file_edits(start, end)):
            lines = list(added_lines(edit))
            self.growth.edits.append(
                EditLines(call.seq, call.idx, n, call.turn, call.started, call.ended, edit.kind, edit.path, lines)
            )

    # --- text and totals ---
    def _note_taken_back(self, message: Message) -> None:
        if (said := takes_back(self.seq, message)) is not None:
            self.growth.takes_back.append(said)

    def _add_index_row(self, message: Message) -> None:
        texts: list[str | None] = [None] * len(FIELDS)
        more: dict[int, list[str]] = {}
        for block in message.blocks:
            if block.field and block.text:
                column = _COLUMN[block.field]
                if texts[column] is None:
                    texts[column] = block.text
                else:
                    more.setdefault(column, []).append(block.text)
        for column, rest in more.items():
            texts[column] = "\n".join([texts[column] or "", *rest])
        if any(texts):
            self.growth.index.append(IndexRow(self.seq, tuple(texts)))

    def _update_totals(self, message: Message) -> None:
        growth, at = self.growth, message.at
        if at is not None:
            growth.started = at if growth.started is None else min(growth.started, at)
            growth.ended = at if growth.ended is None else max(growth.ended, at)
        if message.origin == "model" and message.model:
            growth.model = message.model
        if message.origin == "human" and message.kind in _TYPED:
            growth.n_prompts += 1
        if not self.is_asked and message.kind in _PROMPT_KINDS and message.origin in ("human", "agent"):
            self._note_prompt(message)

    def _note_prompt(self, message: Message) -> None:
        """Keep what was asked for first. A greeting stays only until something is asked for."""
        prompt = next((block.text for block in message.blocks if block.field == "prompt"), "")
        if not self.growth.first_prompt and message.kind == "text" and _PLAIN.fullmatch(prompt):
            self.growth.first_prompt = prompt  # judged when another one comes
            return
        if opens_session(self.growth.first_prompt):
            self.is_asked = True
            return
        words = asked_words(prompt, message.kind == "command") if prompt else ""
        if not words:
            return
        # Cut between words: half a secret would not be recognised.
        words = words if len(words) <= _FIRST_PROMPT else words[:_FIRST_PROMPT].rpartition(" ")[0]
        self.is_asked = opens_session(words)
        if self.is_asked or not self.growth.first_prompt:
            self.growth.first_prompt = words


# --- Messages as flat rows with their words, for programs that ask in SQL. Pure ---
def message_texts(growth: SessionGrowth, messages: Sequence[Message]) -> Iterator[MessageText]:
    """Yield the rows of new messages: their text, their calls, and the call that a result answers."""
    answered = {call.result_seq: call for call in reversed(growth.calls) if call.result_seq is not None}
    for row, message in zip(growth.messages, messages, strict=True):
        yield _message_text(row.seq, message, answered.get(row.seq))


def _message_text(seq: int, message: Message, answered: Call | None) -> MessageText:
    calls = [_call_json(block) for block in message.blocks if block.call is not None]
    texts = [block.text for block in message.blocks if block.kind in ("text", "result")]
    joined = ("" if message.role == "assistant" else "\n").join(texts)
    tokens = message.tokens or (message.usage.output if message.usage is not None else 0)
    name = answered.name if answered is not None else None
    call_id = answered.call_id if answered is not None else None
    own = _logged_turn(message)
    return MessageText(
        0, seq, own.get("role") or message.role, joined if texts or not calls else None,
        _encode(calls) if calls else None, call_id or own.get("tool_call_id"), name or own.get("tool_name"), tokens,
    )  # fmt: skip


def _logged_turn(message: Message) -> dict[str, Any]:
    """Return role and call of a message that belongs to no call, as its program stated them."""
    record = message.blocks[0].data if message.blocks and message.kind == "notice" else None
    data = record.get("data") if isinstance(record, dict) and record.get("kind") == "turn" else None
    return {name: value for name, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}


def _call_json(block: Block) -> Any:
    """Return a call as it was given, or in the common form."""
    if isinstance(block.data, dict):
        return block.data
    assert block.call is not None
    given = block.call.input
    arguments = given if isinstance(given, str) else _encode(given if given is not None else {})
    return {"id": block.call.call_id, "type": "function", "function": {"name": block.call.name, "arguments": arguments}}


def _encode(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(str(value))


# --- The live path of a session: the messages that the agent would continue from ---
_PROMPT_KINDS = ("text", "command")


def takes_back(seq: int, message: Message) -> TakesBack | None:
    """Return what a message takes back, as it says; None if it takes nothing back."""
    said = message.takes_back
    if message.takes_back_at is not None:
        return TakesBack(seq, start=message.takes_back_at)
    if isinstance(said, str):
        return TakesBack(seq, native_id=said) if said else None
    return TakesBack(seq, turns=said) if said > 0 else None


def find_taken_back(
    said: Sequence[TakesBack], rows: Iterable[MessageRow], name_of: Callable[[MessageRow], str]
) -> list[TakenBack]:
    """Return the messages that are taken back, among all rows of a session. `name_of` reads the native id of one."""
    waiting = {one.seq: one for one in said}
    path: list[MessageRow] = []
    found = []
    for row in rows:
        if row.taken_back:
            continue
        if (one := waiting.get(row.seq)) is not None and (place := _find_place(path, one, name_of)) < len(path):
            found.append(TakenBack(path[place].seq, row.seq - 1, row.seq))
            del path[place:]
        path.append(row)
    return found


def _find_place(path: list[MessageRow], said: TakesBack, name_of: Callable[[MessageRow], str]) -> int:
    """Return where the messages that are taken back begin in the path; its length if there are none."""
    end = len(path)
    if said.start >= 0:
        return next((place for place, row in enumerate(path) if row.start == said.start), end)
    if said.native_id:
        return next((place for place, row in enumerate(path) if name_of(row) == said.native_id), end)
    prompts = [place for place, row in enumerate(path) if _is_prompt(row)]
    return prompts[max(0, len(prompts) - said.turns)] if prompts else end


def _is_prompt(row: MessageRow) -> bool:
    return row.role == "user" and row.origin in ("human", "agent") and row.kind in _PROMPT_KINDS
