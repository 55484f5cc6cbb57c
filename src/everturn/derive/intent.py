"""The person's requests in their own words.

A person speaks in prompts, in slash commands with arguments, and in answers to questions. `own_words` leaves out what was
pasted into a prompt: code, logs, traces, front matter, tagged text. `find_revisions` finds the sentences that change what was decided
before. `derive.offers` joins a reply to what it answers.

Pure: no input or output, no model. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import error_line, fit_request, one_line, orders_work
from everturn.text.sentences import SHELL_PROMPT, Sentence, split_sentences, typed_sentences
from everturn.text.stance_words import (
    APPROVAL,
    ASKING,
    ASKS,
    GIVEN_UP,
    GO_ON,
    GOES_ON,
    GREETING,
    MORE_WANTED,
    NO_TOPICS,
    ORDER,
    PRAISE,
    REVISION,
    ROUTINE_LEAD,
    ROUTINE_ORDER,
    SMALL_TALK,
    TAKEN_BACK,
    TASK_ORDER,
    THANKS,
)

_LONGEST = 240
_GROWTH = 5  # words: a shorter request is a step of the same work
_SHORT_REPLY = 12
_END = 6_000  # characters below a heading that can hold an order
_READ = 24_000
_TITLE = 420  # cells of what a prompt asks for
_MAX_WORDS = 60  # a longer sentence is a story


# --- the words of a person ---
_FRONT_MATTER = lazy_pattern(r"\A\s*\"?---[ \t]*\n.{0,4000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_DESCRIPTION = lazy_pattern(
    r"\A\s*\"?---[ \t]*\n(?:[^\n]{0,400}\n){0,20}?description:[ \t]*['\"]?(\S[^\n]{3,400}?)['\"]?[ \t]*\n"
)
_COMMAND_NAME = lazy_pattern(r"<command-name>\s*/?([^<\s]{1,80})\s*</command-name>")
_COMMAND_ARGS = lazy_pattern(r"<command-args>(.{0,4000}?)</command-args>", re.DOTALL)
#: Commands of a client that say nothing about the work.
CLIENT_COMMANDS = frozenset(
    "clear compact model exit quit help config cost login logout resume status doctor memory mcp hooks agents plugin plugins "
    "chrome add-dir feedback bug rewind todos tasks release-notes upgrade theme vim fast effort context usage ide terminal-setup permissions rename export init-terminal reload-plugins skills rate-limit-options extra-usage".split()
)


def own_words(text: str) -> str:
    """Return the sentences of a prompt that its author wrote, on one line; "" if all of it was pasted."""
    return " ".join(dict.fromkeys(one.passage for one in _own_sentences(text)))


def _own_sentences(text: str) -> tuple[Sentence, ...]:
    text = _FRONT_MATTER.sub("\n", text[:_READ])
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(line.lstrip().startswith(">") for line in lines):  # the request itself is a quote
        text = "\n".join(line.lstrip()[1:].strip() for line in lines)
    return typed_sentences(text)


def command_words(text: str) -> str:
    """Return a slash command with its arguments, "" for one that only steers the client."""
    found = _COMMAND_NAME.search(text[:2_000])
    if found is None or found[1].lower() in CLIENT_COMMANDS:
        return ""
    given = _COMMAND_ARGS.search(text)
    return f"/{found[1]} {given[1].strip() if given else ''}".strip()


def asked_words(prompt: str, is_command: bool = False) -> str:
    """Return what a person asked for in a prompt, by which its session is known; "" for a command that only steers the client."""
    if is_command:
        return command_words(prompt) if prompt.startswith("<") else ""
    text = prompt.replace("\r\n", "\n")
    command = read_command(text)
    return prompt if command is None else command.typed or goal_words(text)


def word_count(text: str) -> int:
    """Return how many words a text has. Two characters of Chinese or Japanese count as one word."""
    wide = len(_WIDE.findall(text))
    return len(_WIDE.sub(" ", text).split()) + (wide + 1) // 2


_WIDE = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


# --- prompts that hold the text of a command ---
class CommandPrompt(Struct, frozen=True):
    """What a person typed, and the template around it."""

    typed: str  # "" if the command was given nothing
    name: str = ""  # of the command, as `/name`, if the prompt says it
    has_slot: bool = True  # for what is typed
    body: str = ""  # the template; "" if the client only put the request below its own notes


def read_command(text: str) -> CommandPrompt | None:
    """Return what was typed and the template of a prompt; None if it is no command."""
    head = text[:_READ]
    if (found := _SLOT.search(head)) is not None:
        return _filled(text, found, next((one for one in found.groups() if one is not None), ""))
    if (found := _ENDING.search(text, max(0, len(text) - _READ))) is not None:
        return CommandPrompt(found[2].strip(), _command_name(text), body=text[: found.start()] if found[1] else "")
    if (found := _INSERTED.search(head)) is not None and (typed := head[: found.start()].strip()):
        return CommandPrompt(typed, _command_name(typed), body=head[found.end() :])
    if _UNFILLED.search(head):
        return CommandPrompt("", _command_name(head), body=text)
    if (found := _TITLED.match(head)) is not None:
        return CommandPrompt("", found[1], False, text)
    return None


def _filled(text: str, slot: re.Match[str], typed: str) -> CommandPrompt:
    words, body = typed.strip(), f"{text[: slot.start()]}\n{text[slot.end() :]}"
    return CommandPrompt("" if _PLACEHOLDER.fullmatch(words) else words, _command_name(body), body=body)


def _command_name(text: str) -> str:
    """Return the name of the command that a text says was typed."""
    found = _TYPED_NAME.search(text[:_READ])
    return next(one for one in found.groups() if one) if found is not None else ""


#: Where a template holds what was given to it: below a heading, in a fence or a paragraph, or in a tag.
_SLOT = lazy_pattern(
    r"^#{1,6}[ \t]*(?:user (?:input|request|query|message|prompt)|arguments?|input)[ \t]*:?\s*\n\s*```\w{0,10}\n(.{0,20000}?)\n?```"
    r"|^user input:[ \t]*\n\s*(\S.{0,4000}?)\n[ \t]*\n"
    r"|^<(?:user[-_ ](?:input|request|query|prompt)|arguments)>(.{0,20000}?)</(?:user[-_ ](?:input|request|query|prompt)|arguments)>",
    re.I | re.M | re.DOTALL,
)
#: Where the rest of a prompt is what the person asks for.
_ENDING = lazy_pattern(
    r"^(?:#{1,6}[ \t]*my request for \w{1,20}[ \t]*:?[ \t]*$|(ARGUMENTS):)(.{0,20000})\Z", re.I | re.M | re.DOTALL
)
#: A line with which a client begins a file that it puts in: `--- Cursor Command: plan.md ---`.
_INSERTED = lazy_pattern(r"^-{3,}[ \t]+\w[^\n]{2,120}[^\n-][ \t]+-{3,}[ \t]*$", re.M)
#: The name of a command as the title of its text.
_TITLED = lazy_pattern(r"\s*#[ \t]+`?(/[a-z][\w.:-]{1,60})`?[ \t]*(?:[—–:-][ \t]|$)", re.I | re.M)
#: A place that was given nothing.
_UNFILLED = lazy_pattern(r"^[ \t#]*\$ARGUMENTS[ \t]*$", re.M)
_TYPED_NAME = lazy_pattern(r"\btyped after `?(/[\w.:-]{2,60})|^(/[a-z][\w.:-]{1,60})(?=\s|\Z)", re.I | re.M)
_PLACEHOLDER = lazy_pattern(r"\$ARGUMENTS|\$\{?\w{1,20}\}?|\{\{?\w{1,20}\}?\}|")


# --- requests that say what is wanted ---
_LOOK = lazy_pattern(
    r"^(?:what|which|who|how|why|when|where|is|are|do|does|did|can you (?:see|hear|tell|explain)|tell me|list|show)\b|.{0,60}(?:って(?:なに|何)|とは|是什么|是什麼|什么意思|什麼意思|\bqu['’]est-ce que|\bwas ist|\bqué es|\bo que é)",
    re.I,
)


def asks_for_work(text: str) -> bool:
    """Whether a request asks for work, not only for a look or for nothing."""
    words = GREETING.sub("", text.strip())
    if words.startswith("/") and " " in words:
        return True
    if (word_count(words) < 4 and not names_subject(words)) or SMALL_TALK.match(words) or says_nothing_new(words):
        return False
    return not (_LOOK.match(words) and word_count(words) <= 12)


def opens_session(text: str) -> bool:
    """Whether a request is what a session is known by: it asks for work, be it by a command without arguments."""
    return asks_for_work(text) or is_bare_command(text)


def is_bare_command(text: str) -> bool:
    """Whether a request is a command without arguments that does not only steer the client."""
    words = text.strip()
    name = words[1:].replace(":", "").replace("-", "")
    return words.startswith("/") and name.isalnum() and words[1:] not in CLIENT_COMMANDS


def steers_client(text: str) -> bool:
    """Whether somebody typed a command of the client into the conversation."""
    name = text.strip("` \n").partition(" ")[0]
    return name.startswith("/") and name[1:].lower() in CLIENT_COMMANDS


def adds_work(text: str) -> bool:
    """Whether a later request asks for more, and not only a question."""
    words = text.strip()
    if (
        (word_count(words) <= _GROWTH and not names_subject(words))
        or words.startswith((PASTED, BY_COMMAND))
        or not asks_for_work(words)
    ):
        return False
    return not words.endswith(("?", "？")) or bool(ASKS.search(words))


def names_subject(words: str) -> bool:
    """Whether a few words are an order that says what it is about."""
    return bool(ORDER.match(words)) and (len(topic_words(words)) >= 2 or any(one.isdigit() for one in words))


def is_routine_request(text: str) -> bool:
    """Whether a request says nothing about how the work is to be done: `commit`, `push it`, `continue`, `yes`."""
    words = ROUTINE_LEAD.sub("", text.strip())
    return word_count(words) <= _GROWTH and bool(ROUTINE_ORDER.match(words) or is_approval(text) or not words)


def says_nothing_new(text: str) -> bool:
    """Whether a message only thanks, praises, agrees, tells the agent to go on, or was given up."""
    words = text.strip()
    return is_thanks(words) or is_approval(words) or bool(GO_ON.fullmatch(words))


def goal_words(text: str) -> str:
    """Return what a prompt asks for, in whole sentences. Of a document: its title, its purpose and the orders around it."""
    described, text = _DESCRIPTION.findall(text[:_READ]), _FRONT_MATTER.sub("\n", text[:_READ])
    if command := command_words(text):
        return fit_request(command, _TITLE)
    if (given := read_command(text)) is not None:
        return _command_goal(given, described)
    if is_role(text):
        orders = [one.text for one in split_sentences(text) if TASK_ORDER.match(one.text.lstrip("*_ "))]
        chosen = [one for one in orders if word_count(one) > 3][:2] or _document_goal(text)
        return fit_request(" ".join(dict.fromkeys(chosen)) or own_words(text) or text, _TITLE)
    return _typed_goal(text)


def _command_goal(given: CommandPrompt, described: list[str]) -> str:
    """Return what was typed for a command; if that says little, with what the command is for."""
    words = _typed_goal(given.typed) if given.typed else ""
    if word_count(words) >= _GROWTH or (words and not given.body):
        return words
    purpose = " ".join(described) or body_purpose(given.body) or _first_step(given.body)
    if words and words.startswith(given.name or "/"):
        return fit_request(join_meaning(words, purpose), _TITLE)
    if not words:
        named = given.name if not purpose.startswith(given.name) else ""
        return fit_request(f"{BY_COMMAND}{': '.join(one for one in (named, purpose) if one)}", _TITLE)
    return fit_request(": ".join(one for one in (purpose, words) if one), _TITLE)


def _first_step(text: str) -> str:
    """Return the first item of the lists in a text."""
    items = (one.text for one in split_sentences(text) if one.is_item and not one.text.endswith((":", "：")))
    return next((one for one in items if word_count(one) >= _SHORTEST), "")


def join_meaning(words: str, meant: str) -> str:
    """Return a request with what it refers to."""
    return f"{words} → {meant}" if meant else words


def _typed_goal(text: str) -> str:
    typed = own_words(text)
    parts = dict.fromkeys(_document_goal(text)) if _is_document(text, typed) else {}
    if not parts and typed and word_count(typed) < _SHORT_REPLY and len(text) > _LONG_PASTE:
        parts = dict.fromkeys((typed, *_stated_purpose(text)))
    top = _HEADING.search(text)
    is_report = top is not None and _ERROR_TITLE.match(top[1]) and not text[: top.start()].strip()
    if (parts or typed) and not is_report:
        return fit_request(" ".join(parts) or typed, _TITLE)
    if len(text) <= _LONGEST:
        return text
    prompts = ((line, SHELL_PROMPT.match(line)) for line in text.splitlines())
    ran = [line[found.end() :].strip() for line, found in prompts if found and line[found.end() :].strip()]
    return f"{PASTED}{': '.join((*ran[-1:], error_line(text)))}"


PASTED, BY_COMMAND = "pasted: ", "by command: "  #: begin the words of a prompt of which the person typed nothing
_HEADING = lazy_pattern(r"^#{1,6}[ \t]+(\S[^\n]{0,200})$", re.M)
#: Headings that name a part of a document and not its subject.
_PART = lazy_pattern(
    r"\W*(?:\d+[.)]?\s*)?(?:the |project )?(?:context|background|role|user|outline|instructions?|important|notes?|rules|error|system|overview|summary|introduction|mandatory|prerequisites?|preamble|workflow|inputs?|usage|when to use|steps|about you|your (?:role|task)|task|goal|checklist purpose)\b",
    re.I,
)
_ERROR_TITLE = lazy_pattern(r"\W*(?:\w+ )?(?:error|exception|traceback|stack trace)\b", re.I)
#: Headings and leads after which a document says what is to be done, or what it describes.
_PURPOSE = lazy_pattern(
    r"^(?:(?:#{1,6}[ \t]+|\*\*|__)[^\n]{0,20}?\b(?:goals?|objectives?|purpose|(?:your )?task|instructions?|one[- ]line description|(?:project )?(?:overview|description|context|background|problem|summary)|what (?:we(?:['’]re| are)|you(?:['’]re| are)) (?:building|going to build|to do)[^\n]{0,20}|aufgabe|ziel|objectif|objetivo|目的|目标|任务|概要)[^\w\n]{0,6}\s*\n\s*(?!#)(\S[^\n]{3,400}(?:\n(?![#\s*-])[^\n]{1,200}){0,3})"
    r"|[ \t#*_-]{0,6}(?:purpose|goal|objective|intent|task|aim|ziel|objectif|objetivo|目的|目标)[*_]{0,2}:[*_]{0,2}[ \t]*(\S[^\n]{3,400})$)",
    re.I | re.M,
)
#: A prompt that a program wrote for an agent begins so.
_ROLE = lazy_pattern(r"\W{0,8}(?:context\b|you are\b|your name is\b|system\b|role\b)", re.IGNORECASE)


def is_role(text: str) -> bool:
    """Whether a program wrote a prompt for an agent: it begins with who the agent is."""
    return bool(_ROLE.match(text))


def _is_document(text: str, typed: str) -> bool:
    """Whether a prompt is mostly a document: it has headings, or hardly anything of it was typed."""
    return len(_HEADING.findall(text)) >= 2 or (len(text) > _DOCUMENT and len(typed) < len(text) / _DOCUMENT_SHARE)


_DOCUMENT, _DOCUMENT_SHARE, _LONG_PASTE = 4_000, 20, 1_000


def _document_goal(text: str) -> Iterator[str]:
    """Yield the sentences of a document that say what is to be done: those above it, its title and purpose, the last ones."""
    top = _HEADING.search(text)
    above = typed_sentences(text[: top.start()]) if top is not None else ()
    lead = [one.text for one in above if not (is_role(one.text) or _NOTED_PATH.match(one.text))]
    yield from lead[:1]
    yield from [one for one in lead[1:] if orders_work(one)][:2]
    heading = top if top is not None and not _PART.match(top[1]) else None
    if heading is not None and not heading[1].endswith(":"):
        yield heading[1].strip(" #*_")
    sentences = list(split_sentences(text))
    purpose = list(_stated_purpose(text))
    if not purpose and not any(orders_work(one) for one in lead):
        orders = [one.text for one in sentences if ORDER.match(one.text.lstrip("*_ ")) and word_count(one.text) > 3]
        below = [one.text for one in split_sentences(text[heading.end() :][:_END])] if heading is not None else orders
        purpose = orders[:1] if lead else below[:1]
    yield from (one for one in purpose if not one.endswith((":", "：")))
    last = sentences[-1] if sentences else None
    if last is not None and not last.is_item and ASKING.search(last.text) and last.text not in lead:
        yield last.text


def body_purpose(text: str) -> str:
    """Return in a line what the text of a command or a document is for: its description, or its title with its first sentence."""
    if described := _DESCRIPTION.search(text):
        return described[1]
    text = _BASE_FOLDER.sub("", _FRONT_MATTER.sub("\n", text[:_READ]))
    top = _HEADING.search(text)
    is_first = top is not None and not text[: top.start()].strip()
    title = top[1].strip(" #*_`") if top is not None and is_first and not _PART.match(top[1]) else ""
    below = text[top.end() :] if top is not None and title else text
    sentences = [one for one in split_sentences(_TAG.sub("\n", below[:_END])) if word_count(one.text) >= _SHORTEST]
    told = [one.text for one in sentences if not (one.is_item or one.text.endswith((":", "："))) and one.text != title]
    roles = [one for one in told if is_role(one) and not _TOLD.match(one)]
    said = [one for one in told if one not in roles and one[0].isalnum() and not _BESIDES.match(one)][:1]
    opens = bool(title) or (not is_first and any(text.find(one[:_SHORT_REPLY], 0, _TOP) >= 0 for one in said))
    purpose = [*said, *_stated_purpose(text)] if opens else [*_stated_purpose(text), *roles[:1]]
    words = _LABEL.sub("", next(iter(purpose), ""))
    return one_line(": ".join(one for one in (title, words) if one), _LONGEST)


_TOP = 300  # characters in which a text without a title says it
_SHORTEST = 4  # words of a sentence that says what a document is for
#: Sentences that say how a document is used, and not what for.
_BESIDES = lazy_pattern(
    r"\W*(?:if|note|the text the user typed|you \W{0,2}must\W{0,2} consider the user input|use this|\*\*[^*]{1,40}:\*\*)(?:\b|$)",
    re.I,
)
_BASE_FOLDER = lazy_pattern(r"\A\s*Base directory for this skill:[^\n]{0,400}\n", re.I)
_LABEL = lazy_pattern(r"\A\W*(?:purpose|goal|objective|description)\W{0,3}:\W*", re.I)
_TAG = lazy_pattern(r"</?[a-z][\w-]{0,40}>", re.I)


def _stated_purpose(text: str) -> Iterator[str]:
    """Yield the sentence in which a document says what it is for."""
    if found := _PURPOSE.search(text):
        words = next(iter(split_sentences(found[1] or found[2])), None)
        yield words.text if words is not None else one_line(found[1] or found[2], _TITLE)
    elif told := next((one.text for one in split_sentences(text) if _TOLD.match(one.text)), ""):
        yield told


_TOLD = lazy_pattern(
    r"you are (?:updat|creat|generat|writ|review|implement|build|fix|ask|work)\w*\b|(?:the|your) (?:goal|task) is\b",
    re.I,
)
_NOTED_PATH = lazy_pattern(r"[\w ]{1,60}:\s*\S*[/\\]\S*\s*$")  # noted by a client


def is_approval(text: str) -> bool:
    """Whether a reply does no more than agree."""
    return bool(APPROVAL.fullmatch(text.strip().rstrip(".!。！ ")))


def is_thanks(text: str) -> bool:
    """Whether a prompt only thanks, praises or says goodbye, or was given up."""
    if PRAISE.fullmatch(text) or GIVEN_UP.fullmatch(text):
        return True
    return word_count(text) <= _SHORT_REPLY + 8 and bool(THANKS.match(text)) and not MORE_WANTED.search(text)


# --- revisions ---
class Revision(Struct, frozen=True):
    """A sentence in which a person chooses something else (`superseded`) or takes something back."""

    status: str  # superseded | rejected
    terms: frozenset[str]
    text: str = ""


def find_revisions(text: str) -> list[Revision]:
    """Return the sentences of a prompt that change what was decided before."""
    if not (REVISION.search(text) or TAKEN_BACK.search(text)):
        return []
    found = []
    for sentence in split_sentences(text):
        words = sentence.text
        if sentence.pasted or len(words.split()) > _MAX_WORDS or words.rstrip("*_ ").endswith("?"):
            continue
        if REVISION.search(words) or TAKEN_BACK.search(words):
            found.append(Revision("superseded" if REVISION.search(words) else "rejected", content_terms(words), words))
    return found


def revised_status(text: str, revisions: Iterable[Revision]) -> str:
    """Return what became of a decision after some later sentences, "" if none of them is about it."""
    terms = content_terms(text)
    least = max(_COMMON_TERMS, _COMMON_SHARE * len(terms))
    found = (one for one in revisions if len(terms & one.terms) >= least)
    return next((one.status for one in found if text not in one.text), "")  # one that repeats it revises something else


@lru_cache(maxsize=1024)
def content_terms(text: str) -> frozenset[str]:
    """Return the words of a sentence that say what it is about."""
    return frozenset(word.lower().removesuffix("s") for word in _TERM.findall(text)) - _EVERYDAY


_COMMON_TERMS, _COMMON_SHARE = 2, 0.4  # that a revision has in common with what it revises
_TERM = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_][\w./-]{2,}[^\W_]")
_EVERYDAY = frozenset(
    ("this that with from into have keep make instead actually rather should would could must please also them they then there here "
     "what when where your only just like more some same again about switch change remove drop revert undo").split()
)  # fmt: skip


# --- what an offer is about ---
def loose_terms(text: str) -> frozenset[str]:
    """Return the words of an offer that say what it is about."""
    return content_terms(text) - _OFFER_TERMS


_OFFER_TERMS = frozenset(
    (
        "want know word need next step later future follow followup follow-up optional optionally you'd any anything something these those "
        "would like proceed adjust option issue change specific file further code any."
    ).split()
)


# --- topics ---
def asks_question(text: str) -> bool:
    """Whether a prompt asks something, with or without a question mark."""
    return text.rstrip("*_\"') ").endswith(("?", "？")) or bool(_LOOK.match(text.lstrip()))


def is_other_topic(text: str, about: str) -> bool:
    """Whether a message asks for something that has nothing to do with what another was about, as far as their words tell."""
    topic = topic_words(text)
    return len(topic) >= _FEW_TOPICS and not GOES_ON.match(text) and topic.isdisjoint(topic_words(about))


@lru_cache(maxsize=64)
def topic_words(text: str) -> frozenset[str]:
    """Return the beginnings of the longer words of a text, and pairs of ideographs."""
    words = (word[:_STEM].lower() for word in _LONG_WORD.findall(text) if word.lower() not in NO_TOPICS)
    pairs = (run[at : at + 2] for run in _IDEOGRAPHS.findall(text) for at in range(len(run) - 1))
    return frozenset((*words, *pairs))


_FEW_TOPICS, _STEM = 3, 6
_LONG_WORD = lazy_pattern(r"[A-Za-zÀ-ɏͰ-ӿ]{4,40}")
_IDEOGRAPHS = lazy_pattern(r"[\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,40}")
