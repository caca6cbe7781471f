"""Pairs to fine-tune on as PhantomWiki does: the evidence with the question, and the list of answers."""

from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.dropped import lost_fields
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.format import TraceFormat
from fewshot_library.formats.lines import UnsupportedTrace, json_lines_writer

# Their evaluation splits an answer at each of these.
SEPARATOR = ","
PAIR_FIELDS = {"step.observation", "question.gold_answers", "trace.final_answer"}


def _encode_pair(record: TraceRecord, _: TraceExport) -> tuple[dict[str, Any], list[str]]:
    answers = [str(gold["text"]) for gold in record.question.gold_answers if gold.get("text")]
    if not answers and record.trace.final_answer:
        answers = [record.trace.final_answer]
    if not answers:
        raise UnsupportedTrace("neither a gold answer nor an answer of its own is known")
    seen = [step.observation.strip() for step in record.steps if step.observation and step.observation.strip()]
    pair = {
        "prompt": _build_prompt("\n\n".join(dict.fromkeys(seen)), record.question.text),
        "completion": SEPARATOR.join(answers),
        "question": record.question.text,
        "answer": answers,
    }
    lost = ["a step's call" for step in record.steps if step.tool is not None]
    lost += ["that a comma belongs to an answer" for answer in answers if SEPARATOR in answer]
    return pair, [*lost_fields(record, PAIR_FIELDS), *lost]


def _build_prompt(evidence: str, question: str) -> str:
    return (
        f"What was found:\n\n{evidence}\n\nAnswer the question from it alone. "
        f"Give every answer, separated by commas, and nothing else.\n\nQuestion: {question}\nAnswer:"
    )


SUPERVISED = TraceFormat(
    "phantomwiki",
    "evidence and question with the list of answers, to fine-tune on",
    write=json_lines_writer(_encode_pair),
)
