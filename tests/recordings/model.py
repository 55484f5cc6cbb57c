"""The model's side of a recording: plays the replies of the current turn to whichever program asks.

The recorder says which turn begins (`begin`); each request of the program then gets the turn's next reply, and the last one
again if it asks once more. A request that is not part of the turn (a title, a suggestion) gets a title. What was said, which
calls were made and what came back is noted with its moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from tests.agents.heard import Heard, heard, tools
from tests.model_server import Answer as HttpAnswer
from tests.model_server import Asked, Call, Says, refuses
from tests.model_wires import rendered
from tests.recordings.steps import Reply, Tool
from tests.recordings.truth import Answer, Moment, Notice, ToolRun, squash

TITLE = "A short title"
REFUSAL = "The model is not at home"


class Spelling(Protocol):
    """A neutral tool in the words of a program; None where none of the tools it offers does that."""

    def __call__(self, tool: Tool, offered: list[str]) -> tuple[str, Any] | None: ...


class ScriptedModel:
    """See the module. An instance is the script of a `ModelServer`."""

    def __init__(self, spell: Spelling, now: Callable[[], Moment]) -> None:
        self.answers: list[Answer] = []
        self.calls: list[ToolRun] = []
        self.failures: list[Notice] = []
        self.heard: dict[int, str] = {}  # a prompt, where the program told it in other characters
        self.side_requests: list[str] = []
        self._spell, self._now = spell, now
        self._lock = threading.Lock()
        self._replies: tuple[Reply, ...] = ()
        self._prompt, self._text, self._played = -1, "", 0
        self._busy_until = 0.0
        self._open: dict[str, int] = {}  # id of a call without a result: its index

    # the recorder asks ------------------------------------------------------------------------------------------------
    def begin(self, prompt: int, text: str, replies: tuple[Reply, ...]) -> None:
        """A turn begins."""
        with self._lock:
            self._prompt, self._text, self._replies, self._played = prompt, text, replies, 0
            self._open.clear()

    @property
    def has_begun(self) -> bool:
        """Whether the program has asked for this turn."""
        return self._played > 0

    @property
    def is_idle(self) -> bool:
        """Whether every reply of the turn was asked for and sent."""
        with self._lock:
            return self._played >= len(self._replies) and time.monotonic() > self._busy_until

    def stop_waiting(self) -> None:
        """The turn ends here: it was interrupted or refused."""
        with self._lock:
            self._played, self._busy_until = len(self._replies), 0.0

    def deny_open_calls(self) -> None:
        """The calls without a result were refused by the user."""
        with self._lock:
            for place in self._open.values():
                self.calls[place] = _changed(self.calls[place], "denied")

    # the program asks -------------------------------------------------------------------------------------------------
    def __call__(self, asked: Asked) -> Says | HttpAnswer:
        with self._lock:
            told = heard(asked)
            offered = tools(asked)
            if not offered or not self._is_of_turn(told):
                self.side_requests.append(told[-1].text[:80] if told else "")
                return Says(TITLE)
            self._note_prompt(told)
            self._note_results(told)
            return self._play(asked, offered)

    def _is_of_turn(self, told: list[Heard]) -> bool:
        last = next((place for place in reversed(range(len(told))) if told[place].kind != "user"), -1)
        said = squash(" ".join(piece.text for piece in told[last + 1 :]))
        return squash(self._text)[:60] in said or (last >= 0 and told[last].kind in ("call", "result"))

    def _play(self, asked: Asked, offered: list[str]) -> Says | HttpAnswer:
        """The next reply. One whose calls the program cannot make would end the turn: its text goes to the next."""
        said: list[str] = []
        while True:
            reply = self._replies[min(self._played, len(self._replies) - 1)]
            self._played += 1
            calls = [(tool, spelt) for tool in reply.calls if (spelt := self._spell(tool, offered))]
            said += [reply.text] if reply.text else []
            if calls or reply.fails or self._played >= len(self._replies):
                break
        if reply.fails:
            self.failures.append(Notice("failure", REFUSAL, self._now()))
            return refuses(reply.fails, "invalid_request_error", REFUSAL)
        return self._said(asked, replace(reply, text="\n\n".join(said)), calls)

    def _said(self, asked: Asked, reply: Reply, calls: list[tuple[Tool, tuple[str, Any]]]) -> Says:
        made = []
        for place, (tool, (name, arguments)) in enumerate(calls):
            call_id = f"call_{asked.number}_{place}"
            self._open[call_id] = len(self.calls)
            self.calls.append(ToolRun(tool.kind, tool.key, name, arguments, self._now(), self._prompt))
            made.append(Call(name, arguments, call_id))
        if reply.text:
            self.answers.append(Answer(reply.text, self._now(), self._prompt))
        says = Says(reply.text, tuple(made))
        events = len(rendered(asked.wire, says, "m", asked.number).events)
        drip = (reply.lasts or min(6.0, 0.3 + 0.012 * events)) / events
        self._busy_until = time.monotonic() + events * drip
        return Says(reply.text, tuple(made), drip=drip)

    def _note_prompt(self, told: list[Heard]) -> None:
        """Remember the prompt as it was told, where keys went elsewhere or came from elsewhere."""
        wanted = squash(self._text)
        near = [piece.text for piece in told if piece.kind == "user" and wanted in squash(piece.text)]
        text = near[-1].strip() if near else self._text
        if text.split() != self._text.split() and len(text) < len(self._text) + 40:
            self.heard[self._prompt] = text

    def _note_results(self, told: list[Heard]) -> None:
        if not self._open:
            return
        results = {piece.call: piece.text for piece in told if piece.kind == "result"}
        if not results.keys() & self._open.keys():  # a wire without ids: by order
            texts = [piece.text for piece in told if piece.kind == "result"]
            results = dict(zip(self._open, texts[-len(self._open) :], strict=False))
        for call_id, place in self._open.items():  # of a call without output nothing is heard
            call = self.calls[place]
            self.calls[place] = _changed(call, "ok" if call.status == "none" else call.status, results.get(call_id, ""))
        self._open.clear()


def _changed(call: ToolRun, status: str, result: str | None = None) -> ToolRun:
    return ToolRun(call.kind, call.key, call.name, call.arguments, call.when, call.prompt, status, result)
