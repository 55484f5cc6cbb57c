"""Background sync as a service of the user's session manager: its file, and the commands to start and stop it.

For systemd, launchd and the Task Scheduler. Nothing here writes or runs anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import list2cmdline
from xml.sax.saxutils import escape

from everturn.sources.contract import OwnFile, SearchPlaces

NAME = "everturn"
_LABEL = "org.everturn.sync"


@dataclass(frozen=True)
class Service:
    """A file for the session manager, and the commands to start and stop it."""

    file: OwnFile
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]


def service_for(
    places: SearchPlaces, everturn: Sequence[str], env: Mapping[str, str], state: Path, user: int = 0
) -> Service:
    """Return the service of this platform: `everturn sync --watch`, started at login and restarted on failure.

    `user` is the number of the user, whose domain launchd starts it in.
    """
    words = (*everturn, "sync", "--watch")
    if places.platform == "darwin":
        return _launchd(places.home / "Library" / "LaunchAgents" / f"{_LABEL}.plist", words, env, user)
    if places.platform == "win32":
        return _task(state / f"{NAME}-sync.xml", words, env)
    config = places.env.get("XDG_CONFIG_HOME", "").strip()
    folder = Path(config) if config else places.home / ".config"
    path = folder / "systemd" / "user" / f"{NAME}.service"
    # systemd expands % and $; doubled, they are literal.
    command = " ".join(_quote_for_systemd(word) for word in words)
    environment = "".join(f"Environment={_quote_for_systemd(f'{name}={value}')}\n" for name, value in env.items())
    text = (
        "[Unit]\nDescription=everturn: keep the archive of agent sessions up to date\n\n"
        f"[Service]\nExecStart={command}\n{environment}Restart=on-failure\nRestartSec=30\nNice=10\nUMask=0077\n\n"
        "[Install]\nWantedBy=default.target\n"
    )
    unit, control = path.name, ("systemctl", "--user")
    return Service(
        OwnFile(path, text),
        ((*control, "daemon-reload"), (*control, "enable", "--now", unit)),
        ((*control, "disable", "--now", unit),),
    )


def _quote_for_systemd(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'


def _launchd(path: Path, words: Sequence[str], env: Mapping[str, str], user: int) -> Service:
    command = "".join(f"    <string>{escape(word)}</string>\n" for word in words)
    environment = "".join(f"    <key>{escape(k)}</key>\n    <string>{escape(v)}</string>\n" for k, v in env.items())
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'
        f'<plist version="1.0">\n<dict>\n  <key>Label</key>\n  <string>{_LABEL}</string>\n'
        f"  <key>ProgramArguments</key>\n  <array>\n{command}  </array>\n"
        f"  <key>EnvironmentVariables</key>\n  <dict>\n{environment}  </dict>\n"
        "  <key>RunAtLoad</key>\n  <true/>\n"
        "  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n"
        "  <key>ProcessType</key>\n  <string>Background</string>\n  <key>Umask</key>\n  <integer>63</integer>\n"
        "</dict>\n</plist>\n"
    )
    domain = f"gui/{user}"
    # An older one must be out before this one can go in.
    again = f"launchctl bootout {domain}/{_LABEL} 2>/dev/null; launchctl bootstrap {domain} {shlex.quote(str(path))}"
    return Service(
        OwnFile(path, text),
        (("launchctl", "enable", f"{domain}/{_LABEL}"), ("sh", "-c", again)),
        (("launchctl", "bootout", f"{domain}/{_LABEL}"),),
    )


def _task(path: Path, words: Sequence[str], env: Mapping[str, str]) -> Service:
    """The scheduler passes no environment: the command interpreter sets it, if there is any to set."""
    program, arguments = words[0], list2cmdline(words[1:])
    if env:
        settings = "".join(f'set "{name}={value}"&& ' for name, value in env.items())
        program, arguments = "cmd.exe", f'/d /v:off /s /c "{settings}{list2cmdline(words)}"'
    text = (
        '<?xml version="1.0"?>\n<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">\n'
        "  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>\n"
        "  <Settings>\n    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>\n"
        "    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>\n"
        "    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>\n"
        "    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>\n    <Hidden>true</Hidden>\n"
        "    <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>\n  </Settings>\n"
        f"  <Actions><Exec><Command>{escape(program)}</Command>"
        f"<Arguments>{escape(arguments)}</Arguments></Exec></Actions>\n</Task>\n"
    )
    create = ("schtasks", "/Create", "/F", "/TN", NAME, "/XML", str(path))
    return Service(
        OwnFile(path, text), (create, ("schtasks", "/Run", "/TN", NAME)), (("schtasks", "/Delete", "/F", "/TN", NAME),)
    )
