"""Settings files of agents: ours goes in and comes out, and nothing of the user's is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from everturn.capture.process_lock import process_lock
from everturn.install import settings_file
from everturn.install.plan import (
    InstallRecord,
    carry_out,
    plan_install,
    plan_uninstall,
    read_record,
    record_name,
    records,
    take_out,
)
from everturn.install.service import service_for
from everturn.install.settings_file import apply_entries, undo_entries
from everturn.sources.contract import (
    Edit,
    InstallPrograms,
    JsonSetting,
    OwnFile,
    SearchPlaces,
    Source,
    TomlSection,
    all_sources,
)

SOURCES = [source for source in all_sources().values() if source.install is not None]
PROGRAMS = InstallPrograms(
    ("/opt/our tools/everturn-hook",), ("/opt/our tools/everturn",), {"EVERTURN_HOME": "/srv/ev"}
)
JSONC = '// mine\n{\n\t"theme": "dark", // not light\n\t"mcp": {"other": {"command": ["x"]}},\n}\n'
HOOK = {"hooks": [{"type": "command", "command": "everturn-hook"}]}


def install(folder: Path, edits: list[Edit], name: str = "some", options: tuple[str, ...] = ()) -> int:
    """How many files were changed."""
    plan = plan_install(edits, read_record(folder, name), folder)
    if plan.work:
        carry_out(plan, InstallRecord(name, 1, options=options), folder)
    return len(plan.work)


def uninstall(folder: Path, name: str = "some") -> None:
    record = read_record(folder, name)
    assert record is not None
    take_out(plan_uninstall(record, folder), record, folder)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def folders(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


def edits_of(
    source: Source, home: Path, project: Path | None = None, programs: InstallPrograms = PROGRAMS
) -> list[Edit]:
    assert source.install is not None
    return list(source.install.edits(SearchPlaces(home, {}, "linux"), project, programs))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "installed"


# every agent ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("in_project", [False, True])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_what_is_installed_is_gone_without_a_trace_afterwards(
    source: Source, in_project: bool, home: Path, kept: Path
) -> None:
    project = home / "work" if in_project else None
    for theirs in (edit for edit in edits_of(source, home, project) if not isinstance(edit, OwnFile)):
        theirs.path.parent.mkdir(parents=True, exist_ok=True)
        theirs.path.write_text(JSONC if isinstance(theirs, JsonSetting) else '# mine\nmodel = "m"\n[a]\nb = 1', "utf-8")
    before = files(home), folders(home)
    wanted = edits_of(source, home, project)
    assert install(kept, wanted) > 0
    assert install(kept, wanted) == 0, "the second time there is nothing to do"
    for edit in wanted:
        _holds(edit)
    uninstall(kept)
    assert (files(home), folders(home)) == before
    assert records(kept) == []


def _holds(edit: Edit) -> None:
    if isinstance(edit, JsonSetting) and edit.only_new:
        return  # the file was there
    text = edit.path.read_text("utf-8")
    if isinstance(edit, JsonSetting):
        value = settings_file.value_at(text, edit.at)
        assert edit.value in value if edit.item else value == edit.value
        assert "// not light" in text
    elif isinstance(edit, TomlSection):
        assert tomllib.loads(text)["model"] == "m" and edit.text in text
    else:
        assert text == edit.text


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_file_that_went_on_changing_keeps_its_changes_and_loses_ours(source: Source, home: Path, kept: Path) -> None:
    project = home / "work"
    install(kept, edits_of(source, home, project))
    touched = []
    for edit in edits_of(source, home, project):
        if isinstance(edit, JsonSetting) and edit.path not in touched:
            edit.path.write_text(settings_file.put_entry(edit.path.read_text("utf-8"), ("new",), "theirs"), "utf-8")
            touched.append(edit.path)
        elif isinstance(edit, TomlSection):
            edit.path.write_text(f'model = "m"\n{edit.path.read_text("utf-8")}\n[after]\nx = 1\n', "utf-8")
            touched.append(edit.path)
    uninstall(kept)
    left = files(home)
    assert sorted(left) == sorted(str(path.relative_to(home)) for path in touched)
    assert not any(b"everturn" in data for data in left.values()), left


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_program_is_named_by_its_full_path_and_finds_the_archive_from_anywhere(
    source: Source, home: Path
) -> None:
    said = "".join(str(getattr(edit, "value", "") or getattr(edit, "text", "")) for edit in edits_of(source, home))
    assert "/opt/our tools/everturn-hook" in said and ("'mcp'" in said or '"mcp"' in said)
    assert "EVERTURN_HOME" in said and "/srv/ev" in said
    for word in ("--hints", "--where-you-were", "--statusline"):
        assert word not in said, "off unless the user turns it on"
    full = InstallPrograms(("/h",), ("/e",), {}, where=True, hints=True)
    told = "".join(str(edit) for edit in edits_of(source, home, None, full))
    assert "--hints" in told and "--where-you-were" in told and "--with" not in told


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_the_three_commands_and_the_skill_are_there(source: Source, home: Path) -> None:
    names = {str(edit.path.relative_to(home)).lower() for edit in edits_of(source, home) if isinstance(edit, OwnFile)}
    for word in ("recall", "restore", "handoff", "skill.md"):
        assert any(word in name for name in names), names


# what the user wrote --------------------------------------------------------------------------------------------------
def test_another_file_or_entry_in_our_place_is_left_alone_and_told(home: Path, kept: Path) -> None:
    (home / "recall.md").write_text("my own command", "utf-8")
    (home / "s.json").write_text('{"mcp": {"everturn": "mine"}}', "utf-8")
    (home / "c.toml").write_text('[mcp_servers.everturn]\ncommand = "mine"\n', "utf-8")
    before = files(home)
    edits: list[Edit] = [
        OwnFile(home / "recall.md", "ours"),
        JsonSetting(home / "s.json", ("mcp", "everturn"), {"a": 1}),
        TomlSection(home / "c.toml", '[mcp_servers.everturn]\ncommand = "ours"'),
    ]
    plan = plan_install(edits, None, kept)
    assert plan.work == [] and len(plan.refused) == 3
    carry_out(plan, InstallRecord("some", 1), kept)
    uninstall(kept)
    assert files(home) == before


@pytest.mark.parametrize("text", ["{broken", '{"hooks": 5}', '["a"]', "\x00"])
def test_a_file_that_is_not_understood_is_not_touched(text: str, home: Path, kept: Path) -> None:
    path = home / "hooks.json"
    path.write_text(text, "utf-8")
    plan = plan_install([JsonSetting(path, ("hooks", "Stop"), HOOK, item=True)], None, kept)
    assert plan.work == [] and len(plan.refused) == 1
    path.write_bytes(b'{"a": "\xff"}')
    assert plan_install([JsonSetting(path, ("a", "b"), 1)], None, kept).work == []


def test_a_newer_installation_replaces_the_older_and_gives_back_what_was_before_both(home: Path, kept: Path) -> None:
    path = home / "s.json"
    path.write_text('{"theirs": [1,2]}', "utf-8")
    old: list[Edit] = [
        JsonSetting(path, ("hooks", "Stop"), {"command": "/old/hook"}, item=True),
        OwnFile(home / "a.md", "old"),
    ]
    install(kept, old)
    new: list[Edit] = [
        JsonSetting(path, ("hooks", "Stop"), {"command": "/new/hook"}, item=True),
        OwnFile(home / "b.md", "new"),
    ]
    install(kept, new, options=("hints",))
    assert b"/old" not in path.read_bytes() and not (home / "a.md").exists()
    assert [record.options for record in records(kept)] == [("hints",)]
    uninstall(kept)
    assert files(home) == {"s.json": b'{"theirs": [1,2]}'}


def test_links_modes_and_line_ends_stay(home: Path, kept: Path) -> None:
    real = home / "dotfiles" / "s.json"
    real.parent.mkdir()
    real.write_bytes(b'{\r\n  "a": 1\r\n}\r\n')
    real.chmod(0o600)
    link = home / "s.json"
    link.symlink_to(real)
    install(kept, [JsonSetting(link, ("b",), {"c": [1]})])
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o600
    assert b"\n" not in real.read_bytes().replace(b"\r\n", b"")
    uninstall(kept)
    assert link.is_symlink() and real.read_bytes() == b'{\r\n  "a": 1\r\n}\r\n'


def test_what_was_there_before_is_kept_for_nobody_else_to_read(home: Path, kept: Path) -> None:
    (home / "s.json").write_text('{"token": "secret"}', "utf-8")
    install(kept, [JsonSetting(home / "s.json", ("b",), 1)])
    copies = [path for path in kept.rglob("*") if path.is_file()]
    assert b'{"token": "secret"}' in [path.read_bytes() for path in copies]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copies} == {0o600}


def test_what_could_not_be_written_to_the_end_can_be_taken_out(home: Path, kept: Path) -> None:
    names = ("a.md", "file/b.md", "c.md")
    plan = plan_install([OwnFile(home / name, "ours") for name in names], None, kept)
    (home / "file").write_text("came in the way", "utf-8")
    carry_out(plan, InstallRecord("some", 1), kept)
    assert [path for path, _ in plan.refused] == [str(home / "file" / "b.md")]
    assert (home / "a.md").exists() and (home / "c.md").exists()
    (home / "file").unlink()
    uninstall(kept)
    assert files(home) == {}


def test_a_file_that_could_not_be_updated_is_still_taken_out(home: Path, kept: Path) -> None:
    path, blocker = home / "s.json", home / ".s.json.everturn-part"
    path.write_text('{"a": 1}', "utf-8")
    install(kept, [JsonSetting(path, ("b",), 1)])
    (blocker / "in-the-way").mkdir(parents=True)
    plan = plan_install([JsonSetting(path, ("b",), 2)], read_record(kept, "some"), kept)
    carry_out(plan, InstallRecord("some", 2), kept)
    assert plan.refused and json.loads(path.read_bytes()) == {"a": 1, "b": 1}
    (blocker / "in-the-way").rmdir()
    blocker.rmdir()
    uninstall(kept)
    assert files(home) == {"s.json": b'{"a": 1}'}


def test_where_no_file_could_be_written_nothing_is_installed(home: Path, kept: Path) -> None:
    plan = plan_install([OwnFile(home / "file" / "b.md", "ours")], None, kept)
    (home / "file").write_text("came in the way", "utf-8")
    carry_out(plan, InstallRecord("some", 1), kept)
    assert plan.refused and records(kept) == []


def test_a_file_that_was_changed_while_the_person_was_asked_is_not_overwritten(home: Path, kept: Path) -> None:
    path = home / "s.json"
    path.write_text('{"a": 1}', "utf-8")
    plan = plan_install([OwnFile(home / "a.md", "ours"), JsonSetting(path, ("b",), 1)], None, kept)
    path.write_text('{"a": 2}', "utf-8")
    with pytest.raises(OSError, match="changed meanwhile"):
        carry_out(plan, InstallRecord("some", 1), kept)
    assert files(home) == {"s.json": b'{"a": 2}'}
    install(kept, [JsonSetting(path, ("b",), 1)])
    record = read_record(kept, "some")
    assert record is not None
    plan = plan_uninstall(record, kept)
    path.write_text('{"a": 3, "b": 1}', "utf-8")
    with pytest.raises(OSError, match="changed meanwhile"):
        take_out(plan, record, kept)
    uninstall(kept)
    assert json.loads(path.read_bytes()) == {"a": 3}


def test_one_process_at_a_time_installs(home: Path, kept: Path) -> None:
    plan = plan_install([OwnFile(home / "a.md", "ours")], None, kept)
    with process_lock(kept / "lock"), pytest.raises(OSError, match="another process is installing"):
        carry_out(plan, InstallRecord("some", 1), kept)
    assert files(home) == {} and records(kept) == []
    carry_out(plan, InstallRecord("some", 1), kept)
    assert files(home) == {"a.md": b"ours"}


#: A process that is killed right before it puts the file with this number into its place.
KILLED = """
import os, pathlib, signal, sys
from everturn.install.plan import InstallRecord, carry_out, plan_install, plan_uninstall, read_record, take_out
from everturn.sources.contract import JsonSetting, OwnFile
home, kept, command, last = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
left = [last]
def counted(real):
    def call(*given, **more):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return real(*given, **more)
    return call
os.replace, os.unlink = counted(os.replace), counted(os.unlink)
edits = [
    JsonSetting(home / "s.json", ("hooks", "Stop"), {"command": command}, item=True),
    OwnFile(home / "new" / f"{command}.md", command),
    JsonSetting(home / "t.json", ("mcp", "everturn"), {"command": command}),
]
earlier = read_record(kept, "some")
if command == "out":
    take_out(plan_uninstall(earlier, kept), earlier, kept)
else:
    carry_out(plan_install(edits, earlier, kept), InstallRecord("some", 1), kept)
"""
THEIRS = {"s.json": b'{"theirs": [1,2]}', "t.json": b'{\n  "mcp": {}\n}\n'}


def killed(home: Path, kept: Path, command: str, last: int) -> bool:
    """Whether it was killed before it was done."""
    words = [sys.executable, "-c", KILLED, str(home), str(kept), command, str(last)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.skipif(os.name == "nt", reason="processes are killed otherwise there")
@pytest.mark.parametrize("begun", ["first", "again", "out"])
def test_an_installation_that_was_killed_anywhere_is_completed_or_undone(begun: str, tmp_path: Path) -> None:
    number, was_killed = 0, True
    while was_killed:
        ends = []
        for way in ("complete", "undo"):
            home, kept = tmp_path / f"{number}-{way}" / "home", tmp_path / f"{number}-{way}" / "installed"
            home.mkdir(parents=True)
            for name, data in THEIRS.items():
                (home / name).write_bytes(data)
            if begun != "first":
                assert not killed(home, kept, "old", 99)
            was_killed = killed(home, kept, "out" if begun == "out" else "new", number)
            if way == "complete":
                killed(home, kept, "newest", 99)
                left = {name: data for name, data in files(home).items() if b"old" in data or b'"new"' in data}
                assert left == {}, (number, left)
                ends.append(sorted(files(home)))
            if read_record(kept, "some") is not None:
                uninstall(kept)
            assert files(home) == THEIRS, (number, way)
            assert folders(home) == set(), (number, way)
        assert ends == [["new/newest.md", "s.json", "t.json"]]
        number += 1
    assert number > 3


def test_a_link_that_leads_out_of_a_project_is_not_followed(home: Path, kept: Path) -> None:
    project, outside = home / "project", home / "outside"
    project.mkdir()
    outside.mkdir()
    (project / ".agent").symlink_to(outside)
    (project / "s.json").symlink_to(home / "elsewhere.json")
    edits: list[Edit] = [
        OwnFile(project / ".agent" / "a.md", "ours"),
        JsonSetting(project / "s.json", ("b",), 1),
        OwnFile(project / "c.md", "ours"),
    ]
    plan = plan_install(edits, None, kept, project)
    assert [change.path.name for change in plan.work] == ["c.md"]
    assert [why for _, why in plan.refused] == ["a link leads out of the project; it is left as it is"] * 2


def test_projects_have_records_of_their_own() -> None:
    names = {record_name("x", None), record_name("x", Path("/a")), record_name("x", Path("/b"))}
    assert len(names) == 3 and all(name.partition("@")[0] == "x" for name in names)


_PARTS = st.sampled_from(["a", "b", "hooks"])
_EDITS = st.lists(
    st.builds(
        lambda at, value, item: JsonSetting(Path("s"), at, {"ours": value}, item),
        st.lists(_PARTS, min_size=1, max_size=3).map(tuple),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=4,
)
_THEIRS: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(_PARTS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(_PARTS, _THEIRS, max_size=3), _EDITS)
def test_taking_out_gives_back_what_the_file_said(theirs: dict[str, Any], edits: list[JsonSetting]) -> None:
    text = json.dumps(theirs, indent=2)
    try:
        changed, entries, _ = apply_entries(text, edits)
    except ValueError:
        reject()  # hypothesis fails the test if too few of the files can be changed
    assert json.loads(undo_entries(changed, entries)) == theirs


# the service ----------------------------------------------------------------------------------------------------------
def test_a_service_for_each_platform(tmp_path: Path) -> None:
    import plistlib
    from xml.etree import ElementTree

    words, env = ("/opt/a b/everturn",), {"EVERTURN_HOME": "/srv/50%"}
    unit = service_for(SearchPlaces(tmp_path, {}, "linux"), words, env, tmp_path)
    assert unit.file.path == tmp_path / ".config" / "systemd" / "user" / "everturn.service"
    assert 'ExecStart="/opt/a b/everturn" "sync" "--watch"\nEnvironment="EVERTURN_HOME=/srv/50%%"\n' in unit.file.text
    assert unit.start[-1][:4] == ("systemctl", "--user", "enable", "--now")
    agent = service_for(SearchPlaces(tmp_path, {}, "darwin"), words, env, tmp_path, user=501)
    assert agent.start[-1][-1].endswith(f"launchctl bootstrap gui/501 {agent.file.path}")
    assert agent.stop == (("launchctl", "bootout", "gui/501/org.everturn.sync"),)
    told = plistlib.loads(agent.file.text.encode())
    assert told["ProgramArguments"] == ["/opt/a b/everturn", "sync", "--watch"]
    assert told["EnvironmentVariables"] == env and told["RunAtLoad"] is True
    task = service_for(SearchPlaces(tmp_path, {}, "win32"), words, env, tmp_path)
    assert task.stop[0][0] == "schtasks"
    tree = {node.tag.rpartition("}")[2]: node.text for node in ElementTree.fromstring(task.file.text).iter()}
    assert (tree["Command"], tree["Arguments"]) == (
        "cmd.exe",
        '/d /v:off /s /c "set "EVERTURN_HOME=/srv/50%"&& "/opt/a b/everturn" sync --watch"',
    )
    plain = service_for(SearchPlaces(tmp_path, {}, "win32"), words, {}, tmp_path)
    tree = {node.tag.rpartition("}")[2]: node.text for node in ElementTree.fromstring(plain.file.text).iter()}
    assert (tree["Command"], tree["Arguments"]) == ("/opt/a b/everturn", "sync --watch")


def test_on_windows_a_hook_is_run_without_a_shell_where_the_agent_can(home: Path) -> None:
    from everturn.sources.toolkit.agent_program import hook_groups

    for platform, takes_words in (("win32", True), ("win32", False), ("linux", True)):
        places = SearchPlaces(home, {}, platform)
        [(_, group)] = hook_groups(PROGRAMS, places, {"Stop": ("--drain",)}, 10, takes_words)
        (hook,) = group["hooks"]
        if platform == "win32" and takes_words:
            assert (hook["command"], hook["args"]) == (PROGRAMS.hook[0], ["--with", "EVERTURN_HOME=/srv/ev", "--drain"])
        else:
            assert "args" not in hook and hook["command"].endswith("--drain")


@pytest.mark.skipif(os.name == "nt", reason="the platform has other quotes")
def test_a_word_with_a_blank_stays_one_word_in_the_line_of_a_hook(home: Path) -> None:
    import shlex

    from everturn.sources.toolkit.agent_program import command_line

    line = command_line(PROGRAMS, SearchPlaces(home, {}, "linux"), "--drain")
    assert shlex.split(line) == ["/opt/our tools/everturn-hook", "--with", "EVERTURN_HOME=/srv/ev", "--drain"]


@pytest.mark.parametrize("again", [False, True])
def test_an_edited_file_of_ours_is_kept_beside(tmp_path: Path, again: bool) -> None:
    home, kept = tmp_path / "home", tmp_path / "kept"
    command = home / "commands" / "recall.md"
    install(kept, [OwnFile(command, "ours")])
    command.write_text("ours, with my notes", "utf-8")
    (home / "commands" / "recall.md.kept").write_text("older notes", "utf-8")
    if again:
        install(kept, [OwnFile(command, "ours, newer")])
        assert command.read_text("utf-8") == "ours, newer"
    uninstall(kept)
    assert files(home) == {
        "commands/recall.md.kept": b"older notes",
        "commands/recall.md.kept-2": b"ours, with my notes",
    }


@pytest.mark.parametrize("is_project", [False, True])
def test_a_link_that_leads_elsewhere_now_is_not_followed(tmp_path: Path, is_project: bool) -> None:
    project, kept, foreign = tmp_path / "project", tmp_path / "kept", tmp_path / "foreign"
    project.mkdir()
    install(kept, [OwnFile(project / ".agent" / "recall.md", "ours")])
    record = read_record(kept, "some")
    assert record is not None
    if is_project:  # a record of an older everturn, which does not have the real paths
        old = tuple(msgspec.structs.replace(file, real="") for file in record.files)
        record = msgspec.structs.replace(record, project=str(project), files=old)
    (project / ".agent").rename(foreign)
    (project / ".agent").symlink_to(foreign)
    plan = plan_uninstall(record, kept)
    take_out(plan, record, kept)
    assert files(foreign) == {"recall.md": b"ours"}
    assert [path for path, _ in plan.refused] == [str(project / ".agent" / "recall.md")]
