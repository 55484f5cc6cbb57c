"""Ending a session with a summary, and going on in a child that begins with it.

`/compact`: summary, save, child session, restoration prompt, acknowledgment, and the conversation goes on. The parent stays
as it is, whole and recallable. Nothing a model does can lose it: without a summary by the model the mechanical one is used,
and an acknowledgment that fails, is odd or never comes is shown as it is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from time import monotonic

from msgspec import to_builtins
from msgspec.structs import replace

from everturn.chat.conversation import Conversation
from everturn.chat.earlier_sessions import EarlierSummary, restoration_heading, restoration_prompt, save, tell_earlier
from everturn.chat.screen import ChatScreen
from everturn.chat.setup import ChatSetup, input_tokens
from everturn.chat.summaries import ChatSummary, make_summary, mechanical_text, read_kept_summary
from everturn.errors import EverturnError, ModelError
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.loop import records
from everturn.loop.loop import Watch
from everturn.loop.model_request import ask_model
from everturn.model.archive import Session
from everturn.sessions.lookup import short_ids
from everturn.text.times import iso

_ANSWER = 1024


def summarise(talk: Conversation, screen: ChatScreen) -> ChatSummary:
    """The summary of a live session, from the model or mechanically; warns when the model could not."""
    setting, session, previous = talk.setting, talk.row, str(talk.restored.get("summary", ""))
    with talk.journal.alone:
        kept = read_kept_summary(setting, session)
    if kept is not None:
        return kept
    if setting.summariser is None:
        return ChatSummary(mechanical_text(talk.state, previous), "mechanical")
    screen.say("📝 Generating session summary...", end=" ")
    try:
        with talk.journal.alone:
            made = make_summary(setting, session, previous, screen.say)
    except KeyboardInterrupt:
        made = ChatSummary(failed="stopped")
    if not made.failed:
        screen.say("✓")
        return made
    screen.say("")
    screen.warn(f"Summary generation failed - session saved without a summary by the model ({made.failed})")
    return ChatSummary(mechanical_text(talk.state, previous), "mechanical", made.failed)


def compact(talk: Conversation, screen: ChatScreen, watch: Watch) -> Conversation:
    """Go on in a new session that begins with the summary of this one. On failure the old one goes on."""
    if not talk.queries:
        screen.say("There is nothing to compact yet.")
        return talk
    setting = talk.setting
    made = summarise(talk, screen)
    save_conversation(talk, screen, made)
    with talk.journal.alone:
        one = tell_earlier(setting, talk.row, made.text)
    screen.say(f"💾 Saved session: {one.session} ({one.counts})")
    screen.say("🔄 Starting new session with summary...")
    talk.close()
    try:
        child = Conversation.begin(setting, [one], watch)
    except EverturnError as failure:
        screen.warn(f"{failure}; going on in the session as it was")
        return Conversation.take_up(setting, talk.journal.session, watch)
    restore(child, [one], screen)
    return child


def restore(child: Conversation, sessions: Sequence[EarlierSummary], screen: ChatScreen) -> None:
    """Tell a new session what came before it, show what the model says to that, and keep both."""
    clock = iso(child.setting.clock())[11:19]
    heading = records.StateRecord(kind="restored_heading", data=restoration_heading(sessions, clock))
    facts = {
        "sessions": to_builtins([replace(one, text="") for one in sessions]),
        "summary": "\n\n".join(one.text for one in sessions),
    }
    told_first = child.past.injection(restoration_prompt(sessions), "restoration")
    child.journal.write(told_first, heading, records.StateRecord(kind="restored", data=facts))
    reply = _ask_acknowledgment(child, screen)
    if reply is not None:
        usage = {"in": input_tokens(reply.usage), "out": reply.usage.output, "source": reply.usage.source}
        done = records.StateRecord(kind="restored", data={**facts, "usage": usage})
        child.journal.write(records.ResponseRecord(reply=reply), done)
        child.meter.answered(reply.usage)
    child.carry_on()
    save_conversation(child, screen)


def leave_conversation(talk: Conversation, screen: ChatScreen) -> None:
    """The way out: summary, saved file, the facts. Whatever fails, the conversation is in the archive."""
    if not talk.queries or talk.past.count == talk.count_before:
        talk.close()
        screen.say("Goodbye!")
        return
    made = summarise(talk, screen)
    path = save_conversation(talk, screen, made)
    spent, row = talk.spent(), talk.row
    with talk.journal.alone:
        short = short_ids([row], talk.setting.store)[row.id]
    talk.close()
    screen.say("Goodbye!")
    screen.say("✓ Conversation saved successfully!")
    screen.say(f"  Session ID: {row.native_id}")
    screen.say(f"  Queries: {row.n_prompts}")
    screen.say(f"  Tokens: {spent.combined:,}")
    if path:
        screen.say(f"  File: {path}")
    screen.say(f"  Go on with: everturn chat --resume {short}")


def save_conversation(talk: Conversation, screen: ChatScreen, made: ChatSummary | None = None) -> str:
    """Write the file; "" when there is none. A file that cannot be written is a warning."""
    try:
        with talk.journal.alone:
            found = made or read_kept_summary(talk.setting, talk.row)
            path = save(talk.setting, talk.row, found.text if found is not None else "")
    except EverturnError as failure:
        screen.warn(str(failure))
        return ""
    return str(path) if path is not None else ""


def _ask_acknowledgment(child: Conversation, screen: ChatScreen) -> Reply | None:
    """What the model says; None when it could not be asked, or said nothing."""
    setting = child.setting
    request = ModelRequest(
        tuple(child.past.history), child.past.system, model=setting.backend.model, max_tokens=_ANSWER
    )
    cancelled, deadline = threading.Event(), monotonic() + setting.summary_seconds

    def tick() -> float:
        if monotonic() > deadline:
            cancelled.set()
        return 0.2

    screen.begin_answer(setting.agent.name)
    words: list[str] = []
    try:
        asked = ask_model(setting.backend, request, cancelled, queue.SimpleQueue(), screen.delta, tick)
        words, reply = asked.words, asked.reply
    except KeyboardInterrupt:
        reply = None
    except ModelError as failure:
        screen.end_answer()
        screen.warn(f"The model did not acknowledge ({failure.why}); going on")
        return None
    screen.end_answer()
    if reply is None:
        screen.warn("The acknowledgment did not come in time or was stopped; going on")
        return Reply(ChatMessage("assistant", (ChatPart("text", "".join(words)),))) if "".join(words).strip() else None
    return _spoken_reply(reply, setting.backend.bound)


def _spoken_reply(reply: Reply, bound: bool) -> Reply | None:
    """The words of it. Thoughts that hold only for this very request, which has no tools, cannot go into the next one."""
    if bound:
        return replace(reply, message=ChatMessage("assistant", (ChatPart("text", reply.text),))) if reply.text else None
    parts = tuple(part for part in reply.message.parts if part.kind != "call")
    return replace(reply, message=replace(reply.message, parts=parts)) if parts else None


def summary_for(setting: ChatSetup, session: Session, screen: ChatScreen) -> ChatSummary:
    """The summary of an earlier session: kept, or made now. `failed` says why there is none."""
    kept = read_kept_summary(setting, session)
    if kept is not None or setting.summariser is None:
        return kept or ChatSummary(failed=_missing_summary_reason(setting, session))
    screen.say("📝 No summary yet: generating it now...", end=" ")
    made = make_summary(setting, session, say=screen.say)
    screen.say("" if made.failed else "✓")
    return ChatSummary(failed=_missing_summary_reason(setting, session)) if made.failed else made


def _missing_summary_reason(setting: ChatSetup, session: Session) -> str:
    broken = any(one.kind == "unpaired" for one in setting.store.problems(session.version))
    return "invalid summary format" if broken else "no summary"
