"""Shell commands that really run in a folder: the files that were changed there are those that the command is said to touch."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from everturn.derive.artifacts import touched_files
from everturn.derive.paths import local_path
from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import CallFact, Touch, TurnFacts
from everturn.derive.version_control import tree_changes
from everturn.model.conversation import CallEnd, CallStart

FILES = {
    "src/a.py": 'x = 1\ny = "old"\n',
    "src/b.py": "import a\nold = 2\n",
    "src/sub/c.py": "old\n",
    "docs/guide.md": "# Guide\nold text\n",
    "README.md": "# Lamp\nold\n",
    "package.json": '{"name":"lamp"}\n',
    "web/app.ts": "const old = 1\n",
    "notes.txt": "one\ntwo\n",
    "my file.md": "old\n",
}
#: All files that these change can be named.
CERTAIN = [
    "sed -i 's/old/new/' src/a.py",
    "sed -i -e 's/old/new/' -e 's/x/z/' src/a.py src/b.py",
    "cd src && sed -i 's/old/new/' a.py && cd ..",
    "cd src; sed -i 's/old/new/' a.py",
    "(cd src && sed -i 's/old/new/' b.py)",
    'for f in src/a.py src/b.py; do sed -i \'s/old/new/\' "$f"; done',
    "for n in a b; do echo '#' >> src/$n.py; done",
    "cat > src/new.py <<'EOF'\nprint(1)\nEOF",
    'cat <<EOF > src/new.py\nprint(1)\nEOF',
    "cat <<'EOF' | tee src/new.py\nprint(1)\nEOF",
    "tee src/new.py <<'EOF' > /dev/null\nx\nEOF",
    'echo hi >> README.md',
    'echo hi > out.txt 2>&1',
    'printf \'a\\n\' > "my file.md"',
    "mkdir -p lib && cat > lib/x.ts << 'E'\nlet a\nE\ncat > lib/y.ts << 'E'\nlet b\nE",
    'cat >> src/a.py <<EOF\n# more\nEOF',
    "python3 - <<'EOF'\nfrom pathlib import Path\np = Path('src/a.py')\ns = p.read_text()\ns = s.replace('old', 'new')\np.write_text(s)\nEOF",
    'python3 - <<\'EOF\'\nimport re\npath = "src/b.py"\nwith open(path) as f:\n    t = f.read()\nt = t.replace(\'old\',\'new\')\nwith open(path, \'w\') as f:\n    f.write(t)\nEOF',
    'python3 -c "import pathlib; p=pathlib.Path(\'README.md\'); p.write_text(p.read_text().replace(\'old\',\'new\'))"',
    "python3 - <<'EOF'\nfrom pathlib import Path\nfor name in ['src/a.py', 'src/b.py']:\n    p = Path(name)\n    p.write_text(p.read_text().replace('old','new'))\nEOF",
    "python3 - <<'EOF'\nimport glob\nfor f in glob.glob('src/*.py'):\n    s = open(f).read()\n    open(f, 'w').write(s.replace('old','new'))\n    print('updated', f)\nEOF",
    "python3 - <<'EOF'\nimport json\nfiles = {'src/a.py': 'x=1\\n', 'docs/new.md': 'hello\\n'}\nfor path, text in files.items():\n    open(path, 'w').write(text)\nEOF",
    "python3 - <<'EOF'\nimport json\nd = json.load(open('package.json'))\nd['version'] = '1'\njson.dump(d, open('package.json', 'w'), indent=2)\nEOF",
    "python3 - <<'EOF'\nimport os\nroot = 'src'\nwith open(os.path.join(root, 'a.py'), 'a') as f:\n    f.write('#')\nEOF",
    "python3 - <<'EOF'\nfrom pathlib import Path\nroot = Path('src')\n(root / 'b.py').write_text('x')\n(root / 'sub' / 'c.py').write_text('x')\nEOF",
    "python3 - <<'EOF'\ndef sub(path, a, b):\n    s = open(path).read()\n    open(path, 'w').write(s.replace(a, b))\nsub('src/a.py', 'old', 'new')\nsub('docs/guide.md', 'old', 'new')\nEOF",
    'mv src/a.py src/z.py',
    'mv src/a.py docs/',
    'mv src/a.py src/b.py docs',
    'git mv src/a.py src/z.py',
    'cp src/a.py src/copy.py',
    'cp src/a.py docs/',
    'rm src/a.py',
    'git rm src/a.py',
    'rm nothing.py 2>/dev/null; true',
    'touch src/__init__.py',
    'install -m 644 README.md docs/copy.md',
    'truncate -s 0 notes.txt',
    'mkdir -p a/b && touch a/b/{x,y}.py',
    "awk '{print toupper($0)}' notes.txt > tmp && mv tmp notes.txt",
    'git apply <<\'EOF\'\ndiff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = "old"\n+y = "new"\nEOF',
    'patch -p1 <<\'EOF\'\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = "old"\n+y = "new"\nEOF',
    'git checkout -- src/a.py',
    'git stash',
    'git status',
    'ls src > /dev/null',
    'cat src/a.py',
    'grep -rn old src 2>&1 | head',
    'wc -l src/*.py',
    'python3 -c "print(open(\'src/a.py\').read())"',
    'diff src/a.py src/b.py > /dev/null; true',
    'cat src/a.py > /tmp/zz-lab.txt',
    'git diff > /tmp/zz.patch',
    "echo 'mv a b'",
    "printf 'x' | tee /dev/null",
    "F=src/a.py; sed -i 's/old/new/' $F",
    'F=src/a.py\nsed -i \'s/old/new/\' "$F"\ncat $F',
    "DIR=src && cat > $DIR/n.py <<'EOF'\nx\nEOF",
    'export D=docs; echo hi >> "$D/guide.md"',
    "sed -i '' -e 's/a/b/' src/a.py 2>/dev/null; true",
    "sed -n 's/old/new/p' src/a.py",
    "sed 's/old/new/' src/a.py > src/a2.py",
    'bash -c "sed -i \'s/old/new/\' src/a.py"',
    "sh -c 'echo hi > hi.txt'",
    "env A=1 sed -i 's/old/new/' src/a.py",
    "sed -i 's/old/new/' src/a.py || exit 1\ngit diff --stat",
    "set -e\ncd docs\nsed -i 's/old/new/' guide.md\ncd ..\nsed -i 's/old/new/' README.md",
    "pushd docs >/dev/null; sed -i 's/old/new/' guide.md; popd >/dev/null",
    "test -f src/a.py && sed -i 's/old/new/' src/a.py",
    "if [ -f README.md ]; then sed -i 's/old/new/' README.md; fi",
    'ls && echo done > status.txt',
    'cp README.md docs/r.md && cat docs/r.md > NUL; rm -f NUL',
    'sort notes.txt --output=sorted.txt',
    'sort notes.txt --output sorted.txt',
]  # fmt: skip
#: Some files that these change cannot be named; no other may be.
IN_DOUBT = [
    "sed -i 's/old/new/g' src/*.py",
    "sed -i.bak 's/old/new/' src/a.py",
    "find src -name '*.py' -exec sed -i 's/old/new/' {} +",
    "find src -name '*.py' | xargs sed -i 's/old/new/'",
    "grep -rl old src | xargs sed -i 's/old/new/g'",
    'for f in src/*.py; do echo "# end" >> $f; done',
    'cp -r src/. lib2/ 2>/dev/null || (mkdir lib2 && cp -r src/. lib2/)',
    'rm -f src/*.py',
    'echo x > $(echo out2.txt)',
    '[ -f nope ] || cp README.md docs/r.md',
]  # fmt: skip


#: These change the files of a pattern, which a status shows afterwards.
WIDE = [
    "sed -i 's/old/new/g' {folder}/*.{ending}",
    "cd {folder} && sed -i 's/old/new/g' *.{ending}",
    "for f in {folder}/*.{ending}; do sed -i 's/old/new/' \"$f\"; done",
    "for f in {folder}/*.{ending}; do echo new >> $f; done",
    "find {folder} -name '*.{ending}' -exec sed -i 's/old/new/' {{}} +",
    "find ./{folder} -type f -name \"*.{ending}\" | xargs sed -i 's/old/new/'",
    "find {folder} -type f | xargs sed -i 's/old/new/'",
    "grep -rl old {folder} | xargs sed -i 's/old/new/g'",
    "grep -rl --include='*.{ending}' old . | xargs sed -i 's/old/new/g'",
    "perl -pi -e 's/old/new/' {folder}/*.{ending}",
    "rm -f {folder}/*.{ending}",
    "python3 - <<'EOF'\nfrom pathlib import Path\nfor p in Path('{folder}').rglob('*.{ending}'):\n    p.write_text(p.read_text() + 'new')\nEOF",
]


def run(folder: Path, command: str) -> tuple[set[str], set[str]]:
    """Return the files that a command changed, and those that it is said to touch."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    person = {f"GIT_{who}_{what}": "ann@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    if "git " in command:
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
            subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    before = contents(folder)
    ended = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    after = contents(folder)
    call = CallStart("1", "Bash", "shell", "", command, {"command": command})
    end = CallEnd("1", bool(ended.returncode), exit_status=ended.returncode)
    touched = touched_files(call, end, ended.stdout + ended.stderr)
    said = {local_path(path, str(folder)) for action, path in touched if action != "read"}
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    return changed, {path for path in said if not path.startswith("/tmp/")}


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


needs_bash = pytest.mark.skipif(not (shutil.which("bash") and shutil.which("git")), reason="needs bash and git")


@needs_bash
@pytest.mark.parametrize("command", CERTAIN)
def test_a_command_touches_the_files_that_it_changed(tmp_path: Path, command: str) -> None:
    changed, said = run(tmp_path, command)
    assert said == changed


@needs_bash
@pytest.mark.parametrize("command", IN_DOUBT)
def test_what_cannot_be_named_is_left_out(tmp_path: Path, command: str) -> None:
    changed, said = run(tmp_path, command)
    assert said <= changed


@needs_bash
@pytest.mark.parametrize("seed", range(24))
def test_a_status_names_the_files_of_a_pattern_and_those_of_the_person_stay_out(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    names = [
        f"{one}/{name}.{end}" for one in ("src", "src/sub", "docs") for name in "abc" for end in ("py", "md", "txt")
    ]
    for name in chance.sample(names, 18):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(chance.choice(("old\n", "else\n")))
    command = chance.choice(WIDE).format(folder=chance.choice(("src", "docs")), ending=chance.choice(("py", "md")))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    mine = chance.sample(sorted(contents(tmp_path)), 2)
    for name in mine:
        (tmp_path / name).write_text("changed by the person\n")
    first, before = git(tmp_path, "status", "--short"), contents(tmp_path)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    last, after = git(tmp_path, "status", "--short"), contents(tmp_path)
    changed = {name for name in before | after if before.get(name) != after.get(name)} - set(mine)
    trees = [
        Touch(path, action, seq)
        for seq, shown in ((1, first), (5, last))
        for action, path in tree_changes("git status --short", shown)
    ]
    facts = TurnFacts(0, 6, deeds=(CallFact(3, command, "shell", "ok", 0),), trees=tuple(trees))
    state = advance_state(SessionState("s", str(tmp_path)), facts)
    assert {path for path, file in state.files.items() if file.count} == changed


def git(folder: Path, *words: str) -> str:
    person = {f"GIT_{who}_{what}": "ann@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    ended = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout
