"""A server over HTTP in a process of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mcp.pipes import command, environment


@contextmanager
def over_http(db: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, and the port it says it has. Without words it needs no key."""
    command_line = command(db, "--http", "--port", "0", *(words or ("--no-key",)))
    process = subprocess.Popen(command_line, stderr=subprocess.PIPE, env=environment())
    try:
        assert process.stderr
        said = process.stderr.readline().decode()
        if "Bearer" in said:
            said = process.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", said)
        assert found, said
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()
