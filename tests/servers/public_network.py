"""A network of its own for one process: loopback, and addresses of the public internet that lead to the same machine.

Run by a child process before it starts threads; it needs the right to make network namespaces, as root or as a user.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Sequence

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8914, 0x8916, 0x891C
_UP_AND_RUNNING = 0x41


def enter_network(addresses: Sequence[str]) -> None:
    """Leave the machine's network for one in which these IPv4 addresses are ours; OSError if that is not allowed."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_NEW_NETWORK | (0 if os.geteuid() == 0 else _NEW_USER)) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace can be made")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))
        for number, address in enumerate(addresses):
            name = f"lo:{number}"
            fcntl.ioctl(control, _SET_ADDRESS, _interface_address(name, address))
            fcntl.ioctl(control, _SET_MASK, _interface_address(name, "255.255.255.255"))


def _interface_address(name: str, address: str) -> bytes:
    return struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
