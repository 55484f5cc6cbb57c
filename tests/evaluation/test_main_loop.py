"""Checkpoints in files: whole or not at all, inside their folder, and good for a process that was killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from everturn.errors import NoConversationState, SnapshotRestoreError, ToolIdempotencyError, Unreadable, UsageError
from everturn.evaluation.evaluate import Adapter, TextPrompt
from everturn.evaluation.main_loop import FileCheckpointHandler, resume_evaluation, save_checkpoint
from everturn.evaluation.recorder import enable_conversation_recording, settle
from everturn.evaluation.session import EvaluationSession
from everturn.loop.conversation import ConversationMessage, ConversationState
from everturn.loop.tools import ToolContext, tool
from tests.loop.scripted_model import Model, calls, says

PROMPT = TextPrompt("ns", "key", "go")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Request:
    id: Any


@dataclass(frozen=True)
class Free:
    value: Any


def holding(word: str) -> EvaluationSession:
    session = EvaluationSession()
    state = ConversationState("e", "ns", "key", ConversationMessage("system", word))
    session.mutate(ConversationState).seed(state)
    return session


def word_of(handler: FileCheckpointHandler, request: Request) -> str:
    checkpoint = handler.load(request)
    assert checkpoint is not None
    return str(checkpoint.snapshot.slices[0].items[0].system_message.content)


def test_a_checkpoint_is_saved_replaced_and_cleared(tmp_path: Path) -> None:
    handler, request = FileCheckpointHandler(tmp_path / "new" / "folder"), Request("r1")
    assert handler.load(request) is None
    handler.clear(request)
    handler.save(request, holding("one").snapshot())
    handler.save(request, holding("two").snapshot())
    assert word_of(handler, request) == "two"
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["r1.json"]
    handler.clear(request)
    handler.clear(request)
    assert handler.load(request) is None


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    handler = FileCheckpointHandler(tmp_path / "folder")
    handler.save(Request("r1"), holding("x").snapshot())
    assert stat.S_IMODE((tmp_path / "folder" / "r1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700


IDS = ["plain", "../up", "/etc/passwd", "..", ".", "a/b", "a\\b", "a%2Fb", "C:\\x", "nul\0", "é", "\ud800", "x" * 5000,
       "x" * 4999 + "y", "a b", "-", "~", 7, "A" * 199 + "/" * 9]  # fmt: skip


def test_no_id_leads_out_of_the_folder_and_no_two_share_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    handler = FileCheckpointHandler(folder)
    for number, name in enumerate(IDS):
        handler.save(Request(name), holding(str(number)).snapshot())
    assert [word_of(handler, Request(name)) for name in IDS] == [str(number) for number in range(len(IDS))]
    assert list(tmp_path.iterdir()) == [folder]
    assert len(list(folder.iterdir())) == len(IDS)
    with pytest.raises(UsageError, match="without an id"):
        handler.path(Request(""))


def test_what_cannot_be_written_leaves_the_old_one_as_it_was(tmp_path: Path) -> None:
    handler, request = FileCheckpointHandler(tmp_path), Request("r1")
    handler.save(request, holding("old").snapshot())
    session = holding("new")
    session.mutate(Free).seed(Free(float("nan")))
    with pytest.raises(UsageError):
        handler.save(request, session.snapshot())
    assert word_of(handler, request) == "old"
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(OSError):
        handler.save(Request("folder"), holding("x").snapshot())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.json", "r1.json"]


def test_a_damaged_checkpoint_says_where_it_is_and_what_to_do(tmp_path: Path) -> None:
    handler, request = FileCheckpointHandler(tmp_path), Request("r1")
    handler.save(request, holding("x").snapshot())
    path = tmp_path / "r1.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SnapshotRestoreError, match=r"r1\.json.*clear the checkpoint"):
        handler.load(request)
    handler.clear(request)
    assert handler.load(request) is None


def test_a_session_is_put_away_and_taken_up_again(tmp_path: Path) -> None:
    session, path = EvaluationSession(), tmp_path / "checkpoint.json"
    enable_conversation_recording(session)
    Adapter(Model([says("hello")])).evaluate(PROMPT, session=session)
    save_checkpoint(session, path)
    assert resume_evaluation(Adapter(Model([])), PROMPT, path).text == "hello"


def test_a_checkpoint_without_a_conversation_cannot_be_resumed(tmp_path: Path) -> None:
    save_checkpoint(EvaluationSession(), tmp_path / "empty.json")
    with pytest.raises(NoConversationState, match="No conversation state in checkpoint") as failure:
        resume_evaluation(Adapter(Model([])), PROMPT, tmp_path / "empty.json")
    assert isinstance(failure.value, ValueError)
    with pytest.raises(Unreadable):
        resume_evaluation(Adapter(Model([])), PROMPT, tmp_path / "absent.json")


def test_slices_of_the_program_need_a_session_that_knows_them(tmp_path: Path) -> None:
    session, path = holding("x"), tmp_path / "checkpoint.json"
    session.mutate(Free).seed(Free([1, {"a": None}]))
    session.mutate(ConversationState).seed(
        ConversationState(
            "e", "ns", "key", ConversationMessage("system", ""), unanswered=(ConversationMessage("user", "hello"),)
        )
    )
    save_checkpoint(session, path)
    with pytest.raises(SnapshotRestoreError, match="registered no such type"):
        resume_evaluation(Adapter(Model([says("hi")])), PROMPT, path)
    other = EvaluationSession()
    other.mutate(Free).clear()
    assert resume_evaluation(Adapter(Model([says("hi")])), PROMPT, path, session=other).text == "hi"
    assert other.query(Free).latest() == Free([1, {"a": None}])


DYING = """
import os, sys, threading, time
from pathlib import Path
from everturn.evaluation.main_loop import FileCheckpointHandler
from everturn.evaluation.evaluate import Adapter, TextPrompt
from everturn.evaluation.main_loop import MainLoop
from everturn.loop.tools import ToolContext, tool
from tests.loop.scripted_model import Model, calls, says
from tests.evaluation.test_main_loop import Request, effect

folder = Path(sys.argv[1])

@tool
def act(context: ToolContext) -> str:
    "Have an effect; b kills its process after it, once the results of the others are safe."
    effect(folder, context.call_id)
    if context.call_id == "b":
        while (folder / "r1.json").read_text().count('"role":"tool"') < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
    return "done"

class Loop(MainLoop[Request]):
    def create_prompt(self, request):
        return TextPrompt("ns", "key", "go")

model = Model([calls(("a", "act"), ("b", "act"), ("c", "act")), says("ok")])
Loop(Adapter(model, [act]), checkpoint_handler=FileCheckpointHandler(folder)).execute(Request("r1"))
"""


def effect(folder: Path, call_id: str) -> None:
    """Something that cannot be taken back, and is counted."""
    with open(folder / "effects", "a") as file:
        file.write(f"{call_id}\n")
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_a_process_killed_in_the_middle_of_parallel_calls_repeats_nothing(tmp_path: Path) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()

    @tool
    def act(context: ToolContext) -> str:
        """The same tool in the next process."""
        effect(tmp_path, context.call_id)
        return "done"

    model = Model([calls(("a", "act"), ("b", "act"), ("c", "act")), says("ok")])
    session = EvaluationSession()
    with pytest.raises(ToolIdempotencyError) as failure:
        resume_evaluation(Adapter(model, [act]), PROMPT, tmp_path / "r1.json", session=session)
    assert failure.value.calls == {"b": "act"}
    settle(session, "b", "it took effect")
    state = session.query(ConversationState).latest()
    assert Adapter(model, [act]).evaluate(PROMPT, session=session, resume_from=state).text == "ok"
    assert Counter((tmp_path / "effects").read_text().split()) == {"a": 1, "b": 1, "c": 1}
    results = model.asked[0].messages[-1].parts
    assert {part.call_id: part.text for part in results} == {"a": "done", "b": "it took effect", "c": "done"}
