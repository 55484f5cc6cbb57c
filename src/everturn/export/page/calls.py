"""A tool call as HTML: a line with tool, subject and status that opens to input and output. Edits are drawn as diffs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from everturn.derive.turn_facts import error_line
from everturn.export.markdown import status
from everturn.export.page.content import pictures_html
from everturn.export.page.head import relation_of, relative_link
from everturn.export.page.markup import Html, PageLook, PageRoom, element, make_visible, show_line, show_text
from everturn.model.archive import Call
from everturn.model.conversation import CallStart
from everturn.sessions.lineage import Relative
from everturn.sessions.transcript import Passage, input_text
from everturn.text.diffs import diff_of, style_of
from everturn.text.printable import plural
from everturn.text.times import duration

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
    yield Html(f'<details class="child"{fetched}><summary>')
    yield Html(
        f'{show_text(label)} {relative_link(one, look)} <span class="took">{", ".join(counts)}</span></summary>\n'
    )
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
        return duration(call.duration_ms) if call.duration_ms is not None else ""
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
