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
from everturn.evaluation.session import EvaluationSession, append, replace_latest, upsert
from everturn.evaluation.session import EvaluationSession as Session
from everturn.evaluation.snapshot import Snapshot
from everturn.llm.config import open_model
from everturn.loop.async_loop import AsyncLoop, LoopEvent
from everturn.loop.conversation import ConversationMessage, ConversationState, ConversationTurn, ToolCallRecord
from everturn.loop.conversation_store import ConversationStore
from everturn.loop.execution import read_large_result
from everturn.loop.journal import Journal, open_archive
from everturn.loop.loop import Budget, Loop, Outcome, WaitingCall, Watch
from everturn.loop.recall_tool import recall_tool
from everturn.loop.recovery import recover, unfinished_sessions
from everturn.loop.subagent import subagent
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, tool
from everturn.model.archive import Session as ArchivedSession
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources
from everturn.sources.file_turns import FileCall, FileTurn
from everturn.sources.file_turns import read_turns as read

__version__: str

__all__ = [
    "Adapter",
    "ArchivedSession",
    "AsyncLoop",
    "Budget",
    "Checkpoint",
    "CheckpointHandler",
    "ConversationMessage",
    "ConversationState",
    "ConversationStateMismatch",
    "ConversationStore",
    "ConversationTurn",
    "EvaluationSession",
    "EverturnError",
    "FileCall",
    "FileCheckpointHandler",
    "FileTurn",
    "Journal",
    "Loop",
    "LoopEvent",
    "MainLoop",
    "NotDone",
    "Outcome",
    "PromptResponse",
    "ReconciledResult",
    "Session",
    "SessionNotFound",
    "Snapshot",
    "SnapshotRestoreError",
    "TextPrompt",
    "Tool",
    "ToolCallRecord",
    "ToolContext",
    "ToolIdempotencyError",
    "WaitingCall",
    "Watch",
    "__version__",
    "all_sources",
    "append",
    "enable_conversation_recording",
    "evaluate",
    "open_archive",
    "open_model",
    "read",
    "read_large_result",
    "recall_tool",
    "recover",
    "replace_latest",
    "resume_evaluation",
    "save_checkpoint",
    "search",
    "settle",
    "subagent",
    "tool",
    "unfinished_sessions",
    "upsert",
]
