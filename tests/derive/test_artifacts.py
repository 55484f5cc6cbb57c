"""Which files a call touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.artifacts import touched_files
from everturn.model.conversation import CallEnd, CallStart


def by_shell(command: str, output: str = "", **end: object) -> list[tuple[str, str]]:
    return touched_files(CallStart("c", "Run", "shell", command=command), CallEnd("c", **end), output)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "action"), [("read", "read"), ("edit", "edited"), ("create", "created"), ("delete", "deleted")]
)
def test_a_file_tool_touches_its_file(kind: str, action: str) -> None:
    call = CallStart("c", "Tool", kind, path="src/a.py")
    assert touched_files(call, CallEnd("c"), "") == [(action, "src/a.py")]


def test_the_result_knows_better_than_the_call() -> None:
    call = CallStart("c", "Write", "create", path="a.py")
    assert touched_files(call, CallEnd("c", action="edited", path="/x/a.py"), "") == [("edited", "/x/a.py")]
    assert touched_files(CallStart("c", "Odd", "other"), CallEnd("c", action="created", path="n.ipynb"), "") == [
        ("created", "n.ipynb")
    ]


def test_a_call_may_touch_several_files() -> None:
    end = CallEnd("c", action="edited", path="a.py", others=(("created", "b.py"), ("deleted", "c.py")))
    found = touched_files(CallStart("c", "patch", "edit", path="a.py"), end, "")
    assert found == [("edited", "a.py"), ("created", "b.py"), ("deleted", "c.py")]


def test_a_call_that_failed_touched_nothing() -> None:
    assert touched_files(CallStart("c", "Edit", "edit", path="a.py"), CallEnd("c", is_error=True), "") == []
    assert by_shell("rm a", is_error=True) == []
    assert by_shell("rm a", exit_status=1) == []


@pytest.mark.parametrize("kind", ["search", "fetch", "task", "plan", "ask", "recall", "other"])
def test_other_tools_touch_no_file(kind: str) -> None:
    assert touched_files(CallStart("c", "T", kind, path="a.py"), CallEnd("c"), "rm 'x'") == []


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("rm -rf a 'b c'", [("deleted", "a"), ("deleted", "b c")]),
        ("rm -- -a", [("deleted", "-a")]),
        ("git rm -q old.py", [("deleted", "old.py")]),
        ("mv a.py b.py", [("deleted", "a.py"), ("created", "b.py")]),
        ("git mv a.py src/", [("deleted", "a.py"), ("created", "src/a.py")]),
        ("mv a.py src", [("deleted", "a.py")]),
        ("mv a b", [("deleted", "a"), ("created", "b")]),
        ("cp a.py b.py", [("created", "b.py")]),
        ("cp x/a.py y/b.py dst", [("created", "dst/a.py"), ("created", "dst/b.py")]),
        ("cp a.py .", [("created", "./a.py")]),
        ("touch a b", [("created", "a"), ("created", "b")]),
        ("echo hi > a.txt && echo ho >> a.txt", [("created", "a.txt")]),
        ("sort a.txt | tee -a names.txt", [("read", "a.txt"), ("created", "names.txt")]),
        ("cat a.py | head -n 5", [("read", "a.py")]),
        ("head -20 a; tail -n +3 b; head -c 10 c", [("read", "a"), ("read", "b"), ("read", "c")]),
        ("sed -n '1,5p' a.py b.py", [("read", "a.py"), ("read", "b.py")]),
        ("cat > a.py <<'EOF'\nrm b\ncat > c\nEOF", [("created", "a.py")]),
        ("cat a > b", [("read", "a"), ("created", "b")]),
        ("cd sub && rm a /abs/b ~/c", [("deleted", "sub/a"), ("deleted", "/abs/b"), ("deleted", "~/c")]),
        ("cd a && cd b/ && touch ./c", [("created", "a/b/c")]),
        ("cd ~/x && cat y", [("read", "~/x/y")]),
    ],
)
def test_a_shell_command_tells_what_is_sure(command: str, found: list[tuple[str, str]]) -> None:
    assert by_shell(command) == found


@pytest.mark.parametrize(
    "command",
    [
        "ls -la", "rm *.pyc", "rm $FILE", 'rm "$FILE"', "rm $(git ls-files)", "git rm --cached a", "mv -t dir a", "mv -n a b", "cp --parents a b",
        "touch -c a", "cat", "cat -", "cmd > /dev/null 2>&1", "cmd > $OUT", "rm a || true", "test -f a && rm a; ls",
        "find . -name x | xargs rm", "ssh host rm a", "echo 'rm a > b'", "cd $X && rm a", "cd - && rm a",
        "cat a 2>/dev/null; ls", "python -c \"open('a')\"", "make 2>&1 | tee -a build.log", "run > /tmp/seen.txt", "rm", "grep -r rm .", "",
    ],
)  # fmt: skip
def test_what_is_in_doubt_is_not_told(command: str) -> None:
    assert by_shell(command) == []


def test_what_the_command_could_not_do_is_not_told() -> None:
    assert by_shell("cat a.py; cat b.py", "cat: a.py: No such file or directory\nx = 1") == [("read", "b.py")]


COMMIT = """[main 1a2b3c4] Move things
 4 files changed, 3 insertions(+)
 create mode 100644 src/new.py
 delete mode 100755 run.sh
 rename old.py => lib/new name.py (91%)
 rename src/{a => b}/c.py (100%)
 rename src/{ => deep}/d.py (100%)
 create mode 100644 "caf\\303\\251 \\"x\\".txt"
"""


def test_a_commit_reports_what_it_holds() -> None:
    assert by_shell('git commit -m "$(cat <<EOF\nMove\nEOF\n)"', COMMIT) == [
        ("created", "src/new.py"), ("deleted", "run.sh"), ("deleted", "old.py"), ("created", "lib/new name.py"),
        ("deleted", "src/a/c.py"), ("created", "src/b/c.py"), ("deleted", "src/d.py"), ("created", "src/deep/d.py"), ("created", 'café "x".txt'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", ["git log --summary", "git show --stat HEAD", "cat notes.txt", "git commit -m x && git log --summary"]
)
def test_a_listing_of_old_history_touches_nothing(command: str) -> None:
    assert ("created", "src/new.py") not in by_shell(command, COMMIT)


def test_patch_and_git_rm_report_their_files() -> None:
    assert by_shell(
        "patch -p1 < fix.diff", "patching file a.c\npatching file 'b c.c' (Stripped trailing CRs from patch.)"
    ) == [
        ("read", "fix.diff"),
        ("edited", "a.c"),
        ("edited", "b c.c"),
    ]
    assert by_shell("git rm -r $DIR", "rm 'x/a.py'\nrm 'x/b.py'") == [("deleted", "x/a.py"), ("deleted", "x/b.py")]
    assert by_shell("echo patching", "patching file a.c") == []


def test_only_the_ends_of_a_long_output_are_looked_at() -> None:
    middle = "x\n" * 100_000
    report = " create mode 100644 {}.py\n"
    output = report.format("first") + middle + report.format("lost") + middle + report.format("last")
    assert by_shell("git commit -m x", output) == [("created", "first.py"), ("created", "last.py")]


def test_a_long_command_is_cut_and_its_last_word_not_believed() -> None:
    command = "rm first; " + "rm " + "a" * 30_000
    assert by_shell(command) == [("deleted", "first")]


@settings(deadline=None)
@given(
    st.text(st.sampled_from("rm cat>git mv'\"\\\n$(){}<&|;ab/.-"), max_size=60),
    st.text(st.sampled_from("rename a => b{}(1%)\nrm 'x'create mode 100644 p\""), max_size=80),
)
def test_no_command_and_no_output_is_too_strange(command: str, output: str) -> None:
    for action, path in by_shell(command, output):
        assert action in ("read", "edited", "created", "deleted")
        assert path


@pytest.mark.parametrize(
    "piece",
    [
        "git ",
        "rename {",
        " => ",
        "rename a => b",
        "patching file ( ",
        "rm '",
        "cat a;",
        "cannot\n",
        "create mode 100644 ",
        "{",
    ],
)
def test_hostile_text_is_read_in_bounded_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert isinstance(by_shell(text, text), list)
    assert isinstance(by_shell("git commit; patch", text.replace("\n", "")), list)


def test_every_file_of_a_patch_is_noted() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n@@\n*** Delete File: c.py\n*** End Patch"
    wanted = [("created", "a.py"), ("edited", "b.py"), ("deleted", "c.py")]
    for arguments in (patch, {"input": patch}):
        call = CallStart("1", "apply_patch", "create", "a.py", input=arguments)
        assert touched_files(call, CallEnd("1"), "") == wanted
    assert touched_files(CallStart("1", "apply_patch", "create", "a.py", input=patch), CallEnd("1", True), "") == []
