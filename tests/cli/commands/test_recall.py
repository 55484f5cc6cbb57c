"""`everturn recall`: the text an agent would get, and how to get the rest."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys

import pytest

from tests.capture.history import OTHER, SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk


def two(desk: Desk) -> None:
    history = desk.archive.history
    desk.take_in(history.turn("fix the walrus", "fixed"), history.tool_turn("again", "grep walrus", "none"))
    desk.take_in(history.turn("feed the zebra", "fed", OTHER, cwd="/srv/zoo"), sid=OTHER)


def test_a_search_shows_what_an_agent_would_get(desk: Desk) -> None:
    two(desk)
    code, out, err = desk.run("recall", "search", "zebra")
    assert (code, err) == (0, "")
    assert out.startswith("1 matching turn in the whole archive, best first:\n----- quoted from the archive")
    assert "\n[Session 99999999] 2026-03-01 · " in out
    assert "\n[Turn 1] user:\n  feed the zebra\n" in out


def test_the_rest_is_one_command_away(desk: Desk) -> None:
    two(desk)
    _, out, _ = desk.run("recall", "search", "grep", "walrus", "--session", SID[:6])
    words = shlex.split(out.strip().rpartition(": ")[2])
    assert words[:2] == ["everturn", "recall"]
    code, out, _ = desk.run(*words[1:])
    assert code == 0 and '[Turn 2] tool:Bash(command="grep walrus")\n  none' in out


def test_long_output_can_be_read_on_by_the_commands_given(desk: Desk) -> None:
    output = "\n".join(f"row {n} with words" for n in range(3000))
    desk.take_in(desk.archive.history.tool_turn("go", "run", output))
    seen, words = "", ["recall", "range", "1"]
    for _ in range(40):
        _, out, _ = desk.run(*words)
        seen += out
        if "Not shown here:" not in out:
            break
        words = shlex.split(out.strip().rpartition("): ")[2])[1:]
    assert words != ["recall", "range", "1"], "it fitted into one answer"
    assert all(f"row {n} with" in seen for n in range(3000))


def test_without_a_session_the_newest_is_meant(desk: Desk) -> None:
    two(desk)
    assert "  feed the zebra" in desk.run("recall", "range", "1")[1]
    assert "99999999" in desk.run("recall", "summary")[1]
    assert "2 of 1" not in desk.run("recall", "tool-calls", "Bash", "--session", SID)[1]
    assert "  none" in desk.run("recall", "tool-calls", "shell", "--session", "1111")[1]


def test_json_has_the_text_and_its_parts(desk: Desk) -> None:
    two(desk)
    answer = desk.json("recall", "range", "1", "2", "--session", SID)
    assert (answer["schema"], answer["status"]) == ("everturn/recall@1", "found")
    assert [(item["turn"], item["message"], item["head"]) for item in answer["items"]] == [
        (1, 1, "user:"), (1, 2, "assistant:"), (2, 3, "user:"), (2, 4, 'tool:Bash(command="grep walrus")'),
    ]  # fmt: skip
    assert answer["text"].startswith("Turns 1 to 2 of 2 of session 11111111:")


@pytest.mark.parametrize(
    "words",
    [
        ["search", "unicorn"], ["range", "99"], ["tool-calls", "Grep"], ["range", "1", "--session", "nope"],
        ["range", "1", "--message", "999"],
    ],
)  # fmt: skip
def test_nothing_found_is_exit_3_with_a_sentence(desk: Desk, words: list[str]) -> None:
    two(desk)
    code, out, err = desk.run("recall", *words)
    assert (code, out) == (3, "") and err.startswith("everturn: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [], ["search"], ["range"], ["range", "x"], ["range", "3", "1"], ["range", "0"], ["range", "1", "--message", "x"],
        ["tool-calls"], ["search", "x", "--limit", "0"], ["search", "x", "--budget", "9"], ["search", "turn:x", "y"], ["find"],
    ],
)  # fmt: skip
def test_a_mistake_is_exit_2(desk: Desk, words: list[str]) -> None:
    two(desk)
    code, _, err = desk.run("recall", *words)
    assert code == 2 and err.startswith(("everturn: ", "Usage: "))


def test_a_budget_is_kept(desk: Desk) -> None:
    desk.take_in(*(desk.archive.history.turn("walrus " * 300, "word " * 300) for _ in range(9)))
    for words in (["search", "walrus"], ["range", "1", "9"]):
        _, out, _ = desk.run("recall", *words, "--budget", "300")
        assert len(out.encode()) <= 1200 and "Not shown here:" in out


def test_secrets_are_masked_unless_revealed_and_nothing_acts_on_the_terminal(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn(f"walrus {KEY} {HOSTILE}", HOSTILE))
    for words in (["search", "walrus"], ["range", "1"], ["summary"]):
        for more in ([], ["--json"]):
            _, out, err = desk.run("recall", *words, *more)
            assert KEY not in out and not ACTIVE & set(out + err)
        assert KEY in desk.run("recall", *words, "--reveal")[1]


def test_help_shows_every_action(desk: Desk) -> None:
    code, out, _ = desk.run("recall", "--help")
    assert code == 0 and all(name in out for name in ("search", "range", "tool-calls", "summary", "Examples:"))


def test_without_an_action_the_help_is_shown_line_by_line(desk: Desk) -> None:
    code, out, err = desk.run("recall", "--json")  # an option is no action
    assert code == 2 and out == "" and "missing command" in err
    alone = subprocess.run([sys.executable, "-m", "everturn", "recall"], capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and alone.stdout == "" and "\nCommands:\n  hint " in alone.stderr


def test_asking_for_few_gives_the_first_of_what_asking_for_more_gives(desk: Desk) -> None:
    history = desk.archive.history
    talk = b"".join(history.line("assistant", [{"type": "text", "text": f"walrus {n}"}]) for n in range(8))
    desk.take_in(history.line("user", "walrus"), talk, history.turn("and the other walrus?", "asleep"))
    assert desk.run("recall", "search", "walrus", "--limit", "2")[1].startswith("2 matching turns in")


def test_a_hint_is_printed_only_when_it_is_sure(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    history = desk.archive.history
    desk.take_in(history.turn("the zebra parser must skip blank lines", "Done."), history.turn("go", "yes"))
    for prompt, is_sure in (
        ("like we discussed for the zebra parser", True),
        ("like we discussed for walrus tax", False),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO(prompt))
        code, out, _ = desk.run("recall", "hint", "--workspace", "/home/ann/shop")
        assert (code, "session 11111111, turn 1" in out, bool(out)) == (0, is_sure, is_sure)
