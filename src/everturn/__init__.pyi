"""The names of `everturn`, for type checkers: at run time each is loaded when it is first used."""

from everturn.errors import (
    ConversationStateMismatch,
    EverturnError,
    SessionNotFound,
    SnapshotRestoreError,
    ToolIdempotencyError,
)
from everturn.recall.search import search
from everturn.resume.checkpoints import (
    Checkpoint,
    CheckpointHandler,
    FileCheckpointHandler,
    resume_evaluation,
    save_checkpoint,
)
from everturn.resume.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    ToolCallRecord,
)
from everturn.resume.conversations import ConversationStore
from everturn.resume.evaluation import Adapter, PromptResponse, TextPrompt, evaluate
from everturn.resume.journal import Journal, open_archive
from everturn.resume.loop import Budget, Loop, Outcome
from everturn.resume.mainloop import MainLoop
from everturn.resume.recording import enable_conversation_recording, settle
from everturn.resume.slices import EvaluationSession as Session
from everturn.resume.slices import append, replace_latest, upsert
from everturn.resume.snapshots import Snapshot
from everturn.resume.tools import Tool, ToolContext, tool
from everturn.sources import all_sources

__version__: str

__all__ = [
    "Adapter",
    "Budget",
    "Checkpoint",
    "CheckpointHandler",
    "ConversationMessage",
    "ConversationState",
    "ConversationStateMismatch",
    "ConversationStore",
    "ConversationTurn",
    "EverturnError",
    "FileCheckpointHandler",
    "Journal",
    "Loop",
    "MainLoop",
    "Outcome",
    "PromptResponse",
    "Session",
    "SessionNotFound",
    "Snapshot",
    "SnapshotRestoreError",
    "TextPrompt",
    "Tool",
    "ToolCallRecord",
    "ToolContext",
    "ToolIdempotencyError",
    "__version__",
    "all_sources",
    "append",
    "enable_conversation_recording",
    "evaluate",
    "open_archive",
    "replace_latest",
    "resume_evaluation",
    "save_checkpoint",
    "search",
    "settle",
    "tool",
    "upsert",
]
