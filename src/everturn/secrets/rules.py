"""Recognise secrets in UTF-8 data: by their own shape, and by the words around them.

`token_spans` finds keys, tokens and private keys. Most families begin with a mark of their own. A rule is that literal
text, which is searched for first (next to no cost where it is missing), and a pattern that begins with it. A condition on
the text before comes after the mark, as a look-behind that reaches over it: in front it would turn the fast search off.
Families with a prefix like `ghp_` and then letters and digits only are found together, by one search for such a body.

`word_spans` finds passwords in addresses, headers and cookies, and `name = value` in code, settings and JSON. A password has
no shape, so the name decides, and the value is judged: placeholders, types, code and paths are not secrets. Names are
searched for in lower-cased data. Quotes may be escaped several times (JSON within JSON) or written as entities, and the
signs between a name and its value percent-encoded.

Quantifiers are bounded unless they end their pattern, so hostile text costs linear time.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from everturn.secrets.families import Span, broken_tokens, inside_tokens, not_within_word, run_tokens
from everturn.text.lazy_pattern import lazy_pattern


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


#: In longer data a pattern finds its own mark as fast as a separate search would.
_LONG = 1024


#: A line end and the indent of the next line on a narrow screen: blanks, or the edge of a box.
_BREAK = rb"(?:\\r)?(?:\r?\n|\\n)[ \t]{0,8}(?:(?:\xe2\x94[\x82\x83]|\|)[ \t]{0,4})?"
#: The rest of a token that was wrapped there: letters and digits, and nothing else on the line.
_REST = _BREAK + rb"(?=[A-Za-z_-]{0,200}[0-9])(?=[0-9_-]{0,200}[A-Za-z])[A-Za-z0-9_-]{6,}(?![A-Za-z0-9_.:/=(-])"
_REST_OF_JWT = _BREAK + rb"(?=[A-Za-z_.-]{0,200}[0-9])[A-Za-z0-9_.-]{6,}(?![A-Za-z0-9_.:/=(-])"
_MOST_RESTS = 12

#: The mark a pattern begins with, and the pattern. The group name is the kind.
_MARKED = (
    (b"A", rb"A(?:(?P<aws_access_key>(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9]))|(?P<google_key>Iza[A-Za-z0-9_-]{35})"
     rb"|(?P<age_key>GE-SECRET-KEY-1[A-Z0-9]{50,})|(?P<atlassian_token>TATT3[A-Za-z0-9_=-]{100,}))"),
    (b"gl", rb"gl(?:(?P<gitlab_token>(?:pat|dt|rt|ptt|oas|cbt|imt|agent|soat|ffct|ft)-[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-])"
     rb"|(?P<grafana_token>sa_[A-Za-z0-9]{32}_[0-9a-f]{8}|c_eyJ[A-Za-z0-9+/]{40,}={0,2}))"),
    (b"sk-", rb"sk-(?:(?P<anthropic_key>ant-(?:[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{4,19}(?=" + _REST + rb")))"
     rb"|(?P<openai_key>(?:proj|svcacct|admin|None)-(?:[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{4,19}(?=" + _REST + rb"))|" + not_within_word(rb"sk-") + rb"(?:or-v1-)?(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{32,}(?![A-Za-z0-9_-])))"),
    (b"x", rb"x(?P<slack_token>ox[a-z]-[A-Za-z0-9-]{10,}|oxe\.xox[a-z]-[A-Za-z0-9-]{10,}"
     rb"|app-[0-9]-[A-Z0-9]{5,20}-[0-9]{5,20}-[a-z0-9]{20,})"),
    # The middle and the end of a token; before them comes the account number.
    (b".", rb"\.(?P<discord_token>[A-Za-z0-9_-]{6}\.(?:(?<=[MNO][A-Za-z0-9]{23}\.[A-Za-z0-9_-]{6}\.)|"
     rb"(?<=[MNO][A-Za-z0-9]{25}\.[A-Za-z0-9_-]{6}\.))[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-]))"),
    (b":AA", rb":AA(?P<telegram_token>(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-]))"),
    (b"ya29.", rb"ya29\.(?P<google_token>[A-Za-z0-9_-]{30,})"),
    (b"GOCSPX-", rb"GOCSPX-(?P<google_token>[A-Za-z0-9_-]{24,})"),
    (b"1//0", rb"1//0(?P<google_token>[A-Za-z0-9_-]{40,})"),
    (b"pypi-AgE", rb"pypi-AgE(?P<pypi_token>[A-Za-z0-9_-]{50,})"),
    (b"S", rb"S(?:(?P<sendgrid_key>G\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,})"
     rb"|(?P<twilio_key>K" + not_within_word(rb"SK") + rb"[0-9a-f]{32}(?![A-Za-z0-9])))"),
    (b"dckr_", rb"dckr_(?P<docker_token>[po]at_[A-Za-z0-9_-]{24,})"),
    (b"hv", rb"hv(?P<vault_token>[sb]\.[A-Za-z0-9_-]{24,})"),
    (b".atlasv1.", rb"\.atlasv1\.(?P<terraform_token>[A-Za-z0-9_-]{60,})"),
    (b"dapi", rb"dapi(?P<databricks_token>" + not_within_word(rb"dapi") + rb"[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9]))"),
    # Not merged with others: a long run of `eyJ` would be searched again from each of them.
    (b"eyJ", rb"eyJ(?P<jwt>" + not_within_word(rb"eyJ") + rb"[A-Za-z0-9_-]{10,8000}\.eyJ"
     rb"(?:[A-Za-z0-9_-]{40,32000}(?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]{4,39}(?:\.[A-Za-z0-9_-]{10,}|(?=" + _REST_OF_JWT + rb"))))"),
)  # fmt: skip
_MARKED_RULES = [(mark, lazy_pattern(pattern)) for mark, pattern in _MARKED]

#: Tokens with other signs in them, so that there may be no long run nearby; and one character of them to search for first.
_BROKEN = (
    (b"h", rb"hooks(?:(?P<slack_webhook>\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/]{20,})"
     rb"|(?P<discord_webhook>/[0-9]{16,20}/[A-Za-z0-9_-]{50,}))"),
    (b"_", rb"whsec_(?P<stripe_key>[A-Za-z0-9+/]{24,}={0,2})"),
    (b"~", rb"Q~(?P<azure_secret>(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-]))"),
    (b"&", rb"sig=(?P<azure_signature>[A-Za-z0-9%+/]{43,90}(?:%3[dD]|=))"),
)  # fmt: skip
_BROKEN_RULES = [(mark, lazy_pattern(pattern)) for mark, pattern in _BROKEN]

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
_RUN = lazy_pattern(b"a" * 20 + b"a*")
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
_PEM_BODY = lazy_pattern(rb"(?:[A-Za-z0-9+/=\s]|\\{1,8}[nr]){0,20000}")
_PEM_LINE = lazy_pattern(rb"[A-Za-z0-9+/]{40}")
_ESCAPE_OR_QUOTE = lazy_pattern(rb'\\.|"')


def token_spans(data: bytes, raw: bool) -> list[Span]:
    """Return the secrets known by their shape, in no order. `raw` is JSON: a secret ends with its string."""
    found = [_token_span(data, match) for mark, rule in _BROKEN_RULES if mark in data for match in rule.finditer(data)]
    found += broken_tokens(data)
    runs = [run.span() for run in _RUN.finditer(data.translate(_RUNS))]
    if near := _parts_near_runs(data, runs):
        found += run_tokens(data, (start for start, _ in runs))
        part = CutBytes(data, near, b" ")
        spans = [
            *(_token_span(part.data, match) for match in _rule_matches(part.data, _MARKED_RULES)),
            *_prefixed_tokens(part.data),
            *inside_tokens(part.data),
        ]
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


def _rule_matches(data: bytes, rules: list[tuple[bytes, re.Pattern[bytes]]]) -> Iterator[re.Match[bytes]]:
    is_long = len(data) > _LONG
    for mark, rule in rules:
        if is_long or mark in data:
            yield from rule.finditer(data)


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


def _first_position_from(positions: list[int], at: int, otherwise: int) -> int:
    index = bisect_left(positions, at)
    return positions[index] if index < len(positions) else otherwise


# --- secrets known by the words around them ---
_QUOTE = rb"""(?:\\{0,7}["'`]|&quot;|&\#3[49];)"""
_IS = rb"(?::=|=>|:|=|%3[ad](?:%20|\+)?)"
#: A backslash is part of a value only where it cannot begin an escape of a raw line.
_VALUE = rb"""((?:[^\s"'`\\,;<>(){}|&]|&(?!quot;|\#3[49];)|\\\\|\\[^\snrtbfu"'`/]){4,4000})"""
_ASSIGNED = (
    rb"(?:[_-]?(?:access[_-]?key|key|value|base64))?(" + _QUOTE + rb")?[ \t]{0,8}" + _IS + rb"[ \t]{0,4}"
    rb"((?:[bru]{1,2}(?=[\"']))?" + _QUOTE + rb")?" + _VALUE + rb"(" + _QUOTE + rb"|[(])?"
)  # fmt: skip
#: `--token VALUE`, where the word ends a flag. A look-ahead: the value may itself be a name.
_FLAGGED = rb"(?= " + _QUOTE + rb"?" + _VALUE + rb")"
#: Behind `authorization`.
_CREDENTIAL = (
    _QUOTE + rb"?[ \t]{0,4}(?:[:=,]|%3[ad])(?:[ \t]|%20|\+){0,4}" + _QUOTE + rb"?"
    rb"(?:(?:bearer|basic|token|apikey|negotiate)(?:[ \t]|%20|\+){1,4})?([a-z0-9_.+/~=:-]{8,})"
)  # fmt: skip
#: Kind and pattern. Groups: quote after the name, quote before the value, the value, the character after it, and the
#: value of a flag, of `login ME password VALUE`, or of a header.
_WORDS = (
    ("password", rb"pass(?:(?:w(?:or)?d|phrase|(?=\\{0,7}[\"'][ \t]{0,4}:))" + _ASSIGNED + rb"|(?:word|phrase)" + _FLAGGED + rb")"),
    ("password", rb"pwd(?:(?<=_pwd)|(?<=[;&?]pwd)|(?<=; pwd)|(?<=[\"']pwd))(?=\\{0,7}[\"'=])" + _ASSIGNED + rb"()"),
    ("secret", rb"secret(?:(?:[_ -]?access[_ -]?key(?: ?\[[^\]\n]{0,40}\])?)?" + _ASSIGNED + rb"|(?<=-secret)" + _FLAGGED + rb")"),
    ("api_key", rb"key(?:(?<=(?:api|ess|ate)[_-]key)|(?<=(?:api|ess|ate|unt)key))(?:(?<=api.key)|(?<=apikey)|(?<=access.key)"
     rb"|(?<=accesskey)|(?<=private.key)|(?<=privatekey)|(?<=accountkey))(?:" + _ASSIGNED + rb"|" + _FLAGGED + rb")"),
    ("token", rb"token(?:" + _ASSIGNED + rb"|(?<=-token)" + _FLAGGED + rb")"),
    ("token", rb"auth(?:(?=[\\\"'=])" + _ASSIGNED + rb"|orization" + _CREDENTIAL + rb")"),
)  # fmt: skip
_WORD_RULES = [(kind, word[:3], lazy_pattern(word)) for kind, word in _WORDS]
_LOOKBACK = 130  # bytes searched before a word
_LONG_FLAG = lazy_pattern(rb" --[a-z-]{0,30}\Z")
_LOGIN = lazy_pattern(rb"login[ \t]{1,8}[^\s\\]{1,80}(?:\s|\\[nrt]){1,8}\Z")
_AWS = lazy_pattern(rb"secret[_ -]?access[_ -]?key")
_SHORTEST = {"password": 6, "secret": 8, "api_key": 8, "token": 12}
_SHORTEST_PRIVATE = 32

#: The password of scheme://user:password@host, which may contain an `@`, or be cut off with the text.
_URL = lazy_pattern(
    rb"""://[^\s/?#:@"'`<>\\\[\]{}()$]{0,120}:([^\s/?\#"'`<>\\@]{1,200}(?:@[^\s/?\#"'`<>\\@]{1,60}(?=@))?)"""
    rb"(?:@(?=[\w\[-])|(?=(?:\xe2\x80\xa6|\.\.\.)?\Z))"
)
_ENCODED_URL = lazy_pattern(rb"%3a%2f%2f[\w.%~-]{0,120}%3a((?:[\w.!~*+-]|%(?!40)[0-9a-f]{2}){1,200})%40")
_BEARER = lazy_pattern(rb"bearer[ \t]{1,4}([a-z0-9_.+/~=-]{16,})")
_USER = lazy_pattern(rb" -u " + _QUOTE + rb"?[^\s:\"'\\]{1,60}:" + _VALUE)
_PAIR = rb"[\w.!%~-]{1,64}=[^\s;\"'\\,]{0,4096}"
_COOKIE = lazy_pattern(
    rb"cookie" + _QUOTE + rb"?[ \t]{0,4}[:=][ \t]{0,4}" + _QUOTE + rb"?(" + _PAIR + rb"(?:; ?" + _PAIR + rb"){0,60})"
)
_COOKIE_VALUE = lazy_pattern(rb"=([^\s;=]{16,4096})")

#: Values that say there is no secret here, or where to find it.
_PLACEHOLDERS = lazy_pattern(
    rb"\[?redacted|[{<\[]|%[a-z(]|\$(?:[{(]|[a-z0-9_:]+\\*$)|file:|https?:/|[~.]{0,2}(?:/[a-z_.-]{1,60}[0-9]{0,4}){1,20}/?$|([*x.#_-])\1*$|"
    rb"(?:your|my|some|the|an?|new|old|current|enter|insert|change|fake|dummy|example|sample|placeholder|todo|test|mock|"
    rb"invalid|wrong|none|null|nil|undefined|true|false|str|string|bool|int|number|bytes|optional|required)(?:[^a-z0-9][a-z._-]*|)$|"
    rb"[a-z0-9]{0,12}[_-]?(?:your|example)[_-]|change-?me|(?=[a-z_.-]*(?:passw|secret|token|key|auth|cred|user|field|input|label|value))[a-z_.-]+$"
)
#: Words and names, perhaps with a number at the end: `my-app-tls-v2`, `accessToken1`, `self.settings.token`.
_WORDY = lazy_pattern(rb"[a-z$]+(?:(?:[_./:-]|->|::)[a-z$]+)*[_.-]?v?[0-9]{0,4}[.?!:]*$")
_DOTTED_NAME = lazy_pattern(rb"[a-z_$][\w$]*(?:(?:\.|->|::)[a-z_$][\w$]*)+[.?!:]*$")
_DIGIT, _LETTER, _SIGN = lazy_pattern(rb"[0-9]"), lazy_pattern(rb"[a-z]"), lazy_pattern(rb"[!@#%^&*+?=~$]")
_HUMP = lazy_pattern(rb"[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])")


def word_spans(data: bytes, lower: bytes) -> list[Span]:
    """Return the secrets known by the words around them, in no order. `lower` is the data in lower case."""
    is_long = len(data) > _LONG
    found: list[Span] = []
    for kind, mark, rule, is_secret in _RULES:
        if (is_long and mark != b"%") or mark in lower:
            found += [(kind, *match.span(1)) for match in rule.finditer(lower) if is_secret(data, match)]
    for kind, mark, rule in _WORD_RULES:
        if is_long or mark in lower:
            for match in rule.finditer(lower):
                found += _assigned_spans(data, kind, match)
    return found


def _assigned_spans(data: bytes, kind: str, match: re.Match[bytes]) -> list[Span]:
    """Return the value that follows a telling name, if it is a secret."""
    if match[3]:
        return [(_secret_kind(kind, match), match.start(3), _value_end(match))] if _is_assigned(kind, match) else []
    if not match[5]:
        return []
    if match[0].startswith(b"authorization"):
        return [("authorization", *match.span(5))] if _is_credential(data, *match.span(5)) else []
    before = match.string[max(0, match.start() - _LOOKBACK) : match.start()]
    is_flag = _LONG_FLAG.search(before) and _is_argument(match[5])
    is_login = not is_flag and kind == "password" and b"login" in before and _LOGIN.search(before)
    return [(kind, *match.span(5))] if is_flag or (is_login and is_secret_value(kind, match[5], quoted=False)) else []


def _secret_kind(kind: str, match: re.Match[bytes]) -> str:
    """Return a more exact kind for secrets of a known service."""
    if kind == "secret" and len(match[3]) == 40 and _AWS.match(match[0]):
        return "aws_secret_key"
    is_account = (
        kind == "api_key" and match[3].endswith(b"==") and match.string.startswith(b"account", match.start() - 7)
    )
    return "azure_key" if is_account else kind


def _value_end(match: re.Match[bytes]) -> int:
    """Return the end of the value: its closing quote has as many backslashes as the opening one."""
    quote, value, behind = match[2] or b"", match[3], match[4] or b""
    missing = quote.count(b"\\") - behind.count(b"\\")
    return match.end(3) - max(0, min(missing, len(value) - len(value.rstrip(b"\\"))))


def _is_assigned(kind: str, match: re.Match[bytes]) -> bool:
    name_quote, quote, value, behind = match[1], match[2], match[3], match[4]
    if behind == b"(" or value.endswith(b"["):
        return False  # a call or a lookup
    if (name_quote and not quote) or (quote and not behind):
        return False  # a number or code after a quoted name; several words in quotes
    if len(value) < _SHORTEST_PRIVATE and b"private" in match.string[max(0, match.start() - 8) : match.start()]:
        return False  # the type of a field
    return is_secret_value(kind, value, quote is not None)


def is_secret_value(kind: str, value: bytes, quoted: bool) -> bool:
    """Whether a value, in lower case, is a secret."""
    if len(value) < _SHORTEST[kind] or _PLACEHOLDERS.match(value):
        return False
    has_digit, in_code = _DIGIT.search(value), _DOTTED_NAME.match(value)
    if kind == "password":
        return quoted or bool((has_digit or _SIGN.search(value)) and not in_code)
    return bool(has_digit and _LETTER.search(value) and not in_code and not _WORDY.match(value))


def _is_argument(value: bytes) -> bool:
    """Whether it is more than `--token X` of a help text, the numbers of `-u 1000:1000` or a path with a drive."""
    if value[:1] in b"/\\" or not _LETTER.search(value):
        return False
    return is_secret_value("password", value, quoted=False)


def _is_credential(data: bytes, start: int, end: int) -> bool:
    """Whether the text after `Authorization:` is more than a word of a sentence or a name in code."""
    value = data[start:end]
    lower = value.lower()
    if _PLACEHOLDERS.match(lower):
        return False
    if _DIGIT.search(lower):
        return not _WORDY.match(lower)
    return value.endswith(b"=") or len(_HUMP.findall(value)) >= 3


def _is_password(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether the text between a user and a host is a password. Without a host it may be a port."""
    if _PLACEHOLDERS.match(match[1]):
        return False
    return match[0].endswith(b"@") or bool(_DIGIT.search(match[1]) and _LETTER.search(match[1]))


def _is_session(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether the value of one of the cookies is not a word."""
    return any(map(_is_opaque, _COOKIE_VALUE.findall(match[1])))


def _is_opaque(value: bytes) -> bool:
    if _PLACEHOLDERS.match(value) or _WORDY.match(value):
        return False
    return bool(_DIGIT.search(value) and _LETTER.search(value))


_Check = Callable[[bytes, re.Match[bytes]], bool]
#: Kind, the mark, the pattern with the secret as its first group, and the check of a match.
_RULES: tuple[tuple[str, bytes, re.Pattern[bytes], _Check], ...] = (
    ("url_password", b"://", _URL, _is_password),
    ("url_password", b"%", _ENCODED_URL, _is_password),
    ("authorization", b"bearer", _BEARER, lambda data, match: _is_credential(data, *match.span(1))),
    ("password", b" -u ", _USER, lambda data, match: _is_argument(match[1])),
    ("cookie", b"cookie", _COOKIE, _is_session),
)
