"""What the extension puts around words: the head of a tool's result, the tags around a human's words, its own remarks."""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.sources.foreign import digest, milliseconds

ENVIRONMENT = "<environment_details>"

#: Tools that hand the word to the human: what comes back is their next request.
TALKING = frozenset("plan_mode_respond act_mode_respond attempt_completion condense new_task summarize_task".split())

_RESULT = re.compile(r"\[([a-z][a-z_]{1,60})( .*?)?\] Result:\n*", re.DOTALL)
_QUOTED = re.compile(r" for '(.*)'", re.DOTALL)
_OURS = ("[TASK RESUMPTION]", "[ERROR]", "[NOTE]", "<explicit_instructions", "<hook_context", ENVIRONMENT)
_TYPED = re.compile(r"<(task|feedback|user_message)>\n?(.*?)\n?</\1>", re.DOTALL)
_STEERED = re.compile(r"feedback:\s*<(feedback)>\n?(.*?)\n?</\1>", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
_LOCAL = re.compile(
    r"# Current Time\n(\d{1,2})/(\d{1,2})/(\d{4}), (\d{1,2}):(\d\d):(\d\d)\s([AP])M \([^()\n]*UTC([+-]\d{1,2}):(\d\d)\)"
)


class ClineResultHead(NamedTuple):
    """The head of a result: which tool, the call it answers, and the words after it."""

    name: str
    call_id: str
    rest: str


class ClineWords(NamedTuple):
    """A text taken apart: what a human typed, and what stands around it."""

    typed: list[str]
    around: str


def result_in(text: str) -> ClineResultHead | None:
    """The result that a text begins with."""
    if not text.startswith("["):
        return None
    found = _RESULT.match(text)
    if found is None:
        return None
    about = _QUOTED.fullmatch(found[2] or "")
    return ClineResultHead(
        found[1], call_id(found[1], about[1] if about else (found[2] or "").strip()), text[found.end() :]
    )


def call_id(name: str, about: str) -> str:
    """A name for a call that its result can be given, too. Calls are answered one by one, so it need not be unique."""
    return f"{name}:{digest(about.strip())}"


def is_remark(text: str) -> bool:
    """Whether the extension speaks."""
    return text.lstrip().startswith(_OURS)


def words_in(text: str, steered: bool = False) -> ClineWords:
    """What a human typed in a text with tags; `steered`: only what is announced as feedback, for texts may hold anything."""
    pattern = _STEERED if steered else _TYPED
    typed = [found[2].strip() for found in pattern.finditer(text)]
    around = pattern.sub("", text).strip() if typed else text
    return ClineWords([one for one in typed if one], around)


def moment_in(text: str) -> tuple[int | None, str]:
    """The time that the details of the environment name, where its form leaves no doubt."""
    found = _LOCAL.search(text)
    if found is None:
        iso = _ISO.search(text, max(text.find("# Current Time"), 0)) if "# Current Time" in text else None
        return milliseconds(iso[1]) if iso else (None, "")
    month, day, year, hour, minute, second = (int(part) for part in found.groups()[:6])
    hour = hour % 12 + (12 if found[7] == "P" else 0)
    zone = f"{int(found[8]):+03d}:{found[9]}"
    return milliseconds(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def folder_in(text: str) -> str:
    """The working folder that the details of the environment name."""
    found = _FOLDER.search(text)
    return found[1] if found else ""
