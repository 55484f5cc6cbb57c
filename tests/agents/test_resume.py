"""Every pair of real programs: a session of the one, opened in the other by its own command, is told to the model whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from everturn.resume.history import read_history
from everturn.sessions.lineage import offspring_of, origin_of
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import open_store
from everturn.text.tokens import estimate_tokens
from tests.agents.clients import CLIENTS
from tests.agents.held import Held, converted, next_request, resume, running, taken_in
from tests.agents.talk import EXPECTED, LAST, PROMPTS, assert_told
from tests.capture.history import History

pytestmark = pytest.mark.agents

NAMES = tuple(CLIENTS)
#: Tokens that a provider accepts, and to which a session is trimmed for it: clients add instructions and tools.
LIMIT, FIT = 200_000, 150_000
PAIRS = [(giver, taker) for giver in NAMES for taker in NAMES if giver != taker]


@pytest.mark.parametrize("agent", NAMES)
def test_what_a_program_has_held_is_in_the_archive(agent: str, held: dict[str, Held]) -> None:
    session = held[agent].session
    assert (session.n_turns, session.n_calls, session.n_errors) == (3, 3, 1)


def test_a_session_in_a_database_is_archived_as_its_program_exports_it(held: dict[str, Held], tmp_path: Path) -> None:
    one = held["opencode"]
    with running("opencode", one.home) as run:
        exported = json.loads(run.run(["opencode", "export", one.session.native_id]))
    version = one.store.version(one.session.version)
    lines = [json.loads(line) for line in one.store.read_raw(version.id, 0, version.size).splitlines()]
    ours = [
        (line["message"]["id"], line["message"]["data"], [(part["id"], part["data"]) for part in line["parts"]])
        for line in lines
        if "message" in line
    ]
    theirs = [
        (message["info"]["id"], _alone(message["info"]), [(part["id"], _alone(part)) for part in message["parts"]])
        for message in exported["messages"]
    ]
    assert len(theirs) >= 8 and ours == theirs


def _alone(exported: dict[str, object]) -> dict[str, object]:
    """Without the names of what it belongs to, which stand in columns of their own."""
    return {key: value for key, value in exported.items() if key not in ("id", "sessionID", "messageID")}


@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_a_session_of_one_program_goes_on_in_another(
    giver: str, taker: str, held: dict[str, Held], tmp_path: Path
) -> None:
    before = held[giver].files()
    with running(taker, tmp_path) as run:
        made = converted(held[giver], run)
        assert_told(next_request(run, made.command), (*EXPECTED, ("user", LAST)))
        again = taken_in(run, held[giver].store, made.new.id)
    assert again.n_turns == 4
    # What went over is counted where it was said; only what was said here is its own.
    assert [bool(turn.inherited) for turn in held[giver].store.turns(again.id)] == [True, True, True, False]
    assert 0 < again.n_inherited < again.n_messages
    origin = origin_of(held[giver].store, again)
    assert origin is not None and origin.native_id == held[giver].session.native_id
    assert again.native_id in [one.native_id for one in offspring_of(held[giver].store, held[giver].session)]
    assert before == held[giver].files()


@pytest.mark.parametrize("agent", NAMES)
def test_a_session_forks_at_an_earlier_turn(agent: str, held: dict[str, Held], tmp_path: Path) -> None:
    with running(agent, tmp_path) as run:
        made = converted(held[agent], run, upto=1)
        told = next_request(run, made.command)
    assert_told(told, (*EXPECTED[:9], ("user", LAST)))
    assert not any(PROMPTS[2] in one.text for one in told)


@pytest.fixture(scope="module")
def long_talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """A session of more than 300,000 tokens, most of them outputs of tools."""
    home, dice = tmp_path_factory.mktemp("long"), Random(0)
    history = History(home / ".claude")
    outputs = (" ".join(dice.choices(("alpha", "bravo", "charlie", "delta"), k=1500)) for _ in range(200))
    history.write(b"".join(history.tool_turn(f"LONG-{n}", f"echo {n}", one) for n, one in enumerate(outputs)))
    with closing(open_store(str(home / "archive.db"))) as store, running("claude_code", home) as run:
        yield Held(store, taken_in(run, store), home)


@pytest.mark.parametrize("agent", NAMES)
def test_a_trimmed_session_stays_below_the_limit_of_its_provider(agent: str, long_talk: Held, tmp_path: Path) -> None:
    assert read_history(long_talk.store, all_sources(), long_talk.session).tokens > LIMIT
    with running(agent, tmp_path) as run:
        made = converted(long_talk, run, fit=FIT)
        told = next_request(run, made.command)
        sizes = [estimate_tokens(one.text) for one in run.server.asked]
    print(f"{agent}: {max(sizes):,} tokens, of them {made.history.tokens:,} of the conversation")
    assert made.history.tokens <= FIT and max(sizes) < LIMIT, sizes
    assert any("LONG-199" in one.text for one in told) and any(LAST in one.text for one in told)
    assert any("was left out to fit the context window" in one.text for one in told)


@pytest.mark.parametrize("taker", NAMES)
def test_what_was_handed_over_can_be_handed_on(taker: str, held: dict[str, Held], tmp_path: Path) -> None:
    """There and back again: the words are still the same."""
    middle = NAMES[NAMES.index(taker) - 1]
    with running(middle, tmp_path / "middle") as run:
        made = converted(held[taker], run)
        run.again(resume(middle, made.new.id), PROMPTS[1].replace("PROMPT-TWO", "PROMPT-NEXT"))
        there = Held(held[taker].store, taken_in(run, held[taker].store, made.new.id), run.home)
    with running(taker, tmp_path / "back") as run:
        back = converted(there, run)
        assert_told(next_request(run, back.command), (*EXPECTED, ("user", "PROMPT-NEXT"), ("user", LAST)))


@pytest.mark.parametrize("agent", NAMES)
def test_the_reader_of_the_receiving_format_reads_what_was_written(
    agent: str, held: dict[str, Held], tmp_path: Path
) -> None:
    giver = next(name for name in NAMES if name != agent)
    with running(agent, tmp_path) as run:
        made = converted(held[giver], run)
        session = taken_in(run, held[giver].store, made.new.id)
    words = [
        block.text
        for _, message in read_messages(held[giver].store, all_sources(), session)
        for block in message.blocks
        if block.kind == "text" and block.field in ("prompt", "answer")
    ]
    assert words == [words for kind, words in EXPECTED if kind in ("user", "assistant")]
