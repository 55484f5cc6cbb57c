"""A source is one object that holds everything the rest may know about one foreign format.

Adding a format is adding one module (or package) here with a `SOURCE` in it: `all_sources` finds it by folder. No module
outside `sources/` names a format. A missing ability is a missing field.

Reading never raises on content. A reader gets bytes and says what it made of them; it does no input or output itself.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from everturn.model.conversation import Message, ReadResult, SessionPart

#: How much of a file is looked at to know what it is.
HEAD = 64 << 10


@dataclass(frozen=True)
class SearchPlaces:
    """Where to look: passed in by the surfaces, so that nothing below them reads the home or the environment."""

    home: Path
    env: Mapping[str, str]
    platform: str  # linux | darwin | win32
    extra: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)  # source name → folders given by the user


@dataclass(frozen=True)
class SourceCandidate:
    """A file that belongs to a source."""

    path: Path
    kind: str = "main"  # of SESSION_KINDS; `container` and `bundle` are taken apart by `Source.unpack`
    native_id: str = ""
    parent: str = ""  # native id of the session it hangs on
    stamp: int = 0  # newest change of the files it is made of, in nanoseconds, where its own does not tell


@dataclass(frozen=True)
class Member:
    """A conversation inside a container, written out as lines that `reader` and `view` understand.

    The archive keeps it as a file of its own at `CONTAINER#NAME`, beside the bytes of the container. The lines must be the
    same each time for the same content, and grow at the end where the conversation does.
    """

    name: str
    lines: Iterator[bytes]  # each with its line end
    kind: str = "main"
    native_id: str = ""
    parent: str = ""


@dataclass(frozen=True)
class Retention:
    """When the agent deletes its own files."""

    days: int
    said_by: str  # the file and key that say so, or "default"


@dataclass(frozen=True)
class ProgramReply:
    """What an agent's program printed, when it was asked as a model."""

    text: str = ""
    model: str = ""
    input: int = 0  # tokens; 0 where it does not say
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    failure: str = ""  # its own words, when it could not answer


@dataclass(frozen=True)
class AskProgram:
    """How an agent's program is run as a model: once, without tools, with the prompt at its standard input."""

    command: Callable[[str], list[str]]  # given the model's name, or ""; the first word is the program
    read: Callable[[bytes], ProgramReply]  # of what it printed; never raises
    around: Callable[[Path, Mapping[str, str]], dict[str, str | None]]
    """Given its working folder, new and empty, and the environment: variables to set, or to take away."""
    leaves: str  # what it leaves in the user's own history, in words


@dataclass(frozen=True)
class NewSession:
    """A session that is about to be written in an agent's own form."""

    id: str  # in the agent's own form, see `Native.name`
    workspace: str
    at: int  # now, in milliseconds UTC
    title: str = ""
    model: str = ""  # of the conversation it is made from
    forked_from: str = ""  # the session of the same agent that it is made from


@dataclass(frozen=True)
class NativeWriter:
    """How a new session is written so that the agent's own program opens it.

    The messages given to `write` are in order: `user` (text, image), `assistant` (text, call; thinking only of the agent
    itself), and right behind it one `tool` message with the result of each of its calls. Ids of calls are unique.
    """

    name: Callable[[str, int], str]  # the id of a new session, from 32 random hexadecimal digits and the time
    place: Callable[[SearchPlaces, NewSession], Path]  # where its file goes; never a file that is there
    write: Callable[[SearchPlaces, NewSession, Sequence[Message]], bytes]
    marks: Callable[[SearchPlaces, NewSession], Mapping[Path, bytes]] | None = None  # further files, made where missing
    take_in: Callable[[Path], list[str]] | None = None
    """The command that takes the file in, run in the workspace, where the agent keeps its sessions in a database."""
    begin: Callable[[str], list[str]] | None = None  # the command that begins a session with this prompt


@dataclass(frozen=True)
class InstallPrograms:
    """What an agent is told to run, each as words that begin with a full path, and what the user wants of it."""

    hook: tuple[str, ...]  # `everturn-hook`
    everturn: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # what both need to find the archive
    where: bool = False  # tell a new session where the last one stopped
    hints: bool = False  # tell the model when a prompt points to what it no longer sees
    statusline: bool = False


@dataclass(frozen=True)
class OwnFile:
    """A file that is ours alone."""

    path: Path
    text: str


@dataclass(frozen=True)
class JsonSetting:
    """An entry in a JSON file of the agent, comments allowed; with `item` one more item of the list that stands there."""

    path: Path
    at: tuple[str, ...]
    value: Any
    item: bool = False
    only_new: bool = False  # only into a file that is not there yet


@dataclass(frozen=True)
class TomlSection:
    """Lines at the end of a TOML file of the agent, that begin with the header of a table it does not have yet."""

    path: Path
    text: str


Edit = OwnFile | JsonSetting | TomlSection


@dataclass(frozen=True)
class Install:
    """How everturn is put into an agent's hands: hooks, MCP entry, commands, skill, as data."""

    edits: Callable[[SearchPlaces, Path | None, InstallPrograms], Sequence[Edit]]  # for one project folder, or for all
    remark: str = ""  # what is left for the user to do


class SourceReader(Protocol):
    """Reads one version of one file, piece by piece."""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """Read `data`, which starts at stored offset `base`.

        Complete records are dealt with; `Reading.consumed` says how far. With `last` there is nothing more for now: a
        complete record without its line end is read too, and an incomplete one becomes a provisional problem that is
        not counted as consumed.
        """

    def state(self) -> bytes:
        """What a later reader needs to go on after the bytes consumed so far."""


class CheckedRecord(Struct, frozen=True):
    """One record of one copy of a file."""

    value: dict[str, Any]
    raw: bytes  # what it is written as; without a line end
    start: int
    size: int
    copy: int = 0
    is_torn: bool = False


class Flaw(Struct, frozen=True):
    """Something wrong, and where. What is not `lost` can be mended without losing a word."""

    kind: str  # of `toolkit.record_check.KINDS`
    note: str
    start: int
    size: int
    copy: int = 0
    lost: bool = False


class FileCheck(Struct, frozen=True):
    """The records that make up the conversation, in order, and what was wrong."""

    pieces: list[CheckedRecord]
    flaws: list[Flaw]


@dataclass(frozen=True)
class Source:
    """All there is to know about one format."""

    name: str
    title: str
    parser: int  # raised when reading changes: derived rows of older ones are rebuilt
    roots: Callable[[SearchPlaces], list[Path]]  # existing folders to search
    find: Callable[[Path], Iterator[SourceCandidate]]  # below one root
    sniff: Callable[[Path, bytes], SourceCandidate | None]  # is this file ours? given its first 64 kB
    reader: Callable[[SourceCandidate, bytes], SourceReader]  # with the state of an earlier one, or b""
    view: Callable[[bytes], Message | None]  # one record's bytes → its message, with blocks
    workspace: Callable[[bytes], str]  # working folder, from the first bytes of a file; "" when they do not say
    unpack: Callable[[SourceCandidate, Path], Iterator[Member]] | None = None  # given a file that nobody is writing to
    private: tuple[str, ...] = ()  # SQL that takes credentials of the agent itself out of the copy of its database
    is_database: bool = False  # a container that must be copied by its database engine while it is in use
    option: str = ""  # name of the command-line option that gives more folders, such as "x-dir" for --x-dir
    retention: Callable[[Path], Retention | None] | None = None
    resume_command: Callable[[str], list[str]] | None = None
    native: NativeWriter | None = None  # write a new session that the agent's own program opens
    check: Callable[[SourceCandidate, Sequence[CheckedRecord]], FileCheck] | None = (
        None  # of lines: what is wrong with their records
    )
    write: Callable[[SessionPart], str] | None = None  # a session → the text of a file that reads as that session
    ask: AskProgram | None = None  # run the agent as a model
    install: Install | None = None  # put hooks and tools into its settings
    saves_chats: bool = False  # `everturn chat` saves its conversations in this form, by `write`
    rank: int = 0  # where several sources claim a file, only those of the highest rank count


def read_beginning(path: str | Path, size: int = HEAD) -> bytes:
    """The first bytes of an ordinary file; nothing of what cannot be read, or of a pipe, which would be waited for."""
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


def abilities(source: Source) -> list[str]:
    """What a source can do, in words, seen from the fields it has."""
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
    """A function or class that is imported when it is first called: `lazy("everturn.sources.foo.reader:FooReader")`.

    What `SOURCE` is made of is imported by every command that lists the formats; what reads a format only when asked for.
    """
    module, _, name = target.partition(":")

    def call(*given: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*given)

    return call


def named_folders(name: str) -> Callable[[SearchPlaces], list[Path]]:
    """`Source.roots` of a format that has no place of its own: the existing folders the user named for it."""
    return lambda places: [folder.absolute() for folder in places.extra.get(name, ()) if folder.is_dir()]


def existing_folders(places: Iterable[Path], *, files: bool = False) -> list[Path]:
    """Those of the folders that exist (with `files` also files), each once even where links lead to it twice."""
    found: dict[str, Path] = {}
    for place in places:
        if place.exists() if files else place.is_dir():
            found.setdefault(os.path.realpath(place), place.absolute())
    return list(found.values())


def no_workspace(head: bytes) -> str:
    """`Source.workspace` of a format that does not say where its conversations were held."""
    return ""


@cache
def all_sources() -> Mapping[str, Source]:
    """Every source by name. One that is asked for by its name is imported alone; going through them imports all."""
    return _Sources({module.name for module in pkgutil.iter_modules([os.path.dirname(__file__)])})


class _Sources(Mapping[str, Source]):
    """The modules of this folder that are formats. A format has the name of its module."""

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
        source = getattr(importlib.import_module(f"everturn.sources.{name}"), "SOURCE", None)
        return source if isinstance(source, Source) else None
