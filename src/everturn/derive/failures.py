"""Decide what failed, and when it no longer does.

A failed call is *the same* as a later one when the commands are equal except for what does not affect the outcome: where
the output went, which part of it was shown, a time limit, blanks. Whether a later run proves that it works is a stricter
question: behind a pipe, `||` or `;` an exit status says nothing about the command before. `attempt_keys` names what was
tried, `proven_keys` the keys that a successful call has shown to work. Calls of other tools are compared by tool and file.

`call_outcome` separates failures from what only looks like one: a test that answered no (`grep`, `test`), a look at
something that does not exist, a call that was rejected, interrupted, or cancelled because of another.

`find_complaint` returns the first sentence of a prompt that says that something does not work: "it still crashes when …", "CI is red", an error with
the words that introduce it, else a pasted error. English, German, French, Spanish, Japanese and Chinese. A wish, a condition, a question or
an instruction that mentions a failure is none. In a short message more counts: whatever does not do something, any error. Further sentences count by
learnt weights (`reports.json`, see `derive.open_sentences`); a less likely one is not `sure`.
`is_confirmation` knows "works now" and thanks, `hear_report` also "that works, but …".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.check_programs import script_kind
from everturn.derive.open_sentences import load_weights, message_marks, sentence_features, sum_weights
from everturn.model.conversation import CallStart
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.pasted_output import LONGEST, PastedFailure, find_pasted_failure, is_printed
from everturn.text.printable import one_line
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import (
    ASKS_WHY,
    BRIEF_CJK,
    BRIEF_TROUBLE,
    CLAUSE_END_CJK,
    CONDITION_CJK,
    TROUBLE,
    TROUBLE_CJK,
)
from everturn.text.trouble_words import (
    ADDRESS,
    AGAIN,
    ANY_CUE,
    ASKS,
    ASKS_OF,
    CHECK_KINDS,
    CHECK_WORDS,
    CJK,
    CLAUSE,
    COMMAND,
    COMMON,
    CONDITION,
    CONFIRMS,
    CONFIRMS_REST,
    DOUBTS,
    ERROR_WORD,
    GENERAL,
    IMPERATIVE,
    LEADS_AWAY,
    LEAVES_ERRORS,
    MORE_CONDITION,
    MORE_TROUBLE,
    OPENING,
    OPENS_WITH_SO,
    PASTED,
    QUOTED,
    SHOWS_SUCCESS,
    TERM,
    TYPED,
    TYPED_FIRST,
    UNDECIDED,
    WORKS,
)

#: Outcomes of a call that did not succeed. Only `failed` needs a fix.
OUTCOMES = ("failed", "probe", "rejected", "interrupted", "cancelled")

_MAX_CHARS = 8_000
_NO_SUCH_COMMAND = 127
_ANYWHERE = "*"
_MISPLACED = lazy_pattern(
    r"\bcd: .{0,200}(?:No such file|not a directory)|does not contain main module|did not match any file|not a git repository|"
    r"could not (?:read|find) package\.json|ENOENT.{0,80}package\.json|Missing script|No rule to make target|no Makefile found|"
    r"could not find `?Cargo\.toml|No pyproject\.toml",
    re.IGNORECASE,
)


class ShellAttempt(Struct, frozen=True):
    """A shell command reduced to its folder and the commands that decide its exit status."""

    folder: str
    parts: tuple[str, ...]
    proven: tuple[str, ...]  # of the parts, those that an exit status of 0 proves


def call_outcome(start: CallStart, error_class: str, exit_status: int | None) -> str:
    """Return one of OUTCOMES for a call that did not succeed."""
    if error_class in ("rejected", "interrupted", "cancelled"):
        return error_class
    if start.kind in ("read", "search", "fetch"):
        return "probe"
    if start.kind == "shell" and exit_status != _NO_SUCH_COMMAND and _is_probe(start.command):
        return "probe"
    return "failed"


def attempt_keys(start: CallStart, workspace: str = "", output: str = "") -> tuple[str, ...]:
    """Return the keys of an attempt, the same for every later one: one for each command that decides the exit status.

    A command that failed because it ran in the wrong folder is the same in any other folder.
    """
    if start.kind != "shell":
        return _tool_keys(start)
    command = strip_attempt(start.command, workspace)
    folder = _ANYWHERE if _MISPLACED.search(output[:2_000]) else command.folder
    return tuple(_shell_key(folder, part) for part in command.parts)


def proven_keys(start: CallStart, workspace: str = "") -> tuple[str, ...]:
    """The keys of all that a call has shown to work by going well."""
    if start.kind != "shell":
        return _tool_keys(start)
    command = strip_attempt(start.command, workspace)
    return tuple(_shell_key(command.folder, part) for part in command.proven)


def proves_anywhere(start: CallStart) -> tuple[str, ...]:
    """The keys of what failed in a wrong folder and has been shown to work in some folder."""
    proven = strip_attempt(start.command).proven if start.kind == "shell" else ()
    return tuple(_shell_key(_ANYWHERE, part) for part in proven)


def strip_attempt(command: str, workspace: str = "") -> ShellAttempt:
    """Return a command without what does not affect its outcome."""
    text = command[:_MAX_CHARS].strip()
    commands = split_shell(text)
    chain, folder = _last_chain(commands)
    parts = tuple(part for simple, _ in chain if (part := _bare_command(simple)))
    if "<<" in text or len(command) > _MAX_CHARS or not parts or any(_KEYWORD.match(simple) for simple, _ in commands):
        return _whole_script(text)
    masked = any(operator in ("|", "||") for _, operator in chain)
    return ShellAttempt(_relative_folder(folder, workspace), parts, () if masked else parts)


def _whole_script(text: str) -> ShellAttempt:
    """Return a script that is not split: only an identical one is the same."""
    whole = "git commit" if _COMMIT.search(text.partition("<<")[0]) else " ".join(text.split())
    return ShellAttempt("", (whole,), () if "|" in text.rpartition("\n")[2] else (whole,))


# --- keys ---
def _shell_key(folder: str, part: str) -> str:
    return _short_digest(f"$ {folder}\0{part}")


def _tool_keys(start: CallStart) -> tuple[str, ...]:
    """Return the keys of a call: writing a file is the same attempt with any tool; a patch writes several."""
    given = start.input.get("input") if isinstance(start.input, dict) else start.input
    paths = [path for _, path in patched_files(start.command or (given if isinstance(given, str) else ""))]
    if paths or start.kind in ("edit", "create"):
        return tuple(_short_digest(f"write\0{path}") for path in dict.fromkeys(paths or [start.path]))
    return (_short_digest(f"{start.name}\0{start.path or start.command or repr(start.input)[:_MAX_CHARS]}"),)


def _short_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


# --- commands ---
_SHELL_TOKEN = lazy_pattern(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(&&|\|\||\|&?|;|\n|(?<![>&])&(?![>&]))|[^'"\\&|;\n]+|.""", re.DOTALL
)
_FOLDER = lazy_pattern(r"(?:cd|pushd)\s+(\S+|\"[^\"]+\"|'[^']+')\s*$")
_IDLE = lazy_pattern(r"(?:export|set|source|\.|unset|sleep|true|git\s+add|:)(?:\s|$)|\w+=\S*$")
_PREFIX = lazy_pattern(
    r"(?:(?:timeout(?:\s+-\S+)*\s+[\d.]+[smh]?|time|nohup|nice|command|env)\s+|\w+=(?:\"[^\"]*\"|'[^']*'|[^\s$]*)\s+)+"
)
_REDIRECT = lazy_pattern(r"\s*(?:[0-9]?>&[0-9-]|(?:[0-9&])?>>?\s*(?:\"[^\"]*\"|[^\s&|;]+))")
_FILTERS = lazy_pattern(r"(?:tail|head|grep|egrep|rg|less|more|cat|wc|tee|sort|uniq|sed|awk|cut|column|nl|jq)\b")
_SHOWS = lazy_pattern(r"(?:echo|printf|tail|head|cat|date|ls|pwd)\b")
_COMMIT = lazy_pattern(r"\bgit\b(?:\s+-[cC]\s+\S+)*\s+commit\b(?!-)")
WRAPPED_COMMAND = lazy_pattern(
    r"(?:powershell|pwsh|bash|sh|zsh|cmd)(?:\.exe)?(?:\s+-\w+)*\s+(?:-Command|-l?c|/c)\s+(['\"])(.*)\1$",
    re.DOTALL | re.IGNORECASE,
)
_REBASE = lazy_pattern(r"git\s+rebase\b")
_KEYWORD = lazy_pattern(r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|exit)\b|[({}#!]")
_VERBOSITY = lazy_pattern(r"\s(?:-v{1,3}|-q{1,2}|--quiet|--verbose|--no-color)(?=\s|$)")
LOOKS = lazy_pattern(
    r"(?:ls|cat|head|tail|sed\s+-n|find|grep|egrep|fgrep|rg|ag|which|type|command\s+-v|test|\[|stat|file|pgrep|diff|cmp|wc|"
    r"git\s+(?:diff|log|show|status|rev-parse|branch|ls-files|ls-remote|grep|config|merge-base)|xargs|tree|du|jq|Get-\w+|dir|where|echo|"
    r"printf|pwd|date|nl|ps|dpkg(?:-query)?\s+-[lLsS]|rpm\s+-q|apt(?:-cache)?\s+(?:list|policy|show|search)|brew\s+(?:list|info|search)|(?:npm|pnpm|yarn)\s+(?:ls|list|view|info|why)|pip3?\s+(?:show|list|index)|systemctl\s+(?:status|is-\w+)|"
    r"docker\s+(?:ps|images|inspect)|lsof|netstat|ping|dig|nslookup|printenv|uname|whoami|df|gh\s+\w+\s+(?:view|list|status|checks|diff)|gh\s+api)\b|\[\s"
)


def split_shell(text: str) -> list[tuple[str, str]]:
    """Split into (command, operator after it), where the shell would split."""
    commands: list[tuple[str, str]] = []
    at = start = 0
    for found in _SHELL_TOKEN.finditer(text):
        at = found.end()
        if found[1]:
            commands.append((text[start : found.start()].strip(), found[1]))
            start = at
    commands.append((text[start:].strip(), ""))
    return [(simple, operator) for simple, operator in commands if simple]


def _last_chain(commands: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """Return the commands that decide the exit status, without the filters after them; and the folder they ran in."""
    folder = ""
    chain: list[tuple[str, str]] = []
    for number, (simple, operator) in enumerate(commands):
        if (entered := _FOLDER.match(simple)) and not chain:
            folder = entered[1].strip("\"'")
            continue
        before = commands[number - 1][1] if number else ""
        if before in ("|", "|&") and _FILTERS.match(simple) and chain:
            continue  # its operator stays with the command before: that exit status is lost
        if before == "||" and chain:
            continue
        if before in (";", "\n", "&"):
            if _SHOWS.match(simple) and chain:
                chain = [(one, "|") for one, _ in chain]
                continue
            chain = []
        chain.append((simple, operator if operator in ("|", "|&", "||") else "&&"))
    return [(simple, "|" if operator == "|&" else operator) for simple, operator in chain], folder


def _bare_command(simple: str) -> str:
    words = _REDIRECT.sub("", _PREFIX.sub("", simple, count=1) if _PREFIX.match(simple) else simple).strip()
    if _IDLE.match(words):
        return ""
    # A commit is retried with another message, a run with another verbosity.
    if _COMMIT.match(words):
        return "git commit"
    if _REBASE.match(words):
        return "git rebase"  # started once, then continued until it is done
    return " ".join(_VERBOSITY.sub("", words).split())


def _relative_folder(folder: str, workspace: str) -> str:
    home, folder = workspace.replace("\\", "/").rstrip("/"), folder.replace("\\", "/")
    folder = folder.rstrip("/") if folder != "/" else folder
    if folder in (".", home):
        return ""
    return folder[len(home) + 1 :] if home and folder.startswith(f"{home}/") else folder.removeprefix("./")


def _is_probe(command: str) -> bool:
    text = command[:_MAX_CHARS].strip()
    wrapped = WRAPPED_COMMAND.match(text)
    text = wrapped[2].strip() if wrapped else text
    chain, _ = _last_chain(split_shell(text))
    bare = [words for simple, _ in chain if (words := _bare_command(simple))]
    if text.count('"') % 2:  # the shell did not parse it either
        bare = bare[:1]
    return bool(bare) and all(LOOKS.match(words) for words in bare)


# --- What a person says does not work, and when they say that it does ---
_ERROR_LINE = 200
_MOST_SENTENCES = 60
_LONG_SENTENCE, _OPENING_WORDS = 500, 120
_MOST_TERMS = 30
_LONG_MESSAGE = 6_000  # characters of a document, which is no report
_PERHAPS, _CLEARLY = -0.5, 1.0  # log-odds from which a sentence may be a complaint, and is one whatever its form
_AROUND = 600  # characters from a complaint on
_SAME = 40  # characters by which a sentence is known among the lines of a pasted failure
_END = 16  # characters by which the end of a sentence is found again


class Complaint(Struct, frozen=True):
    """A sentence that says that something does not work, and what would show that it does."""

    text: str
    kinds: tuple[str, ...] = ()  # checks it names: all of them must pass
    commands: tuple[str, ...] = ()  # commands it names: one of them must go well
    again: bool = False  # it says that an earlier complaint still holds
    terms: tuple[str, ...] = ()  # its longer words
    detail: str = ""  # the first line of the error pasted after it
    sure: bool = True  # else only its place at the end of a session speaks for it
    pasted: bool = False  # it is output, and not the words of the person


def find_complaint(text: str) -> Complaint | None:
    """Return the first complaint of a prompt."""
    if len(text) > _BRIEF and not ANY_CUE.search(text, 0, _READ):
        return None
    sentences = list(islice(split_sentences(text), _MOST_SENTENCES))
    spoken = [one for at, one in enumerate(sentences) if not at or not one.pasted or one.text.endswith(":")]
    found = next((one for one in spoken if is_complaint(one.text)), None)
    if found is None and sum(len(one.text) for one in sentences) <= _BRIEF:
        told = (one for one in spoken if _tells(one.text))
        found = next((one for one in told if is_complaint(one.text, BRIEF_TROUBLE)), None)
    if found is None:
        return _find_likely(text, sentences)
    pasted = find_pasted_failure(text) if "\n" in text else None
    is_output = "\n" in text and is_printed(found.text, text)
    if pasted is not None and (is_output or _is_among(found.text, pasted)):
        return _pasted_complaint(pasted)
    made = replace(_make_complaint(found, text), pasted=is_output)
    return made if pasted is None or made.detail else replace(made, detail=pasted.text)


def _find_likely(text: str, sentences: Sequence[Sentence]) -> Complaint | None:
    """Return the complaint that learnt weights find, a pasted failure, or what may be a complaint."""
    at, odds = likeliest_report(text, sentences)
    words = sentences[at].text[:_LONG_SENTENCE] if odds >= _PERHAPS else ""
    surely, perhaps = (_CLEARLY, 0.0) if words and _says_otherwise(words) else (0.0, _PERHAPS)
    is_likely = odds >= perhaps and not _is_doubted(words)
    pasted = find_pasted_failure(text)
    if is_likely and odds >= surely:
        is_output = pasted is not None and (_is_among(words, pasted) or is_printed(words, text))
        return _pasted_complaint(pasted) if pasted is not None and is_output else _make_complaint(sentences[at], text)
    if pasted is not None:
        return _pasted_complaint(pasted)
    if not is_likely:
        return _find_named(text)
    made = _make_complaint(sentences[at], text)
    return replace(made, sure=len(text) <= _SHORT_REPLY and bool(AGAIN.search(text, 0, _SOON_SAID)))


def _is_among(words: str, pasted: PastedFailure) -> bool:
    """Whether a sentence is one of the lines of a pasted failure."""
    return " ".join(words[:_SAME].split()) in pasted.text


def _find_named(text: str) -> Complaint | None:
    """Return a short message that is little more than the word for an error, in any language, if it does not ask for one."""
    words = text.strip()
    if len(words) > _FEW_CHARS or len(words.split()) > _FEW_WORDS or not ERROR_WORD.search(words):
        return None
    if LEAVES_ERRORS.search(words) or CONDITION_CJK.search(words) or _is_doubted(words):
        return None
    return Complaint(one_line(words, LONGEST), again=bool(AGAIN.search(words)))


def likeliest_report(text: str, sentences: Sequence[Sentence]) -> tuple[int, float]:
    """Return the number of the sentence that most likely says that something does not work, with its log-odds by learnt weights."""
    weights = load_weights("reports")
    odds = [sum_weights(one, weights) for one in report_features(text, sentences)] if len(text) <= _LONG_MESSAGE else []
    best = max(range(len(odds)), key=odds.__getitem__, default=0)
    return best, odds[best] if odds else -math.inf


def report_features(text: str, sentences: Sequence[Sentence]) -> Iterator[list[str]]:
    """Yield the features of each sentence of a person who may report something."""
    return sentence_features(sentences, [()] * len(sentences), message_marks(text, sentences))


def _tells(sentence: str) -> bool:
    """Whether a sentence is no question, or one that names an error or asks for the reason of a behaviour."""
    is_asked = sentence.rstrip(" ?？").endswith(("吗", "吧", "か")) or sentence.rstrip().endswith(("?", "？"))
    return not is_asked or "error" in sentence or bool(ASKS_WHY.search(sentence))


def _is_doubted(words: str) -> bool:
    """Whether a sentence demands, doubts or says that something works: no weights make it a report."""
    return (
        any(one.search(words) for one in (SHOWS_SUCCESS, UNDECIDED))
        or bool(IMPERATIVE.match(words))
        or is_confirmation(words)
    )


def _says_otherwise(words: str) -> bool:
    """Whether a sentence sets a condition, asks or tells of what works or is general: it is a report only if the weights say so clearly."""
    is_asked = words.rstrip().endswith(("?", "？")) or ASKS_OF.match(words)
    return any(one.search(words) for one in (CONDITION, WORKS, GENERAL)) or bool(is_asked)


def _pasted_complaint(found: PastedFailure) -> Complaint:
    terms = tuple(dict.fromkeys(word.lower() for word in TERM.findall(found.text) if word.lower() not in COMMON))
    return Complaint(found.text, found.kinds, found.commands, False, terms[:_MOST_TERMS], pasted=True)


_READ = 24_000
_FEW_CHARS, _FEW_WORDS = 40, 6  # of a message that only names an error
_SHORT_REPLY = 120  # characters of a reply
_SOON_SAID = 16  # characters at its beginning in which "still" makes it a report
_BRIEF = 900  # characters of a message that someone types


def hear_report(text: str) -> tuple[Complaint | None, bool]:
    """Return the complaint of a prompt, and whether the prompt says that what was reported before works now."""
    complaint = find_complaint(text)
    if complaint is None or not complaint.sure:
        confirms = is_confirmation(text)
        return None if confirms else complaint, confirms
    return complaint, confirms_rest(text) or (not complaint.again and _begins_well(text))


def is_confirmation(text: str) -> bool:
    """Whether a prompt says that what was reported works now: in words, or by the output of a command that went well."""
    text = text[:600].strip()
    if TYPED_FIRST.match(text) and SHOWS_SUCCESS.search(text):
        return True
    is_plain = bool(CONFIRMS.search(text)) and not DOUBTS.search(text) and not IMPERATIVE.match(text)
    return is_plain or _begins_well(text)


def builds_on(said: str, error: str) -> bool:
    """Whether a request uses a name of an error as something that exists."""
    is_asked = said.rstrip().endswith(("?", "？")) and not _ORDERS.search(said)
    if is_asked or AGAIN.search(said):
        return False
    return not set(_NAME.findall(said)).isdisjoint(_NAME.findall(error))


_NAME = lazy_pattern(r"\b(?:[A-Za-z]\w{0,40}_\w{1,40}|[a-z]\w{0,40}[a-z][A-Z]\w{1,40})\b", re.ASCII)
_ORDERS = lazy_pattern(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\bkannst du\b|\bpeux-tu\b|\bpuedes\b|能否|可以帮|してください",
    re.IGNORECASE,
)


def confirms_rest(text: str) -> bool:
    """Whether a prompt with a complaint says that everything else works."""
    return bool(CONFIRMS_REST.search(text[:1_000]))


def _begins_well(text: str) -> bool:
    """Whether the first words of a prompt say that something works, whatever comes after a "but"."""
    first = (one[0] for one in islice(OPENING.finditer(text, 0, 400), 2))
    return any(WORKS.search(one) and not DOUBTS.search(one) and not IMPERATIVE.match(one) for one in first)


def is_complaint(sentence: str, cues: re.Pattern[str] | None = None) -> bool:
    """Whether patterns take a sentence for a report: the strict ones, unless others are given."""
    if len(sentence) > _LONG_SENTENCE:  # what stands between its ends may be a log
        return any(is_complaint(one, cues) for one in (sentence[:_OPENING_WORDS], sentence[-_OPENING_WORDS:]))
    if CJK.search(sentence):
        return _is_complaint_cjk(sentence, TROUBLE_CJK if cues is None else BRIEF_CJK)
    if more := MORE_TROUBLE.search(sentence):
        return not sentence.rstrip().endswith(("?", "？")) and not MORE_CONDITION.search(sentence, 0, more.end())
    cue = (cues or TROUBLE).search(sentence)
    if cue is not None and cues is BRIEF_TROUBLE and LEADS_AWAY.search(sentence, 0, cue.start()):
        cue = None
    if cue is None or CONDITION.search(sentence, _first_word(sentence), cue.end()) or GENERAL.search(sentence):
        return False
    if (
        IMPERATIVE.match(sentence)
        or sentence.count('"', 0, cue.start()) % 2
        or CLAUSE.search(sentence, 0, cue.start() + 1)
    ):
        return False
    is_asked = sentence.rstrip().endswith("?") or (cues is not None and ASKS_OF.match(sentence))
    return not (is_asked and ASKS.match(sentence))


def _first_word(sentence: str) -> int:
    """Return where a sentence begins that opens with "ok, so": only a later "so" tells a purpose."""
    opening = OPENS_WITH_SO.match(sentence)
    return opening.end() if opening else 0


def _is_complaint_cjk(sentence: str, cues: re.Pattern[str]) -> bool:
    """Whether a clause holds a cue and no condition."""
    clauses = CLAUSE_END_CJK.split(sentence) if cues is BRIEF_CJK else [sentence]
    return any(cues.search(one) and not CONDITION_CJK.search(one) for one in clauses)


def _make_complaint(found: Sentence, text: str) -> Complaint:
    """Keep the paragraph of the complaint and what follows, or a short message whole: it says what is meant."""
    sentence = found.text
    told = found.passage if len(found.passage) <= LONGEST and not found.pasted else sentence
    start = text.find(told[:_END])
    told = text if len(text) <= LONGEST else text[start : start + _AROUND] if start >= 0 else told
    prose = ADDRESS.sub(" ", sentence)
    named = (CHECK_KINDS.get(word.lower()) or script_kind(word.lower()) for word in CHECK_WORDS.findall(prose))
    kinds = tuple(dict.fromkeys(kind for kind in named if kind))
    quoted = QUOTED.findall(sentence) or TYPED.findall(text)
    commands = tuple(" ".join(one.split()) for one in quoted if COMMAND.fullmatch(one.strip()))
    terms = tuple(dict.fromkeys(word.lower() for word in TERM.findall(prose) if word.lower() not in COMMON))[
        :_MOST_TERMS
    ]
    pasted = PASTED.match(text, text.find(sentence[-_END:]) + _END - 1) if sentence.endswith(":") else None
    detail = one_line(pasted[1], LONGEST) if pasted else ""
    return Complaint(one_line(told, LONGEST), kinds, commands[:4], bool(AGAIN.search(sentence)), terms, detail)
