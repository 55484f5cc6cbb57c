"""Settings: flag over environment over config file over default.

The only module that reads the environment, the home folder and the machine's name for others. Surfaces call `load` and
pass plain values down.

    EVERTURN_HOME     one folder for everything: archive.db, config.toml, state/
    EVERTURN_DB       the archive: a path, sqlite:path, memory:, or postgresql://…
    EVERTURN_CONFIG   the config file
    EVERTURN_KEY      where the key of an encrypted archive comes from, as `encryption.key`
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everturn.config_file import AutoPush, CaptureTable, ConfigFile, Mode, Workspace, read_config

#: The origins of a value, highest priority first.
ORIGINS = ("flag", "environment", "config", "default")


@dataclass(frozen=True)
class Folders:
    """The default folders."""

    data: Path
    state: Path
    config: Path


@dataclass(frozen=True)
class Capture:
    """The defaults for workspaces without a rule."""

    mode: Mode = "full"
    exclude: tuple[str, ...] = ()
    unknown: str = ""  # a mode, for unknown workspaces; "": the strictest one of the rules
    processes: int = 1  # that may read the files of a large sync


@dataclass(frozen=True)
class Encryption:
    """Where the keys of encrypted archives come from."""

    key: str = ""
    previous: str = ""
    passphrase: str = field(default="", repr=False)  # from the environment


@dataclass(frozen=True)
class Settings:
    """The effective settings."""

    db: str
    config: Path
    data: Path
    state: Path
    machine: str
    owner: str
    capture: Capture
    workspaces: tuple[Workspace, ...]
    secret_patterns: tuple[str, ...]  # the user's own, in RE2's syntax
    keep: str  # how long sessions are kept, see `everturn.maintenance.retention`; "": forever
    encryption: Encryption
    sources: Mapping[str, tuple[str, ...]]  # source name → folders to search besides its own
    models: Mapping[str, Any]  # the [models] table, see `everturn.llm.config`
    meaning: Mapping[str, Any]  # the [meaning] table, see `everturn.llm.embedder`; empty: none
    push: AutoPush  # whether every sync pushes to the team's server
    push_limit: str  # what a push sends in a second; "": no limit
    origins: Mapping[str, str]  # key → where its value comes from

    @property
    def is_missing(self) -> bool:
        """Whether the archive would be a file that does not exist."""
        return not _is_url(self.db) and not os.path.exists(self.db)

    @property
    def prices(self) -> Path:
        """The path of the user's own model prices, see `everturn.analytics.cost`."""
        return self.config.with_name("prices.toml")

    def make_folders(self) -> None:
        """Create our folders and that of the database file, accessible to their owner only."""
        archive_folder = [] if _is_url(self.db) else [Path(self.db).parent]
        for folder in (self.data, self.state, *archive_folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def load(flags: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """Load the settings. `flags` may hold `db` and `config`; empty values are ignored."""
    env = os.environ if env is None else env
    flags = flags or {}
    folders = _default_folders(env)
    config_origin, config_path = _first_given(
        flag=flags.get("config"), environment=env.get("EVERTURN_CONFIG"), default=str(folders.config / "config.toml")
    )
    path = Path(os.path.abspath(os.path.expanduser(config_path)))
    file = ConfigFile() if _is_missing(path) else read_config(path)
    db_origin, db = _first_given(
        flag=flags.get("db"),
        environment=env.get("EVERTURN_DB"),
        config=_relative_to_config(path.parent, file.db),
        default=str(folders.data / "archive.db"),
    )
    machine_origin, machine = _first_given(config=file.machine, default=_machine_name())
    owner_origin, owner = _first_given(config=file.owner, default=_login_name(env))
    key_origin, key = _first_given(environment=env.get("EVERTURN_KEY"), config=file.encryption.key)
    origins = {
        "db": db_origin,
        "encryption.key": key_origin,
        "config": config_origin,
        "machine": machine_origin,
        "owner": owner_origin,
    }
    origins |= {key: "default" if value is None else "config" for key, value in _file_only_values(file).items()}
    return Settings(
        db=_absolute_path(db),
        config=path,
        data=folders.data,
        state=folders.state,
        machine=machine,
        owner=owner,
        capture=_capture(file.capture),
        workspaces=tuple(
            Workspace(os.path.expanduser(rule.path), rule.mode, rule.keep) for rule in file.workspace or ()
        ),
        secret_patterns=file.secrets.patterns or (),
        keep=file.retention.keep or "",
        encryption=Encryption(
            _key_source(path.parent, key),
            _key_source(path.parent, file.encryption.previous),
            env.get("EVERTURN_PASSPHRASE", ""),
        ),
        sources={name: _expand_paths(paths) for name, paths in (file.sources or {}).items()},
        models=file.models or {},
        meaning=file.meaning or {},
        push=file.team.push or "never",
        push_limit=file.team.limit or "",
        origins=origins,
    )


def _is_missing(path: Path) -> bool:
    """Whether there is no file. One that cannot be looked at is read, for the error."""
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _capture(table: CaptureTable) -> Capture:
    return Capture(
        table.mode or "full",
        _expand_paths(table.exclude or ()),
        table.unknown or "",
        table.processes or _usable_cores(),
    )


def _usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default_folders(env: Mapping[str, str]) -> Folders:
    home = env.get("EVERTURN_HOME")
    if home:
        base = Path(os.path.abspath(os.path.expanduser(home)))
        return Folders(data=base, state=base / "state", config=base)
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("everturn", appauthor=False)
    return Folders(data=dirs.user_data_path, state=dirs.user_state_path, config=dirs.user_config_path)


def _first_given(**values: str | None) -> tuple[str, str]:
    """Return the first non-empty value with its origin."""
    for origin in ORIGINS:
        value = values.get(origin)
        if value:
            return origin, value
    return "default", ""


def _file_only_values(file: ConfigFile) -> dict[str, object]:
    """Return the values that only the config file can set."""
    return {
        "capture.mode": file.capture.mode,
        "capture.exclude": file.capture.exclude,
        "capture.unknown": file.capture.unknown,
        "capture.processes": file.capture.processes,
        "secrets.patterns": file.secrets.patterns,
        "retention.keep": file.retention.keep,
        "team.push": file.team.push,
        "team.limit": file.team.limit,
        "workspace": file.workspace,
        "sources": file.sources,
        "models": file.models,
        "meaning": file.meaning,
    }


def _expand_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(os.path.expanduser, paths))


def _is_url(db: str) -> bool:
    return db.partition(":")[0] in ("memory", "postgresql", "postgres")


def _relative_to_config(folder: Path, db: str | None) -> str | None:
    """Resolve a relative path from the folder of the config file, not from the working directory."""
    if not db or _is_url(db):
        return db
    return str(folder / os.path.expanduser(db.removeprefix("sqlite:")))


def _key_source(folder: Path, text: str | None) -> str:
    """Resolve the path of a key file from the folder of the config file."""
    if not text or not text.startswith("file:"):
        return text or ""
    return f"file:{os.path.abspath(folder / os.path.expanduser(text.removeprefix('file:')))}"


def _absolute_path(db: str) -> str:
    return db if _is_url(db) else os.path.abspath(os.path.expanduser(db.removeprefix("sqlite:")))


def _machine_name() -> str:
    import platform

    return platform.node() or "unknown"


def _login_name(env: Mapping[str, str]) -> str:
    """Return the login name. Containers often run under a user id without one."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if env.get(variable):
            return env[variable]
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
