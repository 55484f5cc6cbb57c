"""The command line, except that it waits for a locked archive for a moment only."""

import sys

from everturn.cli import main
from everturn.store import sqlite_opening

if __name__ == "__main__":
    sqlite_opening.BUSY_MS = 200
    sys.exit(main())
