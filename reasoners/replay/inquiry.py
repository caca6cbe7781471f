"""What the ways of looking things up in one run share: what is known of the world so far, and what stays unclear."""

from dataclasses import dataclass, field

from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.names import EntityResolver
from reasoners.replay.reader import SentenceReader
from reasoners.replay.walk import ReplaySession


@dataclass(slots=True)
class LookupState:
    """One run as far as it has come."""

    walk: ReplaySession
    lessons: ReplayKnowledge
    names: EntityResolver
    reader: SentenceReader
    spread: bool | None = None
    """Whether the sources tell different facts; None until two of them were compared."""
    unclear: list[str] = field(default_factory=list)
    """Why what was found for the question at hand may not be all."""
    silent: bool = False
    """Whether the graph has no such relation as the question at hand asks for."""

    @classmethod
    def begin(cls, walk: ReplaySession, lessons: ReplayKnowledge) -> "LookupState":
        """The inquiry of a run in which nothing is known yet."""
        return cls(walk, lessons, EntityResolver(walk, lessons), SentenceReader(lessons))

    def doubt(self, asked: str, sentence: str) -> None:
        """Take down a sentence that may answer, and that cannot be read."""
        self.unclear.append(f"{asked!r} may be answered by {sentence!r}, which is said as in no demonstration")
