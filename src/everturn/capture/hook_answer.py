"""Context for a model and the status line, prepared by a drain and read by `everturn-hook` while an agent waits.

A folder has files per workspace and session, named by a hash: where the last session of a workspace stopped, the texts that
are in view, and how much of a session is archived. A prompt that refers to what is out of view is searched for, for
`HINT_SECONDS` at most; without a sure answer nothing is printed. A program that has the archive open answers
(`HookListener`); where none is running, `everturn recall hint` does, in a process of its own. The first line of a
file is the name it belongs to; the rest is ready to be printed. It is opt-in: nothing is prepared without `everturn install --where-you-were`, `--hints` or `--statusline`. `clear` deletes all of it.

The reading half imports `os` and the hook alone (others only where needed) and opens no archive. Only prompts with one of
`PHRASES` are examined further.
"""

import os

from everturn.hook import members, next_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


WHERE, WINDOW, STATUS = ".where", ".window", ".status"
ASK = "ask"  # an empty file: the archive is encrypted, so nothing is prepared and the archive itself is asked
LISTENERS = "listeners"  # the folder of sockets, beside the folder of prepared files
GREETING = b"+"  # the first byte that a listener sends: it is not stopped and not busy
HINT_SECONDS = 3.0  # of a search for a hint; agents wait `HOOK_SECONDS` of `sources.toolkit.agent_program`
BETWEEN = "\x1e"  # the texts of a window
PHRASES = (
    b"like we discussed", b"as before", b"remember when", b"go back to", b"that file", b"that error", b"that function",
    b"what we did", b"earlier", b"the previous", b"as i said", b"like i mentioned", b"that thing", b"we already",
)  # fmt: skip
_NEW = ("startup", "clear")  # starts of sessions without anything of the last one in view
_PROMPT = 100_000  # bytes of a prompt to examine
_PREPARED = 4 << 20  # bytes of a prepared file
_LONGEST = 4096  # bytes of a name
_GREETING_SECONDS = 0.5
_MOST_LISTENERS = 4  # that are asked
_REQUEST = 4 << 20  # bytes
_OLD = 30 * 86_400_000  # milliseconds, after which a file is deleted


def context_for(event: bytes, words: list[str], folder: str, archive: str = "") -> bytes:
    """Return the output for the model at this event, usually nothing. Raises OSError if nothing is prepared.

    `archive` is what the environment says of the archive (`listener_prefix`).
    """
    plain = event.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    fields = {key: event[first:last] for key, first, last in members(plain, next_word(plain, 0)) if event[first] == 34}
    text = b""
    if "--where-you-were" in words and _json_string(fields.get(b"source", b'""')) in _NEW:
        text = _last_session(folder, _json_string(fields[b"cwd"])) if b"cwd" in fields else b""
    elif "--hints" in words and has_phrase(fields.get(b"prompt", b"")):
        text = _reference_hint(folder, fields, archive)
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
    return _ask_archive(["where", f"--workspace={workspace}"], b"", HINT_SECONDS)


def _reference_hint(folder: str, fields: dict[bytes, bytes], archive: str) -> bytes:
    import time

    until = time.monotonic() + HINT_SECONDS
    asked = [fields.get(name, b'""') for name in (b"session_id", b"cwd", b"prompt")]
    hint = _ask_listeners(folder, archive, b"[%b]\n" % b",".join(asked), until)
    if hint is not None:
        return hint
    session, workspace, prompt = map(_json_string, asked)
    if not refers_out_of_view(folder, session, prompt):
        return b""
    words = ["hint", f"--session={session}", f"--workspace={workspace}"]
    return _ask_archive(words, prompt.encode("utf-8", "replace"), until - time.monotonic())


def refers_out_of_view(folder: str, session: str, prompt: str) -> bool:
    """Whether a prompt refers to something that is not among the prepared texts of its session."""
    from everturn.derive.references import find_reference

    try:
        texts = read_prepared(folder, session, WINDOW).decode("utf-8", "replace")
    except OSError:
        texts = ""  # nothing is known of the session yet
    return find_reference(prompt, texts.split(BETWEEN)) is not None


def listener_prefix(database: str, config: str) -> str:
    """Return how the sockets of one archive begin, by EVERTURN_DB and EVERTURN_CONFIG of the programs that share it."""
    return mark_of(f"{database}\n{config}") + "-"


def _ask_listeners(folder: str, archive: str, request: bytes, until: float) -> bytes | None:
    """Return the answer of a running program, b"" if it has none in time; None if no program answers."""
    place = os.path.join(os.path.dirname(folder), LISTENERS)
    try:
        names = [name for name in os.listdir(place) if name.startswith(archive)]
        here = os.open(".", os.O_RDONLY)
    except OSError:
        return None
    try:
        os.chdir(place)  # an address has 100 bytes or so, which is too short for some paths
        for name in names[:_MOST_LISTENERS]:
            if (answer := _ask_listener(name, request, until)) is not None:
                return answer
        return None
    finally:
        os.fchdir(here)
        os.close(here)


def _ask_listener(name: str, request: bytes, until: float) -> bytes | None:
    import time
    from _socket import AF_UNIX, SOCK_STREAM, socket  # `socket` would import ten modules more

    end = socket(AF_UNIX, SOCK_STREAM)
    answer = b""
    try:
        if os.stat(name).st_uid != os.getuid():  # a prompt is for nobody else
            return None
        end.settimeout(_GREETING_SECONDS)
        end.connect(name)
        if end.recv(1) != GREETING:
            return None
        end.sendall(request)
        while not answer.endswith(b"\n"):
            end.settimeout(max(0.001, until - time.monotonic()))
            part = end.recv(1 << 16)
            if not part:  # it was ended meanwhile
                return None
            answer += part
    except OSError:  # nobody is there, or there is no more time
        return b"" if time.monotonic() >= until else None
    finally:
        end.close()
    return answer.strip()


def _ask_archive(words: list[str], given: bytes, seconds: float) -> bytes:
    """Return what `everturn recall` prints; nothing if it is not sure or takes too long."""
    import subprocess
    import sys

    command = [sys.executable, "-P", "-m", "everturn", "recall", *words]  # -P: no modules from the agent's folder
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)
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


# --- answering the hooks of others ---
class HookListener:
    """A socket on which a program that has the archive open answers hooks, in a thread, until it is closed.

    Its file is for its owner alone, and appears only when somebody listens. A hook sends session, workspace and prompt as
    one line of JSON; the answer is one line: what the hook prints, or nothing. `answer` makes the text and `close` is
    called at the end, both in that thread. Where the system has no such sockets, hooks ask the archive themselves.
    """

    def __init__(
        self, state: str, prefix: str, answer: "Callable[[str, str, str], str]", close: "Callable[[], None]"
    ) -> None:
        self._folder = os.path.join(state, LISTENERS)
        self._name = f"{prefix}{os.getpid()}-{os.urandom(4).hex()}"
        self._answer, self._close = answer, close
        self._socket: Any = None
        self._thread: Any = None

    def __enter__(self) -> "HookListener":
        from threading import Thread

        try:
            self._socket = self._listen()
        except (OSError, ImportError):
            return self
        self._thread = Thread(target=self._serve, name="everturn-hooks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is None:
            return
        from socket import SHUT_RDWR

        try:
            os.unlink(os.path.join(self._folder, self._name))
        except OSError:
            pass
        try:
            self._socket.shutdown(SHUT_RDWR)  # wakes the thread
        except OSError:
            pass
        self._thread.join(_GREETING_SECONDS)
        self._socket.close()

    def _listen(self) -> "Any":
        from socket import AF_UNIX, SOCK_STREAM, socket

        os.makedirs(self._folder, 0o700, exist_ok=True)
        here = os.open(".", os.O_RDONLY)
        end = socket(AF_UNIX, SOCK_STREAM)
        try:
            os.chdir(self._folder)  # see `_ask_listeners`; no other thread has been started yet
            _remove_deserted_sockets()
            end.bind(f".{self._name}")
            os.chmod(f".{self._name}", 0o600)
            end.listen(8)
            os.rename(f".{self._name}", self._name)
        except OSError:
            end.close()
            raise
        finally:
            os.fchdir(here)
            os.close(here)
        return end

    def _serve(self) -> None:
        while True:
            try:
                end, _ = self._socket.accept()
            except OSError:
                break
            with end:
                try:
                    end.settimeout(HINT_SECONDS)
                    end.sendall(GREETING)
                    end.sendall(self._reply(end))
                except Exception:  # the hook is gone, or the archive: the next one may have more luck
                    pass
        self._close()

    def _reply(self, end: "Any") -> bytes:
        import json

        request = b""
        while not request.endswith(b"\n"):
            part = end.recv(1 << 16)
            if not part or len(request) > _REQUEST:
                raise ValueError
            request += part
        session, workspace, prompt = map(str, json.loads(request))
        text = self._answer(session, workspace, prompt).strip()
        return (as_printed(text) if text else "").encode() + b"\n"


def _remove_deserted_sockets() -> None:
    """Remove what killed programs have left in the current folder."""
    from socket import AF_UNIX, SOCK_STREAM, socket

    for name in os.listdir():
        with socket(AF_UNIX, SOCK_STREAM) as end:
            end.settimeout(_GREETING_SECONDS)
            try:
                if not name.startswith("."):  # somebody is about to listen there
                    end.connect(name)
            except ConnectionRefusedError:
                os.unlink(name)
            except OSError:  # somebody is busy
                pass


# --- the status line ---
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
