"""Context for a model and the status line, prepared by a drain and read by `everturn-hook` while an agent waits.

A folder has files per workspace and session, named by a hash: where the last session of a workspace stopped, the texts that
are in view, and how much of a session is archived. A prompt that refers to what is out of view is searched for by
`everturn recall hint`, in a process of its own and for `HINT_SECONDS` at most; without a sure answer nothing is printed.
The first line of a file is the name it belongs to; the rest is ready to be printed. It is opt-in: nothing is prepared
without `everturn install --where-you-were`, `--hints` or `--statusline`. `clear` deletes all of it.

The reading half imports `os` and the hook alone (others only where needed) and opens no archive. Only prompts with one of `PHRASES` are
examined by `everturn.derive.references`.
"""

import os

from everturn.hook import members, next_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


WHERE, WINDOW, STATUS = ".where", ".window", ".status"
ASK = "ask"  # an empty file: the archive is encrypted, so nothing is prepared and the archive itself is asked
HINT_SECONDS = 3.0  # of a search for a hint; agents wait 10 seconds for a hook
BETWEEN = "\x1e"  # the texts of a window
PHRASES = (
    b"like we discussed", b"as before", b"remember when", b"go back to", b"that file", b"that error", b"that function",
    b"what we did", b"earlier", b"the previous", b"as i said", b"like i mentioned", b"that thing", b"we already",
)  # fmt: skip
_NEW = ("startup", "clear")  # starts of sessions without anything of the last one in view
_PROMPT = 100_000  # bytes of a prompt to examine
_PREPARED = 4 << 20  # bytes of a prepared file
_LONGEST = 4096  # bytes of a name
_OLD = 30 * 86_400_000  # milliseconds, after which a file is deleted


def context_for(event: bytes, words: list[str], folder: str) -> bytes:
    """Return the output for the model at this event, usually nothing. Raises OSError if nothing is prepared."""
    plain = event.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    fields = {key: event[first:last] for key, first, last in members(plain, next_word(plain, 0)) if event[first] == 34}
    text = b""
    if "--where-you-were" in words and _json_string(fields.get(b"source", b'""')) in _NEW:
        text = _last_session(folder, _json_string(fields[b"cwd"])) if b"cwd" in fields else b""
    elif "--hints" in words and has_phrase(fields.get(b"prompt", b"")):
        text = _reference_hint(folder, fields)
    if not text or b"hook_event_name" not in fields:
        return b""
    inner = b'"hookEventName":%b,"additionalContext":%b' % (fields[b"hook_event_name"], text)
    return b'{"hookSpecificOutput":{%b}}\n' % inner


def has_phrase(prompt: bytes) -> bool:
    """Whether a prompt, as encoded in the event, contains one of the phrases."""
    prompt = prompt[:_PROMPT].replace(b"\\n", b" ").replace(b"\\t", b" ").replace(b"\\r", b" ").lower()
    prompt = b" ".join(prompt.split())
    return any(phrase in prompt for phrase in PHRASES)


def mark_of(name: str) -> str:
    """Return the file name for a folder or session (FNV-1a)."""
    number = 0xCBF29CE484222325
    for byte in name.encode("utf-8", "surrogatepass")[-_LONGEST:]:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{number:016x}"


def read_prepared(folder: str, name: str, ending: str) -> bytes:
    """Return the text prepared for a folder or session. Raises OSError if there is none."""
    file = os.open(os.path.join(folder, mark_of(name) + ending), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        owner, _, text = os.read(file, _PREPARED).partition(b"\n")
    finally:
        os.close(file)
    return text if owner == name.encode("utf-8", "surrogatepass") else b""


def _last_session(folder: str, workspace: str) -> bytes:
    """Return where the last session of a workspace stopped. Raises OSError if nothing is prepared."""
    try:
        return read_prepared(folder, workspace, WHERE)
    except OSError:
        if not os.path.exists(os.path.join(folder, ASK)):
            raise
    return _ask_archive(["where", f"--workspace={workspace}"], b"")


def _reference_hint(folder: str, fields: dict[bytes, bytes]) -> bytes:
    from everturn.derive.references import find_reference

    session = _json_string(fields.get(b"session_id", b'""'))
    try:
        texts = read_prepared(folder, session, WINDOW).decode("utf-8", "replace")
    except OSError:
        texts = ""  # nothing is known of the session yet
    prompt = _json_string(fields[b"prompt"])
    if find_reference(prompt, texts.split(BETWEEN)) is None:
        return b""
    workspace = _json_string(fields.get(b"cwd", b'""'))
    return _ask_archive(["hint", f"--session={session}", f"--workspace={workspace}"], prompt.encode("utf-8", "replace"))


def _ask_archive(words: list[str], given: bytes) -> bytes:
    """Return what `everturn recall` prints; nothing if it is not sure or takes too long."""
    import subprocess
    import sys

    command = [sys.executable, "-P", "-m", "everturn", "recall", *words]  # -P: no modules from the agent's folder
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=HINT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return b""
    text = done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
    return as_printed(text).encode() if text else b""


def _json_string(value: bytes) -> str:
    if b"\\" not in value:
        return value[1:-1].decode("utf-8", "replace")
    import json  # only where it is needed: the hook counts its imports

    return str(json.loads(value))


# --- writing ---
def prepare_context(folder: str, name: str, ending: str, text: str) -> None:
    """Prepare a text for a workspace or session, atomically. Raises OSError."""
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, mark_of(name) + ending)
    part = f"{path}.{os.getpid()}"
    data = f"{name}\n{text}".encode("utf-8", "replace")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)
    os.replace(part, path)


def let_ask(folder: str, is_encrypted: bool) -> None:
    """Let the hook ask the archive itself, or no longer. Raises OSError."""
    path = os.path.join(folder, ASK)
    if is_encrypted:
        os.makedirs(folder, 0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(path)
    elif os.path.exists(path):
        os.unlink(path)


def as_printed(text: str) -> str:
    """Encode a text as the hook prints it."""
    import json

    return json.dumps(text)


def clear(folder: str, before: int | None = None) -> list[str]:
    """Delete prepared files, or only those that are outdated at time `before` (milliseconds); return their paths."""
    deleted: list[str] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return deleted
    for name in names:
        path = os.path.join(folder, name)
        try:
            if before is None or os.stat(path).st_mtime_ns < (before - _OLD) * 1_000_000:
                os.unlink(path)
                deleted.append(path)
        except OSError:
            pass
    return deleted


def read_status(data: bytes, folder: str) -> "dict[str, Any]":
    """Return the status of the session that an agent describes in JSON. `waiting` are bytes not archived yet, if known."""
    about = _read_object(data)
    known = _last_status(str(about.get("session_id") or ""), folder)
    waiting = _waiting_bytes(str(about.get("transcript_path") or ""), known)
    return {
        **known, "tokens": known.get("tokens") or _context_tokens(about), "archived": bool(known), "waiting": waiting,
    }  # fmt: skip


def status_line(status: "dict[str, Any]", now: int) -> str:
    parts = [_archived_text(status)]
    parts += [f"{status['tokens']:,} tokens"] if status["tokens"] else []
    parts += [f"synced {_age_text(now - status['at'])}"] if "at" in status else []
    return "everturn: " + " · ".join(parts)


def _read_object(data: bytes) -> "dict[str, Any]":
    import json

    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _last_status(session: str, folder: str) -> "dict[str, Any]":
    """Return the status that the last drain prepared."""
    try:
        return _read_object(read_prepared(folder, session, STATUS))
    except OSError:
        return {}


def _waiting_bytes(transcript: str, known: "dict[str, Any]") -> "int | None":
    """Return the bytes of the transcript that are not archived yet, or None if unknown."""
    try:
        return max(0, os.stat(transcript).st_size - int(known["size"]))
    except (OSError, KeyError, ValueError):
        return None


def _context_tokens(about: "dict[str, Any]") -> int:
    window = about.get("context_window")
    window = window if isinstance(window, dict) else {}
    given = (window.get(key) for key in ("total_input_tokens", "total_output_tokens"))
    return sum(number for number in given if isinstance(number, int))


def _archived_text(status: "dict[str, Any]") -> str:
    if not status["archived"]:
        return "not archived yet"
    waiting = status["waiting"]
    return "archived" if not waiting else f"archived but for {max(1, round(waiting / 1000)):,} kB"


def _age_text(milliseconds: int) -> str:
    seconds = max(0, milliseconds // 1000)
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word} ago"
    return "now" if seconds < 5 else f"{seconds} s ago"
