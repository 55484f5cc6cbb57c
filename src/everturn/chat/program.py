"""The chat program: read a line, run it as a command or send it to the model, and show the result.

A bare word is a command only if it is the whole line, so that people can begin a sentence with any word. A session begins
with its first message, so that looking around leaves nothing behind. Ctrl-C stops an answer and keeps what came; Ctrl-D,
`/exit` and the end of a pipe leave. Calls that need approval are asked about one by one; without a terminal they are
refused. A failure is shown in a sentence, and the conversation goes on.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.chat.earlier_sessions import EarlierSession, chain_text, find_earlier, list_earlier, save, write_private
from everturn.chat.identity import ResumptionDeclined, confirm_identity
from everturn.chat.screen import ChatScreen, InputEnded, describe_call, describe_call_fully
from everturn.chat.setup import ChatSetup, report
from everturn.chat.summaries import read_kept_summary
from everturn.errors import EverturnError, NothingFound, SessionNotFound

if TYPE_CHECKING:
    from everturn.chat.conversation import Conversation
    from everturn.loop.loop import Outcome, WaitingCall, Watch
    from everturn.model.archive import Session


#: Every command with its argument and description, as /help shows them.
COMMANDS = {
    "help": ("", "this list"),
    "sessions": ("", "earlier sessions of this workspace"),
    "resume": ("[N|ID]", "go on from another session; without a name: the list"),
    "compact": ("", "summarise this session and go on in a new one"),
    "recall": ("WORDS", "look something up in the archive yourself"),
    "pin": ("TEXT", "keep a sentence in the session state for good"),
    "state": ("", "the session state, as the model gets it"),
    "tokens": ("", "tokens used so far: restoration, session, combined"),
    "context": ("", "how full the context window is"),
    "retry": ("", "ask again where an answer is missing or was cut off"),
    "save": ("[FILE]", "write the conversation as Markdown; `/save chain FILE`: with the sessions before it"),
    "copy": ("", "copy the last answer to the clipboard of the terminal"),
    "exit": ("", "leave (so do quit and Ctrl-D)"),
}
_OTHER_NAMES = {"quit": "exit", "q": "exit", "?": "help"}
_BARE_COMMAND = re.compile(r"(exit|quit|compact|sessions|help|resume)|resume +(\d{1,6})", re.IGNORECASE)
_MARKED_COMMAND = re.compile(r"[/#](\w+|\?)(?:[ \t]+(\S.*))?", re.DOTALL)


#: What a person is told when a turn did not end with a whole answer.
_ENDS = {
    "cancelled": "(stopped; what came is kept)",
    "cut": "(the answer was cut off again; /retry asks for it)",
    "over_budget": "(the model was asked too often for one request; /retry goes on)",
    "truncated": "(the answer reached the model's limit of tokens; say `go on` for the rest)",
    "refused": "(the model or its provider declined to answer)",
}
_UNANSWERED = ("cancelled", "cut", "over_budget")


class ChatCommand(Struct, frozen=True):
    """A command and its argument. A name that is not in `COMMANDS` is a mistake of the user."""

    name: str
    rest: str = ""

    @property
    def is_known(self) -> bool:
        return self.name in COMMANDS


def parse(line: str) -> ChatCommand | None:
    """Return the command of a line; None if it is a message to the model.

    A marked word counts if it is a command or the whole line: `/etc/hosts is wrong` and `# Notes` are messages.
    """
    text = line.strip()
    bare = _BARE_COMMAND.fullmatch(text)
    if bare is not None:
        return ChatCommand("resume", bare[2]) if bare[2] else ChatCommand(_command_name(bare[1]))
    marked = _MARKED_COMMAND.fullmatch(text)
    if marked is None:
        return None
    found = ChatCommand(_command_name(marked[1]), (marked[2] or "").strip())
    return found if found.is_known or (text[0] == "/" and not found.rest) else None


def help_text() -> str:
    named = {f"/{name} {argument}".strip(): what for name, (argument, what) in COMMANDS.items()}
    width = max(map(len, named))
    lines = [f"  {name:<{width}}  {what}" for name, what in named.items()]
    return "\n".join(
        [
            "Commands (also with #; exit, quit, compact, resume, resume N, sessions and help alone on a line, too):",
            *lines,
            "A \\ at the end of a line goes on in the next one; pasted blocks stay together.",
            "Ctrl-C stops an answer and keeps what came; Ctrl-D leaves.",
        ]
    )


def _command_name(word: str) -> str:
    return _OTHER_NAMES.get(word.lower(), word.lower())


#: A longer conversation is saved to its file only every few turns and at its end: the archive has it anyway.
_SAVED_ALWAYS, _SAVED_EACH = 40, 10
_MOST_ARGUMENT_LINES = 12  # of an argument that are shown for approval


class ChatProgram:
    def __init__(self, setup: ChatSetup, screen: ChatScreen) -> None:
        self.setup, self.screen = setup, screen
        self.conversation: Conversation | None = None
        self.answers: list[Outcome] = []
        self._listed: list[EarlierSession] = []
        self._always: set[str] = set()  # tools approved for the rest of the chat
        self._left_out, self._told_cuts = False, list[str]()  # as the person was told last

    @property
    def watch(self) -> Watch:
        from everturn.loop.loop import Watch

        return Watch(self.screen.delta, self.screen.call)

    def run(self) -> None:
        if self.screen.is_terminal and self.conversation is None:
            who = self.setup.agent.name if self.setup.agent.path else self.setup.backend.model
            self.screen.say(f"{who} in {self.setup.workspace or '.'}; /help lists what can be typed, Ctrl-D leaves")
        going = True
        while going:
            try:
                line = self.screen.prompt()
            except InputEnded:
                break
            except KeyboardInterrupt:
                if not self.screen.is_terminal:
                    break
                self.screen.say("\n(Ctrl-D or /exit leaves)")
                continue
            if line.strip():
                going = self.take(line)
        self._leave()

    def take(self, line: str) -> bool:
        """Handle one line; False if it was the last."""
        command = parse(line)
        try:
            if command is None:
                self.say(line)
            elif command.name == "exit":
                return False
            else:
                self._command(command)
        except EverturnError as failure:
            self.screen.say(f"everturn: {failure}")
        except KeyboardInterrupt:
            self.screen.say("\nstopped")
        return True

    def _leave(self) -> None:
        if self.conversation is None:
            self.screen.say("Goodbye!")
            return
        from everturn.chat.compaction import leave_conversation

        leave_conversation(self.conversation, self.screen)

    # --- turns ---
    def begin(self) -> Conversation:
        """Return the session, a new one if none is open."""
        if self.conversation is None:
            from everturn.chat.conversation import Conversation

            self.conversation = Conversation.begin(self.setup, watch=self.watch)
        return self.conversation

    def say(self, text: str) -> None:
        conversation = self.begin()
        if conversation.past.open_calls:  # left by a process that died: settle them before anything new
            self._follow_turn(conversation, conversation.go_on)
            if conversation.past.open_calls:
                self.screen.say("Calls of the last answer still wait for you: /retry asks about them again.")
                return
        self._follow_turn(conversation, lambda: conversation.send(text))

    def _follow_turn(self, conversation: Conversation, start: Callable[[], Outcome]) -> None:
        """Run a turn to its end: approvals, one retry of a truncated answer, and the final messages."""
        self.screen.begin_answer(self.setup.agent.name)
        try:
            outcome = start()
            was_cut = False
            while outcome.state == "paused" or (outcome.state == "cut" and not was_cut):
                was_cut = was_cut or outcome.state == "cut"
                if outcome.state == "cut":
                    self.screen.say("the answer was cut off; asking again")
                elif not self._decide_calls(conversation, outcome.waiting):
                    break
                self.screen.begin_answer(self.setup.agent.name)
                outcome = conversation.go_on()
        finally:
            self.screen.end_answer()
            self._save_turn(conversation)
        self.answers.append(outcome)
        if outcome.state in _ENDS:
            self.screen.say(_ENDS[outcome.state])
        if outcome.state not in _UNANSWERED and (outcome.reply is not None or outcome.state == "done"):
            conversation.meter.record_usage(self.setup.asker.receipts[-1].usage)
        self._tell_cuts(conversation)
        if suggestion := conversation.meter.suggestion():
            self.screen.say(suggestion)

    def _tell_cuts(self, conversation: Conversation) -> None:
        """Tell in one line what the model does not see of the conversation, when that has changed."""
        cuts = list(dict.fromkeys(one for one in conversation.said if "cut" in one or "longer than" in one))
        if conversation.left_out and not self._left_out:
            cuts.append("earlier messages are no longer in view; recall finds them")
        self._left_out = bool(conversation.left_out)
        if set(cuts).difference(self._told_cuts):
            self.screen.say(f"(in the request: {'; '.join(cuts)})")
        self._told_cuts = cuts

    def _decide_calls(self, conversation: Conversation, waiting: tuple[WaitingCall, ...]) -> bool:
        """Ask about each waiting call; False if there is none."""
        for call in waiting:
            verdict = "a" if call.name in self._always and call.why == "approval" else self._ask_verdict(call)
            if verdict == "a":
                self._always.add(call.name)
            if verdict in ("y", "a"):
                conversation.journal.approve(call.call_id, self.setup.owner)
            else:
                conversation.journal.deny(call.call_id, by=self.setup.owner)
        return bool(waiting)

    def _ask_verdict(self, call: WaitingCall) -> str:
        self.screen.end_answer()
        if call.why == "in_doubt":
            self.screen.say(
                f"? {describe_call(call.name, call.arguments)}: begun before a crash, nobody knows how it ended"
            )
            return self.screen.choose("  Run it again? (y/n) ", "n").lower()[:1]
        self.screen.say(short := describe_call_fully(call.name, call.arguments, _MOST_ARGUMENT_LINES))
        is_whole = short == (whole := describe_call_fully(call.name, call.arguments))
        verdict = self.screen.choose(
            f"  Allow it? (y/n/a = always in this chat{'' if is_whole else '/s = show all'}) ", "n"
        )
        if verdict.lower()[:1] == "s" and not is_whole:
            self.screen.say(whole)
            verdict = self.screen.choose("  Allow it? (y/n/a = always in this chat) ", "n")
        return verdict.lower()[:1]

    def _save_turn(self, conversation: Conversation) -> None:
        from everturn.chat.compaction import save_conversation

        conversation.carry_on()
        turns = conversation.row.n_turns
        if turns <= _SAVED_ALWAYS or turns % _SAVED_EACH == 0:
            save_conversation(conversation, self.screen)

    # --- commands ---
    def _command(self, command: ChatCommand) -> None:
        handler = getattr(self, f"_on_{command.name}", None) if command.is_known else None
        if handler is None:
            self.screen.say(f"there is no command /{command.name}; /help lists them")
            return
        handler(command.rest)

    def _on_help(self, rest: str) -> None:
        self.screen.show(help_text())

    def _on_sessions(self, rest: str) -> None:
        self._listed = self.list()
        lines = [choice.line(self.screen.width) for choice in self._listed]
        self.screen.show("\n".join(lines) or "No earlier sessions in this workspace.")

    def list(self) -> list[EarlierSession]:
        """Return earlier sessions of the workspace, without the open one."""
        setup, conversation = self.setup, self.conversation
        with conversation.journal.alone if conversation is not None else nullcontext():
            own = conversation.journal.session if conversation is not None else ""
            return list_earlier(setup.store, setup.workspace, setup.clock(), setup.machine, own)

    def _on_resume(self, rest: str) -> None:
        if not rest:
            self._on_sessions("")
            self.screen.say("Take one up with /resume N or /resume ID.")
            return
        listed = self._listed or self.list()
        try:
            with self.conversation.journal.alone if self.conversation else nullcontext():
                session = find_earlier(self.setup.store, rest, listed)
        except SessionNotFound:
            self.screen.warn(
                f"Session {rest} not found; this conversation goes on. /sessions lists those of this workspace"
            )
            return
        if self.conversation is not None and session.native_id == self.conversation.journal.session:
            self.screen.say("That is the session you are in.")
            return
        self._change_to(session)

    def _change_to(self, session: Session) -> None:
        """Resume another session; on failure this one stays open."""
        from everturn.chat.compaction import save_conversation
        from everturn.chat.conversation import Conversation
        from everturn.chat.resumption import take_up

        before, self._listed = self.conversation, []
        try:
            with before.journal.alone if before is not None else nullcontext():
                confirm_identity(self.setup, [session], self.screen)
        except ResumptionDeclined:
            self.screen.say("Not resumed; this conversation goes on.")
            return
        if before is not None:
            save_conversation(before, self.screen)
            before.close()
        try:
            self.conversation = take_up(self.setup, [session], self.screen, self.watch, "summary", force=True)
        except EverturnError as failure:
            self.screen.warn(str(failure))
            self.conversation = before and Conversation.take_up(self.setup, before.journal.session, self.watch)

    def _on_compact(self, rest: str) -> None:
        from everturn.chat.compaction import compact

        if self.conversation is None:
            self.screen.say("There is nothing to compact yet.")
            return
        self.conversation = compact(self.conversation, self.screen, self.watch)

    def _on_recall(self, rest: str) -> None:
        from everturn.chat.conversation import make_recall

        asked = {"action": "search", "query": rest} if rest else {"action": "summary"}
        conversation = self.conversation
        self.screen.show(conversation.recall(**asked) if conversation else make_recall(self.setup).call(asked))

    def _on_pin(self, rest: str) -> None:
        if not rest:
            self.screen.say("/pin TEXT: what is to be kept?")
            return
        self.begin().pin(rest)
        self.screen.say(f"Pinned: {rest}")

    def _on_state(self, rest: str) -> None:
        self.screen.show(self._require_conversation().state_text())

    def _on_tokens(self, rest: str) -> None:
        conversation = self._require_conversation()
        self.screen.show(report(conversation.count_tokens(), conversation.queries))

    def _on_context(self, rest: str) -> None:
        conversation = self._require_conversation()
        left_out = conversation.left_out
        out = f"; {left_out} earlier messages are out of view, recall finds them" if left_out else ""
        self.screen.show(f"Context {conversation.meter.describe()}{out}")

    def _on_retry(self, rest: str) -> None:
        conversation = self.conversation
        if conversation is None or not (conversation.past.open_calls or conversation.past.awaits_model):
            self.screen.say("Nothing waits for an answer.")
            return
        self._follow_turn(conversation, conversation.go_on)

    def _on_save(self, rest: str) -> None:
        conversation = self._require_conversation()
        words = rest.split(maxsplit=1)
        with conversation.journal.alone:
            if words and words[0] == "chain":
                target = Path(words[1] if len(words) > 1 else f"{conversation.journal.session[:8]}-chain.md")
                write_private(self._absolute_path(target), [chain_text(self.setup, conversation.row)])
                self.screen.say(f"✓ Saved: {self._absolute_path(target)}")
                return
            found = read_kept_summary(self.setup, conversation.row)
            given = self._absolute_path(Path(rest)) if rest else None
            path = save(self.setup, conversation.row, found.text if found else "", given)
        self.screen.say(f"✓ Saved: {path}" if path else "Conversations are not saved here: /save FILE writes one.")

    def _on_copy(self, rest: str) -> None:
        answer = self._require_conversation().last_answer
        if answer and self.screen.is_terminal:  # OSC 52: the terminal copies it to its clipboard, also over ssh
            self.screen.out.write(f"\x1b]52;c;{b64encode(answer.encode('utf-8', 'replace')).decode()}\x07")
            self.screen.say("Copied, if your terminal allows it.")
        else:
            self.screen.show(answer)

    def _require_conversation(self) -> Conversation:
        if self.conversation is None:
            raise NothingFound("nothing has been said yet; say something first")
        return self.conversation

    def _absolute_path(self, path: Path) -> Path:
        return path if path.is_absolute() else Path(self.setup.workspace or ".") / path
