"""What a HumanIQ text cannot tell of a trace, and whether what it tells is read again as it was."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from db.models import Step, Trace
from db.record import TraceRecord
from fewshot_library.formats.humaniq_record import MOMENT, answers_of, answers_told, project_name
from fewshot_library.formats.humaniq_tools import to_ours
from fewshot_library.formats.react_text import Told, Turn

AUTHOR = "HumanIQ authors"
# The fields that the text has no place for, by the noun that has them.
QUESTION = ("source_id", "split", "kind", "gold_answers", "decomposition", "details")
TRACE = ("answer_model", "wall_seconds", "active_seconds", "parent_id", "cost", "run_id")
STEP = ("origins", "data", "error", "rating", "latency", "wall_seconds", "active_seconds", "parent_id")
# White space round these is looked for in the trace itself, whatever words tell them in the text.
ELSEWHERE = {"question", "turns", "final_answer", "response"}
REMEMBERED = {"question", "final_line", "action_sequence", "written"}


def misread(record: TraceRecord, told: Told, back: Told) -> str | None:
    """Why the text, which is read as `back`, does not tell the record; None when it does."""
    if back != told:
        return "its parts would be read as other parts"
    answers = answers_of(back, {})
    if _trimmed(answers) != _trimmed(answers_told(record.trace)):
        return "its answers would be read as other answers"
    for turn, step in zip(back.turns, record.steps, strict=True):
        if _call(turn, record.question.text.strip()) != (step.tool, step.arguments):
            return f"the call of step {step.position} would be read as another call"
    return None


def _call(turn: Turn, question: str) -> tuple[str | None, dict[str, Any]]:
    if turn.action is None:
        return None, {} if turn.action_input is None else {"input": turn.action_input}
    call = to_ours(turn.action, turn.action_input, question)
    return call.tool, call.arguments


def _trimmed(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}


def not_kept(record: TraceRecord, told: Told, stripped: Told) -> Counter[str]:
    """What is lost of a record that is told as `stripped`, each kind of thing with how often."""
    return Counter(
        [
            *_of_the_question(record),
            *_of_the_trace(record),
            *_of_the_steps(record.steps),
            *_space(record.trace, told, stripped),
        ]
    )


def _of_the_question(record: TraceRecord) -> Iterator[str]:
    question = record.question
    if record.project.name != project_name(question.dataset or record.project.name):
        yield "the project's name"
    if question.text != question.text.strip():
        yield "white space round a question"
    yield from (f"a question's {name}" for name in QUESTION if getattr(question, name))


def _of_the_trace(record: TraceRecord) -> Iterator[str]:
    trace = record.trace
    yield from (f"a trace's {name}" for name in TRACE if getattr(trace, name) not in (None, {}))
    yield from _of_its_making(trace)
    if record.author != AUTHOR:
        yield "who recorded it"
    remembered = trace.configuration.get("humaniq")
    beside = remembered.keys() - REMEMBERED if isinstance(remembered, dict) else ()
    yield from (f"a trace's configuration: {name}" for name in sorted({*trace.configuration} - {"humaniq"}))
    yield from (f"a trace's configuration: humaniq.{name}" for name in sorted(beside))
    yield from ["an undone step"] * len(record.removed)
    yield from ["an edit"] * len(record.edits)
    yield from ["a judgement"] * len(record.judgements)


def _of_its_making(trace: Trace) -> Iterator[str]:
    """What every demonstration has in common when it is read again."""
    if trace.reasoner != "human":
        yield "a trace's reasoner"
    if trace.status != "approved":
        yield "a trace's status"
    if {trace.started_at, trace.submitted_at} != {MOMENT}:
        yield "when a trace was recorded"


def _of_the_steps(steps: list[Step]) -> Iterator[str]:
    for step in steps:
        yield from (f"a step's {name}" for name in STEP if getattr(step, name) not in (None, {}))
        if {step.started_at, step.finished_at} != {MOMENT}:
            yield "when a step was run"


def _space(trace: Trace, told: Told, stripped: Told) -> Iterator[str]:
    """The values that have white space round them, which is layout in a text."""
    pairs: list[tuple[Told | Turn, Told | Turn]] = [(told, stripped), *zip(told.turns, stripped.turns, strict=True)]
    for before, after in pairs:
        for each in fields(before):
            if each.name not in ELSEWHERE and getattr(before, each.name) != getattr(after, each.name):
                kind = "a step's" if isinstance(before, Turn) else "a trace's"
                yield f"white space round {kind} {each.name.replace('_', ' ')}"
    for name in ("answer_text", "answer_graph", "final_answer"):
        answer = getattr(trace, name) or ""
        if answer != answer.strip():
            yield f"white space round a trace's {name.replace('_', ' ')}"
