"""Reads a rollout piece by piece and combines what several records state; `view` shows one record by itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message
from everturn.sources.codex.calls import folder_in
from everturn.sources.codex.files import is_screen_log
from everturn.sources.codex.message import build, texts_in, unknown
from everturn.sources.codex.records import (
    CALLS,
    DONE_BY_PROVIDER,
    ENDS,
    EVENT,
    HEADER,
    ITEM,
    MIRRORS,
    CodexReaderState,
    CodexRecord,
    open_record,
)
from everturn.sources.codex.screen_log import CodexScreenLogReader, view_log
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    prompt_hint,
    single_record,
)
from everturn.sources.toolkit.message_reader import NoteReader, note
from everturn.sources.toolkit.values import decode_value, milliseconds, plain, word

_NAME_TIME = re.compile(r"rollout-(\d{4}-\d\d-\d\d)T(\d\d-\d\d-\d\d)-")
_AGENT = re.compile(r'\s*\{.{0,200}"agent_id"', re.DOTALL)
_MODEL_ITEMS = CALLS | DONE_BY_PROVIDER | {"reasoning"}
_HUMAN_TITLE = 3


def open_reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """Return the reader for a file: a rollout, the log of the terminal program, or a memory or goal."""
    if found.kind == "meta":
        return NoteReader(found, state)
    return CodexScreenLogReader(found, state) if is_screen_log(found) else CodexReader(found, state)


class CodexReader(LineReader[CodexReaderState]):
    """Reads a rollout of either era, of a session or of a subagent."""

    kind = CodexReaderState

    def _take(self, raw_record: Rec, place: RecordPlace) -> Counted:
        record = open_record(raw_record)
        handle = _HANDLERS.get(record.outer)
        is_message = handle(self, record, place) if handle else self._add_record(record, build(record, place))
        disposition = ("message" if is_message else "known") if record.is_known else "unknown"
        return record.name, disposition, self._state.client

    def _session(self) -> SessionTally:
        state, found = self._state, self._candidate
        return self._gathering.session(self._name, state.kind or found.kind, state.parent or found.parent)

    # --- records: each handler returns whether the record became a message ---
    def _read_meta(self, record: CodexRecord, place: RecordPlace) -> bool:
        """Read a header. Every resume repeats it; a fork has its own header first, then that of the original."""
        state, item = self._state, record.item
        native_id = word(item.get("id"))
        if state.met:
            if native_id == self._name:
                self._learn_client(item)
            else:
                state.follow_session(native_id)
            return False
        state.met = True
        state.began = milliseconds(item.get("timestamp"))[0]
        self._learn_kind(item)
        self._learn_client(item)
        origin = word(item.get("forked_from_id")) or word(mapping(item.get("history_base")).get("thread_id"))
        state.follow_session(origin or native_id or self._name)
        session = self._session()
        session.learn(branch=word(mapping(item.get("git")).get("branch")), agent_name=word(item.get("agent_nickname")))
        self._learn_folder(word(item.get("cwd")))
        if origin and origin != state.parent:
            session.links.append(Link("forked_from", origin))
        state.model = word(item.get("model"))
        return False

    def _learn_kind(self, item: Rec) -> None:
        source = mapping(item.get("source"))
        if "subagent" in source:
            spawn = mapping(mapping(source["subagent"]).get("thread_spawn"))
            self._state.kind = "subagent"
            self._state.parent = word(spawn.get("parent_thread_id")) or word(item.get("parent_thread_id"))
            session = self._session()
            session.kind, session.parent = self._state.kind, self._state.parent

    def _learn_client(self, item: Rec) -> None:
        if version := word(item.get("cli_version")):
            self._state.client = plain(version)
            self._session().learn(client=version)

    def _learn_folder(self, folder: str) -> None:
        if folder and not self._state.placed:
            self._state.placed = True
            self._session().learn(workspace=folder)

    def _read_context(self, record: CodexRecord, place: RecordPlace) -> bool:
        self._state.model = word(record.item.get("model")) or self._state.model
        self._learn_folder(word(record.item.get("cwd")))
        return False

    def _read_compacted(self, record: CodexRecord, place: RecordPlace) -> bool:
        self._state.answering = False
        return self._add_record(record, build(record, place))

    def _read_event(self, record: CodexRecord, place: RecordPlace) -> bool:
        state, kind = self._state, record.kind
        if kind == "token_count":
            return self._read_tokens(record, place)
        if kind in MIRRORS:
            text = word(record.item.get("message")) or word(record.item.get("text"))
            state.note_mirror(kind, text, record.at, place)
            return False
        if kind in ("task_started", "turn_started"):
            self._flush()
            state.task, state.prompted = True, False
        elif kind in ENDS or kind == "turn_aborted":
            self._flush()
            state.task = False
            state.close_response()
        elif kind == "thread_name_updated" and word(record.item.get("thread_name")):
            self._session().learn(title=word(record.item.get("thread_name")), title_rank=_HUMAN_TITLE)
        elif kind == "collab_agent_spawn_end":
            self._link_child(word(record.item.get("new_thread_id")), word(record.item.get("call_id")))
        return self._add_record(record, build(record, place))

    def _read_tokens(self, record: CodexRecord, place: RecordPlace) -> bool:
        state = self._state
        usage = state.response_tokens(mapping(record.item.get("info")))
        message = build(record, place)
        if usage is None or message is None:
            return False
        mark = state.mark_event(f"tokens {state.total}")
        name = state.count_response()
        self._add(replace(message, usage=usage, provider_id=name, model=state.model, fingerprint=mark))
        return True

    def _read_item(self, record: CodexRecord, place: RecordPlace) -> bool:
        state, kind, item = self._state, record.kind, record.item
        if (message := build(record, place)) is None:
            return False
        role = item.get("role")
        response = model = ""
        if kind in _MODEL_ITEMS or role == "assistant":
            response, model = state.open_response(), state.model
        else:
            state.answering = False
        if kind in ("message", "reasoning"):
            state.note_texts(texts_in(item))
        if role == "user":
            message = self._place_prompt(message)
        elif kind == "agent_message":
            return self._add_letter(record, message)
        mark = state.mark_item(item, "\0".join([block.text for block in message.blocks]))
        blocks = message.blocks if kind in ("message", "reasoning") else tuple(map(self._link_block, message.blocks))
        self._add(replace(message, provider_id=response, model=model, blocks=blocks, fingerprint=mark))
        return True

    def _place_prompt(self, message: Message) -> Message:
        """Return a prompt adapted to its turn: within a turn it was queued, in a subagent an agent wrote it."""
        state = self._state
        if message.starts_turn:
            self._flush()
            if state.task and state.prompted:
                kind = "queued" if message.kind == "text" else message.kind
                message = replace(message, kind=kind, starts_turn=False)
            if message.starts_turn:
                state.close_response()
            state.prompted = True
            if state.kind == "subagent":
                message = replace(message, origin="agent")
                self._link_parent(message)
        elif not state.placed:
            self._learn_folder(next(filter(None, (folder_in(block.text) for block in message.blocks)), ""))
        return message

    def _read_communication(self, record: CodexRecord, place: RecordPlace) -> bool:
        message = build(record, place)
        return message is not None and self._add_letter(record, message)

    def _add_letter(self, record: CodexRecord, message: Message) -> bool:
        """Add a message from another agent. It may be written twice; to a subagent it is a request."""
        state, texts = self._state, [block.text for block in message.blocks]
        if not texts or not state.is_new_letter("".join(texts), record.outer == ITEM):
            return False
        state.answering = False
        if state.kind == "subagent":
            blocks = tuple(replace(block, field="prompt") for block in message.blocks)
            message = replace(message, kind="text", starts_turn=True, blocks=blocks)
            self._link_parent(message)
        self._add(replace(message, fingerprint=state.mark_event("\0".join([record.name, *texts]))))
        return True

    def _add_record(self, record: CodexRecord, message: Message | None) -> bool:
        if message is None:
            return False
        model = message.origin == "model"
        name = self._state.open_response() if model else ""
        mark = self._state.mark_event("\0".join([record.name, *(block.text for block in message.blocks)]))
        self._add(replace(message, fingerprint=mark, provider_id=name, model=self._state.model if model else ""))
        return True

    def _flush(self) -> None:
        """Add the events that repeat an item which never came."""
        for one in self._state.take_unheard():
            payload = {"type": one.kind, "text" if "reasoning" in one.kind else "message": one.text}
            record = open_record({"timestamp": one.at, "type": EVENT, "payload": payload})
            self._add_record(record, build(record, RecordPlace(one.start, one.size)))

    # --- messages and links ---
    def _add(self, message: Message) -> None:
        if message.at is None and (began := self._began()) is not None:
            message = replace(message, at=began, precision="day")
        add(self._gathering, self._session(), message)

    def _began(self) -> int | None:
        """Return when the session began, by its header or the name of its file: all that older clients tell."""
        if self._state.began is None and (named := _NAME_TIME.search(self._candidate.path.name)) is not None:
            self._state.began = milliseconds(f"{named[1]}T{named[2].replace('-', ':')}Z")[0]
        return self._state.began

    def _link_block(self, block: Block) -> Block:
        """Note in a call that starts an agent, and in its result, which agent that is."""
        call, result = block.call, block.result
        if call is not None and call.prompt:
            self._state.note_spawn(call.call_id)
            self._session().links.append(Link("spawned", "", call.call_id, prompt_hint(call.prompt)))
        elif result is not None and result.call_id in self._state.spawned:
            child = _child_id(block.text)
            self._link_child(child, result.call_id)
            return replace(block, result=replace(result, child=child))
        return block

    def _link_child(self, child: str, call_id: str) -> None:
        if child:
            self._session().links.append(Link("spawned", child, call_id))

    def _link_parent(self, message: Message) -> None:
        state = self._state
        if state.linked:
            return
        state.linked = True
        prompt = next((block.text for block in message.blocks if block.field == "prompt"), "")
        parent = state.parent or self._candidate.parent
        if parent or prompt:
            self._session().link_parent(parent, prompt)


_HANDLERS: dict[str, Callable[[CodexReader, CodexRecord, RecordPlace], bool]] = {
    "session_meta": CodexReader._read_meta, HEADER: CodexReader._read_meta, "turn_context": CodexReader._read_context,
    "compacted": CodexReader._read_compacted, "inter_agent_communication": CodexReader._read_communication,
    EVENT: CodexReader._read_event, ITEM: CodexReader._read_item,
}  # fmt: skip


def _child_id(text: str) -> str:
    """Return the id of an agent in the output of the call that started it."""
    return word(mapping(decode_value(text.encode("utf-8", "replace"))).get("agent_id")) if _AGENT.match(text) else ""


def view(raw: bytes) -> Message | None:
    """Return the message of a record by itself; None when these bytes hold no record.

    A record without a message is shown with its text, like one of unknown type: in a file of the other kind that is
    what it was.
    """
    raw_record, place = single_record(raw), RecordPlace(0, len(raw))
    if raw_record is None:
        return view_log(raw, None) or (note(raw) if raw.strip() and raw.lstrip()[:1] != b"{" else None)
    logged = view_log(raw, raw_record) if "dir" in raw_record and "ts" in raw_record else None
    record = open_record(raw_record)
    return logged or build(record, place) or unknown(record, place)
