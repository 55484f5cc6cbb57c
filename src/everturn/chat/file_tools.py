"""The built-in tools of a chat: read and search the workspace; write, edit and run after approval.

Paths outside the workspace are neither read nor written (`recall.workspace`). A shell command can do anything its user
can, so it is shown word for word and runs only after approval. A tool answers what it cannot do in words for the model.
Hints tell the loop how to handle a call that a crash cut short: a read is repeated, a written file is compared with its
intended content, and a person is asked about a command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, tool
from everturn.recall.workspace import FileRefused, read_inside, walk_inside, write_inside
from everturn.text.printable import plain_text, plural, quote_for_model
from everturn.text.regex import EFFORT, Effort, compile_pattern

_MOST_LISTED = 500
_MOST_MATCHES = 100
_LONGEST_LINE = 300
_MOST_OUTPUT = 64_000  # characters of a command's output, half from each end
_SHELL_SECONDS = 600.0


def built_in_tools(workspace: str, level: str, env: Mapping[str, str]) -> list[Tool]:
    """Return the tools of a level for one workspace. Commands run with `env`."""
    reading = [_read_file(workspace), _list_files(workspace), _search(workspace)]
    changing = [_write_file(workspace), _edit_file(workspace), _shell(workspace, env)]
    return {"none": [], "read": reading, "all": [*reading, *changing]}[level]


# --- reading ---
def _read_file(workspace: str) -> Tool:
    @tool(read_only=True)
    def read_file(path: str, first_line: int = 1, last_line: int = 0) -> str:
        """Read a text file of the workspace, or some of its lines (counted from 1; last_line 0 is the end)."""
        lines = plain_text(read_inside(workspace, path).text).split("\n")
        first, last = max(1, first_line), min(last_line or len(lines), len(lines))
        if first > last:
            raise FileRefused(
                f"{path} has {plural(len(lines), 'line')}; there are none from {first_line} to {last_line}"
            )
        shown: list[str] = []
        room = _MOST_OUTPUT
        for number in range(first, last + 1):
            line = f"{number}: {lines[number - 1]}"
            room -= len(line)
            if room < 0 and shown:
                break
            shown.append(line[:_MOST_OUTPUT])
        end = first + len(shown) - 1
        more = f"\nNot shown: lines {end + 1} to {last}; ask with first_line={end + 1}." if end < last else ""
        return f"{path}, lines {first} to {end} of {len(lines)}.\n{quote_for_model(chr(10).join(shown), 'the workspace')}{more}"

    return read_file


def _list_files(workspace: str) -> Tool:
    @tool(read_only=True, name="list")
    def list_files(path: str = "") -> str:
        """List the files and folders below a folder of the workspace (the workspace itself when no path is given)."""
        lines: list[str] = []
        for name, is_folder in walk_inside(workspace, path):
            if len(lines) == _MOST_LISTED:
                lines.append(f"[more than {_MOST_LISTED} entries: list a folder below]")
                break
            lines.append(f"{name}/" if is_folder else name)
        return "\n".join(lines) or "the folder is empty"

    return list_files


def _search(workspace: str) -> Tool:
    @tool(read_only=True)
    def search(pattern: str, path: str = "") -> str:
        """Search the text files below a folder of the workspace for a regular expression; path:line: text for each match."""
        compiled, effort = compile_pattern(pattern), Effort(EFFORT)
        found: list[str] = []
        for name, is_folder in walk_inside(workspace, path):
            if is_folder:
                continue
            try:
                text = read_inside(workspace, name).text
            except FileRefused:  # binary, unreadable, a link
                continue
            for line in compiled.search_lines(text, effort):
                found.append(f"{name}:{line.number + 1}: {plain_text(line.text).strip()[:_LONGEST_LINE]}")
                if len(found) >= _MOST_MATCHES:
                    return "\n".join([*found, f"[the first {_MOST_MATCHES} matches: use a narrower pattern]"])
            if effort.is_spent:
                return "\n".join([*found, "[stopped: it took too much work; use a literal word]"])
        return "\n".join(found) or f"nothing matches {pattern!r}"

    return search


# --- changing ---
def _write_file(workspace: str) -> Tool:
    def reconcile(context: ToolContext, given: dict[str, Any]) -> ReconciledResult | NotDone | None:
        try:
            there = read_inside(workspace, given["path"]).text == given["content"]
        except FileRefused:
            return NotDone()
        return ReconciledResult(f"{given['path']} is written") if there else NotDone()

    @tool(idempotent=True, approval=True, alone=True, reconcile=reconcile)
    def write_file(path: str, content: str) -> str:
        """Write a file of the workspace, new or in place of the old one. The user is asked first."""
        is_new = write_inside(workspace, path, content)
        return f"{path}: {'created' if is_new else 'replaced'}, {len(content.encode('utf-8', 'replace')):,} bytes"

    return write_file


def _edit_file(workspace: str) -> Tool:
    def reconcile(context: ToolContext, given: dict[str, Any]) -> ReconciledResult | NotDone | None:
        try:
            text = read_inside(workspace, given["path"]).text
        except FileRefused:
            return None
        if text.count(given["old"]) == 1:
            return NotDone()
        return ReconciledResult(f"{given['path']}: edited") if given["new"] and given["new"] in text else None

    @tool(approval=True, alone=True, reconcile=reconcile)
    def edit_file(path: str, old: str, new: str) -> str:
        """Replace a text that stands exactly once in a file of the workspace by another. The user is asked first."""
        file = read_inside(workspace, path)
        if file.read < file.size or len(file.text.encode("utf-8", "replace")) != file.read:
            raise FileRefused(f"{path}: too large to be edited, or not UTF-8")
        count = file.text.count(old) if old else 0
        if count != 1:
            raise FileRefused(f"{path}: the old text stands in it {count} times; it must stand there exactly once")
        write_inside(workspace, path, file.text.replace(old, new))
        return f"{path}: edited"

    return edit_file


def _shell(workspace: str, env: Mapping[str, str]) -> Tool:
    @tool(destructive=True, approval=True, alone=True, policy="ask", timeout=_SHELL_SECONDS)
    def shell(command: str, context: ToolContext) -> str:
        """Run a command in a shell, in the workspace. The user is asked first. Ends with the exit status when it is not 0."""
        status, output = _run_command(command, workspace, env, context)
        if status:
            raise CommandFailed(f"exit status {status}\n{output}".rstrip())
        return output

    return shell


class CommandFailed(Exception):
    """A command failed. The message is its output."""

    def __str__(self) -> str:
        return str(self.args[0])


def _run_command(command: str, workspace: str, env: Mapping[str, str], context: ToolContext) -> tuple[int, str]:
    """Run a command in a process group of its own, so that stopping it stops all it started."""
    with tempfile.TemporaryFile() as out:
        running = subprocess.Popen(  # noqa: S602 -- the command was approved
            command, shell=True, cwd=workspace, env=dict(env), stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        while running.poll() is None:
            if context.stop.wait(0.02):
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        return running.returncode, _read_output(out)


def _read_output(out: Any) -> str:
    size = out.seek(0, os.SEEK_END)
    if size <= _MOST_OUTPUT:
        out.seek(0)
        return str(out.read().decode("utf-8", "replace"))
    out.seek(0)
    head = out.read(_MOST_OUTPUT // 2).decode("utf-8", "replace")
    out.seek(size - _MOST_OUTPUT // 2)
    tail = out.read().decode("utf-8", "replace")
    return f"{head}\n[… {size - _MOST_OUTPUT:,} bytes are not shown …]\n{tail}"
