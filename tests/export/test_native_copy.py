"""A masked copy in the agent's own format: our own reader finds the same turns in it, and no secret."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import everturn
from everturn.cli import main
from everturn.errors import EverturnError
from everturn.export.original import masked_copy
from everturn.secrets.redaction import Cleaner, redact_text
from everturn.sources.file_turns import FileTurn
from tests.sources.opencode import building

SAMPLES = Path(__file__).parents[1] / "sources"
KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"
_KEY_FILE = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(
    ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + "x" * 12] * 6
)
_KEY_FILE += "\n-----END PRIVATE KEY-----"


def samples() -> list[tuple[str, Path]]:
    found = [path for path in sorted(SAMPLES.glob("*/samples/**/*")) if path.is_file()]
    return [
        (path.relative_to(SAMPLES).parts[0], path)
        for path in found
        if not path.name.endswith(".expected.json") and path.suffix != ".sql"
    ]


def turns_of(path: Path, source: str) -> list[FileTurn]:
    try:
        return everturn.read(path, source=source)
    except EverturnError:
        return []


def shape(turns: list[FileTurn]) -> list[Any]:
    return [
        (turn.session_id, turn.index, turn.started_at, [(call.call_id, call.name, call.status) for call in turn.calls])
        for turn in turns
    ]


def words_of(turns: list[FileTurn]) -> list[str]:
    return [text for turn in turns for text in (turn.prompt, turn.answer, *(call.output for call in turn.calls))]


def with_a_secret(data: bytes, turns: list[FileTurn], path: Path, source: str) -> bytes:
    """The sample with a key in place of a word that somebody said; b"" if no word will do."""
    said = Counter(re.findall(r"[A-Za-z]{4,}", " ".join(words_of(turns)[:40])))
    for word, _ in said.most_common(12):
        new = re.sub(rf" {word}(?![A-Za-z0-9_-])".encode(), f" {KEY}".encode(), data)
        path.write_bytes(new)
        if KEY in " ".join(words_of(found := turns_of(path, source))) and shape(found) == shape(turns):
            return new
    return b""


def test_every_format_reads_the_same_turns_in_a_masked_copy(tmp_path: Path) -> None:
    planted = set[str]()
    for number, (source, sample) in enumerate(samples()):
        place = tmp_path / str(number) / sample.relative_to(SAMPLES / source / "samples")
        shutil.copytree(sample.parent, place.parent)
        turns = turns_of(place, source)
        data = with_a_secret(sample.read_bytes(), turns, place, source) if turns else b""
        if not data:
            continue
        before = turns_of(place, source)
        copy = b"".join(masked_copy([data[n : n + 1000] for n in range(0, len(data), 1000)], Cleaner(b"k")))
        assert KEY.encode() not in copy, sample
        place.write_bytes(copy)
        after = turns_of(place, source)
        assert shape(after) == shape(before), sample
        assert [redact_text(text, b"k") for text in words_of(before)] == [
            redact_text(text, b"k") for text in words_of(after)
        ], sample
        planted.add(source)
    assert len(planted) >= 15, sorted(planted)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json_and_other_bytes_stay(indent: int | None) -> None:
    record = {"text": f"key {KEY} é\n{_KEY_FILE}", "password": 12345678901, "n": [1, 2.50, None], "id": "a" * 32}
    data = json.dumps([record, record], indent=indent).encode() + b"\n"
    copy = b"".join(masked_copy([data], Cleaner(b"k")))
    read = json.loads(copy)
    assert KEY.encode() not in copy and b"MIIEvQ" not in copy
    assert read[0]["n"] == record["n"] and read[0]["id"] == record["id"] and read[0] == read[1]
    assert b"".join(masked_copy([copy], Cleaner(b"k"))) == copy, "masking twice changes nothing"


def test_text_is_masked_across_lines() -> None:
    data = f"# a chat\n\nmine is\n{_KEY_FILE}\nand more\n".encode()
    copy = b"".join(masked_copy([data], Cleaner()))
    assert b"MIIEvQ" not in copy and copy.startswith(b"# a chat\n") and copy.endswith(b"and more\n")


def test_the_command_writes_a_file_that_reads_as_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    sample = SAMPLES / "claude_code" / "samples" / "plain-turn.jsonl"
    own = tmp_path / "own" / sample.name
    own.parent.mkdir()
    word = re.findall(r"[A-Za-z]{4,}", everturn.read(sample)[0].prompt)[0]
    own.write_bytes(sample.read_bytes().replace(word.encode(), KEY.encode()))
    out = tmp_path / "out"
    out.mkdir()
    assert main(["add", str(own)]) == 0
    assert main(["export", "@last", "--as", "native", "--redacted", "--out", str(out)]) == 0
    copy = out / own.name
    assert KEY not in copy.read_text() and shape(everturn.read(copy)) == shape(everturn.read(own))
    assert main(["export", "@last", "--as", "native", "--reveal", "--out", str(out / "as-it-was")]) == 0
    assert (out / "as-it-was").read_bytes() == own.read_bytes()
    assert main(["export", "@last", "--as", "native", "--redacted", "--reveal"]) == 2
    capsys.readouterr()


def test_a_session_of_a_database_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "home"))
    sessions = json.loads(re.sub(r"\bwalrus\b", KEY, json.dumps(building.SESSIONS)))  # in a summary, too
    building.database(tmp_path / "opencode.db", sessions).close()
    assert main(["add", str(tmp_path / "opencode.db")]) == 0
    out = tmp_path / "copy.json"
    assert main(["export", building.PARENT, "--as", "native", "--out", str(out)]) == 0
    assert KEY not in out.read_text() and "[REDACTED:" in out.read_text()
    assert [turn.prompt for turn in everturn.read(out)]
    capsys.readouterr()
