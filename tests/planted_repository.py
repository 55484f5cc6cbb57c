"""A git repository in which scripted agents, a person and a formatter really edit and commit, with the truth of each line.

Every line of every file carries the one who wrote it: `(session, turn)` of an agent, or None for anybody else. Agents leave
transcripts as their clients would; git makes the commits: plain, amended, rebased, squashed, picked, merged, in worktrees.
The same seed gives the same history. No test framework is needed here: benchmarks use it too.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

_START = 1_767_600_000  # 2026-01-05T08:00:00Z
_NOUNS = "order invoice parser cache queue worker session token ledger router buffer schema metric tenant bundle cursor".split()
_VERBS = "load merge split check render encode count fetch trim route pack scan reduce verify".split()
#: Lines that several writers may write, and lines that say nothing.
_COMMON = ("import os", "import json", "logger = logging.getLogger(__name__)", "    self.items = []", "    result = {}")
_TRIVIAL = ("", "    return None", "    pass", "    }", "    else:", ")")

#: Authors whose commits no session had a part in.
_OTHERS = ("bumper[bot] <bot@example.org>", "Ben <ben@example.org>")

Writer = tuple[str, int] | None


@dataclass
class Line:
    """A line and who wrote it."""

    text: str
    writer: Writer


@dataclass
class Session:
    """An agent's session: the records of its transcript so far."""

    id: str
    client: str  # claude | codex
    root: Path
    path: Path
    records: list[dict[str, Any]] = field(default_factory=list)
    turn: int = -1
    parent: Session | None = None
    calls: int = 0


class PlantedRepository:
    """One repository below `folder`, the transcripts in `folder`/home, and the truth."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.seed = folder, seed
        self.root, self.home = folder / "shop", folder / "home"
        self.dice = random.Random(seed)
        self.now = float(_START)
        self.sessions: list[Session] = []
        self.trees: dict[Path, dict[str, list[Line]]] = {self.root: {}}
        self.crlf: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._serial = 0
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ann")
        self.git("config", "user.email", "ann@example.org")
        self.human_file("README.md", 6)
        self.human_file("src/base.py", 30)
        self.human_file("src/legacy.py", 25)
        self.commit("Start")

    # --- time, git ---
    def tick(self, seconds: float = 0) -> None:
        self.now += seconds or self.dice.uniform(3, 40)

    def git(self, *words: str, root: Path | None = None, author: float | None = None) -> str:
        """Run git at the time of the story."""
        when = f"{int(self.now)} +0000"
        env = {
            "PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.org", "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_EDITOR": "true",
        }  # fmt: skip
        command = ["git", "-c", "core.autocrlf=false", "-C", str(root or self.root), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"git {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def commit(self, subject: str, root: Path | None = None, *more: str) -> str:
        self.tick()
        self.git("add", "-A", root=root)
        output = self.git("commit", "-q", "--allow-empty", "-m", subject, *more, root=root)
        self.tick()
        self.counts["commits"] += 1
        return output

    def head(self, root: Path | None = None) -> str:
        return self.git("rev-parse", "HEAD", root=root).strip()

    # --- files ---
    def lines(self, path: str, root: Path | None = None) -> list[Line]:
        return self.trees[root or self.root].setdefault(path, [])

    def save(self, path: str, root: Path | None = None) -> None:
        """Write a file of the story to the disk."""
        place = (root or self.root) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        end = "\r\n" if path in self.crlf else "\n"
        place.write_bytes("".join(f"{line.text}{end}" for line in self.lines(path, root)).encode())

    def text(self, path: str, root: Path | None = None) -> str:
        return "".join(f"{line.text}\n" for line in self.lines(path, root))

    def paths(self, root: Path | None = None, least: int = 1) -> list[str]:
        return sorted(path for path, lines in self.trees[root or self.root].items() if len(lines) >= least)

    def block(self, size: int) -> list[str]:
        """New lines of code: most of them occur nowhere else."""
        found = []
        for _ in range(size):
            roll = self.dice.random()
            self._serial += 1
            noun, verb = self.dice.choice(_NOUNS), self.dice.choice(_VERBS)
            if roll < 0.1:
                found.append(self.dice.choice(_TRIVIAL))
            elif roll < 0.15:
                found.append(self.dice.choice(_COMMON))
            else:
                indent = " " * self.dice.choice((0, 4, 8))
                found.append(
                    f"{indent}{noun}_{self._serial} = {verb}_{noun}('{verb}', {self.dice.randrange(1000)}, limit={self._serial})"
                )
        return found

    # --- a person, a formatter ---
    def human_file(self, path: str, size: int) -> None:
        self.trees[self.root][path] = [Line(text, None) for text in self.block(size)]
        self.save(path)

    def human_edit(self, path: str, root: Path | None = None) -> None:
        lines = self.lines(path, root)
        at = self.dice.randrange(len(lines) + 1)
        lines[at:at] = [Line(text, None) for text in self.block(self.dice.randint(1, 4))]
        if lines and self.dice.random() < 0.5:
            at = self.dice.randrange(len(lines))
            self._serial += 1
            lines[at] = Line(f"human_{self._serial} = {self.dice.randrange(10**6)}", None)
        self.save(path, root)
        self.counts["human edits"] += 1
        self.tick()

    def formatter(self, path: str, root: Path | None = None) -> None:
        """Change quotes and indentation, and wrap some calls; the writers stay."""
        made: list[Line] = []
        for line in self.lines(path, root):
            text = line.text.replace("'", '"').replace("        ", "    ")
            if "(" in text and text.endswith(")") and len(text) > 50 and self.dice.random() < 0.3:
                head, _, rest = text.partition("(")
                indent = text[: len(text) - len(text.lstrip())]
                made += [
                    Line(f"{head}(", line.writer),
                    Line(f"{indent}    {rest[:-1]},", line.writer),
                    Line(f"{indent})", line.writer),
                ]
            else:
                made.append(Line(text, line.writer))
        self.trees[root or self.root][path] = made
        self.save(path, root)
        self.counts["formatter runs"] += 1
        self.tick()

    # --- agents ---
    def agent(self, client: str = "claude", root: Path | None = None, parent: Session | None = None) -> Session:
        sid = f"{self.dice.getrandbits(128):032x}"
        sid = f"{sid[:8]}-{sid[8:12]}-4{sid[13:16]}-8{sid[17:20]}-{sid[20:]}"
        root = root or self.root
        if client == "codex":
            path = self.home / ".codex/sessions/2026/01/05" / f"rollout-2026-01-05T08-00-00-{sid}.jsonl"
        elif parent is not None:
            sid = f"a{sid[:7]}"
            path = self.home / ".claude/projects/shop" / parent.id / "subagents" / f"agent-{sid}.jsonl"
        else:
            path = self.home / ".claude/projects/shop" / f"{sid}.jsonl"
        session = Session(sid, client, root, path, parent=parent)
        self.sessions.append(session)
        if client == "codex":
            self._codex(
                session,
                "session_meta",
                id=sid,
                cwd=str(root),
                timestamp=self._stamp(),
                cli_version="0.50.0",
                originator="codex",
            )
        return session

    def prompt(self, session: Session, text: str) -> None:
        """Begin a turn."""
        session.turn += 1
        if session.client == "codex":
            self._codex(
                session, "response_item", type="message", role="user", content=[{"type": "input_text", "text": text}]
            )
        else:
            self._claude(session, "user", {"role": "user", "content": text})
        self.tick()
        self.say(session, "I will look at it.")

    def say(self, session: Session, text: str) -> None:
        if session.client == "codex":
            self._codex(
                session,
                "response_item",
                type="message",
                role="assistant",
                content=[{"type": "output_text", "text": text}],
            )
        else:
            self._claude(session, "assistant", {"role": "assistant", "content": [{"type": "text", "text": text}]})
        self.tick()

    def call(
        self, session: Session, name: str, given: Any, output: str = "ok", note: Any = None, failed: bool = False
    ) -> None:
        """One tool call with its result. The files were changed by the caller between the two."""
        session.calls += 1
        call = f"call_{session.id[:8]}_{session.calls}"
        if session.client == "codex":
            kind = "custom_tool_call" if name == "apply_patch" else "function_call"
            key = "input" if name == "apply_patch" else "arguments"
            value = given if name == "apply_patch" else json.dumps(given)
            self._codex(session, "response_item", type=kind, name=name, call_id=call, **{key: value})
            self.tick(1)
            status = 1 if failed else 0
            wrapped = json.dumps({"output": output, "metadata": {"exit_code": status, "duration_seconds": 0.1}})
            self._codex(session, "response_item", type=f"{kind}_output", call_id=call, output=wrapped)
        else:
            block = {"type": "tool_use", "id": call, "name": name, "input": given}
            self._claude(session, "assistant", {"role": "assistant", "content": [block]})
            self.tick(1)
            result = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": output,
                **({"is_error": True} if failed else {}),
            }
            more = {"toolUseResult": note} if note is not None else {}
            self._claude(session, "user", {"role": "user", "content": [result]}, **more)
        self.counts["calls"] += 1

    def _codex(self, session: Session, kind: str, **payload: Any) -> None:
        session.records.append({"timestamp": self._stamp(), "type": kind, "payload": payload})

    def _claude(self, session: Session, kind: str, message: dict[str, Any], **more: Any) -> None:
        n = len(session.records)
        record: dict[str, Any] = {
            "parentUuid": f"{session.id}-{n - 1}" if n else None, "isSidechain": session.parent is not None, "userType": "external",
            "cwd": str(session.root), "sessionId": session.parent.id if session.parent else session.id, "version": "2.0.14",
            "type": kind, "uuid": f"{session.id}-{n}", "timestamp": self._stamp(), "message": message, **more,
        }  # fmt: skip
        if session.parent is not None:
            record["agentId"] = session.id
        if kind == "assistant":
            message.update(
                {
                    "id": f"msg_{session.id}_{n}",
                    "type": "message",
                    "model": "claude-x",
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            )
        session.records.append(record)

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # --- edits of agents ---
    def edit(self, session: Session, path: str) -> None:
        """Insert or replace a block."""
        lines = self.lines(path, session.root)
        if not lines:
            self.write(session, path, self.block(self.dice.randint(5, 30)))
            return
        at = self.dice.randrange(len(lines))
        size = min(self.dice.randint(1, 3), len(lines) - at)
        anchor = [line.text for line in lines[at : at + size]]
        while (("\n".join(anchor) + "\n") not in self.text(path, session.root)) or self.text(path, session.root).count(
            "\n".join(anchor)
        ) != 1:
            if at == 0:
                self.patch(session, path, 0, len(lines), [line.text for line in lines] + self.block(4))
                return
            at, size = at - 1, size + 1
            anchor = [line.text for line in lines[at : at + size]]
        fresh = self.block(self.dice.randint(1, 12))
        new = fresh if self.dice.random() < 0.3 else [*anchor, *fresh]
        self.patch(session, path, at, size, new)

    def patch(self, session: Session, path: str, at: int, size: int, new: list[str]) -> None:
        """Replace lines with the client's own tool."""
        lines = self.lines(path, session.root)
        old = [line.text for line in lines[at : at + size]]
        original = self.text(path, session.root)
        writer = self._writer(session)
        made = [Line(text, writer) for text in new]
        for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            for offset in range(block.size):
                made[block.b + offset] = lines[at + block.a + offset]
        lines[at : at + size] = made
        self.save(path, session.root)
        if session.client == "codex":
            before = [line.text for line in lines[max(0, at - 2) : at]]
            body = [f" {text}" for text in before] + [f"-{text}" for text in old] + [f"+{text}" for text in new]
            given = "\n".join(["*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch"])
            self.call(session, "apply_patch", given, "Success. Updated the following files:\nM " + path)
        else:
            place = str(session.root / path)
            texts = {"old_string": "\n".join(old), "new_string": "\n".join(new)}
            known = {"originalFile": original} if self.dice.random() < 0.5 else {}
            note: Any = {"filePath": place, "oldString": texts["old_string"], "structuredPatch": [], **known}
            self.call(session, "Edit", {"file_path": place, **texts}, "updated", note)
        self.counts["edits"] += 1
        self.tick()

    def write(self, session: Session, path: str, new: list[str]) -> None:
        """Write a whole file: a new one, or all of one that was read before."""
        old = self.lines(path, session.root)
        original = self.text(path, session.root)
        made = [Line(text, self._writer(session)) for text in new]
        for block in SequenceMatcher(None, [line.text for line in old], new, autojunk=False).get_matching_blocks():
            for offset in range(block.size):
                made[block.b + offset] = old[block.a + offset]
        existed = bool(old)
        self.trees[session.root][path] = made
        self.save(path, session.root)
        body = "".join(f"{text}\n" for text in new)
        if session.client == "codex":
            if existed:
                command = {"cmd": f"cat > {path} <<'EOF'\n{body}EOF", "workdir": str(session.root)}
                self.call(session, "exec_command", command)
            else:
                added = "\n".join(f"+{text}" for text in new)
                self.call(session, "apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}\n*** End Patch")
        elif self.dice.random() < 0.3 and not existed:
            self.call(session, "Bash", {"command": f"cat > {path} <<'EOF'\n{body}EOF"}, "")
        else:
            place = str(session.root / path)
            note: Any = {"type": "update" if existed else "create", "filePath": place, "content": body, "structuredPatch": [],
                    "originalFile": original if existed else None}  # fmt: skip
            self.call(session, "Write", {"file_path": place, "content": body}, "written", note)
        self.counts["writes"] += 1
        self.tick()

    def rewrite(self, session: Session, path: str) -> None:
        """Write a whole file again with a few changes."""
        texts = [line.text for line in self.lines(path, session.root)]
        if session.client == "codex":  # an agent reads a file before it writes all of it
            self.call(
                session,
                "exec_command",
                {"cmd": f"cat {path}", "workdir": str(session.root)},
                self.text(path, session.root),
            )
        at = self.dice.randrange(len(texts) + 1)
        self.write(session, path, [*texts[:at], *self.block(self.dice.randint(1, 6)), *texts[at:]])

    def failed_edit(self, session: Session, path: str) -> None:
        """An edit that the client refused or the person rejected: nothing changes."""
        texts = self.block(2)
        why = self.dice.choice(
            ("String to replace not found in file.", "The user doesn't want to proceed with this tool use.")
        )
        given = {"file_path": str(session.root / path), "old_string": "zz", "new_string": "\n".join(texts)}
        if session.client == "codex":
            patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-zz\n+{texts[0]}\n*** End Patch"
            self.call(session, "apply_patch", patch, "apply_patch verification failed: Failed to find", failed=True)
        else:
            self.call(session, "Edit", given, why, failed=True)
        # The person writes the same text by hand: it must not be credited to the agent.
        self.lines(path, session.root).extend(Line(text, None) for text in texts)
        self.save(path, session.root)
        self.counts["failed edits"] += 1

    def redo(self, session: Session, path: str) -> None:
        """An edit that a person takes back, and that a session makes again."""
        lines = self.lines(path, session.root)
        before = list(lines)
        self.edit(session, path)
        self.trees[session.root][path] = before
        self.save(path, session.root)
        self.tick()

    def substitute(self, session: Session, path: str) -> None:
        """Replace a word with sed in the shell."""
        lines = self.lines(path, session.root)
        chosen = [line for line in lines if "_" in line.text and line.text.strip() and " = " in line.text]
        if not chosen:
            return
        old = self.dice.choice(chosen).text.split(" = ")[0].strip()
        new = f"{old}_renamed"
        if any(old in line.text and not line.text.strip().startswith(f"{old} = ") for line in lines):
            return
        for number, line in enumerate(lines):
            if old in line.text:
                lines[number] = Line(line.text.replace(old, new), self._writer(session))
        self.save(path, session.root)
        command = f"sed -i 's/{old}/{new}/g' {path}"
        name, given = (
            ("exec_command", {"cmd": command, "workdir": str(session.root)})
            if session.client == "codex"
            else ("Bash", {"command": command})
        )
        self.call(session, name, given, "")
        self.counts["substitutions"] += 1
        self.tick()

    def session_commit(self, session: Session, subject: str, amend: bool = False) -> None:
        """A commit that an agent makes in its shell."""
        self.tick()
        self.git("add", "-A", root=session.root)
        words = ["commit", "--amend", "--no-edit"] if amend else ["commit", "--allow-empty", "-m", subject]
        output = self.git(*words, root=session.root)
        command = f"git add -A && git {' '.join(words[:-1])} '{words[-1]}'"
        name, given = (
            ("exec_command", {"cmd": command}) if session.client == "codex" else ("Bash", {"command": command})
        )
        self.call(session, name, given, output)
        self.counts["commits"] += 1
        self.tick()

    def _writer(self, session: Session) -> Writer:
        return session.id, session.turn

    def fork(self, session: Session) -> None:
        """A copy of a session under another id, with the same calls, as a client makes when it resumes."""
        if session.client != "claude" or session.parent is not None:
            return
        copy = self.agent("claude", session.root)
        copy.records = [{**record, "sessionId": copy.id} for record in session.records]
        copy.turn, copy.calls = session.turn, session.calls + 1000
        self.prompt(copy, "thanks, that is all")
        self.say(copy, "Good.")

    def save_transcripts(self) -> None:
        for session in self.sessions:
            if session.records:
                session.path.parent.mkdir(parents=True, exist_ok=True)
                session.path.write_text(
                    "".join(json.dumps(record) + "\n" for record in session.records), encoding="utf-8"
                )

    # --- branches ---
    def worktree(self, name: str) -> Path:
        root = self.folder / f"shop-{name}"
        self.git("worktree", "add", "-q", "-b", name, str(root))
        self.trees[root] = {
            path: [Line(line.text, line.writer) for line in lines] for path, lines in self.trees[self.root].items()
        }
        return root

    def take_back(self, root: Path, base: dict[str, list[Line]]) -> None:
        """Read the files of the main tree after git changed them, with the writers of both sides."""
        other = self.trees[root]
        mine = self.trees[self.root]
        made: dict[str, list[Line]] = {}
        for path in sorted(set(mine) | set(other)):
            place = self.root / path
            if not place.exists():
                continue
            texts = place.read_bytes().decode().replace("\r\n", "\n").split("\n")[:-1]
            lines = [Line(text, None) for text in texts]
            for version in (base.get(path, []), mine.get(path, []), other.get(path, [])):
                pairs = SequenceMatcher(
                    None, [line.text for line in version], texts, autojunk=False
                ).get_matching_blocks()
                for block in pairs:
                    for offset in range(block.size):
                        found = version[block.a + offset].writer
                        lines[block.b + offset].writer = found if found is not None else lines[block.b + offset].writer
            made[path] = lines
        self.trees[self.root] = made

    def snapshot(self) -> dict[str, list[Line]]:
        return {path: [Line(line.text, line.writer) for line in lines] for path, lines in self.trees[self.root].items()}

    def truth(self) -> dict[str, list[Line]]:
        """Return who wrote each line of each file of the main tree, and check that the story and the disk agree."""
        for path, lines in self.trees[self.root].items():
            texts = (self.root / path).read_bytes().decode().replace("\r\n", "\n").split("\n")[:-1]
            assert texts == [line.text for line in lines], path
        return self.trees[self.root]


def tell_story(folder: Path, seed: int, chapters: int = 12) -> PlantedRepository:
    """Plant a repository with a random history of all kinds."""
    story = PlantedRepository(folder, seed)
    dice = story.dice
    active = [story.agent("claude"), story.agent("codex")]
    for number in range(chapters):
        if dice.random() < 0.4:
            active[dice.randrange(len(active))] = story.agent(dice.choice(("claude", "claude", "codex")))
        for session in active:
            story.prompt(session, f"please {dice.choice(_VERBS)} the {dice.choice(_NOUNS)} in chapter {number}")
        _work(story, active, number)
        _CHAPTERS[(number + seed) % len(_CHAPTERS)](story, active, number)
    story.save_transcripts()
    return story


def _work(story: PlantedRepository, active: list[Session], number: int) -> None:
    """Some edits of several sessions in the same tree, one after another, with a person between them."""
    dice = story.dice
    if dice.random() < 0.6:
        path = f"src/part{number}.py"
        if dice.random() < 0.25:
            story.crlf.add(path)
        story.write(dice.choice(active), path, story.block(dice.randint(8, 60)))
    for _ in range(dice.randint(3, 9)):
        deed = dice.choices(_DEEDS, _WEIGHTS)[0]
        deed(story, dice.choice(active), dice.choice(story.paths()))


def _helped_edit(story: PlantedRepository, session: Session, path: str) -> None:
    helper = story.agent("claude", parent=session) if session.client == "claude" else session
    if helper is not session:
        story.prompt(helper, "do this part")
    story.edit(helper, path)


def _edit_by_hand(story: PlantedRepository, session: Session, path: str) -> None:
    story.human_edit(path, session.root)


_DEEDS = (
    PlantedRepository.edit, PlantedRepository.rewrite, _edit_by_hand, PlantedRepository.failed_edit,
    PlantedRepository.substitute, _helped_edit,
)  # fmt: skip
_WEIGHTS = (60, 10, 10, 6, 7, 7)


def _plain(story: PlantedRepository, active: list[Session], number: int) -> None:
    if story.dice.random() < 0.5:
        story.session_commit(story.dice.choice(active), f"Chapter {number}")
    else:
        story.commit(f"Chapter {number}")


def _formatted(story: PlantedRepository, active: list[Session], number: int) -> None:
    for path in story.paths()[:2]:
        story.formatter(path)
    story.commit(f"Formatted chapter {number}")


def _formatted_later(story: PlantedRepository, active: list[Session], number: int) -> None:
    story.commit(f"Chapter {number}")
    for path in story.paths()[-2:]:
        story.formatter(path)
    story.commit(f"Format {number}")


def _renamed(story: PlantedRepository, active: list[Session], number: int) -> None:
    story.commit(f"Chapter {number}")
    path = story.dice.choice([one for one in story.paths(least=4) if one.startswith("src/")])
    new = f"src/moved{number}.py"
    story.git("mv", path, new)
    story.trees[story.root][new] = story.trees[story.root].pop(path)
    if path in story.crlf:
        story.crlf.add(new)
    if story.dice.random() < 0.5:
        story.edit(story.dice.choice(active), new)
    story.commit(f"Move {path}")


def _amended(story: PlantedRepository, active: list[Session], number: int) -> None:
    session = story.dice.choice(active)
    story.session_commit(session, f"Chapter {number}")
    story.edit(session, story.dice.choice(story.paths()))
    story.session_commit(session, "", amend=True)


def _in_worktree(story: PlantedRepository, active: list[Session], number: int, how: str) -> None:
    """A branch in a worktree with commits of an agent, while the main branch goes on."""
    story.commit(f"Before branch {number}")
    base = story.snapshot()
    root = story.worktree(f"b{number}")
    session = story.agent("claude" if story.dice.random() < 0.7 else "codex", root)
    story.prompt(session, f"build the {how} feature {number}")
    for _ in range(story.dice.randint(1, 3)):
        story.write(session, f"src/{how}{number}_{story.counts['calls']}.py", story.block(story.dice.randint(5, 25)))
        story.edit(session, "src/base.py")
        story.session_commit(session, f"Branch work {number}")
    if story.dice.random() < 0.6:  # the main branch moves on, in another file
        story.prompt(active[0], "meanwhile on main")
        story.edit(active[0], "src/legacy.py" if "src/legacy.py" in story.paths() else story.paths()[0])
        story.commit(f"Meanwhile {number}")
    story.tick(120)
    if how == "rebase":
        story.git("rebase", "-q", "main", root=root)
        story.git("merge", "-q", "--ff-only", f"b{number}")
    elif how == "squash":
        story.git("merge", "-q", "--squash", f"b{number}")
        story.git("commit", "-q", "-m", f"Squashed {number}")
    elif how == "pick":
        for one in story.git("rev-list", "--reverse", f"main..b{number}").split():
            story.git("cherry-pick", one)
    else:
        story.git("merge", "-q", "--no-ff", "-m", f"Merge b{number}", f"b{number}")
    story.take_back(root, base)
    story.counts[how] += 1
    if story.dice.random() < 0.5:
        story.git("worktree", "remove", "--force", str(root))
    story.tick()


def _rebased(story: PlantedRepository, active: list[Session], number: int) -> None:
    _in_worktree(story, active, number, "rebase")


def _squashed(story: PlantedRepository, active: list[Session], number: int) -> None:
    _in_worktree(story, active, number, "squash")


def _picked(story: PlantedRepository, active: list[Session], number: int) -> None:
    _in_worktree(story, active, number, "pick")


def _merged(story: PlantedRepository, active: list[Session], number: int) -> None:
    _in_worktree(story, active, number, "merge")


def _redone(story: PlantedRepository, active: list[Session], number: int) -> None:
    story.redo(active[0], "src/base.py")
    story.edit(active[-1], "src/base.py")
    story.commit(f"Chapter {number}")
    story.fork(active[0])
    active[0] = story.agent("claude")
    story.prompt(active[0], "go on in a new session")


def _bot(story: PlantedRepository, active: list[Session], number: int) -> None:
    """Commits of a bot and of another person: nothing of them is in the archive."""
    story.commit(f"Chapter {number}")
    for author in _OTHERS:
        story.tick(400)
        for path in story.paths()[:3]:
            story.human_edit(path)
        story.commit(f"Bump {number}", None, f"--author={author}")


_CHAPTERS = (
    _plain, _formatted, _renamed, _amended, _rebased, _plain, _squashed, _formatted_later, _picked, _redone, _merged, _bot,
)  # fmt: skip
