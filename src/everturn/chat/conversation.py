"""One live session: messages go into the journal, and the model gets what fits, with state and hints.

Every request holds the system prompt and the session state, then the turns from the newest back (`loop.context`). What
the program adds to a conversation is recorded as injected at its position, and stays there in every later request, also
after a crash. The state is updated turn by turn and kept with the message it covers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from everturn.chat.setup import ChatSetup, Meter, SessionTokens, total_tokens
from everturn.derive.inheritance import inherited_lines
from everturn.derive.references import ASK_TO_RECALL, find_reference, phrases_in
from everturn.derive.session_state import SessionState
from everturn.derive.state_yaml import STATE_KEYS, as_yaml, prune_state
from everturn.errors import EverturnError, OverBudget, SessionNotFound
from everturn.llm.protocol import ChatMessage, ModelRequest
from everturn.loop import context, model_request, records
from everturn.loop.journal import Journal, JournalAbout
from everturn.loop.journal_state import AGENT, JournalState
from everturn.loop.loop import Loop, Outcome, Watch
from everturn.loop.tools import Tool
from everturn.loop.turn_log import KIND as LOG_KIND
from everturn.model.archive import KeptRow, Session
from everturn.model.conversation import prepared
from everturn.recall.schema import DESCRIPTION, SCHEMA
from everturn.sessions.lookup import best_match
from everturn.sessions.state import PIN, Pin, bound_state, continue_state, keep_inheritance, session_state
from everturn.text.printable import one_line

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSummary
    from everturn.recall.tool import ConversationRecall

#: Kind of the kept rows of a chat; `state` is the session state as JSON.
CHAT_KIND = "chat"
_ANSWER = 4096
_CHARACTERS = 4  # of a token
_KEPT_ALWAYS, _KEPT_EACH = 200, 20  # turns up to which the state is kept after each one, and then after so many
_FULL_TEXT = "nothing may be left out for this provider: /compact goes on in a fresh session"


class Conversation:
    """An open session. Holds its lease until it is closed."""

    def __init__(self, setup: ChatSetup, journal: Journal, watch: Watch | None = None) -> None:
        self.setup, self.journal = setup, journal
        self.meter = Meter(setup.backend.window)
        self.loop = Loop(
            setup.backend, self._tools(), setup.instructions, watch=watch or Watch(), assemble=self._assemble
        )
        self.left_out = 0  # messages that did not fit into the last request
        self.count_before = journal.past.count  # records when it was opened
        self._sent = ""  # the system prompt of the last request
        self._turns_in_view: int | None = None  # of the last request
        self.said: tuple[str, ...] = ()  # what was left out of the last request or cut in it, in words
        self._kept_at = 0  # turns when the state was kept last
        setup.enter_session(journal.session, self.recall)
        self._closed = threading.Event()
        threading.Thread(target=self._renew_lease, name="lease", daemon=True).start()
        self._state = self._read_state()

    # --- lifetime ---
    @classmethod
    def begin(cls, setup: ChatSetup, before: Sequence[EarlierSummary] = (), watch: Watch | None = None) -> Conversation:
        """Open a new session, a child of those it continues."""
        parent, *also = [one.session for one in before] or [""]
        about = JournalAbout(
            setup.machine, setup.owner, setup.workspace, setup.backend.model, parent=parent,
            relation="continues" if parent else "", also=tuple(also), hold=_hold(setup),
        )  # fmt: skip
        journal = Journal.open(setup.store, "", about, clock=setup.clock, policy=setup.policy)
        made = cls(setup, journal, watch)
        # Recorded also if it is empty: a prompt given later is then known to be another one.
        journal.write(records.SetupRecord(system=made.loop.system, tools=tuple(one.spec for one in made.loop.tools)))
        made.remember_agent()
        made._inherit(before)
        return made

    @classmethod
    def take_up(cls, setup: ChatSetup, session: str, watch: Watch | None = None, force: bool = False) -> Conversation:
        """Open an existing session where it ended. Raises SessionNotFound, Busy."""
        if not Journal.exists(setup.store, session):
            raise SessionNotFound(session)
        about = JournalAbout(setup.machine, setup.owner, hold=_hold(setup))
        journal = Journal.open(setup.store, session, about, clock=setup.clock, force=force, policy=setup.policy)
        return cls(setup, journal, watch)

    def close(self) -> None:
        """Release the session. Its messages are in the archive already."""
        self._closed.set()
        self.journal.close()

    def _renew_lease(self) -> None:
        """Hold the session while the person thinks. If another process took it, the next write fails."""
        while not self._closed.wait(self.journal.ttl / 3000):
            try:
                self.journal.renew()
            except EverturnError:
                return

    # --- turns ---
    def send(self, text: str) -> Outcome:
        """Send a message, and run until there is an answer or a person is needed."""
        return self.loop.run(self.journal, text)

    def go_on(self) -> Outcome:
        """Continue after a decision, a truncated answer or a crash."""
        return self.loop.resume(self.journal)

    @property
    def past(self) -> JournalState:
        return self.journal.past

    @property
    def row(self) -> Session:
        """The session in the archive, as it is now."""
        with self.journal.alone:
            return best_match(self.setup.store.sessions_of(AGENT, self.journal.session))

    @property
    def queries(self) -> int:
        """The number of prompts. The restoration is not one."""
        return self.row.n_prompts

    @property
    def last_answer(self) -> str:
        answers = (message for message in reversed(self.past.messages) if message.role == "assistant")
        return next((text for one in answers if (text := _message_text(one))), "")

    @property
    def restoration(self) -> dict[str, Any]:
        """The sessions that this one was restored from, and the cost; empty if it began by itself."""
        found = self.past.states.get("restored")
        return found if isinstance(found, dict) else {}

    @property
    def previous_summary(self) -> str:
        """The summary that this session began with; "" if it began by itself."""
        return str(self.restoration.get("summary", ""))

    def inherited_lines(self) -> list[str]:
        """Return what is in force from earlier sessions, one item per line."""
        pins = [one for one in self._state.constraints if one.pinned and one.session]
        return inherited_lines(self._state.inherited, pins)

    def count_tokens(self) -> SessionTokens:
        """Return the tokens, for restoration and conversation apart."""
        used = self.restoration.get("usage") or {}
        inwards, outwards = int(used.get("in", 0)), int(used.get("out", 0))
        receipts = self.setup.summariser.receipts if self.setup.summariser else []
        return SessionTokens(
            inwards + outwards, inwards, outwards, total_tokens(self.past.usage) - inwards - outwards,
            sum(total_tokens(one.usage) for one in receipts if one.purpose == "summary"),
            any(one.usage.source != "api" for one in self.setup.asker.receipts),
        )  # fmt: skip

    # --- requests ---
    def _inject_hint(self) -> None:
        """Tell the model once if the last message refers to something out of view and the archive surely holds it."""
        *before, last = self.past.history
        is_said = last.role == "user" and last is self.past.messages[-1]  # nothing was injected after it yet
        if not is_said or not phrases_in(_message_text(last)):
            return
        shown = self._view(before).messages
        if find_reference(_message_text(last), [_message_text(message) for message in shown]) is None:
            return
        with self.journal.alone:
            recall = make_recall(self.setup, self.journal.session, _count_prompts(shown) + 1)
            hint = recall.hint(_message_text(last))
        if hint:
            self.journal.inject(hint if self.setup.has_recall else hint.replace(ASK_TO_RECALL, ""), "hint")

    def _assemble(self, past: JournalState) -> ModelRequest:
        self._inject_hint()
        view = self._view(past.history)
        if view.append is not None:
            self.journal.inject(_message_text(view.append), "state")
        self.meter.record_estimate(view.tokens)
        self.left_out, self._sent, self.said = view.left_out, view.system, view.said
        self._turns_in_view = _count_prompts(view.messages)
        backend = self.setup.backend
        most = min(backend.max_tokens or _ANSWER, max(1, self.setup.window // 2))
        return ModelRequest(view.messages, view.system, past.tools if backend.takes_tools else (), backend.model, most)

    def _view(self, history: Sequence[ChatMessage]) -> context.RequestContext:
        """Return what fits: the complete history if answers are bound to the messages before them and it fits, else the newest.

        Raises OverBudget if it does not fit and the provider accepts nothing else.
        """
        most = context.context_budget(self.setup.window, self.setup.reserve)
        fit = partial(
            context.assemble_context, most=most, state=self.state_text(), tools=self.past.tools, sizes=self.past.sizes
        )
        is_bound = self.setup.backend.bound
        if is_bound or any(map(context.is_sealed, history)):
            system = self._bound_system() or (self.past.system if is_bound else "")
            whole = fit(history, system=system, append_only=True)
            if whole.fits and (system or is_bound):
                return whole
            if is_bound:
                raise OverBudget(
                    self.setup.backend.name, f"about {whole.tokens:,} tokens where {most:,} fit; {_FULL_TEXT}"
                )
            history = model_request.drop_sealed_thoughts(history)
        fit = partial(fit, earlier=self.past.dropped)
        view = fit(history, system=self.past.system)
        before = "\n\n".join(filter(None, (self.previous_summary, str(self.restoration.get("inherited", "")))))
        return fit(history, system=self.past.system, recalled=before) if view.left_out and before else view

    def _bound_system(self) -> str:
        """Return the system prompt and state that sealed thoughts were answered to; "" if unknown."""
        if "bound" not in self.past.states and self._sent:
            self.journal.state("bound", self._sent)
        return str(self.past.states.get("bound", ""))

    # --- state ---
    def state_text(self) -> str:
        """Return the state as the model gets it. Its focus is the last request."""
        asked = next((_message_text(one) for one in reversed(self.past.messages) if one.role == "user"), "")
        focus = one_line(asked.strip().partition("\n")[0], 100)
        model = self._state.model or self.setup.backend.model
        return as_yaml(prune_state(replace(self._state, current_focus=focus or self._state.current_focus, model=model)))

    def pin(self, text: str) -> None:
        """Keep a sentence in the state for good."""
        at = self.setup.clock()
        with self.journal.alone, self.setup.store.write():
            key = f"{at}-{len(self.setup.store.kept(PIN, self.journal.session))}"
            value = msgspec.json.encode(Pin(text, max(0, self.row.n_turns - 1))).decode()
            self.setup.store.keep(KeptRow(PIN, AGENT, self.journal.session, key, value, at))
        self.carry_on(anew=True)

    def carry_on(self, anew: bool = False) -> None:
        """Update the state from the archive, and keep it with the message it covers."""
        store, sources = self.setup.store, self.setup.sources
        with self.journal.alone:
            row = best_match(store.sessions_of(AGENT, self.journal.session))
            self._state = bound_state(
                session_state(store, sources, row) if anew else continue_state(store, sources, row, self._state)
            )
            self._keep_state(0 if anew else row.n_turns)

    def _keep_state(self, turns: int) -> None:
        """Keep the state; of a long session not at every turn, since it grows and is brought up to date anyway."""
        if turns > _KEPT_ALWAYS and turns - self._kept_at < _KEPT_EACH and not self._closed.is_set():
            return
        self._kept_at = turns
        session, at = self.journal.session, self.setup.clock()
        view = prune_state(self._state)
        shown = {name: getattr(view, name) for name in STATE_KEYS}
        value = msgspec.json.encode(self._state).decode()
        with self.setup.store.write():
            self.setup.store.keep(KeptRow(CHAT_KIND, AGENT, session, "state", value, at))
            self.setup.store.keep(
                KeptRow(LOG_KIND, AGENT, session, "session_state", msgspec.json.encode(shown).decode(), at)
            )

    @property
    def state(self) -> SessionState:
        """The state of the session up to its last complete turn."""
        return self._state

    def _read_state(self) -> SessionState:
        """Return the kept state, updated. An unreadable one is made anew."""
        store, sources = self.setup.store, self.setup.sources
        with self.journal.alone:
            row = best_match(store.sessions_of(AGENT, self.journal.session))
            kept = [one.value for one in store.kept(CHAT_KIND, self.journal.session) if one.key == "state"]
            try:
                state = msgspec.json.decode(kept[0], type=prepared(SessionState)) if kept else SessionState()
            except msgspec.DecodeError:
                state = SessionState()
            return bound_state(continue_state(store, sources, row, state))

    # --- tools ---
    def _tools(self) -> list[Tool]:
        if not self.setup.backend.takes_tools:
            return []
        return [*self.setup.tools, Tool(self.recall, "conversation_recall", DESCRIPTION, SCHEMA, read_only=True)]

    def recall(self, **asked: Any) -> str:
        """Answer a recall request of the model or the person."""
        with self.journal.alone:
            return make_recall(self.setup, self.journal.session, self._turns_in_view).call(asked)

    def remember_agent(self) -> None:
        """Record the agent if it has changed."""
        agent = {"name": self.setup.agent.name, "path": self.setup.agent.path}
        if self.past.states.get("agent") != agent:
            self.journal.state("agent", agent)

    def _inherit(self, before: Sequence[EarlierSummary]) -> None:
        """Keep what is still in force in the sessions that this one continues."""
        store, sources = self.setup.store, self.setup.sources
        with self.journal.alone:
            found = [store.sessions_of(one.agent, one.session) for one in before]
            rows = [best_match(versions) for versions in found if versions]
            parents = [(row, session_state(store, sources, row)) for row in rows]
            with store.write():
                keep_inheritance(store, AGENT, self.journal.session, parents, self.setup.clock())
        if parents:
            self.carry_on(anew=True)


def _hold(setup: ChatSetup) -> int:
    """Return how many characters of messages are held: about those of the window. A bound provider needs all of them."""
    return 0 if setup.backend.bound else _CHARACTERS * setup.window


def make_recall(setup: ChatSetup, session: str = "", turns_in_view: int | None = None) -> ConversationRecall:
    """Return the recall tool for a session, or for none; `turns_in_view` are its last turns that the model sees."""
    from everturn.recall.tool import ConversationRecall

    own = Session(agent=AGENT, native_id=session) if session else None
    return ConversationRecall(
        setup.store, setup.sources, own, setup.clean, setup.clock, turns_in_view=turns_in_view
    )  # fmt: skip


def _count_prompts(messages: Sequence[ChatMessage]) -> int:
    return sum(one.role == "user" and any(part.kind == "text" for part in one.parts) for one in messages)


def _message_text(message: ChatMessage) -> str:
    return "".join(part.text for part in message.parts if part.kind in ("text", "result"))
