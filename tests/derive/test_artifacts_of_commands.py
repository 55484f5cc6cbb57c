"""Which files a shell command read, edited or created, by its words and by what it printed."""

from __future__ import annotations

import pytest

from everturn.derive.artifacts import touched_files
from everturn.model.conversation import CallEnd, CallStart


def by_shell(command: str, output: str = "") -> list[str]:
    found = touched_files(CallStart("c", "Run", "shell", command=command), CallEnd("c"), output)
    return [f"{action} {path}" for action, path in found]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sed -i s/a/b/ x", ["edited x"]),
        ("sed -i 's/a/b/g; s/c/d/' x.py y.py", ["edited x.py", "edited y.py"]),
        ("sed -i.bak -E 's/a+/b/' x.py", ["edited x.py"]),
        ("sed -i '' 's/a/b/' x.py y.py", ["edited x.py", "edited y.py"]),
        ("sed -i -e 's/a/b/' -e 's/c/d/' x.py", ["edited x.py"]),
        ("sed -Ei --expression='s/a/b/' x.py", ["edited x.py"]),
        ("sed --in-place 's/a/b/' x.py", ["edited x.py"]),
        ('sed -i "s/$OLD/new/" x.py y.py', ["edited x.py", "edited y.py"]),
        ("sed -i -f fix.sed x.py", ["edited x.py"]),
        ("perl -pi -e 's/a/b/' x.pl y.pl", ["edited x.pl", "edited y.pl"]),
        ("perl -i -pe 's/a/b/' x.pl", ["edited x.pl"]),
        ("perl -0777 -pi.bak -e 's/a/b/s' x.pl", ["edited x.pl"]),
        ("cd lib && sed -i s/a/b/ x.py", ["edited lib/x.py"]),
    ],
)
def test_a_command_that_changes_files_in_place_edits_them(command: str, found: list[str]) -> None:
    assert by_shell(command) == found


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("grep foo a.py", ["read a.py"]),
        ("grep -n 'foo bar' a.py Makefile", ["read a.py", "read Makefile"]),
        ("grep -nE -A 3 -B2 'x|y' a.py | head -5", ["read a.py"]),
        ("grep -e one -e two --color=never a.py", ["read a.py"]),
        ('grep "$NAME" a.py', ["read a.py"]),
        ("grep '' a.py", ["read a.py"]),
        ("grep -rn foo src tests/a.py", ["read tests/a.py"]),
        ("rg -n foo src/a.py src", ["read src/a.py"]),
        ("rg -C 3 foo a.py", ["read a.py"]),
        ("grep -c foo a.py; wc -l a.py", ["read a.py"]),
        ("grep foo a.log | tee found.txt", ["read a.log", "created found.txt"]),
        ("sed s/a/b/ x.py", ["read x.py"]),
        ("sed -n -e 1,5p x.py", ["read x.py"]),
        ("sed -ne '1,5p' x.py | nl", ["read x.py"]),
        ("perl -ne 'print if /a/' x.pl", ["read x.pl"]),
        ("awk -F: '{print $1}' a.csv", ["read a.csv"]),
        ("awk -v n=3 'NR<n' a.csv x=1", ["read a.csv"]),
        ("jq -r .name package.json", ["read package.json"]),
        ("nl -ba a.py && tac b.py && less c.py", ["read a.py", "read b.py", "read c.py"]),
        ("bat a.py; xxd b.bin; strings c.so", ["read a.py", "read b.bin", "read c.so"]),
        ("bat --style=plain -r 1:20 a.py", ["read a.py"]),
        ("head --lines 5 a.py", ["read a.py"]),
        ("diff -u a.py b.py", ["read a.py", "read b.py"]),
        ("sort -k 2 -t , a.csv", ["read a.csv"]),
        ("cut -d , -f 1 a.csv", ["read a.csv"]),
        ("wc -l < a.py", ["read a.py"]),
        ("psql mydb < dump.sql > out.txt", ["read dump.sql", "created out.txt"]),
        ("timeout 10 cat a.py", ["read a.py"]),
        ("timeout -k 5 10s cat a.py", []),
    ],
)
def test_a_command_that_shows_files_reads_them(command: str, found: list[str]) -> None:
    assert by_shell(command) == found


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("curl -sSLo page.html https://example.org/a.html", ["created page.html"]),
        ("curl https://example.org/a.json --output a.json", ["created a.json"]),
        ("wget -qO tool.tgz https://example.org/t.tgz", ["created tool.tgz"]),
        ("gcc -O2 main.c -o main", []),
        ("sort a.txt -o b.txt", ["read a.txt", "created b.txt"]),
        ("ln -s ../a.py b.py", ["created b.py"]),
        ("curl -o - https://example.org", []),
        ("curl -o $OUT https://example.org", []),
        ("wget -O - https://example.org/x.tgz", []),
    ],
)
def test_a_command_that_is_told_where_to_write_creates_the_file(command: str, found: list[str]) -> None:
    assert by_shell(command) == found


@pytest.mark.parametrize(
    "command",
    [
        "grep foo", "grep -r foo .", "grep -rn foo src", "rg foo", "rg foo src", "rg --files src", "ps aux | grep server.py", "git grep foo a.py",
        "grep foo *.py", "grep foo $FILE", "grep --unknown x foo a.py", "grep -q foo a.py || echo none", "grep -e a.py", "grep https://a.org/b.py",
        "sed", "sed -i", "sed -i s/a/b/", "sed -i s/a/b/ *.py", "sed -i s/a/b/ $(rg -l a)", "rg -l a | xargs sed -i s/a/b/", "sed --help", "sed -i -e s/a/b/",
        "perl x.pl a.txt", "perl -e 'print 1'", "perl -v", "perl -MFoo x.pl a", "awk '{print}'", "awk 'BEGIN{print 1}'", "jq -n 1", "jq . ", "jq --arg a b . c.json",
        "cat https://example.org/a.py", "head -n 5", "tail -n +3", "diff old new", "diff -r a b", "cat 2>&1", "cat <<< a.py", "python - <<E\nE",
        "cmd < /dev/null", "cmd < $IN", "ln -s a", "echo sed -i s/a/b/ x", "cat <(ls)", "sed -n '$=' -", "awk -f", "grep -f", "curl -o",
    ],
)  # fmt: skip
def test_what_is_in_doubt_is_not_told(command: str) -> None:
    assert by_shell(command) == []


def test_a_test_before_a_pipe_does_not_decide_what_runs() -> None:
    assert by_shell("grep x a.log | tee b.txt && rm c; ls") == ["read a.log", "created b.txt", "deleted c"]
    assert by_shell("cat a.log | grep -q x && rm c; ls") == ["read a.log"]


def test_a_folder_that_may_not_have_been_entered_leaves_relative_paths_in_doubt() -> None:
    assert by_shell("cd lib || cd src; cat a.py /b.py") == ["read /b.py"]
    assert by_shell("[ -d lib ] && cd lib; cat a.py") == []
    assert by_shell("cat a.py; cd lib || true") == ["read a.py"]
    assert by_shell("cd lib && ./run", "Wrote out.csv") == ["created lib/out.csv"]
    assert by_shell("cd lib || true; ./run", "Wrote out.csv\nWrote /x/out.csv") == ["created /x/out.csv"]


def test_what_a_program_could_not_open_is_not_told() -> None:
    output = "sed: can't read x.py: No such file or directory\ngrep: src: Is a directory"
    assert by_shell("sed -i s/a/b/ x.py y.py; grep -n a src z.py; true", output) == ["edited y.py", "read z.py"]


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("python build.py", "Wrote out/report.csv", ["created out/report.csv"]),
        ("python build.py", "  Saved 12 rows to 'my data.csv'\n", ["created my data.csv"]),
        ("make", "✓ Created src/app.ts (120 bytes)", ["created src/app.ts"]),
        ("ng generate component x", "CREATE src/app/x.ts (12 bytes)\nUPDATE src/app/app.ts (9 bytes)", ["created src/app/x.ts", "edited src/app/app.ts"]),
        ("rails g model x", "      create  app/models/x.rb\n", ["created app/models/x.rb"]),
        ("alembic revision -m x", "  Generating /srv/app/versions/1a_x.py ...  done", ["created /srv/app/versions/1a_x.py"]),
        ("black .", "reformatted src/a.py\n\nAll done!\n1 file reformatted.", ["edited src/a.py"]),
        ("isort .", "Fixing C:\\x\\a.py", ["edited C:\\x\\a.py"]),
        ("./update", "Updated CHANGELOG.md", ["edited CHANGELOG.md"]),
        ("pytest --cov", "Coverage HTML written to dir htmlcov\nWrote XML report to coverage.xml", ["created coverage.xml"]),
        ("unzip a.zip", "Archive:  a.zip\n  inflating: x/a.txt  \n   creating: x/\n extracting: b.png", ["created x/a.txt", "created b.png"]),
        ("./run", "Loaded config.yaml\nReading data/in.csv...", ["read config.yaml", "read data/in.csv"]),
        ("./run", "Read 3 records from data.json", ["read data.json"]),
    ],
)  # fmt: skip
def test_an_output_that_says_what_was_done_to_a_file_is_believed(command: str, output: str, found: list[str]) -> None:
    assert by_shell(command, output) == found


@pytest.mark.parametrize(
    "line",
    [
        "Created https://example.org/a.html", "Created by setup.py", "Updated to 1.2.3", "Updated 2024-01-02", "Created --flag.py", "Reading package lists... Done",
        "wrote nothing about a.py today", "Created user.name", "Loaded module os.path", "Saved ann@example.py", "error: a.py was created", "a.py", "src/a.py:3: wrote",
        "Read the docs in README.md before you go on", "Created wheel for x: filename=x-1.0.whl size=3", "Would create a.py", "Not created a.py", "Updated *.py", "created $HOME/a.py",
        "Writing a.py failed", "Could not read a.py", "Created", "Wrote to", "Fixed bug in parse.py handling",
    ],
)  # fmt: skip
def test_an_output_that_only_looks_like_it_is_not_believed(line: str) -> None:
    assert by_shell("./run", line) == []


@pytest.mark.parametrize(
    "command", ["cat log.txt", "git log", "echo 'Created a.py'", "ssh host ./run", "docker exec c ./run", "tail log.txt", "git status"]
)  # fmt: skip
def test_a_text_that_is_only_shown_or_is_from_elsewhere_is_not_believed(command: str) -> None:
    assert not [one for one in by_shell(command, "Created a.py\nUpdated b.py") if one.endswith((" a.py", " b.py"))]


@pytest.mark.parametrize(
    "piece", ["Created ", "Wrote 1 ", "Created a.py (", "sed -i ", "grep -e ", "-o ", "Read file the ", "created '"]
)
def test_hostile_text_is_read_in_bounded_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert isinstance(by_shell("./run", text), list)
    assert isinstance(by_shell("./run", text.replace(" ", "\n")), list)
    assert isinstance(by_shell(text), list)


_CALLS = "".join(f"def f{n}():\n" + f"    f{n + 1}()\n" * 40 for n in range(6)) + "f0()\n"
_LISTS = "".join(f"v{n + 1} = [{f'v{n}, ' * 40}]\n" for n in range(20))
_SUMS = "v0 = v0 + v0\n" * 100


@pytest.mark.parametrize("script", [_CALLS, f"v0 = ['a', 'b']\n{_LISTS}", f"v0 = 'ab'\n{_SUMS}"])
def test_a_script_that_grows_without_end_is_read_in_bounded_time(script: str) -> None:
    assert by_shell(f"python - <<'E'\nopen('a.txt', 'w')\n{script}E\n") == ["edited a.txt"]


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("✔ Checking registry.\n✔ Created 2 files:\n  - ui/lamp.tsx\n  - app/[id]/page.tsx\n\nℹ Skipped 1 file:\n  - ui/a.tsx", ["created ui/lamp.tsx", "created app/[id]/page.tsx"]),
        ("Updated 1 file:\r\n  - app/globals.css\r\n", ["edited app/globals.css"]),
        ("Created files:\nand nothing else.md was there\nlamp.md\n", []),
        ("Copied plan template to /shop/specs/plan.md", ["created /shop/specs/plan.md"]),
        ("Wrote to /shop/package.json:\n\n{", ["created /shop/package.json"]),
        ("[OK] Created SKILL.md\nINFO: Updated README.md\n📊 Generated out.csv", ["created SKILL.md", "edited README.md", "created out.csv"]),
        ("Installed lamp to /home/ann/.tools/lamp\nInstalled 3 packages to cache", ["created /home/ann/.tools/lamp"]),
        ("      append  .gitignore\n       force  bin/dev\n      create  Procfile.dev\n      create  app/lamps\n   identical  a.py\n      remove  b.py",
         ["edited .gitignore", "edited bin/dev", "created Procfile.dev", "deleted b.py"]),
        ("Report saved to out/lamps.md\nFile modified: /home/ann/lamp.json [project: x]\nBackup completed: ./b/a.md",
         ["created out/lamps.md", "edited /home/ann/lamp.json", "created ./b/a.md"]),
        ("Nothing saved to disk\nThe plan was written to impress. Files updated: 3", []),
        ("append b.py to the list\nforce b.py\nremove b.py", []),
        ("✅ Created admin: Ann (ann@shop.com)\n- Update README.md", []),
    ],
)  # fmt: skip
def test_a_program_says_which_files_it_made(output: str, found: list[str]) -> None:
    assert by_shell("npx maker add lamp", output) == found


LAMPS = "\n".join(f"  inflating: shop/lamps/{number}.py" for number in range(9))


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("unzip shop.zip", LAMPS, ["created shop/lamps"]),
        ("unzip shop.zip -d new", " extracting: new/a.txt", ["created new/a.txt"]),
        ("unzip -l shop.zip", "  120  2026-01-01 10:00   shop/a.txt", []),
        ("tar -xvzf a.tgz -C new", "./shop/a.py\n./shop/b.py", ["created new/shop/a.py", "created new/shop/b.py"]),
        ("tar xzf a.tgz", "", []),
        ("tar -tvf a.tgz", "shop/a.py", []),
        ("python draw.py", "\n".join(f"Saved: plots/{number}.png" for number in range(8)), ["created plots"]),
        ("python draw.py", "Saved: plots/1.png\nSaved: plots/2.png", ["created plots/1.png", "created plots/2.png"]),
        ("echo 'lamp' > /tmp/lamp.txt", "", ["created /tmp/lamp.txt"]),
        ("make > /tmp/make.txt", "", []),
        ("bin/rails db:migrate", "== 2026 AddLamps: migrated (0.01s) ==", ["edited db/schema.rb"]),
        ("bin/rails db:migrate", "", []),
        ("awk '{print $1}' a.txt > b.txt && mv b.txt src/Makefile", "", ["read a.txt", "created src/Makefile"]),
    ],
)  # fmt: skip
def test_what_is_unpacked_drawn_or_printed(command: str, output: str, found: list[str]) -> None:
    assert [one for one in by_shell(command, output) if not one.startswith(("deleted b.txt", "created b.txt"))] == found
