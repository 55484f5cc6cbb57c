"""Find what was chosen, by the words that state it.

`find_announcements` is for the answer of a model: lines marked `Decision:`. `weigh_choices` is for a person and an agent: it
returns the passages that state what was chosen, by weights learnt from turns in which readers marked them (`choices.json`).
`choose_passages` picks the likeliest. Pure; work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from everturn.derive.decisions import FENCED, LONGEST, MAX_LISTED, MAX_MARKS, DecisionMark
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


def weigh_choices(text: str, by: str, has_acted: bool, seq: int = -1) -> list[ChoicePassage]:
    """Return the passages of a message that state what was chosen, in order; `by` is one of `SPEAKERS`.

    `has_acted` says whether the agent made calls in the turn.
    """
    weights, sentences = load_weights("choices"), list(split_sentences(text))
    least = _REQUESTED if by == "person" else 0.0 if has_acted else _EXPLAINED
    found: dict[str, ChoicePassage] = {}
    for one, features in zip(sentences, choice_features(text, sentences, by, has_acted), strict=True):
        if (weight := sum_weights(features, weights)) >= least:
            words = one.passage if one.is_item and len(one.passage) <= _CHOICE_CHARS else one.text
            if words not in found or found[words].weight < weight:
                found[words] = ChoicePassage(one_line(words.strip("_ "), _CHOICE_CHARS), weight, seq)
    return list(found.values())


_REQUESTED = 1.0  # log-odds from which a sentence of a person is more than a request
_EXPLAINED = 1.2  # log-odds from which one of an answer without a call is more than an explanation
_PROPOSED = 1_000  # characters of what an answer proposes


def find_proposed(text: str, seq: int) -> list[ChoicePassage]:
    """Return the passages of an answer that are choices if the person agrees."""
    return choose_passages(weigh_choices(text, "end", True, seq), _PROPOSED, MAX_LISTED // 2) if text else []


#: Who says something: the person, or the agent between its calls or at the end of the turn.
SPEAKERS = ("person", "between", "end")


def choice_features(text: str, sentences: Sequence[Sentence], by: str, has_acted: bool) -> Iterator[list[str]]:
    """Yield the features by which the sentences of a turn are weighed."""
    marks = [*message_marks(text, sentences), f"=by {by}", f"=acted {has_acted}"]
    for features in sentence_features(sentences, [()] * len(sentences), marks):
        yield [*features, *(f"{by} {name}" for name in features if name[0] == "=" and name.startswith(_BY_SPEAKER))]


#: Features that mean something else in a prompt, between calls and in a report.
_BY_SPEAKER = ("=begins", "=left", "=first", "=item", "=head", "=words")


def choose_passages(passages: Iterable[ChoicePassage], room: int, most: int = MAX_MARKS) -> list[ChoicePassage]:
    """Return the strongest passages that fit into so many characters, in their order."""
    ranked = sorted(enumerate(passages), key=lambda one: (-one[1].weight, one[0]))
    chosen: list[tuple[int, ChoicePassage]] = []
    for number, one in ranked:
        if one.weight >= 0 and len(one.text) <= room and len(chosen) < most:
            chosen.append((number, one))
            room -= len(one.text)
    return [one for _, one in sorted(chosen, key=lambda pair: pair[0])]


def states_choice(text: str) -> bool:
    """Whether a short text sounds as if something were decided in it. Rougher than the others: to prefer, not to report."""
    return CHOSEN.search(text) is not None


_ANNOUNCED = lazy_pattern(r"^[ \t>*_#-]{0,8}(?:Decision|Decided)(?:\*\*|__)?:(?:\*\*|__)?[ \t]*(\S.{0,2000})$", re.M)
