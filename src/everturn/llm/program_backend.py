"""An installed program as a model: started once per request, with the prompt at its standard input.

Plain functions from outside say how it is started and how its answer is read (`Program`). Promises: no shell; a new, empty
folder that is deleted afterwards; `EVERTURN_ASKING=1` in its environment and a mark in the folder's name, so that none of
it is captured; a time limit and an output limit, after which the program and all its children are ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from everturn.errors import BadAnswer, ModelError, ModelRefused, ModelUnreachable
from everturn.llm.protocol import (
    ChatMessage,
    ChatPart,
    Delta,
    ModelRequest,
    Reply,
    ReplyTokens,
    encode_json,
    part_as_text,
    reply_deltas,
)
from everturn.model.conversation import ProgramReply
from everturn.model.vocabulary import ASKING
from everturn.secrets.redaction import redact_text

#: Set for every program that runs as a model; capture ignores such sessions.
MARK = "EVERTURN_ASKING"

_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_TAIL = 64 << 10  # bytes of its standard error that are kept


class Program(Protocol):
    """How to run a program as a model."""

    @property
    def command(self) -> Callable[[str], list[str]]: ...
    @property
    def read(self) -> Callable[[bytes], ProgramReply]: ...
    @property
    def around(self) -> Callable[[Path, Mapping[str, str]], dict[str, str | None]]: ...


class ProgramLimits(Struct, frozen=True):
    seconds: float = 600.0
    most_bytes: int = 16 << 20
    window: int = 0


class ProgramBackend:
    """A `Backend` that runs a program. It supports no tools and answers in text."""

    takes_tools = False
    max_tokens = 0

    def __init__(
        self, name: str, model: str, program: Program, env: Mapping[str, str], limits: ProgramLimits | None = None
    ) -> None:
        self._program, self._env, self._limits = program, env, limits or ProgramLimits()
        self.name, self.model, self.window = name, model, self._limits.window

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `Backend`. The answer comes as a whole."""
        yield from reply_deltas(self.ask(request))

    def ask(self, request: ModelRequest) -> Reply:
        if request.tools:
            raise ModelRefused(self.name, "a program cannot be given tools")
        model = request.model or self.model
        command = self._program.command(model)
        if (path := shutil.which(command[0], path=self._env.get("PATH", os.defpath))) is None:
            raise ModelUnreachable(self.name, f"the program {command[0]} is not installed")
        with tempfile.TemporaryDirectory(prefix=ASKING, ignore_cleanup_errors=True) as folder:
            env = self._environment(Path(folder))
            done = _run_program(
                [path, *command[1:]], prompt(request).encode("utf-8", "replace"), folder, env, self._limits
            )
        return self._reply(done, model)

    def _environment(self, folder: Path) -> dict[str, str]:
        changed = {**self._env, **self._program.around(folder, self._env), MARK: "1"}
        return {name: value for name, value in changed.items() if value is not None}

    def _reply(self, done: _ProgramRun, model: str) -> Reply:
        if done.why:
            raise (BadAnswer if done.is_too_long else ModelUnreachable)(self.name, done.why)
        answer = self._program.read(done.printed)
        if answer.failure or done.status != 0:
            raise self._failure(answer, done)
        if not answer.text:
            raise BadAnswer(self.name, "the program printed no answer")
        usage = ReplyTokens(answer.input, answer.output, answer.cache_read, answer.cache_write)
        if not (answer.input or answer.output):
            usage = ReplyTokens(source="estimate")
        message = ChatMessage("assistant", (ChatPart("text", answer.text),))
        return Reply(message, "end", usage, answer.model or model)

    def _failure(self, answer: ProgramReply, done: _ProgramRun) -> ModelError:
        """Return the error with the program's own message, from its answer or else from its standard error."""
        detail = answer.failure or self._program.read(done.complaint).failure or _last_line(done.complaint)
        detail = " ".join(redact_text(detail).split())[:200].rstrip(".")
        ended = f"with status {done.status}" if done.status >= 0 else f"by signal {-done.status}"
        return ModelRefused(self.name, f"the program ended {ended}" + (f": {detail}" if detail else ""))


def prompt(request: ModelRequest) -> str:
    """Return the whole request as one text. A single message has no role heading."""
    messages = [(message.role, _message_text(message)) for message in request.messages]
    texts = [text for role, text in messages if text]
    if len(messages) > 1:
        texts = [f"[{role}]\n{text}" for role, text in messages if text]
    return "\n\n".join([request.system, *texts] if request.system else texts)


def _message_text(message: ChatMessage) -> str:
    calls = [f"(calls {part.name} with {encode_json(part.arguments)})" for part in message.parts if part.kind == "call"]
    return "\n".join([*filter(None, map(part_as_text, message.parts)), *calls])


# --- running ---
class _ProgramRun(Struct):
    status: int
    printed: bytes
    complaint: bytes
    why: str = ""  # why it was ended
    is_too_long: bool = False


def _run_program(
    command: list[str], text: bytes, folder: str, env: dict[str, str], limits: ProgramLimits
) -> _ProgramRun:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=env,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return _ProgramRun(-1, b"", b"", f"the program cannot be started: {error.strerror}")
    with process:
        printed, complaint = _PipeReader(limits.most_bytes, process), _PipeReader(_TAIL)
        pumps = [
            threading.Thread(target=_write_input, args=(process.stdin, text), daemon=True),
            threading.Thread(target=printed.fill, args=(process.stdout,), daemon=True),
            threading.Thread(target=complaint.fill, args=(process.stderr,), daemon=True),
        ]
        for pump in pumps:
            pump.start()
        why = _wait_for_exit(process, limits.seconds)
        _end_process(process)  # its children too
        until = time.monotonic() + _GRACE
        for pump in pumps:  # a child in a session of its own may hold the pipes for ever
            pump.join(max(0.0, until - time.monotonic()))
        if printed.is_over:
            why = f"the program printed more than {limits.most_bytes:,} bytes"
        return _ProgramRun(process.returncode, bytes(printed.data), bytes(complaint.data), why, printed.is_over)


def _wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"the program did not answer within {seconds:g} s"
    except BaseException:  # interrupted: nothing may keep running
        _end_process(process)
        raise
    return ""


class _PipeReader:
    """Reads a pipe to its end and keeps a limited number of bytes. With a process, more output ends it."""

    def __init__(self, most: int, process: subprocess.Popen[bytes] | None = None) -> None:
        self.data = bytearray()
        self.is_over = False
        self._most, self._process = most, process

    def fill(self, pipe: IO[bytes]) -> None:
        """Read until the pipe is closed."""
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(pipe.fileno(), 1 << 16):
                self._add(chunk)

    def _add(self, chunk: bytes) -> None:
        self.data += chunk
        if len(self.data) <= self._most:
            return
        if self._process is None:
            del self.data[: -self._most]
        elif not self.is_over:
            self.is_over = True
            del self.data[self._most :]
            _signal_process(self._process, signal.SIGKILL)
        else:
            del self.data[self._most :]


def _write_input(pipe: IO[bytes], text: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):  # a program may answer without reading to the end
        pipe.write(text)
        pipe.flush()
    with contextlib.suppress(OSError, ValueError):
        pipe.close()


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children: ask first if it still runs, then kill."""
    if process.poll() is None:
        _signal_process(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    _signal_process(process, signal.SIGKILL)
    process.wait()


def _signal_process(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()


def _last_line(complaint: bytes) -> str:
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(char for char in lines[-1] if char.isprintable()) if lines else ""
