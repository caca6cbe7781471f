"""Registries of what other packages can add: our own entries and theirs come through one door, which checks them.

    METRICS = Registry("metrics", Metric, (ANSWER_F1, OFFICIAL_F1), raises=(Unscorable,))

A package adds an entry by an entry point of the group `showhow.metrics`. Entry points are read when a registry is first
listed or asked for a name that is not ours. An entry that does not load, has another type or a name that is taken is
left out, with one sentence in `problems`. An exception in the code of an entry becomes the first one of `raises`.
"""

import contextlib
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from types import NoneType, UnionType
from typing import Any, Generic, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

SETTING = "SHOWHOW_PLUGINS"
"""The variable that turns plugins off; guard/worker.py sets it for its processes."""
_GROUP_PREFIX = "showhow."
_REMEDY = "correct the package, or uninstall it."
_MAX_ERROR_CHARACTERS = 300
_log = logging.getLogger(__name__)
# One for all registries, since one may be made of another, and a plugin may read any of them while it is loaded.
_LOCK = RLock()


class NamedEntry(Protocol):
    """An entry of a registry: a frozen dataclass."""

    @property
    def name(self) -> str:
        """What stored rows, options and URLs name it by."""


Entry = TypeVar("Entry", bound=NamedEntry)


def _read_environment() -> bool:
    return os.environ.get(SETTING) != "0"


_are_on = _read_environment


def use_setting(are_on: Callable[[], bool]) -> None:
    """Have this function say whether plugins are loaded; it is called when they are first looked for."""
    global _are_on  # noqa: PLW0603 - the edge of a process says it once
    _are_on = are_on


def are_on() -> bool:
    """Whether plugins are loaded."""
    return _are_on()


@cache
def list_entry_points() -> tuple[EntryPoint, ...]:
    """The entry points of all groups of Showhow, in an order that does not depend on the installation."""
    points = entry_points()
    groups = [group for group in points.groups if group.startswith(_GROUP_PREFIX)] if are_on() else []
    return tuple(sorted((point for group in groups for point in points.select(group=group)), key=_order))


def _order(point: EntryPoint) -> tuple[str, str, str]:
    return point.group, describe_package(point), point.name


def describe_package(point: EntryPoint) -> str:
    """The package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


class Registry(MutableMapping[str, Entry], Generic[Entry]):
    """Entries by name, in their order, ours first; thread-safe."""

    def __init__(
        self,
        kind: str,
        entry_type: type[Entry],
        own: Iterable[Entry],
        *,
        raises: tuple[type[Exception], ...],
        check: Callable[[Entry], object] = lambda _entry: None,
    ) -> None:
        """`own` is read at the first use; `check` raises any exception for an entry that cannot be used."""
        self.group = f"{_GROUP_PREFIX}{kind}"
        self.kind = kind.removesuffix("s").replace("_", " ")
        self._type = entry_type
        self._own: Iterable[Entry] | None = own
        self._raises = raises
        self._check = check
        self._entries: dict[str, Entry] = {}
        self._packages: dict[str, str] = {}
        self._problems: list[str] = []
        self._is_loaded = False

    @property
    def packages(self) -> dict[str, str]:
        """The package and version of each entry that is not ours, by the name of the entry."""
        self._load()
        return self._packages

    @property
    def problems(self) -> list[str]:
        """Why entries of other packages are left out, one sentence each."""
        self._load()
        return self._problems

    def record(self, *names: str | None) -> dict[str, str]:
        """What a run records of the entries that it uses: the package and version of each that is not ours."""
        return {f"{self.kind} {name}": self.packages[name] for name in names if name and name in self.packages}

    def __getitem__(self, name: str) -> Entry:
        with _LOCK:
            if name not in self._read_own():
                self._load()
            return self._entries[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        with _LOCK:
            self._read_own()[name] = entry

    def __delitem__(self, name: str) -> None:
        with _LOCK:
            del self._read_own()[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(list(self._entries))

    def __len__(self) -> int:
        self._load()
        return len(self._entries)

    def _read_own(self) -> dict[str, Entry]:
        own, self._own = self._own, None
        for entry in own or ():
            if entry.name in self._entries:
                raise ValueError(f"there are two entries {entry.name!r} in {self.group}")
            self._entries[entry.name] = entry
        return self._entries

    def _load(self) -> None:
        with _LOCK:
            self._read_own()
            if self._is_loaded:
                return
            self._is_loaded = True
            for point in list_entry_points():
                if point.group == self.group:
                    self._add(point)

    def _add(self, point: EntryPoint) -> None:
        package = describe_package(point)
        origin = f"The {self.kind} {point.name} of {package}"
        try:
            # A package that prints must not spoil what a verb writes.
            with contextlib.redirect_stdout(sys.stderr):
                entry = _Shield(origin, self._raises).protect(point.load(), self._type, point.value)
                _check_name(entry.name)
                self._check(entry)
        # Its code may raise anything, and end the process.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._problems.append(f"{origin} is left out: {_explain(error)}; {_REMEDY}")
            return
        if entry.name in self._entries:
            owner = self._packages.get(entry.name, "Showhow")
            self._problems.append(f"{origin} is left out: {owner} has a {self.kind} {entry.name} already; {_REMEDY}")
            return
        self._entries[entry.name], self._packages[entry.name] = entry, package


def _check_name(name: str) -> None:
    """Raise ValueError for a name that cannot be part of commands, URLs and calls of models."""
    # Processes of functions load this module, and may not read that one.
    from showhow.folder_names import NAME_RULE, is_safe_name  # noqa: PLC0415

    if not is_safe_name(name):
        raise ValueError(f"its name is {name!r}; {NAME_RULE}")


def _explain(error: BaseException) -> str:
    """The error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_MAX_ERROR_CHARACTERS]}"


def _describe(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a value of the type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class _Shield:
    """Checks the values of an entry by their type hints, and what its code returns; converts its exceptions."""

    origin: str
    raises: tuple[type[Exception], ...]

    def protect(self, entry: Any, entry_type: Any, place: str) -> Any:
        """The entry with its code shielded; TypeError for another type, of the entry or of a field."""
        self.fit(entry, entry_type, place)
        hints = get_type_hints(type(entry))
        own = {field.name: getattr(entry, field.name) for field in fields(entry) if field.init}
        set_fields = [field.name for field in fields(entry) if own.get(field.name, field.default) is not field.default]
        return replace(entry, **{name: self.fit(own[name], hints[name], f"its {name}") for name in set_fields})

    def fit(self, value: Any, hint: Any, place: str = "its result") -> Any:
        """The value, with what it can do shielded; TypeError unless it has the type of the hint."""
        kind = get_origin(hint) or hint
        if kind in (Union, UnionType):
            others = [option for option in get_args(hint) if option is not NoneType]
            is_absent = value is None and len(others) < len(get_args(hint))
            return value if is_absent or len(others) > 1 else self.fit(value, others[0], place)
        if kind is Callable and callable(value):
            return partial(self._call, value, get_args(hint)[-1])
        if getattr(kind, "_is_protocol", False):
            return _ShieldedObject(value, kind, self)
        if isinstance(kind, type):
            if not isinstance(value, (int, float) if kind is float else kind):
                raise TypeError(f"{place} is {_describe(value)}, not {kind.__name__}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{place} is {value}")
            if issubclass(kind, Iterator):
                return self._iterate(value)
        return value

    def _call(self, function: Callable[..., Any], hint: Any, *arguments: Any, **named: Any) -> Any:
        try:
            with self.convert():
                return self.fit(function(*arguments, **named), hint)
        except self.raises as error:
            if hint is not bool:
                raise
            # Whether a file is theirs is asked about every file, so the answer is no.
            _log.warning("%s", error)
            return False

    def _iterate(self, values: Any) -> Any:
        with self.convert():
            return (yield from values)

    @contextlib.contextmanager
    def convert(self) -> Iterator[None]:
        """Convert exceptions that nobody expects into the first one that somebody does."""
        try:
            yield
        except self.raises:
            raise
        # Its code may raise anything.
        except Exception as error:
            raise self.raises[0](f"{self.origin} failed: {_explain(error)}") from error


class _ShieldedObject:
    """An object of a plugin that has the methods of a protocol."""

    def __init__(self, target: Any, protocol: Any, shield: _Shield) -> None:
        self._target, self._protocol, self._shield = target, protocol, shield

    def __getattr__(self, name: str) -> Any:
        declared = getattr(self._protocol, name, None)
        hints = get_type_hints(declared.fget if isinstance(declared, property) else declared) if declared else {}
        with self._shield.convert():
            value = getattr(self._target, name)
            if callable(value) and not isinstance(declared, property):
                return self._shield.fit(value, Callable[..., hints.get("return", Any)])
            return self._shield.fit(value, hints.get("return", Any), name)
