"""Files that shell commands touch, against what they did: `python -m benchmarks.shell_files --commands 400`.

Random commands of a seed run in bash, each in a folder of its own. What differs in the folder afterwards is the truth; what
`touched_files` says of the command and its output is held against it: precision and recall of the files, and how many of
the right ones have the right action. A moved file is one deleted and one created; a folder that is said to be deleted
or copied stands for its files. Nothing outside the temporary folder is written.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from everturn.derive.artifacts import touched_files
from everturn.derive.paths import local_path
from everturn.model.conversation import CallEnd, CallStart

_FOLDERS = ("src", "src/api", "docs", "web app", "config")
_NAMES = ("lamp.py", "fence.ts", "guide.md", "data.json", "notes.txt", "Makefile", "style.css")
#: Commands over {a}, {b} (files that are there), {n} (a new one) and {d}, {e} (folders that are there), quoted where needed.
_CHANGES = (
    "sed -i 's/old/new/' {a}", "sed -i -e 's/old/new/' -e 's/x/y/' {a} {b}", "perl -pi -e 's/old/new/' {a}",
    "echo more >> {a}", "printf 'x\\n' > {n}", "cat > {n} <<'EOF'\nold text\nEOF", "cat {a} {b} > {n}", "tee {n} < {a} > /dev/null",
    "echo x | tee -a {a}", "cp {a} {n}", "cp {a} {e}/", "mv {a} {n}", "mv {a} {e}/", "mv {a} {b} {e}", "rm {a}", "rm -f {a} {b}",
    "touch {n}", "truncate -s 0 {a}", "rm -r {d}", "mkdir -p new/deep && touch new/deep/x.py", "install -m 644 {a} {n}",
    "python3 -c \"open({na!r}, 'w').write('x')\"", "python3 - <<'EOF'\nfrom pathlib import Path\np = Path({na!r})\np.write_text('new')\nEOF",
    "for f in {a} {b}; do echo end >> \"$f\"; done", "F={a}; echo new >> \"$F\"", "sort {a} -o {n}", "awk '{{print $1}}' {a} > {n} && mv {n} {a}",
    "ln -s {x} {n}", "tr a-z A-Z < {a} > {n}", "test -f {a} && echo there >> {a}", "if [ -f {a} ]; then echo x >> {a}; fi",
    "head -1 {a} | tee {n}", "echo '#' | cat - {a} > {n}", "cp -r {d} copied", "bash -c 'echo x > made.txt'", "(cd {d} && echo x > inner.txt)",
    "unzip -o {root}/few.zip", "unzip {root}/many.zip", "unzip -o {root}/few.zip -d {e}", "tar -xvf {root}/few.tar", "tar xvf {root}/many.tar", "tar -xvf {root}/few.tar -C {e}",
    "mv {d} moved", "rm -rf {d}/", "git init -q . && git add {a} && git rm -q -f {a}", "git init -q . && git add {a} && git mv {a} {n}", "awk '{{print $1}}' {a} > {n} && mv {n} Makefile",
)  # fmt: skip
_READS = (
    "cat {a}", "grep -n old {a}", "ls {d} > /dev/null", "wc -l {a} {b}", "sed -n '1,5p' {a}", "head -3 {a} | tail -1", "diff {a} {b}; true",
    "echo 'rm {a}'", "find . -name '*.py'", "test -f nothing.txt || echo missing", "stat {a} 2>&1 | head -2", "rm nothing.py 2>/dev/null; true",
    "python3 -c \"print(open({na!r}).read())\"", "sed 's/old/new/' {a}", "mv nothing.md other.md; true", "cat nothing.txt >> /dev/null",
)  # fmt: skip
#: Archives to unpack, made outside the folder: their names, and what is in them.
_ARCHIVES = {"few": ("boxes/a.py", "boxes/b.md"), "many": tuple(f"crate/{number}/lamp.py" for number in range(8))}
#: The words of these do not name the files that they change: nothing wrong may be said, and recall leaves them out.
_UNNAMED = (
    "split -l 1 {a} part_", "find {d} -name '*.md' -delete", "rm -f {d}/*.json", "sed -i 's/old/new/g' {d}/*", "gzip -k {a}",
    "for f in {d}/*; do echo end >> \"$f\"; done", "test -f nothing.txt || cp {a} {n}",
)  # fmt: skip
_JOINTS = (" && ", "; ", "\n")


@dataclass
class ShellScore:
    """How many files commands changed, how many were said to be, and which commands were told wrong."""

    changed: int = 0
    said: int = 0
    right: int = 0
    same_action: int = 0
    commands: int = 0
    faults: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell_files", description=__doc__)
    parser.add_argument("--commands", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", action="store_true", help="print the commands that were told wrong")
    options = parser.parse_args()
    score = measure_commands(options.commands, options.seed)
    print(f"{score.commands} commands, {score.changed} files changed, {score.said} said")
    print(f"precision {score.right / max(1, score.said):.3f}, recall {score.right / max(1, score.changed):.3f}")
    print(f"of the right files, with the right action {score.same_action / max(1, score.right):.3f}")
    print("\n".join(score.faults) if options.faults else "", end="")


def measure_commands(commands: int, seed: int) -> ShellScore:
    """Run random commands and add up what is said of them."""
    score, chance = ShellScore(), random.Random(seed)
    for _ in range(commands):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            root = root / "work"
            files = _plant_files(root, chance)
            is_named = chance.random() < 0.85
            command = random_command(chance, files) if is_named else _fill(chance, chance.choice(_UNNAMED), files, "")
            changed, said = run_command(root, command)
        if not is_named:
            changed = {path: action for path, action in changed.items() if path in said}
        score.commands += 1
        score.changed, score.said = score.changed + len(changed), score.said + len(said)
        score.right += len(changed.keys() & said.keys())
        score.same_action += sum(changed[path] == said[path] for path in changed.keys() & said.keys())
        if changed.keys() != said.keys():
            missing, wrong = sorted(changed.keys() - said.keys()), sorted(said.keys() - changed.keys())
            score.faults.append(f"{command!r}\n    missing {missing}, wrong {wrong}")
    return score


def _plant_files(root: Path, chance: random.Random) -> list[str]:
    files = []
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in chance.sample(_NAMES, 3):
            files.append(f"{folder}/{name}")
            (root / folder / name).write_text(f"old text of {name}\nold line two\nx {chance.random()}\n")
    for name, members in _ARCHIVES.items():
        with (
            zipfile.ZipFile(root.parent / f"{name}.zip", "w") as packed,
            tarfile.open(root.parent / f"{name}.tar", "w") as taped,
        ):
            for member in members:
                packed.writestr(member, f"text of {member}")
                taped.addfile(tarfile.TarInfo(member))
    return files


def random_command(chance: random.Random, files: list[str]) -> str:
    """Return a command of one to three parts, sometimes in another folder, over files that are there."""
    folder = chance.choice(_FOLDERS) if chance.random() < 0.25 else ""
    prefix = f"{folder}/" if folder else ""
    left = [one.removeprefix(prefix) for one in files if one.startswith(prefix)]
    chance.shuffle(left)
    parts = [_fill(chance, chance.choice(_CHANGES if chance.random() < 0.7 else _READS), left, folder)]
    while len(left) > 3 and chance.random() < 0.4:
        parts.append(_fill(chance, chance.choice(_CHANGES if chance.random() < 0.5 else _READS), left, folder))
    text = parts[0]
    for part in parts[1:]:
        text += ("\n" if "EOF" in text.rpartition("\n")[2] else chance.choice(_JOINTS)) + part
    return f"cd {_quote(folder)} && {text}" if folder else text


def _fill(chance: random.Random, form: str, left: list[str], folder: str) -> str:
    """Fill a form with files that no other part of the command uses."""
    one = left.pop()
    two = left.pop() if "{b}" in form and left else one
    d, e = (".", ".") if folder else chance.sample(_FOLDERS[1:], 2)
    new = f"{'' if folder else chance.choice(('', 'src/', 'docs/'))}new{chance.randrange(1000)}.txt"
    root = ".." if not folder else "/".join([".."] * (folder.count("/") + 2))
    values = {"root": root, "a": _quote(one), "b": _quote(two), "n": new, "d": _quote(d), "e": _quote(e)}
    return form.format(**values, x="target", na=one)


def _quote(path: str) -> str:
    return f'"{path}"' if " " in path else path


def run_command(root: Path, command: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that a command changed and those that it is said to touch, with the action on each."""
    before = _contents(root)
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(root.parent), "LC_ALL": "C"}
    ended = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    after = _contents(root)
    call = CallStart("1", "Bash", "shell", "", command, {"command": command})
    end = CallEnd("1", bool(ended.returncode), exit_status=ended.returncode)
    touched = touched_files(call, end, ended.stdout + ended.stderr)
    changed = {path: _action(path, before, after) for path in before | after if before.get(path) != after.get(path)}
    return changed if not ended.returncode else {}, dict(_said_files(touched, root, before, after))


def _action(path: str, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    return "deleted" if path not in after else "changed"


def _said_files(
    touched: list[tuple[str, str]], root: Path, before: dict[str, bytes], after: dict[str, bytes]
) -> Iterator[tuple[str, str]]:
    for action, given in touched:
        path = local_path(given, str(root)).rstrip("/")
        if action == "read" or path.startswith(("/tmp/", "/dev/")):
            continue
        inside = [one for one in (before if action == "deleted" else after) if one.startswith(f"{path}/")]
        yield from ((one, "deleted" if action == "deleted" else "changed") for one in inside or [path])


def _contents(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    found = (path for path in found if ".git" not in path.parts)
    return {
        str(path.relative_to(root)): os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        for path in found
    }


if __name__ == "__main__":
    main()
