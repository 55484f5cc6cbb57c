"""Affirmation and denial in sentences, in English, German, French, Spanish, Japanese and Chinese.

`read_phrases` splits a text into phrases: "keep tokens in PostgreSQL, not in Redis" affirms one and denies the other. A negation
reaches from its word to the end of the clause; where a language puts it after the verb, it covers the clause. A second
negation lifts the first. What is optional ("not necessary", "no need to") is neither demanded nor forbidden.
`find_opposite` finds a phrase of a statement that another text turns round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from everturn.restore.claim_language import find_language
from everturn.restore.evidence import normalise_quotes
from everturn.restore.grounds import all_stems, stems
from everturn.text.stance_words import DENIAL, DENIED_CLAUSE, NO_NEGATION, OPTIONAL
from everturn.text.statement_words import IN_PLACE_OF, OPPOSITES, STILL

_LEAST_ABOUT = 0.35  # share of the words of a statement that a sentence about the same thing has
_PREFIX = 5  # letters that two forms of a word have in common
_BEGINNING, _COMPOUND = 4, 7  # letters of a word that begins a compound, and of the compound
_LEAST_SHARE = 0.5  # share of the words of a phrase that the opposite one must have

_SHORT = 3  # words of a phrase of which none may be missing in what turns it round
_LEAST_OF_SHORT, _LEAST_COMMON = 0.7, 3  # share and number of the words of a short phrase that a longer one turns round

_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
_CLAUSE = re.compile(
    r"[.;:!?](?=\s|$)|,(?=\s)|[，、；\"“”„«»「」『』()（）]|\s[–-]\s|—"
    r"|\s(?:and|und|et|y|e)\s(?=[^,.;:!?]{0,40}?\b(?:is|are|was|were|must|should|shall|may|can|will|ist|sind|wird|muss|soll|darf|est|sont|doit|peut|es|son|debe|puede|deve|são)\b)"
    r"|\s(?:and|but|und|et|y|e)\s(?=(?:not|no|never|nicht|kein\w*|pas|non|não)\b)"
    r"|\b(?=(?:because|since|although|whereas|weil|obwohl|parce qu|puisqu|bien qu|porque|ya que|aunque|embora|along with|besides|in addition to|despite|in spite of|trotz|malgré|a pesar de|apesar de)\b)|(?=因为|因為|虽然|雖然)"
    r"|\b(?=but\b|however\b|sondern\b|aber\b|(?<!sem )(?<!não )(?<!o )mais\b|pero\b|sino\b)|(?=但是|而是)",
    re.I,
)
#: A quotation of a few words is a name in its clause, not a clause of its own.
_SHORT_QUOTATION = re.compile(r"[\"“„«「『]((?:[^\"“”„«»「」『』\s]{1,30}\s?){1,3})[\"”“»」』]")
#: "Ready to merge: No" denies what it asks.
_ANSWERED_NO = re.compile(
    r"([^\W\d_][^.:：?？\n|]{3,80})[:：?？|][\s*_']{0,6}(?:no|nein|non|não|いいえ|否|❌|✗|아니)(?![\w-])(?! (?:\w+ ){0,2}(?:changes?|errors?))",
    re.I,
)
_NONE = re.compile(
    r"(?:^|(?<=[(/|,;:])|(?<=[(/|,;:] )|(?<=\bwith )|(?<=\bhas )|(?<=\bhad )|(?<=\bfound )|(?<=\bare ))(?:0|zero) (?=[a-z]{3})",
    re.I,
)
_RUSSIAN = re.compile(r"\bне(правильн|верн|корректн|исправн|рабоч)", re.I)
#: "A, not B" of Chinese and Japanese, in the order of the clause.
_CJK_CONTRASTS = (
    (re.compile(r"([^。，、；]{1,60})(?:而不是|而非)([^。，、；]{1,60})"), r"\1 instead of \2"),
    (re.compile(r"([^。，、；]{1,60})(?:ではなく|じゃなく|の代わりに)て?[、,]?([^。、]{1,60})"), r"\2 instead of \1"),
)
_PREFIXED = re.compile(
    r"\bun(verified|tested|changed|committed|staged|finished|resolved|supported|available|handled|published|released|implemented|documented|reachable|checked|answered|reviewed|known|defined|recogni[sz]ed|authori[sz]ed|related|affected|expected)\b",
    re.I,
)
_MODAL = re.compile(
    r"\b(?:always|must|required?|requires|mandatory|insists?|immer|muss|d[aü]rf(?:en|st)?|toujours|doit|il (?:ne )?faut|siempre|debe|hay que|(?:is|are) (?:fine|okay|ok|welcome|acceptable|possible|good|encouraged)|feel free|allow(?:s|ed)?|permit(?:s|ted)?|erlaubt?|autorisée?s?|permitid[oa]s?|necessary)\b"
    r"|允许|可以|必须|应该|应当|需要|禁止|不得|许可|許可|必ず|べき",
    re.I,
)

_STANCE = re.compile(
    r"\b(?:missing|absent|never|forb[ia]d\w*|prohibit\w*|ban(?:s|ned)|disallow\w*|avoid\w*|refus\w+|reject\w*|without|instead|necessary|optional|off[- ]limits|need(?:s|ed)?|verb(?:iet|ot)\w*|erlaub\w*|untersagt?"
    r"|niemals|jamais|interdi\w+|nunca|prohib\w+)\b",
    re.I,
)
#: Contrasts without a negation, and the same with one: "MariaDB over DuckDB", "from DuckDB to MariaDB", "MariaDB replaces DuckDB".
_CONTRASTS = (
    (re.compile(r"\b((?:choo?se[ns]?|prefer\w*|favou?r\w*|pick(?:s|ed)?|select(?:s|ed)?)\b[^,;.]{1,40}?)\sover\s", re.I), r"\1 instead of "),
    (re.compile(r"\b((?:switch|mov|migrat|chang)\w*)\s+(?:\w+\s+){0,4}from\s+(.{2,40}?)\s+to\s+(.+)", re.I), r"\1 to \3 instead of \2"),
    (re.compile(r"(.+?)\s+(?:(?:is|are|was|were|has been|have been)\s+)?replaced (?:by|with)\s+(.+)", re.I), r"\2 instead of \1"),
    (re.compile(r"\breplac(?:es|ed|ing)\b", re.I), "instead of"),
    (re.compile(r"\b(?:left|kept|stay(?:s|ed)?|remain(?:s|ed)?)\s+(?:completely\s+)?(?:alone|untouched|unchanged|as (?:it|they) (?:was|were|is|are))", re.I), "not changed"),
)  # fmt: skip


class Phrase(Struct, frozen=True):
    """A part of a sentence that is affirmed or denied as a whole."""

    text: str
    denied: bool
    optional: bool
    words: frozenset[str]
    names: frozenset[str]  # the significant ones of the words
    refused: frozenset[str] = frozenset()  # the first words behind the negation, which it is about


def split_sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE.split(text) if one.strip()]


def split_clauses(sentence: str) -> list[str]:
    return [one.strip() for one in _CLAUSE.split(sentence) if one and one.strip()]


@lru_cache(2_048)
def read_phrases(text: str) -> tuple[Phrase, ...]:
    """Return the phrases of a text that have words."""
    text = _hide_options(text.replace("()", ""))
    for pattern, contrast in _CJK_CONTRASTS:
        text = pattern.sub(contrast, text)
    text = _NONE.sub("no ", text)
    text = _RUSSIAN.sub(r"не \1", _PREFIXED.sub(r"not \1", text))
    text = _ANSWERED_NO.sub(r"not \1", _SHORT_QUOTATION.sub(r"\1", text))
    found = (phrase for clause in split_clauses(text) for phrase in _clause_phrases(clause))
    return tuple(one for one in found if one.words)


def is_denied(before: str, clause: str) -> bool:
    """Whether a word is denied, by the text before it in its clause or by the clause."""
    clause, before = _hide_options(clause), _hide_options(before)
    clause, before = NO_NEGATION.sub(" ", clause), NO_NEGATION.sub(" ", before)
    return bool(DENIED_CLAUSE.search(clause)) != (len(DENIAL.findall(before)) % 2 == 1)


def _hide_options(text: str) -> str:
    """Blank out what is no negation: the "no" of an option (`--no-cache`), and that of Portuguese, which is "in the"."""
    text = _OPTION.sub(" option ", text)
    return _PORTUGUESE_IN.sub("em", text) if find_language(text) == "pt" else text


_OPTION = re.compile(r"(?<![\w-])--?no-[\w-]+", re.I)
_PORTUGUESE_IN = re.compile(r"\bno\b(?=\s+[^\W\d_])", re.I)


def hide_stance(text: str) -> str:
    """Blank out the words that demand, allow, forbid or deny. They are compared by what they do, not as words."""
    return DENIAL.sub(" ", _STANCE.sub(" ", _MODAL.sub(" ", text)))


def _clause_phrases(clause: str) -> Iterable[Phrase]:
    clause = NO_NEGATION.sub(" ", clause)
    clause = write_contrast(clause)
    if found := OPTIONAL.search(clause):
        yield _phrase(clause.replace(found[0], " "), False, True)
        return
    denied = bool(DENIED_CLAUSE.search(clause))
    if denied:
        clause = DENIED_CLAUSE.sub(lambda match: _INNER_DENIAL.sub(" ", match[0]), clause)
    inner = list(DENIAL.finditer(clause))
    if denied + len(inner) == 2:  # "never commit without a test" demands a test
        yield _phrase(DENIAL.sub(" ", clause), False)
        return
    yield from _parts_between(clause, inner, denied)


def write_contrast(clause: str) -> str:
    """Write a contrast without a negation as one with it: "MariaDB over DuckDB" as "MariaDB instead of DuckDB"."""
    for pattern, contrast in _CONTRASTS:
        clause = pattern.sub(contrast, clause)
    return clause


def _parts_between(clause: str, denials: Sequence[re.Match[str]], denied: bool) -> Iterable[Phrase]:
    """Yield the parts of a clause between its negations, each affirmed or denied."""
    at, subject = 0, ""
    for match in denials:
        before = clause[at : match.start()]
        if match[0].lower() in _NOBODY and not clause[match.end() :].strip(" .'"):  # "it returns nothing"
            yield _phrase(f"{subject} {before}", not denied, behind=before)
            return
        if denied:
            yield _phrase(f"{subject} {before}", True, behind=before)
            subject = ""
        elif _denies_verb(clause, match):  # "the token must never be logged" denies it of the token
            subject = before
        else:
            yield _phrase(before, denied)
        denied, at = not denied, match.end()
    yield _phrase(f"{subject} {clause[at:]}", denied, behind=clause[at:] if at else "")


def _denies_verb(clause: str, denial: re.Match[str]) -> bool:
    """Whether a negation belongs to the verb of what stands before it: "the token must never be logged", "secrets não existem"."""
    before, after = clause[: denial.start()], clause[denial.end() :]
    if _SUBJECT_END.search(before) or denial[0].lower().endswith(("n't", "n’t", "cannot")):
        return True
    if denial[0].lower() == "no" and _SPANISH_VERB.match(after):
        return True
    known = denial[0].lower() in ("não", "nao", "nunca", "never", "no longer", "niemals", "nie", "не", "нет")
    return known and 0 < len(before.split()) <= _LONGEST_SUBJECT and not _PREPOSITION.match(after)


_SPANISH_VERB = re.compile(
    r"\s+(?:se|es|está|están|hay|ha|han|lo|los|la|las|le|les|me|te|nos|son|fue|fueron|era|tiene|tienen|puede|pueden|debe|deben|existen?|funcionan?|aparecen?)\b",
    re.I,
)
_NOBODY = ("nothing", "none", "nobody", "nichts", "rien", "nada")
_LONGEST_SUBJECT = 5  # words
_PREPOSITION = re.compile(r"\s*(?:to|in|on|for|with|by|from|at|as|into|para|em|com|en|con|auf|in|mit|für)\b", re.I)
_SUBJECT_END = re.compile(
    r"\b(?:must|should|shall|may|can|could|will|would|is|are|was|were|has to|have to|do|does|did|has|have|had)\s*$",
    re.I,
)


_INNER_DENIAL = re.compile(
    r"\b(?:not|n['’]t|nicht|kein\w*|jamais|forbidden|prohibited|banned|rejected|refused|avoided|skipped|omitted|ruled out|verboten|untersagt|interdit|prohibido|proibid[oa])\b|n['’]t\b",
    re.I,
)


def _phrase(text: str, denied: bool, optional: bool = False, behind: str = "") -> Phrase:
    refused = frozenset[str]()
    for word in _MODAL.sub(" ", behind).split() if denied else ():
        if len(refused) < _REFUSED_WORDS:
            refused |= all_stems(word)
    return Phrase(text.strip(), denied, optional, all_stems(_MODAL.sub(" ", text)), stems(text), refused)


_REFUSED_WORDS = 2  # words behind a negation that it is most likely about


def find_opposite(said: Sequence[Phrase], recorded: Sequence[Phrase], least: float = _LEAST_SHARE) -> Phrase | None:
    """Return the phrase that the record turns round; None if it agrees, or speaks of something else."""
    whole = [one for one in said if len(said) == 1 or len(one.words) > 1 or one.denied or one.optional]
    for phrase in whole:  # a single word is a part of an enumeration
        same = max((_share(phrase, one) for one in recorded if _agrees(phrase, one)), default=0.0)
        against = [one for one in recorded if not _agrees(phrase, one) and _refuses(phrase, one)]
        opposite = max((max(_share(phrase, one), _share_of_short(phrase, one)) for one in against), default=0.0)
        if opposite >= (1 if len(phrase.words) < _SHORT else least) and opposite > same:
            return phrase
    return None


def find_turned_code(said: Sequence[Phrase], text: str, recorded: Sequence[Phrase]) -> str:
    """Return the code in a statement of which every phrase of the record that has it says the opposite; "" if none.

    It serves statements in another language than the record, whose other words cannot be compared.
    """
    for code in _CODE.findall(text):
        bare = normalise_quotes(code).strip("' ")
        own = {phrase.denied for phrase in said if _has_word(bare, phrase.text)}
        there = {phrase.denied for phrase in recorded if _has_word(bare, phrase.text)}
        if own and len(there) == 1 and own != there:
            return str(code)
    return ""


_CODE = re.compile(r"`([^`\n]{2,80})`")


def find_denied_choice(said: Sequence[Phrase], recorded: Sequence[Phrase]) -> Phrase | None:
    """Return the phrase that affirms what one sentence of the record denies beside an alternative it does not name.

    "We keep tokens in Redis" against "keep tokens in PostgreSQL, not in Redis". A statement that names the alternative too
    tells how the choice went.
    """
    affirmed = frozenset[str]().union(*(one.words for one in recorded if not one.denied))
    told = frozenset[str]().union(*(one.words for one in said))
    for denied in (one for one in recorded if one.denied and one.names):
        alternatives = affirmed - denied.words
        for phrase in said:
            covered = not phrase.denied and denied.words <= phrase.words
            if covered and told & alternatives and not _names_of(recorded) - denied.names <= told:
                return phrase
    return None


def _names_of(recorded: Sequence[Phrase]) -> frozenset[str]:
    return frozenset[str]().union(*(one.names for one in recorded if not one.denied))


def _share(phrase: Phrase, other: Phrase) -> float:
    return _count_common(phrase.words, other.words) / len(phrase.words)


def _count_common(words: frozenset[str], others: frozenset[str]) -> int:
    """Count the words that others have too, perhaps in another form or as the beginning of a compound: chat, chatbot."""
    alike = {one[:_PREFIX] for one in others if len(one) >= _PREFIX and one.isalpha()}
    alike |= {one[:_BEGINNING] for one in others if len(one) >= _COMPOUND and one.isalpha()}
    return sum(one in others or (one.isalpha() and one[:_PREFIX] in alike) for one in words)


def _share_of_short(phrase: Phrase, other: Phrase) -> float:
    """Return the share of the words that the record denies which a longer phrase of a statement has; 0 if it is too small."""
    if not other.denied or any(len(one) == 1 for one in other.words):  # characters of Chinese and Japanese
        return 0.0
    share = _share(other, phrase)
    return share if share >= _LEAST_OF_SHORT and share * len(other.words) >= _LEAST_COMMON else 0.0


def _agrees(phrase: Phrase, other: Phrase) -> bool:
    return phrase.denied == other.denied and phrase.optional == other.optional


_LACKS = re.compile(
    r"\b(?:missing|absent|lack(?:s|ing)?|unavailable|unknown|invalid|empty|unable|refused|fail\w*|remov\w+|delet\w+|dropp?\w*|replac\w+|fehl(?:t|en|end\w*)|manqu\w+|falta\w*|ausente)\b|缺|不足|空の",
    re.I,
)


def _refuses(phrase: Phrase, other: Phrase) -> bool:
    """Whether what the one denies is what the other speaks of."""
    denied, affirmed = (phrase, other) if phrase.denied else (other, phrase)
    if _LACKS.search(affirmed.text):  # "the module is missing" agrees with "no such module"
        return False
    if not denied.refused or not denied.refused.isdisjoint(affirmed.words):
        return True
    return any(len(one) == _BEGINNING and word.startswith(one) for one in denied.refused for word in affirmed.words)


# --- words that rule each other out, and values that were replaced ---
def find_opposite_words(text: str, sentences: Sequence[str], foreign: bool = False) -> str:
    """Return the sentence of the record that says of the same thing what rules out a statement; "" if none does.

    "Keep the labels" against "remove the labels". A sentence that has both words, or the same one, tells how it went.
    """
    for one, other in OPPOSITES:
        stance = _word_stance(text, one, other)
        if len(stance) != 1:
            continue
        about = stems(other.sub(" ", one.sub(" ", text)))
        least = 1 if foreign else max(2, _LEAST_ABOUT * len(about))
        near = [single for single in sentences if len(about & stems(single)) >= least]
        stances = [(single, _word_stance(single, one, other)) for single in near]
        against = [single for single, there in stances if there and stance.isdisjoint(there)]
        if against and not any(stance & there for _, there in stances):
            return str(against[0])
    return ""


def _word_stance(text: str, one: re.Pattern[str], other: re.Pattern[str]) -> frozenset[bool]:
    """Return whether a text says the one or the other of two words that rule each other out, clause by clause."""
    return frozenset(
        is_denied(clause[: match.start()], f"{clause[: match.start()]} {clause[match.end() :]}") != is_one
        for clause in map(write_contrast, split_clauses(text))
        for is_one, word in ((True, one), (False, other))
        if (match := word.search(clause))
    )


def find_swapped(text: str, recorded: str) -> str:
    """Return what a statement takes for new that the record takes for old, as in "10.00 instead of 10"; "" if nothing."""
    here, there = set(_replacements(text)), set(_replacements(recorded))
    for old, new in here:
        if (new, old) in there:
            return new
    for old, new in there if STILL.search(text) and not here else ():
        if _has_word(old, text) and not _has_word(new, text):
            return old
    return ""


_MARKS = re.compile(r"[*_'\"`“”„«»「」『』（）()]")
_END = r"([^\s,;.。，、]{1,40}(?:[.,][^\s,;.。，、]{1,20})?)"
_INSTEAD = re.compile(rf"{_END},?\s*(?:{IN_PLACE_OF.pattern})\s*{_END}", re.I)
_CHANGED = re.compile(
    rf"\b(?:from|von|de|du)\s+{_END}\s+(?:to|auf|zu|à|a|para)\s+{_END}|(?:由|从|從)\s*{_END}\s*(?:改为|改成|变为|换成|改為)\s*{_END}"
    rf"|{_END}\s*から\s*{_END}\s*(?:へ|に)|{_END}\s+(?:→|->|=>)\s+{_END}",
    re.I,
)


def _replacements(text: str) -> Iterable[tuple[str, str]]:
    """Yield (old, new) for what a text replaces."""
    text = _MARKS.sub("", text)
    yield from ((match[2].lower(), match[1].lower()) for match in _INSTEAD.finditer(text))
    for match in _CHANGED.finditer(text):
        old, new = (one.lower() for one in match.groups() if one)
        yield old, new


def _has_word(word: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(word)}(?![\w])", _MARKS.sub("", text), re.I))
