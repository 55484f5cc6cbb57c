"""What a reader of screens makes of a recording: who said what, in order, and where on the screen it stood.

A `ScreenTalk` is one conversation. Each of its items stands for one thing that was drawn: a prompt, a stretch of an answer, a
tool call, a notice. Nothing is added that was not on a screen: what was cut off is `partial`, and the result of a tool is
always so, because clients draw only its first lines.
"""

from __future__ import annotations

from msgspec import Struct

#: First and last, both included: lines of the clean transcript (counted over all segments) or bytes of the recording.
Span = tuple[int, int]


class DrawnCall(Struct, frozen=True):
    """A tool call as its title and what was drawn below it tell."""

    name: str  # the client's own name of the tool where the title gives it away, else the title's first word
    kind: str = "other"  # of CALL_KINDS
    title: str = ""  # as drawn
    path: str = ""
    command: str = ""
    pattern: str = ""  # what a search looked for
    prompt: str = ""  # what a task is about
    agent: str = ""  # who was given the task
    arguments: dict[str, str] = {}  # what else the title says, such as limit=20
    status: str = "ok"  # open: it was still waiting or running when last seen; ok; error
    error_class: str = ""  # of ERROR_CLASSES
    action: str = ""  # of ACTIONS, when it went well
    output: str = ""
    fidelity: str = "partial"  # of the output
    steps: tuple[str, ...] = ()  # titles of the calls a subagent made
    diagnostics: tuple[str, ...] = ()  # what the language server complained about
    lines: Span = (0, 0)


class DrawnSaying(Struct, frozen=True):
    """One thing that was drawn."""

    role: str  # of ROLES
    kind: str = "text"  # of MESSAGE_KINDS
    text: str = ""
    thinking: str = ""
    calls: tuple[DrawnCall, ...] = ()
    author: str = ""  # the human's name, where the screen shows it
    mode: str = ""  # the agent that answered: Plan, Build …
    model: str = ""
    time_text: str = ""  # as drawn
    at: int | None = None  # milliseconds, UTC
    precision: str = ""  # of PRECISIONS
    duration_ms: int | None = None  # of the whole turn, where its last item says so
    attached: tuple[str, ...] = ()  # names of files sent along
    step: int = -1  # which response of the model it belongs to, counted within the talk
    starts_turn: bool = False
    queued: bool = False  # was sent while the agent worked
    aborted: bool = False  # the request was stopped by the human or refused
    interrupted: bool = False  # what is here had not come to its end
    lines: Span = (0, 0)
    bytes: Span = (0, 0)
    fidelity: str = "rendered"  # partial: a part of it was never drawn


class ScreenTalk(Struct, frozen=True):
    """One conversation of a recording."""

    dialect: str  # boxes | panels | prompts | plain
    said: tuple[DrawnSaying, ...] = ()
    titles: tuple[str, ...] = ()  # every title it had, the last is the one it kept
    native_id: str = ""  # when the client printed one
    client: str = ""  # version of the client
    workspace: str = ""
    tokens: int | None = None  # context in use when last shown, rounded as drawn
    percent: int | None = None
    working: bool = False  # the agent was still at work when last seen
    cut_top: bool = False  # it began before the recording
