"""Meaning from end to end: a real server of vectors on this machine, the real program, the files it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from everturn.cli import main
from everturn.store.vector_file import VectorFile
from tests.capture.history import OTHER, SID
from tests.cli.desk import KEY, Desk
from tests.mcp.pipes import Pipes

#: Words of one meaning have one direction.
MEANINGS = (("boat", "canoe", "ship"), ("slow", "lag", "latency"), ("bread", "loaf"))


class Server(ThreadingHTTPServer):
    """Gives vectors in the common form and remembers which texts it was given."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.texts: list[str] = []
        self.after: int | None = None  # fails from this text on
        self.reached = threading.Event()
        self.holds = threading.Event()  # when set, an answer is not given
        self.holds_from = 1 << 30

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        server = self.server
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        server.texts += texts
        if len(server.texts) >= server.holds_from:
            server.reached.set()
            server.holds.wait(60)
        failed = server.after is not None and len(server.texts) > server.after
        data = [
            {"index": number, "embedding": [sum(text.count(word) for word in words) for words in MEANINGS]}
            for number, text in enumerate(texts)
        ]
        body = json.dumps({"data": data}).encode()
        try:
            self.send_response(503 if failed else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # nobody waits any more
            pass

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.holds.set()
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without agents, so that a sync finds nothing but what the test took in."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def configure(desk: Desk, base: str, **more: Any) -> None:
    section = {"kind": "endpoint", "base_url": base, "model": "tiny", "dimensions": 3, "weight": 2.0, **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in section.items()]
    (desk.db.parent / "config.toml").write_text("\n".join(["[meaning]", *lines, ""]), "utf-8")


def vectors_of(desk: Desk) -> Path:
    return desk.db.with_name("archive.vectors.db")


def problems(desk: Desk) -> None:
    """Words alone put the bread first."""
    history = desk.archive.history
    desk.take_in(
        history.turn("the problem with problem of bread: a problem", "noted"),
        history.turn("a problem of the canoe", "noted"),
    )


def around() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def messages(desk: Desk, *words: str) -> list[int]:
    return [item["message"] for item in desk.json("search", *words)["items"]]


def test_a_search_follows_meaning_once_vectors_were_asked_for(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    assert messages(desk, "problem ship") == [1, 3]
    assert server.texts == []  # a section alone sends nothing
    code, _, err = desk.run("sync", "--meaning")
    assert code == 0
    assert f"prompts and answers are sent to {server.base}, without secrets" in err
    assert f"vectors: 4 made, in 1 sessions; 4 texts were sent to {server.base}" in err

    assert messages(desk, "problem ship") == [3, 1]
    assert server.texts[4:] == ["problem ship"]
    _, _, err = desk.run("search", "problem ship")
    assert "the order follows meaning too, by tiny" in err
    _, out, _ = desk.run("recall", "search", "problem ship")
    assert out.index("turn 2") < out.index("turn 1") and "by tiny" in out


def test_words_alone_can_be_asked_for_and_then_nothing_is_sent(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)

    assert messages(desk, "problem ship", "--no-meaning") == [1, 3]
    assert len(server.texts) == sent


def test_nothing_is_sent_without_the_flag_or_without_the_section(desk: Desk, server: Server) -> None:
    problems(desk)
    code, out, err = desk.run("sync", "--meaning")
    assert (code, out) == (2, "") and "[meaning]" not in out and "no such section" in err
    configure(desk, server.base)
    assert desk.run("sync")[0] == 0

    assert server.texts == [] and not vectors_of(desk).exists()


def test_a_second_run_sends_only_what_is_new(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    assert desk.json("sync", "--meaning")["meaning"] == {
        "model": "tiny", "vectors": 0, "sessions": 0, "sent": 0, "where": server.base, "error": None,
    }  # fmt: skip
    desk.archive.history.grow(desk.archive.history.turn("slow ship", "ok"))
    desk.archive.take_in()

    assert desk.json("sync", "--meaning")["meaning"]["sent"] == 2
    assert server.texts[4:] == ["slow ship", "ok"]


def test_secrets_and_what_tools_gave_back_are_not_sent(desk: Desk, server: Server) -> None:
    history = desk.archive.history
    desk.take_in(history.turn(f"my key is {KEY}", "ok"), history.tool_turn("look", "cat boats.txt", "ship inventory"))
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    desk.run("search", f"key {KEY}", "--reveal")

    assert len(server.texts) == 4 and not any(KEY in text or "inventory" in text for text in server.texts)
    assert KEY.encode() not in vectors_of(desk).read_bytes()


def test_a_model_that_fails_half_way_leaves_what_was_made(
    desk: Desk, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everturn.retrieval.meaning.AT_ONCE", 2)
    problems(desk)
    configure(desk, server.base)
    server.after = 2
    code, out, err = desk.run("sync", "--meaning", "--json")
    made = json.loads(out)["meaning"]
    assert (code, made["vectors"], made["sent"]) == (1, 2, 4)
    assert "status 503" in made["error"] and "vectors: 2 made" in err
    server.after = None

    assert desk.json("sync", "--meaning")["meaning"]["vectors"] == 2


def test_ctrl_c_keeps_what_was_made(desk: Desk, server: Server) -> None:
    history = desk.archive.history
    desk.take_in(*(history.turn(f"canoe {number}", "ok") for number in range(40)))
    configure(desk, server.base)
    server.holds_from = 65  # the second portion
    command = [sys.executable, "-m", "everturn", "sync", "--meaning", "--db", str(desk.db)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=around())
    assert server.reached.wait(60)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)

    assert process.returncode == 130 and "Traceback" not in err
    assert f"vectors: 64 made, in 1 sessions; 80 texts were sent to {server.base}" in err
    server.holds.set()
    assert desk.json("sync", "--meaning")["meaning"]["vectors"] == 16


def test_a_server_that_is_not_there_does_not_stop_a_search(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    configure(desk, "http://127.0.0.1:9/v1")
    code, out, err = desk.run("search", "problem ship")

    assert code == 0 and out.index("bread") < out.index("canoe")
    assert "the order follows words alone: model tiny" in err


@pytest.mark.parametrize("more", [{"kind": "cloud"}, {"key_env": "NO_SUCH_KEY_HERE"}, {"size": 3}])
def test_a_mistake_in_the_section_stops_the_making_but_not_a_search(
    desk: Desk, server: Server, more: dict[str, Any]
) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)
    configure(desk, server.base, **more)
    code, out, err = desk.run("search", "problem ship")
    assert code == 0 and "canoe" in out and "words alone: setting meaning." in err
    assert desk.run("sync", "--meaning")[0] == 2
    assert desk.run("doctor")[1].count("LOOK meaning: setting meaning.") == 1
    assert len(server.texts) == sent


def test_vectors_of_another_generation_are_never_looked_at(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)
    configure(desk, server.base, model="other")

    assert messages(desk, "problem ship") == [1, 3]
    assert len(server.texts) == sent
    assert "0 of 1 sessions complete, 1 stale and not used; `everturn sync --meaning`" in desk.run("doctor")[1]


def test_the_doctor_tells_model_generation_and_coverage(desk: Desk, server: Server) -> None:
    problems(desk)
    assert "meaning" not in desk.run("doctor")[1]
    configure(desk, server.base)
    assert "0 vectors of tiny (3 numbers" in desk.run("doctor")[1]
    desk.run("sync", "--meaning")
    assert "4 vectors of tiny (3 numbers, scheme 2); 1 of 1 sessions complete, 0 stale" in desk.run("doctor")[1]
    (desk.db.parent / "config.toml").unlink()
    assert "they are not used" in desk.run("doctor")[1]


def test_vectors_of_a_forgotten_session_are_gone_also_without_the_section(desk: Desk, server: Server) -> None:
    problems(desk)
    desk.take_in(desk.archive.history.turn("a slow ship", "ok", OTHER), sid=OTHER)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    ids = {row.native_id: row.id for row in (desk.archive.store.sessions_like(sid)[0] for sid in (SID, OTHER))}
    canary = b"qzwvxkjyqzzvbnmq" * 4
    file = VectorFile(vectors_of(desk))
    generation, upto, _ = file.held()[ids[SID]]
    file.put(ids[SID], generation, [(seq, canary) for seq in range(100, 300)], upto)
    file.close()
    assert canary in vectors_of(desk).read_bytes()
    (desk.db.parent / "config.toml").unlink()
    assert desk.run("forget", SID, "--yes")[0] == 0

    assert not any(canary in path.read_bytes() for path in desk.db.parent.iterdir() if path.is_file())
    file = VectorFile(vectors_of(desk))
    assert set(file.held()) == {ids[OTHER]}
    file.close()


def test_a_file_of_vectors_that_cannot_be_read_stops_neither_a_search_nor_forgetting(
    desk: Desk, server: Server
) -> None:
    problems(desk)
    configure(desk, server.base)
    vectors_of(desk).write_bytes(b"no database, and long enough to be taken for one" * 100)
    code, _, err = desk.run("search", "problem ship")
    assert code == 0 and "words alone" in err and "delete it" in err
    assert "LOOK meaning" in desk.run("doctor")[1]
    code, _, err = desk.run("forget", SID, "--yes")
    assert code == 0 and "was deleted" in err and not vectors_of(desk).exists()


def test_backup_merge_and_rebuild_say_what_becomes_of_vectors(desk: Desk, server: Server, tmp_path: Path) -> None:
    problems(desk)
    assert "vectors" not in desk.run("rebuild")[2]
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    assert "makes them again" in desk.run("backup", str(tmp_path / "copy.db"))[2]
    assert "makes them" in desk.run("merge", str(tmp_path / "copy.db"))[2]
    assert "vectors stay" in desk.run("rebuild")[2]
    assert desk.json("sync", "--meaning")["meaning"]["sent"] == 0  # the same parser read the same bytes


def test_an_archive_in_memory_has_no_vectors_and_watching_makes_none(
    desk: Desk, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(desk, server.base)
    assert main(["sync", "--meaning", "--db", "memory:"]) == 2
    assert main(["sync", "--meaning", "--watch", "--db", "memory:"]) == 2
    assert "Traceback" not in capsys.readouterr().err and server.texts == []


def test_a_search_imports_nothing_of_it_unless_it_is_configured(desk: Desk, server: Server) -> None:
    problems(desk)
    code = (
        "import sys; from everturn.cli import main; main(['search', 'problem', '--db', sys.argv[1]]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    needs = {"everturn.cli.meaning_options", "everturn.retrieval.meaning", "everturn.store.vector_file"}
    needs |= {"everturn.llm.embedder", "everturn.llm.http_backend", "httpx2"}

    def imported() -> set[str]:
        command = [sys.executable, "-c", code, str(desk.db)]
        return set(subprocess.run(command, capture_output=True, text=True, check=True, env=around()).stderr.split())

    assert not needs & imported()
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    assert needs <= imported()


def test_agents_are_served_in_the_order_of_meaning_too(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    with Pipes(desk.db) as pipes:
        pipes.shake_hands()
        for words in ("problem ship", "problem loaf"):
            text, failed = pipes.call("conversation_recall", action="search", query=words)
            first, second = ("turn 2", "turn 1") if "ship" in words else ("turn 1", "turn 2")
            assert not failed and text.index(first) < text.index(second) and "by tiny" in text


@pytest.mark.needs("module:psycopg")
def test_an_archive_on_a_server_has_its_vectors_in_the_data_folder(
    desk: Desk, server: Server, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problems(desk)
    configure(desk, server.base)
    assert main(["merge", str(desk.db), "--db", postgres_url]) == 0
    assert main(["sync", "--meaning", "--db", postgres_url]) == 0
    (file,) = desk.db.parent.glob("*.vectors.db")
    assert not vectors_of(desk).exists()
    capsys.readouterr()
    assert main(["search", "problem ship", "--json", "--db", postgres_url]) == 0
    assert [item["message"] for item in json.loads(capsys.readouterr().out)["items"]] == [3, 1]
    assert main(["forget", SID, "--yes", "--db", postgres_url]) == 0

    left = VectorFile(file)
    assert left.held() == {}
    left.close()
