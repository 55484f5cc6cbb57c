"""Put everturn into an agent: hooks, recall over MCP, commands, a skill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from everturn import clock
from everturn.cli import frame, installation
from everturn.errors import NothingFound, UsageError

if TYPE_CHECKING:
    from everturn.install.plan import InstallPlan, InstallRecord
    from everturn.sources.contract import Source

_OPTIONS = ("where", "hints", "statusline")


@click.command(
    epilog=frame.examples(
        "everturn install all --dry-run              show what would be changed",
        "everturn install all                        every agent that was used on this machine",
        "everturn install all --hints --where-you-were",
        "everturn install all --project              for this folder only",
        "everturn install --service                  keep the archive up to date in the background",
    )
)
@click.argument("agent", required=False, default="")
@click.option("--project", is_flag=True, help="For the current folder only, not for all.")
@click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
@click.option("--hints/--no-hints", default=None, help="Tell the model when a prompt points to what it no longer sees.")
@click.option("--where-you-were/--no-where-you-were", "where", default=None,
              help="Tell a new session where the last one in its folder stopped.")  # fmt: skip
@click.option(
    "--statusline/--no-statusline", default=None, help="Show in the agent's status line whether it is archived."
)
@click.option("--service", is_flag=True, help="Sync in the background, as a service of your session.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@frame.common
def command(
    cx: frame.CommandContext, agent: str, project: bool, dry_run: bool, service: bool, yes: bool, **options: bool | None
) -> int:
    """Set up AGENT (or `all` that were used here): live capture by hooks, recall over MCP, /recall, /restore, /handoff.

    Shows the changes of each file first and asks. What you wrote in these files stays as it is; what was there before is
    kept, and `everturn uninstall` puts it back. Run it again after an upgrade; it changes nothing twice.

    The hooks note names, ids and sizes, never words, and start a process that brings the archive up to date. --hints and
    --where-you-were let them give the model some quoted lines of the archive; they are off unless you turn them on.
    """
    if not agent and not service:
        raise UsageError(f"which agent? {', '.join(installation.installable_agents())}, or `all`; or --service alone")
    plans = [_agent_plan(cx, source, project, options) for source in _chosen_agents(cx, agent)]
    if service:
        plans.append(_service_plan(cx))
    for _, plan, _ in plans:
        installation.show_plan(cx, plan)
    items = [item for record, plan, _ in plans for item in installation.as_items(record.name, plan)]
    if cx.json:
        cx.out.emit_json("install", items, dry_run=dry_run)
    if not items:
        cx.out.say("nothing to do: it is all there already")
    elif not dry_run:
        if not yes and not click.confirm("Make these changes?", err=True):
            raise click.Abort
        _carry_out_plans(cx, plans)
    return 4 if any(plan.refused for _, plan, _ in plans) else 0


Planned = tuple["InstallRecord", "InstallPlan", Any]


def _carry_out_plans(cx: frame.CommandContext, plans: list[Planned]) -> None:
    from everturn.install.plan import carry_out

    where = installation.record_folder(cx)
    for record, plan, start in plans:
        if not plan.work:
            continue
        try:
            carry_out(plan, record, where)
        except OSError as failure:
            raise installation.write_failure(failure) from None
        title = (
            installation.installable_agents()[record.name.partition("@")[0]]
            if record.name != installation.SERVICE
            else None
        )
        cx.out.say(
            f"{title.title if title else 'background sync'}: installed; what was there before is in {where / record.name}"
        )
        if title is not None and title.install is not None:
            cx.out.say(title.install.remark)
        for line in installation.run_all(start):
            cx.out.say(f"to start it, run: {line}")


def _chosen_agents(cx: frame.CommandContext, agent: str) -> list[Source]:
    if agent != installation.ALL:
        return [installation.find_agent(agent)] if agent else []
    places = cx.places()
    found = [source for source in installation.installable_agents().values() if source.roots(places)]
    if not found:
        raise NothingFound(
            f"none of {', '.join(installation.installable_agents())} was used on this machine yet; name the one to set up"
        )
    return found


def _agent_plan(cx: frame.CommandContext, source: Source, project: bool, options: dict[str, bool | None]) -> Planned:
    from everturn.install.plan import InstallRecord, plan_install, read_record, record_name
    from everturn.sources.contract import InstallPrograms

    here = Path.cwd() if project else None
    name, folder = record_name(source.name, here), installation.record_folder(cx)
    earlier = read_record(folder, name)
    before = earlier.options if earlier else ()
    chosen = {key: key in before if options[key] is None else bool(options[key]) for key in _OPTIONS}
    programs = InstallPrograms(
        installation.program_command("everturn-hook"),
        installation.program_command("everturn"),
        installation.archive_environment(cx),
        **chosen,
    )
    assert source.install is not None
    plan = plan_install(source.install.edits(cx.places(), here, programs), earlier, folder, here)
    wanted = tuple(key for key in _OPTIONS if chosen[key])
    return InstallRecord(name, clock.now(), str(here or ""), wanted), plan, ()


def _service_plan(cx: frame.CommandContext) -> Planned:
    from everturn.install.plan import InstallRecord, plan_install, read_record
    from everturn.install.service import service_for

    made = service_for(
        cx.places(), installation.program_command("everturn"), installation.archive_environment(cx), cx.settings.state
    )
    earlier = read_record(installation.record_folder(cx), installation.SERVICE)
    plan = plan_install([made.file], earlier, installation.record_folder(cx))
    record = msgspec.structs.replace(InstallRecord(installation.SERVICE, clock.now()), stop=made.stop)
    return record, plan, made.start
