"""Find what was chosen, by the words that state it.

`find_announcements` is for the answer of a model: lines marked `Decision:`. `find_choices` is for a turn: it returns the
passages of person and agent that most likely state what was chosen, by weights learnt from turns and sessions in which readers marked
them: first by their words (`choices.json`), then by their place (`choice_places.json`, `python -m benchmarks.restore.choice_weights`). `find_proposed` is for an answer to which a person may agree. Pure; work is linear.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import FENCED, LONGEST, MAX_LISTED, MAX_MARKS, DecisionMark, likeness
from everturn.derive.intent import is_approval, topic_words
from everturn.derive.open_sentences import is_question, load_weights, message_marks, sentence_features, sum_weights
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import ANNOUNCED, ASKS_TO_CHECK, CHOSEN, LEFT_TO_DO, WOULD_BE

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
    in_steps: bool = False  # it stands below a heading of steps, tests or usage


class Spoken(Struct, frozen=True):
    """A message of a turn; `by` is one of `SPEAKERS`."""

    text: str
    seq: int
    by: str


_FAINT, _RATED = -1.2, 24  # weight of its words that a passage of a turn needs to be rated, and how many are
POSSIBLE = -4.5  #: log-odds that a passage of a turn needs to be kept
STATED = -1.85  #: log-odds that make it a choice whatever the session
_ASKED = 1.5  # log-odds taken from what a person writes: most of it is a request, which is told elsewhere
_BEGUN = 0.7  # and from what announces the next call: the report of the same work says what came of it
_ROOM, _MOST = 2_400, 10  # bytes and passages of a turn
#: Turns between which the length of a session counts: in a shorter one a report of routine work would stand out.
_FEW_TURNS, _LONG_SESSION = 8, 20
_BRIEF_REPLY = 80  # characters
_FEW_TOPICS = 5  # words that say what a passage is about
_TICKED = lazy_pattern(r"[^\w`\"']{0,3}[✅❌✓✔🎉⚠]")


class SpokenTurn(Struct, frozen=True):
    """What was said in a turn, in order, the messages with calls, and whether files were changed."""

    messages: tuple[Spoken, ...]
    calls: tuple[int, ...] = ()
    changed: bool = False


def find_choices(turn: SpokenTurn, told: Container[str] = ()) -> list[ChoicePassage]:
    """Return the passages of a turn that may state what was chosen, in order, with the log-odds that they do.

    What decides besides their words is their place: who says it, what follows, and whether files were changed. `told` are the keys
    (`decisions.likeness`) of what is told elsewhere.
    """
    rated = (one for one in _rate_passages(turn, _FAINT) if one.weight >= POSSIBLE and not one.in_steps)
    stated = (one for one in rated if likeness(one.text) not in told and not LEFT_TO_DO.search(one.text))
    return choose_passages(stated, _ROOM, _MOST)


def _rate_passages(turn: SpokenTurn, least: float) -> Iterator[ChoicePassage]:
    weights = load_weights("choice_places")
    for one, features in place_features(turn, least):
        yield replace(one, weight=round(sum(weights.get(name, 0.0) * value for name, value in features), 2))


def place_features(turn: SpokenTurn, least: float = _FAINT) -> Iterator[tuple[ChoicePassage, list[tuple[str, float]]]]:
    """Yield the likeliest passages of a turn by their words, and the features by which they are rated, with their values."""
    found = [
        (passage, one.by)
        for one in turn.messages
        for passage in weigh_choices(one.text, one.by, bool(turn.calls), one.seq, least)
    ]
    ranked = sorted(range(len(found)), key=lambda at: -found[at][0].weight)[:_RATED]
    asked = frozenset[str]().union(*(topic_words(one.text) for one in turn.messages if one.by == "person"))
    shown = {found[at][0].seq for at in ranked}
    headings = {one.seq: _count_headings(one.text) for one in turn.messages if one.seq in shown}
    likeliest = found[ranked[0]][0].weight if ranked else 0.0
    for rank, at in sorted(enumerate(ranked), key=lambda pair: pair[1]):
        passage, by = found[at]
        yield (
            passage,
            [
                ("bias", 1.0),
                ("words", passage.weight),
                ("rank", math.log1p(rank)),
                (by, 1.0),
                (f"{by} words", passage.weight),
                ("changed", float(turn.changed)),
                ("quoted", float("`" in passage.text)),
                ("calls after", math.log1p(sum(seq > passage.seq for seq in turn.calls))),
                ("calls", math.log1p(len(turn.calls))),
                ("candidates", math.log1p(len(ranked))),
                ("behind", likeliest - passage.weight),
                ("headings", math.log1p(headings[passage.seq])),
                ("in steps", float(passage.in_steps)),
                ("asked for", _share(topic_words(passage.text), asked)),
                *_manner(passage.text),
            ],
        )


def _count_headings(text: str) -> int:
    return len({one.heading for one in split_sentences(text) if one.heading})


def _share(words: frozenset[str], others: Container[str]) -> float:
    return sum(word in others for word in words) / max(1, len(words))


def _manner(text: str) -> Iterator[tuple[str, float]]:
    """Yield how a passage is put, as far as that speaks for or against it in any place."""
    yield "asks", float(is_question(text))
    yield "leads on", float(text.rstrip("*_ ").endswith((":", "：")))
    yield "ticked", float(_TICKED.match(text) is not None)
    yield "would", float(WOULD_BE.search(text) is not None)
    yield "few words", float(len(topic_words(text)) < _FEW_TOPICS)
    yield "asks to check", float(ASKS_TO_CHECK.search(text) is not None)


class PlacedChoice(Struct, frozen=True):
    """A passage of a session: its turn, its weight by the turn, and whether the next message of the person reports trouble."""

    text: str
    turn: int
    weight: float
    by_person: bool = False
    denied: bool = False


def choice_odds(passages: Sequence[PlacedChoice], prompts: Iterable[tuple[int, str]], turns: int) -> list[float]:
    """Return the log-odds that the passages of a session, in order, state what was chosen in it; `prompts` with their turns, in order."""
    weights = load_weights("choice_places")
    return [
        sum(weights.get(name, 0.0) * value for name, value in features)
        - _ASKED * one.by_person
        - _BEGUN * (ANNOUNCED.match(one.text) is not None)
        for one, features in zip(passages, session_features(passages, prompts, turns), strict=True)
    ]


def session_features(
    passages: Sequence[PlacedChoice], prompts: Iterable[tuple[int, str]], turns: int
) -> list[list[tuple[str, float]]]:
    """Return the features by which passages are rated in their session: how late, beside which others, and what is said later."""
    asked = _LaterWords(prompts)
    said = _LaterWords((one.turn, one.text) for one in passages if not one.by_person)
    ranked = sorted(-one.weight for one in passages)
    long = math.log1p(max(_FEW_TURNS, min(turns, _LONG_SESSION)))
    found = []
    for one in passages:
        words, ahead = topic_words(one.text), bisect_left(ranked, -one.weight)
        features = [
            ("session", 1.0),
            ("odds", one.weight),
            ("late", one.turn / max(1, turns)),
            ("turns left", math.log1p(max(0, turns - 1 - one.turn))),
            ("turns", long),
            ("passages", math.log1p(len(passages))),
            ("ahead", math.log1p(ahead)),
            ("share ahead", ahead / len(passages)),
            ("asked later", asked.share(words, one.turn)),
            ("said later", said.share(words, one.turn)),
            ("said before", said.share_before(words, one.turn)),
            ("denied", float(one.denied)),
            *asked.reply_features(one.turn),
        ]
        found.append(features)
    return found


class _LaterWords:
    """The last and the first turn in which words are said, and the texts of each turn."""

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        for turn, text in texts:
            self._texts.setdefault(turn, text)
            for word in topic_words(text):
                self._first.setdefault(word, turn)
                self._last[word] = turn
        self._turns = sorted(self._texts)

    def share(self, words: frozenset[str], turn: int) -> float:
        """Return the share of some words that are said after a turn."""
        return sum(self._last.get(word, -1) > turn for word in words) / max(1, len(words))

    def share_before(self, words: frozenset[str], turn: int) -> float:
        return sum(self._first.get(word, turn) < turn for word in words) / max(1, len(words))

    def reply_features(self, turn: int) -> Iterator[tuple[str, float]]:
        """Yield how the person goes on after a turn."""
        at = bisect_right(self._turns, turn)
        text = self._texts[self._turns[at]].strip() if at < len(self._turns) else ""
        yield "last word", float(not text)
        yield "brief reply", float(0 < len(text) < _BRIEF_REPLY)
        yield "approved", float(bool(text) and is_approval(text))


def weigh_choices(text: str, by: str, acted: bool, seq: int = -1, least: float = 0.0) -> list[ChoicePassage]:
    """Return the passages of a message that state what was chosen with at least so much weight, in order."""
    sentences = list(split_sentences(text))
    if by == "person" and len(sentences) >= _LONG:
        return []
    weights, found = load_weights("choices"), dict[str, ChoicePassage]()
    for one, features in zip(sentences, choice_features(text, sentences, by, acted), strict=True):
        if (weight := sum_weights(features, weights) - _doubt(one, by, len(sentences))) >= least:
            words = one.passage if one.is_item and len(one.passage) <= _CHOICE_CHARS else one.text
            words = _RUN_OF_TITLES.sub("", words)
            if words and (words not in found or found[words].weight < weight):
                in_steps = by != "person" and _IN_STEPS.search(one.heading) is not None
                found[words] = ChoicePassage(one_line(words.strip("_ "), _CHOICE_CHARS), weight, seq, in_steps)
    return list(found.values())


def _doubt(one: Sentence, by: str, sentences: int) -> float:
    """Return what speaks against a sentence besides its words: most of what a person writes is a request, and long answers explain."""
    if by != "person":
        return _EXPLAINED if sentences >= _LONG else 0.0
    return _REQUESTED + _PASTED * one.pasted + _LISTED * one.is_item


_LONG = 32  # sentences: a prompt of so many is a document, and such an answer explains
_REQUESTED, _PASTED, _LISTED = 0.8, 0.8, 0.6  # of a person: any sentence, one of pasted text, one of a list
_EXPLAINED = 0.5
_PROPOSED, _AGREED = 1_200, -2.5  # bytes of what an answer proposes, and the weight that a passage of it needs


def find_proposed(text: str, seq: int) -> list[ChoicePassage]:
    """Return the passages of an answer that are choices if the person agrees: its likeliest, even if none is likely by itself."""
    if not text:
        return []
    turn = SpokenTurn((Spoken(text, seq, "end"),), (seq,), changed=True)
    return choose_passages(_rate_passages(turn, _AGREED), _PROPOSED, MAX_LISTED // 2)


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
        same = next((at for at, other in enumerate(chosen) if says_same(words, other[2])), None)
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


def says_same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two passages, given by their `topic_words`, share nearly all words that say what they are about."""
    fewer = min(len(words), len(others))
    return fewer >= _FEWEST_WORDS and len(words & others) >= _SAME_SHARE * max(len(words), len(others))


_FEWEST_WORDS, _SAME_SHARE = 3, 0.8


def states_choice(text: str) -> bool:
    """Whether a short text sounds as if something were decided in it. Rougher than the others: to prefer, not to report."""
    return CHOSEN.search(text) is not None


#: Headings of what the person is to do, to test or to use.
_IN_STEPS = lazy_pattern(
    r"\b(?:how to|usage|next steps?|to-?dos?|(?:to|please) test|test(?:ing)? (?:it|this|plan|steps|instructions)|try (?:it|this)|instructions|so testen|nächste schritte|prochaines étapes"
    r"|utilisation|próximos pasos|cómo|como (?:usar|testar)|próximos passos)\b|使い方|手順|次のステップ|(?:確認|テスト|使用)方法|使用(?:方法|说明|方式)|下一步|后续步骤|(?:测试|验证)(?:方法|步骤|方式)|待办",
    re.IGNORECASE,
)
#: Titles of thoughts that some clients put before the words of an answer: `**Reading the test****Fixing it** I changed …`.
_RUN_OF_TITLES = lazy_pattern(r"\A(?:\*\*[^*\n]{1,120}\*\*){2,}\W{0,3}")
_ANNOUNCED = lazy_pattern(r"^[ \t>*_#-]{0,8}(?:Decision|Decided)(?:\*\*|__)?:(?:\*\*|__)?[ \t]*(\S.{0,2000})$", re.M)
