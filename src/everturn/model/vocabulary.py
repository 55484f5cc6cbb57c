"""The closed vocabularies. A value outside these lists never enters the archive.

Stored as short text so that the database can be read with any tool.
"""

from __future__ import annotations

#: The API role a message has.
ROLES = ("user", "assistant", "tool", "system")

#: The real author. `human` typed it; `agent` is another agent (a subagent's prompt, a teammate); `model` answered;
#: `tool` is output; `injected` was put into the conversation by the client; `system` are the client's own notices.
ORIGINS = ("human", "agent", "model", "tool", "injected", "system")

#: What a message is, beyond its role.
MESSAGE_KINDS = (
    "text",  # a prompt or an answer
    "command",  # a slash command
    "shell",  # `!` mode: a command the human ran, or its output
    "queued",  # typed while the agent worked and put into the running turn
    "result",  # results of tool calls
    "output",  # output of a local command, or a persisted tool output
    "interrupt",  # the human stopped the agent
    "compaction",  # the mark where the context was compacted
    "summary",  # a summary the client wrote
    "context",  # attachments, reminders, hook context, skill bodies
    "notice",  # API errors, hook reports, informational lines
    "notification",  # a background task or a teammate speaks
    "unknown",  # a type this version of everturn does not know: kept, shown, indexed, counted
)

#: Index field groups, in the order of the full-text columns.
FIELDS = ("prompt", "answer", "thinking", "tool_input", "tool_output", "summary", "meta")

#: Neutral kinds of a tool call.
CALL_KINDS = ("read", "edit", "create", "delete", "shell", "search", "fetch", "task", "plan", "ask", "recall", "other")

#: `open`: no result seen (yet); `orphan`: a result whose call was never seen.
CALL_STATUSES = ("open", "ok", "error", "orphan")

#: Why a call failed, without content.
ERROR_CLASSES = (
    "",
    "exit_status",
    "rejected",
    "interrupted",
    "cancelled",  # a parallel sibling failed
    "timeout",
    "not_found",
    "permission",
    "invalid_input",
    "unknown_tool",
    "hook",
    "too_large",
    "stale",  # the file changed since it was read
    "other",
)

ACTIONS = ("read", "edited", "created", "deleted")

#: Relations between sessions. The row's session is the subject: `A subagent_of B`.
RELATIONS = ("subagent_of", "spawned", "forked_from", "continues", "output_of", "about", "teammate_of", "summary_of")

#: Also kinds of source files. A `container` holds conversations and is kept beside them (a database, an archive file, a
#: recording); a `bundle` is a conversation spread over many files, kept as one that holds them all.
SESSION_KINDS = ("main", "subagent", "sidechain", "output", "meta", "container", "bundle")

#: Kind of a source file that is no session: a copy of a file of the user's, which an agent made before it changed it.
BACKUP = "backup"

FIDELITIES = ("exact", "rendered", "partial")

#: How much of a workspace the archive stores.
MODES = ("full", "redacted", "structure", "off")

#: Prefix of the folder that a program works in while we use it as a model: its history is not the user's.
ASKING = "everturn-asking-"

#: What became of a record. `unknown`: of a type this version does not know, kept as a message; drift shows there.
DISPOSITIONS = ("message", "known", "unknown", "problem")

#: Precision of a time: exact to the millisecond, second, minute or day; `""` when there is none.
PRECISIONS = ("", "ms", "s", "min", "day")

#: Kinds of problems in which nothing is damaged: a reading is doubtful, and says so.
DOUBTS = ("screen_unread", "prompt_unread")

#: How the words of a search combine. Help, documentation and tool descriptions quote it.
QUERY_RULE = (
    "Words are optional: messages with more of them, and with rarer ones, come first. "
    'A "quoted phrase", a beginning like pars* and one of the words joined by OR are required; -word excludes.'
)
