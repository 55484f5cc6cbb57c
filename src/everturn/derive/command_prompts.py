"""Prompts that hold the text of a command, and the place of the person's words in them.

A client sends the text of a command as the prompt: a template with what the person typed in one place of it. `read_command` finds that
place: the slot for arguments, the heading for the request, or what stands above matter that the client put in. The rest is the template.

Pure: no input or output, no model. Never raises.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.text.lazy_pattern import lazy_pattern

_READ = 24_000  # characters at the beginning of a prompt in which a slot is looked for


class CommandPrompt(Struct, frozen=True):
    """What a person typed, and the template around it."""

    typed: str  # "" if the command was given nothing
    name: str = ""  # of the command, as `/name`, if the prompt says it
    has_slot: bool = True  # for what is typed
    body: str = ""  # the template; "" if the client only put the request below its own notes


def read_command(text: str) -> CommandPrompt | None:
    """Return what was typed and the template of a prompt; None if it is no command."""
    head = text[:_READ]
    if (found := _SLOT.search(head)) is not None:
        return _filled(text, found, next((one for one in found.groups() if one is not None), ""))
    if (found := _ENDING.search(text)) is not None:
        return CommandPrompt(found[2].strip(), _name(text), body=text[: found.start()] if found[1] else "")
    if (found := _INSERTED.search(head)) is not None and (typed := head[: found.start()].strip()):
        return CommandPrompt(typed, _name(typed), body=head[found.end() :])
    if _UNFILLED.search(head):
        return CommandPrompt("", _name(head), body=text)
    if (found := _TITLED.match(head)) is not None:
        return CommandPrompt("", found[1], False, text)
    return None


def _filled(text: str, slot: re.Match[str], typed: str) -> CommandPrompt:
    words, body = typed.strip(), f"{text[: slot.start()]}\n{text[slot.end() :]}"
    return CommandPrompt("" if _PLACEHOLDER.fullmatch(words) else words, _name(body), body=body)


def _name(text: str) -> str:
    """Return the name of the command that a text says was typed."""
    found = _TYPED_NAME.search(text[:_READ])
    return next(one for one in found.groups() if one) if found is not None else ""


#: Where a template holds what was given to it: below a heading, in a fence or a paragraph, or in a tag.
_SLOT = lazy_pattern(
    r"^#{1,6}[ \t]*(?:user (?:input|request|query|message|prompt)|arguments?|input)[ \t]*:?\s*\n\s*```\w{0,10}\n(.{0,20000}?)\n?```"
    r"|^user input:[ \t]*\n\s*(\S.{0,4000}?)\n[ \t]*\n"
    r"|^<(?:user[-_ ](?:input|request|query|prompt)|arguments)>(.{0,20000}?)</(?:user[-_ ](?:input|request|query|prompt)|arguments)>",
    re.I | re.M | re.DOTALL,
)
#: Where the rest of a prompt is what the person asks for.
_ENDING = lazy_pattern(
    r"^(?:#{1,6}[ \t]*my request for \w{1,20}[ \t]*:?[ \t]*$|(ARGUMENTS):)(.{0,20000})\Z", re.I | re.M | re.DOTALL
)
#: A line with which a client begins a file that it puts in: `--- Cursor Command: plan.md ---`.
_INSERTED = lazy_pattern(r"^-{3,}[ \t]+\w[^\n]{2,120}[^\n-][ \t]+-{3,}[ \t]*$", re.M)
#: The name of a command as the title of its text.
_TITLED = lazy_pattern(r"\s*#[ \t]+`?(/[a-z][\w.:-]{1,60})`?[ \t]*(?:[—–:-][ \t]|$)", re.I | re.M)
#: A place that was given nothing.
_UNFILLED = lazy_pattern(r"^[ \t#]*\$ARGUMENTS[ \t]*$", re.M)
_TYPED_NAME = lazy_pattern(r"\btyped after `?(/[\w.:-]{2,60})|^(/[a-z][\w.:-]{1,60})(?=\s|\Z)", re.I | re.M)
_PLACEHOLDER = lazy_pattern(r"\$ARGUMENTS|\$\{?\w{1,20}\}?|\{\{?\w{1,20}\}?\}|")
