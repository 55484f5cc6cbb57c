"""Old import paths of documented names, and the warning for renamed methods. Each still works, warns with `DeprecationWarning`, and is removed in 0.3.

`everturn/__init__.py` puts a finder at the end of `sys.meta_path`, so it is asked only for modules that do not exist.
"""

from __future__ import annotations

import importlib
import warnings
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

#: Old module → names that were documented there, as `name=new.module:new_name`.
MOVED = {
    "analyse": "",
    "analyse.inspect": "inspect=analytics.inspect:inspect_tools",
    "analyse.money": "cost_by=analytics.cost:cost_by dollars=analytics.cost:dollars",
    "analyse.paths": "paths=analytics.paths:find_paths",
    "analyse.plane": "Scope=store.contract:AnalyticsScope",
    "analyse.stats": "stats=analytics.stats:count_stats",
    "analyse.struggles": "struggles=analytics.struggles:find_struggles",
    "analyse.suggest": "suggest=analytics.suggest:find_suggestions",
    "analyse.tracks": "seen_in=analytics.counts:find_examples",
    "analyse.turns": "turns=analytics.turns:list_turn_rows shapes=analytics.turns:list_shape_rows Wanted=analytics.turns:TurnFilter",
    "llm.asking": "Asker=llm.asker:Asker Budget=llm.asker:AskBudget",
    "llm.configured": "Described=llm.config:ModelConfig Surroundings=llm.config:Surroundings open_backend=llm.config:open_backend",
    "recall.search": "search=retrieval.search:search",
    "resume": (
        "Adapter=evaluation.evaluate:Adapter Checkpoint=evaluation.main_loop:Checkpoint "
        "CheckpointHandler=evaluation.main_loop:CheckpointHandler ConversationMessage=loop.conversation:ConversationMessage "
        "ConversationState=loop.conversation:ConversationState ConversationStore=loop.conversation_store:ConversationStore "
        "ConversationTurn=loop.conversation:ConversationTurn FileCheckpointHandler=evaluation.main_loop:FileCheckpointHandler "
        "MainLoop=evaluation.main_loop:MainLoop Prompt=evaluation.evaluate:Prompt "
        "PromptResponse=evaluation.evaluate:PromptResponse Rendered=evaluation.evaluate:RenderedPrompt "
        "Session=evaluation.session:EvaluationSession Snapshot=evaluation.snapshot:Snapshot "
        "StartedCall=loop.conversation:StartedCall TextPrompt=evaluation.evaluate:TextPrompt "
        "ToolCallRecord=loop.conversation:ToolCallRecord append=evaluation.session:append "
        "chat_messages=loop.conversation:chat_messages "
        "enable_conversation_recording=evaluation.recorder:enable_conversation_recording "
        "evaluate=evaluation.evaluate:evaluate replace_latest=evaluation.session:replace_latest "
        "resume_evaluation=evaluation.main_loop:resume_evaluation save_checkpoint=evaluation.main_loop:save_checkpoint "
        "settle=evaluation.recorder:settle upsert=evaluation.session:upsert"
    ),
    "resume.requests": "View=loop.model_request:RequestView",
}


def warn_renamed(old: str, new: str) -> None:
    """Warn the caller of a method that has a new name."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=3)


def moved_name(module: str, name: str) -> object:
    """Return a name that was in `everturn.<module>` from its new home. Raises AttributeError if it was not documented."""
    for entry in MOVED[module].split():
        old, _, target = entry.partition("=")
        if old == name:
            home, _, new = target.partition(":")
            message = f"everturn.{module}.{name} is deprecated; use everturn.{home}.{new}"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            found: object = getattr(importlib.import_module(f"everturn.{home}"), new)
            return found
    raise AttributeError(f"module 'everturn.{module}' has no attribute {name!r}")


def find_moved(name: str) -> ModuleSpec | None:
    """Return the spec of a module that is gone and whose documented names have moved."""
    module = name.removeprefix("everturn.")
    return spec_from_loader(name, _MovedLoader(), is_package=module == "analyse") if module in MOVED else None


class _MovedLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a module that looks its names up where they are now."""
        module = ModuleType(spec.name, "Names that have moved. See `everturn.deprecations`.")
        old = spec.name.removeprefix("everturn.")
        module.__getattr__ = lambda name: moved_name(old, name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a moved module has no code."""
