"""Times as they stand in records: nearly always `2026-01-31T12:34:56.789Z`, sometimes anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_USUAL_LENGTH = 24

#: Numbers above this are milliseconds, not seconds: as seconds it would be the year 5138.
_SECONDS_END = 100_000_000_000
_MILLISECONDS_END = 253_402_300_800_000  # the year 10000


def milliseconds(at: str | int | float | None) -> tuple[int | None, str]:
    """Milliseconds UTC and the precision; (None, "") when it is no time."""
    if isinstance(at, str):
        if len(at) == _USUAL_LENGTH and at[19] == "." and at[23] == "Z":
            minute, rest = _minute(at[:17]), at[17:19] + at[20:23]
            if minute is not None and rest.isdecimal() and rest < "60":
                return minute + int(rest), "ms"
        return _parse_unusual(at)
    return (None, "") if at is None else _number(at)


@lru_cache(maxsize=4096)
def _minute(start: str) -> int | None:
    """Milliseconds at the start of a minute: records come in runs, so most have been asked for before."""
    try:
        moment = datetime.fromisoformat(f"{start}00+00:00")
    except ValueError:
        return None
    return (moment - _EPOCH) // _MILLISECOND


def _parse_unusual(at: str) -> tuple[int | None, str]:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None, ""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    precision = "day" if len(at) <= len("2026-01-31") else "ms" if "." in at or "," in at else "s"
    return (moment - _EPOCH) // _MILLISECOND, precision


def _number(at: int | float) -> tuple[int | None, str]:
    if not -_MILLISECONDS_END < at < _MILLISECONDS_END:  # also what is not a number
        return None, ""
    return (int(at * 1000), "s") if abs(at) < _SECONDS_END else (int(at), "ms")
