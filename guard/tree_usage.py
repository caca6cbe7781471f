"""What a process and all that it started use: processes, memory, files. Linux only, from /proc.

Only the standard library is imported, because the warden runs without the project's packages.
"""

import contextlib
import os
from pathlib import Path

_SOCKET_BYTES = 208 << 10
"""What a socket within the machine may hold, by the kernel's default."""
_PIPE_BYTES = 64 << 10


def descendants(process: int) -> set[int]:
    """The processes that this one started, and those that they started."""
    seen: set[int] = set()
    unvisited = [process]
    while unvisited:
        for child in children(unvisited.pop()):
            if child not in seen:
                seen.add(child)
                unvisited.append(child)
    return seen


def children(process: int) -> list[int]:
    """The processes that this one started and that have not ended, and the orphans that it adopted."""
    started: list[int] = []
    # A process may end while it is looked at.
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - names only
            started += map(int, Path(f"/proc/{process}/task/{task}/children").read_bytes().split())
    return started


def memory_bytes(processes: set[int], limit: int) -> int:
    """The memory of all processes together; what several of them share is counted once where it matters."""
    resident = {process: resident_bytes(process) for process in processes}
    if sum(resident.values()) <= limit:
        return sum(resident.values())
    return sum(_proportional_bytes(process) or resident[process] for process in processes)


def resident_bytes(process: int) -> int:
    """The memory of one process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional_bytes(process: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return 0


def kernel_bytes(processes: set[int]) -> int:
    """What the kernel holds unread for the processes in pipes and sockets; of what it does not tell, the most."""
    sockets: set[str] = set()
    pipes: set[str] = set()
    networks: dict[int, int] = {}
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 - names only
                with contextlib.suppress(OSError):
                    kind, _, number = os.readlink(f"/proc/{process}/fd/{name}").partition(":")  # noqa: PTH115 - no path
                    if kind in ("socket", "pipe"):
                        (sockets if kind == "socket" else pipes).add(number[1:-1])
            networks[Path(f"/proc/{process}/ns/net").stat().st_ino] = process
    queued, listed = 0, set[str]()
    for process in networks.values() if sockets else ():
        queues = _internet_queues(process)
        listed |= {number for number, *_ in queues}
        ports = {local for number, _, local, _ in queues if number in sockets}
        for number, size, local, remote in queues:
            # Nobody has accepted a connection without a number, or its program has closed it.
            if number in sockets or (number == "0" and {local, remote} & ports):
                queued += size
    return queued + _SOCKET_BYTES * len(sockets - listed) + _PIPE_BYTES * len(pipes)


def _internet_queues(process: int) -> list[tuple[str, int, str, str]]:
    """Of each socket in the network of the process: number, unread and unsent bytes, and the ports of both ends."""
    entries = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, _, sizes, _, _, _, _, number = line.split()[:10]
                unsent, unread = (int(size, 16) for size in sizes.split(":"))
                entries.append((number, unsent + unread, local.rpartition(":")[2], remote.rpartition(":")[2]))
    return entries


def disk_bytes(folder: str, processes: set[int]) -> int:
    """The size of the files in the folder, and of deleted files that are still open."""
    files: dict[tuple[int, int], int] = {}
    folders = [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    status = entry.stat(follow_symlinks=False)
                    files[status.st_dev, status.st_ino] = status.st_blocks * 512
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 - names only
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{process}/fd/{name}").stat()
                    if status.st_nlink == 0:
                        files[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(files.values())
