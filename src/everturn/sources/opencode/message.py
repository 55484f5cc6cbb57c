"""Records and messages of OpenCode, the same wherever they were read.

A record is a line that a container was written out as, or a line or element of an export:

    {"session": {…}}                                        the constant facts of a session; first in its file
    {"message": ROW, "parts": [ROW, …]}                     a message of a database, or of a folder of small files
    {"session_message": ROW}                                the same, of the client's second generation
    {"error": {…}, "info": {"id", "time"}}                  how the message before it ended
    {"file": PATH, "text": …}                               another file of the session
    {"info": {…}, "parts": [{…}, …]}                        a message of an export

A ROW is a row of a table with its JSON in `data`, as in the database, or a file with its path: `{"file", "text"}`, with
`base64` instead of `text` where it is not UTF-8. So every file can be restored exactly.

Speakers: a user message is the human's if any part of it is; one of synthetic texts only was inserted by the client. In a
session that belongs to another one the agent there speaks (the reader knows). A command that the human ran directly (`!`)
is recorded by the client as an answer without a model's step.

The client's second generation keeps a message in one row of `session_message`. `translate_row` converts it to the form of
the first, so that all else knows only one form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from everturn.model.conversation import Block, Message, TokenUsage, fingerprint
from everturn.sources.opencode.parts import blocks_of, duration, is_own
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.values import count, milliseconds, strings, word

_ABORTED = "MessageAbortedError"


class OpencodeMessage(NamedTuple):
    """A message, the type it is counted under, and whether all of it is known."""

    message: Message
    type: str
    known: bool = True


def build(info: Rec, parts: list[Any]) -> OpencodeMessage:
    """Return the message of a user or an assistant."""
    role = info.get("role")
    parts = parts or listing(info.get("parts"))
    if role not in ("user", "assistant"):
        return OpencodeMessage(unknown({"info": info, "parts": parts}, word(info.get("id"))), "?", False)
    message, unknown_type = _user(info, parts) if role == "user" else _assistant(info, parts)
    return OpencodeMessage(message, f"{role}/{unknown_type}" if unknown_type else role, not unknown_type)


def failure(error: Rec, info: Rec) -> Message:
    """Return the message in place of an answer that the human stopped or that failed."""
    time = _time(info)
    at, precision = milliseconds(time.get("completed") or time.get("created"))
    aborted = error.get("name") == _ABORTED
    text = word(mapping(error.get("data")).get("message")) or "\n".join(strings(error, "name", "type"))
    return Message(
        "system" if aborted else "assistant", "system", "interrupt" if aborted else "notice", at, precision,
        f"{word(info.get('id'))}/error", blocks=(Block("text", text, "meta", data=error),) if text else (),
        fingerprint=fingerprint("error", f"{time.get('created')}/{time.get('completed')}"),
    )  # fmt: skip


def unknown(value: Any, native_id: str = "") -> Message:
    """Return a message for a value of unknown shape, with all its text."""
    text = "\n".join(strings(value))
    return Message(
        "system", "system", "unknown", native_id=native_id, blocks=(Block("unknown", text, "meta", data=value),),
        fingerprint=fingerprint(native_id, str(len(text))) if native_id else None,
    )  # fmt: skip


def message_mark(name: str, info: Rec, blocks: tuple[Block, ...]) -> int | None:
    """Return a fingerprint that is equal for copies of a message and for one read from several sources.

    A fork copies messages with their times but gives them new ids, so ids are left out. A message that is still being
    written changes it: nothing new in it may count as known already.
    """
    time = _time(info)
    size = f"{len(blocks)}/{sum(len(block.text) for block in blocks)}"
    if isinstance(time.get("created"), (int, float)):
        return fingerprint(name, f"{time['created']}/{time.get('completed')}/{size}")
    return fingerprint(native_id, size) if (native_id := word(info.get("id"))) else None


def _user(info: Rec, parts: list[Any]) -> tuple[Message, str]:
    kinds = {part.get("type") for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str)}
    is_compaction = "compaction" in kinds
    own = not is_compaction and (not parts or any(map(is_own, parts)))
    found, unknown_type = blocks_of(parts, "summary" if is_compaction else "prompt")
    kind = "compaction" if is_compaction else "command" if "subtask" in kinds else "text" if own else "context"
    at, precision = milliseconds(_time(info).get("created"))
    blocks = tuple(found)
    message = Message(
        "user", "human" if own else "system" if is_compaction else "injected", kind, at, precision,
        word(info.get("id")), blocks=blocks, starts_turn=own, fingerprint=message_mark("user", info, blocks),
    )  # fmt: skip
    return message, unknown_type


def _assistant(info: Rec, parts: list[Any]) -> tuple[Message, str]:
    summary, by_hand = info.get("summary") is True, _is_by_hand(info, parts)
    found, unknown_type = blocks_of(parts, "summary" if summary else "answer")
    time = _time(info)
    at, precision = milliseconds(time.get("created"))
    blocks = tuple(found)
    message = Message(
        "assistant", "human" if by_hand else "model", "shell" if by_hand else "summary" if summary else "text", at,
        precision, word(info.get("id")), "" if by_hand else word(info.get("id")), word(info.get("modelID")), blocks,
        None if by_hand else _usage(info, parts), starts_turn=by_hand,
        fingerprint=message_mark("assistant", info, blocks), reported_ms=duration(time, "created", "completed"),
    )  # fmt: skip
    return message, unknown_type


def _is_by_hand(info: Rec, parts: list[Any]) -> bool:
    """Return whether the human ran a command: only shell calls, without the marks of a model's step."""
    if info.get("finish") or not parts or token_counts(info)[1]:
        return False
    return all(isinstance(part, dict) and part.get("type") == "tool" and part.get("tool") == "bash" for part in parts)


def _usage(info: Rec, parts: list[Any]) -> TokenUsage | None:
    """Return the tokens of the whole response as the message states them, else the sum of its steps."""
    numbers = token_counts(info)
    if not any(numbers):
        steps = [token_counts(part) for part in parts if isinstance(part, dict) and part.get("type") == "step-finish"]
        numbers = [sum(column) for column in zip(*steps, strict=True)] if steps else numbers
    return TokenUsage(*numbers) if isinstance(info.get("tokens"), dict) or any(numbers) else None


def token_counts(holder: Rec) -> list[int]:
    """Return input, output (with reasoning, which is counted apart), cache read and cache written tokens."""
    tokens = mapping(holder.get("tokens"))
    cache = mapping(tokens.get("cache"))
    output = (count(tokens.get("output")) or 0) + (count(tokens.get("reasoning")) or 0)
    return [count(tokens.get("input")) or 0, output, count(cache.get("read")) or 0, count(cache.get("write")) or 0]


def _time(info: Rec) -> Rec:
    """Return the times of a message; early clients kept them one level down."""
    return mapping(info.get("time")) or mapping(mapping(info.get("metadata")).get("time"))


#: Rows about the session that hold no message.
_SWITCHES = ("agent-switched", "model-switched")


def translate_row(kind: str, data: Rec) -> tuple[Rec, list[Any]] | None:
    """Return the message and its parts; None for a row without content. A row of unknown kind has no role."""
    info = {"id": data.get("id"), "sessionID": data.get("sessionID"), "time": data.get("time")}
    if kind in _SWITCHES:
        return None
    if kind == "user":
        mentions = [{"type": "agent", **mapping(agent)} for agent in listing(data.get("agents"))]
        return {**info, "role": "user"}, [_text_part(data), *map(_file_part, listing(data.get("files"))), *mentions]
    if kind in ("synthetic", "system"):
        return {**info, "role": "user"}, [{**_text_part(data), "synthetic": True}]
    if kind == "compaction":
        summary = {"type": "text", "text": data.get("summary") or "", "synthetic": True}
        return {**info, "role": "user"}, [{"type": "compaction"}, summary]
    if kind == "shell":
        return {**info, "role": "assistant"}, [_shell_part(data)]
    if kind == "assistant":
        return _assistant_row(info, data)
    return {**data, **info}, []


def _assistant_row(info: Rec, data: Rec) -> tuple[Rec, list[Any]]:
    model = mapping(data.get("model"))
    info |= {"role": "assistant", "modelID": model.get("id"), "agent": data.get("agent")}
    info |= {key: data[key] for key in ("finish", "tokens", "cost", "error") if key in data}
    parts = [{"type": "step-start"}, *map(_translate_content, listing(data.get("content")))]
    files = listing(mapping(data.get("snapshot")).get("files"))
    return info, [*parts, {"type": "patch", "files": files}] if files else parts


def _translate_content(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "tool":
        return part
    state, time = mapping(part.get("state")), mapping(part.get("time"))
    output = "\n".join(strings([mapping(one).get("text") for one in listing(state.get("content"))]))
    attached = [_file_part(one) for one in listing(state.get("attachments"))]
    return {
        "type": "tool",
        "callID": part.get("id"),
        "tool": part.get("name"),
        "state": {
            "status": state.get("status"),
            "input": state.get("input"),
            "output": output,
            "error": word(mapping(state.get("error")).get("message")) or output,
            "metadata": state.get("structured"),
            "attachments": attached,
            "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
        },
    }


def _shell_part(data: Rec) -> Rec:
    time = mapping(data.get("time"))
    state = {
        "status": "completed" if "completed" in time else "running",
        "input": {"command": data.get("command")},
        "output": data.get("output"),
        "time": {"start": time.get("created"), "end": time.get("completed")},
    }
    return {"type": "tool", "callID": data.get("callID"), "tool": "bash", "state": state}


def _text_part(data: Rec) -> Rec:
    return {"type": "text", "text": word(data.get("text"))}


def _file_part(attached: Any) -> Rec:
    found = mapping(attached)
    return {"type": "file", "mime": found.get("mime"), "filename": found.get("name"), "url": found.get("uri")}


def session_of(record: Rec) -> Rec:
    """Return what a record states about the session itself; empty when it is about something else."""
    if "session" in record:
        return mapping(record["session"])
    info = mapping(record.get("info"))
    return info if "parts" not in record and str(info.get("id")).startswith("ses_") else {}


def info_of(record: Rec) -> Rec:
    """Return the facts of the message that a record is about."""
    if "info" in record:
        return mapping(record["info"])
    if "message" in record:
        return _load_row(record["message"])
    return _load_row(record["session_message"]) if "session_message" in record else {}


def message_of(record: Rec) -> OpencodeMessage | None:
    """Return the message in a record; None when the record is known to hold none."""
    if isinstance(record.get("error"), dict) and "parts" not in record:
        return OpencodeMessage(failure(record["error"], info_of(record)), "error")
    if "session_message" in record:
        return _translate_message(mapping(record["session_message"]))
    if "parts" in record and ("info" in record or "message" in record):
        loaded = record["parts"] if "info" in record else list(map(_load_row, listing(record["parts"])))
        built = build(info_of(record), listing(loaded))
        return built if built.message.kind != "unknown" else OpencodeMessage(unknown(record), "?", False)
    if session_of(record) or "file" in record:
        return None
    return OpencodeMessage(unknown(record), "?", False)


def error_in(value: Rec) -> OpencodeMessage | None:
    """Return the message of an error cut out of an export's message; None for anything else."""
    return OpencodeMessage(failure(value, {}), "error") if value and set(value) <= {"name", "data"} else None


def _translate_message(row: Rec) -> OpencodeMessage | None:
    kind = row.get("type")
    found = translate_row(kind if isinstance(kind, str) else "", _load_row(row))
    return None if found is None else build(*found)


def _load_row(row: Any) -> Rec:
    """Return the content of a row or a file. A row has the ids in columns of their own."""
    row = mapping(row)
    inside = row.get("data") if "data" in row else row.get("text")
    value = decode_item(inside.encode("utf-8", "replace"))[0] if isinstance(inside, str) else inside
    if not isinstance(value, dict):
        return {}
    if "data" not in row:
        return value
    ids = {"id": row.get("id"), "sessionID": row.get("session_id")}
    return {"time": {"created": row.get("time_created")}, **value, **ids}
