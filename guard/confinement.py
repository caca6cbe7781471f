"""Confines programs of others: what they may open, what they may use together, and that nothing of them is left.

A confined program is started by a warden (guard/warden.py). It reads the system's programs and libraries, its own
installation and the named folders; it writes in a home of its own and in folders that the operator named. It may
use the network. Each protection is used where the system allows it; `missing_protections` says which do not hold here.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from showhow.guard.linux_sandbox import close_memory

_WARDEN = Path(__file__).with_name("warden.py")
_PROBE_SECONDS = 20.0
_FIRST_USER, _USERS = 61_184, 4_336
"""The numbers that systemd, too, gives to services without a name."""
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/run/current-system", "/proc"),
    *("/sys/devices/system", "/sys/fs/cgroup"),
)
_SYSTEM_SETTINGS = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "ssl", "pki", "crypto-policies", "fonts", "gai.conf"),
    *(
        "group",
        "host.conf",
        "hosts",
        "hostname",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "locale.alias",
        "localtime",
    ),
    *("machine-id", "mime.types", "nsswitch.conf", "os-release", "passwd", "protocols", "resolv.conf", "services"),
    *("ssl", "timezone", "python3", "python3.11", "magic", "debian_version", "lsb-release"),
)
"""The files of /etc that programs need; what else is there may hold keys."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_INSTALLED = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""What an installation has beside its folder `bin`; other folders beside one may be a person's."""


class Protection(StrEnum):
    """What confines a program, by the part of the system that does it."""

    FILES = "files"
    """Landlock: files outside of the named folders stay closed, and so does the memory of other processes."""
    SIGNALS = "signals"
    """Landlock: no signals to other processes."""
    PROCESSES = "processes"
    """Namespaces: a /proc of its own, and the kernel ends all processes with the first one."""
    CALLS = "calls"
    """Seccomp: no Unix sockets, no memory that belongs to no process."""
    USER = "user"
    """A user of its own, if Showhow runs as root."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What a program and everything that it starts may use together."""

    megabytes: int
    processes: int = 256
    disk_megabytes: int = 1_000
    """In its home; no single file anywhere may be larger either."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a program may open."""

    home: Path
    """Its home and temporary folder, the only place where it always may write."""
    limits: TreeLimits
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """Folders and files that the operator named; a socket among them opens Unix sockets."""
    private: tuple[Path, ...] = ()
    """What stays closed even within the readable folders."""
    without: frozenset[Protection] = frozenset()
    """Protections that are not used, since the system does not allow them."""


class ConfinedLaunch:
    """A confined program that is about to start, and later the way to its warden.

    Start `argv` with `environment` and pass it `descriptors`; then call `mark_started`.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], confinement: Confinement) -> None:
        home = confinement.home
        if sys.platform == "linux" and Protection.FILES in confinement.without:
            # Landlock would close it to the program, whose user may be the same.
            close_memory()
        _prepare_home(home, _own_user(confinement))
        folders = {"HOME": str(home), "TMPDIR": str(home / "tmp")}
        self.environment = {**environment, **folders}
        self.argv = list(argv)
        self.descriptors: tuple[int, ...] = ()
        self._reports = b""
        self._ours: socket.socket | None = None
        if sys.platform == "linux":
            self._ours, self._theirs = socket.socketpair()
            self.argv = [sys.executable, "-I", "-S", str(_WARDEN), str(self._theirs.fileno())]
            self.descriptors = (self._theirs.fileno(),)
            plan = _plan(argv, confinement, self.environment.get("PATH", os.defpath))
            self._ours.sendall(json.dumps(plan).encode() + b"\n")

    def mark_started(self) -> None:
        """Close the warden's end of the socket here."""
        if self._ours is not None:
            self._theirs.close()

    def allow_memory(self, megabytes: int) -> None:
        """Set the memory that the program and everything that it starts may use together."""
        if self._ours is not None:
            with contextlib.suppress(OSError):
                self._ours.sendall(json.dumps({"megabytes": megabytes}).encode() + b"\n")

    def end(self) -> None:
        """Kill the program and everything that it started; the warden does it, and does it too if Showhow is killed."""
        if self._ours is not None:
            # Closed or at its end, it has told the warden the same.
            with contextlib.suppress(OSError):
                self._ours.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket, which ends everything that is left."""
        if self._ours is not None:
            self._theirs.close()
            self._ours.close()

    @property
    def end_reason(self) -> str:
        """Why the warden ended the program or could not start it, as the end of a sentence; "" if it did not."""
        return next((reason for report in self._read_reports() if (reason := _describe_report(report))), "")

    def wait_for_start(self) -> dict[str, object]:
        """The warden's report on the start."""
        while self._ours is not None and b"\n" not in self._reports:
            if not select.select([self._ours], [], [], _PROBE_SECONDS)[0] or not self._receive():
                break
        return next(self._read_reports(), {})

    def _read_reports(self) -> Iterator[dict[str, object]]:
        while self._ours is not None and self._ours.fileno() >= 0 and select.select([self._ours], [], [], 0)[0]:
            if not self._receive():
                break
        yield from map(json.loads, self._reports.split(b"\n")[:-1])

    def _receive(self) -> bool:
        try:
            part = self._ours.recv(65_536) if self._ours is not None else b""
        except OSError:
            part = b""
        self._reports += part
        return bool(part)


def _describe_report(report: Mapping[str, object]) -> str:
    if limit := report.get("exceeded"):
        return f"it was ended because it and what it started used more than {limit} together"
    if layer := report.get("failed_layer"):
        return f"it could not be confined ({layer}); start Showhow again"
    return str(report.get("failed", ""))


def _prepare_home(home: Path, user: int | None) -> None:
    (home / "tmp").mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    if user is None or home.stat().st_uid == user:
        return
    for folder, _, names in os.walk(home):
        for name in ("", *names):
            os.chown(Path(folder) / name, user, user, follow_symlinks=False)


def _own_user(confinement: Confinement) -> int | None:
    """The number of the user that the program runs as, if this process may choose one."""
    if sys.platform != "linux" or os.geteuid() != 0 or Protection.USER in confinement.without:
        return None
    return _FIRST_USER + zlib.crc32(os.fsencode(confinement.home)) % _USERS


def is_user_of_programs(user: int) -> bool:
    """Whether the number is that of a user as whom a confined program may run."""
    return _FIRST_USER <= user < _FIRST_USER + _USERS


def _plan(argv: Sequence[str], confinement: Confinement, path: str) -> dict[str, object]:
    readable: set[Path] = set()
    code, code_folders = _python_code()
    listable = {folder.resolve() for folder in code_folders}
    private = [entry.resolve() for entry in confinement.private]
    for folder in (*confinement.readable, *code, *_program_places(argv[0], path)):
        _open_folder(folder.resolve(), private, readable, listable)
    writable: set[Path] = set()
    for folder in confinement.writable:
        _open_folder(folder.resolve(), private, writable, listable)
    limits, home = confinement.limits, confinement.home.resolve()
    settings = [f"/etc/{name}" for name in _SYSTEM_SETTINGS]
    resolver = os.path.realpath("/etc/resolv.conf")
    return {
        "argv": list(argv),
        "home": str(home),
        "readable": [*_SYSTEM, *settings, resolver, *map(str, sorted(readable))],
        "listable": [str(folder) for folder in sorted(listable)],
        "writable": [str(home), *map(str, sorted(writable))],
        "devices": _DEVICES,
        "unix_sockets": any(entry.is_socket() for entry in confinement.writable),
        "user": _own_user(confinement),
        "megabytes": limits.megabytes,
        "processes": limits.processes,
        "disk_megabytes": limits.disk_megabytes,
        "without": sorted(confinement.without),
    }


def _open_folder(folder: Path, private: Sequence[Path], readable: set[Path], listable: set[Path]) -> None:
    """Add the folder, or what it contains beside the private paths."""
    if any(folder.is_relative_to(path) for path in private):
        return
    if not any(path.is_relative_to(folder) for path in private):
        readable.add(folder)
        return
    listable.add(folder)
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            # A link opens what it points at.
            _open_folder(entry.resolve(), private, readable, listable)


def _program_places(program: str, path: str) -> Iterator[Path]:
    """Where the program and the interpreters that it may start are installed."""
    yield from map(Path, {sys.prefix, sys.base_prefix, sys.exec_prefix} - {"/"})
    yield from _installation(Path(program))
    for folder in path.split(os.pathsep):
        if Path(folder).is_absolute():
            yield from _installation(Path(folder) / "any")


def _installation(program: Path) -> Iterator[Path]:
    """The folder of the program and, if that is `bin`, what an installation has beside it."""
    for file in {program.absolute(), program.resolve()}:
        yield file.parent if file.parent.name == "bin" else file
        if file.parent.name in ("bin", "Scripts"):
            yield from (file.parent.parent / name for name in _INSTALLED)


def _python_code() -> tuple[list[Path], list[Path]]:
    """What this process imports from outside of Python's installation: packages and modules, and folders to list."""
    folders = [folder for entry in sys.path if (folder := Path(entry or ".").absolute()).is_dir()]
    places = [folder for folder in folders if folder.name in ("site-packages", "dist-packages")]
    listable = [folder for folder in folders if folder not in places]
    for folder in listable:
        with contextlib.suppress(OSError):
            places += [child for child in folder.iterdir() if _is_code(child)]
    # Packages that pip has installed from a checkout.
    for finder in sys.meta_path:
        mapping = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", None)
        places += map(Path, mapping.values()) if isinstance(mapping, dict) else ()
    return places, listable


def _is_code(path: Path) -> bool:
    return path.suffix in (".py", ".so") or (path / "__init__.py").is_file()


# --- What holds here ---


@cache
def missing_protections() -> frozenset[Protection]:
    """The protections that this system does not allow, by trying them once."""
    return probe_protections(frozenset())


def describe_gaps(missing: frozenset[Protection], *, is_root: bool = False) -> list[str]:
    """What programs of others can do here because protections are missing, in one sentence each."""
    if sys.platform != "linux":
        return [
            "Functions and MCP servers have the rights of your account, and what they start is not limited: this "
            "system is not Linux."
        ]
    gaps = []
    if Protection.FILES in missing:
        gaps.append("Functions and MCP servers can read and change files of your account: this system has no Landlock.")
    if missing >= {Protection.SIGNALS, Protection.PROCESSES}:
        gaps.append(
            "Functions and MCP servers can end other processes of your account: this system has neither namespaces nor "
            "Landlock's sixth version."
        )
    if Protection.PROCESSES in missing:
        gaps.append(
            "Functions and MCP servers see the command lines of other processes, and cannot use multiprocessing: this "
            "system allows no namespaces."
        )
    if Protection.CALLS in missing:
        gaps.append(
            "Functions and MCP servers can talk to services of your account, such as agents of keys: this system has "
            "no seccomp."
        )
    if is_root and Protection.USER in missing:
        gaps.append(
            "Functions and MCP servers run as root, though without its capabilities: this system allows them no user "
            "of their own. Start Showhow as an ordinary user."
        )
    return gaps


def probe_protections(without: frozenset[Protection]) -> frozenset[Protection]:
    """Try all protections but these with a small program; return those that do not hold."""
    if sys.platform != "linux":
        return frozenset(Protection)
    import tempfile  # noqa: PLC0415 - needed once

    with tempfile.TemporaryDirectory(prefix="showhow-probe-", ignore_cleanup_errors=True) as folder:
        while True:
            confinement = Confinement(Path(folder), TreeLimits(1_000), without=without)
            try:
                report = _probe(confinement)
            except OSError:
                # Root of a container may have no other user to give a home to.
                report = {"failed_layer": Protection.USER}
            failed = report.get("failed_layer")
            if not failed or failed in without:
                break
            without |= {Protection(str(failed))}
    layers = report.get("layers")
    return frozenset(Protection) - frozenset(layers if isinstance(layers, list) else ())


def _probe(confinement: Confinement) -> dict[str, object]:
    launch = ConfinedLaunch([sys.executable, "-I", "-S", "-c", ""], {"PATH": os.defpath}, confinement)
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            launch.argv,
            env=launch.environment,
            pass_fds=launch.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        launch.mark_started()
        report = launch.wait_for_start()
    finally:
        launch.close()
    process.wait()
    return report
