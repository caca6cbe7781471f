"""Converts between HumanIQ's texts and tools and trace records; ids are derived from the text, so imports agree."""

import ast
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.react_text import ReactTranscript, ReactTurn
from showhow.fewshot_library.humaniq_names import HUMANIQ_TOOL_NAMES, SHOWHOW_TOOL_NAMES
from showhow.guard.json_input import load_json, load_python_literal

ARGUMENT_NAMES = {
    "wikisearch": ("query",),
    "getWikiDataID": ("title",),
    "generateQuery": ("question", "entity_ids"),
    "runQuery": ("sparql",),
    "getLabel": ("ids",),
    "websearch": ("query",),
    "getRelationsAsHead": ("entity",),
    "getRelationsAsTail": ("entity",),
}
MAX_CALL_CHARACTERS = 10_000
"""A longer text is not parsed as Python."""
_IDS_ONLY = re.compile(r"[\s\[\]'\",]*[QP]\d+(?:[\s\[\]'\",]+[QP]\d+)*[\s\[\]'\",]*")
_QUESTION_WITH_IDS = re.compile(r"(.+?) # (\[[^\[\]]*\])", re.DOTALL)
_ENTITY_ID = re.compile(r"[QP]\d+")


@dataclass(frozen=True, slots=True)
class ConvertedCall:
    """A call with Showhow's tool name and arguments; a call of an unknown tool keeps its name and input."""

    tool: str
    arguments: dict[str, Any]


def from_humaniq_call(tool: str, text: str | None, question: str) -> ConvertedCall:
    """Convert a HumanIQ call, a tool's name with an input line."""
    showhow_name = SHOWHOW_TOOL_NAMES.get(tool, tool)
    return ConvertedCall(showhow_name, parse_input_line(showhow_name, text, question))


def parse_input_line(tool: str, text: str | None, question: str) -> dict[str, Any]:
    """Parse an input line to the arguments of a tool; an unknown tool gets the argument `input`."""
    if text is None:
        return {}
    text = strip_code_fence(text)
    named = _parse_json_input(text)
    if named is not None and (tool not in ARGUMENT_NAMES or named.keys() <= set(ARGUMENT_NAMES[tool])):
        return named
    if tool == "generateQuery":
        return _parse_query_input(text, question)
    if tool == "getLabel":
        return {"ids": _ENTITY_ID.findall(text) if _IDS_ONLY.fullmatch(text) else [text]}
    return {ARGUMENT_NAMES[tool][0] if tool in ARGUMENT_NAMES else "input": text}


def strip_code_fence(text: str) -> str:
    """The text without a code fence, or marks of code, around the whole of it."""
    first, _, rest = text.strip().partition("\n")
    if first.startswith("```") and rest.endswith("```"):
        return rest.removesuffix("```").strip()
    return text.strip("`") if text.startswith("`") and text.endswith("`") else text


def parse_keyword_call(text: str) -> dict[str, Any] | None:
    """The arguments of a call in Python syntax with named arguments only; None if the text is no such call."""
    try:
        call = ast.parse(text, mode="eval").body if len(text) <= MAX_CALL_CHARACTERS else None
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            return None
        return {str(parameter.arg): load_python_literal(parameter.value) for parameter in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _parse_json_input(text: str) -> dict[str, Any] | None:
    """The arguments of an input that is a JSON object, the form for calls that a plain line cannot represent."""
    try:
        value = load_json(text) if text.startswith("{") else None
        written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return None
    # Values that the database cannot store stay a plain line: NaN and lone surrogates above, NUL here.
    return value if isinstance(value, dict) and rb"\u0000" not in written else None


def _parse_query_input(text: str, question: str) -> dict[str, Any]:
    if _IDS_ONLY.fullmatch(text):
        return {"question": question, "entity_ids": _ENTITY_ID.findall(text)}
    match = _QUESTION_WITH_IDS.fullmatch(text)
    if match:
        return {"question": match[1], "entity_ids": _ENTITY_ID.findall(match[2])}
    return {"question": text, "entity_ids": []}


def to_humaniq_call(tool: str, arguments: dict[str, Any], question: str) -> tuple[str, str | None]:
    """Return HumanIQ's name of the tool and the input line; None for a call without arguments."""
    return HUMANIQ_TOOL_NAMES.get(tool, tool), format_input_line(tool, arguments, question)


def format_input_line(tool: str, arguments: dict[str, Any], question: str) -> str | None:
    """Format arguments as an input line; None if there are none."""
    if not arguments:
        return None
    line = _plain_input_line(arguments, question)
    # A plain line cannot represent surrounding white space.
    if (
        line is None
        or line != line.strip()
        or parse_input_line(SHOWHOW_TOOL_NAMES.get(tool, tool), line, question) != arguments
    ):
        line = json.dumps(arguments, ensure_ascii=False)
    return line


def _plain_input_line(arguments: dict[str, Any], question: str) -> str | None:
    """The arguments as a plain line, if they have such a form; the caller checks that it parses back."""
    match arguments:
        case {"question": str(query), "entity_ids": list(ids)}:
            id_list = f"[{', '.join(map(str, ids))}]"
            if not ids:
                return query
            return id_list if query == question else f"{query} # {id_list}"
        case {"ids": list(ids)}:
            return f"[{', '.join(map(str, ids))}]"
    first = next(iter(arguments.values()))
    return first if isinstance(first, str) else None


UUID_NAMESPACE = UUID("5f0f6b1e-5f4e-4d38-9a39-7d0c1f6f0b10")
# The files have no times; a fixed time makes repeated imports equal.
DEFAULT_TIMESTAMP = datetime(2023, 1, 1, tzinfo=UTC)
HUMANIQ_WORLD = "wikipedia-wikidata"
ANSWER_LABEL = re.compile(r"(?:,\s*)?\b(Wikipedia|Wikidata)[_ ]Answer\s*:")
ANSWER_FIELDS = {"Wikipedia": "answer_text", "Wikidata": "answer_graph"}


@dataclass(slots=True)
class TranscriptSource:
    """The data set, question and text of a demonstration, and the wording to store in the trace's result."""

    dataset: str
    question: str
    text: str
    original_wording: dict[str, Any] = field(default_factory=dict)


def project_name(dataset: str) -> str:
    """The name of the project for a data set's demonstrations and runs."""
    return f"HumanIQ {dataset}"


def transcript_to_record(
    transcript: ReactTranscript, source: TranscriptSource, trace_fields: dict[str, Any]
) -> TraceRecord:
    """Build the record; `trace_fields` are the fields of the trace that the text does not have."""
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
    wording = {**source.original_wording, **_extra_parts(transcript, source.question)}
    steps = [
        _turn_to_step(turn, position, trace_id, wording, source.question)
        for position, turn in enumerate(transcript.turns, start=1)
    ]
    trace = Trace(
        id=trace_id,
        question_id=question.id,
        final_thought=transcript.final_thought or None,
        started_at=DEFAULT_TIMESTAMP,
        submitted_at=DEFAULT_TIMESTAMP,
        **parse_answers(transcript, wording),
        **trace_fields,
    )
    if wording:
        trace.result = trace.result.add({"humaniq": wording})
    return TraceRecord(project=project, question=question, trace=trace, steps=steps)


def _extra_parts(transcript: ReactTranscript, question: str) -> dict[str, Any]:
    """The parts of the text that a trace does not have."""
    extra: dict[str, Any] = {}
    if transcript.preamble and transcript.preamble != question:
        extra["preamble"] = transcript.preamble
    if transcript.question is not None and transcript.question != question:
        extra["question"] = transcript.question
    if transcript.repeated:
        extra["repeated"] = transcript.repeated
    return extra


def _turn_to_step(turn: ReactTurn, position: int, trace_id: UUID, wording: dict[str, Any], question: str) -> Step:
    tool, arguments = None, {} if turn.action_input is None else {"input": turn.action_input}
    if turn.action is not None:
        call = from_humaniq_call(turn.action, turn.action_input, question)
        tool, arguments = call.tool, call.arguments
        if to_humaniq_call(tool, arguments, question) != (turn.action, turn.action_input):
            written_call = {"tool": turn.action, "input": turn.action_input}
            wording.setdefault("written", {})[str(position)] = written_call
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


def parse_answers(transcript: ReactTranscript, wording: dict[str, Any]) -> dict[str, Any]:
    """Parse the answers by source; a final line in another form is stored in `wording`."""
    line = transcript.final_answer or ""
    labels = list(ANSWER_LABEL.finditer(line))
    answers: dict[str, Any] = {}
    for index, label in enumerate(labels):
        end = labels[index + 1].start() if index + 1 < len(labels) else len(line)
        answers[ANSWER_FIELDS[label[1]]] = line[label.end() : end].strip()
    if line and join_answers(answers.get("answer_text"), answers.get("answer_graph")) != line:
        wording["final_line"] = line
    answers["final_answer"] = (
        transcript.response or answers.get("answer_graph") or answers.get("answer_text") or line or None
    )
    return answers


def join_answers(text: str | None, graph: str | None) -> str:
    """Format the final line of these answers."""
    parts = [f"Wikipedia_Answer:{text}"] if text is not None else []
    parts += [f"Wikidata_Answer: {graph}"] if graph is not None else []
    return ", ".join(parts)


def record_to_transcript(record: TraceRecord) -> ReactTranscript:
    """Convert a record to a transcript; calls and answers keep their original wording if they are unchanged."""
    trace = record.trace
    wording = OriginalWording.from_trace(trace)
    turns = [
        _step_to_turn(step, wording.written.get(str(step.position)), record.question.text) for step in record.steps
    ]
    line = join_answers(trace.answer_text, trace.answer_graph)
    original = ReactTranscript(final_answer=wording.final_line, response=trace.final_answer)
    if wording.final_line and parse_answers(original, {}) == transcript_answers(trace):
        line = wording.final_line
    ends_with_thought = bool(turns) and turns[-1].action is turns[-1].action_input is turns[-1].observation is None
    return ReactTranscript(
        question=record.question.text if wording.question is None else wording.question,
        turns=turns,
        # Otherwise a last step without a tool would be parsed as the final thought.
        final_thought=trace.final_thought or ("" if ends_with_thought else None),
        final_answer=line,
        response=trace.final_answer,
    )


@dataclass(frozen=True, slots=True)
class OriginalWording:
    """The original wording of an imported trace, from its result."""

    question: str | None = None
    final_line: str | None = None
    action_sequence: str | None = None
    written: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_trace(cls, trace: Trace) -> "OriginalWording":
        """Read the wording from the trace's result; values of an unexpected type are ignored."""
        stored = trace.result.details.get("humaniq")
        if not isinstance(stored, dict):
            return cls()
        texts = {name: stored[name] for name in ("question", "final_line", "action_sequence") if name in stored}
        written = stored.get("written")
        return cls(
            **{name: text for name, text in texts.items() if isinstance(text, str)},
            written=written if isinstance(written, dict) else {},
        )


def transcript_answers(trace: Trace) -> dict[str, Any]:
    """The answers of a trace that a text can represent."""
    named = {name: getattr(trace, name) for name in ("answer_text", "answer_graph")}
    return {name: value for name, value in named.items() if value is not None} | {"final_answer": trace.final_answer}


def _step_to_turn(step: Step, written: Any, question: str) -> ReactTurn:
    turn = ReactTurn(thought=step.thought, observation=step.observation)
    if step.tool is None:
        input_line = step.arguments.get("input")
        turn.action_input = input_line if isinstance(input_line, str) else None
        return turn
    turn.action, turn.action_input = to_humaniq_call(step.tool, step.arguments, question)
    match written:
        case {"tool": str(tool), "input": str() | None as line}:
            call = from_humaniq_call(tool, line, question)
            if (call.tool, call.arguments) == (step.tool, step.arguments):
                turn.action, turn.action_input = tool, line
    return turn
