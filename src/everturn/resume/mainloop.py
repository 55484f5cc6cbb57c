"""Requests worked off one by one, each of which survives its process.

    class Reviews(MainLoop[ReviewRequest]):
        def create_prompt(self, request): return TextPrompt("reviews", "v1", request.text)

    Reviews(adapter, checkpoint_handler=FileCheckpointHandler(folder)).execute(request)

With a handler the session is saved before every tool and after every result, and the checkpoint is cleared when there is
an answer. A request that has a checkpoint is taken up from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from everturn.resume.checkpoints import CheckpointHandler
from everturn.resume.conversation import ConversationState
from everturn.resume.evaluation import Evaluates, Prompt, PromptResponse
from everturn.resume.recording import enable_conversation_recording
from everturn.resume.slices import EvaluationSession

UserRequestT = TypeVar("UserRequestT")


class MainLoop(ABC, Generic[UserRequestT]):
    """Makes a prompt and a session for each request."""

    def __init__(
        self, adapter: Evaluates, *, checkpoint_handler: CheckpointHandler[UserRequestT] | None = None
    ) -> None:
        self._adapter, self._checkpoint_handler = adapter, checkpoint_handler

    @abstractmethod
    def create_prompt(self, request: UserRequestT) -> Prompt:
        """What to ask for a request."""

    def create_session(self, request: UserRequestT) -> EvaluationSession:
        """A session with the slices this loop needs, registered; a plain one unless overridden."""
        return EvaluationSession()

    def execute(self, request: UserRequestT) -> PromptResponse:
        """The answer to a request.

        Whatever is raised on the way, the checkpoint stays: the next `execute` of the same request goes on from there.
        """
        session, prompt, handler = self.create_session(request), self.create_prompt(request), self._checkpoint_handler
        if handler is None:
            return self._adapter.evaluate(prompt, session=session)
        enable_conversation_recording(session)
        checkpoint = handler.load(request)
        if checkpoint is not None:
            session.mutate().rollback(checkpoint.snapshot)
        state = session.query(ConversationState).latest()
        response = self._adapter.evaluate(
            prompt, session=session, resume_from=state, saved=lambda: handler.save(request, session.snapshot())
        )
        handler.clear(request)
        return response
