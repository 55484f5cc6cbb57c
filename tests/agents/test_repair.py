"""Broken session files, repaired and opened by the real programs: the model is told everything that could be saved."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from everturn import clock
from everturn.resume.diagnosis import diagnose_session
from everturn.resume.handoff import NativeOptions, write_native
from everturn.resume.repair import plan_repair
from everturn.sources.contract import all_sources
from tests import broken, broken_forms
from tests.agents.held import next_request, running
from tests.agents.talk import LAST, assert_told
from tests.resume.test_repair import patient

pytestmark = pytest.mark.agents


#: Every kind once, the programs in turn; `python -m benchmarks.repair` has every kind with every program.
KINDS = {kind: [agent for agent, one in broken_forms.KINDS if one == kind] for _, kind in broken_forms.KINDS}
CASES = [(agents[number % len(agents)], kind) for number, (kind, agents) in enumerate(KINDS.items())]


@pytest.mark.parametrize(("agent", "kind"), CASES)
def test_a_repaired_session_opens_and_is_told_whole(agent: str, kind: str, tmp_path: Path) -> None:
    case = broken_forms.KINDS[agent, kind](broken.whole(agent), Random(0))
    with (
        running(agent, tmp_path / "home") as run,
        patient(case, tmp_path) as (ill, store, session),
        diagnose_session(ill, run.places(), clock.now()) as diagnosis,
    ):
        target = all_sources()[agent]
        wanted = NativeOptions(
            target, run.places(), clock.new_id(), clock.now(), tmp_path, str(run.work), is_repair=True
        )
        made = plan_repair(diagnosis, all_sources(), wanted)
        assert diagnosis.session is not None
        write_native(store, session or diagnosis.session, made)
        if made.take_in:
            run.run(made.take_in)
        assert_told(next_request(run, made.command), (*case.expected, ("user", LAST)))
