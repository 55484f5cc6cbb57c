"""Add everturn to an agent: hooks, recall over MCP, commands, a skill."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from everturn import clock
from everturn.cli import frame
from everturn.errors import NothingFound, PartlyFailed, UsageError
from everturn.sources.contract import InstallPrograms, Source, all_sources
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.install.plan import InstallPlan, InstallRecord

#: The name of the record of background sync.
SERVICE = "service"
ALL = "all"
_OPTIONS = ("where", "hints", "statusline")


@frame.command(
    "everturn install all --dry-run              sum up what would be changed",
    "everturn install all --dry-run --diff       show every line that would be changed",
    "everturn install all                        every agent that was used on this machine",
    "everturn install all --hints --where-you-were",
    "everturn install all --project              for this folder only",
    "everturn install --service                  keep the archive up to date in the background",
)
@click.argument("agent", required=False, default="")
@click.option("--project", is_flag=True, help="For the current folder only, not for all.")
@click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
@click.option("--diff", is_flag=True, help="For `all`: show every changed line instead of a summary.")
@click.option("--hints/--no-hints", default=None, help="Tell the model when a prompt points to what it no longer sees.")
@click.option("--where-you-were/--no-where-you-were", "where", default=None,
              help="Tell a new session where the last one in its folder stopped.")  # fmt: skip
@click.option(
    "--statusline/--no-statusline", default=None, help="Show in the agent's status line whether it is archived."
)
@click.option("--service", is_flag=True, help="Sync in the background, as a service of your session.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(
    cx: frame.CommandContext,
    agent: str,
    project: bool,
    dry_run: bool,
    diff: bool,
    service: bool,
    yes: bool,
    **options: bool | None,
) -> int:
    """Set up AGENT (or `all` that were used here): live capture by hooks, recall over MCP, /recall, /restore, /handoff.

    Shows the changes first and asks: those of one agent line by line, those of `all` as a summary (--diff shows the lines).
    Each agent is set up by itself: a file that cannot be written is reported and does not stop the others. What you wrote in these files stays as it is; what was there before is
    kept, and `everturn uninstall` puts it back. Run it again after an upgrade; it changes nothing twice.

    The hooks note names, ids and sizes, never words, and start a process that brings the archive up to date. --hints and
    --where-you-were let them give the model some quoted lines of the archive; they are off unless you turn them on.
    """
    if not agent and not service:
        raise UsageError(f"which agent? {', '.join(installable_agents())}, or `all`; or --service alone")
    plans = [_agent_plan(cx, source, project, options) for source in _chosen_agents(cx, agent)]
    if service:
        plans.append(_service_plan(cx))
    _show_plans(cx, plans, is_summary=agent == ALL and not diff)
    items = [item for record, plan, _ in plans for item in plan_items(record.name, plan)]
    if cx.json:
        cx.out.emit_json("install", items, dry_run=dry_run)
    if not items:
        cx.out.say("nothing to do: everything is installed")
    elif not dry_run:
        if not yes and not click.confirm("Make these changes?", err=True):
            raise click.Abort
        if not _carry_out_plans(cx, plans):
            return 4
    return 4 if any(plan.refused for _, plan, _ in plans) else 0


Planned = tuple["InstallRecord", "InstallPlan", Any]


def _show_plans(cx: frame.CommandContext, plans: list[Planned], is_summary: bool) -> None:
    for record, plan, _ in plans:
        if is_summary:
            _sum_up_plan(cx, _title(record), plan)
        else:
            show_plan(cx, plan)
    if is_summary and any(plan.work for _, plan, _ in plans):
        cx.out.say("--diff shows every changed line")


def _carry_out_plans(cx: frame.CommandContext, plans: list[Planned]) -> bool:
    """Install into each agent by itself; return whether every one could be started."""
    from everturn.install.plan import carry_out

    where, is_whole = record_folder(cx), True
    for record, plan, start in plans:
        n_changes, n_refused = len(plan.work), len(plan.refused)
        if not n_changes:
            continue
        try:
            carry_out(plan, record, where)
        except OSError as failure:
            cx.out.warn(f"{_title(record)}: not installed; {failure.filename}: {failure.strerror or failure}")
            is_whole = False
            continue
        for path, why in plan.refused[n_refused:]:
            cx.out.warn(f"{path}: {why}")
        n_failed = len(plan.refused) - n_refused
        _say_installed(cx, record, where, n_changes, n_failed)
        for line in run_commands(start) if n_failed < n_changes else ():
            cx.out.say(f"to start it, run: {line}")
    return is_whole


def _say_installed(cx: frame.CommandContext, record: InstallRecord, where: Path, n_changes: int, n_failed: int) -> None:
    title, source = _title(record), installable_agents().get(record.name.partition("@")[0])
    if n_failed == n_changes:
        cx.out.say(f"{title}: not installed; nothing was changed")
        return
    part = f"installed, except for {plural(n_failed, 'file')}" if n_failed else "installed"
    cx.out.say(f"{title}: {part}; what was there before is in {where / record.name}")
    if source is not None and source.install is not None:
        cx.out.say(source.install.remark)


def _title(record: InstallRecord) -> str:
    source = installable_agents().get(record.name.partition("@")[0])
    return source.title if source is not None else "background sync"


def _sum_up_plan(cx: frame.CommandContext, title: str, plan: InstallPlan) -> None:
    """Print one line about an agent, with the files that exist already by name, and why some files are left alone."""
    if not cx.json and plan.work:
        new = [change.path for change in plan.work if change.before is None]
        old = [str(change.path) for change in plan.work if change.before is not None]
        parts = [f"changes {', '.join(old)}"] if old else []
        if new:
            parts.append(f"creates {plural(len(new), 'file')} in {os.path.commonpath([path.parent for path in new])}")
        cx.out.emit(cx.out.text(f"{title}: {'; '.join(parts)}"))
    for path, why in plan.refused + plan.remarks:
        cx.out.warn(f"{path}: {why}")


def _chosen_agents(cx: frame.CommandContext, agent: str) -> list[Source]:
    if agent != ALL:
        return [find_agent(agent)] if agent else []
    places = cx.places()
    found = [source for source in installable_agents().values() if source.roots(places)]
    if not found:
        raise NothingFound(
            f"none of {', '.join(installable_agents())} was used on this machine yet; name the one to set up"
        )
    return found


def _agent_plan(cx: frame.CommandContext, source: Source, project: bool, options: dict[str, bool | None]) -> Planned:
    from everturn.install.plan import InstallRecord, plan_install, read_record, record_name

    here = Path.cwd() if project else None
    name, folder = record_name(source.name, here), record_folder(cx)
    earlier = read_record(folder, name)
    before = earlier.options if earlier else ()
    chosen = {key: key in before if options[key] is None else bool(options[key]) for key in _OPTIONS}
    hook, program = program_command("everturn-hook"), program_command("everturn")
    programs = InstallPrograms(hook, program, archive_environment(cx), **chosen)
    assert source.install is not None
    plan = plan_install(source.install.edits(cx.places(), here, programs), earlier, folder, here)
    enabled = tuple(key for key in _OPTIONS if chosen[key])
    return InstallRecord(name, clock.now(), str(here or ""), enabled), plan, ()


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _service_plan(cx: frame.CommandContext) -> Planned:
    from everturn.install.plan import InstallRecord, plan_install, read_record
    from everturn.install.service import service_for

    made = service_for(cx.places(), program_command("everturn"), archive_environment(cx), cx.settings.state, _user())
    earlier = read_record(record_folder(cx), SERVICE)
    plan = plan_install([made.file], earlier, record_folder(cx))
    record = msgspec.structs.replace(InstallRecord(SERVICE, clock.now()), stop=made.stop)
    return record, plan, made.start


# --- shared with `uninstall` ---


def record_folder(cx: frame.CommandContext) -> Path:
    return cx.settings.state / "installed"


def installable_agents() -> dict[str, Source]:
    return {name: source for name, source in all_sources().items() if source.install is not None}


def find_agent(word: str) -> Source:
    """Return the agent of that name, or of the only name that starts with it. Raises UsageError."""
    word = word.lower().replace("-", "_")
    found = [source for name, source in installable_agents().items() if name == word or name.startswith(word)]
    if len(found) != 1:
        raise UsageError(
            f"no agent {word!r} that everturn can be installed into; there are {', '.join(installable_agents())}, and `all`"
        )
    return found[0]


def program_command(name: str) -> tuple[str, ...]:
    """Return the command that runs one of our programs from any folder."""
    ending = ".exe" if sys.platform == "win32" else ""
    beside = [Path(sys.executable).with_name(name + ending), Path(sys.argv[0]).absolute().with_name(name + ending)]
    found = next((str(path) for path in beside if path.is_file()), None) or shutil.which(name)
    if found:
        return (os.path.abspath(found),)
    return (sys.executable, "-P", "-m", "everturn.hook" if name.endswith("hook") else "everturn")


def archive_environment(cx: frame.CommandContext) -> dict[str, str]:
    """Return the environment that leads an agent to the same archive."""
    found = {}
    if home := os.environ.get("EVERTURN_HOME"):
        found["EVERTURN_HOME"] = os.path.abspath(os.path.expanduser(home))
    if cx.settings.origins["config"] in ("flag", "environment"):
        found["EVERTURN_CONFIG"] = str(cx.settings.config)
    if cx.settings.origins["db"] in ("flag", "environment"):
        if "@" in cx.settings.db:
            cx.out.warn("the archive's address may contain a password, so it is not stored; set EVERTURN_DB")
        else:
            found["EVERTURN_DB"] = cx.settings.db
    return found


def show_plan(cx: frame.CommandContext, plan: InstallPlan) -> None:
    """Print the plan as diffs without secrets, and why some files are left alone."""
    from difflib import unified_diff

    if not cx.json:
        for change in plan.work:
            versions = (change.before, change.after)
            before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in versions)
            old, new = ("/dev/null" if data is None else str(change.path) for data in versions)
            for line in unified_diff(before, after, old, new, lineterm=""):
                cx.out.emit(cx.out.text(line, "\t"))
    for path, why in plan.refused + plan.remarks:
        cx.out.warn(f"{path}: {why}")


def plan_items(name: str, plan: InstallPlan) -> list[dict[str, Any]]:
    does = {(True, False): "create", (False, True): "delete"}
    return [
        {"agent": name, "path": str(one.path), "does": does.get((one.before is None, one.after is None), "change")}
        for one in plan.work
    ]


def write_failure(failure: OSError) -> PartlyFailed:
    why = failure.strerror or str(failure)
    return PartlyFailed(f"cannot write {failure.filename}: {why}; `everturn uninstall` undoes it")


def run_commands(commands: Iterable[Sequence[str]]) -> list[str]:
    """Run commands in order; return those that failed, as typed in a shell."""
    left = []
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
        except (OSError, subprocess.SubprocessError):
            done = False
        left += [] if done else [shlex.join(command)]
    return left
