"""Record the real programs, and score how much of a recording everturn gives back.

    python -m tests.recordings list
    python -m tests.recordings record --program opencode-0.5 --scenario failures --seed 3 --size 200x50 --out .recordings
    python -m tests.recordings all --out .recordings --seeds 5
    python -m tests.recordings score .recordings --json
    python -m tests.recordings cuts .recordings --cuts 200

`all` leaves out what is there already, so that it can be broken off and taken up again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.recordings.cuts import cut_recording
from tests.recordings.older import is_older, read_older_truth
from tests.recordings.programs import PROGRAMS, Program
from tests.recordings.recorder import FORMS, ProgramFailed, record
from tests.recordings.scenarios import SCENARIOS, Scenario
from tests.recordings.score import Row, score_recording, table
from tests.recordings.truth import TRUTH, read_truth

OUT = Path(".recordings")


def main() -> int:
    """Read the words and do what they say."""
    given = _words().parse_args()
    done: int = given.do(given)
    return done


def _words() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="python -m tests.recordings", description="Recordings of the real programs.")
    commands = words.add_subparsers(required=True, metavar="COMMAND")

    listed = commands.add_parser("list", help="programs and scenarios")
    listed.set_defaults(do=list_all)

    one = commands.add_parser("record", help="make one recording")
    one.add_argument("--program", required=True, choices=PROGRAMS)
    one.add_argument("--scenario", required=True, choices=SCENARIOS)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--form", choices=FORMS, default="log-out", help="which files `script` writes")
    one.add_argument("--size", type=_size, metavar="COLUMNSxROWS", help="of the terminal; default: the scenario's own")
    one.add_argument("--theme", default="", help="of OpenCode")
    one.add_argument("--out", type=Path, default=OUT)
    one.set_defaults(do=record_one)

    every = commands.add_parser("all", help="record every scenario with every installed program")
    every.add_argument("--program", action="append", choices=PROGRAMS, help="only these")
    every.add_argument("--scenario", action="append", choices=SCENARIOS, help="only these")
    every.add_argument("--seeds", type=int, default=1, help="how many mixtures (`random`) for each program")
    every.add_argument("--jobs", type=int, default=1, help="how many at a time")
    every.add_argument("--out", type=Path, default=OUT)
    every.set_defaults(do=record_all)

    score = commands.add_parser("score", help="read recordings with everturn and compare with their truth")
    score.add_argument("folder", type=Path, nargs="+", help="a recording, or a folder of them")
    score.add_argument("--json", action="store_true", help="one object for each recording, with what was lost")
    score.add_argument("--jobs", type=int, default=1, help="how many at a time")
    score.add_argument("--direct", action="store_true", help="read without an archive, in this process: faster")
    score.set_defaults(do=score_all)

    cuts = commands.add_parser("cuts", help="read recordings cut off at many places: more never gives less")
    cuts.add_argument("folder", type=Path, nargs="+", help="a recording, or a folder of them")
    cuts.add_argument("--cuts", type=int, default=200, help="how many places")
    cuts.set_defaults(do=cut_all)
    return words


def list_all(given: argparse.Namespace) -> int:
    """Print the programs and the scenarios."""
    for program in PROGRAMS.values():
        state = "" if program.path.exists() else "not installed"
        print(f"{program.name:18} {program.version:10} {', '.join(sorted(program.can)):50} {state}".rstrip())
    print()
    for scenario in SCENARIOS.values():
        needs = f"  needs: {', '.join(sorted(scenario.needs))}" if scenario.needs else ""
        print(f"{scenario.name:14} {scenario.summary}{needs}")
    return 0


# recording ------------------------------------------------------------------------------------------------------------
def record_one(given: argparse.Namespace) -> int:
    """Make one recording."""
    scenario = SCENARIOS[given.scenario]
    if given.size is not None:
        scenario = replace(scenario, size=given.size)
    return 0 if _record(PROGRAMS[given.program], scenario, given.seed, given.out, given.form, given.theme) else 1


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)


def record_all(given: argparse.Namespace) -> int:
    """Make every recording that is not there yet."""
    programs = [program for name, program in PROGRAMS.items() if name in (given.program or PROGRAMS)]
    for program in programs:
        if not program.path.exists():
            print(f"{program.name}: not installed; `make recordings` installs it", file=sys.stderr)
    todo = [
        (program, scenario, seed)
        for program in programs
        if program.path.exists()
        for scenario, seed in _wanted(program, given.scenario or list(SCENARIOS), given.seeds)
        if not (given.out / _name(program, scenario, seed) / TRUTH).exists()
    ]
    forms = list(FORMS)
    with ThreadPoolExecutor(given.jobs) as pool:
        done = [
            pool.submit(_record, program, scenario, seed, given.out, forms[number % len(forms)])
            for number, (program, scenario, seed) in enumerate(todo)
        ]
    return 0 if all(one.result() for one in done) else 1


def _wanted(program: Program, names: list[str], seeds: int) -> Iterator[tuple[Scenario, int]]:
    for scenario in (SCENARIOS[name] for name in names):
        if scenario.needs <= program.can:
            for seed in range(1, (seeds if scenario.name == "random" else 1) + 1):
                yield scenario, seed


def _name(program: Program, scenario: Scenario, seed: int) -> str:
    return f"{program.name}-{scenario.name}-{seed}"


def _record(program: Program, scenario: Scenario, seed: int, out: Path, form: str, theme: str = "") -> bool:
    """Make a recording. A program that hangs when it starts is started once more."""
    name, began = _name(program, scenario, seed), time.monotonic()
    for _ in range(2):
        try:
            truth = record(program, scenario, seed, (out / name).resolve(), form, theme)
        except ProgramFailed as error:
            print(f"{name:36} {error}", file=sys.stderr, flush=True)
            continue
        counts = f"{len(truth.prompts):3} prompts {len(truth.runs):3} calls {truth.bytes:9} bytes"
        state = "" if truth.complete else "  incomplete: a step did not end in time"
        print(f"{name:36} {counts} {time.monotonic() - began:6.1f} s{state}", flush=True)
        return truth.complete
    return False


# scoring --------------------------------------------------------------------------------------------------------------
def score_all(given: argparse.Namespace) -> int:
    """Print the score of every recording below some folders."""
    found = sorted({path.parent for folder in given.folder for path in folder.rglob(TRUTH)})
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = []
        for row in pool.map(lambda folder: _score(folder, given.direct), found):
            rows.append(row)
            if given.json:
                print(json.dumps(row.as_json(), ensure_ascii=False), flush=True)
    if not given.json:
        print(table(rows))
    return 0


def cut_all(given: argparse.Namespace) -> int:
    """Print what the cuts of every recording show; fails when something is lost."""
    found = sorted({path.parent for folder in given.folder for path in folder.rglob(TRUTH)})
    lost = 0
    for folder in found:
        report = cut_recording(folder, given.cuts)
        lost += len(report.lost)
        print(report.line(), flush=True)
    print(f"{len(found)} recordings, {lost} lost")
    return 1 if lost else 0


def _score(folder: Path, direct: bool) -> Row:
    return score_recording(folder, read_older_truth(folder) if is_older(folder) else read_truth(folder), direct)


if __name__ == "__main__":
    sys.exit(main())
