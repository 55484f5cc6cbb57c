"""Every kind of damage of `tests.broken_forms`, repaired and opened by the real programs against a scripted model.

    EVERTURN_TEST_AGENTS=.agents PYTHONPATH=src:. python -m benchmarks.repair [AGENT ...] [KIND ...]

A case counts if the program tells its model everything that is not physically gone, once and in order. The table has a line
for each kind: `open` for such a case, `-` where the kind does not apply, and how many findings are told as lost.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from everturn import clock
from everturn.resume.diagnosis import diagnose_session
from everturn.resume.handoff import NativeOptions, write_native
from everturn.resume.repair import plan_repair
from everturn.sources.contract import all_sources
from tests import broken
from tests.agents.clients import Run
from tests.agents.held import next_request, running
from tests.agents.talk import LAST, assert_told
from tests.broken_forms import KINDS
from tests.resume.test_repair import assert_told_as_it_is, patient


def opened(run: Run, kind: str, folder: Path) -> tuple[str, int]:
    """Repair one case and open it; return why it failed ("" if it did not), and the findings that are told as lost."""
    agent = run.client.name
    case = KINDS[agent, kind](broken.whole(agent), Random(0))
    lost = 0
    try:
        with (
            patient(case, folder) as (ill, store, session),
            diagnose_session(ill, run.places(), clock.now()) as diagnosis,
        ):
            lost = sum(one.lost for one in diagnosis.findings)
            target = all_sources()[agent]
            options = NativeOptions(
                target, run.places(), clock.new_id(), clock.now(), folder, str(run.work), is_repair=True
            )
            made = plan_repair(diagnosis, all_sources(), options)
            assert diagnosis.session is not None
            write_native(store, session or diagnosis.session, made)
            if made.take_in:
                run.run(made.take_in)
            run.server.asked.clear()
            assert_told(next_request(run, made.command), (*case.expected, ("user", LAST)))
            assert_told_as_it_is(case, diagnosis)
    except Exception as failure:
        return f"{type(failure).__name__}: {failure}", lost
    return "", lost


def rows(agents: list[str], kinds: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """Yield kind, agent, why it failed, and the losses told."""
    with tempfile.TemporaryDirectory(prefix="everturn-repair-") as top, ExitStack() as stack:
        runs = {agent: stack.enter_context(running(agent, Path(top) / agent)) for agent in agents}
        for kind in kinds:
            for agent in agents:
                if (agent, kind) in KINDS:
                    folder = Path(top) / f"{agent}-{kind}"
                    folder.mkdir()
                    yield kind, agent, *opened(runs[agent], kind, folder)


def main(words: list[str]) -> int:
    """Print the table; return 1 if a case failed."""
    agents = [agent for agent in broken.AGENTS if agent in words] or list(broken.AGENTS)
    every = list(dict.fromkeys(kind for _, kind in KINDS))
    kinds = [kind for kind in every if kind in words] or every
    begun, failed, table = time.monotonic(), list[str](), dict[str, dict[str, str]]()
    for kind, agent, why, lost in rows(agents, kinds):
        table.setdefault(kind, {})[agent] = ("open" if not why else "FAILED") + (f", {lost} lost" if lost else "")
        failed += [f"{kind} {agent}: {why}"] if why else []
        if agent == [one for one in agents if (one, kind) in KINDS][-1]:
            print(f"{kind:22}" + "".join(f"{table[kind].get(one, '-'):>18}" for one in agents), flush=True)
    cases = sum(map(len, table.values()))
    whole = sum(all(not cell.startswith("FAILED") for cell in row.values()) for row in table.values())
    print(f"{whole} of {len(table)} kinds, {cases - len(failed)} of {cases} cases, {time.monotonic() - begun:.0f} s")
    for why in failed:
        print(why[:2000], file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
