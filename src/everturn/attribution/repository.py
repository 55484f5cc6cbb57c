"""A git repository, read through the `git` program: blame, history, file contents, notes.

A repository may come from anywhere, so git runs without a shell, without hooks, file system monitors, external diff
programs, text converters, signature checks or network, and with a time limit. Paths are passed literally, after `--`.
The files of the working tree are read directly, because git would run the repository's own filters on them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from msgspec import Struct

from everturn.errors import NoRepository, NothingFound, UsageError
from everturn.text.shell import unquote_git_path

_unquote = partial(unquote_git_path, errors="surrogateescape")
_SAFE = (
    "--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "core.quotePath=false", "-c", "log.date=format:%z", "-c", "diff.external=", "-c", "log.showSignature=false", "-c", "protocol.allow=never",
    "-c", "blame.ignoreRevsFile=", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "core.alternateRefsCommand=",
)  # fmt: skip
_TIMEOUT = 300
_LARGEST = 8 << 20  # bytes of a file that is compared
NO_COMMIT = "0" * 40
_MOVED = 40  # letters and digits of a block that counts as moved: one line of boilerplate does not
_PART = 400  # commits that one git process is asked about
_HEAD_WORDS = 3  # id, type and size of an object
_CHECK = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class CommitFacts(Struct, frozen=True):
    """One commit. Times are milliseconds UTC."""

    sha: str
    authored: int
    committed: int
    author: str = ""
    subject: str = ""
    parents: tuple[str, ...] = ()
    author_mail: str = ""
    author_zone: str = "+0000"
    committer: str = ""
    committer_mail: str = ""
    committer_zone: str = "+0000"


class BlamedLine(Struct, frozen=True):
    """Where a line comes from: the commit that added it, and its place in the file there (numbered from 1)."""

    line: int
    commit: str
    path: str
    line_there: int
    base: str = ""  # the commit before it and the path there; "" if the commit added the file
    base_path: str = ""


class AddedLines(Struct, frozen=True):
    """The lines that a commit added to one file: their numbers in the new file, from 1, and their text."""

    path: str
    base_path: str  # "" for a new file
    lines: tuple[tuple[int, str], ...]


class Repository:
    """One working tree of a repository, or a bare one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.unreadable: list[str] = []  # commits with missing objects
        self._process: subprocess.Popen[bytes] | None = None
        found = self._rev_parse(folder)
        self._is_shallow = found[0] == "true"
        self.common = Path(folder, found[1]).resolve()
        self.root = Path(found[2]) if len(found) > 2 and found[2] else None
        self._folder = self.root or folder  # paths are relative to it

    def _rev_parse(self, folder: Path) -> list[str]:
        asked = ["rev-parse", "--is-shallow-repository", "--git-common-dir"]
        try:
            return self.run(*asked, "--show-toplevel").decode("utf-8", "replace").splitlines()
        except NothingFound as error:
            if "work tree" in str(error):
                return self.run(*asked).decode("utf-8", "replace").splitlines()
            reason = "; git says: " + str(error) if "dubious ownership" in str(error) else ""
            raise NoRepository(str(folder), reason) from None

    @cached_property
    def cut_off(self) -> frozenset[str]:
        """The commits at which a shallow clone ends: git shows all their lines as added."""
        try:
            return frozenset((self.common / "shallow").read_text("ascii").split()) if self._is_shallow else frozenset()
        except (OSError, UnicodeDecodeError):
            return frozenset()

    # --- git ---
    def run(self, *words: str, given: bytes | None = None) -> bytes:
        """Return the output of a git command. Raises NothingFound with git's own reason."""
        command = ["git", *_SAFE, "-C", str(self._folder), *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=_TIMEOUT, check=False)
        except FileNotFoundError:
            raise UsageError("the program `git` was not found; install it or add it to PATH") from None
        except subprocess.TimeoutExpired:
            raise NothingFound(f"git did not answer within {_TIMEOUT} s; ask for a smaller part") from None
        if done.returncode:
            reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git failed"])[0]
            if reason.startswith("error: "):  # git met something that it did not expect
                reason = f"git cannot read this repository: {reason.removeprefix('error: ')}; `git fsck` says more"
            raise NothingFound(reason.removeprefix("fatal: "))
        return done.stdout

    def text(self, *words: str) -> str:
        """Return the output of a git command as text."""
        return self.run(*words).decode("utf-8", "surrogateescape")

    def commit_id(self, name: str) -> str:
        """Return the full id of a commit. Raises UsageError."""
        if name.startswith("-") or not name.strip():
            raise UsageError(f"{name!r} does not name a commit")
        try:
            return self.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
        except NothingFound:
            raise UsageError(f"there is no commit {name!r} in this repository; check the name") from None

    def is_commit(self, name: str) -> bool:
        """Whether a name may be that of a commit, or a range of them; a range says itself which end is missing."""
        if ".." in name or name == "HEAD" or name.startswith("-") or not name.strip():
            return True
        try:
            return bool(self.commit_id(name))
        except UsageError:
            return False

    def head(self) -> str:
        """Return the commit of the working tree; "" if there is none yet."""
        sha, kind, _ = self._object("HEAD")
        return sha if kind == "commit" else ""

    @cached_property
    def worktrees(self) -> tuple[str, ...]:
        """The folders of all working trees of this repository, also of removed ones that git still lists."""
        lines = self.text("worktree", "list", "--porcelain", "-z").split("\0")
        return tuple(line[9:] for line in lines if line.startswith("worktree "))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the folder and of the remotes' repositories: what a clone elsewhere may be called."""
        try:
            urls = self.text("config", "--get-regexp", r"^remote\..*\.url$").split("\n")
        except NothingFound:
            urls = []
        remote = (re.split(r"[/:\\]", url.strip().rstrip("/"))[-1].removesuffix(".git") for url in urls if url.strip())
        own = self.common.parent.name if self.common.name == ".git" else self.common.name.removesuffix(".git")
        return frozenset(name.lower() for name in (own, *remote) if name)

    @cached_property
    def roots(self) -> frozenset[str]:
        """The first commits: what all clones of the repository share."""
        return frozenset(self.text("rev-list", "--max-parents=0", "HEAD").split())

    def has_any(self, commits: Iterable[str]) -> bool:
        """Whether one of these commits is in the repository."""
        given = "".join(f"{one}\n" for one in commits).encode()
        return any(line.endswith(b" commit") for line in self.run(*_CHECK, given=given).splitlines())

    @cached_property
    def tracked_paths(self) -> frozenset[str]:
        """The paths of all files in HEAD."""
        return frozenset(self.text("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0"))

    # --- contents ---
    def files(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[str] | None]:
        """Return the lines of files at commits, without line ends; None for one that is missing, binary or very large."""
        return {key: self._file(*key) for key in dict.fromkeys(wanted)}

    def _file(self, commit: str, path: str) -> list[str] | None:
        if "\n" in path:
            return None
        _, kind, data = self._object(f"{commit}:{path}")
        return split_file(data) if kind == "blob" else None

    def _object(self, name: str) -> tuple[str, str, bytes]:
        """Return the id, the type and the contents of an object; the type of a missing one is empty."""
        stdin, stdout = self._objects
        stdin.write(f"{name}\n".encode("utf-8", "surrogateescape"))
        stdin.flush()
        head = stdout.readline().split(b" ")
        if len(head) != _HEAD_WORDS or not head[2].strip().isdigit():
            return "", "", b""
        return head[0].decode("ascii"), head[1].decode("ascii"), stdout.read(int(head[2]) + 1)[:-1]

    @cached_property
    def _objects(self) -> tuple[IO[bytes], IO[bytes]]:
        """A git process that returns objects as long as this one asks; it ends with its input."""
        command = ["git", *_SAFE, "-C", str(self._folder), "cat-file", "--batch"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        return process.stdin, process.stdout

    def close(self) -> None:
        """End the process that returns objects."""
        if self._process is not None:
            for stream in self._objects:
                stream.close()
            self._process.wait(_TIMEOUT)
            self._process = None
            del self._objects

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- history ---
    def blame(self, commit: str, path: str, ranges: Sequence[tuple[int, int]] = ()) -> list[BlamedLine]:
        """Return where the lines of a file at a commit come from; only those of `ranges` if given (from 1, inclusive)."""
        limits = [f"-L{first},{last}" for first, last in ranges]
        output = self.text(
            "blame", "-w", f"-M{_MOVED}", f"-C{_MOVED}", "--no-textconv", "--porcelain", *limits, commit, "--", path
        )  # fmt: skip
        return list(_read_blame(output.split("\n")))

    def commits(self, ids: Iterable[str]) -> dict[str, CommitFacts]:
        """Return the facts of commits."""
        wanted = [one for one in dict.fromkeys(ids) if one and one != NO_COMMIT]
        if not wanted:
            return {}
        given = "\n".join(wanted).encode()
        output = self.run("log", "--no-walk=unsorted", "--stdin", f"--format={_FORMAT}", given=given)
        return {one.sha: one for one in _read_commits(output)}

    def path_history(self, commit: str, path: str) -> dict[str, CommitFacts]:
        """Return the commits that touched a path before and at a commit; parents are the nearest that touched it too."""
        output = self.run(
            "log", "--full-history", "--simplify-merges", "--parents", f"--format={_FORMAT}", commit, "--", path
        )  # fmt: skip
        return {one.sha: one for one in _read_commits(output)}

    def range_commits(self, first: str, last: str) -> list[CommitFacts]:
        """Return the commits of first..last without merges, oldest first; all up to `last` if `first` is empty."""
        revisions = [last] if not first else [last, f"^{first}"]
        output = self.run("log", "--no-merges", "--reverse", "--topo-order", f"--format={_FORMAT}", *revisions, "--")
        return list(_read_commits(output))

    def added_lines(self, commits: Sequence[str]) -> Iterator[tuple[str, list[AddedLines]]]:
        """Yield the lines that each commit added, compared with its first parent."""
        if not commits:
            return
        words = (
            "diff-tree", "--stdin", "--root", "-r", "-M", "-p", "-U0", "-w", "--no-color", "--no-ext-diff", "--no-textconv",
            "--src-prefix=a/", "--dst-prefix=b/",
        )  # fmt: skip
        yield from _read_patches(self._stream(words, commits))

    def _stream(self, words: Sequence[str], commits: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a long output, some hundred commits at a time; a commit with missing objects has none."""
        for start in range(0, len(commits), _PART):
            part = commits[start : start + _PART]
            try:
                yield from self._commit_lines(words, part)
            except NothingFound:  # a partial clone
                for one in part:
                    try:
                        yield from self._commit_lines(words, [one])
                    except NothingFound:
                        self.unreadable.append(one)

    def _commit_lines(self, words: Sequence[str], commits: Sequence[str]) -> list[str]:
        given = "".join(f"{one}\n" for one in commits).encode()
        return self.run(*words, given=given).decode("utf-8", "surrogateescape").split("\n")

    def touched_paths(self, commit: str) -> Iterator[tuple[CommitFacts, list[str]]]:
        """Yield every commit up to one, oldest first, with the paths that it changed or added."""
        lines = self.text("log", "--topo-order", "--reverse", "-M", "--raw", f"--format=%x01{_FORMAT}", commit, "--")
        for record in lines.split("\x01")[1:]:
            head, _, rest = record.partition("\0")
            for facts in _read_commits(f"{head}\0".encode("utf-8", "surrogateescape")):
                yield (
                    facts,
                    [
                        _unquote(line.split("\t")[-1])
                        for line in rest.split("\n")
                        if line.startswith(":") and "\t" in line
                    ],
                )

    # --- notes ---
    def note(self, ref: str, commit: str) -> str | None:
        try:
            return self.text("notes", f"--ref={ref}", "show", commit)
        except NothingFound:
            return None

    def add_note(self, ref: str, commit: str, text: str) -> None:
        """Write a note on a commit that has none under this ref. Raises NothingFound if there is one."""
        self.run("notes", f"--ref={ref}", "add", "-F", "-", commit, given=text.encode("utf-8", "surrogateescape"))


_FORMAT = "%x1f".join("%H %P %at %ct %an %s %ae %ad %cn %ce %cd".split()) + "%x00"
_FIELDS = 11


def _read_commits(output: bytes) -> Iterator[CommitFacts]:
    for record in output.decode("utf-8", "replace").split("\0"):
        parts = record.strip("\n").split("\x1f")
        if len(parts) == _FIELDS and parts[2].isdigit() and parts[3].isdigit():
            sha, parents, authored, committed, author, subject, *people = parts
            yield CommitFacts(
                sha, int(authored) * 1000, int(committed) * 1000, author, subject, tuple(parents.split()), *people
            )


def _read_blame(lines: list[str]) -> Iterator[BlamedLine]:
    """Read the porcelain of git blame. Facts of a commit are printed once, the header of a line always."""
    paths: dict[str, str] = {}
    bases: dict[tuple[str, str], tuple[str, str]] = {}
    commit, there, here, path, base = "", 0, 0, "", ("", "")
    for line in lines:
        if line.startswith("\t"):
            path = path or paths.get(commit, "")
            base = base if base[0] else bases.get((commit, path), ("", ""))
            paths[commit], bases[commit, path] = path, base
            yield BlamedLine(here, commit, path, there, *base)
        elif (head := line.split(" ")) and _SHA.fullmatch(head[0]):
            commit, there, here, path, base = head[0], int(head[1]), int(head[2]), "", ("", "")
        elif line.startswith("filename "):
            path = _unquote(line[9:])
        elif line.startswith("previous "):
            sha, _, name = line[9:].partition(" ")
            base = (sha, _unquote(name))


_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def _read_patches(lines: Iterable[str]) -> Iterator[tuple[str, list[AddedLines]]]:
    reader = _PatchLines()
    for line in lines:
        if reader.in_hunk(line):
            continue
        if _SHA.fullmatch(line):
            yield from reader.end_commit()
            reader.commit = line
        else:
            reader.header(line)
    yield from reader.end_commit()


class _PatchLines:
    """Reads patches without context: only the numbers of added lines count."""

    def __init__(self) -> None:
        self.commit = ""
        self._files: list[AddedLines] = []
        self._base = self._path = ""
        self._added: list[tuple[int, str]] = []
        self._next = self._left = 0

    def in_hunk(self, line: str) -> bool:
        """Whether a line is content of the current hunk."""
        if self._left > 0 and line[:1] in ("+", "-", "\\"):
            if line[0] == "+":
                self._added.append((self._next, line[1:].removesuffix("\r")))
                self._next, self._left = self._next + 1, self._left - 1
            return True
        return False

    def header(self, line: str) -> None:
        if line.startswith("diff --git "):
            self._end_file()
        elif line.startswith("--- ") and not self._path:
            self._base = _header_path(line, "a/")
        elif line.startswith("+++ ") and not self._path:
            self._path = _header_path(line, "b/")
        elif hunk := _HUNK.match(line):
            self._next, self._left = int(hunk[1]), int(hunk[2] or 1)

    def _end_file(self) -> None:
        if self._path and self._added:
            self._files.append(AddedLines(self._path, self._base, tuple(self._added)))
        self._base = self._path = ""
        self._added, self._left = [], 0

    def end_commit(self) -> Iterator[tuple[str, list[AddedLines]]]:
        self._end_file()
        if self.commit:
            yield self.commit, self._files
        self._files = []


def _header_path(line: str, prefix: str) -> str:
    return "" if line[4:] == "/dev/null" else _unquote(line[4:].rstrip("\t")).removeprefix(prefix)


def split_file(data: bytes) -> list[str] | None:
    """Return the lines of a file without line ends, either kind; None if it is binary or very large."""
    if len(data) > _LARGEST or b"\0" in data[:8000]:
        return None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
