"""What goes into a prompt, whatever its form."""

from collections.abc import Sequence
from dataclasses import dataclass

from reasoners.shown import Shown
from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Material:
    """The parts of one prompt, already cut to size."""

    shown: Shown
    """The question with the steps so far."""
    demonstrations: tuple[Shown, ...]
    tools: Sequence[Tool]
    sources: str
    cue: str = ""
    """What is asked for next, where the model is not free to choose."""
