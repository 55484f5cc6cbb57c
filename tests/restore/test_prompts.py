"""Answers of models are read in any layout; unusable ones are recognised and requested once more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.llm.protocol import ChatMessage, ChatPart, Reply
from everturn.restore.prompts import (
    SESSION_HEADER,
    TURN_HEADER,
    TurnSummary,
    ask_in_form,
    reply_fault,
    session_summary,
    single_message_request,
    turn_summary,
    without_thoughts_text,
)
from tests.model_server import ModelServer, garbage
from tests.model_wires import Says
from tests.restore.shop import SUMMARY, TURNS, asker, prompt_of

PLAIN = TURNS[1]


def form(**fields: str) -> str:
    """A turn summary with some fields replaced."""
    given = {
        "User request summary": "Add tokens",
        "Agent response summary": "Edited login.py",
        "Key outcomes": "Tokens work",
        "State changes": "None",
        "Artifacts modified": "login.py",
        "Constraints/assumptions added": "None",
        "Open questions after this turn": "None",
    }
    names = {"request": "User request summary", "response": "Agent response summary", "outcomes": "Key outcomes",
             "state_changes": "State changes", "artifacts": "Artifacts modified",
             "constraints": "Constraints/assumptions added", "open_questions": "Open questions after this turn"}  # fmt: skip
    given |= {names[key]: value for key, value in fields.items()}
    return "TURN SUMMARY\n\nTurn number: 4\n" + "\n".join(f"{name}: {value}" for name, value in given.items())


def read(text: str) -> TurnSummary:
    found = turn_summary(text, 3)
    assert found is not None
    return found


def test_the_form_as_asked_for_is_read_field_by_field() -> None:
    assert turn_summary(PLAIN, 0) == TurnSummary(
        turn=0,
        request="Add refresh tokens to the login [t1 #1]",
        response="Read config.py and edited src/login.py [t1 #4]",
        outcomes=("Refresh tokens added to src/login.py [t1 #6]",),
        state_changes=(),
        artifacts=("src/login.py",),
        constraints=("Never push to main [t1 #1]",),
        open_questions=(),
    )


#: (what the model wrote for a list, what is read)
LISTS: list[tuple[str, tuple[str, ...]]] = [
    ("a.py", ("a.py",)),
    ("a.py, b.py, c.py", ("a.py", "b.py", "c.py")),
    ("a.py, b.py and c.py", ("a.py", "b.py and c.py")),
    ("a.py; b.py; c.py", ("a.py", "b.py", "c.py")),
    ("\n- a.py\n- b.py", ("a.py", "b.py")),
    ("\n  - a.py\n  - b.py", ("a.py", "b.py")),
    ("\n* a.py\n* b.py", ("a.py", "b.py")),
    ("\n+ a.py\n+ b.py", ("a.py", "b.py")),
    ("\n• a.py\n• b.py", ("a.py", "b.py")),
    ("\n•a.py\n•b.py", ("a.py", "b.py")),
    ("\n– a.py\n– b.py", ("a.py", "b.py")),
    ("\n— a.py\n— b.py", ("a.py", "b.py")),
    ("\n1. a.py\n2. b.py", ("a.py", "b.py")),
    ("\n1) a.py\n2) b.py", ("a.py", "b.py")),
    ("\n(1) a.py\n(2) b.py", ("a.py", "b.py")),
    ("\na) a.py\nb) b.py", ("a.py", "b.py")),
    ("\ni. a.py\nii. b.py", ("a.py", "b.py")),
    ("\n・a.py\n・b.py", ("a.py", "b.py")),
    ("\n① a.py\n② b.py", ("a.py", "b.py")),
    ("\n１．a.py\n２．b.py", ("a.py", "b.py")),
    ("\n一、a.py\n二、b.py", ("a.py", "b.py")),
    ("\n◦ a.py\n▪ b.py", ("a.py", "b.py")),
    ("\n- [ ] a.py\n- [x] b.py", ("a.py", "b.py")),
    ("\na.py\nb.py", ("a.py", "b.py")),
    ("1. a.py 2. b.py 3. c.py", ("a.py", "b.py", "c.py")),
    ("a.py • b.py • c.py", ("a.py", "b.py", "c.py")),
    ("a.py、b.py", ("a.py", "b.py")),
    ("[a.py, b.py]", ("a.py", "b.py")),
    ("`a.py`, `b.py`", ("a.py", "b.py")),
    ("\n- `a.py`\n- **b.py**", ("a.py", "b.py")),
    ("a.py, a.py", ("a.py",)),
    ("The following files:\n- a.py\n- b.py", ("a.py", "b.py")),
    ("\n- a.py\n\n- b.py", ("a.py", "b.py")),
    ("\n- a.py\n  which holds the login\n- b.py", ("a.py which holds the login", "b.py")),
    ("None", ()), ("none.", ()), ("N/A", ()), ("n/a", ()), ("-", ()), ("—", ()), ("", ()), ("*None*", ()),
    ("(none)", ()), ("Not explicitly stated", ()), ("\n- None", ()), ("Nothing", ()), ("No files modified", ()),
    ("No new constraints or assumptions", ()), ("Keine", ()), ("なし", ()), ("无", ()), ("нет", ()),
    ("None at this time", ()),
]  # fmt: skip


@pytest.mark.parametrize(("wrote", "expected"), LISTS)
def test_a_list_is_read_in_every_usual_form(wrote: str, expected: tuple[str, ...]) -> None:
    assert read(form(artifacts=wrote)).artifacts == expected


#: (field, what the model wrote, what is read): sentences are not taken apart.
SENTENCES: list[tuple[str, str, tuple[str, ...]]] = [
    ("outcomes", "Added tokens: login.py: line 12", ("Added tokens: login.py: line 12",)),
    ("outcomes", "Fixed at 10:42:07, see https://example.com/a?b=c", ("Fixed at 10:42:07, see https://example.com/a?b=c",)),
    ("state_changes", "Tokens are stored in PostgreSQL, not Redis", ("Tokens are stored in PostgreSQL, not Redis",)),
    ("outcomes", "The server answers, which it did not before the change", ("The server answers, which it did not before the change",)),
    ("constraints", 'Said "never, ever push" [t1 #2, #3]', ('Said "never, ever push" [t1 #2, #3]',)),
    ("outcomes", "One thing was done.\nAnother thing was done.", ("One thing was done.", "Another thing was done.")),
    ("outcomes", "A sentence that\nwas wrapped by the model", ("A sentence that was wrapped by the model",)),
    ("outcomes", "\n- Response: 200 OK\n- Files: all there", ("Response: 200 OK", "Files: all there")),
    ("outcomes", "Use the -v flag", ("Use the -v flag",)),
    ("open_questions", "Why 500? ; Who owns it?", ("Why 500?", "Who owns it?")),
    ("outcomes", "工作完成：测试通过", ("工作完成：测试通过",)),
]  # fmt: skip


@pytest.mark.parametrize(("field", "wrote", "expected"), SENTENCES)
def test_a_sentence_stays_whole_whatever_stands_in_it(field: str, wrote: str, expected: tuple[str, ...]) -> None:
    assert getattr(read(form(**{field: wrote})), field) == expected


def decorated(line: str) -> str:
    name, colon, value = line.partition(":")
    return f"**{name}**: {value}" if colon else line


#: The same summary, dressed in the ways models dress it.
DRESSES: dict[str, str] = {
    "no header": form().removeprefix("TURN SUMMARY\n\n"),
    "words before": "Sure! Here is the summary you asked for:\n\n" + form(),
    "a rule behind": form() + "\n\n---\n",
    "a fence": "```\n" + form() + "\n```",
    "a named fence": "```markdown\n" + form() + "\n```",
    "tildes": "~~~text\n" + form() + "\n~~~",
    "bold labels": "\n".join(map(decorated, form().splitlines())),
    "bold with the colon": "\n".join(decorated(one).replace("**:", ":**") for one in form().splitlines()),
    "headings": "\n".join(f"## {one.replace(': ', chr(10), 1)}" if ":" in one else one for one in form().splitlines()),
    "bulleted labels": "\n".join(f"- {one}" if ":" in one else one for one in form().splitlines()),
    "numbered labels": "\n".join(f"{n}. {one}" for n, one in enumerate(form().splitlines()[2:], 1)),
    "a quotation": "\n".join(f"> {one}" for one in form().splitlines()),
    "small letters": form().replace("Key outcomes", "key outcomes").replace("State changes", "state changes"),
    "capitals": form().replace("Key outcomes", "KEY OUTCOMES").replace("State changes", "STATE CHANGES"),
    "wide colons": form().replace(": ", "："),
    "carriage returns": form().replace("\n", "\r\n"),
    "one line": " ".join(form().split()),
    "a table": "| Field | Value |\n|---|---|\n" + "\n".join(
        "| {} | {} |".format(*one.split(": ", 1)) for one in form().splitlines() if ": " in one),
    "thoughts in tags": "<think>Turn number: 9\nKey outcomes: wrong</think>\n" + form(),
    "thoughts without a start": "I should say it is wrong.\n</think>\n" + form(),
    "thoughts aloud": "Thinking...\nKey outcomes: wrong\n...done thinking.\n\n" + form(),
    "the empty form first": "TURN SUMMARY\nTurn number: N\nUser request summary: <concise>\nKey outcomes: <what>\n\n" + form(),
    "JSON": '{"turn_number": 4, "user_request_summary": "Add tokens", "agent_response_summary": "Edited login.py", '
            '"key_outcomes": ["Tokens work"], "state_changes": [], "artifacts_modified": ["login.py"], '
            '"constraints_assumptions_added": null, "open_questions_after_this_turn": "None"}',
    "JSON with our labels": '{"Turn number": 4, "User request summary": "Add tokens", "Agent response summary": '
            '"Edited login.py", "Key outcomes": "Tokens work", "State changes": "None", "Artifacts modified": "login.py", '
            '"Constraints/assumptions added": [], "Open questions after this turn": []}',
    "JSON in a fence, wrapped": '```json\n{"turn_summary": {"request": "Add tokens", "response": "Edited login.py", '
            '"outcomes": [{"text": "Tokens work"}], "state_changes": [], "artifacts": [{"path": "login.py"}], '
            '"constraints": [], "open_questions": []}}\n```',
}  # fmt: skip


@pytest.mark.parametrize("dress", DRESSES)
def test_the_form_is_read_in_every_dress(dress: str) -> None:
    found = read(DRESSES[dress])
    assert (found.turn, found.request, found.response) == (3, "Add tokens", "Edited login.py")
    assert (found.outcomes, found.artifacts, found.state_changes) == (("Tokens work",), ("login.py",), ())
    assert not found.constraints and not found.open_questions


def test_what_is_left_out_is_told_apart_from_what_is_empty() -> None:
    found = read("User request summary: x\nAgent response summary: y\nKey outcomes: None\n")
    assert (found.outcomes, found.state_changes, found.open_questions) == ((), None, None)


def test_other_words_for_the_same_labels_are_taken_where_no_better_ones_stand() -> None:
    found = read("Request: x\nResponse: y\nOutcomes: z\nFiles: a.py, b.py\n")
    assert (found.request, found.response, found.outcomes, found.artifacts) == ("x", "y", ("z",), ("a.py", "b.py"))
    both = read(form(outcomes="done\nResponse: 200 OK"))
    assert both.response == "Edited login.py" and both.outcomes == ("done", "Response: 200 OK")


@pytest.mark.parametrize("text", [
    "", " ", "\n\n", "I am sorry, I cannot help with that.", "Sure, here is how you add refresh tokens: first …",
    "TURN SUMMARY", "Turn number: 3", "{}", "[]", "null", "{" * 5000, "Key outcomes: x", '{"a": 1}', "```\n```",
    "User request summary: None\nAgent response summary: None\nKey outcomes: None", "\x00\x01\x02", "\ud800",
])  # fmt: skip
def test_what_is_not_the_form_is_not_read_as_one(text: str) -> None:
    assert turn_summary(text, 0) is None
    assert session_summary(text) is None


@given(st.text(max_size=400))
def test_no_text_breaks_the_reading(text: str) -> None:
    turn_summary(text, 0)
    session_summary(text + "\nGoal: x\nOpen questions: y\nNext steps:" + text)
    without_thoughts_text(text)


# the session ----------------------------------------------------------------------------------------------------------
def test_the_eight_headings_are_read() -> None:
    found = session_summary(SUMMARY)
    assert found is not None
    assert list(found.sections) == [
        "session_name", "high_level_goal", "primary_task", "key_decisions", "constraints", "artifacts", "open_questions",
        "next_steps",
    ]  # fmt: skip
    assert found.sections["artifacts"] == (
        "src/login.py: edited for refresh tokens [t1 #4]",
        "config.py was read [t1 #2]",
    )
    assert found.sections["key_decisions"] == ('Tokens are stored in PostgreSQL, "not Redis" [t3 #11]',)


@pytest.mark.parametrize("text", [
    "# SESSION SUMMARY\n\n## Session name\nLogin\n\n## High-level goal\nAdd tokens [t1 #1]\n\n## Open questions\nNot explicitly stated\n",
    "**Session name:** Login\n**High-level goal:** Add tokens [t1 #1]\n**Open questions:** Not explicitly stated",
    '{"session_name": "Login", "high_level_goal": "Add tokens [t1 #1]", "open_questions": []}',
    '{"session_name": "Login", "high_level_goal": [{"text": "Add tokens", "turn": 1, "message": 1}], "open_questions": null}',
    "1. Session name: Login\n2. High-level goal: Add tokens [t1 #1]\n3. Open questions: none",
    "Session Name\n============\nLogin\nHigh-Level Goal\n---------------\nAdd tokens [t1 #1]\nOpen Questions\n--------------\nNone\n",
])  # fmt: skip
def test_the_headings_are_read_in_every_dress(text: str) -> None:
    found = session_summary(text)
    assert found is not None
    assert found.sections["session_name"] == ("Login",)
    assert found.sections["high_level_goal"] == ("Add tokens [t1 #1]",)
    assert found.sections["open_questions"] == ()


# what is no answer ----------------------------------------------------------------------------------------------------
def reply(text: str, stop: str = "end") -> Reply:
    return Reply(ChatMessage("assistant", (ChatPart("text", text),)), stop)


@pytest.mark.parametrize(("text", "stop", "why"), [
    ("", "end", "it was empty"),
    ("I'm sorry, but I can't help with that.", "end", "it refused"),
    ("anything", "refusal", "it refused"),
    ("TURN SUMM", "cut", "it was cut off"),
    ("#### 1234 %%%% 5678 &&&& 9", "end", "it was unreadable"),
    ("To add refresh tokens, first open login.py and write a function.", "end",
     "it answered the session instead of summarising it"),
])  # fmt: skip
def test_the_reason_is_told_when_an_answer_is_of_no_use(text: str, stop: str, why: str) -> None:
    assert reply_fault(reply(text, stop)) == why


def asked(script: Any) -> tuple[Any, ModelServer]:
    with ModelServer(script, strict=True) as server:
        answer = ask_in_form(
            asker(server),
            single_message_request("Summarise.", 100),
            "turn 1",
            TURN_HEADER,
            lambda text: turn_summary(text, 0),
        )
    return answer, server


def test_a_good_answer_is_asked_for_once() -> None:
    answer, server = asked([Says(PLAIN)])
    assert answer.value == turn_summary(PLAIN, 0)
    assert (answer.asked, len(server.asked)) == (1, 1)


@pytest.mark.parametrize("bad", [
    Says("I'm sorry, I can't help with that."), Says("Use a refresh token endpoint."), Says("."), garbage(),
    Says("x", stop="refusal"),
])  # fmt: skip
def test_a_bad_answer_is_asked_for_once_more_in_stricter_words(bad: Any) -> None:
    answer, server = asked([bad, Says(PLAIN)])
    assert answer.value == turn_summary(PLAIN, 0)
    assert len(server.asked) == 2
    assert "Your last answer was not usable" in prompt_of(server.asked[1])
    assert prompt_of(server.asked[1]).startswith("Summarise.")
    assert TURN_HEADER in prompt_of(server.asked[1])


def test_after_the_second_bad_answer_the_reason_is_given() -> None:
    answer, server = asked([Says("Use a refresh token endpoint."), Says("I refuse."), Says(PLAIN)])
    assert answer.value is None
    assert len(server.asked) == 2
    assert answer.why.startswith("the model was asked twice and gave no usable answer: ")


def test_an_answer_that_was_too_long_is_asked_for_again_and_what_is_whole_of_it_is_taken() -> None:
    half = PLAIN.partition("Constraints")[0] + "Constraints/assump"
    answer, server = asked([Says(half, stop="length"), Says(half, stop="length")])
    assert len(server.asked) == 2 and answer.was_cut
    assert answer.value.artifacts == ("src/login.py",) and answer.value.constraints is None


def test_the_headers_are_those_of_the_forms() -> None:
    assert (TURN_HEADER, SESSION_HEADER) == ("TURN SUMMARY", "SESSION SUMMARY")
