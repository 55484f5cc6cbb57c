"""Broken session files: what is wrong is told with its place, and everything that can be saved is in the new session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.errors import EverturnError, ResumeError
from everturn.model.archive import Session
from everturn.resume.diagnosis import BrokenSession, Diagnosis, diagnose_session
from everturn.resume.handoff import NativeOptions, NativePlan, write_native
from everturn.resume.history import History, read_history
from everturn.resume.repair import copies_for_other_session, copies_of_file, copies_of_session, plan_repair, session_in
from everturn.sessions.lineage import offspring_of
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.sources.toolkit.record_check import KINDS as FINDINGS
from everturn.store.contract import SessionFilter, Store, open_store
from tests import broken, broken_forms
from tests.agents.heard import Heard
from tests.agents.talk import EXPECTED, assert_told
from tests.broken import Case
from tests.sources import goldens

NOW, RANDOM = 1_800_000_000_000, "0123456789abcdef0123456789abcdef"


def places(folder: Path) -> SearchPlaces:
    return SearchPlaces(folder / "home", {}, "linux")


@contextmanager
def archive(folder: Path) -> Iterator[tuple[Store, SyncJob]]:
    store = open_store("memory:")
    try:
        yield store, SyncJob(store, all_sources(), places(folder), Policy(), "box", "ann", lambda: NOW)
    finally:
        store.close()


@contextmanager
def patient(case: Case, folder: Path) -> Iterator[tuple[BrokenSession, Store, Session | None]]:
    """What is to be repaired: with the copies an archive has seen, or the file alone where there were none."""
    path = folder / case.name
    with archive(folder) as (store, job):
        session = None
        for number, data in enumerate([*case.older, *([case.data] if case.is_gone else [])]):
            path.unlink(missing_ok=True)
            path.write_bytes(data)
            assert add_paths(job, [path], case.agent).failed == [], number
            session = session_in(store, "box", path)
        if case.is_gone:
            path.unlink()
        else:
            path.write_bytes(case.data)
        sources = all_sources()
        if session is None:
            yield copies_of_file(sources, path, case.agent), store, None
        else:
            yield copies_of_session(store, sources, session, "box"), store, session


def mended(diagnosis: Diagnosis, folder: Path, agent: str = "") -> NativePlan:
    target = all_sources()[agent] if agent else diagnosis.patient.source
    wanted = NativeOptions(target, places(folder), RANDOM, NOW, folder, str(folder), is_repair=True)
    return plan_repair(diagnosis, all_sources(), wanted)


def heard(told: History) -> list[Heard]:
    """What a model would be told."""
    found = []
    for message in told.messages:
        for block in message.blocks:
            if block.call is not None:
                found.append(Heard("call", str(block.call.input), block.call.call_id))
            elif block.result is not None:
                found.append(Heard("result", block.text, block.result.call_id))
            else:
                found.append(Heard(message.role, block.text))
    return found


def read_again(made: NativePlan, folder: Path, is_sound: bool = True) -> list[Heard]:
    """What the format's own reader makes of the new file, which can be read whole and has nothing wrong with it."""
    path = folder / "new" / made.path.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(made.content)
    with goldens.ingest(made.source.name, path) as again:
        assert again.store.problems() == []
        assert [row for row in again.store.census() if row.disposition in ("unknown", "problem")] == []
        [(session, _)] = again.store.sessions(SessionFilter())[0]
        with diagnose_session(copies_of_file(all_sources(), path), places(folder), NOW) as diagnosis:
            assert diagnosis.findings == [] or not is_sound
        return heard(read_history(again.store, all_sources(), session))


def assert_findings_are_in_their_files(diagnosis: Diagnosis) -> None:
    sizes = {copy.name: len(copy.data) for copy in diagnosis.patient.copies}
    for finding in diagnosis.findings:
        assert finding.kind in FINDINGS
        assert finding.note
        assert 0 <= finding.start <= finding.start + finding.size <= sizes[finding.copy], finding


#: Whether words were lost where these are, nobody can say.
_MAY_HIDE_WORDS = {"nul_block", "dangling_parent", "invalid_utf8", "half_character"}


def assert_told_as_it_is(case: Case, diagnosis: Diagnosis) -> None:
    """What is wrong is named, and words are called lost where they are and only there."""
    kinds = {finding.kind for finding in diagnosis.findings}
    assert not case.found or case.found in kinds
    is_cut = any(new[0] == old[0] and new[1] != "Interrupted:" for old, new in case.instead)
    is_lossy = is_cut or bool(case.lost and not case.is_silent)
    if not kinds & _MAY_HIDE_WORDS:
        assert diagnosis.state == ("lossy" if is_lossy else "mendable" if kinds else "sound")
    assert diagnosis.state == "lossy" or not is_lossy
    if len(case.lost) == 1 and is_lossy and not is_cut:
        assert sum(one.lost for one in diagnosis.findings) == 1, diagnosis.findings


@pytest.mark.few(12)
@pytest.mark.parametrize(("agent", "kind"), broken_forms.KINDS)
def test_a_broken_file_becomes_a_session_with_all_that_can_be_saved(agent: str, kind: str, tmp_path: Path) -> None:
    case = broken_forms.KINDS[agent, kind](broken.whole(agent), Random(0))
    with patient(case, tmp_path) as (ill, _, _), diagnose_session(ill, places(tmp_path), NOW) as diagnosis:
        assert_findings_are_in_their_files(diagnosis)
        assert_told_as_it_is(case, diagnosis)
        before = ill.found.path.read_bytes() if not case.is_gone else b""
        made = mended(diagnosis, tmp_path)
        assert_told(heard(made.history), case.expected)
        assert_told(read_again(made, tmp_path), case.expected)
        assert case.is_gone or ill.found.path.read_bytes() == before


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_there_are_twenty_kinds_of_each(agent: str) -> None:
    assert sum(one == agent for one, _ in broken.KINDS) >= 20


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_nothing_is_wrong_with_a_sound_file(agent: str, tmp_path: Path) -> None:
    with (
        patient(broken.whole(agent), tmp_path) as (ill, _, _),
        diagnose_session(ill, places(tmp_path), NOW) as diagnosis,
    ):
        assert diagnosis.findings == []
        assert diagnosis.state == "sound"


@pytest.mark.parametrize("kind", broken.REFUSED)
@pytest.mark.parametrize("agent", broken.AGENTS)
def test_a_file_of_which_nothing_can_be_made_is_refused_with_the_reason(agent: str, kind: str, tmp_path: Path) -> None:
    data, why = broken.REFUSED[kind]
    path = tmp_path / broken.whole(agent).name
    path.write_bytes(data)
    with diagnose_session(copies_of_file(all_sources(), path, agent), places(tmp_path), NOW) as diagnosis:
        assert diagnosis.state == "irrecoverable"
        with pytest.raises(ResumeError, match=why):
            mended(diagnosis, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name]


def test_a_file_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(bytes(100) + b"hello\n")
    with pytest.raises(ResumeError, match="no record of any known format"):
        copies_of_file(all_sources(), path)


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_what_a_new_session_was_made_from_is_kept(agent: str, tmp_path: Path) -> None:
    case = broken.truncated(broken.whole(agent), Random(0))
    with patient(case, tmp_path) as (ill, store, session), diagnose_session(ill, places(tmp_path), NOW) as diagnosis:
        assert session is not None
        made = mended(diagnosis, tmp_path)
        write_native(store, session, made)
        assert made.path.read_bytes() == made.content
        assert made.path.stat().st_mode & 0o777 == 0o600
        [child] = offspring_of(store, session)
        assert (child.native_id, child.relation) == (made.new.id, "repaired_from")


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_the_other_session_in_a_file_can_be_had_too(agent: str, tmp_path: Path) -> None:
    case = broken.mixed_sessions(broken.whole(agent), Random(0))
    path = tmp_path / case.name
    path.write_bytes(case.data)
    ill = copies_for_other_session(copies_of_file(all_sources(), path), broken.other_session(agent))
    with diagnose_session(ill, places(tmp_path), NOW) as diagnosis:
        assert_told(heard(mended(diagnosis, tmp_path).history))
        assert broken.SESSION[agent] in " ".join(finding.note for finding in diagnosis.findings)


@pytest.mark.parametrize("agent", broken.AGENTS)
def test_a_broken_session_of_one_agent_can_go_on_in_another(agent: str, tmp_path: Path) -> None:
    case = broken.glued(broken.whole(agent), Random(0))
    taker = next(one for one in broken.AGENTS if one != agent)
    with patient(case, tmp_path) as (ill, _, _), diagnose_session(ill, places(tmp_path), NOW) as diagnosis:
        assert_told(read_again(mended(diagnosis, tmp_path, taker), tmp_path))


def test_an_event_that_repeats_a_torn_item_saves_it(tmp_path: Path) -> None:
    case = broken.torn_middle(broken.whole("codex"), Random(0))
    words = "PROMPT-TWO: what did the first one say?"
    payload = f'{{"type":"user_message","message":"{words}"}}'
    line = f'{{"timestamp":"2026-01-05T08:00:08.000Z","type":"event_msg","payload":{payload}}}\n'.encode()
    place = next(number for number, one in enumerate(case.lines) if b"PROMPT-TWO" in one)
    case = Case("codex", (*case.lines[: place + 1], line, *case.lines[place + 1 :]))
    with patient(case, tmp_path) as (ill, _, _), diagnose_session(ill, places(tmp_path), NOW) as diagnosis:
        assert diagnosis.state == "mendable"
        assert_told(heard(mended(diagnosis, tmp_path).history), EXPECTED)


def test_a_file_is_known_whatever_it_begins_with(tmp_path: Path) -> None:
    for agent in broken.AGENTS:
        path = tmp_path / broken.whole(agent).name
        path.write_bytes(bytes(70_000) + b"\xef\xbb\xbf{torn\n" + broken.whole(agent).data)
        assert copies_of_file(all_sources(), path).source.name == agent


def assert_saved(case: Case, folder: Path) -> None:
    with patient(case, folder) as (ill, _, _), diagnose_session(ill, places(folder), NOW) as diagnosis:
        assert_findings_are_in_their_files(diagnosis)
        told = read_again(mended(diagnosis, folder), folder)
        spoken = [one for one in case.expected if one[0] != "result"]
        found = [[n for n, one in enumerate(told) if one.kind == kind and words in one.text] for kind, words in spoken]
        assert all(len(places) == 1 for places in found), list(zip(spoken, found, strict=True))
        assert found == sorted(found)


def harmed(agent: str, harms: list[broken.Harm], seed: int) -> Case:
    case = broken.whole(agent)
    for harm in harms:
        case = harm(case, Random(seed))
    return case


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("agent", broken.AGENTS)
def test_harms_may_come_together(agent: str, seed: int, tmp_path: Path) -> None:
    harms = Random(seed).sample(broken.TOGETHER[agent], 4)
    assert_saved(harmed(agent, harms, seed), tmp_path)


@pytest.mark.slow
@given(st.data())
def test_any_harms_may_come_together(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    agent = data.draw(st.sampled_from(broken.AGENTS))
    harms = data.draw(st.lists(st.sampled_from(broken.TOGETHER[agent]), min_size=1, max_size=6, unique=True))
    assert_saved(harmed(agent, harms, data.draw(st.integers(0, 9))), tmp_path_factory.mktemp("together"))


@pytest.mark.slow
@given(st.sampled_from(broken.AGENTS), st.integers(0, 10_000))
def test_no_damage_makes_it_fail_without_a_reason(
    tmp_path_factory: pytest.TempPathFactory, agent: str, seed: int
) -> None:
    case, folder = broken.whole(agent), tmp_path_factory.mktemp("any")
    path = folder / case.name
    path.write_bytes(goldens.damaged(case.lines, Random(seed), 16))
    try:
        with diagnose_session(copies_of_file(all_sources(), path, agent), places(folder), NOW) as diagnosis:
            assert_findings_are_in_their_files(diagnosis)
            read_again(mended(diagnosis, folder), folder, is_sound=False)
    except EverturnError as refusal:
        assert "repaired" in str(refusal) or "words" in str(refusal)
