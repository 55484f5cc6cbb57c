"""The pure parts of the recording lab: scenarios, the arithmetic of the truth, and the score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.recordings.emulator import Emulator
from tests.recordings.older import is_older, read_older_truth
from tests.recordings.programs import PROGRAMS
from tests.recordings.reading import Found, collect
from tests.recordings.scenarios import SCENARIOS
from tests.recordings.score import Score, common, compare, table
from tests.recordings.steps import Step, shell, write
from tests.recordings.truth import (
    Answer,
    Moment,
    Prompt,
    ToolRun,
    Truth,
    answer_lines,
    offset_at,
    read_timing,
    read_truth,
    write_truth,
)
from tests.recordings.witness import Shown, shown_of

NOW = Moment(1.5, 120)


def truth(**more: object) -> Truth:
    known = {"program": "p-1", "version": "1", "scenario": "s", "seed": 1, "size": (80, 24), "form": "log-out"}
    return Truth(**(known | {"started": 0.0, "bytes": 10} | more))  # type: ignore[arg-type]


def prompts(*texts: str, session: int = 1) -> list[Prompt]:
    return [Prompt(text, NOW, session) for text in texts]


# scenarios ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_seed_decides_every_word(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.steps(3) == scenario.steps(3)


def test_mixtures_differ_by_seed() -> None:
    assert len({str(SCENARIOS["random"].steps(seed)) for seed in range(20)}) == 20


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_turn_ends_with_words_or_a_failure(name: str) -> None:
    for seed in range(10):
        for step in SCENARIOS[name].steps(seed):
            if step.do == "prompt":
                assert step.replies[-1].calls == () and (step.replies[-1].text or step.replies[-1].fails)
                assert step.is_pasted == ("\n" in step.value), "what has lines can only be pasted"


@pytest.mark.parametrize("name", SCENARIOS)
def test_only_an_answer_that_streams_is_interrupted(name: str) -> None:
    steps = SCENARIOS[name].steps(1)
    for before, step in zip([Step("start"), *steps], steps, strict=False):
        assert step.do != "interrupt" or (before.do == "prompt" and not before.waits)


def test_a_program_that_lacks_an_ability_leaves_out_the_scenarios_that_need_it() -> None:
    known = {"new", "agent", "toast", "scroll", "permissions", "todo"}
    assert {need for scenario in SCENARIOS.values() for need in scenario.needs} <= known
    assert all(program.can <= known for program in PROGRAMS.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_spells_what_it_offers_and_nothing_else(name: str) -> None:
    spell = PROGRAMS[name].spell
    offered = ["bash", "write", "Bash", "Write", "exec_command", "run_shell_command", "write_file"]
    assert spell(shell("ls"), offered, Path("/w")) is not None
    assert spell(write("a.txt", "a\n"), offered, Path("/w")) is not None
    assert spell(shell("ls"), [], Path("/w")) is None


# truth ----------------------------------------------------------------------------------------------------------------
def test_a_truth_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = ToolRun("shell", "ls", "bash", {"command": "ls"}, NOW, 0, "ok", "a\nb")
    told = truth(prompts=prompts("one"), answers=[Answer("text", NOW, 0)], calls=[run])
    write_truth(tmp_path, told)
    assert read_truth(tmp_path) == told
    assert not is_older(tmp_path)


def test_sessions_without_a_prompt_do_not_count() -> None:
    assert truth(prompts=prompts("a", "b") + prompts("c", session=3)).sessions == 2


def test_a_call_that_was_never_run_cannot_be_found() -> None:
    calls = [ToolRun("shell", key, "bash", {}, NOW, 0, state) for key, state in (("a", "ok"), ("b", "none"), ("c", "denied"))]  # fmt: skip
    assert [call.key for call in truth(calls=calls).runs] == ["a", "c"]


def test_markdown_marks_are_no_part_of_a_line() -> None:
    text = "Head:\n\n- one two\n1. three\n- 2. four\n```python\nx = 1\n```\n| a | b |\n|---|---|"
    assert answer_lines(Answer(text, NOW, 0)) == ["head", "onetwo", "three", "four", "x1", "ab"]


CLASSIC = "1.5 10\n0.5 20\n2.0 5\n"
ADVANCED = "H 0.000000 COLUMNS 110\nO 1.500000 10\nO 0.500000 20\nS 1.000000 SIGWINCH ROWS=24 COLS=80\nO 1.000000 5\n"


@pytest.mark.parametrize("timing", [CLASSIC, ADVANCED])
def test_the_bytes_by_a_time_are_told_by_either_kind_of_timing(timing: str) -> None:
    assert list(read_timing(timing)) == [(1.5, 10), (2.0, 20), (4.0, 5)]
    assert [offset_at(timing, 100, at) for at in (0, 1.5, 3.9, 4)] == [100, 110, 130, 135]


def test_the_truth_of_an_older_recording_is_understood(tmp_path: Path) -> None:
    head = b'Script started on 2026-01-01 00:00:00+00:00 [COMMAND="x"]\n'
    began = 1767225600.0
    (folder := tmp_path / "opencode-0.5-mixed").mkdir()
    (folder / "recording.raw").write_bytes(head + b"\x1b[1mthe first line of an answer\x1b[0m")
    (folder / "recording.timing").write_text("2.0 5\n9.0 1\n")
    call = {"tool": "bash", "command": "seq 1 5"}
    cut = "- the first line of an answer\n- what nobody has seen of it"
    told = {
        "agent": "opencode", "scenario": "mixed", "size": "110x36", "seed": 1,
        "steps": [
            {"kind": "prompt", "value": "go", "at": began + 3},
            {"kind": "keys", "value": "/new", "at": began + 4},
            {"kind": "prompt", "value": "more", "at": began + 5},
            {"kind": "interrupt", "value": "", "at": began + 6},
        ],
        "model": [
            {"at": began + 3, "title": True, "prompt": "go", "answer": "A title", "calls": []},
            {"at": began + 3, "title": False, "prompt": "go", "answer": "", "calls": [call]},
            {"at": began + 3, "title": False, "prompt": "go", "answer": "it went", "calls": []},
            {"at": began + 5, "title": False, "prompt": "more", "answer": cut, "calls": []},
        ],
    }  # fmt: skip
    (folder / "truth.json").write_text(json.dumps(told))
    assert is_older(folder)
    read = read_older_truth(folder)
    assert (read.program, read.sessions, [run.key for run in read.runs]) == ("opencode-0.5", 2, ["seq 1 5"])
    assert read.prompts[0].when == Moment(3.0, len(head) + 5)
    assert [answer_lines(answer) for answer in read.answers] == [
        ["itwent"],
        ["thefirstlineofananswer", "whatnobodyhasseenofit"],
    ]
    assert [answer.cut for answer in read.answers] == [False, True]
    assert shown_of(folder, read) == ({"thefirstlineofananswer"}, set())


def test_a_call_is_shown_only_between_it_and_the_next_one_of_the_same_file(tmp_path: Path) -> None:
    head = b"Script started on 2026-01-01 00:00:00+00:00\n"
    output = [b"nothing yet, ", b"Read table.py"]
    (tmp_path / "recording.raw").write_bytes(head + b"".join(output))
    (tmp_path / "recording.timing").write_text("".join(f"1.0 {len(part)}\n" for part in output))
    second = len(head) + len(output[0])
    runs = [
        ToolRun("write", "table.py", "write", {}, Moment(0, len(head)), 0, "ok"),
        ToolRun("read", "table.py", "read", {}, Moment(1, second), 0, "ok"),
    ]
    assert shown_of(tmp_path, truth(calls=runs)).calls == {1}


# the witness ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("output", "rows"), [
    ("abc\r\ndef", ["abc", "def", ""]),
    ("abcdefgh", ["abcdef", "gh", ""]),
    ("日本語x", ["日本語", "x", ""]),
    ("abc\x1b[2Dxy", ["axy", "", ""]),
    ("\x1b[2;3Hx\x1b[1;1Hy", ["y", "  x", ""]),
    ("abcdef\x1b[1;3H\x1b[K", ["ab", "", ""]),
    ("a\x1b[3b", ["aaaa", "", ""]),
    ("a\r\nb\r\nc\x1b[1;1H\x1b[M", ["b", "c", ""]),
    ("a\x1b]0;title\x07b\x1b[31mc\x1b[0m", ["abc", "", ""]),
    ("main\x1b[?1049h\x1b[Hother\x1b[?1049l", ["main", "", ""]),
])  # fmt: skip
def test_the_emulator_puts_text_where_a_terminal_does(output: str, rows: list[str]) -> None:
    terminal = Emulator(6, 3)
    for character in output:  # a sequence may be cut anywhere
        terminal.feed(character)
    assert [row.rstrip() for row in terminal.text.split("\n")] == rows


def test_rows_that_scroll_off_are_given_once() -> None:
    terminal = Emulator(6, 2)
    terminal.feed("one\r\ntwo\r\nthree")
    assert terminal.take_left().split() == ["one"] and terminal.take_left() == ""


# score ----------------------------------------------------------------------------------------------------------------
def test_prompts_are_found_in_order_and_what_is_left_is_strange() -> None:
    row = compare(truth(prompts=prompts("one", "yes", "yes", "two words")), Found(["one", "yes", "two\n words", "x"]))
    assert (row.score.prompts_found, row.score.prompts, row.score.strange) == (3, 4, 1)
    assert row.lost_prompts == ("yes",) and row.strange_prompts == ("x",)


def test_swapped_prompts_are_not_both_found() -> None:
    assert common(["a", "b"], ["b", "a"]) in ([(0, 1)], [(1, 0)])


def test_a_line_counts_as_often_as_it_was_said() -> None:
    said = "- the same line is said more than once"
    told = truth(prompts=prompts("p"), answers=[Answer(said, NOW, 0), Answer(said, NOW, 0)])
    once = compare(told, Found(answers=[said])).score
    thrice = compare(told, Found(answers=["• the same line\n  is said more than once"] * 3)).score
    assert (once.lines_found, once.lines, once.repeated) == (1, 2, 0)
    assert (thrice.lines_found, thrice.repeated) == (2, 1)


def test_a_call_is_found_once_by_its_command_or_file() -> None:
    runs = [ToolRun("shell", key, "bash", {}, NOW, 0, "ok") for key in ("seq 1 5", "seq 1 5", "notes.txt")]
    row = compare(truth(calls=runs), Found(calls=["bash seq 1 5", "write /w/notes.txt", "bash other"]))
    assert (row.score.calls_found, row.score.calls, row.score.strange_calls) == (2, 3, 1)
    assert row.lost_calls == ("shell seq 1 5",)


def test_only_what_was_shown_can_be_lost() -> None:
    said = Answer("- a line that was drawn\n- a line that was not", NOW, 0)
    run = ToolRun("shell", "seq 1 5", "bash", {}, NOW, 0, "ok")
    row = compare(truth(answers=[said], calls=[run]), Found(calls=["bash folded"]), Shown({"alinethatwasdrawn"}, set()))
    assert (row.score.lines_found, row.score.lines) == (0, 1)
    assert (row.score.calls_found, row.score.strange_calls) == (1, 0)
    row = compare(truth(calls=[run]), Found(), Shown(set(), set()))
    assert (row.score.calls_found, row.score.calls, row.undrawn_calls, row.lost_calls) == (0, 0, 1, ())
    row = compare(truth(calls=[run]), Found(), Shown(set(), {0}))
    assert (row.score.calls_found, row.score.calls, row.undrawn_calls) == (0, 1, 0)


def test_a_call_is_first_looked_for_among_those_of_its_kind() -> None:
    runs = [
        ToolRun("edit", "table.py", "edit", {}, NOW, 0, "ok"),
        ToolRun("read", "table.py", "read", {}, NOW, 0, "ok"),
    ]
    row = compare(truth(calls=runs), Found(calls=["Read table.py", "Edit other.py table.py"]))
    assert (row.score.calls_found, row.score.strange_calls) == (2, 0)


def test_an_exported_session_is_taken_apart() -> None:
    def message(number: int, role: str, *blocks: Mapping[str, object]) -> dict[str, object]:
        origin = "human" if role == "user" else "model"
        return {"number": number, "role": role, "origin": origin, "blocks": list(blocks)}

    call = {"kind": "call", "call": {"name": "bash", "command": "ls", "path": ""}, "text": "Shell\nls"}
    steps = [{"messages": [message(2, "assistant", call), message(3, "assistant", {"kind": "text", "text": "done"})]}]
    turns = [{"messages": [message(1, "user", {"kind": "text", "text": "go"})], "steps": steps}]
    second = {"source": {"path": "/r#10"}, "turns": [{"messages": [message(1, "user", {"kind": "text", "text": "more"})]}]}  # fmt: skip
    found = collect([second, {"source": {"path": "/r#2"}, "turns": turns}, {"source": {"path": "/r#1"}, "turns": []}])
    assert found.prompts == ["go", "more"]
    assert (found.answers, found.sessions, found.documents) == (["done"], 2, 3)
    assert found.calls[0].startswith("bash ls")


def test_the_table_adds_up_by_program() -> None:
    row = compare(truth(prompts=prompts("one")), Found(["one"], sessions=1))
    lines = table([row, row]).splitlines()
    assert "s (2)" in lines[1] and "2/2" in lines[2]
    assert row.score + row.score == Score(2, 2, sessions_found=2, sessions=2)
