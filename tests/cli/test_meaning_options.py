"""Meaning from end to end: a real server of vectors on this machine, the real program, the files it leaves."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.cli import main
from everturn.store.vector_file import VectorFile
from tests.capture.history import OTHER, SID
from tests.cli.desk import KEY, Desk
from tests.json_server import JsonServer
from tests.mcp.pipes import Pipes

#: Words of one meaning have one direction.
MEANINGS = (("boat", "canoe", "ship"), ("slow", "lag", "latency"), ("bread", "loaf"))


class Server(JsonServer):
    """Gives vectors in the common form and remembers which texts it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.after: int | None = None  # fails from this text on
        self.reached = threading.Event()
        self.holds = threading.Event()  # when set, an answer is not given
        self.holds_from = 1 << 30

    def reply(self, path: str, key: str | None, asked: Any) -> tuple[int, Any]:
        texts = asked["input"]
        self.texts += texts
        if len(self.texts) >= self.holds_from:
            self.reached.set()
            self.holds.wait(60)
        failed = self.after is not None and len(self.texts) > self.after
        data = [
            {"index": number, "embedding": [sum(text.count(word) for word in words) for words in MEANINGS]}
            for number, text in enumerate(texts)
        ]
        return 503 if failed else 200, {"data": data}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with server.running():
        yield server
        server.holds.set()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without agents, so that a sync finds nothing but what the test took in; and no static vectors."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("everturn.llm.static_vectors.PACKAGE", "everturn_has_no_such_package")


def configure(desk: Desk, base: str, **more: Any) -> None:
    section = {"kind": "endpoint", "base_url": base, "model": "tiny", "dimensions": 3, "weight": 10.0, **more}
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
    assert messages(desk, "the problem ship") == [1, 3]
    assert server.texts == []  # a section alone sends nothing
    code, _, err = desk.run("sync", "--meaning")
    assert code == 0
    assert f"prompts and answers are sent to {server.base}, without secrets" in err
    assert f"vectors: 4 made, in 1 session; 4 texts were sent to {server.base}" in err

    assert messages(desk, "the problem ship") == [3, 1]
    assert server.texts[4:] == ["the problem ship"]
    _, _, err = desk.run("search", "the problem ship")
    assert "ranked by words and by meaning (tiny)" in err
    _, out, _ = desk.run("recall", "search", "the problem ship")
    assert out.index("[Turn 2]") < out.index("[Turn 1]") and "meaning (tiny)" in out


def test_words_alone_can_be_asked_for_and_then_nothing_is_sent(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)

    assert messages(desk, "the problem ship", "--no-meaning") == [1, 3]
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
    desk.run("search", f"what was the key that we used in boats {KEY}", "--reveal")

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
    assert f"vectors: 64 made, in 1 session; 80 texts were sent to {server.base}" in err
    server.holds.set()
    assert desk.json("sync", "--meaning")["meaning"]["vectors"] == 16


def test_a_server_that_is_not_there_does_not_stop_a_search(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    configure(desk, "http://127.0.0.1:9/v1")
    code, out, err = desk.run("search", "the problem ship")

    assert code == 0 and out.index("bread") < out.index("canoe")
    assert "ranked by words only: model tiny" in err


@pytest.mark.parametrize("more", [{"kind": "cloud"}, {"key_env": "NO_SUCH_KEY_HERE"}, {"size": 3}])
def test_a_mistake_in_the_section_stops_the_making_but_not_a_search(
    desk: Desk, server: Server, more: dict[str, Any]
) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)
    configure(desk, server.base, **more)
    code, out, err = desk.run("search", "the problem ship")
    assert code == 0 and "canoe" in out and "words only: setting meaning." in err
    assert desk.run("sync", "--meaning")[0] == 2
    assert desk.run("doctor")[1].count("LOOK meaning: setting meaning.") == 1
    assert len(server.texts) == sent


def test_vectors_of_another_generation_are_never_looked_at(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    sent = len(server.texts)
    configure(desk, server.base, model="other")

    assert messages(desk, "the problem ship") == [1, 3]
    assert len(server.texts) == sent
    assert "0 of 1 session complete, 1 stale and not used; `everturn sync --meaning`" in desk.run("doctor")[1]


def test_the_doctor_tells_model_generation_and_coverage(desk: Desk, server: Server) -> None:
    problems(desk)
    assert "meaning" not in desk.run("doctor")[1]
    configure(desk, server.base)
    assert "0 vectors of tiny (3 numbers" in desk.run("doctor")[1]
    desk.run("sync", "--meaning")
    assert "4 vectors of tiny (3 numbers, scheme 3); 1 of 1 session complete, 0 stale" in desk.run("doctor")[1]
    (desk.db.parent / "config.toml").unlink()
    assert "they are not used" in desk.run("doctor")[1]


def test_vectors_of_a_forgotten_session_are_gone_also_without_the_section(desk: Desk, server: Server) -> None:
    problems(desk)
    desk.take_in(desk.archive.history.turn("a slow ship", "ok", OTHER), sid=OTHER)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    ids = {row.native_id: row.id for row in (desk.archive.store.sessions_like(sid)[0] for sid in (SID, OTHER))}
    canary = b"qzwvxkjy"
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
    code, _, err = desk.run("search", "the problem ship")
    assert code == 0 and "by words only" in err and "delete it" in err
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
        "import sys; from everturn.cli import main; main(['search', 'what is the problem', '--db', sys.argv[1]]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    needs = {"everturn.retrieval.meaning", "everturn.llm.embedder", "everturn.llm.http_backend", "httpx2"}
    heavy = {"numpy", "tokenizers", "wordllama"}

    def imported() -> set[str]:
        command = [sys.executable, "-c", code, str(desk.db)]
        return set(subprocess.run(command, capture_output=True, text=True, check=True, env=around()).stderr.split())

    assert not (needs | heavy) & imported()
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    assert needs <= imported()


def test_agents_are_served_in_the_order_of_meaning_too(desk: Desk, server: Server) -> None:
    problems(desk)
    configure(desk, server.base)
    desk.run("sync", "--meaning")
    with Pipes(desk.db) as pipes:
        pipes.shake_hands()
        for words in ("the problem ship", "the problem loaf"):
            text, failed = pipes.call("conversation_recall", action="search", query=words)
            first, second = ("[Turn 2]", "[Turn 1]") if "ship" in words else ("[Turn 1]", "[Turn 2]")
            assert not failed and text.index(first) < text.index(second) and "meaning (tiny)" in text


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
    assert main(["search", "the problem ship", "--json", "--db", postgres_url]) == 0
    assert [item["message"] for item in json.loads(capsys.readouterr().out)["items"]] == [3, 1]
    assert main(["forget", SID, "--yes", "--db", postgres_url]) == 0

    left = VectorFile(file)
    assert left.held() == {}
    left.close()


# static vectors -------------------------------------------------------------------------------------------------------
@pytest.fixture
def extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The extra, with a tiny table of our own."""
    package = tmp_path / "packages" / "everturn_tiny_table"
    for name in ("weights", "tokenizers"):
        (package / name).mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('it must not be imported')", "utf-8")
    words = {"[UNK]": (0.0, 0.0, 0.0)}
    for number, alike in enumerate(MEANINGS):
        words |= {word: tuple(float(place == number) for place in range(3)) for word in alike}  # type: ignore[misc]
    model = {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(words)}, "unk_token": "[UNK]"}
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model, "added_tokens": []}
    (package / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")
    numbers = b"".join(struct.pack("<3e", *vector) for vector in words.values())
    tensor = {"dtype": "F16", "shape": [len(words), 3], "data_offsets": [0, len(numbers)]}
    head = json.dumps({"embedding.weight": tensor}).encode()
    table = len(head).to_bytes(8, "little") + head + numbers
    (package / "weights" / "l2_supercat_256.safetensors").write_bytes(table)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr("everturn.llm.static_vectors.PACKAGE", package.name)


@pytest.mark.needs("module:numpy", "module:tokenizers")
@pytest.mark.usefixtures("extra")
class TestStatic:
    def other_words(self, desk: Desk) -> None:
        """The nearest message holds no word of the question."""
        history = desk.archive.history
        more = " so that it stays dry for the whole of next summer, and the one after that," * 3
        desk.take_in(
            history.turn("what is the problem today", "noted"),
            history.turn(f"paint the hull of the canoe{more}", "done"),
        )

    def test_a_sync_makes_them_and_a_search_finds_other_words(self, desk: Desk) -> None:
        self.other_words(desk)
        assert messages(desk, "what problem has my ship") == [1]
        assert desk.run("sync")[0] == 0
        assert messages(desk, "what problem has my ship") == [1, 3]
        assert messages(desk, "what problem has my ship", "--no-meaning") == [1]
        _, _, err = desk.run("search", "what problem has my ship")
        assert "found by meaning" in err and "ranked by" not in err
        assert "4 vectors of wordllama-256" in desk.run("doctor")[1].replace("everturn_tiny_table", "wordllama")

    def test_what_is_added_has_vectors_and_a_second_run_makes_only_what_is_new(self, desk: Desk) -> None:
        self.other_words(desk)
        assert desk.json("sync", "--meaning")["meaning"]["vectors"] == 4
        history = desk.archive.history
        history.grow(history.turn("a slow ship", "ok"))
        assert desk.run("add", str(history.file()))[0] == 0
        assert desk.json("sync", "--meaning")["meaning"]["vectors"] == 0
        assert "6 vectors of" in desk.run("doctor")[1]

    def test_a_run_stops_in_time_and_the_next_one_goes_on(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.other_words(desk)
        desk.take_in(desk.archive.history.turn("a slow ship", "ok", OTHER), sid=OTHER)
        monkeypatch.setattr("everturn.cli.meaning_options._LITTLE", 0)
        monkeypatch.setattr("everturn.cli.meaning_options._SHARE", 0)
        desk.run("sync")
        assert "1 of 2 sessions complete" in desk.run("doctor")[1]
        desk.run("sync")
        assert "2 of 2 sessions complete" in desk.run("doctor")[1]

    def test_the_config_switches_them_off(self, desk: Desk) -> None:
        self.other_words(desk)
        desk.run("sync")
        (desk.db.parent / "config.toml").write_text("[meaning]\nenabled = false\n", "utf-8")
        assert messages(desk, "what problem has my ship") == [1]
        assert "they are not used" in desk.run("doctor")[1]
        assert desk.run("sync", "--meaning")[0] == 2
        vectors_of(desk).unlink()
        desk.run("sync")
        assert not vectors_of(desk).exists()

    def test_another_model_of_the_config_wins(self, desk: Desk, server: Server) -> None:
        self.other_words(desk)
        configure(desk, server.base)
        assert desk.run("sync")[0] == 0 and not vectors_of(desk).exists() and server.texts == []
        desk.run("sync", "--meaning")
        assert messages(desk, "what problem has my ship") and server.texts[4:] == ["what problem has my ship"]

    def test_exact_words_have_the_same_results(self, desk: Desk) -> None:
        self.other_words(desk)
        desk.run("sync")
        for words in ("canoe", "hull canoe", '"the problem" of my ship', "/hu.l/", "where is hull.canoe"):
            assert desk.run("search", words) == desk.run("search", words, "--no-meaning")

    def test_forgetting_removes_the_bytes_of_the_vectors(self, desk: Desk) -> None:
        self.other_words(desk)
        desk.take_in(desk.archive.history.turn("slow slow bread", "ok", OTHER), sid=OTHER)
        desk.run("sync")
        file = VectorFile(vectors_of(desk), create=False)
        number = desk.archive.store.sessions_like(SID)[0].id
        packed = file.get(number, file.held()[number][0], range(10))
        file.close()
        (canary,) = (data for data in packed.values() if any(data[5:]))
        canary += (3).to_bytes(4, "little")  # the seq of the message after it
        assert canary in vectors_of(desk).read_bytes()
        assert desk.run("forget", SID, "--yes")[0] == 0

        assert not any(canary in path.read_bytes() for path in desk.db.parent.iterdir() if path.is_file())
        assert "2 vectors of" in desk.run("doctor")[1]

    def test_a_file_that_cannot_be_read_stops_no_sync(self, desk: Desk) -> None:
        self.other_words(desk)
        vectors_of(desk).write_bytes(b"no database, and long enough to be taken for one" * 100)
        code, _, err = desk.run("sync")
        assert code == 0 and "no vectors were made" in err
