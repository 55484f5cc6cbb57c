"""What an answer offered, asked or put off, as long as nobody takes it up.

`advance_loose_ends` keeps such sentences from turn to turn. A reply of the person settles what the last answer put to them; what
a turn asks for, does or reports takes up an earlier offer about the same. Pure. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from everturn.derive.intent import asks_question, content_terms
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.stance_words import AGREEMENT, PUT_TO_PERSON


class LooseEnd(Struct, frozen=True):
    """A sentence that offers something, asks for a choice or puts something off, as long as nobody has taken it up."""

    text: str
    turn: int
    seq: int
    is_note: bool = False  # the client noted it as the next step

    @property
    def is_question(self) -> bool:
        """Whether it asks the person something."""
        return self.text.rstrip("*_\"') ").endswith(("?", "？"))


def advance_loose_ends(
    known: Iterable[LooseEnd], turn: int, reply: str, words: Iterable[str], deeds: frozenset[str]
) -> tuple[LooseEnd, ...]:
    """Return what is left after one more turn, which begins with `reply`.

    A reply settles what the last answer put to the person, unless it asks or orders something else. `words` are those of the
    turn: what it asks for or reports was taken up. `deeds` names what was done with version control: `push`, `commit`, `pr`.
    Offers are forgotten after some turns; what was put off is not.
    """
    ends = [one for one in known if turn - one.turn <= _OFFER_TURNS or not (one.is_question or _is_put(one))]
    last = max((one.turn for one in ends), default=-1)
    said = frozenset().union(*map(content_terms, words))
    answers = bool(reply) and not (asks_question(reply) or reply.startswith("/"))
    agrees = answers and bool(AGREEMENT.match(reply))
    settled = {
        one
        for one in ends
        if one.turn == last and (answers if one.is_question or one.is_note else agrees and _is_put(one))
    }
    return tuple(one for one in ends if one not in settled and not _is_taken_up(one, said, deeds))[-_MOST_LOOSE:]


def _is_put(one: LooseEnd) -> bool:
    return bool(PUT_TO_PERSON.search(one.text))


def _is_taken_up(one: LooseEnd, said: frozenset[str], deeds: frozenset[str]) -> bool:
    terms = loose_terms(one.text)
    named = {name for name, sign in _DEED_NAMES.items() if sign.search(one.text)}
    if named & deeds and len(terms) <= _FEW_TERMS:
        return True
    return len(terms & said) >= max(min(len(terms), _LEAST_TAKEN), _TAKEN_SHARE * len(terms))


def loose_terms(text: str) -> frozenset[str]:
    """Return the words of an offer that say what it is about."""
    return content_terms(text) - _OFFER_TERMS


_OFFER_TURNS = 3
_LEAST_TAKEN = 2  # terms that a loose end and a turn that takes it up have in common
_FEW_TERMS = 4  # an offer with more is not only about version control
_MOST_LOOSE = 40
_TAKEN_SHARE = 0.5  # of the terms of a loose end that a turn which takes it up uses
_DEED_NAMES = {
    "push": lazy_pattern(r"\b(?:un)?push(?:ed|ing)?\b|\bgepusht\b|poussé|推送|プッシュ", re.IGNORECASE),
    "commit": lazy_pattern(r"\b(?:un)?commit(?:ted|ting)?\b|committet|コミット|提交", re.IGNORECASE),
    "pr": lazy_pattern(r"\bPRs?\b|\bpull requests?\b", re.IGNORECASE),
}
_OFFER_TERMS = frozenset(
    (
        "want know word need next step later future follow followup follow-up optional optionally you'd any anything something these those "
        "would like proceed adjust option issue change specific file further code any."
    ).split()
)
