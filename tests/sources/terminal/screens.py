"""Sessions of full-screen clients as terminal bytes, from a script whose truth is known.

`Boxes` and `Panels` lay a conversation out like OpenCode 0.x and 1.x. Every step of a script (`ask`, `answer`, `call`,
`queue`, `scroll` …) draws some frames and notes what a reader must find.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.sources.terminal.drawing import (
    BLACK,
    BLUE,
    DARK,
    MUTED,
    ORANGE,
    PURPLE,
    RED,
    TEXT,
    Block,
    Client,
    Expected,
    Row,
    fold,
)


class Boxes(Client):
    """OpenCode 0.x."""

    top, bottom = 4, 6
    tokens = "44.5K/21%"

    @property
    def room(self) -> int:
        """Cells for text in a box."""
        return self.columns - 10

    def header(self) -> list[Row]:
        """Title and tokens."""
        inner = self.columns - 8
        share = "/share to create a shareable link"
        return [
            [],
            [("  ┃  ", 0x1E1E1E), (f"# {self.title}".ljust(inner), TEXT), ("┃", 0x1E1E1E)],
            [
                ("  ┃  ", 0x1E1E1E),
                (f"{share.ljust(inner - 2 - len(self.tokens))}{self.tokens}  ", MUTED),
                ("┃", 0x1E1E1E),
            ],
            [],
        ]

    def footer(self) -> list[Row]:
        """Input field and status."""
        inner = self.columns - 6
        working = f"   working{'.' * (self.ticks % 3 + 1)}  esc interrupt" if self.working else "   enter send"
        return [
            [("  ┃", BLUE), (" " * inner, None), ("┃", BLUE)],
            [("  ┃", BLUE), (f" > {self.typed}".ljust(inner)[:inner], TEXT), ("┃", BLUE)],
            [("  ┃", BLUE), (" " * inner, None), ("┃", BLUE)],
            [(working.ljust(self.columns - 30), MUTED), ("Z.AI Coding Plan GLM-4.6", MUTED)],
            [],
            [(" opencode v0.13.5  /srv/demo:main".ljust(self.columns - 20), MUTED), ("tab ┃ BUILD AGENT", TEXT)],
        ]

    def box(self, lines: Sequence[str], colour: int, tint: int = TEXT) -> list[Row]:
        """A box around some lines."""
        bordered = ["", *lines, ""]
        return [
            [("  ", None), ("┃", colour), (f"  {line.ljust(self.room)}  ", tint), ("┃", colour)] for line in bordered
        ]

    def ask(self, text: str, time: str = "02:36 PM", author: str = "ada") -> Block:
        """The human sends a message."""
        self.type(text.split("\n", maxsplit=1)[0])
        self.typed = ""
        lines = [*fold(text, self.room), f"{author} ({time})"]
        block = Block(self.box(lines, BLUE), None, Expected("user", text, author=author, time_text=time))
        self.show(block)
        return block

    def queue(self, text: str, time: str = "02:37 PM", author: str = "ada") -> Block:
        """A message sent while the agent works."""
        lines = [" QUEUED", "", *fold(text, self.room), f"{author} ({time})"]
        block = Block(self.box(lines, PURPLE))
        self.show(block)
        return block

    def unqueue(self, block: Block, text: str, time: str = "02:37 PM", author: str = "ada") -> None:
        """The waiting message gets its turn."""
        block.rows = self.box([*fold(text, self.room), f"{author} ({time})"], BLUE)
        self.draw()
        self.truth[-1].append(Expected("user", text, author=author, time_text=time, queued=True))

    def answer(
        self,
        text: str,
        mode: str = "Build",
        model: str = "glm-4.6",
        time: str = "02:36 PM",
        before: Block | None = None,
    ) -> None:
        """The model answers, a few lines at a time."""
        self.working = True
        waiting = Block([[], [("     Generating...", MUTED)], [(f"     {mode} {model} ({time})", MUTED)], []])
        self.blocks.insert(len(self.blocks) if before is None else self.blocks.index(before), waiting)
        self.draw()
        self.blocks.remove(waiting)
        lines = fold(text, self.room)
        expected = Expected("assistant", "\n".join(lines), mode=mode, model=model, time_text=time)
        end: list[Row] = [[("     ", None), (f"{mode} ", PURPLE), (f"{model} ({time})", MUTED)], []]
        block = Block([], None, expected)
        self.blocks.insert(len(self.blocks) if before is None else self.blocks.index(before), block)
        for n in range(1, len(lines) + 1):
            drawn: list[Row] = [[(f"     {line}", TEXT)] for line in lines[:n]]
            block.rows = [[], *drawn, *end]
            self.draw()
        self.working = False
        self.truth[-1].append(expected)

    def call(
        self, title: str, body: Sequence[str] = (), pending: str = "Working...", failed: bool = False, **call: object
    ) -> None:
        """A tool call: first only announced, then with its title and what it gave."""
        waiting = Block(self.box([pending], DARK, MUTED))
        self.blocks.append(waiting)
        self.draw()
        self.blocks.remove(waiting)
        rows = self.box([title, "", *body], DARK, MUTED)
        if failed:
            rows[1] = [rows[1][0], rows[1][1], (rows[1][2][0], RED), rows[1][3]]
        expected = Expected("assistant", call={"title": title, "status": "error" if failed else "ok", **call})
        self.show(Block(rows, None, expected))

    def permission(self, title: str, body: Sequence[str]) -> Block:
        """The client asks before it runs a tool."""
        ask = ["", "", "Permission required to run this tool:", "", "enter accept   a accept always   esc reject"]
        block = Block(self.box([title, "", *body, *ask], ORANGE, MUTED))
        self.show(block)
        return block

    def think(self, text: str, mode: str = "Build", model: str = "glm-4.6", time: str = "02:36 PM") -> None:
        """Thoughts, in a box with the model below them."""
        lines = fold(text, self.room)
        expected = Expected("assistant", thinking="\n".join(lines), mode=mode, model=model, time_text=time)
        self.show(Block(self.box(["Thinking...", "", *lines, f"{mode} {model} ({time})"], DARK), None, expected))

    def abort(self) -> None:
        """The human stops the answer."""
        words = "Request was aborted"
        self.show(Block(self.box([words], RED), None, Expected("assistant", words, "interrupt", aborted=True)))


class Panels(Client):
    """OpenCode 1.x."""

    top, bottom = 1, 7
    sync = True
    agent = BLUE
    side: Sequence[str] = ()  # lines of the sidebar

    @property
    def wide(self) -> int:
        """Cells for the conversation."""
        return self.columns - (42 if self.side else 0)

    @property
    def room(self) -> int:
        """Cells for text in a panel."""
        return self.wide - 7

    def header(self) -> list[Row]:
        """Nothing but an empty row."""
        return [[]]

    def footer(self) -> list[Row]:
        """Input field and status."""
        inner = self.wide - 5
        bar: Row = [("  ", None), ("┃", self.agent), (" " * inner, None)]
        busy = (
            f"   {'■' * (self.ticks % 8)}{'⬝' * (8 - self.ticks % 8)}  esc interrupt"
            if self.working
            else "   /srv/demo"
        )
        return [
            [],
            bar,
            [("  ", None), ("┃", self.agent), (f"  {self.typed}".ljust(inner)[:inner], TEXT)],
            bar,
            [("  ", None), ("┃", self.agent), ("  Build", self.agent), (" · m Local".ljust(inner - 7), MUTED)],
            [("  ", None), ("╹", self.agent), ("▀" * inner, 0x1E1E1E)],
            [(busy.ljust(self.wide - 30), MUTED), ("9.2K (1%) · ctrl+p commands", MUTED)],
        ]

    def frame(self, rows: list[Row], scrolled: tuple[int, int, int]) -> None:
        """One frame; a sidebar stays where it is, so nothing can be shifted."""
        if not self.side:
            return super().frame(rows, scrolled)
        for n, line in enumerate(self.side):
            used = sum(len(text) for text, _ in rows[n + 1])
            rows[n + 1] = [*rows[n + 1], (" " * (self.wide - used), None), (f"  {line}", MUTED)]
        return self.painter.frame(rows)

    def panel(self, lines: Sequence[str], colour: int, tint: int = TEXT) -> list[Row]:
        """A bar beside some lines."""
        return [[("  ", None), ("┃", colour), (f"  {line}".ljust(self.room + 2), tint)] for line in ["", *lines, ""]]

    def ask(self, text: str) -> Block:
        """The human sends a message."""
        self.type(text.split("\n", maxsplit=1)[0])
        self.typed = ""
        block = Block(self.panel(fold(text, self.room), self.agent), None, Expected("user", text))
        self.show(block)
        return block

    def queue(self, text: str) -> Block:
        """A message sent while the agent works."""
        block = Block(self.panel([*fold(text, self.room), " QUEUED "], self.agent))
        self.show(block)
        return block

    def unqueue(self, block: Block, text: str) -> None:
        """The waiting message gets its turn."""
        block.rows = self.panel(fold(text, self.room), self.agent)
        self.draw()
        self.truth[-1].append(Expected("user", text, queued=True))

    def answer(self, text: str, before: Block | None = None) -> None:
        """The model answers, a line at a time."""
        self.working = True
        lines = fold(text, self.room - 2)
        block = Block([], None, Expected("assistant", "\n".join(lines)))
        self.blocks.insert(len(self.blocks) if before is None else self.blocks.index(before), block)
        for n in range(1, len(lines) + 1):
            block.rows = [[(f"     {line}", TEXT)] for line in lines[:n]]
            self.draw()
        assert block.expected is not None
        self.truth[-1].append(block.expected)

    def inline(self, line: str, **call: object) -> None:
        """A call in one line."""
        self.show(Block([[(f"     {line}", MUTED)]], None, Expected("assistant", call={"title": line, **call})))

    def block(self, lines: Sequence[str], **call: object) -> None:
        """A call with a panel of its own."""
        self.blocks.append(waiting := Block([[("     ~ Writing command...", TEXT)]]))
        self.draw()
        self.blocks.remove(waiting)
        self.show(Block(self.panel(lines, BLACK, MUTED), None, Expected("assistant", call=call)))

    def think(self, text: str) -> None:
        """Thoughts, beside a bar of their own."""
        lines = fold(f"Thinking: {text}", self.room)
        rows = [[("  ", None), ("┃", 0x1E1E1E), (f"  {line}", MUTED)] for line in lines]
        expected = Expected("assistant", thinking="\n".join(lines).removeprefix("Thinking: "))
        self.show(Block(rows, None, expected))

    def end(self, time: str = "36.1s", mode: str = "Build", model: str = "Model One", ms: int | None = None) -> None:
        """The end of a turn, with how long it took; without a time it was stopped."""
        self.working = False
        row: Row = [("     ", None), ("▣ ", self.agent), (f" {mode}", TEXT), (f" · {model}", MUTED)]
        row += [(f" · {time}", MUTED)] if time else []
        self.show(Block([row]))
        turn = self.truth[-1]
        last = max((n for n, one in enumerate(turn) if one.role == "user"), default=-1)
        for one in turn[last + 1 :]:
            one.mode, one.model = one.mode or mode, one.model or model
        if ms is not None:
            turn[-1].duration_ms = ms

    def interrupt(self, mode: str = "Build", model: str = "Model One") -> None:
        """The human stops the answer."""
        self.end("interrupted", mode, model)
        expected = Expected("assistant", "interrupted", "interrupt", aborted=True, mode=mode, model=model)
        self.truth[-1].append(expected)


class Prompts:
    """Claude Code: the main screen, with an input field that is wiped and drawn again below what was said."""

    def __init__(self, columns: int = 100, rows: int = 30) -> None:
        self.columns, self.height = columns, rows
        self.out = bytearray(b"$ claude\r\n")
        self.truth: list[list[Expected]] = [[]]
        self.below = 0  # rows of the input field on the screen
        self.say([" ▐▛███▜▌   Claude Code v2.1.197", "▝▜█████▛▘  Sonnet 4.5", "  ▘▘ ▝▝    /srv/demo", ""])

    def say(self, lines: Sequence[str], busy: str = "", typed: str = "") -> None:
        """Lines that stay, and below them the input field."""
        rule = "─" * self.columns
        field = [*([busy, ""] if busy else []), rule, f"❯ {typed}", rule, "  ? for shortcuts"]
        wipe = f"\r\x1b[{self.below - 1}A\x1b[J" if self.below else ""
        self.out += (wipe + "".join(f"{line}\r\n" for line in lines) + "\r\n".join(field)).encode()
        self.below = len(field)

    def ask(self, text: str) -> None:
        """The human sends a message."""
        self.say([], typed=text[: self.columns // 2])
        first, *rest = fold(text, self.columns - 2)
        self.say([f"❯ {first}", *(f"  {line}" if line else "" for line in rest), ""])
        self.truth[-1].append(Expected("user", text))

    def answer(self, text: str) -> None:
        """The model answers, with a turning line before that."""
        for tick in "·✢✳✶✻✽":
            self.say([], busy=f"{tick} Frosting… (3s · esc to interrupt)")
        lines = fold(text, self.columns - 2)
        self.say([f"● {lines[0]}", *(f"  {line}" if line else "" for line in lines[1:]), ""])
        self.truth[-1].append(Expected("assistant", "\n".join(lines)))

    def call(self, title: str, printed: Sequence[str], **call: object) -> None:
        """A tool call and what it printed."""
        self.say([], busy="✻ Running… (1s · esc to interrupt)")
        first, *rest = printed
        self.say([f"● {title}", f"  ⎿  {first}", *(f"     {line}" for line in rest), ""])
        self.truth[-1].append(Expected("assistant", call={"title": title, **call}))

    def end(self, span: str, ms: int) -> None:
        """How long the turn took."""
        self.say([f"✻ Baked for {span}", ""])
        self.truth[-1][-1].duration_ms = ms

    def close(self) -> bytes:
        """The whole recording."""
        self.out += f"\r\x1b[{self.below - 1}A\x1b[J$ exit\r\n".encode()
        return bytes(self.out)
