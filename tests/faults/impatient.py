"""The command line, except that it waits for a locked archive for a moment only."""

import sys

from everturn.cli import main
from everturn.store import sqlite

if __name__ == "__main__":
    sqlite.BUSY_MS = 200
    sys.exit(main())
