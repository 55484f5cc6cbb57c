"""`python -m everturn` is the command `everturn`."""

import sys

from everturn.cli import main

if __name__ == "__main__":
    sys.exit(main())
