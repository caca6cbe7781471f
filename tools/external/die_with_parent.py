"""Runs a command that ends when the program that started it does, however that ends: `leash.py COMMAND ...`."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # It may have ended before it was asked to tell.
    if os.getppid() == parent:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command that the user configured
