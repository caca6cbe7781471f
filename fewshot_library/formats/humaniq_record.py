"""A HumanIQ text as one of our traces, with keys that are the same whenever the same text is read."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from db.models import Project, Question, Step, Trace
from db.trace_record import TraceRecord
from fewshot_library.formats.humaniq_tools import from_humaniq_call, to_humaniq_call
from fewshot_library.formats.react_text import ReactTranscript, ReactTurn

UUID_NAMESPACE = UUID("5f0f6b1e-5f4e-4d38-9a39-7d0c1f6f0b10")
# The files carry no times; a fixed moment keeps a second import of the same file from differing.
DEFAULT_TIMESTAMP = datetime(2023, 1, 1, tzinfo=UTC)
HUMANIQ_WORLD = "wikipedia-wikidata"
ANSWER_LABEL = re.compile(r"(?:,\s*)?\b(Wikipedia|Wikidata)[_ ]Answer\s*:")
ANSWER_FIELDS = {"Wikipedia": "answer_text", "Wikidata": "answer_graph"}


@dataclass(slots=True)
class TranscriptSource:
    """Where a text stood: its data set, its question as asked there, and whatever else the trace must remember."""

    dataset: str
    question: str
    text: str
    original_wording: dict[str, Any] = field(default_factory=dict)


def project_name(dataset: str) -> str:
    """The project that the data set's demonstrations and runs belong to."""
    return f"HumanIQ {dataset}"


def transcript_to_record(
    transcript: ReactTranscript, source: TranscriptSource, trace_fields: dict[str, Any]
) -> TraceRecord:
    """The record; `trace_fields` are what the parts of the text do not say."""
    name = project_name(source.dataset)
    project = Project(id=uuid5(UUID_NAMESPACE, name), name=name, world=HUMANIQ_WORLD, created_at=DEFAULT_TIMESTAMP)
    question = Question(
        id=uuid5(project.id, source.question),
        project_id=project.id,
        position=1,
        text=source.question,
        dataset=source.dataset,
        created_at=DEFAULT_TIMESTAMP,
    )
    trace_id = uuid5(question.id, source.text)
    remembered = {**source.original_wording, **_extra_parts(transcript, source.question)}
    steps = [
        _turn_to_step(turn, place, trace_id, remembered, source.question)
        for place, turn in enumerate(transcript.turns, start=1)
    ]
    trace = Trace(
        id=trace_id,
        question_id=question.id,
        final_thought=transcript.final_thought or None,
        started_at=DEFAULT_TIMESTAMP,
        submitted_at=DEFAULT_TIMESTAMP,
        **parse_answers(transcript, remembered),
        **trace_fields,
    )
    trace.configuration = {**trace.configuration, **({"humaniq": remembered} if remembered else {})}
    return TraceRecord(project=project, question=question, trace=trace, steps=steps)


def _extra_parts(transcript: ReactTranscript, question: str) -> dict[str, Any]:
    """What the text holds beside the parts of a trace."""
    extra: dict[str, Any] = {}
    if transcript.preamble and transcript.preamble != question:
        extra["preamble"] = transcript.preamble
    if transcript.question is not None and transcript.question != question:
        extra["question"] = transcript.question
    if transcript.repeated:
        extra["repeated"] = transcript.repeated
    return extra


def _turn_to_step(turn: ReactTurn, position: int, trace_id: UUID, remembered: dict[str, Any], question: str) -> Step:
    tool, arguments = None, {} if turn.action_input is None else {"input": turn.action_input}
    if turn.action is not None:
        call = from_humaniq_call(turn.action, turn.action_input, question)
        tool, arguments = call.tool, call.arguments
        if to_humaniq_call(tool, arguments, question) != (turn.action, turn.action_input):
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
        started_at=DEFAULT_TIMESTAMP,
        finished_at=DEFAULT_TIMESTAMP,
    )


def parse_answers(transcript: ReactTranscript, remembered: dict[str, Any]) -> dict[str, Any]:
    """The answers by source; a final line of another form is remembered as it stands."""
    line = transcript.final_answer or ""
    labels = list(ANSWER_LABEL.finditer(line))
    answers: dict[str, Any] = {}
    for place, label in enumerate(labels):
        end = labels[place + 1].start() if place + 1 < len(labels) else len(line)
        answers[ANSWER_FIELDS[label[1]]] = line[label.end() : end].strip()
    if line and join_answers(answers.get("answer_text"), answers.get("answer_graph")) != line:
        remembered["final_line"] = line
    answers["final_answer"] = (
        transcript.response or answers.get("answer_graph") or answers.get("answer_text") or line or None
    )
    return answers


def join_answers(text: str | None, graph: str | None) -> str:
    """The final line of these answers."""
    parts = [f"Wikipedia_Answer:{text}"] if text is not None else []
    parts += [f"Wikidata_Answer: {graph}"] if graph is not None else []
    return ", ".join(parts)


def record_to_transcript(record: TraceRecord) -> ReactTranscript:
    """The parts of a text that tells the record; calls and answers are worded as they were where that still holds."""
    trace = record.trace
    words = OriginalWording.from_trace(trace)
    turns = [_step_to_turn(step, words.written.get(str(step.position)), record.question.text) for step in record.steps]
    line = join_answers(trace.answer_text, trace.answer_graph)
    as_written = ReactTranscript(final_answer=words.final_line, response=trace.final_answer)
    if words.final_line and parse_answers(as_written, {}) == transcript_answers(trace):
        line = words.final_line
    bare = bool(turns) and turns[-1].action is turns[-1].action_input is turns[-1].observation is None
    return ReactTranscript(
        question=record.question.text if words.question is None else words.question,
        turns=turns,
        # A last step without a tool would else be read as the final thought.
        final_thought=trace.final_thought or ("" if bare else None),
        final_answer=line,
        response=trace.final_answer,
    )


@dataclass(frozen=True, slots=True)
class OriginalWording:
    """How a trace was worded where it came from, as far as its configuration tells that in the form used here."""

    question: str | None = None
    final_line: str | None = None
    action_sequence: str | None = None
    written: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_trace(cls, trace: Trace) -> "OriginalWording":
        """What the trace's configuration remembers; anything of another form in it is passed over."""
        stored = trace.configuration.get("humaniq")
        if not isinstance(stored, dict):
            return cls()
        texts = {name: stored[name] for name in ("question", "final_line", "action_sequence") if name in stored}
        written = stored.get("written")
        return cls(
            **{name: text for name, text in texts.items() if isinstance(text, str)},
            written=written if isinstance(written, dict) else {},
        )


def transcript_answers(trace: Trace) -> dict[str, Any]:
    """The answers of a trace that a text can tell."""
    named = {name: getattr(trace, name) for name in ("answer_text", "answer_graph")}
    return {name: value for name, value in named.items() if value is not None} | {"final_answer": trace.final_answer}


def _step_to_turn(step: Step, written: Any, question: str) -> ReactTurn:
    turn = ReactTurn(thought=step.thought, observation=step.observation)
    if step.tool is None:
        alone = step.arguments.get("input")
        turn.action_input = alone if isinstance(alone, str) else None
        return turn
    turn.action, turn.action_input = to_humaniq_call(step.tool, step.arguments, question)
    match written:
        case {"tool": str(tool), "input": str() | None as line}:
            call = from_humaniq_call(tool, line, question)
            if (call.tool, call.arguments) == (step.tool, step.arguments):
                turn.action, turn.action_input = tool, line
    return turn
