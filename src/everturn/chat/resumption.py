"""How a session is resumed, and why that way.

    exact      the session itself, every message as it was sent: same prompt, same agent, same model, and all of it fits
    window     the session itself, as much of it as fits; the rest is reached by recall
    summary    a new session that begins with the summary of the old one
    document   a new session that begins with a document made from the records, each statement with its evidence

The strategies are tried in this order, beginning with the requested one, and each fallback is shown with its reason.
Several sessions at once are restored from their summaries. A fallback loses nothing: the archive has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everturn.chat.conversation import Conversation
from everturn.chat.identity import confirm_identity
from everturn.chat.screen import ChatScreen
from everturn.chat.setup import ChatSetup
from everturn.loop import context
from everturn.loop.journal import Journal
from everturn.loop.loop import Watch
from everturn.model.archive import Session
from everturn.sessions.lineage import ancestors

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSummary

_DOCUMENT_TOKENS = 4_000  # tokens


def take_up(
    setup: ChatSetup,
    sessions: Sequence[Session],
    screen: ChatScreen,
    watch: Watch,
    strategy: str = "exact",
    force: bool = False,
) -> Conversation:
    """Resume one session or several; `force` asks nothing. Raises ResumptionDeclined, SessionDiffers, Busy."""
    confirm_identity(setup, sessions, screen, force)
    for one in sessions:
        _warn_missing_parent(setup, one, screen)
    if len(sessions) > 1:
        if strategy in ("exact", "window"):
            screen.say(f"{strategy}: several sessions cannot be one conversation → summary")
        return _resume_as_child(setup, sessions, screen, watch, "document" if strategy == "document" else "summary")
    session = sessions[0]
    is_ours = Journal.exists(setup.store, session.native_id)
    if strategy in ("exact", "window") and not is_ours:
        screen.say(f"{strategy}: the session was held by another program ({session.agent}) → summary")
        strategy = "summary"
    if strategy in ("exact", "window"):
        return _resume_itself(setup, session, screen, watch, strategy)
    return _resume_as_child(setup, [session], screen, watch, strategy)


def why_not_exact(conversation: Conversation) -> str:
    """Return why a session cannot be resumed exactly as it was; "" if it can."""
    setup, past = conversation.setup, conversation.past
    if past.has_setup and past.system != setup.instructions:
        return "the system prompt has changed"
    if past.model and past.model != setup.backend.model:
        return f"it was held with the model {past.model}, now it is {setup.backend.model}"
    most = context.context_budget(setup.window, setup.reserve)
    if past.dropped:
        return f"it has more than the {most:,} tokens that fit"
    tokens = past.sizes.text(past.system)
    for message in reversed(past.history):  # stop as soon as it is clear
        tokens += past.sizes.message(message)
        if tokens > most:
            return f"it has more than the {most:,} tokens that fit"
    return ""


def _resume_itself(setup: ChatSetup, session: Session, screen: ChatScreen, watch: Watch, strategy: str) -> Conversation:
    conversation = Conversation.take_up(setup, session.native_id, watch)
    why = why_not_exact(conversation)
    if why and strategy == "exact":
        screen.say(f"exact: {why} → window")
    if why and setup.backend.bound:
        screen.say("window: the provider takes a conversation only as it was → summary")
        conversation.close()
        return _resume_as_child(setup, [session], screen, watch, "summary")
    conversation.remember_agent()
    turns = conversation.row.n_turns
    screen.say(f"Resuming session {session.native_id} ({turns} turn{'' if turns == 1 else 's'} in archive)…")
    if conversation.past.open_calls or conversation.past.awaits_model:
        screen.say("The last request has no answer yet: /retry goes on with it.")
    return conversation


def _resume_as_child(
    setup: ChatSetup, sessions: Sequence[Session], screen: ChatScreen, watch: Watch, strategy: str
) -> Conversation:
    from everturn.chat.compaction import restore

    screen.say("📋 Loading session...")
    earlier: list[EarlierSummary] = []
    for session in sessions:
        one = _summarise_earlier(setup, session, screen, strategy, alone=len(sessions) == 1)
        if one is None:
            return _resume_itself(setup, session, screen, watch, "window")
        screen.say(f"✓ Found: {one.name} - {one.date} ({one.counts})")
        earlier.append(one)
    screen.say("🔄 Restoring context...")
    child = Conversation.begin(setup, earlier, watch)
    restore(child, earlier, screen)
    return child


def _summarise_earlier(
    setup: ChatSetup, session: Session, screen: ChatScreen, strategy: str, alone: bool
) -> EarlierSummary | None:
    """Return what the new session begins with; None if the old one should be resumed itself."""
    from everturn.chat.compaction import summary_for
    from everturn.chat.earlier_sessions import describe_earlier

    if strategy == "summary":
        made = summary_for(setup, session, screen)
        if made.text:
            return describe_earlier(setup, session, made.text)
        is_ours = alone and not setup.backend.bound and Journal.exists(setup.store, session.native_id)
        instead = (
            "with the session itself, as much of it as fits" if is_ours else "from a document made from its records"
        )
        screen.warn(f"Session can't be resumed ({made.failed}), starting fresh {instead}")
        if is_ours:
            return None
    from everturn.resume.handoff import document_text

    room = min(_DOCUMENT_TOKENS, setup.window // 4)
    text = document_text(setup.store, setup.sources, session, setup.clean, room)
    return describe_earlier(setup, session, text, "document")


def _warn_missing_parent(setup: ChatSetup, session: Session, screen: ChatScreen) -> None:
    lost = next((one for one in ancestors(setup.store, session) if one.session is None), None)
    if lost is not None:
        screen.warn(f"Parent session {lost.native_id} not found; this session itself is complete")
