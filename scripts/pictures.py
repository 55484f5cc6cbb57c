"""Draw the pictures of README.md from a synthetic history: screenshots of the pages, and a terminal recording as SVG.

    python scripts/pictures.py [FOLDER]

Needs Chromium and Playwright. Nothing of this machine is in the pictures: the history is made here, in a folder of its own.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from shutil import which
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Days ago, folder, title-giving prompt, and what the turns were about.
SESSIONS: tuple[tuple[float, str, str, tuple[str, ...]], ...] = (
    (
        0.01,
        "webshop",
        "Discounts end at the wrong hour for customers in another time zone",
        ("parser", "tests", "release"),
    ),
    (0.4, "webshop", "Add an export of monthly invoices as CSV", ("export", "tests")),
    (1.2, "billing-api", "Why does the nightly job time out since Tuesday?", ("profile", "query", "index")),
    (2.5, "webshop", "Move the checkout form to the new components", ("form", "styles", "tests")),
    (4.0, "docs-site", "Rewrite the getting-started page for the new installer", ("text", "links")),
    (8.0, "billing-api", "Retry webhooks with a backoff instead of dropping them", ("queue", "tests", "metrics")),
    (15.0, "webshop", "Upgrade the database driver and fix what breaks", ("driver", "tests", "migration")),
    (33.0, "mobile", "The login screen flickers on slow phones", ("trace", "layout")),
    (47.0, "billing-api", "Round amounts per line, not per invoice", ("rounding", "tests")),
    (96.0, "webshop", "Search ignores umlauts", ("collation", "tests")),
)
COMMANDS = (
    ("everturn sessions --limit 6", 2.5),
    ('everturn search "time zone" --limit 2', 3.0),
    ("everturn show @last --turn 1", 4.0),
    ("everturn restore @last", 4.0),
)
WIDTH, ROWS = 88, 26


def write_history(home: Path) -> None:
    """Write the transcripts of the sessions as Claude Code does."""
    for number, (days, folder, prompt, topics) in enumerate(SESSIONS, 1):
        path = home / ".claude" / "projects" / f"-home-ann-{folder}" / f"{number:08d}-5a1c-4b7e-9d21-7c8f2e6a4b10.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_session_lines(path.stem, days, folder, prompt, topics)), "utf-8")


def _session_lines(session: str, days: float, folder: str, prompt: str, topics: tuple[str, ...]) -> Iterator[str]:
    random, at = Random(session), datetime.now(UTC) - timedelta(days=days, minutes=25)
    n = 0

    def line(kind: str, content: Any) -> str:
        nonlocal n, at
        n += 1
        at += timedelta(seconds=random.randint(4, 40))
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            used = {"input_tokens": random.randint(2_000, 9_000), "output_tokens": random.randint(200, 1_500)}
            used["cache_read_input_tokens"] = random.randint(20_000, 90_000)
            message |= {"id": f"msg_{session[:8]}{n}", "type": "message", "model": "claude-sonnet-4-5", "usage": used}
        record = {
            "parentUuid": None, "isSidechain": False, "cwd": f"/home/ann/{folder}", "sessionId": session, "gitBranch": "main",
            "version": "2.1.50", "type": kind, "message": message, "uuid": f"{session[:8]}-{n:04x}-4000-8000-000000000000",
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }  # fmt: skip
        return json.dumps(record) + "\n"

    def call(name: str, result: str, failed: bool = False, **given: Any) -> str:
        use = {"type": "tool_use", "id": f"toolu_{session[:8]}{n}", "name": name, "input": given}
        back = {"type": "tool_result", "tool_use_id": use["id"], "content": result, "is_error": failed}
        return line("assistant", [use]) + line("user", [back])

    for number, topic in enumerate(topics):
        path = f"/home/ann/{folder}/src/{folder.replace('-', '_')}/{topic}.py"
        yield line("user", prompt if number == 0 else f"Good. Now the {topic}, please, and run the tests again.")
        yield line("assistant", [{"type": "text", "text": f"I'll look at the {topic} first."}])
        yield call(
            "Grep", f"{path}:12: deadline = parse_time(text)", pattern="parse_time", path=f"/home/ann/{folder}/src"
        )
        yield call("Read", "def parse_time(text):\n    return datetime.fromisoformat(text)\n", file_path=path)
        yield call(
            "Bash", "E   AssertionError: 23:00 != 00:00\n1 failed, 41 passed in 3.20s", True, command="pytest -q"
        )
        yield call(
            "Edit", "The file has been updated.", file_path=path, old_string="    return datetime.fromisoformat(text)\n",
            new_string="    moment = datetime.fromisoformat(text)\n    return moment.replace(tzinfo=moment.tzinfo or shop_zone())\n",
        )  # fmt: skip
        yield call("Bash", "42 passed in 3.11s", command="pytest -q")
        yield line("assistant", [{"type": "text", "text": _answer(topic)}])


def _answer(topic: str) -> str:
    return (
        f"**The {topic} is done**: times without a zone were read as UTC, so discounts ended an hour early.\n\n"
        "- `parse_time` now uses the time zone of the shop when a time names none.\n"
        "- I decided to keep stored values in UTC and convert only at the edges.\n"
        "- All 42 tests pass.\n\nNext step: tell the mobile team, because their client sends local times too."
    )


def environment(home: Path) -> dict[str, str]:
    names = ("PATH", "LANG", "TMPDIR")
    env = {name: os.environ[name] for name in names if name in os.environ}
    return {
        **env,
        "HOME": str(home),
        "EVERTURN_HOME": str(home / "everturn"),
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": str(WIDTH),
    }


def run(env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "everturn", *words], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


# --- pages ---
@contextmanager
def serving(env: dict[str, str]) -> Iterator[str]:
    command = [sys.executable, "-m", "everturn", "web", "--no-key", "--no-sync", "--json", "--port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["items"][0]["address"].rstrip("/")
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def draw_pages(env: dict[str, str], folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    pages = {"web-home": "/", "web-session": "/session/@last", "web-search": "/search?q=time+zone"}
    with sync_playwright() as playwright, serving(env) as address:
        browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light").new_page()
        for name, path in pages.items():
            tab.goto(address + path)
            while tab.locator("[aria-busy]").count():
                tab.wait_for_timeout(50)
            tab.wait_for_timeout(300)
            tab.screenshot(path=str(folder / f"{name}.png"))
        browser.close()


# --- the terminal ---
_STYLES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c", "1;33": "y"}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_CSS = (
    "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre}.b{font-weight:700;fill:#fff}"
    ".d{fill:#8b919c}.r{fill:#ff8a7d}.g{fill:#6cc28e}.y{fill:#e0b25c}.c{fill:#8db2ff}.p{fill:#6cc28e}"
)


def draw_terminal(env: dict[str, str], target: Path) -> None:
    """Write the recording: each command and its output is a scene, shown for its seconds, again and again."""
    total = sum(seconds for _, seconds in COMMANDS)
    scenes, styles, begin = list[str](), list[str](), 0.0
    for number, (command, seconds) in enumerate(COMMANDS):
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)][1:]
        printed = run({**env, "FORCE_COLOR": "1"}, *words).rstrip().splitlines()
        lines = [part for line in printed for part in ([line] if "\x1b" in line else wrap(line, WIDTH) or [""])]
        shown = [f'<tspan class="p">$</tspan> {html.escape(command)}', *map(_line_svg, lines[: ROWS - 2])]
        texts = "".join(f'<text x="16" y="{34 + 19 * at}">{line}</text>' for at, line in enumerate(shown))
        scenes.append(f'<g class="s{number}">{texts}</g>')
        first, last = 100 * begin / total, 100 * (begin + seconds) / total
        styles.append(
            f"@keyframes k{number}{{0%,{first:.2f}%{{opacity:0}}{first + 0.01:.2f}%,{last - 0.01:.2f}%{{opacity:1}}{last:.2f}%,100%{{opacity:0}}}}"
            f".s{number}{{opacity:0;animation:k{number} {total}s step-end infinite}}"
        )
        begin += seconds
    wide, high = 16 * 2 + round(8.45 * WIDTH), 34 + 19 * (ROWS - 1)
    still = "@media (prefers-reduced-motion:reduce){.s0{opacity:1;animation:none}}"
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" '
        f'aria-label="everturn in a terminal"><style>{_CSS}{"".join(styles)}{still}</style>'
        f'<rect width="{wide}" height="{high}" rx="10" fill="#15171a"/>{"".join(scenes)}</svg>\n',
        "utf-8",
    )


def _line_svg(line: str) -> str:
    parts, opened = list[str](), False
    for at, piece in enumerate(_STYLE.split(line)):
        if at % 2 == 0:
            parts.append(html.escape(piece))
            continue
        parts += ["</tspan>"] * opened
        opened = piece in _STYLES
        if opened:
            parts.append(f'<tspan class="{_STYLES[piece]}">')
    return "".join((*parts, "</tspan>" * opened))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        home = Path(made) / "ann"
        write_history(home)
        env = environment(home)
        run(env, "sync")
        draw_terminal(env, folder / "terminal.svg")
        draw_pages(env, folder)


if __name__ == "__main__":
    main()
