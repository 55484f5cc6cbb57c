"""A conversation that a scripted model holds with any of the programs: three prompts, parallel calls, an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.agents.clients import Client
from tests.agents.heard import Heard, heard, tools
from tests.model_server import Asked
from tests.model_wires import Call, Says

PROMPTS = ("PROMPT-ONE: look at two things", "PROMPT-TWO: what did the first one say?", "PROMPT-THREE: look once more")

#: What is said when a program goes on with the conversation.
LAST = "PROMPT-LAST: go on"

#: Every piece of the conversation in order, by words that only it has.
EXPECTED = (
    ("user", "PROMPT-ONE: look at two things"),
    ("assistant", "SAY-ONE: I look at both at once."),
    ("call", "printf out-of-%d 42"),
    ("call", "ls /no-such-folder-anywhere"),
    ("result", "out-of-42"),
    ("result", "No such file or directory"),
    ("assistant", "SAY-TWO: one worked, one failed."),
    ("user", "PROMPT-TWO: what did the first one say?"),
    ("assistant", "SAY-THREE: it said 42."),
    ("user", "PROMPT-THREE: look once more"),
    ("call", "printf third-%d-time 3"),
    ("result", "third-3-time"),
    ("assistant", "SAY-FOUR: seen."),
)


def script(client: Client) -> Callable[[Asked], Says]:
    """What the model says to that program, judged by what it was told."""
    name, given = client.shell

    def says(asked: Asked) -> Says:
        if not tools(asked):
            return Says("A title")
        told = heard(asked)
        last = max((n for n, one in enumerate(told) if one.kind == "user" and "PROMPT-" in one.text), default=-1)
        prompt = told[last].text if last >= 0 else ""
        has_looked = any(one.kind == "result" for one in told[last:])
        if "PROMPT-ONE" in prompt and not has_looked:
            commands = ("printf out-of-%d 42", "ls /no-such-folder-anywhere")
            return Says("SAY-ONE: I look at both at once.", tuple(Call(name, given(one)) for one in commands))
        if "PROMPT-THREE" in prompt and not has_looked:
            return Says(calls=(Call(name, given("printf third-%d-time 3")),))
        for mark, answer in _ANSWERS.items():
            if mark in prompt:
                return Says(answer)
        return Says("SAY-AGAIN: going on.")

    return says


_ANSWERS = {
    "PROMPT-ONE": "SAY-TWO: one worked, one failed.",
    "PROMPT-TWO": "SAY-THREE: it said 42.",
    "PROMPT-THREE": "SAY-FOUR: seen.",
}


def assert_told(told: Sequence[Heard], expected: Sequence[tuple[str, str]] = EXPECTED) -> None:
    """Each piece is there once and in order; results of parallel calls may come in any order, each with its call's id."""
    shown = "\n".join(map(str, told))
    places = []
    for kind, words in expected:
        found = [place for place, one in enumerate(told) if one.kind == kind and words in one.text]
        assert len(found) == 1, f"{kind} {words!r} is there {len(found)} times in\n{shown}"
        places.append(found[0])
    spoken = [place for place, (kind, _) in zip(places, expected, strict=True) if kind != "result"]
    assert spoken == sorted(spoken), shown
    calls = [told[place].call for place, (kind, _) in zip(places, expected, strict=True) if kind == "call"]
    results = [told[place].call for place, (kind, _) in zip(places, expected, strict=True) if kind == "result"]
    assert results == calls, shown
    assert [one.call for one in told if one.kind == "result"].count(results[0]) == 1
    for place, (kind, _) in zip(places, expected, strict=True):
        if kind == "result":
            asked = next(n for n, one in enumerate(told) if one.kind == "call" and one.call == told[place].call)
            assert asked < place, shown
    assert max(places) == places[-1] or expected[-1][0] == "result", shown
