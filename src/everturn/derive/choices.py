"""Find what was chosen, by the words that state it.

`find_announcements` is for the answer of a model: lines marked `Decision:`. `find_choices` is for a turn: it returns the
passages of person and agent that most likely state what was chosen, by weights learnt from turns and sessions in which readers marked
them (`choices.json`). `find_proposed` is for an answer to which a person may agree. Pure; work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct

from everturn.derive.decisions import FENCED, LONGEST, MAX_LISTED, MAX_MARKS, DecisionMark, likeness
from everturn.derive.intent import topic_words
from everturn.derive.open_sentences import load_weights, message_marks, sentence_features, sum_weights
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import CHOSEN

_CHOICE_CHARS = 400


def find_announcements(text: str) -> list[DecisionMark]:
    """Return the decisions that a model marked as such, one per line."""
    announced = (one_line(found[1].strip(" *_"), LONGEST) for found in _ANNOUNCED.finditer(FENCED.sub("\n", text)))
    return [DecisionMark(words, "marker") for words in announced if words][:MAX_MARKS]


class ChoicePassage(Struct, frozen=True):
    """A sentence or a list item of a message, and the log-odds that it states a choice."""

    text: str
    weight: float
    seq: int = -1


class Spoken(Struct, frozen=True):
    """A message of a turn; `by` is one of `SPEAKERS`."""

    text: str
    seq: int
    by: str


def find_choices(messages: Iterable[Spoken], acted: bool, changed: bool, told: Container[str]) -> list[ChoicePassage]:
    """Return what a turn says was chosen, in order, if anything in it says so clearly enough.

    `acted` and `changed` say whether the agent made calls and changed files; without a change more is needed. `told` are the keys
    (`decisions.likeness`) of what is told elsewhere.
    """
    weighed, is_answered = list[ChoicePassage](), False
    for one in messages:
        found = weigh_choices(one.text, one.by, acted, one.seq)
        weighed += found
        is_answered = is_answered or (one.by != "person" and bool(found))
    least = _ALONE if not is_answered else _LIKELY if changed else _CLEAR
    if max((one.weight for one in weighed), default=-1.0) < least:
        return []
    return choose_passages((one for one in weighed if likeness(one.text) not in told), _ROOM, _MOST)


def weigh_choices(text: str, by: str, acted: bool, seq: int = -1, least: float = 0.0) -> list[ChoicePassage]:
    """Return the passages of a message that state what was chosen with at least so much weight, in order."""
    sentences = list(split_sentences(text))
    if by == "person" and len(sentences) >= _LONG:
        return []
    weights, found = load_weights("choices"), dict[str, ChoicePassage]()
    for one, features in zip(sentences, choice_features(text, sentences, by, acted), strict=True):
        if (weight := sum_weights(features, weights) - _doubt(one, by, len(sentences))) >= least:
            words = one.passage if one.is_item and len(one.passage) <= _CHOICE_CHARS else one.text
            if words not in found or found[words].weight < weight:
                found[words] = ChoicePassage(one_line(words.strip("_ "), _CHOICE_CHARS), weight, seq)
    return list(found.values())


def _doubt(one: Sentence, by: str, sentences: int) -> float:
    """Return what speaks against a sentence besides its words: most of what a person writes is a request, and long answers explain."""
    if by != "person":
        return _EXPLAINED if sentences >= _LONG else 0.0
    return _REQUESTED + _PASTED * one.pasted + _LISTED * one.is_item


_LIKELY, _CLEAR = 0.6, 1.3  # weight that the likeliest passage needs in a turn that changed files, and in another one
_ALONE = 2.5  # weight that the words of a person need if no answer says what was chosen: else they only request
_ROOM, _MOST = 1_800, 12  # bytes and passages of a turn
_LONG = 32  # sentences: a prompt of so many is a document, and such an answer explains
_REQUESTED, _PASTED, _LISTED = 0.8, 0.8, 0.6  # of a person: any sentence, one of pasted text, one of a list
_EXPLAINED = 0.5
_PROPOSED, _AGREED = 1_200, -2.5  # bytes of what an answer proposes, and the weight that a passage of it needs


def find_proposed(text: str, seq: int) -> list[ChoicePassage]:
    """Return the passages of an answer that are choices if the person agrees: its likeliest, even if none is likely by itself."""
    if not text:
        return []
    return choose_passages(weigh_choices(text, "end", True, seq, _AGREED), _PROPOSED, MAX_LISTED // 2)


#: Who says something: the person, or the agent between its calls or at the end of the turn.
SPEAKERS = ("person", "between", "end")


def choice_features(text: str, sentences: Sequence[Sentence], by: str, has_acted: bool) -> Iterator[list[str]]:
    """Yield the features by which the sentences of a turn are weighed."""
    marks = [*message_marks(text, sentences), f"=by {by}", f"=acted {has_acted}"]
    for features in sentence_features(sentences, [()] * len(sentences), marks):
        yield [*features, *(f"{by} {name}" for name in features if name[0] == "=" and name.startswith(_BY_SPEAKER))]


#: Features that mean something else in a prompt, between calls and in a report.
_BY_SPEAKER = ("=begins", "=left", "=first", "=item", "=head", "=words")


def choose_passages(passages: Iterable[ChoicePassage], room: int, most: int) -> list[ChoicePassage]:
    """Return the strongest passages that fit into so many bytes, in their order; of those that say the same, the last."""
    ranked = sorted(enumerate(passages), key=lambda one: (-one[1].weight, one[0]))
    chosen: list[tuple[int, ChoicePassage, frozenset[str]]] = []
    for number, one in ranked:
        words = topic_words(one.text)
        same = next((at for at, other in enumerate(chosen) if _say_same(words, other[2])), None)
        if same is not None:
            longer = choice_size(one.text) - choice_size(chosen[same][1].text)
            if number > chosen[same][0] and longer <= room:
                chosen[same], room = (number, one, words), room - longer
        elif choice_size(one.text) <= room and len(chosen) < most:
            chosen.append((number, one, words))
            room -= choice_size(one.text)
    return [one for _, one, _ in sorted(chosen, key=lambda entry: entry[0])]


def choice_size(text: str) -> int:
    """Return the bytes of a text: they follow the room that it takes in any language."""
    return len(text.encode())


def _say_same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two passages share nearly all words that say what they are about."""
    fewer = min(len(words), len(others))
    return fewer >= _FEWEST_WORDS and len(words & others) >= _SAME_SHARE * max(len(words), len(others))


_FEWEST_WORDS, _SAME_SHARE = 3, 0.8


def states_choice(text: str) -> bool:
    """Whether a short text sounds as if something were decided in it. Rougher than the others: to prefer, not to report."""
    return CHOSEN.search(text) is not None


_ANNOUNCED = lazy_pattern(r"^[ \t>*_#-]{0,8}(?:Decision|Decided)(?:\*\*|__)?:(?:\*\*|__)?[ \t]*(\S.{0,2000})$", re.M)
