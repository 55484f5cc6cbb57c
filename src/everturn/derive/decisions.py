"""Find decisions and constraints by the words that state them.

Learnt weights (`rules.json`, see `derive.open_sentences`) tell which sentences of a person are rules. Among their features are what the
words mean in any language (`MEANING_OF`), the line above a list, and what patterns see: an order (`never …`, `make sure …`), a rule
(`must`, `use X, not Y`) or a mark (`Decision:`, `pin:`). A line whose mark asks to be remembered is *pinned*: no view leaves it out.

`find_decisions` is for the text of a human. What was chosen in a turn is found by `derive.choices`, and lines with a mark in
capitals by `derive.marker_lines`. Pure; work is linear.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, takewhile

from msgspec import Struct

from everturn.derive.intent import is_role, read_command, word_count
from everturn.derive.open_sentences import is_question, load_weights, message_marks, sentence_features, sum_weights
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.rule_words import (
    CORRECTION,
    ENGLISH,
    LIMIT,
    LISTED_ORDER,
    MEANINGS,
    OTHER_LATIN,
    OTHER_RULE,
    RULE,
    RULES_ABOVE,
    STRICT,
)
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import CHOICE

#: Longest excerpt of a text kept in a state.
LONGEST = 200
MAX_MARKS = 12  # of one message
_MAX_PASTED = 5
MAX_LISTED = 16  # rules of one message
_LAST = 2  # sentences at the end of a prompt that a program wrote, where an order is a rule
_RULES_CHARS = 1_350  # that the rules of one message may take
_LONG_TEXT, _MANY_RULES = 800, 3  # characters of a long message, rules of one that lists rules
SHORT, _LONG = "=short", "=long"  # features of messages of either length
_LEAD_WORDS, _FEW_WORDS = 8, 3  # of the line above a list
_MIN_RULE = 3  # words of a mild one
_MAX_WORDS = 60  # a longer sentence is a story, not a rule
_ITEM = 300  # characters: a rule is kept with the rest of such a list item


class DecisionMark(Struct, frozen=True):
    """A decision or a constraint, in its original words."""

    text: str
    kind: str  # marker | imperative | list | file | choice | answer
    binds: bool = False  # a constraint, else a decision
    pinned: bool = False


_Placed = tuple[int, DecisionMark, float]  # the number of the sentence, and how likely it is
_Found = dict[str, _Placed]  # by the words


def find_decisions(text: str) -> list[DecisionMark]:
    """Return the decisions and constraints in a message of a human, in order, each once.

    Rules are found by learnt weights. A message that lays down one rule mostly lays down more: beside it, less likely ones count too.
    A line to be remembered and a plain prohibition in a short message always count. In a prompt that a program wrote the patterns decide;
    of the body of a command only what was typed behind the command counts.
    """
    text = _typed_words(text.replace("\r\n", "\n") if "\r" in text else text)
    sentences = list(split_sentences(text))
    marks = [sentence_mark(one) for one in sentences]
    is_program = is_role(text) and len(text) > _LONG_TEXT
    rules = (_program_rules if is_program else _likely_rules)(text, sentences, marks)
    decided = _Found()
    for number, mark in enumerate(marks):
        if mark is not None and not mark.binds:
            decided.setdefault(likeness(mark.text), (number, mark, 0.0))
    chosen = [*_choose_rules(list(rules.values())), *list(decided.values())[:MAX_MARKS]]
    return [mark for _, mark, _ in sorted(chosen, key=lambda one: one[0])]


def find_file_rules(text: str) -> list[DecisionMark]:
    """Return the rules of an instruction file of the project that the client put into the session: of a long one, what is strict."""
    if (found := _FILE_RULES.match(text)) is None:
        return []
    body = _CLIENT_PART.split(found["body"] or "")[0]
    if len(body) <= _SHORT_FILE:
        lines = [one for one in split_sentences(body) if word_count(one.text) >= _MIN_RULE]
        kept = [_excerpt(one) for one in lines]
    else:
        lines = [one for one in split_sentences(body) if STRICT.match(one.text.strip("*_ "))]
        kept = [mark.text for one in lines if (mark := sentence_mark(one)) is not None and mark.binds]
    kept = [one for one in kept if not one.endswith((":", "："))]
    return [DecisionMark(one, "file", binds=True) for one in list(dict.fromkeys(kept))[:_FILE_RULES_TOLD]]


_SHORT_FILE, _FILE_RULES_TOLD = 300, 4  # characters of a file that lists nothing but rules; rules of a file
#: How clients tell what the file says.
_FILE_RULES = lazy_pattern(
    r"\s*(?:# AGENTS\.md instructions for[^\n]{0,400}\s+<INSTRUCTIONS>|<user_instructions>|[^\n]{0,400}\b(?!README|CHANGELOG|LICENSE)[A-Z]{4,12}\.md\n)"
    r"(?P<body>.{0,24000}?)(?:</INSTRUCTIONS>|</user_instructions>|\Z)",
    re.DOTALL,
)
#: What a client adds to it.
_CLIENT_PART = lazy_pattern(r"^## Skills$", re.MULTILINE)


def _rule_lists(sentences: Sequence[Sentence]) -> Iterator[tuple[str, list[int]]]:
    """Yield the lists whose items are rules by the line or the heading above them, each with that line and the numbers of its items."""
    if not any(one.is_item for one in sentences):
        return
    above = [
        (lead or one.heading, one.heading) if one.is_item else ("", "")
        for one, lead in zip(sentences, item_leads(sentences), strict=True)
    ]
    for (lead, _), run in groupby(range(len(sentences)), key=above.__getitem__):
        if lead and len(lead.split()) <= _LEAD_WORDS and RULES_ABOVE.search(lead):
            items = list(run)
            if len(items) > 1:
                yield lead, items


def _listed_mark(sentence: Sentence, lead: str) -> DecisionMark:
    words = _excerpt(sentence)
    return DecisionMark(one_line(f"{lead.strip('*_: ')}: {words}", _ITEM) if lead else words, "imperative", binds=True)


def _typed_words(text: str) -> str:
    """Return what a person typed behind a command whose body a client put around it, else the text."""
    given = read_command(text) if len(text) > _LONG_TEXT else None
    return given.typed if given is not None and given.has_slot else text


def _likely_rules(text: str, sentences: list[Sentence], marks: list[DecisionMark | None]) -> _Found:
    """Return the rules of a person by their weights, if one of them is likely enough. What they decided is no rule besides."""
    leads, found, opens = item_leads(sentences), _Found(), False
    listed = {at: lead if at == items[0] else "" for lead, items in _rule_lists(sentences) for at in items}
    for number, features in enumerate(rule_features(text, sentences, marks)):
        one, mark = sentences[number], marks[number]
        if mark is not None and not mark.binds:
            continue
        odds = math.inf if _is_certain(mark, one, features) else rule_odds(features)
        if number in listed:
            odds = max(odds, 0.0)
        opens = opens or odds >= (-AGAINST if mark is not None and SHORT in features else 0)
        if odds >= -BESIDE and (odds == math.inf or word_count(one.text) >= _MIN_RULE):
            kept = mark if mark is not None else _rule_mark(one, leads[number])
            if listed.get(number):
                kept = _listed_mark(one, listed[number])
            found.setdefault(likeness(kept.text), (number, kept, odds))
    return found if opens else {}


def rule_odds(features: Sequence[str]) -> float:
    """Return the log-odds that a sentence is a rule."""
    return sum_weights(features, load_weights("rules")) + sum_weights(features, _BEYOND)


#: What counts beyond the learnt weights. Languages of which fewer sentences were learnt from have weights nearer to 0: of sentences with
#: log-odds lower by so much, as many are rules as in English. What meanings say together was too seldom met in most languages.
_BEYOND = {
    "=tongue latin": 0.5,
    "=tongue cyrillic": 0.3,
    "=frame unharmed": 1.0,
    "=frame asked": 1.0,
    "=frame passing": 1.0,
    "=frame held": 0.8,
    "=frame ensured": 0.5,
    "=frame in one case": 0.5,
    "=frame in a language": 0.5,
    "=shouted": 0.8,
    "=frame fails": -0.7,
}

#: Log-odds so far below 0 do not yet speak against a sentence of a short message that the patterns take for a rule.
AGAINST = 0.8
#: A sentence beside a rule of the same message is one too, if its log-odds are at most so much lower.
BESIDE = 0.6


def _is_certain(bound: DecisionMark | None, sentence: Sentence, features: Sequence[str]) -> bool:
    """Whether no weights can speak against a rule: a line to be remembered, a plain prohibition in a short message, the language of answers."""
    is_short = SHORT in features
    if is_short and not _TONGUE.isdisjoint(features) and not is_question(sentence.text):
        return True
    if bound is None:
        return False
    words = _POLITE.sub("", sentence.text.strip("*_ "))
    is_plain = is_short and (STRICT.match(words) or _CAPITALS.search(words)) is not None
    return is_plain or (bound.pinned and not sentence.pasted)


#: Features of a sentence that names a language to answer in.
_TONGUE = frozenset(("@answer @tongue", "@tongue @answer"))


def _rule_mark(sentence: Sentence, lead: str) -> DecisionMark:
    """Return the mark of a rule; an item of a list of prohibitions is told with the words above the list."""
    words = _excerpt(sentence)
    if _prohibits(lead):
        words = one_line(f"{lead} {words}", LONGEST)
    return DecisionMark(words, "imperative", binds=True)


def _program_rules(text: str, sentences: list[Sentence], marks: list[DecisionMark | None]) -> _Found:
    """Return what the patterns see in a prompt that a program wrote; in one that lays down many rules, milder ones count too."""
    strict, mild, pasted = _Found(), _Found(), 0
    for number, (sentence, mark) in enumerate(zip(sentences, marks, strict=True)):
        if mark is not None and mark.binds and not (sentence.pasted and pasted >= _MAX_PASTED):
            pasted += sentence.pasted
            strict.setdefault(likeness(mark.text), (number, mark, float(bool(_HARD.search(mark.text)))))
        elif mark is None and _is_mild_rule(sentence, sentence.is_item or number >= len(sentences) - _LAST):
            mild.setdefault(likeness(sentence.text), (number, DecisionMark(sentence.text, "list", binds=True), -1.0))
    rules = sum(mark.kind == "imperative" for _, mark, _ in strict.values())
    return mild | strict if len(text) > _LONG_TEXT and rules and rules + len(mild) >= _MANY_RULES else strict


# --- features ---
def rule_features(text: str, sentences: list[Sentence], marks: list[DecisionMark | None]) -> Iterator[list[str]]:
    """Yield the features by which the sentences of a person are weighed."""
    signs = [list(_rule_signs(one, mark)) for one, mark in zip(sentences, marks, strict=True)]
    size = SHORT if len(text) <= _LONG_TEXT else _LONG
    marks_of_all = [*message_marks(text, sentences), size, f"=chars {min(len(text) // 30, 999).bit_length()}"]
    marks_of_all.append(f"=tongue {language_group(text)}")
    if len(sentences) == 1:
        marks_of_all.append("=alone")
    leads = item_leads(sentences)
    above = {lead: list(_lead_features(lead)) for lead in set(leads)}
    for number, features in enumerate(sentence_features(sentences, signs, marks_of_all)):
        own = [f"={sign} {size}" for sign in signs[number]]
        yield [*features, *own, *_meaning_features(features), *above[leads[number]]]


def item_leads(sentences: Sequence[Sentence]) -> list[str]:
    """Return for each item of a list the line above the list that ends with a colon, "" for other sentences."""
    lead, found = "", list[str]()
    for one in sentences:
        found.append(lead if one.is_item else "")
        if not one.is_item:
            words = one.text.strip("*_ ")
            lead = words if words.endswith((":", "：")) and len(words) <= LONGEST else ""
    return found


def _prohibits(lead: str) -> bool:
    """Whether the line above a list forbids its items."""
    words = _lead_words(lead)
    meant = set(_meanings(words))
    is_brief = len(words) <= _FEW_WORDS and meant <= {"negate", "task", "person"}
    return bool(meant & {"forbid", "without"}) or ("negate" in meant and is_brief)


def _lead_words(lead: str) -> list[str]:
    return lead.lower().replace("’", "'").rstrip(":： ").split()


def _lead_features(lead: str) -> Iterator[str]:
    if lead:
        words = _lead_words(lead)[-_LEAD_WORDS:]
        yield "=lead"
        yield from (f"=lead {word}" for word in words)
        yield from (f"=lead @{one}" for one in dict.fromkeys(_meanings(words)))


def _meaning_features(features: Sequence[str]) -> Iterator[str]:
    """Yield what the words of a sentence mean, in whatever language, and in which order; the words are its first features."""
    words = list(takewhile(_is_word, features))
    told = _meanings(words)
    yield from {f"@{one}": None for one in told}
    yield from {f"@{one} @{two}": None for one, two in zip(["^", *told], [*told, "$"], strict=True)}
    yield from (f"=frame {one}" for one in _frames(told))
    if any(first in _NOT and second in _HAVE for first, second in pairwise(words)):
        yield "=frame fails"


#: Spanish and Italian: whoever has not done something is told so, and forbidden nothing.
_NOT, _HAVE = frozenset(("no", "non")), frozenset("he has ha hemos habéis han hai abbiamo avete hanno".split())


def _frames(told: Sequence[str]) -> Iterator[str]:
    """Yield what the meanings of the words of a sentence say together: that something must not break, must stay, must pass without errors."""
    if not told:
        return
    plain = [one for one in told if one != "person"]
    beside = set(pairwise(plain))
    yield from (name for name, pairs in _FRAMES.items() if not beside.isdisjoint(pairs))
    if "ensure" in plain[:2] and "works" not in plain:
        yield "ensured"
    if ("wait", "person") in pairwise(told) and told[0] not in ("person", "ask"):
        yield "asked"
    if "verify" in plain and "trouble" in plain and not _DENIED.isdisjoint(plain):
        yield "passing"


_DENIED = frozenset(("forbid", "negate", "without"))
_HELD = ("every", "must", "keep", "ensure")
#: Meanings that say more together than apart, whatever their order of the language.
_FRAMES = {
    "unharmed": frozenset((one, "damage") for one in _DENIED),
    "untouched": frozenset((one, "touch") for one in (*_DENIED, "only")),
    "held": frozenset((one, two) for one in _HELD for two in _HELD if one != two),
    "in one case": frozenset((("only", "case"), ("case", "only"))),
    "in a language": frozenset((one, "tongue") for one in ("answer", "use", "every", "only", "must")),
    "fails": frozenset((("negate", "works"), ("works", "negate"), ("trouble", "works"))),
}


def _is_word(feature: str) -> bool:
    return feature[:2] != "^ "


def _meanings(words: Iterable[str]) -> list[str]:
    """Return what some words mean, without those that say nothing of rules."""
    told = list[str]()
    for word in words:
        one = _meaning(word)
        if one and (not told or told[-1] != one):
            told.append(one)
    return told


@lru_cache(maxsize=4_096)
def _meaning(word: str) -> str:
    """Return the meaning of a word; of a pair of Chinese, Japanese or Korean characters, the first may say it alone."""
    plain = plain_letters(word)
    if word >= FIRST_CJK:
        return MEANING_OF.get(plain) or MEANING_OF.get(plain[:1], "")
    stems = (f"{plain[:size]}*" for size in _STEMS)
    return MEANING_OF.get(plain) or next((MEANING_OF[stem] for stem in stems if stem in MEANING_OF), "")


def _rule_signs(one: Sentence, mark: DecisionMark | None) -> Iterator[str]:
    words = _POLITE.sub("", one.text.strip("*_ "))
    if mark is not None:
        yield "rule" if mark.binds else "choice"
    if _is_mild_rule(one, orders=False):
        yield "mild"
    signs = {"order": LISTED_ORDER, "case": _ONE_CASE, "correction": CORRECTION}
    yield from (name for name, sign in signs.items() if sign.match(words))
    if _CAPITALS.search(one.text):
        yield "capitals"
    if one.text.isupper() and word_count(one.text) >= _MIN_RULE:
        yield "shouted"


# --- rules of one message ---
def _choose_rules(found: list[_Placed]) -> list[_Placed]:
    """Return the rules of a list for which there is room: first what is strictly forbidden or demanded, then the likeliest."""
    whole = [mark.text for _, mark, _ in found if mark.kind != "list"]
    room, chosen = _RULES_CHARS, list[_Placed]()
    for one in sorted(found, key=lambda one: (not _HARD.search(one[1].text), -one[2], one[0])):
        is_part = one[1].kind == "list" and any(one[1].text in text for text in whole)
        if len(one[1].text) <= room and len(chosen) < MAX_LISTED and not is_part:
            chosen.append(one)
            room -= len(one[1].text)
    return chosen


def _is_mild_rule(sentence: Sentence, orders: bool) -> bool:
    """Whether a sentence limits or prefers something, or gives an order where `orders` are rules."""
    words = sentence.text
    if not _MIN_RULE <= word_count(words) <= _MAX_WORDS or words.endswith("?"):
        return False
    is_order = orders and LISTED_ORDER.match(words.lstrip("*_ ")) is not None
    return is_order or (not words.endswith(":") and LIMIT.search(words) is not None)


def likeness(text: str) -> str:
    """Return a key that is equal for two sentences with the same words."""
    return " ".join(WORD.findall(text.lower()))[:LONGEST]


def sentence_mark(sentence: Sentence) -> DecisionMark | None:
    """Return what the patterns take a sentence of a person for."""
    words = _POLITE.sub("", sentence.text.strip("*_ "))
    if (marker := _MARKER.match(words)) and not (sentence.pasted and marker[1].lower() in _REMARKS):
        return _marker_mark(marker[1].lower(), words[marker.end() :])
    is_question = sentence.text.rstrip("\"'*_) ").endswith("?")
    if is_question or len(words.split()) > _MAX_WORDS or (_ONE_CASE.match(words) and not _CAPITALS.search(words)):
        return None
    excerpt = _excerpt(sentence)
    if (
        STRICT.match(words)
        if sentence.pasted
        else (RULE.search(words) or OTHER_RULE.search(words) or CORRECTION.match(sentence.text))
    ):
        return DecisionMark(excerpt, "imperative", binds=True)
    if not sentence.pasted and CHOICE.search(words):
        return DecisionMark(excerpt, "marker")
    return None


def _excerpt(sentence: Sentence) -> str:
    is_short_item = sentence.is_item and len(sentence.passage) <= _ITEM
    return sentence.passage if is_short_item else one_line(sentence.text, LONGEST)


def _marker_mark(name: str, rest: str) -> DecisionMark | None:
    if not (words := one_line(rest.strip(" *_"), LONGEST)) or _PLACEHOLDER.fullmatch(words):
        return None
    return DecisionMark(words, "marker", binds=name not in (*_DECIDED, *_REMARKS), pinned=name in _PINNED)


#: What a template says of a text that is to stand there.
_PLACEHOLDER = lazy_pattern(r"[\[<{]+[^\[\]<>{}]*[\]>}]+[.;]?")
WORD = lazy_pattern(r"[\w'’]+")
FENCED = lazy_pattern(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_DECIDED = ("decision", "decided", "agreed")
_REMARKS = ("note", "nb", "n.b.", "n.b", "todo")
_PINNED = ("pin", "pinned", "constraint", "rule", "remember")
_MARKER = lazy_pattern(
    r"#?(pin|pinned|constraint|rule|remember|decision|decided|agreed|note|n\.?b\.?|todo|important)(?:\*\*|__)?\s*:(?!:)",
    re.IGNORECASE,
)
#: Polite openings before a request.
_POLITE = lazy_pattern(
    r"^(?:(?:ok(?:ay)?|yes|yeah|yep|nope|hey|hm+|also|and|but|so|then|now|well|actually|please|pls|just|again|first|finally|remember)"
    r"\b[,.!:;]?\s+|no[,.!]\s+)+",
    re.IGNORECASE,
)
#: What is to be done in one case is a tip, not a rule.
_ONE_CASE = lazy_pattern(r"if\b", re.IGNORECASE)
_CAPITALS = lazy_pattern(r"\b(?:NOT(?! NULL\b| EXISTS\b)|NEVER|MUST|ALWAYS)\b")
_HARD = lazy_pattern(
    r"(?:^|[.;:]\s)\W*(?:never|always|do not|don['’]t|must)\b|\b(?-i:NOT|NEVER|MUST|ALWAYS)\b", re.IGNORECASE
)


# --- languages ---
def language_group(text: str) -> str:
    """Return what a text is written in: `wide` (Chinese, Japanese, Korean), `cyrillic`, `latin` (but not English) or `english`."""
    read = text[:_READ]
    if len(_WIDE.findall(read)) * _WIDE_SHARE > len(read):
        return "wide"
    words = _LETTERS.findall(read.lower())
    if sum("\u0400" <= word[0] <= "\u04ff" for word in words) * _CYRILLIC_SHARE > len(words):
        return "cyrillic"
    return "latin" if sum(word in OTHER_LATIN for word in words) > sum(word in ENGLISH for word in words) else "english"


_READ = 1_500  # characters
_WIDE_SHARE, _CYRILLIC_SHARE = 7, 4  # one character, one word of so many
_LETTERS = lazy_pattern(r"[^\W\d_]+")
_WIDE = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def plain_letters(word: str) -> str:
    """Return a word without the accents of Latin letters."""
    if word.isascii() or word >= FIRST_CJK:
        return word
    letters = (one for one in unicodedata.normalize("NFD", word) if not "\u0300" <= one <= "\u0303" and one != "\u0327")
    return unicodedata.normalize("NFC", "".join(letters))


FIRST_CJK = "\u3040"
#: The meaning of a word without accents, of a pair of Chinese, Japanese or Korean characters or of a single one, and of words that begin
#: with a stem (which ends in `*`). Weights that were learnt from sentences in one language hold in others through these meanings.
MEANING_OF = {plain_letters(word): meaning for meaning, words in MEANINGS.items() for word in reversed(words.split())}
_STEMS = range(7, 2, -1)  # characters of a stem
