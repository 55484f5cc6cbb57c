"""Take a conversation up again: the journal of a running one, the loop that survives its process, and what surrounds it.

journal, records, past      each record durable when the call returns; what the records say together
leases, groupcommit         one process runs a session at a time; what waits is written together
tools, policies, settling   what a tool may be trusted with; what becomes of a call that was cut short
execution, asking, loop     tools side by side, the model's stream, and both in turn until there is an answer
context, requests           what of a long session the model gets to see, in a form that its provider takes
conversation, typedjson     a conversation as frozen data; such data to JSON and strictly back
slices, snapshots           a session of typed slices; all of it as JSON
recording, recorded         a conversation recorded message by message; the loop's journal kept there
evaluation, mainloop        a prompt answered, or taken up again; requests one by one
checkpoints                 sessions put away after every step
turnlog, conversations      the archive for programs with a loop of their own
"""

_FACE = {
    "checkpoints": "Checkpoint CheckpointHandler FileCheckpointHandler resume_evaluation save_checkpoint",
    "conversation": "ConversationMessage ConversationState ConversationTurn StartedCall ToolCallRecord chat_messages",
    "conversations": "ConversationStore",
    "evaluation": "Adapter Prompt PromptResponse Rendered TextPrompt evaluate",
    "mainloop": "MainLoop",
    "recording": "enable_conversation_recording settle",
    "slices": "Session append replace_latest upsert",
    "snapshots": "Snapshot",
}


def __getattr__(name: str) -> object:
    """The public face, loaded when it is first used."""
    for home, names in _FACE.items():
        if name in names.split():
            from importlib import import_module

            return getattr(import_module(f"everturn.resume.{home}"), name)
    raise AttributeError(f"module 'everturn.resume' has no attribute {name!r}")
