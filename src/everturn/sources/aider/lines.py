"""Who wrote a line of a history file: the human, aider itself, or the model.

    # aider chat started at 2025-04-07 03:59:01     a session begins
    #### what the human typed␠␠                      each line of it
    > what aider said␠␠                              only the first line of it has the mark
    anything else                                   the model

The model writes headings and quotations too. aider ends its own lines and the human's with two blanks (all but its oldest
releases do), and puts a blank line before what the model said: by these the two are told apart.
"""

from __future__ import annotations

import re

from msgspec import Struct

HEAD = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_HUMAN = "####"
_AIDER = ">"

#: What aider says that means something: the first that fits.
_SAYINGS = (
    ("usage", re.compile(r"> Tokens: [\d.,]+[kM]? sent")),
    ("result", re.compile(r"> (?:Applied edit to|Did not apply edit to|Skipping edits to|#+ \d+ SEARCH/REPLACE blocks? failed) ?")),
    ("interrupt", re.compile(r"> \s*\^C")),
    ("failure", re.compile(r"> (?:litellm\.|openai\.|The API provider|Retrying in|Unable to (?:connect|authenticate)|API Error)")),
)  # fmt: skip


class AiderLineState(Struct):
    """What is known of the lines before."""

    begun: bool = False
    speaker: str = ""  # head human model gap, or what aider says: notice usage result interrupt failure
    blanks: int = -1  # whether lines of this session end with two blanks; -1 before the first
    after_blank: bool = True
    more: bool = False  # aider's words go on without a mark


def opens(known: AiderLineState, line: str) -> bool:
    """Does a passage begin with this line? (`Passages` asks for every line in order.)"""
    before, was_blank = known.speaker, known.after_blank
    known.after_blank = not line.strip()
    if known.after_blank:
        return _note_blank_line(known)
    if HEAD.fullmatch(line.lstrip("\ufeff")):
        known.speaker, known.blanks, known.more = "head", -1, False
        return True
    known.speaker = _speaker(known, line, was_blank)
    if known.speaker == "model":
        return before not in ("model", "gap", "")
    if before == "head" and known.speaker == "notice":  # what aider says when it starts is one passage
        known.speaker = "head"
        return False
    return known.speaker != before or (known.speaker == "human" and was_blank)


def _note_blank_line(known: AiderLineState) -> bool:
    """A blank line ends what the human or aider said. With it begins what the model says, if it is the next to speak."""
    if known.more or known.speaker in ("", "model", "gap"):
        return False
    if known.speaker == "head":
        return False
    known.speaker = "gap"
    return True


def _speaker(known: AiderLineState, line: str, was_blank: bool) -> str:
    ended = line.endswith("  ")
    if line.startswith((_HUMAN + " ", _AIDER + " ")) or line.rstrip() in (_HUMAN, _AIDER):
        if known.blanks < 0:
            known.blanks = int(ended)
        if ended or not known.blanks:
            known.more = False
            return "human" if line.startswith(_HUMAN) else _aider_line_kind(line)
        if line.startswith(_AIDER) and not was_blank and known.speaker != "model":
            known.more = True
            return _aider_line_kind(line)
    if known.more:
        known.more = not ended
        return known.speaker
    return "model"


def _aider_line_kind(line: str) -> str:
    return next((name for name, pattern in _SAYINGS if pattern.match(line)), "notice")
