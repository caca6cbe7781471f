"""A way to ask: the kind, the text with blanks, and how a question of it is drawn."""

from collections.abc import Callable
from dataclasses import dataclass

from worlds.questions.expressions import Expression
from worlds.questions.walk import Walk


@dataclass(frozen=True, slots=True)
class Template:
    """`draw` gives what to ask, or None where its walk led nowhere."""

    kind: str
    text: str
    draw: Callable[[Walk], Expression | None]
