"""Chats killed at random moments, chains of sessions in which nothing is forgotten, and chats of up to ten thousand messages."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.chat_summaries import summary_figures
from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact
from benchmarks.processes import EVERTURN, MB, Cost, Failed, run
from everturn.llm.protocol import ChatMessage, ChatPart, Reply
from everturn.loop import records
from everturn.loop.journal import Journal
from everturn.loop.journal_state import AGENT
from everturn.model.archive import Session
from everturn.recall.tool import ConversationRecall
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter
from everturn.text.tokens import estimate_tokens
from tests.chat.agents import Teller
from tests.chat.program import SUMMARY, Desk, is_restoration, is_summary_request, last_words
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

_CHATS = 100
_REQUESTS = 8  # of one chat that nobody kills
_SEED = 20260131
_PATIENCE = 60.0
_STARTS = 7
_START = 0.3  # CPU seconds
_GROWTH = 10  # MB
_WINDOW = 12_000
_SHORT, _LONG = 100, 1_000  # messages
_CHAINS = 4  # of each kind
_CHAIN_WINDOW = 12_000
_HELD = (1_000, 10_000)  # messages
_HELD_GROWTH = 1.3
_AT_ONCE = 100  # exchanges in one transaction
_ANSWER = re.compile(r"^Assistant: (heard .*)\n", re.MULTILINE)


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Summaries that are checked, chains, then a hundred chats, then long ones."""
    yield from summary_figures(corpora.folder)
    yield from _chains(corpora.folder)
    yield from _held(corpora.folder)
    with ModelServer(_model) as server:
        folder = corpora.folder / "killed-chats"
        folder.mkdir()
        yield from _killed(Desk(folder, server))
    yield from _long(corpora.folder)


def _model(asked: Asked) -> Says:
    """Repeats what it heard; looks into the folder first when it is asked to."""
    said = last_words(asked)
    if is_summary_request(asked):
        return Says(SUMMARY.format(background="Initial session.", topic="killing"), drip=0.002)
    if is_restoration(asked):
        return Says("I am ready.", drip=0.002)
    if asked.body["messages"][-1]["role"] == "tool":
        return Says("heard what the tool says")
    if said.startswith("look"):
        return Says(calls=(Call("list", {"path": "."}, f"call-{asked.number}"),))
    return Says(f"heard {said}", drip=0.005) if len(said) < 40 else Says("heard a long question")


# chains -----------------------------------------------------------------------------------------------------------------
def _chains(folder: Path) -> Iterator[Figure]:
    """Chains of five compactions and three resumes, with a model and with a Python agent, in a small window."""
    for kind in ("model", "agent"):
        missing, over, planted, sessions = list[str](), list[str](), 0, 0
        for number in range(_CHAINS):
            place = folder / f"chain-{kind}-{number}"
            place.mkdir()
            with ModelServer(_model) as server:
                desk = Desk(place, server, window=_CHAIN_WINDOW)
                teller = Teller(desk, kind)
                words = _hold_chain(teller, number)
                first = teller.restorations()[-1]
                state = [one for one in teller.told() if "CONTEXT RESTORATION" in one][-1]
                missing += [f"{number}: {one}" for one in words if one not in first and one not in state]
                over += list(_too_long(server, _CHAIN_WINDOW))
                planted, sessions = planted + len(words), sessions + len(desk.sessions())
        note = f"{planted} constraints and decisions in {_CHAINS} chains of 5 compactions and 3 resumes, {sessions} sessions"
        yield exact(f"chains, {kind}: planted words that the last session's first request lacks", missing, note)
        if kind == "model":
            yield exact("chains: requests over the window", over, f"a window of {_CHAIN_WINDOW:,} tokens")


def _hold_chain(teller: Teller, number: int) -> list[str]:
    """Five compactions in two processes, then three resumes in processes of their own; what was laid down on the way."""
    planted: list[str] = []

    def lay_down(session: int) -> list[str]:
        rule = f"never use library{number}{session} in module{session}"
        choice = f"we decided to use engine{number}{session} for task{session}"
        planted.extend((rule, choice))
        return [f"{rule}.", f"{choice}.", f"question {session} {'blah ' * 150}"]

    lines = [line for session in range(3) for line in (*lay_down(session), "/compact")]
    teller.chat(*lines, *lay_down(3), "/compact", *lay_down(4), "/compact", "and on")
    for resume in range(3):
        teller.chat("/sessions", "/resume 1", *(lay_down(5 + resume) if resume < 2 else ["last"]))
    return planted


# held in memory ---------------------------------------------------------------------------------------------------------
def _held(folder: Path) -> Iterator[Figure]:
    """A journal of so many messages, written by a program, taken up in a chat that says one thing."""
    peaks, sizes = {}, {}
    for messages in _HELD:
        place = folder / f"held-{messages}"
        place.mkdir()
        with ModelServer(_model) as server:
            desk = Desk(place, server, window=_WINDOW)
            desk.chat("begin", words=("--new", "--no-summary"))
            (session,) = _sessions(desk)
            _write_journal(desk, session, messages // 2)
            _chat(desk, "first\n", "--resume", "--no-summary")  # the state is brought up to date once
            peaks[messages] = _chat(desk, "one more\n", "--resume", "--no-summary").peak / MB
            if messages == _HELD[-1]:
                sizes = _sizes(desk)
    few, many = (peaks[one] for one in _HELD)
    note = f"{few:.1f} MB with {_HELD[0]:,} messages, {many:.1f} MB with {_HELD[1]:,}"
    yield Figure("long journal: memory of 10,000 messages beside 1,000", many / few, "times", _HELD_GROWTH, note=note)
    share = sizes["words"] / sizes["rest"]
    told = f"{sizes['words'] / MB:.1f} MB of words in SQL beside {sizes['rest'] / MB:.1f} MB, {_HELD[-1]:,} messages"
    yield Figure("words in SQL: size beside the rest of the archive", share, "times", note=told)


def _write_journal(desk: Desk, session: Session, turns: int) -> None:
    """Add so many prompts and answers, many in one transaction."""
    with closing(desk.store()) as store, Journal.open(store, session.native_id) as journal:
        for first in range(0, turns, _AT_ONCE):
            made: list[records.Record] = []
            for number in range(first, min(turns, first + _AT_ONCE)):
                words = f"question {number} about widget{number:05} {'blah ' * 40}"
                answer = ChatMessage("assistant", (ChatPart("text", f"heard {number} {'yes ' * 40}"),))
                made += [
                    records.UserRecord(parts=(ChatPart("text", words),)), records.ResponseRecord(reply=Reply(answer))
                ]  # fmt: skip
            journal.write(*made)


def _sizes(desk: Desk) -> dict[str, int]:
    with closing(desk.store()) as store:
        total = store.sizes()["total"]
        found = store.driver.one(  # type: ignore[attr-defined]
            "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE 'message_text%'"
        )
    words = int(found[0] or 0)
    return {"words": words, "rest": total - words}


# killed -----------------------------------------------------------------------------------------------------------------
def _killed(desk: Desk) -> Iterator[Figure]:
    moments, wrong, shown, reached = random.Random(_SEED), list[str](), 0, 0
    acknowledged: list[str] = []
    for number in range(_CHATS):
        said, is_killed = _struck(desk, number, moments)
        acknowledged += said
        reached += is_killed
        shown += bool(said)
    sessions = _sessions(desk)
    kept = {text for session in sessions for text in _words(desk, session)}
    lost = [words for words in acknowledged if words not in kept]
    about = f"{_CHATS} chats, {reached} killed at work, {shown} of them after an answer, {len(sessions)} sessions"
    yield exact("chats killed: acknowledged messages that are lost", lost, f"{len(acknowledged):,} messages; {about}")
    for session in sessions:
        ran = desk.run("chat", "--resume", session.native_id, "--no-summary", typed="are you there?\n")
        if ran.code != 0 or "heard are you there?" not in ran.out:
            wrong.append(f"{session.native_id} ended with {ran.code}: {ran.err.strip().splitlines()[-1:]}")
    yield exact("chats killed: sessions that cannot be taken up", wrong, f"each of {len(sessions)} sessions was")
    unsound = [] if desk.run("verify").code == 0 else ["verify"]
    yield exact("chats killed: archives that are not sound", unsound, "everturn verify")


def _struck(desk: Desk, number: int, moments: random.Random) -> tuple[list[str], bool]:
    """One chat, killed soon after one of its requests, or before any. What it acknowledged, and whether it still ran."""
    lines = [f"message {number}-0", f"look {number}-1", f"message {number}-2", "/compact", f"message {number}-3"]
    strike, before = moments.randrange(_REQUESTS), len(desk.server.asked)
    later = moments.random() * (0.5 if strike == 0 else 0.08)
    out = desk.folder / "shown"
    with out.open("wb") as shown:
        process = subprocess.Popen(
            desk.command("chat", "--new"), stdin=subprocess.PIPE, stdout=shown, stderr=subprocess.DEVNULL, env=desk.env,
            cwd=desk.workspace,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        process.stdin.flush()
        end = time.monotonic() + _PATIENCE
        while len(desk.server.asked) - before < strike and process.poll() is None:
            if time.monotonic() > end:
                raise Failed(f"chat {number} did not ask the model {strike} times")
            time.sleep(0.001)
        time.sleep(later)
        is_killed = process.poll() is None
        process.kill()
        process.stdin.close()
        process.wait()
    answers = _ANSWER.findall(out.read_text("utf-8", "replace"))
    said = [line for line in lines if line != "/compact"][: len(answers)]
    return [*said, *(answer for answer in answers if "tool" not in answer)], is_killed


def _sessions(desk: Desk) -> list[Session]:
    with closing(desk.store()) as store:
        found, cursor = store.sessions(SessionFilter(agent=AGENT), 1000)
        assert not cursor
        return [row for row, _ in found]


def _words(desk: Desk, session: Session) -> Iterator[str]:
    with closing(desk.store()) as store:
        for _, message in read_messages(store, all_sources(), session):
            yield from (block.text for block in message.blocks)


# a long one -------------------------------------------------------------------------------------------------------------
def _long(folder: Path) -> Iterator[Figure]:
    peaks, costs = {}, list[Cost]()
    for messages in (_SHORT, _LONG):
        place = folder / f"chat-{messages}"
        place.mkdir()
        with ModelServer(_model) as server:
            desk = Desk(place, server, window=_WINDOW)
            lines = "".join(f"question {n} about widget{n:03} {'blah ' * 40}\n" for n in range(messages // 2))
            peaks[messages] = _chat(desk, lines, "--new", "--no-summary").peak / MB
            if messages == _LONG:
                yield exact("long chat: requests over the window", _too_long(server), f"{len(server.asked)} requests")
                costs = [_chat(desk, "", "--resume", "--no-summary") for _ in range(_STARTS)]
                starts = [_chat(desk, "", "--new", "--no-summary") for _ in range(_STARTS)]
                yield from _found(desk, server)
    note = f"{peaks[_SHORT]:.1f} MB with {_SHORT} messages, {peaks[_LONG]:.1f} MB with {_LONG:,}"
    yield Figure("long chat: memory for 900 more messages", peaks[_LONG] - peaks[_SHORT], "MB", _GROWTH, note=note)
    # Whatever else runs on the machine can only add to what a start takes.
    told = f"{_LONG:,} messages, least of {_STARTS}"
    yield Figure(
        "long chat: start of another, to the prompt", min(cost.cpu for cost in starts), "CPU-s", _START, note=told
    )
    yield Figure("long chat: taken up, to the prompt", min(cost.cpu for cost in costs), "CPU-s", _START, note=told)


def _chat(desk: Desk, typed: str, *words: str) -> Cost:
    lines = desk.folder / "typed"
    lines.write_text(typed)
    command = f"exec {shlex.join([*EVERTURN, 'chat', *words])} <{shlex.quote(str(lines))}"
    # Installed programs are compiled once; an environment that forbids to keep that would be measured instead of us.
    env = {name: value for name, value in desk.env.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return run(("sh", "-c", command), env, cwd=desk.workspace)


def _too_long(server: ModelServer, window: int = _WINDOW) -> Iterator[str]:
    for asked in server.asked:
        words = [str(one["content"]) for one in asked.body["messages"]]
        if sum(map(estimate_tokens, words)) + asked.body["max_tokens"] > window:
            yield f"request {asked.number}"


def _found(desk: Desk, server: ModelServer) -> Iterator[Figure]:
    """What the last request of the long chat had no room for, looked for in the archive."""
    last = [str(one["content"]) for one in server.asked[-1].body["messages"]]
    in_view = {int(found) for words in last for found in re.findall(r"widget(\d+)", words)}
    dropped = [n for n in range(_LONG // 2) if n not in in_view]
    (session,) = [one for one in _sessions(desk) if one.n_prompts]
    with closing(desk.store()) as store:
        recall = ConversationRecall(store, all_sources(), session)
        missing = [f"widget{n:03}" for n in dropped if not _is_recalled(recall, n)]
    yield exact("long chat: messages out of view that recall misses", missing, f"{len(dropped)} prompts out of view")


def _is_recalled(recall: Any, number: int) -> bool:
    return f"question {number} about widget{number:03}" in recall.call(
        {"action": "search", "query": f"widget{number:03}"}
    )
