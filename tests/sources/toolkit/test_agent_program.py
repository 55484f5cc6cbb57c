"""Parts shared by the writers of native sessions: tools by other names, images of any format, repeatable ids."""

from __future__ import annotations

import pytest

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.sources.toolkit.agent_program import NativeTool, dashed_id, fit_name, line, pictures, tell_call, uuid_of

TOOLS = {
    "shell": NativeTool("run", {"command": "cmd"}, {"why": ""}),
    "edit": NativeTool("change", {"path": "file", "old": "before", "new": "after"}),
}


def test_a_call_gets_the_name_and_the_arguments_of_the_tool_that_does_the_same() -> None:
    call = CallStart("a", "Edit", "edit", "x.py", input={"file_path": "x.py", "old_string": "a", "new_string": "b"})
    assert tell_call(call, TOOLS) == ("change", {"file": "x.py", "before": "a", "after": "b"})


def test_what_the_other_tool_has_no_word_for_stays_beside() -> None:
    call = CallStart("a", "Bash", "shell", command="ls", input={"command": "ls", "timeout": 5})
    assert tell_call(call, TOOLS) == ("run", {"why": "", "timeout": 5, "cmd": "ls"})


def test_a_command_given_word_by_word_is_told_as_it_ran() -> None:
    call = CallStart("a", "shell", "shell", command="ls -l", input={"command": ["bash", "-lc", "ls -l"]})
    assert tell_call(call, TOOLS)[1]["cmd"] == "ls -l"


@pytest.mark.parametrize(
    "call",
    [
        CallStart("a", "KillShell", "shell", input={"shell_id": "7"}),
        CallStart("a", "MultiEdit", "edit", "x", input={"file_path": "x", "edits": []}),
        CallStart("a", "mcp__jira__find", "other", input={"q": "x"}),
    ],
)
def test_a_call_that_no_tool_does_stays_what_it_was(call: CallStart) -> None:
    assert tell_call(call, TOOLS) == (call.name, call.input)


def test_arguments_that_are_no_object_are_put_into_one() -> None:
    assert tell_call(CallStart("a", "apply_patch", "edit", input="*** Begin Patch"), TOOLS)[1] == {
        "input": "*** Begin Patch"
    }
    assert tell_call(CallStart("a", "now", "other"), TOOLS)[1] == {}


def test_a_name_that_no_provider_takes_is_made_to_fit() -> None:
    assert fit_name('a "b"\nc') == "a__b__c"
    assert len(fit_name("x" * 300)) == 64
    assert fit_name("") == "tool"


@pytest.mark.parametrize(
    "data",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
        {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
        {"inlineData": {"mimeType": "image/png", "data": "QQ=="}},
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QQ=="},
    ],
)
def test_an_image_is_found_in_every_format(data: dict[str, object]) -> None:
    (own,) = pictures(Block("image", data=data))
    (held,) = pictures(Block("result", result=CallEnd("a"), data={"content": [{"type": "text", "text": "x"}, data]}))
    assert own is not None and own == held and own.address == "data:image/png;base64,QQ=="


def test_an_image_that_is_only_linked_is_none() -> None:
    assert list(pictures(Block("image", data={"type": "image", "source": {"type": "url", "url": "https://x"}}))) == [
        None
    ]
    assert list(pictures(Block("result", "text", result=CallEnd("a"), data={"content": "text"}))) == []


def test_ids_follow_from_words_and_have_the_form_of_their_kind() -> None:
    assert uuid_of("a", 1) == uuid_of("a", 1) != uuid_of("a", 2)
    assert uuid_of("a", 1)[14] == dashed_id("f" * 32, 0)[14] == "4"


def test_half_a_surrogate_pair_does_not_stop_a_line() -> None:
    assert line({"text": "\ud83d"}).endswith(b"\n")


def test_an_agent_that_sessions_can_be_written_for_can_go_on_with_them() -> None:
    writable = [source for source in all_sources().values() if source.native is not None]
    assert writable
    for source in writable:
        assert source.native is not None and source.native.begin is not None
        assert source.resume_command is not None
        name = source.native.name("0123456789abcdef" * 2, 1_800_000_000_000)
        assert name != source.native.name("fedcba9876543210" * 2, 1_800_000_000_000)
        assert name in source.resume_command(name)


def test_places_are_given_not_looked_up() -> None:
    from pathlib import Path

    from everturn.sources.contract import NewSession

    written = [source.native for source in all_sources().values() if source.native is not None]
    assert written
    for native in written:
        new = NewSession(native.name("0" * 32, 1), "/home/ann/shop", 1)
        path = native.place(SearchPlaces(Path("/nowhere"), {}, "linux"), new)
        assert not path.is_absolute() or path.is_relative_to("/nowhere")


GREP = CallStart("a", "Grep", "search", input={"pattern": "x y", "path": "src", "glob": "*.py"})
CALLS = {
    "read": CallStart("a", "Read", "read", "a b.py", input={"file_path": "a b.py", "offset": 3, "limit": 2}),
    "grep": GREP,
    "glob": CallStart("a", "Glob", "search", input={"pattern": "**/*.py", "path": "src"}),
    "list": CallStart("a", "list_directory", "read", input={"path": "src"}),
    "edit": CallStart("a", "Edit", "edit", "x", input={"file_path": "x", "old_string": "a\nb", "new_string": "c"}),
    "create": CallStart("a", "Write", "create", "x", input={"file_path": "x", "content": "c\n"}),
}


def test_an_agent_that_has_only_a_shell_gets_commands_with_the_same_effect() -> None:
    from everturn.sources.codex.program import TOOLS as shell

    told = {kind: tell_call(call, shell) for kind, call in CALLS.items()}
    assert {name for name, _ in told.values()} == {"exec_command"}
    commands = {kind: given["cmd"] for kind, (_, given) in told.items()}
    assert commands["read"] == "sed -n '3,4p' 'a b.py'"
    assert commands["grep"] == "rg -n -g '*.py' -e 'x y' src"
    assert commands["glob"] == "rg --files -g '**/*.py' src"
    assert commands["list"] == "ls src"
    assert "*** Update File: x\n@@\n-a\n-b\n+c\n*** End Patch" in commands["edit"]
    assert "*** Add File: x\n+c\n*** End Patch" in commands["create"]


def test_searches_and_lists_have_a_counterpart_in_every_agent() -> None:
    natives = [source.native for source in all_sources().values() if source.native is not None]
    assert len(natives) >= 4
    for native in natives:
        assert native.offers is not None
        assert all(native.offers(call) for call in CALLS.values())
        assert not native.offers(CallStart("a", "mcp__jira__find", "other", input={"q": "x"}))
        assert not native.offers(CallStart("a", "TodoWrite", "plan", input={"todos": []}))
