"""A trace with all its rows, as it is loaded, exported and imported."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from types import NoneType
from typing import Any
from uuid import UUID

from showhow.db.database import Conflict
from showhow.db.models import GENERATED_REASONER, Edit, Judgement, Project, Question, Run, Step, Trace
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.run_spec import RunSpec

TRACE_STATUSES = ("draft", "submitted", "approved", "rejected", "failed")
WITHDRAWAL = "withdrawal"
"""The action of an Edit with which a reviewer took their decision back."""
USAGE_FIELDS = ("calls", "input_tokens", "output_tokens", "seconds", "cost")
"""The counts of model calls in a step's usage."""
REPETITION_ASPECT, NOT_TRIED = "repetition", "not tried"
"""The aspect of the judgement that says whether a trace can be repeated (repetitions.py), and the state without."""


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
        model = self.spec.model_label
        return f"by {self.trace.reasoner}" + (f" with {model}" if model else "")

    @property
    def spec(self) -> RunSpec:
        """How its run was asked, with the limits with which it went on last; that of no run is empty."""
        spec = RunSpec() if self.run is None else self.run.spec
        return spec.replace(limits=self.trace.result.limits or spec.limits)

    @property
    def named_values(self) -> dict[str, Any]:
        """The values of its run's specification and of its result that are not the defaults, as JSON by name."""
        spec = {} if self.run is None else self.run.spec.to_json()
        parts = [{name: value for name, value in spec.items() if name != "schema_version"}, self.trace.result.to_json()]
        return {name: value for part in parts for name, value in (part | part.pop("details", {})).items()}

    def find_inconsistencies(self) -> Iterator[str]:
        """Yield the inconsistencies of an imported record, one clause each."""
        all_steps = [*self.steps, *self.removed]
        yield from self._find_invalid_values(all_steps)
        try:
            AnswerFormat.from_json(self.project.answer_format)
        except Conflict as error:
            yield f"the project's answer_format: {error}"
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
    # Ancestors of these are known to end.
    ending: set[UUID | None] = {None}
    for step in steps:
        path: set[UUID | None] = set()
        ancestor: UUID | None = step.id
        while ancestor not in ending:
            if ancestor in path:
                return True
            path.add(ancestor)
            ancestor = parents[ancestor]  # type: ignore[index]
        ending |= path
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


@dataclass(frozen=True, slots=True)
class TraceChange:
    """An event in the history of a trace: who did what, when and at which step, with the texts before and after."""

    at: datetime
    who: str
    action: str
    position: int | None = None
    before: str = ""
    after: str = ""


def list_changes(record: TraceRecord) -> list[TraceChange]:
    """The history of the trace, the oldest event first; steps that a fork copied belong to the parent's history."""
    return sorted(_find_changes(record), key=lambda change: change.at)


def _find_changes(record: TraceRecord) -> Iterator[TraceChange]:
    trace = record.trace
    author = record.author or trace.reasoner
    begun = "began the trace" if trace.parent_id is None else f"forked another trace at step {trace.parent_position}"
    yield TraceChange(trace.started_at, author, begun)
    steps = {step.id: step for step in (*record.steps, *record.removed)}
    restarts = {edit.step_id: edit for edit in reversed(record.edits) if edit.action == "run again"}
    for step in steps.values():
        if step.started_at >= trace.started_at or step.id in restarts:
            first = restarts.get(step.id)
            result = first.before if first else {"observation": step.observation, "error": step.error}
            action = f"ran {step.tool}" if step.tool else "wrote the step"
            began = datetime.fromisoformat(first.before["started_at"]) if first else step.started_at
            yield TraceChange(began, author, action, step.position, after=_describe_result(result))
    yield from _find_edits(record, steps)
    for judgement in (judgement for judgement in record.judgements if judgement.aspect != REPETITION_ASPECT):
        judge = record.people.get(judgement.judge_id, "?") if judgement.judge_id else "a model"
        judged = steps[judgement.step_id].position if judgement.step_id in steps else None
        is_decision = judgement.aspect == "approval"
        label = judgement.value if judgement.step_id is not None else f"{judgement.aspect}: {judgement.value}"
        action = {"approved": "approved", "rejected": "returned"}[judgement.value] if is_decision else label
        yield TraceChange(judgement.created_at, judge, action, judged, after=judgement.comment)


def _find_edits(record: TraceRecord, steps: dict[UUID, Step]) -> Iterator[TraceChange]:
    """Edits with the values that each of them wrote: what a later edit replaced, else what is stored."""
    replaced: dict[tuple[UUID | None, str], Any] = {}
    decided = {judgement.value for judgement in record.judgements if judgement.aspect == "approval"}
    for edit in reversed(record.edits):
        step = steps.get(edit.step_id) if edit.step_id else None
        stored = step if step is not None else record.trace
        written = {name: replaced.get((edit.step_id, name), getattr(stored, name, None)) for name in edit.before}
        replaced |= {(edit.step_id, name): value for name, value in edit.before.items()}
        who = record.people.get(edit.editor_id, "?") if edit.editor_id else record.trace.reasoner
        position = step.position if step is not None else None
        match edit.action:
            case "undo" | "redo":
                yield TraceChange(edit.at, who, f"{edit.action} of the step", position)
            case "run again":
                before, after = _describe_result(edit.before), _describe_result(written)
                yield TraceChange(edit.at, who, "ran the step again", position, before, after)
            case "withdrawal":
                yield TraceChange(edit.at, who, "took the decision back", after=f"{written['status']} again")
            case "status" if written["status"] in decided:
                continue  # the judgement tells it, with the reviewer's comment
            case _:
                before, after = (", ".join(str(value) for value in part.values()) for part in (edit.before, written))
                yield TraceChange(edit.at, who, f"changed the {edit.action}", position, before, after)


def _describe_result(result: dict[str, Any]) -> str:
    return str(result.get("error") or result.get("observation") or "")
