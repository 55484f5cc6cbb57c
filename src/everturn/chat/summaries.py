"""What a session was about, as a short block of Markdown from which the next one goes on.

A model writes it *out of band*: the conversation is quoted to it in a request of its own, so that the request for a summary
never becomes a topic of the conversation. It has a time limit and one retry. What it wrote is kept beside the session with
model, prompt version, receipts and the messages it covers; it is stale as soon as the session has gone on. Without a
model, or when it fails, the same block is made mechanically from the session's state, never kept, always at hand.

The block is what stands between the marks. Of several the last well-formed one counts, since a conversation may mention
the marks, and a model may repeat the request.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable

import msgspec
from msgspec import Struct

from everturn.chat.setup import ChatSetup
from everturn.derive.session_state import SessionState, still_failing, unanswered_questions
from everturn.errors import BadAnswer, ModelError, ModelUnreachable
from everturn.llm.asker import Asker
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Receipt
from everturn.model.archive import KeptRow, Session
from everturn.restore.job import SUMMARY_KIND, KeptSummary, is_stale, kept_summaries
from everturn.sessions.messages import read_turns
from everturn.sessions.state import session_state
from everturn.sessions.transcript import passages
from everturn.text.printable import one_line, plain_text
from everturn.text.tokens import MARGIN, estimate_tokens

START, END = "<!-- SESSION_SUMMARY_START -->", "<!-- SESSION_SUMMARY_END -->"
FIRST = "Initial session."
PROMPT_VERSION = "chat-1"
TRIES = 2

_HEADINGS = ("**Background Context:**", "**Topics Discussed:**", "**Decisions Made:**", "**Pending:**")
_ANSWER = 2_000  # tokens; 500 words are asked for, more are accepted
_LONG = 4_000  # characters of one message that are told
_FORM = """Create a structured summary:

**Background Context:** [condensed previous context or "Initial session."]

**Current Session Summary:**
**Topics Discussed:**
- [bullet points about THIS session]

**Decisions Made:**
- [bullet points about THIS session]

**Pending:**
- [what's still open]

Aim for less than 500 words, be complete but terse, no fluff.
Use the exact format with HTML comment markers:

<!-- SESSION_SUMMARY_START -->
[your summary here]
<!-- SESSION_SUMMARY_END -->"""


class ChatSummary(Struct, frozen=True):
    """A summary and where it comes from; `failed` is why there is none by a model."""

    text: str = ""
    by: str = ""  # model | kept | mechanical | source
    failed: str = ""
    receipts: tuple[Receipt, ...] = ()


def prompt_for(conversation: str, previous: str = "") -> str:
    """The request for a summary of a conversation, with the summary of the session before, if any."""
    background = (
        f"**Background Context:** Condense this previous summary to 1-2 sentences:\n{previous.strip()}\n\n"
        if previous.strip()
        else ""
    )
    current = f"**Current Session:**\n{conversation.strip()}"
    return f"Generate a progressive session summary:\n\n{background}{current}\n\n{_FORM}"


def extract(text: str) -> str | None:
    """The last well-formed block of a text, without its marks; None when there is none."""
    end = len(text)
    while (end := text.rfind(END, 0, end)) >= 0:
        start = text.rfind(START, 0, end)
        if start < 0:
            return None
        inside = text[start + len(START) : end].strip()
        if END not in inside and _is_block(inside):
            return inside
    return None


def is_marked(text: str) -> bool:
    """Whether marks stand in a text at all, however broken."""
    return START in text or END in text


def read_kept_summary(setting: ChatSetup, session: Session) -> ChatSummary | None:
    """The summary of a session that still holds: what its own program wrote, or a model for us. None when there is none."""
    for one in kept_summaries(setting.store, session):
        if one.prompt_version.startswith("chat-") and not is_stale(session, one) and one.text.strip():
            return ChatSummary(one.text, "kept")
    text = setting.store.session(session.id)[1].summary
    return ChatSummary(text, "source") if text.strip() else None


def make_summary(
    setting: ChatSetup, session: Session, previous: str = "", say: Callable[[str], None] = lambda text: None
) -> ChatSummary:
    """Let the model write the summary of a session, keep it, and give it. Never raises for a model's failure."""
    asker = setting.summariser
    if asker is None:
        return ChatSummary(failed="no model may be asked for it")
    request = _summary_request(setting, session, previous)
    before, why = len(asker.receipts), ""
    for attempt in range(1, TRIES + 1):
        try:
            reply = _ask_in_time(asker, request, setting.summary_seconds)
        except ModelError as failure:
            why = failure.why
        else:
            found = extract(reply)
            if found is not None:
                made = ChatSummary(found, "model", receipts=tuple(asker.receipts[before:]))
                _keep_summary(setting, session, made)
                return made
            why = "the answer has no summary between the marks"
        if attempt < TRIES:
            say(f"{why}; trying once more")
    return ChatSummary(failed=why, receipts=tuple(asker.receipts[before:]))


def mechanical_text(state: SessionState, previous: str = "") -> str:
    """The block from records alone: requests, decisions, what failed and is open."""
    topics = [one.text for one in state.requests if one.text]
    decided = [one.text for one in (*state.constraints, *state.decisions)]
    decided += [f"{one.action} {one.path}" for one in state.files.values() if one.action != "read"][-10:]
    pending = [f"still fails: {one.what}" for one in still_failing(state)]
    pending += [one.text for one in unanswered_questions(state)]
    pending += [one.text for one in state.plan if one.status != "completed"]
    background = _first_sentences(previous) if previous else FIRST
    return "\n".join(
        [
            f"**Background Context:** {background}",
            "",
            "**Current Session Summary:**",
            "**Topics Discussed:**",
            *_bullet_lines(topics, 12),
            "",
            "**Decisions Made:**",
            *_bullet_lines(decided, 15),
            "",
            "**Pending:**",
            *_bullet_lines(pending, 10),
        ]
    )


def mechanical_summary(setting: ChatSetup, session: Session, previous: str = "") -> ChatSummary:
    """The same for a session of the archive."""
    return ChatSummary(mechanical_text(session_state(setting.store, setting.sources, session), previous), "mechanical")


def conversation_text(setting: ChatSetup, session: Session, most: int) -> str:
    """What was said in a session, the newest first until so many tokens are used; of older turns one line each."""
    told: list[str] = []
    lines: list[str] = []
    left, is_full = most, False
    for view in reversed(list(read_turns(setting.store, session))):
        pieces = [
            f"**{'You' if one.kind == 'prompt' else setting.agent.name}:** {_cut_middle(plain_text(one.text))}"
            for one in passages(setting.store, setting.sources, session, view)
            if one.kind in ("prompt", "answer") and one.text
        ]
        text = "\n\n".join(pieces)
        cost = int(estimate_tokens(text) * MARGIN) + 1 if text else 0
        is_full = is_full or cost > left
        if is_full:
            lines.append(f"- {one_line(text, 100)}")
        elif text:
            told.append(text)
            left -= cost
    kept_lines = lines[: max(0, left // 40)]
    earlier = ["Earlier, not told in full:\n" + "\n".join(reversed(kept_lines))] if kept_lines else []
    return "\n\n---\n\n".join([*earlier, *reversed(told)])


# asking ---------------------------------------------------------------------------------------------------------------
def _summary_request(setting: ChatSetup, session: Session, previous: str) -> ModelRequest:
    room = max(1_000, (setting.window - _ANSWER) * 9 // 10 - estimate_tokens(previous or " ") - 500)
    words = setting.clean(prompt_for(conversation_text(setting, session, room), previous))
    return ModelRequest((ChatMessage("user", (ChatPart("text", words),)),), max_tokens=_ANSWER)


def _ask_in_time(asker: Asker, request: ModelRequest, seconds: float) -> str:
    """The answer within the time; a model that takes longer is left behind and closed when it says something."""
    box: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
    late = threading.Event()

    def ask() -> None:
        try:
            words = []
            for delta in asker.stream(request, "summary"):
                if late.is_set():
                    return
                words.append(delta.reply.text if delta.reply is not None else "")
            box.put("".join(words))
        except BaseException as failure:
            box.put(failure)

    threading.Thread(target=ask, name="summary", daemon=True).start()
    name = asker.backend.name if asker.backend else ""
    try:
        came = box.get(timeout=seconds)
    except queue.Empty:
        raise ModelUnreachable(name, f"timed out after {seconds:g} s") from None
    finally:
        late.set()
    if isinstance(came, ModelError):
        raise came
    if isinstance(came, BaseException):
        raise BadAnswer(name, f"{type(came).__name__}: {came}") from came
    return came


def _keep_summary(setting: ChatSetup, session: Session, made: ChatSummary) -> None:
    model = made.receipts[-1].model if made.receipts else ""
    stored = KeptSummary(
        model, PROMPT_VERSION, session.n_turns, session.n_messages - 1, setting.clean(made.text),
        msgspec.to_builtins(list(made.receipts)), setting.clock(),
    )  # fmt: skip
    key = f"{model}/{PROMPT_VERSION}/{stored.last_seq}"
    with setting.store.write():
        setting.store.keep(
            KeptRow(SUMMARY_KIND, session.agent, session.native_id, key, msgspec.json.encode(stored).decode(), stored.at)
        )


def _is_block(text: str) -> bool:
    """Has it the headings, and is it more than the form that was asked for?"""
    return all(one in text for one in _HEADINGS[:2]) and "[bullet points about THIS session]" not in text


def _first_sentences(text: str) -> str:
    """The topics of an earlier summary in a sentence or two, mechanically."""
    points = re.findall(r"^- (.+)$", text, re.MULTILINE)[:4]
    return one_line("Earlier: " + "; ".join(points) if points else text, 400)


def _bullet_lines(found: list[str], most: int) -> list[str]:
    kept = list(dict.fromkeys(one_line(one, 200) for one in found))[-most:]
    return [f"- {one}" for one in kept] or ["- None recorded"]


def _cut_middle(text: str) -> str:
    text = text.replace(START, "[mark]").replace(END, "[mark]")
    return text if len(text) <= _LONG else f"{text[: _LONG * 3 // 4]} […] {text[-_LONG // 4 :]}"
