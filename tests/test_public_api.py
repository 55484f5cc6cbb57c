"""What a program may import, what that costs, and the examples of the documentation, run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import everturn
import everturn.evaluation
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
    imported = [alias.name for node in told.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted([*imported, "__version__"]) == sorted(everturn.__all__)
    homes = {alias.name: node.module for node in told.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    for name, home in homes.items():
        assert home is not None
        assert getattr(everturn, name) is getattr(sys.modules[home], name)


def test_the_face_of_resume_is_there_too() -> None:
    for names in everturn.evaluation._FACE.values():
        for name in names.split():
            assert getattr(everturn.evaluation, name).__module__.startswith("everturn.resume.")
    with pytest.raises(AttributeError):
        _ = everturn.evaluation.nonsense


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


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_documentation_run(
    number: int, folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = EXAMPLES[number].replace("http://127.0.0.1:11434/v1", server.base)
    module = ModuleType(f"example_{number}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, f"{DOCUMENT.name}, example {number + 1}", "exec", dont_inherit=True), module.__dict__)


def test_no_example_is_too_long_to_read() -> None:
    assert EXAMPLES and max(len(code.splitlines()) for code in EXAMPLES) <= 50
