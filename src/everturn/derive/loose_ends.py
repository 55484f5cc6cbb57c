"""What an answer offered, asked or put off, as long as nobody takes it up.

`leaves_steps` says whether a turn leaves open what was to do before it. `advance_loose_ends` keeps offers from turn to turn. A reply of the person settles what the last answer put to them; what
a turn asks for, does or reports takes up an earlier offer about the same. `find_ending` says how a turn ended if no answer reports on
its last calls: a call that was refused or has no result, or a service that stopped the work. Pure. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from everturn.derive.choices import STATED
from everturn.derive.intent import asks_question, content_terms, is_thanks, loose_terms, steers_client
from everturn.derive.open_sentences import is_question
from everturn.derive.turn_facts import TurnFacts
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
        return is_question(self.text)


def fold_loose_ends(known: Iterable[LooseEnd], facts: TurnFacts) -> tuple[LooseEnd, ...]:
    """Return what is left after one more turn, with what its answer offers and puts off."""
    said = [words for one in facts.requests for words in (one.text, one.wants)]
    said += [one.text for one in (facts.answer,) if one] + [one.text for one in facts.choices if one.weight >= STATED]
    said += [one.subject for one, _ in facts.commits]
    done = [call.what for call in facts.deeds if call.kind == "shell" and call.status == "ok" and not call.exit_status]
    deeds = _name_deeds(done, (one.url for one, _ in facts.commits))
    reply = facts.requests[0].text if facts.requests and facts.starter == "human" else ""
    left = advance_loose_ends(known, facts.turn, reply, [*said, *done], deeds)
    noted = facts.recap.seq if facts.recap else -1
    left = tuple(one for one in left if noted < 0 or not one.is_note)  # a note replaces the one before
    return (*left, *(LooseEnd(one.text, facts.turn, one.seq, one.seq == noted) for one in facts.lasting))


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


def _name_deeds(ran: Iterable[str], urls: Iterable[str]) -> frozenset[str]:
    """Return what commands and commits did with version control; a commit with an address is a pull request."""
    pushed = {"push"} if any("git push" in one for one in ran) else set()
    return frozenset((*pushed, *("pr" if url else "commit" for url in urls)))


def leaves_steps(reply: str, is_cut: bool, has_worked: bool, complains: bool) -> bool:
    """Whether the steps that stood open before a turn still do after it, which begins with `reply`.

    A report on work takes their place. What was cut off reports on nothing: then they stay, also if the person agreed to them, unless
    the person said what is wrong with the work. A question that was answered without work leaves them as well, and so do thanks
    and commands of the client.
    """
    if not reply or is_cut:
        return is_cut and not complains
    return not has_worked and (asks_question(reply) or is_thanks(reply) or steers_client(reply))


def _is_put(one: LooseEnd) -> bool:
    return bool(PUT_TO_PERSON.search(one.text))


def _is_taken_up(one: LooseEnd, said: frozenset[str], deeds: frozenset[str]) -> bool:
    terms = loose_terms(one.text)
    named = {name for name, sign in _DEED_NAMES.items() if sign.search(one.text)}
    if named & deeds and len(terms) <= _FEW_TERMS:
        return True
    return len(terms & said) >= max(min(len(terms), _LEAST_TAKEN), _TAKEN_SHARE * len(terms))


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


# --- the end of a turn ---
_NO_RESULT = ("open", "orphan")

#: What can come last in a turn, after its last answer.
ENDINGS = ("service", "refused", "no result", "calls")


class Ending(Struct, frozen=True):
    """What came last in a turn, after its last answer."""

    kind: str  # of ENDINGS
    text: str  # the last call, or the words of the service
    seq: int
    result: str = ""  # how that call ended, "" if nothing is recorded


def find_ending(facts: TurnFacts) -> Ending | None:
    """Return what came last in a turn; None if that is an answer, or nothing was done."""
    answer = facts.answer.seq if facts.answer else -1
    if facts.stopped is not None and facts.stopped.seq > answer:
        return Ending("service", facts.stopped.text, facts.stopped.seq)
    last = facts.deeds[-1] if facts.deeds else None
    if last is None or last.seq <= answer or not facts.cut_off:
        return None
    if last.outcome == "rejected":
        return Ending("refused", last.what, last.seq)
    if last.status in _NO_RESULT:
        return Ending("no result", last.what, last.seq)
    return Ending("calls", last.what, last.seq, last.ended)
