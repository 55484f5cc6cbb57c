"""Recognise secrets by the command, sentence or file they stand in: `sshpass -p …`, "my password is …", `.pgpass`, seed phrases.

A rule is a word that every match contains, and a pattern for lower-cased data. The first group is the secret. A value is
judged like the values of `words`: placeholders, types, code and paths are not secrets. `word_spans` looks for the words of all
rules in one pass, and runs only the rules whose word occurs.

The last rule is for values that look random beside a name that tells of a secret (`SESSION_SALT=…`): they have letters of
both cases and digits, and more entropy than words or hashes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import partial

from everturn.secrets.families import Span
from everturn.secrets.words import WORD_SEARCHES, WordSearch, is_secret_value
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.pattern_set import PatternSet

_Q = rb"""(?:\\{0,7}["'`])?"""
#: The value of an option: no blanks, quotes or escapes.
_ARG = rb"""([^\s"'`\\|;&<>]{3,200})"""
_GAP = rb"""[^\r\n|;&\\]{0,200}?"""  # further words of the same command
_LINE = rb"(?:^|(?<=[\n\"'`])|(?<=\\n))"

_Check = Callable[[bytes, re.Match[bytes]], bool]


def _is_argument(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether an argument is a password and not a variable, a placeholder or the next option."""
    value = match[1]
    return value[:1] not in (b"-", b"$", b"<", b"{", b"%", b"/", b"~") and (
        is_secret_value("password", value + b"1", quoted=True) and not _PLACEHOLDER.match(value)
    )


def _is_said(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether the word after "password is" is one: a number or a sign is in it, or it is in quotes."""
    is_quoted = data[match.start(1) - 1 : match.start(1)] in (b'"', b"'", b"`") and data[
        match.end(1) : match.end(1) + 1
    ] in (b'"', b"'", b"`", b"\\")
    value = match[1].rstrip(b".,!?:)")
    return len(value) >= 4 and not _PLACEHOLDER.match(value) and is_secret_value("password", value, is_quoted)


def _is_random(data: bytes, match: re.Match[bytes]) -> bool:
    value = data[match.start(1) : match.end(1)]
    has_all = any(map(_is_lower, value)) and any(map(_is_upper, value)) and any(48 <= byte <= 57 for byte in value)
    return has_all and _entropy(value) >= _LEAST_ENTROPY and not _is_name(value)


def _is_name(value: bytes) -> bool:
    """Whether a value is a name in code, such as `getUserProfileById2`: its words are longer than those of chance."""
    return bool(_NAME.fullmatch(value)) and len(value) >= _WORD_LENGTH * len(_WORDS.findall(value))


def _always(data: bytes, match: re.Match[bytes]) -> bool:
    return True


def _is_lower(byte: int) -> bool:
    return 97 <= byte <= 122


def _is_upper(byte: int) -> bool:
    return 65 <= byte <= 90


def _entropy(value: bytes) -> float:
    """Return the bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


_LEAST_ENTROPY = 3.9
#: Names in code have their digits in one place.
_NAME = lazy_pattern(rb"[A-Za-z_.-]{8,}[0-9]{0,4}[A-Za-z_.-]{0,40}")
_WORDS = lazy_pattern(rb"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_WORD_LENGTH = 3.2
_PLACEHOLDER = lazy_pattern(
    rb"(?:pass(?:word|wd|phrase)?|secret|token|your|my|the|xxx+|\*{3,}|\.{3}|\[?redacted|changeme|example|prompt|none|null|true|false"
    rb"|required|invalid|wrong|correct|incorrect|empty|missing|set|not|too|stored|hashed|reset|expired|stdin|file|env)\b"
)

#: Kind, the word to search for, the pattern, the check.
_RULES: tuple[tuple[str, bytes, re.Pattern[bytes], _Check], ...] = tuple(
    (kind, word, lazy_pattern(pattern), check)
    for kind, word, pattern, check in (
        ("password", b"mysql", rb"mysql(?:dump|admin|import|show|sh|pump)?\b" + _GAP + rb" -p" + _Q + _ARG, _is_argument),
        ("password", b"mariadb", rb"mariadb(?:-dump|-admin)?\b" + _GAP + rb" -p" + _Q + _ARG, _is_argument),
        ("password", b"sshpass", rb"sshpass\s{1,4}-p\s{0,4}" + _Q + _ARG, _is_argument),
        ("password", b"login", rb"login\b" + _GAP + rb" (?:-p|-w|/p:|-password|--pass)[ =]{1,2}" + _Q + _ARG, _is_argument),
        ("password", b"redis-cli", rb"redis-cli\b" + _GAP + rb" -a " + _Q + _ARG, _is_argument),
        ("password", b"mongo", rb"mongo(?:sh|dump|restore|export|import)?\b" + _GAP + rb" -p " + _Q + _ARG, _is_argument),
        ("password", b"smbclient", rb"smbclient\b" + _GAP + rb" -u " + _Q + rb"[^\s%]{1,60}%" + _ARG, _is_argument),
        ("password", b"ldap", rb"ldap(?:search|add|modify|delete|passwd|whoami)\b" + _GAP + rb" -w " + _Q + _ARG, _is_argument),
        ("password", b"-pass", rb"-pass(?:in|out)? " + _Q + rb"pass:" + _ARG, _is_argument),
        ("password", b"zip", rb"zip\b" + _GAP + rb" -p " + _Q + _ARG, _is_argument),
        ("password", b"7z", rb"7z[a-z]{0,2} [a-z]\b" + _GAP + rb" -p" + _Q + _ARG, _is_argument),
        ("password", b"htpasswd", rb"htpasswd -[a-z]{0,6}b[a-z]{0,6} \S{1,200} \S{1,80} " + _Q + _ARG, _is_argument),
        ("password", b"sqlcmd", rb"sqlcmd\b" + _GAP + rb" -p ?" + _Q + _ARG, _is_argument),
        ("password", b"xfreerdp", rb"xfreerdp\b" + _GAP + rb" /p:" + _Q + _ARG, _is_argument),
        ("password", b"net use", rb"net use\b" + _GAP + rb" /user:\S{1,80} " + _Q + _ARG, _is_argument),
        ("password", b"identified by", rb"identified (?:with \w{1,40} )?by " + _Q + _ARG, _is_argument),
        ("password", b"passw", rb"passw(?:ord|ort|d)?(?: (?:for|of|to|on) [^\r\n\"'`]{1,60}?)?,? (?:is|was|ist|lautet|equals|set to|changed to|now):? " + _Q + _ARG, _is_said),
        ("password", b"passphrase", rb"passphrase(?: (?:for|of|to) [^\r\n\"'`]{1,60}?)? (?:is|was|ist):? " + _Q + _ARG, _is_said),
        ("password", b"passcode", rb"passcode(?: (?:for|of|to) [^\r\n\"'`]{1,60}?)? (?:is|was|ist):? " + _Q + _ARG, _is_said),
        ("password", b"contrase", rb"contrase(?:\xc3\xb1|n)a (?:es|era):? " + _Q + _ARG, _is_said),
        ("password", b"mot de passe", rb"mot de passe (?:est|:) ?" + _Q + _ARG, _is_said),
        ("pgpass", b":5432:", rb":5432:[\w*-]{1,60}:[\w.@-]{1,60}:([^\s:\"'`\\]{4,80})", _is_argument),
        ("pgpass", b":*:", rb":\*:[\w*-]{1,60}:[\w.@-]{1,60}:([^\s:\"'`\\]{4,80})", _is_argument),
        ("putty_key", b"private-lines:", rb"private-lines:[ \t]{0,4}[0-9]{1,4}((?:(?:\s|\\[nr]){1,4}(?!private-)[a-z0-9+/]{4,76}={0,2}){1,200})", _always),
        ("seed_phrase", b"phrase", rb"(?:seed|recovery|mnemonic|backup|secret)?[ _-]?phrase(?: \([^)\n]{1,40}\))?" + _Q + rb"\s{0,2}(?:is|are|:|=|-|=>)\s{0,4}" + _Q + rb"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b", _always),
        ("seed_phrase", b"mnemonic", rb"mnemonic" + _Q + rb"\s{0,2}(?:is|:|=|=>)\s{0,4}" + _Q + rb"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b", _always),
        ("seed_phrase", b"seed", rb"seed(?: words?)?" + _Q + rb"\s{0,2}(?:is|are|:|=|=>)\s{0,4}" + _Q + rb"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b", _always),
        ("password_hash", b"$2", rb"(\$2[abxy]\$[0-9]{2}\$[./a-z0-9]{53})(?![./a-z0-9])", _always),
        ("password_hash", b"$6$", rb"(\$6\$(?:rounds=[0-9]{1,9}\$)?[./a-z0-9]{1,16}\$[./a-z0-9]{86})", _always),
        ("password_hash", b"$5$", rb"(\$5\$(?:rounds=[0-9]{1,9}\$)?[./a-z0-9]{1,16}\$[./a-z0-9]{43})", _always),
        ("password_hash", b"$y$", rb"(\$y\$[./a-z0-9]{1,8}\$[./a-z0-9]{1,86}\$[./a-z0-9]{43})", _always),
        ("password_hash", b"$1$", rb"(\$1\$[./a-z0-9]{1,8}\$[./a-z0-9]{22})(?![./a-z0-9])", _always),
        ("password_hash", b"$apr1$", rb"(\$apr1\$[./a-z0-9]{1,8}\$[./a-z0-9]{22})(?![./a-z0-9])", _always),
        ("password_hash", b"$argon2", rb"(\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{5,60}\$[a-z0-9+/]{8,100}\$[a-z0-9+/]{16,200})", _always),
        ("password_hash", b"$scrypt$", rb"(\$scrypt\$[a-z0-9=,]{5,60}\$[a-z0-9+/]{8,100}\$[a-z0-9+/]{16,200})", _always),
        ("password_hash", b"pbkdf2_sha256$", rb"(pbkdf2_sha256\$[0-9]{3,9}\$[a-z0-9]{8,40}\$[a-z0-9+/]{43}=)", _always),
        ("wifi_key", b"psk", rb"psk" + _Q + rb"[ \t]{0,4}[=:][ \t]{0,4}" + _Q + rb"([^\s\"'`\\]{8,63})", _is_argument),
        ("wireguard_key", b"presharedkey", rb"presharedkey[ \t]{0,4}=[ \t]{0,4}([a-z0-9+/]{43}=)", _always),
        ("okta_token", b"ssws", rb"ssws[ \t]{1,4}([a-z0-9_-]{38,50})(?![a-z0-9_-])", _always),
        ("bitcoin_key", b"wif", rb"wif(?: key)?" + _Q + rb"[ \t]{0,4}[=:][ \t]{0,4}" + _Q + rb"([5kl][1-9a-z]{50,51})(?![a-z0-9])", _always),
        ("ethereum_key", b"priv", rb"priv(?:ate)?[ _-]?key" + _Q + rb"(?: is)?[ \t]{0,4}[=:]?[ \t]{0,4}" + _Q + rb"((?:0x)?[a-f0-9]{64})(?![a-f0-9])", _always),
        ("otp_secret", b"otp", rb"(?:totp|otp|2fa|mfa)[ _-]?(?:secret|key|seed|code secret)" + _Q + rb"(?: is)?[ \t]{0,4}[=:]?[ \t]{0,4}" + _Q + rb"([a-z2-7]{16,64})(?![a-z0-9])", _always),
    )
)  # fmt: skip
#: A random value beside a name that tells of a secret.
_VALUE = _Q + rb"[ \t]{0,4}(?::=|=>|:|=)[ \t]{0,4}" + _Q + rb"([a-z0-9+/_.~-]{20,200}={0,2})(?![a-z0-9+/_.~(-])"
#: The word, and what must be before it.
_RANDOM_RULES = tuple(
    (word, lazy_pattern(word + ending + _VALUE), before)
    for word, ending, before in (
        (b"salt", b"", None), (b"secret", b"", None), (b"token", b"", None), (b"credential", b"s?", None), (b"pepper", b"", None),
        (b"key", b"", lazy_pattern(rb"(?:signing|encryption|master|app|client|license|auth|shared|webhook|jwt|secret|deploy)[_-]?\Z")),
    )
)  # fmt: skip
_LONGEST_NAME = 12


def _said_spans(rule: tuple[str, re.Pattern[bytes], _Check], data: bytes, lower: bytes) -> list[Span]:
    kind, pattern, is_secret = rule
    return [(kind, *_trimmed(match)) for match in pattern.finditer(lower) if is_secret(data, match)]


def _random_spans(rule: tuple[re.Pattern[bytes], re.Pattern[bytes] | None], data: bytes, lower: bytes) -> list[Span]:
    pattern, before = rule
    return [
        ("opaque_value", *match.span(1))
        for match in pattern.finditer(lower)
        if (before is None or before.search(lower, max(0, match.start() - _LONGEST_NAME), match.start()))
        and _is_random(data, match)
    ]


#: What follows words that are frequent, or short enough to occur by chance in long runs.
_THEN = {
    b"login": rb"[^a-z0-9_]",
    b"zip": rb"[^a-z0-9_]",
    b"7z": rb"[a-z]{0,2} [a-z]",
    b"passw": rb"[a-z]{0,3}[, ]",
    b"phrase": rb"(?: \(|[\\\"'`]|[\s\v]{0,2}(?:is|are|[:=-]))",
    b"seed": rb"(?: words?)?[\\\"'`]*[\s\v]{0,2}(?:is|are|[:=])",
    b"psk": rb"[\\\"'`]*[ \t]{0,4}[=:]",
    b"wif": rb"(?: key)?[\\\"'`]*[ \t]{0,4}[=:]",
    b"priv": rb"(?:ate)?[ _-]?key",
    b"otp": rb"[ _-]?(?:secret|key|seed|code)|(?:2fa|mfa)[ _-]?(?:secret|key|seed|code)",
}
_SEARCHES: list[WordSearch] = [
    *WORD_SEARCHES,
    *(
        (re.escape(word) + _THEN.get(word, b""), partial(_said_spans, (kind, rule, check)))
        for kind, word, rule, check in _RULES
    ),
    *(
        (word + rb"s?(?:\\{0,7}[\"'`])?[ \t]{0,4}[:=]", partial(_random_spans, (rule, before)))
        for word, rule, before in _RANDOM_RULES
    ),
]
_SET = PatternSet((condition for condition, _ in _SEARCHES), ignore_case=True)


def word_spans(data: bytes) -> list[Span]:
    """Return the secrets known by the words around them, in no order."""
    if not (numbers := _SET.search(data)):
        return []
    lower = data.lower()
    return [span for number in numbers for span in _SEARCHES[number][1](data, lower)]


def _trimmed(match: re.Match[bytes]) -> tuple[int, int]:
    """Return the range of a secret without the punctuation of the sentence around it."""
    start, end = match.span(1)
    return start, start + len(match[1].rstrip(b".,!?)")) if match[1].rstrip(b".,!?)") else end
