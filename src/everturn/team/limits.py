"""Limits of a shared archive: how much each person may store, and for how long sessions are kept.

Rules are settings of the archive: one for everybody and, if set, one for a person (quota) or a project (retention). A piece that
would exceed a quota is refused before anything of it is stored. Retention counts from the last message of a file's sessions. An
expired file loses its bytes, rows and index; how far it was pushed stays known, so that its owner does not push it again.
"""

from __future__ import annotations

import re
from typing import cast

from everturn.errors import EverturnError, UsageError
from everturn.maintenance.retention import FOREVER, parse_span
from everturn.model.archive import SourceFile
from everturn.store.contract import Store
from everturn.store.people import Caller, People
from everturn.store.sql_store import SqlStore

_QUOTA, _KEEP = "team quota", "team retention"
_SIZE = re.compile(r"([1-9][0-9]{0,8}) ?([kmgt]?)b?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNLIMITED = "none"
_USED = 'SELECT COALESCE(SUM(v."size"),0) FROM "version" v JOIN "source_file" f ON f."id"=v."source" WHERE f."owner"=?'
#: Files with bytes, the time of their last message, and their project.
_AGES = """
    SELECT f."id", COALESCE(MAX(s."ended"), MAX(v."changed_at")), MAX(p."name") FROM "source_file" f
    JOIN "version" v ON v."source"=f."id" LEFT JOIN "session" s ON s."version"=v."id"
    LEFT JOIN "file_project" p ON p."source"=f."id" WHERE v."size">0 GROUP BY f."id" ORDER BY f."id"
"""


class QuotaExceeded(EverturnError):
    """A person stores as much as the administrator allows."""


# --- quotas ---


def parse_size(text: str) -> int | None:
    """Parse a size such as 5GB or 500 MB; `none` is no limit. Raises UsageError."""
    if text.strip().lower() == UNLIMITED:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size; write 500MB, 5GB or {UNLIMITED}")
    return int(found[1]) * _UNITS[found[2].lower()]


def set_quota(store: Store, person: str, text: str) -> None:
    """Set how much a person may store; without a person, how much each may. Raises UsageError, NothingFound."""
    parse_size(text)
    if person:
        People(store).person(person)
    store.set_setting(_name(_QUOTA, person), text)


def quota_of(store: Store, person: str) -> int | None:
    """Return how many bytes a person may store; None for no limit."""
    text = store.setting(_name(_QUOTA, person)) or store.setting(_QUOTA)
    return parse_size(text) if text else None


def used_bytes(store: Store, person: str) -> int:
    """Return how many bytes of transcripts a person stores."""
    row = cast("SqlStore", store).driver.one(_USED, [person])
    return int(row[0]) if row else 0


def check_quota(store: Store, caller: Caller, added: int) -> None:
    """Raise QuotaExceeded if the caller may not store so many more bytes."""
    most = quota_of(store, caller.name)
    if most is not None and (used := used_bytes(store, caller.name)) + added > most:
        raise QuotaExceeded(
            f"your quota of {most / 1e6:,.1f} MB is used up ({used / 1e6:,.1f} MB are stored); forget sessions and push again, "
            "or ask an administrator for more"
        )


# --- retention ---


def set_retention(store: Store, project: str, text: str) -> None:
    """Set how long sessions are kept, of a project or of all that have no rule of their own. Raises BadConfig, NothingFound."""
    parse_span(text)
    if project:
        People(store).project(project)
    store.set_setting(_name(_KEEP, project), text)


def retention_of(store: Store, project: str) -> int | None:
    """Return for how many milliseconds sessions of a project are kept; None for ever."""
    own = store.setting(_name(_KEEP, project)) if project else ""
    return parse_span(own or store.setting(_KEEP) or FOREVER)


def expired_files(store: Store, now: int) -> list[SourceFile]:
    """Return the files that are older than the rules keep them."""
    spans: dict[str, int | None] = {}
    found = []
    for source, at, project in cast("SqlStore", store).driver.all(_AGES):
        name = project or ""
        if name not in spans:
            spans[name] = retention_of(store, name)
        if (span := spans[name]) is not None and at < now - span:
            found.append(store.file_by_id(source)[0])
    return found


def expire_files(store: Store, now: int) -> int:
    """Erase the expired files; return how many. Each is a transaction, with a line in the audit log."""
    done = 0
    for file in expired_files(store, now):
        with store.write():
            store.empty_file(file.id)
            owner = People(store).person(file.owner)
            People(store).note(Caller(0, owner, file.owner, "", (), 0), "expire", file.native_id or file.path, now)
        done += 1
    return done


def _name(setting: str, subject: str) -> str:
    return f"{setting} of {subject}" if subject else setting
