"""One turn as HTML: prompt, answer, folded thinking, and calls with their results.

Parallel calls of one step are shown side by side. Marks show where the context was compacted, the user interrupted, time
passed, or a copied session continues. The markup is yielded in parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from everturn.export.markdown import minute_text
from everturn.export.page.calls import call_html, fold_html, record_html
from everturn.export.page.content import markdown_html, pictures_html
from everturn.export.page.markup import Html, PageLook, PageRoom, element
from everturn.model.archive import Turn
from everturn.sessions.messages import TurnView
from everturn.sessions.transcript import Passage, is_quiet
from everturn.text.printable import plural, short_number
from everturn.text.times import duration, iso, turn_ms

_PAUSE = 6 * 3_600_000  # the shortest pause between two turns that is marked, in ms
_LABELS = {
    "thinking": "Thinking",
    "context": "Context",
    "summary": "Summary by the client",
    "notice": "Notice",
    "notification": "Notification",
    "output": "Output",
    "unknown": "Unknown record",
}
_MARKS = {
    "compaction": "The context was compacted",
    "interrupt": "Interrupted by the user",
    "problem": "Could not be read",
    "resumed": "Resumed here: everything above was copied from another session",
    "pause": "later",
}
_MOST_LINES, _SEEN_LINES = 40, 24  # of typed text: one with more lines than the first is folded after the second
_SHORT = 100  # a compaction text of at most so many characters adds nothing to its mark
_PROMPT_LABELS = {"command": "command", "shell": "shell", "queued": "typed while the agent worked"}
_TAG = re.compile(r"</?[a-z][a-z0-9-]{0,40}>")  # tags of clients around commands and their output
_FOLDED_KINDS = ("thinking", "context", "summary", "unknown")


def turn_html(
    view: TurnView, passages: Iterable[Passage], look: PageLook, before: Turn | None = None, is_continued: bool = False
) -> Iterator[Html]:
    """Yield a turn with its passages (`sessions.transcript.passages(…, results=True)`); `before` is the turn above.

    `is_continued` is for the later messages of a long turn: they get a short heading and an anchor of their own.
    """
    yield from _pause_marks(view.turn, before)
    number = view.turn.idx + 1
    name = f"{look.anchor}{number}" + (f"-{view.turn.first_seq + 1}" if is_continued else "")
    state = " inherited" * bool(view.turn.inherited) + " continued" * is_continued
    yield Html(f'<section class="turn{state}" id="{escape(name)}">\n')
    yield element("h2", f"Turn {number:,}, continued", class_="turn-head") if is_continued else turn_head(view, look)
    room = PageRoom(look)
    step: int | None = None  # the step whose parallel calls are being shown
    for is_folded, run in groupby(passages, lambda one: is_quiet(one) and bool(one.text)):
        if is_folded:
            yield from _close_batch(step)
            step = None
            yield from _quiet_run(list(run) if look.context else [], look, room)
            continue
        for passage in run:
            here = passage.call.step if passage.kind == "call" and passage.call and passage.batch > 1 else None
            if here != step:
                yield from _close_batch(step)
            if here is not None and here != step:
                yield Html(f'<div class="batch"><p class="label">{passage.batch} in parallel</p><div class="beside">\n')
            step = here
            yield from _passage(passage, look, room)
    yield from _close_batch(step)
    yield Html("</section>\n")


def _close_batch(step: int | None) -> Iterator[Html]:
    if step is not None:
        yield Html("</div></div>\n")


def _quiet_run(run: list[Passage], look: PageLook, room: PageRoom) -> Iterator[Html]:
    """Yield what a client inserted; several parts in a row are one fold."""
    drawn = [markup for passage in run for markup in _passage(passage, look, room) if markup]
    if len(drawn) < 2:
        yield from drawn
        return
    kinds = Counter(_LABELS.get(passage.kind, passage.kind) for passage in run)
    parts = ", ".join(f"{n} × {name.lower()}" if n > 1 else name.lower() for name, n in kinds.items())
    summary = element("summary", "Inserted by the client", Html(" "), element("span", parts, class_="glimpse"))
    yield Html(f'<details class="fold inserted">{summary}<div class="parts">')
    yield from drawn
    yield Html("</div></details>\n")


def turn_head(view: TurnView, look: PageLook) -> Html:
    """Return the heading of a turn: its number, which links to it, and its figures."""
    turn = view.turn
    name = f"{look.anchor}{turn.idx + 1}"
    number = element(
        "a", str(turn.idx + 1), href=f"#{name}", class_="number", aria_label=f"Link to turn {turn.idx + 1}"
    )
    facts = [f"<span>{fact}</span>" for fact in _turn_figures(view)]
    return Html(f'<h2 class="turn-head">{number}<span class="figures">{"".join(facts)}</span></h2>\n')


def words_of(passage: Passage) -> str:
    """Return the text of a passage without the tags that clients put around commands and their output."""
    kind = passage.row.kind if passage.row is not None else ""
    if kind == "command":
        # Clients record the name of a command twice, with and without the slash.
        lines = [line for line in (one.strip() for one in _TAG.sub("\n", passage.text).splitlines()) if line]
        slashed = {line for line in lines if line.startswith("/")}
        return "\n".join(line for line in dict.fromkeys(lines) if f"/{line}" not in slashed)
    return _TAG.sub(" ", passage.text).strip() if kind in ("output", "shell") else passage.text


def _turn_figures(view: TurnView) -> Iterator[str]:
    turn = view.turn
    if turn.started is not None:
        yield element("time", minute_text(turn.started), datetime=iso(turn.started))
    if took := turn_ms(turn):
        yield duration(took)
    if turn.n_calls:
        yield plural(turn.n_calls, "call")
    if turn.inherited:
        yield "copied"
    if turn.n_errors:
        yield f'<span class="failed">{turn.n_errors:,} failed</span>'
    read = sum(step.tokens_in + step.tokens_cache_read + step.tokens_cache_write for step in view.steps)
    written = sum(step.tokens_out for step in view.steps)
    if read or written:
        yield f'<span title="tokens read and written">{short_number(read)} → {short_number(written)}</span>'


def _pause_marks(turn: Turn, before: Turn | None) -> Iterator[Html]:
    if before is None:
        return
    if before.inherited and not turn.inherited:
        yield _mark_html("resumed")
    if turn.started is not None and before.ended is not None and turn.started - before.ended >= _PAUSE:
        yield _mark_html("pause", before=f"{duration(turn.started - before.ended)} ")


def _mark_html(kind: str, more: str = "", before: str = "") -> Html:
    return element("p", f"{before}{_MARKS[kind]}{more}", class_=f"mark {kind}")


def _passage(passage: Passage, look: PageLook, room: PageRoom) -> Iterator[Html]:
    kind = passage.kind
    if kind in ("call", "result"):
        yield from call_html(passage, look, room)
    elif kind in _MARKS:
        yield _mark_html(kind, f": {look.clean(passage.text)}" if kind == "problem" else "")
        if kind == "compaction" and len(passage.text) > _SHORT:
            text = look.clean(passage.text)
            yield fold_html("summary", _LABELS["summary"], text, room.block(text, _passage_seq(passage), "plain"))
    elif passage.block is not None and passage.block.kind == "image":
        for picture in pictures_html(passage.block, look, _passage_seq(passage)):
            yield room.take(picture, _passage_seq(passage))
    elif passage.text and _is_shown(passage, look):
        yield _passage_html(passage, look, room)


def _is_shown(passage: Passage, look: PageLook) -> bool:
    if passage.kind == "thinking":
        return look.thinking
    return look.context or not is_quiet(passage)


def _passage_html(passage: Passage, look: PageLook, room: PageRoom) -> Html:
    text = look.clean(words_of(passage))
    if not text:
        return Html("")
    if passage.kind in _FOLDED_KINDS or is_quiet(passage):
        label = _LABELS.get(passage.kind, passage.kind.capitalize())
        body = Html(room.block(text, _passage_seq(passage), "plain") + record_html(_passage_seq(passage), look))
        return fold_html(passage.kind, label, text, body, room.name(_passage_seq(passage)))
    seq = _passage_seq(passage)
    row = passage.row
    is_prompt = passage.kind == "prompt"
    if passage.kind == "answer" or (is_prompt and row is not None and row.origin == "agent"):
        words, gap = room.words(text, seq)
        inner = Html(f"{markdown_html(words)}{gap}")
    else:
        inner = _typed_html(text, seq, room)
    is_error = passage.kind == "notice" and row is not None and row.role == "assistant"
    name = f"said {passage.kind}{' wrong' * is_error}"
    return Html(
        f'<div class="{escape(name)}"{room.name(seq)}>{_label_html(passage)}{inner}{record_html(seq, look)}</div>\n'
    )


def _typed_html(text: str, seq: int, room: PageRoom) -> Html:
    """Return typed text as it is. Most of a long pasted text is folded."""
    lines = text.strip("\n").split("\n")
    if len(lines) <= _MOST_LINES:
        return room.block(text, seq, "plain")
    seen, rest = "\n".join(lines[:_SEEN_LINES]), "\n".join(lines[_SEEN_LINES:])
    more = plural(len(lines) - _SEEN_LINES, "more line")
    return Html(room.block(seen, seq, "plain") + fold_html("more", more, rest, room.block(rest, seq, "plain")))


def _label_html(passage: Passage) -> Html:
    row = passage.row
    if passage.kind == "answer":
        return Html("")
    label = _LABELS.get(passage.kind, "")
    if passage.kind == "prompt" and row is not None:
        label = "Asked by an agent" if row.origin == "agent" else _PROMPT_LABELS.get(row.kind, "")
    return element("p", label, class_="label") if label else Html("")


def _passage_seq(passage: Passage) -> int:
    return passage.row.seq if passage.row is not None else -1
