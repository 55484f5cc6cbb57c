"""What leaves a laptop, how it arrives, and what an interruption may not lose."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

import everturn
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.cli import main
from everturn.errors import EverturnError
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, open_store
from everturn.team.client import Login, TeamClient, save_login
from everturn.team.upload import repository_identity
from tests.capture.history import SID, job
from tests.team.conftest import Laptop, Team

SECRET = "AKIA" + "Q7XW2MZP4RTY5LNB"
OTHER = "22222222-bbbb-4333-8444-555555555555"


def hits(laptop: Laptop, words: str) -> list[str]:
    return [hit["session"] for hit in laptop.client.get("/v1/search", q=words)["items"]]


def counts(team: Team) -> list[tuple[str, int, int]]:
    with closing(open_store(team.url)) as store:
        rows, _ = store.sessions(SessionFilter())
        return sorted((row.native_id, row.n_messages, row.n_inherited) for row, _ in rows)


def record_bodies(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is sent from now on."""
    sent: list[bytes] = []
    post = laptop.client.post

    def posting(path: str, body: bytes) -> dict[str, object]:
        sent.append(body)
        return post(path, body)

    monkeypatch.setattr(laptop.client, "post", posting)
    return sent


def test_a_push_continues_where_the_last_one_stopped(team: Team) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    first = ann.push()
    assert (first.pushed, first.same, first.failed) == (1, 0, [])
    assert ann.push().bytes == 0
    ann.talk("and the lemon", "in the tree", SID)
    assert 0 < ann.push().bytes < first.bytes * 1.5
    assert hits(ann, "walrus") == hits(ann, "lemon") == [SID]
    assert counts(team) == [(SID, 4, 0)]


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_a_push_sends_no_more_in_a_second_than_it_may(team: Team) -> None:
    ann, pauses = team.laptop("ann"), list[float]()
    ann.talk("walrus " * 800, "it sleeps", SID)
    ann.client = TeamClient(Login(team.address, team.token("ann")), 2000, pauses.append)
    sent = ann.push().bytes
    assert sent > 5000 and sent / 2000 <= sum(pauses) and max(pauses) <= 0.25
    assert ann.push().same == 1, "all of it arrived"
    ann.store.close()


def test_a_piece_that_arrives_twice_is_stored_once(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    sent = record_bodies(ann, monkeypatch)
    ann.push()
    [piece] = [body for body in sent if b"walrus" in body]
    again = ann.client.post("/v1/push/piece", piece)
    assert again["offset"] > 0
    assert counts(team) == [(SID, 2, 0)]


def test_secrets_are_masked_before_they_leave(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = team.laptop("ann")
    ann.talk(f"the key is {SECRET}", "I will not repeat it", SID)
    sent = record_bodies(ann, monkeypatch)
    assert ann.push().pushed == 1
    assert sent and not any(SECRET.encode() in body for body in sent)
    with closing(open_store(team.url)) as store:
        stored = b"".join(store.read_raw(v.id, 0, v.size) for f, _ in store.files() for v in store.versions(f.id))
        assert b"the key is" in stored and SECRET.encode() not in stored
        assert [session.mode for session, _ in store.sessions(SessionFilter())[0]] == ["redacted"]
    ann.talk("one more thing", "yes", SID)
    assert ann.push(full=True).failed[0][1].endswith("run `everturn push --again`")
    assert ann.push(full=True, again=True).pushed == 1
    assert any(SECRET.encode() in body for body in sent), "only where the user insists"


def test_a_private_key_over_lines_of_text_is_masked_though_it_is_pushed_while_it_is_written(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = team.laptop("ann")
    body = [f"{number:02}" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" for number in range(20)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"])
    text = f"# aider chat started at 2026-03-01 09:00:00\n\n#### keep this\n\n{key}\n\n#### thanks\n\nGladly.\n"
    path = tmp_path / ".aider.chat.history.md"
    sent = record_bodies(ann, monkeypatch)
    for end in (text.index(body[7]), len(text)):
        path.write_text(text[:end])
        assert add_paths(replace(job(ann.store, ann.history), sources=all_sources()), [path]).failed == []
        assert ann.push().failed == []
    pushed = b"".join(sent)
    assert b"Gladly." in pushed and b"[REDACTED:private_key]" in pushed
    assert not [line for line in body if line[2:].encode() in pushed]


@pytest.mark.parametrize("mode", ["off", "structure"])
def test_what_the_rules_keep_back_stays_here(team: Team, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    sent = record_bodies(ann, monkeypatch)
    report = ann.push(Policy(rules=(("/home/ann/shop", mode),)))
    assert (report.left_out, sent) == (1, [])


def test_what_is_forgotten_here_is_erased_there(team: Team, tmp_path: Path) -> None:
    ann, bob = team.laptop("ann"), team.laptop("bob")
    for laptop in (ann, bob):
        laptop.talk("where is the walrus", "on the ice", SID)
        laptop.talk("where is the lemon", "in the tree", OTHER)
        laptop.push()
    ann.store.close()
    assert main(["forget", SID, "--yes", "--db", str(tmp_path / "ann.db")]) == 0
    ann.store = open_store(str(tmp_path / "ann.db"))
    assert ann.push().erased == 1
    assert hits(ann, "walrus") == []
    assert hits(ann, "lemon") == [OTHER]
    assert hits(bob, "walrus") == [SID], "bob's copy is his own"


def test_people_with_the_same_session_each_have_their_own(team: Team) -> None:
    laptops = [team.laptop("ann"), team.laptop("bob")]
    for laptop in laptops:
        laptop.talk("where is the walrus", "on the ice", SID)
        laptop.push()
    assert [hits(laptop, "walrus") for laptop in laptops] == [[SID], [SID]]
    assert counts(team) == [(SID, 2, 0), (SID, 2, 0)]


def test_a_path_that_a_pusher_names_is_never_opened_here(team: Team) -> None:
    with closing(open_store(team.url)) as store:
        ann = team.laptop("ann")
        ann.talk("where is the walrus", "on the ice", SID)
        ann.push()
        assert all(file.path.startswith("pushed:") for file, _ in store.files())


def test_a_login_without_tls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EverturnError, match="https"):
        save_login(tmp_path / "team.json", Login("http://everturn.example.com", "token"))


@pytest.mark.parametrize(
    "remote",
    ["git@github.com:example/shop.git", "https://me:pw@GitHub.com/example/shop", "ssh://git@github.com/example/shop/"],
)
def test_a_repository_is_the_same_however_it_was_cloned(tmp_path: Path, remote: str) -> None:
    for words in (["init", "-q"], ["remote", "add", "origin", remote]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    assert repository_identity(str(tmp_path)) == "github.com/example/shop"


# interruptions ----------------------------------------------------------------------------------------------------


class KilledServer:
    """`everturn serve` in a process of its own, to be killed and started again on the same port."""

    def __init__(self, url: str) -> None:
        self._url, self._port = url, "0"
        self.start()

    def start(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(Path(everturn.__file__).parent.parent)}
        words = [sys.executable, "-m", "everturn", "serve", "--port", self._port, "--db", self._url]
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.address, self._port = found[0], found[1]
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(team: Team, tmp_path: Path) -> None:
    server = KilledServer(team.url)
    ann = Laptop(tmp_path, "ann", Login(server.address, team.token("ann")))
    ids = [f"{number:08d}-2222-4333-8444-555555555555" for number in range(50)]
    for sid in ids:
        ann.talk(f"where is walrus {sid}", "on the ice", sid)
    acknowledged: list[bytes] = []
    post = ann.client.post

    def posting(path: str, body: bytes) -> dict[str, object]:
        answer = post(path, body)
        acknowledged.append(body)
        return answer

    ann.client.post = posting  # type: ignore[method-assign]
    interrupted = 0
    whole: list[bool] = []
    while not any(whole):
        before = len(acknowledged)
        pushing = Thread(target=lambda: whole.append(_push_quietly(ann)))
        pushing.start()
        while pushing.is_alive() and len(acknowledged) < before + 11:
            pushing.join(0.005)
        server.kill()
        pushing.join()
        server.start()
        interrupted += not whole[-1]
    assert interrupted >= 3
    assert ann.push().bytes == 0
    server.kill()
    assert counts(team) == [(sid, 2, 0) for sid in ids]
    ann.store.close()


def _push_quietly(laptop: Laptop) -> bool:
    """Push, and tell whether everything arrived. (A piece may be stored there although its answer was lost.)"""
    try:
        return not laptop.push().failed
    except EverturnError:
        return False


def test_the_commands_of_a_person(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From login to search, as typed."""
    ann = team.laptop("ann")
    ann.talk("where is the walrus", "on the ice", SID)
    [machine] = {file.machine for file, _ in ann.store.files()}
    ann.store.close()
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(f'machine = "{machine}"\n')
    monkeypatch.setattr("sys.stdin", _Typed(team.token("ann")))
    assert main(["team", "login", team.address]) == 0
    monkeypatch.setattr("sys.stdin", _Typed(team.token("ann")))
    assert main(["team", "login", team.address, "--json"]) == 0
    assert '"name":"ann"' in capsys.readouterr().out
    db = str(tmp_path / "ann.db")
    assert main(["push", "--db", db]) == 0
    assert main(["team", "search", "walrus"]) == 0
    assert main(["team", "sessions"]) == 0
    assert main(["team", "show", SID[:8]]) == 0
    out = capsys.readouterr().out
    assert "walrus" in out and SID in out and "on the ice" in out
    assert main(["team", "search", "nothing-like-it"]) == 3


class _Typed:
    def __init__(self, text: str) -> None:
        self._text = text

    def isatty(self) -> bool:
        return False

    def read(self) -> str:
        return self._text
