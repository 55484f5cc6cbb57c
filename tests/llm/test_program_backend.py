"""Installed programs as models, with small programs that print what the real ones were seen to print."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.errors import BadAnswer, ModelError, ModelRefused, ModelUnreachable
from everturn.llm import program_backend
from everturn.llm.program_backend import MARK, ProgramBackend, ProgramLimits, prompt
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, ToolSpec
from everturn.model.conversation import ProgramReply
from everturn.model.vocabulary import ASKING
from everturn.sources.contract import AskProgram, all_sources
from tests.llm.asking_models import asks
from tests.waiting import wait_until

ASKED = {name: source.ask for name, source in all_sources().items() if source.ask is not None}
EACH = pytest.mark.parametrize("name", sorted(ASKED))

RECORDER = """#!{python}
import json, os, sys
seen = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "env": dict(os.environ), "cwd": os.getcwd(),
        "files": [os.path.join(at, name) for at, _, names in os.walk(".") for name in names]}}
open({seen!r}, "w").write(json.dumps(seen))
sys.stderr.write({complaint!r})
sys.stdout.write({printed!r})
sys.exit({status})
"""

#: What the programs print, as recorded from claude 2.1.197, codex 0.166.0, opencode 1.18.33 and gemini 0.61.0.
PRINTED: dict[str, list[dict[str, Any]]] = {
    "claude_code": [
        {
            "type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "The answer is 42.",
            "session_id": "s", "total_cost_usd": 0.1, "modelUsage": {"m-1": {"inputTokens": 100}},
            "usage": {"input_tokens": 100, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 7},
        }
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_1", "type": "reasoning", "text": "hm"}},
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "The answer is 42."}},
        {"type": "turn.completed", "usage": {"input_tokens": 120, "cached_input_tokens": 20, "cache_write_input_tokens": 3, "output_tokens": 7}},
    ],
    "opencode": [
        {"type": "step_start", "sessionID": "s", "part": {"type": "step-start"}},
        {"type": "text", "sessionID": "s", "part": {"type": "text", "text": "The answer is 42."}},
        {"type": "step_finish", "part": {"type": "step-finish", "reason": "stop", "cost": 0,
         "tokens": {"total": 130, "input": 100, "output": 7, "reasoning": 0, "cache": {"write": 3, "read": 20}}}},
    ],
    "gemini": [
        {"session_id": "s", "response": "The answer is 42.", "stats": {"models": {"m-1": {"api": {"totalRequests": 1},
         "tokens": {"input": 100, "prompt": 120, "candidates": 5, "thoughts": 2, "total": 127, "cached": 20}}}}}
    ],
}  # fmt: skip
FAILED: dict[str, dict[str, Any]] = {
    "claude_code": {"type": "result", "subtype": "success", "is_error": True, "result": "Invalid API key"},
    "codex": {"type": "turn.failed", "error": {"message": "Invalid API key"}},
    "opencode": {"type": "error", "error": {"name": "APIError", "data": {"message": "Invalid API key"}}},
    "gemini": {"session_id": "s", "error": {"type": "Error", "message": "Invalid API key", "code": 41}},
}


def lines(objects: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


class Fake:
    """A program on a PATH of its own that prints what it is told and notes how it was started."""

    def __init__(self, folder: Path, program: str, printed: str = "", complaint: str = "", status: int = 0) -> None:
        self._seen = folder / "seen.json"
        text = RECORDER.format(
            python=sys.executable, seen=str(self._seen), printed=printed, complaint=complaint, status=status
        )
        self.write(folder / program, text)
        self.env = {"PATH": f"{folder}{os.pathsep}{os.defpath}", "HOME": str(folder), "LANG": "C.UTF-8"}

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._seen.read_text())
        return found


def script(folder: Path, text: str, limits: ProgramLimits | None = None) -> ProgramBackend:
    """A backend for a program of these lines."""
    Fake.write(folder / "prog", f"#!{sys.executable}\nimport os, sys, time\n{text}\n")
    ask = AskProgram(lambda model: ["prog"], lambda out: ProgramReply(text=out.decode()), lambda at, env: {}, "nothing")
    return ProgramBackend("test", "", ask, {"PATH": str(folder)}, limits)


def test_the_four_programs_can_be_asked() -> None:
    assert sorted(ASKED) == ["claude_code", "codex", "gemini", "opencode"]


@EACH
def test_a_program_answers(tmp_path: Path, name: str) -> None:
    ask = ASKED[name]
    fake = Fake(tmp_path, ask.command("")[0], lines(PRINTED[name]), "a warning\n")
    reply = ProgramBackend("test", "m-1", ask, fake.env).ask(asks("What is the answer? ✓", system="Be brief."))
    assert (reply.text, reply.stop, reply.model) == ("The answer is 42.", "end", "m-1")
    used = reply.usage
    assert (used.input, used.output, used.cache_read, used.source) == (100, 7, 20, "api")
    seen = fake.seen
    assert seen["stdin"] == "Be brief.\n\nWhat is the answer? ✓"
    assert "answer" not in " ".join(seen["argv"]) and "m-1" in seen["argv"]


@EACH
def test_a_program_runs_marked_in_an_empty_folder_that_goes_away(tmp_path: Path, name: str) -> None:
    ask = ASKED[name]
    fake = Fake(tmp_path, ask.command("")[0], lines(PRINTED[name]))
    ProgramBackend("test", "", ask, {**fake.env, "CLAUDECODE": "1", MARK: "0"}).ask(asks())
    seen = fake.seen
    assert seen["env"][MARK] == "1"
    assert Path(seen["cwd"]).name.startswith(ASKING) and not Path(seen["cwd"]).exists()
    assert seen["files"] == [] and "--model" not in seen["argv"]
    assert ("CLAUDECODE" in seen["env"]) == (name != "claude_code")
    assert ask.leaves


def test_no_program_is_given_tools_or_keeps_the_session() -> None:
    words = {name: " ".join(ask.command("")) for name, ask in ASKED.items()}
    assert "--no-session-persistence" in words["claude_code"] and "--tools  " in words["claude_code"]
    assert (
        "--ephemeral" in words["codex"]
        and "--sandbox read-only" in words["codex"]
        and "shell_tool=false" in words["codex"]
    )
    around = ASKED["opencode"].around(Path("x"), {})
    assert around["OPENCODE_DB"] == ":memory:" and json.loads(around["OPENCODE_CONFIG_CONTENT"] or "")["tools"] == {
        "*": False
    }


def test_a_home_of_its_own_holds_what_a_program_cannot_but_write(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "gemini", lines(PRINTED["gemini"]))
    ProgramBackend("test", "", ASKED["gemini"], {**fake.env, "GEMINI_API_KEY": "k"}).ask(asks())
    seen = fake.seen
    assert seen["env"]["GEMINI_CLI_HOME"].startswith(seen["cwd"]) and seen["files"] == ["./home/.gemini/settings.json"]


@EACH
@pytest.mark.parametrize("status", [0, 1])
def test_a_program_that_cannot_answer_says_why(tmp_path: Path, name: str, status: int) -> None:
    ask = ASKED[name]
    fake = Fake(tmp_path, ask.command("")[0], lines([FAILED[name]]), status=status)
    with pytest.raises(ModelRefused, match=f"status {status}: Invalid API key"):
        ProgramBackend("test", "", ask, fake.env).ask(asks())


@EACH
def test_a_program_that_only_complains_is_heard(tmp_path: Path, name: str) -> None:
    ask = ASKED[name]
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    fake = Fake(tmp_path, ask.command("")[0], "", f"starting\nno login, token {secret}\n", 3)
    with pytest.raises(ModelRefused, match="status 3: no login") as caught:
        ProgramBackend("test", "", ask, fake.env).ask(asks())
    assert secret not in str(caught.value)


@EACH
@pytest.mark.parametrize(
    "printed", ["", "not json\n", "[]\n", "{}\n", '{"type": 3, "part": [], "item": 1, "result": {}}\n']
)
def test_a_program_that_prints_no_answer_is_told(tmp_path: Path, name: str, printed: str) -> None:
    ask = ASKED[name]
    fake = Fake(tmp_path, ask.command("")[0], printed)
    with pytest.raises(ModelError) as caught:
        ProgramBackend("test", "", ask, fake.env).ask(asks())
    assert isinstance(caught.value, BadAnswer | ModelRefused)


@EACH
def test_a_program_that_is_not_installed_is_named(tmp_path: Path, name: str) -> None:
    program = ASKED[name].command("")[0]
    with pytest.raises(ModelUnreachable, match=f"the program {program} is not installed"):
        ProgramBackend("test", "", ASKED[name], {"PATH": str(tmp_path)}).ask(asks())


def test_a_program_takes_no_tools(tmp_path: Path) -> None:
    model = script(tmp_path, "print('x')")
    assert model.takes_tools is False
    with pytest.raises(ModelRefused, match="cannot be given tools"):
        model.ask(asks(tools=(ToolSpec("f", "", {}),)))


def test_a_stream_of_a_program_is_one_piece(tmp_path: Path) -> None:
    deltas = list(script(tmp_path, "print('one two')").stream(asks()))
    assert [delta.text for delta in deltas] == ["one two\n", ""]
    assert deltas[-1].reply is not None and deltas[-1].reply.usage.source == "estimate"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except (OSError, IndexError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_program_that_takes_too_long_is_ended_with_all_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, wait = tmp_path / "pid", program_backend._wait_for_exit

    def wait_for_both(process: subprocess.Popen[bytes], seconds: float) -> str:
        wait_until(lambda: noted.exists() and noted.read_text().count("\n") == 2)
        return wait(process, seconds)

    monkeypatch.setattr(program_backend, "_wait_for_exit", wait_for_both)
    text = f"pid = os.fork()\nopen({str(noted)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)"
    with pytest.raises(ModelUnreachable, match=r"within 0\.05 s"):
        script(tmp_path, text, ProgramLimits(seconds=0.05)).ask(asks())
    wait_until(lambda: not any(is_running(int(pid)) for pid in noted.read_text().split()))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_child_that_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    text = f"pid = os.fork()\nif not pid:\n    time.sleep(600)\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(pid))\nprint('done')"
    assert script(tmp_path, text).ask(asks()).text == "done\n"
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())))


@pytest.mark.skipif(not hasattr(os, "setsid"), reason="needs sessions of processes")
def test_a_child_that_went_away_does_not_hold_us_up(tmp_path: Path) -> None:
    text = (
        f"noted = {str(tmp_path / 'pid')!r}\npid = os.fork()\n"
        "if not pid:\n    os.setsid()\n    open(noted, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
        "while not os.path.exists(noted) or not os.path.getsize(noted): time.sleep(0.01)\n"
        "print('done', flush=True)"
    )
    assert script(tmp_path, text).ask(asks()).text == "done\n"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(BadAnswer, match="more than 100,000 bytes"):
        script(tmp_path, "while True: print('x' * 1000)", ProgramLimits(most_bytes=100_000)).ask(asks())


def test_a_program_that_does_not_read_its_prompt_may_still_answer(tmp_path: Path) -> None:
    assert script(tmp_path, "os.close(0)\nprint('early')").ask(asks("x" * 5_000_000)).text == "early\n"


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    model = script(tmp_path, "")
    (tmp_path / "prog").write_text("#!/nowhere/at/all\n")
    with pytest.raises(ModelUnreachable, match="cannot be started"):
        model.ask(asks())


def test_nothing_in_a_prompt_reaches_a_shell(tmp_path: Path) -> None:
    text = f"$(touch {tmp_path}/shell) `touch {tmp_path}/shell`; touch {tmp_path}/shell"
    assert script(tmp_path, "sys.stdout.write(sys.stdin.read())").ask(asks(text)).text == text
    assert not (tmp_path / "shell").exists()


def test_a_conversation_is_told_as_one_text() -> None:
    request = ModelRequest(
        (
            ChatMessage("user", (ChatPart("text", "add"),)),
            ChatMessage(
                "assistant",
                (ChatPart("thinking", "hm"), ChatPart("text", "I do."), ChatPart("call", name="f", arguments={"a": 1})),
            ),
            ChatMessage("tool", (ChatPart("result", "3", name="f"),)),
        ),
        system="Be brief.",
    )
    assert prompt(request) == 'Be brief.\n\n[user]\nadd\n\n[assistant]\nI do.\n(calls f with {"a":1})\n\n[tool]\n3'
