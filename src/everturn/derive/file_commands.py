"""Find the files that a shell command touches, from its words.

`command_touches` returns (action, path) pairs of a command that succeeded, as far as they are certain: redirections, moves and
copies, editors such as `sed -i`, formatters with named files, scripts on the command line, what an archive was unpacked to. What a
program prints into a log or a temporary file is not an edit, and neither is what ends up in the folders of builds. Nothing is
read from disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from everturn.derive.paths import PLAIN_NAMES, has_ending, is_by_tools, is_generated, is_scratch, resolve_path
from everturn.derive.tool_scripts import UNPACKERS, cmdlet_touches, unpacked_files, written_files
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.shell import FOLDER_CHANGES, ShellCommand, split_commands, unfold_script, unquote_git_path

Touch = tuple[str, str]

MAX_CHARS = 20_000
_NONE, _ALWAYS = lazy_pattern(r"(?!)"), lazy_pattern(r".*", re.DOTALL)


def command_touches(command: str, output: str, start: str = "") -> list[Touch]:
    """Return what a command touches; `start` is the folder in which it runs, if that is known."""
    text = command[:MAX_CHARS]
    scripts = [("edited", path) for path in written_files(command)]
    named = cmdlet_touches(command) if "FullyQualifiedErrorId" not in output else []
    if not scripts and not named and not _TOUCHING.search(text):
        return []
    found = [(action, place) for action, path, base in named if (place := resolve_path(base or start, path))]
    found = [one for one in found if not is_by_tools(one[1])]
    folder: str | None = start  # base of relative paths; None when in doubt
    left: list[str | None] = []  # the folders to which `popd` returns
    for one in split_commands(unfold_script(text), complete=len(command) <= MAX_CHARS):
        if one.name in FOLDER_CHANGES:
            left += [folder] if one.name == "pushd" else []
            folder = left.pop() if one.name == "popd" and left else enter_folder(folder, one)
        elif not one.silent or one.last:
            found += _touches_in(one, output, folder, scripts)
    last = {path: action for action, path in found if action != "read"}
    passing = {path for action, path in found if action == "created" and _is_gone(path, found)}
    found = [one for one in found if one[0] != "deleted" or last[one[1]] == "deleted"]
    refusals = _refusals(output) if found else []
    return [touch for touch in found if touch[1] not in passing and not _is_refused(touch[1], refusals)]


def _is_gone(path: str, found: list[Touch]) -> bool:
    """Whether a file that was created is deleted later, by itself or with a folder."""
    at = max(number for number, touch in enumerate(found) if touch == ("created", path))
    return any(action == "deleted" and f"{path}/".startswith(f"{other}/") for action, other in found[at + 1 :])


def _touches_in(one: ShellCommand, output: str, folder: str | None, scripts: list[Touch]) -> Iterator[Touch]:
    """Yield what one command touches in a folder."""
    if one.name in _SHELLS and len(one.words) > 2 and one.words[1].text in ("-c", "-lc") and one.words[2].sure:
        yield from command_touches(one.words[2].text, output, folder) if folder is not None else ()
    for action, path in _touches(one, output):
        place = resolve_path(folder, path)
        if place and (action == "read" or not _is_by_product(action, place, one)):
            yield action, place
    if scripts and _RUNS_SCRIPT.match(one.name):
        places = ((action, resolve_path(folder, path)) for action, path in scripts)
        yield from (touch for touch in places if touch[1] and not is_scratch(touch[1]))


_SHELLS = frozenset(("bash", "sh", "zsh"))
_RUNS_SCRIPT = lazy_pattern(r"(?:\S*/)?(?:python[\d.]*|node|bun|ruby|uv|poetry)\b")
LOG_NAME = lazy_pattern(r"\.(?:log|out|err|pid|tmp|bak|orig)\b[^/]{0,20}$", re.IGNORECASE)


def _is_by_product(action: str, path: str, one: ShellCommand) -> bool:
    """Whether a file only holds what a program printed or built. A here-document and what `echo` prints are written by the agent."""
    if is_by_tools(path):
        return True
    if action != "created" or one.document:
        return False
    return LOG_NAME.search(path) is not None or (is_scratch(path) and one.name not in _PRINTERS)


_PRINTERS = frozenset(("echo", "printf"))


def _touches(one: ShellCommand, output: str) -> Iterator[Touch]:
    names = [word.text if word.sure else "" for word in one.words]
    if names[:1] == ["sed"]:  # `sed -i '' script`: an empty ending for copies, on some systems
        names = [name for name, word in zip(names, one.words, strict=True) if word.text]
    if names[:1] == ["git"] and " ".join(names[:2]) in _PROGRAMS:
        names = [" ".join(names[:2]), *names[2:]]
    if names and (program := _PROGRAMS.get(names[0])) is not None:
        yield from _program_touches(program, names[1:], output)
    elif names and any(name in _FIXERS for name in names[:4]):
        yield from _fixed_files(names, output)
    yield from _brought_files(names, output)
    yield from (("read", file.text) for file in one.inputs if file.sure)
    if names and (target := _TARGETS.get(names[0])) is not None:
        yield from (("created", file) for option, file in pairwise(names[1:]) if target.fullmatch(option))
    if any(name.startswith("--out") for name in names):
        words = [word for name in names[1:] for word in (name.split("=", 1) if name.startswith("--out") else [name])]
        yield from (
            ("created", file) for option, file in pairwise(words) if _OUT.fullmatch(option) and has_ending(file)
        )
    yield from (("created", file.text) for sign, file in one.outputs if file.sure and sign[0] != "2")


def _brought_files(names: list[str], output: str) -> Iterator[Touch]:
    """Yield the manifest that a package manager changes, and what an archive is unpacked to."""
    if names and names[0] in _MANAGERS and (manifest := _manifest(names)):
        yield "edited", manifest
    if names and names[0].rpartition("/")[2] in _RAILS and "db:migrate" in names and "migrated (" in output:
        yield "edited", "db/schema.rb"
    if names and names[0] in UNPACKERS:
        yield from (("created", path) for path in unpacked_files(names, output))


# --- formatters and fixers ---
_RUNNERS = frozenset(
    ("npx", "bunx", "pnpx", "bun", "npm", "pnpm", "yarn", "uv", "uvx", "poetry", "pdm", "pipx", "python", "python3", "bundle", "exec", "dlx", "run", "x",
     "-m", "--", "--yes", "-y")
)  # fmt: skip
#: What makes a tool rewrite the files that it is given; None: it always does, unless it only checks.
_FIXERS: dict[str, re.Pattern[str] | None] = {
    "prettier": lazy_pattern(r"--write|-w"),
    **dict.fromkeys(
        ("eslint", "stylelint", "markdownlint", "markdownlint-cli2", "oxlint", "xo"), lazy_pattern(r"--fix")
    ),
    "biome": lazy_pattern(r"--write|--apply(?:-unsafe)?|--fix"),
    "ruff": lazy_pattern(r"format|--fix"),
    **dict.fromkeys(("black", "isort", "rustfmt", "autopep8", "yapf"), None),
    **dict.fromkeys(("gofmt", "goimports", "gofumpt", "shfmt"), lazy_pattern(r"-[a-z]*w")),
    "clang-format": lazy_pattern(r"-i"),
    "rubocop": lazy_pattern(r"-[aA]|--auto-?correct(?:-all)?"),
}
_CHECKS_ONLY = frozenset(("--check", "--diff", "--check-only", "--list-different"))
_OPTION_WITH_FILE = lazy_pattern(
    r"-c|--config(?:-path)?|--ignore-path|--settings(?:-path|-file)?|--rcfile|--parser|--rule|--ext"
)


def _fixed_files(names: list[str], output: str) -> Iterator[Touch]:
    at = next(number for number, name in enumerate(names) if name in _FIXERS)
    if any(name not in _RUNNERS for name in names[:at]):
        return
    words, needed = names[at + 1 :], _FIXERS[names[at]]
    writes = needed is None or any(map(needed.fullmatch, words))
    if not writes or any(word in _CHECKS_ONLY for word in words):
        return
    if "left unchanged" in output and "reformatted" not in output:
        return
    same = [line for line in output.splitlines() if "(unchanged)" in line]
    for option, word in pairwise(("", *words)):
        is_file = not word.startswith("-") and has_ending(word) and not _OPTION_WITH_FILE.fullmatch(option)
        if is_file and not any(word in line for line in same):
            yield "edited", word


# --- programs ---
class _Program(NamedTuple):
    """How to tell from its words which files a program touches. An option that is not listed leaves it in doubt."""

    touches: Callable[[list[str]], Iterator[Touch]]
    flags: re.Pattern[str]
    valued: re.Pattern[str] = _NONE  # options whose value is the next word
    leading: int = 0  # operands in front of the files: a script or a pattern
    script: re.Pattern[str] = _NONE  # options that give it instead
    edits: re.Pattern[str] = _NONE  # options with which it changes the files it reads
    folders: re.Pattern[str] = _NONE  # options with which an operand may be a folder; matching "" is without any


def _program_touches(program: _Program, words: list[str], output: str) -> Iterator[Touch]:
    split = _split_options(words, program)
    if split is None:
        return
    operands, options = split
    if not any(map(program.script.fullmatch, options)):
        operands = operands[program.leading :]
    if any(map(program.folders.fullmatch, ("", *options))):
        operands = [operand for operand in operands if has_ending(operand)]
    if program.touches in (_move_touches, _copy_touches) and _any_refused(operands[:-1], output):
        return
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
    elif _is_file(target) or "." not in sources[0].rsplit("/", 1)[-1]:
        yield "created", target  # else `mv a.py src`: most likely a folder, but not certain


def _is_file(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return "." in name or name in PLAIN_NAMES


def _read_parts(operands: list[str]) -> Iterator[Touch]:
    """Yield the files of head and tail: `-n 5` leaves its number among the operands."""
    return (("read", path) for path in operands if not re.fullmatch(r"[+-]?\d+[kKMG]?", path))


_NO_TOUCH = _touch_each("")
_READS, _DELETES, _CREATES = _touch_each("read"), _touch_each("deleted"), _touch_each("created")
_GREP, _RG, _SED, _PERL = "EFGPivwxclLonqhHsabzyTUrR", "niwFoclvSsuNHIUPx", "nErsuz", "pnlaws0-7"
_CONTEXT = r"(?:after-|before-)?context|max-count"
_PROGRAMS: dict[str, _Program] = {
    "rm": _Program(_DELETES, lazy_pattern(r"-[rRfvdiI]+|--(?:recursive|force|verbose)|-(?:[Rr]ecurse|[Ff]orce)")),
    "rmdir": _Program(_DELETES, lazy_pattern(r"-[pv]+|--(?:parents|verbose|ignore-fail-on-non-empty)")),
    "git rm": _Program(_DELETES, lazy_pattern(r"-[rfq]+|--(?:force|quiet)")),
    "mv": _Program(_move_touches, lazy_pattern(r"-[fvi]+|--(?:force|verbose)")),
    "git mv": _Program(_move_touches, lazy_pattern(r"-[fvk]+|--(?:force|verbose)")),
    "cp": _Program(_copy_touches, lazy_pattern(r"-[rRafvpPdLi]+|--(?:recursive|archive|force|verbose)")),
    "ln": _Program(_copy_touches, lazy_pattern(r"-[sfnvr]+|--(?:symbolic|force)")),
    "install": _Program(_copy_touches, lazy_pattern(r"-[vpCD]+|-m\S+"), lazy_pattern(r"-[mogt]")),
    "truncate": _Program(_touch_each("edited"), lazy_pattern(r"-c|-s\S+|--size=\S+"), lazy_pattern(r"-s|--size")),
    "touch": _Program(_CREATES, lazy_pattern(r"-[am]+")),
    "tee": _Program(_CREATES, lazy_pattern(r"-[ai]+|--append")),
    "cat": _Program(_READS, lazy_pattern(r"-[nbsAeEtTuv]+|--(?:number|show-all)")),
    "tac": _Program(_READS, _NONE),
    "less": _Program(_READS, lazy_pattern(r"-[NRSXFi]+")),
    "more": _Program(_READS, _NONE),
    "nl": _Program(_READS, lazy_pattern(r"-[bnwsv]\S+"), lazy_pattern(r"-[bnwsv]")),
    "bat": _Program(
        _READS, lazy_pattern(r"-[pnA]+|--(?:plain|number|(?:style|color|paging|line-range|language)=\S+)"),
        lazy_pattern(r"-[rlH]|--(?:style|color|paging|line-range|language)"),
    ),
    "head": _Program(_read_parts, lazy_pattern(r"-[nc]?[+-]?\d*|-[qv]+|--(?:lines|bytes)(?:=-?\d+)?")),
    "tail": _Program(_read_parts, lazy_pattern(r"-[nc]?[+-]?\d*|-[qvfF]+|--(?:lines|bytes)(?:=\+?\d+)?")),
    "wc": _Program(_READS, lazy_pattern(r"-[lwcmL]+|--(?:lines|words|bytes|chars)")),
    "strings": _Program(_READS, lazy_pattern(r"-a|-\d+"), lazy_pattern(r"-n")),
    "xxd": _Program(lambda files: _READS(files[:1]), lazy_pattern(r"-[pib]|-[glsc]\d+"), lazy_pattern(r"-[glsc]")),
    "hexdump": _Program(_READS, lazy_pattern(r"-[Cvxcbod]+"), lazy_pattern(r"-[ns]")),
    "od": _Program(_READS, lazy_pattern(r"-[vabcdox]+|-[ANjt]\S+"), lazy_pattern(r"-[ANjt]")),
    "sort": _Program(_READS, lazy_pattern(r"-[nrufhVbgMRsz]+|-[kt]\S+"), lazy_pattern(r"-[nrufhVbg]*[kt]|-o")),
    "cut": _Program(_READS, lazy_pattern(r"-[dfcb]\S+|-s"), lazy_pattern(r"-[dfcb]")),
    "diff": _Program(
        _READS, lazy_pattern(r"-[uNwbBiqyEZ]+|-U\d+|--(?:unified|brief|color(?:=\w+)?)"), lazy_pattern(r"-U"), folders=_ALWAYS
    ),
    "grep": _Program(
        _READS,
        lazy_pattern(
            rf"-[{_GREP}]*(?:[ABCm]?\d+)?|--(?:colou?r(?:=\w+)?|(?:include|exclude|exclude-dir|regexp)=.*|(?:{_CONTEXT})=\d+|recursive|"
            "line-number|ignore-case|count|only-matching|(?:no|with)-filename|(?:extended|perl|word)-regexp|fixed-strings|invert-match|text)",
            re.DOTALL,
        ),
        lazy_pattern(rf"-[{_GREP}]*[eABCmf]|--(?:regexp|{_CONTEXT})"), 1, lazy_pattern(r"-\w*[ef]|--regexp(?:=.*)?", re.DOTALL),
        folders=lazy_pattern(r"-\w*[rR]\w*|--recursive"),
    ),
    "rg": _Program(
        _READS,
        lazy_pattern(rf"-[{_RG}]*(?:[ABCm]?\d+)?|--(?:no-heading|line-number|hidden|no-ignore|ignore-case|multiline|color=\w+|glob=.*)"),
        lazy_pattern(rf"-[{_RG}]*[eABCmgtT]|--(?:regexp|glob|type|{_CONTEXT})"), 1, lazy_pattern(r"-\w*e|--regexp"), folders=_ALWAYS,
    ),
    "sed": _Program(
        _READS,
        lazy_pattern(rf"-[{_SED}]*(?:i\S*)?|--(?:in-place(?:=\S*)?|quiet|silent|regexp-extended|expression=.*)", re.DOTALL),
        lazy_pattern(rf"-[{_SED}]*[ef]|--(?:expression|file)"), 1,
        lazy_pattern(rf"-[{_SED}]*[ef]|--file|--expression(?:=.*)?", re.DOTALL),
        lazy_pattern(rf"-[{_SED}]*i\S*|--in-place(?:=\S*)?"),
    ),
    "perl": _Program(  # without -e, the operands are a program and what it is told
        _READS, lazy_pattern(rf"-[{_PERL}]*(?:i(?:\.\w+|~)?)?|-[MCF]\S+"), lazy_pattern(rf"-[{_PERL}]*[eE]"), MAX_CHARS,
        lazy_pattern(rf"-[{_PERL}]*[eE]"), lazy_pattern(rf"-[{_PERL}]*i(?:\.\w+|~)?"),
    ),
    "awk": _Program(
        lambda files: _READS([file for file in files if "=" not in file]), lazy_pattern(r"-[Fv]\S+"), lazy_pattern(r"-[Fvf]"), 1,
        lazy_pattern(r"-f"),
    ),
    "jq": _Program(
        _READS, lazy_pattern(r"-[rcseSaRCMj]+|--(?:raw-output|compact-output|slurp|sort-keys|tab|exit-status)"),
        lazy_pattern(r"-f|--from-file|--indent"), 1, lazy_pattern(r"-f|--from-file"),
    ),
}  # fmt: skip
for _name, _other in (("egrep", "grep"), ("fgrep", "grep"), ("gsed", "sed"), ("gawk", "awk"), ("batcat", "bat")):
    _PROGRAMS[_name] = _PROGRAMS[_other]

#: The file in which a package manager notes what it adds or removes, by its words.
_MANIFESTS = (
    (lazy_pattern(r"(?:npm|pnpm|yarn|bun) (?:install|i|add|remove|rm|uninstall|un)(?: -{1,2}(?!global\b|g\b|location)[\w-]+)* (?!-)\S.*"), "package.json"),
    (lazy_pattern(r"(?:npm|pnpm|yarn|bun) (?:init|pkg set|version)\b(?! @?\w+[-/@]).*"), "package.json"),
    (lazy_pattern(r"(?:uv|poetry|pdm) (?:add|remove|init)\b.*"), "pyproject.toml"),
    (lazy_pattern(r"cargo (?:add|remove|rm)\b.*"), "Cargo.toml"),
    (lazy_pattern(r"go (?:get \S*\w.*|mod (?:init|edit)\b.*)"), "go.mod"),
    (lazy_pattern(r"composer (?:require|remove)\b.*"), "composer.json"),
    (lazy_pattern(r"(?:flutter|dart) pub (?:add|remove)\b.*"), "pubspec.yaml"),
    (lazy_pattern(r"bundle (?:add|remove)\b.*"), "Gemfile"),
)  # fmt: skip
_RAILS = frozenset(("rails", "rake", "bundle"))
_MANAGERS = frozenset("npm pnpm yarn bun uv poetry pdm cargo go composer flutter dart bundle".split())
#: Options after which it works in another folder, or everywhere.
_ELSEWHERE = lazy_pattern(
    r"(?:^| )(?:-g|--global|--prefix|--filter|-C|--cwd|-w|--workspace|--project|--directory|--no-save|--dry-run|--help)(?:[ =]|$)"
)


def _manifest(names: list[str]) -> str:
    """Return the manifest that a package manager changes, "" if it changes none here."""
    words = " ".join(names)
    if _ELSEWHERE.search(words):
        return ""
    return next((file for pattern, file in _MANIFESTS if pattern.fullmatch(words)), "")


def made_folders(command: str, start: str = "") -> list[str]:
    """Return the folders that a command makes by their names, or clones."""
    folder: str | None = start
    found = []
    for one in split_commands(unfold_script(command[:MAX_CHARS])):
        if one.name in FOLDER_CHANGES:
            folder = enter_folder(folder, one)
        elif one.name == "git" and [word.text for word in one.words[1:2]] == ["clone"]:
            found += [
                resolve_path(folder, path)
                for path in _cloned([word.text if word.sure else "" for word in one.words[2:]])
            ]
        elif one.name == "mkdir":
            split = _split_options([word.text if word.sure else "" for word in one.words[1:]], _MKDIR)
            found += [resolve_path(folder, path.rstrip("/")) for path in (split[0] if split else ()) if path]
    return [one for one in found if one and not (has_ending(one) or is_by_tools(one) or is_scratch(f"{one}/"))]


def _cloned(words: list[str]) -> list[str]:
    """Return the folder that a clone makes: as given, or called like the repository."""
    split = _split_options(words, _CLONE)
    operands = split[0] if split else []
    if len(operands) == 2 and all(operands):
        return [operands[1].rstrip("/")]
    return [operands[0].rstrip("/").rpartition("/")[2].removesuffix(".git")] if len(operands) == 1 else []


_CLONE = _Program(
    _NO_TOUCH, lazy_pattern(r"--(?:quiet|recursive|recurse-submodules|single-branch|(?:depth|branch)=\S+|progress|verbose)|-[qv]"),
    lazy_pattern(r"--(?:depth|branch|origin|filter)|-[bo]"),
)  # fmt: skip
_MKDIR = _Program(_NO_TOUCH, lazy_pattern(r"-[pv]+|--(?:parents|verbose)|-m\S+|--mode=\S+"), lazy_pattern(r"-m|--mode"))

#: The options that say which file a program creates.
_TARGETS = {
    "curl": lazy_pattern(r"-[sSLfkg]*o|--output"),
    "wget": lazy_pattern(r"-[qcN]*O|--output-document"),
    "pandoc": lazy_pattern(r"-o|--output"),
    "sort": lazy_pattern(r"-o"),
}
_OUT = lazy_pattern(r"--out(?:put)?(?:-?file)?")
#: A command without any of these certainly touches no file that could be named.
_TOUCHING = lazy_pattern(
    rf"[<>]|--out|\b(?:{'|'.join(sorted({re.escape(name.split()[-1]) for name in (*_PROGRAMS, *_TARGETS, *_FIXERS, *_MANAGERS, *_RAILS, *UNPACKERS)}))})(?!\w)"
)


def enter_folder(folder: str | None, one: ShellCommand) -> str | None:
    """Return the folder after `cd` or `pushd`. Only a plain path is certain."""
    named = one.words[1].text if len(one.words) == 2 and one.words[1].sure else ""
    sure = named not in ("", "-") and one.name != "popd" and one.joint != "||"
    if not sure or folder is None:
        return None
    return folder if named in (".", "./") else resolve_path(folder, f"{named}/.").removesuffix("/.")


_REFUSALS = (
    "No such file",
    "annot ",
    "failed to ",
    "same file",
    "ermission denied",
    "s a directory",
    "ot a directory",
    "not found",
    "ead-only",
)


def _refusals(output: str) -> list[str]:
    """Return the lines in which a command that carried on may have reported a failure."""
    if not any(words in output for words in _REFUSALS):
        return []
    return [line for line in output.splitlines() if any(words in line for words in _REFUSALS)]


def _any_refused(paths: list[str], output: str) -> bool:
    refusals = _refusals(output)
    return bool(refusals) and any(_is_refused(path, refusals) for path in paths if path)


def _is_refused(path: str, refusals: list[str]) -> bool:
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return any(name in line for line in refusals)


def last_folder(command: str, start: str = "") -> str | None:
    """Return the folder in which a command ends; None when in doubt."""
    folder: str | None = start
    for one in split_commands(command):
        if one.name in FOLDER_CHANGES:
            folder = enter_folder(folder, one)
    return folder


def staged_files(command: str) -> list[str]:
    """Return the files that `git add` names one by one."""
    found = []
    for one in split_commands(command):
        words = [word.text for word in one.words]
        is_add = "git" in words[:2] and "add" in words
        if is_add and not any(word in ("-A", "--all", "-u", ".", "-p") for word in words):
            found += [word for word in words[words.index("add") + 1 :] if not word.startswith("-") and has_ending(word)]
    return [word for word in found if not set("*?[$") & set(word)]


# --- The files that git and patch report as changed ---
_FILE_REPORT = lazy_pattern(
    r"^ ?(?:(create|delete) mode \d{6} (.{1,4096})|rename (.{1,4096}) \(\d{1,3}%\)|patching file (.{1,4096}?)(?: \([^()\n]{0,200}\))?|rm '(.{1,4096})')\r?$",
    re.MULTILINE,
)
GIT = r"\bgit\b(?:\s+-[cC]\s+(?:[\w.]+=)?(?:\"[^\"\n]*\"|'[^'\n]*'|\S+)|\s+--?\S+)*\s+"
_BRINGS = lazy_pattern(
    rf"{GIT}(?:merge|pull|am|cherry-pick|revert|rebase|checkout|switch|stash|clone|reset|restore|worktree)\b"
)
_COMMIT = lazy_pattern(rf"{GIT}commit\b(?!-)")
#: Where the report of a new commit begins, and where that of something else does.
_SECTION = lazy_pattern(
    r"^(?:(\[[^\]\n]{1,200} [0-9a-f]{6,40}\] )|(?:Updating [0-9a-f]{6,40}\.\.|Fast-forward|Merge made by |Squash commit))",
    re.MULTILINE,
)


def reported_files(command: str, output: str) -> Iterator[Touch]:
    """Yield the files reported by new commits, `git rm` and patch. A log looks the same, so the command must be one that acts."""
    shown = " mode ", "rename ", "patching file", "rm '"
    if not any(mark in output for mark in (shown if "commit" in command else shown[2:])):
        return
    commits = bool(_COMMIT.search(command)) and "--summary" not in command
    brings = bool(_BRINGS.search(command)) if commits else True
    sections = [(one.start(), bool(one[1])) for one in _SECTION.finditer(output)] if commits else []
    reports = list(_FILE_REPORT.finditer(output))
    if len(reports) > 40 and commits:  # an import, a scaffold or a build: not written file by file
        return
    for report in reports:
        verb, path, renamed, patched, removed = (part.rstrip() if part else "" for part in report.groups())
        if path or renamed:
            is_new = next((new for at, new in reversed(sections) if at < report.start()), not brings)
            if not commits or not is_new:
                continue
            touches = [(f"{verb}d", unquote_git_path(path))] if path else _rename_touches(renamed)
            yield from (one for one in touches if not is_generated(one[1]))
        elif patched and re.search(r"\bpatch\b", command):
            yield "edited", unquote_git_path(patched.strip("'"))
        elif removed and "git" in command and "--cached" not in command:
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
        yield "deleted", unquote_git_path(old)
        yield "created", unquote_git_path(new)
