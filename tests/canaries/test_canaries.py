"""No secret leaves: every surface is run for real over an archive that is full of them, and not ten characters of one
come out. The same surfaces with `--reveal` show them, so that these tests can fail. A new surface joins by one line."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import everturn
from everturn.cli import main
from everturn.store.contract import open_store
from tests import command_line
from tests.canaries.planting import NAMED, NAMES, NEIGHBOUR, SECRETS, leaks, plant
from tests.capture.history import SID
from tests.cli.desk import ACTIVE
from tests.recall.archives import Archive

SHOW = ("show", SID, "--full", "--tools", "--thinking", "--context")

#: Commands that show words of the archive, and take --reveal.
WORDS: list[tuple[str, ...]] = [
    ("sessions",),
    ("sessions", "--all"),
    ("sessions", NEIGHBOUR),
    ("show", SID),
    SHOW,
    ("show", "@last", "--full", "--context"),
    *(("show", SID, "--raw-message", str(number)) for number in range(1, 8)),
    ("search", NEIGHBOUR),
    ("search", "lightho*"),
    ("search", NEIGHBOUR, "--in", "tool_output"),
    ("search", NEIGHBOUR, "--in", "tool_input"),
    ("search", NEIGHBOUR, "--in", "thinking"),
    ("search", "again", "--session", SID),
    ("search", "/lighthouse [a-z]+/"),
    ("search", "/use .{8}/"),
    ("recall", "search", NEIGHBOUR),
    ("recall", "range", "1", "2", "--session", SID),
    ("recall", "tool-calls", "Bash", "--session", SID),
    ("recall", "summary", "--session", SID),
    ("export", SID, "--as", "json"),
    ("export", SID, "--as", "markdown"),
    ("export", SID, "--as", "markdown", "--thinking", "--context"),
]

#: Commands that say something about the archive, and never show a secret.
REPORTS: list[tuple[str, ...]] = [
    ("doctor",),
    ("verify",),
    ("sources",),
    ("secrets",),
    ("secrets", SID, "--limit", "100000"),
    ("config",),
    ("forget", SID, "--dry-run"),
    ("rebuild",),
    ("sync",),
    (),
]

#: What an agent asks over the wire.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("conversation_recall", {"action": "search", "query": NEIGHBOUR}),
    ("conversation_recall", {"action": "search", "query": "/use .{8}/"}),
    ("conversation_recall", {"action": "range", "start_turn": 1, "end_turn": 2, "session": SID}),
    ("conversation_recall", {"action": "tool_calls", "tool_name": "Bash", "session": SID}),
    ("conversation_recall", {"action": "summary", "session": SID}),
    ("list_sessions", {}),
    ("open_session", {"session": SID}),
    ("restore_session", {"session": SID}),
]

#: A mistake of a person, with a secret in it: what is said about it must not repeat it.
MISTAKES: list[tuple[str, ...]] = [
    ("add", f"/nowhere/{NAMES['title']}"),
    ("show", NAMES["title"]),
    ("sessions", "--db", f"/nowhere/{NAMES['title']}.db"),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, planted once."""
    folder = tmp_path_factory.mktemp("canaries")
    archive = Archive(open_store(str(folder / "archive.db")), folder / "agent")
    plant(archive, folder / "typescript")
    archive.store.close()
    code, said = run(folder, "add", str(folder / "typescript"))
    assert code == 0, said
    return folder


def run(folder: Path, *words: str) -> tuple[int, str]:
    """What a command line says, on both streams."""
    done = _process(folder, words, b"")
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def run_here(folder: Path, *words: str) -> tuple[int, str]:
    """The same in the process of the tests: starting another takes longer than most commands."""
    said = io.BytesIO()
    stream = io.TextIOWrapper(said, "utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stream), redirect_stderr(stream):
        for variable, value in _around(folder).items():
            patch.setenv(variable, value)
        code = main(_command(folder, words))
    return code, said.getvalue().decode("utf-8", "replace")


def _around(folder: Path) -> dict[str, str]:
    return {
        "EVERTURN_HOME": str(folder),
        "HOME": str(folder / "home"),
        "CLAUDE_CONFIG_DIR": str(folder / "agent"),
    }


def _command(folder: Path, words: tuple[str, ...]) -> list[str]:
    return [*words] if "--db" in words else [*words, "--db", str(folder / "archive.db")]


def _process(folder: Path, words: tuple[str, ...], given: bytes) -> subprocess.CompletedProcess[bytes]:
    around = {**os.environ, "PYTHONPATH": str(Path(everturn.__file__).parent.parent), **_around(folder)}
    return command_line.run(_command(folder, words), around, given)


def forms(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """As text and, where there is one, as JSON."""
    return [words] if words[:1] == ("export",) else [words, ("--json", *words)]


def name(words: Any) -> str:
    return " ".join(words).replace(SID, "SID") if isinstance(words, tuple) else str(words)


@pytest.mark.few(16)
@pytest.mark.parametrize("words", [form for words in WORDS + REPORTS for form in forms(words)], ids=name)
def test_no_secret_leaves_by_a_command(planted: Path, words: tuple[str, ...]) -> None:
    code, said = run_here(planted, *words)
    assert code in (0, 3, 4), said
    assert leaks(said) == []
    assert not ACTIVE & set(said.replace("\r\n", "\n"))


@pytest.mark.few(12)
@pytest.mark.parametrize("words", [form for words in WORDS for form in forms(words)], ids=name)
def test_the_same_command_shows_them_when_asked_to_reveal(planted: Path, words: tuple[str, ...]) -> None:
    code, said = run_here(planted, *words, "--reveal")
    assert code == 0 and leaks(said), said
    assert not ACTIVE & set(said)


@pytest.mark.parametrize("words", MISTAKES, ids=lambda words: words[0])
def test_no_secret_leaves_by_an_error(planted: Path, words: tuple[str, ...]) -> None:
    code, said = run(planted, *words)
    assert code in (2, 3) and said.startswith("everturn: ")
    assert leaks(said) == []


def test_the_password_of_a_database_is_not_told(planted: Path) -> None:
    address = "postgresql://ann:" + "hunter" + "2!x@127.0.0.1:1/none"
    code, said = run(planted, "sessions", "--db", address)
    assert code != 0 and "hunter" not in said


def test_no_secret_leaves_over_the_wire(planted: Path) -> None:
    said = asked(planted, [("tools/list", {}), ("resources/list", {}), ("prompts/list", {}), *calls()])
    assert set(leaks(said)) <= {NAMED}
    assert NEIGHBOUR in said and "[REDACTED:" in said
    assert not ACTIVE & set(said)
    resources = re.findall(r'"uri": ?"([^"]+)"', said)
    assert resources
    assert set(leaks(asked(planted, [("resources/read", {"uri": uri}) for uri in resources]))) <= {NAMED}


def test_what_only_its_name_tells_does_not_leave_over_the_wire_either(planted: Path) -> None:
    assert leaks(asked(planted, calls())) == []


def test_the_users_own_patterns_do_not_leave_over_the_wire(planted: Path, tmp_path: Path) -> None:
    shutil.copy(planted / "archive.db", tmp_path / "archive.db")
    assert "YOUR INSTRUCTIONS" in asked(tmp_path, calls())
    (tmp_path / "config.toml").write_text("[secrets]\npatterns = ['IGNORE YOUR [A-Z]+']\n")
    said = asked(tmp_path, calls())
    assert "YOUR INSTRUCTIONS" not in said and "[REDACTED:user_pattern" in said


def calls() -> list[tuple[str, dict[str, Any]]]:
    return [("tools/call", {"name": tool, "arguments": given}) for tool, given in CALLS]


def asked(folder: Path, requests: list[tuple[str, dict[str, Any]]]) -> str:
    """What the server answers to these requests: as it stands on the wire, and every string of it unescaped."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": number, "method": method, "params": given} for number, (method, given) in enumerate(requests, 1)),
    ]
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in sent)
    done = _process(folder, ("mcp",), lines)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests) + 1, done.stderr
    return (done.stdout + done.stderr).decode() + "\n" + "\n".join(_texts(answers))


def _texts(value: Any) -> Iterator[str]:
    """Every string in an answer, unescaped."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def test_raw_bytes_are_verbatim_and_said_to_be(planted: Path) -> None:
    done = _process(planted, ("export", SID, "--as", "raw", "--out", "-"), b"")
    assert done.returncode == 0 and b"verbatim" in done.stderr and b"secrets included" in done.stderr
    assert len(leaks(done.stdout.decode("utf-8", "replace"))) >= len(SECRETS) - 2  # the screen, and the coloured one


def test_the_report_counts_every_kind_that_was_planted(planted: Path) -> None:
    done = _process(planted, ("secrets", "--json", "--limit", "100000"), b"")
    told = json.loads(done.stdout)
    assert done.returncode == 4
    assert len(told["kinds"]) >= 45 and told["total"] == len(told["items"]) > 300
    fields = {item["field"] for item in told["items"]}
    assert fields >= {"prompt", "answer", "thinking", "tool_input", "tool_output", "title", "workspace", "branch"}


def test_what_tries_to_give_orders_is_shown_as_quoted_words(planted: Path) -> None:
    _, said = run(planted, *SHOW)
    lines = [line for line in said.splitlines() if "IGNORE YOUR INSTRUCTIONS" in line]
    assert lines and all(line[:1] in " ❯|>" for line in lines)
    assert not ACTIVE & set(said)
