"""The part of a conversation that goes into the next request: everything that fits, the newest first.

The budget is the window less the tokens kept free for the answer. System prompt, tools and session state are always
included; then turns from the newest back, each with the prompt it answers; then recalled text. A call and its results stay
together, nothing begins with a result, and a text that would displace all others is cut, with a note. The archive keeps
everything. Only texts, results and arguments of calls are cut, never thoughts, since they are sealed.

A turn is a prompt and everything that followed. An exchange is one answer with the results of all its calls.

If a provider binds an answer to everything before it (`append_only`), earlier messages and the system prompt stay
unchanged, and the state comes as a new message, which the caller records like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct, structs

from everturn.llm.protocol import ChatMessage, ChatPart, ToolSpec, encode_json
from everturn.text.tokens import MARGIN, estimate_tokens


class ExchangeTurn(Struct):
    """A prompt and the exchanges that followed."""

    prompt: list[ChatMessage]
    exchanges: list[list[ChatMessage]]


def split_turns(messages: Sequence[ChatMessage]) -> list[ExchangeTurn]:
    """Split a history into turns. The first has no prompt if the history begins in the middle of one.

    A result without a call is in none of them.
    """
    turns = [ExchangeTurn([], [])]
    waiting: set[str] = set()  # calls of the last exchange without a result
    for message in messages:
        if message.role != "assistant" and not is_result(message):
            waiting.clear()
            if turns[-1].exchanges:
                turns.append(ExchangeTurn([], []))
            turns[-1].prompt.append(message)
            continue
        if _continues_exchange(message, turns[-1].exchanges, waiting):
            turns[-1].exchanges[-1].append(message)
        elif message.role == "assistant":
            turns[-1].exchanges.append([message])
        waiting |= {part.call_id for part in message.parts if part.kind == "call"}
        waiting -= {part.call_id for part in message.parts if part.kind == "result"}
    return turns


def is_result(message: ChatMessage) -> bool:
    """Whether a message holds results of tools."""
    return message.role == "tool" or any(part.kind == "result" for part in message.parts)


def _continues_exchange(message: ChatMessage, exchanges: list[list[ChatMessage]], waiting: set[str]) -> bool:
    """Whether a message belongs to the last exchange. A result without one belongs nowhere."""
    if not exchanges:
        return False
    return message.role != "assistant" or bool(waiting) or exchanges[-1][-1].role == "assistant"


Count = Callable[[str], int]
_LEAST_CUT = 40  # the fewest tokens of a cut text


def cut_text(text: str, most: int, count: Count) -> str:
    """Cut a text to a number of tokens: three quarters from its beginning, the rest from its end."""
    size = count(text)
    if size <= most:
        return text
    note = f"\n[… about {size - most} of {size} tokens are not shown here; the archive has the whole …]\n"
    room = max(0, most - count(note))
    length = int(len(text) * room / size)
    while length > 0:
        made = text[: length - length // 4] + note + text[len(text) - length // 4 :]
        if count(made) <= most:
            return made
        length = int(length * 0.85)
    return note.strip()


def shorten_middle(
    messages: Sequence[ChatMessage], most: int, size: Callable[[ChatPart], int], count: Count
) -> tuple[list[ChatMessage], int]:
    """Cut the longest texts so that all messages fit into `most` tokens. Return the messages and the number of cuts.

    They may still be too long if too little of them can be cut.
    """
    sizes = [size(part) if _can_cut(part) else 0 for message in messages for part in message.parts]
    whole = sum(size(part) for message in messages for part in message.parts) + 4 * len(messages)
    level = _cut_length(sizes, sum(sizes) - (whole - most))
    cuts = 0
    made: list[ChatMessage] = []
    for message in messages:
        parts = [
            _cut_part(part, level, count) if _can_cut(part) and size(part) > level else part for part in message.parts
        ]
        changed = sum(one is not part for one, part in zip(parts, message.parts, strict=True))
        made.append(_replace_parts(message, tuple(parts)) if changed else message)
        cuts += changed
    return made, cuts


def _cut_length(sizes: list[int], room: int) -> int:
    """Return the length to cut at, so that shorter texts stay whole and the others share the rest."""
    left, parts = max(0, room), len(sizes)
    for size in sorted(sizes):
        if size * parts > left:
            break
        left, parts = left - size, parts - 1
    return max(_LEAST_CUT, left // max(1, parts))


def _can_cut(part: ChatPart) -> bool:
    return part.kind in ("text", "result") or (part.kind == "call" and isinstance(part.arguments, dict))


def _cut_part(part: ChatPart, most: int, count: Count) -> ChatPart:
    if part.kind == "call":
        return structs.replace(part, arguments=_cut_values(part.arguments, most, count), raw=None)
    text = cut_text(part.text, most, count)
    return structs.replace(part, text=text, raw=text if isinstance(part.raw, str) else None)


def _cut_values(given: dict[str, Any], most: int, count: Count) -> dict[str, Any]:
    texts = sum(isinstance(value, str) for value in given.values())
    share = max(_LEAST_CUT, most // max(1, texts) - 4)
    return {name: cut_text(value, share, count) if isinstance(value, str) else value for name, value in given.items()}


def _replace_parts(message: ChatMessage, parts: tuple[ChatPart, ...]) -> ChatMessage:
    """Replace the parts. A message of results is written anew; others keep their other members."""
    if message.role == "tool":
        parts = tuple(structs.replace(part, raw=None) for part in parts)
        return ChatMessage("tool", parts, message.id)
    return structs.replace(message, parts=parts)


RESERVE = 8_000
STATE, RECALLED, LEFT_OUT = "## Session State", "## Recalled Context", "## Left Out"
_IMAGE = 1_600  # tokens; about the most that a provider counts
_MESSAGE_SHARE = 4  # no message takes more than 1/4 of the budget, unless it is the newest
_LONG_TEXT = 4_096  # characters; sizes of longer texts are cached
_NOTE_TOKENS = 40  # tokens for the note about messages left out
_FRAMES = 256  # sizes of texts around the messages that are kept
_LEAST_RECALLED = 200  # the fewest tokens of recalled text worth sending


class RequestContext(Struct, frozen=True):
    """The text of the next request."""

    system: str
    messages: tuple[ChatMessage, ...]
    tokens: int  # a cautious estimate
    left_out: int  # messages of the history that are left out
    said: tuple[str, ...]  # what was left out or cut, for people
    append: ChatMessage | None = None  # to be recorded before it is sent; the last of `messages`
    fits: bool = True


@dataclass
class Sizes:
    """Tokens of messages, each counted once. Counted messages stay in memory as long as this object."""

    count: Callable[[str], int] = estimate_tokens
    margin: float = MARGIN
    _known: dict[int, tuple[ChatMessage | ChatPart, int]] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)  # around the messages, the newest few

    def frame(self, text: str) -> int:
        """Count a text that comes in every request: the system prompt, the description of a tool."""
        if (known := self._texts.get(text)) is None:
            known = self._texts[text] = self.text(text)
            if len(self._texts) > _FRAMES:
                del self._texts[next(iter(self._texts))]
        return known

    def text(self, text: str) -> int:
        return int(self.count(text) * self.margin + 1) if text else 0

    def message(self, message: ChatMessage) -> int:
        if (known := self._known.get(id(message))) is None:
            known = self._known[id(message)] = (message, 4 + sum(map(self.part, message.parts)))
        return known[1]

    def forget(self, messages: Sequence[ChatMessage]) -> None:
        """Let go of messages that will not be asked for again."""
        for message in messages:
            self._known.pop(id(message), None)
            for part in message.parts:
                self._known.pop(id(part), None)

    def part(self, part: ChatPart) -> int:
        if len(part.text) < _LONG_TEXT:
            return self._part(part)
        if (known := self._known.get(id(part))) is None:
            known = self._known[id(part)] = (part, self._part(part))
        return known[1]

    def _part(self, part: ChatPart) -> int:
        if part.kind == "image":
            return _IMAGE
        if part.kind == "call":
            return self.text(f"{part.name} {encode_json(part.arguments)}")
        if part.text or part.raw is None:
            return self.text(part.text)
        return len(msgspec.json.encode(part.raw, enc_hook=str)) // 4 if not isinstance(part.raw, str) else 0


#: Where messages have to be left out, the view begins at the first turn of a block of so many messages.
BLOCK = 32


@dataclass
class GrowingView:
    """The messages in view from some place on, all of them unchanged. Only new ones are looked at.

    The view begins at a block of turns, or inside a long turn at a block of its exchanges: then the prompt of that turn comes
    first (`head`). So it keeps its beginning until the next block has to go. It is the same however often it was asked for:
    the earliest block from which everything fits.
    """

    tokens: int = 0
    has_seals: bool = False
    head: list[ChatMessage] = field(default_factory=list)  # the prompt of the turn in which the view begins
    _head_begin: int = 0
    _begin: int = 0  # the number of its first message in the session
    _room: int = -1  # tokens at the time of the cut; -1: nothing was cut
    _largest: int = 0
    _messages: list[ChatMessage] = field(default_factory=list)

    def place(self, history: Sequence[ChatMessage], dropped: int, room: int, sizes: Sizes) -> int | None:
        """Return the place from which everything fits; None if there is no such block, or if a text has to be cut.

        `dropped` messages were before this history.
        """
        place, head = self._begin - dropped, self._head_begin - dropped
        if not self._messages or min(place, head) < 0 or self._room < (room if place else -1):
            return self._cut(history, dropped, room, sizes)
        end = place + len(self._messages)
        if history[place:end] != self._messages or history[head : head + len(self.head)] != self.head:
            return self._cut(history, dropped, room, sizes)
        self._take(history[end:], sizes)
        return place if self._fits(place, room) else self._cut(history, dropped, room, sizes)

    def _fits(self, place: int, room: int) -> bool:
        if not place:
            return self.tokens <= room
        return self.tokens <= room - _NOTE_TOKENS and self._largest <= room // _MESSAGE_SHARE

    def _take(self, messages: Sequence[ChatMessage], sizes: Sizes) -> None:
        self._count(messages, sizes)
        self._messages += messages

    def _count(self, messages: Sequence[ChatMessage], sizes: Sizes) -> None:
        for message in messages:
            size = sizes.message(message)
            self.tokens, self._largest = self.tokens + size, max(self._largest, size)
            self.has_seals = self.has_seals or is_sealed(message)

    def _cut(self, history: Sequence[ChatMessage], dropped: int, room: int, sizes: Sizes) -> int | None:
        self.tokens, self.has_seals, self._largest, self._messages, self.head = 0, False, 0, [], []
        found = _first_in_view(history, dropped, room, sizes)
        if found is None:
            return None
        place, head, size = found
        self._begin, self._head_begin, self._room = dropped + place, dropped + head, room if place else -1
        self.head = list(history[head : head + size])
        self._count(self.head, sizes)
        self._take(history[place:], sizes)
        return place if self._fits(place, room) else None


def _first_in_view(
    history: Sequence[ChatMessage], dropped: int, room: int, sizes: Sizes
) -> tuple[int, int, int] | None:
    """Return the first message in view, and the place and length of the prompt before it (0 if it begins a turn).

    The first message is the first one if everything fits, else the first turn or exchange of the earliest block from which
    everything fits; None if there is none.
    """
    tokens, first = 0, len(history)
    for place in range(len(history) - 1, -1, -1):
        tokens += sizes.message(history[place])
        if tokens > room:
            break
        first = place if tokens <= room - _NOTE_TOKENS else first
    else:
        return 0, 0, 0
    left = sum(map(sizes.message, history[first:]))
    head, size = _last_prompt(history, first)
    spent = sum(map(sizes.message, history[head : head + size]))
    for place in range(first, len(history)):
        if _is_first_in_block(history, dropped, place, _begins_turn):
            return place, place, 0
        if _begins_turn(history, place):
            head, size = _last_prompt(history, place + 1)
            spent = sum(map(sizes.message, history[head : head + size]))
        elif (
            size
            and left + spent <= room - _NOTE_TOKENS
            and _is_first_in_block(history, dropped, place, _begins_exchange)
        ):
            return place, head, size
        left -= sizes.message(history[place])
    return None


def _last_prompt(history: Sequence[ChatMessage], end: int) -> tuple[int, int]:
    """Return the place and the number of messages of the last prompt that begins before a place; its length is 0 if there is none."""
    for place in range(end - 1, -1, -1):
        if _begins_turn(history, place):
            after = next((one for one in range(place, len(history)) if not _is_prompt(history[one])), len(history))
            return place, after - place
    return 0, 0


def _is_first_in_block(
    history: Sequence[ChatMessage], dropped: int, place: int, begins: Callable[[Sequence[ChatMessage], int], bool]
) -> bool:
    """Whether something begins here, and nothing of the kind earlier in the same block."""
    if not begins(history, place):
        return False
    first = max(0, (dropped + place) // BLOCK * BLOCK - dropped)
    return not any(begins(history, one) for one in range(first, place))


def _begins_exchange(history: Sequence[ChatMessage], place: int) -> bool:
    """Whether an answer begins here that follows results, with no call before it open."""
    if not place or history[place].role != "assistant" or not is_result(history[place - 1]):
        return False
    calls, results, is_answer = set[str](), set[str](), False
    for one in range(place - 1, -1, -1):
        if is_answer and history[one].role != "assistant":
            break
        is_answer = history[one].role == "assistant"
        calls.update(part.call_id for part in history[one].parts if part.kind == "call")
        results.update(part.call_id for part in history[one].parts if part.kind == "result")
    return calls <= results


def _begins_turn(history: Sequence[ChatMessage], place: int) -> bool:
    if not _is_prompt(history[place]):
        return False
    return not place or not _is_prompt(history[place - 1])


def _is_prompt(message: ChatMessage) -> bool:
    return message.role != "assistant" and not is_result(message)


def is_sealed(message: ChatMessage) -> bool:
    """Whether a message has thoughts that only its provider can read."""
    return any(map(is_sealed_thought, message.parts))


def is_sealed_thought(part: ChatPart) -> bool:
    return part.kind == "thinking" and isinstance(part.raw, dict)


def context_budget(window: int, reserve: int = RESERVE) -> int:
    """Return the tokens for a request if so many are reserved for the answer; at least half the window."""
    return max(window - reserve, window // 2)


def assemble_context(  # noqa: PLR0913 -- what a request is made of
    history: Sequence[ChatMessage],
    most: int,
    system: str = "",
    state: str = "",
    recalled: str = "",
    tools: Sequence[ToolSpec] = (),
    sizes: Sizes | None = None,
    append_only: bool = False,
    earlier: int = 0,
) -> RequestContext:
    """Build the context of a request within `most` tokens (see `context_budget`).

    `earlier` messages before these are left out in any case.
    """
    sizes = sizes or Sizes()
    spent = sum(sizes.frame(f"{tool.name} {tool.description} {encode_json(tool.parameters)}") for tool in tools)
    if append_only:
        return _append_state(history, most - spent, system, _format_sections(state, recalled, 0), sizes)
    base = _join_system(system, _format_sections(state, "", 0))
    view = _ContextView(sizes, max(0, most - spent - sizes.frame(base) - _NOTE_TOKENS))
    view.take(split_turns(history))
    left_out = earlier + len(history) - len(view.messages)
    quoted = view.fit_recalled(recalled)
    whole = _join_system(system, _format_sections(state, quoted, left_out))
    if left_out:
        view.said.append(f"{left_out} earlier messages are not in view; they are in the archive")
    tokens = spent + sizes.frame(whole) + sum(map(sizes.message, view.messages))
    return RequestContext(whole, tuple(view.messages), tokens, left_out, tuple(view.said), fits=tokens <= most)


class _ContextView:
    """Collects messages, the newest first."""

    def __init__(self, sizes: Sizes, room: int) -> None:
        self._sizes, self._left, self._share = sizes, room, room // _MESSAGE_SHARE
        self.messages: list[ChatMessage] = []
        self.said: list[str] = []

    def take(self, turns: list[ExchangeTurn]) -> None:
        """Take turns from the last one back, until one does not fit whole."""
        for turn in reversed(turns):
            is_newest = turn is turns[-1]
            prompt = self._fit_messages(turn.prompt, self._left // 2 if is_newest else self._share)
            size = self._size(prompt)
            if size > self._left:
                if is_newest:
                    self.said.append("the newest message is longer than the whole window and is not in view")
                return
            self._left -= size
            exchanges = self._exchanges(turn, is_newest)
            if turn.exchanges and not exchanges and not is_newest:
                self._left += size  # a prompt without its answer would mislead
                return
            self.messages[:0] = [*prompt, *(message for exchange in reversed(exchanges) for message in exchange)]
            if len(exchanges) < len(turn.exchanges):
                return

    def _exchanges(self, turn: ExchangeTurn, is_newest: bool) -> list[list[ChatMessage]]:
        fitting: list[list[ChatMessage]] = []
        for exchange in reversed(turn.exchanges):
            is_last = is_newest and not fitting
            fitted = self._fit_messages(exchange, self._left // 2 if is_last else min(self._share, self._left))
            size = self._size(fitted)
            if size > self._left:
                break
            self._left -= size
            fitting.append(fitted)
        return fitting

    def fit_recalled(self, words: str) -> str:
        """Return as much of the recalled text as fits."""
        size = self._sizes.text(words)
        room = self._left - self._sizes.frame(RECALLED)
        if size <= room:
            return words
        self.said.append("what was recalled is cut" if room >= _LEAST_RECALLED else "what was recalled is left out")
        return cut_text(words, room, self._sizes.text) if room >= _LEAST_RECALLED else ""

    def _size(self, messages: Sequence[ChatMessage]) -> int:
        return sum(map(self._sizes.message, messages))

    def _fit_messages(self, messages: list[ChatMessage], most: int) -> list[ChatMessage]:
        """Return the messages, with long texts cut if they do not fit."""
        if self._size(messages) <= most:
            return messages
        made, cuts = shorten_middle(messages, most, self._sizes.part, self._sizes.text)
        if cuts and self._size(made) <= self._left:
            self.said.append(f"{cuts} long text{'s are' if cuts > 1 else ' is'} cut in view; the archive has the whole")
        return made


def _append_state(history: Sequence[ChatMessage], most: int, system: str, words: str, sizes: Sizes) -> RequestContext:
    """Append the new state to the unchanged history."""
    is_new = bool(words) and bool(history) and not _is_newest_state(history, words) and history[-1].role == "user"
    is_new = is_new and not is_result(history[-1])
    note = ChatMessage("user", (ChatPart("text", words),)) if is_new else None
    messages = (*history, note) if note is not None else tuple(history)
    tokens = sizes.text(system) + sum(map(sizes.message, messages))
    said = () if tokens <= most else (f"about {tokens - most} tokens too long, and nothing may be left out",)
    return RequestContext(system, messages, tokens, 0, said, note, tokens <= most)


def _is_newest_state(history: Sequence[ChatMessage], words: str) -> bool:
    for message in reversed(history):
        for part in message.parts:
            if message.role == "user" and part.kind == "text" and part.text.startswith((STATE, RECALLED)):
                return part.text == words
    return False


def _format_sections(state: str, recalled: str, left_out: int) -> str:
    gone = f"{left_out} earlier messages of this session are not shown here." if left_out else ""
    named = [(STATE, state), (RECALLED, recalled), (LEFT_OUT, gone)]
    return "\n\n".join(f"{name}\n\n{words.strip()}" for name, words in named if words.strip())


def _join_system(system: str, sections: str) -> str:
    return "\n\n".join(filter(None, [system, sections]))
