"""`everturn secrets`: kinds, counts and places, and not a byte of what was found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from everturn.secrets.rules import use_own_patterns
from everturn.store.contract import open_store
from tests.capture.history import OTHER, SID
from tests.cli.desk import Desk
from tests.secrets.secret_vectors import TOKENS

TOKEN, SECOND = TOKENS["github_token"][:2]
KEY = TOKENS["npm_token"][0]


def test_without_secrets_the_answer_is_0_and_a_word(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("hello", "there"))
    code, out, err = desk.run("secrets")
    assert (code, out) == (0, "") and "no secrets were found" in err


def test_with_secrets_the_answer_is_4_a_table_and_what_to_do(desk: Desk) -> None:
    made = desk.archive.history
    desk.take_in(made.turn(f"a {TOKEN}", f"b {TOKEN}"), made.turn(f"c {SECOND}", f"d {KEY}"))
    code, out, err = desk.run("secrets")
    lines = out.splitlines()
    assert code == 4
    assert lines[1].split() == ["github_token", "2", "3", "1"] and lines[2].split() == ["npm_token", "1", "1", "1"]
    assert len(lines) == 9 and "everturn forget" in err and "replace them" in err
    assert not any(secret[8:16] in out + err for secret in (TOKEN, SECOND, KEY))


def test_json_has_the_kinds_and_the_places_up_to_the_limit(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn(f"a {TOKEN}", f"b {TOKEN} {KEY}"))
    code, out, _ = desk.run("secrets", "--json", "--limit", "2")
    told = json.loads(out)
    assert code == 4 and told["total"] == 3 and len(told["items"]) == 2
    assert told["kinds"][0] == {"kind": "github_token", "secrets": 1, "places": 2, "sessions": 1}
    first, second = told["items"]
    assert first["digest"] == second["digest"] and (first["turn"], first["message"], first["field"]) == (1, 1, "prompt")
    assert (first["session"], second["field"]) == (SID, "answer")


def test_the_digest_is_the_one_that_stands_in_what_is_shown(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn(f"a {TOKEN}", "b"))
    digest = desk.run("secrets")[1].splitlines()[-1].split()[1]
    assert f"[REDACTED:github_token:{digest}]" in desk.run("show", SID)[1]
    assert f"[REDACTED:github_token:{digest}]" in desk.run("export", SID, "--as", "json")[1]
    assert f"[REDACTED:github_token:{digest}]" in desk.run("sessions", "--json")[1]


def test_a_session_or_a_filter_says_where_to_look(desk: Desk) -> None:
    made = desk.archive.history
    desk.take_in(made.turn(f"a {TOKEN}", "b"))
    desk.take_in(made.turn(f"c {KEY}", "d", sid=OTHER, cwd="/home/ann/else"), sid=OTHER)
    assert "npm_token" not in desk.run("secrets", SID)[1]
    assert "github_token" not in desk.run("secrets", "--workspace", "else")[1]
    assert desk.run("secrets", "--agent", "gemini")[0] == 0
    assert desk.run("secrets", "--since", "2030-01-01")[0] == 0
    assert desk.run("secrets", "nowhere")[0] == 3


def test_a_busy_archive_gets_digests_for_this_list_only(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.take_in(desk.archive.history.turn(f"a {TOKEN}", f"b {TOKEN}"))
    monkeypatch.setattr("everturn.store.sqlite.BUSY_MS", 20)
    other = open_store(str(desk.db))
    with other.write():
        code, out, err = desk.run("secrets")
    other.close()
    digests = {line.split()[1] for line in out.splitlines() if line.startswith("github_token") and "-" in line}
    assert code == 4 and len(digests) == 1 and "for this list only" in err


@pytest.fixture
def own_patterns(desk: Desk) -> Iterator[Callable[[str], tuple[int, str, str]]]:
    """Sets `secrets.patterns`, which holds for this process, until the test ends."""
    yield lambda value: desk.run("config", "set", "secrets.patterns", value)
    use_own_patterns(())


def test_own_patterns_are_masked_on_every_way_out(desk: Desk, own_patterns: Callable[[str], object]) -> None:
    prompt = 'ticket ACME-20417 of "Zoë Ångström"\nand ACME-1'
    desk.take_in(desk.archive.history.turn(prompt, "b"))
    assert "ACME-20417" in desk.run("show", SID)[1]
    own_patterns('["ACME-[0-9]{4,6}", "(?i)\\"zoë [^\\"]+\\""]')
    ways: list[tuple[str, ...]] = [("show", SID), ("search", "ticket"), ("sessions", "--json"), ("secrets", "--json")]
    ways += [("export", SID, "--as", form) for form in ("json", "markdown", "html")]
    for words in ways:
        _, out, err = desk.run(*words)
        assert out and not any(part in out for part in ("ACME-20417", "Zo", "ngstr")), (words, out, err)
    assert "[REDACTED:user_pattern" in desk.run("show", SID)[1] and "ACME-1" in desk.run("show", SID)[1]
    assert "ACME-20417" in desk.run("show", SID, "--reveal")[1]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("ACME-(", "not a pattern in RE2 syntax"),
        ("(?<=a)b", "not a pattern in RE2 syntax"),
        ("x*", "matches empty text"),
        ("x" * 501, "the limit is 500"),
        ("(?:(?:x{1000}){1000}){1000}", "not a pattern in RE2 syntax"),
        (json.dumps(["x"] * 51), "too many"),
    ],
)
def test_a_bad_pattern_is_one_sentence_and_is_not_written(desk: Desk, value: str, why: str) -> None:
    code, out, err = desk.run("config", "set", "secrets.patterns", value)
    assert (code, out) == (2, "") and why in err and "secrets.patterns" in err and len(err.splitlines()) == 1
    assert desk.run("config", "get", "secrets.patterns")[1] == "\n"
