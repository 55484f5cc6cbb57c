"""What a program may import, what that costs, and the examples of the documentation, run."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import everturn
import everturn.resume
from everturn import deprecations
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

PACKAGE = Path(everturn.__file__).parent
DOCUMENT = PACKAGE.parent.parent / "docs" / "library.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.S | re.M)


def test_every_public_name_is_there_and_says_what_it_is_for() -> None:
    for name in everturn.__all__:
        found = getattr(everturn, name)
        assert name == "__version__" or (found.__doc__ or "").strip(), name
    assert dir(everturn) == sorted(everturn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = everturn.nonsense  # type: ignore[attr-defined]


def test_checkers_are_told_the_same_names() -> None:
    told = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    imported = [
        alias.asname or alias.name for node in told.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert sorted([*imported, "__version__"]) == sorted(everturn.__all__)
    for node in told.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else []:
            assert isinstance(node, ast.ImportFrom) and node.module is not None
            assert getattr(everturn, alias.asname or alias.name) is getattr(sys.modules[node.module], alias.name)


def test_documented_names_are_still_found_where_they_were() -> None:
    entries = [(module, *entry.split("=")) for module, names in deprecations.MOVED.items() for entry in names.split()]
    assert len(entries) > 40
    for module, name, target in entries:
        home, new = target.split(":")
        with pytest.warns(DeprecationWarning, match=f"use everturn.{home}.{new}"):
            found = getattr(importlib.import_module(f"everturn.{module}"), name)
        assert found is getattr(importlib.import_module(f"everturn.{home}"), new)


def test_renamed_methods_work_by_their_old_names() -> None:
    look = everturn.tool(lambda word: word)
    with pytest.warns(DeprecationWarning, match=r"Tool\.spec"):
        assert look.shown == look.spec
    with pytest.warns(DeprecationWarning, match=r"Tool\.validate_arguments"):
        assert look.checked({"word": "a"}) == {"word": "a"}
    snapshot = everturn.Session().snapshot()
    with pytest.warns(DeprecationWarning, match=r"Snapshot\.restore_slices"):
        assert snapshot.restored({}) == snapshot.restore_slices({}) == {}


def test_what_was_never_documented_is_not_found_by_an_old_path() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("everturn.derive.growth")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = importlib.import_module("everturn.analyse.paths").nonsense
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = everturn.resume.nonsense


def test_the_names_of_the_documents_are_public() -> None:
    assert {
        "ConversationMessage", "ToolCallRecord", "ConversationTurn", "ConversationState", "Session", "Snapshot",
        "Checkpoint", "CheckpointHandler", "FileCheckpointHandler", "MainLoop", "ToolContext", "evaluate",
        "save_checkpoint", "resume_evaluation", "enable_conversation_recording", "ConversationStore",
        "ConversationStateMismatch", "SnapshotRestoreError", "ToolIdempotencyError",
    } <= set(everturn.__all__)  # fmt: skip


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import everturn; print(sorted(set(sys.modules) - before))"
    told = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "['everturn']"


# the documentation --------------------------------------------------------------------------------------------------------
def answers(asked: Asked) -> Says:
    """Look into the file first, then answer with what is in it."""
    results = [message["content"] for message in asked.body["messages"] if message["role"] == "tool"]
    if not results:
        return Says(calls=(Call("read_file", {"path": "notes.txt"}),))
    return Says(f"We chose {results[-1]}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one folder the examples run in, one after another."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answers, strict=True) as running:
        yield running


_RAN: set[int] = set()  # examples that this worker has run


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_documentation_run(
    number: int, folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for one in range(number + 1):  # an example builds on those before it, which another worker may have run
        if one in _RAN and one != number:
            continue
        code = EXAMPLES[one].replace("http://127.0.0.1:11434/v1", server.base)
        module = ModuleType(f"example_{one}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, f"{DOCUMENT.name}, example {one + 1}", "exec", dont_inherit=True), module.__dict__)
        _RAN.add(one)


def test_no_example_is_too_long_to_read() -> None:
    assert EXAMPLES and max(len(code.splitlines()) for code in EXAMPLES) <= 50
