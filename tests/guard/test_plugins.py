"""The door of registries: what it lets in, and what of others' code it stops."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from showhow.app.plugins import REGISTRIES
from showhow.guard.plugins import Registry, _Shield


class Unusable(Exception):
    pass


class Reader(Protocol):
    @property
    def title(self) -> str: ...

    def read(self) -> Iterator[int]: ...


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    knows: Callable[[str], bool] = lambda _: False
    make: Callable[[], Reader | None] = lambda: None
    count: Callable[[], float] = lambda: 0.0
    kind: type[Any] = object


def protect(entry: Any) -> Entry:
    protected: Entry = _Shield("The entry", (Unusable, KeyError)).protect(entry, Entry, "entry")
    return protected


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.group)
def test_our_own_entries_pass_the_check_of_others(registry: Registry[Any]):
    for entry in registry.values():
        registry._check(_Shield("ours", registry._raises).protect(entry, registry._type, "ours"))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Entry, "entry is the class Entry, not Entry"),
        (SimpleNamespace(name="a"), "entry is a value of the type SimpleNamespace, not Entry"),
        (Entry(None), "its name is a value of the type NoneType, not str"),  # type: ignore[arg-type]
        (Entry("a", knows=True), "its knows is a value of the type bool, not Callable"),  # type: ignore[arg-type]
        (Entry("a", kind=3), "its kind is a value of the type int, not type"),  # type: ignore[arg-type]
    ],
)
def test_an_entry_with_a_part_of_another_type_is_refused(entry: Any, reason: str):
    with pytest.raises(TypeError, match=f"^{reason}$"):
        protect(entry)


def test_what_a_function_raises_or_returns_wrongly_is_the_error_that_is_expected():
    for count in (lambda: "1", lambda: float("inf"), lambda: 1 / 0, lambda: None):
        with pytest.raises(Unusable, match=r"^The entry failed: \w+: "):
            protect(Entry("a", count=count)).count()
    with pytest.raises(KeyError, match="expected"):
        protect(Entry("a", count=lambda: {}["expected"])).count()
    assert protect(Entry("a", count=lambda: 1)).count() == 1
    assert protect(Entry("a", knows=lambda text: text.nothing)).knows("") is False


def test_the_methods_and_iterators_of_an_object_are_shielded_too():
    def read() -> Iterator[int]:
        received = yield 1
        yield received
        raise ZeroDivisionError

    whole, partial = SimpleNamespace(title="A", read=read), SimpleNamespace()
    reader = protect(Entry("a", make=lambda: whole)).make()
    assert reader is not None
    numbers: Any = reader.read()
    assert (reader.title, next(numbers), numbers.send(5)) == ("A", 1, 5)
    with pytest.raises(Unusable, match="ZeroDivisionError"):
        next(numbers)
    for use in (lambda reader: reader.title, lambda reader: reader.read()):
        with pytest.raises(Unusable, match="AttributeError"):
            use(protect(Entry("a", make=lambda: partial)).make())
    assert protect(Entry("a", make=lambda: None)).make() is None
    with pytest.raises(Unusable, match="its result is a value of the type list, not Iterator"):
        protect(Entry("a", make=lambda: SimpleNamespace(read=lambda: [1]))).make().read()  # type: ignore[union-attr]
