"""A session in a format that other programs read: as the `Source` of that format writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from everturn.errors import EverturnError, UsageError
from everturn.model.archive import Call, Session, Step
from everturn.model.conversation import Block, Message, SessionFacts, SessionPart, TokenUsage
from everturn.sessions.messages import Sources, read_messages
from everturn.sources.contract import WireForm
from everturn.store.contract import Store

_PACKED = 1 << 20  # bytes of lines in one request
_TIMEOUT = 60  # seconds


def as_standard(
    store: Store, sources: Sources, session: Session, name: str, clean: Callable[[bytes], bytes] | None = None
) -> Iterator[bytes]:
    """Yield a session as a file of the format `name`; `clean` is applied to every line of it."""
    source, part = sources[name], session_part(store, sources, session)
    assert source.write is not None
    for piece in source.write_pieces(part) if source.write_pieces is not None else [source.write(part)]:
        line = piece.encode("utf-8", "replace")
        yield clean(line) if clean is not None else line


def as_binary(wire: WireForm, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines of a format in its binary form, about `_PACKED` bytes of them at a time."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PACKED:
            yield wire.pack(b"".join(waiting))
            waiting, size = [], 0
    if waiting:
        yield wire.pack(b"".join(waiting))


def send(wire: WireForm, address: str, headers: Mapping[str, str], pieces: Iterable[bytes]) -> int:
    """Send lines of a format to an endpoint; return the number of requests. Raises UsageError, EverturnError.

    A redirect is not followed: it would take the session elsewhere.
    """
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirect(HTTPRedirectHandler):
        def redirect_request(self, *args: Any, **given: Any) -> None:
            return None

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{address!r} is not the address of an endpoint; it looks like http://127.0.0.1:4318")
    url = address if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{wire.path}"
    opener, sent = build_opener(NoRedirect), 0
    for body in as_binary(wire, pieces):
        request = Request(url, body, {"Content-Type": wire.media_type, **headers}, method="POST")  # noqa: S310 -- checked
        try:
            with opener.open(request, timeout=_TIMEOUT):
                sent += 1
        except HTTPError as failure:
            raise EverturnError(
                f"{url} answers with status {failure.code}; {sent:,} requests were taken before"
            ) from None
        except (OSError, HTTPException) as failure:
            reason = getattr(failure, "reason", None) or failure
            raise EverturnError(f"{url} cannot be reached: {reason}; {sent:,} requests were taken before") from None
    return sent


def session_part(store: Store, sources: Sources, session: Session) -> SessionPart:
    """Return a whole session. Messages of one response have one id, and its tokens are on the first of them."""
    text = store.session(session.id)[1]
    steps = {step.idx: step for step in store.steps(session.id)}
    begins = {turn.first_seq for turn in store.turns(session.id) if turn.idx}
    ids = _CallIds(store.calls(session.id))
    counted: set[int] = set()
    messages, answered = [], False
    for row, message in read_messages(store, sources, session):
        answered = answered and row.seq not in begins
        starts = row.seq in begins or (message.starts_turn and not answered)
        answered = answered or row.role == "assistant"
        step = steps.get(row.step) if row.origin == "model" else None
        found = replace(
            message, at=row.at, precision=row.precision, role=row.role, origin=row.origin, kind=row.kind, starts_turn=starts,
            blocks=ids.correct(row.seq, message.blocks),
        )  # fmt: skip
        messages.append(_in_step(found, step, counted) if step is not None else replace(found, usage=None))
    facts = SessionFacts(
        session.kind, session.parent, text.workspace, text.branch, session.client, text.title, text.title_rank,
        text.summary, text.team, text.agent_name or session.agent, text.slug,
    )  # fmt: skip
    return SessionPart(session.native_id, facts, messages)


def _in_step(message: Message, step: Step, counted: set[int]) -> Message:
    is_first = step.idx not in counted
    counted.add(step.idx)
    tokens = TokenUsage(
        step.tokens_in, step.tokens_out, step.tokens_cache_read, step.tokens_cache_write, step.tokens_cache_write_1h
    )
    usage = tokens if is_first and tokens != TokenUsage() else None
    name = f"{step.provider_id}#{step.idx}" if step.provider_id else f"#{step.idx}"
    return replace(message, provider_id=name, model=message.model or step.model, usage=usage)


class _CallIds:
    """Ids of calls as they were archived: some sources make them from the place of a record, which `view` does not know."""

    def __init__(self, calls: list[Call]) -> None:
        self._starts = {(call.seq, call.idx): call.call_id for call in calls if call.status != "orphan"}
        self._ends: dict[int, list[str]] = {}
        for call in calls:
            if call.result_seq is not None:
                self._ends.setdefault(call.result_seq, []).append(call.call_id)

    def correct(self, seq: int, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks of a message with these ids."""
        told = {block.result.call_id for block in blocks if block.result is not None}
        spare = [name for name in self._ends.get(seq, ()) if name not in told]
        return tuple(self._correct_block(seq, idx, block, spare) for idx, block in enumerate(blocks))

    def _correct_block(self, seq: int, idx: int, block: Block, spare: list[str]) -> Block:
        if block.call is not None and (name := self._starts.get((seq, idx))) is not None:
            block = replace(block, call=replace(block.call, call_id=name))
        if block.result is not None and spare and block.result.call_id not in self._ends.get(seq, ()):
            block = replace(block, result=replace(block.result, call_id=spare.pop(0)))
        return block
