"""A history that broke off, made into one that providers take. Nothing stored is touched: this is about what is sent.

A call without a result gets the one that is on record; where there is none, the model is told that nobody knows. A failure
is never told of a call whose success is on record. Results stand where the wire format wants them; those without a call,
thoughts without what came of them, half calls and empty pieces are left out. What was done is said in `mended`. A history
that is fine comes back as it is, and repairing twice is repairing once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from msgspec import Struct, structs

from everturn.llm import Message, Part
from everturn.llm.callids import with_unique_ids
from everturn.llm.pieces import Habits, habits_of, pruned

#: What the model is told about a call of which nothing is on record.
NO_RECORD = (
    "in doubt: the session broke off and no result of this call was recorded. It may or may not have taken effect, wholly "
    "or in part. Find out what happened before doing it again."
)


class Repaired(Struct, frozen=True):
    """A history that can be sent, and what had to be done to it."""

    messages: tuple[Message, ...]
    mended: list[str]  # one sentence each; empty when nothing was wrong
    added: list[Part]  # the results that were put in, to be recorded once


def repair(messages: Sequence[Message], known_results: Mapping[str, Part] | None = None, wire: str = "") -> Repaired:
    """Make a history valid for the wire format that its answers came in, or for `wire`.

    `known_results` are results on record by call id. Answers from several formats are made valid for each of them.
    """
    habits = habits_of(messages, wire)
    mended: list[str] = []
    clean = with_unique_ids(pruned(_distinct(messages), habits, mended), habits, mended)
    pairing = _Pairing(_runs(clean, habits), habits, known_results or {}, mended)
    paired = pairing.messages()
    return Repaired(tuple(paired), mended, pairing.added) if mended else Repaired(tuple(messages), [], [])


class _Run(Struct):
    """What the model said, and what followed until it spoke again."""

    answers: list[Message]
    rest: list[Message]

    @property
    def calls(self) -> list[Part]:
        return [part for message in self.answers for part in message.parts if part.kind == "call"]


def _runs(messages: Sequence[Message], habits: Habits) -> list[_Run]:
    runs = [_Run([], [])]
    for message in messages:
        if message.role != "assistant":
            runs[-1].rest.append(message)
        elif runs[-1].rest or not habits.joins or not runs[-1].answers:
            runs.append(_Run([message], []))
        else:
            runs[-1].answers.append(message)
    return runs


class _Pairing:
    """Brings calls and results together."""

    def __init__(self, runs: list[_Run], habits: Habits, known: Mapping[str, Part], mended: list[str]) -> None:
        self._runs, self._habits, self._known, self._mended = runs, habits, known, mended
        self.added: list[Part] = []
        self._found = self._assigned()
        self._chosen = {id(_best(found)[1]): owner for (owner, _), found in self._found.items()}
        self._owned = {id(part) for found in self._found.values() for _, part in found}
        self._home = {id(part): message for run in runs for message in run.rest for part in message.parts}

    def messages(self) -> list[Message]:
        """The history with every result in its place."""
        made: list[Message] = []
        for place, run in enumerate(self._runs):
            made += run.answers
            if self._is_fine(place):
                made += run.rest
            elif self._habits.anywhere:
                made += self._filled(place)
            else:
                made += self._rebuilt(place)
        return made

    def _assigned(self) -> dict[tuple[int, str], list[tuple[int, Part]]]:
        """Each result belongs to the last call of its id before it; one that has none to the first such call after it."""
        owner: dict[str, int] = {}
        found: dict[tuple[int, str], list[tuple[int, Part]]] = {}
        early: list[tuple[int, Part]] = []
        for place, run in enumerate(self._runs):
            owner |= {call.call_id: place for call in run.calls}
            for part in _results(run.rest):
                if part.call_id in owner:
                    found.setdefault((owner[part.call_id], part.call_id), []).append((place, part))
                else:
                    early.append((place, part))
        for place, part in early:
            later = next((n for n, run in enumerate(self._runs) if n > place and _calls(run, part.call_id)), None)
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
        return sorted(lead) == sorted(wanted) and len(list(_results(run.rest))) == len(wanted)

    def _is_denied(self, result: Part) -> bool:
        """Whether a failure is told although a success is on record."""
        known = self._known.get(result.call_id)
        return result.is_error and known is not None and not known.is_error

    def _strays(self, place: int) -> list[Part]:
        """Results in a run that are not the chosen one of a call before them."""
        return [part for part in _results(self._runs[place].rest) if self._chosen.get(id(part), place + 1) > place]

    def _result(self, place: int, call: Part) -> Part:
        """The truest result there is."""
        found = self._found.get((place, call.call_id), [])
        told = _best(found)[1] if found else None
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
            made = Part("result", NO_RECORD, call.call_id, call.name, is_error=True)
        self.added.append(made)
        return made

    def _rebuilt(self, place: int) -> list[Message]:
        """The results right behind their calls, then the rest without any."""
        run = self._runs[place]
        results = [self._result(place, call) for call in run.calls]
        for part in _results(run.rest):
            if id(part) not in self._owned:
                self._mended.append(f"result {part.call_id} has no call and is left out")
        others = [_without(message, {id(part) for part in _results([message])}) for message in run.rest]
        return self._placed(results) + [message for message in others if message is not None]

    def _filled(self, place: int) -> list[Message]:
        """Missing results right behind their calls; those that stand further on stay there."""
        run = self._runs[place]
        missing = [call for call in run.calls if not self._stays(place, call)]
        made = self._placed([self._result(place, call) for call in missing])
        strays = self._strays(place)
        for part in strays:
            self._mended.append(f"a result of {part.call_id} has no call that still needs it and is left out")
        replaced = {id(part) for n in range(place + 1) for part in self._denied(n)}
        gone = {id(part) for part in strays} | replaced
        rest = [_without(message, gone) for message in run.rest]
        return made + [message for message in rest if message is not None]

    def _stays(self, place: int, call: Part) -> bool:
        found = self._found.get((place, call.call_id), [])
        return bool(found) and _best(found)[0] >= place and not self._is_denied(_best(found)[1])

    def _denied(self, place: int) -> list[Part]:
        found = [self._found.get((place, call.call_id), []) for call in self._runs[place].calls]
        return [_best(one)[1] for one in found if one and self._is_denied(_best(one)[1])]

    def _placed(self, results: list[Part]) -> list[Message]:
        """Messages of results; what came from a provider stays in the form it came in."""
        made: list[Message] = []
        for part in results:
            source = self._home.get(id(part))
            if source is not None and source.wire:
                made.append(source if len(source.parts) == 1 else structs.replace(source, parts=(part,)))
            elif made and not made[-1].wire:
                made[-1] = Message("tool", (*made[-1].parts, part))
            else:
                made.append(Message("tool", (part,)))
        return made


def _distinct(messages: Sequence[Message]) -> list[Message]:
    """The same, with no part in two places, so that parts can be told apart."""
    parts = [id(part) for message in messages for part in message.parts]
    if len(set(parts)) == len(parts):
        return list(messages)
    return [structs.replace(message, parts=tuple(map(copy, message.parts))) for message in messages]


def _results(messages: Sequence[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts if part.kind == "result"]


def _calls(run: _Run, call_id: str) -> bool:
    return any(call.call_id == call_id for call in run.calls)


def _best(found: list[tuple[int, Part]]) -> tuple[int, Part]:
    """The first success, else the first."""
    return next((one for one in found if not one[1].is_error), found[0])


def _without(message: Message, gone: set[int]) -> Message | None:
    """The message without some of its parts; None when nothing is left."""
    kept = tuple(part for part in message.parts if id(part) not in gone)
    if len(kept) == len(message.parts):
        return message
    return structs.replace(message, parts=kept) if kept else None
