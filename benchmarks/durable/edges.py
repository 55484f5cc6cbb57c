"""The edges of a durable session: ids that providers leave out or use again, stopped holders, wrong clocks, two recoverers.

Each scene is played in a forked process that may be killed or stopped, and judged by its ledger (every effect once at most)
and by what the model was told (a call that happened is never told as not begun, one that did not happen never as done).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from everturn.clock import now
from everturn.errors import Busy, Conflict
from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply
from everturn.loop.journal import Journal, open_archive
from everturn.loop.journal_state import IN_DOUBT
from everturn.loop.loop import Loop
from everturn.loop.recovery import recover
from everturn.loop.tools import Tool, tool

#: The ids of the calls in a script: three responses of two calls each.
IDS: dict[str, list[list[str]]] = {
    "unique": [["a1", "a2"], ["b1", "b2"], ["c1", "c2"]],
    "empty": [["", ""], ["", ""], ["", ""]],
    "equal": [["x", "x"], ["y", "y"], ["z", "z"]],
    "reused": [["call_0", "call_1"], ["call_0", "call_1"], ["call_0", "call_1"]],
}
SESSION = "the-session"
_TTL = 300  # ms, of a holder that is stopped


@dataclass
class IdScript:
    """A model whose calls have the ids of one kind."""

    kind: str
    name: str = "script"
    model: str = "script"
    window: int = 0
    max_tokens: int = 0
    takes_tools: bool = True
    asked: list[ModelRequest] = field(default_factory=list)

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `llm.Backend`."""
        self.asked.append(request)
        said, ids = sum(one.role == "assistant" for one in request.messages), IDS[self.kind]
        if said >= len(ids):
            yield Delta("end", reply=Reply(ChatMessage("assistant", (ChatPart("text", "all done"),)), "end"))
            return
        parts = tuple(
            ChatPart("call", call_id=one, name="pay", arguments={"amount": said * 10 + n})
            for n, one in enumerate(ids[said])
        )
        yield Delta("end", reply=Reply(ChatMessage("assistant", parts), "calls"))

    def ask(self, request: ModelRequest) -> Reply:
        """See `llm.Backend`."""
        return next(delta.reply for delta in self.stream(request) if delta.reply is not None)


def _nothing(amount: int) -> None:
    """Do nothing."""


def _slow(amount: int) -> None:
    """Give somebody time to kill us."""
    time.sleep(0.004)


def paying(ledger: Path, before: Callable[[int], None] = _nothing, after: Callable[[int], None] = _nothing) -> Tool:
    """A tool with an effect that is synced to a ledger; `before` is called first, `after` last."""

    @tool(policy="fail")
    def pay(amount: int) -> str:
        """Pay."""
        before(amount)
        handle = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{amount}\n".encode())
        os.fsync(handle)
        os.close(handle)
        after(amount)
        return f"paid {amount}"

    return pay


def effects(ledger: Path) -> Counter[int]:
    """How often each amount was paid."""
    return Counter(map(int, ledger.read_text().split())) if ledger.exists() else Counter()


@dataclass
class Kills:
    """Where sessions were killed: what the journal said afterwards."""

    span: float  # seconds that a session works when nothing disturbs it
    happened: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All of them."""
        return self.happened.total()

    def note(self, url: str, session: str) -> None:
        """Look at a session that was killed."""
        with closing(open_archive(url)) as store, Journal.open(store, session) as journal:
            calls = journal.past.open_calls
            in_call = any(call.state == IN_DOUBT for call in calls)
            where = "in a call" if in_call else "before a call" if calls else "before a response"
            self.happened[where if journal.past.messages else "before the prompt"] += 1


def undisturbed(url: str, folder: Path) -> Kills:
    """Let a session work to its end, to know how long that takes."""
    begun: list[float] = []
    tools = [paying(folder / "ledger-undisturbed", _slow, _slow)]
    _continue(url, "undisturbed", IdScript("unique"), tools, begins=lambda: begun.append(time.monotonic()))
    return Kills(time.monotonic() - begun[0])


def killed_with_ids(url: str, folder: Path, kind: str, seed: int, kills: Kills) -> list[str]:
    """Kill a session three times while it works, and let it end. Return what is wrong."""
    dice, ledger = random.Random(f"{kind} {seed}"), folder / f"ledger-{kind}-{seed}"
    session = f"{kind}-{seed}"

    for _ in range(3):
        begun, begins = os.pipe()
        tools = [paying(ledger, _slow, _slow)]
        say = partial(os.write, begins, b"x")
        child = _fork(partial(_continue, url, session, IdScript(kind), tools, begins=say))
        os.close(begins)
        os.read(begun, 1)  # the journal is open, or the process is gone
        os.close(begun)
        time.sleep(dice.uniform(0.0, 0.6 * kills.span))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        kills.note(url, session)
    try:
        _continue(url, session, IdScript(kind), [paying(ledger)])
    except RuntimeError as failure:
        return [str(failure)]
    return judge(url, session, ledger, IDS[kind])


def judge(url: str, session: str, ledger: Path, ids: list[list[str]]) -> list[str]:
    """Say what is wrong with a finished session."""
    happened = effects(ledger)
    wrong = [f"{session}: {amount} was paid {n} times" for amount, n in happened.items() if n > 1]
    with closing(open_archive(url)) as store, Journal.open(store, session) as journal:
        messages = journal.past.messages
    calls = [part for one in messages if one.role == "assistant" for part in one.parts if part.kind == "call"]
    results = {part.call_id: part for one in messages for part in one.parts if part.kind == "result"}
    if len(calls) != sum(map(len, ids)) or len({one.call_id for one in calls}) != len(calls):
        wrong.append(f"{session}: {len(calls)} calls with {len({one.call_id for one in calls})} ids")
    for call in calls:
        amount, result = call.arguments["amount"], results.get(call.call_id)
        if result is None:
            wrong.append(f"{session}: {amount} has no result")
        elif result.text.startswith("paid") != bool(happened[amount]) and not result.text.startswith("in doubt"):
            wrong.append(f"{session}: {amount} is told as {result.text[:40]!r} and happened {happened[amount]} times")
    return wrong


def stopped_holder(url: str, folder: Path, number: int, ahead: int = 0) -> list[str]:
    """Stop a holder in a tool, let its lease run out, try to take the session by another process, and let it go on."""
    session, ledger, begun = (
        f"stopped-{number}-{ahead}",
        folder / f"ledger-{number}-{ahead}",
        folder / f"begun-{number}-{ahead}",
    )

    def wait(amount: int) -> None:
        if amount == 0:
            begun.touch()
            time.sleep(0.05)

    script = IdScript("unique")
    holder = _fork(lambda: _continue(url, session, script, [paying(ledger, wait)], ttl=_TTL))
    while not begun.exists():
        time.sleep(0.002)
    os.kill(holder, signal.SIGSTOP)
    time.sleep(1.3 * _TTL / 1000)  # its lease runs out
    other = _fork(lambda: _continue(url, session, IdScript("unique"), [paying(ledger)], ahead=ahead))
    _, status = os.waitpid(other, 0)
    taken = os.waitstatus_to_exitcode(status) == 0
    os.kill(holder, signal.SIGCONT)
    os.waitpid(holder, 0)
    _continue(url, session, IdScript("unique"), [paying(ledger)])
    return ([f"{session}: taken from a living holder"] if taken else []) + judge(url, session, ledger, IDS["unique"])


def two_recoverers(url: str, folder: Path, number: int) -> list[str]:
    """Kill a session in a tool, and let two processes recover it at the same time."""
    ledger, session = folder / f"ledger-r{number}", f"recovered-{number}"

    def die(amount: int) -> None:
        if amount == 10:
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(_fork(lambda: _continue(url, session, IdScript("unique"), [paying(ledger, die)])), 0)

    def work() -> None:
        loop = Loop(IdScript("unique"), [paying(ledger)], interactive=False)
        with closing(open_archive(url)) as store:
            list(recover(store, lambda past: loop))

    for child in [_fork(work), _fork(work)]:
        os.waitpid(child, 0)
    return judge(url, session, ledger, IDS["unique"])


def _continue(
    url: str, session: str, script: IdScript, tools: list[Tool], ttl: int = 60_000, ahead: int = 0,
    begins: Callable[[], object] = lambda: None,
) -> None:  # fmt: skip
    """Run or resume a session to its end."""
    loop = Loop(script, tools, interactive=False)
    with closing(open_archive(url)) as store:
        for _ in range(200):
            try:
                clock: Any = (lambda: now() + ahead) if ahead else now
                with Journal.open(store, session, ttl=ttl, clock=clock) as journal:
                    begins()
                    done = loop.resume(journal) if journal.past.messages else loop.run(journal, "pay")
                if done.state != "done":
                    raise RuntimeError(f"session {session} ended {done.state}")
                return
            except Conflict:
                time.sleep(0.01)
            except Busy:
                if ttl != 60_000 or ahead or session.startswith("stopped"):
                    raise
                time.sleep(0.01)


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except (Busy, Conflict):
            code = 2
        finally:
            os._exit(code)
    return child
