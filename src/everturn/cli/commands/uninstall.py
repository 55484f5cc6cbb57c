"""Take everturn out of an agent again, or off this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.cli.commands import install
from everturn.errors import NothingFound, UsageError

if TYPE_CHECKING:
    from everturn.install.plan import InstallPlan, InstallRecord

_CONFIRM_WORD = "erase"
_DATABASE_ENDINGS = ("", "-wal", "-shm", "-journal")


@frame.command(
    "everturn uninstall all --dry-run     show what would be changed",
    "everturn uninstall all",
    "everturn uninstall --service",
    "everturn uninstall --purge           everything of everturn, the archive too",
)
@click.argument("agent", required=False, default="")
@click.option("--project", is_flag=True, help="What was installed for the current folder only.")
@click.option("--service", is_flag=True, help="Background sync.")
@click.option("--purge", is_flag=True, help="Everything: agents, service, archive, settings. Asks for a word.")
@click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(
    cx: frame.CommandContext, agent: str, project: bool, service: bool, purge: bool, dry_run: bool, yes: bool
) -> int:
    """Take everturn out of AGENT (or `all`): each file becomes what it was before.

    A file that was changed since it was installed keeps those changes and loses our entries; one of our own files that was
    changed is kept beside, as NAME.kept. A link that leads elsewhere now is not followed. The archive stays, unless you say
    --purge: then the archive, its state and its settings are erased permanently.
    """
    from everturn.install.plan import plan_uninstall, records

    if not (agent or service or purge):
        raise UsageError("which agent? `all` for every one; or --service, or --purge")
    folder = install.record_folder(cx)
    found = [one for one in records(folder) if purge or _is_chosen(one, agent, project, service)]
    if not found and not purge:
        raise NothingFound("nothing of that is installed; `everturn install --help` says how")
    plans = [(record, plan_uninstall(record, folder)) for record in found]
    ours = _list_own_files(cx) if purge else []
    _show(cx, plans, ours, dry_run)
    if dry_run:
        return 0
    _ask(cx, purge, yes, _database(cx) in ours)
    _take_out_plans(cx, plans)
    for path in ours:
        _erase(cx, path)
    return 4 if any(plan.refused for _, plan in plans) else 0


def _is_chosen(record: InstallRecord, agent: str, project: bool, service: bool) -> bool:
    if record.name == install.SERVICE:
        return service or agent == install.ALL
    if project and record.project != str(Path.cwd()):
        return False
    name = record.name.partition("@")[0]
    return agent == install.ALL or (
        bool(agent) and name == install.find_agent(agent).name and (project or not record.project)
    )


def _show(
    cx: frame.CommandContext, plans: list[tuple[InstallRecord, InstallPlan]], ours: list[Path], dry_run: bool
) -> None:
    for _, plan in plans:
        install.show_plan(cx, plan)
    if cx.json:
        items = [item for record, plan in plans for item in install.plan_items(record.name, plan)]
        cx.out.emit_json("uninstall", items, dry_run=dry_run, erased=[str(path) for path in ours])
    for path in ours:
        cx.out.say(f"to be erased: {path}")


def _ask(cx: frame.CommandContext, purge: bool, yes: bool, has_archive: bool) -> None:
    if yes:
        return
    if purge:
        if has_archive:
            cx.out.say("This erases the archive permanently, including sessions that the agents have deleted.")
        if click.prompt(f"Type {_CONFIRM_WORD} to continue", err=True, default="", show_default=False) != _CONFIRM_WORD:
            raise click.Abort
    elif not click.confirm("Make these changes?", err=True):
        raise click.Abort


def _take_out_plans(cx: frame.CommandContext, plans: list[tuple[InstallRecord, InstallPlan]]) -> None:
    from everturn.install.plan import take_out

    for record, plan in plans:
        for line in install.run_commands(record.stop):
            cx.out.warn(f"could not be run: {line}")
        try:
            take_out(plan, record, install.record_folder(cx))
        except OSError as failure:
            raise install.write_failure(failure) from None
        cx.out.say(f"{record.name}: taken out")


def _database(cx: frame.CommandContext) -> Path:
    return Path(cx.settings.db.removeprefix("sqlite:"))


def _list_own_files(cx: frame.CommandContext) -> list[Path]:
    """Return our files on this machine, one by one: a folder that the user chose may contain other things."""
    from everturn.store.vector_file import ENDING, vectors_place

    settings = cx.settings
    database = _database(cx)
    found = [database] if database.is_file() else []
    if settings.is_missing:
        cx.out.say(f"there is no archive at {database}")
    elif not found:
        cx.out.warn("the archive is in a database that others may use: nothing of it is erased; drop it there yourself")
    databases = [database, settings.data / "sample.db", *settings.data.glob(f"*{ENDING}")]
    databases += [place for one in databases[:2] if (place := vectors_place(str(one), settings.data, "")) is not None]
    for path in databases:
        found += [path.with_name(path.name + more) for more in _DATABASE_ENDINGS]
        found += sorted(path.parent.glob(f"{path.name}.before-*"))
    found += [settings.data / "chats", settings.data / "handed-over", settings.state, settings.config]
    return list(dict.fromkeys(path for path in found if path.exists()))


def _erase(cx: frame.CommandContext, path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as failure:
        cx.out.warn(f"cannot erase {path}: {failure.strerror}")
    try:
        path.parent.rmdir()
    except OSError:  # something else is in it
        pass
