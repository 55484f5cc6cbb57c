"""`everturn-hook`: what an agent calls at each of its events. It notes one line and is gone.

Promises: it never fails (exit 0 whatever happens), never waits longer than `PATIENCE`, and notes no content. It prints
nothing, but for a JSON object with context for the model where the user wanted that: read from a file that
`everturn.capture.hook_answer` has prepared, so that nobody waits for an archive. Of the JSON an agent hands over, a line keeps
names, ids, times, sizes and places; prompts, arguments, outputs and error texts are passed over where they stand, so that
not even the spool of a content-free workspace ever holds them.

Nothing but `sys`, `os` and `time` is imported, and nothing else of everturn: starting Python is what it costs. (`json`
alone would double that, so the few fields are found by a small scan of our own.) `everturn.capture.hook_answer` joins them where
context is wanted. It may also be run as a file.

    --with NAME=VALUE    set a variable first, such as EVERTURN_HOME
    --drain              start a process that takes the spool in, without waiting for it
    --where-you-were     at the start of a session: tell where the last one of this folder stopped
    --hints              at a prompt: tell when it points to what the model no longer sees
    --statusline         print one line about the session instead of noting anything

`everturn.capture.spool` takes the lines into the archive; whoever writes there sees to these rules of the spool: one
line is one write, a line begins and ends with a line break, and a file that was renamed meanwhile is written again.
"""

import os
import sys
import time

MARK = "EVERTURN_ASKING"  # set while everturn itself asks an agent: that is not a session of the user
SPOOL = "hooks.jsonl"
LOCK = "drain.lock"
PATIENCE = 0.9  # seconds, for everything
MOST = 8 << 20  # bytes of an event that are looked at
FULL = 64 << 20  # bytes of a spool that nobody empties
_LONGEST_PATH, _LONGEST_NAME = 4096, 256  # bytes of a kept value
_MANY = 256  # calls of one batch
_TRIES = 3
_PAUSE = 0.0005  # seconds, doubled until something comes
#: What a scan takes on: about a quarter of a second.
_MEMBERS, _STRINGS, _STRETCH, _BLANKS = 10_000, 200_000, 1 << 20, 4096

_NAMES = frozenset(b"session_id hook_event_name tool_name tool_use_id agent_id thread-id type".split())
_PATHS = frozenset(b"transcript_path agent_transcript_path cwd".split())
_SCALARS = frozenset(b"duration_ms is_interrupt".split())
_SIZES = frozenset(b"tool_input tool_response error".split())
_NAMES_OF_A_CALL = frozenset(b"tool_name tool_use_id".split())
_BATCH = b"tool_calls"

_BLANK = b" \t\r\n"
_NUMBER = b"0123456789.eE+-"
_APPEND = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND
    | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip


def main() -> None:
    """Note the event on stdin, or in the last argument, and end the process."""
    try:
        if not os.environ.get(MARK):
            _run(sys.argv[1:], time.monotonic() + PATIENCE)
    except BaseException:
        pass
    os._exit(0)  # nothing to flush, and half of what an exit costs


def _run(words: list[str], until: float) -> None:
    for place, word in enumerate(words[:-1]):
        if word == "--with":
            name, _, value = words[place + 1].partition("=")
            os.environ[name] = value
    event, whole = _read_event(until)
    folder = state_folder(os.environ, sys.platform)
    os.umask(0o077)
    if "--statusline" not in words:
        _note_event(event, whole, os.path.join(folder, "spool"))
    _print_prepared(event, words, os.path.join(folder, "context"))
    if "--drain" in words:
        _start_drain(os.path.join(folder, "spool", LOCK))


def _note_event(event: bytes, whole: bool, folder: str) -> None:
    try:
        if event:
            append(folder, event_line(event, whole, time.time_ns(), os.getpid()))
    except OSError:  # a full disk is no reason not to tell
        pass


def _print_prepared(event: bytes, words: list[str], folder: str) -> None:
    """Print what was prepared, where that is wanted."""
    try:
        if "--statusline" in words:
            from everturn.capture.hook_answer import read_status, status_line

            os.write(1, status_line(read_status(event, folder), time.time_ns() // 1_000_000).encode() + b"\n")
        elif "--hints" in words or "--where-you-were" in words:
            from everturn.capture.hook_answer import context_for

            os.write(1, context_for(event, words, folder))
    except Exception:  # nothing is prepared, or it cannot be read
        pass


def state_folder(env: "os._Environ[str] | dict[str, str]", platform: str) -> str:
    """Where `settings` says that state is kept; a test holds the two together."""
    home = env.get("EVERTURN_HOME")
    if home:
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "state")
    if platform == "win32":
        return os.path.join(env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local"), "everturn")
    named = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(named):
        return os.path.join(named, "everturn")
    usual = "Library/Application Support" if platform == "darwin" else ".local/state"
    return os.path.join(_home_folder(env), usual, "everturn")


def event_line(event: bytes, whole: bool, at: int, pid: int) -> bytes:
    """What is noted of an event: a JSON object without any content. `whole` is False where the end of it is missing."""
    fields: dict[bytes, bytes] = {b"at": b"%d" % at, b"pid": b"%d" % pid, b"size": b"%d" % len(event)}
    try:
        _scan_members(event, fields)
    except _TooMuchError:
        fields[b"cut"] = b"true"
    except (IndexError, ValueError):
        fields[b"broken" if whole else b"cut"] = b"true"
    return b"\n" + _encode_object(fields) + b"\n"


def append(folder: str, line: bytes) -> None:
    """Add a line to the spool, in one write. Raises OSError."""
    path = os.path.join(folder, SPOOL)
    for _ in range(_TRIES):
        file = _open_spool(folder, path)
        try:
            there = os.fstat(file)
            if there.st_mode & 0o170000 != 0o100000 or there.st_size > FULL:
                return
            os.write(file, line)
            if _is_same_file(path, there):
                return  # else it was taken away to be read, perhaps before this line: once more does no harm
        finally:
            os.close(file)


def _start_drain(lock: str) -> None:
    """Start a process that outlives this one and has nothing of the agent's in its hands, unless one is at it already."""
    command = [sys.executable, "-P", "-m", "everturn", "drain"]  # -P: the agent's folder is no place for our modules
    if not hasattr(os, "fork"):
        os.spawnv(os.P_DETACH, sys.executable, command)  # type: ignore[attr-defined,unused-ignore]  # noqa: S606
        return
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork() == 0 and not _is_locked(lock):
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.closerange(3, 256)
        os.execv(sys.executable, command)  # noqa: S606
    os._exit(0)


def _is_locked(lock: str) -> bool:
    """Whether another drain is at work: it looks for new lines once more when it has let the lock go."""
    import fcntl

    try:
        file = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _read_event(until: float) -> tuple[bytes, bool]:
    if len(sys.argv) > 1 and sys.argv[-1].startswith("{"):
        return os.fsencode(sys.argv[-1]), True
    return (b"", True) if os.isatty(0) else _read_input(0, until)


def _read_input(file: int, until: float) -> tuple[bytes, bool]:
    """Everything up to the end, and whether it came in time and was not too much. The rest of it is read, not kept."""
    kept: list[bytes] = []
    size, pause = 0, _PAUSE
    try:
        os.set_blocking(file, False)
    except (OSError, AttributeError):
        pass
    while time.monotonic() < until:
        try:
            piece = os.read(file, 1 << 20)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
            continue
        if not piece:
            return b"".join(kept)[:MOST], size <= MOST
        if size < MOST:
            kept.append(piece)
        size, pause = size + len(piece), _PAUSE
    return b"".join(kept)[:MOST], False


# a scan of JSON that looks at no more than it must ---------------------------------------------------------------------
class _TooMuchError(Exception):
    """It would take too long."""


def _scan_members(event: bytes, fields: dict[bytes, bytes]) -> None:
    """Note members of an event until its end, or until something is not as it should be."""
    # Escaped backslashes and quotes become others of the same length: what is left of `"` begins or ends a string.
    plain = event.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    for key, first, last in members(plain, next_word(plain, 0)):
        if key == _BATCH and plain[first] == 91:  # [
            fields[key] = b"[" + b",".join(_batch_calls(event, plain, first, fields)) + b"]"
        else:
            _note_member(fields, key, event[first:last], _NAMES)


def _note_member(fields: dict[bytes, bytes], key: bytes, value: bytes, names: frozenset[bytes]) -> None:
    if key in _SIZES:
        fields[key + b"_size"] = b"%d" % len(value)
    elif (key in names or key in _PATHS) and value[:1] == b'"':
        if len(value) > (_LONGEST_PATH if key in _PATHS else _LONGEST_NAME):
            fields[b"cut"] = b"true"
        elif min(value) >= 32:
            fields[key] = value
    elif key in _SCALARS and (value in (b"true", b"false") or (len(value) <= 20 and not value.strip(_NUMBER))):
        fields[key] = value


def _batch_calls(event: bytes, plain: bytes, at: int, fields: dict[bytes, bytes]):  # type: ignore[no-untyped-def]
    """The calls of a batch, each with its name, id and sizes."""
    at = next_word(plain, at + 1)
    for _ in range(_MANY):
        if plain[at] != 123:  # {
            return
        call: dict[bytes, bytes] = {}
        last = at + 1
        for key, first, last in members(plain, at):
            _note_member(call, key, event[first:last], _NAMES_OF_A_CALL)
        yield _encode_object(call)
        at = next_word(plain, next_word(plain, last) + 1)  # behind the bracket
        if plain[at] == 44:  # ,
            at = next_word(plain, at + 1)
    fields[b"cut"] = b"true"


def _encode_object(fields: dict[bytes, bytes]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % field for field in fields.items()) + b"}"


def members(plain: bytes, at: int):  # type: ignore[no-untyped-def]  # Iterator would have to be imported
    """(key, start of the value, end of the value) of the object that begins at `at`."""
    if plain[at] != 123:  # {
        raise ValueError
    at = next_word(plain, at + 1)
    for _ in range(_MEMBERS):
        if plain[at] == 125:  # }
            return
        if plain[at] != 34:  # "
            raise ValueError
        closing = plain.index(b'"', at + 1)
        key = plain[at + 1 : closing]
        colon = next_word(plain, closing + 1)
        if plain[colon] != 58:  # :
            raise ValueError
        first = next_word(plain, colon + 1)
        last = _value_end(plain, first)
        yield key, first, last
        at = next_word(plain, last)
        if plain[at] == 44:  # ,
            at = next_word(plain, at + 1)
    raise _TooMuchError


def _value_end(plain: bytes, at: int) -> int:
    """Where the value that begins at `at` ends."""
    if plain[at] == 34:  # "
        return plain.index(b'"', at + 1) + 1
    if plain[at] in b"{[":
        return _nest_end(plain, at)
    for last in range(at, at + 64):
        if plain[last] in b",}] \t\r\n":
            return last
    raise ValueError


def _nest_end(plain: bytes, at: int) -> int:
    depth = 0
    for _ in range(_STRINGS):
        quote = plain.find(b'"', at)
        between = plain[at:quote] if quote >= 0 else plain[at:]
        closing = between.count(b"}") + between.count(b"]")
        if closing and closing >= depth:  # it may end here
            if len(between) > _STRETCH:
                raise _TooMuchError
            for number, byte in enumerate(between, at + 1):
                depth += (byte in b"{[") - (byte in b"}]")
                if not depth:
                    return number
        else:
            depth += between.count(b"{") + between.count(b"[") - closing
        if quote < 0:
            raise ValueError
        at = plain.index(b'"', quote + 1) + 1
    raise _TooMuchError


def next_word(plain: bytes, at: int) -> int:
    """The next byte that is not blank."""
    for here in range(at, at + _BLANKS):
        if plain[here] not in _BLANK:
            return here
    raise ValueError


# files and folders ------------------------------------------------------------------------------------------------------
def _open_spool(folder: str, path: str) -> int:
    try:
        return os.open(path, _APPEND, 0o600)
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)
        return os.open(path, _APPEND, 0o600)


def _is_same_file(path: str, there: os.stat_result) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (there.st_dev, there.st_ino)


def _home_folder(env: "os._Environ[str] | dict[str, str]") -> str:
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


if __name__ == "__main__":
    main()
