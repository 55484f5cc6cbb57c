"""The summary of a session: a short block of Markdown that the next session begins with.

A model writes it *out of band*: the conversation is quoted in a request of its own, so that the request for a summary
never becomes a topic of the conversation. Its bullets are checked against the record (`summary_check`). The summary is
stale as soon as the session goes on. Without a model, or if it fails, the same block is made from the session's state; that
one is never kept. The block is the text between the marks. The last well-formed one counts, because a conversation may
mention the marks and a model may repeat the request.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable

import msgspec
from msgspec import Struct

from everturn.chat.identity import first_agent, read_identity
from everturn.chat.setup import ChatSetup
from everturn.derive.inheritance import in_force
from everturn.derive.open_failures import still_failing, unconfirmed_reports
from everturn.derive.session_state import SessionState, unanswered_questions
from everturn.errors import BadAnswer, ModelError, ModelUnreachable
from everturn.llm.asker import Asker
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Receipt
from everturn.model.archive import KeptRow, Session
from everturn.restore.job import SUMMARY_KIND, KeptSummary, is_stale, kept_summaries
from everturn.sessions.lineage import ancestors
from everturn.sessions.messages import Passage, input_text, passages, read_turns
from everturn.text.printable import one_line, plain_text
from everturn.text.tokens import MARGIN, estimate_tokens

START, END = "<!-- SESSION_SUMMARY_START -->", "<!-- SESSION_SUMMARY_END -->"
FIRST = "Initial session."
PROMPT_VERSION = "chat-1"
TRIES = 2

_HEADINGS = ("**Background Context:**", "**Topics Discussed:**", "**Decisions Made:**", "**Pending:**")
_ANSWER = 2_000  # tokens; 500 words are requested, more are accepted
_LONG = 4_000  # characters of one message that are quoted
_LONG_CALL = 200  # of one call
_LONG_RESULT = 200  # of its result
_MOST_DECIDED = 40
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


_MARKED = f"\n\nPut the summary between these marks:\n\n{START}\n[your summary here]\n{END}"


class ChatSummary(Struct, frozen=True):
    """A summary and its origin. `failed` says why there is none by a model."""

    text: str = ""
    by: str = ""  # model | kept | mechanical | source
    failed: str = ""
    receipts: tuple[Receipt, ...] = ()
    note: str = ""  # what the check against the record found, in one line


def prompt_for(conversation: str, previous: str = "", form: str = "") -> str:
    """Return the request for a summary of a conversation, with the summary of the session before, if any.

    `form` replaces the form of the summary; the marks are asked for in any case.
    """
    background = (
        f"**Background Context:** Condense this previous summary to 1-2 sentences:\n{previous.strip()}\n\n"
        if previous.strip()
        else ""
    )
    current = f"**Current Session:**\n{conversation.strip()}"
    return f"Generate a progressive session summary:\n\n{background}{current}\n\n{f'{form.strip()}{_MARKED}' if form.strip() else _FORM}"


def extract(text: str, any_form: bool = False) -> str | None:
    """Return the last well-formed block of a text without its marks; None if there is none. It may have any form."""
    end = len(text)
    while (end := text.rfind(END, 0, end)) >= 0:
        start = text.rfind(START, 0, end)
        if start < 0:
            return None
        inside = text[start + len(START) : end].strip()
        if END not in inside and (_is_block(inside) or (any_form and inside and inside != "[your summary here]")):
            return inside
    return None


def read_kept_summary(setup: ChatSetup, session: Session) -> ChatSummary | None:
    """Return a current summary by the session's own program or by a model for us; None if there is none."""
    for one in kept_summaries(setup.store, session):
        if one.prompt_version.startswith("chat-") and not is_stale(session, one) and one.text.strip():
            return ChatSummary(one.text, "kept")
    text = setup.store.session(session.id)[1].summary
    return ChatSummary(text, "source") if text.strip() else None


def make_summary(
    setup: ChatSetup, session: Session, previous: str = "", say: Callable[[str], None] = lambda text: None
) -> ChatSummary:
    """Let the model write the summary of a session, keep it and return it. A model's failure does not raise."""
    from everturn.chat.summary_check import check_summary  # its rules take a while to compile

    asker = setup.summariser
    if asker is None:
        return ChatSummary(failed="no model may be asked for it")
    request = _summary_request(setup, session, previous)
    before, why = len(asker.receipts), ""
    for attempt in range(1, TRIES + 1):
        try:
            reply = _ask_in_time(asker, request, setup.summary_seconds)
        except ModelError as failure:
            why = failure.why
        else:
            found = extract(reply, bool(setup.summary_form))
            if found is not None:
                checked = check_summary(setup, session, found, previous)
                made = ChatSummary(checked.text, "model", receipts=tuple(asker.receipts[before:]), note=checked.note)
                _keep_summary(setup, session, made)
                return made
            why = "the answer has no summary between the marks"
        if attempt < TRIES:
            say(f"{why}; trying once more")
    return ChatSummary(failed=why, receipts=tuple(asker.receipts[before:]))


def mechanical_text(state: SessionState, previous: str = "") -> str:
    """Return the block from records alone: requests, decisions, failures, open items."""
    topics = [one.text for one in state.requests if one.text]
    constraints, decisions = in_force(state)
    decided = [one.text for one in (*constraints[-_MOST_DECIDED:], *decisions[-_MOST_DECIDED:])]
    decided += [f"{one.action} {one.path}" for one in state.files.values() if one.action != "read"][-10:]
    pending = [f"still fails: {one.what}" for one in (*state.inherited.failing, *still_failing(state))]
    pending += [f"reported, not confirmed as fixed: {one.what}" for one in unconfirmed_reports(state)]
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
            *_bullet_lines(decided, 3 * _MOST_DECIDED),
            "",
            "**Pending:**",
            *_bullet_lines(pending, 10),
        ]
    )


def previous_summary(setup: ChatSetup, session: Session) -> str:
    """Return the summary that a session began with, or that of the session it continues; "" if there is none."""
    began_with = str(read_identity(setup, session).restored.get("summary", ""))
    if began_with.strip():
        return began_with
    elder = next(iter(ancestors(setup.store, session)), None)
    kept = read_kept_summary(setup, elder.session) if elder is not None and elder.session is not None else None
    return kept.text if kept is not None else ""


def conversation_text(setup: ChatSetup, session: Session, most: int) -> str:
    """Return the conversation within a budget: the newest turns in full, one line for each older one."""
    in_full: list[str] = []
    lines: list[str] = []
    left, is_full = most, False
    agent = first_agent(setup, session).name
    for view in reversed(list(read_turns(setup.store, session))):
        texts = [
            said
            for one in passages(setup.store, setup.sources, session, view, results=True)
            if (said := _passage_line(one, agent))
        ]
        text = "\n\n".join(texts)
        cost = int(estimate_tokens(text) * MARGIN) + 1 if text else 0
        is_full = is_full or cost > left
        if is_full:
            lines.append(f"- {one_line(text, 100)}")
        elif text:
            in_full.append(text)
            left -= cost
    kept_lines = lines[: max(0, left // 40)]
    earlier = ["Earlier, not told in full:\n" + "\n".join(reversed(kept_lines))] if kept_lines else []
    return "\n\n---\n\n".join([*earlier, *reversed(in_full)])


def _passage_line(one: Passage, agent: str) -> str:
    """Return a passage as it is quoted: prompts and answers, and calls in one line with how they ended."""
    if one.kind == "call" and one.start is not None:
        about = one.start.command or one.start.path or input_text(one.start)
        ended = one.call.status if one.call is not None else "open"
        output = f": {one_line(plain_text(one.result.text), _LONG_RESULT)}" if one.result is not None else ""
        return f"[tool {one.start.name} {one_line(plain_text(about), _LONG_CALL)} → {ended}{output}]"
    if one.kind not in ("prompt", "answer") or not one.text:
        return ""
    return f"**{'You' if one.kind == 'prompt' else agent}:** {_cut_middle(plain_text(one.text))}"


# --- requests ---
def _summary_request(setup: ChatSetup, session: Session, previous: str) -> ModelRequest:
    room = max(1_000, (setup.window - _ANSWER) * 9 // 10 - estimate_tokens(previous or " ") - 500)
    words = setup.clean(prompt_for(conversation_text(setup, session, room), previous, setup.summary_form))
    return ModelRequest((ChatMessage("user", (ChatPart("text", words),)),), max_tokens=_ANSWER)


def _ask_in_time(asker: Asker, request: ModelRequest, seconds: float) -> str:
    """Return the answer within the timeout. A model that takes longer is abandoned, and closed at its next output."""
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
        answer = box.get(timeout=seconds)
    except queue.Empty:
        raise ModelUnreachable(name, f"timed out after {seconds:g} s") from None
    finally:
        late.set()
    if isinstance(answer, ModelError):
        raise answer
    if isinstance(answer, BaseException):
        raise BadAnswer(name, f"{type(answer).__name__}: {answer}") from answer
    return answer


def _keep_summary(setup: ChatSetup, session: Session, made: ChatSummary) -> None:
    model = made.receipts[-1].model if made.receipts else ""
    stored = KeptSummary(
        model, PROMPT_VERSION, session.n_turns, session.n_messages - 1, setup.clean(made.text),
        msgspec.to_builtins(list(made.receipts)), setup.clock(),
    )  # fmt: skip
    key = f"{model}/{PROMPT_VERSION}/{stored.last_seq}"
    with setup.store.write():
        setup.store.keep(
            KeptRow(
                SUMMARY_KIND, session.agent, session.native_id, key, msgspec.json.encode(stored).decode(), stored.at
            )
        )


def _is_block(text: str) -> bool:
    """Whether a text has the headings and is more than the empty form."""
    return all(one in text for one in _HEADINGS[:2]) and "[bullet points about THIS session]" not in text


def _first_sentences(text: str) -> str:
    """Return the topics of an earlier summary in a sentence or two."""
    points = re.findall(r"^- (.+)$", text, re.MULTILINE)[:4]
    return one_line("Earlier: " + "; ".join(points) if points else text, 400)


def _bullet_lines(texts: list[str], most: int) -> list[str]:
    kept = list(dict.fromkeys(one_line(one, 200) for one in texts))[-most:]
    return [f"- {one}" for one in kept] or ["- None recorded"]


def _cut_middle(text: str) -> str:
    text = text.replace(START, "[mark]").replace(END, "[mark]")
    return text if len(text) <= _LONG else f"{text[: _LONG * 3 // 4]} […] {text[-_LONG // 4 :]}"
