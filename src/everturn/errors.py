"""Every error everturn raises on purpose.

    EverturnError               exit 1   something failed; the message says what to do next
    ├── UsageError              exit 2   the request itself is wrong
    │   ├── BadConfig                    a setting cannot be used
    │   ├── AmbiguousSession             a prefix of several sessions
    │   ├── NoRepository                 a folder that is in no git repository
    │   └── MissingPath                  a path that does not exist
    ├── NothingFound            exit 3   the request is valid, but there is no answer
    │   ├── UnknownSession               no session with that id
    │   ├── NoArchive                    no archive at that path yet
    │   ├── SessionNotFound              no session with exactly that id (also a ValueError)
    │   └── NoConversationState          a checkpoint without a conversation (also a ValueError)
    ├── PartlyFailed            exit 4   some of the work was done, the rest is reported
    ├── Unreadable              exit 1   a file that cannot be read
    ├── NotAnArchive            exit 1   the database is something else, or damaged
    │   └── BadVectors                   the same for the file of vectors
    ├── EncryptedArchive        exit 1   the archive is encrypted, and no key is configured
    ├── WrongKey                exit 1   the archive is encrypted with another key
    ├── NewerArchive            exit 1   written by a newer everturn
    ├── OlderArchive            exit 1   written by an older everturn, and the caller must not migrate it
    ├── NoSpace                 exit 1   the disk is full
    ├── ModelError              exit 1   a request to a model failed, or its answer is useless
    │   ├── ModelUnreachable             no connection, or none in time
    │   ├── ModelBusy                    still busy after all retries
    │   ├── ModelRefused                 it refuses the request: key, model name, size, policy
    │   ├── BadAnswer                    the answer has the wrong form
    │   └── OverBudget                   the next request would exceed the budget
    ├── ResumeError             exit 1   a conversation cannot be resumed as it is
    │   ├── ConversationStateMismatch    the prompt differs from that of the checkpoint (also a ValueError)
    │   ├── SessionDiffers               another agent, prompt or workspace, and nobody can be asked
    │   ├── SnapshotRestoreError         a snapshot is damaged or of another kind (also a ValueError)
    │   ├── ToolIdempotencyError         a call was started, its outcome is unknown, and it must not run twice
    │   └── PrefixChanged                the prefix that an answer is bound to has changed
    ├── Conflict                exit 75  another process was first; the caller starts that file again
    └── Busy                    exit 75  another process holds the archive

Each error builds its own message from ids and ends with what to do next. `cli` prints them, without a traceback.
"""

from __future__ import annotations


class EverturnError(Exception):
    """The base of all errors: a message for people and an exit code for programs."""

    exit_code = 1


class UsageError(EverturnError):
    """The request itself is wrong."""

    exit_code = 2


class BadConfig(UsageError):
    """A setting that cannot be used."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"setting {key}: {why}; see `everturn config --help`")


class AmbiguousSession(UsageError):
    """A prefix of several session ids."""

    def __init__(self, prefix: str, matches: list[str]) -> None:
        shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
        super().__init__(f"session id {prefix!r} fits {len(matches)} sessions ({shown}); give more characters")


class NoRepository(UsageError):
    """A folder that is in no git repository."""

    def __init__(self, folder: str, why: str = "") -> None:
        super().__init__(f"{folder} is not in a git repository{why}" + ("" if why else "; name a file of one"))


class MissingPath(UsageError):
    """A path that does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no file or folder {path}; check the path")


class NothingFound(EverturnError):
    """A valid request without an answer."""

    exit_code = 3


class UnknownSession(NothingFound):
    """No session with that id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"no session {session_id!r} in the archive; `everturn sessions` lists them, `everturn sync` looks for new ones"
        )


class SessionNotFound(UnknownSession, ValueError):
    """No session with exactly that id."""

    def __init__(self, session_id: str) -> None:
        EverturnError.__init__(self, f"Session not found: {session_id}")


class NoConversationState(NothingFound, ValueError):
    """A checkpoint without a conversation."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"No conversation state in checkpoint {where}; enable recording before saving, or start from the beginning"
        )


class NoArchive(NothingFound):
    """No archive at that path yet."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"there is no archive at {url} yet; run `everturn sync` to make one, or name another with --db"
        )


class PartlyFailed(EverturnError):
    """Some of the work failed."""

    exit_code = 4


class Unreadable(EverturnError):
    """A file that cannot be read. The reason includes the advice if that is not about permissions."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot read {path}: {why}" + ("" if ";" in why else "; check its permissions"))


class NotAnArchive(EverturnError):
    """The database is not an archive, or is damaged."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} cannot be used as an archive: {why}; restore a backup or name another with --db")


class BadVectors(NotAnArchive):
    """The file of vectors is something else, or damaged."""

    def __init__(self, path: str) -> None:
        EverturnError.__init__(
            self, f"{path} holds no vectors that can be used; delete it, `everturn sync --meaning` makes it again"
        )


class EncryptedArchive(EverturnError):
    """The archive is encrypted, and no key is configured."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is encrypted and no key is configured; name its key with `everturn config set encryption.key SOURCE` or EVERTURN_KEY"
        )


class WrongKey(EverturnError):
    """The archive is encrypted with another key."""

    def __init__(self, path: str, source: str) -> None:
        super().__init__(
            f"{path} cannot be decrypted with the key from {source}: it belongs to another key; "
            "name the right one with `everturn config set encryption.key SOURCE` or EVERTURN_KEY"
        )


class NewerArchive(EverturnError):
    """The archive was written by a newer everturn."""

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f"{url} was written by a newer everturn (schema {found}, this one knows {known}); upgrade everturn, nothing was changed"
        )


class OlderArchive(EverturnError):
    """The archive was written by an older everturn and must not be migrated."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} was written by an older everturn; run `everturn sync` once to bring it up to date")


class MigrationNeeded(EverturnError):
    """A shared archive has an older schema, which only its administrator upgrades."""

    def __init__(self, url: str, found: int, needed: int) -> None:
        super().__init__(
            f"{url} is shared and has schema {found}, but this everturn needs schema {needed}; "
            "ask its administrator to run `everturn admin migrate`, or use the version of everturn that your team uses"
        )


class NoSpace(EverturnError):
    """The disk is full."""

    def __init__(self, url: str, why: str = "the disk is full") -> None:
        super().__init__(f"{url}: {why}; nothing half-written was kept: free some space and run it again")


class Conflict(EverturnError):
    """Another process moved the same cursor first."""

    exit_code = 75

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was changed by another everturn meanwhile; run it again")


class Busy(EverturnError):
    """Another process holds the archive."""

    exit_code = 75

    def __init__(self, url: str, is_here: bool = False) -> None:
        done = "is open in this process already; close it first"
        super().__init__(
            f"{url} {done if is_here else 'is locked by another process; wait for it to finish and run this again'}"
        )


class ResumeError(EverturnError):
    """A conversation cannot be resumed as it is. `resolution` says what to do."""

    resolution = "start from the beginning"


class ConversationStateMismatch(ResumeError, ValueError):
    """The prompt has changed since the checkpoint."""

    resolution = "clear the checkpoint and start from the beginning"

    def __init__(self, recorded: str, given: str) -> None:
        self.recorded, self.given = recorded, given
        super().__init__(
            f"Cannot resume with mismatched prompt: the state is of {recorded}, the prompt is {given}; {self.resolution}"
        )


class SessionDiffers(ResumeError):
    """The session was held with another agent, prompt or workspace, and nobody can be asked."""

    def __init__(self, session: str, sentences: list[str]) -> None:
        super().__init__(f"session {session}: {' '.join(sentences)} Add --force to continue anyway")


class SnapshotRestoreError(ResumeError, ValueError):
    """An unusable snapshot: `problems` has one sentence for each bad field, without its content."""

    resolution = "clear the checkpoint and start from the beginning"

    def __init__(self, problems: list[str], where: str = "") -> None:
        self.problems = problems
        shown = "; ".join(problems[:10]) + (f"; and {len(problems) - 10} more" if len(problems) > 10 else "")
        super().__init__(f"the snapshot{f' {where}' if where else ''} cannot be restored: {shown}; {self.resolution}")


class ToolIdempotencyError(ResumeError):
    """Calls that were started, with unknown outcome, of tools that must not run twice."""

    resolution = "find out what became of each and settle it, or give its tool a policy, then resume"

    def __init__(self, calls: dict[str, str]) -> None:
        self.calls = calls  # call id → tool
        named = ", ".join(f"{name} ({call_id})" for call_id, name in calls.items())
        super().__init__(f"it is not known whether these calls took effect: {named}; {self.resolution}")


class PrefixChanged(ResumeError):
    """A request whose prefix differs from that of the last answer: the provider would refuse it. Nothing was sent."""

    resolution = "set up the session as it was before, or begin a new one"

    def __init__(self, session: str, changed: list[str]) -> None:
        self.changed = changed  # system | tools | messages | thinking
        named = ", ".join(changed)
        super().__init__(
            f"session {session} no longer begins as its last answer did (changed: {named}); {self.resolution}"
        )


class ModelError(EverturnError):
    """A request to a model failed, or its answer is useless. `backend` is its name in the config."""

    next_step = "try again, or name another with --model"
    tries = 1  # attempts; set by the caller

    def __init__(self, backend: str, why: str) -> None:
        self.backend, self.why = backend, why
        super().__init__(f"model {backend}: {why}; {self.next_step}")


class ModelUnreachable(ModelError):
    """No connection, or none in time."""

    next_step = "check its address in the config and the network"


class ModelBusy(ModelError):
    """The model is still busy after all retries."""

    next_step = "wait a while and run it again; what is done already is not asked for twice"


class ModelRefused(ModelError):
    """The model refuses the request."""

    next_step = "check its key, its name and its limits with `everturn config`"


class BadAnswer(ModelError):
    """The answer has the wrong form."""


class OverBudget(ModelError):
    """The next request would exceed the budget."""

    next_step = "raise the budget to continue; what is done is kept"
