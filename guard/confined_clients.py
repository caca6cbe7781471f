"""Whether the client of a connection is a confined program, which may use the network but must open no page of ours.

    is_confined_client(("127.0.0.1", 50_000), ("127.0.0.1", 8501))

The kernel says which process holds the other end of a connection on this machine; above every confined program is its
warden (guard/warden.py). Linux only, since nothing is confined elsewhere.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from showhow.guard.confinement import is_user_of_programs

_WARDEN = b"guard/warden.py"
_MAX_ANCESTORS = 1_000
Address = tuple[str, int]


def is_confined_client(client: Address, server: Address) -> bool:
    """Whether a confined program opened the connection, or one that was gone before it could be found."""
    if sys.platform != "linux" or not any(map(_is_warden, _list_processes())):
        return False
    end = _find_end(client, server)
    if end is None:
        # A connection of another machine has its other end there.
        return client[0] == server[0] or _parse_address(client[0]).is_loopback
    user, number = end
    if number == 0 or user != os.geteuid():
        return number == 0 or is_user_of_programs(user)
    owner = next((process for process in _list_processes() if _has_socket(process, number)), None)
    try:
        return owner is None or any(map(_is_warden, _list_ancestors(owner)))
    except OSError:
        # It has ended meanwhile, and may have passed its end on.
        return True


def _find_end(client: Address, server: Address) -> tuple[int, int] | None:
    """The user and the socket of the client's end, 0 for a closed one; None if it is not on this machine."""
    ends = {(one, other) for one in _spell(client) for other in _spell(server)}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if (fields[1], fields[2]) in ends:
                    return int(fields[7]), int(fields[9])
    return None


def _spell(address: Address) -> list[str]:
    """The address as the kernel's tables for IPv4 and IPv6 spell it: words of four bytes in the machine's order."""
    host = _parse_address(address[0])
    packed = [host.packed]
    if host.version == 4:
        packed.append(IPv6Address(f"::ffff:{host}").packed)
    words = [[data[start : start + 4] for start in range(0, len(data), 4)] for data in packed]
    return ["".join(f"{int.from_bytes(w, sys.byteorder):08X}" for w in one) + f":{address[1]:04X}" for one in words]


def _parse_address(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _list_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 - names only


def _is_warden(process: int) -> bool:
    with contextlib.suppress(OSError):
        return any(word.endswith(_WARDEN) for word in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[:6])
    return False


def _has_socket(process: int, number: int) -> bool:
    link = f"socket:[{number}]"
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 - names only
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{process}/fd/{name}") == link:  # noqa: PTH115 - no path
                    return True
    return False


def _list_ancestors(process: int) -> Iterator[int]:
    """The process and those above it; OSError if one has ended meanwhile."""
    for _ in range(_MAX_ANCESTORS):
        yield process
        if process <= 1:
            return
        # proc(5): the parent is the fourth field; the second one may have spaces.
        process = int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1])
