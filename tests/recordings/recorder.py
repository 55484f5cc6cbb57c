"""Record one scenario: a program in tmux, `script` around it, the scripted model behind it, the truth beside it.

    record(PROGRAMS["opencode-0.5"], SCENARIOS["tools"], seed=1, out=Path("out"))

Waiting is for something to be seen: the prompt in the input box, the model's replies asked for, a screen that no longer
changes. A program that does not do what it is waited for is given up: a truth with gaps would be none.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.model_server import ModelServer
from tests.recordings.homes import Home
from tests.recordings.model import ScriptedModel
from tests.recordings.programs import Keys, Program
from tests.recordings.scenarios import Scenario
from tests.recordings.steps import Step
from tests.recordings.truth import (
    RECORDING,
    SCREENS,
    TIMING,
    Answer,
    Event,
    Moment,
    Notice,
    Prompt,
    Screen,
    Truth,
    added_lines,
    answer_lines,
    squash,
    write_truth,
)
from tests.tmux import Pane

FORMS = {
    "typescript": lambda raw, timing: ["script", "-q", "-f", f"--timing={timing}", raw],
    "log-out": lambda raw, timing: ["script", "-q", "-f", "--logging-format", "advanced", "-O", raw, "-T", timing],
}

START = 180.0  # seconds until a program takes its first prompt
STEP = 300.0  # seconds until a step is over
ANSWER = 120.0  # seconds until a program shows what was typed, or asks for a permission
QUIET = 1.0  # seconds without a change until a screen has settled


class ProgramFailed(Exception):
    """The program has ended, hangs, or does something else than was expected."""


def record(program: Program, scenario: Scenario, seed: int, out: Path, form: str = "log-out", theme: str = "") -> Truth:
    """Make a recording in a folder, and return its truth."""
    out.mkdir(parents=True, exist_ok=True)
    for name in (RECORDING, TIMING, SCREENS):
        (out / name).unlink(missing_ok=True)
    stage = Path(tempfile.gettempdir()) / "recordings" / f"{program.name}-{scenario.name}-{seed}"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    clock = _Clock(out / RECORDING)
    try:
        work = stage / "home" / "work"
        spell = program.spell_asking if scenario.asks and program.spell_asking else program.spell
        model = ScriptedModel(lambda tool, offered: spell(tool, offered, work), clock.now)
        with ModelServer(model) as server:
            home = Home(stage / "home", server.root, program.path, scenario.asks, theme)
            home.work.mkdir(parents=True)
            command = [*FORMS[form](str(out / RECORDING), str(out / TIMING)), "-c", _line(program, home)]
            env = {"PATH": os.environ["PATH"], "HOME": str(home.path), "LANG": "C.UTF-8", **program.settle(home)}
            with Pane(stage, ["env", "TERM=xterm-256color", *command], env, scenario.size, home.work) as pane:
                session = _Session(program, pane, model, clock, out)
                try:
                    session.run(scenario.steps(seed))
                finally:
                    _end(stage)
        truth = _told(session, scenario, seed, form)
        write_truth(out, truth)
        return truth
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _line(program: Program, home: Home) -> str:
    return " ".join([str(program.path), *program.arguments(home)])


def _told(session: _Session, scenario: Scenario, seed: int, form: str) -> Truth:
    model = session.model
    return Truth(
        program=session.program.name,
        version=session.program.version,
        scenario=scenario.name,
        seed=seed,
        size=scenario.size,
        form=form,
        started=session.clock.started,
        bytes=session.clock.now().offset,
        complete=session.complete,
        prompts=[_as_heard(prompt, model.heard.get(place)) for place, prompt in enumerate(session.prompts)],
        answers=session.answers(),
        calls=model.calls,
        notices=sorted([*session.notices, *model.failures], key=lambda notice: notice.when.at),
        events=session.events,
    )


def _as_heard(prompt: Prompt, told: str | None) -> Prompt:
    """The prompt as the program took it: a key may have meant something else to it."""
    return prompt if told is None else Prompt(told, prompt.when, prompt.session, prompt.pasted)


class _Clock:
    """Tells the moment: `script` writes through, so the size of its file is the place in the recording."""

    def __init__(self, recording: Path) -> None:
        self._recording, self.started = recording, time.time()

    def begin(self) -> None:
        """The recording has begun."""
        self.started = time.time()

    def now(self) -> Moment:
        """This moment."""
        size = self._recording.stat().st_size if self._recording.exists() else 0
        return Moment(round(time.time() - self.started, 3), size)


@dataclass
class _Session:
    """One run of a program, step by step."""

    program: Program
    pane: Pane
    model: ScriptedModel
    clock: _Clock
    out: Path
    prompts: list[Prompt] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    complete: bool = True
    number: int = 1  # of the session
    cut: set[int] = field(default_factory=set)  # prompts whose answer was interrupted

    def run(self, steps: list[Step]) -> None:
        """Take every step the program can take."""
        self._wait(lambda: self.clock.now().offset > 0, START)
        self.clock.begin()
        self._wait(lambda: re.search(self.program.ready, self._look()) is not None, START)
        self._settle()
        doing: dict[str, Callable[[Step], None]] = {
            "prompt": self._submit,
            "new": self._begin_session,
            "resize": self._resize,
            "scroll": self._scroll,
            "interrupt": self._interrupt,
            "agent": self._switch_agent,
            "toast": self._raise_toast,
        }
        self._keep_screen("start")
        for step in steps:
            doing[step.do](step)
            self._keep_screen(step.do)

    def answers(self) -> list[Answer]:
        """What the model said."""
        return [Answer(one.text, one.when, one.prompt, one.prompt in self.cut) for one in self.model.answers]

    # steps ------------------------------------------------------------------------------------------------------------
    def _submit(self, step: Step) -> None:
        self._enter_text(step)
        self.model.begin(len(self.prompts), step.value, step.replies)
        self.prompts.append(Prompt(step.value, self.clock.now(), self.number, step.is_pasted))
        self.pane.press("Enter")
        for decision in step.decisions:
            self._decide(decision)
        if step.waits:
            self._finish_turn()
        else:
            self._wait(lambda: self.model.has_begun, STEP)
            self._wait(self._is_well_begun, STEP)

    def _enter_text(self, step: Step) -> None:
        before = self._look()
        if step.is_pasted:
            self.pane.paste(step.value)
            self._wait(lambda: self._look() != before, ANSWER)
            self._settle(0.4)
            return
        self.pane.type(step.value)
        tail = squash(step.value)[-8:]
        typed, soon = squash(before).count(tail), time.monotonic() + 10
        # What stood there before may scroll away meanwhile, so that one more is not seen for sure.
        self._wait(lambda: squash(self._look()).count(tail) > (typed if time.monotonic() < soon else 0), ANSWER)
        self._settle(0.3)

    def _is_well_begun(self) -> bool:
        """Whether some lines of the answer are on the screen."""
        answers = [answer for answer in self.model.answers if answer.prompt == len(self.prompts) - 1]
        screen = squash(self._look())
        return bool(answers) and sum(line in screen for line in answer_lines(answers[-1])) > 4

    def _decide(self, decision: str) -> None:
        dialog = self.program.dialog
        assert dialog is not None
        self._wait(lambda: re.search(dialog.sign, self._look()) is not None, ANSWER)
        self._settle(0.4, most=2)
        self._keep_screen("dialog")
        self.notices.append(Notice("dialog", decision, self.clock.now()))
        if decision == "reject":
            self.model.deny_open_calls()
        self._send(dialog.answers[decision])
        self._wait(lambda: re.search(dialog.sign, self._look()) is None, ANSWER)
        if decision == "reject":
            self._settle()
            self.model.stop_waiting()

    def _begin_session(self, step: Step) -> None:
        if self.program.new:
            self._press("new", self.program.new)
            self.number += 1

    def _resize(self, step: Step) -> None:
        self.events.append(Event("resize", step.value, self.clock.now()))
        width, height = step.value.split("x")
        self.pane.resize(int(width), int(height))
        self._finish_turn()

    def _scroll(self, step: Step) -> None:
        if keys := self.program.scroll.get(step.value, ()):
            self.events.append(Event("scroll", step.value, self.clock.now()))
            self._send(keys)
            self._settle(0.4, most=3)
            if step.value == "down":
                self._finish_turn()

    def _interrupt(self, step: Step) -> None:
        self.cut.add(len(self.prompts) - 1)
        self.events.append(Event("interrupt", "", self.clock.now()))
        before = self._look()
        self._send(self.program.interrupt)
        self._wait(lambda: re.search(self.program.busy, self._look()) is None, STEP)
        self._settle()
        self.notices.append(Notice("interrupt", added_lines(before, self._look()), self.clock.now()))
        self.model.stop_waiting()

    def _switch_agent(self, step: Step) -> None:
        if self.program.agent:
            self._press("agent", self.program.agent)

    def _raise_toast(self, step: Step) -> None:
        if not self.program.toast:
            return
        before = self._look()
        self.events.append(Event("toast", "", self.clock.now()))
        self._send(self.program.toast)
        self._keep_screen("notice")
        self.notices.append(Notice("toast", added_lines(before, self._look()), self.clock.now()))
        self._settle()

    def _press(self, kind: str, keys: Keys) -> None:
        before, when = self._look(), self.clock.now()
        self._send(keys)
        self._settle()
        self.events.append(Event(kind, added_lines(before, self._look()), when))

    def _keep_screen(self, after: str) -> None:
        """Note what is on the screen after a step, as tmux sees it."""
        screen = Screen(after, self.clock.now(), [line.rstrip() for line in self._look().splitlines()])
        with (self.out / SCREENS).open("ab") as file:
            file.write(msgspec.json.encode(screen) + b"\n")

    # waiting ----------------------------------------------------------------------------------------------------------
    def _look(self) -> str:
        return self.pane.screen()

    def _send(self, keys: Keys) -> None:
        for key in keys:
            if key.startswith("/"):
                self.pane.type(key)
            else:
                self.pane.press(key)
            self._settle(0.3, most=3)

    def _finish_turn(self) -> None:
        """Wait until the model has said all, and the program has drawn it."""
        self._wait(self._is_over, STEP)
        self._settle()

    def _is_over(self) -> bool:
        screen, dialog = self._look(), self.program.dialog
        if dialog is not None and not self.model.is_idle and re.search(dialog.sign, screen):
            self._decide("once")  # a question nobody planned, such as whether to go on after the same call failed often
            return False
        return self.model.is_idle and re.search(self.program.busy, screen) is None

    def _settle(self, quiet: float = QUIET, most: float = STEP) -> None:
        """Wait until the screen has not changed for a while."""
        last, since, end = "", time.monotonic(), time.monotonic() + most
        while time.monotonic() - since < quiet:
            if (screen := self._look()) != last:
                last, since = screen, time.monotonic()
            if time.monotonic() > end:
                self.complete = self.complete and most != STEP
                return
            time.sleep(0.1)

    def _wait(self, happened: Callable[[], bool], most: float) -> None:
        end = time.monotonic() + most
        while not happened():
            if time.monotonic() > end:
                self._keep_screen("stuck")
                raise ProgramFailed(f"{self.program.name} does not go on:\n{self._look().strip()}")
            time.sleep(0.1)


def _end(stage: Path) -> None:
    """End what was started: `script` and the program outlive their terminal."""
    for noted in stage.glob("tmux*.pid"):
        for pid in reversed(_family(int(noted.read_text()))):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _family(first: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [first]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found
