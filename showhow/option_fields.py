"""Fields of dataclasses that verbs and forms are drawn from: label, help, default and bounds are stated once.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class GenerateWorld:
        name: str = option(help="The world's name.", is_argument=True)
        people: int = option(1000, "Number of people.", minimum=1)

A field whose type is such a dataclass is a group: its options are drawn in its place. Others are not drawn.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

_NOTE, _TITLE = "option", "title"
RequestT = TypeVar("RequestT")


@dataclass(frozen=True, slots=True)
class OptionNote:
    """What is said about a field besides its type and default."""

    help: str | Callable[[], str]
    """A function where it lists what may be registered later."""
    label: str = ""
    """The label in forms; empty for the name in words."""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    """Values that a form offers; it also takes others."""
    flag: str = ""
    """The option of the verb, where it is not the name with dashes."""
    metavar: str = ""
    """What stands for its value in the help of the verb, where it is not the type."""
    is_argument: bool = False
    """Whether verbs take it by its place."""


def option(default: Any = MISSING, help: str | Callable[[], str] = "", **particulars: Any) -> Any:  # noqa: A002 - as Typer calls it
    """A field of a dataclass that is drawn; the particulars are the fields of OptionNote."""
    return field(default=default, metadata={_NOTE: OptionNote(help, **particulars)})


def group(request: type, title: str) -> Any:
    """A field with a dataclass whose options are drawn in its place, under the title; its default is that of all."""
    return field(default_factory=request, metadata={_TITLE: title})


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field that is drawn: its type without None and tuple, whether it has many values, its default and note."""

    name: str
    kind: type
    is_repeated: bool
    default: Any
    """MISSING for a field that must be given."""
    note: OptionNote
    is_checked: bool
    """Whether its dataclass has a `check` that says in one sentence which value is out of bounds."""
    title: str = ""
    """The title of its group."""

    @property
    def help(self) -> str:
        """What it means, in a sentence."""
        return self.note.help if isinstance(self.note.help, str) else self.note.help()

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def label(self) -> str:
        """Its label in forms."""
        return self.note.label or self.name.replace("_", " ").capitalize()

    @property
    def flag(self) -> str:
        """Its option of verbs."""
        return self.note.flag or f"--{self.name.replace('_', '-')}"


def list_options(request: type) -> list[OptionField]:
    """The fields of the dataclass, and of its groups, in order."""
    return list(_iterate_options(request))


def _iterate_options(request: type, title: str = "") -> Iterator[OptionField]:
    hints = get_type_hints(request)
    for entry in fields(request):
        note, hint = entry.metadata.get(_NOTE), hints[entry.name]
        if note is None:
            if _is_group(hint):
                yield from _iterate_options(hint, entry.metadata.get(_TITLE, title))
            continue
        kind = next((member for member in get_args(hint) if member is not NoneType), hint)
        is_checked = hasattr(request, "check")
        yield OptionField(entry.name, kind, get_origin(hint) is tuple, entry.default, note, is_checked, title)


def _is_group(hint: Any) -> bool:
    return is_dataclass(hint) and isinstance(hint, type)


def build_request(request: type[RequestT], values: Mapping[str, Any]) -> RequestT:
    """The dataclass with these values of its fields, drawn or not, and of its groups; others have their defaults."""
    hints = get_type_hints(request)
    own = {}
    for entry in fields(request):  # type: ignore[arg-type]
        hint = hints[entry.name]
        if entry.name in values:
            own[entry.name] = values[entry.name]
        elif _NOTE not in entry.metadata and _is_group(hint):
            own[entry.name] = build_request(hint, values)
    return request(**own)
