"""Cuts this process off from the network, by what the kernel offers."""

import ctypes
import errno
import platform
import sys

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The kernel's code of the machine and its number of socket(2)."""


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction))]


def leave_network() -> bool:
    """Make every later socket(2) fail, or move into an empty network; False where the system allows neither."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return _forbid_sockets(libc) or _enter_empty_network(libc)


def _forbid_sockets(libc: ctypes.CDLL) -> bool:
    if platform.machine() not in _SOCKET_CALL:
        return False
    machine, socket_call = _SOCKET_CALL[platform.machine()]
    steps = (
        _Instruction(0x20, 0, 0, 4),  # load the machine's code
        _Instruction(0x15, 0, 2, machine),  # another machine's call: allow, as its numbers differ
        _Instruction(0x20, 0, 0, 0),  # load the number of the call
        _Instruction(0x15, 1, 0, socket_call),
        _Instruction(0x06, 0, 0, 0x7FFF0000),  # allow
        _Instruction(0x06, 0, 0, 0x00050000 | errno.EPERM),  # fail with EPERM
    )
    program = _Program(len(steps), (_Instruction * len(steps))(*steps))
    zero = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        return False
    return bool(
        libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero) == 0
    )


def _enter_empty_network(libc: ctypes.CDLL) -> bool:
    return any(libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWNET | _CLONE_NEWUSER))
