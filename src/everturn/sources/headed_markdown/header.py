"""The facts at the beginning of a conversation: title, session, link, time, folder and model; and times as exports write them."""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.sources.toolkit.values import milliseconds, word
from everturn.text.lazy_pattern import lazy_pattern

#: A fact on a line of its own: in front matter, in a list, or with a bold name.
FIELD = lazy_pattern(r"(?:[-*>] ){0,2}(?:\*\*)?([A-Za-z][A-Za-z _]{1,30}):(?:\*\*)?[ \t]{1,4}(\S.{0,500})")
PATH = lazy_pattern(r"(?:/|~/|[A-Za-z]:[\\/])[^\n]{0,1000}")
_TITLE = lazy_pattern(r"# {1,4}(\S.{0,300})")
_HEADING = lazy_pattern(r"#{2,6} {1,4}(\S.{0,300})")
_COMMON = lazy_pattern(
    r"\W{0,6}(?:[\w.-]{1,30} ){0,3}(?:conversation|session|chat)(?: (?:logs?|export|transcript|history))?(?: [\d:TZ -]{8,25})?",
    re.IGNORECASE,
)
_LINK = lazy_pattern(r"https?://[^\s)\]>\"'`]{1,500}")
_LINK_ID = lazy_pattern(r"/(?:c|chat|app|share)/([0-9a-f][0-9a-f-]{10,60})(?:[?#/]|$)")
_SESSIONS = ("session id", "session_id", "sessionid", "thread id", "conversation id", "conversation_id", "chat id")
_LINKS = ("source", "url", "link", "conversation url")
_DATES = (
    "started",
    "created",
    "created at",
    "created_at",
    "date",
    "timestamp",
    "start time",
    "create_time",
    "saved",
    "exported",
)
_FOLDERS = ("cwd", "project", "workspace", "working directory", "directory", "project path")


class ConversationHeader(NamedTuple):
    """The facts at the beginning of a file."""

    title: str = ""
    session: str = ""
    link: str = ""  # of the conversation
    at: int | None = None
    precision: str = ""
    workspace: str = ""
    model: str = ""


def parse_header(text: str) -> ConversationHeader:
    """Return the facts in the text before the first speaker."""
    lines = [line.strip() for line in text.lstrip("\ufeff").split("\n")[:200]]
    fields: dict[str, str] = {}
    for line in lines:
        if (field := FIELD.fullmatch(line)) is not None:
            fields.setdefault(field[1].strip().lower(), word(field[2].strip("*`\"' \t")))
    heading = next((found[1].strip() for line in lines if (found := _TITLE.fullmatch(line))), "")
    if not heading and (first := _HEADING.fullmatch(next(filter(None, lines), ""))) is not None:
        heading = first[1].strip()
    title = fields.get("title", "") or ("" if _COMMON.fullmatch(heading) else heading)
    link = next((found[0] for key in _LINKS if (found := _LINK.search(fields.get(key, "")))), "")
    named = _LINK_ID.search(link)
    session = next((fields[key] for key in _SESSIONS if key in fields), "") or (named[1] if named else "")
    times = (read_time(value) for value in (*(fields[key] for key in _DATES if key in fields), heading))
    at, precision = next((time for time in times if time[0] is not None), (None, ""))
    folder = next((fields[key] for key in _FOLDERS if PATH.fullmatch(fields.get(key, ""))), "")
    return ConversationHeader(word(title), session[:200], link, at, precision, folder, fields.get("model", "")[:100])


# --- times ---
_ISO = lazy_pattern(
    r"(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ,_-]{1,3}(\d{1,2})[:-]?(\d\d)(?:[:-]?(\d\d)(?:[.,-](\d{3})\d{0,6})?)?(?: ?(Z|[+-]\d\d:?\d\d))?(?![\dA-Za-z]))?"
)
_SLASHED = lazy_pattern(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?:,? (\d{1,2}):(\d\d)(?::(\d\d))?(?: (AM|PM))?)?")


def read_time(text: str) -> tuple[int | None, str]:
    """Return the first date or time in a text as milliseconds UTC, and its precision; (None, "") without one.

    A date with slashes counts if its order is certain: month first where AM or PM follows, or where the other order is no date.
    """
    if found := _ISO.search(text[:400]):
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        return _build_time((year, month, day), hour, minute, second, fraction, zone or "")
    if found := _SLASHED.search(text[:400]):
        one, other, year, hour, minute, second, half = found.groups()
        if not half and int(one) <= 12 and int(other) <= 12 and one != other:
            return None, ""
        month, day = (other, one) if int(one) > 12 and not half else (one, other)
        if half and hour:
            hour = str(int(hour) % 12 + 12 * (half == "PM"))
        return _build_time((year, month, day), hour, minute, second, None, "")
    return None, ""


def _build_time(
    date: tuple[str, str, str],
    hour: str | None,
    minute: str | None,
    second: str | None,
    fraction: str | None,
    zone: str,
) -> tuple[int | None, str]:
    day = f"{date[0]}-{date[1]:0>2}-{date[2]:0>2}"
    if hour is None:
        return milliseconds(day)
    at, precision = milliseconds(
        f"{day}T{hour:0>2}:{minute}:{second or '00'}{f'.{fraction}' if fraction else ''}{zone}"
    )
    if at is None:
        return milliseconds(day)
    return at, precision if second else "min"
