"""The prompts of a restoration and the answers to them.

Three texts with {placeholders}: `turn` summarises one turn, `evidence` asks what to look up, `synthesis` makes the
SESSION SUMMARY. A folder may hold the user's own; the bundled text is used for a missing one. The version of a prompt is
a hash of its text, so that an answer to one text is never used for another. Values of placeholders come from strangers:
`fill_prompt` inserts them once, as they are, and never expands them again. Answers are read tolerantly; `ask_in_form`
asks once more in stricter words if one is unusable, and then gives up with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import BadAnswer, MissingPath, Unreadable, UsageError
from everturn.llm.asker import Asker
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.restore.document import SECTIONS
from everturn.restore.labelled_text import Labels, join_lines, list_entries, read_labels

#: The placeholders that each prompt may name, and those without which a model would have to invent.
PLACEHOLDERS = {
    "turn": ("turn", "number", "total", "previous", "state"),
    "evidence": ("summaries", "state", "tools", "evidence", "rounds"),
    "synthesis": ("summaries", "state", "evidence"),
}
REQUIRED = {
    "turn": ("turn", "state"),
    "evidence": ("summaries", "tools", "evidence"),
    "synthesis": ("summaries", "state", "evidence"),
}

#: Appended to a prompt whose first answer was unusable.
STRICTER = (
    "Your last answer was not usable: {fault}. The text above is a record of something that is over. Nobody in it is "
    "waiting for an answer of yours. Write the form, filled in, and nothing else. Begin with the line {header}."
)

_PLACEHOLDER = re.compile(r"\{([a-z_]{1,40})\}")
_LONGEST = 100_000  # characters of a user's prompt


class RestorePrompt(Struct, frozen=True):
    name: str  # of PLACEHOLDERS
    text: str

    @property
    def version(self) -> str:
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class RestorePrompts(Struct, frozen=True):
    turn: RestorePrompt
    evidence: RestorePrompt
    synthesis: RestorePrompt

    @property
    def version(self) -> str:
        together = "\0".join(one.version for one in (self.turn, self.evidence, self.synthesis))
        return blake2b(together.encode(), digest_size=6).hexdigest()


def own_prompts() -> RestorePrompts:
    folder = resources.files("everturn.restore") / "texts"
    return RestorePrompts(*(RestorePrompt(name, (folder / f"{name}.md").read_text("utf-8")) for name in PLACEHOLDERS))


def load_prompts(folder: str) -> RestorePrompts:
    """Return the user's prompts, bundled ones for missing files. Raises MissingPath, Unreadable, UsageError."""
    root = Path(folder)
    if not root.is_dir():
        raise MissingPath(folder)
    ours = own_prompts()
    found = RestorePrompts(*(_read_prompt(root / f"{name}.md", name) or getattr(ours, name) for name in PLACEHOLDERS))
    if found == ours:
        names = ", ".join(f"{name}.md" for name in PLACEHOLDERS)
        raise UsageError(f"{folder} contains no prompts; add one or more of {names}")
    return found


def fill_prompt(prompt: RestorePrompt, values: Mapping[str, str]) -> str:
    """Replace the placeholders. Braces within the values mean nothing."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), prompt.text)


def _read_prompt(path: Path, name: str) -> RestorePrompt | None:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise Unreadable(str(path), "it is not UTF-8 text") from None
    except OSError as error:
        raise Unreadable(str(path), error.strerror or "it cannot be opened") from None
    if len(text) > _LONGEST:
        raise UsageError(f"{path} has {len(text):,} characters; the limit for a prompt is {_LONGEST:,}")
    _check_placeholders(path, name, text)
    return RestorePrompt(name, text)


def _check_placeholders(path: Path, name: str, text: str) -> None:
    known = PLACEHOLDERS[name]
    named = dict.fromkeys(_PLACEHOLDER.findall(text))
    shown = ", ".join(f"{{{one}}}" for one in known)
    for one in named:
        if one not in known:
            raise UsageError(f"{path}: unknown placeholder {{{one}}}; this prompt can use {shown}")
    for one in REQUIRED[name]:
        if one not in named:
            raise UsageError(
                f"{path}: the placeholder {{{one}}} is missing; without it the model would invent its content"
            )


T = TypeVar("T")

TURN_HEADER = "TURN SUMMARY"
SESSION_HEADER = "SESSION SUMMARY"

#: The bundled text that asks what to look up, with its {placeholders}. Published for programs that search evidence themselves.
EVIDENCE_SEARCH_PROMPT_TEMPLATE = own_prompts().evidence.text

#: The form of a turn summary, from its header on, as the bundled prompt asks for it.
TURN_SUMMARY_SCHEMA = TURN_HEADER + own_prompts().turn.text.partition(f"\n{TURN_HEADER}\n")[2].rstrip("\n")

TURN_LABELS: Labels = {
    "turn": ("turn number", "turn", "turn no."),
    "request": ("user request summary", "user request", "request summary", "request", "user asked"),
    "response": (
        "agent response summary", "agent response", "assistant response summary", "assistant response",
        "response summary", "response",
    ),
    "outcomes": ("key outcomes", "key outcome", "outcomes", "outcome", "results"),
    "state_changes": ("state changes", "state change", "changes to state", "changes"),
    "artifacts": (
        "artifacts modified", "artifacts", "artefacts modified", "artefacts", "files modified", "files touched",
        "artifacts touched", "files",
    ),
    "constraints": (
        "constraints and assumptions added", "constraints and assumptions", "constraints added", "constraints",
        "assumptions added", "assumptions", "constraints or assumptions added",
    ),
    "open_questions": (
        "open questions after this turn", "open questions", "open question", "unresolved issues", "unresolved questions",
        "open issues",
    ),
}  # fmt: skip

SESSION_LABELS: Labels = {
    "session_name": ("session name", "name", "title", "session title", "session"),
    "high_level_goal": ("high level goal", "goal", "overall goal", "main goal", "high level goals", "goals"),
    "primary_task": ("primary task in progress", "primary task", "current task", "task in progress", "current focus"),
    "key_decisions": ("key decisions already made", "key decisions", "decisions", "decisions made"),
    "constraints": ("constraints and assumptions", "constraints", "assumptions", "assumptions and constraints"),
    "artifacts": (
        "artifacts referenced or created", "artifacts", "artefacts", "artifacts referenced and created", "artefacts referenced or created",
        "files", "artifacts referenced", "artifacts created",
    ),
    "open_questions": ("open questions", "open question", "questions", "unresolved questions"),
    "next_steps": ("next concrete steps", "next steps", "next step", "concrete next steps", "next actions"),
}  # fmt: skip

#: A text with fewer labels is not the form.
_LEAST_LABELS = 3


class TurnSummary(Struct, frozen=True):
    """The summary of one turn. None: the model left the field out; empty: it wrote that there is nothing."""

    turn: int  # 0-based, as requested, whatever the model wrote
    request: str | None = None
    response: str | None = None
    outcomes: tuple[str, ...] | None = None
    state_changes: tuple[str, ...] | None = None
    artifacts: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    open_questions: tuple[str, ...] | None = None


class SessionSummary(Struct, frozen=True):
    """Statements by section, as the model wrote them, without the sections it left out."""

    sections: dict[str, tuple[str, ...]]


class ModelVerdict(Struct, Generic[T], frozen=True):
    """The result of a request: a usable value, or why there is none."""

    value: T | None = None
    text: str = ""
    why: str = ""
    asked: int = 0  # number of requests
    was_cut: bool = False


def turn_summary(text: str, turn: int) -> TurnSummary | None:
    """Read the form of a turn; None if the text is not that form."""
    found = read_labels(without_thoughts_text(text), TURN_LABELS)
    if len(found.keys() - {"turn"}) < _LEAST_LABELS:
        return None
    lists = {
        key: list_entries(found[key]) if key in found else None
        for key in ("outcomes", "state_changes", "artifacts", "constraints", "open_questions")
    }
    texts = {key: join_lines(found[key]) if key in found else None for key in ("request", "response")}
    if not any((*lists.values(), *texts.values())):
        return None
    if lists["artifacts"]:
        lists["artifacts"] = tuple(one.strip("`'\"* ") for one in lists["artifacts"])
    return TurnSummary(turn, **texts, **lists)  # type: ignore[arg-type]


def session_summary(text: str) -> SessionSummary | None:
    """Read the form of a session; None if the text is not that form."""
    found = read_labels(without_thoughts_text(text), SESSION_LABELS)
    if len(found) < _LEAST_LABELS:
        return None
    sections = {key: list_entries(found[key], commas=key == "artifacts") for key in SECTIONS if key in found}
    return SessionSummary(sections) if any(sections.values()) else None


def without_thoughts_text(text: str) -> str:
    """Return an answer without the reasoning before it."""
    text = _THOUGHTS.sub("", text)
    for pattern in _THOUGHT_ENDS:
        text = pattern.sub("", text, count=1)
    return text.strip()


def reply_fault(reply: Reply) -> str:
    """Say why an answer is not in the form, in words that can be shown."""
    text = without_thoughts_text(reply.text)
    letters = sum(char.isalpha() for char in text)
    if reply.stop == "refusal" or _REFUSAL.search(text[:400]):
        return "it refused"
    if reply.stop in ("cut", "length"):
        return "it was cut off"
    if not letters:
        return "it was empty" if not text else "it was unreadable"
    if letters < 0.4 * len(text.replace(" ", "")) or "\ufffd" in text[:200]:
        return "it was unreadable"
    return "it answered the session instead of summarising it"


def ask_in_form(
    asker: Asker, request: ModelRequest, purpose: str, header: str, read: Callable[[str], T | None]
) -> ModelVerdict[T]:
    """Ask for a form, once more in stricter words (or for a shorter one) if need be. Raises `errors.ModelError`."""
    why, part = "", ModelVerdict[T]()
    for number in (1, 2):
        reply = _ask_leniently(asker, request, purpose)
        why = reply_fault(reply) if reply is not None else "it was unreadable"
        found = _read_reply(reply, read) if reply is not None else part
        if found.value is not None and (reply is None or reply.stop != "length"):
            return replace(found, asked=number)
        part = found if found.value is not None else part
        # The next request says what was wrong with the answer, which is not sent back.
        *before, last = request.messages
        more = ChatPart("text", "\n\n" + STRICTER.format(fault=why, header=header))
        request = replace(request, messages=(*before, replace(last, parts=(*last.parts, more))))
    if part.value is not None:
        return replace(part, asked=2)
    return ModelVerdict(why=f"the model was asked twice and gave no usable answer: {why}", asked=2)


def single_message_request(text: str, max_tokens: int) -> ModelRequest:
    return ModelRequest((ChatMessage("user", (ChatPart("text", text),)),), max_tokens=max_tokens)


def _read_reply(reply: Reply, read: Callable[[str], T | None]) -> ModelVerdict[T]:
    """Read a reply. The last line of a truncated one may be half a sentence and is left out."""
    was_cut = reply.stop in ("cut", "length")
    text = reply.text.rpartition("\n")[0] if was_cut else reply.text
    value = read(text) if reply.stop != "refusal" else None
    return ModelVerdict(value, text, was_cut=was_cut)


def _ask_leniently(asker: Asker, request: ModelRequest, purpose: str) -> Reply | None:
    """Return the reply; None if it could not be read at all, which asking again may mend."""
    try:
        return asker.ask(request, purpose)
    except BadAnswer:
        return None


_THOUGHTS = re.compile(
    r"<(think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_THOUGHT_ENDS = (
    re.compile(r"\A.*?</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE),  # opened by the template
    re.compile(r"\A\s*Thinking(?:\.\.\.|…).*?(?:\.\.\.|…)\s*done thinking\.?", re.DOTALL | re.IGNORECASE),
)
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am) (?:sorry|unable|not able|afraid)\b|\bI (?:can(?:no|['’])t|can not|won['’]t|will not|must decline)\b"
    r"|\bas an AI\b|\b(?:cannot|can['’]t) (?:help|assist|comply)\b|\bunable to (?:help|assist|comply)\b",
    re.IGNORECASE,
)
