"""Synthetic transcripts whose open failures are known by construction.

`play(seed)` runs a few checks of an invented project in many dresses: other folders, variables, wrappers, flags, pipes, hidden
exit statuses, wider and narrower targets. Between them stand probes, wrong calls, missing programs, denials, interrupts, time
limits, edits, complaints and confirmations. The truth is kept by a model of its own: for each check the targets whose last run
failed; for the person what was said, not taken back, and not left behind for other subjects.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import turn_facts
from everturn.model.archive import Artifact, Call, MessageRow, Turn
from everturn.model.conversation import Block, CallEnd, CallStart, Message

WORKSPACE = "/home/ann/shop"


@dataclass(frozen=True)
class LabCheck:
    """A check: command forms with {t} for the target, targets from wide to narrow, and what it prints."""

    name: str
    forms: tuple[str, ...]
    bad: Callable[[int], str]
    good: str
    whole: str = ""  # the target that means everything
    folder: str = ""
    file: str = ""
    flags: tuple[str, ...] = ()
    quiet: bool = False  # prints nothing when all is well
    narrow: tuple[str, ...] = ()  # forms that take a target, if not all do
    dresses: tuple[str, ...] = ()  # those in which its outcome is seen, if not all are


def _python(_: random.Random) -> list[LabCheck]:
    test = LabCheck(
        "test",
        ("pytest{t}", "python -m pytest{t}", "uv run pytest{t}", ".venv/bin/pytest{t}", "poetry run python3 -m pytest{t}", "make test{t}"),
        lambda n: f"....F\n=== short test summary info ===\n=== {n} failed, 40 passed in 2.10s ===",
        "........\n44 passed in 2.13s",
        "", "tests/api", "tests/api/test_login.py", ("-q", "-x", "--tb=short", "--maxfail 3", "-p no:cacheprovider"),
        narrow=("pytest{t}", "python -m pytest{t}", "uv run pytest{t}", ".venv/bin/pytest{t}"),
    )  # fmt: skip
    lint = LabCheck(
        "lint",
        ("ruff check{t}", "uvx ruff check{t}", ".venv/bin/ruff check{t}", "uv run ruff check{t}"),
        lambda n: f"E501 Line too long\nFound {n} errors.",
        "All checks passed!",
        " .", "src", "src/login.py", ("--fix", "--no-cache", "--output-format concise"),
    )  # fmt: skip
    types = LabCheck(
        "types",
        ("mypy{t}", "python -m mypy{t}", "poetry run mypy{t}"),
        lambda n: f"Found {n} errors in 3 files (checked 20 source files)",
        "Success: no issues found in 20 source files",
        "", "src", "src/login.py", ("--strict", "--no-color-output"),
    )  # fmt: skip
    return [test, lint, types]


_JS_RUNNERS: tuple[tuple[tuple[str, ...], Callable[[int], str], str], ...] = (
    (("npx vitest run{t}", "npm test --{t}", "pnpm exec vitest run{t}"),
     lambda n: f" Test Files  1 failed | 3 passed (4)\n      Tests  {n} failed | 30 passed (31)",
     " Test Files  4 passed (4)\n      Tests  31 passed (31)"),
    (("npx jest{t}", "yarn test{t}", "node_modules/.bin/jest{t}", "npm run test --{t}"),
     lambda n: f"Test Suites: 1 failed, 3 passed, 4 total\nTests:       {n} failed, 30 passed, 31 total",
     "Test Suites: 4 passed, 4 total\nTests:       31 passed, 31 total"),
    (("npx mocha{t}", "pnpm test{t}", "npm run test:ci --{t}"), lambda n: f"  30 passing (2s)\n  {n} failing", "  31 passing (2s)"),
    (("bun test{t}", "bun run test{t}"), lambda n: f" 30 pass\n {n} fail\nRan 31 tests across 4 files.", " 31 pass\n 0 fail\nRan 31 tests across 4 files."),
)  # fmt: skip


def _javascript(chance: random.Random) -> list[LabCheck]:
    forms, bad, good = chance.choice(_JS_RUNNERS)
    test = LabCheck("test", forms, bad, good, "", "src/api", "src/api/login.test.ts", ("--coverage", "--silent"))
    lint = LabCheck(
        "lint",
        ("npx eslint{t}", "npm run lint --{t}", "yarn lint{t}", "pnpm lint{t}"),
        lambda n: f"  1:1  error  Unexpected var  no-var\n\n✖ {n} problems ({n} errors, 0 warnings)",
        "",
        " .", "src", "src/login.ts", ("--fix", "--max-warnings 0", "--ext .ts"), quiet=True,
    )  # fmt: skip
    types = LabCheck(
        "types",
        ("npx tsc --noEmit{t}", "npm run typecheck{t}", "yarn tsc --noEmit{t}"),
        lambda n: "\n".join(f"x{i}: error TS2322: Type 'a' is not assignable to type 'b'." for i in range(n)),
        "", flags=("--pretty false", "--skipLibCheck"), quiet=True,
    )  # fmt: skip
    build = LabCheck(
        "build", ("npm run build", "yarn build", "bun run build", "make build"), lambda n: "error during build:\nRollupError: no such export", "✓ built in 3.1s"
    )  # fmt: skip
    return [test, lint, types, build]


def _compiled(chance: random.Random) -> list[LabCheck]:
    golang = [
        LabCheck("test", ("go test{t}", "mise run test{t}"), lambda n: "--- FAIL: TestLogin (0.00s)\nFAIL\nexit status 1\nFAIL",
                 "ok  \tshop.io/api\t0.1s", " ./...", "./api/...", "./api/login", ("-count=1", "-race", "-timeout 60s"), narrow=("go test{t}",)),
        LabCheck("lint", ("golangci-lint run{t}", "make lint{t}"), lambda n: f"{n} issues:\n* staticcheck: {n}", "0 issues.", flags=("--timeout 5m",)),
    ]  # fmt: skip
    rust = [
        LabCheck("test", ("cargo test{t}", "cargo +nightly test{t}"), lambda n: f"test result: FAILED. 3 passed; {n} failed; 0 ignored\nerror: test failed",
                 "test result: ok. 12 passed; 0 failed; 0 ignored", "", "-p api", "-p api", ("--all-features", "--workspace", "--release")),
        LabCheck("lint", ("cargo clippy{t}",), lambda n: "error: unused variable\n  --> src/a.rs:1:1\nerror: could not compile `shop`",
                 "    Finished `dev` profile in 1.2s", flags=("--all-targets",)),
    ]  # fmt: skip
    others = [
        LabCheck("test", ("./gradlew test", "gradle test"), lambda n: f"{n} tests completed, {n} failed\n\nBUILD FAILED in 3s", "BUILD SUCCESSFUL in 3s", flags=("--info",)),
        LabCheck("test", ("mvn test", "./mvnw test"), lambda n: f"[ERROR] Tests run: 99, Failures: {n}, Errors: 0\n[INFO] BUILD FAILURE", "[INFO] BUILD SUCCESS", flags=("-q", "-B")),
        LabCheck("test", ("dotnet test",), lambda n: f"Failed!  - Failed:     {n}, Passed:    20", "Passed!  - Failed:     0, Passed:    21", flags=("--nologo",)),
        LabCheck("test", ("bundle exec rspec", "rspec"), lambda n: f"31 examples, {n} failures", "31 examples, 0 failures", flags=("--fail-fast",)),
        LabCheck("test", ("vendor/bin/phpunit", "./vendor/bin/phpunit"), lambda n: f"FAILURES!\nTests: 31, Assertions: 60, Failures: {n}.", "OK (31 tests, 60 assertions)"),
        LabCheck("test", ("ctest", "ctest --test-dir build"), lambda n: f"50% tests passed, {n} tests failed out of 31", "100% tests passed, 0 tests failed out of 31"),
        LabCheck("test", ("swift test",), lambda n: f"Executed 31 tests, with {n} failures (0 unexpected) in 0.1 seconds", "Executed 31 tests, with 0 failures in 0.1 seconds"),
        LabCheck("test", ("flutter test",), lambda n: f"00:02 +30 -{n}: Some tests failed.", "00:02 +31: All tests passed!"),
        LabCheck("test", ("python -m unittest", "python3 -m unittest discover"), lambda n: f"Ran 31 tests in 0.1s\n\nFAILED (failures={n})", "Ran 31 tests in 0.1s\n\nOK", flags=("-v",)),
    ]  # fmt: skip
    return chance.choice([golang, rust, *([one] for one in others)])


_EXTRA = (
    LabCheck("docker", ("docker build -t shop .", "docker compose build"), lambda n: "ERROR: failed to solve: process \"/bin/sh -c make\" did not complete", " => exporting to image"),
    LabCheck("terraform", ("terraform plan", "terraform -chdir=infra plan"), lambda n: "│ Error: Unsupported argument", "Plan: 1 to add, 0 to change, 0 to destroy."),
    # A script of the project: what follows its options is no target. Nothing says that it went well, but a failure is seen.
    LabCheck("shapes", ("ruby scripts/typecheck_shapes.rb --shape round --save a.png", "ruby ./scripts/typecheck_shapes.rb --shape flat", "ruby scripts/typecheck_shapes.rb --save b.png --seed 4"),
             lambda n: f"found {n} errors in 2 shapes", "42 shapes read", dresses=("plain", "tail", "tee")),
)  # fmt: skip


@dataclass
class LabRun:
    """One transcript as it is played, and the truth about it."""

    chance: random.Random
    state: SessionState = field(default_factory=lambda: SessionState("s", WORKSPACE))
    seq: int = 0
    turn: int = 0
    messages: list[tuple[MessageRow, Message]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    files: list[Artifact] = field(default_factory=list)
    open: dict[tuple[str, str], int] = field(default_factory=dict)  # (check, target) → message of the last failed run
    said: int | None = None  # message of a complaint that still holds
    others: int = 0  # messages about other subjects since
    edited: bool = False  # files were changed since
    foreign: bool = False  # the person does not write English
    log: list[str] = field(default_factory=list)

    def say(self, text: str) -> int:
        self.log.append(f"#{self.seq} human: {text}")
        row = MessageRow(seq=self.seq, turn=self.turn, role="user", origin="human", kind="text")
        self.messages.append((row, Message("user", "human", "text", blocks=(Block("text", text, "prompt"),))))
        self.seq += 1
        return self.seq - 1

    def call(self, command: str, output: str, exit_status: int | None, error_class: str = "") -> int:
        """Add a shell call and its result."""
        failed = bool(exit_status) or bool(error_class)
        self.log.append(f"#{self.seq} {command!r} → {exit_status} {error_class} {output[-80:]!r}")
        start = CallStart(f"c{self.seq}", "Bash", "shell", command=command)
        end = CallEnd(start.call_id, failed, error_class, exit_status)
        made = MessageRow(seq=self.seq, turn=self.turn, role="assistant", origin="model", kind="text")
        back = MessageRow(seq=self.seq + 1, turn=self.turn, role="tool", origin="tool", kind="result")
        self.messages.append((made, Message("assistant", "model", blocks=(Block("call", call=start),))))
        self.messages.append(
            (back, Message("tool", "tool", "result", blocks=(Block("result", output, "tool_output", result=end),)))
        )
        self.calls.append(
            Call(seq=self.seq, call_id=start.call_id, turn=self.turn, kind="shell", name="Bash", status="error" if failed else "ok",
                 error_class=error_class or ("exit_status" if failed else ""), exit_status=exit_status, result_seq=self.seq + 1)
        )  # fmt: skip
        self.seq += 2
        return self.seq - 2

    def edit(self) -> None:
        self.edited = True
        self.files.append(Artifact(seq=self.seq, turn=self.turn, action="edited", path=f"src/f{self.seq}.py"))
        self.call("true", "", 0)

    def end_turn(self) -> None:
        turn = Turn(idx=self.turn, last_seq=self.seq - 1, starter="human")
        facts = turn_facts(turn, self.messages, self.calls, (), self.files, WORKSPACE)
        self.state = advance_state(self.state, facts)
        self.messages, self.calls, self.files = [], [], []
        self.turn += 1
        if self.others >= (2 if self.edited else 3):
            self.said = None

    def expected(self) -> set[int]:
        """The messages that still failing items must cite."""
        return {*self.open.values(), *([self.said] if self.said is not None else [])}


def play(seed: int) -> LabRun:
    """Play one transcript."""
    chance = random.Random(seed)
    made: list[Callable[[random.Random], list[LabCheck]]] = [_python, _javascript, _compiled]
    checks = chance.choice(made)(chance)
    checks = [*checks, *chance.sample(_EXTRA, chance.randint(0, 3))]
    run = LabRun(chance, foreign=seed % 3 == 0)
    for _ in range(chance.randint(2, 6)):
        _speak(run)
        for _ in range(chance.randint(1, 8)):
            acts: list[Callable[[LabRun, list[LabCheck]], None]] = [_run_check, _add_noise, _edit]
            chance.choices(acts, (6, 4, 2))[0](run, checks)
        run.end_turn()
    return run


def _edit(run: LabRun, _: list[LabCheck]) -> None:
    run.edit()


# --- checks ---
def _run_check(run: LabRun, checks: list[LabCheck]) -> None:
    check, chance = run.chance.choice(checks), run.chance
    level = chance.choice(("whole", "folder", "file")) if check.file else "whole"
    target = {"whole": check.whole, "folder": f" {check.folder}", "file": f" {check.file}"}[level]
    form = chance.choice(check.forms if level == "whole" else check.narrow or check.forms)
    command = form.replace(" --{t}", " -- {t}" if target.strip() else "{t}").replace("{t}", target)
    if form.startswith(("make", "mise", "just")):
        command = form.replace("{t}", "")
    if check.flags and chance.random() < 0.5 and "make" not in form and " -- " not in command:
        command += f" {chance.choice(check.flags)}"
    fails = chance.random() < 0.5
    # Wide runs find more failures than narrow ones: otherwise a narrow run has found them all.
    count = chance.randint(*{"whole": (20, 29), "folder": (8, 12), "file": (1, 3)}[level])
    output = check.bad(count) if fails else check.good
    command, output, status = _dress(chance, command, output, fails, check)
    seq = run.call(command, output, status)
    _note_truth(run, check, level, seq, fails)


def _note_truth(run: LabRun, check: LabCheck, level: str, seq: int, fails: bool) -> None:
    """The widest target that failed and was not seen to pass is open; its last failed run is cited."""
    order = ("file", "folder", "whole")
    same = check.folder == check.file and check.file
    level = "folder" if same and level == "file" else level
    rank = order.index(level)
    known = [key for key in run.open if key[0] == check.name]
    narrower = [key for key in known if order.index(key[1]) <= rank]
    for key in narrower:
        del run.open[key]
    if fails:
        wider = [key for key in known if order.index(key[1]) > rank]
        run.open[wider[0] if wider else (check.name, level)] = seq


_CHAIN = ("cd /home/ann/shop && {}", "cd /home/ann/shop; {}", "mkdir -p out && {}", "source .env && {}")


def _prefix(chance: random.Random, command: str) -> str:
    if chance.random() < 0.3:
        command = f"{chance.choice(('CI=1', 'NODE_ENV=test PYTHONPATH=.', 'FOO=bar'))} {command}"
    if chance.random() < 0.2:
        command = f"{chance.choice(('timeout 300', 'time', 'nice', 'env -i'))} {command}"
    return command


def _dress(chance: random.Random, command: str, output: str, fails: bool, check: LabCheck) -> tuple[str, str, int]:
    """Return the command in another dress, what it prints then, and its exit status."""
    command, quiet = _prefix(chance, command), check.quiet
    if chance.random() < 0.3:
        command += chance.choice((" 2>&1", " 2> err.txt", " 2>/dev/null"))
    status = int(fails)
    dress = chance.choice(check.dresses or ("plain", "plain", "tail", "tee", "true", "echo", "head", "grep"))
    if dress == "grep" and quiet and not fails:
        dress = "tail"
    if dress != "plain":
        command, status = f"{command.replace(' 2>/dev/null', '')}{_TAILS[dress]}", 0
    if dress == "echo":
        output += f"\nexit: {int(fails)}"
    if chance.random() < 0.4:
        command = chance.choice(_CHAIN).format(command)
    if chance.random() < 0.15 and "'" not in command and '"' not in command:
        command = f"bash -lc '{command}'"
    noise = "".join(f"line {at} of the log\n" for at in range(chance.randint(0, 30))) if not quiet or fails else ""
    return command, f"{noise}{output}", status


_TAILS = {
    "tail": " | tail -20", "tee": " | tee out.log", "true": " || true", "echo": '; echo "exit: $?"', "head": " | head -80",
    "grep": " | grep -iE 'error|fail|pass|ok|issue|success'",
}  # fmt: skip


# --- what is no failure ---
def _add_noise(run: LabRun, checks: list[LabCheck]) -> None:
    check, chance = run.chance.choice(checks), run.chance
    plain = check.forms[0].replace(" --{t}", "").replace("{t}", check.whole)
    command, output, status, error_class = chance.choice(
        [
            ("ls build/nowhere", "ls: build/nowhere: No such file or directory", 2, ""),
            ("cat missing.txt", "cat: missing.txt: No such file or directory", 1, ""),
            ("grep -rn nothing src", "", 1, ""),
            ("which bazel", "", 1, ""),
            ("test -f dist/app.js", "", 1, ""),
            ("git status --short && git diff --quiet", "", 1, ""),
            ("git rev-parse --verify nope", "fatal: Needed a single revision", 128, ""),
            (f"{plain} --bogus", "error: unrecognized arguments: --bogus", 2, ""),
            (f"{plain} --bogus", "error: unknown option '--bogus'\n\nUsage: prog [options]", 1, ""),
            (plain, "bash: line 1: prog: command not found", 127, ""),
            (f"{plain} | tail -5", "bash: line 1: prog: command not found", 0, ""),
            (plain, "Permission for this action was denied.", None, "rejected"),
            (plain, "The user doesn't want to proceed with this tool use.", None, "rejected"),
            (plain, "[Request interrupted by user]", None, "interrupted"),
            (plain, "line 1\n^C", 130, ""),
            (plain, "Command timed out after 2m", None, "timeout"),
            (plain, "still going", 124, ""),
            (plain, "Command running in background with ID: b1", None, ""),
            ("npm run nope", 'npm error Missing script: "nope"', 1, ""),
            ("make nope", "make: *** No rule to make target 'nope'.  Stop.", 2, ""),
            ("python -c 'import nope'", "Traceback (most recent call last):\nModuleNotFoundError: No module named 'nope'", 1, ""),
            ("node -e 'x()'", "ReferenceError: x is not defined", 1, ""),
            ("git commit -m x", "nothing to commit, working tree clean", 1, ""),
            ("curl -sf http://localhost:3000/health", "", 7, ""),
            ("gh run list --limit 2", "completed\tfailure\tci\tmain\ncompleted\tsuccess\tci\tmain", 0, ""),
            (f"cd web && {plain}", "The token '&&' is not a valid statement separator in this version.\n    + CategoryInfo : ParserError: (:) []", None, ""),
            ("npx tsc --noEmit src/cart.tsx", "\n".join(f"src/cart.tsx({n},1): error TS17004: Cannot use JSX unless '--jsx' is set." for n in range(40)), 2, ""),
            (f"git stash && {plain}; git stash pop", check.bad(5), 0, ""),
            (f"npm install && {plain}" if check.name != "docker" else "npm ls", "npm error ERESOLVE could not resolve", 1, ""),
        ]
    )  # fmt: skip
    run.call(command, output, status, error_class)


# --- the person ---
_COMPLAINTS = (
    "It still crashes when I open the cart.", "The cart doesn't open anymore.", "nope, I don't see it in the cart.", "I get this error when I open the cart:\n```\nTypeError: x is undefined\n```",
    "The cart does not follow the theme.", "You broke the cart again.", "None of these edits worked in the cart.", "There's a strange error in the cart.", "The cart keeps flickering.",
    "Uncaught TypeError: cart is undefined\n    at open (cart.js:3:7)\n    at click (cart.js:9:1)", 'Traceback (most recent call last):\n  File "cart.py", line 3, in open\nKeyError: \'cart\'',
)  # fmt: skip
_FOREIGN_COMPLAINTS = (
    "Der Warenkorb funktioniert immer noch nicht.", "Le panier ne fonctionne toujours pas.", "El carrito sigue fallando.", "カートがまだ動きません。", "购物车还是报错。",
)  # fmt: skip
_CONFIRMATIONS = (
    "That works now, thanks.", "Great!", "Perfect, next the footer.", "Jetzt geht es, danke. Es funktioniert jetzt.", "Ça marche !", "Ya funciona, gracias.", "動きました。", "好了，谢谢", "Thanks!",
    "Tested and working. Add a footer, not too high.", "The cart works as before, but make the button blue.", "The error is gone. Could the button be blue?", "$ npm run e2e\n12 passed",
)  # fmt: skip
#: They go on with the same work, or name what the complaints are about.
_NEUTRAL = (
    "Run the tests.", "commit", "What does the cart do when the server fails?", "Make sure it doesn't crash when the cart is empty.", "yes", "If the payment fails, show a message.", "push it",
)  # fmt: skip
_FOREIGN_NEUTRAL = ("Run the tests.", "commit", "yes", "push it", "Release version 2.")
_OTHERS = (
    "Add a footer with the opening hours to every page.", "Handle the case where the request fails with a timeout.", "Now the checkout page should not load pictures twice.",
    "Can you translate the landing page into Dutch?",
)  # fmt: skip


def _speak(run: LabRun) -> None:
    """Say something: whoever complains in one language goes on in it."""
    foreign = run.foreign
    kind = run.chance.choices(("neutral", "other", "complaint", "confirmation"), (4, 2, 2, 2))[0]
    if kind == "neutral" or (kind == "other" and foreign):
        run.say(run.chance.choice(_FOREIGN_NEUTRAL if foreign else _NEUTRAL))
    elif kind == "other":
        run.say(run.chance.choice(_OTHERS))
        run.others += 1
    elif kind == "complaint" and run.said is None:
        run.said = run.say(run.chance.choice(_FOREIGN_COMPLAINTS if foreign else _COMPLAINTS))
        run.others, run.edited = 0, False
    else:
        run.say(run.chance.choice(_CONFIRMATIONS))
        run.said = None
