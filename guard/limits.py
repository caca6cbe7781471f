"""Limits that the system enforces on a process: memory, processor time, no core files, no network, no life of its own.

What a system does not have (these are Linux's) is left out there, without an error.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_SOCKET_SYSCALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By machine: the kernel's code of its architecture and its number of socket(2)."""


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


def end_with_parent(parent: int, number: int = signal.SIGKILL) -> bool:
    """Have the kernel send this process a signal once the thread that started it has ended; False if it already has.

    `parent` is the id of the process that started this one.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    return os.getppid() == parent


class _BpfInstruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _BpfProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_BpfInstruction))]


def disable_network() -> bool:
    """Make every later socket(2) fail, or enter an empty network namespace; False if the system allows neither."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return _install_socket_filter(libc) or _unshare_network(libc)


def _install_socket_filter(libc: ctypes.CDLL) -> bool:
    if platform.machine() not in _SOCKET_SYSCALLS:
        return False
    architecture, socket_number = _SOCKET_SYSCALLS[platform.machine()]
    instructions = (
        _BpfInstruction(0x20, 0, 0, 4),  # load the architecture
        _BpfInstruction(0x15, 0, 2, architecture),  # another architecture: allow, since its system calls differ
        _BpfInstruction(0x20, 0, 0, 0),  # load the number of the system call
        _BpfInstruction(0x15, 1, 0, socket_number),
        _BpfInstruction(0x06, 0, 0, 0x7FFF0000),  # allow
        _BpfInstruction(0x06, 0, 0, 0x00050000 | errno.EPERM),  # fail with EPERM
    )
    program = _BpfProgram(len(instructions), (_BpfInstruction * len(instructions))(*instructions))
    zero = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        return False
    return bool(
        libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero) == 0
    )


def _unshare_network(libc: ctypes.CDLL) -> bool:
    return any(libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWNET | _CLONE_NEWUSER))
