"""Print a summary of the notes that `everturn why --export notes` wrote on the commits of a range, as Markdown.

For `action.yml`: standard library only, reads git notes and nothing else, and never fails a build.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

_REFS = ("ai", "everturn")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_SAFE = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager")


def git(*words: str) -> str:
    """Return the output of git; "" if it fails."""
    done = subprocess.run([*_SAFE, *words], capture_output=True, text=True, check=False, errors="replace")
    return done.stdout if done.returncode == 0 else ""


def counts_of(note: str) -> tuple[dict[str, int], dict[str, dict[str, str]], list[str]]:
    """Return the lines of each session, the sessions, and the levels of a note."""
    head, _, tail = note.partition("\n---\n")
    try:
        about = json.loads(tail)
    except ValueError:
        return {}, {}, []
    counts: dict[str, int] = {}
    for line in head.splitlines():
        if line.startswith("  ") and (words := line.split()) and len(words) == 2:
            lines = sum(int(b or a) - int(a) + 1 for a, b in _RANGE.findall(words[1]))
            session = words[0].partition("::")[0]
            counts[session] = counts.get(session, 0) + lines
    sessions = {key: one.get("agent_id", {}) for key, one in about.get("sessions", {}).items() if isinstance(one, dict)}
    own = about.get("everturn")
    return counts, sessions, [str(one) for one in own.get("levels", [])] if isinstance(own, dict) else []


def plain(text: object) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"[^\w.:/@ +-]", "", str(text))[:80]


def summary(base: str, head: str) -> str:
    """Return the Markdown for a range."""
    span = [head, f"^{base}"] if _SHA.fullmatch(base) else ["-1", head]
    rows = []
    for sha in git("rev-list", "--no-merges", *span).split():
        note = next((text for ref in _REFS if (text := git("notes", f"--ref={ref}", "show", sha))), "")
        counts, sessions, levels = counts_of(note)
        added = sum(
            int(row.split("\t")[0])
            for row in git("show", "--numstat", "--format=", sha).splitlines()
            if row[:1].isdigit()
        )
        for key, n in counts.items():
            one = sessions.get(key, {})
            who = f"{plain(one.get('tool', '?'))} {plain(one.get('id', key))}"
            rows.append(f"| `{sha[:9]}` | {who} | {n} of {added} | {', '.join(map(plain, levels))} |")
        if not counts:
            rows.append(f"| `{sha[:9]}` | – | unknown ({added} lines) | |")
    table = [
        "### Sessions behind these commits",
        "",
        "| commit | session | added lines | levels |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(
        [
            *table,
            "",
            "From git notes. Lines that are not listed are unknown, which does not mean that a human wrote them.",
        ]
    )


if __name__ == "__main__":
    print(summary(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2] if len(sys.argv) > 2 else "HEAD"))
