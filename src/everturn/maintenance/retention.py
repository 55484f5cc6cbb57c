"""Retention: how long sessions are kept, by `[retention] keep` and by workspace. Without a rule everything is kept.

A session is kept for so long after its last message. Then it is erased as by `forget`, with everything that was made from it.
Sessions without a time are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from everturn.capture.policy import last_matching
from everturn.errors import BadConfig
from everturn.model.archive import Session, SessionText
from everturn.store.contract import SessionFilter, Store

FOREVER = "forever"
SETTING = "retention.keep"
#: How often `sync` looks for sessions to erase.
EVERY_MS = 86_400_000
_LAST_RUN = "retention_at"
_SPAN = re.compile(r"([1-9]\d{0,4}) ?(?:(d)(?:ays?)?|(w)(?:eeks?)?|(y)(?:ears?)?)", re.ASCII)
_DAYS = {"d": 1, "w": 7, "y": 365}
_DAY = 86_400_000
_PAGE = 500


@dataclass(frozen=True)
class RetentionRules:
    """The rules of the settings. The last matching rule wins."""

    keep: str = ""
    rules: tuple[tuple[str, str], ...] = ()  # (glob of a workspace path, span)

    def __post_init__(self) -> None:
        for text in self._spans():
            parse_span(text)

    @property
    def shortest(self) -> int | None:
        """The shortest time that anything is kept, in milliseconds; None if everything is kept."""
        return min((one for text in self._spans() if (one := parse_span(text)) is not None), default=None)

    def span_of(self, workspace: str, path: str) -> int | None:
        """Return how long a session is kept, in milliseconds."""
        return parse_span(last_matching(self.rules, workspace, path, self.keep))

    def _spans(self) -> tuple[str, ...]:
        return (self.keep, *(span for _, span in self.rules))


def parse_span(text: str) -> int | None:
    """Parse days, weeks or years into milliseconds; None is forever. Raises BadConfig.

    Shorter units are refused: `6m` could be meant as months.
    """
    if text in ("", FOREVER):
        return None
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise BadConfig(
            SETTING, f"{text!r} is not a time span; use days, weeks or years such as 90d, 12w or 2y, or {FOREVER}"
        )
    return int(found[1]) * _DAYS[next(filter(None, found.groups()[1:]))] * _DAY


def expired_sessions(store: Store, rules: RetentionRules, now: int) -> list[Session]:
    """Return the sessions that are older than their rule keeps them, oldest last."""
    shortest, found, cursor = rules.shortest, list[Session](), ""
    while shortest is not None:
        rows, cursor = store.sessions(SessionFilter(until=now - shortest), _PAGE, cursor)
        found += [row for row, text in rows if _is_expired(store, rules, row, text, now)]
        if not cursor:
            break
    return found


def is_due(store: Store, now: int) -> bool:
    """Whether nobody has looked for expired sessions for a day. Notes that it is done now."""
    last = store.setting(_LAST_RUN)
    if last.isdecimal() and now - EVERY_MS < int(last) <= now:
        return False
    with store.write():
        store.set_setting(_LAST_RUN, str(now))
    return True


def _is_expired(store: Store, rules: RetentionRules, row: Session, text: SessionText, now: int) -> bool:
    last = row.ended or row.started
    if not last:
        return False
    path = "" if text.workspace else store.file_by_id(store.version(row.version).source)[0].path
    span = rules.span_of(text.workspace, path)
    return span is not None and last < now - span
