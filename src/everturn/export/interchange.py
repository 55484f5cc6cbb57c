"""A session in a format that other programs read: as the `Source` of that format writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from everturn.model.archive import Call, Session, Step
from everturn.model.conversation import Block, Message, SessionFacts, SessionPart, TokenUsage
from everturn.sessions.messages import Sources, read_messages
from everturn.store.contract import Store


def as_standard(
    store: Store, sources: Sources, session: Session, name: str, clean: Callable[[bytes], bytes] | None = None
) -> Iterator[bytes]:
    """Yield a session as a file of the format `name`; `clean` is applied to every line of it."""
    source, part = sources[name], session_part(store, sources, session)
    assert source.write is not None
    for piece in source.write_pieces(part) if source.write_pieces is not None else [source.write(part)]:
        line = piece.encode("utf-8", "replace")
        yield clean(line) if clean is not None else line


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
