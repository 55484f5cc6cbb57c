"""What is known about a session, its turns, steps, calls and messages, as plain values for JSON.

Everything that has a number counts from 1. What is not known is null, what does not apply is left empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everturn.derive.times import iso
from everturn.derive.times import turn_ms as turn_ms  # noqa: PLC0414  # one of the facts that are taken from here
from everturn.model.archive import Artifact, Call, MessageRow, Session, SessionText, Step, Turn
from everturn.model.conversation import Block, Message
from everturn.recall.lineage import Lineage, Relative
from everturn.recall.reading import has_words
from everturn.store import Store


def session_facts(session: Session, text: SessionText) -> dict[str, Any]:
    """What is known about a session as a whole."""
    return {
        "id": session.native_id,
        "agent": session.agent,
        "kind": session.kind,
        "parent": session.parent or None,
        "state": session.state,
        "mode": session.mode,
        "words": has_words(session),
        "title": text.title or None,
        "summary": text.summary or None,
        "first_prompt": text.first_prompt or None,
        "workspace": text.workspace or None,
        "branch": text.branch or None,
        "team": text.team or None,
        "agent_name": text.agent_name or None,
        "machine": session.machine,
        "owner": session.owner,
        "client": session.client or None,
        "model": session.model or None,
        "started": time_text(session.started),
        "ended": time_text(session.ended),
        "counts": {
            "turns": session.n_turns,
            "steps": session.n_steps,
            "messages": session.n_messages,
            "inherited": session.n_inherited,
            "prompts": session.n_prompts,
            "calls": session.n_calls,
            "errors": session.n_errors,
        },
        "tokens": _tokens(session),
    }


def source_facts(store: Store, session: Session) -> dict[str, Any]:
    """Where the bytes of a session come from."""
    version = store.version(session.version)
    file, _ = store.file_by_id(version.source)
    return {
        "path": file.path,
        "format": file.format,
        "machine": file.machine,
        "state": file.state,
        "version": version.number,
        "versions": [one.number for one in store.versions(version.source)],
        "bytes": version.size,
        "erased": version.erased,
        "parser": version.parser,
    }


def lineage_facts(relatives: Lineage) -> dict[str, Any]:
    """What a session hangs together with."""
    return {name: [_relative_facts(one) for one in getattr(relatives, name)] for name in relatives.__struct_fields__}


def turn_facts(turn: Turn) -> dict[str, Any]:
    """What is known about a turn as a whole."""
    return {
        "number": turn.idx + 1,
        "starter": turn.starter,
        "started": time_text(turn.started),
        "ended": time_text(turn.ended),
        "duration_ms": turn_ms(turn),
        "first_message": turn.first_seq + 1,
        "last_message": turn.last_seq + 1,
        "n_steps": turn.n_steps,
        "n_calls": turn.n_calls,
        "n_errors": turn.n_errors,
        "compacted": bool(turn.compacted),
        "interrupted": bool(turn.interrupted),
        "inherited": bool(turn.inherited),
    }


def step_facts(step: Step) -> dict[str, Any]:
    return {
        "number": step.idx + 1,
        "provider_id": step.provider_id or None,
        "model": step.model or None,
        "started": time_text(step.started),
        "ended": time_text(step.ended),
        "parallel": step.n_calls > 1,
        "tokens": _tokens(step),
        "inherited": bool(step.inherited),
    }


def call_facts(call: Call, touched: Iterable[Artifact] = ()) -> dict[str, Any]:
    """What is known about a call; parallel calls share their position."""
    return {
        "id": call.call_id or None,
        "name": call.name or None,
        "kind": call.kind,
        "status": call.status,
        "error_class": call.error_class or None,
        "exit_status": call.exit_status,
        "turn": call.turn + 1,
        "step": call.step + 1 if call.step >= 0 else None,
        "position": call.position + 1,
        "batch": call.batch + 1,
        "message": call.seq + 1,
        "block": call.idx + 1,
        "result_message": None if call.result_seq is None else call.result_seq + 1,
        "started": time_text(call.started),
        "ended": time_text(call.ended),
        "duration_ms": call.duration_ms,
        "input_size": call.input_size,
        "output_size": call.output_size,
        "inherited": bool(call.inherited),
        "artifacts": [{"action": one.action, "path": one.path} for one in touched],
    }


def message_facts(row: MessageRow, message: Message, digest: str | None) -> dict[str, Any]:
    """A message with its blocks as found and the bytes it rests on; `digest` is their SHA-256."""
    return {
        "number": row.seq + 1,
        "turn": row.turn + 1,
        "step": row.step + 1 if row.step >= 0 else None,
        "role": message.role,
        "origin": message.origin,
        "kind": message.kind,
        "at": time_text(message.at),
        "precision": message.precision,
        "native_id": message.native_id or None,
        "provider_id": message.provider_id or None,
        "model": message.model or None,
        "usage": message.usage,
        "inherited": bool(row.inherited),
        "fidelity": message.fidelity,
        "blocks": [_block_facts(block) for block in message.blocks],
        "evidence": {"start": row.start, "size": row.size, "sha256": digest},
    }


def time_text(ms: int | None) -> str | None:
    """A time as text, None where there is none."""
    return None if ms is None else iso(ms)


def _tokens(row: Session | Step) -> dict[str, int]:
    return {
        "input": row.tokens_in,
        "output": row.tokens_out,
        "cache_read": row.tokens_cache_read,
        "cache_write": row.tokens_cache_write,
    }


def _block_facts(block: Block) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": block.kind, "field": block.field or None}
    if block.call is not None:
        call = block.call
        facts["call"] = {
            "id": call.call_id,
            "name": call.name,
            "kind": call.kind,
            "path": call.path,
            "command": call.command,
        }
    if block.result is not None:
        facts["result"] = block.result
    if block.data is None:
        return {**facts, "text": block.text}
    return {**facts, "data": block.data}


def _relative_facts(one: Relative) -> dict[str, Any]:
    return {
        "relation": one.relation,
        "id": one.native_id,
        "archived": one.session is not None,
        "kind": one.session.kind if one.session else None,
        "shared_messages": one.shared or None,
        "call": call_facts(one.call) if one.call else None,
    }
