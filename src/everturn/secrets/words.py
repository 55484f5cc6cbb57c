"""Recognise secrets by the names around them: passwords in addresses, headers and cookies, and `name = value`.

A password has no shape, so the name decides, and the value is judged: placeholders, types, code and paths are not secrets.
Names are searched for in lower-cased data. Quotes may be escaped several times (JSON within JSON) or written as entities,
and the signs between a name and its value percent-encoded.

Every search has a condition: a pattern in RE2's syntax that each of its matches contains. `phrases.word_spans` looks for all
conditions in one pass and runs the searches whose condition is met.

Quantifiers are bounded unless they end their pattern, so hostile text costs linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from everturn.secrets.families import Span
from everturn.text.lazy_pattern import lazy_pattern

#: A condition, and the search in data and in the data in lower case.
WordSearch = tuple[bytes, Callable[[bytes, bytes], list[Span]]]

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
#: What is between a name and its value, for the conditions.
_THEN = rb"(?:[_-]?(?:access[_-]?key|key|value|base64))?" + _QUOTE + rb"?[ \t]{0,8}(?:[:=]|%3[ad])"
#: Kind, condition and pattern. Groups: quote after the name, quote before the value, the value, the character after it, and the
#: value of a flag, of `login ME password VALUE`, or of a header.
_WORDS = (
    ("password", rb"pass(?:w(?:or)?d|phrase|)(?:" + _THEN + rb"| )", rb"pass(?:(?:w(?:or)?d|phrase|(?=\\{0,7}[\"'][ \t]{0,4}:))" + _ASSIGNED + rb"|(?:word|phrase)" + _FLAGGED + rb")"),
    ("password", rb"pwd[\\\"'=]", rb"pwd(?:(?<=_pwd)|(?<=[;&?]pwd)|(?<=; pwd)|(?<=[\"']pwd))(?=\\{0,7}[\"'=])" + _ASSIGNED + rb"()"),
    ("secret", rb"secret(?:[_ -]?access[_ -]?key)?(?:" + _THEN + rb"|[ \[])", rb"secret(?:(?:[_ -]?access[_ -]?key(?: ?\[[^\]\n]{0,40}\])?)?" + _ASSIGNED + rb"|(?<=-secret)" + _FLAGGED + rb")"),
    ("api_key", rb"(?:api|access|private|account)[_-]?key(?:" + _THEN + rb"| )", rb"key(?:(?<=(?:api|ess|ate)[_-]key)|(?<=(?:api|ess|ate|unt)key))(?:(?<=api.key)|(?<=apikey)|(?<=access.key)"
     rb"|(?<=accesskey)|(?<=private.key)|(?<=privatekey)|(?<=accountkey))(?:" + _ASSIGNED + rb"|" + _FLAGGED + rb")"),
    ("token", rb"token" + _THEN + rb"|-token ", rb"token(?:" + _ASSIGNED + rb"|(?<=-token)" + _FLAGGED + rb")"),
    ("token", rb"auth(?:[\\\"'=]|orization)", rb"auth(?:(?=[\\\"'=])" + _ASSIGNED + rb"|orization" + _CREDENTIAL + rb")"),
)  # fmt: skip
_LOOKBACK = 130  # bytes searched before a word
_LONG_FLAG = lazy_pattern(rb" --[a-z-]{0,30}\Z")
_LOGIN = lazy_pattern(rb"login[ \t]{1,8}[^\s\\]{1,80}(?:\s|\\[nrt]){1,8}\Z")
_AWS = lazy_pattern(rb"secret[_ -]?access[_ -]?key")
_SHORTEST = {"password": 6, "secret": 8, "api_key": 8, "token": 12}
_SHORTEST_PRIVATE = 32

#: The password of scheme://user:password@host, which may contain `@`, `#` and `?`, or be cut off with the text.
_URL = lazy_pattern(
    rb"""://[^\s/?#:@"'`<>\\\[\]{}()$]{0,120}:([^\s/"'`<>\\@]{1,200}(?:@[^\s/?\#"'`<>\\@]{1,60}(?=@))?)"""
    rb"(?:@(?=[\w\[-])|(?=(?:\xe2\x80\xa6|\.\.\.)?\Z))"
)
#: Behind a host: a port, and a query or the name of a section.
_AFTER_PORT = lazy_pattern(rb"[0-9]{1,5}[?#]|[^?#]*[?#][\w.%\[\]-]*=")
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
    if _PLACEHOLDERS.match(match[1]) or _AFTER_PORT.match(match[1]):
        return False
    if b"?" in match[1] or b"#" in match[1]:
        return match[0].endswith(b"@")
    return match[0].endswith(b"@") or bool(_DIGIT.search(match[1]) and _LETTER.search(match[1]))


def _is_session(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether the value of one of the cookies is not a word."""
    return any(map(_is_opaque, _COOKIE_VALUE.findall(match[1])))


def _is_opaque(value: bytes) -> bool:
    if _PLACEHOLDERS.match(value) or _WORDY.match(value):
        return False
    return bool(_DIGIT.search(value) and _LETTER.search(value))


_Check = Callable[[bytes, re.Match[bytes]], bool]
#: Kind, condition, the pattern with the secret as its first group, and the check of a match.
_RULES: tuple[tuple[str, bytes, re.Pattern[bytes], _Check], ...] = (
    ("url_password", b"://", _URL, _is_password),
    ("url_password", b"%3a%2f%2f", _ENCODED_URL, _is_password),
    ("authorization", rb"bearer[ \t]", _BEARER, lambda data, match: _is_credential(data, *match.span(1))),
    ("password", b" -u ", _USER, lambda data, match: _is_argument(match[1])),
    ("cookie", b"cookie", _COOKIE, _is_session),
)


def _checked_spans(rule: tuple[str, re.Pattern[bytes], _Check], data: bytes, lower: bytes) -> list[Span]:
    kind, pattern, is_secret = rule
    return [(kind, *match.span(1)) for match in pattern.finditer(lower) if is_secret(data, match)]


def _named_values(rule: tuple[str, re.Pattern[bytes]], data: bytes, lower: bytes) -> list[Span]:
    kind, pattern = rule
    return [span for match in pattern.finditer(lower) for span in _assigned_spans(data, kind, match)]


#: The searches for secrets known by the words around them.
WORD_SEARCHES: list[WordSearch] = [
    *((condition, partial(_checked_spans, (kind, rule, check))) for kind, condition, rule, check in _RULES),
    *((condition, partial(_named_values, (kind, lazy_pattern(rule)))) for kind, condition, rule in _WORDS),
]
