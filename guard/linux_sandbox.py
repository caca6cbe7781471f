"""Protections of the Linux kernel for one process, called directly: Landlock, namespaces, seccomp, users.

Only the standard library is imported, because the warden (guard/warden.py) runs without the project's packages.
Each function raises OSError where the kernel does not allow what it asks.
"""

import ctypes
import errno
import os
import platform
import resource
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 8, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
_CAP_DAC_READ_SEARCH = 2
_LAST_CAPABILITY = 63

# Landlock's rights (include/uapi/linux/landlock.h), and the version of its interface that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _MAKE_CHAR, _MAKE_BLOCK = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL_DEV}
_SCOPE_VERSION = 6
_SCOPES = 0b11
"""Neither abstract Unix sockets nor signals reach a process outside of the sandbox."""
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

# Calls that a tool does not need and that would leave a limit or reach another process; numbers by architecture.
_DENIED_CALLS: dict[str, dict[str, Any]] = {
    "x86_64": {
        "arch": 0xC000003E,
        "socket": 41,
        # ptrace, process_vm_readv, process_vm_writev, open_by_handle_at, pidfd_getfd, perf_event_open, bpf, userfaultfd
        "others": (101, 310, 311, 304, 438, 298, 321, 323),
        # memory that belongs to no process: shmget, msgget, memfd_create, memfd_secret; rings make calls unseen
        "memory": (29, 68, 319, 447, 425),
        # keys of the session: add_key, request_key, keyctl
        "keys": (248, 249, 250),
    },
    "aarch64": {
        "arch": 0xC00000B7,
        "socket": 198,
        "others": (117, 270, 271, 265, 438, 241, 280, 282),
        "memory": (194, 186, 279, 447, 425),
        "keys": (217, 218, 219),
    },
}
_X32_CALLS = 0x40000000
_REFUSE = 0x50000
_AF_UNIX = 1


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, *values: int) -> int:
    arguments = (*values, 0, 0, 0, 0)[:4]
    return _check(_LIBC.prctl(option, *(ctypes.c_ulong(value) for value in arguments)), f"prctl {option}")


def die_with_parent(signal_number: int) -> None:
    """Get this signal when the thread that started this process ends; a change of user forgets it."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def become_subreaper() -> None:
    """Become the parent of descendants whose parents end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def close_memory() -> None:
    """Close this process's memory and environment to other processes of its user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """No program that this process starts gets more rights, not even one with the setuid bit."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


# --- Namespaces ---


def unshare_processes() -> None:
    """Put the next children of this process into a PID and an IPC namespace of their own.

    An ordinary user needs a user namespace for that, in which the process stays the same user.
    """
    flags = _CLONE_NEWPID | _CLONE_NEWIPC
    if os.geteuid() == 0:
        _check(_LIBC.unshare(flags), "unshare")
        return
    user, group = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(flags | _CLONE_NEWUSER), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def mount_clean_proc(shared_megabytes: int) -> None:
    """Show this namespace's processes only in /proc, and give it a small /dev/shm of its own."""
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    _mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    if Path("/dev/shm").is_dir():  # noqa: S108 - mounted here, not used
        options = f"size={shared_megabytes}m,mode=1777".encode()
        _mount(b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, options)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _check(_LIBC.mount(source, target, kind, ctypes.c_ulong(flags), options), f"mount {target.decode()}")


def unshare_network() -> None:
    """Put this process into an empty network namespace, of a user namespace where it may have no other."""
    if _LIBC.unshare(_CLONE_NEWNET) < 0:
        _check(_LIBC.unshare(_CLONE_NEWNET | _CLONE_NEWUSER), "unshare")


# --- Landlock ---


def landlock_version() -> int:
    """The version of Landlock's interface; 0 without Landlock."""
    return max(0, int(_LIBC.syscall(_SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def has_landlock_scopes() -> bool:
    """Whether Landlock keeps signals within the sandbox."""
    return landlock_version() >= _SCOPE_VERSION


class FileRules:
    """What this process will be able to open, collected while it still can open everything."""

    def __init__(self) -> None:
        version = landlock_version()
        if version == 0:
            raise OSError(errno.ENOSYS, "this kernel has no Landlock")
        self._handled = sum(rights for since, rights in _RIGHTS_BY_VERSION.items() if since <= version)
        scopes = _SCOPES if version >= _SCOPE_VERSION else 0
        attributes = struct.pack("=QQQ", self._handled, 0, scopes)
        size = 24 if scopes else 8
        self._ruleset = _check(
            _LIBC.syscall(_SYS_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)), "Landlock"
        )

    def allow_reading(self, paths: Iterable[str]) -> None:
        """Allow reading and executing these files, and what is under these folders."""
        self._allow(paths, _EXECUTE | _READ_FILE | _READ_DIR)

    def allow_listing(self, paths: Iterable[str]) -> None:
        """Allow listing these folders, and those under them."""
        self._allow(paths, _READ_DIR)

    def allow_writing(self, paths: Iterable[str]) -> None:
        """Allow everything but devices in these files and folders."""
        self._allow(paths, self._handled & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV))

    def allow_devices(self, paths: Iterable[str]) -> None:
        """Allow reading and writing these devices."""
        self._allow(paths, _READ_FILE | _WRITE_FILE | _IOCTL_DEV)

    def _allow(self, paths: Iterable[str], rights: int) -> None:
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                # What does not exist cannot be opened later either.
                continue
            allowed = rights & self._handled
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                allowed &= _FILE_RIGHTS
            rule = struct.pack("=Qi", allowed, descriptor)
            result = _LIBC.syscall(_SYS_LANDLOCK_ADD, self._ruleset, 1, rule, ctypes.c_uint32(0))
            os.close(descriptor)
            _check(result, f"Landlock {path}")

    def enforce(self) -> None:
        """Restrict this process and all that it starts; forbid_new_privileges comes before."""
        _check(_LIBC.syscall(_SYS_LANDLOCK_RESTRICT, self._ruleset, ctypes.c_uint32(0)), "Landlock")
        os.close(self._ruleset)


# --- Seccomp ---


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid_calls(*, unix_sockets: bool) -> None:
    """Forbid calls that tools do not need; sockets of the session bus, of agents and of Docker without `unix_sockets`.

    ENOSYS for this kernel's other architectures, since their calls have other numbers.
    """
    calls = _listed_calls()
    checks = []
    for kind in ("others", "memory", "keys"):
        for number in calls[kind]:
            checks += [(0x15, 0, 1, number), (0x06, 0, 0, _REFUSE | errno.ENOSYS)]
    if not unix_sockets:
        refuse_socket = (0x06, 0, 0, _REFUSE | errno.EACCES)
        checks += [(0x15, 0, 3, calls["socket"]), (0x20, 0, 0, 16), (0x15, 0, 1, _AF_UNIX), refuse_socket]
    _install_filter(calls["arch"], checks)


def forbid_sockets() -> None:
    """Forbid every later socket(2); forbid_new_privileges comes before. ENOSYS as for forbid_calls."""
    calls = _listed_calls()
    _install_filter(calls["arch"], [(0x15, 0, 1, calls["socket"]), (0x06, 0, 0, _REFUSE | errno.EPERM)])


def _listed_calls() -> dict[str, Any]:
    calls = _DENIED_CALLS.get(platform.machine())
    if calls is None:
        raise OSError(errno.ENOSYS, "the calls of this architecture are not listed")
    return calls


def _install_filter(architecture: int, checks: Iterable[tuple[int, int, int, int]]) -> None:
    """Refuse the calls of other architectures, and what the checks refuse by the number of the call."""
    refuse = (0x06, 0, 0, _REFUSE | errno.ENOSYS)
    load_architecture, load_number = (0x20, 0, 0, 4), (0x20, 0, 0, 0)
    program = [load_architecture, (0x15, 1, 0, architecture), refuse, load_number, (0x35, 0, 1, _X32_CALLS), refuse]
    program += [*checks, (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    filter_ = _Filter(len(program), code)
    _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(filter_))


# --- Users and limits ---


def become_user(user: int) -> None:
    """Change from root to an ordinary user for good, who may still read what Landlock allows.

    Landlock must be enforced afterwards, since the user can read every file until then.
    """
    _drop_bounding_set(but=_CAP_DAC_READ_SEARCH)
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _set_capabilities(1 << _CAP_DAC_READ_SEARCH)
    _prctl(_PR_CAP_AMBIENT, 2, _CAP_DAC_READ_SEARCH)


def drop_capabilities() -> None:
    """Give up what root, or the owner of a user namespace, may do beyond its own files."""
    _drop_bounding_set()
    _set_capabilities(0)


def _drop_bounding_set(but: int | None = None) -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        if capability != but and _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            # EINVAL: the kernel has no capability of this number; EPERM: this process has none to give up.
            return


def _set_capabilities(bits: int) -> None:
    header = struct.pack("=Ii", 0x20080522, 0)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    _check(_LIBC.capset(header, struct.pack("=6I", low, low, low, high, high, high)), "capset")


def limit_process(*, file_megabytes: int, files: int, processes: int | None) -> None:
    """Limit the size of files, open files, and the processes of this user, where these are its own."""
    wanted_limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: file_megabytes << 20,
        resource.RLIMIT_NOFILE: files,
    }
    if processes is not None:
        wanted_limits[resource.RLIMIT_NPROC] = processes
    for kind, value in wanted_limits.items():
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (limit, limit))
