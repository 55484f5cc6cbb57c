"""Reads a rollout piece by piece: what its records say together.

One record's bytes → its message, for whoever shows or exports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message, fingerprint
from everturn.sources.codex.calls import folder_in
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
    pack,
    unpack,
)
from everturn.sources.codex.screen_log import view_log
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    single_record,
)
from everturn.sources.toolkit.values import decode_value, plain, word

_AGENT = re.compile(r'\s*\{.{0,200}"agent_id"', re.DOTALL)
_MODEL_ITEMS = CALLS | DONE_BY_PROVIDER | {"reasoning"}
_HUMAN_TITLE = 3


class CodexReader(LineReader[CodexReaderState]):
    """A rollout of either era, of a session or of a subagent."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(unpack(state))
        self._name = found.native_id or found.path.stem
        self._kind, self._parent = found.kind, found.parent

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._walk.open_line
        return pack(self._state)

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        event = open_record(record)
        handle = _HANDLERS.get(event.outer)
        made = handle(self, event, place) if handle else self._say(event, place, build(event, place))
        return event.name, ("message" if made else "known") if event.is_known else "unknown", self._state.client

    def _talk(self) -> SessionTally:
        state = self._state
        return self._gathering.session(self._name, state.kind or self._kind, state.parent or self._parent)

    # records: each says whether it became a message -------------------------------------------------------------------
    def _meta(self, event: CodexRecord, place: RecordPlace) -> bool:
        """Said again on every resume; a fork says first who it is, then who it was copied from."""
        state, item = self._state, event.item
        native_id = word(item.get("id"))
        if state.met:
            if native_id == self._name:
                self._learn_client(item)
            else:
                state.follow(native_id)
            return False
        state.met = True
        self._learn_kind(item)
        self._learn_client(item)
        origin = word(item.get("forked_from_id")) or word(mapping(item.get("history_base")).get("thread_id"))
        state.follow(origin or native_id or self._name)
        talk = self._talk()
        talk.learn(branch=word(mapping(item.get("git")).get("branch")), agent_name=word(item.get("agent_nickname")))
        self._learn_folder(word(item.get("cwd")))
        if origin and origin != state.parent:
            talk.links.append(Link("forked_from", origin))
        state.model = word(item.get("model"))
        return False

    def _learn_kind(self, item: Rec) -> None:
        source = mapping(item.get("source"))
        if "subagent" in source:
            spawn = mapping(mapping(source["subagent"]).get("thread_spawn"))
            self._state.kind = "subagent"
            self._state.parent = word(spawn.get("parent_thread_id")) or word(item.get("parent_thread_id"))
            talk = self._talk()
            talk.kind, talk.parent = self._state.kind, self._state.parent

    def _learn_client(self, item: Rec) -> None:
        version = word(item.get("cli_version"))
        if version:
            self._state.client = plain(version)
            self._talk().learn(client=version)

    def _learn_folder(self, folder: str) -> None:
        if folder and not self._state.placed:
            self._state.placed = True
            self._talk().learn(workspace=folder)

    def _context(self, event: CodexRecord, place: RecordPlace) -> bool:
        self._state.model = word(event.item.get("model")) or self._state.model
        self._learn_folder(word(event.item.get("cwd")))
        return False

    def _compacted(self, event: CodexRecord, place: RecordPlace) -> bool:
        self._state.answering = False
        return self._say(event, place, build(event, place))

    def _event(self, event: CodexRecord, place: RecordPlace) -> bool:
        state, kind = self._state, event.kind
        if kind == "token_count":
            return self._spend(event, place)
        if kind in MIRRORS:
            text = word(event.item.get("message")) or word(event.item.get("text"))
            state.hear(kind, text, event.at, place)
            return False
        if kind in ("task_started", "turn_started"):
            self._flush()
            state.task, state.prompted = True, False
        elif kind in ENDS or kind == "turn_aborted":
            self._flush()
            state.task = False
            state.close()
        elif kind == "thread_name_updated" and word(event.item.get("thread_name")):
            self._talk().learn(title=word(event.item.get("thread_name")), title_rank=_HUMAN_TITLE)
        elif kind == "collab_agent_spawn_end":
            self._link_child(word(event.item.get("new_thread_id")), word(event.item.get("call_id")))
        return self._say(event, place, build(event, place))

    def _spend(self, event: CodexRecord, place: RecordPlace) -> bool:
        state = self._state
        usage = state.spend(mapping(event.item.get("info")))
        message = build(event, place)
        if usage is None or message is None:
            return False
        mark = state.mark_event(f"tokens {state.total}")
        name = state.count_response()
        self._add(replace(message, usage=usage, provider_id=name, model=state.model, fingerprint=mark))
        return True

    def _item(self, event: CodexRecord, place: RecordPlace) -> bool:
        state, kind, item = self._state, event.kind, event.item
        message = build(event, place)
        if message is None:
            return False
        role = item.get("role")
        response = model = ""
        if kind in _MODEL_ITEMS or role == "assistant":
            response, model = state.open_response(), state.model
        else:
            state.answering = False
        if kind in ("message", "reasoning"):
            state.say(texts_in(item))
        if role == "user":
            message = self._place_prompt(message)
        elif kind == "agent_message":
            return self._letter(event, message)
        mark = state.mark_item(item, "\0".join([block.text for block in message.blocks]))
        blocks = message.blocks if kind in ("message", "reasoning") else tuple(map(self._link, message.blocks))
        self._add(replace(message, provider_id=response, model=model, blocks=blocks, fingerprint=mark))
        return True

    def _place_prompt(self, message: Message) -> Message:
        """A prompt in the middle of a turn was put into it; that of a subagent comes from another agent."""
        state = self._state
        if message.starts_turn:
            self._flush()
            if state.task and state.prompted:
                kind = "queued" if message.kind == "text" else message.kind
                message = replace(message, kind=kind, starts_turn=False)
            if message.starts_turn:
                state.close()
            state.prompted = True
            if state.kind == "subagent":
                message = replace(message, origin="agent")
                self._link_parent(message)
        elif not state.placed:
            self._learn_folder(next(filter(None, (folder_in(block.text) for block in message.blocks)), ""))
        return message

    def _communication(self, event: CodexRecord, place: RecordPlace) -> bool:
        message = build(event, place)
        return message is not None and self._letter(event, message)

    def _letter(self, event: CodexRecord, message: Message) -> bool:
        """What another agent sent. It may be written twice; to a subagent it is a request."""
        state, texts = self._state, [block.text for block in message.blocks]
        if not texts or not state.is_new_letter("".join(texts), event.outer == ITEM):
            return False
        state.answering = False
        if state.kind == "subagent":
            blocks = tuple(replace(block, field="prompt") for block in message.blocks)
            message = replace(message, kind="text", starts_turn=True, blocks=blocks)
            self._link_parent(message)
        self._add(replace(message, fingerprint=state.mark_event("\0".join([event.name, *texts]))))
        return True

    def _say(self, event: CodexRecord, place: RecordPlace, message: Message | None) -> bool:
        if message is None:
            return False
        model = message.origin == "model"
        name = self._state.open_response() if model else ""
        mark = self._state.mark_event("\0".join([event.name, *(block.text for block in message.blocks)]))
        self._add(replace(message, fingerprint=mark, provider_id=name, model=self._state.model if model else ""))
        return True

    def _flush(self) -> None:
        """Events that repeat an item which never came are all there is of it."""
        for one in self._state.take_unheard():
            said = {"type": one.kind, "text" if "reasoning" in one.kind else "message": one.text}
            event, place = (
                open_record({"timestamp": one.at, "type": EVENT, "payload": said}),
                RecordPlace(one.start, one.size),
            )
            self._say(event, place, build(event, place))

    # messages and links -----------------------------------------------------------------------------------------------
    def _add(self, message: Message) -> None:
        add(self._gathering, self._talk(), message)

    def _link(self, block: Block) -> Block:
        """Note in a call that starts an agent, and in its result, which agent that is."""
        call, result = block.call, block.result
        if call is not None and call.prompt:
            self._state.note_spawn(call.call_id)
            self._talk().links.append(Link("spawned", "", call.call_id, _hint(call.prompt)))
        elif result is not None and result.call_id in self._state.spawned:
            child = _child_id(block.text)
            self._link_child(child, result.call_id)
            return replace(block, result=replace(result, child=child))
        return block

    def _link_child(self, child: str, call_id: str) -> None:
        if child:
            self._talk().links.append(Link("spawned", child, call_id))

    def _link_parent(self, message: Message) -> None:
        state = self._state
        if state.linked:
            return
        state.linked = True
        prompt = next((block.text for block in message.blocks if block.field == "prompt"), "")
        parent = state.parent or self._parent
        if parent or prompt:
            self._talk().links.append(Link("subagent_of", parent, hint=_hint(prompt) if prompt else 0))


_HANDLERS: dict[str, Callable[[CodexReader, CodexRecord, RecordPlace], bool]] = {
    "session_meta": CodexReader._meta,
    HEADER: CodexReader._meta,
    "turn_context": CodexReader._context,
    "compacted": CodexReader._compacted,
    "inter_agent_communication": CodexReader._communication,
    EVENT: CodexReader._event,
    ITEM: CodexReader._item,
}


def _child_id(text: str) -> str:
    """The id of an agent in the output of the call that started it."""
    return word(mapping(decode_value(text.encode("utf-8", "replace"))).get("agent_id")) if _AGENT.match(text) else ""


def _hint(prompt: str) -> int:
    return fingerprint("prompt", prompt)


def view(raw: bytes) -> Message | None:
    """The message of a record, judged by itself; None when there is none in these bytes.

    Asked about a record that holds no message it gives the words of it, as of one that is not known: in a file of the
    other kind that is what the record was.
    """
    record, place = single_record(raw), RecordPlace(0, len(raw))
    if record is None:
        return view_log(raw, None)
    logged = view_log(raw, record) if "dir" in record and "ts" in record else None
    event = open_record(record)
    return logged or build(event, place) or unknown(event, place)
