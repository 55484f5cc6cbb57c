"""What a model says in a summary is checked against the record, through the chat a person uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.agents import Teller
from tests.chat.program import Desk, Model, Terminal, is_restoration, is_summary_request, last_words
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

FORM = """<!-- SESSION_SUMMARY_START -->
**Background Context:** Initial session.

**Current Session Summary:**
**Topics Discussed:**
- {topics}

**Decisions Made:**
- {decisions}

**Pending:**
- {pending}
<!-- SESSION_SUMMARY_END -->"""


def summarising(topics: tuple[str, ...] = (), decisions: tuple[str, ...] = (), pending: tuple[str, ...] = ()) -> Model:
    """A model whose summary has these bullets."""

    class Planted(Model):
        def __call__(self, asked: Asked) -> Says:
            if is_summary_request(asked):
                parts = ("\n- ".join(one or ("None",)) for one in (topics, decisions, pending))
                return Says(FORM.format(**dict(zip(("topics", "decisions", "pending"), parts, strict=True))))
            if last_words(asked) == "run the tests":
                return Says(calls=(Call("shell", {"command": "python -m pytest tests; false"}),))
            return super().__call__(asked)

    return Planted()


def test_a_rule_turned_round_is_left_out_and_told_and_what_rests_on_nothing_is_marked(
    tmp_path: Path, held_by: str
) -> None:
    script = summarising(
        topics=("the rate limiter of the gateway", "a migration to Kubernetes in Frankfurt"),
        decisions=("The user said to use an ORM", "token buckets for the rate limiter"),
    )
    with ModelServer(script) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        ran = desk.chat(
            "we build the rate limiter of the gateway",
            "never use an ORM",
            "we decided to use token buckets for the rate limiter",
            "compact",
            "go on",
        )
        (told,) = [last_words(one) for one in server.asked if is_restoration(one)]
    summary = told.partition("**Background Context:**")[2]
    assert "The user said to use an ORM" not in summary
    assert (
        "- the rate limiter of the gateway\n- a migration to Kubernetes in Frankfurt (not found in the record)\n"
        in summary
    )
    assert "- token buckets for the rate limiter\n" in summary
    (line,) = [one for one in ran.err.splitlines() if "Summary checked" in one][:1]
    assert (
        'Summary checked, 4 bullets: 1 contradicted by the record and left out ("The user said to use an ORM"' in line
    )
    assert line.endswith("; 1 not found in the record and marked")
    assert "The user said to use an ORM" not in desk.saved[0].read_text()


@pytest.mark.slow
def test_tests_that_failed_did_not_pass(tmp_path: Path) -> None:
    script = summarising(topics=("run the tests", "All tests passed"))
    with ModelServer(script) as server:
        desk = Desk(tmp_path, server)
        with Terminal(desk, "chat", "--new") as terminal:
            terminal.until("You: ")
            terminal.type("run the tests\r")
            terminal.until("chat) ")
            terminal.type("y\r")
            terminal.until("answer 1")
            terminal.until("You: ")
            terminal.type("exit\r")
            shown = terminal.until("Goodbye!")
        assert '1 contradicted by the record and left out ("All tests passed"' in shown.replace("\r\n", " ")
        (saved,) = desk.saved
        assert "- run the tests" in saved.read_text() and "All tests passed" not in saved.read_text()


def test_what_was_laid_down_earlier_is_record_too(tmp_path: Path, held_by: str) -> None:
    script = summarising(decisions=("use an ORM", "the greeting stays short"))
    with ModelServer(script) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        desk.chat("never use an ORM", "compact", "the greeting stays short", "compact", "and on")
        told = [last_words(one) for one in server.asked if is_restoration(one)]
    assert len(told) == 2 and all("- use an ORM" not in one for one in told)
    assert "- the greeting stays short\n" in told[1] and "Constraint: never use an ORM" in told[1]


def test_a_summary_that_agrees_with_the_record_is_taken_as_it_is(tmp_path: Path, held_by: str) -> None:
    script = summarising(topics=("flushing the zebra cache",), pending=("None",))
    with ModelServer(script) as server:
        ran = Desk(tmp_path, server, held_by=held_by).chat("flush the zebra cache at midnight")
    assert "✓" in ran.err and "Summary checked" not in ran.err and "⚠️" not in ran.err


@pytest.mark.parametrize("kind", ["model", "agent"])
def test_a_summary_has_the_form_that_a_person_wrote(desk: Desk, kind: str) -> None:
    teller, form = Teller(desk, kind), desk.folder / "form.txt"
    form.write_text("Write three lines for a colleague in a hurry.\n")
    teller.chat("hello", words=("--new", "--summary-prompt", str(form)))
    (asked,) = [one for one in teller.told() if "Generate a progressive session summary" in one]
    assert "Write three lines for a colleague in a hurry.\n\nPut the summary between these marks:" in asked
    assert "Create a structured summary" not in asked


def test_a_summary_in_a_form_of_ones_own_needs_no_headings(tmp_path: Path, held_by: str) -> None:
    def answer(asked: Asked) -> Says:
        if is_summary_request(asked):
            return Says("<!-- SESSION_SUMMARY_START -->\nZebras, in short.\n<!-- SESSION_SUMMARY_END -->")
        return Model()(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        (desk.folder / "form.txt").write_text("One line.")
        desk.chat("zebras", "compact", "on", words=("--new", "--summary-prompt", str(desk.folder / "form.txt")))
        (told,) = [last_words(one) for one in server.asked if is_restoration(one)]
    assert "Zebras, in short." in told
