"""Holds a lock on a database until its stdin ends: `python -m tests.faults.holder DATABASE SQL`.

A process of its own, because a process loses its locks on a file as soon as it closes any other handle to it.
"""

import sys

import apsw

if __name__ == "__main__":
    connection = apsw.Connection(sys.argv[1])
    connection.execute(sys.argv[2]).fetchall()
    print("held", flush=True)
    sys.stdin.read()
    connection.close(True)
