"""One live session: what is said goes into the journal, the model gets what fits, with state and hints.

The system prompt and the session state are in every request, then the turns from the newest back (`resume.context`). What
the program puts into a conversation by itself (the prompt that restores an earlier session, the hint that something said
earlier is not in view, the state for providers that bind an answer to the words before it) is recorded as injected, at its
place, and stands there again in every later request, also after a crash. The state is carried on turn by turn, and kept
with the message it covers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from everturn.chat.setup import ChatSetup, Meter, SessionTokens, total_tokens
from everturn.derive.session_state import SessionState
from everturn.derive.state_yaml import as_yaml, prune_state
from everturn.errors import EverturnError, OverBudget, SessionNotFound
from everturn.llm.protocol import ChatMessage, ModelRequest
from everturn.loop import context, model_request
from everturn.loop.journal import AGENT, Journal, JournalAbout
from everturn.loop.journal_state import JournalState
from everturn.loop.loop import Loop, Outcome, Watch
from everturn.loop.tools import Tool
from everturn.model.archive import KeptRow, Session
from everturn.recall.schema import DESCRIPTION, SCHEMA
from everturn.sessions.lookup import best_match
from everturn.sessions.state import PIN, continue_state, session_state
from everturn.text.printable import one_line

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSummary

#: Kind of what is kept about a chat; `state` is the session state as JSON.
KIND = "chat"
_ANSWER = 4096
_FULL_TEXT = "nothing may be left out for this provider: /compact goes on in a fresh session"


class Conversation:
    """A session that is open for talking. Holds its lease until it is closed."""

    def __init__(self, setting: ChatSetup, journal: Journal, watch: Watch | None = None) -> None:
        self.setting, self.journal = setting, journal
        self.meter = Meter(setting.backend.window)
        self.loop = Loop(
            setting.backend, self._tools(), setting.instructions, watch=watch or Watch(), assemble=self._assemble
        )
        self.left_out = 0  # messages that the last request had no room for
        self.count_before = journal.past.count  # records when it was taken up
        self._sent = ""  # the system prompt of the last request
        self._closed = threading.Event()
        threading.Thread(target=self._renew_lease, name="lease", daemon=True).start()
        self._state = self._read_state()

    # life -------------------------------------------------------------------------------------------------------------
    @classmethod
    def begin(
        cls, setting: ChatSetup, before: Sequence[EarlierSummary] = (), watch: Watch | None = None
    ) -> Conversation:
        """A new session, a child of those it goes on from."""
        parent, *also = [one.session for one in before] or [""]
        about = JournalAbout(
            setting.machine, setting.owner, setting.workspace, setting.backend.model, parent=parent,
            relation="continues" if parent else "", also=tuple(also),
        )  # fmt: skip
        journal = Journal.open(setting.store, "", about, clock=setting.clock)
        made = cls(setting, journal, watch)
        journal.setup(made.loop.system, [one.shown for one in made.loop.tools])
        made.remember_agent()
        made._inherit_pins(before)
        return made

    @classmethod
    def take_up(cls, setting: ChatSetup, session: str, watch: Watch | None = None, force: bool = False) -> Conversation:
        """An existing session, exactly where it stands. Raises SessionNotFound, Busy."""
        if not Journal.exists(setting.store, session):
            raise SessionNotFound(session)
        about = JournalAbout(setting.machine, setting.owner)
        journal = Journal.open(setting.store, session, about, clock=setting.clock, force=force)
        return cls(setting, journal, watch)

    def close(self) -> None:
        """Let others have it. What was said is in the archive already."""
        self._closed.set()
        self.journal.close()

    def _renew_lease(self) -> None:
        """Hold the session also while the person thinks. When it was taken from us the next write says so."""
        while not self._closed.wait(self.journal.ttl / 3000):
            try:
                self.journal.renew()
            except EverturnError:
                return

    # talking ----------------------------------------------------------------------------------------------------------
    def send(self, text: str) -> Outcome:
        """Say something, and go on until there is an answer, or a person is needed."""
        return self.loop.run(self.journal, text)

    def go_on(self) -> Outcome:
        """Go on where it stands: after a decision, a broken answer, a crash."""
        return self.loop.resume(self.journal)

    @property
    def past(self) -> JournalState:
        """Everything that was said."""
        return self.journal.past

    @property
    def row(self) -> Session:
        """The session in the archive, as it is now."""
        with self.journal.alone:
            return best_match(self.setting.store.sessions_of(AGENT, self.journal.session))

    @property
    def queries(self) -> int:
        """What the person asked; restoring is not a query."""
        return self.row.n_prompts

    @property
    def last_answer(self) -> str:
        """The last words of the model."""
        said = (message for message in reversed(self.past.messages) if message.role == "assistant")
        return next((text for one in said if (text := _message_text(one))), "")

    @property
    def restored(self) -> dict[str, Any]:
        """What this session was restored from, and what that cost; empty when it began by itself."""
        found = self.past.states.get("restored")
        return found if isinstance(found, dict) else {}

    def spent(self) -> SessionTokens:
        """Tokens, apart for restoring and talking."""
        used = self.restored.get("usage") or {}
        inwards, outwards = int(used.get("in", 0)), int(used.get("out", 0))
        receipts = self.setting.summariser.receipts if self.setting.summariser else []
        return SessionTokens(
            inwards + outwards, inwards, outwards, total_tokens(self.past.usage) - inwards - outwards,
            sum(total_tokens(one.usage) for one in receipts if one.purpose == "summary"),
            any(one.usage.source != "api" for one in self.setting.asker.receipts),
        )  # fmt: skip

    # what is put in ---------------------------------------------------------------------------------------------------
    def _inject_hint(self) -> None:
        """Where the last words of the person point to something that is not in view, say so to the model, once."""
        from everturn.derive.references import find_reference, phrases_in

        *before, last = self.past.history
        is_said = last.role == "user" and last is self.past.messages[-1]  # nothing was put in behind it yet
        if not is_said or not self.loop.tools or not phrases_in(_message_text(last)):
            return
        hint = find_reference(_message_text(last), [_message_text(message) for message in self._view(before).messages])
        if hint:
            self.journal.inject(hint, "hint")

    # the request ------------------------------------------------------------------------------------------------------
    def _assemble(self, past: JournalState) -> ModelRequest:
        self._inject_hint()
        view = self._view(past.history)
        if view.append is not None:
            self.journal.inject(_message_text(view.append), "state")
        self.meter.estimated(view.tokens)
        self.left_out, self._sent = view.left_out, view.system
        backend = self.setting.backend
        most = min(backend.max_tokens or _ANSWER, max(1, self.setting.window // 2))
        return ModelRequest(view.messages, view.system, past.tools if backend.takes_tools else (), backend.model, most)

    def _view(self, history: Sequence[ChatMessage]) -> context.RequestContext:
        """What fits; the whole history as it was where an answer is bound to the words before it, as long as that fits.

        Raises OverBudget where it does not, and the provider takes nothing else.
        """
        most = context.context_budget(self.setting.window, self.setting.reserve)
        fit = partial(
            context.assemble_context, most=most, state=self.state_text(), tools=self.past.tools, sizes=self.past.sizes
        )
        is_bound = self.setting.backend.bound
        if is_bound or any(map(model_request.is_sealed, history)):
            system = self._bound_system() or (self.past.system if is_bound else "")
            whole = fit(history, system=system, append_only=True)
            if whole.fits and (system or is_bound):
                return whole
            if is_bound:
                raise OverBudget(
                    self.setting.backend.name, f"about {whole.tokens:,} tokens where {most:,} fit; {_FULL_TEXT}"
                )
            history = model_request.drop_sealed_thoughts(history)
        view = fit(history, system=self.past.system)
        summary = str(self.restored.get("summary", ""))
        return fit(history, system=self.past.system, recalled=summary) if view.left_out and summary else view

    def _bound_system(self) -> str:
        """The system prompt, with the state of then, that sealed thoughts were answered to; "" when nobody knows."""
        if "bound" not in self.past.states and self._sent:
            self.journal.state("bound", self._sent)
        return str(self.past.states.get("bound", ""))

    # state ------------------------------------------------------------------------------------------------------------
    def state_text(self) -> str:
        """The state as the model gets it; its focus is what was asked last."""
        asked = next((_message_text(one) for one in reversed(self.past.messages) if one.role == "user"), "")
        focus = one_line(asked.strip().partition("\n")[0], 100)
        model = self._state.model or self.setting.backend.model
        return as_yaml(prune_state(replace(self._state, current_focus=focus or self._state.current_focus, model=model)))

    def pin(self, text: str) -> None:
        """Keep a sentence in the state for good."""
        at = self.setting.clock()
        with self.journal.alone, self.setting.store.write():
            key = f"{at}-{len(self.setting.store.kept(PIN, self.journal.session))}"
            self.setting.store.keep(
                KeptRow(PIN, AGENT, self.journal.session, key, msgspec.json.encode({"text": text}).decode(), at)
            )
        self.carry_on(anew=True)

    def carry_on(self, anew: bool = False) -> None:
        """Bring the state up to date with what is in the archive, and keep it with the message it covers."""
        store, sources = self.setting.store, self.setting.sources
        with self.journal.alone:
            row = best_match(store.sessions_of(AGENT, self.journal.session))
            self._state = (
                session_state(store, sources, row) if anew else continue_state(store, sources, row, self._state)
            )
            value = msgspec.json.encode(self._state).decode()
            with store.write():
                store.keep(KeptRow(KIND, AGENT, self.journal.session, "state", value, self.setting.clock()))

    @property
    def state(self) -> SessionState:
        """All that is known of the session, up to its last whole turn."""
        return self._state

    def _read_state(self) -> SessionState:
        """The state as it was kept, brought up to date. What cannot be read is made anew."""
        store, sources = self.setting.store, self.setting.sources
        with self.journal.alone:
            row = best_match(store.sessions_of(AGENT, self.journal.session))
            kept = [one.value for one in store.kept(KIND, self.journal.session) if one.key == "state"]
            try:
                state = msgspec.json.decode(kept[0], type=SessionState) if kept else SessionState()
            except msgspec.DecodeError:
                state = SessionState()
            return continue_state(store, sources, row, state)

    # tools ------------------------------------------------------------------------------------------------------------
    def _tools(self) -> list[Tool]:
        if not self.setting.tools or not self.setting.backend.takes_tools:
            return []
        return [*self.setting.tools, Tool(self.recall, "conversation_recall", DESCRIPTION, SCHEMA, read_only=True)]

    def recall(self, **asked: Any) -> str:
        """What the archive says; for the model, and for the person who asks it directly."""
        with self.journal.alone:
            return recall(self.setting, asked, self.journal.session)

    def remember_agent(self) -> None:
        """Record whom the person talks to, where that has changed."""
        agent = {"name": self.setting.agent.name, "path": self.setting.agent.path}
        if self.past.states.get("agent") != agent:
            self.journal.state("agent", agent)

    def _inherit_pins(self, before: Sequence[EarlierSummary]) -> None:
        """What was pinned in the sessions it goes on from stays pinned."""
        with self.journal.alone:
            pins = [row for one in before for row in self.setting.store.kept(PIN, one.session)]
        if pins:
            with self.journal.alone, self.setting.store.write():
                for number, row in enumerate(pins):
                    key = f"{row.key}-{number}"
                    self.setting.store.keep(KeptRow(PIN, AGENT, self.journal.session, key, row.value, row.at))
            self.carry_on(anew=True)


def recall(setting: ChatSetup, asked: dict[str, Any], session: str = "") -> str:
    """What the archive says, asked from within a session or from outside of any."""
    from everturn.recall.tool import ConversationRecall

    own = Session(agent=AGENT, native_id=session) if session else None
    return ConversationRecall(setting.store, setting.sources, own, setting.clean, setting.clock).call(asked)


def _message_text(message: ChatMessage) -> str:
    return "".join(part.text for part in message.parts if part.kind in ("text", "result"))
