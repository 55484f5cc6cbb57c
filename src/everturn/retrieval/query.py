"""Parse a search query: words, "phrases", -not, prefix*, OR, filters, a /pattern/.

    parse json              these words; messages with more of them come first
    "parse json"            adjacent, in this order; also parse_json and parse.json
    parse -yaml             without that word; also -"a phrase"
    pars*                   everything that starts so; also "parse js"*
    json OR yaml toml       one of the first two, and the third
    tool:Bash -role:tool    only where that holds, or does not: `FILTERS` are the names; path:"my file" may be quoted
    /line \\d+/i             a regular expression, `i` for any case; a slash in it is written \\/

Hardly any input is an error: an open quote runs to the end, an OR beside nothing is ignored, and what looks like a filter
but has no such name (`http://…`, `foo:bar`) is text. `retrieval.scope` validates the values of filters.
"""

from __future__ import annotations

import re
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.text.terms import each_term

Phrase = tuple[str, ...]

#: Words parsed: a pasted page must not become a query that takes minutes.
MAX_WORDS = 64

#: Words of a phrase: two texts that share so many in a row are not distinguished by the next one.
MAX_PHRASE = 32

#: Names of filters. `in:` is an alias of `field:`.
FILTERS = (
    *("agent", "session", "workspace", "branch", "role", "tool", "path", "field"),
    *("since", "until", "turn", "error", "literal"),
)
_ALIASES = {"in": "field"}

#: A longer word is a hash or data, and treated as quoted.
LONGEST_WORD = 40

_PIECE = re.compile(
    rf"""
    (?<!\S)(?P<not>-?)(?P<name>{"|".join((*FILTERS, *_ALIASES))}):(?:"(?P<given>[^"]*)(?:"|$)|(?P<value>[^\s"]+))
    | (?<!\S)/(?P<regex>(?!\s)(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+(?<!\s))/(?P<flags>i?)(?!\S)
    | (?P<minus>-?)"(?P<quoted>[^"]*)(?:"(?P<star>\*?)|$)
    | (?P<word>[^\s"]+)
    """,
    re.X,
)
_QUOTES = str.maketrans("“”„‟", '""""')


class QueryPhrase(Struct, frozen=True):
    """A word or a phrase as typed. Those joined by OR have the same group number."""

    text: str
    quoted: bool = False
    prefix: bool = False  # its end is open
    negated: bool = False
    group: int = 0


class Filter(Struct, frozen=True):
    """`name:value`, or `-name:value`."""

    name: str  # of FILTERS
    value: str
    negated: bool = False


class SearchQuery(Struct, frozen=True):
    pieces: tuple[QueryPhrase, ...] = ()
    filters: tuple[Filter, ...] = ()
    regex: str = ""  # begins with `(?i)` if the case does not matter

    @property
    def wanted(self) -> tuple[QueryPhrase, ...]:
        """The phrases that are not negated."""
        return tuple(piece for piece in self.pieces if not piece.negated)

    @property
    def groups(self) -> tuple[tuple[Phrase, ...], ...]:
        """The terms of these phrases, one group for those joined by OR; phrases of signs only have none."""
        found: dict[int, list[Phrase]] = {}
        for piece in self.wanted:
            if phrase := phrase_of(piece):
                found.setdefault(piece.group, []).append(phrase)
        return tuple(map(tuple, found.values()))

    @property
    def without(self) -> tuple[Phrase, ...]:
        """The terms of the negated phrases."""
        return tuple(phrase for piece in self.pieces if piece.negated and (phrase := phrase_of(piece)))


def parse_query(words: str) -> SearchQuery:
    """Parse a query. Raises UsageError for a second pattern only; an empty text gives an empty query."""
    pieces: list[QueryPhrase] = []
    filters: list[Filter] = []
    regex = ""
    joined = False  # by an OR to the phrase before
    for match in islice(_PIECE.finditer(words.translate(_QUOTES)), MAX_WORDS):
        if match["name"]:
            value = match["value"] if match["given"] is None else match["given"]
            filters.append(Filter(_ALIASES.get(match["name"], match["name"]), value.strip(), match["not"] == "-"))
        elif match["regex"]:
            if regex:
                raise UsageError("a search takes one /pattern/; join the two with .* or |, or search twice")
            pattern = match["regex"].replace("\\/", "/")
            regex = f"(?i){pattern}" if match["flags"] else pattern
        elif match["word"] == "OR":
            joined = True
        elif _is_searchable(piece := _read_phrase(match)):
            pieces.append(replace(piece, group=_group_number(pieces, joined and not piece.negated)))
            joined = False
    return SearchQuery(tuple(pieces), tuple(filters), regex)


def phrase_of(piece: QueryPhrase) -> Phrase:
    """Return the terms of a phrase; the last ends in `*` for a prefix."""
    found = list(islice(each_term(piece.text), MAX_PHRASE + 1))
    if len(found) > MAX_PHRASE:
        found.pop()
    elif found and piece.prefix:
        found[-1] += "*"
    return tuple(found)


def _group_number(pieces: list[QueryPhrase], joined: bool) -> int:
    """Return the group of the last positive phrase if an OR joins them, else a new one."""
    last = next((piece.group for piece in reversed(pieces) if not piece.negated), None) if joined else None
    if last is not None:
        return last
    return max((piece.group for piece in pieces), default=-1) + 1


def _read_phrase(match: re.Match[str]) -> QueryPhrase:
    word = match["word"]
    if word is None:
        return QueryPhrase(match["quoted"].strip(), True, match["star"] == "*", match["minus"] == "-")
    # `--flag` is a word, `-word` an exclusion.
    negated = len(word) > 1 and word[0] == "-" and word[1] not in "->"
    text = word.removeprefix("-").rstrip("*") if negated else word.rstrip("*")
    return QueryPhrase(text, any(len(term) > LONGEST_WORD for term in each_term(text)), word[-1] == "*", negated)


def _is_searchable(piece: QueryPhrase) -> bool:
    """Whether it has a term, or is a searchable sign: `=>` and `🚀` are, a lone dash is not."""
    text = piece.text
    if any(True for _ in each_term(text)):
        return True
    return text.isprintable() and (len(text) > 1 or not text.isascii()) and bool(text.strip('*-_ "'))
