"""What was decided up to a turn: decisions, constraints and choices, each with its place and what became of it.

`advance_decisions` and `advance_choices` fold one turn into what is known. The same words count once, at their first place.
The words of a decision are read once, when it is made; a turn that decides nothing costs nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.choices import ChoicePassage
from everturn.derive.decisions import DecisionMark, likeness
from everturn.derive.intent import revised_status, topic_words
from everturn.derive.marker_lines import ACTIVE, changed_status
from everturn.derive.offers import Offer, is_choice, join_reply
from everturn.derive.turn_facts import Saying, TurnFacts
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.sentences import split_sentences


class DecisionState(Struct, frozen=True):
    """A decision or a constraint, in its original words."""

    text: str
    turn: int
    seq: int
    kind: str  # marker | imperative | list | file | choice | answer | commit | pin
    pinned: bool = False
    about: str = ""  # the question or proposal of the agent that it answers
    about_seq: int = -1
    by: str = "person"  # or agent
    status: str = ACTIVE  # of decisions.STATUSES
    session: str = ""  # of the evidence, if it is inherited
    weight: float = 0.0  # of a choice: how likely it is one
    key: str = ""  # equal for the same words, "" if they have not been compared yet
    denied: bool = False  # of a choice: the next message of the person reports trouble
    again: tuple[int, ...] = ()  # the latest messages that repeat it, of a constraint


Decisions = tuple[DecisionState, ...]


def find_reply(offer: Offer | None, interrupted: bool, facts: TurnFacts) -> DecisionState | None:
    """Return the decision in the first words of a turn if they answer what the agent put to the person."""
    if offer is None or facts.starter != "human" or not facts.requests or interrupted:
        return None
    first = facts.requests[0]
    joined = join_reply(first.text, offer)
    if joined is None or not is_choice(joined):
        return None
    kind = "agreement" if joined.agrees else "answer"
    return DecisionState(joined.answer, facts.turn, first.seq, kind, False, joined.question, offer.seq)


def advance_decisions(known: Decisions, facts: TurnFacts, reply: DecisionState | None) -> Decisions:
    """Return the decisions after one more turn: those of its marks, of the reply it begins with, and its commits."""
    new = [_decision_state(mark, facts.turn, seq) for mark, seq in facts.marks if not mark.binds]
    if reply is not None:
        new = [one for one in new if one.seq != reply.seq] + [reply]
    new += [
        DecisionState(" ".join(filter(None, ("commit", one.hash, one.subject))), facts.turn, seq, "commit")
        for one, seq in facts.commits
        if not one.url
    ]
    new.sort(key=lambda one: one.seq)
    return change_statuses(_add_new(known, new), facts)


def advance_constraints(known: Decisions, facts: TurnFacts) -> Decisions:
    """Return what binds after one more turn. What is said again holds again."""
    new = [_with_key(_decision_state(mark, facts.turn, seq)) for mark, seq in facts.marks if mark.binds]
    repeated: dict[str, list[int]] = {}
    for one in new:
        repeated.setdefault(one.key, []).append(one.seq)
    if new:
        known = tuple(_repeat(one, repeated.get(one.key, [])) for one in _add_new(known, new))
    ordered = _ordered_acts(facts) if known and facts.requests else frozenset()
    if ordered:
        known = tuple(_lift(one, ordered) if one.turn != facts.turn else one for one in known)
    return change_statuses(known, facts)


def _ordered_acts(facts: TurnFacts) -> frozenset[str]:
    """Return the acts that a person orders in the requests of a turn."""
    asked = [one.text.lower() for one in facts.requests if facts.starter == "human" and len(one.text) <= _BRIEF]
    return frozenset(act for text in asked if not _NOT_YET.search(text) for act in _acts(text))


def _lift(one: DecisionState, ordered: Collection[str]) -> DecisionState:
    """Return a prohibition as taken back if it only put an act off that the person orders now."""
    return replace(one, status=_TAKEN_BACK) if one.status == ACTIVE and _is_lifted(one, ordered) else one


def _is_lifted(one: DecisionState, ordered: Collection[str]) -> bool:
    """Whether a brief prohibition only put an act off: the person orders it later."""
    words = one.text.lower()
    is_brief = len(words) <= _BRIEF and not one.pinned and not _STANDING.search(words)
    acts = _acts(words) if is_brief and _NOT_YET.search(words) else set()
    return bool(acts) and acts <= set(ordered)


def _acts(text: str) -> set[str]:
    return {act for act, sign in _ACTS.items() if sign.search(text)}


_TAKEN_BACK = "rejected"
_BRIEF = 80  # characters of a prohibition that concerns nothing but the act, and of an order
#: What is forbidden for good, in one place or on a condition.
_STANDING = lazy_pattern(
    r"\b(?:never|ever|nie|niemals|jamais|nunca|jamás|никогда|nigdy|to|auf|sur|main|master|without|unless|until|ohne|sans|sin|sem|без)\b"
    r"|永远|绝|禁止|不得|不许|除非|没有我|絶対|必ず|절대"
)
#: Acts that are forbidden for a while.
_ACTS = {
    "commit": lazy_pattern(r"\bcommit|提交|コミット|커밋"),
    "publish": lazy_pattern(
        r"\b(?:push|send|envi[ae]|publi(?:sh|er|ez|car|que|zier)|deploy|subir|upload|hochlad|veröffentlich)|推送|上传|部署|プッシュ|デプロイ|푸시|배포"
    ),
    "code": lazy_pattern(
        r"\b(?:code|coding|implement|programmier|implément|codi|кода|код\b|реализ)|代码|编码|实现|コード|実装|코드|구현"
    ),
}
_NOT_YET = lazy_pattern(
    r"\b(?:don['’]?t|do not|not|no|never|nicht|noch|kein\w*|ne|pas|não|nao|non|не|nie)\b|不|别|勿|しない|まだ|하지"
)


def _repeat(one: DecisionState, seqs: list[int]) -> DecisionState:
    later = [seq for seq in seqs if seq != one.seq]
    return replace(one, status=ACTIVE, again=(*one.again, *later)[-_AGAIN:]) if later else one


_AGAIN = 4


def advance_choices(
    known: Decisions, proposed: Iterable[ChoicePassage], facts: TurnFacts, reply: DecisionState | None
) -> Decisions:
    """Return what turns say was chosen, after one more that may begin with a reply to what was `proposed`."""
    agreed = proposed if reply is not None and reply.kind == "agreement" else ()
    said = (*agreed, *(_find_restated(reply, facts.answer) if reply is not None else ()), *facts.choices)
    asked = {one.seq for one in facts.requests}
    if facts.complaints and known:
        known = tuple(_deny(one) if one.turn == known[-1].turn else one for one in known)
    new = [
        DecisionState(one.text, facts.turn, one.seq, "choice", by=_BY[one.seq in asked], weight=round(one.weight, 2))
        for one in said
    ]
    return change_statuses(_add_new(known, new), facts)


def _deny(one: DecisionState) -> DecisionState:
    return replace(one, denied=True) if one.by == "agent" else one


_BY = ("agent", "person")


def _find_restated(reply: DecisionState, answer: Saying | None) -> list[ChoicePassage]:
    """Return the sentence with which an answer begins if it says again what the person chose."""
    first = next(split_sentences(answer.text), None) if answer is not None else None
    if answer is None or first is None or first.text.endswith(("?", "？", "…")):
        return []
    same = topic_words(first.text) & topic_words(f"{reply.about} {reply.text}")
    return [ChoicePassage(first.text, _RESTATED, answer.seq)] if len(same) >= _SAME_TOPICS else []


_SAME_TOPICS = 2  # words that a sentence has in common with the reply that it says again
_RESTATED = -1.15  # its weight


def _decision_state(mark: DecisionMark, turn: int, seq: int) -> DecisionState:
    by = "agent" if mark.kind == "choice" else "person"
    return DecisionState(mark.text, turn, seq, mark.kind, mark.pinned, by=by)


def _add_new(known: Decisions, new: list[DecisionState]) -> Decisions:
    """Add new decisions; a repeated one keeps its first position."""
    if not new:
        return known
    by_words = {one.key: one for one in map(_with_key, known)}
    for one in map(_with_key, new):
        by_words.setdefault(one.key, one)
    return tuple(by_words.values())


def _with_key(one: DecisionState) -> DecisionState:
    """Return a decision with its key. "Yes" to another question is another decision."""
    said = f"{one.text} {one.about}" if one.about else one.text
    return one if one.key else replace(one, key=likeness(said) or said)


# --- what became of them ---
def change_statuses(known: Decisions, facts: TurnFacts) -> Decisions:
    """Apply the sentences and lines that say what became of an earlier decision."""
    if facts.revisions:
        known = tuple(_revise(one, facts) for one in known)
    if not any(line.kind in ("status", "decision", "constraint") for line, _, _ in facts.lines):
        return known
    return tuple(
        replace(one, status=changed_status(one.text, one.status, (one.turn, one.seq), facts.lines, facts.turn))
        for one in known
    )


def _revise(one: DecisionState, facts: TurnFacts) -> DecisionState:
    later = [revision for revision, seq in facts.revisions if seq > one.seq]
    status = "" if one.pinned or one.kind == "commit" else revised_status(one.text, later)
    return replace(one, status=status) if status and one.status == ACTIVE else one
