"""Repair of a history that broke off, so that providers accept it. Only the request changes, nothing stored.

Of a call without a result the model learns that the outcome is unknown. Results move to where the wire format requires
them. Results without a call, thoughts without an answer, incomplete calls and empty parts are left out. `mended` lists
every change. A valid history comes back unchanged, and repair is idempotent.

Every call needs an id of its own. Some servers number the calls of every answer from zero, some repeat an id within one
answer. Where the wire format refuses that, later ids get a number appended, in call and result alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from copy import copy

from msgspec import Struct, structs

from everturn.llm.history_rules import HistoryRules, history_rules, prune_history
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, fit_id

_FITS = re.compile(r"[A-Za-z0-9_-]+")
#: Members of a provider's block that hold the call id.
_MEMBERS = ("call_id", "tool_use_id", "tool_call_id", "id")


def with_unique_ids(messages: Sequence[ChatMessage], rules: HistoryRules, mended: list[str]) -> list[ChatMessage]:
    """Return the history with a unique id for every call that needs one."""
    seen: set[str] = set()
    given: dict[str, list[str]] = {}  # the new ids for the results of an id
    made = []
    for place, message in enumerate(messages):
        if message.role == "assistant" and any(part.kind == "call" for part in message.parts):
            message = _drop_doubles(message, messages[place + 1 :], mended)
            seen = set() if rules.repeats else seen
            made.append(_rename_calls(message, seen, given, rules, mended))
        elif any(given.get(part.call_id) for part in message.parts if part.kind == "result"):
            made.append(_rename_results(message, given))
        else:
            made.append(message)
    return made


def unique_calls(reply: Reply, taken: Collection[str], new_id: Callable[[], str]) -> tuple[Reply, dict[str, str]]:
    """Return the reply with an id for every call that no other call has, and the provider's id of each changed one.

    Some servers send no ids, equal ones, or the same in every response. An id of ours has nine letters and digits,
    which every provider accepts. A call that is repeated word for word, id included, is the same call and keeps its id.
    """
    message, parts, seen, given = reply.message, reply.message.parts, set(taken), {}
    for place, part in enumerate(parts):
        if part.kind != "call":
            continue
        own = part.call_id
        if own and part in parts[:place]:
            own = message.parts[parts.index(part)].call_id
        elif not own or own in seen:
            own = next(one for one in iter(lambda: new_id()[:9], "") if one not in seen)
        if own != part.call_id:
            given[own] = part.call_id
            message = with_call_id(message, place, own)
        seen.add(own)
    return (structs.replace(reply, message=message), given) if given else (reply, given)


def with_call_id(message: ChatMessage, place: int, call_id: str) -> ChatMessage:
    """Return the message with another call id in one part, in its verbatim block too."""
    part = message.parts[place]
    raw, skeleton = part.raw, message.raw
    if isinstance(raw, dict):
        names = _MEMBERS if part.kind == "call" else _MEMBERS[:-1]
        member = next((name for name in names if raw.get(name) == part.call_id), "")
        if not member and part.kind == "call":  # a call that came without an id
            member = "call_id" if message.wire == "responses" else "id"
        raw = {**raw, member: call_id} if member else raw
    if isinstance(skeleton, dict) and part.kind == "result" and skeleton.get("tool_call_id") == part.call_id:
        skeleton = {**skeleton, "tool_call_id": call_id}
    parts = list(message.parts)
    parts[place] = structs.replace(part, call_id=call_id, raw=raw)
    return structs.replace(message, parts=tuple(parts), raw=skeleton)


def _rename_calls(
    message: ChatMessage, seen: set[str], given: dict[str, list[str]], rules: HistoryRules, mended: list[str]
) -> ChatMessage:
    for call_id in {part.call_id for part in message.parts if part.kind == "call"}:
        given.pop(call_id, None)
    fits = rules.wire not in ("anthropic_messages", "") or message.wire == ""
    for place, part in enumerate(message.parts):
        if part.kind != "call":
            continue
        wanted = part.call_id if fits or _FITS.fullmatch(part.call_id) else fit_id(part.call_id)
        new = _free_id(wanted, seen)
        seen.add(new)
        given.setdefault(part.call_id, []).append(new)
        if new != part.call_id:
            mended.append(f"call {part.call_id} ({part.name}) is sent as {new}, because each call needs a unique id")
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
    """Of calls that share an id within one answer, keep as many as have results: the last ones, since those were run."""
    ids = [part.call_id for part in message.parts if part.kind == "call"]
    if len(set(ids)) == len(ids):
        return message
    gone: list[ChatPart] = []
    for call_id in dict.fromkeys(ids):
        results = _count_results(call_id, after)
        doubles = [part for part in message.parts if part.kind == "call" and part.call_id == call_id]
        gone += doubles[: len(doubles) - max(1, results)]
    mended += [f"call {part.call_id} ({part.name}) occurs twice; the last one is sent" for part in gone]
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


#: The result of a call without any record.
NO_RECORD = (
    "in doubt: the session broke off and no result of this call was recorded. It may or may not have taken effect, wholly "
    "or in part. Find out what happened before doing it again."
)


class HistoryRepair(Struct, frozen=True):
    """A history that can be sent, and the changes it needed."""

    messages: tuple[ChatMessage, ...]
    mended: list[str]  # one sentence each; empty if the history was valid


def repair_history(messages: Sequence[ChatMessage], wire: str = "") -> HistoryRepair:
    """Make a history valid for the wire format of its answers, or for `wire`; for each of them if there are several."""
    rules = history_rules(messages, wire)
    mended: list[str] = []
    clean = with_unique_ids(prune_history(_with_distinct_parts(messages), rules, mended), rules, mended)
    paired = _ResultPairing(_split_runs(clean, rules), rules, mended).messages()
    return HistoryRepair(tuple(paired if mended else messages), mended)


class _AnswerRun(Struct):
    """An answer, and the messages up to the next one."""

    answers: list[ChatMessage]
    rest: list[ChatMessage]

    @property
    def calls(self) -> list[ChatPart]:
        return [part for message in self.answers for part in message.parts if part.kind == "call"]


def _split_runs(messages: Sequence[ChatMessage], rules: HistoryRules) -> list[_AnswerRun]:
    runs = [_AnswerRun([], [])]
    for message in messages:
        if message.role != "assistant":
            runs[-1].rest.append(message)
        elif runs[-1].rest or not rules.joins or not runs[-1].answers:
            runs.append(_AnswerRun([message], []))
        else:
            runs[-1].answers.append(message)
    return runs


class _ResultPairing:
    def __init__(self, runs: list[_AnswerRun], rules: HistoryRules, mended: list[str]) -> None:
        self._runs, self._rules, self._mended = runs, rules, mended
        self._found = self._assign_results()
        self._chosen = {id(_best_result(found)[1]): owner for (owner, _), found in self._found.items()}
        self._owned = {id(part) for found in self._found.values() for _, part in found}
        self._home = {id(part): message for run in runs for message in run.rest for part in message.parts}

    def messages(self) -> list[ChatMessage]:
        made: list[ChatMessage] = []
        for place, run in enumerate(self._runs):
            made += run.answers
            if self._is_fine(place):
                made += run.rest
            elif self._rules.anywhere:
                made += self._fill_run(place)
            else:
                made += self._rebuild_run(place)
        return made

    def _assign_results(self) -> dict[tuple[int, str], list[tuple[int, ChatPart]]]:
        """Assign each result to the last call of its id before it, or else to the first one after it."""
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
        if any(len(one) != 1 for one in mine):
            return False
        if self._rules.anywhere:
            return all(one[0][0] >= place for one in mine) and not self._strays(place)
        parts = [part for message in run.rest for part in message.parts]
        lead = [part.call_id for part in parts[: len(wanted)] if part.kind == "result"]
        return sorted(lead) == sorted(wanted) and len(list(_result_parts(run.rest))) == len(wanted)

    def _strays(self, place: int) -> list[ChatPart]:
        """Return the results in a run that are not the chosen one of a call before them."""
        return [part for part in _result_parts(self._runs[place].rest) if self._chosen.get(id(part), place + 1) > place]

    def _choose_result(self, place: int, call: ChatPart) -> ChatPart:
        found = self._found.get((place, call.call_id), [])
        name = f"call {call.call_id} ({call.name})"
        if not found:
            self._mended.append(f"{name} has no recorded result; the model is told that the outcome is unknown")
            return ChatPart("result", NO_RECORD, call.call_id, call.name, is_error=True)
        if len(found) > 1:
            self._mended.append(f"{name} had {len(found)} results; one of them is sent")
        elif found[0][0] != place or not self._rules.anywhere:
            self._mended.append(f"the result of {name} was moved to follow its call")
        return _best_result(found)[1]

    def _rebuild_run(self, place: int) -> list[ChatMessage]:
        """Return the results directly after their calls, then the rest without results."""
        run = self._runs[place]
        results = [self._choose_result(place, call) for call in run.calls]
        for part in _result_parts(run.rest):
            if id(part) not in self._owned:
                self._mended.append(f"result {part.call_id} has no call and is left out")
        others = [_without_parts(message, {id(part) for part in _result_parts([message])}) for message in run.rest]
        return self._result_messages(results) + [message for message in others if message is not None]

    def _fill_run(self, place: int) -> list[ChatMessage]:
        """Add missing results directly after their calls. Later ones stay where they are."""
        run = self._runs[place]
        missing = [call for call in run.calls if not self._keeps_result(place, call)]
        made = self._result_messages([self._choose_result(place, call) for call in missing])
        strays = self._strays(place)
        for part in strays:
            self._mended.append(f"a result of {part.call_id} has no open call and is left out")
        rest = [_without_parts(message, {id(part) for part in strays}) for message in run.rest]
        return made + [message for message in rest if message is not None]

    def _keeps_result(self, place: int, call: ChatPart) -> bool:
        found = self._found.get((place, call.call_id), [])
        return bool(found) and _best_result(found)[0] >= place

    def _result_messages(self, results: list[ChatPart]) -> list[ChatMessage]:
        """Return messages of results. A provider's keep their form."""
        made: list[ChatMessage] = []
        for part in results:
            if (source := self._home.get(id(part))) is not None and source.wire:
                made.append(source if len(source.parts) == 1 else structs.replace(source, parts=(part,)))
            elif made and not made[-1].wire:
                made[-1] = ChatMessage("tool", (*made[-1].parts, part))
            else:
                made.append(ChatMessage("tool", (part,)))
        return made


def _with_distinct_parts(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with every part in one message only, so that parts have an identity."""
    parts = [id(part) for message in messages for part in message.parts]
    if len(set(parts)) == len(parts):
        return list(messages)
    return [structs.replace(message, parts=tuple(map(copy, message.parts))) for message in messages]


def _result_parts(messages: Sequence[ChatMessage]) -> list[ChatPart]:
    return [part for message in messages for part in message.parts if part.kind == "result"]


def _has_call(run: _AnswerRun, call_id: str) -> bool:
    return any(call.call_id == call_id for call in run.calls)


def _best_result(found: list[tuple[int, ChatPart]]) -> tuple[int, ChatPart]:
    """Return the first success, or else the first result."""
    return next((one for one in found if not one[1].is_error), found[0])


def _without_parts(message: ChatMessage, gone: set[int]) -> ChatMessage | None:
    """Return the message without some parts; None if nothing remains."""
    kept = tuple(part for part in message.parts if id(part) not in gone)
    if len(kept) == len(message.parts):
        return message
    return structs.replace(message, parts=kept) if kept else None
