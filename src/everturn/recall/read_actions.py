"""The actions `range`, `tool_calls` and `summary` of `conversation_recall`.

A range is read from its end, and no further back than could be shown: cost follows the answer, not the range. A summary is
the state of the session as YAML and its statistics, from the records alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import structs

from everturn.derive.session_state import SessionState
from everturn.derive.state_yaml import as_yaml, prune_state
from everturn.model.archive import Call, Session
from everturn.model.conversation import Block, Message
from everturn.recall.answer import (
    AnswerDraft,
    AnswerEntry,
    RecallRequest,
    TurnPart,
    cut_notice,
    entries_of,
    entry_of,
    handle,
    session_line,
    shorten_entry,
    show_entry,
)
from everturn.recall.budget import cost
from everturn.sessions.lineage import lineage
from everturn.sessions.messages import Passage, Records, Sources, has_words, read_turns
from everturn.sessions.state import session_state
from everturn.text.printable import Clean, map_strings, plural, safe_line, safe_text
from everturn.text.times import iso

_NAMED = 3  # cut outputs with a hint of their own


def answer_range(
    request: RecallRequest, session: Session, first: int | None, last: int | None, part: TurnPart
) -> AnswerDraft:
    """Answer with the turns from `first` to `last`, counted from 1, both included, in order."""
    first, last = last if first is None else first, first if last is None else last
    if first is None or last is None:
        return AnswerDraft(f"range: give start_turn and end_turn; {_extent_text(request, session)}.", status="mistake")
    if first < 1 or last < first:
        right = f"start_turn={max(1, min(first, last))}, end_turn={max(1, first, last)}"
        return AnswerDraft(
            f"range: turns are counted from 1 and start_turn comes first, as in {right}.", status="mistake"
        )
    if first > session.n_turns:
        return AnswerDraft(f"There is no turn {first}: {_extent_text(request, session)}.", status="nothing")
    if not has_words(session):
        return AnswerDraft(f"{without_words(request, session)} {_extent_text(request, session)}.", status="nothing")
    return _read_range(request, session, first, min(last, session.n_turns), part)


def _read_range(request: RecallRequest, session: Session, first: int, last: int, part: TurnPart) -> AnswerDraft:
    found: list[list[AnswerEntry]] = []
    least, reached = 0, last + 1
    while reached > first and least <= request.budget:
        reached -= 1
        for view in read_turns(request.store, session, reached - 1, reached - 1):
            entries = list(entries_of(request.store, request.sources, session, view, request.clean, part))
            found.append(entries)
            least += sum(_least_cost(entry) for entry in entries)
    entries = [entry for turn in reversed(found) for entry in turn]
    span = f"Turn {first}" if first == last else f"Turns {first} to {last}"
    if not entries:
        return AnswerDraft(
            f"{span} of {_session_name(request)}: nothing was said there{_part_text(part)}.", status="nothing"
        )

    def hints(cut: list[AnswerEntry], left_out: list[AnswerEntry]) -> list[str]:
        return [*_earlier_hints(request, first, reached, entries, left_out), *_cut_hints(request, cut, part)]

    lead = f"{span} of {session.n_turns:,} of {_session_name(request)}{_part_text(part)}:"
    return AnswerDraft(lead, entries, from_start=part.is_paged, hints=hints)


def answer_tool_calls(request: RecallRequest, session: Session, tool_name: str, limit: int) -> AnswerDraft:
    """Answer with the newest calls of a tool, newest first; the name may also be a kind of tool (`shell`, `read`)."""
    calls = [call for call in request.store.calls(session.id) if call.status != "orphan"]
    name = tool_name.strip().casefold()
    matching = [call for call in calls if call.name.casefold() == name] or [call for call in calls if call.kind == name]
    if not matching:
        lead = f"No call of {handle(tool_name)!r}" if name else "Tool_calls: give tool_name"
        return AnswerDraft(f"{lead}; {_tools_text(request, calls)}.", status="nothing" if name else "mistake")
    matching.sort(key=lambda call: (call.seq, call.idx), reverse=True)
    if not has_words(session):
        turns = ", ".join(f"turn {call.turn + 1} {call.status}" for call in matching[:limit])
        return AnswerDraft(f"{without_words(request, session)} Calls: {turns}", status="nothing")
    entries = [entry for call in matching[:limit] if (entry := _entry_of_call(request, session, call))]

    def hints(cut: list[AnswerEntry], left_out: list[AnswerEntry]) -> list[str]:
        more = len(matching) - limit
        older = [
            f"{more:,} older calls: {request.again('tool_calls', tool_name=handle(tool_name), limit=min(limit * 2, 50))}"
        ]
        return [*_left_out_hint(request, left_out), *_cut_hints(request, cut, TurnPart()), *(older if more > 0 else [])]

    shown_of = (
        f"{len(entries):,} of {plural(len(matching), 'call')}"
        if len(matching) > limit
        else plural(len(matching), "call")
    )
    lead = f"{shown_of} of {handle(matching[0].name)} in {_session_name(request)}, newest first:"
    return AnswerDraft(lead, entries, leave_first=list(reversed(range(len(entries)))), hints=hints)


def without_words(request: RecallRequest, session: Session) -> str:
    """Return why a session of which only the structure was archived has no text."""
    return (
        f"The words of {_session_name(request)} were not kept: its workspace is archived in mode {session.mode}, which keeps names, "
        f"order and counts only. {request.again('summary')} tells these."
    )


def _entry_of_call(request: RecallRequest, session: Session, call: Call) -> AnswerEntry | None:
    row = next(request.store.messages(session.id, call.seq, call.seq), None)
    if row is None:
        return None
    records = Records(request.store, request.sources, session, until=0)
    blocks = records.message(row).blocks
    block = blocks[call.idx] if call.idx < len(blocks) else None
    start = block.call if block else None
    passage = Passage("call", "", row, block, call, start, records.result(call))
    entry = entry_of(session, call.turn, call.seq, passage, request.clean)
    return shorten_entry(entry) if entry else None


# --- hints ---


def _least_cost(entry: AnswerEntry) -> int:
    """Return the cost of an entry cut as far as possible; quick, as most are not shown in the end."""
    return cost(f"[Turn 1] {entry.head}  {cut_notice(1)}") if entry.is_output else min(cost(show_entry(entry)), 4000)


def _earlier_hints(
    request: RecallRequest, first: int, reached: int, entries: list[AnswerEntry], left_out: list[AnswerEntry]
) -> Iterable[str]:
    """Yield the calls that get the messages before the first one shown."""
    if not left_out:
        if reached > first:
            yield _turns_hint(request, first, reached - 1)
        return
    gone = {(entry.turn, entry.seq) for entry in left_out}
    last = left_out[-1].turn
    partly = any(entry.turn == last and (entry.turn, entry.seq) not in gone for entry in entries)
    whole = last if partly else last + 1
    if whole >= first:
        yield _turns_hint(request, first, whole)
    if partly:
        numbers = [entry.seq + 1 for entry in left_out if entry.turn == last]
        part = f"message:{numbers[0]}-{numbers[-1]}"
        call = request.again("range", part, start_turn=last + 1, end_turn=last + 1)
        yield f"{plural(len(set(numbers)), 'earlier message')} of turn {last + 1} left out: {call}"


def _turns_hint(request: RecallRequest, first: int, last: int) -> str:
    names = f"turn {first}" if first == last else f"turns {first} to {last}"
    return f"{names} left out: {request.again('range', start_turn=first, end_turn=last)}"


def _cut_hints(request: RecallRequest, cut: list[AnswerEntry], part: TurnPart) -> Iterable[str]:
    """Yield the calls that get the text cut out of single messages."""
    for entry in cut[-_NAMED:]:
        number = entry.seq + 1
        target = f"message:{number}"
        if part.is_paged:
            target += f" line:{part.first_line + _lines_shown(entry)}-"
        call = request.again("range", target, start_turn=entry.turn + 1, end_turn=entry.turn + 1)
        yield f"cut in turn {entry.turn + 1}, message {number} ({plural(entry.lines, 'line')}): {call}"
    if len(cut) > _NAMED:
        yield f"{len(cut) - _NAMED:,} more outputs cut: ask for fewer turns"


def _lines_shown(entry: AnswerEntry) -> int:
    head = entry.text.rpartition(cut_notice(entry.lines))[0]
    return max(head.count("\n"), 1)


def _left_out_hint(request: RecallRequest, left_out: list[AnswerEntry]) -> Iterable[str]:
    if left_out:
        turn = max(entry.turn for entry in left_out) + 1
        yield f"{plural(len(left_out), 'older call')} left out: {request.again('range', start_turn=turn, end_turn=turn)}"


def _tools_text(request: RecallRequest, calls: list[Call]) -> str:
    counts = Counter(call.name for call in calls)
    names = ", ".join(f"{handle(name)} ({n:,})" for name, n in counts.most_common(12))
    return f"{_session_name(request)} called {names}" if names else f"{_session_name(request)} called no tools"


def _session_name(request: RecallRequest) -> str:
    return "this session" if request.is_own else f"session {request.short}"


def _extent_text(request: RecallRequest, session: Session) -> str:
    return f"{_session_name(request)} has {plural(session.n_turns, 'turn')}"


def _part_text(part: TurnPart) -> str:
    spans = [
        _span_text("message", part.first, part.last) if part.first > 1 or part.last else "",
        _span_text("line", part.first_line, part.last_line) if part.first_line > 1 or part.last_line else "",
    ]
    return "".join(f", {words}" for words in spans if words)


def _span_text(what: str, first: int, last: int | None) -> str:
    if first == last:
        return f"{what} {first}"
    return f"{what}s {first} to {last}" if last else f"from {what} {first}"


# --- the summary ---

_TOOLS = 8  # tools named


def answer_summary(request: RecallRequest, session: Session) -> AnswerDraft:
    text = request.store.session(session.id)[1]
    name = "this session" if request.is_own else f"session {request.short}"
    words = "" if has_words(session) else f" Its words were not kept (mode {session.mode}): there is structure only."
    state = session_state(request.store, _without_secrets(request.sources, session.agent, request.clean), session)
    parts = [
        session_line(session, text, request.short, request.clean),
        safe_text(as_yaml(prune_state(state)), request.clean),
        "\n".join(_statistics(request, session, state)),
    ]
    latest = request.again("range", start_turn=max(1, session.n_turns - 2), end_turn=max(1, session.n_turns))
    lead = f"Summary of {name}, from its records, without a model.{words} Its latest turns: {latest}"
    return AnswerDraft(lead, body="\n\n".join(filter(None, parts)))


def _without_secrets(sources: Sources, agent: str, clean: Clean) -> Sources:
    """Return the source with text free of secrets: a state keeps excerpts, and half a secret is not recognised."""
    source = sources.get(agent)
    if source is None:
        return sources
    view = source.view

    def clean_view(record: bytes) -> Message | None:
        message = view(record)
        if message is None:
            return None
        return structs.replace(message, blocks=tuple(_clean_block(block, clean) for block in message.blocks))

    return {agent: structs.replace(source, view=clean_view)}


def _clean_block(block: Block, clean: Clean) -> Block:
    call = block.call
    if call is not None:
        call = structs.replace(
            call, command=clean(call.command), prompt=clean(call.prompt), input=_clean_strings(call.input, clean)
        )
    return structs.replace(block, text=clean(block.text) if block.text else "", call=call)


def _clean_strings(value: Any, clean: Clean) -> Any:
    """Clean every string in a value. A value that is nested too deeply is left out."""
    try:
        return map_strings(value, clean)
    except RecursionError:
        return None


def _statistics(request: RecallRequest, session: Session, state: SessionState) -> list[str]:
    calls = [call for call in request.store.calls(session.id) if call.status != "orphan"]
    tools = Counter(safe_line(call.name, request.clean, 60) for call in calls).most_common(_TOOLS)
    actions = Counter(one.action for one in state.files.values())
    unresolved = sum(one.outcome == "failed" and one.resolved_by is None for one in state.errors)
    tokens = (
        f"{session.tokens_in + session.tokens_cache_read + session.tokens_cache_write:,} in, {session.tokens_out:,} out"
    )
    related = lineage(request.store, session)
    lines = {
        "turns": f"{session.n_turns:,}",
        "messages": f"{session.n_messages:,}" + (f" ({session.n_inherited:,} inherited)" if session.n_inherited else ""),
        "tool calls": f"{len(calls):,} ({session.n_errors:,} failed)",
        "tools": ", ".join(f"{name} {n:,}" for name, n in tools),
        "tokens": tokens if session.tokens_in or session.tokens_out else "",
        "files touched": f"{len(state.files):,} ({', '.join(f'{n:,} {name}' for name, n in actions.items())})" if actions else "0",
        "decisions and constraints": f"{len(state.decisions) + len(state.constraints):,}",
        "errors not resolved": f"{unresolved:,}",
        "time": " to ".join(filter(None, (iso(session.started), iso(session.ended)))),
        "came from": plural(len(related.ancestors), "session") if related.ancestors else "",
        "subagents": f"{len(related.children):,}" if related.children else "",
    }  # fmt: skip
    return ["statistics:", *(f"  {name}: {value}" for name, value in lines.items() if value)]
