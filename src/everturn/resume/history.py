"""The history of a session for another agent: prompts, answers, calls and their results, in order.

Each call is in the answer that made it, with its result directly after it, wherever in the records it was. A call without
one gets a result that says so. The history begins where the context of the agent does: at its last summary. Thoughts of one
agent are useless to another; they and messages of the client are left out and counted. The archive is not changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Call, MessageRow, Session, is_live
from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sessions.messages import Sources, read_messages, result_block
from everturn.sources.toolkit.agent_program import pictures
from everturn.store.contract import Store
from everturn.text.printable import plural
from everturn.text.tokens import estimate_tokens

#: The result of a call without a recorded one.
INTERRUPTED = (
    "Interrupted: the session broke off and no result of this call was recorded. It may or may not have taken effect, "
    "wholly or in part. Find out what happened before doing it again."
)
_STRAY_RESULT = "[Output of a tool call that is not on record]\n"
_INTERRUPT_TEXT = "[Request interrupted by the user]"
_COMPACTION_TEXT = (
    "[The conversation before this point was compacted. This is the summary that took its place; the whole of it is in the "
    "everturn archive, session {session}.]\n\n"
)
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")

#: Kinds that are included besides messages of humans, agents and models.
_TOLD_KINDS = ("notification", "output", "interrupt")

_Pair = tuple[MessageRow, Message]


class History(Struct, frozen=True):
    """A conversation for another agent."""

    messages: list[Message]
    left_out: dict[str, int]  # taken back | thoughts | context | notices | unknown | images → how many
    answered: int = 0  # calls without a recorded result
    compacted: int = 0  # messages before the summary of the context
    told: int = 0  # calls of tools that the receiving agent does not offer, as text

    def count(self, kind: str) -> int:
        return sum(block.kind == kind for message in self.messages for block in message.blocks)

    @property
    def tokens(self) -> int:
        """Return the tokens of all texts, calls and results, estimated; images are not counted."""
        return sum(block_tokens(block) for message in self.messages for block in message.blocks)

    @property
    def notes(self) -> list[str]:
        """Return what was changed or left out, one sentence each."""
        words = {
            "taken back": "messages that were taken back or edited by going back before them",
            "thoughts": "thoughts of the model, which only its own provider can read",
            "context": "messages that the client added",
            "notices": "notices of the client",
            "unknown": "messages of kinds that are not known",
            "images": "images that are not in the records, or cannot be told to another model",
            "outputs": "outputs of tools, the oldest, to fit the context window",
            "turns": "turns, the oldest, to fit the context window; a document about the session takes their place",
        }
        found = [f"left out: {n:,} {words[what]}" for what, n in self.left_out.items() if n]
        if self.told:
            found.append(
                f"{plural(self.told, 'call')} of tools that it does not offer: told as text, with their results"
            )
        if self.answered:
            found.append(f"{plural(self.answered, 'call')} without a recorded result: the history says so")
        if self.compacted:
            found.append(f"begins with the summary of {plural(self.compacted, 'message')}; recall reaches all of them")
        return found


def block_tokens(block: Block) -> int:
    """Return the tokens of a text, call or result, estimated."""
    return estimate_tokens(block.text or (str(block.call.input) if block.call else ""))


def read_history(
    store: Store, sources: Sources, session: Session, upto: int | None = None, keep_thoughts: bool = False
) -> History:
    """Return the conversation up to turn `upto` (from 0, included; None: all of it)."""
    last = None if upto is None else store.turns(session.id, upto, upto)[0].last_seq
    found = list(read_messages(store, sources, session, 0, last))
    pairs = [pair for pair in found if is_live(pair[0], last)]
    taken_back = len(found) - len(pairs)
    first = _find_boundary(pairs)
    calls = _pair_calls(store.calls(session.id), {row.seq: message for row, message in pairs})
    builder = _HistoryBuilder(session, calls, keep_thoughts)
    for row, message in pairs[first:]:
        builder.take(row, message)
    if taken_back:
        builder.left["taken back"] += taken_back
    return builder.build(first)


def read_lines(store: Store, session: Session, upto: int | None = None) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of a session's file up to the last message of turn `upto`, each with whether it was taken back."""
    version = store.version(session.version)
    last = None if upto is None else store.turns(session.id, upto, upto)[0].last_seq
    rows = list(store.messages(session.id, 0, last))
    gone = {row.start for row in rows if not is_live(row, last)}
    end = version.size if last is None else max(row.start + row.size for row in rows)
    start = 0
    for line in store.read_raw(version.id, 0, end).splitlines(keepends=True):
        yield line, start in gone
        start += len(line)


def _find_boundary(pairs: list[_Pair]) -> int:
    """Return where the context of the agent begins: at the last compaction with text."""
    for place in range(len(pairs) - 1, -1, -1):
        row, message = pairs[place]
        if _is_boundary(row) and _summary(message):
            return place
    return 0


def _is_boundary(row: MessageRow) -> bool:
    """Whether a row is a compaction, or a summary of a participant that the conversation continues from."""
    return row.kind == "compaction" or (row.kind == "summary" and row.role in ("user", "assistant"))


class _PairedCall(Struct):
    call_id: str
    result: Block | None = None


def _pair_calls(rows: list[Call], messages: dict[int, Message]) -> dict[tuple[int, int], _PairedCall]:
    """Return each call with a unique id, by message and block."""
    found: dict[tuple[int, int], _PairedCall] = {}
    taken: set[str] = set()
    for row in rows:
        if row.status == "orphan":
            continue
        answer = messages.get(row.result_seq) if row.result_seq is not None else None
        name, number = row.call_id, 0
        while name in taken or not _CALL_ID.fullmatch(name):
            name = f"call_{blake2b(f'{row.call_id} {number}'.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"
            number += 1
        taken.add(name)
        found[row.seq, row.idx] = _PairedCall(name, _find_result(answer, row) if answer is not None else None)
    return found


def _find_result(answer: Message, row: Call) -> Block | None:
    """Return the result of a call. One in the same record may have an id that only its position gives."""
    beside = answer.blocks[row.idx + 1 : row.idx + 2] if row.result_seq == row.seq else ()
    return result_block(answer, row) or next((block for block in beside if block.result is not None), None)


class _HistoryBuilder:
    """Builds the history from messages in the order of the records."""

    def __init__(self, session: Session, calls: dict[tuple[int, int], _PairedCall], keep_thoughts: bool) -> None:
        self._session, self._calls, self._keeps = session, calls, keep_thoughts
        self._paired = {id(one.result) for one in calls.values()}
        self._messages: list[Message] = []
        self.left: Counter[str] = Counter()
        self._answered = 0
        self._open: dict[int, int] = {}  # step → place of its answer
        self._results: dict[int, list[Block]] = {}  # place of an answer → its results

    def take(self, row: MessageRow, message: Message) -> None:
        """Add one message."""
        if _is_boundary(row) and _summary(message) and not self._messages:
            self._add_summary(message)
        elif (row.origin == "model" and message.kind == "text") or any(block.call for block in message.blocks):
            self._add_answer(row, message)
        elif row.origin in ("human", "agent") or message.kind in _TOLD_KINDS:
            self._add_prompt(row, message)
        else:
            self._add_strays(row, message)
            if any(block.text and block.result is None for block in message.blocks):
                self.left[_LEFT_OUT_KINDS.get(message.kind, "context")] += 1

    def build(self, compacted: int) -> History:
        made: list[Message] = []
        for place, message in enumerate(self._messages):
            made.append(message)
            if results := self._results.get(place):
                made.append(Message("tool", "tool", "result", message.at, blocks=tuple(results)))
        return History(made, dict(self.left), self._answered, compacted)

    def _add_summary(self, message: Message) -> None:
        text = _COMPACTION_TEXT.format(session=self._session.native_id) + _summary(message)
        self._messages.append(Message("user", "injected", "summary", message.at, blocks=(Block("text", text),)))

    def _add_prompt(self, row: MessageRow, message: Message) -> None:
        blocks = [one for one in message.blocks if one.kind in ("text", "image", "document", "unknown")]
        kept = tuple(one for block in blocks for one in self._prompt_blocks(block))
        if message.kind == "interrupt" and not kept:
            kept = (Block("text", _INTERRUPT_TEXT),)
        if kept:
            self._messages.append(Message("user", row.origin, message.kind, row.at, "", message.native_id, blocks=kept))
        self._add_strays(row, message)

    def _prompt_blocks(self, block: Block) -> Iterator[Block]:
        if block.kind == "image":
            if any(one is not None for one in pictures(block)):
                yield block
                return
            self.left["images"] += 1
            yield Block("text", f"[image {block.text}]".replace(" ]", "]"))
        elif block.text.strip():
            yield Block("text", block.text)

    def _add_answer(self, row: MessageRow, message: Message) -> None:
        blocks: list[Block] = []
        results: list[Block] = []
        for place, block in enumerate(message.blocks):
            if block.call is not None:
                made, result = self._call_blocks(self._calls.get((row.seq, place)), block, block.call)
                blocks.append(made)
                results.append(result)
            elif block.kind == "image" and results:  # follows the result it belongs to
                results[-1] = _add_image(results[-1], block)
            elif block.kind == "thinking":
                blocks += self._thought_blocks(block)
            elif block.kind != "result":
                blocks += self._answer_blocks(block)
        if blocks:
            self._put_answer(row, message, blocks, results)
        self._add_strays(row, message)

    def _answer_blocks(self, block: Block) -> Iterator[Block]:
        """Yield text only: no agent accepts an image as output of its model."""
        if block.kind in ("image", "document"):
            self.left["images"] += 1
        elif block.text.strip():
            yield Block("text", block.text)

    def _put_answer(self, row: MessageRow, message: Message, blocks: list[Block], results: list[Block]) -> None:
        """Join the parts of one response into one answer, even with other records between them."""
        place = self._open.get(row.step, -1) if row.step >= 0 else -1
        if place < 0:
            place = len(self._messages)
            self._open[row.step] = place
            answer = Message("assistant", "model", "text", row.at, "", message.native_id, model=message.model)
            self._messages.append(replace(answer, blocks=tuple(blocks)))
        else:
            self._messages[place] = replace(self._messages[place], blocks=(*self._messages[place].blocks, *blocks))
        self._results.setdefault(place, []).extend(results)

    def _call_blocks(self, paired: _PairedCall | None, block: Block, start: CallStart) -> tuple[Block, Block]:
        paired = paired or _PairedCall(start.call_id or "call")
        call = replace(block, call=replace(start, call_id=paired.call_id))
        if paired.result is None or paired.result.result is None:
            self._answered += 1
            return call, Block("result", INTERRUPTED, result=CallEnd(paired.call_id, True, "interrupted"))
        return call, replace(paired.result, result=replace(paired.result.result, call_id=paired.call_id))

    def _thought_blocks(self, block: Block) -> list[Block]:
        if self._keeps and isinstance(block.data, dict):
            return [block]
        self.left["thoughts"] += 1
        return []

    def _add_strays(self, row: MessageRow, message: Message) -> None:
        """Add results without a recorded call as text."""
        for block in message.blocks:
            if block.result is not None and block.text and id(block) not in self._paired:
                self._messages.append(
                    Message("user", "tool", "output", row.at, blocks=(Block("text", _STRAY_RESULT + block.text),))
                )


def _add_image(result: Block, image: Block) -> Block:
    content = result.data.get("content", []) if isinstance(result.data, dict) else []
    return replace(result, data={"content": [*(content if isinstance(content, list) else []), image.data]})


_LEFT_OUT_KINDS = {"notice": "notices", "unknown": "unknown"}


def _summary(message: Message) -> str:
    return "\n\n".join(block.text for block in message.blocks if block.field == "summary" and block.text.strip())
