"""Look after an archive that a team shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import UsageError
from everturn.text.times import iso, parse_when

if TYPE_CHECKING:
    from everturn.store.contract import Store
    from everturn.store.people import People


@frame.command(
    "everturn admin init --db postgresql://everturn@db.example.com/everturn",
    "everturn admin invite ann",
    "everturn admin project github.com/example/shop --shares --add ann",
    "everturn admin migrate --db postgresql://everturn@db.example.com/everturn",
    make=click.group,
    json=False,
)
def command(cx: frame.CommandContext) -> None:
    """Look after an archive that a team shares: people, tokens, projects, the schema, the audit log.

    These commands use the database itself, so they are for those who may log in there. docs/team.md is the runbook.
    """


@frame.command("everturn admin init --db postgresql://everturn@db.example.com/everturn", make=command.command)
def init(cx: frame.CommandContext) -> None:
    """Create the archive if there is none, mark it as shared, and make the database role that reads for people.

    From then on no everturn upgrades the schema by itself: `everturn admin migrate` does.
    """
    from everturn.store.visibility import prepare_readers

    store = cx.store(create=True)
    with store.write():
        store.set_setting("shared", "yes")
    prepare_readers(store)
    if cx.json:
        cx.out.emit_json("admin", [], shared=True, schema=store.check(quick=True).schema)
    else:
        cx.out.say(f"{cx.out.text(store.url)} is shared; only `everturn admin migrate` upgrades its schema now")


@frame.command(
    "everturn admin raw s3://everturn/raw?region=eu-central-1",
    "everturn admin raw /srv/everturn/raw",
    make=command.command,
)
@click.argument("place")
def raw(cx: frame.CommandContext, place: str) -> None:
    """Keep the bytes of transcripts that arrive from now on in PLACE instead of in the database.

    PLACE is the whole path of a folder, or s3://BUCKET/PREFIX (`?endpoint=URL` for another store that speaks S3). Everything that opens
    the archive needs to reach it. It cannot be changed later. Rows and the index stay in the database.
    """
    from everturn.store.raw import set_place

    store = cx.store()
    with store.write():
        set_place(store, place)
    cx.out.report("admin", f"bytes that arrive from now on are kept in {place}", place=place)


@frame.command("everturn admin migrate --db postgresql://everturn@db.example.com/everturn", make=command.command)
def migrate(cx: frame.CommandContext) -> None:
    """Upgrade the schema to the one of this everturn, also of a shared archive.

    Make a backup first (`pg_dump`), upgrade the server, then the clients: an older everturn does not open a newer archive.
    """
    from everturn.store.contract import migrate_store
    from everturn.store.visibility import prepare_readers

    with closing(migrate_store(cx.settings.db)) as store:
        if store.setting("shared"):
            prepare_readers(store)
        health = store.check(quick=True)
        if cx.json:
            cx.out.emit_json("admin", [], schema=health.schema, engine=health.engine)
        else:
            cx.out.say(f"{cx.out.text(store.url)} has schema {health.schema}")


_days_option = click.option(
    "--days", default=90, show_default=True, type=click.IntRange(1, 3650), help="How long the token is valid."
)


@frame.command("everturn admin invite ann", "everturn admin invite guest --role reader --days 7", make=command.command)
@click.argument("name")
@click.option("--role", default="member", show_default=True, help="member: may push. reader: may only read.")
@_days_option
def invite(cx: frame.CommandContext, name: str, role: str, days: int) -> None:
    """Add a person and print a token for them. Send it over a secure channel: it is not shown again."""
    from everturn.store.people import SCOPES

    with _changing(cx) as people:
        people.add_person(name, role, clock.now())
        token = people.new_token(name, SCOPES if role == "member" else ("read",), clock.now(), days)
    _emit_token(cx, name, token)


@frame.command("everturn admin provider https://login.example.com everturn", make=command.command)
@click.argument("issuer")
@click.argument("client", required=False, default="")
@click.option(
    "--secret-from",
    type=click.File("r"),
    default=None,
    help="A file with the client's secret, if it has one; - is stdin.",
)
def provider(cx: frame.CommandContext, issuer: str, client: str, secret_from: TextIO | None) -> None:
    """Let people log in with an identity provider (OpenID Connect): its ISSUER, and the CLIENT id of everturn there.

    Register everturn there as a native application with redirects to http://127.0.0.1 on any port. `everturn admin email ann
    ann@example.com` says who is who. `none` as ISSUER ends it.
    """
    from everturn.team.sign_in import set_provider

    if issuer != "none" and not client:
        raise UsageError("give the client id that everturn has at the provider after the issuer")
    secret = secret_from.read().strip() if secret_from else ""
    store = _shared_store(cx)
    with store.write():
        set_provider(store, "" if issuer == "none" else issuer, "" if issuer == "none" else client, secret)
    way = issuer if issuer != "none" else "tokens only"
    cx.out.report("admin-provider", f"people log in with {way}", issuer=issuer, client=client)


@frame.command("everturn admin email ann ann@example.com", make=command.command)
@click.argument("name")
@click.argument("email")
def email(cx: frame.CommandContext, name: str, email: str) -> None:
    """Name the address by which the identity provider knows a person. Their first login binds them to their account there."""
    with _changing(cx) as people:
        people.set_email(name, email)
    cx.out.report("admin-email", f"{name} logs in as {email}: everturn team login URL --sso", person=name, email=email)


@frame.command("everturn admin token ann --scope read --days 30", make=command.command)
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, default=("read",), show_default=True, help="read or push; repeatable."
)
@_days_option
def token(cx: frame.CommandContext, name: str, scopes: tuple[str, ...], days: int) -> None:
    """Print another token of a person, for example one for an agent that may only read."""
    with _changing(cx) as people:
        made = people.new_token(name, scopes, clock.now(), days)
    _emit_token(cx, name, made)


@frame.command("everturn admin revoke ann", make=command.command)
@click.argument("name")
def revoke(cx: frame.CommandContext, name: str) -> None:
    """End the access of a person: all tokens are invalid from now on. What they pushed stays."""
    with _changing(cx) as people:
        people.end_access(name, clock.now())
    done = f"{name} no longer has access; `everturn admin invite {name}` restores it"
    cx.out.report("admin-revoke", done, person=name)


@frame.command("everturn admin people", make=command.command)
def people(cx: frame.CommandContext) -> None:
    """List everybody, with their role and number of valid tokens."""
    from everturn.store.people import People

    rows = People(_shared_store(cx)).people()
    items = [dict(zip(("name", "role", "ended_at", "tokens"), row, strict=True)) for row in rows]
    shown = [[cx.out.text(name), role, "ended" if ended else "active", str(n)] for name, role, ended, n in rows]
    cx.out.emit_rows("admin-people", items, ("name", "role", "access", "tokens"), shown, right=(3,))


@frame.command("everturn admin project github.com/example/shop --shares --add ann --add bob", make=command.command)
@click.argument("name")
@click.option("--shares/--private", default=False, help="Whether what members push is shared with all of them.")
@click.option("--add", "added", multiple=True, metavar="NAME", help="Add a member.")
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Remove a member.")
def project(
    cx: frame.CommandContext, name: str, shares: bool, added: tuple[str, ...], removed: tuple[str, ...]
) -> None:
    """Add or change a project. NAME is the address of its repository without scheme: github.com/example/shop.

    The rule holds for what is pushed from now on; a person shares earlier sessions with `everturn team share`.
    """
    with _changing(cx) as people:
        people.set_project(name, shares, clock.now())
        for person in (*added, *removed):
            people.set_member(name, person, person in added)
    rule = "shares what its members push" if shares else "keeps what its members push private until they share it"
    cx.out.report("admin-project", f"{name} {rule}", project=name, shares=shares, added=added, removed=removed)


@frame.command("everturn admin audit --since 7d", make=command.command)
@click.option("--since", default="7d", show_default=True, help="How far back: 7d, 2026-11-01.")
@click.option("--limit", default=200, show_default=True, type=click.IntRange(1, 100_000))
def audit(cx: frame.CommandContext, since: str, limit: int) -> None:
    """List who read, searched, pushed, shared and erased what, newest first. It never holds words of a session."""
    from everturn.store.people import People

    rows = People(_shared_store(cx)).audit(parse_when(since, clock.now()), limit)
    names = ("at", "person", "action", "subject")
    items = [dict(zip(names, row, strict=True)) for row in rows]
    shown = [[iso(at), cx.out.text(who), what, cx.out.text(subject)] for at, who, what, subject in rows]
    cx.out.emit_rows("admin-audit", items, names, shown)


@frame.command("everturn admin quota 5GB", "everturn admin quota 20GB --person ann", make=command.command)
@click.argument("size", required=False)
@click.option("--person", default="", metavar="NAME", help="Only for this person.")
def quota(cx: frame.CommandContext, size: str | None, person: str) -> None:
    """Set how much transcript each person may store: 500MB, 5GB, none. Without SIZE, list what everybody stores.

    A push beyond it is refused; nothing that is stored is deleted.
    """
    from everturn.store.people import People
    from everturn.team.limits import quota_of, set_quota, used_bytes

    store = _shared_store(cx)
    if size:
        with store.write():
            set_quota(store, person, size)
    names = [person] if person else [name for name, *_ in People(store).people()]
    rows = [{"person": name, "used": used_bytes(store, name), "quota": quota_of(store, name)} for name in names]
    shown = [[cx.out.text(str(row["person"])), *map(_megabytes, (row["used"], row["quota"]))] for row in rows]
    cx.out.emit_rows("admin-quota", rows, ("person", "stored", "quota"), shown, right=(1, 2))


def _megabytes(size: object) -> str:
    return f"{size / 1e6:,.1f} MB" if isinstance(size, int) else "none"


@frame.command(
    "everturn admin retention 365d", "everturn admin retention forever --project github.com/example/shop", make=command.command,
)  # fmt: skip
@click.argument("span")
@click.option("--project", default="", metavar="NAME", help="Only for sessions of this project.")
def retention(cx: frame.CommandContext, span: str, project: str) -> None:
    """Set how long sessions are kept after their last message: 90d, 12w, 2y, forever.

    `everturn serve` erases older ones when it starts and once a day; `everturn admin expire` does it now.
    """
    from everturn.team.limits import set_retention

    store = _shared_store(cx)
    with store.write():
        set_retention(store, project, span)
    kept = f"sessions of {project or 'every project without a rule of its own'} are kept: {span}"
    cx.out.report("admin-retention", kept, keep=span, project=project)


@frame.command("everturn admin expire --dry-run", make=command.command)
@click.option("--dry-run", is_flag=True, help="Only list what would be erased.")
def expire(cx: frame.CommandContext, dry_run: bool) -> None:
    """Erase the sessions that are older than the retention rules keep them. The laptops of their owners keep theirs."""
    from everturn.team.limits import expire_files, expired_files

    store, now = _shared_store(cx), clock.now()
    files = expired_files(store, now)
    done = 0 if dry_run else expire_files(store, now)
    items = [{"owner": file.owner, "session": file.native_id or file.path} for file in files]
    if cx.json:
        cx.out.emit_json("admin-expire", items, erased=done)
    else:
        cx.out.table(("owner", "session"), [[cx.out.text(one["owner"]), cx.out.text(one["session"])] for one in items])
        cx.out.say(f"{done:,} erased" if not dry_run else f"{len(items):,} would be erased")


def _shared_store(cx: frame.CommandContext) -> Store:
    store = cx.store()
    if not store.setting("shared"):
        raise UsageError("this archive is not shared; run `everturn admin init` first")
    return store


@contextmanager
def _changing(cx: frame.CommandContext) -> Iterator[People]:
    """Yield the people of a shared archive, within a transaction."""
    from everturn.store.people import People

    store = _shared_store(cx)
    with store.write():
        yield People(store)


def _emit_token(cx: frame.CommandContext, name: str, token: str) -> None:
    if cx.json:
        cx.out.emit_json("admin-token", [], person=name, token=token)
    else:
        cx.out.emit(token)
        cx.out.say(cx.out.text(f"a token of {name}; they run: everturn team login URL"))
