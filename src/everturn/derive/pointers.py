"""What a request refers to that does not say it itself.

"Implement this plan" is about a document that is read next, `/review` about what the command is for, "please fix this" about what the
answer says is wrong. `ReferenceFinder` follows the messages of a turn and finds these words, with the message that holds them.

Pure: no input or output, no model. Never raises.
"""

from __future__ import annotations

import re
from posixpath import basename

from msgspec import Struct

from everturn.derive.intent import body_purpose, word_count
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences
from everturn.text.trouble_words import (
    CARRIES_OUT,
    DOCUMENT_FILE,
    NEEDS_HELP,
    NO_OBJECT,
    ONLY_BEGINS,
    POINTS_TO_DOCUMENT,
)

_READ = 6_000  # characters of a document or an answer
_MEANT = 240  # cells
_SHORT, _FEW = 400, 12  # characters of a request that points, and its words besides the name of a file
_LEAST = 5  # words of a sentence that says what is wrong
_ANSWERS = 3  # of a turn that are read


class Referent(Struct, frozen=True):
    """What a request refers to, and the message that says it."""

    text: str
    seq: int
    kind: str  # document | command | option | answer


class ReferenceFinder:
    """Follows the messages of a turn."""

    def __init__(self) -> None:
        self._found: dict[int, Referent] = {}
        self._command = self._empty = self._pointing = -1  # the request that waits for its words
        self._has_body = False  # the text of the command comes next
        self._names: set[str] = set()  # of files that it names
        self._answers = 0

    def find(self, seq: int) -> Referent | None:
        """Return what a request refers to."""
        return self._found.get(seq)

    def add_request(self, words: str, seq: int, is_command: bool, attached: str = "") -> None:
        """Take a request; "" for one that says what it is about. `attached` is what the client put beside it."""
        is_called = is_command or _COMMAND.fullmatch(words.strip()) is not None
        self._command = seq if is_called and says_little(words) else -1
        self._has_body = is_command
        self._empty = seq if lacks_object(words) and not is_command else -1
        self._answers = 0
        self._pointing = seq if not is_command and points_to_document(words) else -1
        beside = f"{words}\n{attached[: _SHORT * 4]}" if self._pointing >= 0 else ""
        self._names = {basename(one.replace("\\", "/").lstrip("@")) for one in DOCUMENT_FILE.findall(beside)}

    def add_body(self, text: str, seq: int) -> None:
        """Take what the client put into the conversation."""
        if self._command < 0 or not self._has_body or _NO_BODY.match(text):
            return
        self._has_body = False
        if meant := body_purpose(text):
            self._note(self._command, meant, seq, "command")
            self._command = -1

    def add_document(self, path: str, text: str, seq: int) -> None:
        """Take a file that was read."""
        if self._pointing < 0 or not DOCUMENT_FILE.search(path):
            return
        if self._names and basename(path.replace("\\", "/")) not in self._names:
            return
        self._note(self._pointing, body_purpose(_LINE_NUMBER.sub("", _REPORT.sub("", text[:_READ]))), seq, "document")
        self._pointing = -1

    def add_answer(self, text: str, seq: int) -> None:
        """Take an answer of the agent."""
        if self._command >= 0:
            self._note(self._command, _first_sentence(text), seq, "command")
        self._command = -1
        if self._empty < 0 or self._answers >= _ANSWERS:
            return
        self._answers += 1
        if meant := stated_problem(text):
            self._note(self._empty, meant, seq, "answer")
            self._empty = -1

    def _note(self, request: int, meant: str, seq: int, kind: str) -> None:
        if meant:
            self._found[request] = Referent(one_line(meant, _MEANT), seq, kind)


def says_little(words: str) -> bool:
    """Whether a command was given hardly anything."""
    return word_count(words) <= _FEW // 3


def lacks_object(words: str) -> bool:
    """Whether a request does not say what it is about."""
    if len(words) > _SHORT or NEEDS_HELP.search(words) is None:
        return False
    return not any(one.isalpha() for one in NO_OBJECT.sub(" ", words))


def points_to_document(words: str) -> bool:
    """Whether what a request is about stands in a document that it names or points to."""
    if len(words) > _SHORT or "\n#" in words:
        return False
    named = DOCUMENT_FILE.search(words)
    if named is not None:
        said = DOCUMENT_FILE.sub(" ", words).strip(" @")
        if not said or (word_count(said) <= _FEW and CARRIES_OUT.search(said)):
            return True
    return POINTS_TO_DOCUMENT.search(words) is not None


def stated_problem(text: str) -> str:
    """Return the first sentence of an answer that says something, and not only what the agent will do."""
    for one in split_sentences(text[:_READ]):
        words = one.text.strip("*_ ")
        is_told = word_count(words) >= _LEAST and not words.endswith(("?", "？", ":", "：")) and not one.asks
        if is_told and one.passage != one.heading and not ONLY_BEGINS.match(words):
            return words
    return ""


def _first_sentence(text: str) -> str:
    """Return the sentence with which an answer says what it is about to do."""
    told = (one.text.strip("*_ ") for one in split_sentences(text[: _SHORT * 2]) if one.passage != one.heading)
    return next((one for one in told if word_count(one) >= _LEAST and not one.endswith(("?", "？", ":", "："))), "")


#: A command of a client or a skill that is called by its name, with a word or two.
_COMMAND = lazy_pattern(
    r"(?:[A-Za-z0-9-]{1,12}\s+)?[/$][a-z][a-z0-9:._-]{1,60}(?:\s+\S{1,40}){0,3}", re.IGNORECASE | re.ASCII
)
_NO_BODY = lazy_pattern(r"\s*(?:<(?:system-reminder|local-command)|[-*] |\w{1,40}\n)")
_REPORT = lazy_pattern(r"\A(?:[A-Z][^\n]{0,200}\n){1,6}Output:\n")  # of the shell that read it
_LINE_NUMBER = lazy_pattern(r"^[ \t]{0,8}\d{1,6}[\t→|:][ \t]?", re.MULTILINE)
