"""Numbers of a statement that belong to something: how many failed or passed, and the value of a setting.

That both numbers of "33 failed and 6 passed" occur in the record is not enough: each must stand with the same word there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLASSES = {
    "failed": r"fail(?:s|ed|ing|ures?)?|errors?|broken|red|fehlgeschlagen\w*|fehler|échou\w+|échecs?|fall\w{1,5}|失敗|失败",
    "passed": r"pass(?:es|ed|ing)?|succeed(?:s|ed)?|succeeded|green|ok|bestanden|erfolgreich|réussi\w*|pasan|pasaron|成功|通过|合格",
    "skipped": r"skip(?:s|ped)?|ignored|übersprungen|ignorés?|omitid\w+",
}
_NOUN = r"(?:(?:of (?:the )?)?(?:\d+ )?(?:\w+ )?(?:tests?|specs?|checks?|cases|assertions?|pruebas|suites?)\s+(?:\w+ )?(?:are |were |have |is |was |do |still |now )?)"
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
            yield f"{number} {what} is not what the record says" + (f" ({', '.join(sorted(same)[:3])})" if same else "")
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
