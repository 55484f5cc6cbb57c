"""The commands that ask how tools are used: what they say, to people and to programs, and what they never say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.cli.analytics_options import percent
from tests.analytics.histories import Made, MadeSession, chain, fill, history, session
from tests.capture.history import SID
from tests.cli.desk import ACTIVE, HOSTILE, Desk

CANARY = "qzwvxkjyq"
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("turns",),
    ("turns", "--patterns"),
    ("turns", "--pattern", "Bash{1+}"),
    ("paths",),
    ("paths", "--all"),
    ("paths", "--turns"),
    ("inspect", "Bash"),
    ("inspect", "*", "--turns"),
    ("suggest",),
    ("struggles",),
    ("stats",),
    ("stats", "--by", "workspace", "--period", "day"),
)


def content(desk: Desk, policy: Policy | None = None, calls: int = 6) -> None:
    """A session with the same word in every place that holds content, and something for each question to say."""
    archive, word = desk.archive, CANARY
    lines = [archive.history.line("user", f"{word} please", cwd=f"/home/{word}/shop", gitBranch=word)]
    lines.append(
        archive.history.line("assistant", [{"type": "thinking", "thinking": word}, {"type": "text", "text": word}])
    )
    for number in range(calls):
        lines.append(archive.use("Bash", f"c{number}", command=f"cat /{word}", description=word))
        lines.append(archive.back(f"c{number}", f"Exit code 1\n{word}: no such file", number % 6 < 4))
        lines += [archive.use("Read", f"r{number}", file_path=f"/{word}"), archive.back(f"r{number}", word)]
        lines += [
            archive.use("Reed", f"u{number}", x=word),
            archive.back(f"u{number}", f"No such tool available: Reed {word}", True),
        ]
    desk.take_in(*lines, policy=policy)


@pytest.fixture
def filled(desk: Desk) -> Iterator[Desk]:
    content(desk)
    yield desk


@pytest.mark.parametrize("mode", ["full", "redacted", "structure"])
def test_no_question_is_answered_with_content(desk: Desk, mode: str, tmp_path: Path) -> None:
    content(desk, Policy(mode, redact=lambda line: line) if mode == "redacted" else Policy(mode))
    answered = 0
    for words in QUESTIONS:
        for more in ((), ("--json",), ("--agent", "claude_code")):
            code, out, err = desk.run(*words, *more)
            assert code in (0, 3) and CANARY not in out + err, words
            answered += code == 0
    assert answered > 20
    for words in (("paths",), ("turns",), ("inspect", "Bash"), ("stats",)):
        for target in ("-", str(tmp_path / "p.svg"), str(tmp_path / "p.html")):
            code, out, err = desk.run(*words, "--plot", target)
            drawn = out if target == "-" else Path(target).read_text("utf-8")
            assert code == 0 and drawn and CANARY not in drawn


@pytest.mark.parametrize("words", QUESTIONS)
def test_every_question_has_a_schema_and_its_choices(filled: Desk, words: tuple[str, ...]) -> None:
    answer = filled.json(*words)
    assert answer["schema"].startswith("everturn/") and isinstance(answer["items"], list)
    for more in (("--session", SID), ("--since", "2026-01-01"), ("--workspace", "shop"), ("--subagents", "own")):
        assert filled.run(*words, *more)[0] in (0, 3)
    code, out, err = filled.run(*words, "--agent", "gemini")
    assert (code, out) == (3, "") and err.startswith("everturn: ") and err.count("\n") == 1


@pytest.mark.parametrize("words", [*QUESTIONS, ("paths", "--plot", "-"), ("replay", "@last")])
def test_an_empty_archive_is_no_answer(desk: Desk, words: tuple[str, ...]) -> None:
    code, out, err = desk.run(*words)
    assert (code, out) == (3, "") and err.startswith("everturn: ")


def test_turns_are_listed(filled: Desk) -> None:
    _, out, _ = filled.run("turns")
    head, line = out.splitlines()
    assert head.split() == ["SESSION", "TURN", "STARTED", "TOOK", "CALLS", "PARALLEL", "ERRORS", "TOOLS"]
    assert line.startswith("11111111     1  2026-03-01 10:00") and "Bash → Read → Reed → Bash" in line


def test_times_are_told_to_programs_as_everywhere(filled: Desk) -> None:
    (turn,) = filled.json("turns")["items"]
    assert turn["started"].startswith("2026-03-01T10:00:") and turn["started"].endswith("Z")


def test_patterns_of_turns_are_counted(filled: Desk) -> None:
    (item,) = filled.json("turns", "--patterns")["items"]
    assert (item["n"], item["evidence"]) == (1, [{"session": SID, "turn": 1, "agent": "claude_code"}])
    assert filled.run("turns", "--pattern", "Edit")[0] == 3


def test_paths_say_when_chance_explains_everything(desk: Desk) -> None:
    fill(desk.archive.store, [session("a", chain("Read", "Edit"))])
    code, out, err = desk.run("paths")
    assert (code, out) == (3, "") and "no path in 2 calls is" in err and "--all shows the most frequent ones" in err
    assert "no two tools follow each other 5 times; " in desk.run("paths", "--all")[2]


def test_paths_are_told_with_their_lift(desk: Desk) -> None:
    fill(desk.archive.store, history(1, 60))
    _, out, err = desk.run("paths")
    assert out.splitlines()[0].split() == ["SEEN", "SESSIONS", "LIFT", "POSITION", "FAILING", "PATH"]
    assert "Grep → Read → Edit → Bash" in out and err.startswith("in ")


def test_one_tool_is_told(filled: Desk) -> None:
    _, out, _ = filled.run("inspect", "Bash", "--turns")
    for words in ("calls     6 (33 % of all)", "failed    4 (67 %)", "Before it", "After it", "Where in a turn: Bash"):
        assert words in out
    code, out, err = filled.run("inspect", "Bsh")
    assert (code, out) == (3, "") and "did you mean Bash?" in err


def test_suggestions_come_with_what_to_look_at(filled: Desk) -> None:
    _, out, _ = filled.run("suggest")
    assert "Reed: called 6 times, does not exist. Name it like Read, or say so." in out
    assert "everturn show 11111111 --turn 1\n" in out


def test_a_tool_that_fails_first_is_told_with_what_then_works(desk: Desk) -> None:
    turns = [[Made("Bash")], [Made("Edit", "stale", 2500)], [Made("Read")], [Made("Edit")]]
    fill(desk.archive.store, (MadeSession(f"s{n}", [turns]) for n in range(6)))
    _, out, _ = desk.run("suggest")
    assert "Edit: its first call failed in 6 of 6 sessions; Read worked next. Document how to call it." in out
    assert "saves 6 calls, 15s of waiting; seen in 6 sessions" in out


def test_a_call_by_no_name_at_all_is_told(desk: Desk) -> None:
    archive = desk.archive
    called = archive.use("please read the file", "c1"), archive.back("c1", "No such tool available: please…", True)
    desk.take_in(archive.history.line("user", "go"), *called)
    assert "(odd name): called 1 time with an unknown tool name." in desk.run("suggest")[1]


def test_struggles_say_how_they_ended(filled: Desk) -> None:
    _, out, _ = filled.run("struggles")
    assert "Bash: exit status: 4 failures in 1 run, the longest 4, 1 session" in out
    assert "ended: worked 1" in out and "everturn show 11111111 --turn 1 --tools" in out


def test_stats_have_a_total(filled: Desk) -> None:
    _, out, err = filled.run("stats")
    lines = out.splitlines()
    assert lines[1].split()[:5] == ["2026-03", "1", "1", "18", "10"] and lines[2].split()[:5] == [
        "all",
        "1",
        "1",
        "18",
        "10",
    ]
    assert "no price for model-1" in err
    total: dict[str, Any] = filled.json("stats")["total"]
    assert (total["calls"], total["cost"]["micro_dollars"]) == (18, None)


def test_own_prices_lie_beside_the_config_file(filled: Desk, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "prices.toml").write_text('[[price]]\nnames = ["model-1"]\ninput = 1\noutput = 1\n')
    code, out, _ = filled.run("stats", "--json", "--config", str(tmp_path / "config.toml"))
    assert code == 0 and json.loads(out)["total"]["cost"]["micro_dollars"] == 19 * 5


def test_names_of_tools_cannot_act_on_a_terminal(desk: Desk) -> None:
    archive = desk.archive
    desk.take_in(archive.history.line("user", "go"), archive.use(HOSTILE, "c1"), archive.back("c1", "x"))
    for words in QUESTIONS:
        for more in ((), ("--json",)):
            _, out, err = desk.run(*words, *more)
            assert not ACTIVE & set(out + err), words
    assert not ACTIVE & set(desk.run("paths", "--plot", "-")[1])


@pytest.mark.parametrize("words", [("paths", "--plot", "x.png"), ("turns", "--pattern", "→"), ("turns", "--top", "0"), ("stats", "--by", "moon")])  # fmt: skip
def test_a_mistake_is_one_sentence(desk: Desk, words: tuple[str, ...]) -> None:
    code, out, err = desk.run(*words)
    assert (code, out) == (2, "") and err.startswith("everturn: ") and err.count("\n") == 1


def test_a_plot_that_cannot_be_written_is_said(filled: Desk, tmp_path: Path) -> None:
    code, _, err = filled.run("paths", "--plot", str(tmp_path / "no" / "such" / "p.svg"))
    assert code == 2 and "--plot" in err


def test_colours_are_left_out_where_they_are_not_wanted(filled: Desk) -> None:
    assert "\x1b[48" in filled.process("paths", "--plot", "-", FORCE_COLOR="1").stdout.decode()
    assert "\x1b" not in filled.process("paths", "--plot", "-", FORCE_COLOR="1", NO_COLOR="1").stdout.decode()


def test_what_is_not_nothing_is_not_shown_as_nothing() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 1)] == ["0 %", "<1 %", "50 %", "100 %"]
