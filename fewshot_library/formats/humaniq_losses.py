"""What a HumanIQ text cannot tell of a trace, and whether what it tells is read again as it was."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from db.models import Trace
from db.record import TraceRecord
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.humaniq_record import MOMENT, WORLD, answers_of, answers_told, project_name
from fewshot_library.formats.humaniq_tools import to_ours
from fewshot_library.formats.react_text import Told, Turn, white_space

AUTHOR = "HumanIQ authors"
# What the text has a place for, or what every demonstration has in common or is given when it is read again.
KEPT = {
    *("trace.id", "project.name", "project.world", "question.dataset"),
    *("trace.answer_text", "trace.answer_graph", "trace.final_answer", "trace.final_thought", "trace.configuration"),
    *("trace.author", "trace.reasoner", "trace.status", "trace.started_at", "trace.submitted_at"),
    *("step.thought", "step.observation", "step.started_at", "step.input"),
}
# White space round these is looked for in the trace itself, whatever words tell them in the text.
ELSEWHERE = {"question", "final_answer", "response"}
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


def not_kept(record: TraceRecord, told: Told) -> Counter[str]:
    """What is lost of a record that is told as `told` without the white space, each kind of thing with how often."""
    return Counter(
        [
            *dropped(record, KEPT),
            *_unlike_others(record),
            *_of_its_wording(record),
            *white_space(told, ELSEWHERE),
            *_space_round_answers(record.trace),
        ]
    )


def _unlike_others(record: TraceRecord) -> Iterator[str]:
    """Where it is not what every demonstration is when it is read again."""
    question, trace = record.question, record.trace
    if record.project.name != project_name(question.dataset or record.project.name):
        yield "the project's name"
    if record.project.world != WORLD:
        yield "the project's world"
    if record.author != AUTHOR:
        yield "who recorded it"
    if trace.reasoner != "human":
        yield "a trace's reasoner"
    if trace.status != "approved":
        yield "a trace's status"
    if {trace.started_at, trace.submitted_at} != {MOMENT}:
        yield "when a trace was recorded"
    yield from ["when a step was run" for step in record.steps if {step.started_at, step.finished_at} != {MOMENT}]


def _of_its_wording(record: TraceRecord) -> Iterator[str]:
    if record.question.text != record.question.text.strip():
        yield "white space round a question"
    configuration = record.trace.configuration
    remembered = configuration.get("humaniq")
    beside = remembered.keys() - REMEMBERED if isinstance(remembered, dict) else ()
    yield from (f"a trace's configuration: {name}" for name in sorted({*configuration} - {"humaniq"}))
    yield from (f"a trace's configuration: humaniq.{name}" for name in sorted(beside))


def _space_round_answers(trace: Trace) -> Iterator[str]:
    for name in ("answer_text", "answer_graph", "final_answer"):
        answer = getattr(trace, name) or ""
        if answer != answer.strip():
            yield f"white space round a trace's {name.replace('_', ' ')}"
