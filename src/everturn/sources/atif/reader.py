"""Read trajectories: a step is one message, with the results of its calls in it.

Trajectories of subagents that are embedded in the document are not read as sessions of their own.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.model.vocabulary import CALL_KINDS, FIELDS, MESSAGE_KINDS, ORIGINS, ROLES
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.json_document import first_object
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.message_reader import (
    Facts,
    MessageElements,
    RecordFormat,
    told_outcome,
    told_time,
    told_word,
    view_element,
)
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    count,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    word,
)

_VERSION = re.compile(rb'"schema_version"\s*:\s*"ATIF-v1\.\d{1,3}"')
_OWN = "everturn"


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or not _VERSION.search(start):
        return None
    first = first_object(head)
    return SourceCandidate(path, "main", word(first.get("session_id")) or word(first.get("trajectory_id")) or path.stem)


def reader(candidate: SourceCandidate, state: bytes) -> SourceReader:
    form = RecordFormat(build, lambda step: word(step.get("source")))
    return MessageElements(form, "steps", candidate, state, _about)


def build(step: Rec) -> Message | None:
    """Return the message of a step."""
    source, own = word(step.get("source")), mapping(mapping(step.get("extra")).get(_OWN))
    at, precision = told_time(own, step.get("timestamp"))
    if source == "agent":
        message = _agent(step, own)
    elif source in ("user", "system"):
        message = _other(step, source, own)
    else:
        return unknown_message(step)
    took = count(own.get("reported_ms"))
    return replace(message, at=at, precision=precision, native_id=word(own.get("id")), reported_ms=took)


view = partial(view_element, build)


def _agent(step: Rec, own: Rec) -> Message:
    calls = [_call(call) for call in listing(step.get("tool_calls"))]
    blocks = (
        *text_blocks(word(step.get("reasoning_content")), "thinking", "thinking"),
        *_content(step.get("message"), "answer"),
        *_more(own),
        *calls,
        *_results(step),
    )
    if step.get("llm_call_count") == 0:
        return Message("assistant", "system", "notice", blocks=blocks)
    return Message(
        "assistant", "model", told_word(own, "kind", MESSAGE_KINDS, "text"), provider_id=word(own.get("response")),
        model=word(step.get("model_name")), blocks=blocks, usage=_usage(mapping(step.get("metrics"))),
    )  # fmt: skip


def _other(step: Rec, source: str, own: Rec) -> Message:
    """Return what a person typed, or what a program put in; `extra` says more where everturn wrote it."""
    is_user = source == "user"
    role = told_word(own, "role", ROLES, source)
    origin = told_word(own, "origin", ORIGINS, "human" if is_user else "injected")
    kind = told_word(own, "kind", MESSAGE_KINDS, "text" if is_user else "context")
    field = told_word(own, "field", FIELDS, "prompt" if is_user else "meta")
    starts = own.get("starts_turn") if isinstance(own.get("starts_turn"), bool) else is_user
    blocks = (*_results(step), *_content(step.get("message"), field), *_more(own))
    return Message(role, origin, kind, blocks=blocks, starts_turn=bool(starts))


def _content(content: Any, field: str) -> list[Block]:
    """Return the blocks of a message: a text, or parts of text, pictures and sound."""
    found: list[Block] = []
    for part in listing(content) or [content]:
        kind = mapping(part).get("type")
        if kind in ("image", "audio"):
            path = word(mapping(mapping(part).get("source")).get("path"))
            found.append(Block("image" if kind == "image" else "document", path, "meta" if path else "", data=part))
        else:
            found += blocks_of([part] if isinstance(part, dict) else part, field)
    return found


def _more(own: Rec) -> list[Block]:
    """Return texts that everturn wrote beside the message: `[field, text]` each."""
    pairs = [(word(pair[0]), pair[1]) for pair in map(listing, listing(own.get("more"))) if len(pair) == 2]
    return [Block("text", text, field) for field, text in pairs if field in FIELDS and isinstance(text, str) and text]


def _call(call: Any) -> Block:
    one = mapping(call)
    own = mapping(mapping(one.get("extra")).get(_OWN))
    kind = told_word(own, "kind", CALL_KINDS, "")
    given = own["input"] if "input" in own else one.get("arguments")
    return call_block(word(one.get("tool_call_id")), word(one.get("function_name")), given, call, kind)


def _results(step: Rec) -> list[Block]:
    found = []
    for result in map(mapping, listing(mapping(step.get("observation")).get("results"))):
        own = mapping(mapping(result.get("extra")).get(_OWN))
        content = result.get("content")
        text = content if isinstance(content, str) else "\n".join(strings(content, "type"))
        failed = own.get("is_error") if isinstance(own.get("is_error"), bool) else None
        call_id = word(result.get("source_call_id")) or word(own.get("call_id"))
        found.append(told_outcome(own, result_block(call_id, text, failed, result)))
    return found


def _usage(metrics: Rec) -> TokenUsage | None:
    given, output, cached = (count(metrics.get(f"{name}_tokens")) or 0 for name in ("prompt", "completion", "cached"))
    more = mapping(metrics.get("extra"))
    written, hour = (count(more.get(f"cache_write_tokens{name}")) or 0 for name in ("", "_1h"))
    if not (given or output or cached or written):
        return None
    return TokenUsage(max(given - cached - written, 0), output, cached, written, hour)


def _about(key: str, value: Any) -> Facts:
    if key == "agent":
        about = mapping(value)
        version = word(about.get("version"))
        return {"client": version if version != "unknown" else "", "agent_name": word(about.get("name"))}
    if key == "extra":
        own = mapping(mapping(value).get(_OWN))
        title = word(own.get("title"))
        return {
            "title": title,
            "title_rank": 1 if title else 0,
            "workspace": word(own.get("workspace")),
            "branch": word(own.get("branch")),
        }
    return {}
