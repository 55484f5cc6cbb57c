"""Real recordings, where they are at hand, give the turns a person reads in them when a terminal replays them."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.reading import artifacts, spoken

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real transcripts is not beside the checkout")


def read(name: str) -> ScreenTalk:
    """The only conversation of a recording."""
    path = CORPUS / name
    (talk,) = read_screens(transcribe(path.read_bytes(), path.name))
    return talk


def told(said: list[DrawnSaying]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(item.role, item.text or (item.calls[0].title if item.calls else "")) for item in said]


def test_eight_requests_to_a_client_with_panels() -> None:
    talk = read("terminal/opencode-1.18.raw")
    turns = [
        pair
        for n in range(1, 9)
        for pair in (("user", f"request number {n}: please look again"), ("assistant", "All done : scripted answer ."))
    ]
    turns.insert(1, ("assistant", "$ "))
    assert told(spoken(talk)) == turns
    spans = [item.duration_ms for item in talk.said if item.duration_ms is not None]
    assert spans == [3_500, 157, 330, 251, 213, 447, 235, 346]
    assert (talk.native_id, talk.workspace) == ("ses_e22b6bf13ffeBODeBWHzi4mYQO", "/home/me/demo")
    assert {item.model for item in spoken(talk) if item.role == "assistant"} == {"m"}
    assert not talk.working


def test_nine_requests_on_the_main_screen() -> None:
    talk = read("terminal/claude-code-2.1.raw")
    answer = ("assistant", "All done: scripted answer.")
    first = [
        ("user", "fix the 会话 bug please"),
        ("assistant", "Let me run it."),
        ("assistant", "Listed 1 directory\n$ echo hi; ls /nonexistent_dir"),
        answer,
    ]
    rest = [pair for n in range(2, 10) for pair in (("user", f"request number {n}: please look again"), answer)]
    assert told(spoken(talk)) == [*first, *rest, ("system", "/compact")]
    assert (talk.native_id, talk.client) == ("003d0896-16f2-4171-8ad4-bbfc18111811", "2.1.197")


def test_twelve_requests_to_a_program_with_boxes() -> None:
    talk = read("terminal/demo.cast")
    said = spoken(talk)
    prompts = [item for item in said if item.role == "user"]
    assert [item.text for item in prompts] == [
        f"Request {n}: please fix bug number {n}\nand also update docs" for n in range(1, 13)
    ]
    assert {(item.author, item.time_text) for item in prompts} == {("alice", "10:32 AM")}
    assert artifacts([talk]) == [
        pair for n in range(1, 13) for pair in (("read", f"src/mod_{n}.py"), ("edited", f"src/mod_{n}.py"))
    ]
    long = [item.text.split("\n") for item in said if "sentence" in item.text]
    assert [len(lines) for lines in long] == [8] * 12


@pytest.mark.parametrize("name", ["w80-permission-edit.txt", "w80-turn-aborted-after-complete.txt"])
def test_a_pane_without_colours_tells_prompts_from_tools(name: str) -> None:
    talk = read(f"opencode-tui/Kewton+CommandMate/{name}")
    said = [item for item in spoken(talk) if item.role != "system"]
    assert [item.role for item in said] == [
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
        "assistant",
        "assistant",
    ]
    assert said[1].calls[0].command == "uname -a"
    assert said[2].duration_ms == 36_100
    assert [(item.calls[0].kind, item.calls[0].status) for item in said[5:]] == [("read", "ok"), ("edit", "open")]
    assert artifacts([talk]) == [("read", "README.md")]
