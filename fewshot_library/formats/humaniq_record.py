"""A HumanIQ text as one of our traces, with keys that are the same whenever the same text is read."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from db.models import Project, Question, Step, Trace
from db.record import TraceRecord
from fewshot_library.formats.humaniq_tools import to_ours, to_theirs
from fewshot_library.formats.react_text import Told, Turn

KEYS = UUID("5f0f6b1e-5f4e-4d38-9a39-7d0c1f6f0b10")
# The files carry no times; a fixed moment keeps a second import of the same file from differing.
MOMENT = datetime(2023, 1, 1, tzinfo=UTC)
WORLD = "wikipedia-wikidata"
LABEL = re.compile(r"(?:,\s*)?\b(Wikipedia|Wikidata)[_ ]Answer\s*:")
SLOTS = {"Wikipedia": "answer_text", "Wikidata": "answer_graph"}


@dataclass(slots=True)
class Source:
    """Where a text stood: its data set, its question as asked there, and whatever else the trace must remember."""

    dataset: str
    question: str
    text: str
    remembered: dict[str, Any] = field(default_factory=dict)


def project_name(dataset: str) -> str:
    """The project that the data set's demonstrations and runs belong to."""
    return f"HumanIQ {dataset}"


def record_of(told: Told, source: Source, trace_fields: dict[str, Any]) -> TraceRecord:
    """The record; `trace_fields` are what the parts of the text do not say."""
    name = project_name(source.dataset)
    project = Project(id=uuid5(KEYS, name), name=name, world=WORLD, created_at=MOMENT)
    question = Question(
        id=uuid5(project.id, source.question),
        project_id=project.id,
        position=1,
        text=source.question,
        dataset=source.dataset,
        created_at=MOMENT,
    )
    trace_id = uuid5(question.id, source.text)
    remembered = {**source.remembered, **_leftovers(told, source.question)}
    steps = [
        _step(turn, place, trace_id, remembered, source.question) for place, turn in enumerate(told.turns, start=1)
    ]
    trace = Trace(
        id=trace_id,
        question_id=question.id,
        final_thought=told.final_thought or None,
        started_at=MOMENT,
        submitted_at=MOMENT,
        **answers_of(told, remembered),
        **trace_fields,
    )
    trace.configuration = {**trace.configuration, **({"humaniq": remembered} if remembered else {})}
    return TraceRecord(project=project, question=question, trace=trace, steps=steps)


def _leftovers(told: Told, question: str) -> dict[str, Any]:
    """What the text holds beside the parts of a trace."""
    found: dict[str, Any] = {}
    if told.preamble and told.preamble != question:
        found["preamble"] = told.preamble
    if told.question is not None and told.question != question:
        found["question"] = told.question
    if told.repeated:
        found["repeated"] = told.repeated
    return found


def _step(turn: Turn, position: int, trace_id: UUID, remembered: dict[str, Any], question: str) -> Step:
    tool, arguments = None, {} if turn.action_input is None else {"input": turn.action_input}
    if turn.action is not None:
        call = to_ours(turn.action, turn.action_input, question)
        tool, arguments = call.tool, call.arguments
        if to_theirs(tool, arguments, question) != (turn.action, turn.action_input):
            written = {"tool": turn.action, "input": turn.action_input}
            remembered.setdefault("written", {})[str(position)] = written
    return Step(
        id=uuid5(trace_id, str(position)),
        trace_id=trace_id,
        position=position,
        thought=turn.thought or "",
        tool=tool,
        arguments=arguments,
        observation=turn.observation,
        started_at=MOMENT,
        finished_at=MOMENT,
    )


def answers_of(told: Told, remembered: dict[str, Any]) -> dict[str, Any]:
    """The answers by source; a final line of another form is remembered as it stands."""
    line = told.final_answer or ""
    labels = list(LABEL.finditer(line))
    found: dict[str, Any] = {}
    for place, label in enumerate(labels):
        end = labels[place + 1].start() if place + 1 < len(labels) else len(line)
        found[SLOTS[label[1]]] = line[label.end() : end].strip()
    if line and join_answers(found.get("answer_text"), found.get("answer_graph")) != line:
        remembered["final_line"] = line
    found["final_answer"] = told.response or found.get("answer_graph") or found.get("answer_text") or line or None
    return found


def join_answers(text: str | None, graph: str | None) -> str:
    """The final line of these answers."""
    parts = [f"Wikipedia_Answer:{text}"] if text is not None else []
    parts += [f"Wikidata_Answer: {graph}"] if graph is not None else []
    return ", ".join(parts)


def told_of(record: TraceRecord) -> Told:
    """The parts of a text that tells the record; calls and answers are worded as they were where that still holds."""
    trace = record.trace
    words = Remembered.of(trace)
    turns = [_turn(step, words.written.get(str(step.position)), record.question.text) for step in record.steps]
    line = join_answers(trace.answer_text, trace.answer_graph)
    as_written = Told(final_answer=words.final_line, response=trace.final_answer)
    if words.final_line and answers_of(as_written, {}) == answers_told(trace):
        line = words.final_line
    bare = bool(turns) and turns[-1].action is turns[-1].action_input is turns[-1].observation is None
    return Told(
        question=record.question.text if words.question is None else words.question,
        turns=turns,
        # A last step without a tool would else be read as the final thought.
        final_thought=trace.final_thought or ("" if bare else None),
        final_answer=line,
        response=trace.final_answer,
    )


@dataclass(frozen=True, slots=True)
class Remembered:
    """How a trace was worded where it came from, as far as its configuration tells that in the form used here."""

    question: str | None = None
    final_line: str | None = None
    action_sequence: str | None = None
    written: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> "Remembered":
        """What the trace's configuration remembers; anything of another form in it is passed over."""
        told = trace.configuration.get("humaniq")
        if not isinstance(told, dict):
            return cls()
        texts = {name: told[name] for name in ("question", "final_line", "action_sequence") if name in told}
        written = told.get("written")
        return cls(
            **{name: text for name, text in texts.items() if isinstance(text, str)},
            written=written if isinstance(written, dict) else {},
        )


def answers_told(trace: Trace) -> dict[str, Any]:
    """The answers of a trace that a text can tell."""
    named = {name: getattr(trace, name) for name in ("answer_text", "answer_graph")}
    return {name: value for name, value in named.items() if value is not None} | {"final_answer": trace.final_answer}


def _turn(step: Step, written: Any, question: str) -> Turn:
    turn = Turn(thought=step.thought, observation=step.observation)
    if step.tool is None:
        alone = step.arguments.get("input")
        turn.action_input = alone if isinstance(alone, str) else None
        return turn
    turn.action, turn.action_input = to_theirs(step.tool, step.arguments, question)
    match written:
        case {"tool": str(tool), "input": str() | None as line}:
            call = to_ours(tool, line, question)
            if (call.tool, call.arguments) == (step.tool, step.arguments):
                turn.action, turn.action_input = tool, line
    return turn
