"""The actions on a session: resume, restore, export.

Nothing is overwritten: a file is written only where there is none. Enter on a session leaves and starts the command that goes
on with it, in its workspace: that of its agent, or else a chat. `r` shows the commands first.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding
from textual.timer import Timer
from textual.widgets import Input

from everturn.model.archive import Session
from everturn.sessions.lookup import short_ids
from everturn.store.contract import Store
from everturn.tui.archive import ScreenArchive
from everturn.tui.screen_frame import BrowserScreen, InputLine

#: Writes a new file completely or not at all and returns its size. Raises EverturnError.
Write = Callable[[str, Iterable[bytes]], int]


class StartCommand(Struct, frozen=True):
    """A command that goes on with a session: its words, the folder to run it in, and the line to type."""

    words: tuple[str, ...]
    folder: str
    line: str


class SessionActions(BrowserScreen):
    """A screen with sessions to act on."""

    SESSION_KEYS = (
        Binding("r", "resume", "commands", tooltip="the commands that continue the session"),
        Binding("d", "document", "restore", tooltip="what happened in the session, as a document with evidence"),
        Binding("e", "export", "export", tooltip="write the session to a file, as Markdown"),
    )

    def chosen_session(self) -> int | None:
        return None

    def _act(self, work: Callable[[int], Awaitable[None]]) -> None:
        session = self.chosen_session()
        if session is not None:
            self.do(work(session))

    def action_resume(self) -> None:
        """Show the commands that continue the session."""
        self._act(self._resume)

    def action_start(self) -> None:
        """Leave, and go on with the session."""
        self._act(partial(self._resume, at_once=True))

    async def _resume(self, session: int, at_once: bool = False) -> None:
        from everturn.chat.identity import agent_file
        from everturn.resume.handoff import own_workspace
        from everturn.tui.text_screen import resume_screen

        row, text = await self.archive.ask(lambda store: store.session(session))
        source = self.archive.sources.get(row.agent)
        folder = await self.archive.ask(lambda store: own_workspace(store, source, row)) if source else text.workspace
        command = resume_command(self.archive, row, folder) if folder is not None else ""
        apart = ["--"] if row.native_id.startswith("-") else []  # an id is never an option
        held_by = await self.archive.ask(lambda store: agent_file(store, row))
        own = ["everturn", "resume", *(["--agent", held_by] if held_by else []), *apart, row.native_id]
        ours = _command_line(own, text.workspace)
        if not command and not ours:
            self.say("its id cannot be used in a command; d shows what happened in it", "warn")
            return
        native = _native_command(self.archive, row) if command else []
        start = StartCommand(tuple(native or own), (native and folder) or text.workspace, command or ours)
        if at_once:
            self.browser.leave_with(start)
        else:
            self.app.push_screen(resume_screen(self.archive, command, ours, start))

    def action_document(self) -> None:
        self._act(self._document)

    async def _document(self, session: int) -> None:
        from everturn.tui.text_screen import TextScreen

        self.say("reading the session …", "dim")
        text = await self.archive.ask_separately(lambda store: document_text(self.archive, store, session))
        name = await self.archive.ask(lambda store: file_name(store, session, "restored.md"))
        self.show_keys()
        self.app.push_screen(TextScreen(self.archive, "restored", text, save_as=name))

    def action_export(self) -> None:
        """Write the session as Markdown to a file that the user names."""
        self._act(self._export)

    async def _export(self, session: int) -> None:
        name = await self.archive.ask(lambda store: file_name(store, session, "md"))

        async def write(target: str) -> None:
            await self.write(target, lambda store: session_markdown(self.archive, store, session))

        self.ask("write as Markdown to", name, write)

    async def write(self, target: str, pieces: Callable[[Store], Iterable[bytes]]) -> None:
        size = await self.archive.ask_separately(lambda store: self.browser.write(target, pieces(store)))
        self.say(f"wrote {size:,} bytes to {target}", "ok")


class TypingScreen(SessionActions):
    """A screen with a line to type into, which is applied a moment after the last key."""

    by_item = True
    wait = 0.15  # seconds

    def __init__(self, archive: ScreenArchive, label: str, typed: str) -> None:
        super().__init__(archive)
        self.typing = InputLine(label, typed)
        self._timer: Timer | None = None
        self._serial = 0  # of what was typed last

    def above(self) -> ComposeResult:
        yield self.typing

    async def apply_typed(self) -> None:
        """Show what fits the line."""

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input is not self.typing:
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(self.wait, lambda: self.do(self.apply_typed()))

    def action_type(self) -> None:
        self.set_focus(self.typing)


def resume_command(archive: ScreenArchive, session: Session, workspace: str) -> str:
    """Return the command that resumes a session in its agent; "" when the agent has none."""
    words = _native_command(archive, session)
    return _command_line(words, workspace) if words else ""


def _native_command(archive: ScreenArchive, session: Session) -> list[str]:
    source = archive.sources.get(session.agent)
    if source is None or source.resume_command is None or session.kind != "main":
        return []
    return list(source.resume_command(session.native_id))


def _command_line(words: Sequence[str], workspace: str) -> str:
    """Return a command as typed in a shell, with its folder; "" when it cannot be typed."""
    command = shlex.join(words)
    line = f"cd {shlex.quote(workspace)} && {command}" if workspace else command
    # An id comes from a foreign file: with control characters in it no command works.
    return line if line.isprintable() else ""


def document_text(archive: ScreenArchive, store: Store, session: int) -> str:
    """Return a session restored without a model, as Markdown."""
    from everturn.restore.job import RestoreTarget, restore_session
    from everturn.restore.markdown import document_markdown

    document = restore_session(RestoreTarget(store, store.session(session)[0]), archive.sources)
    return archive.text(document_markdown(document, archive.clean))


def session_markdown(archive: ScreenArchive, store: Store, session: int) -> Iterable[bytes]:
    from everturn.export.markdown import as_markdown

    for piece in as_markdown(store, archive.sources, store.session(session)[0], archive.clean):
        yield piece.encode("utf-8", "replace")


def file_name(store: Store, session: int, ending: str) -> str:
    """Return a file name for a session. Ids come from foreign files: only safe ASCII characters are kept."""
    short = short_ids([store.session(session)[0]], store)[session]
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in short)
    return f"{kept.strip('.') or 'session'}.{ending}"
