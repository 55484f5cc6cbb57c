"""everturn: the memory of AI agents. Keep the bytes, derive everything else.

What a program needs is here and in `docs/library.md`: `read` for the turns of a file, `open_archive` and `search` for what is in the archive,
`ConversationStore` for a program with a loop of its own, `Journal` and `Loop` for one that survives `kill -9`,
`evaluate`, `Session` and checkpoints for single prompts. Nothing is loaded before it is used; the types are in `__init__.pyi`.
"""

import sys

__version__ = "0.1.0"

_HOMES = {
    "errors": "ConversationStateMismatch EverturnError SessionNotFound SnapshotRestoreError ToolIdempotencyError",
    "evaluation.evaluate": "Adapter PromptResponse TextPrompt evaluate",
    "evaluation.main_loop": "Checkpoint CheckpointHandler FileCheckpointHandler MainLoop resume_evaluation save_checkpoint",
    "evaluation.recorder": "enable_conversation_recording settle",
    "evaluation.session": "EvaluationSession Session=EvaluationSession append replace_latest upsert",
    "evaluation.snapshot": "Snapshot",
    "llm.config": "open_model",
    "loop.conversation": "ConversationMessage ConversationState ConversationTurn ToolCallRecord",
    "loop.conversation_store": "ConversationStore",
    "loop.journal": "Journal open_archive",
    "loop.async_loop": "AsyncLoop LoopEvent",
    "loop.execution": "read_large_result",
    "loop.loop": "Budget Loop Outcome WaitingCall Watch",
    "loop.recovery": "recover unfinished_sessions",
    "loop.subagent": "subagent",
    "model.archive": "ArchivedSession=Session",
    "loop.recall_tool": "recall_tool",
    "loop.tools": "NotDone ReconciledResult Tool ToolContext tool",
    "retrieval.search": "search",
    "sources.contract": "all_sources",
    "sources.file_turns": "FileCall FileTurn read=read_turns",
}

#: Public name → its module and its name there.
_PLACES = {
    public: (home, own or public)
    for home, names in _HOMES.items()
    for public, _, own in (entry.partition("=") for entry in names.split())
}
__all__ = ["__version__"]
__all__ += list(_PLACES)


class _MovedFinder:
    """Finds modules by their old names. Python asks it last, for modules that do not exist."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        if not name.startswith("everturn."):
            return None
        from everturn.deprecations import find_moved

        return find_moved(name)


def __getattr__(name: str) -> object:
    """Load a name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'everturn' has no attribute {name!r}")
    from importlib import import_module

    home, own = _PLACES[name]
    globals()[name] = found = getattr(import_module(f"everturn.{home}"), own)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


sys.meta_path.append(_MovedFinder)  # type: ignore[arg-type]
