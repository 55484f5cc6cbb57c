"""Find the files that a tool call touched, and the files that a text mentions.

`touched_files` returns (action, path) pairs of one successful call: only what is certain, from the call, its result, the
words of a shell command, and the reports that version control and patch print. Paths stay as they were given; nothing is
read from disk.

`find_mentions` recognises a file name by its ending, since many words contain a dot: versions, hosts, members of an object.
Addresses, mails and the folders of package managers do not count.

Both read a bounded part of long texts and never raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import patched_files
from everturn.text.shell import ShellCommand, split_commands

Touch = tuple[str, str]

_MAX_CHARS = 20_000
_LONGEST_PATH = 4096
_ACTION = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}

#: A command without any of these certainly touches no file that could be named.
_TOUCHING = re.compile(r">|\b(?:rm|mv|cp|touch|tee|cat|head|tail|sed)\b")


def touched_files(call: CallStart, end: CallEnd, output: str) -> list[Touch]:
    """Return the actions and paths of a successful call, in order and without repeats; empty for one that failed."""
    if end.is_error:
        return []
    action, path = end.action or _ACTION.get(call.kind, ""), end.path or call.path
    found: list[Touch] = [(action, path), *end.others] if action and path else list(end.others)
    found += [(_ACTION[kind], place) for kind, place in patched_files(_patch_text(call))]
    if call.kind == "shell" and not end.exit_status:
        output = _both_ends(output, _MAX_CHARS)
        found += _touched_by_command(call.command, output)
        found += _touched_by_output(call.command[:_MAX_CHARS], output)
    return list(dict.fromkeys(found))


def _both_ends(text: str, chars: int) -> str:
    return text if len(text) <= 2 * chars else f"{text[:chars]}\n{text[-chars:]}"


def _patch_text(call: CallStart) -> str:
    """Return the text that may be a patch: a command, the whole input, or its one argument."""
    given = call.input.get("input") if isinstance(call.input, dict) else call.input
    return call.command or (given if isinstance(given, str) else "")


# --- from the command ---
def _touched_by_command(command: str, output: str) -> list[Touch]:
    text = command[:_MAX_CHARS]
    if not _TOUCHING.search(text):
        return []
    found: list[Touch] = []
    folder: str | None = ""  # base of relative paths; None when in doubt
    for one in split_commands(text, complete=len(command) <= _MAX_CHARS):
        if one.name in ("cd", "pushd", "popd"):
            folder = _enter_folder(folder, one)
            continue
        if one.silent and not one.last:
            continue
        found += [(action, place) for action, path in _command_touches(one) if (place := _resolve_path(folder, path))]
    refusals = _refusals(output) if found else []
    return [touch for touch in found if not _is_refused(touch[1], refusals)] if refusals else found


def _command_touches(one: ShellCommand) -> Iterator[Touch]:
    names = [word.text if word.sure else "" for word in one.words]
    if " ".join(names[:2]) in _PROGRAMS:
        names = [" ".join(names[:2]), *names[2:]]
    program = _PROGRAMS.get(names[0]) if names else None
    if program is not None:
        options, touches = program
        if (operands := _operands(names[1:], options)) is not None:
            yield from touches(operands)
    for _, file in one.outputs:
        if file.sure:
            yield "created", file.text


def _operands(words: list[str], options: re.Pattern[str]) -> list[str] | None:
    """Return the words that are not options; None if there is an unknown option."""
    operands: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            return operands + words[index + 1 :]
        if len(word) > 1 and word[0] == "-":
            if not options.fullmatch(word):
                return None
        else:
            operands.append(word)
    return operands


def _touch_each(action: str) -> Callable[[list[str]], Iterator[Touch]]:
    return lambda operands: ((action, path) for path in operands)


def _move_touches(operands: list[str]) -> Iterator[Touch]:
    copies = list(_copy_touches(operands))
    if all(operands):
        yield from (("deleted", path) for path in operands[:-1])
    yield from copies


def _copy_touches(operands: list[str]) -> Iterator[Touch]:
    if len(operands) < 2 or not all(operands):
        return
    *sources, target = operands
    if len(sources) > 1 or target.endswith("/") or target.rsplit("/", 1)[-1] in (".", ".."):
        yield from (("created", f"{target.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}") for source in sources)
    elif "." in target.rsplit("/", 1)[-1] or "." not in sources[0].rsplit("/", 1)[-1]:
        yield "created", target  # else `mv a.py src`: most likely a folder, but not certain


def _read_parts(operands: list[str]) -> Iterator[Touch]:
    """Yield the files of head and tail: `-n 5` leaves its number among the operands."""
    return (("read", path) for path in operands if not re.fullmatch(r"[+-]?\d+[kKMG]?", path))


_PROGRAMS: dict[str, tuple[re.Pattern[str], Callable[[list[str]], Iterator[Touch]]]] = {
    "rm": (re.compile(r"-[rRfvdiI]+|--(?:recursive|force|verbose)"), _touch_each("deleted")),
    "git rm": (re.compile(r"-[rfq]+|--(?:force|quiet)"), _touch_each("deleted")),
    "mv": (re.compile(r"-[fvi]+|--(?:force|verbose)"), _move_touches),
    "git mv": (re.compile(r"-[fvk]+|--(?:force|verbose)"), _move_touches),
    "cp": (re.compile(r"-[rRafvpPdLi]+|--(?:recursive|archive|force|verbose)"), _copy_touches),
    "touch": (re.compile(r"-[am]+"), _touch_each("created")),
    "tee": (re.compile(r"-[ai]+|--append"), _touch_each("created")),
    "cat": (re.compile(r"-[nbsAeEtTuv]+|--(?:number|show-all)"), _touch_each("read")),
    "head": (re.compile(r"-[nc]?[+-]?\d*|-[qv]+|--lines=\d+"), _read_parts),
    "tail": (re.compile(r"-[nc]?[+-]?\d*|-[qvfF]+|--lines=\+?\d+"), _read_parts),
    # The first operand is the script.
    "sed -n": (re.compile(r"-[Er]"), lambda operands: (("read", path) for path in operands[1:])),
}


def _enter_folder(folder: str | None, one: ShellCommand) -> str | None:
    """Return the folder after `cd`. Only a plain path that the rest depends on is certain."""
    words = one.words[1:]
    sure = (
        one.name == "cd" and one.joint == "&&" and len(words) == 1 and words[0].sure and words[0].text not in ("", "-")
    )
    return None if not sure or folder is None else _resolve_path(folder, words[0].text)


def _resolve_path(folder: str | None, path: str) -> str:
    """Return a path relative to where the command started; empty if it is not a path."""
    if not path or path == "-" or len(path) > _LONGEST_PATH or "\n" in path or path.startswith(("/dev/", "/proc/")):
        return ""
    if path[0] in "/~" or re.match(r"[A-Za-z]:[\\/]", path):
        return path
    if folder is None:
        return ""
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}" if folder not in ("", ".") else path


_REFUSALS = ("No such file", "annot ", "ermission denied", "s a directory", "ot a directory", "not found", "ead-only")


def _refusals(output: str) -> list[str]:
    """Return the lines in which a command that carried on may have reported a failure."""
    if not any(words in output for words in _REFUSALS):
        return []
    return [line for line in output.splitlines() if any(words in line for words in _REFUSALS)]


def _is_refused(path: str, refusals: list[str]) -> bool:
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return any(name in line for line in refusals)


# --- from the output ---
_REPORT = re.compile(
    r"^ ?(?:(create|delete) mode \d{6} (.{1,4096})|rename (.{1,4096}) \(\d{1,3}%\)|patching file (.{1,4096}?)(?: \([^()\n]{0,200}\))?|rm '(.{1,4096})')\r?$",
    re.MULTILINE,
)
_COMMITS = re.compile(r"\bgit\b[^|;&\n]{0,200}?\b(?:commit|merge|pull|am|cherry-pick|revert|rebase)\b")
_SHOWS = re.compile(
    r"--summary|\bgit\b[^|;&\n]{0,200}?\b(?:log|show|diff|whatchanged|format-patch)\b|\b(?:cat|less|more|grep|rg|sed|awk|head|tail|echo|printf)\b"
)
_OCTAL = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _touched_by_output(command: str, output: str) -> Iterator[Touch]:
    """Yield the files reported by version control and patch. A log looks the same, so the command must be one that acts."""
    if not any(mark in output for mark in (" mode ", "rename ", "patching file", "rm '")):
        return
    commits = "--summary" not in command if _COMMITS.search(command) else not _SHOWS.search(command)
    for report in _REPORT.finditer(output):
        verb, path, renamed, patched, removed = report.groups()
        if commits and path:
            yield f"{verb}d", _unquote_path(path)
        elif commits and renamed:
            yield from _rename_touches(renamed)
        elif patched and re.search(r"\bpatch\b", command):
            yield "edited", _unquote_path(patched.strip("'"))
        elif removed and "git" in command:
            yield "deleted", removed


def _rename_touches(text: str) -> Iterator[Touch]:
    """Yield both files of `a => b`, or of `x/{a => b}/y` where only a part differs."""
    head, _, behind = text.partition("{")
    inner, _, rest = behind.partition("}")
    if " => " in inner:
        old, new = inner.split(" => ", 1)
        yield "deleted", f"{head}{old}{rest}".replace("//", "/")
        yield "created", f"{head}{new}{rest}".replace("//", "/")
    elif text.count(" => ") == 1:
        old, new = text.split(" => ")
        yield "deleted", _unquote_path(old)
        yield "created", _unquote_path(new)


def _unquote_path(path: str) -> str:
    """Return a path without the quotes and octal bytes that git uses for unusual names."""
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    raw = _OCTAL.sub(
        lambda found: chr(int(found[1], 8)) if len(found[1]) == 3 else _ESCAPES.get(found[1], found[1]), path[1:-1]
    )
    return raw.encode("latin-1", "ignore").decode("utf-8", "replace")


# --- mentions ---
_MENTION_CHARS = 12_000
_MAX_MENTIONS = 120  # of one text: a longer listing says little about each

_ENDINGS = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|vue|svelte|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|rb|php|ex|exs|lua|scala|zig|nu|"
    "md|mdx|mdc|rst|txt|adoc|json|jsonc|json5|jsonl|toml|yaml|yml|xml|ini|cfg|conf|csv|sql|proto|graphql|prisma|tf|"
    "sh|bash|zsh|fish|ps1|bat|css|scss|less|html|htm|svg|lock|sum|mod|gradle|cmake|docx|pdf"
)
#: The end of a name. Its beginning is searched backwards, which is far cheaper than trying every word.
_END = re.compile(
    rf"\.(?:{_ENDINGS})(?![\w@/\\*-]|\.\w|\((?!\d))|\b(?:Dockerfile|Makefile|Gemfile|Procfile)\b(?![/.(])"
    r"|(?<![\w.])\.(?:gitignore|dockerignore)\b(?![/.(])"
)
_NAME_BEFORE = re.compile(r"(?:[A-Za-z]:(?=[/\\]))?[\w@.+~/\\-]*$")
_LONGEST = 200
#: Endings that are as often members of an object: they count only after a folder.
_DOUBTFUL = frozenset((".c", ".h", ".sum", ".mod", ".ex", ".cs", ".conf", ".less", ".fish", ".nu", ".lock", ".tf"))
_SURE = frozenset(("go.mod", "go.sum", "uv.lock", "poetry.lock", "Cargo.lock", "yarn.lock"))
_FOREIGN = re.compile(r"(?:^|[/\\])(?:node_modules|\.git|site-packages|__pycache__|\.venv|dist|vendor)[/\\]")


def find_mentions(text: str) -> Counter[str]:
    shown = _both_ends(text, _MENTION_CHARS)
    found: Counter[str] = Counter()
    for end in _END.finditer(shown):
        if name := _mentioned_name(shown, end):
            found[name] += 1
    return Counter(dict(found.most_common(_MAX_MENTIONS)))


def _mentioned_name(text: str, end: re.Match[str]) -> str:
    first = max(0, end.start() - _LONGEST)
    before = _NAME_BEFORE.search(text, first, end.start())
    start = before.start() if before is not None else end.start()
    name = text[start : end.end()]
    if (start and text[start - 1] in "@:$%") or "@" in name.partition("/")[0] or "//" in name:
        return ""  # a mail, an address, a variable
    if start == end.start() and name.startswith(".") and not name.endswith("ignore"):
        return ""  # an ending alone
    if end[0] in _DOUBTFUL and "/" not in name and "\\" not in name and name not in _SURE:
        return ""
    return "" if _FOREIGN.search(name) else name
