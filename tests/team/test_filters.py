"""Filters by person, machine and repository, over what the caller may see."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from everturn.cli import main
from tests.team.conftest import Team
from tests.team.test_access import PROJECT, ask

ANNS, BOBS = "11111111-aaaa-4333-8444-555555555555", "22222222-bbbb-4333-8444-555555555555"
ELSEWHERE = "33333333-cccc-4333-8444-555555555555"


@pytest.fixture
def filled(team: Team, tmp_path: Path) -> Team:
    """Ann and bob have a session each in clones of one repository, ann another one elsewhere."""
    assert team.admin("project", PROJECT, "--shares", "--add", "ann", "--add", "bob") == 0
    for name, sid in (("ann", ANNS), ("bob", BOBS)):
        clone = tmp_path / name / "clone"
        clone.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", clone], check=True)
        subprocess.run(
            ["git", "-C", clone, "remote", "add", "origin", f"git@github.com:{PROJECT[11:]}.git"], check=True
        )
        laptop = team.laptop(name)
        laptop.talk("where is the walrus", f"the walrus of {name}", sid, cwd=str(clone))
        if name == "ann":
            laptop.talk("another walrus", "it sleeps", ELSEWHERE, cwd="/home/ann/shop/src")
        assert laptop.push().failed == []
        laptop.store.close()
    return team


def found(team: Team, token: str, path: str) -> list[str]:
    status, answer = ask(team, token, "GET", path)
    assert status == 200, answer
    return sorted({one["session"] for one in json.loads(answer)["items"]})


CASES = [
    ("owner:ann", [ANNS, ELSEWHERE]),
    ("-owner:ann", [BOBS]),
    ("owner:eve", []),
    (f"project:{PROJECT}", [ANNS, BOBS]),
    ("project:example/shop owner:bob", [BOBS]),
    ("project:shop", [ANNS, BOBS, ELSEWHERE]),
    (f"-project:{PROJECT}", [ELSEWHERE]),
    ("-project:shop", []),
    ("machine:box", [ANNS, BOBS, ELSEWHERE]),
    ("machine:ann/box", [ANNS, ELSEWHERE]),
    ("-machine:bob/box", [ANNS, ELSEWHERE]),
    ("machine:bo", []),
]


def test_words_and_lists_are_limited_to_a_person_a_machine_and_a_repository(filled: Team) -> None:
    token = filled.token("ann", ("read",))
    machine = json.loads(ask(filled, token, "GET", "/v1/sessions")[1])["items"][0]["machine"]
    for typed, wanted in CASES:
        query = quote(f"walrus {typed}".replace("box", machine))
        assert found(filled, token, f"/v1/search?q={query}") == wanted, typed
        names = dict(one.split(":") for one in typed.split())
        if not typed.startswith("-"):
            given = "&".join(f"{name}={quote(value.replace('box', machine))}" for name, value in names.items())
            assert found(filled, token, f"/v1/sessions?{given}") == wanted, typed


def test_a_filter_shows_nothing_that_is_not_shared(filled: Team) -> None:
    token = filled.token("eve", ("read",))
    for typed, _ in CASES:
        assert found(filled, token, f"/v1/search?q={quote(f'walrus {typed}')}") == []
    assert found(filled, token, f"/v1/sessions?project={quote(PROJECT)}") == []


def test_a_command_lists_by_owner_machine_and_project(filled: Team, capsys: pytest.CaptureFixture[str]) -> None:
    listed = {}
    for words in (("--owner", "bob"), ("--project", PROJECT), ("--machine", "nowhere")):
        capsys.readouterr()
        main(["sessions", *words, "--json", "--db", filled.url])
        listed[words] = sorted(one["id"] for one in json.loads(capsys.readouterr().out)["items"])
    assert list(listed.values()) == [[BOBS], [ANNS, BOBS], []]
