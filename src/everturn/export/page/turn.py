"""One turn as HTML: prompt, answer, folded thinking, and calls with their results.

Parallel calls of one step are shown side by side. Marks show where the context was compacted, the user interrupted, time
passed, or a copied session continues. The markup is yielded in parts.

A tool call as HTML: a line with tool, subject and status that opens to input and output. Edits are drawn as diffs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from everturn.export.markdown import status
from everturn.export.page.content import markdown_html, pictures_html
from everturn.export.page.head import relation_of, relative_link
from everturn.export.page.markup import Html, PageLook, PageRoom, element, make_visible, show_line, show_text
from everturn.model.archive import Call, Turn
from everturn.model.conversation import CallStart
from everturn.sessions.lineage import Relative
from everturn.sessions.messages import Passage, TurnView, input_text, is_quiet, is_shown
from everturn.text.diffs import diff_of, style_of
from everturn.text.printable import error_line, plural, short_number
from everturn.text.times import duration, iso, minute, turn_ms

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
    """Yield a turn with its passages (`sessions.messages.passages(…, results=True)`); `before` is the turn above.

    `is_continued` is for the later messages of a long turn: they get a short heading and an anchor of their own.
    """
    yield from _pause_marks(view.turn, before)
    number = view.turn.idx + 1
    name = f"{look.anchor}{number}" + (f"-{view.turn.first_seq + 1}" if is_continued else "")
    state = " inherited" * bool(view.turn.inherited) + " continued" * is_continued
    state += " taken-back" * bool(view.turn.taken_back)
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
        yield element("time", minute(turn.started), datetime=iso(turn.started))
    if took := turn_ms(turn):
        yield duration(took)
    if turn.n_calls:
        yield plural(turn.n_calls, "call")
    if turn.inherited:
        yield "copied"
    if turn.taken_back:
        yield '<span title="The person went back before it: the agent no longer knew it">taken back</span>'
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
    elif passage.text and is_shown(passage, look.thinking, look.context):
        yield _passage_html(passage, look, room)


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
    is_gone = row is not None and bool(row.taken_back)
    name = f"said {passage.kind}{' wrong' * is_error}{' taken-back' * is_gone}"
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
    label = _LABELS.get(passage.kind, "")
    if passage.kind == "prompt" and row is not None:
        label = "Asked by an agent" if row.origin == "agent" else _PROMPT_LABELS.get(row.kind, "")
        label = ", ".join(filter(None, (label, "taken back" if row.taken_back else "")))
    return element("p", label, class_="label") if label else Html("")


def _passage_seq(passage: Passage) -> int:
    return passage.row.seq if passage.row is not None else -1


# --- A tool call as HTML: a line with tool, subject and status that opens to input and output. Edits are drawn as diffs ---
_CLASSES = {"added": "add", "removed": "del", "hunk": "hunk", "bold": "file"}


def diff_html(lines: Iterable[str]) -> Html:
    """Return a diff. Neighbouring lines of one kind share an element, so a long new file costs little markup."""
    return Html(f'<pre class="diff">{"".join(_style_runs(lines))}</pre>')


def _style_runs(lines: Iterable[str]) -> Iterator[str]:
    for style, run in groupby(lines, style_of):
        # One line of the diff is one line on the page, whatever foreign line ends it contains.
        text = escape("\n".join(make_visible(line).replace("\n", "␊") for line in run))
        name = _CLASSES.get(style)
        yield f'<span class="{name}">{text}\n</span>' if name else f"{text}\n"


_SIGNS = {"ok": "✓", "error": "✗", "open": "…", "orphan": "?"}
_ABOUT = 200
_OPEN_DIFF_LINES = 24  # a diff of at most so many lines is open from the start
_DEEPEST = 20  # levels of arguments


def call_html(passage: Passage, look: PageLook, room: PageRoom) -> Iterator[Html]:
    """Yield a call, or a result without a call, and then the sessions it started."""
    call, start = passage.call, passage.start
    seq = call.seq if call else passage.row.seq if passage.row else -1
    back = call.result_seq if call and call.result_seq is not None else seq  # the message with the result
    given, is_diff = _input_text(start, look)
    output = look.clean(passage.result.text) if passage.result is not None else ""
    state = call.status if call else "open"
    is_open = is_diff and state != "error" and given.count("\n") < _OPEN_DIFF_LINES
    kind = start.kind if start else call.kind if call else "other"
    name = room.name(seq)
    yield Html(f'<details class="call {escape(state)} {escape(kind)}"{name}{" open" * is_open}>')
    # A link to the result leads to the call it belongs to.
    result = room.name(back) if back != seq else ""
    begins = Html(f"<span{result}></span>") if result else Html("")
    yield element("summary", begins, *_call_summary(passage, state, look), *_complaint_html(state, output))
    if given:
        yield Html(diff_html(room.cut(given, seq).splitlines())) if is_diff else room.block(given, seq, "input")
    if output and is_diff and state == "ok":  # it only says that the file was changed, which the diff shows
        yield fold_html("output", "Output", output, room.block(output, back, "plain"))
    elif output:
        yield room.block(output, back, "output")
    for picture in pictures_html(passage.result, look, back):
        yield room.take(picture, back)
    yield from _record_links(seq, back, look, name)
    yield Html("</details>\n")
    for one in look.children.get((call.seq, call.idx), ()) if call else ():
        yield from child_html(one, look)


def child_html(one: Relative, look: PageLook) -> Iterator[Html]:
    """Yield a session that a call started: embedded, fetched when opened, or a link."""
    label = relation_of(one, is_elder=False)
    if one.session is None or not (look.inside or look.to_inside):
        yield element("p", Html(f"{show_text(label)} {relative_link(one, look)}"), class_="child")
        return
    counts = [plural(one.session.n_turns, "turn"), plural(one.session.n_calls, "call")]
    fetched = f' data-inside="{escape(look.to_inside(one))}"' if look.to_inside else ""
    name = relative_link(one, replace(look, to_session=None))  # what folds may hold nothing else to press
    yield Html(f'<details class="child"{fetched}><summary>{show_text(label)} {name} ')
    yield Html(f'<span class="took">{", ".join(counts)}</span></summary>\n')
    if look.to_session:
        yield element("p", relative_link(one, look, "open this session"), class_="records")
    yield from map(Html, look.inside(one) if look.inside else ())
    yield Html("</details>\n")


def fold_html(kind: str, label: str, text: str, body: Html, name: str = "") -> Html:
    """Return folded content with a glimpse of its text."""
    summary = element("summary", label, Html(" "), element("span", show_line(text, 120), class_="glimpse"))
    return Html(f'<details class="fold {escape(kind)}"{name}>{summary}{body}</details>\n')


def record_html(seq: int, look: PageLook, words: str = "record") -> Html:
    """Return a link to a message as captured, if there is an address."""
    address = look.to_record(seq) if look.to_record and seq >= 0 else ""
    return element("a", words, href=address, class_="record", title="this message as captured") if address else Html("")


def _record_links(seq: int, back: int, look: PageLook, name: str) -> Iterator[Html]:
    if look.to_record is None or seq < 0:
        return
    link = element("a", "link to this call", href=f"#{name[5:-1]}", class_="record") if name else Html("")
    result = record_html(back, look, "its result as captured") if back != seq else Html("")
    yield element("p", record_html(seq, look, "this call as captured"), Html(" "), result, link, class_="records")


def _call_summary(passage: Passage, state: str, look: PageLook) -> Iterator[Html]:
    call, start = passage.call, passage.start
    name = start.name if start else (call.name if call else "") or "result without a call"
    yield Html(f'<span class="sign" role="img" aria-label="{escape(status(call))}">{_SIGNS.get(state, "?")}</span> ')
    yield element("b", show_line(look.clean(name), 80), class_="tool")
    about = _call_subject(start, look) if start else ""
    if about:
        yield Html(" ")
        yield element("code", show_line(look.clean(about), _ABOUT), class_="about")
    took = _duration_text(call)
    if took:
        yield Html(f' <span class="took">{escape(took)}</span>')


def _duration_text(call: Call | None) -> str:
    if call is None or call.status == "open":
        return "no result"
    if call.status == "ok" and not call.exit_status:
        return duration(call.duration_ms)
    return status(call).removeprefix("error, ")


def _complaint_html(state: str, output: str) -> Iterator[Html]:
    """Yield the error line of a failed call, to be read without opening it."""
    words = error_line(output) if state == "error" and output else ""
    if words:
        yield element("span", show_line(words, _ABOUT), class_="complaint")


def _input_text(start: CallStart | None, look: PageLook) -> tuple[str, bool]:
    """Return the input of a tool without secrets, and whether it is a diff."""
    if start is None:
        return "", False
    # A secret of several lines can only be recognised before diff marks are added.
    start = replace(start, input=_clean_value(start.input, look), command=look.clean(start.command))
    lines = _strip_file_lines(diff_of(start), start.path)
    return look.clean("\n".join(lines) if lines else input_text(start)), bool(lines)


def _strip_file_lines(lines: list[str], path: str) -> list[str]:
    """Return a diff of one file without the lines that name it: the call does."""
    first = 0
    while first < len(lines) and lines[first] in (f"--- {path}", f"+++ {path}", "--- (new)", "@@"):
        first += 1
    return lines[first:]


def _clean_value(value: Any, look: PageLook, depth: int = 0) -> Any:
    if isinstance(value, str):
        return look.clean(value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: _clean_value(one, look, depth + 1) for name, one in value.items()}
    return [_clean_value(one, look, depth + 1) for one in value] if isinstance(value, list) else value


def _call_subject(start: CallStart, look: PageLook) -> str:
    """Return the subject of a call. A file is named relative to the workspace."""
    given = start.input if isinstance(start.input, dict) else {}
    words: str = next((value for value in given.values() if isinstance(value, str) and value), "")
    path = start.path
    inside = path[len(look.workspace) :] if look.workspace and path.startswith(look.workspace) else ""
    if inside[:1] in ("/", "\\"):
        path = inside[1:]
    if start.kind == "search" and words != start.path:
        return words or path
    return start.command or path or start.prompt or words
