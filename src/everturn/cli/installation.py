"""What `install` and `uninstall` have in common: which agents are meant, what they are to run, how a plan is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everturn.cli import frame
from everturn.errors import PartlyFailed, UsageError
from everturn.sources.contract import Source, all_sources

if TYPE_CHECKING:
    from everturn.install.plan import FileChange, InstallPlan

#: The name under which background sync is recorded.
SERVICE = "service"
ALL = "all"


def record_folder(cx: frame.CommandContext) -> Path:
    """Where it is recorded what was installed."""
    return cx.settings.state / "installed"


def installable_agents() -> dict[str, Source]:
    """The agents that everturn can be installed into."""
    return {name: source for name, source in all_sources().items() if source.install is not None}


def find_agent(word: str) -> Source:
    """The agent of that name, or of the only name that begins so."""
    word = word.lower().replace("-", "_")
    found = [source for name, source in installable_agents().items() if name == word or name.startswith(word)]
    if len(found) != 1:
        raise UsageError(
            f"no agent {word!r} that everturn can be installed into; there are {', '.join(installable_agents())}, and `all`"
        )
    return found[0]


def program_command(name: str) -> tuple[str, ...]:
    """The words that run one of our programs, from anywhere."""
    ending = ".exe" if sys.platform == "win32" else ""
    beside = [Path(sys.executable).with_name(name + ending), Path(sys.argv[0]).absolute().with_name(name + ending)]
    found = next((str(path) for path in beside if path.is_file()), None) or shutil.which(name)
    if found:
        return (os.path.abspath(found),)
    return (sys.executable, "-P", "-m", "everturn.hook" if name.endswith("hook") else "everturn")


def archive_environment(cx: frame.CommandContext) -> dict[str, str]:
    """The variables that lead to the same archive from wherever an agent is started."""
    found = {}
    if home := os.environ.get("EVERTURN_HOME"):
        found["EVERTURN_HOME"] = os.path.abspath(os.path.expanduser(home))
    if cx.settings.origins["config"] in ("flag", "environment"):
        found["EVERTURN_CONFIG"] = str(cx.settings.config)
    if cx.settings.origins["db"] in ("flag", "environment"):
        if "@" in cx.settings.db:
            cx.out.warn("the address of the archive may hold a password and is not written down; set EVERTURN_DB")
        else:
            found["EVERTURN_DB"] = cx.settings.db
    return found


def show_plan(cx: frame.CommandContext, plan: InstallPlan) -> None:
    """The plan as a diff of each file, without secrets, and why some are left alone."""
    if not cx.json:
        for change in plan.work:
            for line in _diff(change):
                cx.out.emit(cx.out.text(line, "\t"))
    for path, why in plan.refused + plan.remarks:
        cx.out.warn(f"{path}: {why}")


def as_items(name: str, plan: InstallPlan) -> list[dict[str, Any]]:
    """The plan for programs."""
    does = {(True, False): "create", (False, True): "delete"}
    return [
        {"agent": name, "path": str(one.path), "does": does.get((one.before is None, one.after is None), "change")}
        for one in plan.work
    ]


def write_failure(failure: OSError) -> PartlyFailed:
    """A file that could not be written."""
    why = failure.strerror or str(failure)
    return PartlyFailed(f"cannot write {failure.filename}: {why}; `everturn uninstall` takes out what was done")


def run_all(commands: Iterable[Sequence[str]]) -> list[str]:
    """Run commands one after another; those that could not be run, as one would type them."""
    from everturn.install.service import typed_command

    left = []
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
        except (OSError, subprocess.SubprocessError):
            done = False
        left += [] if done else [typed_command(command)]
    return left


def _diff(change: FileChange) -> Iterable[str]:
    from difflib import unified_diff

    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (change.before, change.after))
    old, new = ("/dev/null" if data is None else str(change.path) for data in (change.before, change.after))
    return unified_diff(before, after, old, new, lineterm="")
