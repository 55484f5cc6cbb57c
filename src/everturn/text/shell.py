"""Split a shell command into simple commands, as far as possible without running it.

`unfold_script` writes out what a script repeats or abbreviates, where the words say it all: variables with a plain value, loops
over a plain list, `{a,b}`, groups, and what stands under `if`. What is left is a script that `split_commands` reads.

`split_commands` returns the commands that certainly ran, with their words unquoted. What depends on a condition, a loop or
a substitution is left out: where the syntax is in doubt, parsing stops and what came before counts. Never raises; one
pass over the text.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

#: A name in angle brackets is a part of a path that somebody took out of a transcript: `cd <repo>`, `<home>/notes`.
#: The most common kinds first; the others do not begin like them, but for the number before a redirection.
_TOKEN = re.compile(
    r"""
      (?P<text>    <[A-Za-z_-]{2,20}>(?=/|[ \t]*(?:&&|\|\||;|\n|$)) | (?![0-9][<>])[^\s'"\\$`;&|<>(){}*?\[\]]+ )
    | (?P<space>   (?:[ \t\r]|\\\r?\n)+ )
    | (?P<newline> \n )
    | (?P<heredoc> <<-?(?!<) )
    | (?P<copy>    [0-9]?[<>]&(?:[0-9]|-) )
    | (?P<output>  (?:[0-9]|&)?>>?\|?(?![&(]) )
    | (?P<input>   [0-9]?<(?:<<)?(?![<&(]) )
    | (?P<joint>   &&|\|\||\|&?|;(?!;)|& )
    | (?P<single>  '[^']*' )
    | (?P<double>  "(?:[^"\\$`]|\\.)*" )
    | (?P<mixed>   "(?:[^"\\$`]|\\.|\$(?!\())*" )
    | (?P<escape>  \\[^\w\n] )
    | (?P<filled>  \$(?:\([^()'"`\\<\n]*\)|\w+|\{[^{}'"`$(]*\}|[?\#@*!$-]) | [*?\[\]{}] )
    | (?P<number>  [0-9] )
    """,
    re.VERBOSE | re.DOTALL,
)
_PARTS = frozenset(("text", "number", "single", "double", "mixed", "escape", "filled"))
_ESCAPED = re.compile(r'\\(["\\$`\n])')
_ASSIGNMENT = re.compile(r"\w+\+?=", re.ASCII)
_DURATION = re.compile(r"[\d.]{1,12}[smhd]?", re.ASCII)
_KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "exit",
     "return", "exec", "{", "}", "!", "[[")
)  # fmt: skip
_TESTS = frozenset(("[", "test", "grep", "rg", "which", "type", "hash", "diff", "cmp", "pgrep", "false"))
FOLDER_CHANGES = frozenset(("cd", "pushd", "popd"))
_CONTINUING = frozenset(("&&", "||", "|", "|&"))
_PREFIXES = frozenset(("sudo", "command", "time", "nice", "nohup", "env"))


class Word(Struct, gc=False):
    """One word. `sure` is False where the shell would substitute something else."""

    text: str
    sure: bool = True


class ShellCommand(Struct):
    """One simple command: its words without assignments in front, and the files it reads from and writes to."""

    words: list[Word] = []
    outputs: list[tuple[str, Word]] = []  # (sign, file)
    inputs: list[Word] = []
    joint: str = ""  # the operator after it: && || | ; or the end of the line
    document: bool = False  # its input is a here-document
    last: bool = False  # with those before it in its chain, it decides the exit status of the whole

    @property
    def name(self) -> str:
        """The program, or "" if that is in doubt."""
        first = self.words[0] if self.words else Word("")
        return first.text if first.sure or first.text == "[" else ""

    @property
    def silent(self) -> bool:
        """Whether its error output was discarded."""
        return any(sign[0] in "2&" and word.text == "/dev/null" for sign, word in self.outputs)


def split_commands(text: str, complete: bool = True) -> list[ShellCommand]:
    """Return the commands of a line or script, in order. `complete` is False for truncated text.

    Commands around `||` are left out; a change of the folder that may not have happened stays, with `||` as its joint.
    """
    reader = _ShellReader(text)
    reader.run()
    if complete and reader.at == len(text):
        reader.end_command("")
    elif "||" in text[reader.at :]:
        reader.drop_chain()
    commands = [command for chain in _split_chains(reader.commands) for command in chain]
    return [command for command in map(_strip_prefix, commands) if command.words or command.outputs]


_MOST_ROUNDS = 30
_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1[^\n]*\n")
_SETTING = re.compile(
    r"(?:^|[;\n&])[ \t]*(?:export[ \t]+|local[ \t]+)?(\w{1,60})=(\"[^\"$`\n]*\"|'[^'\n]*'|[^\s;&|$`()'\"<>*?{}]*)(?=[ \t]*(?:[;\n&]|$))"
)
#: After a script that went well, what stands before it did too.
_OR_LEAVES = re.compile(r"[ \t]*\|\|[ \t]*(?:(?:exit|return)\b[^;&|\n]*|\{[^{}\n]*\b(?:exit|return)\b[^{}\n]*\})")
_QUOTED_OR_NAME = re.compile(r"'[^'\n]*'|\$(?:\{(\w{1,60})\}|(\w{1,60}))")
_LOOP = re.compile(
    r"(?<![\w-])for[ \t]+(\w{1,60})[ \t]+in[ \t]+([^;\n]{1,2000}?)[ \t]*[;\n]\s*do\s((?:(?!\bfor\b|\bdone\b).){0,8000}?)[;\n]\s*done\b",
    re.DOTALL,
)
_CHOICE = re.compile(
    r"(?<![\w-])if\s(?:(?!\bif\b|\bthen\b).){1,1000}?[;\n]\s*then\s((?:(?!\bif\b|\bfi\b|\bthen\b).){0,8000}?)[;\n]\s*fi\b",
    re.DOTALL,
)
_GROUP = re.compile(r"((?:^|[;&|\n])[ \t]*)\(([^()]{1,8000})\)", re.DOTALL)
_BRACES = re.compile(r"(?<![\w$'\"./-])([^\s'\"${}()<>;&|]*)\{([^\s'\"${}()]*,[^\s'\"${}()]*)\}([^\s'\"${}()<>;&|]*)")


def unfold_script(text: str) -> str:
    """Return a script without loops, variables and groups as far as they are plain, and without here-documents."""
    if "<<" in text:
        text = _drop_documents(text)
    if "||" in text:
        text = _OR_LEAVES.sub("", text)
    if "do" in text and "for" in text:
        text = _LOOP.sub(_unroll, text)
    if "then" in text:
        text = _CHOICE.sub(lambda found: "" if re.search(r"\b(?:else|elif)\b", found[1]) else found[1], text)
    if "=" in text and "$" in text:
        text = _fill_variables(text)
    if "(" in text:
        text = _GROUP.sub(r"\1pushd . && \2\npopd\n", text)
    return _BRACES.sub(_spell_braces, text) if "{" in text and "," in text else text


def _drop_documents(text: str) -> str:
    at = 0
    for _ in range(_MOST_ROUNDS):
        if (found := _DOCUMENT.search(text, at)) is None:
            break
        at = found.end()
        closing = re.compile(rf"^[ \t]*{found[2]}[ \t]*$", re.MULTILINE).search(text, at)
        text = text[:at] + (text[closing.start() :] if closing else "")
    return text


_LISTED = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s'\"]+")


def _unroll(found: re.Match[str]) -> str:
    name, words, body = found[1], [one.strip("'\"") for one in _LISTED.findall(found[2])], found[3]
    if len(words) > _MOST_ROUNDS or set("$`*?[({") & set(found[2]):
        return ""
    pattern = re.compile(rf"\$(?:\{{{name}\}}|{name}(?!\w))")
    return "\n".join(pattern.sub(lambda _, word=word: word, body) for word in words)


def _fill_variables(text: str) -> str:
    values: dict[str, set[str]] = {}
    for name, value in _SETTING.findall(text):
        values.setdefault(name, set()).add(value.strip("'\""))
    known = {name: value.pop() for name, value in values.items() if len(value) == 1}
    return _QUOTED_OR_NAME.sub(lambda found: known.get(found[1] or found[2] or "", found[0]), text) if known else text


def _spell_braces(found: re.Match[str]) -> str:
    return " ".join(f"{found[1]}{part}{found[3]}" for part in found[2].split(","))


def _split_chains(commands: list[ShellCommand]) -> list[list[ShellCommand]]:
    """Return the chains joined by && and |. Of a chain with ||, only changes of the folder stay: which ran is not known."""
    chains: list[list[ShellCommand]] = [[]]
    for command in commands:
        chains[-1].append(command)
        if command.joint not in _CONTINUING:
            chains.append([])
    chains = [chain for chain in chains if chain]
    for command in chains[-1] if chains else []:
        command.last = command.joint not in ("|", "|&")
    has_or = [any(command.joint == "||" for command in chain) for chain in chains]
    return [
        _folder_changes(chain) if either else _cut_after_test(chain)
        for chain, either in zip(chains, has_or, strict=True)
    ]


def _folder_changes(commands: list[ShellCommand]) -> list[ShellCommand]:
    """Return the changes of the folder among commands that may not have run, joined by || as a sign of doubt."""
    return [replace(command, joint="||") for command in commands if command.name in FOLDER_CHANGES]


def _cut_after_test(chain: list[ShellCommand]) -> list[ShellCommand]:
    """Cut a chain after a test such as grep: the rest ran only if it succeeded, unless the whole chain did.

    What a test pipes its output into runs in any case.
    """
    tests = (index for index, one in enumerate(chain) if not one.last and one.joint == "&&" and one.name in _TESTS)
    test = next(tests, len(chain))
    return chain[: test + 1] + _folder_changes(chain[test + 1 :])


def _strip_prefix(command: ShellCommand) -> ShellCommand:
    while words := command.words:
        if _ASSIGNMENT.match(words[0].text) or words[0].text in _PREFIXES:
            command.words = words[1:]
        elif words[0].text == "timeout" and len(words) > 2 and _DURATION.fullmatch(words[1].text):
            command.words = words[2:]
        else:
            break
    return command


class _ShellReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.commands: list[ShellCommand] = []
        self.command = ShellCommand()
        self.word: Word | None = None
        self.redirect = ""  # the operator whose file or word comes next
        self.delimiters: list[tuple[str, bool]] = []  # of here-documents that begin with the next line

    def run(self) -> None:
        """Read to the end, or to where the syntax is in doubt."""
        text, match = self.text, _TOKEN.match
        while found := match(text, self.at):
            kind = found.lastgroup or ""
            self.at = found.end()
            if kind in _PARTS:
                self._add_part(kind, found[0])
                continue
            if self.word is not None:
                self.end_word()
            if kind != "space":
                self._handle_operator(kind, found[0])

    def end_word(self) -> None:
        """Add the finished word to its command or redirection."""
        word, self.word = self.word, None
        if word is None:
            return
        if not self.redirect:
            if not self.command.words and word.text in _KEYWORDS:
                self.at = len(self.text) + 1  # beyond the end: what is open is not closed
            self.command.words.append(word)
        elif self.redirect in ("<<", "<<-"):
            self.delimiters.append((word.text, self.redirect == "<<-"))
            self.command.document = True
        elif self.redirect == "<":
            self.command.inputs.append(word)
        elif self.redirect != "<<<":
            self.command.outputs.append((self.redirect, word))
        self.redirect = ""

    def end_command(self, joint: str) -> None:
        self.end_word()
        self.command.joint = joint
        if self.command.words or self.command.outputs:
            self.commands.append(self.command)
        self.command, self.redirect = ShellCommand(), ""

    def drop_chain(self) -> None:
        while self.commands and self.commands[-1].joint in _CONTINUING:
            self.commands.pop()

    def _add_part(self, kind: str, part: str) -> None:
        word = self.word
        if word is None:
            if part[0] == "#":  # a comment, up to the end of the line
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                return
            word = self.word = Word("")
        word.text += part if kind == "text" else _unquote_part(kind, part)
        if kind in ("mixed", "filled"):
            word.sure = False

    def _handle_operator(self, kind: str, part: str) -> None:
        if kind == "joint":
            self.end_command(part)
        elif kind == "newline":
            # A line that ends with an operator continues; the operator has closed the command already.
            self.end_command("\n")
            self._skip_documents()
        elif kind in ("heredoc", "output"):
            self.redirect = part
        elif kind == "input":
            self.redirect = part.lstrip("0123456789")

    def _skip_documents(self) -> None:
        for delimiter, tabs in self.delimiters:
            line = None
            while self.at < len(self.text) and line != delimiter:
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end].rstrip("\r")
                line = line.lstrip("\t") if tabs else line
                self.at = min(end + 1, len(self.text))
        self.delimiters = []


def _unquote_part(kind: str, part: str) -> str:
    if kind == "single":
        return part[1:-1]
    if kind in ("double", "mixed"):
        return _ESCAPED.sub(r"\1", part[1:-1]) if "\\" in part else part[1:-1]
    return part[1:] if kind == "escape" else part


# --- names as git prints them ---
_GIT_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_GIT_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def unquote_git_path(path: str, errors: str = "replace") -> str:
    """Return a path without the quotes, letters and octal bytes that git uses for unusual names."""
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    plain = _GIT_ESCAPE.sub(
        lambda found: bytes([int(found[1], 8) & 255]) if len(found[1]) == 3 else _GIT_LETTERS.get(found[1], found[1]),
        path[1:-1].encode("utf-8", errors),
    )
    return plain.decode("utf-8", errors)
