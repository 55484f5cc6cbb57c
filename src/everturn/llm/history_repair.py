"""A history that broke off, made into one that providers take. Nothing stored is touched: this is about what is sent.

A call without a result gets the one that is on record; where there is none, the model is told that nobody knows. A failure
is never told of a call whose success is on record. Results stand where the wire format wants them; those without a call,
thoughts without what came of them, half calls and empty pieces are left out. What was done is said in `mended`. A history
that is fine comes back as it is, and repairing twice is repairing once.

The ids of calls: each names one call, and a result names its call.

Some servers number the calls of every answer from zero; some send an id twice within one answer. Where a wire format does
not take that, later ones get a number behind the id, call and result alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy

from msgspec import Struct, structs

from everturn.llm.history_rules import HistoryRules, history_rules, prune_history
from everturn.llm.protocol import ChatMessage, ChatPart, fit_id

_FITS = re.compile(r"[A-Za-z0-9_-]+")
#: The member of a provider's block that holds the id of the call.
_MEMBERS = ("call_id", "tool_use_id", "tool_call_id", "id")


def with_unique_ids(messages: Sequence[ChatMessage], habits: HistoryRules, mended: list[str]) -> list[ChatMessage]:
    """The history with an id of its own for every call that needs one."""
    seen: set[str] = set()
    given: dict[str, list[str]] = {}  # the new ids for the results of an id
    made = []
    for place, message in enumerate(messages):
        if message.role == "assistant" and any(part.kind == "call" for part in message.parts):
            message = _drop_doubles(message, messages[place + 1 :], mended)
            seen = set() if habits.repeats else seen
            made.append(_rename_calls(message, seen, given, habits, mended))
        elif any(given.get(part.call_id) for part in message.parts if part.kind == "result"):
            made.append(_rename_results(message, given))
        else:
            made.append(message)
    return made


def with_call_id(message: ChatMessage, place: int, call_id: str) -> ChatMessage:
    """The message with another call id in one of its parts, in what is kept verbatim too."""
    part = message.parts[place]
    raw, around = part.raw, message.raw
    if isinstance(raw, dict):
        names = _MEMBERS if part.kind == "call" else _MEMBERS[:-1]
        member = next((name for name in names if raw.get(name) == part.call_id), "")
        raw = {**raw, member: call_id} if member else raw
    if isinstance(around, dict) and part.kind == "result" and around.get("tool_call_id") == part.call_id:
        around = {**around, "tool_call_id": call_id}
    parts = list(message.parts)
    parts[place] = structs.replace(part, call_id=call_id, raw=raw)
    return structs.replace(message, parts=tuple(parts), raw=around)


def _rename_calls(
    message: ChatMessage, seen: set[str], given: dict[str, list[str]], habits: HistoryRules, mended: list[str]
) -> ChatMessage:
    for call_id in {part.call_id for part in message.parts if part.kind == "call"}:
        given.pop(call_id, None)
    fits = habits.wire not in ("anthropic_messages", "") or message.wire == ""
    for place, part in enumerate(message.parts):
        if part.kind != "call":
            continue
        wanted = part.call_id if fits or _FITS.fullmatch(part.call_id) else fit_id(part.call_id)
        new = _free_id(wanted, seen)
        seen.add(new)
        given.setdefault(part.call_id, []).append(new)
        if new != part.call_id:
            mended.append(f"call {part.call_id} ({part.name}) is sent as {new}, since each call needs an id of its own")
            message = with_call_id(message, place, new)
    return message


def _rename_results(message: ChatMessage, given: dict[str, list[str]]) -> ChatMessage:
    for place, part in enumerate(message.parts):
        names = given.get(part.call_id) if part.kind == "result" else None
        if names:
            new = names.pop(0) if len(names) > 1 else names[0]
            message = with_call_id(message, place, new) if new != part.call_id else message
    return message


def _free_id(call_id: str, seen: set[str]) -> str:
    number, new = 2, call_id
    while new in seen:
        number, new = number + 1, f"{call_id}_{number}"
    return new


def _drop_doubles(message: ChatMessage, after: Sequence[ChatMessage], mended: list[str]) -> ChatMessage:
    """Of calls with one id within one answer, as many as have results; the last ones, since those were run."""
    ids = [part.call_id for part in message.parts if part.kind == "call"]
    if len(set(ids)) == len(ids):
        return message
    gone: list[ChatPart] = []
    for call_id in dict.fromkeys(ids):
        results = _count_results(call_id, after)
        doubles = [part for part in message.parts if part.kind == "call" and part.call_id == call_id]
        gone += doubles[: len(doubles) - max(1, results)]
    mended += [f"call {part.call_id} ({part.name}) stands there twice; the last one is sent" for part in gone]
    lost = {id(part) for part in gone}
    return structs.replace(message, parts=tuple(part for part in message.parts if id(part) not in lost))


def _count_results(call_id: str, after: Sequence[ChatMessage]) -> int:
    count = 0
    for message in after:
        for part in message.parts:
            if part.call_id == call_id and part.kind == "call":
                return count
            count += part.call_id == call_id and part.kind == "result"
    return count


#: What the model is told about a call of which nothing is on record.
NO_RECORD = (
    "in doubt: the session broke off and no result of this call was recorded. It may or may not have taken effect, wholly "
    "or in part. Find out what happened before doing it again."
)


class HistoryRepair(Struct, frozen=True):
    """A history that can be sent, and what had to be done to it."""

    messages: tuple[ChatMessage, ...]
    mended: list[str]  # one sentence each; empty when nothing was wrong
    added: list[ChatPart]  # the results that were put in, to be recorded once


def repair_history(
    messages: Sequence[ChatMessage], known_results: Mapping[str, ChatPart] | None = None, wire: str = ""
) -> HistoryRepair:
    """Make a history valid for the wire format that its answers came in, or for `wire`.

    `known_results` are results on record by call id. Answers from several formats are made valid for each of them.
    """
    habits = history_rules(messages, wire)
    mended: list[str] = []
    clean = with_unique_ids(prune_history(_with_distinct_parts(messages), habits, mended), habits, mended)
    pairing = _ResultPairing(_split_runs(clean, habits), habits, known_results or {}, mended)
    paired = pairing.messages()
    return HistoryRepair(tuple(paired), mended, pairing.added) if mended else HistoryRepair(tuple(messages), [], [])


class _AnswerRun(Struct):
    """What the model said, and what followed until it spoke again."""

    answers: list[ChatMessage]
    rest: list[ChatMessage]

    @property
    def calls(self) -> list[ChatPart]:
        return [part for message in self.answers for part in message.parts if part.kind == "call"]


def _split_runs(messages: Sequence[ChatMessage], habits: HistoryRules) -> list[_AnswerRun]:
    runs = [_AnswerRun([], [])]
    for message in messages:
        if message.role != "assistant":
            runs[-1].rest.append(message)
        elif runs[-1].rest or not habits.joins or not runs[-1].answers:
            runs.append(_AnswerRun([message], []))
        else:
            runs[-1].answers.append(message)
    return runs


class _ResultPairing:
    """Brings calls and results together."""

    def __init__(
        self, runs: list[_AnswerRun], habits: HistoryRules, known: Mapping[str, ChatPart], mended: list[str]
    ) -> None:
        self._runs, self._habits, self._known, self._mended = runs, habits, known, mended
        self.added: list[ChatPart] = []
        self._found = self._assign_results()
        self._chosen = {id(_best_result(found)[1]): owner for (owner, _), found in self._found.items()}
        self._owned = {id(part) for found in self._found.values() for _, part in found}
        self._home = {id(part): message for run in runs for message in run.rest for part in message.parts}

    def messages(self) -> list[ChatMessage]:
        """The history with every result in its place."""
        made: list[ChatMessage] = []
        for place, run in enumerate(self._runs):
            made += run.answers
            if self._is_fine(place):
                made += run.rest
            elif self._habits.anywhere:
                made += self._filled(place)
            else:
                made += self._rebuild_run(place)
        return made

    def _assign_results(self) -> dict[tuple[int, str], list[tuple[int, ChatPart]]]:
        """Each result belongs to the last call of its id before it; one that has none to the first such call after it."""
        owner: dict[str, int] = {}
        found: dict[tuple[int, str], list[tuple[int, ChatPart]]] = {}
        early: list[tuple[int, ChatPart]] = []
        for place, run in enumerate(self._runs):
            owner |= {call.call_id: place for call in run.calls}
            for part in _result_parts(run.rest):
                if part.call_id in owner:
                    found.setdefault((owner[part.call_id], part.call_id), []).append((place, part))
                else:
                    early.append((place, part))
        for place, part in early:
            later = next((n for n, run in enumerate(self._runs) if n > place and _has_call(run, part.call_id)), None)
            if later is not None:
                found.setdefault((later, part.call_id), []).append((place, part))
        return found

    def _is_fine(self, place: int) -> bool:
        run = self._runs[place]
        wanted = [call.call_id for call in run.calls]
        mine = [self._found.get((place, call_id), []) for call_id in wanted]
        if any(len(one) != 1 or self._is_denied(one[0][1]) for one in mine):
            return False
        if self._habits.anywhere:
            return all(one[0][0] >= place for one in mine) and not self._strays(place)
        parts = [part for message in run.rest for part in message.parts]
        lead = [part.call_id for part in parts[: len(wanted)] if part.kind == "result"]
        return sorted(lead) == sorted(wanted) and len(list(_result_parts(run.rest))) == len(wanted)

    def _is_denied(self, result: ChatPart) -> bool:
        """Whether a failure is told although a success is on record."""
        known = self._known.get(result.call_id)
        return result.is_error and known is not None and not known.is_error

    def _strays(self, place: int) -> list[ChatPart]:
        """Results in a run that are not the chosen one of a call before them."""
        return [part for part in _result_parts(self._runs[place].rest) if self._chosen.get(id(part), place + 1) > place]

    def _result(self, place: int, call: ChatPart) -> ChatPart:
        """The truest result there is."""
        found = self._found.get((place, call.call_id), [])
        told = _best_result(found)[1] if found else None
        known = self._known.get(call.call_id)
        name = f"call {call.call_id} ({call.name})"
        if told is not None and not self._is_denied(told):
            if len(found) > 1:
                self._mended.append(f"{name} had {len(found)} results; one of them is sent")
            elif found[0][0] != place or not self._habits.anywhere:
                self._mended.append(f"the result of {name} was put behind its call")
            return told
        if known is not None:
            self._mended.append(f"{name} had no result; the one on record is sent")
            made = structs.replace(known, kind="result", call_id=call.call_id, name=call.name, raw=None)
        else:
            self._mended.append(f"{name} has no result on record; the model is told that its outcome is unknown")
            made = ChatPart("result", NO_RECORD, call.call_id, call.name, is_error=True)
        self.added.append(made)
        return made

    def _rebuild_run(self, place: int) -> list[ChatMessage]:
        """The results right behind their calls, then the rest without any."""
        run = self._runs[place]
        results = [self._result(place, call) for call in run.calls]
        for part in _result_parts(run.rest):
            if id(part) not in self._owned:
                self._mended.append(f"result {part.call_id} has no call and is left out")
        others = [_without_parts(message, {id(part) for part in _result_parts([message])}) for message in run.rest]
        return self._placed(results) + [message for message in others if message is not None]

    def _filled(self, place: int) -> list[ChatMessage]:
        """Missing results right behind their calls; those that stand further on stay there."""
        run = self._runs[place]
        missing = [call for call in run.calls if not self._stays(place, call)]
        made = self._placed([self._result(place, call) for call in missing])
        strays = self._strays(place)
        for part in strays:
            self._mended.append(f"a result of {part.call_id} has no call that still needs it and is left out")
        replaced = {id(part) for n in range(place + 1) for part in self._denied_results(n)}
        gone = {id(part) for part in strays} | replaced
        rest = [_without_parts(message, gone) for message in run.rest]
        return made + [message for message in rest if message is not None]

    def _stays(self, place: int, call: ChatPart) -> bool:
        found = self._found.get((place, call.call_id), [])
        return bool(found) and _best_result(found)[0] >= place and not self._is_denied(_best_result(found)[1])

    def _denied_results(self, place: int) -> list[ChatPart]:
        found = [self._found.get((place, call.call_id), []) for call in self._runs[place].calls]
        return [_best_result(one)[1] for one in found if one and self._is_denied(_best_result(one)[1])]

    def _placed(self, results: list[ChatPart]) -> list[ChatMessage]:
        """Messages of results; what came from a provider stays in the form it came in."""
        made: list[ChatMessage] = []
        for part in results:
            source = self._home.get(id(part))
            if source is not None and source.wire:
                made.append(source if len(source.parts) == 1 else structs.replace(source, parts=(part,)))
            elif made and not made[-1].wire:
                made[-1] = ChatMessage("tool", (*made[-1].parts, part))
            else:
                made.append(ChatMessage("tool", (part,)))
        return made


def _with_distinct_parts(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The same, with no part in two places, so that parts can be told apart."""
    parts = [id(part) for message in messages for part in message.parts]
    if len(set(parts)) == len(parts):
        return list(messages)
    return [structs.replace(message, parts=tuple(map(copy, message.parts))) for message in messages]


def _result_parts(messages: Sequence[ChatMessage]) -> list[ChatPart]:
    return [part for message in messages for part in message.parts if part.kind == "result"]


def _has_call(run: _AnswerRun, call_id: str) -> bool:
    return any(call.call_id == call_id for call in run.calls)


def _best_result(found: list[tuple[int, ChatPart]]) -> tuple[int, ChatPart]:
    """The first success, else the first."""
    return next((one for one in found if not one[1].is_error), found[0])


def _without_parts(message: ChatMessage, gone: set[int]) -> ChatMessage | None:
    """The message without some of its parts; None when nothing is left."""
    kept = tuple(part for part in message.parts if id(part) not in gone)
    if len(kept) == len(message.parts):
        return message
    return structs.replace(message, parts=kept) if kept else None
