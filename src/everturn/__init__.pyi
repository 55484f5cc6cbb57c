"""The names of `everturn`, for type checkers: at run time each is loaded when it is first used."""

from everturn.errors import (
    ConversationStateMismatch,
    EverturnError,
    SessionNotFound,
    SnapshotRestoreError,
    ToolIdempotencyError,
)
from everturn.evaluation.evaluate import Adapter, PromptResponse, TextPrompt, evaluate
from everturn.evaluation.main_loop import (
    Checkpoint,
    CheckpointHandler,
    FileCheckpointHandler,
    MainLoop,
    resume_evaluation,
    save_checkpoint,
)
from everturn.evaluation.recorder import enable_conversation_recording, settle
from everturn.evaluation.session import EvaluationSession as Session
from everturn.evaluation.session import append, replace_latest, upsert
from everturn.evaluation.snapshot import Snapshot
from everturn.loop.conversation import ConversationMessage, ConversationState, ConversationTurn, ToolCallRecord
from everturn.loop.conversation_store import ConversationStore
from everturn.loop.journal import Journal, open_archive
from everturn.loop.loop import Budget, Loop, Outcome
from everturn.loop.recall_tool import recall_tool
from everturn.loop.tools import Tool, ToolContext, tool
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources

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
    "recall_tool",
    "replace_latest",
    "resume_evaluation",
    "save_checkpoint",
    "search",
    "settle",
    "tool",
    "upsert",
]
