"""Requests processed one by one, each with a checkpoint that survives its process.

    class Reviews(MainLoop[ReviewRequest]):
        def create_prompt(self, request): return TextPrompt("reviews", "v1", request.text)

    Reviews(adapter, checkpoint_handler=FileCheckpointHandler(folder)).execute(request)

With a handler the session is saved before every tool and after every result, and the checkpoint is cleared when there is
an answer. A request with a checkpoint continues from it. The whole snapshot is written each time, which grows with the
conversation; a `Journal` in the archive does not.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

from everturn.clock import new_id
from everturn.errors import NoConversationState, SnapshotRestoreError, Unreadable, UsageError
from everturn.evaluation.evaluate import Evaluates, Prompt, PromptResponse
from everturn.evaluation.recorder import enable_conversation_recording
from everturn.evaluation.session import EvaluationSession
from everturn.evaluation.snapshot import Snapshot
from everturn.loop.conversation import ConversationState

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)

_LONGEST = 200  # characters of a file's name


@dataclass(frozen=True)
class Checkpoint:
    """The saved session of a request."""

    snapshot: Snapshot


class CheckpointHandler(Protocol[RequestT_contra]):
    """Stores checkpoints."""

    def load(self, request: RequestT_contra) -> Checkpoint | None:
        """Return the checkpoint of a request, or None."""

    def save(self, request: RequestT_contra, snapshot: Snapshot) -> None:
        """Replace the checkpoint. It is durable when this returns."""

    def clear(self, request: RequestT_contra) -> None:
        """Remove the checkpoint of a finished request."""


class HasId(Protocol):
    """A request with a unique id."""

    @property
    def id(self) -> Any: ...


class FileCheckpointHandler:
    """One file per request in a folder: `<request.id>.json`, readable by its owner only."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def load(self, request: HasId) -> Checkpoint | None:
        """Return the checkpoint of a request. Raise SnapshotRestoreError if it is damaged."""
        path = self.path(request)
        return Checkpoint(_load(path)) if path.exists() else None

    def save(self, request: HasId, snapshot: Snapshot) -> None:
        """Replace the file atomically."""
        _write(self.path(request), snapshot.to_json())

    def clear(self, request: HasId) -> None:
        """Remove the file if it exists."""
        self.path(request).unlink(missing_ok=True)

    def path(self, request: HasId) -> Path:
        """Return the file of a request: always in the folder, whatever the id, and unique for each id."""
        name = quote(str(request.id), safe=" ", errors="surrogatepass")
        if not name:
            raise UsageError("a request without an id cannot have a checkpoint")
        if len(name) > _LONGEST:
            name = f"{name[:100]}%~{blake2b(name.encode(), digest_size=16).hexdigest()}"
        return self._folder / f"{name}.json"


def save_checkpoint(session: EvaluationSession, path: str | Path) -> None:
    """Save a session. The file is replaced atomically."""
    _write(Path(path), session.snapshot().to_json())


def resume_evaluation(
    adapter: Evaluates,
    prompt: Prompt,
    checkpoint_path: str | Path,
    *,
    session: EvaluationSession | None = None,
    saved: Callable[[], None] | None = None,
) -> PromptResponse:
    """Continue from a checkpoint of `save_checkpoint`.

    A checkpoint with the program's own slices needs a session that has registered them. Raise SnapshotRestoreError,
    NoConversationState, ConversationStateMismatch, ToolIdempotencyError.
    """
    session = session or EvaluationSession()
    enable_conversation_recording(session)
    session.mutate().rollback(_load(Path(checkpoint_path)))
    state = session.query(ConversationState).latest()
    if state is None:
        raise NoConversationState(str(checkpoint_path))
    return adapter.evaluate(prompt, session=session, resume_from=state, saved=saved)


def _load(path: Path) -> Snapshot:
    try:
        text = path.read_bytes()
    except OSError as failure:
        raise Unreadable(str(path), failure.strerror or str(failure)) from failure
    try:
        return Snapshot.from_json(text)
    except SnapshotRestoreError as failure:
        raise SnapshotRestoreError(failure.problems, str(path)) from failure


def _write(path: Path, text: str) -> None:
    """Write a temporary file, sync it, and move it into place."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{new_id()}.part")
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name != "nt":  # sync the name too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


UserRequestT = TypeVar("UserRequestT")


class MainLoop(ABC, Generic[UserRequestT]):
    """Makes a prompt and a session for each request."""

    def __init__(
        self, adapter: Evaluates, *, checkpoint_handler: CheckpointHandler[UserRequestT] | None = None
    ) -> None:
        self._adapter, self._checkpoint_handler = adapter, checkpoint_handler

    @abstractmethod
    def create_prompt(self, request: UserRequestT) -> Prompt:
        """Return the prompt for a request."""

    def create_session(self, request: UserRequestT) -> EvaluationSession:
        """Return a session with the registered slices this loop needs; a plain one unless overridden."""
        return EvaluationSession()

    def execute(self, request: UserRequestT) -> PromptResponse:
        """Return the answer to a request. If anything raises, the next `execute` continues from the checkpoint."""
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
