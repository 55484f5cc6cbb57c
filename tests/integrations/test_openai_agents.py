"""Sessions of the OpenAI Agents SDK, and the journal that knows what a killed run had done."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.errors import NotAnArchive
from everturn.integrations.archive import Archive

pytestmark = pytest.mark.needs("module:agents")

ITEMS = [{"role": "user", "content": f"{n} \ud800 é"} for n in range(4)]

_CRASH = """
import asyncio, os, signal, sys
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, function_call
from everturn.integrations import Archive
from everturn.integrations.openai_agents import ArchiveSession
from everturn.integrations.tool_journal import ToolJournal

set_tracing_disabled(True)
folder = sys.argv[1]

@function_tool
async def effect(name: str) -> str:
    with open(f"{folder}/ledger", "a") as ledger:
        ledger.write(name)
    if name == "b":
        while not all(archive.do(lambda store: journal._journal.past.calls[call].result) for call in ("call_a", "call_c")):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done {name}"

archive = Archive(f"{folder}/archive.db")
journal = ToolJournal(archive, "s")
model = ScriptedModel([[function_call("effect", {"name": name}, call_id=f"call_{name}") for name in "abc"]])
agent = Agent(name="tester", tools=[effect], model=model)
asyncio.run(Runner.run(agent, "do a, b and c", session=ArchiveSession("s", archive), hooks=journal))
"""


def session(archive: Archive, **more: Any) -> Any:
    from everturn.integrations.openai_agents import ArchiveSession

    return ArchiveSession("s", archive, **more)


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_items_come_back_in_order_and_the_latest_when_limited(archive: Archive) -> None:
    one = session(archive)
    run(one.add_items(ITEMS[:3]))
    run(one.add_items(ITEMS[3:]))
    assert run(one.get_items()) == ITEMS
    assert run(one.get_items(2)) == ITEMS[2:] and run(one.get_items(0)) == [] and run(one.get_items(-1)) == ITEMS
    assert run(session(archive, session_settings={"limit": 1}).get_items()) == ITEMS[3:]


def test_the_last_item_is_taken_away_and_then_all(archive: Archive) -> None:
    one = session(archive)
    run(one.add_items(ITEMS))
    assert run(one.pop_item()) == ITEMS[3]
    run(one.clear_session())
    assert run(one.pop_item()) is None and run(one.get_items()) == []


def test_what_cannot_be_stored_leaves_nothing_behind(archive: Archive) -> None:
    one = session(archive)
    with pytest.raises(TypeError):
        run(one.add_items([ITEMS[0], {"content": object()}]))
    assert run(one.get_items()) == []


def test_a_damaged_item_is_an_error_and_not_a_gap(archive: Archive) -> None:
    one = session(archive)
    run(one.add_items(ITEMS))
    archive.do(lambda store: store.driver.run('UPDATE "item" SET "data"=? WHERE "n"=4', (b"{",)))
    with pytest.raises(NotAnArchive, match="item 4"):
        run(one.get_items())
    with pytest.raises(NotAnArchive, match="item 4"):
        run(one.pop_item())


def test_a_closed_session_says_so(tmp_path: Path) -> None:
    from everturn.integrations.openai_agents import ArchiveSession

    one = ArchiveSession("s", tmp_path / "archive.db")
    one.close()
    one.close()
    for work in (one.add_items([]), one.get_items(), one.pop_item(), one.clear_session()):
        with pytest.raises(RuntimeError, match="ArchiveSession is closed"):
            run(work)


def test_a_killed_run_is_taken_up_with_the_truth_about_each_call(tmp_path: Path) -> None:
    from everturn.integrations.tool_journal import IN_DOUBT_TEXT, ToolJournal

    done = subprocess.run([sys.executable, "-c", _CRASH, tmp_path], env=_paths(), timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    with Archive(tmp_path / "archive.db") as archive:
        journal, one = ToolJournal(archive, "s"), session(archive)
        assert run(journal.recover(one)) == {"call_a": "done", "call_b": "in doubt", "call_c": "done"}
        items = run(one.get_items())
        outputs = {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}
        assert outputs == {"call_a": "done a", "call_b": IN_DOUBT_TEXT, "call_c": "done c"}
        assert [item.get("type", item.get("role")) for item in items] == [
            "user", *["function_call"] * 3, *["function_call_output"] * 3,
        ]  # fmt: skip
        assert run(journal.recover(one)) == {} and run(one.get_items()) == items
        journal.close()
    assert sorted((tmp_path / "ledger").read_text()) == ["a", "b", "c"]


def test_a_run_that_ends_well_leaves_nothing_to_recover(archive: Archive) -> None:
    from agents import Agent, Runner, function_tool, set_tracing_disabled  # type: ignore[import-not-found, unused-ignore]
    from agents.testing import (  # type: ignore[import-not-found, unused-ignore]
        ScriptedModel,
        assistant_message,
        function_call,
    )

    from everturn.integrations.tool_journal import ToolJournal

    set_tracing_disabled(True)

    @function_tool  # type: ignore[untyped-decorator, unused-ignore]
    def double(number: int) -> int:
        return 2 * number

    model = ScriptedModel([[function_call("double", {"number": 4}, call_id="c")], [assistant_message("8")]])
    journal, one = ToolJournal(archive, "s"), session(archive)
    result = run(Runner.run(Agent(name="a", tools=[double], model=model), "4 + 4", session=one, hooks=journal))
    assert result.final_output == "8" and run(journal.recover(one)) == {}
    past = journal._journal.past  # type: ignore[union-attr, unused-ignore]
    assert [message.role for message in past.messages] == ["user", "assistant", "tool", "assistant"]
    journal.close()


def _paths() -> dict[str, str]:
    import everturn

    return {**os.environ, "PYTHONPATH": str(Path(everturn.__file__).parent.parent)}
