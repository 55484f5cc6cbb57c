"""List the secrets in the archive and where they are, without showing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import EverturnError
from everturn.text.folders import FOLDER_RULE

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.sessions.secrets import SecretPlace
    from everturn.store.contract import Store

_MOST_TOLD_APART = 100_000  # distinct secrets that are counted


@frame.command(
    "everturn secrets",
    "everturn secrets @last",
    "everturn secrets --workspace myproject --since 30d --limit 500",
    "everturn secrets --json",
)
@click.argument("session", default="")
@click.option("--agent", default="", metavar="NAME", help="Only in sessions of this agent.")
@click.option("--workspace", default="", metavar="FOLDER", help=FOLDER_RULE)
@click.option("--since", default="", metavar="WHEN", help="Only in sessions active since then: 2026-01-31, 7d.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(0), help="How many places to list.")
def command(cx: frame.CommandContext, session: str, limit: int, **filters: str) -> int:
    """Look through SESSION, or the whole archive, for keys, tokens and passwords; tell kinds, counts and places.

    Nothing of a secret is shown. SECRET in the list is a keyed digest: equal secrets have the same one, also in
    `[REDACTED:kind:digest]` of other commands. Older editions and subagents are looked through too. BYTES is the place
    within the record, which `everturn show SESSION --raw-message N` gives.

    Exit code 0 if there are none, 4 if there are some.
    """
    from everturn.sessions.lookup import iterate_sessions
    from everturn.sessions.secrets import find_archive_secrets

    store = cx.store()
    chosen: Iterable[Session]
    if session:
        row = cx.session(session)
        chosen = store.sessions_of(row.agent, row.native_id)
    else:
        chosen = iterate_sessions(store, cx.filter(True, **filters))
    found = SecretTally(limit)
    with cx.out.progress("looking for secrets, MB read:") as step:
        places = find_archive_secrets(
            store, cx.sources, chosen, _archive_key(cx, store), lambda done: step(done // 1_000_000)
        )
        for place in places:
            found.add(place)
    if cx.json:
        cx.out.emit_json("secrets", map(_facts, found.places), total=found.total, kinds=found.kinds())
    else:
        _print_tally(cx, found)
    return 4 if found.total else 0


@dataclass
class SecretTally:
    """Secrets counted by kind, and the first `limit` findings."""

    limit: int
    places: list[SecretPlace] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)
    secrets: dict[str, str] = field(default_factory=dict)  # digest: kind
    sessions: dict[str, set[int]] = field(default_factory=dict)

    def add(self, place: SecretPlace) -> None:
        self.by_kind[place.kind] += 1
        self.sessions.setdefault(place.kind, set()).add(place.session.id)
        if len(self.secrets) < _MOST_TOLD_APART:
            self.secrets.setdefault(place.digest, place.kind)
        if len(self.places) < self.limit:
            self.places.append(place)

    @property
    def total(self) -> int:
        return self.by_kind.total()

    def kinds(self) -> list[dict[str, Any]]:
        """Return the counts of each kind, most frequent first."""
        different = Counter(self.secrets.values())
        return [
            {"kind": kind, "secrets": different[kind], "places": n, "sessions": len(self.sessions[kind])}
            for kind, n in self.by_kind.most_common()
        ]


def _archive_key(cx: frame.CommandContext, store: Store) -> bytes:
    """Return the archive's key; if it has none and cannot be written, a key for this report only."""
    from everturn.sessions.secrets import make_key

    try:
        return make_key(store)
    except EverturnError as error:
        cx.out.warn(f"the digests below hold for this list only: {error}")
        return clock.new_id().encode()


def _facts(place: SecretPlace) -> dict[str, Any]:
    return {
        "kind": place.kind,
        "digest": place.digest,
        "session": place.session.native_id,
        "agent": place.session.agent,
        "state": place.session.state,
        "turn": None if place.turn is None else place.turn + 1,
        "message": None if place.message is None else place.message + 1,
        "field": place.field,
        "start": place.start,
        "size": place.size,
    }


def _print_tally(cx: frame.CommandContext, found: SecretTally) -> None:
    out = cx.out
    if not found.total:
        out.say("no secrets were found; `everturn secrets --help` says what is looked through")
        return
    columns = ("kind", "secrets", "places", "sessions")
    out.table(columns, [[str(one[name]) for name in columns] for one in found.kinds()], right=(1, 2, 3))
    if found.places:
        out.emit()
        out.table(
            ("kind", "secret", "session", "turn", "message", "field", "bytes"),
            _finding_rows(found.places, out.archive),
            right=(3, 4),
        )
    if found.total > len(found.places):
        out.say(f"{len(found.places):,} of {found.total:,} places are listed; --limit shows more")
    out.say("They stay in the archive as they were captured; every way out masks them unless --reveal is given.")
    out.say("To be safe, first replace them where they were issued: what stood in a transcript has been read.")
    out.say("  everturn forget SESSION                     erases a session permanently")
    out.say("  everturn config set capture.mode redacted   masks secrets before anything more is stored")


def _finding_rows(places: Iterable[SecretPlace], store: Store | None) -> Iterator[list[str]]:
    from everturn.sessions.lookup import short_ids

    listed = list(places)
    shorts = short_ids({place.session.id: place.session for place in listed}.values(), store)
    for one in listed:
        turn = "" if one.turn is None else str(one.turn + 1)
        message = "" if one.message is None else str(one.message + 1)
        short = shorts[one.session.id]
        yield [one.kind, one.digest, short, turn, message, one.field, f"{one.start}-{one.start + one.size}"]
