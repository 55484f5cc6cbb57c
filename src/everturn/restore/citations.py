"""What a statement of a model rests on, by its own words: places it cites, words it quotes, things it names.

    The user forbade pushing: "never push to main" [t3 #12]      (turn 3)      [turn 3, message 12]      [t3 #12, #15; t4]

`read_citations` takes the citations out of a statement and tells them apart from what is said. Numbers are 1-based as written and
0-based in a `Citation`. `find_named_things` finds what can be looked up: files, commands and other code, commits, numbers. Nothing is
looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_MOST_CITATIONS = 40  # places of one statement that are looked at
_WIDEST_RANGE = 20  # turns of a range


class Citation(Struct, frozen=True):
    """A place: a turn, a message, or both. 0-based; -1 for what counts from 1 and was called 0."""

    turn: int | None = None
    message: int | None = None


class StatementCitations(Struct, frozen=True):
    """A statement taken apart."""

    text: str  # without its citations
    citations: tuple[Citation, ...] = ()
    quotes: tuple[str, ...] = ()


class NamedThings(Struct, frozen=True):
    """What a statement names that can be looked up."""

    files: tuple[str, ...] = ()
    code: tuple[str, ...] = ()  # in backticks, and no file
    commits: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def read_citations(statement: str) -> StatementCitations:
    """The statement without its citations, and those. A turn named in the sentence is a citation where there is no other."""
    found: list[Citation] = []

    def taken(match: re.Match[str]) -> str:
        places = list(_parse_citations(match[1]))
        found.extend(places)
        return "" if places else match[0]

    text = " ".join(_BRACKETS.sub(taken, statement).split())
    places = found or [Citation(int(number) - 1) for number in _IN_PROSE.findall(text)]
    return StatementCitations(text, tuple(dict.fromkeys(places))[:_MOST_CITATIONS], tuple(_find_quotes(statement)))


def turns_named(text: str) -> list[int]:
    """The turns that the sentence itself speaks of, 0-based."""
    return [int(number) - 1 for number in _IN_PROSE.findall(text)]


def find_named_things(text: str) -> NamedThings:
    """The files, code, commits and numbers of a statement without its citations."""
    spans = [span.strip() for span in _CODE.findall(text) if span.strip()]
    prose = _CODE.sub(" ", text)
    for pattern in _QUOTES:
        prose = pattern.sub(" ", prose)  # they are looked up as a whole
    files = [span for span in spans if _is_path(span)]
    words = (found[0].rstrip(".") for found in _PATH.finditer(prose) if prose[found.end() : found.end() + 1] != "…")
    files += [word for word in words if _is_path(word)]
    commits = [found for found in _HASH.findall(prose) if _is_hash(found)]
    without = _PATH.sub(lambda found: " " if _is_path(found[0].rstrip(".")) else found[0], prose)
    return NamedThings(
        tuple(dict.fromkeys(files)),
        tuple(dict.fromkeys(span for span in spans if span not in files)),
        tuple(dict.fromkeys(commits)),
        tuple(dict.fromkeys(_NUMBER.findall(_IN_PROSE.sub(" ", without)))),
    )


# places ---------------------------------------------------------------------------------------------------------------
_BRACKETS = re.compile(r"\s*[\[(（【⟦]([^\[\]()（）【】⟦⟧]{1,200})[\])）】⟧]")
_IN_PROSE = re.compile(r"\bturns?\s+(?:number\s+|no\.?\s*)?#?(\d{1,9})\b", re.IGNORECASE)
_CITATION_TOKEN = re.compile(
    r"(?P<turn>\bt(?:urns?)?\.?\s*(?:number\s*)?#?\s*(?=\d))|(?P<message>(?:\bm(?:sgs?|essages?)?\.?\s*)?#\s*(?=\d)|\bm(?:sgs?|essages?)?\.?\s*(?=\d))"
    r"|(?P<number>\d{1,9})|(?P<to>\s*[-–—]\s*|\s+to\s+)|(?P<between>[\s,;:&/+]+|\band\b|\bund\b|\bin\b|\bof\b)"
    r"|(?P<lead>\b(?:evidence|sources?|see|refs?|cf|citations?|from|quote)\b\.?:?)",
    re.IGNORECASE,
)


def _parse_citations(inside: str) -> Iterator[Citation]:
    """The places in a pair of brackets; none when they hold anything else. A message belongs to the turn before it."""
    numbers = list(_expand_ranges(inside))
    turn: int | None = None
    for at, (kind, number) in enumerate(numbers, 1):
        if kind == "message":
            yield Citation(turn, number)
        else:
            turn = number
            if at == len(numbers) or numbers[at][0] != "message":
                yield Citation(turn)


def _expand_ranges(inside: str) -> Iterator[tuple[str, int]]:
    """(turn or message, number) with what lies between the ends of a range."""
    kind, last, is_range = "", 0, False
    for what, number in _tokenise_citation(inside):
        if what in ("turn", "message"):
            kind = what
        elif what == "to":
            is_range = True
        elif what == "number":
            between = range(last + 1, min(number, last + _WIDEST_RANGE)) if is_range else ()
            yield from ((kind, one) for one in between)
            yield kind, number
            last, is_range = number, False


def _tokenise_citation(inside: str) -> list[tuple[str, int]]:
    """The marks in order, numbers 0-based; empty when there is something else among them, or no number with a mark."""
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(inside):
        match = _CITATION_TOKEN.match(inside, at)
        if match is None or not match[0]:
            return []
        name = match.lastgroup or ""
        found.append((name, int(match[0]) - 1 if name == "number" else 0))
        at = match.end()
    first = next((name for name, _ in found if name in ("turn", "message", "number")), "number")
    return [] if first == "number" or not any(name == "number" for name, _ in found) else found


# words ----------------------------------------------------------------------------------------------------------------
_CODE = re.compile(r"`([^`\n]{1,400})`")
_QUOTES = (
    re.compile(r'(?<![\w\\])"([^"\n]{2,600})"(?!\w)'),
    re.compile(r"[“„]([^“”„\n]{2,600})[”“]"),
    re.compile(r"«\s?([^«»\n]{2,600}?)\s?»"),
    re.compile(r"「([^「」\n]{2,600})」"),
    re.compile(r"『([^『』\n]{2,600})』"),
)
_NAME = r"[\w.@+-]*[\w@+-]"
_PATH = re.compile(rf"(?<![\w/.@:~-])(?:~?/|\.{{1,2}}/|[A-Za-z]:\\)?{_NAME}(?:[/\\]{_NAME})*/?")
_EXTENSION = re.compile(r"(?:^|[/\\])?[\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}$")
_ABBREVIATION = re.compile(r"(?:[a-z]\.){1,3}[a-z]?\.?|v?\d+(?:\.\d+)*|etc|vs", re.IGNORECASE)
_HASH = re.compile(r"(?<![\w/.-])[0-9a-f]{7,40}(?![\w/.-])")
_NUMBER = re.compile(r"(?<![\w.,#-])(?=\S\S)\d+(?:[.,]\d+)*(?!\w)")


def _find_quotes(statement: str) -> Iterator[str]:
    prose = _CODE.sub(" ", statement)
    for pattern in _QUOTES:
        yield from (found.strip() for found in pattern.findall(prose))


def _is_path(word: str) -> bool:
    if " " in word or "://" in word or _ABBREVIATION.fullmatch(word) or not re.search(r"[A-Za-z]", word):
        return False
    if word.startswith(("/", "./", "../", "~/")) and len(word) > 2:
        return True
    return bool(_EXTENSION.search(word))


def _is_hash(word: str) -> bool:
    return bool(re.search(r"\d", word) and re.search(r"[a-f]", word))
