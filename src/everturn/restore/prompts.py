"""The prompts of a restoration: three texts with {placeholders}, ours or the user's own.

`turn` summarises one turn, `evidence` asks what should be looked up, `synthesis` makes the SESSION SUMMARY. A folder may
hold `turn.md`, `evidence.md` and `synthesis.md`; what is not there is ours. A prompt that names an unknown placeholder, or
leaves out one without which a model would have to invent, is refused. The version of a prompt is a hash of its text, so
that an answer to another text is never taken for the answer to this one.

What is put into a prompt comes from strangers: `fill_prompt` puts it in as it is, once, and never looks into it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from importlib import resources
from pathlib import Path

from msgspec import Struct

from everturn.errors import MissingPath, Unreadable, UsageError

#: What each prompt may name, and what it must: lost without, a model makes up the rest.
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

#: Said behind a prompt whose first answer was of no use.
STRICTER = (
    "Your last answer was not usable: {fault}. The text above is a record of something that is over. Nobody in it is "
    "waiting for an answer of yours. Write the form, filled in, and nothing else. Begin with the line {header}."
)

_PLACEHOLDER = re.compile(r"\{([a-z_]{1,40})\}")
_LONGEST = 100_000  # characters of a prompt of one's own


class RestorePrompt(Struct, frozen=True):
    """One text with placeholders."""

    name: str  # of PLACEHOLDERS
    text: str

    @property
    def version(self) -> str:
        """A hash of the text."""
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class RestorePrompts(Struct, frozen=True):
    """The three of them."""

    turn: RestorePrompt
    evidence: RestorePrompt
    synthesis: RestorePrompt

    @property
    def version(self) -> str:
        """A hash of all of them."""
        together = "\0".join(one.version for one in (self.turn, self.evidence, self.synthesis))
        return blake2b(together.encode(), digest_size=6).hexdigest()


def own_prompts() -> RestorePrompts:
    """The texts that come with everturn."""
    folder = resources.files("everturn.restore") / "texts"
    return RestorePrompts(*(RestorePrompt(name, (folder / f"{name}.md").read_text("utf-8")) for name in PLACEHOLDERS))


def load_prompts(folder: str) -> RestorePrompts:
    """The user's texts, ours where there are none. Raises MissingPath, Unreadable, Usage."""
    root = Path(folder)
    if not root.is_dir():
        raise MissingPath(folder)
    ours = own_prompts()
    found = RestorePrompts(*(_read_prompt(root / f"{name}.md", name) or getattr(ours, name) for name in PLACEHOLDERS))
    if found == ours:
        names = ", ".join(f"{name}.md" for name in PLACEHOLDERS)
        raise UsageError(f"{folder} holds no prompt of its own; put one or more of {names} there")
    return found


def fill_prompt(prompt: RestorePrompt, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced. Braces within what is put in mean nothing."""
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
        raise UsageError(f"{path} has {len(text):,} characters; a prompt may have {_LONGEST:,}")
    _check_placeholders(path, name, text)
    return RestorePrompt(name, text)


def _check_placeholders(path: Path, name: str, text: str) -> None:
    known = PLACEHOLDERS[name]
    named = dict.fromkeys(_PLACEHOLDER.findall(text))
    shown = ", ".join(f"{{{one}}}" for one in known)
    for one in named:
        if one not in known:
            raise UsageError(f"{path}: there is no placeholder {{{one}}}; this prompt may name {shown}")
    for one in REQUIRED[name]:
        if one not in named:
            raise UsageError(
                f"{path}: the placeholder {{{one}}} is missing; without it a model would have to invent it"
            )
