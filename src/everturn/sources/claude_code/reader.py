"""Reads a transcript piece by piece: which session each record belongs to, and what the records say together."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message, Problem, ReadResult, fingerprint
from everturn.sources.claude_code.blocks import CONTEXT
from everturn.sources.claude_code.message import (
    ClaudeRecordPlace,
    build,
    queued_message,
    queued_texts,
    texts_in,
    unknown,
)
from everturn.sources.claude_code.reader_state import (
    ClaudeSessionTally,
    ClaudeTally,
    QueuedPrompt,
    item_of,
    pack,
    unpack,
)
from everturn.sources.claude_code.records import (
    KNOWN,
    ClaudeRecord,
    attachment_kind,
    body,
    decode,
    plain,
    revive,
    type_text,
    word,
)
from everturn.sources.claude_code.whole_files import Elements, form_of
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.json_lines import REASONS, JsonLines

#: Of longer lines only the beginning of each block is indexed.
LONG_LINE = 16 << 20
LONG_TEXT = 1 << 20


class ClaudeReader:
    """A main transcript, or one of a subagent in a file of its own."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = unpack(state)
        if not self._state.form and found.path.suffix == ".jsonl":
            self._state.form = "lines"
        self._lines: JsonLines[ClaudeRecord] | Elements = self._walk()
        self._gathering = ClaudeTally()
        self._is_subagent = found.kind == "subagent"
        self._name = found.native_id.rpartition("/")[2] or found.path.stem
        if not self._state.native_id and (found.parent or not self._is_subagent):
            self._settle(found.parent)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering = self._gathering = ClaudeTally()
        state, lines = self._state, self._choose_walk(data, base, last)
        for start, raw, event, trouble in lines.split(data, base, last):
            if trouble:
                gathering.trouble(start, len(raw), trouble, is_record=event is None)
            if event is None:
                continue
            if event.version:
                state.client = plain(event.version)
            if not state.native_id and (event.session_id or event.type not in KNOWN):
                self._settle(word(event.session_id))
            handle = _HANDLERS.get(event.type or "", ClaudeReader._say_ordinary)
            made = handle(self, event, ClaudeRecordPlace(raw, start, state.top, self._is_subagent))
            counted, known = type_text(event)
            gathering.count(counted, state.client, ("message" if made else "known") if known else "unknown")
        return self._reading()

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._lines.open_line
        self._state.stage = self._lines.stage if isinstance(self._lines, Elements) else ""
        return pack(self._state)

    def _reading(self) -> ReadResult:
        gathering, lines = self._gathering, self._lines
        for key in lines.beside if isinstance(lines, Elements) else ():
            gathering.count(f"({plain(key)})", "", "known")
        if lines.tail is not None:
            start, size, trouble = lines.tail
            gathering.problems.append(Problem(trouble, REASONS[trouble], start, size, provisional=True))
        return gathering.reading(lines.consumed, lines.lines, lines.glued)

    def _choose_walk(self, data: bytes, base: int, last: bool) -> JsonLines[ClaudeRecord] | Elements:
        """The walk through the file, once its first bytes have told its form."""
        if not self._state.form:
            self._state.form = "lines" if base else form_of(data, last)
            self._lines = self._walk()
        return self._lines

    def _walk(self) -> JsonLines[ClaudeRecord] | Elements:
        state = self._state
        is_lines = state.form == "lines"
        return (
            JsonLines[ClaudeRecord](decode, revive, state.open_line)
            if is_lines
            else Elements(state.stage, bool(state.form))
        )

    # sessions -------------------------------------------------------------------------------------------------------
    def _settle(self, parent: str) -> None:
        """Decide whose transcript this is. Old subagent files say only inside which session they hang on."""
        if self._is_subagent:
            self._state.top = parent
            self._state.native_id = f"{parent}/{self._name}" if parent else self._name
        else:
            self._state.top = self._state.native_id = self._name

    def _session(self, native_id: str, kind: str, parent: str) -> ClaudeSessionTally:
        found = self._gathering.session(native_id)
        return found or self._gathering.open(native_id, kind, parent, self._state.seen(native_id))

    def _own_session(self) -> ClaudeSessionTally:
        kind = "subagent" if self._is_subagent else "main"
        return self._session(self._state.native_id, kind, self._state.top if self._is_subagent else "")

    def _session_of(self, event: ClaudeRecord, start: int) -> ClaudeSessionTally:
        state = self._state
        if self._is_subagent or not event.is_sidechain:
            return self._own_session()
        if event.agent_id:
            return self._session(f"{state.top}/agent-{word(event.agent_id)}", "subagent", state.top)
        name = state.chain_of(event.uuid or "", event.parent_uuid or "", start)
        return self._session(f"{state.top}/sidechain-{word(name)}", "sidechain", state.top)

    # records: each says whether it became a message ------------------------------------------------------------------
    def _say_ordinary(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        return self._say(event, place, build(event, place))

    def _say(self, event: ClaudeRecord, place: ClaudeRecordPlace, message: Message | None) -> bool:
        session = self._session_of(event, place.start)
        session.learn(event)
        if event.uuid and (title := self._state.title_at(event.uuid)):
            self._own_session().entitle(title, 1)
        if message is None:
            return False
        self._add(session, message)
        return True

    def _user(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        state, session_id = self._state, event.session_id
        if state.queue.waiting or state.queue.taken:
            for text in texts_in(body(event).content):
                state.queue.note_heard(text)
        if session_id and session_id != state.top and not self._is_subagent:
            self._link(self._own_session(), Link("continues", word(session_id)))
        return self._say_ordinary(event, place)

    def _attachment(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        message = build(event, place)
        if message is not None and attachment_kind(event) == "queued_command":
            text = "\n".join(queued_texts(event.attachment))
            self._state.queue.note_heard(text)
            if self._state.queue.repeats(text):
                blocks = tuple(replace(block, field="meta") if block.field else block for block in message.blocks)
                message = replace(message, origin=CONTEXT.origin, kind=CONTEXT.kind, blocks=blocks)
        return self._say(event, place, message)

    def _progress(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        progress, call_id = event.data, word(event.parent_tool_use_id)
        message = build(event, place)
        if message is None or progress is None or progress.type != "agent_progress":
            return self._say(event, place, message)
        parent, top = self._session_of(event, place.start), self._state.top
        child = self._session(f"{top}/agent-{word(progress.agent_id) or call_id}", "subagent", top)
        child.learn(event)
        self._add(child, message)
        self._link(parent, Link("spawned", child.native_id, call_id))
        return True

    def _summary(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        title = self._state.title_for(event.leaf_uuid or "", event.summary or "")
        self._own_session().entitle(title, 1)
        return self._say_ordinary(event, place)

    def _title(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        self._own_session().entitle(event.custom_title or event.ai_title or "", 3 if event.custom_title else 2)
        return False

    def _agent_name(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        self._own_session().learn(event)
        return False

    def _known(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        return False

    def _queue(self, event: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        queue, content = self._state.queue, event.content
        text = content if isinstance(content, str) else None
        said: list[QueuedPrompt] = []
        if event.operation == "enqueue":
            said = queue.enqueue(item_of(text or "", place.start, len(place.raw), event.timestamp))
        elif event.operation == "remove":
            item = queue.remove(text)
            said = [item] if item is not None else []
        elif event.operation == "dequeue":
            queue.dequeue()
        elif event.operation == "popAll":
            queue.pop_all()
        else:
            self._add(self._own_session(), unknown(event, place))
            return True
        for item in said:
            message = queued_message(ClaudeRecord(content=item.text, timestamp=item.at), place)
            if message is not None:
                self._add(self._own_session(), replace(message, start=item.start, size=item.size))
        return bool(said)

    # messages and links ----------------------------------------------------------------------------------------------
    def _add(self, session: ClaudeSessionTally, message: Message) -> None:
        if message.size > LONG_LINE:
            message = _shorten_message(message)
            self._gathering.trouble(message.start, message.size, "indexed_in_part", is_record=False)
        session.messages.append(message)
        if session.parent and not session.seen.linked:
            session.seen.linked = True
            prompt = _prompt(message)
            session.links.append(Link("subagent_of", session.parent, hint=_hint(prompt) if prompt else 0))
        for block in message.blocks:
            if block.call is not None and block.call.prompt:
                self._link(session, Link("spawned", "", block.call.call_id, _hint(block.call.prompt)))
            elif block.result is not None and block.result.child:
                self._link(session, Link("spawned", block.result.child, block.result.call_id))

    def _link(self, session: ClaudeSessionTally, link: Link) -> None:
        key = fingerprint(f"{session.native_id}\0{link.relation}\0{link.native_id}", f"{link.call_id}\0{link.hint}")
        if self._state.is_new_link(key):
            session.links.append(link)


_HANDLERS: dict[str, Callable[[ClaudeReader, ClaudeRecord, ClaudeRecordPlace], bool]] = {
    **dict.fromkeys(KNOWN, ClaudeReader._known),
    "user": ClaudeReader._user,
    "attachment": ClaudeReader._attachment,
    "progress": ClaudeReader._progress,
    "summary": ClaudeReader._summary,
    "custom-title": ClaudeReader._title,
    "ai-title": ClaudeReader._title,
    "agent-name": ClaudeReader._agent_name,
    "queue-operation": ClaudeReader._queue,
}


def _hint(prompt: str) -> int:
    return fingerprint("prompt", prompt)


def _prompt(message: Message) -> str:
    if not message.starts_turn:
        return ""
    return next((block.text for block in message.blocks if block.field == "prompt"), "")


def _shorten_message(message: Message) -> Message:
    return replace(message, blocks=tuple(map(_shorten_block, message.blocks)))


def _shorten_block(block: Block) -> Block:
    call = replace(block.call, input=None) if block.call is not None else None
    return replace(block, text=block.text[:LONG_TEXT], call=call, data=None)
