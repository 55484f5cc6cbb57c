"""What the programs of this folder share: the effect, the script of the model, and the command line.

PROGRAM run LEDGER FOLDER      three parallel calls; the process kills itself after the effect of b
PROGRAM resume LEDGER FOLDER   the system's own way to continue; prints the results that the model is told, as JSON
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable

NAMES = ("a", "b", "c")
ANSWER = "all is done"
PROMPT = "do it all"
#: Words of the command line: `run` or `resume`, the ledger, a folder for the system's own data.
WORK, LEDGER, FOLDER = (*sys.argv[1:], "", "", "")[:3]


def effect(name: str) -> str:
    """Do something that cannot be undone."""
    handle = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{name}\n".encode())
    os.fsync(handle)
    os.close(handle)
    if name == "b" and WORK == "run":
        time.sleep(1.5)  # the others return, and their results are recorded
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done {name}"


def main(run: Callable[[], object], resume: Callable[[], list[str]]) -> None:
    """Do what the command line says."""
    if WORK == "run":
        run()
    else:
        print(json.dumps(resume()), flush=True)
        os._exit(0)  # threads of the systems do not keep it alive
