"""Finds transcripts on disk, and recognizes them elsewhere by their first bytes, even when the first line is longer.

    <config>/projects/<slug>/<session>.jsonl                      main
    <config>/projects/<slug>/<session>/subagents/**/agent-*.jsonl subagents, with agent-*.meta.json beside them
    <config>/projects/<slug>/agent-*.jsonl                        subagents of older clients
    <config>/projects/<slug>/<session>/tool-results/*             outputs too big for the transcript
    <config>/projects/<slug>/memory/*.md                          notes of the agent on a project
    <config>/tasks/<session>/*.json, todos/<session>-agent-*.json the lists of tasks of a session
    <config>/file-history/<session>/<hash>@v<n>                   copies of files before the agent changed them
    <config>/plans/<slug>.md                                      plans; the records of their session have the slug
    <config>/paste-cache/<hash>.txt                               long pasted texts; the prompt history has the hash
    <config>/history.jsonl                                        the prompts of all sessions, unpacked into one part for each

Folders behind symbolic links are not entered, except `projects` itself, which people move to other disks. A folder that
cannot be listed does not stop the rest: `find` yields all it can reach and raises that folder's `OSError` at the end.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from everturn.model.vocabulary import BACKUP
from everturn.sources.claude_code.records import KNOWN, PROMPTS, ClaudeRecord, decode, revive
from everturn.sources.claude_code.whole_files import form_of, records_in
from everturn.sources.contract import Member, SearchPlaces, SourceCandidate, read_beginning, read_end
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.json_lines import JsonLines, object_lines
from everturn.sources.toolkit.values import word

#: The beginning of a record's envelope, for a line that is cut off.
_ENVELOPE = re.compile(rb'\s*\{"(?:parentUuid|isSidechain|logicalParentUuid)":')
_SESSION_FIELD = re.compile(rb'"sessionId":"([^"\\]{1,200})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_PROJECT = re.compile(rb'"project":\s*("(?:[^"\\]|\\.){1,4096}")')


def is_transcript(head: bytes) -> bool:
    """Return whether a file with these first bytes is a transcript."""
    if form_of(head, last=True) == "document":
        return any(map(_is_message_record, records_in(head)))
    if any(map(_is_transcript_record, _decode_records(head))):
        return True
    return _ENVELOPE.match(head) is not None and _SESSION_FIELD.search(head) is not None


def session_ids(head: bytes) -> list[str]:
    """Return the session id of each record that has one."""
    found = [word(record.session_id) for record in _decode_records(head) if record.session_id]
    return found or [match.decode("utf-8", "replace") for match in _SESSION_FIELD.findall(head)]


def workspace(head: bytes) -> str:
    """Return the first working folder that the beginning of a file names; "" without one."""
    if head.startswith(PROMPTS):
        found = _PROJECT.search(head)
    else:
        for record in _decode_records(head):
            if record.cwd:
                return word(record.cwd)
        found = _FOLDER.search(head)
    if found is None:
        return ""
    try:
        return word(msgspec.json.decode(found[1]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _decode_records(head: bytes) -> Iterator[ClaudeRecord]:
    if form_of(head, last=True) == "document":
        yield from records_in(head)
        return
    for _, _, record, _ in JsonLines(decode, revive).split(object_lines(head), 0, last=True):
        if record is not None:
            yield record


def _is_message_record(record: ClaudeRecord) -> bool:
    """Return whether a record of a document is a message; it may have lost all of its envelope but the time."""
    return record.type in ("user", "assistant") and record.message is not None and bool(record.timestamp)


def _is_transcript_record(record: ClaudeRecord) -> bool:
    """Return whether a record is Claude Code's. Other formats may share the type, but not the envelope."""
    if record.type in ("user", "assistant"):
        return record.message is not None and bool(
            record.session_id or (record.uuid and record.parent_uuid is not None)
        )
    if record.type == "summary":
        return bool(record.leaf_uuid)
    if record.type in ("file-history-snapshot", "file-history-delta"):
        return True
    if record.type in ("system", "progress", "attachment"):
        return bool(record.session_id and record.uuid)
    return record.type in KNOWN and bool(record.session_id)


NAME = "claude_code"

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SESSION_NAME = re.compile(_UUID, re.IGNORECASE)
_SURE_NAME = re.compile(rf"(?:\d{{4}}-\d\d-\d\d-)?({_UUID})\.jsonl", re.IGNORECASE)
_OUTPUTS = "tool-results"
_BACKUPS = "file-history"
_PLANS, _PASTES, _HISTORY = "plans", "paste-cache", "history.jsonl"
_MEMORY, _TASKS, _TODOS = "memory", "tasks", "todos"
_TODO_NAME = re.compile(rf"({_UUID})-agent-{_UUID}\.json", re.IGNORECASE)
_BACKUP_NAME = re.compile(r"[0-9a-f]{6,64}@v[0-9]{1,9}")
_DEEPEST = 12
_MOST_BESIDE = 20  # transcripts that are looked at to find the folder of a project
_MOST_AFTER = 50  # transcripts that are looked at to find the session of a plan


def roots(places: SearchPlaces) -> list[Path]:
    """Return the existing folders named by the user or the environment, and the default ones; each once."""
    folders = [*places.extra.get(NAME, ()), *_environment_folders(places)]
    config = places.env.get("XDG_CONFIG_HOME", "")
    folders += [places.home / ".claude", Path(config or places.home / ".config") / "claude"]
    existing: dict[str, Path] = {}
    for folder in folders:
        if folder.is_dir():
            existing.setdefault(os.path.realpath(_start(folder)), folder.absolute())
    return list(existing.values())


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield all files below a root: a configuration folder, its `projects`, or any folder with transcripts."""
    start = _start(root)
    failure: OSError | None = None
    try:
        yield from find_files(start, partial(_pick_file, len(str(start))), deepest=_DEEPEST, in_order=False)
    except OSError as first:
        failure = first
    if start != root:
        yield from _find_side_files(root)
    if failure is not None:
        raise failure


def _find_side_files(root: Path) -> Iterator[SourceCandidate]:
    """Yield what belongs to sessions elsewhere in a configuration folder."""
    folders = (
        (_BACKUPS, _pick_backup, 1), (_TASKS, _pick_tasks, 1), (_TODOS, _pick_tasks, 1),
        (_PLANS, partial(_pick_side_file, ".md"), 0), (_PASTES, partial(_pick_side_file, ".txt"), 0),
    )  # fmt: skip
    for name, pick, deepest in folders:
        if (root / name).is_dir():
            yield from find_files(root / name, pick, deepest=deepest, in_order=False)
    if (root / _HISTORY).is_file():
        yield SourceCandidate(root / _HISTORY, "container", _HISTORY)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """Classify a file by its first bytes; None when it is not Claude Code's."""
    session = _session_folder(str(path.parent))
    known = _classify_name(path.name, str(path), session, path.parent.name)
    if known is not None and known.kind in ("output", "meta", BACKUP):
        return known
    if not is_transcript(head):
        return None
    ids = Counter(session_ids(head))
    usual = ids.most_common(1)[0][0] if ids else ""
    if path.name.startswith("agent-"):
        parent = (known.parent if known else "") or usual
        return SourceCandidate(path, "subagent", f"{parent}/{path.stem}" if parent else path.stem, parent)
    named = _SESSION_NAME.search(path.stem)
    return SourceCandidate(path, "main", named[0].lower() if named else usual or path.stem)


def _environment_folders(places: SearchPlaces) -> Iterable[Path]:
    """Return the folders in CLAUDE_CONFIG_DIR: one for the client, but tools around it allow several."""
    value = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    if not value:
        return []
    if places.expand(value).is_dir():
        return [places.expand(value)]
    separator = ";" if places.platform == "win32" else ":"
    return [places.expand(part.strip()) for part in re.split(f"[,{separator}]", value) if part.strip()]


def _start(root: Path) -> Path:
    projects = root / "projects"
    return projects if projects.is_dir() else root


def _pick_file(start: int, entry: os.DirEntry[str]) -> SourceCandidate | None:
    """Classify a file; only folders behind the first `start` characters of its path can name its session."""
    folder = os.path.dirname(entry.path)
    found = _classify_name(entry.name, entry.path, _session_folder(folder[start:]), os.path.basename(folder))
    if found is None and entry.name.endswith(".jsonl") and _is_readable_file(entry):
        return sniff(Path(entry.path), read_beginning(entry.path))
    return None if found is not None and entry.is_symlink() and not _is_readable_file(entry) else found


def _pick_backup(entry: os.DirEntry[str]) -> SourceCandidate | None:
    session = os.path.basename(os.path.dirname(entry.path))
    return _backup(entry.path, session) if entry.is_file(follow_symlinks=False) else None


def _pick_tasks(entry: os.DirEntry[str]) -> SourceCandidate | None:
    folder = os.path.basename(os.path.dirname(entry.path))
    return _tasks(entry.path, folder) if entry.is_file(follow_symlinks=False) else None


def _tasks(path: str, folder: str) -> SourceCandidate | None:
    """Return the list of tasks of a session."""
    name = os.path.basename(path)
    if folder == _TODOS and (named := _TODO_NAME.fullmatch(name)):
        session = named[1].lower()
        return SourceCandidate(Path(path), "meta", f"{session}/{_TODOS}/{name}", session)
    above = os.path.basename(os.path.dirname(os.path.dirname(path)))
    if above == _TASKS and _SESSION_NAME.fullmatch(folder) and name.endswith(".json") and not name.startswith("."):
        return SourceCandidate(Path(path), "meta", f"{folder.lower()}/{_TASKS}/{name}", folder.lower())
    return None


def _pick_side_file(ending: str, entry: os.DirEntry[str]) -> SourceCandidate | None:
    """Return a plan or a pasted text; `owner_of` finds its session when it is archived first."""
    if not entry.name.endswith(ending) or not entry.is_file(follow_symlinks=False):
        return None
    folder = os.path.basename(os.path.dirname(entry.path))
    return SourceCandidate(Path(entry.path), "meta", f"{folder}/{entry.name}")


def owner_of(path: Path) -> str:
    """See `Source.owner_of`: the session of a plan by its records, that of a pasted text by the prompt history."""
    root = path.parent.parent
    if path.parent.name == _PASTES:
        name = f'"{path.stem}"'.encode()
        lines = (line for line in _read_lines(root / _HISTORY) if name in line)
        return next((session for line in lines if (session := _session_of_prompt(line))), "")
    if path.parent.name != _PLANS:
        return ""
    mark = re.compile(rb'"slug":\s*"' + re.escape(path.stem.encode()) + rb'"')
    for one in _written_after(root / "projects", path):
        if mark.search(read_beginning(one)) or mark.search(read_end(one)):
            return one.stem.lower()
    return ""


def _written_after(projects: Path, path: Path) -> list[Path]:
    """Return the transcripts that went on after a file was written, the first to end first."""
    try:
        at = path.stat().st_mtime
        found = [(one.stat().st_mtime, one) for one in projects.glob("*/*.jsonl") if _SESSION_NAME.fullmatch(one.stem)]
    except OSError:
        return []
    return [one for ended, one in sorted(found) if ended >= at - 1][:_MOST_AFTER]


def _read_lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError:
        return []


def _session_of_prompt(line: bytes) -> str:
    found = _SESSION_FIELD.search(line.replace(b'": "', b'":"'))
    return found[1].decode("utf-8", "replace").lower() if found is not None else ""


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Yield the prompts of each session, and those without one by project."""
    groups: dict[tuple[str, str], list[bytes]] = {}
    for line in path.read_bytes().splitlines(keepends=True):
        session = _session_of_prompt(line)
        named = _PROJECT.search(line) if not session else None
        groups.setdefault((session, named[1].decode("utf-8", "replace") if named else ""), []).append(line)
    for (session, project), lines in groups.items():
        own = session or re.sub(r"[^A-Za-z0-9]", "-", project.strip('"')) or "other"
        yield Member(own, iter(lines), "meta", f"{session}/{_HISTORY}" if session else f"{_HISTORY}/{own}", session)


def _is_of_project(path: str) -> bool:
    """Whether a file is in a folder of a project, as the client names it: many folders are called `memory`."""
    project = os.path.dirname(os.path.dirname(path))
    return os.path.basename(os.path.dirname(project)) == "projects" and "-" in os.path.basename(project)


def _memory(path: str) -> SourceCandidate:
    """Return a note of the agent on a project."""
    project = os.path.basename(os.path.dirname(os.path.dirname(path)))
    return SourceCandidate(Path(path), "meta", f"{_MEMORY}/{project}/{os.path.basename(path)}")


def folder_of(path: Path) -> str:
    """Return the working folder of the project that a note is about, as a transcript beside it names it."""
    if path.parent.name != _MEMORY:
        return ""
    try:
        names = sorted(name for name in os.listdir(path.parent.parent) if name.endswith(".jsonl"))
    except OSError:
        return ""
    heads = (read_beginning(path.parent.parent / name) for name in names[:_MOST_BESIDE])
    return next((folder for head in heads if (folder := workspace(head))), "")


def _backup(path: str, session: str) -> SourceCandidate | None:
    name = os.path.basename(path)
    if not (_SESSION_NAME.fullmatch(session) and _BACKUP_NAME.fullmatch(name)):
        return None
    return SourceCandidate(Path(path), BACKUP, f"{session.lower()}/{_BACKUPS}/{name}", session.lower())


@lru_cache(maxsize=64)
def _session_folder(folder: str) -> str:
    """Return the innermost folder named like a session; "" without one."""
    return next((part for part in reversed(Path(folder).parts) if _SESSION_NAME.fullmatch(part)), "")


def _is_readable_file(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a file: no pipe, which would block for ever, and no dangling or circular link."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _classify_name(name: str, path: str, session: str, folder: str) -> SourceCandidate | None:
    """Classify a file by its name, its session folder and the name of its own folder."""
    if session == folder and os.path.basename(os.path.dirname(os.path.dirname(path))) == _BACKUPS:
        return _backup(path, session)
    if folder == _MEMORY and name.endswith(".md") and _is_of_project(path):
        return _memory(path)
    if (folder == _TODOS or session == folder) and (tasks := _tasks(path, folder)) is not None:
        return tasks
    if folder == _OUTPUTS and session:
        return SourceCandidate(Path(path), "output", f"{session}/{_OUTPUTS}/{name}", session)
    if name.startswith("agent-"):
        start = f"{session}/" if session else ""
        if name.endswith(".meta.json"):
            return SourceCandidate(Path(path), "meta", start + name.removesuffix(".json"), session)
        if name.endswith(".jsonl"):
            return SourceCandidate(Path(path), "subagent", start + name.removesuffix(".jsonl"), session)
    sure = _SURE_NAME.fullmatch(name)
    return SourceCandidate(Path(path), "main", sure[1].lower()) if sure else None
