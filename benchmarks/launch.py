"""Starts one command, waits for it and writes what it cost: `launch.py RESULT COMMAND…`.

A script of its own because of how the kernel counts: a new process starts with the peak memory of the one that made it,
so the command must be started by something small for its peak to be its own. Imports nothing it can do without.
"""

import os
import sys


def main() -> None:
    """Run the command; CPU seconds, peak memory as the system counts it, and the exit code go to the result file."""
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(sys.argv[2], sys.argv[2:])
        finally:
            os._exit(127)
    _, status, used = os.wait4(pid, 0)
    with open(sys.argv[1], "w", encoding="utf-8") as result:
        result.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss} {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
