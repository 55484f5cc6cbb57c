"""Turns by number and calls by the name of their tool: the actions `range` and `tool_calls`.

A range is read from its end, and not further back than could be shown: cost follows the answer, not the range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from everturn.model.archive import Call, Session
from everturn.recall.answers import Draft, Entry, Part, entries_of, entry_of, handle, shortened, shown, truncated
from everturn.recall.asking import Asking
from everturn.recall.budget import cost
from everturn.recall.reading import Records, has_words, read_turns
from everturn.recall.transcript import Passage

_NAMED = 3  # cut outputs that are named one by one


def stretch(asking: Asking, session: Session, first: int | None, last: int | None, part: Part) -> Draft:
    """The turns from `first` to `last`, counted from 1, both included, in order."""
    first, last = last if first is None else first, first if last is None else last
    if first is None or last is None:
        return Draft(f"range: give start_turn and end_turn; {_extent(asking, session)}.", status="mistake")
    if first < 1 or last < first:
        right = f"start_turn={max(1, min(first, last))}, end_turn={max(1, first, last)}"
        return Draft(f"range: turns are counted from 1 and start_turn comes first, as in {right}.", status="mistake")
    if first > session.n_turns:
        return Draft(f"There is no turn {first}: {_extent(asking, session)}.", status="nothing")
    if not has_words(session):
        return Draft(f"{without_words(asking, session)} {_extent(asking, session)}.", status="nothing")
    return _read(asking, session, first, min(last, session.n_turns), part)


def _read(asking: Asking, session: Session, first: int, last: int, part: Part) -> Draft:
    found: list[list[Entry]] = []
    least, reached = 0, last + 1
    while reached > first and least <= asking.budget:
        reached -= 1
        for view in read_turns(asking.store, session, reached - 1, reached - 1):
            entries = list(entries_of(asking.store, asking.sources, session, view, asking.clean, part))
            found.append(entries)
            least += sum(_least(entry) for entry in entries)
    entries = [entry for turn in reversed(found) for entry in turn]
    span = f"Turn {first}" if first == last else f"Turns {first} to {last}"
    if not entries:
        return Draft(f"{span} of {_name(asking)}: nothing was said there{_of(part)}.", status="nothing")

    def hints(cut: list[Entry], left_out: list[Entry]) -> list[str]:
        return [*_earlier(asking, first, reached, entries, left_out), *_outputs(asking, cut, part)]

    lead = f"{span} of {session.n_turns:,} of {_name(asking)}{_of(part)}:"
    return Draft(lead, entries, from_start=part.is_paged, hints=hints)


def calls_of(asking: Asking, session: Session, tool_name: str, limit: int) -> Draft:
    """The newest calls of a tool, newest first; the name may also be the kind of tool (`shell`, `read`)."""
    calls = [call for call in asking.store.calls(session.id) if call.status != "orphan"]
    wanted = tool_name.strip().casefold()
    matching = [call for call in calls if call.name.casefold() == wanted] or [
        call for call in calls if call.kind == wanted
    ]
    if not matching:
        asked = f"no call of {handle(tool_name)!r}" if wanted else "tool_calls: give tool_name"
        return Draft(
            f"{asked[0].upper()}{asked[1:]}; {_tools(asking, calls)}.", status="nothing" if wanted else "mistake"
        )
    matching.sort(key=lambda call: (call.seq, call.idx), reverse=True)
    if not has_words(session):
        return Draft(f"{without_words(asking, session)} {_turns_of(matching[:limit])}", status="nothing")
    entries = [entry for call in matching[:limit] if (entry := _entry_of_call(asking, session, call))]

    def hints(cut: list[Entry], left_out: list[Entry]) -> list[str]:
        more = len(matching) - limit
        older = [
            f"{more:,} older calls: {asking.again('tool_calls', tool_name=handle(tool_name), limit=min(limit * 2, 50))}"
        ]
        return [*_left_calls(asking, left_out), *_outputs(asking, cut, Part()), *(older if more > 0 else [])]

    shown_of = f"{len(entries):,} of {len(matching):,} calls" if len(matching) > limit else _n(len(matching), "call")
    lead = f"{shown_of} of {handle(matching[0].name)} in {_name(asking)}, newest first:"
    return Draft(lead, entries, leave_first=list(reversed(range(len(entries)))), hints=hints)


def without_words(asking: Asking, session: Session) -> str:
    """Why there is nothing to read in a session of which only the structure was kept."""
    return (
        f"The words of {_name(asking)} were not kept: its workspace is archived in mode {session.mode}, which keeps names, "
        f"order and counts only. {asking.again('summary')} tells these."
    )


def _entry_of_call(asking: Asking, session: Session, call: Call) -> Entry | None:
    row = next(asking.store.messages(session.id, call.seq, call.seq), None)
    if row is None:
        return None
    records = Records(asking.store, asking.sources, session, until=0)
    blocks = records.message(row).blocks
    block = blocks[call.idx] if call.idx < len(blocks) else None
    start = block.call if block else None
    passage = Passage("call", "", row, block, call, start, records.result(call))
    entry = entry_of(session, call.turn, call.seq, passage, asking.clean)
    return shortened(entry) if entry else None


# what is said about it ------------------------------------------------------------------------------------------------
def _least(entry: Entry) -> int:
    """What an entry takes when it is cut as far as it may be; quick, as most are not shown in the end."""
    return cost(f"[Turn 1] {entry.head}  {truncated(1)}") if entry.is_output else min(cost(shown(entry)), 4000)


def _earlier(asking: Asking, first: int, reached: int, entries: list[Entry], left_out: list[Entry]) -> Iterable[str]:
    """How to get at what came before the first message that is shown."""
    if not left_out:
        if reached > first:
            yield _turns_call(asking, first, reached - 1)
        return
    gone = {(entry.turn, entry.seq) for entry in left_out}
    last = left_out[-1].turn
    partly = any(entry.turn == last and (entry.turn, entry.seq) not in gone for entry in entries)
    whole = last if partly else last + 1
    if whole >= first:
        yield _turns_call(asking, first, whole)
    if partly:
        numbers = [entry.seq + 1 for entry in left_out if entry.turn == last]
        part = f"message:{numbers[0]}-{numbers[-1]}"
        call = asking.again("range", part, start_turn=last + 1, end_turn=last + 1)
        yield f"{_n(len(set(numbers)), 'earlier message')} of turn {last + 1} left out: {call}"


def _turns_call(asking: Asking, first: int, last: int) -> str:
    names = f"turn {first}" if first == last else f"turns {first} to {last}"
    return f"{names} left out: {asking.again('range', start_turn=first, end_turn=last)}"


def _outputs(asking: Asking, cut: list[Entry], part: Part) -> Iterable[str]:
    """How to get at what was cut out of single messages."""
    for entry in cut[-_NAMED:]:
        number = entry.seq + 1
        place = f"message:{number}"
        if part.is_paged:
            place += f" line:{part.first_line + _lines_shown(entry)}-"
        call = asking.again("range", place, start_turn=entry.turn + 1, end_turn=entry.turn + 1)
        yield f"cut in turn {entry.turn + 1}, message {number} ({_n(entry.lines, 'line')}): {call}"
    if len(cut) > _NAMED:
        yield f"{len(cut) - _NAMED:,} more outputs cut: ask for fewer turns"


def _lines_shown(entry: Entry) -> int:
    head = entry.text.rpartition(truncated(entry.lines))[0]
    return max(head.count("\n"), 1)


def _left_calls(asking: Asking, left_out: list[Entry]) -> Iterable[str]:
    if left_out:
        turn = max(entry.turn for entry in left_out) + 1
        yield f"{_n(len(left_out), 'older call')} left out: {asking.again('range', start_turn=turn, end_turn=turn)}"


def _tools(asking: Asking, calls: list[Call]) -> str:
    counts = Counter(call.name for call in calls)
    names = ", ".join(f"{handle(name)} ({n:,})" for name, n in counts.most_common(12))
    return f"{_name(asking)} called {names}" if names else f"{_name(asking)} called no tools"


def _turns_of(calls: list[Call]) -> str:
    return "Calls: " + ", ".join(f"turn {call.turn + 1} {call.status}" for call in calls)


def _name(asking: Asking) -> str:
    return "this session" if asking.is_own else f"session {asking.short}"


def _extent(asking: Asking, session: Session) -> str:
    return f"{_name(asking)} has {_n(session.n_turns, 'turn')}"


def _of(part: Part) -> str:
    said = [
        _span("message", part.first, part.last) if part.first > 1 or part.last else "",
        _span("line", part.first_line, part.last_line) if part.first_line > 1 or part.last_line else "",
    ]
    return "".join(f", {words}" for words in said if words)


def _span(what: str, first: int, last: int | None) -> str:
    if first == last:
        return f"{what} {first}"
    return f"{what}s {first} to {last}" if last else f"from {what} {first}"


def _n(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
