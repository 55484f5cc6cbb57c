"""Find, unpack and read the samples of Inspect logs.

    <logs>/<time>_<task>_<id>.eval    a zip archive: `header.json`, and `samples/<id>_epoch_<n>.json`
    <logs>/<time>_<task>_<id>.json    the same as one document: `eval`, `plan`, `samples`, …

A sample has the `messages` of its conversation, the outcome (`scores`) and tokens by model (`model_usage`), which belong to the
sample as a whole. `unpack` writes a sample as lines: a head, its messages, and at the end its outcome with the tokens.
Archives whose members are compressed with Zstandard need a Python that can read them; others are reported.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.contract import Member, PartlyUnread, SourceCandidate
from everturn.sources.toolkit.chat_export import line
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import (
    Damage,
    decode_item,
    document_start,
    elements,
    first_object,
    follow_keys,
)
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.message_reader import Facts, RecordFormat
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    count,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    word,
)

if TYPE_CHECKING:
    from zipfile import ZipFile

_ZIP = b"PK\x03\x04"
#: A sample may have so many bytes, and an archive so many samples.
_LARGEST = 32 << 20
_MOST_TIMES = 200
_MOST_SAMPLES = 20_000


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.startswith(_ZIP):
        is_log = any(name in head for name in (b"_journal/start.json", b"header.json", b"samples/"))
        has_end = path.suffix == ".eval" or b"_journal/" in head
        return SourceCandidate(path, "container", path.stem) if is_log and has_end else None
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or b'"eval"' not in start:
        return None
    about = mapping(first_object(head).get("eval"))
    is_log = bool(word(about.get("task"))) and not about.keys().isdisjoint(("run_id", "task_id", "eval_id", "model"))
    return SourceCandidate(path, "container", path.stem) if is_log else None


find = finder(sniff, "*.eval", "*.json", deepest=4)


# --- samples ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
    seen: set[str] = set()
    problems: list[str] = []
    for task, sample in _zip_samples(path, problems) if is_zip else _document_samples(path, problems):
        name = f"{candidate.path.stem}/{sample.get('id')}/{sample.get('epoch', 1)}"
        if name not in seen:
            seen.add(name)
            yield Member(name.partition("/")[2], _lines(name, task, sample), native_id=name)
    if problems:
        raise PartlyUnread(problems)


def _zip_samples(path: Path, problems: list[str]) -> Iterator[tuple[Rec, Rec]]:
    from zipfile import BadZipFile, ZipFile
    from zlib import error

    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), "")
            task = mapping((_member_value(archive, header, problems) or {}).get("eval")) if header else {}
            samples = sorted(name for name in names if PurePosixPath(name).match("samples/*.json"))
            if len(samples) > _MOST_SAMPLES:
                problems.append(f"of {len(samples):,} samples, the first {_MOST_SAMPLES:,} are read")
            for name in samples[:_MOST_SAMPLES]:
                if (sample := _member_value(archive, name, problems)) is not None:
                    yield task, sample
    except (BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, error, struct.error) as failure:
        raise OSError(None, "the archive is damaged, or compressed in a way that this Python cannot read") from failure


def _member_value(archive: ZipFile, name: str, problems: list[str]) -> Rec | None:
    """Return the object in a member; None if it cannot be decoded."""
    info = archive.getinfo(name)
    if info.file_size > min(_LARGEST, max(1 << 20, _MOST_TIMES * info.compress_size)):
        problems.append(f"a member of it expands to {info.file_size:,} bytes; it is not unpacked")
        return None
    return _decode_record(archive.read(name), problems)


def _decode_record(raw: bytes, problems: list[str]) -> Rec | None:
    value, _ = decode_item(raw)
    if isinstance(value, dict):
        return value
    problems.append("a sample in it is damaged or has too many values, and is not read")
    return None


def _document_samples(path: Path, problems: list[str]) -> Iterator[tuple[Rec, Rec]]:
    if path.stat().st_size > _LARGEST:
        raise OSError(None, f"a log of more than {_LARGEST >> 20} MB is not unpacked")
    data = path.read_bytes()
    try:
        start = document_start(data)
        task = follow_keys(data, start, "eval")
        samples = follow_keys(data, start, "samples")
        about = mapping(decode_item(data[task.start : task.start + task.size])[0]) if task is not None else {}
        for one in elements(data, samples.start) if samples is not None else ():
            if (sample := _decode_record(one.cut(data), problems)) is not None:
                yield about, sample
    except Damage as damage:
        problems.append(str(damage))


def _lines(name: str, task: Rec, sample: Rec) -> Iterator[bytes]:
    head = {
        "sample": name,
        "task": task.get("task"),
        "model": task.get("model"),
        "at": sample.get("started_at") or task.get("created"),
    }
    yield line(head)
    if not listing(sample.get("messages")):
        given = sample.get("input")
        yield from map(line, listing(given) or ([{"role": "user", "content": given}] if given else []))
    for message in listing(sample.get("messages")):
        yield line(message if isinstance(message, dict) else {"other": message})
    keys = ("scores", "error", "limit", "model_usage", "total_time", "completed_at")
    yield line({"outcome": {key: sample[key] for key in keys if key in sample}, "model": task.get("model")})


# --- messages ---
def build(record: Rec) -> Message | None:
    """Return the message of a line."""
    if "sample" in record and "role" not in record:
        return None
    if "outcome" in record and "role" not in record:
        return _outcome(record)
    role, content, name = word(record.get("role")), record.get("content"), word(record.get("id"))
    if role == "user":
        blocks = tuple(blocks_of(content, "prompt"))
        return Message("user", "human", native_id=name, blocks=blocks, starts_turn=True)
    if role == "assistant":
        blocks = (*_content(content), *map(_call, listing(record.get("tool_calls"))))
        return Message("assistant", "model", native_id=name, model=word(record.get("model")), blocks=blocks)
    if role == "tool":
        error = mapping(record.get("error"))
        text = "\n".join(strings(content, "type")) or word(error.get("message"))
        result = result_block(word(record.get("tool_call_id")), text, True if error else None, record)
        if result.result is not None and error.get("type") == "timeout":
            result = replace(result, result=replace(result.result, error_class="timeout"))
        return Message("tool", "tool", "result", native_id=name, blocks=(result,))
    if role == "system":
        return Message("system", "injected", "context", native_id=name, blocks=tuple(blocks_of(content, "meta")))
    return unknown_message(record)


def _content(content: Any) -> list[Block]:
    """Return the blocks of an answer; `reasoning` holds its words under its own name."""
    if not isinstance(content, list):
        return blocks_of(content, "answer")
    found: list[Block] = []
    for part in content:
        if mapping(part).get("type") == "reasoning":
            found += text_blocks(word(part.get("reasoning")), "thinking", "thinking")
        else:
            found += blocks_of([part], "answer")
    return found


def _call(call: Any) -> Block:
    one = mapping(call)
    return call_block(word(one.get("id")), word(one.get("function")), one.get("arguments"), call)


def _outcome(record: Rec) -> Message:
    """Return the scores and errors of a sample, with all of its tokens."""
    outcome = mapping(record.get("outcome"))
    at, precision = milliseconds(outcome.get("completed_at"))
    usage = [_usage(mapping(one)) for one in mapping(outcome.get("model_usage")).values()]
    total = TokenUsage(*(sum(column) for column in zip(*usage, strict=True))) if usage else None
    texts = [f"{name}: {value}" for name, score in mapping(outcome.get("scores")).items() if (value := _score(score))]
    texts += strings(outcome.get("error")) + strings(outcome.get("limit"))
    blocks = text_blocks("\n".join(texts), "meta")
    if total is None or not any(usage[0] + (0,)):
        return Message("system", "system", "notice", at, precision, blocks=blocks)
    return Message(
        "assistant", "model", "text", at, precision, model=word(record.get("model")), blocks=blocks, usage=total
    )


def _score(score: Any) -> str:
    value = mapping(score).get("value")
    return "" if value is None or isinstance(value, (dict, list)) else str(value)


def _usage(tokens: Rec) -> tuple[int, int, int, int]:
    given, output = (count(tokens.get(key)) or 0 for key in ("input_tokens", "output_tokens"))
    read, written = (count(tokens.get(f"input_tokens_cache_{key}")) or 0 for key in ("read", "write"))
    return given, output, read, written


def _name(record: Rec) -> str:
    return word(record.get("role")) or ("head" if "sample" in record else "outcome")


def _facts(record: Rec) -> Facts:
    title = word(record.get("task")) if "sample" in record else ""
    return {"title": title, "title_rank": 1} if title else {}


_FORMAT = RecordFormat(build, _name, _facts)
reader, view = _FORMAT.reader, _FORMAT.view
