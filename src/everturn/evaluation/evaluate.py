"""Evaluation of one prompt by a model with tools, and its resumption.

`evaluate(backend, prompt, session=…)` renders the prompt and runs it until there is an answer. With `resume_from` nothing
is rendered: the messages are those of the state, calls with a result are not run again, those in doubt follow their tool's
policy, the others run, and the next request goes out. The prompt must be the one of the state. With an `asker` every
request is redacted, within its budget, and leaves a receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everturn.clock import Clock, new_id, now
from everturn.errors import (
    BadAnswer,
    ConversationStateMismatch,
    ModelRefused,
    OverBudget,
    ToolIdempotencyError,
    UsageError,
)
from everturn.evaluation.recorder import ConversationRecording, RecordedJournal, recording_of
from everturn.evaluation.session import EvaluationSession
from everturn.llm.asker import Asker
from everturn.llm.protocol import Backend, Delta, ModelRequest, Reply
from everturn.loop.conversation import ConversationMessage, ConversationState, aware_time
from everturn.loop.loop import Budget, Loop, Outcome
from everturn.loop.tools import Tool, output_request


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as it is sent."""

    user: str
    system: str = ""


class Prompt(Protocol):
    """A prompt, identified by a namespace and a key. With an attribute `output`, a type, its answer is typed."""

    @property
    def ns(self) -> str: ...
    @property
    def key(self) -> str: ...
    def render(self) -> RenderedPrompt:
        """Return the text. Not called when an evaluation is resumed."""


@dataclass(frozen=True)
class TextPrompt:
    """A prompt with a fixed text."""

    ns: str
    key: str
    user: str
    system: str = ""
    output: Any = None  # a dataclass, msgspec struct or pydantic model for the answer: `PromptResponse.output`

    def render(self) -> RenderedPrompt:
        """Return the text."""
        return RenderedPrompt(self.user, self.system)


@dataclass(frozen=True)
class PromptResponse:
    """The answer to a prompt."""

    prompt_name: str  # ns:key
    text: str
    evaluation_id: str
    turns: int  # model responses in the whole evaluation
    state: ConversationState
    output: Any = None  # the answer as the type of the prompt
    is_truncated: bool = False  # the answer reached its limit of tokens


class Evaluates(Protocol):
    """An object that answers prompts: an `Adapter`, or the program's own."""

    def evaluate(
        self,
        prompt: Prompt,
        *,
        session: EvaluationSession,
        resume_from: ConversationState | None = None,
        saved: Callable[[], None] | None = None,
    ) -> PromptResponse:
        """See `evaluate` below."""


@dataclass(frozen=True)
class Adapter:
    """A model with its tools."""

    backend: Backend
    tools: Sequence[Tool] = ()
    budget: Budget = field(default_factory=Budget)
    asker: Asker | None = None

    def evaluate(
        self,
        prompt: Prompt,
        *,
        session: EvaluationSession,
        resume_from: ConversationState | None = None,
        saved: Callable[[], None] | None = None,
    ) -> PromptResponse:
        """See `evaluate` below."""
        return evaluate(
            self.backend, prompt, session=session, tools=self.tools, resume_from=resume_from, saved=saved,
            budget=self.budget, asker=self.asker,
        )  # fmt: skip


def evaluate(  # noqa: PLR0913 -- a published signature
    backend: Backend,
    prompt: Prompt,
    *,
    session: EvaluationSession,
    tools: Sequence[Tool] = (),
    resume_from: ConversationState | None = None,
    saved: Callable[[], None] | None = None,
    budget: Budget = Budget(),  # noqa: B008 -- frozen
    clock: Clock = now,
    asker: Asker | None = None,
) -> PromptResponse:
    """Run a prompt until there is an answer.

    If recording is enabled in the session, every message is in it before it takes effect, and `saved` is called then.
    Raise ConversationStateMismatch for a state of another prompt, ToolIdempotencyError if a call is in doubt and its tool
    may not run again (all others have run by then), and the errors of the backend and the asker.
    """
    sender = _AskerBackend(backend, asker) if asker is not None else backend
    guarded = [tool.name for tool in tools if tool.approval]
    if guarded:
        raise UsageError(
            f"tools that need approval ({', '.join(guarded)}) need a loop that can wait; run them with Loop"
        )
    recording = _open_recording(session)
    if resume_from is None:
        rendered = prompt.render()
        if not rendered.user:
            raise UsageError(f"prompt {_prompt_name(prompt)} has no words for the user's message")
        state = _begin_state(prompt, rendered, clock)
    else:
        _check_prompt(prompt, resume_from)
        rendered, state = RenderedPrompt(""), resume_from
    with session.lock:
        recording.begin(state)
    journal = RecordedJournal(recording, state, tools, clock, saved or (lambda: None))
    loop = Loop(sender, tools, state.system_message.content, budget, output=getattr(prompt, "output", None))
    outcome = loop.run(journal, rendered.user) if resume_from is None else loop.resume(journal)
    return _make_response(backend, prompt, outcome, recording)


class _AskerBackend:
    """A backend that sends every request through an asker."""

    def __init__(self, backend: Backend, asker: Asker) -> None:
        if asker.backend is not None and asker.backend is not backend:
            raise UsageError(f"the asker asks {asker.backend.name}, not {backend.name}; give the one of this backend")
        self._asker = asker
        self.name, self.model, self.window = backend.name, backend.model, backend.window
        self.max_tokens, self.takes_tools = backend.max_tokens, backend.takes_tools
        self.bound, self.wire = getattr(backend, "bound", False), getattr(backend, "wire", "")
        self.body = getattr(backend, "body", None)

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        return self._asker.stream(request, "evaluate")

    def ask(self, request: ModelRequest) -> Reply:
        return self._asker.ask(request, "evaluate")


def _open_recording(session: EvaluationSession) -> ConversationRecording:
    """Return the recording of the session if it is enabled, otherwise a private one."""
    return ConversationRecording() if session.slice(ConversationState) is None else recording_of(session)


def _begin_state(prompt: Prompt, rendered: RenderedPrompt, clock: Clock) -> ConversationState:
    when = aware_time(clock())
    request = output_request(getattr(prompt, "output", None))
    text = "\n\n".join(filter(None, [rendered.system, request]))
    system = ConversationMessage("system", text, created_at=when)
    return ConversationState(new_id(), prompt.ns, prompt.key, system, created_at=when)


def _check_prompt(prompt: Prompt, state: ConversationState) -> None:
    if (prompt.ns, prompt.key) != (state.prompt_ns, state.prompt_key):
        raise ConversationStateMismatch(f"{state.prompt_ns}:{state.prompt_key}", _prompt_name(prompt))


def _make_response(
    backend: Backend, prompt: Prompt, outcome: Outcome, recording: ConversationRecording
) -> PromptResponse:
    state = recording.items()[-1]
    if outcome.state == "paused":
        raise ToolIdempotencyError({call.call_id: call.name for call in outcome.waiting})
    if outcome.state == "cancelled":
        raise KeyboardInterrupt
    if outcome.state == "cut":
        raise BadAnswer(backend.name, "the answer was cut off; resume to ask again")
    if outcome.state == "refused":
        raise ModelRefused(backend.name, "it declined to answer")
    if outcome.state == "over_budget":
        raise OverBudget(backend.name, "the budget of this evaluation is spent")
    if outcome.error is not None:
        raise outcome.error
    return PromptResponse(
        _prompt_name(prompt), outcome.text, state.evaluation_id, len(state.turns), state, outcome.output,
        outcome.state == "truncated",
    )  # fmt: skip


def _prompt_name(prompt: Prompt) -> str:
    return f"{prompt.ns}:{prompt.key}"
