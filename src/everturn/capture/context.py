"""Context for a model, made ready by a drain and read by `everturn-hook` while an agent waits for it.

In a folder of its own, for each workspace and session by a mark of its name: where the last session of a workspace stopped,
the same as a hint about a prompt that points to what is out of view, the words that are in view, and how much of a session is
archived. The first line of a file is the name it is for; what follows is ready to be printed. It is opt-in: without
`everturn install --where-you-were`, `--hints` or `--statusline` nothing is prepared. `clear` takes all of it away.

The reading half imports `os` and the hook alone. Only a prompt that has one of `PHRASES` in it is looked at more closely, by
`everturn.derive.dangling`.
"""

import os

from everturn.hook import members, next_word

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
    from everturn.derive.dangling import HINT as alone
    from everturn.derive.dangling import find_reference

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
    import json

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
