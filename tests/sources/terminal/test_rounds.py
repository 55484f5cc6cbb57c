"""Turn rounds: the names of the first document, on top of what the readers of screens find."""

from __future__ import annotations

import re
from pathlib import Path

from everturn.sources.terminal import rounds
from everturn.sources.terminal.rounds import ArtifactAction, TurnParser, TurnRound
from everturn.sources.terminal.transcript import DrawnCall
from tests.sources.terminal.drawing import plain
from tests.sources.terminal.screens import Boxes


def text_of(client: Boxes) -> str:
    """The conversation a client stands at, without colours."""
    return "\n".join(plain(row).rstrip() for block in client.blocks for row in [*block.visible(), []])


def session() -> Boxes:
    """Several messages before an answer, several calls, files of all three kinds."""
    client = Boxes()
    client.ask("fix the parser")
    client.ask("and its tests")
    client.answer("I will look first.")
    client.call("Read src/parser.py", ["import re"])
    client.call("Edit src/parser.py", ["   1 - import re", "   1 + import regex"])
    client.call("Write tests/test_parser.py", ["def test(): ..."])
    client.call("Shell Save the list", ["$ cat notes.txt > list.txt && rm old.txt", "ok"])
    client.answer("Done.")
    client.ask("thanks")
    client.answer("You are welcome.")
    return client


def test_messages_in_a_row_are_one_round_with_all_that_followed() -> None:
    first, second = TurnParser().parse(text_of(session()))
    assert (first.turn_number, first.user_messages) == (1, ["fix the parser", "and its tests"])
    assert first.agent_responses[0] == "I will look first."
    assert first.agent_responses[-1] == "Done."
    assert (second.turn_number, second.user_messages, second.agent_responses) == (2, ["thanks"], ["You are welcome."])


def test_a_round_points_into_the_clean_transcript() -> None:
    text = text_of(session())
    lines = text.split("\n")
    for found in TurnParser().parse(text):
        assert found.raw_lines == lines[found.start_line_index : found.end_line_index + 1]
        assert found.user_messages[0] in "\n".join(found.raw_lines)
    first, second = TurnParser().parse(text)
    assert first.end_line_index < second.start_line_index


def test_files_of_all_three_kinds_are_found_where_they_were_touched() -> None:
    text = text_of(session())
    lines = text.split("\n")
    first, second = TurnParser().parse(text)
    assert [(one.action_type, one.file_path) for one in first.artifacts] == [
        ("read", "src/parser.py"),
        ("edited", "src/parser.py"),
        ("created", "tests/test_parser.py"),
        ("read", "notes.txt"),
        ("created", "list.txt"),
    ]
    assert second.artifacts == []
    for one in first.artifacts[:3]:
        assert Path(one.file_path).name in "\n".join(lines[one.line_number : one.line_number + 3])


def test_a_description_of_a_shell_command_is_no_file() -> None:
    client = Boxes()
    client.ask("go")
    client.call("Shell Check where module-forge is", ["$ which module-forge", "/usr/bin/module-forge"])
    (found,) = TurnParser().parse(text_of(client))
    assert found.artifacts == []


def test_lines_that_only_say_that_the_agent_works_are_no_response() -> None:
    text = "  ┃  go              ┃\n  ┃  ada (01:00 PM)  ┃\n\n     Generating...\n     Build m-1 (01:00 PM)\n"
    (found,) = TurnParser().parse(text)
    assert found.agent_responses == []


def test_a_round_that_fails_is_reported_and_the_others_go_on() -> None:
    class Careless(TurnParser):
        def artifacts(self, call: DrawnCall) -> list[ArtifactAction]:
            if call.kind == "edit":
                raise RuntimeError("no disk")
            return super().artifacts(call)

    parser = Careless()
    found = parser.parse(text_of(session()))
    assert [one.user_messages for one in found] == [["thanks"]]
    assert parser.problems == ["turn 1 could not be read: RuntimeError: no disk"]


def test_nothing_gives_no_rounds() -> None:
    assert TurnParser().parse("") == []
    assert TurnParser().parse("just some text\n") == []


def test_the_documents_constants_are_there_as_it_gives_them() -> None:
    assert re.search(rounds.USER_MESSAGE_PATTERN, "┃  hello there  ┃")
    assert re.search(rounds.USERNAME_TIMESTAMP_PATTERN, "ada (02:36 PM)")
    assert re.search(rounds.AGENT_WORKING_PATTERN, "Generating...")
    assert re.findall(rounds.READ_FILE_PATTERN, "Read src/a.py") == ["src/a.py"]
    assert re.findall(rounds.EDIT_FILE_PATTERN, "Edit src/a.py") == ["src/a.py"]
    limits = rounds.MAX_EVIDENCE_SEARCHES, rounds.SEARCH_CONTEXT_LINES, rounds.SEARCH_PATTERN_MAX_LENGTH
    assert limits == (8, 3, 200)
    assert list(TurnRound.__dataclass_fields__) == [
        "turn_number",
        "user_messages",
        "agent_responses",
        "raw_lines",
        "start_line_index",
        "end_line_index",
        "artifacts",
    ]
