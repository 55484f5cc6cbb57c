"""Recognise keys, tokens and private keys in UTF-8 data by their own shape.

Most families begin with a mark of their own. A rule is a condition (a pattern in RE2's syntax that each match contains) and
a pattern that begins with literal text. One pass over the data looks for all conditions; only the rules whose condition is
met are run. A look-behind comes after the literal text and reaches over it: in front it would turn the fast search off.
Families with a prefix like `ghp_` and then letters and digits only are found together, by one search for such a body.

Quantifiers are bounded unless they end their pattern, so hostile text costs linear time.

A `PatternSet` searches for many patterns together. A pass costs about as much as three searches for a single word, however
many patterns there are. RE2 is imported, and the set compiled, at the first search.

The user's own patterns come from `[secrets] patterns` in the config file. A process has one config file, so they are set once for the
process, by whoever loads the settings. In a raw line of JSON they are matched with the content of each string, unescaped.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from itertools import accumulate
from typing import Any

from everturn.errors import BadConfig
from everturn.secrets.families import (
    BROKEN_FAMILIES,
    INSIDE_FAMILIES,
    RUN_CONDITION,
    Search,
    Span,
    not_within_word,
    run_tokens,
)
from everturn.text.lazy_pattern import lazy_pattern

_MEMORY = 64 << 20  # bytes for the states of the matcher, which are made as text needs them


class PatternSet:
    """Patterns in RE2's syntax, numbered from 0 in their order."""

    def __init__(self, patterns: Iterable[bytes], ignore_case: bool = False) -> None:
        self._patterns = tuple(patterns)
        self._ignore_case = ignore_case

    def search(self, data: bytes) -> list[int]:
        """Return the numbers of the patterns that occur in the data, in order."""
        return sorted(self._match(data) or ())

    @cached_property
    def _match(self) -> Callable[[bytes], list[int] | None]:
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.case_sensitive = not self._ignore_case
        options.max_mem = _MEMORY
        options.log_errors = False
        patterns = re2.Set.SearchSet(options)
        for pattern in self._patterns:
            patterns.Add(pattern)
        patterns.Compile()
        match: Callable[[bytes], list[int] | None] = patterns.Match
        return match


class CutBytes:
    """Selected parts of some data, joined with `between`, for patterns that must not see the rest."""

    def __init__(self, data: bytes, parts: list[tuple[int, int]], between: bytes = b"") -> None:
        self.data = between.join(data[start:end] for start, end in parts)
        self._parts = parts
        sizes = (end - start + len(between) for start, end in parts)
        self._starts = list(accumulate(sizes, initial=0))[:-1]

    def original_range(self, start: int, end: int) -> tuple[int, int]:
        """Map a range to the original data. Bytes left out within it belong to it."""
        first = bisect_right(self._starts, start) - 1
        last = max(first, bisect_left(self._starts, end) - 1)
        return self._at(first, start), min(self._at(last, end), self._parts[last][1])

    def _at(self, part: int, offset: int) -> int:
        return self._parts[part][0] + offset - self._starts[part]


#: A line end and the indent of the next line on a narrow screen: blanks, or the edge of a box.
_BREAK = rb"(?:\\r)?(?:\r?\n|\\n)[ \t]{0,8}(?:(?:\xe2\x94[\x82\x83]|\|)[ \t]{0,4})?"
#: The rest of a token that was wrapped there: letters and digits, and nothing else on the line.
_REST = _BREAK + rb"(?=[A-Za-z_-]{0,200}[0-9])(?=[0-9_-]{0,200}[A-Za-z])[A-Za-z0-9_-]{6,}(?![A-Za-z0-9_.:/=(-])"
_REST_OF_JWT = _BREAK + rb"(?=[A-Za-z_.-]{0,200}[0-9])[A-Za-z0-9_.-]{6,}(?![A-Za-z0-9_.:/=(-])"
_MOST_RESTS = 12

#: What a match contains, in RE2's syntax, and the pattern. The group name is the kind.
_MARKED = (
    (b"A(?:[KSB]IA|CCA)[A-Z2-7]{16}|AIza|AGE-SECRET|ATATT3", rb"A(?:(?P<aws_access_key>(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9]))|(?P<google_key>Iza[A-Za-z0-9_-]{35})"
     rb"|(?P<age_key>GE-SECRET-KEY-1[A-Z0-9]{50,})|(?P<atlassian_token>TATT3[A-Za-z0-9_=-]{100,}))"),
    (b"gl(?:(?:pat|dt|rt|ptt|oas|cbt|imt|agent|soat|ffct|ft)-|sa_|c_eyJ)", rb"gl(?:(?P<gitlab_token>(?:pat|dt|rt|ptt|oas|cbt|imt|agent|soat|ffct|ft)-[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-])"
     rb"|(?P<grafana_token>sa_[A-Za-z0-9]{32}_[0-9a-f]{8}|c_eyJ[A-Za-z0-9+/]{40,}={0,2}))"),
    (b"sk-(?:ant-|proj-|svcacct-|admin-|None-|or-v1-|[A-Za-z0-9]{32})", rb"sk-(?:(?P<anthropic_key>ant-(?:[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{4,19}(?=" + _REST + rb")))"
     rb"|(?P<openai_key>(?:proj|svcacct|admin|None)-(?:[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{4,19}(?=" + _REST + rb"))|" + not_within_word(rb"sk-") + rb"(?:or-v1-)?(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{32,}(?![A-Za-z0-9_-])))"),
    (b"xox[a-z][.-]|xapp-", rb"x(?P<slack_token>ox[a-z]-[A-Za-z0-9-]{10,}|oxe\.xox[a-z]-[A-Za-z0-9-]{10,}"
     rb"|app-[0-9]-[A-Z0-9]{5,20}-[0-9]{5,20}-[a-z0-9]{20,})"),
    # The middle and the end of a token; before them comes the account number.
    (rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}", rb"\.(?P<discord_token>[A-Za-z0-9_-]{6}\.(?:(?<=[MNO][A-Za-z0-9]{23}\.[A-Za-z0-9_-]{6}\.)|"
     rb"(?<=[MNO][A-Za-z0-9]{25}\.[A-Za-z0-9_-]{6}\.))[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-]))"),
    (b"[0-9]:AA", rb":AA(?P<telegram_token>(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-]))"),
    (rb"ya29\.", rb"ya29\.(?P<google_token>[A-Za-z0-9_-]{30,})"),
    (b"GOCSPX-", rb"GOCSPX-(?P<google_token>[A-Za-z0-9_-]{24,})"),
    (b"1//0", rb"1//0(?P<google_token>[A-Za-z0-9_-]{40,})"),
    (b"pypi-AgE", rb"pypi-AgE(?P<pypi_token>[A-Za-z0-9_-]{50,})"),
    (rb"SG\.|SK[0-9a-f]{32}", rb"S(?:(?P<sendgrid_key>G\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,})"
     rb"|(?P<twilio_key>K" + not_within_word(rb"SK") + rb"[0-9a-f]{32}(?![A-Za-z0-9])))"),
    (b"dckr_", rb"dckr_(?P<docker_token>[po]at_[A-Za-z0-9_-]{24,})"),
    (rb"hv[sb]\.", rb"hv(?P<vault_token>[sb]\.[A-Za-z0-9_-]{24,})"),
    (rb"\.atlasv1\.", rb"\.atlasv1\.(?P<terraform_token>[A-Za-z0-9_-]{60,})"),
    (b"dapi", rb"dapi(?P<databricks_token>" + not_within_word(rb"dapi") + rb"[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9]))"),
    # Not merged with others: a long run of `eyJ` would be searched again from each of them.
    (rb"\.eyJ", rb"eyJ(?P<jwt>" + not_within_word(rb"eyJ") + rb"[A-Za-z0-9_-]{10,8000}\.eyJ"
     rb"(?:[A-Za-z0-9_-]{40,32000}(?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]{4,39}(?:\.[A-Za-z0-9_-]{10,}|(?=" + _REST_OF_JWT + rb"))))"),
)  # fmt: skip

#: Tokens with other signs in them, so that there may be no long run nearby.
_BROKEN = (
    (b"hooks[./]", rb"hooks(?:(?P<slack_webhook>\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/]{20,})"
     rb"|(?P<discord_webhook>/[0-9]{16,20}/[A-Za-z0-9_-]{50,}))"),
    (b"whsec_", rb"whsec_(?P<stripe_key>[A-Za-z0-9+/]{24,}={0,2})"),
    (b"[0-9]Q~", rb"Q~(?P<azure_secret>(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-]))"),
    (b"sig=[A-Za-z0-9%+/]{43}", rb"sig=(?P<azure_signature>[A-Za-z0-9%+/]{43,90}(?:%3[dD]|=))"),
)  # fmt: skip

#: Prefixes that end in `_` or `-`, followed by twenty or more letters and digits; the exact body by family.
_PREFIXED = {
    "github_token": (rb"[A-Za-z0-9]{36,}", "ghp_ gho_ ghu_ ghs_ ghr_"),
    "github_pat": (rb"[A-Za-z0-9]{22}_[A-Za-z0-9]{40,}", "github_pat_"),
    "stripe_key": (rb"[A-Za-z0-9]{20,}", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_"),
    "npm_token": (rb"[A-Za-z0-9]{36,}", "npm_"),
    "huggingface_token": (rb"[A-Za-z0-9]{34,}(?!_)", "hf_ api_org_"),
    "digitalocean_token": (rb"[a-f0-9]{64}", "dop_v1_ doo_v1_ dor_v1_"),
    "groq_key": (rb"[A-Za-z0-9]{40,}", "gsk_"),
    "shopify_token": (rb"[a-fA-F0-9]{32}", "shpat_ shpca_ shppa_ shpss_"),
    "linear_key": (rb"[A-Za-z0-9]{32,}", "lin_api_ lin_oauth_"),
    "notion_token": (rb"[A-Za-z0-9]{40,}", "ntn_ secret_"),
    "postman_key": (rb"[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    "newrelic_key": (rb"[A-Z0-9]{27}", "NRAK-"),
    "sentry_token": (rb"[A-Za-z0-9+/=_-]{60,}", "sntryu_ sntrys_"),
    "supabase_token": (rb"[a-f0-9]{40}", "sbp_"),
    "replicate_token": (rb"[A-Za-z0-9]{37}", "r8_"),
    "perplexity_key": (rb"[A-Za-z0-9]{40,}", "pplx-"),
    "xai_key": (rb"[A-Za-z0-9]{60,}", "xai-"),
    "cerebras_key": (rb"[a-z0-9]{40,}", "csk-"),
    "tavily_key": (rb"[A-Za-z0-9]{28,}", "tvly- tvly-dev-"),
    "langsmith_key": (rb"[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_pt_ lsv2_sk_"),
    "pulumi_token": (rb"[a-f0-9]{40}", "pul-"),
    "rubygems_key": (rb"[a-f0-9]{48}", "rubygems_"),
    "mailgun_key": (rb"[a-f0-9]{32}(?![A-Za-z0-9])", "key-"),
    "buildkite_token": (rb"[a-f0-9]{40}", "bkua_"),
    "sourcegraph_token": (rb"[a-f0-9]{40,}", "sgp_"),
    "fly_token": (rb"[A-Za-z0-9+/=_-]{60,}", "fm2_"),
}
#: Or a shorter body where the text or its string ends (titles are cut), or the rest is on the next line.
_OR_CUT = rb"|[A-Za-z0-9]{20,}(?=\\{0,7}\"|\xe2\x80\xa6|\.\.\.|\Z|" + _REST + rb")"
_BODY = lazy_pattern(b"_" + b"a" * 20)
#: All other tokens are, or end with, such a run of letters, digits, `_` and `-`. Ordinary text has hardly any, so the
#: rules search only the text near one.
_SHORTEST_RUN = b"a" * 20
_RUN = lazy_pattern(_SHORTEST_RUN + b"a*")
_RUNS = bytes(ord("a" if chr(code) in string.ascii_letters + string.digits + "_-" else " ") for code in range(256))
_NEAR = 24
#: Letters and digits become `a`; `_` and `-`, in which prefixes end, become `_`.
_CLASSES = bytes(
    ord("a" if chr(code) in string.ascii_letters + string.digits else "_" if code in b"_-" else " ")
    for code in range(256)
)


_SHORT = 3  # a prefix of this length occurs in long runs by chance
_WITHIN = lazy_pattern(rb"[A-Za-z0-9_-](?<!\\[nrt])(?<![0-9;\[][mK])")


def _rules_by_ending() -> dict[bytes, list[tuple[bytes, str, bytes]]]:
    found: dict[bytes, list[tuple[bytes, str, bytes]]] = {}
    for kind, (body, heads) in _PREFIXED.items():
        for head in heads.encode().split():
            name = "github_token" if kind == "github_pat" else kind
            found.setdefault(head[-3:], []).append((head, name, body + _OR_CUT))
    return found


_compile_rule = cache(re.compile)  # one of many that hardly any text needs
_BY_END = _rules_by_ending()

#: Example tokens of documentation say so near their beginning.
_EXAMPLE = lazy_pattern(rb"EXAMPLE|example|[xX]{6}|0{8}|your|YOUR|placeholder")
_BEGINNING = 64

#: Families with the mark at the end: length and pattern of the part before it.
_BEFORE = {
    "discord_token": (26, lazy_pattern(rb"[MNO](?:[A-Za-z0-9]{25}|[A-Za-z0-9]{23})\Z")),
    "discord_webhook": (9, lazy_pattern(rb"/api/web\Z")),
    "telegram_token": (10, lazy_pattern(rb"[0-9]{8,10}\Z")),
    "azure_secret": (4, lazy_pattern(rb"[A-Za-z0-9_~.-]{3}[0-9]\Z")),
    "terraform_token": (14, lazy_pattern(rb"[A-Za-z0-9]{14}\Z")),
}
#: Families whose mark is a name and not part of the secret.
_NAMED = {"azure_signature"}

#: A token that was cut off with its text, as in titles.
_CUT = lazy_pattern(
    rb"(?:(?P<github_token>gh[pousr]_|github_pat_)|(?P<anthropic_key>sk-ant-[a-z]{3}[0-9]{2}-)|(?P<openai_key>sk-(?:proj|svcacct|admin)-)"
    rb"|(?P<gitlab_token>glpat-)|(?P<slack_token>xox[a-z]-)|(?P<stripe_key>[sr]k_(?:live|test)_)|(?P<aws_access_key>A[KS]IA)"
    rb"|(?P<google_key>AIza)|(?P<npm_token>npm_)|(?P<huggingface_token>hf_)|(?P<pypi_token>pypi-AgE))"
    rb"(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{4,}\Z"
)  # fmt: skip
_LAST = 100  # bytes at the end of a text searched for one
_SHORTEST_CUT = 7

_PEM_BEGIN = lazy_pattern(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = lazy_pattern(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LONGEST = 20_000
#: A key may be quoted: each line begins with `> `, `#### ` or the like.
_PEM_BODY = lazy_pattern(rb"(?:\n[ \t]{0,8}(?:>|#{1,6}|\||\+)[ \t]|[A-Za-z0-9+/=\s]|\\{1,8}[nr]){0,20000}")
#: A key in text whose end is not written yet: all that follows its first line may belong to it.
_OPEN_KEY = lazy_pattern(
    rb"(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines:[ \t]{0,4}[0-9]{1,4})[ \t]{0,8}\r?"
    rb"(?:\n[ \t]{0,8}(?:[>#|+]{1,6}[ \t]{1,4})?(?:[A-Za-z0-9+/]{0,80}={0,2}|[A-Za-z-]{4,20}: [^\n]{0,200}|-{1,5}(?:E|EN|END [A-Z0-9 ]{0,60}-{0,4})?)[ \t\r]{0,8}){0,400}\Z"
)
_PEM_LINE = lazy_pattern(rb"[A-Za-z0-9+/]{40}")
_ESCAPE_OR_QUOTE = lazy_pattern(rb'\\.|"')


def token_spans(data: bytes, raw: bool) -> list[Span]:
    """Return the secrets known by their shape, in no order. `raw` is JSON: a secret ends with its string."""
    numbers = _CONDITIONS.search(data)
    found = _search_all(data, [number for number in numbers if number < _FIRST_NEAR])
    if numbers and numbers[-1] >= _FIRST_NEAR and (runs := _long_runs(data)):
        found += run_tokens(data, (start for start, _ in runs))
        part = CutBytes(data, _parts_near_runs(data, runs), b" ")
        near = [number for number in numbers if _FIRST_NEAR <= number < len(_SEARCHES)]
        spans = [*_search_all(part.data, near), *_prefixed_tokens(part.data)]
        found += [(kind, *part.original_range(start, end)) for kind, start, end in spans]
    found += _token_cut_off(data)
    found = [
        (kind, start, _token_end(data, end, kind))
        for kind, start, end in found
        if not _EXAMPLE.search(data, start, min(end, start + _BEGINNING))
    ]
    if b"-----BEGIN " in data:
        found += _private_keys(data, raw)
    return found


def _search_all(data: bytes, numbers: list[int]) -> list[Span]:
    return [span for number in numbers for span in _SEARCHES[number][1](data)]


def _long_runs(data: bytes) -> list[tuple[int, int]]:
    """Return the ranges of long runs of letters, digits, `_` and `-`."""
    classes = data.translate(_RUNS)
    first = classes.find(_SHORTEST_RUN)
    return [run.span() for run in _RUN.finditer(classes, first)] if first >= 0 else []


def _parts_near_runs(data: bytes, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of the data around its long runs."""
    parts: list[tuple[int, int]] = []
    begin = end = -1
    for start, stop in runs:
        if end < 0 or start - _NEAR > end:
            if end >= 0:
                parts.append((begin, end))
            begin = max(0, start - _NEAR)
        end = stop + _NEAR
    return [*parts, (begin, min(end, len(data)))] if end >= 0 else parts


def _prefixed_tokens(data: bytes) -> Iterator[Span]:
    if b"_" not in data and b"-" not in data:
        return
    for found in _BODY.finditer(data.translate(_CLASSES)):
        at = found.start() + 1
        for head, kind, body in _BY_END.get(data[at - 3 : at], ()):
            start = at - len(head)
            if not data.startswith(head, start):
                continue
            if start and len(head) <= _SHORT and _WITHIN.match(data, start - 1):
                continue
            if match := _compile_rule(body).match(data, at):
                yield kind, start, match.end()


def _token_span(data: bytes, match: re.Match[bytes]) -> Span:
    kind, start = match.lastgroup or "", match.start()
    if kind in _NAMED:
        start = match.start(kind)
    elif kind in _BEFORE:
        most, rule = _BEFORE[kind]
        before = rule.search(data, max(0, start - most), start)
        start = before.start() if before else start
    return kind, start, match.end()


def _named_spans(pattern: re.Pattern[bytes], data: bytes) -> list[Span]:
    return [_token_span(data, match) for match in pattern.finditer(data)]


def _signature_spans(pattern: re.Pattern[bytes], data: bytes) -> list[Span]:
    """Return signatures of addresses, which have further parameters."""
    return _named_spans(pattern, data) if b"&" in data else []


#: Searches in all of the data, and from `_FIRST_NEAR` those near long runs.
_SEARCHES: list[Search] = [
    *(
        (mark, partial(_signature_spans if mark.startswith(b"sig") else _named_spans, lazy_pattern(pattern)))
        for mark, pattern in _BROKEN
    ),
    *BROKEN_FAMILIES,
    *((mark, partial(_named_spans, lazy_pattern(pattern))) for mark, pattern in _MARKED),
    *INSIDE_FAMILIES,
]
_FIRST_NEAR = len(_BROKEN) + len(BROKEN_FAMILIES)
_PREFIXES = b"|".join(re.escape(head) for rules in _BY_END.values() for head, _, _ in rules)
_CONDITIONS = PatternSet(
    (*(condition for condition, _ in _SEARCHES), RUN_CONDITION, rb"(?:%b)[A-Za-z0-9]{20}" % _PREFIXES)
)


def _token_cut_off(data: bytes) -> Iterator[Span]:
    end = len(data)
    if data.endswith((b"\xe2\x80\xa6", b"...")):
        end -= 3
    last = data[max(0, end - _LAST) : end].translate(_RUNS)
    start = end - len(last) + last.rfind(b" ") + 1
    match = _CUT.search(data, start, end) if end - start > _SHORTEST_CUT else None
    if match:
        yield match.lastgroup or "", *match.span()


_RESTS = lazy_pattern(b"(?:" + _REST + b"){1,%d}" % _MOST_RESTS)
_RESTS_OF_JWT = lazy_pattern(b"(?:" + _REST_OF_JWT + b"){1,%d}" % _MOST_RESTS)


def _token_end(data: bytes, end: int, kind: str) -> int:
    """Return the end of a token, including its rest on the next lines."""
    if data[end : end + 1] not in (b"\r", b"\n", b"\\"):
        return end
    more = (_RESTS_OF_JWT if kind == "jwt" else _RESTS).match(data, end)
    return more.end() if more else end


def _private_keys(data: bytes, raw: bool) -> Iterator[Span]:
    """Yield private keys with their frame, also truncated ones. Each pattern runs over the data once."""
    first = data.find(b"-----BEGIN ")
    ends = [match.end() for match in _PEM_END.finditer(data, first)]
    quotes = [match.start() for match in _ESCAPE_OR_QUOTE.finditer(data, first) if match[0] == b'"'] if raw else []
    done = 0
    for begin in _PEM_BEGIN.finditer(data, first):
        if begin.start() < done:
            continue
        start = begin.end()
        limit = min(start + _PEM_LONGEST, _first_position_from(quotes, start, len(data)))
        done = _first_position_from(ends, start, limit + 1)
        if done > limit:
            body = _PEM_BODY.match(data, start, limit)
            done = body.end() if body else start
        if _PEM_LINE.search(data, start, done):
            yield "private_key", begin.start(), done


def open_key_start(data: bytes) -> int:
    """Return where the line begins in which a private key starts that text ends within; the size of the data if there is none."""
    after = max(0, len(data) - _PEM_LONGEST)
    if b"-----BEGIN " not in data[after:] and b"Private-Lines:" not in data[after:]:
        return len(data)
    found = _OPEN_KEY.search(data, after)
    return data.rfind(b"\n", 0, found.start()) + 1 if found else len(data)


def _first_position_from(positions: list[int], at: int, otherwise: int) -> int:
    index = bisect_left(positions, at)
    return positions[index] if index < len(positions) else otherwise


# --- the user's own patterns ---
#: The kind of these secrets.
OWN_KIND = "user_pattern"
MOST_PATTERNS = 50
LONGEST_PATTERN = 500  # characters
_OWN_MEMORY = 8 << 20  # bytes for a compiled pattern
_OWN_KEY = "secrets.patterns"
_JSON_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_JSON_ESCAPE = re.compile(
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt])"
)
_PLAIN_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

_own_in_use: dict[str, tuple[Any, ...]] = {"patterns": ()}


def use_own_patterns(patterns: Iterable[str]) -> None:
    """Mask these patterns from now on. Raises BadConfig that names the pattern that cannot be used."""
    _own_in_use["patterns"] = compile_own_patterns(tuple(patterns))


def has_own_patterns() -> bool:
    """Whether patterns are in use."""
    return bool(_own_in_use["patterns"])


def compile_own_patterns(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    """Compile patterns. Raises BadConfig that names the one that cannot be used."""
    if len(patterns) > MOST_PATTERNS:
        raise BadConfig(_OWN_KEY, f"{len(patterns)} patterns are too many, the limit is {MOST_PATTERNS}")
    return tuple(map(_compile_own, patterns))


def own_spans(data: bytes, raw: bool) -> Iterator[tuple[str, int, int]]:
    """Yield the matches of the user's patterns in UTF-8 data. `raw` is JSON."""
    if patterns := _own_in_use["patterns"]:
        for part in _json_strings(data) if raw else (_TextPart(data, 0),):
            for pattern in patterns:
                for match in pattern.finditer(part.data):
                    if match.end() > match.start():
                        yield OWN_KIND, part.original(match.start()), part.original(match.end())


def _compile_own(pattern: str) -> Any:
    import re2

    shown = pattern if len(pattern) <= 60 else pattern[:59] + "…"
    if len(pattern) > LONGEST_PATTERN:
        raise BadConfig(_OWN_KEY, f"{shown!r} has {len(pattern)} characters, the limit is {LONGEST_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _OWN_MEMORY
    try:
        compiled = re2.compile(pattern.encode("utf-8"), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else "cannot be compiled"
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise BadConfig(_OWN_KEY, f"{shown!r} is not a pattern in RE2 syntax ({text})") from None
    if compiled.search(b""):
        raise BadConfig(_OWN_KEY, f"{shown!r} matches empty text")
    return compiled


class _TextPart:
    """A part of the data, with escapes replaced, and the way back to the positions before."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data, self._edges = data, [(0, start)]

    def original(self, at: int) -> int:
        """Return the position in the data that the part was taken from."""
        edge = bisect_right(self._edges, at, key=lambda edge: edge[0]) - 1
        return self._edges[edge][1] + at - self._edges[edge][0]


class _JsonString(_TextPart):
    def __init__(self, data: bytes, start: int, end: int) -> None:
        super().__init__(b"", start)
        parts: list[bytes] = []
        size, at = 0, start
        for escape in _JSON_ESCAPE.finditer(data, start, end):
            parts += data[at : escape.start()], _unescape(escape[0])
            size += len(parts[-2]) + len(parts[-1])
            at = escape.end()
            self._edges.append((size - len(parts[-1]), escape.start()))
            self._edges.append((size, at))
        self.data = b"".join((*parts, data[at:end]))


def _json_strings(data: bytes) -> Iterator[_TextPart]:
    """Yield what is between the quotes of JSON: its strings, and numbers and signs."""
    at = 0
    while at < len(data):
        match = _JSON_STRING.match(data, at)
        end = max(match.end() if match else at, at)
        if end > at:
            yield _JsonString(data, at, end) if b"\\" in data[at:end] else _TextPart(data[at:end], at)
        at = end + 1


def _unescape(escape: bytes) -> bytes:
    if escape[1:2] != b"u":
        return _PLAIN_ESCAPES.get(escape[1:2], escape[1:2])
    units = b"".join(bytes.fromhex(escape[n : n + 4].decode()) for n in range(2, len(escape), 6))
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
