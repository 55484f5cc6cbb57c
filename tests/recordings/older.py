"""The truth of recordings made by an older lab, as a `Truth`: its folders hold steps and requests instead.

    {"agent", "scenario", "size", "seed", "steps": [{"kind", "value", "at"}], "model": [{"at", "title", "prompt", "answer", "calls"}]}

Moments are found through the timing file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recordings.truth import RECORDING, TIMING, TRUTH, Answer, Event, Moment, Prompt, ToolRun, Truth, read_timing

_KINDS = {"bash": "shell", "write": "write", "edit": "edit", "read": "read"}


def is_older(folder: Path) -> bool:
    """Whether a folder holds such a truth."""
    return "schema" not in json.loads((folder / TRUTH).read_bytes())


def read_older_truth(folder: Path) -> Truth:
    """The truth of an older recording."""
    told = json.loads((folder / TRUTH).read_bytes())
    raw = (folder / RECORDING).read_bytes()
    when = _moments(folder, raw, told["steps"][0]["at"] if told["steps"] else 0.0)
    program = folder.name.rpartition("-")[0]
    width, height = told["size"].split("x")
    prompts = _prompts(told["steps"], when)
    cut = _interrupted(told["steps"])
    asked = [entry for entry in told["model"] if not entry.get("title") and not entry.get("cut")]
    places = _places(asked, prompts)
    return Truth(
        program=program,
        version=program.rpartition("-")[2],
        scenario=told["scenario"],
        seed=told["seed"],
        size=(int(width), int(height)),
        form="log-out",
        started=0.0,
        bytes=len(raw),
        prompts=prompts,
        answers=[_answer(entry, when, place, place in cut) for entry, place in zip(asked, places, strict=True) if entry.get("answer")],
        calls=[call for entry, place in zip(asked, places, strict=True) for call in _calls(entry, when, place)],
        events=[Event(step["kind"], step["value"], when(step["at"])) for step in told["steps"] if step["kind"] not in ("prompt", "paste")],
    )  # fmt: skip


def _moments(folder: Path, raw: bytes, first: float) -> Callable[[float], Moment]:
    """From seconds since 1970 to places; the recording begins when its header says."""
    header = raw.partition(b"\n")[0] + b"\n"
    entries = list(read_timing((folder / TIMING).read_text())) if (folder / TIMING).exists() else []
    began = _begun(header.decode("utf-8", "replace")) or first

    def moment(at: float) -> Moment:
        seconds = at - began
        return Moment(round(seconds, 3), len(header) + sum(size for then, size in entries if then <= seconds))

    return moment


def _begun(header: str) -> float | None:
    from datetime import datetime

    found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", header)
    return datetime.fromisoformat(found[0]).timestamp() if found else None


def _prompts(steps: list[dict[str, Any]], when: Callable[[float], Moment]) -> list[Prompt]:
    prompts, session = [], 1
    for step in steps:
        if step["kind"] == "keys" and step["value"].strip() in ("/new", "/clear"):
            session += 1
        elif step["kind"] in ("prompt", "paste"):
            prompts.append(Prompt(step["value"], when(step["at"]), session, step["kind"] == "paste"))
    return prompts


def _interrupted(steps: list[dict[str, Any]]) -> set[int]:
    """The prompts whose answer was stopped."""
    cut, prompt = set(), -1
    for step in steps:
        prompt += step["kind"] in ("prompt", "paste")
        if step["kind"] == "interrupt":
            cut.add(prompt)
    return cut


def _places(asked: list[dict[str, Any]], prompts: list[Prompt]) -> list[int]:
    """The prompt each request belongs to: the next one with its words, or the same again."""
    places: list[int] = []
    at = 0
    for entry in asked:
        following = [n for n in range(at, len(prompts)) if prompts[n].text.strip() == entry["prompt"].strip()]
        is_answered = at in places and not asked[len(places) - 1].get("calls") if places else False
        if is_answered and len(following) > 1 and following[0] == at:
            following = following[1:]
        at = following[0] if following else at
        places.append(at)
    return places


def _answer(entry: dict[str, Any], when: Callable[[float], Moment], place: int, cut: bool) -> Answer:
    return Answer(entry["answer"], when(entry["at"]), place, cut)


def _calls(entry: dict[str, Any], when: Callable[[float], Moment], place: int) -> list[ToolRun]:
    found = []
    for call in entry.get("calls", []):
        name, given = call["tool"], {key: value for key, value in call.items() if key != "tool"}
        path = given.get("filePath") or given.get("file_path") or ""
        key = given.get("command") or Path(path).name
        found.append(ToolRun(_KINDS.get(name.lower(), name), key, name, given, when(entry["at"]), place, "ok"))
    return found
