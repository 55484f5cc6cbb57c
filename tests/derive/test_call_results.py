"""How calls ended: nothing is called ok without evidence, and what a command only shows is no failure."""

from __future__ import annotations

import random

import pytest

from everturn.derive.call_results import CallVerdict, judge_call, judge_checks
from everturn.model.archive import Call
from everturn.model.conversation import CallStart

FAILURE_LINES = (
    "fatal: 'quay' is not a ship", "error: no such quay", "Error: the harbour is closed", "ERROR: two quays are named '001'", "[ERROR] the crane stopped",
    "bash: line 1: shipctl: command not found", "zsh: command not found: shipctl", "Command 'shipctl' not found, did you mean:", "cat: quays.txt: No such file or directory",
    "/usr/bin/python3: No module named ferry", "ModuleNotFoundError: No module named 'ferry'", "    + CategoryInfo          : ParserError: (:) [], ParentContainsErrorRecordException",
    "'shipctl' is not recognized as an internal or external command,", "Sink the ship? [y/N] Canceled.", "The user doesn't want to proceed with this tool use.", "[Request interrupted by user]",
    "Fehler: Der Hafen ist zu", "erreur : le port est fermé", "エラー: 港は閉まっています", "错误：港口已关闭", "npm error code ERESOLVE", "curl: (7) Failed to connect", "BUILD FAILED in 2s",
)  # fmt: skip
HIDING = (
    "{} | tail -5",
    "{} 2>&1 | head -20",
    "{} || true",
    "{}; echo done",
    "cd quay && {} | tee log",
    "{} | sort | uniq",
    "for one in a b; do {}; done",
    "{} &",
)
COMMANDS = (
    "shipctl load --quay 8",
    "git push origin main",
    "npm run harbour",
    "pip install ferry",
    "bash ./dock.sh",
    "make",
    "pytest -q",
)


def ending(
    command: str, output: str, exit_status: int | None = 0, error_class: str = "", kind: str = "shell"
) -> CallVerdict:
    status = "error" if exit_status or error_class else "ok"
    call = Call(status=status, exit_status=exit_status, error_class=error_class, kind=kind)
    start = CallStart("c", "Bash" if kind == "shell" else "tool", kind, command=command)
    return judge_call(call, start, output, judge_checks(call, start, output))


def noise(chance: random.Random) -> list[str]:
    words = ("loading", "quay 8", "12 crates", "see the log", "done with crate 3", "")
    return [f"{chance.choice(words)} {at}" for at in range(chance.randint(0, 40))]


@pytest.mark.parametrize("line", FAILURE_LINES)
def test_what_ends_with_a_failure_is_never_ok(line: str) -> None:
    chance = random.Random(line)
    for command in COMMANDS:
        for hidden in HIDING:
            output = "\n".join([*noise(chance), line])
            found = ending(hidden.format(command), output, chance.choice((0, None)))
            assert found.failed, (hidden.format(command), found)
        assert ending(command, line, None).how != "ok"
        assert ending(command, "\n".join([line, *noise(chance)]), None).how != "ok"


def test_a_failure_anywhere_in_a_hidden_output_is_never_ok() -> None:
    chance = random.Random(1)
    for _ in range(500):
        lines = noise(chance)
        lines.insert(chance.randint(0, len(lines)), chance.choice(FAILURE_LINES))
        command = chance.choice(HIDING).format(chance.choice(COMMANDS))
        assert ending(command, "\n".join(lines), chance.choice((0, None))).how != "ok"


def test_without_evidence_nothing_is_said() -> None:
    for command in COMMANDS:
        for hidden in HIDING:
            assert ending(hidden.format(command), "12 crates\nsee the log").how == ""
        assert ending(command, "12 crates\nsee the log", None).how == ""
    assert ending("shipctl load | tail -3", "").how == ""


@pytest.mark.parametrize(
    ("command", "output", "exit_status"),
    [
        ("shipctl load", "12 crates", 0),
        ("cd quay && git add . && shipctl load", "", 0),
        ("pytest -q | tail -3", "44 passed in 2.13s", 0),
        ("mvn package", "[INFO] BUILD SUCCESS", None),
        ("pip install ferry", "Successfully installed ferry-1.0", None),
        ("cat quay.log", "error: the crane stopped", 0),
        ("set -o pipefail; shipctl load | tail -3", "12 crates", 0),
    ],
)
def test_evidence_is_a_visible_status_or_a_summary(command: str, output: str, exit_status: int | None) -> None:
    assert ending(command, output, exit_status).how == "ok"


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn error: src",
        "cat quay.log | tail -50",
        "sed -n 1,40p crane.py",
        "rg fatal",
        "git log --oneline | head",
        "docker logs harbour",
        "git show HEAD:crane.py | head",
    ],
)
def test_what_only_shows_text_does_not_fail_by_it(command: str) -> None:
    shown = "\n".join(
        ["error: the crane stopped", "TypeError: x", *(f"line {n}" for n in range(20)), "fatal: all is lost"]
    )
    assert not ending(command, shown).failed
    assert not ending(command, shown, None).failed


def test_a_program_that_shows_files_may_fail_itself() -> None:
    assert ending("cat quays.txt | head", "cat: quays.txt: No such file or directory").failed
    assert ending("git log | head -3", "fatal: not a git repository (or any of the parent directories): .git").failed


def test_the_line_that_names_the_error_is_told() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    load()\nferry.QuayError: no quay 8'
    )
    assert ending("python load.py | tail", trace).text == "failed: ferry.QuayError: no quay 8"
    assert (
        ending("shipctl load", "ERROR: two quays\nloaded one of them").text
        == "exit 0, but it printed: ERROR: two quays"
    )
    assert ending("shipctl load", "Error: no quay", 2).text == "exit 2: Error: no quay"


def test_stops_are_named() -> None:
    assert ending("shipctl sink", "", None, "rejected").text == "denied"
    assert ending("shipctl sink", "Sink it? [y/N] Canceled.").text == "cancelled"
    assert (
        ending("npm create ship", "> create-ship .\n\n\x1b[90m└\x1b[39m  \x1b[31mOperation cancelled\x1b[39m").text
        == "cancelled"
    )
    assert ending("shipctl sink", "The user doesn't want to proceed with this tool use.").text == "denied"
    assert ending("shipctl load", "x", None, "timeout").text == "timed out"
    assert ending("shipctl watch", "Command running in background with ID: b1").text == "running"


def test_a_service_that_refuses_did_not_do_it() -> None:
    refusal = "The harbour requires authentication. Please log in."
    assert ending("", refusal, None, kind="other").text == f"failed: {refusal}"
    assert ending("", "You've hit your limit · resets 5pm", None, kind="task").failed
    assert not ending("", "The harbour has 12 quays.\nSee the guide on authentication.", None, kind="other").failed


def test_settings_of_the_shell_do_not_speak_for_the_command() -> None:
    assert (
        ending("shipctl load", "/opt/brew/brew.sh: line 60: cannot create temp file: Operation not permitted").how
        == "ok"
    )


@pytest.mark.parametrize(
    "line", ["Cancelled", "^C", "Aborted.", "Error: the harbour is closed", "You have reached your limit"]
)
def test_a_text_that_a_call_only_shows_says_nothing_of_the_call(line: str) -> None:
    assert ending("cat harbour.log", f"quay 8\n{line}").text == "ok"
    assert ending("", f"{line}\nquay 8", None, kind="read").text == "ok"
    assert ending("", f"quay 8\n{line}", None, kind="search").text == "ok"
