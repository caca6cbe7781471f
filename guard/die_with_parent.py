"""Runs a command that ends when its parent process ends, even if that is killed: `die_with_parent.py COMMAND ...`."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
DIE_WITH_PARENT_SCRIPT = __file__

if __name__ == "__main__":
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have ended before the signal was requested.
    if os.getppid() == parent:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command that the user configured
