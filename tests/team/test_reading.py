"""Restore, statistics and `why` across a team: what members get, what others do not, and no way to other files of the server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from everturn.cli import main
from everturn.team.client import Login, save_login
from tests.capture.history import run
from tests.planted_repository import PlantedRepository, Session
from tests.team.conftest import Team, served
from tests.team.test_access import ask, rpc
from tests.team.test_pages import Browser

PROJECT = "example.com/shop"
FEEDER = [
    f"def feed_{name}(animal):\n    return animal.eat('{name}', {len(name)})" for name in ("herring", "squid", "clams")
]


class SharedStory:
    """A repository with a file of a shared session and one of a private session, and a server with a clone of it."""

    def __init__(self, team: Team, tmp_path: Path) -> None:
        story = PlantedRepository(tmp_path / "place")
        self.shared = self._write(story, "add the walrus feeder", "src/feeder.py", "\n".join(FEEDER).split("\n"))
        secret = [line.replace("feed", "hide") for line in "\n".join(FEEDER).split("\n")]
        self.private = self._write(story, "write my zebrafish diary", "src/diary.py", secret)
        story.save_transcripts()
        self.clone = tmp_path / "srv" / "clone"
        subprocess.run(["git", "clone", "-q", str(story.root), str(self.clone)], check=True, capture_output=True)
        ann = team.laptop("ann")
        for session in (self.shared, self.private):
            ann.history.write(session.path.read_bytes(), session.id)
        run(ann.store, ann.history)
        assert ann.push().failed == []
        ann.store.close()
        assert team.admin("project", PROJECT, "--add", "ann", "--add", "bob", "--add", "rita") == 0
        body = json.dumps({"session": self.shared.id, "project": PROJECT}).encode()
        assert ask(team, team.token("ann"), "POST", "/v1/share", body)[0] == 200

    def _write(self, story: PlantedRepository, request: str, path: str, lines: list[str]) -> Session:
        session = story.agent()
        story.prompt(session, request)
        story.write(session, path, lines)
        story.session_commit(session, f"Add {path}")
        return session


@pytest.fixture
def story(team: Team, tmp_path: Path) -> Iterator[tuple[Team, SharedStory]]:
    made = SharedStory(team, tmp_path)
    with served(team.url, **{PROJECT: made.clone}) as address:
        yield Team(team.url, tmp_path, address), made


def test_members_learn_who_wrote_a_line_and_nothing_of_what_is_private(story: tuple[Team, SharedStory]) -> None:
    team, made = story
    answers = {}
    for name in ("ann", "bob", "rita", "eve"):
        token, said = team.token(name, ("read",)), ""
        for path in ("src/feeder.py:2", "src/diary.py:2", "src/diary.py", "HEAD~1..HEAD"):
            status, text = ask(team, token, "GET", f"/v1/why?project={PROJECT}&target={quote(path)}")
            assert status == (404 if name == "eve" else 200), (name, path, text)
            said += text
            call = rpc("tools/call", name="why", arguments={"target": path, "folder": PROJECT})
            status, text = ask(team, token, "POST", "/mcp", call)
            assert status == (400 if name == "eve" else 200)
            said += text
        browser = Browser(team)
        assert browser.log_in(token) == 303
        assert browser.get(f"/why?project={PROJECT}&target=src/feeder.py:2") == (404 if name == "eve" else 200)
        answers[name] = said + browser.text
    for name, said in answers.items():
        assert ("add the walrus feeder" in said) == (made.shared.id in said) == (name != "eve"), name
        assert ("zebrafish" in said) == (made.private.id in said) == (name == "ann"), name
        assert str(made.clone.parent) not in said
    unknown = ask(team, team.token("eve"), "GET", "/v1/why?project=example.com/nowhere&target=HEAD")
    known = ask(team, team.token("eve"), "GET", f"/v1/why?project={PROJECT}&target=HEAD")
    assert unknown[0] == known[0] and unknown[1].replace("example.com/nowhere", PROJECT) == known[1]


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_no_target_leads_out_of_the_repository(story: tuple[Team, SharedStory], tmp_path: Path) -> None:
    team, made = story
    (tmp_path / "srv" / "other.txt").write_text("the password of the server\n")
    (made.clone / "out.txt").symlink_to(tmp_path / "srv" / "other.txt")
    token = team.token("bob")
    for target in (
        "/etc/hosts:1",
        "../other.txt:1",
        "src/../../other.txt",
        "out.txt:1",
        "--help",
        "a\0b",
        "",
        "x\\..\\y",
        "nothing.py:1",
    ):
        status, text = ask(team, token, "GET", f"/v1/why?project={PROJECT}&target={quote(target)}")
        assert status in (400, 404), (target, text)
        assert "password" not in text and str(tmp_path) not in text, target
    assert ask(team, token, "GET", f"/v1/why?project={PROJECT}&target=src/feeder.py:1-9999")[0] == 400


@pytest.mark.parametrize("team", ["sqlite"], indirect=True)
def test_the_commands_read_from_the_server(
    story: tuple[Team, SharedStory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    team, made = story
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    save_login(tmp_path / "home" / "state" / "team.json", Login(team.address, team.token("bob")))
    subprocess.run(["git", "-C", str(made.clone), "remote", "set-url", "origin", f"https://{PROJECT}.git"], check=True)
    monkeypatch.chdir(made.clone / "src")
    assert main(["team", "why", "feeder.py:2"]) == 0
    assert "add the walrus feeder" in capsys.readouterr().out
    assert main(["team", "restore", made.shared.id[:8]]) == 0
    assert "walrus feeder" in (shown := capsys.readouterr().out) and shown.count("\n") > 5
    assert main(["team", "show", made.shared.id[:8]]) == 0
    assert capsys.readouterr().out.count("\n") > 3
    assert main(["team", "restore", made.private.id]) == 3
    assert main(["team", "stats", "--by", "agent", "--json"]) == 0
    [sums] = json.loads(capsys.readouterr().out)["items"]
    assert (sums["key"], sums["sessions"], sums["turns"]) == ("claude_code", 1, 1)
    browser = Browser(team)
    browser.log_in(team.token("bob", ("read",)))
    assert browser.get(f"/sessions/{made.shared.id}/restore") == 200 and "walrus feeder" in browser.text
    assert browser.get(f"/sessions/{made.private.id}/restore") == 404 and "zebrafish" not in browser.text
    assert browser.get("/stats?by=owner") == 200 and "ann" in browser.text
    assert main(["serve", "--db", team.url, "--repository", "x=/no/such/folder"]) == 2
