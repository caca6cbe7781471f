"""What of a trace a format has no place for."""

from collections.abc import Collection, Iterator

from db.trace_record import TraceRecord

PROJECT_FIELDS = ("world", "guidelines", "tools")
QUESTION_FIELDS = ("source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
TRACE_FIELDS = (
    *("answer_text", "answer_graph", "answer_model", "final_answer", "final_thought"),
    *("wall_seconds", "active_seconds", "parent_id", "cost", "run_id", "submitted_at"),
)
STEP_FIELDS = (
    "thought",
    "observation",
    "origins",
    "data",
    "error",
    "error_kind",
    "node",
    "skill",
    "rating",
    "latency",
    "wall_seconds",
    "active_seconds",
)


def lost_fields(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """Each thing that is there and not `kept`, in words for people; what is kept is named as "trace.final_thought"."""
    for names, noun, its in (
        (PROJECT_FIELDS, record.project, "project"),
        (QUESTION_FIELDS, record.question, "question"),
        (TRACE_FIELDS, record.trace, "trace"),
        *((STEP_FIELDS, step, "step") for step in record.steps),
    ):
        for name in names:
            if getattr(noun, name) not in (None, "", {}, []) and f"{its}.{name}" not in stored:
                yield f"a {its}'s {name}"
    yield from _always_lost(record, stored)
    yield from ["an undone step"] * len(record.removed)
    yield from ["an edit"] * len(record.edits)
    yield from ["a judgement"] * len(record.judgements)


def _always_lost(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """What every trace has."""
    if "project.name" not in stored:
        yield "the project's name"
    if record.author is not None and "trace.author" not in stored:
        yield "who recorded it"
    for name in ("id", "reasoner", "status", "started_at"):
        if f"trace.{name}" not in stored:
            yield f"a trace's {name}"
    if "trace.configuration" not in stored:
        # The definitions of a foreign trace's tools are written among the tools.
        yield from (
            f"a trace's configuration: {name}" for name in sorted(record.trace.configuration.keys() - {"tools"})
        )
    for step in record.steps:
        if "step.started_at" not in stored:
            yield "a step's started_at"
        if step.parent_id is not None and "step.parent_id" not in stored:
            yield "a step's parent_id"
        if step.tool is None and step.arguments and "step.input" not in stored:
            yield "the arguments of a step without a tool"
