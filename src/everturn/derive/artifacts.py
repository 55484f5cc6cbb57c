"""Find the files that a tool call touched, and the files that a text mentions.

`touched_files` returns (action, path) pairs of one successful call: only what is certain, from the call, its result, the
words of a shell command, the reports that version control and patch print, and lines such as `Wrote out.csv` of a command that
acts. Paths stay as they were given; nothing is read from disk.

`find_mentions` recognises a file name by its ending, since many words contain a dot: versions, hosts, members of an object.
Addresses, mails and the folders of package managers do not count.

Both read a bounded part of long texts and never raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import patched_files
from everturn.text.shell import FOLDER_CHANGES, ShellCommand, split_commands

Touch = tuple[str, str]

_MAX_CHARS = 20_000
_NONE, _ALWAYS = re.compile(r"(?!)"), re.compile(r".*", re.DOTALL)
_LONGEST_PATH = 4096
_ACTION = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}
_ENDINGS = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|vue|svelte|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|rb|php|ex|exs|lua|scala|zig|nu|"
    "md|mdx|mdc|rst|txt|adoc|json|jsonc|json5|jsonl|toml|yaml|yml|xml|ini|cfg|conf|csv|sql|proto|graphql|prisma|tf|"
    "sh|bash|zsh|fish|ps1|bat|css|scss|less|html|htm|svg|lock|sum|mod|gradle|cmake|docx|pdf"
)
#: Endings of files as well, but too often of other words to count where a text only mentions them.
_MORE_ENDINGS = (
    "log|png|jpg|jpeg|gif|webp|ico|db|sqlite|parquet|pkl|npy|tsv|xlsx|pptx|zip|gz|tgz|whl|patch|diff|erb|pl|env"
)
_FILE_ENDINGS = frozenset(f"{_ENDINGS}|{_MORE_ENDINGS}".split("|"))


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
        found += _told_by_output(call.command[:_MAX_CHARS], output)
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
        if one.name in FOLDER_CHANGES:
            folder = _enter_folder(folder, one)
            continue
        if one.silent and not one.last:
            continue
        found += [(action, place) for action, path in _command_touches(one) if (place := _resolve_path(folder, path))]
    refusals = _refusals(output) if found else []
    return [touch for touch in found if not _is_refused(touch[1], refusals)] if refusals else found


def _command_touches(one: ShellCommand) -> Iterator[Touch]:
    names = [word.text if word.sure else "" for word in one.words]
    if names[:1] == ["sed"]:  # `sed -i '' script`: an empty ending for copies, on some systems
        names = [name for name, word in zip(names, one.words, strict=True) if word.text]
    if names[:1] == ["git"] and " ".join(names[:2]) in _PROGRAMS:
        names = [" ".join(names[:2]), *names[2:]]
    if names and (program := _PROGRAMS.get(names[0])) is not None:
        yield from _program_touches(program, names[1:])
    yield from (("read", file.text) for file in one.inputs if file.sure)
    if names and (target := _TARGETS.get(names[0])) is not None:
        yield from (("created", file) for option, file in pairwise(names[1:]) if target.fullmatch(option))
    yield from (("created", file.text) for _, file in one.outputs if file.sure)


class _Program(NamedTuple):
    """How to tell from its words which files a program touches. An option that is not listed leaves it in doubt."""

    touches: Callable[[list[str]], Iterator[Touch]]
    flags: re.Pattern[str]
    valued: re.Pattern[str] = _NONE  # options whose value is the next word
    leading: int = 0  # operands in front of the files: a script or a pattern
    script: re.Pattern[str] = _NONE  # options that give it instead
    edits: re.Pattern[str] = _NONE  # options with which it changes the files it reads
    folders: re.Pattern[str] = _NONE  # options with which an operand may be a folder; matching "" is without any


def _program_touches(program: _Program, words: list[str]) -> Iterator[Touch]:
    split = _split_options(words, program)
    if split is None:
        return
    operands, options = split
    if not any(map(program.script.fullmatch, options)):
        operands = operands[program.leading :]
    if any(map(program.folders.fullmatch, ("", *options))):
        operands = [operand for operand in operands if _has_ending(operand)]
    edits = any(map(program.edits.fullmatch, options))
    yield from _touch_each("edited")(operands) if edits else program.touches(operands)


def _split_options(words: list[str], program: _Program) -> tuple[list[str], list[str]] | None:
    """Return the operands and the options; None if there is an unknown option."""
    operands: list[str] = []
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return operands + list(rest), options
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            continue
        options.append(word)
        if program.valued.fullmatch(word):
            next(rest, "")
        elif not program.flags.fullmatch(word):
            return None
    return operands, options


def _has_ending(path: str) -> bool:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return bool(stem and dot) and ending.lower() in _FILE_ENDINGS


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


_READS, _DELETES, _CREATES = _touch_each("read"), _touch_each("deleted"), _touch_each("created")
_GREP, _RG, _SED, _PERL = "EFGPivwxclLonqhHsabzyTUrR", "niwFoclvSsuNHIUPx", "nErsuz", "pnlaws0-7"
_CONTEXT = r"(?:after-|before-)?context|max-count"
_PROGRAMS: dict[str, _Program] = {
    "rm": _Program(_DELETES, re.compile(r"-[rRfvdiI]+|--(?:recursive|force|verbose)")),
    "git rm": _Program(_DELETES, re.compile(r"-[rfq]+|--(?:force|quiet)")),
    "mv": _Program(_move_touches, re.compile(r"-[fvi]+|--(?:force|verbose)")),
    "git mv": _Program(_move_touches, re.compile(r"-[fvk]+|--(?:force|verbose)")),
    "cp": _Program(_copy_touches, re.compile(r"-[rRafvpPdLi]+|--(?:recursive|archive|force|verbose)")),
    "ln": _Program(_copy_touches, re.compile(r"-[sfnvr]+|--(?:symbolic|force)")),
    "touch": _Program(_CREATES, re.compile(r"-[am]+")),
    "tee": _Program(_CREATES, re.compile(r"-[ai]+|--append")),
    "cat": _Program(_READS, re.compile(r"-[nbsAeEtTuv]+|--(?:number|show-all)")),
    "tac": _Program(_READS, _NONE),
    "less": _Program(_READS, re.compile(r"-[NRSXFi]+")),
    "more": _Program(_READS, _NONE),
    "nl": _Program(_READS, re.compile(r"-[bnwsv]\S+"), re.compile(r"-[bnwsv]")),
    "bat": _Program(
        _READS, re.compile(r"-[pnA]+|--(?:plain|number|(?:style|color|paging|line-range|language)=\S+)"),
        re.compile(r"-[rlH]|--(?:style|color|paging|line-range|language)"),
    ),
    "head": _Program(_read_parts, re.compile(r"-[nc]?[+-]?\d*|-[qv]+|--(?:lines|bytes)(?:=-?\d+)?")),
    "tail": _Program(_read_parts, re.compile(r"-[nc]?[+-]?\d*|-[qvfF]+|--(?:lines|bytes)(?:=\+?\d+)?")),
    "wc": _Program(_READS, re.compile(r"-[lwcmL]+|--(?:lines|words|bytes|chars)")),
    "strings": _Program(_READS, re.compile(r"-a|-\d+"), re.compile(r"-n")),
    "xxd": _Program(lambda files: _READS(files[:1]), re.compile(r"-[pib]|-[glsc]\d+"), re.compile(r"-[glsc]")),
    "hexdump": _Program(_READS, re.compile(r"-[Cvxcbod]+"), re.compile(r"-[ns]")),
    "od": _Program(_READS, re.compile(r"-[vabcdox]+|-[ANjt]\S+"), re.compile(r"-[ANjt]")),
    "sort": _Program(_READS, re.compile(r"-[nrufhVbgMRsz]+|-[kt]\S+"), re.compile(r"-[nrufhVbg]*[kt]|-o")),
    "cut": _Program(_READS, re.compile(r"-[dfcb]\S+|-s"), re.compile(r"-[dfcb]")),
    "diff": _Program(
        _READS, re.compile(r"-[uNwbBiqyEZ]+|-U\d+|--(?:unified|brief|color(?:=\w+)?)"), re.compile(r"-U"), folders=_ALWAYS
    ),
    "grep": _Program(
        _READS,
        re.compile(
            rf"-[{_GREP}]*(?:[ABCm]?\d+)?|--(?:colou?r(?:=\w+)?|(?:include|exclude|exclude-dir|regexp)=.*|(?:{_CONTEXT})=\d+|recursive|"
            "line-number|ignore-case|count|only-matching|(?:no|with)-filename|(?:extended|perl|word)-regexp|fixed-strings|invert-match|text)",
            re.DOTALL,
        ),
        re.compile(rf"-[{_GREP}]*[eABCmf]|--(?:regexp|{_CONTEXT})"), 1, re.compile(r"-\w*[ef]|--regexp(?:=.*)?", re.DOTALL),
        folders=re.compile(r"-\w*[rR]\w*|--recursive"),
    ),
    "rg": _Program(
        _READS,
        re.compile(rf"-[{_RG}]*(?:[ABCm]?\d+)?|--(?:no-heading|line-number|hidden|no-ignore|ignore-case|multiline|color=\w+|glob=.*)"),
        re.compile(rf"-[{_RG}]*[eABCmgtT]|--(?:regexp|glob|type|{_CONTEXT})"), 1, re.compile(r"-\w*e|--regexp"), folders=_ALWAYS,
    ),
    "sed": _Program(
        _READS,
        re.compile(rf"-[{_SED}]*(?:i\S*)?|--(?:in-place(?:=\S*)?|quiet|silent|regexp-extended|expression=.*)", re.DOTALL),
        re.compile(rf"-[{_SED}]*[ef]|--(?:expression|file)"), 1,
        re.compile(rf"-[{_SED}]*[ef]|--file|--expression(?:=.*)?", re.DOTALL),
        re.compile(rf"-[{_SED}]*i\S*|--in-place(?:=\S*)?"),
    ),
    "perl": _Program(  # without -e, the operands are a program and what it is told
        _READS, re.compile(rf"-[{_PERL}]*(?:i(?:\.\w+|~)?)?|-[MCF]\S+"), re.compile(rf"-[{_PERL}]*[eE]"), _MAX_CHARS,
        re.compile(rf"-[{_PERL}]*[eE]"), re.compile(rf"-[{_PERL}]*i(?:\.\w+|~)?"),
    ),
    "awk": _Program(
        lambda files: _READS([file for file in files if "=" not in file]), re.compile(r"-[Fv]\S+"), re.compile(r"-[Fvf]"), 1,
        re.compile(r"-f"),
    ),
    "jq": _Program(
        _READS, re.compile(r"-[rcseSaRCMj]+|--(?:raw-output|compact-output|slurp|sort-keys|tab|exit-status)"),
        re.compile(r"-f|--from-file|--indent"), 1, re.compile(r"-f|--from-file"),
    ),
}  # fmt: skip
for _name, _other in (("egrep", "grep"), ("fgrep", "grep"), ("gsed", "sed"), ("gawk", "awk"), ("batcat", "bat")):
    _PROGRAMS[_name] = _PROGRAMS[_other]

#: The options that say which file a program creates.
_TARGETS = {
    "curl": re.compile(r"-[sSLfkg]*o|--output"),
    "wget": re.compile(r"-[qcN]*O|--output-document"),
    "pandoc": re.compile(r"-o|--output"),
    **dict.fromkeys(("sort", "gcc", "g++", "cc", "clang", "clang++", "rustc"), re.compile(r"-o")),
}
#: A command without any of these certainly touches no file that could be named.
_TOUCHING = re.compile(
    rf"[<>]|\b(?:{'|'.join(sorted({re.escape(name.split()[-1]) for name in (*_PROGRAMS, *_TARGETS)}))})(?!\w)"
)


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
    if "://" in path:
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


# --- what a program says it did ---
_DEEDS = {
    **dict.fromkeys(
        ("wrote", "writing", "created", "creating", "create", "generated", "generating", "saved", "saving", "exported",
         "inflating", "extracting"), "created"),
    **dict.fromkeys(("updated", "updating", "update", "reformatted", "fixing", "fixed", "patched", "rewrote", "modified"), "edited"),
    **dict.fromkeys(("read", "reading", "loaded", "loading"), "read"),
}  # fmt: skip
#: An output without any of these tells no deed.
_DEED_MARKS = (
    "rote ", "riting ", "reate", "CREATE ", "reating", "enerat", "aved ", "aving ", "xported ", "nflating", "xtracting", "pdat", "UPDATE ", "formatted ",
    "ixing ", "ixed ", "atched ", "odified ", "Read ", "read ", "eading ", "oaded ", "oading ",
)  # fmt: skip
_LONGEST_DEED = 600
_DEED = re.compile(
    r"(?P<verb>[a-z]{4,12}):?\s{1,20}(?P<what>(?:(?:files?|the|new|output|reports?|results?|data|log|html|xml|json|csv|lines?|bytes|rows|"
    r"records|entries|items|to|in|into|from|as|config|configuration|template|\d[\d,.]{0,12})\s{1,4}){0,6})"
    r"(?P<quote>['\"`]?)(?P<path>[\w@+~./\\](?:[^'\"`*?$<>|(),;\s]|(?<=\w) (?=\w)){0,300}?)(?P=quote)"
    r"(?P<tail>\.{0,3}|\s{0,4}\.{3}\s{0,4}(?:done|ok)?|\s{1,4}[(\[][^\n]{0,200}[)\]]|\s{1,4}in [\d.]{1,8} ?m?s|\s{1,4}successfully)!?",
    re.IGNORECASE,
)
#: Commands that show texts of others, ask only, or run elsewhere.
_NOT_DOING = re.compile(
    r"--(?:dry-run|check|summary)\b|\b(?:git|gh|ssh|docker|podman|kubectl|journalctl|curl|wget|jq|diff|bat|nl|tac|strings|ls|find|tree|"
    r"history|cat|less|more|grep|rg|sed|awk|head|tail|echo|printf)\b"
)


def _told_by_output(command: str, output: str) -> Iterator[Touch]:
    """Yield the files of lines such as `Wrote out/report.csv`, where the command did something."""
    if not output or _NOT_DOING.search(command) or not any(mark in output for mark in _DEED_MARKS):
        return
    told = [touch for line in output.splitlines() if (touch := _read_deed(line)) is not None]
    folder = _last_folder(command) if told else ""
    yield from ((action, place) for action, path in told if (place := _resolve_path(folder, path)))


def _read_deed(line: str) -> Touch | None:
    words = line.strip(" \t✓✔✅→")
    action = _DEEDS.get(words.split(None, 1)[0].rstrip(":").lower()) if words and len(words) <= _LONGEST_DEED else None
    found = _DEED.fullmatch(words) if action is not None else None
    if action is None or found is None:
        return None
    verb, path = found["verb"].lower(), found["path"]
    if verb in ("create", "update") and "bytes)" not in found["tail"] and "  " not in line.strip():
        return None  # a wish: `Update README.md`
    if (verb == "read" and not found["what"]) or (" " in path and not found["quote"]):
        return None
    if not _has_ending(path) or "@" in path.partition("/")[0]:
        return None
    return action, path


def _last_folder(command: str) -> str | None:
    folder: str | None = ""
    for one in split_commands(command):
        if one.name in FOLDER_CHANGES:
            folder = _enter_folder(folder, one)
    return folder


# --- mentions ---
_MENTION_CHARS = 12_000
_MAX_MENTIONS = 120  # of one text: a longer listing says little about each

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
