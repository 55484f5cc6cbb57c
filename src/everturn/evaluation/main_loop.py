"""Requests worked off one by one, each of which survives its process.

    class Reviews(MainLoop[ReviewRequest]):
        def create_prompt(self, request): return TextPrompt("reviews", "v1", request.text)

    Reviews(adapter, checkpoint_handler=FileCheckpointHandler(folder)).execute(request)

With a handler the session is saved before every tool and after every result, and the checkpoint is cleared when there is
an answer. A request that has a checkpoint is taken up from it.

Checkpoints: a session put away after every step, and taken up again by whoever comes next.

A `CheckpointHandler` decides where. `FileCheckpointHandler` keeps one file per request, replaced as a whole: after a crash
there is the old checkpoint or the new one, never half of either, and what was saved has reached the disk. The whole
snapshot is written each time, which grows with the conversation; a `Journal` in the archive does not.
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
    """What was put away for a request."""

    snapshot: Snapshot


class CheckpointHandler(Protocol[RequestT_contra]):
    """Where checkpoints are kept."""

    def load(self, request: RequestT_contra) -> Checkpoint | None:
        """The checkpoint of a request, if there is one."""

    def save(self, request: RequestT_contra, snapshot: Snapshot) -> None:
        """Keep it, in place of the one before. When this returns it is safe."""

    def clear(self, request: RequestT_contra) -> None:
        """The request is done; a checkpoint is not needed any more."""


class HasId(Protocol):
    """A request that can be told from all others."""

    @property
    def id(self) -> Any: ...


class FileCheckpointHandler:
    """One file per request in a folder: `<request.id>.json`, readable by its owner only."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def load(self, request: HasId) -> Checkpoint | None:
        """The checkpoint of a request. Raises SnapshotRestoreError for one that is damaged."""
        path = self.path(request)
        return Checkpoint(_load(path)) if path.exists() else None

    def save(self, request: HasId, snapshot: Snapshot) -> None:
        """Replace it as a whole."""
        _write(self.path(request), snapshot.to_json())

    def clear(self, request: HasId) -> None:
        """Remove it, if it is there."""
        self.path(request).unlink(missing_ok=True)

    def path(self, request: HasId) -> Path:
        """The file of a request: always in the folder, whatever its id says, and another for every other id."""
        name = quote(str(request.id), safe=" ", errors="surrogatepass")
        if not name:
            raise UsageError("a request without an id cannot have a checkpoint")
        if len(name) > _LONGEST:
            name = f"{name[:100]}%~{blake2b(name.encode(), digest_size=16).hexdigest()}"
        return self._folder / f"{name}.json"


def save_checkpoint(session: EvaluationSession, path: str | Path) -> None:
    """Put a session away. The file is replaced as a whole."""
    _write(Path(path), session.snapshot().to_json())


def resume_evaluation(
    adapter: Evaluates,
    prompt: Prompt,
    checkpoint_path: str | Path,
    *,
    session: EvaluationSession | None = None,
    saved: Callable[[], None] | None = None,
) -> PromptResponse:
    """Take up what `save_checkpoint` put away.

    A session is needed where the checkpoint has slices of the program's own: it must have registered them. Raises
    SnapshotRestoreError, NoConversationState, ConversationStateMismatch, ToolIdempotencyError.
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
    """Beside it first, and in its place once it is on the disk."""
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
    if os.name != "nt":  # the name, too, must survive
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
