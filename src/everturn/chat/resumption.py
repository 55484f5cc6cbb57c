"""How a session is taken up again, and why in that way.

    exact      the session itself, every message as it was sent: same prompt, same agent, same model, and all of it fits
    window     the session itself, as much of it as fits; the rest is reached by recall
    summary    a new session that begins with the summary of the old one
    document   a new session that begins with a document made from the records, each statement with its evidence

Each is tried in this order, or from the one that is asked for, and each fall is told with its reason. Several sessions at
once are told by their summaries. Nothing is ever lost by falling: the archive has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from everturn.chat.conversation import Conversation
from everturn.chat.screen import ChatScreen
from everturn.chat.setup import ChatSetup
from everturn.errors import ConversationStateMismatch
from everturn.loop import context
from everturn.loop.journal import Journal
from everturn.loop.loop import Watch
from everturn.model.archive import Session
from everturn.sessions.lineage import ancestors

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSummary

STRATEGIES = ("exact", "window", "summary", "document")
_DOCUMENT_TOKENS = 4_000  # tokens


class ResumptionDeclined(Exception):
    """The person does not want to go on with another agent or prompt."""


def take_up(
    setting: ChatSetup,
    sessions: Sequence[Session],
    screen: ChatScreen,
    watch: Watch,
    strategy: str = "exact",
    force: bool = False,
) -> Conversation:
    """Go on from one session or several. Raises Declined, Busy, ConversationStateMismatch."""
    for one in sessions:
        _warn_missing_parent(setting, one, screen)
    if len(sessions) > 1:
        if strategy in ("exact", "window"):
            screen.say(f"{strategy}: several sessions cannot be one conversation → summary")
        return _resume_as_child(setting, sessions, screen, watch, "document" if strategy == "document" else "summary")
    session = sessions[0]
    is_ours = Journal.exists(setting.store, session.native_id)
    if strategy in ("exact", "window") and not is_ours:
        screen.say(f"{strategy}: the session was held by another program ({session.agent}) → summary")
        strategy = "summary"
    if strategy in ("exact", "window"):
        return _resume_itself(setting, session, screen, watch, strategy, force)
    return _resume_as_child(setting, [session], screen, watch, strategy)


def why_not_exact(talk: Conversation) -> str:
    """Why a session cannot be taken up exactly as it was; nothing when it can."""
    setting, past = talk.setting, talk.past
    if past.system and past.system != setting.instructions:
        return "the system prompt has changed"
    if past.model and past.model != setting.backend.model:
        return f"it was held with the model {past.model}, now it is {setting.backend.model}"
    most = context.context_budget(setting.window, setting.reserve)
    tokens = past.sizes.text(past.system)
    for message in reversed(past.history):  # no further than needed
        tokens += past.sizes.message(message)
        if tokens > most:
            return f"it has more than the {most:,} tokens that fit"
    return ""


def find_mismatch(talk: Conversation) -> tuple[str, str] | None:
    """What the session was held with and what there is now, when agent or prompt are not the same."""
    setting, past = talk.setting, talk.past
    held = past.states.get("agent")
    path = str(held.get("path", "")) if isinstance(held, dict) else ""
    if held is not None and path != setting.agent.path:
        return path or "no agent file", setting.agent.path or "no agent file"
    if past.system and past.system != setting.instructions:
        return (
            f"the system prompt {_text_digest(past.system)}",
            f"the system prompt {_text_digest(setting.instructions)}",
        )
    return None


def _resume_itself(
    setting: ChatSetup, session: Session, screen: ChatScreen, watch: Watch, strategy: str, force: bool
) -> Conversation:
    talk = Conversation.take_up(setting, session.native_id, watch)
    try:
        _confirm_mismatch(find_mismatch(talk), screen, force)
    except BaseException:
        talk.close()
        raise
    why = why_not_exact(talk)
    if why and strategy == "exact":
        screen.say(f"exact: {why} → window")
    if why and setting.backend.bound:
        screen.say("window: the provider takes a conversation only as it was → summary")
        talk.close()
        return _resume_as_child(setting, [session], screen, watch, "summary")
    talk.remember_agent()
    turns = talk.row.n_turns
    screen.say(f"Resuming session {session.native_id} ({turns} turn{'' if turns == 1 else 's'} in archive)…")
    if talk.past.open_calls or talk.past.awaits_model:
        screen.say("The last request has no answer yet: /retry goes on with it.")
    return talk


def _confirm_mismatch(different: tuple[str, str] | None, screen: ChatScreen, force: bool) -> None:
    if different is None or force:
        return
    old, new = different
    if not screen.is_terminal:
        raise ConversationStateMismatch(old, f"{new} (--force goes on all the same)")
    screen.warn(f"Session created with {old}, using {new}.")
    if not screen.agrees("Continue?"):
        raise ResumptionDeclined


def _resume_as_child(
    setting: ChatSetup, sessions: Sequence[Session], screen: ChatScreen, watch: Watch, strategy: str
) -> Conversation:
    from everturn.chat.compaction import restore

    screen.say("📋 Loading session...")
    told: list[EarlierSummary] = []
    for session in sessions:
        one = _summarise_earlier(setting, session, screen, strategy, alone=len(sessions) == 1)
        if one is None:
            return _resume_itself(setting, session, screen, watch, "window", force=True)
        screen.say(f"✓ Found: {setting.agent.name} - {one.date} ({one.counts})")
        told.append(one)
    screen.say("🔄 Restoring context...")
    child = Conversation.begin(setting, told, watch)
    restore(child, told, screen)
    return child


def _summarise_earlier(
    setting: ChatSetup, session: Session, screen: ChatScreen, strategy: str, alone: bool
) -> EarlierSummary | None:
    """What the new session is told; None when the old one had better be taken up itself."""
    from everturn.chat.compaction import summary_for
    from everturn.chat.earlier_sessions import tell_earlier

    if strategy == "summary":
        made = summary_for(setting, session, screen)
        if made.text:
            return tell_earlier(setting, session, made.text)
        is_ours = alone and not setting.backend.bound and Journal.exists(setting.store, session.native_id)
        instead = "window: the session itself, as much of it as fits" if is_ours else "document: made from its records"
        screen.warn(f"Session can't be resumed ({made.failed}), starting fresh — not so, instead {instead}")
        if is_ours:
            return None
    from everturn.restore.document import LEAST
    from everturn.restore.markdown import document_markdown
    from everturn.restore.mechanical import build_document

    document = build_document(setting.store, setting.sources, session)
    room = max(LEAST, min(_DOCUMENT_TOKENS, setting.window // 4))
    return tell_earlier(setting, session, document_markdown(document, setting.clean, room), "document")


def _warn_missing_parent(setting: ChatSetup, session: Session, screen: ChatScreen) -> None:
    lost = next((one for one in ancestors(setting.store, session) if one.session is None), None)
    if lost is not None:
        screen.warn(f"Parent session {lost.native_id} not found, starting fresh — not so, this session itself is whole")


def _text_digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
