"""Whether a statement of a document says what a reader marked: by the message it cites and by its words.

A statement matches a place if it cites the message of the place, or the call that the message answers, and either holds half
of the content words of the quote or is itself contained in the sentence around the quote. A failure also matches by its
command. Files match by the end of their path, commits by the beginning of their hash, or by their subject where that is what a reader marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks.restore.labels import LabelledItem, LabelledSession, Place
from everturn.restore.document import Statement

QUOTE_SHARE = 0.5  # of the words of a quote that a statement holds
SENTENCE_SHARE = 0.8  # of the words of a statement that stand in the sentence of a quote
GOAL_SHARE = 0.4

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_LEAD = re.compile(
    r"^(?:next in the plan|mentioned in turn \d+, before the last request|in progress|the agent's last answer"
    r"|started but interrupted|last request, not reported as done): |^\[[ ~x-]\] "
)
_CODE = re.compile(r"`([^`\n]+)`")
_HASH = re.compile(r"\b[0-9a-f]{6,40}\b")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_STOP = frozenset(
    "a an the and or but if of to in on at by for with from into as is are was were be been it its this that these those i you we "
    "he she they me my your our their so do does did done not no yes can could should would will shall may might must have has "
    "had there here what which who how when where why then than just also let s t re ve ll m d".split()
)
_SETUP = re.compile(r"^(?:cd\s+\S+|source\s+\S+|export\s+\S+|set\s+-\w+|\w+=\S+)$")
_TAIL = re.compile(r"\s*(?:2>&1|[12]?>\s*/dev/null|\|\s*(?:tail|head|grep|cat|tee|sed|less)\b.*$)\s*")
_ENVIRONMENT = re.compile(r"^(?:\w+=\S+\s+|timeout\s+\S+\s+|sudo\s+|time\s+)+")


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry its meaning; all words if there are no others."""
    words = frozenset(_WORD.findall(text.lower()))
    return (words - _STOP) or words


def cited_messages(statement: Statement, labelled: LabelledSession) -> set[int]:
    """Return the messages a statement cites, with the calls or results that belong to them."""
    cited = {one.message for one in statement.evidence}
    return cited.union(*(labelled.pairs.get(one, ()) for one in cited))


def says_place(text: str, place: Place) -> bool:
    """Whether a text has the words of a place."""
    words, quote = content_words(_LEAD.sub("", text)), content_words(place.quote)
    if len(words & quote) >= QUOTE_SHARE * len(quote):
        return True
    return len(words & content_words(place.sentence)) >= SENTENCE_SHARE * len(words)


def says_item(statement: Statement, item: LabelledItem, labelled: LabelledSession) -> bool:
    """Whether a statement says what one labelled item says."""
    cited = cited_messages(statement, labelled)
    if any(place.message in cited and says_place(statement.text, place) for place in item.places):
        return True
    return bool(item.commands) and _same_command(statement, item, labelled)


def _same_command(statement: Statement, item: LabelledItem, labelled: LabelledSession) -> bool:
    """Whether a failure is that of a labelled command: as shown, or as run in the message it cites."""
    shown = " ".join(_CODE.findall(statement.text)[:1])
    run = (command for one in statement.evidence for command in labelled.commands.get(one.message, ()))
    ours = [one for command in (shown, *run) if (one := bare_command(command))]
    theirs = [one for command in item.commands if (one := bare_command(command))]
    return any(one == other for one in ours for other in theirs)


def bare_command(command: str) -> str:
    """Return a command without changes of folder, settings, and what only trims its output."""
    parts = [one.strip() for one in re.split(r"\s*(?:&&|;|\n)\s*", command.rstrip("…"))]
    kept = [_ENVIRONMENT.sub("", _TAIL.sub(" ", one)).strip() for one in parts if one and not _SETUP.match(one)]
    return " && ".join(" ".join(one.split()) for one in kept if one)


def says_goal(statements: Iterable[Statement], places: Iterable[Place], labelled: LabelledSession) -> bool:
    """Whether one of the statements cites a place of the goal and shares its words."""
    found = list(places)
    for one in statements:
        cited = cited_messages(one, labelled)
        quotes = [content_words(place.quote) for place in found if place.message in cited]
        words = content_words(one.text)
        if any(len(words & quote) >= GOAL_SHARE * len(quote) for quote in quotes):
            return True
        if quotes and len(words & frozenset().union(*quotes)) >= GOAL_SHARE * len(words):
            return True
    return False


def path_of(statement: Statement) -> str:
    """Return the path that a statement about a file begins with."""
    found = _CODE.search(statement.text)
    return found[1] if found else ""


def same_path(path: str, other: str) -> bool:
    """Whether one path is the end of the other. Drives of Windows do not tell upper from lower case."""
    if _DRIVE.match(path) or _DRIVE.match(other):
        path, other = path.lower(), other.lower()
    one, two = _parts(path), _parts(other)
    least = min(len(one), len(two))
    return least > 0 and one[-least:] == two[-least:]


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def hash_of(statement: Statement) -> str:
    """Return the commit hash of a statement, "" if it names none."""
    found = _HASH.search(" ".join(_CODE.findall(statement.text)[:1]))
    return found[0] if found else ""


def same_hash(one: str, other: str) -> bool:
    """Whether two hashes, short or long, are of one commit."""
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def same_commit(statement: Statement, words: str) -> bool:
    """Whether a statement names the commit of a label, which is its hash, or its subject where no hash is shown."""
    if _HASH.search(words.lower()):
        return same_hash(hash_of(statement), words.lower())
    return bool(words) and words.lower() in statement.text.lower()


def has_phrase(document: str, phrase: str) -> bool:
    """Whether a phrase stands in a document, white space, quotation marks and case aside."""
    return _bare(phrase) in document


def _bare(text: str) -> str:
    return re.sub(r"[\s`\"'’“”]", "", text).lower()


def bare_document(text: str) -> str:
    """Return a document as phrases are looked up in it."""
    return _bare(text)
