"""What a reply of the model comes to: calls of tools, an answer, or neither."""

from dataclasses import dataclass

from reasoners.calling import Call


@dataclass(frozen=True, slots=True)
class Decision:
    """One reply, understood; where it is `refused`, the thought is all that was written."""

    thought: str
    calls: tuple[Call, ...] = ()
    ending: str | None = None
    """The answer as it was written, behind `Final Answer:`."""
    left_out: int = 0
    """Calls of the same reply that are not to be run."""
    refused: str | None = None
    """Why nothing can be done with it, and how to do it right."""
