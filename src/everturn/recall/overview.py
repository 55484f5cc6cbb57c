"""A session at a glance: the action `summary`. Its state as YAML and its figures, from the records alone."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from msgspec import structs

from everturn.derive.state import SessionState
from everturn.derive.stateview import as_yaml, prune_state
from everturn.derive.times import iso
from everturn.model.archive import Session
from everturn.model.conversation import Block, Message
from everturn.recall.answers import AnswerDraft, session_line
from everturn.recall.asking import RecallRequest
from everturn.recall.framing import Clean, safe_line, safe_text
from everturn.recall.lineage import lineage
from everturn.recall.reading import Sources, has_words
from everturn.recall.state import session_state

_TOOLS = 8  # tools that are named


def answer_summary(asking: RecallRequest, session: Session) -> AnswerDraft:
    """What a session is about and how big it is."""
    text = asking.store.session(session.id)[1]
    name = "this session" if asking.is_own else f"session {asking.short}"
    words = "" if has_words(session) else f" Its words were not kept (mode {session.mode}): there is structure only."
    state = session_state(asking.store, _without_secrets(asking.sources, session.agent, asking.clean), session)
    pieces = [
        session_line(session, text, asking.short, asking.clean),
        safe_text(as_yaml(prune_state(state)), asking.clean),
        "\n".join(_statistics(asking, session, state)),
    ]
    latest = asking.again("range", start_turn=max(1, session.n_turns - 2), end_turn=max(1, session.n_turns))
    lead = f"Summary of {name}, from its records, without a model.{words} Its latest turns: {latest}"
    return AnswerDraft(lead, body="\n\n".join(filter(None, pieces)))


def _without_secrets(sources: Sources, agent: str, clean: Clean) -> Sources:
    """The source of the session, giving words without secrets: a state keeps excerpts, and half a secret is not known."""
    source = sources.get(agent)
    if source is None:
        return sources
    view = source.view

    def cleaned(record: bytes) -> Message | None:
        message = view(record)
        if message is None:
            return None
        return structs.replace(message, blocks=tuple(_clean_block(block, clean) for block in message.blocks))

    return {agent: dataclasses.replace(source, view=cleaned)}


def _clean_block(block: Block, clean: Clean) -> Block:
    call = block.call
    if call is not None:
        call = structs.replace(
            call, command=clean(call.command), prompt=clean(call.prompt), input=_clean_strings(call.input, clean)
        )
    return structs.replace(block, text=clean(block.text) if block.text else "", call=call)


def _clean_strings(value: Any, clean: Clean) -> Any:
    """Every string in a value. What is nested deeper than any argument is left out."""
    try:
        return _clean_nested(value, clean)
    except RecursionError:
        return None


def _clean_nested(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {name: _clean_nested(one, clean) for name, one in value.items()}
    return [_clean_nested(one, clean) for one in value] if isinstance(value, list) else value


def _statistics(asking: RecallRequest, session: Session, state: SessionState) -> list[str]:
    """Counts, one to a line."""
    calls = [call for call in asking.store.calls(session.id) if call.status != "orphan"]
    tools = Counter(safe_line(call.name, asking.clean, 60) for call in calls).most_common(_TOOLS)
    actions = Counter(one.action for one in state.files.values())
    unresolved = sum(one.outcome == "failed" and one.resolved_by is None for one in state.errors)
    tokens = (
        f"{session.tokens_in + session.tokens_cache_read + session.tokens_cache_write:,} in, {session.tokens_out:,} out"
    )
    related = lineage(asking.store, session)
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
        "came from": f"{len(related.ancestors):,} sessions" if related.ancestors else "",
        "subagents": f"{len(related.children):,}" if related.children else "",
    }  # fmt: skip
    return ["statistics:", *(f"  {name}: {value}" for name, value in lines.items() if value)]
