"""Values of foreign records: times, strings, numbers, JSON that is not quite JSON, content blocks and tool calls.

Nothing here raises on content. Every result can be stored in any database.

Content blocks are shared by the formats that keep messages as they went to or came from a model provider, and tool calls by
those that hold calls of many agents. A block is converted with its text for display and index; one of unknown shape keeps
all its text. Tool names are free text: widely used ones map to a neutral kind, all others are `other`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage, prepared
from everturn.sources.toolkit.json_lines import FORGIVING, storable

K = TypeVar("K")
S = TypeVar("S")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_USUAL_LENGTH = len("2026-01-31T12:34:56.789Z")

#: Numbers above this are milliseconds, not seconds: as seconds it would be the year 5138.
_SECONDS_END = 100_000_000_000
_MILLISECONDS_END = 253_402_300_800_000  # the year 10000

_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_MOST = 1 << 53


def milliseconds(at: Any) -> tuple[int | None, str]:
    """Return milliseconds UTC and the precision of a number or an ISO text; (None, "") when it is no time.

    A text without a zone counts as UTC, because nothing says where it was written.
    """
    if isinstance(at, str):
        if len(at) == _USUAL_LENGTH and at[19] == "." and at[23] == "Z":
            minute, rest = _parse_minute(at[:17]), at[17:19] + at[20:23]
            if minute is not None and rest.isdecimal() and rest < "60":
                return minute + int(rest), "ms"
        return _parse_time(at)
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None, ""
    return _convert_number(at)


def decode_value(raw: bytes) -> Any:
    """Decode JSON, even with lone surrogates or control characters; None when it is not JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return storable(FORGIVING.decode(raw.decode("utf-8", "replace").strip()))
    except (ValueError, RecursionError):
        return None


def state_of(packed: bytes, kind: type[S]) -> S:
    """Decode a packed reader state; a new one for no bytes, and for bytes that are no such state."""
    try:
        return msgspec.msgpack.decode(packed, type=prepared(kind)) if packed else kind()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()


def strings(value: Any, *without: str) -> list[str]:
    """Return every string in a value, in order, without keys and without the values of the keys in `without`."""
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item:
                found.append(item)
        elif isinstance(item, dict):
            stack.extend(reversed([inside for key, inside in item.items() if key not in without]))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return found


def word(value: Any) -> str:
    """Return a string without NUL, which no database takes; "" for anything else."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """Return a number as an int; None if it is negative, too large to be stored, or no number."""
    if type(value) is int:
        return value if 0 <= value < _MOST else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MOST else None


def uri_path(uri: Any) -> str:
    """Return the path of a file URI, or of a folder in a remote window; the text itself if it is no URI."""
    text = word(uri)
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.replace("-", "").isalpha():
        return text
    path = unquote("/" + rest.partition("/")[2], errors="replace").replace("\0", "\ufffd")
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def exit_code(value: Any) -> int | None:
    """Return an exit status of 32 bits; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else None


def plain(text: Any) -> str:
    """Return a type or version fit to be counted; "?" for anything that could be content."""
    return text if isinstance(text, str) and _PLAIN.fullmatch(text) else "?"


def remember(values: dict[K, S], key: K, value: S, most: int) -> None:
    """Set a value; beyond `most` of them, forget the oldest."""
    values[key] = value
    if len(values) > most:
        del values[next(iter(values))]


def digest(*texts: str) -> str:
    """Return a short stable id for some texts."""
    return blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def _parse_minute(start: str) -> int | None:
    """Return milliseconds at the start of a minute. Records come in runs, so most are cached."""
    try:
        moment = datetime.fromisoformat(f"{start}00+00:00")
    except ValueError:
        return None
    return (moment - _EPOCH) // _MILLISECOND


def _parse_time(at: str) -> tuple[int | None, str]:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None, ""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    precision = "day" if len(at) <= len("2026-01-31") else "ms" if "." in at or "," in at else "s"
    try:
        return (moment - _EPOCH) // _MILLISECOND, precision
    except OverflowError:
        return None, ""


def _convert_number(at: int | float) -> tuple[int | None, str]:
    if not -_MILLISECONDS_END < at < _MILLISECONDS_END:  # also false for NaN
        return None, ""
    if abs(at) >= _SECONDS_END:
        return int(at), "ms"
    return round(at * 1000), "s" if isinstance(at, int) else "ms"


# --- blocks and calls ---

_KINDS = {
    "read": "read readfile readmanyfiles notebookread view viewfile viewimage ls listdir listdirectory listfiles open "
    "openfile getfile cat",
    "edit": "edit editfile multiedit notebookedit editnotebook strreplace searchreplace replace replaceinfile applypatch "
    "applydiff patch insert inserttofile canmoreupdatetextdoc updatefile replacestringinfile multireplacestringinfile "
    "inserteditintofile",
    "create": "write writefile writetofile create createfile newfile canmorecreatetextdoc",
    "delete": "delete deletefile removefile",
    "shell": "bash bashtool shell shellcommand shelltool localshell powershell terminal runcommand runcommands runterminalcmd "
    "runterminalcommand runshellcommand runinterminal executecommand executebash execcommand containerexec bashoutput "
    "killshell killbash shellexecute gitcommand",
    "search": "grep grepsearch glob globfilesearch search searchdir searchfile searchfiles searchfilecontent findfile "
    "filesearch codebasesearch semanticsearch websearch searchweb toolsearch lsp listmcpresources listmcpresourcestool "
    "myfilesbrowser",
    "fetch": "webfetch fetch fetchurl openurl browser browse web webrun readmcpresourcetool",
    "task": "task agent newtask dispatchagent subagent spawnagent taskoutput taskstop agentoutputtool",
    "plan": "todowrite todoread updateplan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode updatetodolist",
    "ask": "askuserquestion askuser askfollowupquestion",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}

#: Kinds of tools that do several things, by their `command` argument.
_BY_COMMAND = {
    "view": "read", "create": "create", "str_replace": "edit", "insert": "edit", "undo_edit": "edit", "update": "edit",
    "rewrite": "edit",
}  # fmt: skip
_MULTI_TOOLS = frozenset(("strreplaceeditor", "strreplacebasededittool", "strreplaceeditorbasededittool", "artifacts"))

_PATHS = (
    "file_path path notebook_path target_file filePath filename file_name file absolute_path relative_workspace_path "
    "AbsolutePath TargetFile"
).split()
_COMMANDS = ("command", "cmd", "script")
_SEPARATORS = re.compile(r"[_\-. ]+")

#: Error classes by a pattern in the first characters of a failed result; the first match decides.
_ERRORS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("rejected", r"The user doesn't want to (?:proceed|take this action)|(?i:user (?:rejected|denied|declined))"),
        ("interrupted", r"\[Request interrupted by user|(?i:\binterrupted by (?:the )?user)"),
        ("cancelled", r"Sibling tool call errored|Cancelled: parallel tool call"),
        ("timeout", r"(?i)\btimed out\b|\btimeout\b"),
        ("exit_status", r"(?i)exit(?:ed)?(?: with)?(?: code| status)?:? -?\d|returned non-zero exit status"),
        ("invalid_input", r"(?i)input ?validation|matches of the string|invalid (?:input|arguments?|parameters?)"),
        ("unknown_tool", r"(?i)no such tool|unknown (?:tool|function|skill)|tool \S{1,80} not found"),
        ("stale", r"File has not been read yet|(?i:modified since)"),
        ("too_large", r"(?i)exceeds (?:the )?maximum|too large|maximum allowed"),
        ("not_found", r"(?i)does not exist|not found|no such file|ENOENT|failed to (?:exactly )?match"),
        ("hook", r"(?i)hook (?:error|blocked|denied|feedback)|blocked by (?:a )?hook"),
        ("permission", r"(?i)permission|access denied|\bEACCES|\bEPERM"),
    )
)
_HEAD = 400
_EXIT = re.compile(
    r"(?im)^\W{0,3}(?:error: )?(?:(?:process|command) )?exit(?:ed)?(?: with)?(?: code| status)?:? (-?\d{1,9})\b"
)


class MessageSpeaker(NamedTuple):
    """Origin and kind of a message, and the index field of its text."""

    origin: str
    kind: str
    starts_turn: bool
    field: str


def tool_kind(name: str, arguments: Any = None) -> str:
    """Return the neutral kind of a tool."""
    flat = _SEPARATORS.sub("", name.rpartition("__")[2]).lower()
    if flat in _MULTI_TOOLS and isinstance(arguments, dict):
        return _BY_COMMAND.get(word(arguments.get("command")), "other")
    if "conversation_recall" in name:
        return "recall"
    return _KIND_OF.get(flat, "other")


def call_start(call_id: str, name: str, given: Any, kind: str = "") -> CallStart:
    """Return a call as the model wrote it. `given` holds its arguments: a value, or the JSON text of one."""
    arguments = given
    if isinstance(given, str):
        value = decode_value(given.encode("utf-8", "replace")) if given.lstrip()[:1] == "{" else None
        arguments = value if isinstance(value, dict) else {}
    arguments = arguments if isinstance(arguments, dict) else {}
    kind = kind or tool_kind(name, arguments)
    start = build_call(call_id, name, kind, arguments or given, _PATHS)
    return replace(start, command=_command(arguments)) if kind == "shell" else start


def build_call(
    call_id: str,
    name: str,
    kind: str,
    given: Any,
    paths: Iterable[str],
    prompts: Iterable[str] = ("prompt",),
    asked_in: str = "",
) -> CallStart:
    """Return a call of known kind; `paths` and `prompts` are the arguments that may hold its file or its task."""
    arguments = given if isinstance(given, dict) else {}
    command = word(arguments.get("command")) if kind == "shell" else ""
    prompt = _first_text(arguments, prompts) if kind == "task" else ""
    return CallStart(call_id, name, kind, _first_text(arguments, paths), command, given, prompt, asked_in)


def _first_text(arguments: dict[str, Any], keys: Iterable[str]) -> str:
    for key in keys:
        if isinstance(value := arguments.get(key), str):
            return word(value)
    return ""


def call_text(start: CallStart) -> str:
    """Return the text of a call for display and index: its name and every string in its arguments."""
    return "\n".join([start.name, *strings(start.input)])


def error_class(text: str) -> str:
    """Return why a call failed."""
    return match_error(text, _ERRORS)


def match_error(text: str, patterns: Iterable[tuple[str, re.Pattern[str]]]) -> str:
    """Return the name of the first pattern that matches in the first characters of a result; "other" without one."""
    head = text[:_HEAD]
    return next((name for name, pattern in patterns if pattern.search(head)), "other")


def exit_status(text: str) -> int | None:
    """Return the exit status that the beginning of an output states."""
    return int(found[1]) if (found := _EXIT.search(text[:_HEAD])) else None


def _command(arguments: dict[str, Any]) -> str:
    for key in _COMMANDS:
        value = arguments.get(key)
        if isinstance(value, str):
            return word(value)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return word(value[-1] if len(value) > 2 and value[1] in ("-c", "-lc") else " ".join(value))
    return ""


CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_PICTURES = frozenset(("image", "image_url", "input_image"))
_PAPERS = frozenset(("document", "file", "input_file", "input_audio", "audio"))
_ATTACHMENTS = _PICTURES | _PAPERS


def blocks_of(content: Any, field: str) -> list[Block]:
    """Return the blocks of a content: a text, a block, or a list of these. Plain text is indexed under `field`."""
    if isinstance(content, str):
        return [Block("text", content, field)] if content else []
    if not isinstance(content, list):
        return [] if content is None else [_block(content, field)]
    return [_block(one, field) for one in content if one != ""]


def has_results(content: Any) -> bool:
    """Return whether a content answers tool calls."""
    return isinstance(content, list) and any(map(is_result, content))


def texts_in(content: Any) -> list[str]:
    """Return the plain texts of a content."""
    return [block.text for block in blocks_of(content, "meta") if block.kind == "text"]


def call_block(call_id: str, name: str, given: Any, data: Any = None, kind: str = "") -> Block:
    """Return the block of a call; `kind` is given where the source knows it better than its name tells."""
    start = call_start(call_id, name, given, kind)
    return Block("call", call_text(start), "tool_input", call=start, data=data)


def function_calls(calls: Any) -> list[Block]:
    """Return the calls in `tool_calls`: `{id, function: {name, arguments}}`."""
    blocks = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            blocks.append(call_block(word(call.get("id")), word(function.get("name")), function.get("arguments"), call))
        else:
            blocks.append(unknown_block(call))
    return blocks


def result_block(call_id: str, content: Any, failed: bool | None = None, data: Any = None) -> Block:
    """Return the block of a tool result. If nothing says whether it failed, a stated exit status decides."""
    text = content if isinstance(content, str) else "\n".join(result_texts(content))
    status = exit_status(text)
    failed = bool(status) if failed is None else failed
    end = CallEnd(call_id, failed, error_class(text) if failed else "", status)
    return Block("result", text, "tool_output", result=end, data=data)


def unknown_block(block: Any) -> Block:
    """Return a block of unknown shape: its text is kept, shown and indexed."""
    return Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)


def usage_of(tokens: Any) -> TokenUsage | None:
    """Return the tokens of a response in either provider's terms; cached tokens do not count as input."""
    if not isinstance(tokens, dict):
        return None

    def first_count(*names: str) -> int:
        return next((number for name in names if (number := count(tokens.get(name))) is not None), 0)

    details = tokens.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) or 0 if isinstance(details, dict) else 0
    given = first_count("input_tokens", "prompt_tokens")
    return TokenUsage(
        max(given - cached, 0), first_count("output_tokens", "completion_tokens"),
        first_count("cache_read_input_tokens") or cached, first_count("cache_creation_input_tokens"),
    )  # fmt: skip


def counted_usage(tokens: Any, *keys: str) -> TokenUsage | None:
    """Return the tokens under four keys: input, output, cache read and cache write; None if there are none."""
    counts = [count(tokens.get(key)) or 0 for key in keys] if isinstance(tokens, dict) else []
    return TokenUsage(*counts) if any(counts) else None


def _block(block: Any, field: str) -> Block:
    if isinstance(block, str):
        return Block("text", block, field)
    if not isinstance(block, dict):
        return unknown_block(block)
    kind = word(block.get("type"))
    if kind in CALLS:
        return call_block(word(block.get("id")), word(block.get("name")), block.get("input"), block)
    if is_result(block):
        failed = block.get("is_error")
        return result_block(
            word(block.get("tool_use_id")), block.get("content"), failed if isinstance(failed, bool) else None, block
        )
    return convert(block, field) if (convert := _CONVERTERS.get(kind)) else unknown_block(block)


def is_result(block: Any) -> bool:
    """Return whether a block is a tool_result or one of its variants."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind == "tool_result" or (isinstance(kind, str) and kind.endswith("_tool_result"))


def result_texts(content: Any) -> list[str]:
    """Return the texts of a result's content; attachments are named in brackets."""
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else ""
        is_attachment = isinstance(kind, str) and kind in _ATTACHMENTS
        texts += [f"[{kind}]"] if is_attachment else strings(part, "type")
    return texts


def _text(block: dict[str, Any], field: str) -> Block:
    text = block.get("text")
    return Block("text", text, field, data=block) if isinstance(text, str) else unknown_block(block)


def _thinking(block: dict[str, Any], field: str) -> Block:
    thought = block.get("thinking", block.get("text", block.get("summary", block.get("content"))))
    text = thought if isinstance(thought, str) else "\n".join(strings(thought, "type"))
    return Block("thinking", text, "thinking", data=block)


_CONVERTERS: dict[str, Callable[[dict[str, Any], str], Block]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _text),
    "refusal": lambda block, field: Block("text", word(block.get("refusal")), field, data=block),
    **dict.fromkeys(("thinking", "reasoning", "redacted_thinking"), _thinking),
    **dict.fromkeys(_PICTURES, lambda block, field: Block("image", data=block)),
    **dict.fromkeys(_PAPERS, lambda block, field: Block("document", data=block)),
}


# --- parts of messages ---


def text_blocks(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    """Return one block with the text, or none when it is empty."""
    return (Block(kind, text, field),) if text else ()


def unknown_message(value: Any, *without: str) -> Message:
    """Return the message of a record of unknown shape: its strings, except those under the keys `without`, are indexed."""
    blocks = text_blocks("\n".join(strings(value, *without)), "meta", "unknown")
    return Message("system", "system", "unknown", blocks=blocks)


def message_digest(message: Message) -> str:
    """Return a digest of the role and the texts of a message."""
    return digest(message.role, *(block.text for block in message.blocks))
