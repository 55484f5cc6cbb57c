"""Every real file counted a second time, by code that knows nothing of ours: records, calls, tokens, dates.

Each format has one small function that reads its files with the standard library only. What it counts is compared, file by
file, with the rows that `everturn add` made of the same file. A file that was left out without a word, and a problem that
is none, count as wrong too.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.corpora import REAL, Corpora
from benchmarks.figures import Figure, exact
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store, open_store

ROOT = REAL.parent.resolve()
#: Folders without transcripts. Recordings of screens are not recounted here: `benchmarks terminal` has their truth.
_NO_TRANSCRIPTS = ("hooks", "licences")
_COARSE = 1000  # ms: some formats have seconds only


@dataclass
class Tally:
    """What a file holds. None: the format does not say."""

    records: int | None = None
    prompts: int | None = None
    calls: int | None = None
    output: int | None = None  # tokens
    input: int | None = None  # tokens that were not in the cache
    times: list[int] = field(default_factory=list)

    def add(self, name: str, n: int = 1) -> None:
        """Count something."""
        setattr(self, name, (getattr(self, name) or 0) + n)


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Compare both counts, format by format."""
    if not ROOT.is_dir():
        yield Figure("independent recount", None, note=corpora.why_not_real)
        return
    with closing(open_store("memory:")) as store:
        job = SyncJob(store, all_sources(), SearchPlaces(ROOT / "no-home", {}, "linux"), Policy(), "m", "o", lambda: 1)
        paths = [path for path in sorted(ROOT.rglob("*")) if path.is_file() and path.parent != ROOT]
        report = add_paths(job, paths)
        told = {path for path, _ in [*report.skipped, *report.failed]} | set(report.other)
        yield exact("files left out without a word", _unnamed(store, paths, told), f"{len(paths):,} files")
        yield exact("transcripts left out", [path for path in told if _folder(Path(path)) not in _NO_TRANSCRIPTS], "")
        for name, recount in RECOUNTS.items():
            files = [path for path in paths if _folder(path) == name]
            wrong = [text for path in files for text in _compare(store, path, recount)]
            yield exact(f"counted differently, {name}", wrong, f"{len(files):,} files")
        yield exact("problems in whole files", _false_problems(store), "")


def _folder(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def _unnamed(store: Store, paths: list[Path], told: set[str]) -> list[str]:
    known = {file.path for file, _ in store.files()}
    return [str(path) for path in paths if str(path) not in known and str(path) not in told]


def _false_problems(store: Store) -> list[str]:
    """Problems of files that the standard library reads without any."""
    wrong = []
    for file, version in store.files():
        path = Path(file.path)
        if path.suffix in (".json", ".jsonl") and store.problems(version.id) and _is_whole(path):
            wrong.append(f"{file.path}: {store.problems(version.id)[0].reason}")
    return wrong


def _is_whole(path: Path) -> bool:
    data = path.read_text("utf-8", "replace")
    try:
        if path.suffix == ".json":
            json.loads(data)
        else:
            all(isinstance(json.loads(line), dict) for line in data.split("\n") if line.strip())
    except ValueError:
        return False
    return "\ufffd" not in data and (path.suffix == ".json" or data.endswith("\n"))


def _compare(store: Store, path: Path, recount: Callable[[Path], Tally]) -> Iterator[str]:
    """Yield every number that differs."""
    wanted, found = recount(path), _archived(store, path)
    for name in ("records", "prompts", "calls", "output", "input"):
        if getattr(wanted, name) is not None and getattr(wanted, name) != getattr(found, name):
            yield f"{path.name}: {name} {getattr(found, name)}, recounted {getattr(wanted, name)}"
    for name, pick in (("first", min), ("last", max)):
        if wanted.times and (not found.times or abs(pick(wanted.times) - pick(found.times)) > _COARSE):
            yield f"{path.name}: {name} time differs"


def _archived(store: Store, path: Path) -> Tally:
    found = Tally(0, 0, 0, 0, 0)
    for file, version in store.files():
        if file.path != str(path) and not file.path.startswith(f"{path}#"):
            continue
        if file.kind != "container":
            found.add("records", sum(row.n for row in store.census(version.id)))
        for session in store.sessions_in(version.id):
            found.add("prompts", session.n_prompts)
            found.add("calls", sum(call.status != "orphan" for call in store.calls(session.id)))
            found.add("output", sum(step.tokens_out for step in store.steps(session.id)))
            found.add("input", sum(step.tokens_in for step in store.steps(session.id)))
            found.times += [at for at in (session.started, session.ended) if at is not None]
    return found


# --- the other side: the standard library only ---
def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of lines. Two records on one line are two."""
    decoder = json.JSONDecoder()
    data = path.read_text("utf-8", "replace")
    if path.suffix == ".json" and (log := _log_lines(data)):
        yield from log
        return
    for line in data.split("\n"):
        text = line.strip("\0 \r\t\ufeff")
        while text:
            try:
                record, end = decoder.raw_decode(text)
            except ValueError:
                record, end = {}, len(text)
            yield _mapping(record)
            text = text[end:].lstrip()


def _log_lines(data: str) -> list[dict[str, Any]]:
    """Return the records of a session of the web client, which is one document."""
    try:
        return _items(_mapping(json.loads(data)).get("loglines"))
    except ValueError:
        return []


def _moment(text: object) -> list[int]:
    if isinstance(text, int | float):
        return [int(text if text > 1e11 else text * 1000)]
    if not isinstance(text, str) or not re.match(r"\d{4}-\d\d-\d\dT", text):
        return []
    return [int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)]


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _claude_code(path: Path) -> Tally:
    tally = Tally(0, None, 0, 0)
    spent: dict[str, tuple[int, int]] = {}  # the last usage of a response counts
    seen: set[str] = set()
    for record in _lines(path):
        tally.add("records")
        inner = _mapping(_mapping(record.get("data")).get("message")) if record.get("type") == "progress" else {}
        for one in (record, inner):
            message = _mapping(one.get("message"))
            if one.get("type") == "assistant":
                for block in _items(message.get("content")):
                    if block.get("type") == "tool_use" and (key := f"{one.get('uuid')}{block.get('id')}") not in seen:
                        seen.add(key)
                        tally.add("calls")
                usage = _mapping(message.get("usage"))
                if any(isinstance(n, int) and n for n in usage.values()):
                    spent[str(message.get("id"))] = (usage.get("input_tokens") or 0, usage.get("output_tokens") or 0)
        if record.get("type") in ("user", "assistant", "system", "attachment"):
            tally.times += _moment(record.get("timestamp"))
    tally.input, tally.output = sum(n for n, _ in spent.values()), sum(n for _, n in spent.values())
    return tally


def _codex(path: Path) -> Tally:
    tally = Tally(0, None, 0)
    for record in _lines(path):
        tally.add("records")
        item = _mapping(record.get("payload")) if record.get("type") == "response_item" else record
        kinds = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
        tally.add("calls", item.get("type") in kinds)
        if "payload" in record:
            tally.times += _moment(record.get("timestamp"))
        total = _mapping(_mapping(_mapping(record.get("payload")).get("info")).get("total_token_usage"))
        tally.output = total.get("output_tokens", tally.output)
    return tally


def _gemini(path: Path) -> Tally:
    messages = _items(json.loads(path.read_text("utf-8"))["messages"])
    tally = Tally(None, sum(one.get("type") == "user" for one in messages), 0, 0)
    for one in messages:
        tally.add("calls", len(_items(one.get("toolCalls"))))
        tokens = _mapping(one.get("tokens"))
        tally.add("output", int(tokens.get("output") or 0) + int(tokens.get("thoughts") or 0))
        tally.times += _moment(one.get("timestamp"))
    return tally


def _opencode(path: Path) -> Tally:
    messages = _items(json.loads(path.read_text("utf-8"))["messages"])
    tally = Tally(None, None, 0, 0)
    for one in messages:
        info = _mapping(one.get("info"))
        tally.add("calls", sum(part.get("type") == "tool" for part in _items(one.get("parts"))))
        if info.get("role") == "assistant":
            tokens = _mapping(info.get("tokens"))
            tally.add("output", int(tokens.get("output") or 0) + int(tokens.get("reasoning") or 0))
        tally.times += _moment(_mapping(info.get("time")).get("created"))
    return tally


def _pi(path: Path) -> Tally:
    tally = Tally(0, 0, 0, 0)
    for record in _lines(path):
        tally.add("records")
        message = _mapping(record.get("message"))
        tally.add("prompts", message.get("role") == "user")
        tally.add("calls", sum(block.get("type") == "toolCall" for block in _items(message.get("content"))))
        tally.add("output", int(_mapping(message.get("usage")).get("output") or 0))
        tally.times += _moment(record.get("timestamp")) if record.get("type") == "message" else []
    return tally


def _copilot(path: Path) -> Tally:
    tally = Tally(0, 0, 0)
    for record in _lines(path):
        tally.add("records")
        kind = str(record.get("type"))
        is_skill = "source" in _mapping(record.get("data"))
        tally.add("prompts", kind == "user.message" and not is_skill)
        tally.add("calls", kind == "tool.execution_start")
        if kind.endswith((".message", ".execution_start", ".execution_complete", ".info", "_change", "_changed")):
            tally.times += _moment(record.get("timestamp"))
    return tally


def _messages(path: Path) -> Tally:
    text = path.read_text("utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        whole = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, list) and any("messages_display" in one for one in _items(whole)):
        return Tally()  # a transcript for people, without structure
    found = _items(whole if isinstance(whole, list) else whole.get("history") or whole.get("messages"))
    turns = [one for item in found for one in (_items(item.get("messages")) or [item])]
    calls = sum(len(_items(one.get("tool_calls"))) for one in turns)
    # Older trajectories have one command per answer instead.
    return Tally(None, None, calls or sum(bool(one.get("action")) for one in turns if one.get("role") == "assistant"))


def _cline(path: Path) -> Tally:
    shown = _items(json.loads(path.read_text("utf-8")))
    # The question whether the task is done repeats the statement that it is.
    told = [one for one in shown if one.get("ask") != "completion_result"]
    tally = Tally(times=[at for one in told for at in _moment(one.get("ts"))])
    for one in shown:
        if one.get("say") == "api_req_started":
            request = _mapping(json.loads(str(one.get("text") or "{}")))
            tally.add("output", int(request.get("tokensOut") or 0))
            tally.add("input", int(request.get("tokensIn") or 0))
    return tally


def _goose(path: Path) -> Tally:
    tally = Tally(None, None, 0)
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        for content, created in connection.execute("SELECT content_json, created_timestamp FROM messages"):
            tally.add("calls", sum(block.get("type") == "toolRequest" for block in _items(json.loads(content))))
            tally.times += _moment(created)
    return tally


def _chatgpt(path: Path) -> Tally:
    tally = Tally(None, 0)
    for talk in _items(json.loads(path.read_text("utf-8"))):
        for node in _mapping(talk.get("mapping")).values():
            message = _mapping(_mapping(node).get("message"))
            tally.add("prompts", _mapping(message.get("author")).get("role") == "user")
            tally.times += _moment(message.get("create_time"))
    return tally


def _log(path: Path) -> Tally:
    return Tally(sum(1 for _ in _lines(path)))


def _specstory(path: Path) -> Tally:
    """Count what people typed: not what the client put in, and not the text that a command stands for."""
    parts = re.split(r"^_\*\*(User|Agent)[^*\n]*\*\*_[ \r]*$", path.read_text("utf-8", "replace"), flags=re.M)
    prompts, is_command = 0, False
    for speaker, text in zip(parts[1::2], map(str.lstrip, parts[2::2]), strict=True):
        if speaker == "User":
            prompts += not (is_command or text.startswith(("<local-command-", "[Request interrupted")))
        is_command = speaker == "User" and text.startswith("<command-message>")
    return Tally(prompts=prompts)


def _aider(path: Path) -> Tally:
    text = path.read_text("utf-8", "replace")
    return Tally(prompts=len(re.findall(r"(?:^(?!####).*\n|\A)#### ", text, re.M)))


RECOUNTS: dict[str, Callable[[Path], Tally]] = {
    "aider": _aider, "chatgpt": _chatgpt, "claude-code": _claude_code, "claude-code-fixture": _claude_code,
    "claude-code-streamjson": _log, "cline": _cline, "codex": _codex, "codex-tui-log": _log, "copilot-cli": _copilot,
    "gemini": _gemini, "goose": _goose, "openai-messages": _messages, "opencode-export": _opencode, "pi": _pi,
    "specstory": _specstory,
}  # fmt: skip
