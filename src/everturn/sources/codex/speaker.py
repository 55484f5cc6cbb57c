"""Who is speaking in an item with role `user`: the human, or the client, which puts its own words there too."""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.model.conversation import Block


class CodexSpeaker(NamedTuple):
    """Who says something, and as what it counts."""

    origin: str
    kind: str
    starts_turn: bool
    field: str


PROMPT = CodexSpeaker("human", "text", True, "prompt")
SHELL = CodexSpeaker("human", "shell", True, "prompt")
CONTEXT = CodexSpeaker("injected", "context", False, "meta")
NOTIFICATION = CodexSpeaker("agent", "notification", False, "meta")

#: How the words of the client begin. A human may begin with `<` or `#` too, so nothing is guessed.
_INJECTED = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<app-context>",
    "<apps_instructions>",
    "<child_agents_instructions>",
    "<codex_internal_context",
    "<collaboration_mode>",
    "<environment_context>",
    "<environments>",
    "<goal_context>",
    "<hook_prompt",
    "<image>",
    "<image name=",
    "</image>",
    "<js_repl_instructions>",
    "<model_switch>",
    "<permissions instructions>",
    "<personality_spec>",
    "<plugins>",
    "<plugins_instructions>",
    "<realtime_conversation>",
    "<recommended_plugins>",
    "<skill>",
    "<skills_instructions>",
    "<skills_section>",
    "<subagents>",
    "<turn_aborted>",
    "<user_action>",
    "<user_instructions>",
    "Warning: apply_patch was requested via ",
    "Warning: The maximum number of unified exec processes",
)
_MARKS = frozenset("#<W")
_SPEAKER_HEAD = 200

#: What an editor puts in front of a prompt ends with this heading.
_REQUEST = re.compile(r"\n## My request for Codex:[ \t]*\n?")
_SHELL = re.compile(
    r"\s*<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(.*?)\s*</user_shell_command>\s*", re.DOTALL
)
_FOLDER = re.compile(r"<cwd>([^<\n]{1,4096})</cwd>|Current working directory: (.{1,4096})")


def guess_speaker(text: str) -> CodexSpeaker:
    """Who says this, judged by how it begins."""
    head = text[:_SPEAKER_HEAD].lstrip()
    if head[:1] not in _MARKS:
        return PROMPT
    if head.startswith(_INJECTED):
        return CONTEXT
    if head.startswith("<subagent_notification>"):
        return NOTIFICATION
    return SHELL if head.startswith("<user_shell_command>") else PROMPT


def text_blocks(text: str, speaker: CodexSpeaker) -> tuple[Block, ...]:
    """The blocks of a text: what an editor put in front of a prompt, and the output of a command, are their own."""
    if speaker is SHELL and (shell := _SHELL.fullmatch(text)):
        return _nonempty_blocks((shell[1], "prompt"), (shell[2], "tool_output"))
    if speaker is PROMPT and text.startswith("# ") and (request := _REQUEST.search(text)):
        return _nonempty_blocks((text[: request.end()].rstrip(), "meta"), (text[request.end() :], "prompt"))
    return _nonempty_blocks((text, speaker.field))


def folder_in(text: str) -> str:
    """The working folder that a description of the environment names; "" when the text is none."""
    if not text[:_SPEAKER_HEAD].lstrip().startswith("<environment_context>"):
        return ""
    found = _FOLDER.search(text[:8192])
    return (found[1] or found[2]).strip() if found else ""


def _nonempty_blocks(*texts: tuple[str, str]) -> tuple[Block, ...]:
    return tuple(Block("text", text, field) for text, field in texts if text)
