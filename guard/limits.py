"""Limits that the system enforces on a process: memory, processor time, no core files, no network, no life of its own.

What a system does not have (these are Linux's) is left out there, without an error.
"""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

from showhow.guard import linux_sandbox

_PR_SET_PDEATHSIG = 1


def limit_memory(megabytes: int, *, is_final: bool = True) -> None:
    """Let this process and its later children use that much address space beyond what it uses now, and no core files.

    Above it, MemoryError is raised. A limit that is not final may be raised again by the process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        highest = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = used + (megabytes << 20)
        if highest != resource.RLIM_INFINITY:
            limit = min(limit, highest)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit if is_final else highest))


def limit_processor_time(seconds: float) -> None:
    """Let this process use that many seconds of processor time from now on; above them SIGXCPU ends it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(usage.ru_utime + usage.ru_stime + seconds) + 1
    highest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(
        resource.RLIMIT_CPU, (limit if highest == resource.RLIM_INFINITY else min(limit, highest), highest)
    )


def end_with_parent(parent: int) -> bool:
    """Have the kernel kill this process once the thread that started it has ended; False if it already has.

    `parent` is the id of the process that started this one.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return os.getppid() == parent


def disable_network() -> bool:
    """Make every later socket(2) fail, or enter an empty network namespace; False if the system allows neither."""
    if sys.platform != "linux":
        return False
    for attempt in (_forbid_sockets, linux_sandbox.unshare_network):
        with suppress(OSError):
            attempt()
            return True
    return False


def _forbid_sockets() -> None:
    linux_sandbox.forbid_new_privileges()
    linux_sandbox.forbid_sockets()
