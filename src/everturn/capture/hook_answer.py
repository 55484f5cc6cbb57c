"""Context for a model, made ready by a drain and read by `everturn-hook` while an agent waits for it.

In a folder of its own, for each workspace and session by a mark of its name: where the last session of a workspace stopped,
the same as a hint about a prompt that points to what is out of view, the words that are in view, and how much of a session is
archived. The first line of a file is the name it is for; what follows is ready to be printed. It is opt-in: without
`everturn install --where-you-were`, `--hints` or `--statusline` nothing is prepared. `clear` takes all of it away.

The reading half imports `os` and the hook alone. Only a prompt that has one of `PHRASES` in it is looked at more closely, by
`everturn.derive.references`.

One line for an agent's status line: whether its session is archived, its tokens, the last sync.

It reads what the last drain has made ready and opens no archive; `everturn-hook --statusline` is the quick way to it.
"""

import os

from everturn.hook import members, next_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


WHERE, HINT, WINDOW, STATUS = ".where", ".hint", ".window", ".status"
BETWEEN = "\x1e"  # the texts of a window
PHRASES = (
    b"like we discussed", b"as before", b"remember when", b"go back to", b"that file", b"that error", b"that function",
    b"what we did", b"earlier", b"the previous", b"as i said", b"like i mentioned", b"that thing", b"we already",
)  # fmt: skip
_NEW = ("startup", "clear")  # how a session begins that has nothing of the last one in view
_PROMPT = 100_000  # bytes of a prompt that are looked at
_PREPARED = 4 << 20  # bytes of a prepared file
_LONGEST = 4096  # bytes of a name
_OLD = 30 * 86_400_000  # milliseconds, after which nobody comes back


def context_for(event: bytes, words: list[str], folder: str) -> bytes:
    """What is printed for the model at this event, mostly nothing. Raises OSError where nothing is prepared."""
    plain = event.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    said = {key: event[first:last] for key, first, last in members(plain, next_word(plain, 0)) if event[first] == 34}
    text = b""
    if "--where-you-were" in words and _json_string(said.get(b"source", b'""')) in _NEW:
        text = read_prepared(folder, _json_string(said[b"cwd"]), WHERE) if b"cwd" in said else b""
    elif "--hints" in words and has_phrase(said.get(b"prompt", b"")):
        text = _reference_hint(folder, said)
    if not text or b"hook_event_name" not in said:
        return b""
    inner = b'"hookEventName":%b,"additionalContext":%b' % (said[b"hook_event_name"], text)
    return b'{"hookSpecificOutput":{%b}}\n' % inner


def has_phrase(prompt: bytes) -> bool:
    """Whether a prompt, as it stands in the event, has one of the phrases in it."""
    prompt = prompt[:_PROMPT].replace(b"\\n", b" ").replace(b"\\t", b" ").replace(b"\\r", b" ").lower()
    prompt = b" ".join(prompt.split())
    return any(phrase in prompt for phrase in PHRASES)


def mark_of(name: str) -> str:
    """The file name that stands for a folder or a session (FNV-1a)."""
    number = 0xCBF29CE484222325
    for byte in name.encode("utf-8", "surrogatepass")[-_LONGEST:]:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{number:016x}"


def read_prepared(folder: str, name: str, ending: str) -> bytes:
    """What was prepared for a folder or a session. Raises OSError where there is nothing."""
    file = os.open(os.path.join(folder, mark_of(name) + ending), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        owner, _, text = os.read(file, _PREPARED).partition(b"\n")
    finally:
        os.close(file)
    return text if owner == name.encode("utf-8", "surrogatepass") else b""


def _reference_hint(folder: str, said: dict[bytes, bytes]) -> bytes:
    from everturn.derive.references import HINT as alone
    from everturn.derive.references import find_reference

    try:
        texts = read_prepared(folder, _json_string(said.get(b"session_id", b'""')), WINDOW).decode("utf-8", "replace")
    except OSError:
        texts = ""  # a session of which nothing is known yet
    if find_reference(_json_string(said[b"prompt"]), texts.split(BETWEEN)) is None:
        return b""
    try:
        return read_prepared(folder, _json_string(said.get(b"cwd", b'""')), HINT) or b'"%b"' % alone.encode()
    except OSError:
        return b'"%b"' % alone.encode()


def _json_string(value: bytes) -> str:
    """A string of JSON."""
    if b"\\" not in value:
        return value[1:-1].decode("utf-8", "replace")
    import json  # only where it is needed: the hook counts its imports

    return str(json.loads(value))


# the writing half -----------------------------------------------------------------------------------------------------
def prepare_context(folder: str, name: str, ending: str, text: str) -> None:
    """Make a text ready for a workspace or a session; whole, or not at all. Raises OSError."""
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, mark_of(name) + ending)
    beside = f"{path}.{os.getpid()}"
    data = f"{name}\n{text}".encode("utf-8", "replace")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)
    os.replace(beside, path)


def as_printed(text: str) -> str:
    """A text as the hook prints it."""
    import json

    return json.dumps(text)


def clear(folder: str, before: int | None = None) -> list[str]:
    """Take away what was prepared, or only what is older than that (milliseconds), and tell which files those were."""
    gone: list[str] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return gone
    for name in names:
        path = os.path.join(folder, name)
        try:
            if before is None or os.stat(path).st_mtime_ns < (before - _OLD) * 1_000_000:
                os.unlink(path)
                gone.append(path)
        except OSError:
            pass
    return gone


def read_status(data: bytes, folder: str) -> "dict[str, Any]":
    """What is known of the session that an agent describes in JSON. `waiting` are bytes not archived yet, if known."""
    about = _read_object(data)
    known = _last_status(str(about.get("session_id") or ""), folder)
    waiting = _waiting_bytes(str(about.get("transcript_path") or ""), known)
    return {
        **known,
        "tokens": known.get("tokens") or _context_tokens(about),
        "archived": bool(known),
        "waiting": waiting,
    }


def status_line(found: "dict[str, Any]", now: int) -> str:
    """The same in words."""
    pieces = [_archived_text(found)]
    pieces += [f"{found['tokens']:,} tokens"] if found["tokens"] else []
    pieces += [f"synced {_age_text(now - found['at'])}"] if "at" in found else []
    return "everturn: " + " · ".join(pieces)


def _read_object(data: bytes) -> "dict[str, Any]":
    import json

    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _last_status(session: str, folder: str) -> "dict[str, Any]":
    """What the last drain said of the session."""
    try:
        return _read_object(read_prepared(folder, session, STATUS))
    except OSError:
        return {}


def _waiting_bytes(transcript: str, known: "dict[str, Any]") -> "int | None":
    """Bytes of the transcript that are not in the archive yet; None where nobody knows."""
    try:
        return max(0, os.stat(transcript).st_size - int(known["size"]))
    except (OSError, KeyError, ValueError):
        return None


def _context_tokens(about: "dict[str, Any]") -> int:
    window = about.get("context_window")
    window = window if isinstance(window, dict) else {}
    given = (window.get(key) for key in ("total_input_tokens", "total_output_tokens"))
    return sum(number for number in given if isinstance(number, int))


def _archived_text(found: "dict[str, Any]") -> str:
    if not found["archived"]:
        return "not archived yet"
    waiting = found["waiting"]
    return "archived" if not waiting else f"archived but for {max(1, round(waiting / 1000)):,} kB"


def _age_text(milliseconds: int) -> str:
    seconds = max(0, milliseconds // 1000)
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word} ago"
    return "now" if seconds < 5 else f"{seconds} s ago"
