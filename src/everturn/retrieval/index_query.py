"""Turn a parsed query into an `IndexQuery`, without filters.

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
from itertools import pairwise

from everturn.retrieval.query import MAX_PHRASE, QueryPhrase, SearchQuery, phrase_of
from everturn.store.contract import IndexQuery
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.terms import humps, terms
from everturn.text.time_phrases import SpokenTime, find_times

Phrase = tuple[str, ...]

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
    return len(query.wanted) > LONG_TEXT


def _sort_phrases(query: SearchQuery) -> tuple[list[QueryPhrase], tuple[tuple[Phrase, ...], ...]]:
    """Split into plain words, which are optional, and required groups: quoted, prefixes, or joined by OR."""
    by_group: dict[int, list[QueryPhrase]] = {}
    for piece in query.wanted:
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
