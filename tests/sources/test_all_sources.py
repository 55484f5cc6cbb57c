"""Tests that every format passes, and the gate that a new one has to pass."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import everturn
from everturn.model.conversation import Message
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate, abilities, all_sources, read_beginning
from tests.sources.format_gate import gaps

NAMES = (
    "x.jsonl", "x.json", "x.md", "x.zip", "x.cast", "typescript", "opencode.db", "sessions.db", "state.vscdb", "events.jsonl",
    "conversations.json", "api_conversation_history.json", ".aider.chat.history.md", "session-2026-01-01T10-00-abcdef01.json",
)  # fmt: skip
BARE = {"PYTHONPATH": str(Path(everturn.__file__).parents[1]), "PATH": os.environ["PATH"]}


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_nobody_waits_for_a_pipe(source: Source, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "chats", tmp_path / "sessions", tmp_path / "projects" / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            os.mkfifo(folder / name)
    assert all(found.path.exists() for found in source.find(tmp_path))


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_a_machine_without_anything_has_no_folders(source: Source, tmp_path: Path) -> None:
    for platform in ("linux", "darwin", "win32"):
        assert source.roots(SearchPlaces(tmp_path / "nobody", {}, platform)) == []


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_nobody_claims_ordinary_files(source: Source, tmp_path: Path) -> None:
    for name, text in {
        "notes.txt": "milk, eggs\n",
        "a.py": "import os\n",
        "a.json": '{"a": 1}\n',
        "a.csv": "a,b\n1,2\n",
    }.items():
        assert source.sniff(tmp_path / name, text.encode()) is None


def test_every_source_says_what_it_can() -> None:
    for source in all_sources().values():
        assert abilities(source)[0] == "read"
        assert source.title
        assert source.parser >= 1


def test_the_beginning_of_what_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    assert read_beginning(tmp_path) == b""
    assert read_beginning(tmp_path / "missing") == b""
    (tmp_path / "file").write_bytes(b"hello")
    assert read_beginning(tmp_path / "file", 4) == b"hell"


def test_a_source_asked_for_by_name_is_imported_alone() -> None:
    code = (
        "import sys; from everturn.sources import all_sources; every = all_sources()\n"
        "assert every['pi'].name == 'pi' and 'nobody' not in every and every.get('toolkit') is None\n"
        "print(sorted(name for name in sys.modules if name.count('.') == 2 and name.startswith('everturn.sources.')))\n"
        "print(len(every) == len(list(every)) == len(every.values()) > 10)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=BARE)
    alone, whole = done.stdout.splitlines()
    assert "everturn.sources.pi" in alone
    assert [name for name in all_sources() if name != "pi" and f"'everturn.sources.{name}'" in alone] == []
    assert whole == "True"


@pytest.mark.parametrize("name", all_sources())
def test_a_source_is_found_by_its_folder(name: str) -> None:
    assert all_sources()[name] is importlib.import_module(f"everturn.sources.{name}").SOURCE


SID = "0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10"


@pytest.mark.parametrize(
    ("name", "native_id", "words"),
    [
        ("claude_code", SID, ["claude", "--resume", SID]),
        ("claude_code", f"{SID}/agent-a1", ["claude", "--resume", SID]),
        ("codex", SID, ["codex", "resume", SID]),
        ("copilot_cli", f"{SID}/ag-1", ["copilot", f"--resume={SID}"]),
        ("factory_droid", SID, ["droid", "--resume", SID]),
        ("kimi", "s", ["kimi", "--session", "s"]),
        ("pi", SID, ["pi", "--session", SID]),
        ("qwen_code", SID, ["qwen", "--resume", SID]),
    ],
)
def test_a_session_is_resumed_by_its_id(name: str, native_id: str, words: list[str]) -> None:
    resume_command = all_sources()[name].resume_command
    assert resume_command is not None
    assert resume_command(native_id) == words


def test_a_source_has_the_name_of_its_module() -> None:
    assert [name for name, source in all_sources().items() if source.name != name] == []


def test_a_name_that_is_no_module_of_the_folder_is_no_source() -> None:
    for name in ("", ".", "pi.reader", "..model", "os", "toolkit", "contract"):
        assert name not in all_sources()


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_whatever_is_imported_later_is_there(source: Source, tmp_path: Path) -> None:
    assert source.reader(SourceCandidate(tmp_path / "none", "main", "none"), b"").feed(b"", 0, True).parts == []
    assert isinstance(source.view(b"{}"), Message | None)
    assert source.workspace(b"") == ""


def test_every_format_has_samples_goldens_and_contract_tests() -> None:
    assert gaps(Path(everturn.__file__).parent / "sources", Path(__file__).parent) == []


GOOD_TEST = """
from tests.sources import goldens
from tests.sources.goldens import assert_golden, assert_survives

def test_a_sample_reads_as_expected():
    goldens.assert_keeps_promises(1)
    assert_golden(1)

class TestDamage:
    def test_no_damage_stops_the_reader(self):
        assert_survives(1)
"""


def made_up_tree(root: Path) -> tuple[Path, Path]:
    """A format that lacks nothing, and its tests; a package and a module that are no formats."""
    formats, tests = root / "formats", root / "tests"
    for path, text in {
        formats / "walrus" / "__init__.py": "SOURCE: object = 1\n",
        formats / "toolkit" / "__init__.py": "",
        formats / "contract.py": "def f():\n    SOURCE = 1\n",
        tests / "walrus" / "samples" / "deep" / "a.walrus": "x",
        tests / "walrus" / "samples" / "deep" / "a.expected.json": "{}",
        tests / "walrus" / "test_walrus.py": GOOD_TEST,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return formats, tests


def test_the_gate_is_open_for_a_format_with_everything(tmp_path: Path) -> None:
    assert gaps(*made_up_tree(tmp_path)) == []


def test_the_gate_names_a_missing_sample_and_a_missing_golden(tmp_path: Path) -> None:
    formats, tests = made_up_tree(tmp_path)
    samples = tests / "walrus" / "samples" / "deep"
    (samples / "a.expected.json").unlink()
    assert gaps(formats, tests) == ["walrus: no golden (*.expected.json) in walrus/samples"]
    (samples / "a.walrus").rename(samples / "a.expected.json")
    assert gaps(formats, tests) == ["walrus: no sample in walrus/samples"]


def test_the_gate_names_each_missing_contract_test(tmp_path: Path) -> None:
    formats, tests = made_up_tree(tmp_path)
    module = tests / "walrus" / "test_walrus.py"
    module.write_text(GOOD_TEST.replace("    assert_golden(1)", "    pass  # assert_golden(1)"))
    assert gaps(formats, tests) == ["walrus: no test calls assert_golden"]
    module.write_text(GOOD_TEST.replace("def test_", "def helper_"))
    assert len(gaps(formats, tests)) == 3


def test_the_gate_takes_the_shared_contract_tests_for_all_formats_but_those_they_leave_out(tmp_path: Path) -> None:
    formats, tests = made_up_tree(tmp_path)
    (tests / "walrus" / "test_walrus.py").unlink()
    shared = tests / "test_format_contract.py"
    shared.write_text('OWN = {"seal", "walrus"}\n' + GOOD_TEST)
    assert len(gaps(formats, tests)) == 3
    shared.write_text('OWN = {"seal"}\n' + GOOD_TEST)
    assert gaps(formats, tests) == []


def test_the_gate_sees_a_format_without_any_tests_also_where_it_is_one_module(tmp_path: Path) -> None:
    formats, tests = made_up_tree(tmp_path)
    (formats / "seal.py").write_text("SOURCE = 1\n")
    assert [gap.partition(":")[0] for gap in gaps(formats, tests)] == ["seal"] * 5
