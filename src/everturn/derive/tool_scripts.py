"""Read the calls and the files in small scripts that agents write: without running them, and only what is written out.

`script_calls` finds the tools that a script in the style of JavaScript calls: `tools.exec_command({cmd: "…"})`,
`tools.apply_patch("…")`. `written_files` finds the files that a Python or Node script on a command line writes: a literal
path, or a name that was assigned one. `cmdlet_touches` does so for PowerShell. `unpacked_files` finds what an archive was
unpacked to, and `wide_targets` the patterns of files that a command changes without naming them. All read a bounded part and
never raise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice, pairwise

from everturn.derive.paths import fold_paths, has_ending, resolve_path
from everturn.text.lazy_pattern import lazy_pattern

_MAX_CHARS = 200_000
_LONGEST_PATH = 1_000
_STRING = r"""(?:String\.raw\s{0,4})?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
_CALL = lazy_pattern(r"\btools\s{0,4}\.\s{0,4}(\w{1,40})\s{0,4}\(\s{0,20}")
_LITERAL = lazy_pattern(_STRING, re.DOTALL)
_NAME = lazy_pattern(r"[A-Za-z_$][\w$]{0,60}")
_ASSIGNED = lazy_pattern(
    rf"\b(?:const|let|var)\s{{1,10}}([A-Za-z_$][\w$]{{0,60}})\s{{0,10}}=\s{{0,10}}({_STRING})", re.DOTALL
)
_KEY = lazy_pattern(
    rf"""["']?\b(cmd|command|workdir|input|patch)["']?\s{{0,10}}:\s{{0,10}}({_STRING}|[A-Za-z_$][\w$]{{0,60}})""",
    re.DOTALL,
)
_ESCAPE = lazy_pattern(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def script_calls(text: str) -> list[tuple[str, str, str]]:
    """Return the tool, its main text and its folder, of each call that is written out."""
    if "tools" not in text:
        return []
    shown = text[:_MAX_CHARS]
    known = {name: value for name, given in _ASSIGNED.findall(shown) if (value := _string_value(given)) is not None}
    starts = list(_CALL.finditer(shown))
    ends = [one.start() for one in starts[1:]] + [len(shown)]
    found = (_read_call(one[1], shown, one.end(), end, known) for one, end in zip(starts, ends, strict=True))
    return [one for one in found if one is not None]


def _read_call(tool: str, text: str, start: int, end: int, known: dict[str, str]) -> tuple[str, str, str] | None:
    if text[start : start + 1] != "{":
        value = _value_at(text, start, known)
        return None if value is None else (tool, value, "")
    given: dict[str, str] = {}
    for key, source in _KEY.findall(text[start:end]):
        value = _string_value(source) if source[-1] in "\"'`" else known.get(source)
        if value is not None:
            given.setdefault(key, value)
    main = next((given[key] for key in ("cmd", "command", "input", "patch") if key in given), None)
    return None if main is None else (tool, main, given.get("workdir", ""))


def _value_at(text: str, start: int, known: dict[str, str]) -> str | None:
    if literal := _LITERAL.match(text, start):
        return _string_value(literal[0])
    return known.get(name[0]) if (name := _NAME.match(text, start)) else None


def _string_value(source: str) -> str | None:
    """Return the value of a string; None if parts are filled in."""
    is_raw = source.startswith("String.raw")
    body = source[source.index("`") if is_raw else 0 :]
    if body[0] == "`" and "${" in body:
        return None
    return body[1:-1] if is_raw else _ESCAPE.sub(_unescape, body[1:-1])


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1 and code[0] in "ux":
        number = int(code[1:].strip("{}"), 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
    return "" if code[-1] == "\n" else _LETTERS.get(code, code)


# --- files that a script writes ---
_DOCUMENT = lazy_pattern(r"\b(?:python[\d.]*|node|bun|ruby)\b[^\n<|;&]{0,80}<<-?[ \t]*(['\"]?)(\w{1,40})\1[^\n]*\n")
_MOST_DOCUMENTS = 20
_INLINE = lazy_pattern(r"""\b(?:python[\d.]*|node)[ ](?:-\w[ ])?-(?:c|e|p)[ ]("(?:[^"\\]|\\.)*"|'[^']*')""", re.DOTALL)
_QUOTED = r"""[rbf]?(?:"[^"\\\n]{1,400}"|'[^'\\\n]{1,400}')"""
_VALUE = rf"(?:{_QUOTED}|[A-Za-z_]\w{{0,60}})"
_MADE = lazy_pattern(
    rf"^[ \t]*(?:const |let |var )?([A-Za-z_]\w{{0,60}})[ ]?=[ ]?(?:(?:pathlib\.)?Path\([ ]?)?({_QUOTED})\)?[ \t]*;?(?:#.*)?$",
    re.MULTILINE,
)
_WRITES = lazy_pattern(
    rf"\bopen\([ ]?({_VALUE}),[ ]?(?:mode[ ]?=[ ]?)?['\"][rb]?[wax][bt+]{{0,2}}['\"]"
    rf"|\bopen\([ ]?({_VALUE}),[ ]?(?:mode[ ]?=[ ]?)?['\"]r\+"
    rf"|(?:\bPath\([ ]?({_VALUE})\)|\b([A-Za-z_]\w{{0,60}}))\.write_(?:text|bytes)\("
    rf"|\.(?:save|savefig|to_csv|to_json|to_parquet|to_excel)\([ ]?({_QUOTED})"
    rf"|\bwriteFile(?:Sync)?\([ ]?({_VALUE})"
    rf"|\b([A-Za-z_]\w{{0,60}})\.open\([ ]?['\"][wax]"
)
_WRITE_MARKS = ("open(", ".write_", ".save", ".to_", "writeFile")


def written_files(command: str) -> list[str]:
    """Return the files that scripts in a command write, each once."""
    if not any(mark in command for mark in _WRITE_MARKS):
        return []
    shown = command[:_MAX_CHARS]
    return list(dict.fromkeys(path for body in _scripts(shown) for path in _script_writes(body)))


def _scripts(command: str) -> Iterator[str]:
    if "<<" in command:
        for found in islice(_DOCUMENT.finditer(command), _MOST_DOCUMENTS):
            end = command.find(f"\n{found[2]}", found.end() - 1)
            yield command[found.end() : end if end >= 0 else len(command)]
    for found in _INLINE.finditer(command):
        body = found[1][1:-1]
        yield body.replace('\\"', '"') if found[1][0] == '"' else body


def _script_writes(body: str) -> Iterator[str]:
    """Yield the files that a script writes: by its syntax if it is Python, else by the shape of its calls."""
    try:
        tree = ast.parse(body) if "writeFile" not in body else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        yield from _matched_writes(body)
        return
    reader = _PythonReader()
    reader.read(tree.body)
    yield from (path for path in reader.written if path and ":memory:" not in path and "$" not in path)


_MOST_VALUES = 40
_MOST_DEPTH = 6
_MOST_ENTERED = 100  # functions, of one script: each may call others many times
_MODE = lazy_pattern(r"b?[wax][bt+]*|r[bt]?\+[bt]?")


class _PythonReader:
    """Finds the files that a script writes, as far as their names are written out: in variables, lists, loops and functions."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.calls: dict[ast.stmt, list[ast.Call]] = {}
        self.written: dict[str, None] = {}
        self.depth = self.entered = 0

    def read(self, body: list[ast.stmt]) -> None:
        for one in body:
            if isinstance(one, ast.FunctionDef):
                self.functions[one.name] = one
                continue
            self._bind(one)
            for call in self._calls_in(one):
                self._call(call)
            handlers = [handler.body for handler in getattr(one, "handlers", [])]
            for inner in (*(getattr(one, name, []) for name in ("body", "orelse", "finalbody")), *handlers):
                self.read(inner)

    def _calls_in(self, one: ast.stmt) -> list[ast.Call]:
        """Return the calls of a statement, without those of statements in it: found once, however often it is read."""
        if (found := self.calls.get(one)) is None:
            parts = (part for part in ast.iter_child_nodes(one) if isinstance(part, ast.expr | ast.withitem))
            found = [call for part in parts for call in ast.walk(part) if isinstance(call, ast.Call)]
            self.calls[one] = found
        return found

    def _bind(self, one: ast.stmt) -> None:
        """Note what a name stands for after an assignment, or in a loop."""
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            self.names[one.targets[0].id] = self.values(one.value)
        elif isinstance(one, ast.For):
            target = one.target.elts[0] if isinstance(one.target, ast.Tuple) and one.target.elts else one.target
            if isinstance(target, ast.Name):
                self.names[target.id] = self.values(one.iter)

    def values(self, node: ast.expr) -> list[str]:
        """Return the texts that an expression may stand for; none if that is not known."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) and len(node.value) < _LONGEST_PATH else []
        if isinstance(node, ast.Name):
            return self.names.get(node.id, [])
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            first = (
                one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one for one in node.elts[:_MOST_VALUES]
            )
            return [value for one in first for value in self.values(one)][:_MOST_VALUES]
        if isinstance(node, ast.Dict):
            keys = (key for key in node.keys[:_MOST_VALUES] if key is not None)
            return [value for key in keys for value in self.values(key)][:_MOST_VALUES]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            sign = "/" if isinstance(node.op, ast.Div) else ""
            return _joined(sign, [self.values(node.left), self.values(node.right)])
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
            return _joined("", [self.values(one) for one in parts])
        return self._result(node) if isinstance(node, ast.Call) else []

    def _result(self, call: ast.Call) -> list[str]:
        name = _call_name(call)
        if name in ("Path", "PurePath", "str", "sorted", "list", "abspath", "expanduser", "fspath") and call.args:
            return _joined("/", [self.values(one) for one in call.args])
        if name in ("join", "joinpath") and call.args and isinstance(call.func, ast.Attribute):
            first = [self.values(call.func.value)] if name == "joinpath" else []
            return _joined("/", [*first, *(self.values(one) for one in call.args)])
        kept = name in ("items", "keys", "resolve", "expanduser", "absolute") and isinstance(call.func, ast.Attribute)
        return self.values(call.func.value) if kept else []  # type: ignore[attr-defined]

    def _call(self, call: ast.Call) -> None:
        function = self.functions.get(_call_name(call))
        if function is not None and self.depth < _MOST_DEPTH and self.entered < _MOST_ENTERED:
            self._enter(function, call)
        elif (target := _written_by(call)) is not None:
            self.written.update(dict.fromkeys(self.values(target)))

    def _enter(self, function: ast.FunctionDef, call: ast.Call) -> None:
        """Read the body of a function with the arguments of a call."""
        before, self.depth, self.entered = dict(self.names), self.depth + 1, self.entered + 1
        given = dict(zip((one.arg for one in function.args.args), call.args, strict=False))
        given |= {one.arg: one.value for one in call.keywords if one.arg}
        self.names |= {name: self.values(value) for name, value in given.items()}
        self.read(function.body)
        self.names, self.depth = before, self.depth - 1


def _written_by(call: ast.Call) -> ast.expr | None:
    """Return the expression for the file that a call writes."""
    name, own = _call_name(call), call.func.value if isinstance(call.func, ast.Attribute) else None
    if name == "open":
        if own is not None and _MODE.fullmatch(_call_mode(call, 0)):
            return own
        return call.args[0] if call.args and _MODE.fullmatch(_call_mode(call, 1)) else None
    if name in ("write_text", "write_bytes", "touch"):
        return own
    if name in ("save", "savefig", "to_csv", "to_json", "to_parquet", "to_excel") and call.args:
        return call.args[0]
    return call.args[1] if name in ("copy", "copy2", "copyfile", "move") and len(call.args) > 1 else None


def _call_name(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _call_mode(call: ast.Call, at: int) -> str:
    """Return the mode in which a file is opened."""
    given = next(
        (one.value for one in call.keywords if one.arg == "mode"), call.args[at] if len(call.args) > at else None
    )
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""


def _joined(sign: str, parts: list[list[str]]) -> list[str]:
    found = [""]
    for number, part in enumerate(parts):
        found = [f"{one}{sign if number else ''}{other}" for one in found for other in part][:_MOST_VALUES]
        found = [one for one in found if len(one) < _LONGEST_PATH]
    return found


def _matched_writes(body: str) -> Iterator[str]:
    known = {name: value[1:-1] for name, value in _MADE.findall(body)}
    for found in _WRITES.finditer(body):
        value = next(one for one in found.groups() if one)
        path = value[1:-1] if value[0] in "\"'" else value[2:-1] if value[-1] in "\"'" else known.get(value, "")
        if path and "{" not in path and "$" not in path and ":memory:" not in path:
            yield path


# --- PowerShell ---
_CMDLET_MARKS = (
    "-Content",
    "Select-String",
    "Out-File",
    "-Item",
    "WriteAll",
    "del ",
    "rd ",
    "rm ",
    "rmdir ",
    "ri ",
    "erase ",
)
_CMDLET = lazy_pattern(
    r"(?:^|[|;&{(=\n\"'])\s{0,20}(Get-Content|Select-String|Set-Content|Add-Content|Out-File|New-Item|Remove-Item|Move-Item|Copy-Item|Rename-Item"
    r"|(?:del|erase|ri|rd|rmdir|rm)(?=[^|;&\n{}]{0,300}(?:\\\w|\s/[qsf]\b|-Recurse|-Force)))\s([^|;&\n{}]{0,600})"
    r"|::(WriteAll(?:Text|Lines|Bytes))\(\s{0,10}([^,\n]{1,400}),",
    re.IGNORECASE,
)
_CMDLET_WORD = lazy_pattern(r"\"([^\"]{0,400})\"|'([^']{0,400})'|([^\s\"',()]{1,400})")
_CMDLET_FLAG = lazy_pattern(
    r"-(?:force|recurse|r|fo|nonewline|append|raw|noclobber|passthru|verbose|confirm:\S*|whatif)|/[a-z]", re.I
)
_OF_FOLDERS = lazy_pattern(r"(?<=\s)(?:-r(?:ecurse)?|/s)(?!\w)", re.I)
_CMDLET_VALUE = lazy_pattern(r"\$(\w{1,60})\s{0,10}=\s{0,10}(?:\"([^\"$\n]{1,400})\"|'([^'\n]{1,400})')")
_CMDLET_FOLDER = lazy_pattern(
    r"(?:^|[;&\n])\s{0,20}(?:cd|chdir|sl|Set-Location|Push-Location)\s{1,10}(?:-(?:Literal)?Path\s{1,10})?(?:\"([^\"]{1,400})\"|'([^']{1,400})'|([^\s;&|]{1,400}))",
    re.IGNORECASE,
)
_READERS = frozenset(("get-content", "select-string"))
_REMOVERS = frozenset(("remove-item", "del", "erase", "ri", "rd", "rmdir", "rm"))
_CMDLET_PART = lazy_pattern(r"\([^()]{0,400}\)?")
_NO_NAME, _PATH_SIGN = frozenset("$*?(){}<>|\n"), frozenset("./\\")


def cmdlet_touches(command: str) -> list[tuple[str, str, str]]:
    """Return the actions, the files and the folders of cmdlets that read, write, move or remove a file that they name."""
    if not any(mark in command for mark in _CMDLET_MARKS):
        return []
    shown = command[:_MAX_CHARS].replace("'\"'\"'", "'")  # in the single quotes of another shell
    known = {name.lower(): double or single for name, double, single in _CMDLET_VALUE.findall(shown)}
    found = []
    for one in islice(_CMDLET.finditer(shown), _MOST_VALUES):
        touches = _cmdlet_files(one[1].lower(), one[2], known) if one[1] else _cmdlet_files("out-file", one[4], known)
        folders = [next(filter(None, place.groups())) for place in _CMDLET_FOLDER.finditer(shown[: one.start()])]
        folder = "" if not folders or _NO_NAME & set(folders[-1]) else folders[-1]
        found += [
            (action, path, folder) for action, path in touches if _PATH_SIGN & set(path) and not _NO_NAME & set(path)
        ]
    changed = {path for action, path, _ in found if action != "read"}
    return [one for one in found if one[0] != "read" or one[1] not in changed]


def _cmdlet_words(words: str, known: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the operands and the options of a cmdlet."""
    operands, options, option = list[str](), dict[str, str](), ""
    for double, single, bare in _CMDLET_WORD.findall(_CMDLET_PART.sub(" $ ", words)):
        if _CMDLET_FLAG.fullmatch(bare) or (bare.startswith("-") and not bare[1:2].isdigit()):
            option = "" if _CMDLET_FLAG.fullmatch(bare) else bare[1:].lower()
            continue
        word = double or single or (known.get(bare[1:].lower(), bare) if bare[:1] == "$" else bare)
        if option:
            options[option], option = word, ""
        else:
            operands.append(word)
    return operands, options


def _cmdlet_files(name: str, words: str, known: dict[str, str]) -> list[tuple[str, str]]:
    operands, options = _cmdlet_words(words, known)
    path = next((options[key] for key in ("path", "literalpath", "filepath") if key in options), "")
    operands = [path, *operands] if path else operands
    first, second = (*operands, "", "")[:2]
    if name in _READERS:
        read = path if name == "select-string" else first  # its first operand is a pattern
        return [("read", read)] if has_ending(read) else []
    if name in _REMOVERS:
        is_wide = _OF_FOLDERS.search(f" {words} ") is not None
        return [("deleted", one) for one in operands if is_wide or has_ending(one)]
    if name in ("set-content", "add-content", "out-file"):
        return [("edited", first)]
    if name == "new-item":
        whole = f"{first}/{options['name']}" if first and "name" in options else first or options.get("name", "")
        return [] if options.get("itemtype", options.get("type", "")).lower().startswith("d") else [("created", whole)]
    target = options.get("destination") or options.get("newname") or second
    if name == "rename-item" and target:
        target = first[: max(first.rfind("/"), first.rfind("\\")) + 1] + target
    return [*([("deleted", first)] if name != "copy-item" else []), ("created", target)]


# --- archives ---
UNPACKERS = frozenset(("unzip", "tar", "bsdtar", "gtar"))
_UNPACKED = lazy_pattern(
    r"^ {0,4}(?:inflating|extracting|creating|linking): ([^\n]{1,1000}?)(?: -> [^\n]{0,1000})? *\r?$", re.MULTILINE
)
_TAR_LINE = lazy_pattern(r"^(?:x )?((?:\./)?[\w@.+-][^\n:]{0,1000}?)\r?$", re.MULTILINE)
_EXTRACTS = lazy_pattern(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get")
_TELLS = lazy_pattern(r"-?[a-zA-Z]*v[a-zA-Z]*|--verbose")


def unpacked_files(names: list[str], output: str) -> list[str]:
    """Return what a command unpacked an archive to, as far as its output tells: a few files, else their folders."""
    if names[0] == "unzip":
        return fold_paths(_UNPACKED.findall(output))
    options = [name for number, name in enumerate(names[1:]) if name.startswith("-") or not number]
    if not any(map(_EXTRACTS.fullmatch, options)) or not any(map(_TELLS.fullmatch, options)):
        return []
    folder = next((after for option, after in pairwise(names) if option in ("-C", "--directory")), "")
    lines = [line for line in _TAR_LINE.findall(output) if "/" in line or (has_ending(line) and " " not in line)]
    of_tar = [line for line in lines if line.startswith("./") == lines[0].startswith("./")]
    return [resolve_path(folder, path) for path in fold_paths([line.removeprefix("./") for line in of_tar])]


# --- files that nobody names ---
_WIDE_MARKS = ("*", "xargs", "-exec")
_WIDE_WRITES = lazy_pattern(
    r"\bsed\s[^|;\n]{0,80}?-\w{0,4}i|\bperl\s{1,4}-\w{0,4}i|\b(?:git )?(?:mv|rm)\s|--write\b|-replace\b|Set-Content|Out-File|WriteAll|write_text|\bopen\([^)\n]{1,200}['\"]w"
    r"|>>?\s{0,4}['\"]?\$",
)
_WIDE_NAMES = lazy_pattern(
    r"-(?:i?name|Include|Filter)\s{1,4}[\"']?([\w.*?-]{1,100})|--include[= ][\"']?([\w.*?-]{1,100})|\br?glob\([\"']([^\"'\n]{1,200})[\"']"
    r"|(?:^|[\s\"'])((?:[\w.@~-]{1,100}[/\\]){0,20}(?:\*\*[/\\])?[\w.-]{0,60}\*[\w.*-]{0,60}\.\w{1,8})(?=[\s\"';|)]|$)",
    re.IGNORECASE,
)
_WIDE_FOLDER = lazy_pattern(
    r"\bfind\s{1,4}([\w.@~/-]{1,200})|\bPath\([\"']([^\"'\n]{1,200})|\bGet-ChildItem\s{1,4}(?:-Path\s{1,4})?[\"']?([\w.:@~/\\-]{1,200})(?=[\s\"'])"
    r"|\b(?:grep|rg)\s[^|;\n]{0,120}?\s([\w.@~-]{1,100}(?:/[\w.@~-]{1,100}){0,20}/?)\s{0,4}(?:--include\S{0,100}\s{0,4})?\|",
    re.IGNORECASE,
)


_WIDE_PLACE = lazy_pattern(r"^\s{0,10}cd\s{1,4}[\"']?([\w.@~:/-]{1,300})[\"']?\s{0,4}(?:&&|;|\n)")


def wide_targets(command: str) -> list[str]:
    """Return the patterns of the files that a command changes by a loop or a pattern; `*` and `**` as in a shell."""
    if not any(mark in command for mark in _WIDE_MARKS):
        return []
    shown = command[:_MAX_CHARS]
    if not _WIDE_WRITES.search(shown):
        return []
    base = _WIDE_FOLDER.search(shown)
    folder = next(filter(None, base.groups())).replace("\\", "/").rstrip("/.").removeprefix("./") if base else ""
    found: dict[str, None] = {}
    for name, include, inner, glob in islice(_WIDE_NAMES.findall(shown), _MOST_VALUES):
        rest = name or include or inner.removeprefix("**/")
        found[glob if not rest else f"{folder}/**/{rest}" if folder else f"**/{rest}"] = None
    if not found and folder and ("xargs" in shown or "-exec" in shown):
        found[f"{folder}/**/*"] = None
    patterns = (one.replace("\\", "/").removeprefix("./") for one in found)
    place = _WIDE_PLACE.search(shown)
    start = f"{place[1].rstrip('/')}/" if place else ""
    return [one if one.startswith(("/", "~", "**")) and not start else f"{start}{one}" for one in patterns]
