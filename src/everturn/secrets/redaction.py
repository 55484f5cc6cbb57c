"""Find secrets in text and mask them.

`find_secrets` returns their positions. `redact_text` and `redact_bytes` replace each by `[REDACTED:kind]`, or with a key by
`[REDACTED:kind:hmac8]`, so that equal secrets can be recognised without being shown. A `Cleaner` holds the key of one
archive; surfaces pass it to everything that emits text. `redact_bytes` works on raw JSON lines, and valid JSON stays
valid. Redaction is idempotent, and linear in the text.

Everything runs on UTF-8: one scan serves text and raw lines, lower-casing keeps positions, and searches run at memory
speed. Colours and invisible characters are ignored: a token with a highlighted prefix is still a token, and would be whole
again on a screen. A placeholder is never taken for a secret.

Some secrets are recognised by the command, sentence or file that they are in: `sshpass -p …`, "my password is …", `.pgpass`, seed phrases.

A rule is a word that every match contains, and a pattern for lower-cased data. The first group is the secret. A value is
judged like the values of `words`: placeholders, types, code and paths are not secrets. `word_spans` looks for the words of all
rules in one pass, and runs only the rules whose word occurs.

The last rule is for values that look random beside a name that tells of a secret (`SESSION_SALT=…`): they have letters of
both cases and digits, and more entropy than words or hashes.
"""

from __future__ import annotations

import hmac
import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby

import msgspec
from msgspec import Struct

from everturn.secrets.families import Span
from everturn.secrets.rules import OWN_KIND, CutBytes, PatternSet, own_spans, token_spans
from everturn.secrets.words import WORD_SEARCHES, WordSearch, is_secret_value
from everturn.text.lazy_pattern import lazy_pattern

#: The beginning of a placeholder.
PLACEHOLDER = b"[REDACTED:"
_PLACEHOLDER_PATTERN = lazy_pattern(rb"\[REDACTED:[a-z0-9_]{1,40}(?::[0-9a-f]{8})?\]")

#: What `text.printable` removes: colours, raw or as JSON writes them, and invisible characters. One pattern for each
#: first byte, because only literal text is found fast.
_COLOUR = lazy_pattern(rb"\x1b\[[0-9;:]{0,64}[mK]")
_ESCAPED = lazy_pattern(
    rb"\\u(?:001[bB]\\?\[[0-9;:]{0,64}[mK]|00[aA][dD]|115[fF]|1160|17[bB][45]|180[eE]|200[b-dB-D]|206[0-4]|3164|[fF][eE][fF][fF]"
    rb"|[fF][fF][aA]0|[dD][bB]40\\{1,7}u[dD][cC][0-7][0-9a-fA-F])"
)
_INVISIBLE = tuple(
    (lead, lazy_pattern(lead + rest))
    for lead, rest in (
        (b"\xc2\xad", rb""),
        (b"\xe1", rb"(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0\x8e)"),
        (b"\xe2\x80", rb"[\x8b-\x8d]"),
        (b"\xe2\x81", rb"[\xa0-\xa4]"),
        (b"\xe3\x85\xa4", rb""),
        (b"\xef", rb"(?:\xbb\xbf|\xbe\xa0)"),
        (b"\xf3\xa0", rb"[\x80\x81][\x80-\xbf]"),
    )
)
_BACKSLASH = ord("\\")
_AROUND = 600  # bytes on both sides of hidden characters that are searched again


def find_spans(data: bytes, raw: bool = False) -> list[Span]:
    """Return the secrets in UTF-8 text, in order, merged where they overlap. `raw` is JSON: a secret ends with its string."""
    found = _plain_spans(data, raw)
    if hidden := _hidden_ranges(data):
        found += _spans_through_hidden(data, hidden, raw)
    if found and PLACEHOLDER in data:
        found = _outside_placeholders(found, [match.span() for match in _PLACEHOLDER_PATTERN.finditer(data)])
    return _join_spans(found) if found else found


def _plain_spans(data: bytes, raw: bool) -> list[Span]:
    return [*token_spans(data, raw), *word_spans(data), *own_spans(data, raw)]


def _hidden_ranges(data: bytes) -> list[tuple[int, int]]:
    """Return the ranges of colours and invisible characters, in order."""
    found = [match.span() for match in _COLOUR.finditer(data)] if b"\x1b" in data else []
    if b"\\u" in data:
        # Escaped twice and more, they have further backslashes before them.
        found += [(_first_backslash(data, match.start()), match.end()) for match in _ESCAPED.finditer(data)]
    if not data.isascii():
        for lead, rule in _INVISIBLE:
            if lead[0] in data:
                found += [match.span() for match in rule.finditer(data)]
    return sorted(found)


def _first_backslash(data: bytes, at: int) -> int:
    while at and data[at - 1] == _BACKSLASH == data[at]:
        at -= 1
    return at


def _spans_through_hidden(data: bytes, hidden: list[tuple[int, int]], raw: bool) -> Iterator[Span]:
    """Yield the secrets found once colours and invisible characters are left out, at their original positions."""
    group: list[tuple[int, int]] = []
    for span in hidden:
        if group and span[0] - group[-1][1] > 2 * _AROUND:
            yield from _spans_around_hidden(data, group, raw)
            group = []
        group.append(span)
    yield from _spans_around_hidden(data, group, raw)


def _spans_around_hidden(data: bytes, hidden: list[tuple[int, int]], raw: bool) -> Iterator[Span]:
    first = max(0, hidden[0][0] - _AROUND)
    first = max(0, data.find(b" ", first, hidden[0][0])) if first else 0  # not within a word, if possible
    edges = [first, *(edge for span in hidden for edge in span), min(len(data), hidden[-1][1] + _AROUND)]
    plain = CutBytes(data, list(zip(edges[::2], edges[1::2], strict=True)))
    for kind, start, end in _plain_spans(plain.data, raw):
        yield kind, *plain.original_range(start, end)


def _outside_placeholders(found: list[Span], placeholders: list[tuple[int, int]]) -> list[Span]:
    """Drop the spans within placeholders: the kind named there is a telling name itself.

    A match of the user's own patterns may hold a placeholder; a secret of another kind that would is none.
    """
    starts = [start for start, _ in placeholders]
    kept = []
    for span in found:
        before = bisect_left(starts, span[2]) - 1
        is_outside = before < 0 or placeholders[before][1] <= span[1]
        if is_outside or (span[0] == OWN_KIND and not _is_within(span, placeholders[before])):
            kept.append(span)
    return kept


def _is_within(span: Span, outer: tuple[int, int]) -> bool:
    return outer[0] <= span[1] and span[2] <= outer[1]


def _join_spans(found: list[Span]) -> list[Span]:
    """Sort the spans and merge overlapping ones, named by the one that begins first."""
    spans: list[Span] = []
    for kind, start, end in sorted(found, key=lambda span: span[1]):
        if spans and start < spans[-1][2]:
            name, begin, old_end = spans[-1]
            spans[-1] = (name, begin, max(end, old_end))
        else:
            spans.append((kind, start, end))
    return spans


_KEY_FREE = b""
_JSON_STARTS = (b"{", b"[", b'"', b"}", b"]")
_QUOTE_OR_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)|\"")


class Secret(Struct, frozen=True):
    """The kind and position of a secret in a text."""

    kind: str
    start: int
    end: int


class Cleaner(Struct, frozen=True):
    """Masks secrets in text and in lines of JSON, with one key."""

    key: bytes = _KEY_FREE

    def __call__(self, text: str) -> str:
        """Return the text with its secrets masked."""
        return redact_text(text, self.key)

    def line(self, line: bytes) -> bytes:
        """Return a line of JSON with its secrets masked, still JSON."""
        return redact_bytes(line, self.key)

    def document(self, data: bytes) -> bytes:
        """Return a whole file with its secrets masked: one JSON document over any number of lines, still JSON, or text."""
        return redact_document(data, self.key)


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text, in order, without overlaps."""
    data = _encode_text(text)
    found, at, chars = [], 0, 0
    for kind, start, end in find_spans(data):
        chars += _text_length(data[at:start])
        size = _text_length(data[start:end])
        found.append(Secret(kind, chars, chars + size))
        at, chars = end, chars + size
    return found


def redact_text(text: str, key: bytes = _KEY_FREE) -> str:
    """Return the text with its secrets masked; a text without any is returned as it is."""
    data = _encode_text(text)
    spans = find_spans(data)
    return _replace_spans(data, spans, key).decode("utf-8", "surrogatepass") if spans else text


def redact_bytes(line: bytes, key: bytes = _KEY_FREE) -> bytes:
    """Return one or several lines of JSON or text with their secrets masked."""
    if not (spans := find_spans(line, raw=True)):
        return line
    if line.find(b"\n", 0, -1) < 0:
        return _replace_in_json(line, spans, key)
    parts = line_parts(line)
    return (
        _replace_spans(line, find_spans(line), key)
        if len(parts) == 1
        else b"".join(redact_bytes(one, key) for one in parts)
    )


def line_parts(data: bytes) -> list[bytes]:
    """Return lines of JSON one by one, and text between them in one part: some secrets of a text go over several lines."""
    parts: list[bytes] = []
    for is_text, group in groupby(data.splitlines(keepends=True), _is_text):
        lines = list(group)
        parts += [b"".join(lines)] if is_text else lines
    return parts


def _is_text(line: bytes) -> bool:
    return line.lstrip()[:1] not in _JSON_STARTS


def redact_document(data: bytes, key: bytes = _KEY_FREE) -> bytes:
    """Return a file with its secrets masked: a JSON document over any number of lines, or text."""
    if data.lstrip()[:1] in (b"{", b"[") and is_json(data):
        spans = find_spans(data, raw=True)
        return _replace_in_json(data, spans, key) if spans else data
    return _replace_spans(data, find_spans(data), key)


def _replace_in_json(data: bytes, spans: list[Span], key: bytes) -> bytes:
    new = _replace_spans(data, spans, key)
    if is_json(new) or not is_json(data):
        return new
    return _replace_spans(data, _spans_within_strings(data, spans), key)


def digest(secret: bytes, key: bytes) -> str:
    """Return eight hex digits that are equal for equal secrets, and useless without the key."""
    # Escapes and line ends differ between a raw line and its text; the secret is the same.
    plain = secret.replace(b"\\r", b"").replace(b"\\n", b"").replace(b"\\", b"")
    return hmac.new(key, b"".join(plain.split()), "sha256").hexdigest()[:8]


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_length(part: bytes) -> int:
    return len(part) if part.isascii() else len(part.decode("utf-8", "surrogatepass"))


def _replace_spans(data: bytes, spans: list[Span], key: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    for kind, start, end in spans:
        parts += data[at:start], _placeholder_for(kind, data[start:end], key)
        at = end
    return b"".join((*parts, data[at:]))


def _placeholder_for(kind: str, secret: bytes, key: bytes) -> bytes:
    if not key:
        return b"%s%s]" % (PLACEHOLDER, kind.encode())
    return b"%s%s:%s]" % (PLACEHOLDER, kind.encode(), digest(secret, key).encode())


def is_json(line: bytes) -> bool:
    """Whether either of two readers accepts it: the fast one rejects halves of surrogate pairs, which transcripts contain."""
    for decode in (msgspec.json.decode, json.loads):
        try:
            decode(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        return True
    return False


def _spans_within_strings(line: bytes, spans: list[Span]) -> list[Span]:
    """Return the spans that can be replaced in valid JSON: within one string, and no escape cut in two.

    Others are numbers after a telling name, or begin with the letter of an escape: `\\npm_` is a line end and `pm_`.
    """
    quotes: list[int] = []
    escapes: list[tuple[int, int]] = []
    for found in _QUOTE_OR_ESCAPE.finditer(line):
        if found[0] == b'"':
            quotes.append(found.start())
        else:
            escapes.append(found.span())
    kept = []
    for span in spans:
        before = bisect_left(quotes, span[1])
        is_in_string = before % 2 == 1 and before == bisect_left(quotes, span[2])
        if is_in_string and not any(_is_cutting_escape(escapes, edge) for edge in span[1:]):
            kept.append(span)
    return kept


def _is_cutting_escape(escapes: list[tuple[int, int]], edge: int) -> bool:
    before = bisect_left(escapes, (edge, 0)) - 1
    return before >= 0 and escapes[before][1] > edge


# --- Some secrets are recognised by the command, sentence or file that they are in: `sshpass -p …`, "my password is …", `.pgpass`, seed phrases ---
_Q = rb"""(?:\\{0,7}["'`])?"""
#: The value of an option: no blanks, quotes or escapes.
_ARG = rb"""([^\s"'`\\|;&<>]{3,200})"""
_GAP = rb"""[^\r\n|;&\\]{0,200}?"""  # further words of the same command

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
    has_all = value.lower() != value != value.upper() and any(48 <= byte <= 57 for byte in value)
    return has_all and _entropy(value) >= _LEAST_ENTROPY and not _is_name(value)


def _is_name(value: bytes) -> bool:
    """Whether a value is a name in code, such as `getUserProfileById2`: its words are longer than those of chance."""
    return bool(_NAME.fullmatch(value)) and len(value) >= _WORD_LENGTH * len(_WORDS.findall(value))


def _always(data: bytes, match: re.Match[bytes]) -> bool:
    return True


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
        ("seed_phrase", b"phrase", rb"phrase(?: \([^)\n]{1,40}\))?" + _Q + rb"\s{0,2}(?:is|are|:|=|-|=>)\s{0,4}" + _Q + rb"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b", _always),
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
    return [(kind, *_trim_secret(match)) for match in pattern.finditer(lower) if is_secret(data, match)]


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


def _trim_secret(match: re.Match[bytes]) -> tuple[int, int]:
    """Return the range of a secret without the punctuation of the sentence around it."""
    start, end = match.span(1)
    return start, start + len(match[1].rstrip(b".,!?)")) if match[1].rstrip(b".,!?)") else end
