"""Check the bullets of a summary against the record of its session, as `restore` checks the statements of a model.

A summary cites nothing, so each bullet is checked against the turns that have its words. A bullet that the record contradicts is
left out; one that nothing in the record supports stays and is marked. The background is the summary of the session before, and
is not checked. A bullet that only repeats that summary, or what this session inherited, needs no support here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from everturn.chat.setup import ChatSetup
from everturn.derive.inheritance import in_force
from everturn.derive.session_state import SessionState
from everturn.model.archive import Session
from everturn.restore.check import check_sentence
from everturn.restore.claim_acts import find_acts
from everturn.restore.claim_conflicts import find_conflicts
from everturn.restore.claim_polarity import find_opposite, read_phrases
from everturn.restore.document import CONTRADICTED
from everturn.restore.evidence import quote_short
from everturn.restore.grounds import Ground, all_stems, read_citations
from everturn.sessions.messages import has_words
from everturn.sessions.state import session_state
from everturn.text.printable import one_line, plural

UNSUPPORTED = "(not found in the record)"

_BULLET = re.compile(r"^(\s*[-*•]\s+)(\S.*)$")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+(?P<hashed>.+)|\*\*(?P<bold>[^*]{2,60})\*\*)")
_EMPTY = re.compile(
    r"(?:none|nothing|n/?a|no (?:decisions?|open|pending)\b.*|-+)(?:\s+(?:yet|recorded|pending|open))?\.?", re.I
)
_BACKGROUND = "background"
#: What a heading says about its bullets, as the section of a restored document.
_SECTIONS = (
    (re.compile(r"background|previous", re.I), _BACKGROUND),
    (re.compile(r"decision|decided|constraint", re.I), "key_decisions"),
    (re.compile(r"pending|open|next|to ?do", re.I), "next_steps"),
)
_MOST_TURNS = 5  # turns that one bullet is checked against
_MOST_BULLETS = 100
_REPEATED = 0.7  # share of the words that the summary before must have


class SummaryVerdict(Struct, frozen=True):
    """A summary without what the record contradicts, and what was found, in one line; "" if everything holds."""

    text: str
    note: str = ""


class _Bullet(Struct, frozen=True):
    line: int
    section: str
    text: str


def check_summary(setup: ChatSetup, session: Session, text: str, previous: str = "") -> SummaryVerdict:
    """Check a summary by a model. The record is that of the session, and what the session inherited."""
    bullets = list(_find_bullets(text))[:_MOST_BULLETS]
    if not bullets or not session.n_turns or not has_words(session):
        return SummaryVerdict(text)
    state = session_state(setup.store, setup.sources, session)
    record = _SummaryRecord(Ground(setup.store, setup.sources, session, state, setup.clean), state, previous, bullets)
    lines, wrong, unsupported = text.split("\n"), dict[int, str](), 0
    for one in bullets:
        fault = record.find_contradiction(one)
        if fault:
            wrong[one.line] = f"{quote_short(one.text)}: {fault}"
        elif not record.supports(one):
            lines[one.line] = f"{lines[one.line].rstrip()} {UNSUPPORTED}"
            unsupported += 1
    kept = [line for number, line in enumerate(lines) if number not in wrong]
    return SummaryVerdict("\n".join(kept), _note(list(wrong.values()), unsupported, len(bullets)))


def _note(wrong: list[str], unsupported: int, total: int) -> str:
    parts = []
    if wrong:
        more = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        parts.append(f"{len(wrong)} contradicted by the record and left out ({one_line(wrong[0], 200)}{more})")
    if unsupported:
        parts.append(f"{unsupported} not found in the record and marked")
    return f"Summary checked, {plural(total, 'bullet')}: {'; '.join(parts)}" if parts else ""


def _find_bullets(text: str) -> Iterator[_Bullet]:
    section = ""
    for number, line in enumerate(text.split("\n")):
        if heading := _HEADING.match(line):
            title = heading["hashed"] or heading["bold"]
            section = next((key for pattern, key in _SECTIONS if pattern.search(title)), "")
        found = _BULLET.match(line)
        if found and section != _BACKGROUND and not _EMPTY.fullmatch(found[2].strip()) and all_stems(found[2]):
            yield _Bullet(number, section, found[2].strip())


class _SummaryRecord:
    """The record that the bullets of one summary are checked against."""

    def __init__(self, ground: Ground, state: SessionState, previous: str, bullets: list[_Bullet]) -> None:
        self._ground = ground
        constraints, decisions = in_force(state)
        self._in_force = [one.text for one in (*constraints, *decisions)]
        self._before = all_stems("\n".join((previous, *self._in_force)))
        words = frozenset[str]().union(*(all_stems(one.text) for one in bullets))
        turns = range(state.turn_count)
        self._turns = {turn: all_stems(ground.words(turn).text) & words for turn in turns if ground.has_turn(turn)}
        self._unsupported: set[int] = set()

    def find_contradiction(self, bullet: _Bullet) -> str:
        """Return what the record says against a bullet; "" if nothing does."""
        if rule := self._broken_rule(bullet):
            return f"in force is {quote_short(rule)}"
        if self._repeats(bullet.text):
            return ""
        cited = read_citations(bullet.text).citations
        turns = [] if cited else self._turns_about(bullet.text)
        citation = f" [{'; '.join(f't{turn + 1}' for turn in sorted(turns))}]" if turns else ""
        checked = check_sentence(self._ground, bullet.section, f"{one_line(bullet.text, 500)}{citation}")
        is_absent = all(
            "does not occur in" in one for one in checked.reasons
        )  # a name that nobody used is no contradiction
        if checked.statement.check == CONTRADICTED and not is_absent:
            return checked.reasons[0]
        if not checked.holds:
            self._unsupported.add(bullet.line)
        return ""

    def supports(self, bullet: _Bullet) -> bool:
        """Whether the record supports a bullet that it does not contradict."""
        return bullet.line not in self._unsupported

    def _broken_rule(self, bullet: _Bullet) -> str:
        """Return what is in force and says the opposite of a bullet; "" if nothing does."""
        if bullet.section == "next_steps":
            return ""
        words = all_stems(bullet.text)
        rules = (text for text in self._in_force if all_stems(text) & words)
        return next((rule for rule in rules if _contradict(bullet.text, rule)), "")

    def _repeats(self, text: str) -> bool:
        """Whether a bullet only repeats what is known from before. What it says was done is always checked."""
        words = all_stems(text)
        return len(words & self._before) >= _REPEATED * len(words) and not any(find_acts(text))

    def _turns_about(self, text: str) -> list[int]:
        """Return the turns that have the words of a bullet: the one with most of them, then those that add others."""
        missing, found = set(all_stems(text)), list[int]()
        while missing and len(found) < _MOST_TURNS:
            best = max(self._turns, key=lambda turn: (sum(map(self._ground.weight, self._turns[turn] & missing)), turn))
            if not self._turns[best] & missing:
                break
            missing -= self._turns[best]
            found.append(best)
        return found or [max(self._turns)]


def _contradict(text: str, rule: str) -> bool:
    turned = find_opposite(read_phrases(text), read_phrases(rule))
    return turned is not None or any(find_conflicts([text, rule]))
