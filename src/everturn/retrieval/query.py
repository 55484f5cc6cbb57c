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

Turn a parsed query into an `IndexQuery`, without filters.

    how does the json parser fail     json, parser, fail: any of them, more are better; stop words are left out
    "json parser"  -yaml  pars*       required, excluded, prefix
    json OR yaml                      one of these is required
    JsonParser                        jsonparser, or json and parser side by side
    parse_json, src/auth.py           parse and json side by side, or parsejson; a little also for each part
    https://example.org/a/guide       the address, its host, and a little for each part of its path
    会话恢复                           会话, 话恢, 恢复

Two plain words that are adjacent in the query count more where they are adjacent in the text, or one word. A query of
nothing but stop words searches for these.

Times that a query mentions (`text.time_phrases`) are not filters: messages of that span, or soon after, are only more
likely. The words of a date count a little where a text contains them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.store.contract import IndexQuery
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.terms import each_term, humps, terms
from everturn.text.time_phrases import SpokenTime, find_times

Phrase = tuple[str, ...]

#: Words parsed: a pasted page must not become a query that takes minutes.
MAX_WORDS = 64

#: Words of a phrase: two texts that share so many in a row are not distinguished by the next one.
MAX_PHRASE = 32

#: Names of filters. `in:` is an alias of `field:`.
FILTERS = (
    *("agent", "session", "workspace", "branch", "role", "tool", "path", "field"),
    *("owner", "machine", "project", "since", "until", "turn", "error", "taken-back", "literal"),
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
    def wanted_phrases(self) -> tuple[QueryPhrase, ...]:
        """The phrases that are not negated."""
        return tuple(piece for piece in self.pieces if not piece.negated)

    @property
    def groups(self) -> tuple[tuple[Phrase, ...], ...]:
        """The terms of these phrases, one group for those joined by OR; phrases of signs only have none."""
        found: dict[int, list[Phrase]] = {}
        for piece in self.wanted_phrases:
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
                raise UsageError("a search takes one /pattern/; combine them with .* or |, or search twice")
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


# --- Turn a parsed query into an `IndexQuery`, without filters ---
# Weights, relative to 1 for a plain word. Tuned together with the constants of ranking.
QUOTED = 1.5  # words in quotes, in a text too long to be a typed query
WHOLE = 2.0  # all words in a row, stop words too
PAIR = 0.3  # two words side by side, as in the query
GLUED = 0.3  # the same as one word
NAME = 0.8  # a compound name as it was typed
SPELLING = 0.75  # the same name written another way
OWNER = 0.7  # Ann's report: the owner found_terms less than the thing
PIECE = 0.4  # one part of a name
LONG_TEXT = 12  # words and quotes that somebody types as a query
MOST = 40  # phrases: further ones add little and cost as much

#: Words that are in every question and say nothing about its subject.
STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can cannot could did do does doing down during each few for from further get had has have having he her here hers
    him himself his how i if in into is it its itself just ll me more most my myself no nor not of off on once only or
    other our ours out over own re s same shall she should so some such t than that the their theirs them then there
    these they this those through to too under until up us ve very was we were what when where which while who whom whose
    why will with would you your yours don didn doesn isn wasn weren won wouldn couldn shouldn haven hasn hadn aren
    d m o y please tell let regarding kind kinds type types like many much both same go going
    """.split()
)
_CJK = lazy_pattern("[\u3005-\u31ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]")
_SIGNS = "_.-/()[]{}<>'\"`:;,!?*#…“”‘’«»"
_ENDING = lazy_pattern("(?<=[a-z])['’](?:s|t|d|m|re|ve|ll)?$", re.I)
_OWNER = lazy_pattern("[a-z]['’]s\\b|s['’](?!\\w)", re.I)
_URL = lazy_pattern(r"[a-z][a-z0-9+.-]*://(?P<host>[^/?#\s]+)", re.I)


def build_index_query(
    query: SearchQuery, now: int | None = None, times: Sequence[SpokenTime] | None = None
) -> IndexQuery:
    """Return the query for the index, empty for an empty one.

    `times` are those the query mentions, if its words do not contain them any more. By default they are found in the words;
    `now` resolves times such as `yesterday`.
    """
    plain, groups = _sort_phrases(query)
    weighed: dict[Phrase, float] = {}
    if is_prose(query):  # its quotes are what somebody said, not what every hit must hold
        weighed = {phrase: QUOTED for group in groups for phrase in group}
        groups = ()
    for phrase, weight in _optional_phrases(plain):
        weighed[phrase] = max(weight, weighed.get(phrase, 0.0))
    everything = tuple(term for piece in plain for term in terms(piece.text))
    if not weighed and not groups:
        weighed = dict.fromkeys(((term,) for term in everything), 1.0)
    if 2 < len(everything) <= MAX_PHRASE:
        weighed[everything] = WHOLE
    for time in times or ():
        if time.date and (date := tuple(terms(time.date))):
            weighed.setdefault(date, PIECE)
    if times is None:
        times = find_times(" ".join(piece.text for piece in plain), now)
    kept = sorted(weighed, key=lambda phrase: -weighed[phrase])[:MOST]
    return IndexQuery(
        groups=groups,
        without=query.without,
        optional=tuple(kept),
        weights=tuple(weighed[phrase] for phrase in kept),
        about=tuple(dict.fromkeys(time.named or time.span for time in times)),
    )


def is_prose(query: SearchQuery) -> bool:
    """Return whether a query is too long to be typed as one: a pasted prompt, a whole question with its story."""
    return len(query.wanted_phrases) > LONG_TEXT


def _sort_phrases(query: SearchQuery) -> tuple[list[QueryPhrase], tuple[tuple[Phrase, ...], ...]]:
    """Split into plain words, which are optional, and required groups: quoted, prefixes, or joined by OR."""
    by_group: dict[int, list[QueryPhrase]] = {}
    for piece in query.wanted_phrases:
        by_group.setdefault(piece.group, []).append(piece)
    plain: list[QueryPhrase] = []
    groups: list[tuple[Phrase, ...]] = []
    for pieces in by_group.values():
        if len(pieces) == 1 and not pieces[0].quoted and not pieces[0].prefix:
            plain += pieces
        else:
            phrases = [phrase for piece in pieces if (phrase := phrase_of(piece))]
            groups += [tuple(phrases)] if phrases else []
    return plain, tuple(groups)


def _optional_phrases(pieces: Sequence[QueryPhrase]) -> Iterator[tuple[Phrase, float]]:
    """Yield each word and each adjacent pair with its weight; `pieces` are in typed order."""
    before = ""  # the term before this one; "" after a stop word
    for piece in pieces:
        text = _ENDING.sub("", piece.text.strip(_SIGNS))  # without what an apostrophe adds: Ann's, don't
        found_terms = [] if text.lower() in STOP_WORDS else terms(text)
        if len(found_terms) == 1 and not humps(text):
            yield (found_terms[0],), OWNER if _OWNER.search(piece.text) else 1.0
        elif found_terms:
            yield from _compound_phrases(text, found_terms)
        if before and found_terms:
            yield (before, found_terms[0]), PAIR
            yield (before + found_terms[0],), GLUED
        before = found_terms[-1] if found_terms else ""


def _compound_phrases(text: str, found: list[str]) -> Iterator[tuple[Phrase, float]]:
    """Yield a compound name in the ways it may be written."""
    if _CJK.search(text):
        yield from _bigram_phrases(text)
        return
    split = [piece for word in re.split(r"[^\w]|_", text) if word for piece in humps(word) or terms(word)]
    yield tuple(found), NAME
    if split != found:
        yield tuple(split), SPELLING
    if len(split) <= 3:
        yield ("".join(split),), SPELLING
    if url := _URL.match(text):
        yield tuple(terms(url["host"])), SPELLING
    for piece in split:
        if len(piece) > 1 and piece not in STOP_WORDS:
            yield (piece,), PIECE


def _bigram_phrases(text: str) -> Iterator[tuple[Phrase, float]]:
    """Yield overlapping pairs of characters; runs of another script as they are."""
    for run in re.split(f"((?:{_CJK.pattern})+)", text):
        found = tuple(terms(run))
        if found and _CJK.match(run) and len(found) > 1:
            yield from ((pair, 1.0) for pair in pairwise(found))
        elif found:
            yield found, 1.0
