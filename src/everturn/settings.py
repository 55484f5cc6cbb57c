"""Where everything is and what the user wants: flag over environment over config file over default.

The only module that reads the environment, the home folder and the name of the machine for others. Surfaces call
`load` and pass plain values down.

    EVERTURN_HOME     one folder for everything: archive.db, config.toml, state/
    EVERTURN_DB       the archive: a path, sqlite:path, memory:, or postgresql://…
    EVERTURN_CONFIG   the config file
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everturn import config_file
from everturn.config_file import ConfigFile, Mode, Workspace

#: Where a value comes from, strongest first.
ORIGINS = ("flag", "environment", "config", "default")


@dataclass(frozen=True)
class Folders:
    """Where things are kept when nothing else is said."""

    data: Path
    state: Path
    config: Path


@dataclass(frozen=True)
class Capture:
    """What is kept of everything that no workspace rule fits."""

    mode: Mode = "full"
    exclude: tuple[str, ...] = ()


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
    sources: Mapping[str, tuple[str, ...]]  # source name → folders to search besides its own
    models: Mapping[str, Any]  # what the file says under [models], see `everturn.llm.configured`
    meaning: Mapping[str, Any]  # what it says under [meaning], see `everturn.llm.embedding`; empty: there is none
    origins: Mapping[str, str]  # key → where its value comes from

    @property
    def is_missing(self) -> bool:
        """The archive would be a file, and there is none."""
        return not _is_url(self.db) and not os.path.exists(self.db)

    @property
    def prices(self) -> Path:
        """The user's own prices of models, where there are some: see `everturn.analytics.cost`."""
        return self.config.with_name("prices.toml")

    def make_folders(self) -> None:
        """Make our own folders, and the one a database file is to lie in, for nobody but their owner."""
        for folder in (self.data, self.state, *_archive_folder(self.db)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def load(flags: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """Put the settings together. `flags` may hold `db` and `config`; an empty value says nothing."""
    env = os.environ if env is None else env
    flags = flags or {}
    folders = _folders(env)
    config_origin, config_path = _first_given(
        flag=flags.get("config"), environment=env.get("EVERTURN_CONFIG"), default=str(folders.config / "config.toml")
    )
    path = Path(os.path.abspath(os.path.expanduser(config_path)))
    file = config_file.read(path)
    db_origin, db = _first_given(
        flag=flags.get("db"),
        environment=env.get("EVERTURN_DB"),
        config=_relative_to_config(path.parent, file.db),
        default=str(folders.data / "archive.db"),
    )
    machine_origin, machine = _first_given(config=file.machine, default=_machine())
    owner_origin, owner = _first_given(config=file.owner, default=_owner(env))
    origins = {"db": db_origin, "config": config_origin, "machine": machine_origin, "owner": owner_origin}
    origins |= {key: "default" if value is None else "config" for key, value in _file_only_values(file).items()}
    return Settings(
        db=_absolute_path(db),
        config=path,
        data=folders.data,
        state=folders.state,
        machine=machine,
        owner=owner,
        capture=Capture(file.capture.mode or "full", _expand_paths(file.capture.exclude or ())),
        workspaces=tuple(Workspace(os.path.expanduser(rule.path), rule.mode) for rule in file.workspace or ()),
        sources={name: _expand_paths(paths) for name, paths in (file.sources or {}).items()},
        models=file.models or {},
        meaning=file.meaning or {},
        origins=origins,
    )


def _folders(env: Mapping[str, str]) -> Folders:
    home = env.get("EVERTURN_HOME")
    if home:
        base = Path(os.path.abspath(os.path.expanduser(home)))
        return Folders(data=base, state=base / "state", config=base)
    from platformdirs import PlatformDirs

    usual = PlatformDirs("everturn", appauthor=False)
    return Folders(data=usual.user_data_path, state=usual.user_state_path, config=usual.user_config_path)


def _first_given(**values: str | None) -> tuple[str, str]:
    """The first value that says something, with its origin; the default always does."""
    for origin in ORIGINS:
        value = values.get(origin)
        if value:
            return origin, value
    return "default", ""


def _file_only_values(file: ConfigFile) -> dict[str, object]:
    """What only the config file can say."""
    return {
        "capture.mode": file.capture.mode,
        "capture.exclude": file.capture.exclude,
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
    """A relative path in the config file counts from the file's own folder, not from wherever the user stands."""
    if not db or _is_url(db):
        return db
    return str(folder / os.path.expanduser(db.removeprefix("sqlite:")))


def _absolute_path(db: str) -> str:
    return db if _is_url(db) else os.path.abspath(os.path.expanduser(db.removeprefix("sqlite:")))


def _archive_folder(db: str) -> list[Path]:
    return [] if _is_url(db) else [Path(db).parent]


def _machine() -> str:
    import platform

    return platform.node() or "unknown"


def _owner(env: Mapping[str, str]) -> str:
    """The login name; containers often run under a number that has none."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if env.get(variable):
            return env[variable]
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
