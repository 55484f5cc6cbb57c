"""Numbers of a statement that belong to something: how many failed or passed, the value of a setting, and what is counted.

That both numbers of "33 failed and 6 passed" occur in the record is not enough: each must stand with the same word there. So must
every other number with the word beside it: the record that has "25 commits" and no "52 commits" contradicts the latter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from everturn.restore.evidence import normalise_quotes, quote_short
from everturn.restore.grounds import all_stems, hide_names

_CLASSES = {
    "failed": r"fail(?:s|ed|ing|ures?)?|errors?|broken|red|fehlgeschlagen\w*|fehler|échou\w+|échecs?|fall\w{1,5}|失敗|失败",
    "passed": r"pass(?:es|ed|ing)?|succeed(?:s|ed)?|succeeded|green|ok|bestanden|erfolgreich|réussi\w*|pasan|pasaron|成功|通过|合格",
    "skipped": r"skip(?:s|ped)?|ignored|übersprungen|ignorés?|omitid\w+",
}
_NOUN = r"(?:(?:of (?:the )?)?(?:\d+ )?(?:[\w-]{1,30} )?(?:tests?|specs?|checks?|cases|assertions?|pruebas|suites?)\s+(?:\w+ )?(?:are |were |have |is |was |do |still |now )?)"
_NOT = r"(?:(?:do|does|did|are|is|were|was) not|don['’]t|doesn['’]t|didn['’]t)\s+"
_AFTER = re.compile(
    rf"(?<![\w.,#-])(\d+)\s*(?:個|つ|件|个)?\s*(?:の)?{_NOUN}?({_NOT})?(?:(?P<x>" + "|".join(f"(?P<{key}>{words})" for key, words in _CLASSES.items()) + r"))(?![\w-])",
    re.I,
)  # fmt: skip
_BEFORE = re.compile("|".join(rf"\b(?P<{key}>{words})\s*[:=]\s*" for key, words in _CLASSES.items()), re.I)
_ALONE = re.compile(r"\d+(?!\s*(?:\w+\s+)?(?:" + "|".join(_CLASSES.values()) + r")\b)(?![\d.])", re.I)
_TURNED = {"failed": "passed", "passed": "failed", "skipped": "skipped"}
_SETTING = re.compile(
    r"`?\b([A-Z][A-Z0-9_]{2,}|[a-z]\w*_\w+|[a-z]+[A-Z]\w*)\b`?\s*(?:=|:|is|was|are|to|at|of|equals?|ist|auf|est|à|es|a|は|为)\s*(?:set (?:to|at) |now |still )?`?(\d+(?:\.\d+)?)(?![\w.]*\w)"
)
_ASSIGNED = r"\b{}\b[\"'`]?\s*(?:=|:|:=|=>|is|to|at)?\s*[\"']?(\d+(?:\.\d+)?)"
#: Small numbers as words, before something that can be counted.
_WORDS = {word: str(number) for number, words in enumerate((
    "", "one a single ein eine einen un une uno una", "two both zwei deux dos", "three drei trois tres", "four vier quatre cuatro", "five fünf cinq cinco",
    "six sechs seis", "seven sieben sept siete", "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez",
)) for word in words.split() if word not in ("a", "single", "both")}  # fmt: skip
#: Their stems, which are held against the numbers of the record and not against its words.
NUMBER_WORDS = all_stems(" ".join(filter(None, _WORDS)))
_NUMBER_WORD = re.compile(
    rf"\b({'|'.join(_WORDS)})(?=\s+(?:\w+\s)?(?:tests?|failures?|errors?|fails?|failed|passed|specs?|checks?|warnings?|files?|commits?|Fehler|échecs?|pruebas|fallos?)\b)",
    re.I,
)
_SMALL = re.compile(r"(?<![\w.,#/-])(\d)(?=\s+(?:\w+\s)?(?:files?|commits?|errors?|warnings?|tests?|failures?|migrations?|endpoints?|lines?|packages?|modules?)\b)", re.I)  # fmt: skip


def find_count_faults(text: str, recorded: str, counts: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the numbers that stand with another word in the record. `counts` are numbers computed from it."""
    text = _NUMBER_WORD.sub(lambda match: _WORDS[match[0].lower()], text)
    said, small = dict.fromkeys(_counts(text)), _SMALL.findall(text)
    known = set(_counts(recorded)) if said or small else set()
    for number, what in said:
        same = {one for one, kind in known if kind == what}
        if (number, what) in known or (number == "0" and not same):
            continue
        if same or not _has_number(number, recorded):
            yield f"{number} {what} does not match the record" + (f" ({', '.join(sorted(same)[:3])})" if same else "")
    totals = {sum(int(number) for number, _ in known)} | counts
    for number in small:
        if int(number) not in totals and not _has_number(number, recorded):
            yield f"the number {number} does not occur there"
    yield from _setting_faults(text, recorded)


def _has_number(number: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\d.,]){number}(?!\d|[.,]\d)", text))


def _setting_faults(text: str, recorded: str) -> Iterator[str]:
    for name, number in _SETTING.findall(text):
        values = set(re.findall(_ASSIGNED.format(re.escape(name)), recorded))
        if values and number not in values:
            yield f"{name} is {', '.join(sorted(values)[:3])} in the record, not {number}"


def _counts(text: str) -> Iterator[tuple[str, str]]:
    for match in _AFTER.finditer(text):
        kind = next(key for key in _CLASSES if match[key])
        yield match[1], _TURNED[kind] if match[2] else kind
    for match in _BEFORE.finditer(text):
        if number := _ALONE.match(text, match.end()):
            yield number[0], next(key for key in _CLASSES if match[key])


# --- any number, and the words beside it ---
_CJK = r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
_PLAIN = re.compile(
    r"(?<![A-Za-z_\d.,#@/:-])(\d{1,12}(?:[.,]\d{1,12})*)(?!\d|[.,:/–-]\d)"
    r"(?P<unit>%|[ ]?(?:[kKMGmµn]?[sBbgW]|sec|min|px|x)(?![A-Za-z]))?(?![A-Za-z_])"
)
_RECORDED = re.compile(r"(?<![A-Za-z_\d.,])(\d{1,12}(?:[.,]\d{1,12})*)(?!\d)")
_WORD = r"[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{2,40}"
_AFTER_IT = re.compile(
    rf"[\s*_`'\"(（“„«-]{{0,4}}(?:[个個件つ本枚条項项次位名种種개]의?)?[的の]?(?:({_CJK}{{2}})|({_WORD})(?:[ ]({_WORD}))?)"
)
_BEFORE_IT = re.compile(
    rf"(?:({_CJK}{{2}})|({_WORD}))(?:[ ](?:is|was|of|to|est|ist|es))?[\s:：=*_`'\"(（]{{0,4}}$", re.I
)
_LOOK_BACK = 48  # characters before a number that are looked at
_SURE = 4  # characters of a number that stands nowhere by chance
#: Of these a part may be counted as well as all.
_PARTLY_COUNTED = all_stems(
    "files lines tests changes errors failures warnings steps items times words things parts more others files functions"
)


_ORDINAL = {"第"}
_LIST = re.compile(
    r"(?<![A-Za-z\d_/.-])(?:\d{1,4}(?:\s?/\s?\d{1,4}){2,8}(?![A-Za-z/])|\d{2,5}\s?[-–~]\s?\d{2,5}(?![A-Za-z\d-]))"
)


_VERSION = re.compile(r"(?<![\w.])v(\d{1,5}(?:\.\d{1,5}){1,3})(?![\w])")
_RANGE = re.compile(r"(?<![\w.,/:-])(\d{1,5})\s?(?:[-–~]|to|bis|à|a|至|到|から)\s?(\d{1,5})(?![\d.,/:-]\d|[A-Za-z_])")


#: Two numbers with one unit: "5 and 10 minutes".
_PAIR = re.compile(
    r"(?<![\w.,/:-])(\d{1,4}(?:\.\d{1,3})?)\s(?:and|or|und|oder|et|ou|y|o|e)\s(\d{1,4}(?:\.\d{1,3})?)[ -]([a-z]{3,12})\b"
)
_LINE = re.compile(r"\n|(?<=[.!?])\s")


class RecordedNumbers(Struct):
    """The numbers of a text, and the words that stand after and before each."""

    all: set[str]
    after: dict[str, set[str]]
    before: dict[str, set[str]]


class NumberTexts(Struct, frozen=True):
    """The texts in which the numbers of a statement are looked for."""

    cited: str  # of the cited messages, with the results of their calls
    turn: str  # of their turns
    spoken: str  # what is said in those turns
    foreign: bool = False  # the statement is in another language


def find_number_faults(text: str, texts: NumberTexts) -> Iterator[str]:
    """Yield the numbers of a statement that the record lacks, or has otherwise beside the same word.

    A number that only another message of the turn has must have the same word beside it there, unless it is too long for chance or
    the statement is in another language.
    """
    prose = _spell_numbers(hide_names(text))
    yield from _series_faults(prose, texts)
    yield from () if texts.foreign else _pair_faults(prose, texts.turn)
    said = list(_PLAIN.finditer(prose))
    total = str(count_total(texts.cited)) if said else ""
    for match in said:
        if _canonical(match[1]) != total and (fault := _number_fault(prose, match, texts)):
            yield fault


def count_total(text: str) -> int:
    """Return the sum of what failed, passed and was skipped: 61 for "4 failed, 57 passed"."""
    return sum(int(one) for one, _ in set(_counts(text)))


def _number_fault(prose: str, match: re.Match[str], texts: NumberTexts) -> str:
    here, number, (after, before) = read_numbers(texts.cited), _canonical(match[1]), _words_beside(prose, match)
    bound = {one for word in after for one in here.after.get(word, ())}
    led = {one for word in before for one in here.before.get(word, ())}
    is_small = len(number) == 1 and not match["unit"]
    others: set[str] = set()
    if number in bound or number in led:
        return ""
    if bound and not after <= _PARTLY_COUNTED:
        others = bound
    elif is_small:
        is_led = number not in here.all or any(map(_is_cjk, before - _ORDINAL))
        others = (led if is_led else set()) or _bound_elsewhere(number, after - _PARTLY_COUNTED, texts.spoken)
    elif number not in here.all and not _stands_elsewhere(number, after | before, texts):
        return f"the number {number} does not occur there"
    return f"the record has {', '.join(sorted(others)[:3])} there, not {number}" if others else ""


def _series_faults(prose: str, texts: NumberTexts) -> Iterator[str]:
    """Yield the versions, ranges and series of numbers that do not occur as such."""
    for version in _VERSION.findall(prose):
        if not re.search(rf"(?<![\d.]){re.escape(version)}(?!\d)", texts.turn):
            yield f"version {version} does not occur there"
    ranges = {match.groups() for match in _RANGE.finditer(texts.cited)}
    sizes = {len(end) for pair in ranges for end in pair}
    for match in _RANGE.finditer(prose):
        if match.groups() not in ranges and not sizes.isdisjoint(map(len, match.groups())):
            yield f"{match[0]} does not occur there"
    for series in _LIST.findall(prose):
        if not read_numbers(texts.cited).all.issuperset(re.findall(r"\d+", series)):
            yield f"{series} does not occur there"


def _pair_faults(prose: str, text: str) -> Iterator[str]:
    """Yield the pairs of numbers with one unit that no sentence or line has."""
    for first, second, unit in _PAIR.findall(prose):
        if not _stand_together((first, second), text):
            yield f"{first} and {second} {unit} do not occur together there"


def _stand_together(numbers: tuple[str, str], text: str) -> bool:
    """Whether a sentence or line has both numbers."""
    one, other = (re.compile(rf"(?<![\d.]){re.escape(number)}(?!\d)") for number in numbers)
    return any(one.search(line) and other.search(line) for line in _LINE.split(text))


def _bound_elsewhere(number: str, after: set[str], spoken: str) -> set[str]:
    """Return the other numbers that stand before the same word in what was said; none if this one does too."""
    found = read_numbers(spoken)
    bound = {one for word in after for one in found.after.get(word, ())}
    return set() if number in bound else bound


def _stands_elsewhere(number: str, words: set[str], texts: NumberTexts) -> bool:
    """Whether another message of the turn has a number, beside one of the words."""
    found = read_numbers(texts.turn)
    if number not in found.all:
        return False
    if texts.foreign or not words or len(number) >= _SURE:
        return True
    return any(number in found.after.get(word, ()) or number in found.before.get(word, ()) for word in words)


@lru_cache(64)
def read_numbers(text: str) -> RecordedNumbers:
    """Return the numbers of a text with the words beside them."""
    found = RecordedNumbers(set(), {}, {})
    text = _spell_numbers(text)
    for match in _RECORDED.finditer(text):
        number, (after, before) = _canonical(match[1]), _words_beside(text, match)
        found.all.add(number)
        for word in after:
            found.after.setdefault(word, set()).add(number)
        for word in before:
            found.before.setdefault(word, set()).add(number)
    return found


def _words_beside(text: str, match: re.Match[str]) -> tuple[set[str], set[str]]:
    after = _AFTER_IT.match(text, match.end(1))
    before = _BEFORE_IT.search(text, max(0, match.start() - _LOOK_BACK), match.start())
    return _word_set(after), _word_set(before)


def _word_set(match: re.Match[str] | None) -> set[str]:
    """Return the words of a match: of Chinese and Japanese the two characters, else stems."""
    if match is None:
        return set()
    return {match[1]} if match[1] else set(all_stems(" ".join(filter(None, match.groups()[1:]))))


def _is_cjk(word: str) -> bool:
    return bool(re.fullmatch(_CJK + "+", word))


def _canonical(number: str) -> str:
    """Write a number with a point for its fraction and nothing between its thousands."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        return number.replace(",", "")
    return number.replace(",", ".")


def _spell_numbers(text: str) -> str:
    text = _CJK_COUNTED.sub(lambda match: _CJK_NUMBERS[match[0]], text)
    return _COUNTED.sub(lambda match: _WORDS[match[0].lower()], text)


_CJK_NUMBERS = {"两": "2", "兩": "2", **{sign: str(number) for number, sign in enumerate("二三四五六七八九十", 2)}}
_CJK_COUNTED = re.compile(
    r"(?<![\u4e00-\u9fff第])[二两兩三四五六七八九十](?=[个個種种つ项項次条張张名件本])|(?<=[的了给有出成])[二两兩三四五六七八九十](?=[个個種种项項次条件])"
)
_COUNTED = re.compile(
    rf"(?<![\w-])(?:{'|'.join(word for word, number in _WORDS.items() if number not in ('', '0', '1'))})(?=\s+[^\W\d_]{{3}})",
    re.I,
)


# --- the value of something named ---
_NAMED_VALUE = re.compile(r"`([^`\n]{3,200})`[^`;.\n]{0,40}?(?<![\w.,/:-])(\d{2,6})(?![\w]|[.,]\d)")


def find_value_faults(text: str, cited: str) -> Iterator[str]:
    """Yield the values of named things that are others in the record: `/health` answered 200 where it has "/health → 404"."""
    for name, value in _NAMED_VALUE.findall(text):
        pattern = rf"(?<![\w./-])/?{re.escape(normalise_quotes(name).strip().lstrip('/'))}['*|\s]*(?:[:=→|]|[-=]>|\s)\s*(?:HTTP[/\d.]*\s*|[A-Za-z]{{2,20}}\()?['*]{{0,2}}(\d{{{len(value)}}})(?![\w.])"
        values = set(re.findall(pattern, cited))
        if values and value not in values:
            yield f"{quote_short(name)} has {', '.join(sorted(values)[:3])} in the record, not {value}"
