"""End a session with a summary, and continue in a child session that begins with it.

`/compact` writes the summary, saves the file, opens the child session, sends the restoration prompt and shows the
acknowledgment. The parent stays as it is, complete and recallable. No failure of a model can lose it: without a summary by
the model the mechanical one is used, and a missing or odd acknowledgment is shown as it is.
"""

from __future__ import annotations

import queue
import shlex
import threading
from collections.abc import Sequence
from time import monotonic

from msgspec import to_builtins
from msgspec.structs import replace

from everturn.chat import earlier_sessions
from everturn.chat.conversation import Conversation
from everturn.chat.screen import ChatScreen
from everturn.chat.setup import ChatSetup, input_tokens
from everturn.chat.summaries import ChatSummary, make_summary, mechanical_text, previous_summary, read_kept_summary
from everturn.errors import EverturnError, ModelError
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Reply
from everturn.loop import records
from everturn.loop.loop import Watch
from everturn.loop.model_request import ask_model
from everturn.model.archive import Session
from everturn.sessions.lookup import short_ids
from everturn.text.times import iso

_ANSWER = 1024
_INHERITED = 500  # the fewest tokens for what is still in force


def summarise(conversation: Conversation, screen: ChatScreen) -> ChatSummary:
    """Return the summary of a live session, by the model or mechanical. Warns if the model failed."""
    setup, session = conversation.setup, conversation.row
    previous = conversation.previous_summary
    with conversation.journal.alone:
        kept = read_kept_summary(setup, session)
    if kept is not None:
        return kept
    if setup.summariser is None:
        return ChatSummary(mechanical_text(conversation.state, previous), "mechanical")
    screen.say("📝 Generating session summary...", end=" ")
    try:
        with conversation.journal.alone:
            made = make_summary(setup, session, previous, screen.say)
    except KeyboardInterrupt:
        made = ChatSummary(failed="stopped")
    if not made.failed:
        screen.say("✓")
        _tell_note(made, screen)
        return made
    screen.say("")
    screen.warn(f"Summary generation failed - session saved without a summary by the model ({made.failed})")
    return ChatSummary(mechanical_text(conversation.state, previous), "mechanical", made.failed)


def compact(conversation: Conversation, screen: ChatScreen, watch: Watch) -> Conversation:
    """Continue in a new session that begins with the summary of this one. On failure the old one continues."""
    if not conversation.queries:
        screen.say("There is nothing to compact yet.")
        return conversation
    setup = conversation.setup
    made = summarise(conversation, screen)
    save_conversation(conversation, screen, made)
    with conversation.journal.alone:
        one = earlier_sessions.describe_earlier(setup, conversation.row, made.text)
    screen.say(f"💾 Saved session: {one.session} ({one.counts})")
    screen.say("🔄 Starting new session with summary...")
    conversation.close()
    try:
        child = Conversation.begin(setup, [one], watch)
    except EverturnError as failure:
        screen.warn(f"{failure}; going on in the session as it was")
        return Conversation.take_up(setup, conversation.journal.session, watch)
    restore(child, [one], screen)
    return child


def restore(child: Conversation, sessions: Sequence[earlier_sessions.EarlierSummary], screen: ChatScreen) -> None:
    """Send a new session the restoration prompt, show the acknowledgment, and keep both."""
    clock = iso(child.setup.clock())[11:19]
    heading = records.StateRecord(kind="restored_heading", data=earlier_sessions.restoration_heading(sessions, clock))
    inherited = earlier_sessions.inheritance_text(child.inherited_lines(), max(_INHERITED, child.setup.window // 8))
    facts = {
        "sessions": to_builtins([replace(one, text="") for one in sessions]),
        "summary": "\n\n".join(one.text for one in sessions),
        "inherited": inherited,
    }
    prompt = child.past.injection(earlier_sessions.restoration_prompt(sessions, inherited), "restoration")
    child.journal.write(prompt, heading, records.StateRecord(kind="restored", data=facts))
    reply = _ask_acknowledgment(child, screen)
    if reply is not None:
        usage = {"in": input_tokens(reply.usage), "out": reply.usage.output, "source": reply.usage.source}
        done = records.StateRecord(kind="restored", data={**facts, "usage": usage})
        child.journal.write(records.ResponseRecord(reply=reply), done)
        child.meter.record_usage(reply.usage)
    child.carry_on()
    save_conversation(child, screen)


def leave_conversation(conversation: Conversation, screen: ChatScreen) -> None:
    """Leave: summary, saved file, the facts. Whatever fails, the conversation is in the archive."""
    if not conversation.queries or conversation.past.count == conversation.count_before:
        conversation.close()
        screen.say("Goodbye!")
        return
    made = summarise(conversation, screen)
    path = save_conversation(conversation, screen, made)
    spent, row = conversation.count_tokens(), conversation.row
    with conversation.journal.alone:
        short = short_ids([row], conversation.setup.store)[row.id]
    conversation.close()
    screen.say("Goodbye!")
    screen.say("✓ Conversation saved successfully!")
    screen.say(f"  Session ID: {row.native_id}")
    screen.say(f"  Queries: {row.n_prompts}")
    screen.say(f"  Tokens: {spent.total:,}")
    if path:
        screen.say(f"  File: {path}")
    agent = conversation.setup.agent.path
    words = ["everturn", "chat", "--resume", short, *(["--agent", agent] if agent else [])]
    screen.say(f"  Go on with: {shlex.join(words)}")


def save_conversation(conversation: Conversation, screen: ChatScreen, made: ChatSummary | None = None) -> str:
    """Write the file and return its path; "" if there is none. A file that cannot be written is a warning."""
    try:
        with conversation.journal.alone:
            found = made or read_kept_summary(conversation.setup, conversation.row)
            path = earlier_sessions.save(conversation.setup, conversation.row, found.text if found is not None else "")
    except EverturnError as failure:
        screen.warn(str(failure))
        return ""
    return str(path) if path is not None else ""


def _ask_acknowledgment(child: Conversation, screen: ChatScreen) -> Reply | None:
    """Return the acknowledgment; None if the model could not be asked or answered nothing."""
    setup = child.setup
    request = ModelRequest(tuple(child.past.history), child.past.system, model=setup.backend.model, max_tokens=_ANSWER)
    cancelled, deadline = threading.Event(), monotonic() + setup.summary_seconds

    def tick() -> float:
        if monotonic() > deadline:
            cancelled.set()
        return 0.2

    screen.begin_answer(setup.agent.name)
    words: list[str] = []
    try:
        asked = ask_model(setup.backend, request, cancelled, queue.SimpleQueue(), screen.delta, tick)
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
    return _spoken_reply(reply, setup.backend.bound)


def _spoken_reply(reply: Reply, bound: bool) -> Reply | None:
    """Return the reply without calls, or only its text. Thoughts bound to this request cannot go into the next one."""
    if bound:
        return replace(reply, message=ChatMessage("assistant", (ChatPart("text", reply.text),))) if reply.text else None
    parts = tuple(part for part in reply.message.parts if part.kind != "call")
    return replace(reply, message=replace(reply.message, parts=parts)) if parts else None


def summary_for(setup: ChatSetup, session: Session, screen: ChatScreen) -> ChatSummary:
    """Return the summary of an earlier session, kept or made now. `failed` says why there is none."""
    kept = read_kept_summary(setup, session)
    if kept is not None or setup.summariser is None:
        return kept or ChatSummary(failed=_missing_summary_reason(setup, session))
    screen.say("📝 No summary yet: generating it now...", end=" ")
    made = make_summary(setup, session, previous_summary(setup, session), screen.say)
    screen.say("" if made.failed else "✓")
    _tell_note(made, screen)
    return ChatSummary(failed=_missing_summary_reason(setup, session)) if made.failed else made


def _tell_note(made: ChatSummary, screen: ChatScreen) -> None:
    if made.note:
        screen.warn(made.note)


def _missing_summary_reason(setup: ChatSetup, session: Session) -> str:
    broken = any(one.kind == "unpaired" for one in setup.store.problems(session.version))
    return "invalid summary format" if broken else "no summary"
