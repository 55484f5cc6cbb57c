"""What a browser has to do: a session of 10,000 turns, find in it, and how soon a new message is on an open page.

    python -m benchmarks.web_browser [TURNS]

Needs Linux, Chromium and Playwright. Times of the server and of the main thread are CPU times, the others are wall times. The history is synthetic and in a folder that is removed at the end.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import Any

LONG, LIVE = "aaaaaaaa-1111-4222-8333-444444444444", "bbbbbbbb-1111-4222-8333-444444444444"
_COUNT = "document.querySelectorAll('[data-turns] *').length"
_ASK = """async ([path, times]) => {
  const page = `/s/${document.querySelector('.session-page').dataset.session}`;
  for (let n = 0; n < times; n += 1) await (await fetch(page + path)).text();
}"""
_LIVE_MESSAGES = 10


class Transcript:
    """A transcript of Claude Code that is written line by line."""

    def __init__(self, home: Path, session: str) -> None:
        folder = home / ".claude" / "projects" / "-home-ann-shop"
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.session, self.n = folder / f"{session}.jsonl", session, 0
        self.at = datetime(2026, 3, 1, tzinfo=UTC)

    def line(self, kind: str, content: Any) -> str:
        self.n += 1
        self.at += timedelta(seconds=5)
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            used = {"input_tokens": 90, "output_tokens": 30}
            message |= {"id": f"msg_{self.n}", "type": "message", "model": "claude-sonnet-4-5", "usage": used}
        record = {
            "parentUuid": None, "isSidechain": False, "cwd": "/home/ann/shop", "sessionId": self.session,
            "version": "2.1.0", "type": kind, "message": message, "uuid": f"{self.n:08x}-0000-4000-8000-000000000000",
            "timestamp": self.at.isoformat().replace("+00:00", "Z"),
        }  # fmt: skip
        return json.dumps(record) + "\n"

    def turn(self, number: int) -> str:
        call = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": f"pytest tests/test_{number}.py"},
        }
        back = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "a line of output\n" * 6}
        done = f"Module {number} is done. The answer is **{number}** and `total_{number}` is correct.\n\n- one\n- two"
        return "".join((
            self.line("user", f"question {number}: check module {number * 7 % 997} of the shop"),
            self.line("assistant", [{"type": "text", "text": "Looking at it."}, call]),
            self.line("user", [back]),
            self.line("assistant", [{"type": "text", "text": done}]),
        ))  # fmt: skip

    def add(self, text: str) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(text)


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, int]]:
    env = {**os.environ, "HOME": str(home), "EVERTURN_HOME": str(home / "archive")}
    env["PYTHONPATH"] = str(Path(__file__).parents[1] / "src")
    subprocess.run([sys.executable, "-m", "everturn", "sync"], env=env, check=True, capture_output=True)
    command = [sys.executable, "-m", "everturn", "web", "--json", "--no-key", "--port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["items"][0]["address"].rstrip("/"), process.pid
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def measure(turns: int) -> Iterator[tuple[str, str]]:
    """Yield the figures, name and value."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        long, live = Transcript(home, LONG), Transcript(home, LIVE)
        long.add("".join(long.turn(number) for number in range(1, turns + 1)))
        live.add(live.line("user", "begin") + live.line("assistant", [{"type": "text", "text": "yes"}]))
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        with serving(home) as (address, server):
            tab = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            yield from _long_session(tab, address, server, turns)
            yield from _live_session(tab, address, live)
        browser.close()


def _long_session(tab: Any, address: str, server: int, turns: int) -> Iterator[tuple[str, str]]:
    tools = tab.context.new_cdp_session(tab)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time: other programs do not count

    def metric(name: str) -> float:
        return float(
            next(one["value"] for one in tools.send("Performance.getMetrics")["metrics"] if one["name"] == name)
        )

    tab.goto(f"{address}/session/{LONG}")
    busy = {name: metric(name) for name in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")}
    yield f"first page of {turns:,} turns, main thread (script, layout, style)", f"{1000 * sum(busy.values()):.0f} ms"
    tab.mouse.move(700, 500)
    most = 0
    for _ in range(60):
        tab.mouse.wheel(0, 4_000)
        tab.wait_for_timeout(60)
        most = max(most, tab.evaluate(_COUNT))
    yield "most elements of turns while scrolling 240,000 pixels", f"{most:,}"
    tab.keyboard.press("Shift+G")
    tab.wait_for_selector(f"#t{turns}.at")
    tab.keyboard.press("/")
    yield "find in session, CPU of the server", f"{_server_ms(tab, server, '/find?part=1&q=total_777'):.0f} ms"
    yield "page of turns, CPU of the server", f"{_server_ms(tab, server, '?part=1&turn=5000'):.0f} ms"
    begun = time.perf_counter()
    tab.keyboard.type("total_777")
    tab.locator(".matches a").first.wait_for()
    yield "find in session, typed to shown", f"{1000 * (time.perf_counter() - begun):.0f} ms"
    tools.send("HeapProfiler.collectGarbage")
    yield "heap of the page", f"{metric('JSHeapUsedSize') / 1e6:.1f} MB"


def _server_ms(tab: Any, server: int, path: str, times: int = 10) -> float:
    """Return the CPU milliseconds of the server for one request of a page, on average."""
    tab.evaluate(_ASK, [path, 1])
    before = _cpu_seconds(server)
    tab.evaluate(_ASK, [path, times])
    return 1000 * (_cpu_seconds(server) - before) / times


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _live_session(tab: Any, address: str, live: Transcript) -> Iterator[tuple[str, str]]:
    tab.goto(f"{address}/session/{LIVE}")
    tab.wait_for_timeout(2_000)
    times = []
    for number in range(_LIVE_MESSAGES):
        words = f"live message {number}."
        begun = time.perf_counter()
        live.add(live.line("user", words))
        tab.get_by_text(words, exact=True).first.wait_for()
        times.append(time.perf_counter() - begun)
        tab.wait_for_timeout(400)
    yield (
        "a new message on the page after it was written, median and worst",
        (f"{statistics.median(times):.2f} s, {max(times):.2f} s"),
    )


if __name__ == "__main__":
    for name, value in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000):
        print(f"{name}: {value}", flush=True)
