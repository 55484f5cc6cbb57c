"""The people, projects and tokens of a shared archive, what is shared with whom, and the audit log.

A token is 32 random bytes, so its SHA-256 is enough to recognise it; the token itself is stored nowhere. A source file, with
all sessions in it, is private to its owner until a row of `file_share` names a project.
"""

from __future__ import annotations

from hashlib import sha256
from secrets import token_urlsafe
from typing import cast

from msgspec import Struct

from everturn.errors import NothingFound, UsageError
from everturn.store.contract import Store
from everturn.store.sql_store import SqlStore

ROLES = ("member", "reader")
SCOPES = ("read", "push")
DAY = 86_400_000

_TOKENS = """
    SELECT t."id", p."id", p."name", p."role", t."scope", t."expires_at" FROM "token" t JOIN "person" p ON p."id"=t."person"
    WHERE t."revoked_at"=0 AND p."ended_at"=0
"""
_SHARE = """
    INSERT INTO "file_share" ("source","project") VALUES (?,?) ON CONFLICT ("source") DO UPDATE SET "project"=excluded."project"
"""
_LINKS = 'SELECT "id","source","agent","native_id","created_at","expires_at" FROM "share_link"'
_OWN_MEMBERSHIP = """
    SELECT r."id", r."shares" FROM "project" r JOIN "project_member" m ON m."project"=r."id" WHERE r."name"=? AND m."person"=?
"""


class Caller(Struct, frozen=True):
    """The person behind a valid token."""

    token: int
    person: int
    name: str
    role: str
    scopes: tuple[str, ...]
    expires_at: int

    def may(self, scope: str) -> bool:
        """Whether the token and the role allow it. A reader never pushes."""
        return scope in self.scopes and (scope != "push" or self.role == "member")


class ShareLink(Struct, frozen=True):
    """A link to one session. `secret` is known when it is made, never again."""

    id: int
    source: int
    agent: str
    native_id: str
    created_at: int
    expires_at: int
    secret: str = ""


class People:
    """The identities of one archive. Changes happen inside `store.write()`."""

    def __init__(self, store: Store) -> None:
        self._driver = cast("SqlStore", store).driver

    # --- people and tokens ---
    def add_person(self, name: str, role: str, now: int) -> int:
        """Add a person, or give one access again. Raises UsageError for a name that cannot be."""
        if not name or len(name) > 100 or "/" in name or not name.isprintable():
            raise UsageError(f"{name!r} cannot be the name of a person; use up to 100 printable characters without /")
        if role not in ROLES:
            raise UsageError(f"unknown role {role!r}; use one of {', '.join(ROLES)}")
        sql = """
            INSERT INTO "person" ("name","role","created_at","ended_at") VALUES (?,?,?,0)
            ON CONFLICT ("name") DO UPDATE SET "role"=excluded."role","ended_at"=0
        """
        self._driver.run(sql, [name, role, now])
        return self.person(name)

    def person(self, name: str) -> int:
        """Return the id of a person. Raises NothingFound."""
        row = self._driver.one('SELECT "id" FROM "person" WHERE "name"=?', [name])
        if row is None:
            raise NothingFound(f"there is no person {name!r}; `everturn admin people` lists them")
        return int(row[0])

    def people(self) -> list[tuple[str, str, int, int]]:
        """Return name, role, end of access (0: none) and number of valid tokens of everybody."""
        sql = """
            SELECT p."name",p."role",p."ended_at",(SELECT COUNT(*) FROM "token" t WHERE t."person"=p."id" AND t."revoked_at"=0)
            FROM "person" p ORDER BY p."name"
        """
        return [(str(name), str(role), int(ended), int(n)) for name, role, ended, n in self._driver.all(sql)]

    def end_access(self, name: str, now: int) -> None:
        """Revoke all tokens of a person. What the person has pushed stays."""
        person = self.person(name)
        self._driver.run('UPDATE "person" SET "ended_at"=? WHERE "id"=?', [now, person])
        self._driver.run('UPDATE "token" SET "revoked_at"=? WHERE "person"=? AND "revoked_at"=0', [now, person])

    def new_token(self, name: str, scopes: tuple[str, ...], now: int, days: int) -> str:
        """Return a new token of a person. Raises UsageError for an unknown scope."""
        if not scopes or (unknown := [scope for scope in scopes if scope not in SCOPES]):
            raise UsageError(
                f"there is no scope {unknown[0] if scopes else ''!r}; give one or more of {', '.join(SCOPES)}"
            )
        token = f"evt_{token_urlsafe(32)}"
        sql = """
            INSERT INTO "token" ("digest","person","scope","created_at","expires_at","revoked_at") VALUES (?,?,?,?,?,0)
        """
        self._driver.run(sql, [_digest(token), self.person(name), " ".join(scopes), now, now + days * DAY])
        return token

    def caller(self, token: str, now: int) -> Caller | None:
        """Return who a token belongs to; None if it is unknown, expired or revoked."""
        row = self._driver.one(f'{_TOKENS} AND t."digest"=?', [_digest(token)])
        if row is None or row[5] <= now:
            return None
        return Caller(row[0], row[1], row[2], row[3], tuple(str(row[4]).split()), row[5])

    def role(self, name: str) -> str:
        """Return the role of a person. Raises NothingFound."""
        row = self._driver.one('SELECT "role" FROM "person" WHERE "id"=?', [self.person(name)])
        return str(row[0]) if row else ""

    # --- identities ---
    def set_email(self, name: str, email: str) -> None:
        """Name the address by which the identity provider knows a person; the next login binds the person anew."""
        if email.count("@") != 1 or not email.isprintable() or " " in email or len(email) > 254:
            raise UsageError(f"{email!r} is not an e-mail address")
        person, address = self.person(name), email.lower()
        taken = self._driver.one('SELECT 1 FROM "identity" WHERE "email"=? AND "person"<>?', [address, person])
        if taken is not None:
            raise UsageError(f"{email} belongs to another person; `everturn admin people` lists them")
        self._driver.run('DELETE FROM "identity" WHERE "person"=?', [person])
        sql = """INSERT INTO "identity" ("person","email","issuer","subject") VALUES (?,?,'','')"""
        self._driver.run(sql, [person, address])

    def identify(self, issuer: str, subject: str, email: str) -> str | None:
        """Return the person with this subject or, at the first login, with this verified address; None for a stranger."""
        sql = 'SELECT p."name" FROM "identity" i JOIN "person" p ON p."id"=i."person" WHERE p."ended_at"=0 AND '
        row = self._driver.one(f'{sql} i."issuer"=? AND i."subject"=?', [issuer, subject])
        if row is None and email:
            row = self._driver.one(f"""{sql} i."issuer"='' AND i."email"=?""", [email.lower()])
            if row is not None:
                bind = """UPDATE "identity" SET "issuer"=?,"subject"=? WHERE "email"=? AND "issuer"=''"""
                self._driver.run(bind, [issuer, subject, email.lower()])
        return str(row[0]) if row else None

    # --- projects ---
    def set_project(self, name: str, shares: bool, now: int) -> int:
        """Add a project, or change whether what its members push is shared with it."""
        sql = """
            INSERT INTO "project" ("name","shares","created_at") VALUES (?,?,?)
            ON CONFLICT ("name") DO UPDATE SET "shares"=excluded."shares"
        """
        self._driver.run(sql, [name, int(shares), now])
        return self.project(name)

    def project(self, name: str) -> int:
        """Return the id of a project. Raises NothingFound."""
        row = self._driver.one('SELECT "id" FROM "project" WHERE "name"=?', [name])
        if row is None:
            raise NothingFound(f"there is no project {name!r}; `everturn admin project NAME` adds one")
        return int(row[0])

    def set_member(self, project: str, person: str, is_member: bool) -> None:
        """Let a person see what is shared with a project, or no longer."""
        key = [self.project(project), self.person(person)]
        self._driver.run('DELETE FROM "project_member" WHERE "project"=? AND "person"=?', key)
        if is_member:
            self._driver.run('INSERT INTO "project_member" ("project","person") VALUES (?,?)', key)

    def membership(self, caller: Caller, project: str) -> tuple[int, bool] | None:
        """Return the id of a project and whether it shares by rule, if the person is a member."""
        row = self._driver.one(_OWN_MEMBERSHIP, [project, caller.person])
        return None if row is None else (int(row[0]), bool(row[1]))

    # --- sharing ---
    def share_file(self, source: int, project: int | None) -> None:
        """Share a source file with a project, or with nobody."""
        if project is None:
            self._driver.run('DELETE FROM "file_share" WHERE "source"=?', [source])
        else:
            self._driver.run(_SHARE, [source, project])

    # --- links ---
    def new_link(self, caller: Caller, source: int, session: tuple[str, str], now: int, days: int) -> ShareLink:
        """Return a new link to a session, by agent and native id, of a file of the caller's own."""
        secret = f"evs_{token_urlsafe(32)}"
        sql = """
            INSERT INTO "share_link" ("digest","person","source","agent","native_id","created_at","expires_at","revoked_at")
            VALUES (?,?,?,?,?,?,?,0)
        """
        ends = now + days * DAY
        made = self._driver.insert(sql, [_digest(secret), caller.person, source, *session, now, ends])
        return ShareLink(made, source, *session, now, ends, secret)

    def links(self, caller: Caller, now: int) -> list[ShareLink]:
        """Return the caller's own links that are still valid, newest first."""
        sql = f'{_LINKS} WHERE "person"=? AND "revoked_at"=0 AND "expires_at">? ORDER BY "id" DESC'
        return [ShareLink(*row) for row in self._driver.all(sql, [caller.person, now])]

    def revoke_link(self, caller: Caller, number: int, now: int) -> None:
        """End a link of the caller's own. Raises NothingFound."""
        sql = 'UPDATE "share_link" SET "revoked_at"=? WHERE "id"=? AND "person"=? AND "revoked_at"=0'
        if not self._driver.run(sql, [now, number, caller.person]):
            raise NothingFound(f"you have no valid link {number}; `everturn team links` lists them")

    def link(self, secret: str, now: int) -> tuple[Caller, ShareLink] | None:
        """Return who made a link, without any rights, and the link; None if it is unknown, expired or revoked."""
        row = self._driver.one(
            f'{_LINKS} WHERE "digest"=? AND "revoked_at"=0 AND "expires_at">?', [_digest(secret), now]
        )
        sql = """
            SELECT p."id",p."name",p."role" FROM "person" p JOIN "share_link" l ON l."person"=p."id"
            WHERE l."id"=? AND p."ended_at"=0
        """
        owner = self._driver.one(sql, [row[0]]) if row else None
        if row is None or owner is None:
            return None
        made = ShareLink(*row)
        return Caller(0, owner[0], owner[1], owner[2], (), made.expires_at), made

    def note(self, caller: Caller, action: str, subject: str, now: int) -> None:
        """Write a line of the audit log."""
        sql = 'INSERT INTO "audit" ("at","person","token","action","subject") VALUES (?,?,?,?,?)'
        self._driver.run(sql, [now, caller.person, caller.token, action, subject])

    def audit(self, since: int, limit: int) -> list[tuple[int, str, str, str]]:
        """Return time, person, action and subject, newest first."""
        sql = """
            SELECT a."at",p."name",a."action",a."subject" FROM "audit" a JOIN "person" p ON p."id"=a."person"
            WHERE a."at">=? ORDER BY a."id" DESC LIMIT ?
        """
        return [
            (int(at), str(name), str(what), str(subject))
            for at, name, what, subject in self._driver.all(sql, [since, limit])
        ]


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
