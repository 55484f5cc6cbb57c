"""The contract of a format: a `Source` object that holds everything the rest of everturn may know about it.

To add a format, add a package (or module) with a `SOURCE` in it to this folder: `all_sources` finds it there. No module
outside `sources/` names a format. A missing ability is a missing field. The fields are described here, once: a function
that is one of them has a docstring only where its format adds something.

Reading never raises on content. A reader gets bytes and returns messages and problems; it does no input or output itself.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from msgspec import Struct, field

from everturn.model.conversation import CallStart, Message, ProgramReply, ReadResult, SessionPart

#: Number of bytes from the start of a file that `Source.sniff` gets.
HEAD = 64 << 10


_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Code - OSS", "Cursor", "Windsurf")
_REMOTE_EDITORS = (".vscode-remote", ".vscode-server", ".cursor-server")


class SearchPlaces(Struct, frozen=True):
    """Where to search. The surfaces pass it in, so that nothing below them reads the home folder or the environment."""

    home: Path
    env: Mapping[str, str]
    platform: str  # linux | darwin | win32
    extra: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)  # source name → folders named by the user
    working: Path | None = None  # the folder in which the program runs

    def expand(self, path: str) -> Path:
        """Return the path with a leading `~/` replaced by the home folder."""
        return self.home / path[2:] if path.startswith(("~/", "~\\")) else Path(path)

    def config_folder(self) -> Path:
        """Return the folder in which programs keep their settings on this platform."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.env.get("APPDATA", "") or self.home / "AppData" / "Roaming")
        return Path(self.env.get("XDG_CONFIG_HOME", "") or self.home / ".config")

    def data_folder(self) -> Path:
        """Return the folder in which programs that follow the XDG rules keep their data."""
        return Path(self.env.get("XDG_DATA_HOME", "").strip() or self.home / ".local" / "share")

    def editor_folders(self) -> list[Path]:
        """Return the user folders of the editors built on VS Code, local and remote."""
        local = [self.config_folder() / editor / "User" for editor in _EDITORS]
        remote = [self.home / name / "data" / "User" for name in _REMOTE_EDITORS]
        return [*local, *remote, self.home / ".local" / "share" / "code-server" / "User"]


class SourceCandidate(Struct, frozen=True):
    """A file that belongs to a source."""

    path: Path
    kind: str = "main"  # one of SESSION_KINDS, or BACKUP; `Source.unpack` unpacks a `container` or `bundle`
    native_id: str = ""
    parent: str = ""  # native id of the parent session
    stamp: int = 0  # latest modification of all files it consists of, in nanoseconds; 0: use the file's own


class Member(Struct, frozen=True):
    """A conversation inside a container, converted to lines that `Source.reader` and `Source.view` read.

    The archive keeps it as a separate file at `CONTAINER#NAME`, beside the bytes of the container. The lines must be
    deterministic, and a conversation that grows must only append lines.
    """

    name: str
    lines: Iterator[bytes]  # each with its line end
    kind: str = "main"
    native_id: str = ""
    parent: str = ""


class PartlyUnread(OSError):
    """Raised by `Source.unpack` after the last member: why a part of the container could not be read."""

    def __init__(self, reasons: Iterable[str]) -> None:
        super().__init__(None, "; ".join(dict.fromkeys(reasons)))


class Retention(Struct, frozen=True):
    """The number of days after which the agent deletes its own files."""

    days: int
    said_by: str  # the file and key of the setting, or "default"


class AskProgram(Struct, frozen=True):
    """How to run an agent's program as a model: once, without tools, with the prompt on standard input."""

    command: Callable[[str], list[str]]  # from the model's name, or ""; the first word is the program
    read: Callable[[bytes], ProgramReply]  # parses the output; never raises
    around: Callable[[Path, Mapping[str, str]], dict[str, str | None]]
    """Return variables to set, or to remove (None), for a new, empty working folder and an environment."""
    leaves: str  # what the run leaves in the user's own history, in words


class NewSession(Struct, frozen=True):
    """The facts of a session that is about to be written in an agent's own format."""

    id: str  # in the agent's own format, see `NativeWriter.name`
    workspace: str
    at: int  # now, in milliseconds UTC
    title: str = ""
    model: str = ""  # of the original session
    forked_from: str = ""  # the original session, if it is one of the same agent
    moved_from: str = ""  # the workspace of the original session, if the new one has another


class WireForm(Struct, frozen=True):
    """How programs send sessions of a format to each other over HTTP, and the binary form of a file."""

    path: str  # of the endpoint
    media_type: str  # of what `pack` returns
    pack: Callable[[bytes], bytes]  # lines of a file → the body of a request
    split: Callable[[bytes, str], Iterator[tuple[str, bytes]]]
    """From a body and its media type: the conversations in it, each with the line of a file. Raises ValueError."""


class NativeWriter(Struct, frozen=True):
    """How to write a new session that the agent's own program opens.

    `write` gets the messages in order: `user` (text, image), `assistant` (text, call; thinking only of the same agent), and
    directly after it one `tool` message with the results of all its calls. Call ids are unique.
    """

    name: Callable[[str, int], str]  # the id of a new session, from 32 random hexadecimal digits and the time
    place: Callable[[SearchPlaces, NewSession], Path]  # the path of its file; never an existing file
    write: Callable[[SearchPlaces, NewSession, Sequence[Message]], bytes]
    marks: Callable[[SearchPlaces, NewSession], Mapping[Path, bytes]] | None = None  # other files, created if missing
    take_in: Callable[[Path], list[str]] | None = None
    """The command that imports the file, run in the workspace, for an agent that keeps its sessions in a database."""
    begin: Callable[[str], list[str]] | None = None  # the command that begins a session with this prompt
    copy: Callable[[NewSession, Iterable[tuple[bytes, bool]]], bytes] | None = None
    """From the lines of a session of the same agent, each with whether its message was taken back: a new session with the
    same lines, of which only what the program requires is changed. b"" if these lines cannot be copied."""
    offers: Callable[[CallStart], bool] | None = None  # whether the agent has a tool for a call; None: nobody knows
    window: int = 200_000  # tokens that its models accept, at least


class InstallPrograms(Struct, frozen=True):
    """The commands an agent runs, each beginning with a full path, and the features the user chose."""

    hook: tuple[str, ...]  # `everturn-hook`
    everturn: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # variables with which both find the archive
    where: bool = False  # tell a new session where the last one stopped
    hints: bool = False  # give the model a hint when a prompt refers to something outside its context
    statusline: bool = False


class OwnFile(Struct, frozen=True):
    """A file that belongs to everturn alone."""

    path: Path
    text: str


class JsonSetting(Struct, frozen=True):
    """An entry in a JSON file of the agent, which may have comments; with `item`, one more item of the list at `at`."""

    path: Path
    at: tuple[str, ...]
    value: Any
    item: bool = False
    only_new: bool = False  # only if the file does not exist yet


class TomlSection(Struct, frozen=True):
    """Lines to append to a TOML file of the agent, beginning with the header of a table it does not have yet."""

    path: Path
    text: str


Edit = OwnFile | JsonSetting | TomlSection


class Install(Struct, frozen=True):
    """How to install everturn into an agent, as data: hooks, MCP entry, commands, skill."""

    edits: Callable[[SearchPlaces, Path | None, InstallPrograms], Sequence[Edit]]  # for one project folder, or for all
    remark: str = ""  # steps left to the user


class SourceReader(Protocol):
    """Reads one version of one file, as its bytes arrive."""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """Read `data`, which starts at stored offset `base`, and return what was read.

        Only complete records are consumed; `ReadResult.consumed` counts their bytes. `last` means that the file ends here
        for now: a complete record without its line end is read too, and an incomplete one becomes a provisional problem
        that is not consumed.
        """

    def state(self) -> bytes:
        """Return the state from which a later reader continues after the bytes consumed so far."""


class FileBackup(Struct, frozen=True):
    """A statement of a record: where the copy of a file is that an agent made at a prompt, before it changed the file."""

    message: str  # native id of the prompt
    path: str  # of the file, absolute or below the workspace
    name: str  # of the copy: the last part of the native id of a source file of kind `backup`; "": there was no file


class CheckedRecord(Struct, frozen=True):
    """One record of one copy of a file."""

    value: dict[str, Any]
    raw: bytes  # its bytes in the file, without the line end
    start: int
    size: int
    copy: int = 0
    is_torn: bool = False


class Flaw(Struct, frozen=True):
    """A defect of a file, and its byte range. One that is not `lost` can be repaired without losing content."""

    kind: str  # one of `toolkit.record_check.KINDS`
    note: str
    start: int
    size: int
    copy: int = 0
    lost: bool = False


class FileCheck(Struct, frozen=True):
    """The records of a conversation in order, and the flaws of its file."""

    pieces: list[CheckedRecord]
    flaws: list[Flaw]


class Source(Struct, frozen=True):
    """Everything the rest of everturn may know about one format."""

    name: str  # also the name of its package
    title: str
    parser: int  # raised when reading changes: rows derived with a lower number are rebuilt
    roots: Callable[[SearchPlaces], list[Path]]  # existing folders to search
    find: Callable[[Path], Iterator[SourceCandidate]]  # the source files below one root
    sniff: Callable[[Path, bytes], SourceCandidate | None]  # recognises a file by its first 64 kB
    reader: Callable[[SourceCandidate, bytes], SourceReader]  # with the state of an earlier one, or b""
    view: Callable[[bytes], Message | None]  # one record's bytes → its message, with blocks
    workspace: Callable[[bytes], str]  # working folder named in the first bytes of a file; "" when they name none
    folder_of: Callable[[Path], str] | None = None  # working folder that a file beside a source file names; "": none
    owner_of: Callable[[Path], str] | None = None
    """Native id of the session that a new side file belongs to, as the files around it say; "": none."""
    marks_failures: bool = False  # a command that failed is marked as such, so any other one has exited with 0
    is_placeless: bool = False  # its conversations take place in no folder
    unpack: Callable[[SourceCandidate, Path], Iterator[Member]] | None = None  # of a file that no process is writing to
    private: tuple[str, ...] = ()  # SQL that deletes the agent's own credentials from a copy of its database
    is_database: bool = False  # a container that must be copied by its database engine while it is in use
    option: str = ""  # name of the command-line option that adds folders, such as "x-dir" for --x-dir
    retention: Callable[[Path], Retention | None] | None = None
    resume_command: Callable[[str], list[str]] | None = None
    finds: Callable[[Path, str], bool] | None = None
    """Whether `resume_command`, run in this working folder, finds the session of this file; None: it finds every one."""
    native: NativeWriter | None = None  # writes a new session that the agent's own program opens
    check: Callable[[SourceCandidate, Sequence[CheckedRecord]], FileCheck] | None = None  # finds flaws of records
    follows: Callable[[CheckedRecord, CheckedRecord], bool] | None = None
    """Whether a record says that another one came directly before it: then nothing between them is lost."""
    write: Callable[[SessionPart], str] | None = None  # a session → the text of a file that reads as that session
    write_pieces: Callable[[SessionPart], Iterator[str]] | None = None  # the same text in pieces, with less memory
    wire: WireForm | None = None  # what `write` returns, sent and received
    ask: AskProgram | None = None  # runs the agent as a model
    install: Install | None = None  # adds hooks and tools to the agent's settings
    keeps_words: bool = False  # programs can read its words in SQL: the archive has them a second time, unpacked
    saves_chats: bool = False  # `everturn chat` saves its conversations in this format, with `write`
    takes: str = ""  # kind of a file that `--as` names this source for though it is not recognised; "": refused
    fields: tuple[str, ...] = ()  # JSON fields that tell this format from others: evidence of a claim on a file
    original: Callable[[bytes], str | None] | None = None
    """From the record of an edit's result: the file as the edit found it, "" for a new one; None if it does not say."""
    backups: Callable[[bytes], Sequence[FileBackup]] | None = None  # the copies of files that one record names
    rank: int = 0  # of several sources that claim a file, only those of the highest rank count


def read_beginning(path: str | Path, size: int = HEAD) -> bytes:
    """Return the first bytes of a regular file; b"" for an unreadable one, and for a pipe, which would block."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        return os.read(handle, size) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)


def read_end(path: str | Path, size: int = HEAD) -> bytes:
    """Return the last bytes of a regular file; b"" for an unreadable one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except OSError:
        return b""


def abilities(source: Source) -> list[str]:
    """Return the abilities of a source in words, derived from the fields it has."""
    can = {
        "read": True,
        "take apart": source.unpack is not None,
        "copy while in use": source.is_database,
        "tell retention": source.retention is not None,
        "resume": source.resume_command is not None,
        "open sessions of others": source.native is not None,
        "write": source.write is not None,
        "answer as a model": source.ask is not None,
        "be installed into": source.install is not None,
    }
    return [word for word, is_so in can.items() if is_so]


def lazy_import(target: str) -> Callable[..., Any]:
    """Return a callable that imports its target when called: `lazy_import("everturn.sources.foo.reader:FooReader")`.

    Every command that lists the formats imports all `SOURCE` objects; a reader is imported only when it is used.
    """
    module, _, name = target.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(_import_module(module), name)(*arguments)

    return call


def _import_module(name: str) -> ModuleType:
    """Import a module that may be there already: `import_module` takes microseconds, and recognising a file asks every format."""
    if (found := _imported.get(name)) is None or name not in sys.modules:
        found = _imported[name] = importlib.import_module(name)
    return found


_imported: dict[str, ModuleType] = {}


def lazy_imports(module: str, *names: str, **others: str) -> dict[str, Any]:
    """Return `lazy_import` of several functions of a module: the arguments of a `Source` or one of its parts.

    They have the names of their arguments; `others` gives those that have another one, such as `reader="FooReader"`.
    """
    targets = {name: name for name in names} | others
    return {name: lazy_import(f"{module}:{target}") for name, target in targets.items()}


def named_folders(name: str, *patterns: str, files: bool = False) -> Callable[[SearchPlaces], list[Path]]:
    """Return a `Source.roots`: the folders that the user named for a format, then those of the patterns that exist.

    A pattern begins with `~` (the home folder), `$NAME` (an environment variable; skipped if it is not set), `{config}` and
    `{data}` (where programs of this platform keep settings and data), `{editor}` (the user folder of every editor built on
    VS Code) or `{working}` (the working folder). With `files`, single files count too.
    """

    def find_roots(places: SearchPlaces) -> list[Path]:
        found = [folder for pattern in patterns for folder in _expand_pattern(pattern, places)]
        return existing_folders([*places.extra.get(name, ()), *found], files=files)

    return find_roots


def _expand_pattern(pattern: str, places: SearchPlaces) -> list[Path]:
    start, _, rest = pattern.partition("/")
    if start.startswith("$"):
        value = places.env.get(start[1:], "").strip()
        bases = [places.expand(value)] if value else []
    elif start == "{editor}":
        bases = places.editor_folders()
    elif start == "{working}":
        bases = [places.working] if places.working is not None else []
    else:
        bases = [{"~": places.home, "{config}": places.config_folder(), "{data}": places.data_folder()}[start]]
    return [base / rest for base in bases]


def existing_folders(folders: Iterable[Path], *, files: bool = False) -> list[Path]:
    """Return the folders that exist (with `files` also files), each once even if links lead to it twice."""
    existing: dict[str, Path] = {}
    for folder in folders:
        if folder.exists() if files else folder.is_dir():
            existing.setdefault(os.path.realpath(folder), folder.absolute())
    return list(existing.values())


def no_folders(places: SearchPlaces) -> list[Path]:
    """Return nothing: the `Source.roots` of a format whose files are only added by name."""
    return []


def no_candidates(root: Path) -> Iterator[SourceCandidate]:
    """Yield nothing: the `Source.find` of a format whose files are only added by name."""
    return iter(())


def no_workspace(head: bytes) -> str:
    """Return "": the `Source.workspace` of a format that does not record working folders."""
    return ""


@cache
def all_sources() -> Mapping[str, Source]:
    """Return every source by name. A lookup by name imports one format; iteration imports all."""
    package = importlib.import_module("everturn.sources")
    return _Sources({module.name for module in pkgutil.iter_modules(package.__path__)})


class _Sources(Mapping[str, Source]):
    """The formats of this folder by name, which is the name of their package."""

    def __init__(self, modules: set[str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Source:
        if (source := self._source(name)) is None:
            raise KeyError(name)
        return source

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._modules) if self._source(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _source(self, name: str) -> Source | None:
        if name not in self._modules:
            return None
        source = getattr(_import_module(f"everturn.sources.{name}"), "SOURCE", None)
        return source if isinstance(source, Source) else None
