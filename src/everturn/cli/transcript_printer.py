"""A session on a terminal or as JSON, for `show` and, step by step in time, for `replay`: the same passages, the same cuts.

    ── Turn 1 · 2026-01-31 10:00 · 2m 3s ──
    ❯ a prompt
      an answer
    ⇉ 2 calls in parallel
    ✓ Read  12ms  src/a.py
    ✗ Bash  1s  exit 1  npm test

Our own lines start at the left edge, text of a transcript never does: so none can pose as a call or a turn.

Markdown of an answer for a terminal: headings, emphasis, code and lists in styles instead of signs.

Only the signs that a reader does not need are taken away; every word stays, in its order. Without colours nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from everturn.cli.output import Output, Pen, first_lines, in_one_line
from everturn.export.json_document import lineage_facts, passage_item, session_facts, source_facts, turn_facts
from everturn.model.archive import Call, Session
from everturn.model.conversation import CallStart
from everturn.sessions.lineage import Relative, lineage, relation_words
from everturn.sessions.lookup import short_ids
from everturn.sessions.messages import Pace, Passage, Sources, TurnView, has_words, input_text, is_shown, passages
from everturn.store.contract import Store
from everturn.text.printable import count_cells, plural, short_path, wrap_cells
from everturn.text.times import duration, iso, minute, turn_ms

_PROMPT = "❯ "  # the margin of a prompt
_PROSE = 60  # lines of a prompt or an answer
_OUTPUT = 12  # lines of the input or result of a call
_LABELS = {"summary": "summary by the client", "unknown": "unknown record"}
_MARKS = {"compaction": "── the context was compacted here ──", "interrupt": "✋ interrupted by the user"}
_TAKEN_BACK = "── taken back: the person went back before this ──"
_LIVE = "── continued from here ──"
_SIGNS = {"ok": ("green", "✓"), "error": ("red", "✗"), "open": ("yellow", "…"), "orphan": ("yellow", "?")}


@dataclass(frozen=True)
class PrintOptions:
    """The parts to show beyond prompts, answers and one line per call."""

    thinking: bool = False
    tools: bool = False
    context: bool = False
    full: bool = False

    def holds(self, passage: Passage) -> bool:
        return is_shown(passage, self.thinking, self.context)


class TranscriptPrinter:
    def __init__(self, out: Output, store: Store, sources: Sources, session: Session, options: PrintOptions) -> None:
        self.out, self.store, self.sources, self.session, self.options = out, store, sources, session, options
        self.pen = Pen(out)
        self.text = store.session(session.id)[1]
        self.relatives = lineage(store, session)
        self.children = self.relatives.children_by_call()
        related = [one.session for name in self.relatives.__struct_fields__ for one in getattr(self.relatives, name)]
        self.shorts = short_ids((one for one in related if one is not None), store)
        self.left_out: set[str] = set()

    # as JSON ----------------------------------------------------------------------------------------------------------
    def facts(self) -> dict[str, Any]:
        return {
            "session": session_facts(self.session, self.text),
            "source": source_facts(self.store, self.session),
            "lineage": lineage_facts(self.relatives),
        }

    def turn_facts(self, view: TurnView) -> dict[str, Any]:
        texts = passages(self.store, self.sources, self.session, view, self.options.tools)
        shown = (one for one in texts if self.options.holds(one))
        return {**turn_facts(view.turn), "passages": [self._item(one) for one in shown]}

    def _item(self, passage: Passage) -> dict[str, Any]:
        started = [one.native_id for one in self._children(passage.call)]
        return passage_item(passage, self.options.tools, started)

    # as text ----------------------------------------------------------------------------------------------------------
    def print_session(self, views: Iterable[TurnView]) -> None:
        self.print_head()
        for view in views:
            self.print_turn(view)
        self.print_hints()

    def print_head(self) -> None:
        out, session, text = self.out, self.session, self.text
        short = out.text(short_ids([session], self.store)[session.id])
        room = max(20, out.width - count_cells(short) - 2) if out.fancy else 100
        about = in_one_line(out, text.title or text.first_prompt, room)
        out.emit(f"{self.pen('bold', short)}  {about}".rstrip())
        work = [plural(session.n_turns, "turn"), plural(session.n_calls, "call"), plural(session.n_errors, "error")]
        branch = f"({text.branch})" if text.branch else ""
        facts = [
            out.text(session.native_id),
            " ".join(filter(None, (session.agent, session.client, session.model))),
            " ".join(filter(None, (text.workspace, branch))),
            " to ".join(minute(at) for at in (session.started, session.ended) if at is not None),
            ", ".join(work),
        ]
        for fact in filter(None, facts):
            out.emit_wrapped(self.pen("dim", out.text(fact)), "  ")
        for one in (*self.relatives.ancestors, *self.relatives.forks):
            below = one in self.relatives.ancestors
            out.emit(self.pen("dim", f"  {relation_words(one, below)} {self._name(one)}"))
        if session.state != "current":
            out.emit(self.pen("yellow", "  an older version: its file has been rewritten since"))
        if not has_words(session):
            out.emit(
                self.pen(
                    "yellow",
                    "  only the structure of this session was kept (mode structure): there are no words to show",
                )
            )

    def print_turn(self, view: TurnView) -> None:
        turn, out = view.turn, self.out
        parts = [f"Turn {turn.idx + 1}", minute(turn.started), duration(turn_ms(turn) or None)]
        parts += ["inherited"] * turn.inherited + ["taken back"] * turn.taken_back
        out.emit()
        out.emit(self.pen("cyan", f"── {' · '.join(filter(None, parts))} ──"))
        if not has_words(self.session):
            for call in view.calls:
                self._print_call(Passage("call", call=call))
            return
        step, is_gone = -1, bool(turn.taken_back)
        for passage in passages(self.store, self.sources, self.session, view, self.options.tools):
            if not self.options.holds(passage):
                self.left_out.add("thinking" if passage.kind == "thinking" else "context")
                continue
            if passage.row is not None and bool(passage.row.taken_back) is not is_gone:
                is_gone = not is_gone
                out.emit(self.pen("yellow", _TAKEN_BACK if is_gone else _LIVE))
            if passage.call is not None and passage.batch > 1 and passage.call.step != step:
                step = passage.call.step
                out.emit(self.pen("dim", f"⇉ {passage.batch} calls in parallel"))
            self._print_passage(passage)

    def print_hints(self) -> None:
        """Print the options that show what was left out."""
        known = {"thinking": "--thinking", "context": "--context", "tools": "--tools", "rest": "--full"}
        flags = [flag for name, flag in known.items() if name in self.left_out]
        if flags:
            self.out.say(f"\nthere is more: {' '.join(flags)}")
        point_to_why(self.out, self.store, self.session)

    def _print_passage(self, passage: Passage) -> None:
        out, pen = self.out, self.pen
        if passage.kind in ("call", "result"):
            self._print_call(passage)
        elif passage.kind in _MARKS:
            out.emit(pen("yellow", _MARKS[passage.kind]))
        elif passage.kind == "problem":
            out.emit(pen("red", f"⚠ could not be read: {out.text(passage.text)}"))
        elif passage.kind == "prompt":
            self._print_text(self._prompt(passage), _PROSE, _PROMPT, "bold")
        elif passage.kind == "answer":
            self._print_text(passage.text, _PROSE, "  ")
        elif passage.text:
            out.emit(pen("dim", f"[{_LABELS.get(passage.kind, passage.kind)}]"))
            self._print_text(passage.text, _OUTPUT, "  ", "dim")

    def _prompt(self, passage: Passage) -> str:
        """Return the text of a prompt; a slash command as it was typed, without the tags of its client."""
        if self.options.full or passage.row is None or passage.row.kind != "command":
            return passage.text
        from everturn.export.page.turn import words_of

        return words_of(passage).replace("\n", " ", 1)

    def _print_text(self, text: str, most: int, margin: str, style: str = "") -> None:
        lines, beyond = first_lines(self.out, text, 0 if self.options.full else most)
        for number, line in enumerate(lines if style else render_lines(lines, self.pen)):
            is_marked = margin != _PROMPT or number == 0 or not self.out.fancy
            self._print_line(line, margin if is_marked else "  ", style)
        if beyond:
            self.left_out.add("rest")
            self.out.emit(self.pen("dim", f"… {plural(beyond, 'more line')}"))

    def _print_line(self, line: str, margin: str, style: str) -> None:
        """Print a line of a text behind its margin, wrapped on a terminal; a prompt is marked at its beginning only."""
        if not self.out.fancy:
            shown = f"{margin}{line}".rstrip()
            self.out.emit(self.pen(style, shown) if style else shown)
            return
        lines = wrap_cells(line, max(20, self.out.width - len(margin)))
        for number, part in enumerate(lines):
            shown = f"{'  ' if number and margin == _PROMPT else margin}{part}".rstrip()
            self.out.emit(self.pen(style, shown) if style else shown)

    def _print_call(self, passage: Passage) -> None:
        call, start, out = passage.call, passage.start, self.out
        style, sign = _SIGNS[call.status if call else "open"]
        name = in_one_line(out, start.name if start else (call.name if call else "") or "result without a call", 40)
        went = "no result" if call is None or call.status == "open" else call.failure
        facts = "  ".join(filter(None, (duration(call.duration_ms) if call else "", went)))
        room = out.width - count_cells(f"{sign} {name}  {facts}  ") if out.fancy else max(40, out.width - 30)
        facts = "  ".join(filter(None, (facts, self._subject(start, max(20, room)))))
        out.emit(f"{self.pen(style, sign)} {self.pen('bold', name)}  {facts}".rstrip())
        for one in self._children(call):
            out.emit_wrapped(f"{relation_words(one)} {self._name(one)}", "  ", "↳ ")
        for commit in passage.commits:
            name = f"commit {commit.hash} " if commit.hash else "commit " * (not commit.url)
            out.emit_wrapped(f"{name}{in_one_line(out, commit.subject, 100)}", "  ", "↳ ")
        if self.options.tools:
            self._print_tool(passage)
        elif call is not None and (call.output_size or call.input_size):
            self.left_out.add("tools")

    def _subject(self, start: CallStart | None, room: int) -> str:
        """Return the command or the path of a call; a path within the workspace without it, shortened in its middle."""
        if start is None or start.command or not start.path:
            return in_one_line(self.out, start.command if start else "", room)
        root = self.text.workspace.rstrip("/\\")
        inside = start.path.startswith((f"{root}/", f"{root}\\")) if root else False
        path = start.path[len(root) + 1 :] if inside else start.path
        return short_path(self.out.text(path), room) if self.out.fancy else in_one_line(self.out, path, room)

    def _print_tool(self, passage: Passage) -> None:
        if passage.kind == "result":
            self._print_text(passage.text, _OUTPUT, "| ", "dim")
            return
        if passage.start is not None:
            self._print_text(input_text(passage.start), _OUTPUT, "> ", "dim")
        if passage.result is not None and passage.result.text:
            self._print_text(passage.result.text, _OUTPUT, "| ", "dim")

    def _children(self, call: Call | None) -> list[Relative]:
        return self.children.get((call.seq, call.idx), []) if call is not None else []

    def _name(self, one: Relative) -> str:
        if one.session is None:
            return f"{self.out.text(one.native_id)} (not in the archive)"
        return self.out.text(self.shorts[one.session.id])


def point_to_why(out: Output, store: Store, session: Session) -> None:
    """Say how to get from the files and commits of a session to the turns behind them."""
    edited = {one.row.path for one in store.edits_of_session(session.id)}
    if edited:
        files = plural(len(edited), "edited file")
        out.say(
            f"\n{files}: `everturn why FILE` says which turn wrote a line, `everturn why COMMIT` who wrote a commit"
        )


class PacedPrinter(TranscriptPrinter):
    """Waits before each passage until its time. A call is shown at its start."""

    def __init__(
        self, out: Output, store: Store, sources: Sources, session: Session, options: PrintOptions, pace: Pace
    ) -> None:
        super().__init__(out, store, sources, session, options)
        self._pace = pace

    def moments(self, views: Iterable[TurnView]) -> Iterator[dict[str, Any]]:
        """Yield the turns for JSON, each with the time since the previous one."""
        before: int | None = None
        for view in views:
            if has_words(self.session):
                texts = self.turn_facts(view)["passages"]
            else:
                texts = [{"kind": "call", "tool": call.name, "at": iso(call.started) or None} for call in view.calls]
            times = [row.at for row in view.rows if row.at is not None]
            start = min(times, default=None)
            wait = max(0, start - before) if start is not None and before is not None else 0
            before = max(times, default=before)
            yield {"turn": view.turn.idx + 1, "after_ms": wait, "steps": texts}

    def _print_passage(self, passage: Passage) -> None:
        if passage.kind not in ("call", "result"):  # `_print_call` waits for those
            self._wait(passage.row.at if passage.row is not None else None)
        super()._print_passage(passage)

    def _print_call(self, passage: Passage) -> None:
        call = passage.call
        self._wait(call.started if call is not None else passage.row.at if passage.row is not None else None)
        super()._print_call(passage)

    def _wait(self, at: int | None) -> None:
        self.out.stdout.flush()
        self._pace.wait_for(at)


# --- Markdown of an answer for a terminal: headings, emphasis, code and lists in styles instead of signs ---
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)$")
_INLINE = re.compile(r"(?P<code>`[^`\n]{1,400}`)|\*\*(?P<strong>[^*\s](?:[^*\n]{0,400}[^*\s])?)\*\*")


def render_lines(lines: Iterable[str], pen: Pen) -> Iterator[str]:
    """Yield cleaned lines of Markdown in styles."""
    in_code = False
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
            yield pen("dim", line) if pen.on else line
        elif not pen.on:
            yield line
        elif in_code:
            yield pen("cyan", line)
        elif found := _HEADING.match(line):
            yield pen("bold", found[2])
        elif found := _BULLET.match(line):
            yield f"{found[1]}• {_style_inline(found[2], pen)}"
        else:
            yield _style_inline(line, pen)


def _style_inline(text: str, pen: Pen) -> str:
    return _INLINE.sub(
        lambda found: pen("cyan", found["code"][1:-1]) if found["code"] else pen("bold", found["strong"]), text
    )
