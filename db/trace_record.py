"""A trace with all its rows, as it is loaded, exported and imported."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import Any
from uuid import UUID

from db.models import GENERATED_REASONER, Edit, Judgement, Project, Question, Run, Step, Trace
from db.trace_configuration import TraceConfiguration

TRACE_STATUSES = ("draft", "submitted", "approved", "rejected", "failed")
USAGE_FIELDS = ("calls", "input_tokens", "output_tokens", "seconds", "cost")
"""The counts of model calls in a step's usage."""


@dataclass(slots=True)
class TraceRecord:
    """A trace with its question and project; `steps` are in order, `removed` are those that were undone."""

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

    @property
    def creator_name(self) -> str:
        """A phrase that names the author, or the reasoner with its model."""
        if self.trace.reasoner == GENERATED_REASONER:
            return "generated from the world's facts, every step really run"
        if self.author is not None:
            return f"by {self.author}"
        model = TraceConfiguration.from_json(self.trace.configuration).model_label
        return f"by {self.trace.reasoner}" + (f" with {model}" if model else "")

    def find_inconsistencies(self) -> Iterator[str]:
        """Yield the inconsistencies of an imported record, one clause each."""
        all_steps = [*self.steps, *self.removed]
        yield from self._find_invalid_values(all_steps)
        if self.question.project_id != self.project.id or self.trace.question_id != self.question.id:
            yield "the trace, its question and its project do not belong together"
        parts: list[Step | Edit | Judgement] = [*all_steps, *self.edits, *self.judgements]
        if any(part.trace_id != self.trace.id for part in parts):
            yield "a step, edit or judgement belongs to another trace"
        keys = {step.id for step in all_steps}
        references = {s.parent_id for s in all_steps} | {e.step_id for e in self.edits}
        references |= {judgement.step_id for judgement in self.judgements}
        if len(keys) != len(all_steps) or not references - {None} <= keys:
            yield "two steps have one key, or a step that is referred to is missing"
        elif _has_parent_cycle(all_steps):
            yield "a step is its own ancestor"
        if [step.position for step in self.steps] != list(range(1, len(self.steps) + 1)):
            yield "the steps are not numbered 1, 2, 3 ..."
        if self.trace.run_id != (self.run.id if self.run else None):
            yield "the trace refers to another run than that of the record"
        user_ids = {self.trace.author_id, *(e.editor_id for e in self.edits), *(j.judge_id for j in self.judgements)}
        if not user_ids - {None} <= self.people.keys():
            yield "a person has no name"

    def _find_invalid_values(self, steps: list[Step]) -> Iterator[str]:
        if self.trace.status not in TRACE_STATUSES:
            yield f"the status {self.trace.status!r} is none of {', '.join(TRACE_STATUSES)}"
        if any(step.rating is not None and not 1 <= step.rating <= 5 for step in steps):
            yield "a rating is not between 1 and 5"
        if not all(_is_valid_origin(origin) for step in steps for origin in step.origins.values()):
            yield "an argument's origin has an unknown form"
        if not all(_is_valid_usage(step.usage) for step in steps):
            yield "the usage of a step's model calls has an unknown form"
        if any(step.removed_at is not None for step in self.steps) or any(s.removed_at is None for s in self.removed):
            yield "a removed step is listed with the others, or the reverse"


def _has_parent_cycle(steps: list[Step]) -> bool:
    parents = {step.id: step.parent_id for step in steps}
    for step in steps:
        ancestor, distance = step.parent_id, 0
        while ancestor is not None and distance <= len(parents):
            ancestor, distance = parents[ancestor], distance + 1
        if ancestor is not None:
            return True
    return False


def _is_valid_usage(usage: dict[str, Any]) -> bool:
    """Whether the usage has only a step's parts, and each part only numbers, nulls and the model's name."""
    return usage.keys() <= {"thought", "tool"} and all(
        isinstance(part, dict)
        and isinstance(part.get("model", ""), str)
        and all(type(part.get(name)) in (int, float, NoneType) for name in USAGE_FIELDS)
        for part in usage.values()
    )


def _is_valid_origin(origin: Any) -> bool:
    """Whether the origin has one of the forms of reasoners/provenance.py, which pages can describe."""
    match origin:
        case {"from": "typed"}:
            return True
        case {"from": "question", "start": int(), "end": int()}:
            return True
        case {"from": "step", "step": int(), "pointer": str()}:
            return all(isinstance(origin.get(name, 0), int) for name in ("start", "end"))
        case {"from": "parts", "parts": list(parts)}:
            return all(isinstance(part, dict) and _is_valid_origin(part.get("origin")) for part in parts)
        case _:
            return False
