"""What secrets look like: the rules behind `derive.redact`.

Every rule is a pattern that begins with literal text, which the `re` module searches for at memory speed; a condition on
what stands before comes after that text, as a look-behind that reaches over it, because a look-behind in front would
turn the fast search off. Quantifiers are bounded unless they end their pattern, so that hostile text costs linear time.

A token family needs no more than its shape. Passwords have none, so `name = value` is looked at for what is assigned:
placeholders, types, code and paths are not secrets.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

Span = tuple[str, int, int]

#: How a stand-in begins; nothing that does is taken for a secret again.
PLACEHOLDER = b"[REDACTED:"
_STAND_IN = re.compile(rb"\[REDACTED:[a-z_]{1,40}(?::[0-9a-f]{8})?\]")


def _alone(prefix: bytes) -> bytes:
    """A condition behind a prefix: no word goes on into it. In a raw line or in colours a letter may stand before it."""
    return rb"(?:(?<![A-Za-z0-9_-]%b)|(?<=\\[nrt]%b)|(?<=[0-9;\[][mK]%b))" % (prefix, prefix, prefix)


#: Families that begin alike share a pattern: one search instead of three. The name of a group is the kind.
_TOKENS = (
    rb"A(?:(?P<aws_access_key>(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9]))|(?P<google_key>Iza[A-Za-z0-9_-]{35})"
    rb"|(?P<age_key>GE-SECRET-KEY-1[A-Z0-9]{50,}))",
    rb"gh(?P<github_token>[pousr]_[A-Za-z0-9]{36,})",
    rb"github_pat_(?P<github_token>[A-Za-z0-9]{22}_[A-Za-z0-9]{40,})",
    rb"gl(?P<gitlab_token>(?:pat|dt|rt|ptt|oas|cbt|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-])",
    rb"sk(?:-(?P<anthropic_key>ant-[A-Za-z0-9_-]{20,})|-(?P<openai_key>(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}"
    rb"|" + _alone(rb"sk-") + rb"(?:or-v1-)?(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{32,}(?![A-Za-z0-9_-]))"
    rb"|_(?P<stripe_key>(?:live|test|prod)_[A-Za-z0-9]{16,}))",
    rb"rk_(?P<stripe_key>(?:live|test|prod)_[A-Za-z0-9]{16,})",
    rb"whsec_(?P<stripe_key>[A-Za-z0-9+/]{24,}={0,2})",
    rb"x(?P<slack_token>ox[a-z]-[A-Za-z0-9-]{10,}|app-[0-9]-[A-Z0-9]{5,20}-[0-9]{5,20}-[a-z0-9]{20,})",
    rb"hooks\.slack\.com/(?P<slack_webhook>(?:services|workflows|triggers)/[A-Za-z0-9_/]{20,})",
    rb"ya29\.(?P<google_token>[A-Za-z0-9_-]{30,})",
    rb"GOCSPX-(?P<google_token>[A-Za-z0-9_-]{24,})",
    rb"npm_(?P<npm_token>[A-Za-z0-9]{36,})",
    rb"pypi-AgE(?P<pypi_token>[A-Za-z0-9_-]{50,})",
    rb"hf_(?P<huggingface_token>[A-Za-z0-9]{34,}(?!_))",
    rb"SG\.(?P<sendgrid_key>[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,})",
    rb"do(?P<digitalocean_token>[opr]_v1_[a-f0-9]{64})",
    rb"gsk_(?P<groq_key>[A-Za-z0-9]{40,})",
    rb"dckr_(?P<docker_token>[po]at_[A-Za-z0-9_-]{24,})",
    rb"hv(?P<vault_token>[sb]\.[A-Za-z0-9_-]{24,})",
    # Alone, or a long run of `eyJ` would be looked at again from each of them.
    rb"eyJ(?P<jwt>" + _alone(rb"eyJ") + rb"[A-Za-z0-9_-]{10,8000}\.eyJ[A-Za-z0-9_-]{4,32000}\.[A-Za-z0-9_-]{10,})",
)  # fmt: skip
_TOKEN_RULES = [re.compile(pattern) for pattern in _TOKENS]

#: The password of scheme://user:password@host, which may hold an `@` of its own.
_URL = re.compile(
    rb"""://[^\s/?#:@"'`<>\\\[\]{}()$]{0,120}:([^\s/?\#"'`<>\\@]{1,200}(?:@[^\s/?\#"'`<>\\@]{1,60}(?=@))?)@(?=[\w\[-])"""
)

# From here on: searched in the lower-cased data.
_QUOTE = rb"""(?:\\{0,7}["'`])"""
_AUTHORIZATION = re.compile(
    rb"authorization" + _QUOTE + rb"?[ \t]{0,4}[:=,][ \t]{0,4}" + _QUOTE + rb"?"
    rb"(?:(?:bearer|basic|token|apikey|negotiate)[ \t]{1,4})?([a-z0-9_.+/~=:-]{8,})"
)  # fmt: skip
_BEARER = re.compile(rb"bearer[ \t]{1,4}([a-z0-9_.+/~=-]{16,})")

#: A backslash is part of a value only where it cannot begin an escape of a raw line.
_VALUE = rb"""((?:[^\s"'`\\,;<>(){}|]|\\\\|\\[^\snrtbfu"'`/]){4,4000})"""
_ASSIGNED = (
    rb"(?:[_-]?(?:access[_-]?key|key|value|base64))?(" + _QUOTE + rb")?[ \t]{0,8}(?::=|=>|:|=)[ \t]{0,4}"
    rb"((?:[bru]{1,2}(?=[\"']))?" + _QUOTE + rb")?" + _VALUE + rb"(" + _QUOTE + rb"|[(])?"
)  # fmt: skip
_WORDS = (
    ("password", rb"passw(?:or)?d"),
    ("password", rb"passphrase"),
    ("secret", rb"secret"),
    ("api_key", rb"api[_-]?key"),
    ("api_key", rb"access[_-]?key"),
    ("token", rb"token"),
    ("token", rb"auth(?=[\\\"'=])"),
)
_WORD_RULES = [(kind, re.compile(word + _ASSIGNED)) for kind, word in _WORDS]
_FLAG = re.compile(
    rb" -(?:-[a-z-]{0,30}(?:password|passphrase|secret|token|api-?key) " + _QUOTE + rb"?|u "
    + _QUOTE + rb"?[^\s:\"'\\]{1,60}:)" + _VALUE
)  # fmt: skip
_SHORTEST = {"password": 6, "secret": 8, "api_key": 8, "token": 12}

#: Values that say that there is none, or where it is to be found.
_PLACEHOLDERS = re.compile(
    rb"\[?redacted|[{<\[]|%[a-z(]|\$(?:[{(]|[a-z0-9_:]+$)|file:|https?:/|[~.]{0,2}(?:/[a-z_.-]{1,60}[0-9]{0,4}){1,20}/?$|([*x.#_-])\1*$|"
    rb"(?:your|my|some|the|an?|new|old|current|enter|insert|change|fake|dummy|example|sample|placeholder|todo|test|mock|"
    rb"invalid|wrong|none|null|nil|undefined|true|false|str|string|bool|int|number|bytes|optional|required)(?:[^a-z0-9][a-z._-]*|)$|"
    rb"change-?me|(?=[a-z_.-]*(?:passw|secret|token|key|auth|cred|user|field|input|label|value))[a-z_.-]+$"
)
#: Words and names, with a number behind them at most: `my-app-tls-v2`, `accessToken1`, `self.settings.token`.
_WORDY = re.compile(rb"[a-z$]+(?:(?:[_./:-]|->|::)[a-z$]+)*[_.-]?v?[0-9]{0,4}[.?!:]*$")
_DOTTED_NAME = re.compile(rb"[a-z_$][\w$]*(?:(?:\.|->|::)[a-z_$][\w$]*)+[.?!:]*$")
_DIGIT, _LETTER, _SIGN = re.compile(rb"[0-9]"), re.compile(rb"[a-z]"), re.compile(rb"[!@#%^&*+?=~$]")
_HUMP = re.compile(rb"[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])")

_PEM_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LONGEST = 20_000
_PEM_BODY = re.compile(rb"(?:[A-Za-z0-9+/=\s]|\\{1,8}[nr]){0,20000}")
_PEM_LINE = re.compile(rb"[A-Za-z0-9+/]{40}")
_ESCAPE_OR_QUOTE = re.compile(rb'\\.|"')


def find_spans(data: bytes, raw: bool = False) -> list[Span]:
    """The secrets in UTF-8 text, in order, joined where they overlap. `raw` is JSON: a secret ends with its string."""
    found = [(match.lastgroup or "", *match.span()) for rule in _TOKEN_RULES for match in rule.finditer(data)]
    if b"-----BEGIN " in data:
        found += _private_keys(data, raw)
    lower = data.lower()
    found += [("url_password", *match.span(1)) for match in _URL.finditer(lower) if not _PLACEHOLDERS.match(match[1])]
    for rule in (_AUTHORIZATION, _BEARER):
        found += [
            ("authorization", *m.span(1)) for m in rule.finditer(lower) if _is_credential(data[m.start(1) : m.end(1)])
        ]
    for kind, rule in _WORD_RULES:
        found += [(kind, *match.span(3)) for match in rule.finditer(lower) if _is_assigned(kind, match)]
    found += [("password", *match.span(1)) for match in _FLAG.finditer(lower) if _is_argument(match[1])]
    if found and PLACEHOLDER in data:
        found = _not_within(found, [match.span() for match in _STAND_IN.finditer(data)])
    return _joined(found) if found else found


def _not_within(found: list[Span], stand_ins: list[tuple[int, int]]) -> list[Span]:
    """A stand-in names its kind, which is a telling name itself."""
    starts = [start for start, _ in stand_ins]
    kept = []
    for span in found:
        before = bisect_left(starts, span[2]) - 1
        if before < 0 or stand_ins[before][1] <= span[1]:
            kept.append(span)
    return kept


def _joined(found: list[Span]) -> list[Span]:
    """In order; overlapping ones become one, named by the first rule that saw its beginning."""
    spans: list[Span] = []
    for kind, start, end in sorted(found, key=lambda span: span[1]):
        if spans and start < spans[-1][2]:
            name, begin, old_end = spans[-1]
            spans[-1] = (name, begin, max(end, old_end))
        else:
            spans.append((kind, start, end))
    return spans


def _private_keys(data: bytes, raw: bool) -> Iterator[Span]:
    """Keys with their frame; also one that was cut off. Each pattern runs once over the data, however many frames."""
    first = data.find(b"-----BEGIN ")
    ends = [match.end() for match in _PEM_END.finditer(data, first)]
    quotes = [match.start() for match in _ESCAPE_OR_QUOTE.finditer(data, first) if match[0] == b'"'] if raw else []
    done = 0
    for begin in _PEM_BEGIN.finditer(data, first):
        if begin.start() < done:
            continue
        start = begin.end()
        limit = min(start + _PEM_LONGEST, _after(quotes, start, len(data)))
        done = _after(ends, start, limit + 1)
        if done > limit:
            body = _PEM_BODY.match(data, start, limit)
            done = body.end() if body else start
        if _PEM_LINE.search(data, start, done):
            yield "private_key", begin.start(), done


def _after(positions: list[int], at: int, otherwise: int) -> int:
    index = bisect_left(positions, at)
    return positions[index] if index < len(positions) else otherwise


def _is_assigned(kind: str, match: re.Match[bytes]) -> bool:
    name_quote, quote, value, behind = match[1], match[2], match[3], match[4]
    if behind == b"(" or value.endswith(b"["):
        return False  # a call or a lookup
    if (name_quote and not quote) or (quote and not behind):
        return False  # a number or code behind a quoted name; several words in quotes
    return _is_secret(kind, value, quote is not None)


def _is_secret(kind: str, value: bytes, quoted: bool) -> bool:
    """Whether a value, in lower case, is worth hiding."""
    if len(value) < _SHORTEST[kind] or _PLACEHOLDERS.match(value):
        return False
    has_digit, in_code = _DIGIT.search(value), _DOTTED_NAME.match(value)
    if kind == "password":
        return quoted or bool((has_digit or _SIGN.search(value)) and not in_code)
    return bool(has_digit and _LETTER.search(value) and not in_code and not _WORDY.match(value))


def _is_argument(value: bytes) -> bool:
    """Not `--token X` of a help text, the numbers of `-u 1000:1000` or a path with a drive."""
    if value[:1] in b"/\\" or not _LETTER.search(value):
        return False
    return _is_secret("password", value, quoted=False)


def _is_credential(value: bytes) -> bool:
    """Whether what follows `Authorization:` is more than a word of a sentence or a name in code."""
    if _PLACEHOLDERS.match(value.lower()):
        return False
    if _DIGIT.search(value):
        return not _WORDY.match(value.lower())
    return value.endswith(b"=") or len(_HUMP.findall(value)) >= 3
