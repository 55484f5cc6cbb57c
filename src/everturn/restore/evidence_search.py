"""The evidence search: a model looks things up in the log of a session before it writes the summary.

It calls tools, or writes requests in brackets if it cannot. The search ends when the model completes it, requests nothing
or repeats its requests, when its rounds or the room for evidence are used up, or when the model fails. The findings so
far remain, and `notes` say why it ended. A tool that fails is a finding like any other; nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from everturn.errors import ModelError
from everturn.llm.asker import Asker
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply, ToolSpec
from everturn.recall.budget import cost
from everturn.recall.evidence import EvidenceSearchTools
from everturn.recall.evidence_calls import FORMS, MAX_REQUESTS, call_evidence_tool, evidence_tools, parse_requests
from everturn.restore.prompts import RestorePrompt, fill_prompt, without_thoughts_text
from everturn.text.printable import plural, safe_line

_ANSWER = 1500  # tokens
_COMPLETE_TOOL = "complete_evidence_search"
_TOOLS_HINT = "Call the tools you were given. Call complete_evidence_search when you have enough."
_ASKED_BEFORE = "You asked for exactly this before; the answer is above. Ask for something else, or complete."
_NO_ROOM = "Not run: there is no space left for evidence. Complete the search."
_ARGUMENTS = {
    "search_log": ("pattern",),
    "search_file": ("file_path", "pattern"),
    "read_file": ("file_path", "start_line", "end_line"),
}


class EvidenceFinding(Struct, frozen=True):
    request: str
    result: str


class EvidenceFindings(Struct, frozen=True):
    """All findings, in the order requested."""

    findings: tuple[EvidenceFinding, ...] = ()
    rounds: int = 0
    is_complete: bool = False  # the model completed the search itself
    notes: tuple[str, ...] = ()


class EvidenceWish(Struct, frozen=True):
    """One request of a model, as a tool call or in brackets."""

    name: str
    arguments: dict[str, Any] | str
    written: str
    wrong: str = ""  # the answer if it cannot be run
    call_id: str = ""


class Brief(Struct, frozen=True):
    """The prompt, and the values it is filled with besides the evidence."""

    prompt: RestorePrompt
    values: dict[str, str]
    tokens: int  # room for evidence


def search_evidence(asker: Asker, tools: EvidenceSearchTools, brief: Brief, native: bool) -> EvidenceFindings:
    loop = _EvidenceLoop(tools, brief)
    messages: list[ChatMessage] = []
    while not loop.over:
        reply = loop.ask(
            asker, _native_request(brief, messages, loop.left) if native else _bracket_request(brief, loop)
        )
        if reply is None:
            break
        calls = [_read_call(part) for part in reply.calls] if native else []
        results = loop.run_round(calls or _read_bracketed(reply.text))
        if native and calls:
            parts = tuple(ChatPart("result", text, one.call_id, one.name) for one, text in results)
            messages += [reply.message, ChatMessage("tool", parts)]
        elif native:
            messages += [reply.message, _user_message("\n\n".join(f"{one.written}\n{text}" for one, text in results))]
    return loop.collect()


def findings_text(found: EvidenceFindings, tokens: int) -> str:
    """Return the findings for the next prompt. If there is no room for all, the latest, and how many were left out."""
    texts: list[str] = []
    room = tokens
    for number, finding in enumerate(reversed(found.findings)):
        text = f"{finding.request}\n{finding.result}"
        if cost(text) > room:
            left = len(found.findings) - number
            texts.append(f"[{left} earlier finding{'' if left == 1 else 's'} omitted: no space left]")
            break
        texts.append(text)
        room -= cost(text) + 2
    return "\n\n".join(reversed(texts)) or "(none)"


class _EvidenceLoop:
    def __init__(self, tools: EvidenceSearchTools, brief: Brief) -> None:
        self.tools, self.room = tools, brief.tokens
        self.findings: list[EvidenceFinding] = []
        self.requested: set[str] = set()
        self.notes: list[str] = []
        self.idle = 0
        self.over = not tools.should_continue_search()

    @property
    def left(self) -> int:
        """The number of rounds left."""
        return self.tools.max_searches - self.tools.rounds

    def ask(self, asker: Asker, request: ModelRequest) -> Reply | None:
        """Return the reply; None, and a note, if there is none."""
        try:
            return asker.ask(request, f"evidence {self.tools.rounds + 1}")
        except ModelError as error:
            self._end_search(f"the evidence search ended early: {error.why}")
            return None

    def run_round(self, wishes: list[EvidenceWish]) -> list[tuple[EvidenceWish, str]]:
        """Run requests in order and decide whether the search goes on."""
        self.tools.rounds += 1
        results = [(one, self._run_wish(one, number)) for number, one in enumerate(wishes)]
        fresh = [one for one, text in results if text is not _ASKED_BEFORE and one.name != _COMPLETE_TOOL]
        self.idle = 0 if fresh else self.idle + 1
        if self.tools.is_complete:
            self.over = True
        elif not wishes:
            self._end_search("the model stopped the evidence search without completing it")
        elif self.idle == 2:
            self._end_search("the evidence search was stopped: the model repeated requests that had been answered")
        elif self.room <= 0:
            self._end_search("the evidence search was stopped: there was no space left for its findings")
        elif not self.left:
            self._end_search(
                f"the evidence search was stopped after {plural(self.tools.rounds, 'round')}; its findings were used"
            )
        return results

    def collect(self) -> EvidenceFindings:
        return EvidenceFindings(tuple(self.findings), self.tools.rounds, self.tools.is_complete, tuple(self.notes))

    def _run_wish(self, one: EvidenceWish, number: int) -> str:
        if self.tools.is_complete:
            return "Not run: the search is complete."
        if number >= MAX_REQUESTS:
            return f"Not run: at most {MAX_REQUESTS} requests at once."
        if one.name == _COMPLETE_TOOL and not one.wrong:
            self.tools.is_complete = True
            return "The search is complete."
        key = one.written if one.wrong else f"{one.name} {_arguments_text(one.arguments)}"
        if key in self.requested:
            return _ASKED_BEFORE
        if self.room <= 0:
            return _NO_ROOM
        self.requested.add(key)
        text = one.wrong or _run_safely(lambda: call_evidence_tool(self.tools, one.name, one.arguments))
        self.room -= cost(text) + cost(one.written)
        self.findings.append(EvidenceFinding(one.written, text))
        return text

    def _end_search(self, note: str) -> None:
        self.over = True
        self.notes.append(note)


def _run_safely(work: Callable[[], str]) -> str:
    """Run a tool. If it breaks, the model gets that as the result."""
    try:
        return work()
    except Exception as error:
        return f"The tool failed ({type(error).__name__}); try another way."


# --- requests ---
def _native_request(brief: Brief, messages: list[ChatMessage], left: int) -> ModelRequest:
    """Build a request with all messages so far: the model has no memory of its own."""
    values = {**brief.values, "tools": _TOOLS_HINT, "evidence": "(see the results of your calls)", "rounds": str(left)}
    tools = tuple(ToolSpec(one.name, one.description, one.parameters) for one in evidence_tools())
    return ModelRequest((_user_message(fill_prompt(brief.prompt, values)), *messages), tools=tools, max_tokens=_ANSWER)


def _bracket_request(brief: Brief, loop: _EvidenceLoop) -> ModelRequest:
    forms = "\n".join(("Write one or more of these, each on a line of its own:", *FORMS.values()))
    evidence = findings_text(loop.collect(), brief.tokens)
    values = {**brief.values, "tools": forms, "evidence": evidence, "rounds": str(loop.left)}
    return ModelRequest((_user_message(fill_prompt(brief.prompt, values)),), max_tokens=_ANSWER)


def _user_message(text: str) -> ChatMessage:
    return ChatMessage("user", (ChatPart("text", text),))


def _read_call(part: ChatPart) -> EvidenceWish:
    arguments = part.arguments if isinstance(part.arguments, dict) else str(part.arguments or "{}")
    written = f"{safe_line(part.name, str, 80)}({safe_line(_arguments_text(arguments), str, 400)})"
    return EvidenceWish(part.name, arguments, written, call_id=part.call_id)


def _arguments_text(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, default=str)


def _read_bracketed(text: str) -> list[EvidenceWish]:
    """Read requests in brackets, also from a model that has tools but wrote instead."""
    found = []
    for request in parse_requests(without_thoughts_text(text)):
        name, given = request.name.lower(), request.arguments
        wrong = "" if given is not None else f"This is not a request that can be run; write {FORMS[request.name]}"
        names = _ARGUMENTS.get(name, ())
        arguments: dict[str, Any] = {
            key: int(value) if re.fullmatch(r"\w+_line", key) else value
            for key, value in zip(names, given or (), strict=False)
            if value is not None
        }
        found.append(EvidenceWish(name, arguments, safe_line(request.written, str, 300), wrong))
    return found
