"""A process that syncs a growing history again and again, until it is ended: `python -m tests.mcp.writer DB FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from everturn.store.contract import open_store
from tests.capture.history import History, run


def main() -> None:
    """Take in one more turn and one more session with each round, and say so."""
    history = History(Path(sys.argv[2]))
    store = open_store(sys.argv[1])
    for number in range(1_000_000):
        sid = f"{number % 40:08d}-aaaa-4333-8444-555555555555"
        data = b"".join(
            history.tool_turn(f"question {number}", "run", "output of a tool\n" * 400, sid) for _ in range(5)
        )
        history.grow(data, sid)
        run(store, history)
        if number < 3:
            sys.stdout.write("written\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
