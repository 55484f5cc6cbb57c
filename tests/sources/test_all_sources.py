"""What holds for every format, whatever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import everturn
from everturn.model.conversation import Message
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate, abilities, all_sources, read_beginning

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
        "assert every['pi'].name == 'pi' and 'nobody' not in every and every.get('jsonl') is None\n"
        "print(sorted(name for name in sys.modules if name.count('.') == 2 and name.startswith('everturn.sources.')))\n"
        "print(len(every) == len(list(every)) == len(every.values()) > 10)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=BARE)
    alone, whole = done.stdout.splitlines()
    assert "everturn.sources.pi" in alone
    assert [name for name in all_sources() if name != "pi" and f"'everturn.sources.{name}'" in alone] == []
    assert whole == "True"


def test_a_source_has_the_name_of_its_module() -> None:
    assert [name for name, source in all_sources().items() if source.name != name] == []


def test_a_name_that_is_no_module_of_the_folder_is_no_source() -> None:
    for name in ("", ".", "pi.find", "..model", "os", "jsonl"):
        assert name not in all_sources()


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_whatever_is_imported_later_is_there(source: Source, tmp_path: Path) -> None:
    assert source.reader(SourceCandidate(tmp_path / "none", "main", "none"), b"").feed(b"", 0, True).parts == []
    assert isinstance(source.view(b"{}"), Message | None)
    assert source.workspace(b"") == ""


FAKE = '''
"""A format that only this test knows: `> words` is asked, everything else is answered."""
from everturn.model.conversation import Block, Census, Facts, Message, Part, Reading
from everturn.sources import Found, Source, given, nowhere

def view(record):
    asked = record.startswith(b"> ")
    block = Block("text", record.decode().removeprefix("> "), "prompt" if asked else "answer")
    return Message("user" if asked else "assistant", "human" if asked else "model", blocks=(block,), starts_turn=asked)

class Reader:
    def __init__(self, found, state):
        self.found = found
    def feed(self, data, base, last):
        said, at = [], base
        for line in data.splitlines(keepends=True):
            plain = view(line.rstrip())
            fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
            said.append(Message(**fields | {"start": at, "size": len(line.rstrip())}))
            at += len(line)
        census = [Census("line", "", "message", len(said))]
        return Reading(len(data), [Part(self.found.native_id, Facts("main"), said)], [], census, len(said))
    def state(self):
        return b""

def sniff(path, head):
    return Found(path, "main", path.stem) if path.suffix == ".walrus" else None

def find(root):
    return (Found(path, "main", path.stem) for path in sorted(root.glob("*.walrus")))

SOURCE = Source(
    name="walrus", title="Walrus", parser=1, roots=given("walrus"), find=find, sniff=sniff, reader=Reader, view=view,
    workspace=nowhere, option="walrus-dir",
)
'''


def test_a_new_format_is_one_new_module(tmp_path: Path) -> None:
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "walrus.py").write_text(FAKE)
    (tmp_path / "talk.walrus").write_text("> how many tusks?\ntwo tusks\n")
    start = f"import everturn.sources as s; s.__path__.append({str(tmp_path / 'formats')!r})\n"
    start += "import sys; from everturn.cli import main; sys.exit(main(sys.argv[1:]))"

    def everturn(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", start, *words], capture_output=True, text=True, check=True,
            env=BARE | {"EVERTURN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
        )  # fmt: skip
        return done.stdout

    assert "walrus" in everturn("sources")
    assert "--walrus-dir" in everturn("sync", "--help")
    everturn("add", str(tmp_path / "talk.walrus"))
    assert "tusks" in everturn("search", "tusks")
    assert "two tusks" in everturn("show", "@last")
