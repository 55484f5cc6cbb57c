"""The pages of another viewer beside ours, over the same home: `python -m benchmarks.web_peers`.

agentsview is installed from PyPI into an environment that is thrown away. Both servers take in the same home; a browser opens
the home page and the longest session of each. A page is ready when nothing in it has changed for a second. Needs Linux,
Chromium, Playwright and an index to install from.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.corpora import Corpora, Corpus
from benchmarks.peers import PEERS, environment, install
from benchmarks.processes import EVERTURN, MB, ROOT

_RUNS = 5
_QUIET, _LONGEST = 1_000, 20_000  # ms
#: When the page last changed. Set before anything of the page runs.
_WATCH = """window.lastChange = 0;
new MutationObserver(() => { window.lastChange = performance.now(); })
  .observe(document, { childList: true, subtree: true, characterData: true, attributes: true });"""


@dataclass(frozen=True)
class PageCost:
    """What one page took."""

    ready: float  # ms until nothing changed any more
    kilobytes: float
    requests: int
    outside: int
    nodes: int
    main_thread: float  # CPU ms
    server: float  # CPU ms


@contextmanager
def serving_ours(corpus: Corpus) -> Iterator[tuple[str, int, Callable[[str], str]]]:
    env = {**corpus.place.env, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*EVERTURN, "sync"], env=env, check=True, capture_output=True)
    command = [*EVERTURN, "web", "--json", "--no-key", "--port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        address = json.loads(process.stdout.readline())["items"][0]["address"].rstrip("/")
        yield address, process.pid, lambda session: f"/session/{session}"
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@contextmanager
def serving_theirs(corpus: Corpus, python: Path) -> Iterator[tuple[str, int, Callable[[str], str]]]:
    env = {name: value for name, value in corpus.place.env.items() if not name.startswith(("EVERTURN", "PYTHON"))}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python.with_name("agentsview")), "serve", "--no-browser", "--port", str(port)]
    process = subprocess.Popen(
        command, env={**env, **PEERS[0].env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address)
        yield address, process.pid, lambda session: f"/sessions/{session}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(address: str) -> None:
    for _ in range(600):
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"{address} does not answer")


def measure(browser: Any, address: str, path: str, server: int) -> PageCost:
    """Open a page in a browser without a cache and return what it took."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = context.new_page()
    tab.add_init_script(_WATCH)
    tools = context.new_cdp_session(tab)
    tools.send("Network.enable")
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    sizes, asked = list[float](), list[str]()
    tools.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    tab.on("request", lambda request: asked.append(request.url))
    before = _cpu_ms(server)
    tab.goto(address + path, wait_until="commit")
    while (now := tab.evaluate("performance.now()")) - tab.evaluate("window.lastChange") < _QUIET and now < _LONGEST:
        tab.wait_for_timeout(100)
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    cost = PageCost(
        tab.evaluate("window.lastChange"), sum(sizes) / 1000, len(asked),
        sum(not url.startswith((address, "data:", "blob:", "about:")) for url in asked),
        tab.evaluate("document.querySelectorAll('*').length"), 1000 * metrics["TaskDuration"], _cpu_ms(server) - before,
    )  # fmt: skip
    context.close()
    return cost


def _cpu_ms(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def longest_session(corpus: Corpus) -> str:
    """Return the id of the longest transcript that is no subagent's."""
    transcripts = [
        path for path in corpus.paths if path.suffix == ".jsonl" and "subagents" not in path.parts and "-" in path.stem
    ]
    return max(transcripts, key=lambda path: path.stat().st_size).stem


def compare(folder: Path, real: bool) -> Iterator[str]:
    """Yield the table, line by line."""
    from playwright.sync_api import sync_playwright

    corpora = Corpora(folder)
    corpus = (corpora.real if real else None) or corpora.generated
    session = longest_session(corpus)
    python = environment(folder / "peers")
    version, why = install(python, PEERS[0])
    sides: dict[str, Any] = {"everturn": serving_ours(corpus)}
    if version:
        sides[f"agentsview {version}"] = serving_theirs(corpus, python)
    yield f"{corpus.name}, {corpus.size / MB:.0f} MB in {corpus.files} files; median of {_RUNS} runs" + (
        "" if version else f"; agentsview cannot be installed: {why}"
    )
    yield "| | page | ready | main thread | server | transferred | requests | to other hosts | nodes |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for name, side in sides.items():
            with side as (address, server, session_path):
                for page, path in (("home", "/"), ("longest session", session_path(session))):
                    measure(browser, address, path, server)  # warm: caches of the server
                    yield _row(name, page, [measure(browser, address, path, server) for _ in range(_RUNS)])
        browser.close()


def _row(name: str, page: str, runs: list[PageCost]) -> str:
    def middle(value: Callable[[PageCost], float]) -> float:
        return statistics.median(map(value, runs))

    return (
        f"| {name} | {page} | {middle(lambda one: one.ready):,.0f} ms | {middle(lambda one: one.main_thread):,.0f} ms "
        f"| {middle(lambda one: one.server):,.0f} ms | {middle(lambda one: one.kilobytes):,.0f} kB "
        f"| {middle(lambda one: one.requests):,.0f} | {middle(lambda one: one.outside):,.0f} "
        f"| {middle(lambda one: one.nodes):,.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web_peers", description=__doc__)
    parser.add_argument("--real", action="store_true", help="the real corpus beside the checkout, where there is one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everturn-web-peers-") as folder:
        for line in compare(Path(folder), options.real):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
