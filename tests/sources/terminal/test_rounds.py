"""Turn rounds: the names of the first document, on top of what the readers of screens find."""

from __future__ import annotations

import re

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
    assert [lines[one.line_number].strip(" ┃") for one in first.artifacts] == [
        "Read src/parser.py",
        "Edit src/parser.py",
        "Write tests/test_parser.py",
        "$ cat notes.txt > list.txt && rm old.txt",
        "$ cat notes.txt > list.txt && rm old.txt",
    ]


def artifact_lines(text: str) -> list[tuple[str, str]]:
    """Each file that was touched, with the line that is said to name it, without its borders."""
    parser = TurnParser()
    found = [artifact for one in parser.parse(text) for artifact in one.artifacts]
    return [(artifact.file_path, parser.lines[artifact.line_number].strip(" ┃│█")) for artifact in found]


def test_a_file_of_a_command_in_several_lines_is_on_its_own_line() -> None:
    client = Boxes()
    client.ask("go")
    body = ["$ cd lib &&", "  cat a && cat b.txt &&", "  head -3 c.txt", "b.txt and c.txt are in the output, a too"]
    client.call("Shell Show a and b.txt", body)
    assert artifact_lines(text_of(client)) == [
        ("lib/a", "cat a && cat b.txt &&"),
        ("lib/b.txt", "cat a && cat b.txt &&"),
        ("lib/c.txt", "head -3 c.txt"),
    ]


def test_a_name_within_a_longer_one_does_not_name_the_file() -> None:
    client = Boxes()
    client.ask("go")
    client.call("Shell Look", ["$ cat data.txt &&", "  cat a && cat src/a.txt &&", "  cat a.txt", "ok"])
    assert artifact_lines(text_of(client)) == [
        ("data.txt", "$ cat data.txt &&"),
        ("a", "cat a && cat src/a.txt &&"),
        ("src/a.txt", "cat a && cat src/a.txt &&"),
        ("a.txt", "cat a.txt"),
    ]


def test_a_file_that_only_the_output_names_is_on_the_line_of_the_output() -> None:
    client = Boxes()
    client.ask("go")
    client.call("Shell Commit", ["$ git commit -m one", "[main 1a2b3c4] one", " create mode 100644 src/new.py"])
    assert artifact_lines(text_of(client)) == [("src/new.py", "create mode 100644 src/new.py")]


def test_a_name_that_was_wrapped_begins_on_its_first_line() -> None:
    parser = TurnParser()
    parser.lines = [
        "┃            ┃",
        "┃  $ cat x  ┃",
        "┃  /srv/lib/  ┃",
        "┃  deep/lib/par  ┃",
        "┃  ser.py  ┃",
        "┃  parser.py ┃",
    ]
    for path, line in (("/srv/lib/deep/lib/parser.py", 2), ("lib/parser.py", 5)):
        call = DrawnCall("read", "read", path=path, action="read", lines=(0, 5))
        assert [one.line_number for one in parser.artifacts(call)] == [line]


def test_files_of_a_list_are_each_on_the_line_that_names_them() -> None:
    parser = TurnParser()
    parser.lines = ["› look", "", "• Explored", "  └ Read a.py, b.py", "    Read c.py", ""]
    calls = [DrawnCall("read", "read", path=path, action="read", lines=(2, 4)) for path in ("a.py", "b.py", "c.py")]
    assert [one.line_number for call in calls for one in parser.artifacts(call)] == [3, 3, 4]


def test_a_file_that_no_line_names_is_on_the_title() -> None:
    parser = TurnParser()
    parser.lines = ["  ┃", "  ┃  Read …/parser.py ┃", "  ┃"]
    call = DrawnCall("read", "read", "Read …/other.py", path="src/other.py", action="read", lines=(0, 2))
    assert [one.line_number for one in parser.artifacts(call)] == [1]


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
