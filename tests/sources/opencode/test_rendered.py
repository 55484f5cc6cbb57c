"""Transcripts rendered as Markdown, in which nothing is escaped."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.model.conversation import Message
from everturn.sources.contract import SourceCandidate
from everturn.sources.opencode import SOURCE
from everturn.sources.opencode.files import created_at
from tests.sources import goldens
from tests.sources.opencode.building import BEGAN, PARENT

HEAD = f"# Hunt\n\n**Session ID:** {PARENT}\n**Created:** 1/20/2026, 9:06:40 AM\n**Updated:** x\n\n---\n\n"
FOUND = SourceCandidate(Path("talk.md"), "main", PARENT)


def user(words: str) -> str:
    return f"## User\n\n{words}\n\n---\n\n"


def assistant(*parts: str, about: str = " (Build · m-1 · 1.0s)") -> str:
    return f"## Assistant{about}\n\n{''.join(parts)}---\n\n"


def tool(name: str, output: str, old: bool = False) -> str:
    given = '\n**Input:**\n```json\n{\n  "command": "x"\n}\n```'
    said = f"\n**Output:**\n```\n{output}\n```"
    return f"```\nTool: {name}\n{given}{said}\n```\n\n" if old else f"**Tool: {name}**\n{given}\n{said}\n\n"


def read(text: str) -> goldens.Whole:
    whole = goldens.read(SOURCE, FOUND, text.encode())
    goldens.assert_keeps_promises(SOURCE, text.encode(), whole, lines=False)
    return whole


def outputs(messages: list[Message]) -> list[str]:
    return [block.text for message in messages for block in message.blocks if block.result is not None]


OUTPUTS = [
    "plain",
    "",
    "ends with a blank line\n",
    "10%\r20%\r\ndone\r",
    "```python\nx = 1\n```",
    "```python\ncut off",
    "one\n```\nbare\n```\ntwo",
    "# Doc\n\n---\n\n## User\n\nnot a message\n\n---\n\n## Assistant (Build · m · 2s)\n\nnor this",
    "```\ncode\n```\n\n---\n\n## User\n\nafter a fence",
    "**Tool: bash**\n\n**Output:**\n```\ninner\n```\n\n---\n\n## User\n\nquoted",
    "```\ncode\n```\n\n---\n\n## User\n\na\n\n---\n\n## Assistant\n\nb",
    "```js\none\n```\n\nthen\n\n```js\ncut off",
    "_Thinking:_\n\n**Input:**",
    "~~~\n---\n\n## User\n~~~",
]


#: In the older form a fence before a rule, or of a quoted section, cannot be told from the end.
OLD_OUTPUTS = [output for output in OUTPUTS if "```\n\n---" not in output and "**Output:**" not in output]


@pytest.mark.parametrize(
    ("output", "old"), [*((output, False) for output in OUTPUTS), *((output, True) for output in OLD_OUTPUTS)]
)
def test_an_output_ends_where_it_ended(output: str, old: bool) -> None:
    text = HEAD + user("go") + assistant(tool("bash", output, old), tool("read", "second", old)) + user("next")
    whole = read(text)
    assert [message.role for message in whole.all()] == ["user", "assistant", "user"]
    assert outputs(whole.all()) == [output, "second"]
    last = read(HEAD + user("go") + assistant(tool("bash", output, old)) + user("next") + assistant("Done.\n\n"))
    assert [message.role for message in last.all()] == ["user", "assistant", "user", "assistant"]
    assert outputs(last.all()) == [output]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_any_row_of_messages_is_told_apart(seed: int) -> None:
    dice = random.Random(seed)
    texts, expected = [HEAD], []
    for n in range(dice.randint(1, 6)):
        texts.append(user(f"question {n}"))
        said = [dice.choice(OUTPUTS) for _ in range(dice.randint(0, 3))]
        texts.append(assistant(*(tool("bash", one) for one in said), f"answer {n}\n\n"))
        expected.append((f"question {n}", said))
    messages = read("".join(texts)).all()
    asked = [(one.blocks[0].text, outputs([other])) for one, other in zip(messages[::2], messages[1::2], strict=True)]
    assert asked == expected


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("path", goldens.corpus("opencode-export"))
def test_a_real_conversation_that_is_rendered_is_told_apart(path: Path, old: bool) -> None:
    texts, expected = [HEAD], []
    for one in json.loads(path.read_bytes())["messages"]:
        results: list[str] = []
        parts = [rendered(part, results, old) for part in one["parts"]]
        by_user = one["info"]["role"] == "user"
        texts.append(f"## User\n\n{''.join(parts)}---\n\n" if by_user else assistant(*parts))
        expected.append((one["info"]["role"], results))
    assert [(message.role, outputs([message])) for message in read("".join(texts)).all()] == expected


def rendered(part: dict[str, Any], results: list[str], old: bool) -> str:
    """Render a part as the client does; the output of a tool is noted."""
    if part["type"] == "text" and not part.get("synthetic"):
        return f"{part['text']}\n\n"
    if part["type"] == "reasoning":
        return f"_Thinking:_\n\n{part['text']}\n\n"
    if part["type"] != "tool":
        return ""
    state = part["state"]
    label, said = ("Error", state["error"]) if state["status"] == "error" else ("Output", state["output"])
    results.append(said)
    given = f"\n**Input:**\n```json\n{json.dumps(state['input'], indent=2)}\n```"
    shown = f"\n**{label}:**\n```\n{said}\n```" if said else ""
    if old:
        return f"```\nTool: {part['tool']}\n{given}{shown}\n```\n\n"
    return f"**Tool: {part['tool']}**\n{given}\n{shown and shown + chr(10)}\n"


def test_thinking_before_a_tool_is_all_thinking_and_at_the_end_the_first_paragraph() -> None:
    thought = "_Thinking:_\n\nOne.\n\nTwo.\n\n"
    titled = "_Thinking:_\n\n**Title**\n\nOne.\n\nThe answer.\n\n"
    whole = read(HEAD + user("go") + assistant(thought, tool("bash", "x")) + assistant(thought) + assistant(titled))
    assert whole.texts("thinking") == ["One.\n\nTwo.", "One.", "**Title**\n\nOne."]
    assert whole.texts("answer") == ["Two.", "The answer."]


def test_the_heading_says_model_and_time_in_both_generations() -> None:
    whole = read(
        HEAD
        + assistant("a\n\n", about=" (Plan · Big Pickle · 12.5s)")
        + assistant("b\n\n", about=" (Build - M 2 - 3s)")
        + assistant("c\n\n", about=" (Build · M 3)")
        + assistant("d\n\n", about="")
    )
    facts = [(message.model, message.reported_ms) for message in whole.all()]
    assert facts == [("Big Pickle", 12500), ("M 2", 3000), ("M 3", None), ("", None)]


def test_a_file_with_other_line_ends_reads_the_same() -> None:
    text = HEAD + user("go") + assistant(tool("bash", "one\ntwo")) + user("next")
    there = goldens.read(SOURCE, FOUND, text.replace("\n", "\r\n").encode())
    assert [[b.text for b in m.blocks] for m in there.all()] == [[b.text for b in m.blocks] for m in read(text).all()]


def test_a_tool_without_details_has_no_result() -> None:
    whole = read(HEAD + user("go") + assistant("**Tool: skill**\n\n", "**Tool: read**\n\n"))
    assert [block.kind for block in whole.all()[1].blocks] == ["call", "call"]


def test_calls_of_one_transcript_have_names_of_their_own() -> None:
    whole = read(HEAD + user("go") + assistant(tool("bash", "1"), tool("bash", "2")) + assistant(tool("bash", "3")))
    ids = [block.call.call_id for message in whole.all() for block in message.blocks if block.call]
    assert len(set(ids)) == 3


def test_what_is_added_to_a_transcript_is_not_lost() -> None:
    first, more = (HEAD + user("go")).encode(), ("the rest of it\n\n---\n\n" + user("next walrus")).encode()
    whole = goldens.read(SOURCE, FOUND, first + more, [len(first)], [True])
    assert [message.kind for message in whole.all()] == ["text", "unknown", "text"]
    assert len({message.fingerprint for message in whole.all()}) == 3
    goldens.assert_keeps_promises(SOURCE, first + more, whole, lines=False)


def test_a_long_row_of_fences_takes_no_long_time() -> None:
    text = HEAD + user("```x\n" * 5000) + "**Tool: x**\n\n**Output:**\n```\n" * 2000 + "---\n\n## User\n" * 2000
    assert goldens.read(SOURCE, FOUND, text.encode()).all()


@pytest.mark.parametrize(
    "written",
    [
        "1/20/2026, 9:06:40 AM",
        "20/01/2026, 10:06:40",
        "20.01.2026, 10:06:40",
        "20/1/2026, 6:06:40 pm",
        "2026/1/20 18:06:40",
        "2026-01-20, 9:06:40 a.m.",
        "2026. 1. 20. 오후 6:06:40",
        "1/19/2026, 10:06:40 PM",
        "21.1.2026, 00:06",
    ],
)
def test_id_and_date_together_say_when_a_session_began(written: str) -> None:
    assert created_at(PARENT, written) == (BEGAN, "ms")


def test_of_two_ways_to_read_a_date_the_id_knows_the_right_one() -> None:
    ms = int(datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp() * 1000)
    session = f"ses_{~(ms << 12 | 1) & (1 << 48) - 1:012x}xyz"
    assert created_at(session, "4/3/2026, 12:00:00") == created_at(session, "3/4/2026, 12:00:00") == (ms, "ms")


@pytest.mark.parametrize(
    ("session", "written", "expected"),
    [
        ("ses_short", "3/4/2026, 1:00:00 PM", datetime(2026, 3, 4, tzinfo=UTC)),
        ("ses_short", "3/4/2026, 13:00:00", datetime(2026, 4, 3, tzinfo=UTC)),
        (PARENT, "5.6.2024", datetime(2024, 6, 5, tzinfo=UTC)),
        (PARENT, "today", None),
        (PARENT, "99/99/99", None),
        (PARENT, "", None),
    ],
)
def test_without_agreement_only_the_day_is_known(session: str, written: str, expected: datetime | None) -> None:
    found = created_at(session, written)
    assert found == ((int(expected.timestamp() * 1000), "day") if expected else (None, ""))
