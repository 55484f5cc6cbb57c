"""Reads a transcript piece by piece: assigns each record to its session and combines what several records state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Census, Link, Message, ReadResult, fingerprint
from everturn.model.vocabulary import BACKUP
from everturn.sources.claude_code.blocks import CONTEXT
from everturn.sources.claude_code.message import (
    ClaudeRecordPlace,
    build,
    queued_message,
    queued_texts,
    texts_in,
    unknown,
)
from everturn.sources.claude_code.reader_state import ClaudeReaderState, QueuedPrompt, item_of
from everturn.sources.claude_code.records import KNOWN, ClaudeRecord, attachment_kind, body, decode, revive, type_text
from everturn.sources.claude_code.whole_files import ClaudeWholeFileReader, Elements, form_of
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.json_lines import JsonLines
from everturn.sources.toolkit.line_reader import Counted, ReadTally, SessionTally, add, prompt_hint, read_walk
from everturn.sources.toolkit.values import plain, state_of, word


def open_reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """Return the reader for a file: tool outputs and notes are read whole, all else is a transcript."""
    is_whole = found.kind in ("output", "meta", BACKUP)
    return ClaudeWholeFileReader(found, state) if is_whole else ClaudeReader(found, state)


class ClaudeReader:
    """Reads a main transcript, or that of a subagent in a file of its own."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, ClaudeReaderState)
        if not self._state.form and found.path.suffix == ".jsonl":
            self._state.form = "lines"
        self._walk: JsonLines[ClaudeRecord] | Elements = self._make_walk()
        self._tally = ReadTally()
        self._own: SessionTally | None = None  # of the file itself, in this read
        self._learned: tuple[SessionTally | str | None, ...] = ()
        self._is_subagent = found.kind == "subagent"
        self._name = found.native_id.rpartition("/")[2] or found.path.stem
        if not self._state.native_id and (found.parent or not self._is_subagent):
            self._set_session(found.parent)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        self._tally, self._own = ReadTally(), None
        walk = self._choose_walk(data, base, last)
        result = read_walk(self._tally, walk, data, base, last, self._take)
        beside = Counter(map(plain, walk.beside)) if isinstance(walk, Elements) else {}
        result.census.extend(Census(f"({key})", "", "known", n) for key, n in beside.items())
        return result

    def state(self) -> bytes:
        self._state.open_line = self._walk.open_line
        self._state.stage = self._walk.stage if isinstance(self._walk, Elements) else ""
        return msgspec.msgpack.encode(self._state)

    def _take(self, record: ClaudeRecord, start: int, raw: bytes | memoryview) -> Counted:
        state = self._state
        if record.version and record.version != state.client:
            state.client = plain(record.version)
        if not state.native_id and (record.session_id or record.type not in KNOWN):
            self._set_session(word(record.session_id))
        handle = _HANDLERS.get(record.type or "", ClaudeReader._read_ordinary)
        is_message = handle(self, record, ClaudeRecordPlace(raw, start, state.top, self._is_subagent))
        kind, known = type_text(record)
        return kind, ("message" if is_message else "known") if known else "unknown", state.client

    def _choose_walk(self, data: bytes, base: int, last: bool) -> JsonLines[ClaudeRecord] | Elements:
        """Return the walk over the file, chosen when its first bytes show its form."""
        if not self._state.form:
            self._state.form = "lines" if base else form_of(data, last)
            self._walk = self._make_walk()
        return self._walk

    def _make_walk(self) -> JsonLines[ClaudeRecord] | Elements:
        state = self._state
        if state.form == "lines":
            return JsonLines[ClaudeRecord](decode, revive, state.open_line)
        return Elements(state.stage, bool(state.form))

    # --- sessions ---
    def _set_session(self, parent: str) -> None:
        """Set the session of the file. In old subagent files only the records name the parent session."""
        self._own = None
        if self._is_subagent:
            self._state.top = parent
            self._state.native_id = f"{parent}/{self._name}" if parent else self._name
        else:
            self._state.top = self._state.native_id = self._name

    def _own_session(self) -> SessionTally:
        if self._own is None:
            state, kind = self._state, "subagent" if self._is_subagent else "main"
            self._own = self._tally.session(state.native_id, kind, state.top if self._is_subagent else "")
        return self._own

    def _session_of(self, record: ClaudeRecord, start: int) -> SessionTally:
        state = self._state
        if self._is_subagent or not record.is_sidechain:
            return self._own or self._own_session()
        if record.agent_id:
            return self._tally.session(f"{state.top}/agent-{word(record.agent_id)}", "subagent", state.top)
        name = state.chain_of(record.uuid or "", record.parent_uuid or "", start)
        return self._tally.session(f"{state.top}/sidechain-{word(name)}", "sidechain", state.top)

    def _learn(self, session: SessionTally, record: ClaudeRecord) -> None:
        """Set the facts that a record states about its session; the workspace is the first one named."""
        facts = session, record.version, record.git_branch, record.team_name, record.agent_name, record.cwd, record.slug
        if facts == self._learned:  # most records repeat the facts of the one before
            return
        self._learned = facts
        session.learn(client=facts[1], branch=facts[2], team=facts[3], agent_name=facts[4], slug=facts[6])
        if record.cwd and not (seen := self._state.reported_facts(session.native_id)).workspace:
            session.learn(workspace=record.cwd)
            seen.workspace = True

    def _set_title(self, title: str, rank: int) -> None:
        """Set the title of the file's own session, unless it has one of higher rank."""
        session, seen = self._own_session(), self._state.reported_facts(self._state.native_id)
        if title and rank >= seen.title_rank:
            seen.title_rank = rank
            session.learn(title=title, title_rank=rank)

    # --- records: each handler returns whether the record became a message ---
    def _read_ordinary(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        return self._add_record(record, place, build(record, place))

    def _add_record(self, record: ClaudeRecord, place: ClaudeRecordPlace, message: Message | None) -> bool:
        session = self._session_of(record, place.start)
        self._learn(session, record)
        if record.uuid and (title := self._state.title_at(record.uuid)):
            self._set_title(title, 1)
        if message is None:
            return False
        if message.starts_turn and not record.is_sidechain:
            message = replace(message, takes_back_at=self._state.replaced_prompt(record.parent_uuid or "", place.start))
        self._add(session, message)
        return True

    def _read_user(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        state, session_id = self._state, record.session_id
        if state.queue.waiting or state.queue.taken:
            for text in texts_in(body(record).content):
                state.queue.note_heard(text)
        if session_id and session_id != state.top and not self._is_subagent:
            self._link(self._own_session(), Link("continues", word(session_id)))
        return self._read_ordinary(record, place)

    def _read_attachment(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        message = build(record, place)
        if message is not None and attachment_kind(record) == "queued_command":
            text = "\n".join(queued_texts(record.attachment))
            self._state.queue.note_heard(text)
            if self._state.queue.repeats(text):
                blocks = tuple(replace(block, field="meta") if block.field else block for block in message.blocks)
                message = replace(message, origin=CONTEXT.origin, kind=CONTEXT.kind, blocks=blocks)
        return self._add_record(record, place, message)

    def _read_progress(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        progress, call_id = record.data, word(record.parent_tool_use_id)
        message = build(record, place)
        if message is None or progress is None or progress.type != "agent_progress":
            return self._add_record(record, place, message)
        parent, top = self._session_of(record, place.start), self._state.top
        child = self._tally.session(f"{top}/agent-{word(progress.agent_id) or call_id}", "subagent", top)
        self._learn(child, record)
        self._add(child, message)
        self._link(parent, Link("spawned", child.native_id, call_id))
        return True

    def _read_summary(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        self._set_title(self._state.title_for(record.leaf_uuid or "", record.summary or ""), 1)
        return self._read_ordinary(record, place)

    def _read_title(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        self._set_title(record.custom_title or record.ai_title or "", 3 if record.custom_title else 2)
        return False

    def _read_agent_name(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        self._learn(self._own_session(), record)
        return False

    def _skip(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        return False

    def _read_queue(self, record: ClaudeRecord, place: ClaudeRecordPlace) -> bool:
        queue, content = self._state.queue, record.content
        text = content if isinstance(content, str) else None
        shown: list[QueuedPrompt] = []
        if record.operation == "enqueue":
            shown = queue.enqueue(item_of(text or "", place.start, len(place.raw), record.timestamp))
        elif record.operation == "remove":
            item = queue.remove(text)
            shown = [item] if item is not None else []
        elif record.operation == "dequeue":
            queue.dequeue()
        elif record.operation == "popAll":
            queue.pop_all()
        else:
            self._add(self._own_session(), unknown(record, place))
            return True
        for item in shown:
            message = queued_message(ClaudeRecord(content=item.text, timestamp=item.at), place)
            if message is not None:
                self._add(self._own_session(), replace(message, start=item.start, size=item.size))
        return bool(shown)

    # --- messages and links ---
    def _add(self, session: SessionTally, message: Message) -> None:
        add(self._tally, session, message)
        message = session.messages[-1]
        if session.parent and not (seen := self._state.reported_facts(session.native_id)).linked:
            seen.linked = True
            session.link_parent(session.parent, _prompt(message))
        for block in message.blocks:
            if block.call is not None and block.call.prompt:
                self._link(session, Link("spawned", "", block.call.call_id, prompt_hint(block.call.prompt)))
            elif block.result is not None and block.result.child:
                self._link(session, Link("spawned", block.result.child, block.result.call_id))

    def _link(self, session: SessionTally, link: Link) -> None:
        key = fingerprint(f"{session.native_id}\0{link.relation}\0{link.native_id}", f"{link.call_id}\0{link.hint}")
        if self._state.is_new_link(key):
            session.links.append(link)


_HANDLERS: dict[str, Callable[[ClaudeReader, ClaudeRecord, ClaudeRecordPlace], bool]] = {
    **dict.fromkeys(KNOWN, ClaudeReader._skip),
    "user": ClaudeReader._read_user,
    "attachment": ClaudeReader._read_attachment,
    "progress": ClaudeReader._read_progress,
    "summary": ClaudeReader._read_summary,
    "custom-title": ClaudeReader._read_title,
    "ai-title": ClaudeReader._read_title,
    "agent-name": ClaudeReader._read_agent_name,
    "queue-operation": ClaudeReader._read_queue,
}


def _prompt(message: Message) -> str:
    if not message.starts_turn:
        return ""
    return next((block.text for block in message.blocks if block.field == "prompt"), "")
