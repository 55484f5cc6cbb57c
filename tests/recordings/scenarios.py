"""Every scenario by name: a function from a random generator to the steps a person takes.

    SCENARIOS["tall"].steps(Random("tall/1"))

The seed decides every word; only timing differs between two recordings of the same scenario and seed. `random` draws a
mixture of all the others. `needs` names the abilities a program must have (`tests.recordings.programs.Program.can`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.recordings.steps import (
    Reply,
    Step,
    Tool,
    bullets,
    code,
    edit,
    fail,
    interrupt,
    new_session,
    numbered_file,
    prompt,
    prose,
    raise_toast,
    read,
    resize,
    say,
    scroll,
    sentence,
    shell,
    switch_agent,
    table,
    todo,
    write,
)

SIZE = (110, 36)


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    summary: str
    play: Callable[[Random], list[Step]]
    needs: frozenset[str] = frozenset()
    asks: bool = False  # whether the program asks before it runs a tool
    size: tuple[int, int] = SIZE

    def steps(self, seed: int) -> list[Step]:
        """The steps for a seed."""
        return self.play(Random(f"{self.name}/{seed}"))


SCENARIOS: dict[str, Scenario] = {}
_Play = Callable[[Random], list[Step]]


def _scenario(summary: str, *needs: str, asks: bool = False, size: tuple[int, int] = SIZE) -> Callable[[_Play], _Play]:
    def enter(play: _Play) -> _Play:
        name = play.__name__.removeprefix("play_")
        SCENARIOS[name] = Scenario(name, summary, play, frozenset(needs), asks, size)
        return play

    return enter


# plain conversation ---------------------------------------------------------------------------------------------------
@_scenario("three prompts with short answers")
def play_short(chance: Random) -> list[Step]:
    return [
        prompt("What is the index for?", say(bullets(chance, 3))),
        prompt("And the cache?", say(prose(chance, 1))),
        prompt("Ok please proceed", say(bullets(chance, 2))),
    ]


@_scenario("the same prompts and the same answers again")
def play_repeats(chance: Random) -> list[Step]:
    same = bullets(chance, 4)
    return [
        prompt("Start with the first part", say(bullets(chance, 20))),
        prompt("Ok please proceed", say(same)),
        prompt("Ok please proceed", say(same)),
        prompt("Ok please proceed", say(bullets(chance, 12))),
        prompt("yes", say(same)),
        prompt("yes", say("Done.")),
        prompt("yes", say("Done.")),
    ]


@_scenario("answers taller than the screen, with code and a table")
def play_tall(chance: Random) -> list[Step]:
    return [
        prompt("Explain everything", say(bullets(chance, 60) + "\n\n" + code(chance, 8))),
        prompt("Shorter please", say(sentence(chance))),
        prompt("Once more with a table", say(prose(chance, 14) + "\n\n" + table(chance, 6))),
        prompt("Show the code", say(code(chance, 50))),
        prompt("Last words?", say(sentence(chance))),
    ]


@_scenario("twenty-four turns of changing length")
def play_long(chance: Random) -> list[Step]:
    return [
        prompt(f"Question number {n}: {sentence(chance, 2, 6)}?", *_looked(chance, n), say(bullets(chance, 2 + 5 * (n % 5))))
        for n in range(1, 25)
    ]  # fmt: skip


def _looked(chance: Random, n: int) -> tuple[Reply, ...]:
    return (say(calls=(shell(f"seq {n} {n + 8}"),)),) if n % 3 == 0 else ()


@_scenario("prompts that wrap in the input box, wide characters on both sides")
def play_wrapped(chance: Random) -> list[Step]:
    return [
        prompt(f"This prompt is too long for one line of the box: {sentence(chance, 40, 50)} omega", say(prose(chance, 2))),
        prompt("日本語のテスト、 émigré and 🚀 in one prompt", say(bullets(chance, 6, wide=True))),
        prompt("全角文字" * 20 + " end", say(bullets(chance, 24, wide=True))),
        prompt("Go on", say("\n".join(["한국어 문장 " * 12, "", "👩‍💻 family 👨‍👩‍👧 of joined emoji " * 4]))),
    ]  # fmt: skip


@_scenario("multi-line text pasted into the box")
def play_pasted(chance: Random) -> list[Step]:
    log = "\n".join(f"log line {n}: {sentence(chance, 4, 9)}" for n in range(40))
    return [
        prompt("def f(x):\n    return x + 1\n\nwhy is this slow?", say(bullets(chance, 3)), pasted=True),
        prompt("Go on", say(bullets(chance, 25))),
        prompt(f"{log}\nwhat is wrong?", say(bullets(chance, 4)), pasted=True),
        prompt("- one\n- two\n\n> quoted\n\n```\ncode\n```", say(sentence(chance)), pasted=True),
        prompt("That is all", say(sentence(chance))),
    ]


# tools ----------------------------------------------------------------------------------------------------------------
@_scenario("commands with short, long, failing and empty output")
def play_tools(chance: Random) -> list[Step]:
    return [
        prompt("Count to five", say(calls=(shell("seq 1 5"),)), say(sentence(chance))),
        prompt("Count to sixty", say("I count first.", (shell("seq 1 60"),)), say(bullets(chance, 3))),
        prompt("List a folder that is missing", say(calls=(shell("ls /missing-folder"),)), say(sentence(chance))),
        prompt("Do nothing", say(calls=(shell("true"),)), say(sentence(chance))),
        prompt("Twice in a row", say(calls=(shell("echo once"),)), say(calls=(shell("echo twice"),)), say(sentence(chance))),
        prompt("Thanks", say(sentence(chance))),
    ]  # fmt: skip


@_scenario("several calls in one response")
def play_parallel(chance: Random) -> list[Step]:
    files = tuple(write(f"part{n}.txt", numbered_file(f"part{n}.txt", 4 + n)) for n in range(3))
    return [
        prompt("Look at two things", say("Both at once.", (shell("seq 1 3"), shell("echo hello"))), say(sentence(chance))),
        prompt("Write three files", say(calls=files), say(sentence(chance))),
        prompt("Read them", say(calls=tuple(read(f"part{n}.txt") for n in range(3))), say(bullets(chance, 8))),
        prompt("One works, one fails", say(calls=(shell("echo works"), shell("ls /missing-folder"))), say(sentence(chance))),
    ]  # fmt: skip


@_scenario("files written, read and edited: diffs on the screen")
def play_edits(chance: Random) -> list[Step]:
    old, new = "notes entry 2 holds 4", "notes entry two holds four, changed"
    return [
        prompt("Write the notes", say(calls=(write("notes.txt", numbered_file("notes.txt", 12)),)), say(sentence(chance))),
        prompt("Change one line", say("I read it first.", (read("notes.txt"),)), say(calls=(edit("notes.txt", old, new),)), say(sentence(chance))),
        prompt("Show it", say(calls=(shell("cat notes.txt"),)), say(bullets(chance, 12))),
        prompt("Write a long file", say(calls=(write("table.py", numbered_file("table.py", 70)),)), say(sentence(chance))),
        prompt("Change it twice", say(calls=(read("table.py"),)), *_two_edits(), say(bullets(chance, 3))),
        prompt("Done", say(sentence(chance))),
    ]  # fmt: skip


def _two_edits() -> tuple[Reply, ...]:
    return tuple(
        say(calls=(edit("table.py", f"table entry {n} holds {n * n}\n", f"table entry {n} is {n} squared\n# checked\n"),))
        for n in (7, 40)
    )  # fmt: skip


@_scenario("a todo list that is worked off", "todo")
def play_todos(chance: Random) -> list[Step]:
    tasks = ("Read the schema", "Write the migration", "Run the tests")

    def after(done: int) -> Tool:
        states = ["completed"] * done + ["in_progress"] + ["pending"] * 3
        return todo(*zip(tasks, states, strict=False))

    return [
        prompt("Plan the work", say("I plan.", (after(0),)), say(sentence(chance))),
        prompt("Do the first", say(calls=(shell("seq 1 4"),)), say(calls=(after(1),)), say(sentence(chance))),
        prompt("Do the rest", say(calls=(after(2),)), say(calls=(shell("echo tests pass"),)), say(calls=(after(3),)), say(bullets(chance, 5))),
        prompt("Thanks", say(sentence(chance))),
    ]  # fmt: skip


@_scenario("permission dialogs: allowed once, always, and refused", "permissions", asks=True)
def play_permissions(chance: Random) -> list[Step]:
    return [
        prompt("Run it once", say("I need a command.", (shell("touch first.txt"),)), say(sentence(chance)), decisions=("once",)),
        prompt("Write a file", say(calls=(write("asked.txt", numbered_file("asked.txt", 6)),)), say(sentence(chance)), decisions=("once",)),
        prompt("Run something else", say(calls=(shell("touch second.txt"),)), say(sentence(chance)), decisions=("reject",)),
        prompt("Ok please proceed", say(bullets(chance, 6))),
        prompt("Run it from now on", say(calls=(shell("mkdir third"),)), say(bullets(chance, 3)), decisions=("always",)),
        prompt("Thanks", say(sentence(chance))),
    ]  # fmt: skip


# trouble --------------------------------------------------------------------------------------------------------------
@_scenario("requests the provider refuses, between good ones")
def play_failures(chance: Random) -> list[Step]:
    return [
        prompt("Begin", say(bullets(chance, 12))),
        prompt("This one fails", fail()),
        prompt("Ok please proceed", say(bullets(chance, 3))),
        prompt("This fails too", fail()),
        prompt("Go on", say(bullets(chance, 40))),
        prompt("And fails again", say("First a look.", (shell("seq 1 4"),)), fail()),
        prompt("yes", say(sentence(chance))),
        prompt("yes", say(sentence(chance))),
        prompt("The last one", say(bullets(chance, 30))),
    ]


@_scenario("passing notices over a conversation", "toast")
def play_toasts(chance: Random) -> list[Step]:
    return [
        prompt("Begin", say(bullets(chance, 8))),
        raise_toast(),
        prompt("Go on", say(bullets(chance, 30))),
        raise_toast(),
        prompt("And on", say(calls=(shell("seq 1 6"),)), say(sentence(chance))),
        raise_toast(),
        prompt("The end", say(bullets(chance, 5))),
    ]


@_scenario("answers that are stopped while they stream")
def play_interrupted(chance: Random) -> list[Step]:
    return [
        prompt("A very long answer please", say(bullets(chance, 150), lasts=30), waits=False),
        interrupt(),
        prompt("Shorter", say(bullets(chance, 5))),
        prompt("Again long", say(prose(chance, 30), lasts=30), waits=False),
        interrupt(),
        prompt("And on", say(bullets(chance, 8))),
    ]


# the terminal ---------------------------------------------------------------------------------------------------------
@_scenario("the terminal changes its size between turns and while an answer streams")
def play_resized(chance: Random) -> list[Step]:
    return [
        prompt("At first", say(bullets(chance, 30))),
        resize(80, 24),
        prompt("Narrow now", say(bullets(chance, 30))),
        resize(140, 50),
        prompt("Large now", say(bullets(chance, 30), lasts=5), waits=False),
        resize(100, 30),
        prompt("Done", say(sentence(chance))),
    ]


@_scenario("paging through the transcript, also while an answer streams", "scroll")
def play_scrolled(chance: Random) -> list[Step]:
    return [
        prompt("Tell much", say(bullets(chance, 80))),
        *scroll("up", "up", "down", "down"),
        prompt("After scrolling", say(bullets(chance, 4))),
        prompt("Tell more", say(bullets(chance, 50), lasts=8), waits=False),
        *scroll("up", "up", "down", "down"),
        prompt("Finally", say(sentence(chance))),
    ]


@_scenario("three sessions in one recording", "new")
def play_sessions(chance: Random) -> list[Step]:
    return [
        prompt("In the first session", say(bullets(chance, 10))),
        new_session(),
        prompt("In the second session", say(bullets(chance, 40))),
        prompt("Look", say(calls=(shell("seq 1 5"),)), say(sentence(chance))),
        new_session(),
        prompt("In the third session", say(bullets(chance, 3))),
        prompt("The end", say(sentence(chance))),
    ]


@_scenario("the agent or mode is switched between turns", "agent")
def play_agents(chance: Random) -> list[Step]:
    return [
        prompt("As you are", say(bullets(chance, 5))),
        switch_agent(),
        prompt("As another", say(bullets(chance, 20))),
        switch_agent(),
        prompt("Back again", say(calls=(shell("seq 1 5"),)), say(sentence(chance))),
        prompt("The end", say(sentence(chance))),
    ]


# mixtures -------------------------------------------------------------------------------------------------------------
@_scenario("a mixture of everything; the seed decides")
def play_random(chance: Random) -> list[Step]:
    steps: list[Step] = []
    for number in range(1, chance.randint(5, 12)):
        steps += _random_turn(chance, number)
        if chance.random() < 0.12:
            steps.append(new_session())
        if chance.random() < 0.1:
            steps.append(resize(*chance.choice(((80, 24), (120, 40), (100, 30), (110, 36)))))
        if chance.random() < 0.1:
            steps.append(switch_agent())
        if chance.random() < 0.1:
            steps += scroll("up", "down")
        if chance.random() < 0.1:
            steps.append(raise_toast())
    steps.append(prompt("That is all", say(sentence(chance))))
    return steps


def _random_turn(chance: Random, number: int) -> list[Step]:
    text = _random_prompt(chance, number)
    if number == 1:  # OpenCode 0.5 hangs when a long text is pasted into its first screen
        text = text.replace("\n", " ")
    pasted = "\n" in text
    if chance.random() < 0.08:
        return [prompt(text, say(bullets(chance, 120), lasts=30), pasted=pasted, waits=False), interrupt()]
    replies = [say(sentence(chance) if chance.random() < 0.4 else "", _random_calls(chance, number)) for _ in range(chance.choice((0, 0, 0, 1, 1, 2)))]  # fmt: skip
    replies.append(fail() if chance.random() < 0.12 else say(_random_answer(chance)))
    return [prompt(text, *replies, pasted=pasted)]


def _random_prompt(chance: Random, number: int) -> str:
    if chance.random() < 0.25:
        return chance.choice(("yes", "Ok please proceed", "continue"))
    if chance.random() < 0.15:
        return "\n".join(sentence(chance, 3, 9) for _ in range(chance.randint(2, 14)))
    return f"Prompt {number}: {sentence(chance, 1, 40, wide=chance.random() < 0.15)}"


def _random_answer(chance: Random) -> str:
    makers: tuple[Callable[[], str], ...] = (
        lambda: bullets(chance, chance.randint(1, 70), wide=chance.random() < 0.15),
        lambda: bullets(chance, chance.randint(1, 8)),
        lambda: prose(chance, chance.randint(1, 8)),
        lambda: code(chance, chance.randint(2, 40)),
        lambda: sentence(chance) + "\n\n" + table(chance, chance.randint(2, 8)),
        lambda: sentence(chance),
    )
    return chance.choice(makers)()


def _random_calls(chance: Random, number: int) -> tuple[Tool, ...]:
    calls = []
    for place in range(chance.choice((1, 1, 1, 2, 3))):
        name = f"file{number}_{place}.txt"
        command = shell(f"seq {number} {number + chance.randint(1, 60)}")
        written = write(name, numbered_file(name, chance.randint(2, 40)))
        calls.append(chance.choice((command, command, written, shell("ls /missing-folder"), todo(("Look", "in_progress"), ("Write", "pending")))))  # fmt: skip
    return tuple(calls)
