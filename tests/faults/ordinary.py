"""Runs a program as somebody who must obey permissions, which root need not: `python ordinary.py PROGRAM WORDS…`."""

import ctypes
import os
import sys

_DROP_FROM_ALL_TO_COME = 24  # PR_CAPBSET_DROP
_READ_AND_WRITE_ANYTHING = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

if __name__ == "__main__":
    if os.geteuid() == 0:
        for right in _READ_AND_WRITE_ANYTHING:
            ctypes.CDLL(None, use_errno=True).prctl(_DROP_FROM_ALL_TO_COME, right, 0, 0, 0)
    os.execv(sys.argv[1], sys.argv[1:])
