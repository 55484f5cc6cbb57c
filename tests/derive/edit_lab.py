"""Synthetic transcripts whose edited files and commits are known by construction.

`play_edits(seed)` lets an invented agent work on a project in many ways: edit tools, patches in every envelope, shell
redirections, here-documents, editors and formatters on the command line, moves and removals, scripts. The same file is named
relative, absolute, with other separators, by a `file://` address or inside a worktree. Between them stand calls that must leave no
trace: pulls, merges, checkouts, builds, installs, logs, failed and rejected edits. The messages go through the same
functions as a real transcript.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import turn_facts
from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.model.conversation import Block, CallEnd, CallStart, Message

_ROOTS = ("/home/ann/shop", "/Users/ann/code/shop", "D:\\work\\shop")
_FOLDERS = ("src", "src/api", "tests", "docs", "web/app")
_NAMES = ("login.py", "cart.ts", "order.go", "readme.md", "theme.css", "rates.json", "main.rs", "notes.txt")


@dataclass
class EditLab:
    """One session: what was played, and what a document has to say."""

    rng: random.Random
    root: str
    edited: set[str] = field(default_factory=set)
    commits: dict[str, bool] = field(default_factory=dict)  # hash to whether a later one replaced it
    messages: list[Message] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    head: tuple[str, str] = ("", "")  # hash and subject of the last commit

    # --- names ---
    def file(self) -> str:
        return f"{self.rng.choice(_FOLDERS)}/{self.rng.randrange(1000)}_{self.rng.choice(_NAMES)}"

    def whole(self, path: str) -> str:
        return f"{self.root}/{path}" if self.root[0] == "/" else f"{self.root}\\{path}".replace("/", "\\")

    def named(self, path: str) -> str:
        """Return one of the names of a file, as an edit tool may be given it."""
        forms = [path, f"./{path}", self.whole(path)]
        if self.root[0] == "/":
            forms += [f"file://{self.root}/{path}", f"{self.root}/.agent/worktrees/fix-{self.rng.randrange(9)}/{path}"]
        else:
            forms += [
                path.replace("/", "\\"),
                f"/d/work/shop/{path}",
                f"/mnt/d/work/shop/{path}",
                f"d:/Work/Shop/{path}",
            ]
        return self.rng.choice(forms)

    def hash(self) -> str:
        return f"{self.rng.randrange(16**6):06x}a" + self.rng.choice("0123456789")

    # --- calls ---
    def call(self, start: CallStart, output: str = "", failed: bool = False, status: int | None = None) -> None:
        self.log.append(f"{start.name} {start.path} {start.command or start.input} -> {output!r} {failed}")
        call = Block("call", start.command or start.path, "tool_input", call=start)
        end = CallEnd(start.call_id, failed, "other" if failed else "", status)
        self.messages += [
            Message("assistant", "model", blocks=(call,)),
            Message("user", "tool", "result", blocks=(Block("result", output, "tool_output", result=end),)),
        ]

    def shell(self, command: str, output: str = "", failed: bool = False) -> None:
        self.call(CallStart(self.next(), "Run", "shell", command=command), output, failed, int(failed))

    def script(self, text: str, output: str = "Script completed") -> None:
        """Run a script that calls tools."""
        self.call(CallStart(self.next(), "exec", "shell", input=text), output)

    def next(self) -> str:
        return f"call{len(self.messages)}"


def _tool(lab: EditLab, path: str) -> None:
    kind = lab.rng.choice(("edit", "create", "delete"))
    lab.call(CallStart(lab.next(), "Edit", kind, lab.named(path)))


def _patch_text(path: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"


def _patch(lab: EditLab, path: str) -> None:
    patch = _patch_text(path)
    form = lab.rng.randrange(5)
    if form == 0:
        lab.call(CallStart(lab.next(), "apply_patch", "edit", path, input=patch), "Success.")
    elif form == 1:
        lab.shell(f"apply_patch <<'EOF'\n{patch}\nEOF", "Success. Updated the following files:")
    elif form == 2:
        lab.script(f"const patch = {_quoted(patch)};\ntext(await tools.apply_patch(patch));")
    elif form == 3:
        lab.script(f"const r = await tools.apply_patch(`{patch}`);\ntext(r);")
    else:
        folder, _, name = path.rpartition("/")
        lab.shell(f"cd {folder} && apply_patch <<'EOF'\n{_patch_text(name)}\nEOF", "Success.")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


_SHELL_EDITS = (
    "cat > {p} <<'EOF'\nrm other.py\nEOF", "cat <<EOF >> {p}\nmore\nEOF", "echo one > {p}", "printf 'x' >> {p}",
    "sed -i 's/a/b/' {p}", "sed -i '' -e 's/a/b/' {p}", "perl -pi -e 's/a/b/' {p}", "sort -u | tee {p}", "touch {p}", "rm {p}", "rm -f {p}",
    "git rm -q {p}", "cp template.txt {p}", "npx prettier --write {p}", "eslint --fix {p}", "ruff format {p}", "uv run ruff check --fix {p}",
    "gofmt -w {p}", "black {p}", "python3 - <<'EOF'\nfrom pathlib import Path\np = Path('{p}')\np.write_text(p.read_text() + 'x')\nEOF",
    "python3 - <<'PY'\nwith open('{p}', 'w') as out:\n    out.write('x')\nPY", "node -e \"require('fs').writeFileSync('{p}', 'x')\"",
    "cd {d} && sed -i 's/a/b/' {n}", "npm test && echo ok > {p}",
)  # fmt: skip


def _shell_edit(lab: EditLab, path: str) -> None:
    folder, _, name = path.rpartition("/")
    command = lab.rng.choice(_SHELL_EDITS).replace("{p}", path).replace("{d}", folder).replace("{n}", name)
    if lab.rng.random() < 0.3:
        lab.script(f"const r = await tools.exec_command({{cmd: {_quoted(command)}}});\ntext(r.output);")
    else:
        lab.shell(command)


def _move(lab: EditLab, path: str) -> None:
    old = lab.file()
    lab.edited.add(old)
    lab.shell(f"{lab.rng.choice(('mv', 'git mv'))} {old} {path}")


_BRINGS = (
    (
        "git pull",
        "Updating 1a2b3c4..5d6e7f8\nFast-forward\n x | 2 +-\n create mode 100644 {p}\n delete mode 100644 {q}",
    ),
    (
        "git checkout main && git pull origin main 2>&1 | tail -5",
        " create mode 100644 {p}\n rename {q} => lib/z.py (90%)",
    ),
    ("git merge topic", "Merge made by the 'ort' strategy.\n create mode 100644 {p}"),
    ("git rebase main", "Successfully rebased and updated refs/heads/topic.\n create mode 100644 {p}"),
    ("git stash pop", " create mode 100644 {p}"),
    ("git log --summary -1", " create mode 100644 {p}"),
    ("npm install", "Wrote package-lock.json\nadded 12 packages"),
    ("npm run build > build.log 2>&1", ""),
    ("make 2>&1 | tee /tmp/make.txt", "gcc -c a.c"),
    ("gcc main.c -o main", ""),
    ("npm run build", "Wrote dist/app.js\nCreated dist/{p}"),
    ("rm -rf node_modules dist", ""),
    ("mkdir -p {p}", ""),
    ("prettier --check {p}", "All matched files use the style"),
    ("ruff format {p}", "1 file left unchanged"),
    ("cat {p}", "x = 1"),
)


def _noise(lab: EditLab) -> None:
    path, other = lab.file(), lab.file()
    form = lab.rng.randrange(4)
    if form == 0:
        lab.call(CallStart(lab.next(), "Edit", "edit", lab.named(path)), "old text not found", failed=True)
    elif form == 1:
        lab.shell(lab.rng.choice(("sed -i s/a/b/ {p}", "echo x > {p}", "rm {p}")).replace("{p}", path), "denied", True)
    else:
        command, output = lab.rng.choice(_BRINGS)
        lab.shell(command.replace("{p}", path), output.replace("{p}", path).replace("{q}", other))


def _commit(lab: EditLab) -> None:
    number, subject = lab.hash(), f"Change number {lab.rng.randrange(10_000)} of the shop"
    form = lab.rng.randrange(8)
    last, last_subject = lab.head
    if form == 0:
        lab.shell(f"git commit -m '{subject}'", f"[main {number}] {subject}\n 1 file changed")
    elif form == 1:
        lab.shell(f"git add . && git commit -m '{subject}' | tail -2", f"[main (root-commit) {number}] {subject}")
    elif form == 2:
        lab.shell(f"git commit -q -m '{subject}' && git log --oneline -1", f"{number} (HEAD -> main) {subject}")
    elif form == 3:
        lab.shell(f"git commit -q -m '{subject}'")
        lab.shell("git log --oneline -3", f"{number} {subject}\n1111aaa Something older")
    elif form == 4:
        lab.shell(f"git commit -q -m '{subject}' && git rev-parse --short HEAD", f"{number}")
    elif form == 5 and last:
        lab.commits[last] = True
        lab.shell("git commit --amend --no-edit", f"[main {number}] {subject}\n Date: now")
    elif form == 6 and last:
        lab.commits[last], subject = True, last_subject
        lab.shell("git rebase --continue", f"[detached HEAD {number}] {subject}\n create mode 100644 other.py")
    else:
        command = f"git commit -m '{subject}'"
        lab.script(f"text(await tools.exec_command({{cmd: {_quoted(command)}}}));", f"[main {number}] {subject}")
    lab.commits[number], lab.head = False, (number, subject)


def play_edits(seed: int) -> tuple[EditLab, SessionState]:
    """Play a session and return it with the state that is derived from its messages."""
    rng = random.Random(seed)
    lab = EditLab(rng, rng.choice(_ROOTS))
    lab.messages.append(Message("user", "human", blocks=(Block("text", "work", "prompt"),), starts_turn=True))
    lab.shell("git status", "On branch main\nnothing to commit, working tree clean")
    known: list[str] = []
    for _ in range(rng.randrange(5, 25)):
        if rng.random() < 0.3:
            _noise(lab)
        elif rng.random() < 0.2:
            _commit(lab)
        else:
            path = rng.choice(known) if known and rng.random() < 0.4 else lab.file()
            rng.choice((_tool, _patch, _shell_edit, _shell_edit, _move))(lab, path)
            known.append(path)
            lab.edited.add(path)
    return lab, _state_of(lab)


def _state_of(lab: EditLab) -> SessionState:
    growth, _ = grow_session(JournalTail(), lab.messages)
    state = SessionState("lab", lab.root)
    for turn in growth.turns:
        rows = zip(growth.messages, lab.messages, strict=True)
        facts = turn_facts(turn, rows, growth.calls, growth.steps, growth.artifacts, lab.root)
        state = advance_state(state, facts)
    return state
