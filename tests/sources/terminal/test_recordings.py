"""Recordings are known by their content and taken apart; ordinary files are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.terminal.recordings import read_recording, recognise_recording, timing_names
from everturn.sources.terminal.transcript import PIECE, TerminalRecording
from everturn.sources.terminal.views import transcribe

HEAD = (
    b'Script started on 2025-12-22 14:19:12-06:00 [COMMAND="agent -c" TERM="xterm-256color" TTY="/dev/pts/7" '
    b'COLUMNS="119" LINES="52"]\n'
)
FOOT = b'\nScript done on 2025-12-22 14:36:37-06:00 [COMMAND_EXIT_CODE="130"]\n'
STARTED = 1_766_434_752_000


def output(recording: TerminalRecording) -> bytes:
    return b"".join(chunk.data for chunk in recording.chunks())


def text(data: bytes, timing: bytes | None = None) -> list[str]:
    return [line.text for segment in transcribe(data, "x", timing).segments for line in segment.lines]


# typescripts ----------------------------------------------------------------------------------------------------------
def test_a_typescript_tells_its_size_its_times_and_how_it_ended() -> None:
    data = HEAD + b"hello\r\n" + FOOT
    recording = read_recording(data)
    assert recognise_recording(data) == recording.kind == "typescript"
    assert (recording.columns, recording.rows) == (119, 52)
    assert (recording.started, recording.ended) == (STARTED, STARTED + 1_045_000)
    assert (recording.command, recording.exit_status) == ("agent -c", 130)
    assert (recording.zone, transcribe(data).zone) == (-360, -360)
    (chunk,) = recording.chunks()
    assert data[chunk.start : chunk.end] == chunk.data == b"hello\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Script started on Mon Dec 22 14:19:12 2025\n",
        b"Script started on Tue 03 Mar 2020 10:12:13 AM CET\n",
        b"Script started on 2025-12-22 14:19:12\n",
        b"Script started on 2025-12-22 14:19:12 [<not executed on terminal>]\n",
    ],
)
def test_a_local_time_without_a_zone_is_not_taken_for_another(head: bytes) -> None:
    recording = read_recording(head + b"x" * 90 + b"\r\n")
    assert recording.kind == "typescript"
    assert recording.started is None
    assert (recording.columns, recording.rows) == (90, 24)


def test_a_zone_without_a_colon_is_a_zone() -> None:
    assert read_recording(b"Script started on 2025-12-22 14:19:12-0600\nx").started == STARTED


def test_a_typescript_cut_off_in_the_middle_is_read_as_far_as_it_goes() -> None:
    recording = read_recording(HEAD + b"hello\r\nwor")
    assert output(recording) == b"hello\r\nwor"
    assert (recording.ended, recording.exit_status) == (None, None)


def test_a_typescript_that_was_appended_to_is_read_in_all_its_parts() -> None:
    second = HEAD.replace(b"119", b"40").replace(b"14:19", b"15:00")
    data = HEAD + b"\x1b[31mfirst\r\n" + FOOT + second + b"second\r\n" + FOOT.replace(b"130", b"0")
    assert text(data) == ["first", "second"]
    recording = read_recording(data)
    assert [chunk.size for chunk in recording.chunks() if chunk.size] == [(40, 52)]
    assert recording.exit_status == 0


def test_a_typescript_shown_inside_another_is_part_of_the_text() -> None:
    data = HEAD + b"$ cat typescript\r\nScript done on 2025-12-22 14:36:37-06:00 [x]\r\n$ exit\r\n" + FOOT
    assert len(text(data)) == 3


def test_the_classic_timing_file_gives_each_piece_its_time() -> None:
    recording = read_recording(HEAD + b"hello\r\nworld" + FOOT, timing=b"0.5 5\n1.25 7\n")
    assert [(chunk.data, chunk.elapsed) for chunk in recording.chunks()] == [(b"hello", 0.5), (b"\r\nworld", 1.75)]


def test_the_advanced_timing_file_tells_sizes_and_skips_what_was_typed() -> None:
    timing = (
        b"H 0.000000 START_TIME 2025-12-22 14:19:12-06:00\nH 0.000000 COLUMNS 100\nH 0.000000 LINES 30\n"
        b"O 0.1 5\nI 0.2 6\nS 0.3 SIGWINCH ROWS=20 COLS=60\nO 0.4 5\nH 0.0 EXIT_CODE 3\n"
    )
    both = read_recording(b"Script started on 2025-12-22 14:19:12\nhellosecretworld", timing=timing)
    assert [chunk.data for chunk in both.chunks() if chunk.data] == [b"hello", b"world"]
    assert (both.columns, both.rows, both.started, both.exit_status) == (100, 30, STARTED, 3)
    assert [chunk.size for chunk in both.chunks() if chunk.size] == [(60, 20)]
    only = read_recording(b"Script started on 2025-12-22 14:19:12\nhelloworld", timing=timing)
    assert [(chunk.data, chunk.elapsed) for chunk in only.chunks() if chunk.data] == [
        (b"hello", 0.1),
        (b"world", pytest.approx(1.0)),
    ]


def test_output_beyond_the_timing_file_is_not_lost() -> None:
    recording = read_recording(HEAD + b"hello world", timing=b"0.5 5\nbroken line\n0.x 3\n")
    assert output(recording) == b"hello world"


def test_lines_have_the_time_at_which_they_were_drawn() -> None:
    data = HEAD + b"one\r\ntwo\r\n" + FOOT
    transcript = transcribe(data, "x", b"1.0 5\n2.5 5\n")
    assert [line.at for line in transcript.segments[0].lines] == [STARTED + 1000, STARTED + 3500]


def test_the_timing_file_is_looked_for_under_its_usual_names() -> None:
    assert "typescript.timing" in timing_names("typescript")
    assert {"session.log.timing", "session.timing", "session.tm"} <= set(timing_names("session.log"))


# asciicasts -----------------------------------------------------------------------------------------------------------
def cast(header: object, *events: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in (header, *events))


def test_version_2_counts_from_the_start() -> None:
    header = {"version": 2, "width": 100, "height": 30, "timestamp": 1_766_434_752, "command": "agent"}
    data = cast(
        header, [0.5, "o", "héllo\r\n"], [0.75, "i", "secret"], [1.5, "r", "80x24"], [2.0, "o", "you"], [3, "m", ""]
    )
    recording = read_recording(data)
    assert recognise_recording(data) == recording.kind == "asciicast"
    assert (recording.columns, recording.rows, recording.started) == (100, 30, STARTED)
    assert recording.command == "agent"
    chunks = list(recording.chunks())
    assert [(chunk.data.decode(), chunk.elapsed, chunk.size) for chunk in chunks] == [
        ("héllo\r\n", 0.5, None),
        ("", 1.5, (80, 24)),
        ("you", 2.0, None),
    ]
    assert data[chunks[2].start : chunks[2].end] == b'[2.0, "o", "you"]'
    assert transcribe(data).ended == STARTED + 2000


def test_version_3_counts_from_the_event_before_and_has_comments() -> None:
    header = {"version": 3, "term": {"cols": 90, "rows": 20, "type": "xterm"}, "timestamp": 1_766_434_752}
    data = cast(header, [0.5, "o", "a"]) + b"# a comment\n" + cast([0.25, "o", "b"], [1.0, "x", "3"])
    recording = read_recording(data)
    assert recognise_recording(data) == "asciicast"
    assert (recording.columns, recording.rows, recording.exit_status) == (90, 20, 3)
    assert [(chunk.data, chunk.elapsed) for chunk in recording.chunks()] == [(b"a", 0.5), (b"b", 0.75)]


@pytest.mark.parametrize("indent", [None, 2])
def test_version_1_is_one_object(indent: int | None) -> None:
    whole = {"version": 1, "width": 80, "height": 24, "duration": 3.0, "stdout": [[0.5, "hé"], [1.0, "llo\r\n"]]}
    data = json.dumps(whole, indent=indent).encode()
    recording = read_recording(data)
    assert recognise_recording(data) == "asciicast"
    assert [(chunk.data.decode(), chunk.elapsed) for chunk in recording.chunks()] == [("hé", 0.5), ("llo\r\n", 1.5)]
    assert all(data[chunk.start : chunk.end].startswith(b"[") for chunk in recording.chunks())


def test_a_broken_event_does_not_stop_the_recording() -> None:
    data = cast({"version": 2, "width": 80, "height": 24}, [0.1, "o", "one\r\n"])
    data += b'[0.2, "o"\nnonsense\n[1]\n\xff\xfe\n' + b'[0.3, "o", "two \\ud83d\\r\\n"]\n[0.4, "o", "thr'
    assert text(data) == ["one", "two ?"]


# captured and raw -----------------------------------------------------------------------------------------------------
CAPTURED = "\n".join(["  ┃", "  ┃  fix the bug", "  ┃", "", "     Done.", "", "     ▣  Build · model · 3s", ""])


def test_text_a_terminal_has_drawn_is_taken_as_it_stands() -> None:
    recording = read_recording(CAPTURED.encode())
    assert recognise_recording(CAPTURED.encode(), "pane.txt") == recording.kind == "captured"
    assert text(CAPTURED.encode()) == CAPTURED.split("\n")[:-1]


RULE = "─" * 60
SCREENS = {
    "a turn of Claude Code": "❯ go\n\n● Gone.\n",
    "one of an older release": "> go\n  on\n\n⏺ Gone.\n",
    "a call and its output": "⏺ Bash(ls)\n  ⎿  a.py\n",
    "an answer and an input field": f"● Gone.\n\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts\n",
    "the end of a turn": "  - the last thing\n\n✻ Baked for 1m 3s\n\n❯ and now\n",
    "a turn of Gemini CLI": " > go\n   on\n\n✦ Gone.\n",
    "its input field": "✦ Gone.\n\n *   Type your message or @path/to/file\n",
    "a turn of Codex": "› go\n\n• Gone.\n",
    "its input field alone": "  - the last thing\n\n› Ask Codex to do anything\n\n  ? for shortcuts\n",
    "OpenCode": "  ┃  # A title\n\n     an answer\n\n     ▣  Build · model\n",
}


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
@pytest.mark.parametrize("name", ["pane.txt", "capture", "scrollback.log"])
def test_a_capture_of_an_agent_is_known_by_what_it_shows(screen: str, name: str) -> None:
    assert recognise_recording(screen.encode(), name) == "captured"
    coloured = "".join(f"\x1b[1m{line}\x1b[0m\r\n" for line in screen.split("\n"))
    assert recognise_recording(coloured.encode(), name) == "captured"


@pytest.mark.parametrize(
    "shell",
    [
        "❯ systemctl status nginx\n● nginx.service - A web server\n   Active: active (running)\n",
        "> quoted\n\n- one\n- two\n",
        "$ ls\na.py\n$ cat a.py\nx = 1\n",
        "● one\n● two\n● three\n",
        " > quoted\n\n * a list\n",
    ],
)
def test_a_shell_and_other_lists_are_no_capture_of_an_agent(shell: str) -> None:
    assert recognise_recording(shell.encode(), "pane.txt") is None


# sizes that are not recorded ------------------------------------------------------------------------------------------
def sizes(*writes: bytes) -> list[tuple[int, int] | None]:
    timing = b"".join(b"0.1 %d\n" % len(write) for write in writes)
    return [chunk.size for chunk in read_recording(HEAD + b"".join(writes), "x", timing).chunks()]


def test_a_rule_longer_than_the_screen_is_wide_tells_that_it_became_wider() -> None:
    rule = b"\r\n" + "─".encode() * 140 + b"\r\n"
    assert sizes(b"hi\r\n", rule, rule) == [(119, 52), (140, 52), None]
    assert sizes(b"hi\r\n", rule[: 3 * 100] + b"\r\n") == [None, None]


def test_rows_wiped_upwards_tell_that_the_screen_became_higher() -> None:
    assert sizes(b"hi\r\n", b"\x1b[2K\x1b[1A" * 60) == [(119, 61), None]


def test_a_screen_wiped_row_by_row_tells_its_height_and_a_longer_rule_its_width() -> None:
    wiped = b"\x1b[H" + b"\x1b[2K\x1b[1B" * 24 + b"\x1b[H"
    rule = b"\r\n" + "─".encode() * 140 + b"\r\n"
    assert sizes(b"hi\r\n", wiped + rule, rule) == [(119, 52), (140, 24), None]
    assert sizes(b"hi\r\n", wiped, rule) == [(119, 52), (140, 24), None]
    assert sizes(b"hi\r\n", wiped + rule[: 3 * 80 + 2] + b"\r\n") == [(119, 52), (119, 24)]
    assert sizes(b"hi\r\n" + wiped, b"more") == [(119, 52), (119, 24), None]


def test_captured_colours_are_kept_and_lines_know_their_bytes() -> None:
    data = "\x1b[38;5;1m┃\x1b[39m one\n\x1b[38;5;2m┃ two\x1b[0m 会話\n".encode() + "┃ three\n".encode() * 200
    (segment,) = transcribe(data).segments
    assert [line.text for line in segment.lines[:3]] == ["┃ one", "┃ two 会話", "┃ three"]
    assert [(run.start, run.end) for run in segment.lines[1].runs] == [(0, 5)]
    assert len(segment.lines) == 202
    line = segment.lines[150]
    assert b"three" in data[line.first : line.last]


def test_the_size_of_raw_output_is_guessed_from_where_it_was_written() -> None:
    painted = b"$ agent\r\n\x1b[?1049h" + b"".join(b"\x1b[%d;1H%s" % (row, b" " * 110) for row in range(1, 33))
    recording = read_recording(painted)
    assert (recording.kind, recording.columns, recording.rows) == ("raw", 110, 32)
    ruled = read_recording(b"\x1b[?2004h" + "─".encode() * 130 + b"\r\nx\r\n\x1b[40A")
    assert (ruled.columns, ruled.rows) == (130, 41)
    assert (read_recording(b"\x1b[?25lhi").columns, read_recording(b"\x1b[?25lhi\x1b[999;999H").rows) == (80, 24)


def test_raw_output_comes_in_pieces_that_make_up_the_file() -> None:
    data = b"\x1b[?25l" + bytes(range(32, 127)) * 2000
    chunks = list(read_recording(data).chunks())
    assert len(chunks) == len(data) // PIECE + 1
    assert b"".join(data[chunk.start : chunk.end] for chunk in chunks) == output(read_recording(data)) == data


@pytest.mark.parametrize(
    "raw",
    [
        b"\x1b[?2004h$ agent\r\n\x1b[?1049h\x1b[H",
        b"$ top\r\n\x1b[?25l\x1b[1;1Hx",
        b"plain\r\n\x1b[3Aup\x1b[K",
    ],
)
def test_output_that_drives_a_screen_is_a_recording(raw: bytes) -> None:
    assert recognise_recording(raw, "pane.log") == "raw"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.txt", b"The script started on Monday.\nIt was fine.\n"),
        ("notes.md", "# Title\n\nA table ┃ with a bar\n\n- one\n- two\n".encode()),
        ("screens.md", CAPTURED.encode()),
        ("build.log", b"\x1b[32mok\x1b[0m test one\n\x1b[31mfail\x1b[0m test two\n" * 50),
        ("progress.log", b"10%\r20%\r30%\rdone\n"),
        ("session.jsonl", b'{"type":"user","message":{"content":"\\u001b[31m"}}\n' * 20),
        ("cast.json", b'{"version": 2, "name": "package", "width": 3}'),
        ("package.json", b'{"version": 1, "stdout": "x", "dependencies": {}}'),
        ("array.json", b'[0.1, "o", "text"]\n'),
        ("program", b"\x7fELF\x02\x01\x01\0\0\0\x1b[?25l\x1b[H" + bytes(range(256)) * 20),
        ("random.bin", bytes(range(256)) * 40 + b"\x1b[?1049h"),
        ("empty", b""),
        ("code.py", b'print("\\x1b[2J")\n'),
    ],
)
def test_ordinary_files_are_not_claimed(name: str, data: bytes) -> None:
    assert recognise_recording(data, name) is None


def test_no_file_of_this_project_is_taken_for_a_recording() -> None:
    root = Path(__file__).parents[3]
    claimed = [
        str(path)
        for folder in ("src", "tests", "docs", "benchmarks")
        for path in (root / folder).rglob("*")
        if path.is_file()
        and path.suffix in (".py", ".md", ".json", ".jsonl", ".toml")
        and recognise_recording(path.read_bytes()[:65536], path.name)
    ]
    assert claimed == []


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.just(b""), st.just(HEAD), st.just(b'{"version": 2, "width": 9, "height": 5}\n'), st.just(b"\x1b[?1049h")
    ),
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from([b"\x1b[H", b"\r\n", FOOT, HEAD, b'[1,"o","x"]\n'])),
        max_size=20,
    ),
    st.one_of(
        st.none(),
        st.binary(max_size=60),
        st.lists(st.integers(0, 50)).map(lambda n: b"".join(b"0.1 %d\n" % i for i in n)),
    ),
)
def test_any_bytes_give_a_transcript_whose_offsets_lie_in_the_file(
    head: bytes, rest: list[bytes], timing: bytes | None
) -> None:
    data = head + b"".join(rest)
    recognise_recording(data, "x")
    for segment in transcribe(data, "x", timing).segments:
        for line in segment.lines:
            assert 0 <= line.first <= line.last <= len(data)
