"""Names that a successor looks for first: paths, identifiers, commands, versions, addresses, ports.

`find_names` finds them in back quotes or by their shape, `NameCounter` counts the messages of a turn that use them, and `advance_names` folds turns.
`rank_names` orders them by the odds that a reader calls a name key. The weights (`key_names.json`) were learnt from the key phrases that
readers marked; `python -m benchmarks.restore.name_weights` learns them again. What a name costs counts against it, and so do
names of its family that stand before it: the tenth file of a folder says less than the first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heapreplace

from msgspec import Struct

from everturn.derive.open_sentences import load_weights
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.tokens import estimate_tokens

_READ, _READ_CALL = 8_000, 1_600  # characters read of a message and of what a call was given
_MOST_FOUND, _MOST_KEPT = 120, 1_200  # names of one message, and of a session
_SHORTEST, _LONGEST = 3, 80
_CITED = 1.5  # tokens of a citation that several names share
_WEIGHED = 3  # times the names that are wanted
_FAMILY = 0.5  # log-odds that each name of a family takes from the next one
_LEAST_ODDS = -3.2  # log-odds that a name needs to be shown
_BULK = 40  # names of a text that only lists what there is
_POINTERS = ("path", "url", "ip", "version", "hash", "long hash", "file")  # shapes of names that mean something alone
_OUTPUTS = 3  # calls: what version control says of the work is worth as much as a name in so many

_QUOTED = lazy_pattern(r"`([^`\n]{3,50})`")
_TOKEN = lazy_pattern(r"[\w@#./\\:~$%+*=?&<>()\[\]-]{3,400}")
_FOREIGN = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_NO_NAME = lazy_pattern(r"<.*|https?|[\W\d]{1,3}|[\W_]+")
_BRACKETS = lazy_pattern(r"[()\[\]<>]")
_TARGET = lazy_pattern(r"\]\(|</[\w:.-]{0,60}>?|&#?\w{0,6}$")  # of a link, and what ends a name in marked-up text
_LINES = lazy_pattern(r"^\d{1,6}:\d{1,6}:(?=\D)")  # line numbers that a client puts before a path
#: A backslash parts the folders of a path, or it escapes a character of a string; in formulas and patterns it is neither.
_WINDOWS_PATH = lazy_pattern(r"(?:[A-Za-z]:|[\w.@~-]{0,80})(?:[\\/]{1,2}[^\\/*?]{1,80}){1,20}[\\/]{0,2}")
_SLASHES = lazy_pattern(r"[\\/]{1,2}")
_ROOTED = lazy_pattern(r"(?:[A-Za-z]:|\.{1,2}|~)[\\/]|\\\\\w")
_FILE_END = lazy_pattern(r"\w\.[A-Za-z]\w{0,5}$")
_ESCAPES = lazy_pattern(r"(?:\\{1,4}(?:[nrt](?![a-z])|[\"'`]|$))+")
_ESCAPED = lazy_pattern(r"[nrt](?![a-z])|[()\[\]$%&#]")  # how a folder does not begin behind a backslash
_ROOT = lazy_pattern(r"(?:[A-Za-z]:|\.{1,2}|~)?[\\/]|\w+://")
_SPACED_PATH = lazy_pattern(r"""(["'`])((?:[A-Za-z]:[\\/]|~?/)[^"'`\n|;&<>]{0,90}[\w./\\] [^"'`\n|;&<>]{1,90})\1""")
_PLACEHOLDER = lazy_pattern(
    r"(?:^|[^a-z])(?:your[-_a-z]|(?:tus?|votre|deine?n?|ihre?|seu|sua)[-_][a-z]|example\.(?:com|org|net)\b|path/to/|foo/bar)"
    r"|x{4,}|(?:^|[/@:=])<[a-z]",
    re.IGNORECASE,
)
_IDENTIFIER = lazy_pattern(
    r"(?<![\w./-])(?:(?=[a-z]*\d)(?=\d*[a-z])[0-9a-f]{7,12}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{9,12})(?![\w/-])"
)
_MAKERS = ("shell", "other")  # kinds of calls that make something
_SHORT_RESULT, _MOST_MADE = 1_000, 2  # characters of a result, and its identifiers
_TALKS = ("git push", "git pull", "git fetch", "git remote", "gh pr", "gh repo view")
_REMOTE = lazy_pattern(
    r"\b[\w-]{2,40}\.(?:com|org|io|net|dev)[:/]([\w.-]{1,40}/[\w.-]{1,80}?)(?:\.git)?(?=[\s/#?)\"']|$)"
)


class KeyName(Struct, frozen=True):
    """A name, the first and the last message that use it, and how many do."""

    text: str
    first: int
    seq: int
    prompts: int = 0
    answers: int = 0
    calls: int = 0
    quoted: bool = False
    turns: int = 1
    crowd: int = 0  # names that the least crowded of its texts holds
    maker: str = ""  # the tool whose result named it first, of an identifier


def given_texts(start: CallStart) -> Iterator[str]:
    """Yield the texts that a call was given."""
    yield from (start.path, start.command)
    if isinstance(start.input, dict):
        yield from (
            one for one in start.input.values() if isinstance(one, str) and one not in (start.path, start.command)
        )


def call_label(start: CallStart, width: int) -> str:
    """Return the command of a call, or its tool and its main argument."""
    if start.kind == "shell" and start.command:
        return one_line(start.command, width)
    about = start.path or start.command
    if not about and isinstance(start.input, dict):
        about = next((value for value in start.input.values() if isinstance(value, str)), "")
    return one_line(f"{start.name} {about}", width)


class NameCounter:
    """Counts the names of a turn, message by message."""

    def __init__(self) -> None:
        self._names: dict[str, KeyName] = {}
        self.branch = self.repository = ""  # that version control named last

    def add_message(self, text: str, seq: int, is_prompt: bool) -> None:
        """Count what a person or a model wrote."""
        if len(text) > _READ:  # without the halves of names that are cut
            end = text[-_READ // 2 :].split(maxsplit=1)[-1]
            text = f"{_cut_text(text, _READ // 2)}\n{end}"
        found = find_names(text)
        for name, quoted in found.items():
            self._count(KeyName(name, seq, seq, int(is_prompt), int(not is_prompt), 0, quoted, crowd=len(found)))

    def add_call(self, texts: Iterable[str], seq: int) -> None:
        """Count what a call was given."""
        found = _shaped_names(_join_texts(texts))
        for name in found:
            self._count(KeyName(name, seq, seq, calls=1, crowd=len(found)))

    def add_branch(self, branch: str, seq: int) -> None:
        """Count a branch that somebody is on: it says more than a name that was only used."""
        self.branch = branch
        self._count(KeyName(branch, seq, seq, 0, 1, _OUTPUTS, True, crowd=1))

    def add_repository(self, command: str, output: str) -> None:
        """Take note of the repository that a command talked to."""
        if any(one in command for one in _TALKS) and (repository := find_remote(output)):
            self.repository = repository

    def add_result(self, start: CallStart, output: str, seq: int) -> None:
        """Count the identifiers that a tool gives to what it made: few, in a short result, and not those that it was given."""
        if start.kind in _MAKERS and len(output) <= _SHORT_RESULT and (found := set(_IDENTIFIER.findall(output))):
            given = _join_texts(given_texts(start))
            made = [one for one in sorted(found) if one not in given]
            maker = "" if start.kind == "shell" else start.name
            for one in made if len(made) <= _MOST_MADE else ():
                self._count(KeyName(one, seq, seq, crowd=len(made), maker=maker))

    def names(self) -> tuple[KeyName, ...]:
        """Return the names that were counted."""
        return tuple(self._names.values())

    def _count(self, one: KeyName) -> None:
        known = self._names.get(one.text)
        self._names[one.text] = one if known is None else _add_uses(known, one, 0)


def find_names(text: str) -> dict[str, bool]:
    """Return the names that a text uses, and whether they stand in back quotes."""
    quoted = (one.strip() for one in _QUOTED.findall(text))
    found = {one: True for one in quoted if len(one) >= _SHORTEST and not _FOREIGN.search(one)}
    for one in _shaped_names(text):
        found.setdefault(one, False)
    return dict(list(found.items())[:_MOST_FOUND])


def _shaped_names(text: str) -> list[str]:
    """Return the names that are known by their shape."""
    found: dict[str, None] = {}
    if spaced := [one for _, one in _SPACED_PATH.findall(text) if _is_spaced_path(one)]:
        for one in spaced:
            text = text.replace(one, "")
            found[one] = None
    for token in dict.fromkeys(_TOKEN.findall(text)):
        if token.isalpha() and token.isascii() and (token[1:].islower() or token.isupper()):
            continue  # a word
        for name in _names_of(token):
            found[name] = None
    return list(found)[:_MOST_FOUND]


def _join_texts(texts: Iterable[str]) -> str:
    room, parts = _READ_CALL, []
    for text in texts:
        parts.append(_cut_text(text, room))
        room -= len(text)
        if room <= 0:
            break
    return "\n".join(parts)


def _cut_text(text: str, room: int) -> str:
    """Return the beginning of a text without the half of a name at its end."""
    if len(text) <= room or text[room].isspace():
        return text[:room]
    words = text[:room].rsplit(maxsplit=1)
    return words[0] if len(words) > 1 else ""


def _is_spaced_path(text: str) -> bool:
    """Whether a quoted text is a single path: neither a command nor several paths."""
    return len(text) <= _LONGEST and len(_SLASHES.findall(text)) > 1 and " /" not in text and " -" not in text


@lru_cache(8_192)
def _names_of(token: str) -> tuple[str, ...]:
    """Return the names in some characters without a space: one, or those between escapes, marks and words of another script."""
    parts = [piece for part in _split_escapes(token) for piece in _TARGET.split(part)]
    names = (_trim(one) for part in parts for one in _split_scripts(part) if one)
    return tuple(
        one for one in names if _SHORTEST <= len(one) <= _LONGEST and not _NO_NAME.fullmatch(one) and name_shape(one)
    )


def _split_escapes(token: str) -> list[str]:
    """Return what stands between the escapes of a string. A backslash in a name parts the folders of a path."""
    if "\\" not in token or _is_windows_path(token):
        return [token]
    return [one for one in _ESCAPES.split(token) if "\\" not in one or _is_windows_path(one)]


def _is_windows_path(token: str) -> bool:
    if not _WINDOWS_PATH.fullmatch(token):
        return False
    folders = [one for one in _SLASHES.split(token)[1:] if one]
    if _ROOTED.match(token):
        return not any(map(_ESCAPED.match, folders))
    is_told = _FILE_END.search(token) or len(folders) > 1
    return bool(
        token[0] != "\\" and is_told and not any(len(one) < _SHORTEST - 1 or _ESCAPED.match(one) for one in folders)
    )


def _split_scripts(token: str) -> list[str]:
    """Return a token whole, or the parts between words of another script if it does not look like a path."""
    if token.isascii() or (("/" in token or "\\" in token) and (_FILE_END.search(token) or _ROOT.match(token))):
        return [token]
    return _FOREIGN.split(token)


def _trim(token: str) -> str:
    """Return a token without the punctuation of its sentence."""
    if not (token := _LINES.sub("", token)):
        return ""
    name = token.rstrip("*=~&!?:,.-") if token[0] in ".~-<" else token.strip("*=~&!?:,.>-")
    for opened, closed in ("()", "[]", "<>"):
        if name.count(opened) != name.count(closed):
            name = _BRACKETS.split(name, maxsplit=1)[0] if not name.startswith(opened) else name.strip("()[]<>")
        elif opened != "<" and name.startswith(opened) and name.endswith(closed):
            name = name[1:-1]
    if name.startswith("$") and not name[1:2].isdigit():  # a variable
        name = name[1:]
    return name.rstrip(":.,=$")


def advance_names(known: dict[str, KeyName], new: Sequence[KeyName]) -> dict[str, KeyName]:
    """Return the names after one more turn; of too many, those that were used least and longest ago are dropped."""
    if not new:
        return known
    names = dict(known)
    for one in new:
        if one.maker:
            for old in [old for old in names.values() if old.maker == one.maker and old.calls and old.text != one.text]:
                del names[old.text]  # it was given back to a tool before another was made
        before = names.get(one.text)
        names[one.text] = one if before is None else _add_uses(before, one, one.turns)
    if len(names) > _MOST_KEPT:
        least = sorted(names.values(), key=_lasting)[: len(names) - _MOST_KEPT * 3 // 4]
        for one in least:
            del names[one.text]
    return names


def _lasting(one: KeyName) -> tuple[int, int]:
    return 3 * (one.prompts + one.answers) + one.calls, one.seq


def _add_uses(one: KeyName, more: KeyName, turns: int) -> KeyName:
    return KeyName(
        one.text, one.first, more.seq, one.prompts + more.prompts, one.answers + more.answers, one.calls + more.calls,
        one.quoted or more.quoted, one.turns + turns, min(one.crowd, more.crowd), one.maker or more.maker,
    )  # fmt: skip


def find_remote(output: str) -> str:
    """Return the repository that version control talks to, `owner/name`, "" if it names none."""
    found = _REMOTE.search(output[:2_000])
    return found[1] if found else ""


# --- shapes ---
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("spaced", lazy_pattern(r"(?!(?:[A-Za-z]:|~?/[^ ]+)[\\/]).* .*")),
    ("url", lazy_pattern(r"\w+://.*")),
    ("ip", lazy_pattern(r"v?\d+(?:\.\d+){3}(?:[^\w.].*)?")),
    ("version", lazy_pattern(r"v\d+(?:\.\d+)+[\w.-]*|\d+(?:\.\d+){2}[\w.-]*")),
    ("number", lazy_pattern(r"[\W\d]*\d[A-Za-z%]{0,2}|[\W\d]+")),
    (
        "words",
        lazy_pattern(
            r"(?=[^/-][^/]*/)(?:[-/]?(?:[^\W\d_]?[^\W\d_A-Z]{1,40}|[A-Z]{2,40}(?![^\W\d_A-Z]))(?=[-/]|$))+(?<!/)"
        ),
    ),
    ("path", lazy_pattern(r".*[/\\].*")),
    ("file", lazy_pattern(r"[^(]*\w\.(?:[a-z]{1,5}|[a-z]\d)")),
    ("dotted", lazy_pattern(r".*\w\.[A-Za-z]\w{0,5}")),
    ("hash", lazy_pattern(r"(?=.*\d)[0-9a-f]{7,12}")),
    ("long hash", lazy_pattern(r"(?=.*\d)[0-9a-f]{13,64}")),
    ("constant", lazy_pattern(r"(?=.*_)[^a-z]+")),
    ("snake", lazy_pattern(r".*_.*")),
    ("camel", lazy_pattern(r".*[a-z][A-Z].*")),
    ("digits", lazy_pattern(r".*\d.*")),
    ("flag", lazy_pattern(r"-.*")),
    ("kebab", lazy_pattern(r".*-.*")),
    ("signs", lazy_pattern(r".*[.:#@=$(<].*")),
)
_DIGITS = lazy_pattern(r"[0-9a-f]{7,}|\d+")
_ODD = lazy_pattern(r"[^\w./\\:@-]")


@lru_cache(8_192)
def name_shape(name: str) -> str:
    """Return what kind of name some characters look like, "" if they are a word."""
    return next((shape for shape, pattern in _SHAPES if pattern.fullmatch(name)), "")


# --- the ranking ---
class NameSetting(Struct, frozen=True):
    """What the rank of a name depends on besides its own uses."""

    messages: int  # of the session
    names: int
    first_prompt: int = -1  # seq
    last_answer: int = -1
    changed: frozenset[str] = frozenset()  # paths of files that were changed, and their names
    pieces: frozenset[str] = frozenset()  # of paths with spaces


def name_features(one: KeyName, setting: NameSetting) -> Iterator[tuple[str, float]]:
    """Yield the features of a name with their values."""
    size = min(len(one.text), 60) / 20
    spoken = one.prompts + one.answers
    yield "bias", 1.0
    yield "turns", math.log(one.turns)
    yield "crowd", math.log1p(one.crowd)
    yield f"shape {name_shape(one.text)}", 1.0
    for key, count in (("prompts", one.prompts), ("answers", one.answers), ("calls", one.calls)):
        if count:
            yield f"in {key}", 1.0
            yield key, math.log1p(count)
    yield "by both", float(one.prompts > 0 and one.answers > 0)
    yield "only calls", float(not spoken and one.calls > 0)
    yield "only made", float(not spoken and not one.calls)
    yield "quoted", float(one.quoted)
    yield "first prompt", float(one.first == setting.first_prompt)
    yield "last answer", float(one.seq == setting.last_answer)
    yield "begins", one.first / setting.messages
    yield "ends", one.seq / setting.messages
    yield "length", size
    yield "length squared", size * size
    yield "changed file", float(one.text in setting.changed)
    yield "many names", math.log(max(1, setting.names))
    yield "share of digits", sum(map(str.isdigit, one.text)) / len(one.text)
    yield "odd signs", float(len(_ODD.findall(one.text)))


def name_odds(one: KeyName, setting: NameSetting, weights: Mapping[str, float]) -> float:
    """Return the log-odds that a reader calls a name key."""
    return sum(weights.get(key, 0.0) * value for key, value in name_features(one, setting))


def rank_names(
    names: Collection[KeyName], setting: NameSetting, most: int, weights: Mapping[str, float] | None = None
) -> list[KeyName]:
    """Return the names that are worth their tokens most, the best first."""
    known = load_weights("key_names") if weights is None else weights
    used = sorted(names, key=_lasting, reverse=True)[: _WEIGHED * most]  # what was used once by a call is rarely key
    odds = {one.text: name_odds(one, setting, known) for one in used}
    possible = (one for one in used if odds[one.text] >= _LEAST_ODDS and is_name(one, setting))
    likely = sorted(possible, key=lambda one: -odds[one.text])[: 2 * most]
    worth = [(math.log(name_cost(one.text)) - odds[one.text], place, one) for place, one in enumerate(likely)]
    return _spread_families(worth, most)


def is_name(one: KeyName, setting: NameSetting) -> bool:
    """Whether some characters are a name of this session.

    Somebody put them in back quotes, they are used twice, or they look like what points somewhere and stand in no long list. A placeholder,
    a piece of a path, and a number or words that nobody calls a name are none.
    """
    shape, spoken = name_shape(one.text), one.prompts + one.answers
    if _PLACEHOLDER.search(one.text) or setting.pieces.intersection((one.text, _SLASHES.split(one.text, 1)[0])):
        return False
    if shape == "number":
        return spoken > 0 and (one.quoted or spoken + one.calls > 1)
    if shape == "words":
        return one.quoted or (spoken > 0 and one.calls > 0)
    if one.quoted or spoken + one.calls > 1:
        return True
    return one.crowd <= _BULK and (one.calls == 0 or shape in _POINTERS)


def _spread_families(worth: list[tuple[float, int, KeyName]], most: int) -> list[KeyName]:
    """Return the best names in order; each name makes the others of its family less worth."""
    heapify(worth)
    seen: Counter[str] = Counter()
    counted: dict[str, int] = {}
    ranked: list[KeyName] = []
    while worth and len(ranked) < most:
        value, place, one = worth[0]
        family = name_family(one.text)
        behind = seen[family] - counted.get(one.text, 0)
        if behind:
            counted[one.text] = seen[family]
            heapreplace(worth, (value + _FAMILY * behind, place, one))
            continue
        heappop(worth)
        ranked.append(one)
        seen[family] += 1
    return ranked


def name_cost(name: str) -> float:
    """Return the tokens that a name takes in a list."""
    return estimate_tokens(f"`{name}`, ") + _CITED


def name_family(name: str) -> str:
    """Return what a name has in common with others: the folder and the ending of a path, all but the numbers of another name."""
    folder, slash, last = name.rpartition("/")
    return _DIGITS.sub("0", f"{folder}/*{last.rpartition('.')[2][:5]}" if slash else name)
