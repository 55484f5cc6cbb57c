"""Search and read what your team shares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
import msgspec

from everturn.cli import frame
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.team.client import TeamClient


@frame.command(
    "everturn team login https://everturn.example.com",
    "everturn team search login bug",
    "everturn team show 3f2a9c",
    "everturn team why src/app.py:10-20",
    "everturn team share 3f2a9c github.com/example/shop",
    "everturn team link 3f2a9c --days 7",
    make=click.group,
    json=False,
)
def command(cx: frame.CommandContext) -> None:
    """Search and read what your team shares, on the server you are logged in to.

    Agents can use it too: MCP over HTTP at URL/mcp, with `Authorization: Bearer TOKEN`.
    """


@frame.command(
    "everturn team login https://everturn.example.com < token.txt",
    "everturn team login https://everturn.example.com --sso",
    make=command.command,
)
@click.argument("url")
@click.option("--sso", is_flag=True, help="Log in with your team's identity provider, in the browser.")
def login(cx: frame.CommandContext, url: str, sso: bool) -> None:
    """Remember a server and your token for it, which is read from stdin.

    An administrator makes the token with `everturn admin invite NAME`. With --sso, a browser opens for the login, and the
    server makes a token that is valid for 30 days.
    """
    from everturn.team.client import Login, TeamClient, save_login

    if sso:
        token = _log_in_by_browser(cx, url.rstrip("/"))
    else:
        token = click.prompt("token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    made = Login(url.rstrip("/"), token.strip())
    path = cx.settings.state / "team.json"
    save_login(path, made)
    me = TeamClient(made).get("/v1/me")
    done = f"you are {me['name']} on {made.server}; the token is in {path}"
    cx.out.report("team-login", done, server=made.server, **me)


def _log_in_by_browser(cx: frame.CommandContext, url: str) -> str:
    import webbrowser

    from everturn.team.client import Login, TeamClient
    from everturn.team.sign_in import ProviderRules, fetch_code

    def browse(address: str) -> None:
        cx.out.say(cx.out.text(f"log in here, if no browser opens: {address}"))
        webbrowser.open(address)

    client = TeamClient(Login(url, ""))
    rules = client.get("/v1/login")
    code = fetch_code(ProviderRules(rules["issuer"], rules["client"]), rules["nonce"], browse)
    return str(client.post("/v1/login", msgspec.json.encode(code))["token"])


@frame.command("everturn team search login bug", make=command.command)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100))
def search(cx: frame.CommandContext, words: tuple[str, ...], limit: int) -> int | None:
    """Search what you may see on the server.

    Filters of `everturn search` stand among the words, above all owner:ann, machine:laptop and project:shop.
    """
    found = _client(cx).get("/v1/search", q=" ".join(words), limit=limit)
    if cx.json:
        cx.out.emit_json("team-search", found["items"], next=found["next"], note=found["note"])
    for hit in [] if cx.json else found["items"]:
        turn = f" turn {hit['turn']}" if hit["turn"] else ""
        cx.out.emit(cx.out.text(f"{hit['session']}{turn}  {hit['owner']}  {hit['title']}"))
        cx.out.emit(cx.out.text(f"    {hit['snippet']}"))
    if found["note"]:
        cx.out.say(cx.out.text(found["note"]))
    return None if found["items"] else 3


@frame.command("everturn team sessions --owner ann --project shop", make=command.command)
@click.option("--owner", default="", help="Only the sessions of one person.")
@click.option("--machine", default="", help="Only those of one machine.")
@click.option("--project", default="", help="Only those of a repository: github.com/example/shop, or shop.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200))
def sessions(cx: frame.CommandContext, owner: str, machine: str, project: str, limit: int) -> int | None:
    """List the sessions you may see on the server, newest first."""
    found = _client(cx).get("/v1/sessions", owner=owner, machine=machine, project=project, limit=limit)
    columns = ("session", "owner", "agent", "turns", "title")
    rows = [[cx.out.text(str(one[name])) for name in columns] for one in found["items"]]
    cx.out.emit_rows("team-sessions", found["items"], columns, rows, right=(3,), next=found["next"])
    return None if found["items"] else 3


@frame.command("everturn team show 3f2a9c --turns 3-5", make=command.command)
@click.argument("session")
@click.option("--turns", default="", metavar="FIRST-LAST", help="Only these turns.")
def show(cx: frame.CommandContext, session: str, turns: str) -> None:
    """Read a session on the server."""
    first, _, last = turns.partition("-")
    found = _client(cx).get(_session_path(session), first=first, last=last or first)
    _print_text(cx, "team-show", found, [found])


@frame.command("everturn team restore 3f2a9c --budget 2000", make=command.command)
@click.argument("session")
@click.option(
    "--budget", default=4000, show_default=True, metavar="TOKENS", help="The longest result.", type=click.IntRange(1)
)
def restore(cx: frame.CommandContext, session: str, budget: int) -> None:
    """Restore a session on the server: what a fresh agent must know to continue it, each statement with its place."""
    found = _client(cx).get(f"{_session_path(session)}/restore", budget=budget)
    _print_text(cx, "team-restore", found, [found])


@frame.command("everturn team stats --by project --days 30", make=command.command)
@click.option(
    "--by", default="owner", show_default=True, type=click.Choice(("owner", "project", "agent", "model", "month"))
)
@click.option("--days", default=0, type=click.IntRange(0, 36_500), help="Only sessions of the last so many days.")
def stats(cx: frame.CommandContext, by: str, days: int) -> int | None:
    """Show what the sessions did that you may see on the server: turns, calls, errors and tokens.

    The work of subagents is counted; they are not among the sessions.
    """
    found = _client(cx).get("/v1/stats", by=by, days=days)["items"]
    names = ("sessions", "turns", "calls", "errors", "tokens_in", "tokens_out", "tokens_cache_read")
    rows = [[cx.out.text(one["key"]) or "-", *(f"{one[name]:,}" for name in names)] for one in found]
    heads = ("sessions", "turns", "calls", "errors", "in", "out", "cached")
    cx.out.emit_rows("team-stats", found, (by, *heads), rows, right=range(1, 8), by=by)
    return None if found else 3


@frame.command(
    "everturn team why src/app.py:10-20",
    "everturn team why main..feature --project github.com/example/shop",
    make=command.command,
)
@click.argument("target")
@click.option("--project", default="", help="The repository: github.com/example/shop. Default: the one you are in.")
def why(cx: frame.CommandContext, target: str, project: str) -> None:
    """Say which turn of anybody wrote TARGET, of the sessions that you may see: FILE, FILE:LINE-LINE, a commit, or A..B.

    The server looks at its own copy of the repository (`everturn serve --repository`), as it is there.
    """
    from everturn.team.client import repository_target

    named, path = repository_target(Path.cwd(), target)
    found = _client(cx).get("/v1/why", project=project or named, target=path)
    _print_text(cx, "team-why", found, found["items"], commits=found["commits"])


@frame.command("everturn team share 3f2a9c github.com/example/shop", make=command.command)
@click.argument("session")
@click.argument("project", required=False)
def share(cx: frame.CommandContext, session: str, project: str | None) -> None:
    """Share one of your sessions with the members of PROJECT; without PROJECT, take it back."""
    body: dict[str, Any] = {"session": session, "project": project}
    done = _client(cx).post("/v1/share", msgspec.json.encode(body))
    who = f"the members of {project} can read it" if project else "only you can read it"
    cx.out.report("team-share", f"{done['session']}: {who}", **done)


@frame.command("everturn team link 3f2a9c --days 7", make=command.command)
@click.argument("session")
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365), help="How long the link is valid.")
def link(cx: frame.CommandContext, session: str, days: int) -> None:
    """Print a link to one of your sessions, for people without a token. Whoever has it can read that session.

    Secrets are masked and pictures are left out. The link is not shown again; `everturn team unlink` ends it early.
    """
    client = _client(cx)
    made = client.post("/v1/links", msgspec.json.encode({"session": session, "days": days}))
    address = client.address(made.pop("path"))
    if cx.json:
        cx.out.emit_json("team-link", [], address=address, **made)
    else:
        cx.out.emit(cx.out.text(address))
        cx.out.say(cx.out.text(f"link {made['id']} to {made['session']}, valid until {iso(made['expires_at'])}"))


@frame.command("everturn team links", make=command.command)
def links(cx: frame.CommandContext) -> None:
    """List your links that are valid."""
    found = _client(cx).get("/v1/links")["items"]
    rows = [[str(one["id"]), cx.out.text(one["session"]), iso(one["expires_at"])] for one in found]
    cx.out.emit_rows("team-links", found, ("link", "session", "valid until"), rows)


@frame.command("everturn team unlink 12", make=command.command)
@click.argument("number", type=click.IntRange(1))
def unlink(cx: frame.CommandContext, number: int) -> None:
    """End a link before it expires."""
    _client(cx).post(f"/v1/links/{number}/revoke", b"{}")
    cx.out.report("team-unlink", f"link {number} is no longer valid", id=number)


@frame.command("everturn team erase 3f2a9c", "everturn team erase --everything --yes", make=command.command)
@click.argument("session", required=False, default="")
@click.option("--everything", is_flag=True, help="Everything that you have pushed, from all of your machines.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(cx: frame.CommandContext, session: str, everything: bool, yes: bool) -> None:
    """Erase one of your sessions on the server, or everything of yours. Your own archives keep it.

    A session is not pushed again; after --everything, the next push sends all of it again. Backups of the server keep what they hold.
    """
    what = "everything you have pushed" if everything else session
    if not yes:
        click.confirm(cx.out.text(f"erase {what} on the server?"), abort=True, err=True)
    done = _client(cx).post("/v1/erase", msgspec.json.encode({"session": session, "everything": everything}))
    cx.out.report("team-erase", f"{done['erased']:,} files were erased on the server", **done)


def _session_path(session: str) -> str:
    return f"/v1/sessions/{quote(session, safe='')}"


def _print_text(cx: frame.CommandContext, name: str, found: dict[str, Any], items: list[Any], **more: Any) -> None:
    """Print the text of an answer of the server; with --json its items."""
    if cx.json:
        cx.out.emit_json(name, items, **more)
    else:
        cx.out.emit(cx.out.text(found["text"], "\n"))


def _client(cx: frame.CommandContext) -> TeamClient:
    from everturn.team.client import TeamClient, load_login

    return TeamClient(load_login(cx.settings.state / "team.json"))
