"""`everturn-hook`: the program that an agent runs at each of its events. It writes one line and exits.

It never fails (exit 0 whatever happens), never runs longer than `TIMEOUT` (but for a search with `--hints`, which has a
limit of its own), and records no content. It prints nothing,
except a JSON object with context for the model if the user enabled that: read from a file that
`everturn.capture.hook_answer` has prepared, so that nobody waits for an archive. Of an event's JSON, a line has names, ids,
times, sizes and paths; prompts, arguments, outputs and error texts are skipped during the scan, so that not even the spool
of a workspace without content ever holds them.

It imports `sys`, `os` and `time` only, and nothing else of everturn: its cost is the start of Python. (`json` alone would
double that, so a small scan of our own finds the few fields.) `everturn.capture.hook_answer` is loaded where context is
enabled. The module may also be run as a file.

    --with NAME=VALUE    set a variable first, such as EVERTURN_HOME
    --drain              start a process that drains the spool, without waiting for it
    --drain-soon         the same, unless one was started within half a second: for events in the middle of a turn
    --where-you-were     at the start of a session: print where the last one of this folder stopped
    --hints              at a prompt that refers to what the model no longer sees: search for it, print what is surely meant
    --statusline         print one line about the session instead of recording anything

`everturn.capture.spool` takes the lines into the archive. The rules of the spool: one line is one write, a line begins and
ends with a line break, and if the file was renamed meanwhile the line is written again.
"""

import os
import sys
import time

MARK = "EVERTURN_ASKING"  # set while everturn uses an agent as a model: that is not a session of the user
SPOOL = "hooks.jsonl"
LOCK = "drain.lock"
TIMEOUT = 0.9  # seconds, for everything
MOST = 8 << 20  # bytes of an event to scan
FULL = 64 << 20  # bytes of a spool that is not drained
_LONGEST_PATH, _LONGEST_NAME = 4096, 256  # bytes of a value
_MANY = 256  # calls of one batch
_TRIES = 3
_SPACING = 0.5  # seconds between two starts of a drain, which takes longer than that
_PAUSE = 0.0005  # seconds, doubled until input arrives
#: Limits of a scan: about a quarter of a second.
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
    """Record the event on stdin, or in the last argument, and exit."""
    try:
        if not os.environ.get(MARK):
            _run(sys.argv[1:], time.monotonic() + TIMEOUT)
    except BaseException:
        pass
    os._exit(0)  # nothing to flush, and half the cost of an exit


def _run(words: list[str], until: float) -> None:
    for number, word in enumerate(words[:-1]):
        if word == "--with":
            name, _, value = words[number + 1].partition("=")
            os.environ[name] = value
    event, whole = _read_event(until)
    folder = state_folder(os.environ, sys.platform)
    os.umask(0o077)
    if "--statusline" not in words:
        _record_event(event, whole, os.path.join(folder, "spool"))
    _print_prepared(event, words, os.path.join(folder, "context"))
    lock = os.path.join(folder, "spool", LOCK)
    if "--drain" in words or ("--drain-soon" in words and not _is_starting(lock)):
        _start_drain(lock)


def _record_event(event: bytes, whole: bool, folder: str) -> None:
    try:
        if event:
            append(folder, event_line(event, whole, time.time_ns(), os.getpid()))
    except OSError:  # a full disk must not prevent the output
        pass


def _print_prepared(event: bytes, words: list[str], folder: str) -> None:
    """Print the prepared text, if enabled."""
    try:
        if "--statusline" in words:
            from everturn.capture.hook_answer import read_status, status_line

            os.write(1, status_line(read_status(event, folder), time.time_ns() // 1_000_000).encode() + b"\n")
        elif "--hints" in words or "--where-you-were" in words:
            from everturn.capture.hook_answer import context_for, listener_prefix

            archive = listener_prefix(os.environ.get("EVERTURN_DB", ""), os.environ.get("EVERTURN_CONFIG", ""))
            os.write(1, context_for(event, words, folder, archive))
    except Exception:  # nothing is prepared, or it cannot be read
        pass


def state_folder(env: "os._Environ[str] | dict[str, str]", platform: str) -> str:
    """Return the state folder, the same as in `settings`; a test compares the two."""
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
    """Return the line for an event: a JSON object without content. `whole` is False if the event was cut."""
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
            info = os.fstat(file)
            if info.st_mode & 0o170000 != 0o100000 or info.st_size > FULL:
                return
            os.write(file, line)
            if _is_same_file(path, info):
                return  # otherwise it was renamed, perhaps before this line: a repeated line does no harm
        finally:
            os.close(file)


def _start_drain(lock: str) -> None:
    """Start a detached drain without the agent's file descriptors, unless one is running."""
    command = [sys.executable, "-P", "-m", "everturn", "drain"]  # -P: no modules from the agent's folder
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


def _is_starting(lock: str) -> bool:
    """Whether a drain was started so lately that it has yet to read the spool. If not, note that one is started now."""
    try:
        if 0 <= time.time() - os.stat(lock).st_mtime < _SPACING:
            return True
    except OSError:
        pass
    os.close(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600))
    os.utime(lock)
    return False


def _is_locked(lock: str) -> bool:
    """Whether another drain is running: it checks for new lines once more after it has released the lock."""
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
    """Return the input, and whether it is complete: in time and not too long. Excess input is read and dropped."""
    chunks: list[bytes] = []
    size, pause = 0, _PAUSE
    try:
        os.set_blocking(file, False)
    except (OSError, AttributeError):
        pass
    while time.monotonic() < until:
        try:
            chunk = os.read(file, 1 << 20)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
            continue
        if not chunk:
            return b"".join(chunks)[:MOST], size <= MOST
        if size < MOST:
            chunks.append(chunk)
        size, pause = size + len(chunk), _PAUSE
    return b"".join(chunks)[:MOST], False


# --- a minimal scan of JSON ---


class _TooMuchError(Exception):
    """The scan would take too long."""


def _scan_members(event: bytes, fields: dict[bytes, bytes]) -> None:
    """Record the members of an event until its end or a syntax error."""
    # Escaped backslashes and quotes are replaced by the same length: every remaining `"` begins or ends a string.
    plain = event.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    for key, first, last in members(plain, next_word(plain, 0)):
        if key == _BATCH and plain[first] == 91:  # [
            fields[key] = b"[" + b",".join(_batch_calls(event, plain, first, fields)) + b"]"
        else:
            _record_member(fields, key, event[first:last], _NAMES)


def _record_member(fields: dict[bytes, bytes], key: bytes, value: bytes, names: frozenset[bytes]) -> None:
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
    """Yield the calls of a batch, each with its name, id and sizes."""
    at = next_word(plain, at + 1)
    for _ in range(_MANY):
        if plain[at] != 123:  # {
            return
        call: dict[bytes, bytes] = {}
        last = at + 1
        for key, first, last in members(plain, at):
            _record_member(call, key, event[first:last], _NAMES_OF_A_CALL)
        yield _encode_object(call)
        at = next_word(plain, next_word(plain, last) + 1)  # after the bracket
        if plain[at] == 44:  # ,
            at = next_word(plain, at + 1)
    fields[b"cut"] = b"true"


def _encode_object(fields: dict[bytes, bytes]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % field for field in fields.items()) + b"}"


def members(plain: bytes, at: int):  # type: ignore[no-untyped-def]  # Iterator would have to be imported
    """Yield (key, start of the value, end of the value) of the object that begins at `at`."""
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
    """Return the end of the value that begins at `at`."""
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
    """Return the position of the next byte that is not white space."""
    for here in range(at, at + _BLANKS):
        if plain[here] not in _BLANK:
            return here
    raise ValueError


# --- files and folders ---


def _open_spool(folder: str, path: str) -> int:
    try:
        return os.open(path, _APPEND, 0o600)
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)
        return os.open(path, _APPEND, 0o600)


def _is_same_file(path: str, info: os.stat_result) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (info.st_dev, info.st_ino)


def _home_folder(env: "os._Environ[str] | dict[str, str]") -> str:
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


if __name__ == "__main__":
    main()
