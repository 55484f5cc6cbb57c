"""The layout of a conversation with speaker headings: its headings, its fences, and where its sections begin.

    ## User · ## Assistant · #### ChatGPT: · # Claude        a heading for each section, all of one level
    ## 👤 User · ### ✅ `bash` · #### Tool: exec_command     with an icon; a tool may have a section of its own
    **You**: · **User:** text                                bold names, with the text behind them or below
    ##### You said: · ###### ChatGPT said:                   the two levels of a copied web page
    ### User Input · ### Planner Response                    Antigravity; what the agent did may stand below the prompt

The form of a file is its level, or bold. It is the first form in which both a person and a model speak, and only headings of
this form begin sections. Nothing counts inside a fence. A role is never guessed: only names in the lists below are speakers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from everturn.sources.headed_markdown.actions import is_action
from everturn.text.lazy_pattern import lazy_pattern

RULE = "---"
BOLD, SAID = "bold", "said"

_HASHES = lazy_pattern(r"(#{1,6})[ \t]{1,4}(\S.{0,150})")
_STRONG = lazy_pattern(r"\*\*([^*\n]{1,120})\*\*(:?)(?:[ \t]{0,4}$|[ \t]{1,4}(.{1,100000}))")
_ICON = lazy_pattern(r"(ℹ\ufe0f?|[^\w\s`*(\[<>\"'#&/\\.,:;!?{|$%+=~@-]{1,6})[ \t]{1,3}")
_ABOUT = lazy_pattern(
    r"([^()\[\]]{1,60}?)[ \t]{1,3}(?:\(([^()]{1,80})\)|\[([^\[\]]{1,80})\]|[-–—·|@,][ \t]{1,3}(\d[^\n]{1,60}))"
)
_TOOL_NAME = lazy_pattern(
    r"`([\w.:/-]{1,100})`|(?:tool|tool call|tool use|calling tool): {0,2}`?([\w.:/-]{1,100})`?", re.IGNORECASE
)
_FENCE = lazy_pattern(r"[ \t]{0,12}(`{3,}|~{3,})[ \t]{0,4}([^`]{0,200})")
#: A heading between the sections: the next turn, or the beginning of another log that was appended.
_DIVIDER = lazy_pattern(
    r"(#{1,5})[ \t]{1,4}(?:(?:Turn|Exchange|Round) \d{1,6}\b.{0,300}"
    r"|[^\w\n]{0,6}(?:[\w.-]{1,30} ){0,3}(?:Conversation|Chat|Session)(?: (?:Log|Export|Transcript))?(?: [\d:T-]{8,25})?)\s{0,4}",
    re.IGNORECASE,
)
#: The time since the start of the session, above a heading.
CLOCK = lazy_pattern(r"<sub>\W{0,6}((?:\d{1,3}h ?)?(?:\d{1,3}m ?)?(?:\d{1,3}s)?)</sub>\s{0,4}")

_PEOPLE = frozenset(
    ("user", "human", "you", "me", "user prompt", "user message", "user input", "you said", "user said", "human said")
)
_GENERAL = frozenset(("ai", "agent", "bot", "model", "llm", "response"))
_MODEL = lazy_pattern(
    r"(?:ai|agent|bot|model|llm|(?:ai )?assistant|(?:assistant|planner) response|assistant message"
    r"|(?:github |microsoft |google |openai )?(?:claude|chatgpt|gpt|gemini|bard|copilot|cursor|codex|grok|deepseek|perplexity"
    r"|llama|mistral|qwen|kimi|windsurf|cline|aider|opencode)"
    r"(?:[-/:][\w.]{1,24}){0,8}(?: (?:ai|code|cli|chat|agent|sonnet|opus|haiku|pro|flash|plus|mini|turbo|thinking|advanced"
    r"|v?\d[\w.]{0,12})){0,4})(?: said)?"
)
_NOTICES = frozenset(("system", "system prompt", "system message"))
_NOTICES_WITH_ICON = frozenset(("info", "warning", "error", "conversation compacted", "task complete", "task"))

#: How far into a file its first speaker may be: lines that are not blank.
_FIRST_LINES = 60
_FIRST_PROSE = 12


class SpeakerHeading(Struct, frozen=True):
    """A line that says who speaks."""

    form: str  # h1 to h6, `bold` or `said`
    role: str  # person model tool system thinking
    name: str  # as written, without icon and colon; of a tool, its own name
    about: str = ""  # in parentheses, or a time behind a dash
    icon: str = ""
    text: str = ""  # behind a bold name
    is_marked: bool = False  # with a colon or an icon, which headings of other documents seldom have


class HeadedLineState(Struct):
    """The state that `opens` carries from line to line."""

    begun: bool = False
    form: str = ""
    fence: str = ""  # the open fence
    is_blank: bool = True  # the previous line is blank, a rule, or missing
    has_clock: bool = False  # the section has begun with a time, and its heading is still to come
    has_spoken: bool = False  # the first speaker has been named
    is_prompt: bool = False  # the lines are those of a person


def find_heading(line: str) -> SpeakerHeading | None:
    """Return the speaker that a line names; None for any other line."""
    if line[:1] == "#" and (hashes := _HASHES.fullmatch(line)) is not None:
        label = hashes[2].strip().rstrip("#").strip()
        label = label[2:].replace("**", "", 1) if label.startswith("**") else label
        return _parse_label(f"h{len(hashes[1])}", label, "")
    if line[:2] == "**" and (strong := _STRONG.fullmatch(line)) is not None:
        if strong[3] and not (strong[2] or strong[1].endswith(":")):
            return None
        heading = _parse_label(BOLD, strong[1] + strong[2], (strong[3] or "").strip())
        return heading if heading is not None and heading.role in ("person", "model", "system") else None
    return None


def _parse_label(form: str, label: str, text: str) -> SpeakerHeading | None:
    icon = found[1] if (found := _ICON.match(label)) else ""
    label = label[found.end() :] if found else label
    has_colon = label.endswith(":")
    label = label.rstrip(":").rstrip()
    if tool := _TOOL_NAME.fullmatch(label) if form != BOLD else None:
        is_tool = bool(tool[2] or icon)
        return SpeakerHeading(form, "tool", tool[1] or tool[2], icon=icon, is_marked=True) if is_tool else None
    about = _ABOUT.fullmatch(label)
    name = about[1].strip() if about else label
    role = _find_role(name.casefold(), icon, has_colon and form != BOLD)
    if not role:
        return None
    said = name.casefold().endswith(" said")
    form, name = (SAID, name[: -len(" said")]) if said and form != BOLD else (form, name)
    facts = next(filter(None, about.groups()[1:]), "") if about else ""
    return SpeakerHeading(form, role, name, facts, icon, text, has_colon or bool(icon) or said)


def _find_role(name: str, icon: str, may_be_prompt: bool) -> str:
    if name in _PEOPLE or (name == "prompt" and may_be_prompt):
        return "person"
    if (name == "response" and may_be_prompt) or _MODEL.fullmatch(name):
        return "model"
    if icon and name in ("reasoning", "thinking"):
        return "thinking"
    return "system" if name in _NOTICES or (icon and name in _NOTICES_WITH_ICON) else ""


# --- lines ---
def follow_fence(fence: str, line: str) -> str:
    """Return the fence that is open after a line; "" if none is."""
    if "```" not in line and "~~~" not in line:
        return fence
    if (mark := _FENCE.fullmatch(line)) is None:
        return fence
    if not fence:
        return mark[1]
    closes = mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip()
    return "" if closes else fence


def opens(known: HeadedLineState, line: str) -> bool:
    """Return whether a section begins with this line. `Passages` calls it for every line in order."""
    was_blank, known.is_blank = known.is_blank, line.strip() in ("", RULE)
    was_open = known.fence
    known.fence = follow_fence(was_open, line)
    if was_open or known.fence or known.is_blank:
        return False
    if line[0] == "<" and CLOCK.fullmatch(line):
        known.has_clock = True
        return True
    has_clock, known.has_clock = known.has_clock, False
    if line[0] not in "#*":
        return False
    heading = find_heading(line)
    if heading is not None and heading.form == known.form and (was_blank or heading.form != BOLD):
        known.has_spoken, known.is_prompt = True, heading.role == "person"
        return not has_clock
    if known.is_prompt and was_blank and is_action(line):  # below the prompt
        known.is_prompt = False
        return True
    return known.has_spoken and _is_divider(line, known.form)


def _is_divider(line: str, form: str) -> bool:
    """Return whether a line is a heading above those of the speakers that counts turns or begins another log."""
    divider = _DIVIDER.fullmatch(line) if line[:1] == "#" else None
    return divider is not None and form[:1] == "h" and len(divider[1]) < int(form[1:])


# --- forms ---
class FormCount(Struct):
    """The headings of one form at the beginning of a file."""

    first: int = 0  # lines before the first one that are not blank
    people: int = 0
    models: int = 0  # with their thoughts and tools
    notices: int = 0
    strangers: int = 0  # headings of the same level that name no speaker
    strangers_before: int = 0  # of these, before the first speaker
    is_marked: bool = True
    is_general: bool = False  # a model is called by a general word, such as Agent
    is_person_first: bool = False
    is_inline: bool = False  # a bold name with text behind it


def find_form(lines: Iterable[str]) -> str:
    """Return the first form in which both a person and a model speak; "" if there is none. A tool is called by a model.

    More lines after these never change the form. Bold names do not count after a heading that names a person: the text of a
    prompt may hold them.
    """
    seen: dict[str, set[str]] = {}
    for heading in _headings(lines):
        if heading is None or heading.role == "system":
            continue
        if heading.form == BOLD and BOLD not in seen and any("person" in roles for roles in seen.values()):
            continue
        roles = seen.setdefault(heading.form, set())
        roles.add("person" if heading.role == "person" else "model")
        if len(roles) == 2:
            return heading.form
    return ""


def _headings(lines: Iterable[str]) -> Iterable[SpeakerHeading | None]:
    """Yield for every line the speaker it names outside fences."""
    fence, is_blank = "", True
    for line in lines:
        was_open, was_blank = fence, is_blank
        fence, is_blank = follow_fence(fence, line), line.strip() in ("", RULE)
        heading = find_heading(line) if not (was_open or fence) and line[:1] in "#*" and line else None
        yield heading if heading is None or was_blank or heading.form != BOLD else None


def is_conversation(lines: list[str]) -> bool:
    """Return whether a file with these first lines is a conversation, and no document that shows one or speaks of users."""
    form = find_form(lines)
    if not form:
        return False
    found = _count_form(lines, form)
    is_repeated = found.people >= 2 and found.models >= 2
    if found.first > _FIRST_LINES or found.strangers_before > (2 if is_repeated else form == "h1"):
        return False
    if form == SAID or (is_repeated and form != BOLD and found.strangers <= 8 * (found.people + found.models)):
        return True
    if form == BOLD:
        return (
            found.first <= _FIRST_PROSE
            and found.is_person_first
            and (not found.is_inline or found.people + found.models > 2)
        )
    named = found.people + found.models + found.notices
    is_clear = found.is_person_first and (found.is_marked or not found.is_general)
    return is_clear and (found.strangers <= named or (found.is_marked and found.first <= _FIRST_PROSE))


def _count_form(lines: list[str], form: str) -> FormCount:
    count, roles = FormCount(), Counter[str]()
    level = int(form[1:]) if form[0] == "h" else 0
    fence, filled = "", 0
    for line, heading in zip(lines, _headings(lines), strict=True):
        was_open, fence = fence, follow_fence(fence, line)
        if heading is not None and heading.form == form:
            if not roles:
                count.first = filled
            if roles.total() == roles["system"]:
                count.is_person_first = heading.role == "person"
            roles[heading.role] += 1
            count.is_marked = count.is_marked and heading.is_marked
            count.is_general = count.is_general or heading.name.casefold() in _GENERAL
            count.is_inline = count.is_inline or bool(heading.text)
        elif level and not was_open and line.startswith("#" * level + " "):
            count.strangers += 1
            count.strangers_before += not roles
        filled += bool(line.strip())
    count.people, count.notices = roles["person"], roles["system"]
    count.models = roles.total() - count.people - count.notices
    return count
