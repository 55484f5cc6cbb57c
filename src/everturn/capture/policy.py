"""The capture mode of each workspace: full, redacted, structure only, or off. Every writer asks here before it writes.

A rule names workspaces by a glob. It applies to a workspace, to everything below it, and to git worktrees of a repository
that it matches, wherever they are. A workspace behind a symbolic link is compared by both of its names.

A file whose workspace is unknown may belong to a workspace that the user excluded, so it is not captured while there is
such a rule (`capture.unknown` chooses another mode). Formats of conversations that take place in no folder, such as
exports of a website, have the default mode.

The user's capture rules for writers that are no surface: journals, conversation stores and framework integrations.

These belong to programs that open an archive themselves. The rules of the config file hold for them like for `sync`, so
this is the one module below the surfaces that loads the settings.

    full                the session is written to the archive
    redacted            its records are masked before they are written; state that cannot be masked stays in memory
    structure, off      the session lives in memory and ends with the process
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from everturn.capture.file_reader import Redact
from everturn.errors import UsageError
from everturn.secrets.rules import has_own_patterns, use_own_patterns
from everturn.settings import Settings, load
from everturn.store.cipher import KeySources, nobody, use_key_sources
from everturn.store.contract import Store, open_store

#: Strictest first.
MODES = ("off", "structure", "redacted", "full")

UNKNOWN = "its workspace is unknown, and a rule keeps some workspaces out of the archive"

#: The name of a folder that an agent made from the path of a workspace: `-home-ann-shop`, `C--work-shop`.
_SLUG = re.compile(r"(?:-{1,2}|[A-Za-z]--)[A-Za-z0-9].*")
_GITDIR = re.compile(r"gitdir:\s*(.+?)[/\\]\.git[/\\]worktrees[/\\][^/\\]+\s*$", re.DOTALL)
_LONGEST_GITDIR = 4096


def redact_line(line: bytes) -> bytes:
    """Mask the secrets of a line of JSON, or of lines of text."""
    from everturn.secrets.redaction import redact_bytes  # its rules take a while to compile

    return redact_bytes(line)


@dataclass(frozen=True)
class Decision:
    """The mode of one conversation, and whether it is off only because its workspace is unknown."""

    mode: str
    is_unknown: bool = False


@dataclass(frozen=True)
class Policy:
    """The user's rules. The last matching rule wins; `exclude` is the same as mode `off`."""

    mode: str = "full"
    rules: tuple[tuple[str, str], ...] = ()  # (glob of a workspace path, mode)
    exclude: tuple[str, ...] = ()
    redact: Callable[[bytes], bytes] = field(
        default=redact_line
    )  # of a line of JSON or lines of text, for mode `redacted`
    unknown: str = ""  # mode for an unknown workspace; "": the strictest one that a rule may give it

    def decide(self, workspace: str, path: str = "", is_placeless: bool = False) -> Decision:
        """Decide the mode of a conversation. `path` is its file; `is_placeless`: its format has no workspaces."""
        is_known = bool(workspace) or is_placeless or any(map(_SLUG.fullmatch, re.split(r"[/\\]", path)))
        if is_known or self.is_simple:
            return Decision(self.mode_for(workspace, path))
        named = self.mode_for("", path)
        given = self.unknown or min((named, *self._rule_modes()), key=MODES.index)
        mode = min((given, named), key=MODES.index) if named == "off" else given
        return Decision(mode, is_unknown=mode == "off" != self.mode and named != "off")

    def mode_for(self, workspace: str, path: str) -> str:
        """Return the mode of a workspace; `path` is the source file, for sources without a workspace."""
        names = _names_of(workspace) if workspace and not self.is_simple else (workspace,)
        if any(_matches_glob(glob, name, path) for glob in self.exclude for name in names):
            return "off"
        return _last_matching(self.rules, names, path, self.mode)

    @property
    def is_simple(self) -> bool:
        """Whether one mode applies to everything, so that the workspace does not matter."""
        return not self.rules and not self.exclude

    @property
    def is_off(self) -> bool:
        """Whether nothing at all is captured."""
        return self.is_simple and self.mode == "off"

    def _rule_modes(self) -> tuple[str, ...]:
        return (*(mode for _, mode in self.rules), *("off" for _ in self.exclude))


def last_matching(rules: tuple[tuple[str, str], ...], workspace: str, path: str, otherwise: str) -> str:
    """Return the value of the last rule (glob, value) that matches a workspace, or its file without one."""
    names = _names_of(workspace) if workspace and rules else (workspace,)
    return _last_matching(rules, names, path, otherwise)


def _last_matching(rules: tuple[tuple[str, str], ...], names: tuple[str, ...], path: str, otherwise: str) -> str:
    for glob, value in reversed(rules):
        if any(_matches_glob(glob, name, path) for name in names):
            return value
    return otherwise


@lru_cache(4096)
def _names_of(workspace: str) -> tuple[str, ...]:
    """Return the names of a workspace: as recorded, without links, and the repository whose worktree it is in."""
    names = [workspace]
    if os.path.isabs(workspace):
        real = os.path.realpath(workspace)
        names += [real, *_repositories_of(Path(real))]
    return tuple(dict.fromkeys(names))


def _repositories_of(folder: Path) -> list[str]:
    """Return the repository that a folder is a worktree of, if it still exists."""
    for place in (folder, *folder.parents):
        mark = place / ".git"
        try:
            if mark.is_dir():
                return []
            with mark.open(encoding="utf-8", errors="surrogateescape") as file:
                found = _GITDIR.match(file.read(_LONGEST_GITDIR))
        except OSError:
            continue
        if not found:
            return []
        repository = os.path.normpath(os.path.join(place, found[1]))
        return [repository, os.path.realpath(repository)]
    return []


def _matches_glob(glob: str, workspace: str, path: str) -> bool:
    """Whether a glob matches the workspace, anything below it, or the source file.

    Agents name their folders after the workspace with every special character replaced by `-`; for a file without a
    workspace, that name is compared instead.
    """
    glob = glob.rstrip("/\\")
    if workspace and _is_at_or_below(glob, workspace):
        return True
    if _is_at_or_below(glob, path):
        return True
    slug = re.sub(r"[^A-Za-z0-9*?\[\]]", "-", glob)
    return not workspace and any(_is_slug_of(slug, part) for part in re.split(r"[/\\]", path))


def _is_slug_of(slug: str, part: str) -> bool:
    """Whether a folder's name stands for a workspace of that name or below it. Some agents add or omit a dash."""
    names = (part, f"-{part.strip('-')}")
    return any(fnmatchcase(name, pattern) for name in names for pattern in (slug, f"{slug}-*"))


def _is_at_or_below(glob: str, path: str) -> bool:
    return fnmatchcase(path, glob) or fnmatchcase(path, f"{glob}/*") or fnmatchcase(path, f"{glob}\\*")


# --- The user's capture rules for writers that are no surface: journals, conversation stores and framework integrations ---
MEMORY = "memory:"


class NotCaptured(UserWarning):
    """A session is not written to the archive, because of the user's rules."""


def policy_of(settings: Settings) -> Policy:
    """Return the rules of the settings."""
    rules = tuple((rule.path, rule.mode) for rule in settings.workspaces if rule.mode)
    return Policy(settings.capture.mode, rules, tuple(settings.capture.exclude), unknown=settings.capture.unknown)


def user_policy() -> Policy:
    """Return the rules of this user's config file, and mask the patterns it names from now on. Raises BadConfig."""
    settings = load()
    use_key_sources(lambda: _key_sources(settings), only_if_unset=True)
    if not has_own_patterns():  # a surface may have set those of another file
        use_own_patterns(settings.secret_patterns)
    return policy_of(settings)


def use_user_keys() -> None:
    """Open encrypted archives with the keys of this user's config file, unless a surface has set others."""
    use_key_sources(lambda: _key_sources(load()), only_if_unset=True)


def _key_sources(settings: Settings) -> KeySources:
    made = settings.encryption
    return KeySources(made.key, made.previous, lambda: made.passphrase or nobody())


def live_mode(policy: Policy, url: str, workspace: str) -> str:
    """Return the mode for a live session of a workspace: full, redacted or off. Warn if it is off."""
    if url == MEMORY:
        return "full"
    decision = policy.decide(workspace)
    if decision.mode in ("full", "redacted"):
        return decision.mode
    why = (
        "its workspace is unknown and a rule excludes some workspaces; name the workspace, or set capture.unknown"
        if decision.is_unknown
        else f"the capture mode of {workspace or 'its workspace'} is {decision.mode}"
    )
    warnings.warn(f"this session is not written to {url}: {why}", NotCaptured, stacklevel=3)
    return "off"


def session_mode(store: Store, agent: str, session: str, workspace: str, policy: Policy) -> str:
    """Return the mode of a session that is about to be written: full, redacted or off.

    Raise UsageError for a session in the archive that the rules no longer allow to continue.
    """
    rows = store.sessions_of(agent, session) if store.url != MEMORY else []
    if not rows:
        return live_mode(policy, store.url, workspace)
    known = next((text for row in rows if (text := store.session(row.id)[1].workspace)), "")
    mode = policy.decide(known or workspace).mode
    if mode not in ("full", "redacted"):
        raise UsageError(f"session {session} cannot be continued: the capture mode of its workspace is {mode}")
    return mode


def permitted_store(
    store: Store, agent: str, session: str, workspace: str, policy: Policy | None
) -> tuple[Store, Redact | None]:
    """Return where a session may be written, and how its lines are masked. `policy`: else the user's rules."""
    policy = policy if policy is not None else user_policy()
    mode = session_mode(store, agent, session, workspace, policy)
    return (memory_store(), None) if mode == "off" else (store, policy.redact if mode == "redacted" else None)


def warn_not_masked(url: str) -> None:
    """Warn that state stays in memory because it cannot be masked."""
    why = "the capture mode is redacted, and this state cannot be masked"
    warnings.warn(f"this state is not written to {url}: {why}", NotCaptured, stacklevel=3)


def memory_store() -> Store:
    """Return an empty archive in memory, for a session that must not be written."""
    return open_store(MEMORY)
