"""A way to ask: the kind, the text with blanks, and how a question of it is drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from worlds.questions.expressions import Expression
from worlds.questions.walk import Walk

Draw: TypeAlias = Callable[[Walk], Expression | None]


@dataclass(frozen=True, slots=True)
class Template:
    """`draw` gives what to ask, or None where its walk led nowhere."""

    kind: str
    text: str
    draw: Draw
    answered: bool = True
    """Whether its questions have an answer; else all of them have none."""


def whom(links: int, start: str = "<name>") -> str:
    """Somebody at the end of so many relations, in the words of a template."""
    return "the <relation> of " * links + start
