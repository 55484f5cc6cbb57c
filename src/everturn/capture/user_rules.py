"""The user's capture rules for writers that are no surface: journals, conversation stores and framework integrations.

These belong to programs that open an archive themselves. The rules of the config file hold for them like for `sync`, so
this is the one module below the surfaces that loads the settings.

    full                the session is written to the archive
    redacted            its records are masked before they are written; state that cannot be masked stays in memory
    structure, off      the session lives in memory and ends with the process
"""

from __future__ import annotations

import warnings

from everturn.capture.file_reader import Redact
from everturn.capture.policy import Policy
from everturn.errors import UsageError
from everturn.secrets.own_patterns import has_own_patterns, use_own_patterns
from everturn.settings import Settings, load
from everturn.store.contract import Store, open_store
from everturn.store.key_source import KeySources, nobody, use_key_sources

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
