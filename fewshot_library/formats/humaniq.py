"""HumanIQ's library files: a JSON list of demonstrations as labelled text, with braces doubled for str.format.

A trace is written only if its text parses back to the same trace; fields that the text does not have count as lost.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid5

from showhow.db.models import Run, Trace
from showhow.db.run_spec import RunSpec
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.format import (
    ExportLosses,
    ReadResult,
    RecordRemark,
    RefusedRecord,
    TraceExport,
    TraceFormat,
    find_unstorable_field,
    lost_fields,
    read_json_list,
    text_writer,
)
from showhow.fewshot_library.formats.humaniq_record import (
    DEFAULT_TIMESTAMP,
    HUMANIQ_WORLD,
    UUID_NAMESPACE,
    OriginalWording,
    TranscriptSource,
    from_humaniq_call,
    parse_answers,
    project_name,
    record_to_transcript,
    transcript_answers,
    transcript_to_record,
)
from showhow.fewshot_library.formats.react_text import (
    ReactTranscript,
    ReactTurn,
    find_outer_whitespace,
    format_as_humaniq,
    parse_transcript,
)

AUTHOR = "HumanIQ authors"
# The fields that the text has, and those that every demonstration gets when it is read.
HUMANIQ_FIELDS = {
    *("trace.id", "project.name", "project.world", "question.dataset"),
    *("trace.answer_text", "trace.answer_graph", "trace.final_answer", "trace.final_thought", "trace.result"),
    *("trace.author", "trace.reasoner", "trace.status", "trace.started_at", "trace.submitted_at"),
    *("step.thought", "step.observation", "step.started_at", "step.input"),
}
# White space around these is checked in the trace, since the text may have them in another form.
FIELDS_CHECKED_IN_TRACE = {"question", "final_answer", "response"}
CONFIGURATION_KEYS = {"question", "final_line", "action_sequence", "written"}


def find_misreading(record: TraceRecord, transcript: ReactTranscript, parsed: ReactTranscript) -> str | None:
    """Why `parsed`, the parsed text of the transcript, does not represent the record; None if it does."""
    if parsed != transcript:
        return "its parts would be parsed differently"
    answers = parse_answers(parsed, {})
    if _strip_values(answers) != _strip_values(transcript_answers(record.trace)):
        return "its answers would be parsed differently"
    for turn, step in zip(parsed.turns, record.steps, strict=True):
        if _decode_call(turn, record.question.text.strip()) != (step.tool, step.arguments):
            return f"the call of step {step.position} would be parsed differently"
    return None


def _decode_call(turn: ReactTurn, question: str) -> tuple[str | None, dict[str, Any]]:
    if turn.action is None:
        return None, {} if turn.action_input is None else {"input": turn.action_input}
    call = from_humaniq_call(turn.action, turn.action_input, question)
    return call.tool, call.arguments


def _strip_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}


def count_losses(record: TraceRecord, transcript: ReactTranscript) -> Counter[str]:
    """Count what the transcript of a record loses, by kind of loss."""
    return Counter(
        [
            *lost_fields(record, HUMANIQ_FIELDS),
            *_uncommon_fields(record),
            *_wording_losses(record),
            *find_outer_whitespace(transcript, FIELDS_CHECKED_IN_TRACE),
            *_answer_whitespace(record.trace),
        ]
    )


def _uncommon_fields(record: TraceRecord) -> Iterator[str]:
    """Describe the fields whose value differs from the one that every demonstration gets when it is read."""
    question, trace = record.question, record.trace
    if record.project.name != project_name(question.dataset or record.project.name):
        yield "the project's name"
    if record.project.world != HUMANIQ_WORLD:
        yield "the project's world"
    if record.author != AUTHOR:
        yield "a trace's author"
    if trace.reasoner != "human":
        yield "a trace's reasoner"
    if trace.status != "approved":
        yield "a trace's status"
    if {trace.started_at, trace.submitted_at} != {DEFAULT_TIMESTAMP}:
        yield "a trace's times"
    yield from ["a step's times" for step in record.steps if {step.started_at, step.finished_at} != {DEFAULT_TIMESTAMP}]


def _wording_losses(record: TraceRecord) -> Iterator[str]:
    if record.question.text != record.question.text.strip():
        yield "white space around a question"
    stored = record.named_values
    wording = stored.get("humaniq")
    unknown_keys = wording.keys() - CONFIGURATION_KEYS if isinstance(wording, dict) else ()
    yield from (f"a trace's result: {name}" for name in sorted({*stored} - {"humaniq"}))
    yield from (f"a trace's result: humaniq.{name}" for name in sorted(unknown_keys))


def _answer_whitespace(trace: Trace) -> Iterator[str]:
    for name in ("answer_text", "answer_graph", "final_answer"):
        answer = getattr(trace, name) or ""
        if answer != answer.strip():
            yield f"white space around a trace's {name.replace('_', ' ')}"


DEMONSTRATION_FIELDS = ("Question", "Dataset", "Action_Sequence", "One_Shot")


def read_demonstrations(path: Path) -> Iterator[ReadResult]:
    """Read demonstrations as approved traces of the HumanIQ authors; a malformed record is refused with the reason."""
    author = uuid5(UUID_NAMESPACE, AUTHOR)
    for number, raw in enumerate(read_json_list(path), start=1):
        if reason := _find_error(raw):
            yield RefusedRecord(f"record {number}", reason)
            continue
        transcript = parse_transcript(_unescape_braces(raw["One_Shot"]))
        if transcript.final_answer is None:
            yield RefusedRecord(f"record {number}", 'the text has no "Final Answer:"')
            continue
        sequence = raw["Action_Sequence"]
        # Some published sequences differ from their texts; the text is used, and the sequence is stored as well.
        wording: dict[str, Any] = {} if sequence == _action_sequence(transcript) else {"action_sequence": sequence}
        if _action_names(sequence) != _action_names(_action_sequence(transcript)):
            text_actions = _describe_actions(_action_sequence(transcript))
            yield RecordRemark(
                f"record {number}",
                f"its Action_Sequence names {_describe_actions(sequence)}, its text {text_actions}; the text was used",
            )
        source = TranscriptSource(raw["Dataset"], raw["Question"].strip(), raw["One_Shot"], wording)
        record = transcript_to_record(transcript, source, {"author_id": author, "status": "approved"})
        record.people = {author: AUTHOR}
        yield record


def _find_error(raw: Any) -> str | None:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in DEMONSTRATION_FIELDS):
        return f"a demonstration needs {', '.join(DEMONSTRATION_FIELDS)}, each a text"
    if unknown := sorted(raw.keys() - set(DEMONSTRATION_FIELDS)):
        return f"it has an unknown field {unknown[0]!r}"
    if empty := [name for name in ("Question", "Dataset") if not raw[name].strip()]:
        return f"its {empty[0]!r} is empty"
    return find_unstorable_field(raw)


def _unescape_braces(text: str) -> str:
    """The text as str.format returns it; a text whose braces are not doubled is unchanged."""
    rest = text.replace("{{", "").replace("}}", "")
    if "{" in rest or "}" in rest:
        return text
    return text.replace("{{", "{").replace("}}", "}")


def _action_sequence(transcript: ReactTranscript) -> str:
    return "".join(f"\t{turn.action}" for turn in transcript.turns if turn.action is not None)


def _action_names(sequence: str) -> list[str]:
    return [name.strip() for name in sequence.split("\t") if name.strip()]


def _describe_actions(sequence: str) -> str:
    return ", ".join(_action_names(sequence)) or "no tool"


def _write_demonstrations(export: TraceExport, stream: TextIO) -> ExportLosses:
    """Write a library file; a record whose text would be parsed differently is refused with the reason."""
    losses = ExportLosses()
    stream.write("[")
    for record in export.records:
        unstripped = record_to_transcript(record)
        transcript = unstripped.strip_values()
        text = format_as_humaniq(transcript).replace("{", "{{").replace("}", "}}")
        sequence = OriginalWording.from_trace(record.trace).action_sequence
        demonstration = {
            "Question": record.question.text,
            "Dataset": record.question.dataset or record.project.name,
            "Action_Sequence": _action_sequence(transcript) if sequence is None else sequence,
            "One_Shot": text,
        }
        parsed = parse_transcript(_unescape_braces(text))
        if reason := find_misreading(record, transcript, parsed) or _find_error(demonstration):
            losses.refused.append(RefusedRecord(f"trace {record.trace.id}", f"in this format {reason}"))
            continue
        losses.lost += count_losses(record, unstripped)
        stream.write((",\n" if losses.written else "\n") + json.dumps(demonstration, ensure_ascii=False, indent=1))
        losses.written += 1
    stream.write("\n]\n")
    return losses


HUMANIQ = TraceFormat(
    "humaniq",
    "HumanIQ's demonstrations as labelled text",
    lambda head: "[].One_Shot" in head.keys,
    read_demonstrations,
    text_writer(_write_demonstrations),
)


RUN_FIELDS = {"question", "wikidata_answer", "final_answer", "error", "intermediate_logs"}
MODEL_KNOWLEDGE_LABEL = ", Internal Knowledge:"


def read_runs(path: Path) -> Iterator[TraceRecord | RefusedRecord]:
    """Read the runs in order, failed ones with their error; an invalid record is refused with the reason."""
    dataset = path.stem.partition("_")[0].capitalize()
    run = Run(
        id=uuid5(UUID_NAMESPACE, path.stem),
        name=path.stem,
        reasoner="humaniq",
        world=HUMANIQ_WORLD,
        spec=RunSpec(reasoner="humaniq", details={"file": path.name}),
        started_at=DEFAULT_TIMESTAMP,
        finished_at=DEFAULT_TIMESTAMP,
    )
    for number, raw in enumerate(read_json_list(path), start=1):
        reason = _find_run_error(raw)
        yield RefusedRecord(f"record {number}", reason) if reason else _decode_run(raw, dataset, run)


def _find_run_error(raw: Any) -> str | None:
    if not isinstance(raw, dict):
        return f"it is not a JSON object but a {type(raw).__name__}"
    if unknown := sorted(raw.keys() - RUN_FIELDS):
        return f"it has an unknown field {unknown[0]!r}"
    if not isinstance(raw.get("question"), str) or not raw["question"].strip():
        return "it has no question"
    invalid = [name for name in sorted(RUN_FIELDS) if not isinstance(raw.get(name), str | None)]
    if invalid:
        return f"its {invalid[0]!r} is not a text"
    if not raw.get("error") and not raw.get("intermediate_logs"):
        return "it has neither a log nor an error"
    return find_unstorable_field(raw)


def _decode_run(raw: dict[str, Any], dataset: str, run: Run) -> TraceRecord:
    log = raw.get("intermediate_logs") or ""
    transcript = parse_transcript(log)
    answer_model = _split_model_knowledge(transcript)
    answer = (raw.get("wikidata_answer") or raw.get("final_answer") or "").strip()
    wording = {"answer": answer} if answer and answer not in log else {}
    failed = bool(raw.get("error")) or transcript.final_answer is None
    if failed:
        wording["error"] = raw.get("error") or "the log ends without a final answer"
    fields = {
        "run_id": run.id,
        "reasoner": run.reasoner,
        "status": "failed" if failed else "submitted",
        "answer_model": answer_model,
    }
    source = TranscriptSource(dataset, raw["question"].strip(), f"{run.name}\n{log}\n{raw.get('error') or ''}", wording)
    record = transcript_to_record(transcript, source, fields)
    record.run = run
    return record


def _split_model_knowledge(transcript: ReactTranscript) -> str | None:
    """Remove and return the model's own answer, which the logs append to the last part."""
    last = "response" if transcript.response is not None else "final_answer"
    answer, label, knowledge = (getattr(transcript, last) or "").rpartition(MODEL_KNOWLEDGE_LABEL)
    if not label:
        return None
    setattr(transcript, last, answer.strip())
    return knowledge.strip()


HUMANIQ_RUNS = TraceFormat(
    "humaniq-runs",
    "the published logs of HumanIQ's agent",
    lambda head: "[].intermediate_logs" in head.keys,
    read_runs,
)
