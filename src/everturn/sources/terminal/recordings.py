"""Recordings of terminals, taken apart: what was sent to the screen, when, and how large the screen was.

    typescript     `script`, with or without its timing file
    asciicast      asciinema, versions 1, 2 and 3
    captured       text a terminal has already drawn: `tmux capture-pane`, saved scrollback, with or without colours
    raw            the bytes themselves: `tmux pipe-pane`, and anything else that is forced upon us

Nothing here raises on content: what cannot be read as one kind is taken as bytes sent to a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import SourceCandidate
from everturn.sources.terminal import recording_formats
from everturn.sources.terminal.sizes import find_changes, follow_sizes, guess_size, with_changes
from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording, cut_chunks

_MOST_CONTROLS_OF_CAPTURES = re.compile(rb"\x1b(?!\[[0-9;:]*m|\]8;|\\|\(B|\x0f)|[\x08\x0b\x0c]|\r(?!\n)")
_DRIVES_A_SCREEN = re.compile(rb"\x1b\[(?:\?(?:25|47|1047|1049|2004|2026)[hl]|\d+;\d+[Hf]|H|\d*A|\d*G|2?J)")
_BARS = re.compile(rb"^[ \t]{0,60}\xe2\x94\x83.*$", re.M)
_ESCAPE_CODES = re.compile(rb"\x1b\[[0-9;:]*m|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|\x0f|\x1b\(B")
_LINE = re.compile(rb"^.*\S.*$", re.M)
_ENDINGS = ("txt", "log", "out", "text", "ansi", "ans", "cap", "capture", "screen", "scrollback")
#: What agents call themselves on their screens, and what stands in their empty input fields.
_OWN_WORDS = ("Type your message or @path/to/file", "✻ Welcome to Claude Code", ">_ OpenAI Codex (v", "▝▜█████▛▘  ")
#: A prompt, a blank row, an answer: a shell leaves no row blank between a command and what it prints.
_TURN = r"^{prompt} (?!\d{{1,2}}\. )\S[^\n]{{0,500}}\n(?:  [^\n]{{0,500}}\n|[ \t]*\n){{0,60}}[ \t]*\n{answer} \S"
_SIGNS = tuple(
    (weight, re.compile(pattern, re.M))
    for weight, pattern in (
        (3, _TURN.format(prompt="[❯>]", answer="[⏺●]")),
        (3, _TURN.format(prompt=" >", answer="✦")),
        (3, _TURN.format(prompt="›", answer="•")),
        (2, r"^[⏺●] (?:[A-Z]\w{2,30}\(|[^\n]{1,200}\n {1,4}⎿)"),
        (2, r"^ {1,4}⎿[ \xa0]"),
        (2, r"^[·✢✳✶✻✽] [A-Z][^\s\d]{2,30}(?: for (?:\d+m )?\d+s|…)"),
        (1, r"^[❯>] \S"),
        (2, r"^(?:✦| {2}[✓⊶⊷] {1,2}[A-Z]\w{2,30}) "),
        (2, r"^ {0,40}▣ {1,2}\S"),
        (1, r"^[ \t]{0,24}┃"),
        (3, r"^[─━]{20,400}\n[❯>](?:[ \xa0][^\n]{0,500})?\n(?:  [^\n]{0,500}\n){0,30}[─━]{20,400}$"),
        (2, r"^[ \t]{0,40}┃ {1,4}(?:# \S|>(?: |$))"),
        (2, r"^[ \t]{0,40}enter send "),
        (2, r"^[ \t]{0,40}/(?:new|help|models) {2,20}\S[^\n]{0,80}\bctrl\+x\b"),
        (3, r"^› Ask Codex to do anything$"),
        (1, r"^› "),
        (1, r"^• \S"),
        (2, r"\d% context left|\bctrl\+p commands\b"),
        (1, r"\? for shortcuts"),
        (2, r"esc to interrupt|\(esc to cancel, \d"),
    )
)
_ENOUGH_SIGNS = 3
_FEW = 3
_FEWEST_BARS = 0.25  # of the lines that are not blank
_MOST_BROKEN = 0.02  # of the characters


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """Return a candidate if the file is a recording. See `Source.sniff`."""
    return SourceCandidate(path, "container") if recognise_recording(head, path.name) is not None else None


def recognise_recording(head: bytes, name: str = "") -> str | None:
    """Return what kind of recording the first bytes of a file are of; None for all that is not surely one.

    Ordinary text, also with some colours in it, is not claimed. Text that a terminal has drawn is, when it shows a turn of
    an agent or several of the signs that its screen has.
    """
    if recording_formats.recognise_typescript(head):
        return "typescript"
    if recording_formats.recognise_asciicast(head):
        return "asciicast"
    if not _is_text(head) or head.lstrip()[:1] in (b"{", b"["):
        return None
    if _is_captured(head):
        fits = name.rpartition(".")[2].lower() in _ENDINGS or "." not in name
        return "captured" if fits and _shows_an_agent(_ESCAPE_CODES.sub(b"", head)) else None
    return "raw" if _DRIVES_A_SCREEN.search(head) else None


def read_recording(data: bytes, name: str = "", timing: bytes | None = None) -> TerminalRecording:
    """Return a whole recording. `timing` is the file beside a typescript, see `timing_names`."""
    if recording_formats.recognise_typescript(data[:1024]) or timing:
        return follow_sizes(recording_formats.read_typescript(data, timing))
    if recording_formats.recognise_asciicast(data[: 64 << 10]):
        return recording_formats.read_asciicast(data)
    if _is_captured(data):
        return _read_capture(data)
    columns, rows = guess_size(data)
    changes = find_changes(data, (columns, rows))
    return follow_sizes(
        TerminalRecording("raw", columns, rows, lambda: with_changes(cut_chunks(data, 0, len(data)), changes))
    )


def timing_names(name: str) -> list[str]:
    """Return the names under which the timing of a typescript may lie beside it."""
    stem = name.rpartition(".")[0] or name
    return [f"{start}{end}" for start in dict.fromkeys((name, stem)) for end in (".timing", ".tm", ".time", "-timing")]


def _is_text(head: bytes) -> bool:
    """Return whether nearly all of it is UTF-8; a character may be cut off at the end."""
    characters = head.decode("utf-8", "replace")
    return "\0" not in characters and characters.count("\ufffd") <= 1 + _MOST_BROKEN * len(characters)


def _is_captured(data: bytes) -> bool:
    """Return whether there is nothing in it but lines and colours."""
    return _MOST_CONTROLS_OF_CAPTURES.search(data) is None


def _shows_an_agent(text: bytes) -> bool:
    """Return whether text shows a turn of an agent, or several things that only agents draw."""
    bars = len(_BARS.findall(text))
    if bars >= _FEW and bars >= _FEWEST_BARS * len(_LINE.findall(text)):
        return True
    shown = text.replace(b"\r", b"").decode("utf-8", "replace")
    return any(map(shown.__contains__, _OWN_WORDS)) or _count_signs(shown) >= _ENOUGH_SIGNS


def _count_signs(text: str) -> int:
    """Return how much speaks for a conversation on a screen: a sign counts once, a whole turn is enough."""
    return sum(weight for weight, sign in _SIGNS if sign.search(text))


def _read_capture(data: bytes) -> TerminalRecording:
    lines = data.split(b"\n")
    widest = max(len(_ESCAPE_CODES.sub(b"", line).decode("utf-8", "replace")) for line in lines)
    return TerminalRecording("captured", max(80, 2 * widest), max(2, len(lines)), lambda: _draw_lines(data))


def _draw_lines(data: bytes) -> Iterator[OutputChunk]:
    """Yield the lines, each sent with the carriage return that drawing it takes."""
    for piece in cut_chunks(data, 0, len(data)):
        yield piece._replace(data=piece.data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
