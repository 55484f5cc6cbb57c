"""`everturn chat` as people run it: a process of its own, fed by a pipe or a terminal, with a scripted model behind it.

A desk held by a `model` asks the scripted server itself. One held by an `agent` has a Python agent in front of it: an object
that remembers its conversation, sends all of it to the same server and streams what comes back, as agents of frameworks do. So
a test that looks at what the server was asked holds for both kinds.
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import everturn
from everturn.loop.journal import open_archive
from everturn.loop.journal_state import AGENT
from everturn.model.archive import Session
from everturn.model.conversation import Message
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from tests import command_line
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says
from tests.tmux import Pane

_PROMPT = re.compile(r"^You:", re.MULTILINE)

#: Makes the terminal the one that Ctrl-C comes from, and becomes the command.
_CONTROL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"

SUMMARY = """<!-- SESSION_SUMMARY_START -->
**Background Context:** {background}

**Current Session Summary:**
**Topics Discussed:**
- {topic}

**Decisions Made:**
- use token buckets

**Pending:**
- integration tests
<!-- SESSION_SUMMARY_END -->"""

#: An agent as people write them, in front of the scripted server.
_AGENT = """
import json
import urllib.request


class Agent:
    name = "Simple Sally"
    model_name = "scripted-1"
    context_window = {window}

    def __init__(self):
        self.messages, self.usage = [], {{"input": 0, "output": 0}}

    def stream(self, text):
        asked = [*self.messages, {{"role": "user", "content": text}}]
        body = {{"model": "scripted-1", "messages": asked, "stream": True, "max_tokens": 100}}
        head = {{"content-type": "application/json"}}
        words = []
        with urllib.request.urlopen(urllib.request.Request("{base}/chat/completions", json.dumps(body).encode(), head)) as told:
            for line in told:
                if not line.startswith(b"data: {{"):
                    continue
                event = json.loads(line[6:])
                for choice in event["choices"]:
                    if choice["delta"].get("content"):
                        words.append(choice["delta"]["content"])
                        yield words[-1]
                if used := event.get("usage"):
                    self.usage["input"] += used["prompt_tokens"]
                    self.usage["output"] += used["completion_tokens"]
        self.messages = [*asked, {{"role": "assistant", "content": "".join(words)}}]


{ending}
"""
_SO_FAR, _NOW = "The conversation so far:\n\n", "The user now says:\n\n"  # when an agent is told more than the words


def is_summary_request(asked: Asked) -> bool:
    """Whether the model is asked for a summary."""
    return "Generate a progressive session summary" in last_words(asked)


def is_restoration(asked: Asked) -> bool:
    """Whether the model is told what came before, and nothing else."""
    words = last_words(asked)
    return words.startswith("CONTEXT RESTORATION") and words.endswith("Keep your response concise.")


def last_words(asked: Asked) -> str:
    """The last message of a request."""
    return _text(asked.body["messages"][-1]["content"])


def words_of(asked: Asked, role: str = "user") -> list[str]:
    """The messages of one role in a request."""
    found = [one["content"] for one in asked.body["messages"] if one["role"] == role]
    return [*(_told_before(str(found[0]), role) if found else ()), *map(_text, found)]


def _told_before(text: str, role: str) -> list[str]:
    """The messages so far, as a new agent is told them before the words of now."""
    so_far = text.partition(_SO_FAR)[2].rpartition(_NOW)[0].removesuffix("\n\n")
    parts = re.split(r"(?:\A|\n\n)(user|assistant): ", so_far)[1:]
    return [words for who, words in zip(parts[::2], parts[1::2], strict=True) if who == role]


def _text(content: Any) -> str:
    """The words of a message, without what an agent was told before them."""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
    return text.rpartition(_NOW)[2]


class Model:
    """Answers `answer N` to the Nth thing said, summarises and acknowledges; a list of faults is used up first."""

    def __init__(self) -> None:
        self.summaries = 0
        self.said = 0

    def __call__(self, asked: Asked) -> Says:
        if is_summary_request(asked):
            self.summaries += 1
            background = (
                "Earlier work." if "Condense this previous summary" in last_words(asked) else "Initial session."
            )
            return Says(SUMMARY.format(background=background, topic=f"topic {self.summaries}"), tokens=(50, 30))
        if is_restoration(asked):
            return Says("I have reviewed our previous conversation. Ready to continue!", tokens=(89, 67))
        self.said += 1
        return Says(f"answer {self.said}", tokens=(100 + self.said, 20))


@dataclass(frozen=True)
class Ran:
    """What a process did."""

    code: int
    out: str
    err: str


class Desk:
    """A workspace, an archive and a config with the scripted model."""

    def __init__(
        self,
        folder: Path,
        server: ModelServer,
        window: int = 0,
        kind: str = "openai",
        bound: bool = False,
        held_by: str = "model",
    ) -> None:
        self.folder, self.server, self.held_by = folder, server, held_by
        self.home, self.workspace = folder / "home", folder / "work"
        self.home.mkdir()
        self.workspace.mkdir()
        lines = ["[models]", 'default = "scripted"', "[models.scripted]", f'kind = "{kind}"', 'model = "scripted-1"']
        base = server.root if kind == "anthropic" else server.base
        lines += [f'base_url = "{base}"', "tries = 1", f"bound = {str(bound).lower()}"]
        lines += [f"window = {window}"] if window else []
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")
        self.agent = self.write_agent(folder / "sally.py", window) if held_by == "agent" else None
        self.name = "Simple Sally" if self.agent else "Assistant"
        self.path = str(self.agent or "scripted-1")  # as a saved file names it

    def write_agent(self, path: Path, window: int = 0, ending: str = "agent = Agent()") -> Path:
        """Write an agent in front of the server."""
        path.write_text(_AGENT.format(base=self.server.base, window=window, ending=ending))
        return path

    def _held(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The words of a command, with the agent where there is one."""
        is_needed = self.agent is not None and words[0] in ("chat", "resume") and "--agent" not in words
        return (*words, "--agent", str(self.agent)) if is_needed else words

    @property
    def env(self) -> dict[str, str]:
        """The environment of the processes."""
        source = str(Path(everturn.__file__).parent.parent)
        return {
            **os.environ,
            "EVERTURN_HOME": str(self.home),
            "PYTHONPATH": source,
            "PYTHONUTF8": "1",
            "COLUMNS": "100",
        }

    def command(self, *words: str) -> list[str]:
        """A command line."""
        return [sys.executable, "-m", "everturn", *self._held(words)]

    def run(self, *words: str, typed: str = "", timeout: float = 600) -> Ran:
        """A command, with what is typed into it."""
        done = command_line.run(self._held(words), self.env, typed.encode(), self.workspace, timeout=timeout)
        said = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in said.err and "internal error" not in said.err, said.err
        return said

    def chat(self, *lines: str, words: tuple[str, ...] = ("--new",)) -> Ran:
        """A chat in which these lines are typed."""
        return self.run("chat", *words, typed="".join(f"{line}\n" for line in lines))

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A command that is fed and ended by the test."""
        return subprocess.Popen(
            self.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
            cwd=self.workspace,
        )  # fmt: skip

    def store(self) -> Store:
        """The archive."""
        return open_archive(str(self.home / "archive.db"))

    def sessions(self) -> list[Session]:
        """The sessions, the oldest first."""
        store = self.store()
        try:
            return [row for row, _ in store.sessions(SessionFilter(agent=AGENT), 100)[0]][::-1]
        finally:
            store.close()

    def messages(self, session: Session) -> list[Message]:
        """What the archive has of a session."""
        store = self.store()
        try:
            return [message for _, message in read_messages(store, all_sources(), session)]
        finally:
            store.close()

    @property
    def saved(self) -> list[Path]:
        """The saved conversations, the oldest first."""
        return sorted((self.home / "chats").glob("*.md"), key=lambda path: path.stat().st_mtime_ns)


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, desk: Desk, *words: str, **env: str) -> None:
        self._master, slave = pty.openpty()
        around = {**desk.env, "TERM": "xterm-256color", **env}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CONTROL, *desk.command(*words)], stdin=slave, stdout=slave, stderr=slave, env=around,
            cwd=desk.workspace, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""
        self._looked = 0  # how much of it was waited for already

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def until(self, wanted: str, seconds: float = 300) -> str:
        """Wait for something behind what was waited for before; all that came up to it."""
        start, end = self._looked, time.monotonic() + seconds
        while (found := self.seen.find(wanted, start)) < 0:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{wanted!r} did not come; the screen says {self.seen[start:]!r}")
            try:
                self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"it ended without {wanted!r}: {self.seen[start:]!r}") from None
        self._looked = found + len(wanted)
        return self.seen[start : self._looked]

    def ended(self, seconds: float = 300) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < end:
            ready, _, _ = select.select([self._master], [], [], 0.05)
            if ready:
                try:
                    self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return self._process.wait(max(0.1, end - time.monotonic()))


class Sitting(Pane):
    """A chat on a screen of tmux, line by line."""

    def __init__(self, desk: Desk, *words: str, size: tuple[int, int] = (100, 40), **env: str) -> None:
        super().__init__(desk.folder, desk.command(*words), {**desk.env, **env}, size, desk.workspace)
        self._prompts = 0

    def ready(self) -> str:
        """Wait until the next line can be typed; what was shown since the last one."""
        wanted = self._prompts + 1
        seen = self.wait(lambda text: _asks(text, wanted), everything=True)
        places = [found.start() for found in _PROMPT.finditer(seen)]
        self._prompts = len(places)
        return seen[places[-2] if len(places) > 1 else 0 : places[-1]].rstrip()

    def say(self, *lines: str) -> str:
        """Type lines, each when the one before is answered; what was shown from the last one on."""
        shown = ""
        if not self._prompts:
            self.ready()
        for line in lines:
            self.enter(line)
            shown = self.ready()
        return shown

    def enter(self, line: str) -> None:
        """Type a line and wait for nothing."""
        self.type(line)
        self.press("Enter")

    def leave(self) -> str:
        """Type `exit`; what is shown on the way out."""
        self.enter("exit")
        assert self.ended() == 0
        return self.text().rpartition("You: exit\n")[2]


def _asks(text: str, prompts: int) -> bool:
    return text.rstrip().endswith("You:") and len(_PROMPT.findall(text)) >= prompts
