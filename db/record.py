"""A trace with everything that belongs to it, as it is read, exported and imported."""

from dataclasses import dataclass, field
from uuid import UUID

from db.models import Edit, Judgement, Project, Question, Run, Step, Trace


@dataclass(slots=True)
class TraceRecord:
    """One trace with its question and project; `steps` stand in order, `removed` ones were undone."""

    project: Project
    question: Question
    trace: Trace
    steps: list[Step]
    removed: list[Step] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    run: Run | None = None
    people: dict[UUID, str] = field(default_factory=dict)
    """The names of the author, the editors and the judges."""

    @property
    def author(self) -> str | None:
        """The name of the person who recorded it; None for a run."""
        return self.people.get(self.trace.author_id) if self.trace.author_id else None
