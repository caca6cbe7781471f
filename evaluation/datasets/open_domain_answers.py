"""Reads sets of questions over texts: TriviaQA, SQuAD, KILT and PopQA, with alternative answers; DROP; FRAMES.

`details` holds all fields of the record but its id and question. TriviaQA: `answer` {value, aliases, ...}, or with
capitals as in its own files. SQuAD: `answers` with `text` and `answer_start`, as lists or as a list of objects; none
for a question that its `context` does not answer. KILT: `input`, and `output` with answers and their provenance; the
same answer is there once for each. PopQA: `possible_answers` as a list or as its JSON, `o_uri` or `obj_id`.

DROP: `answer` {number, date {day, month, year}, spans}, all of whose spans a correct answer names, and
`validated_answers` of other people; or, of the hub, `answers_spans`, in one list for all people of its validation
split, where numbers and dates are alternatives. FRAMES: `Prompt`, `Answer`, `reasoning_types`, `wiki_links`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.unanswerable import UnanswerableReason
from showhow.evaluation.datasets.graph_answers import find_qid
from showhow.evaluation.datasets.record import (
    Fields,
    QuestionFormat,
    UnreadableRecord,
    distinct_golds,
    format_value,
    make_gold,
    optional_text,
    require_list,
    require_text,
    unanswerable_gold,
    without,
)
from showhow.worlds import terms
from showhow.worlds.input_files import restore_rows


def make_alternatives(values: Iterable[Any], entity: str | None = None) -> list[dict[str, Any]]:
    """The one gold answer that any of these values names; none without a value."""
    texts = [text for value in values if (text := format_value(value).strip())]
    return [make_gold(texts[0], entity, texts[1:])] if texts else []


def _parse_triviaqa(fields: Fields, _: str) -> QuestionRecord:
    lowered = {name.lower(): value for name, value in fields.items()}
    answer = lowered.get("answer")
    own: Mapping[str, Any] = {name.lower(): value for name, value in answer.items()} if isinstance(answer, dict) else {}
    # Test splits have a value that says so, and no aliases.
    values = [] if own.get("value") in (None, "", "<unk>") else [own["value"], *require_list(own, "aliases", str)]
    return QuestionRecord(
        text=require_text(lowered, "question"),
        source_id=optional_text(lowered.get("question_id", lowered.get("questionid"))),
        dataset="triviaqa",
        gold_answers=make_alternatives(values),
        details=without(fields, "question", "Question", "question_id", "QuestionId"),
    )


def _parse_squad(fields: Fields, _: str) -> QuestionRecord:
    answers = restore_rows(fields.get("answers"))
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        raise UnreadableRecord("the answers are not objects with 'text' and 'answer_start'")
    golds = make_alternatives(answer.get("text") for answer in answers)
    if not golds or fields.get("is_impossible") is True:
        golds = unanswerable_gold(UnanswerableReason.NOT_IN_SOURCES)
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("id")),
        dataset="squad",
        gold_answers=golds,
        details=without(fields, "id", "question"),
    )


def _parse_kilt(fields: Fields, _: str) -> QuestionRecord:
    outputs = require_list(fields, "output", dict) if fields.get("output") is not None else []
    # An output may have a provenance only.
    values = (output["answer"] for output in outputs if output.get("answer") is not None)
    return QuestionRecord(
        text=require_text(fields, "input"),
        source_id=optional_text(fields.get("id")),
        dataset="kilt",
        gold_answers=make_alternatives(values),
        details=without(fields, "id", "input"),
    )


def _parse_popqa(fields: Fields, _: str) -> QuestionRecord:
    restored = {"possible_answers": restore_rows(fields.get("possible_answers"))}
    entity = find_qid(terms.shorten_iri(str(fields.get("o_uri") or "")))
    kind = fields.get("prop")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("id")),
        dataset="popqa",
        kind=kind if isinstance(kind, str) else None,
        gold_answers=make_alternatives(require_list(restored, "possible_answers"), entity),
        details=without(fields, "id", "question"),
    )


def _parse_drop(fields: Fields, _: str) -> QuestionRecord:
    if "answers_spans" in fields:
        spans: Fields = fields["answers_spans"] if isinstance(fields["answers_spans"], dict) else {}
        answers = [list(map(format_value, require_list(spans, "spans")))]
        if "span" not in spans.get("types", ("span",)):
            # An answer has one number or date; further ones are those of other people.
            answers = [[value] for value in answers[0]]
    else:
        validated = restore_rows(fields.get("validated_answers"))
        answers = list(
            map(_list_drop_answers, [fields.get("answer"), *(validated if isinstance(validated, list) else ())])
        )
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("query_id")),
        dataset="drop",
        # A correct answer names all that one person gave; what others gave instead are its other names.
        gold_answers=distinct_golds(map(make_gold, answers[0]))
        if len(answers[0]) > 1
        else make_alternatives(answer[0] for answer in answers if len(answer) == 1),
        details=without(fields, "query_id", "question"),
    )


def _list_drop_answers(answer: Any) -> list[str]:
    """The number, the date or the spans of an answer."""
    if not isinstance(answer, dict):
        raise UnreadableRecord("an answer is not an object with 'number', 'date' and 'spans'")
    if (number := optional_text(answer.get("number"))) is not None:
        return [number]
    listed, date = answer.get("spans"), answer.get("date")
    if spans := [text for span in (listed if isinstance(listed, list) else ()) if (text := optional_text(span))]:
        return spans
    if not isinstance(date, dict):
        return []
    day = " ".join(text for part in ("day", "month", "year") if (text := optional_text(date.get(part))))
    return [day] if day else []


def _parse_frames(fields: Fields, _: str) -> QuestionRecord:
    lowered = {name.lower(): value for name, value in fields.items()}
    answer = lowered.get("answer")
    parts = answer if isinstance(answer, list) else [answer] if answer else []
    return QuestionRecord(
        text=require_text(lowered, "prompt"),
        source_id=next(
            (text for name in ("unnamed: 0", "column 1", "id") if (text := optional_text(lowered.get(name)))), None
        ),
        dataset="frames",
        kind=optional_text(lowered.get("reasoning_types")),
        # A cell of a table with a | has several parts.
        gold_answers=make_alternatives([" | ".join(map(format_value, parts))]),
        details={
            name: value for name, value in lowered.items() if name not in ("prompt", "answer", "unnamed: 0", "column 1")
        },
    )


def _is_triviaqa(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answer": {"value": _, "aliases": list()}}:
            return True
        case {"Question": str(), "QuestionId": _}:
            return True
    return False


def _is_squad(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answers": {"text": list(), "answer_start": list()}}:
            return True
        case {"question": str(), "answers": [{"text": _, "answer_start": _}, *_]}:
            return True
        case {"question": str(), "answers": [], "context": str()}:
            return True
    return False


def _is_kilt(fields: Fields) -> bool:
    match fields:
        case {"input": str(), "output": [{"answer": _}, *_] | [{"provenance": _}, *_]}:
            return True
    return False


def _is_popqa(fields: Fields) -> bool:
    return isinstance(fields.get("question"), str) and isinstance(fields.get("possible_answers"), str | list)


def _is_drop(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answer": {"number": _, "spans": _}} | {
            "question": str(),
            "answers_spans": {"spans": _},
        }:
            return True
    return False


def _is_frames(fields: Fields) -> bool:
    names = {name.lower() for name in fields}
    return {"prompt", "answer"} <= names and not names.isdisjoint({"reasoning_types", "wiki_links"})


TRIVIAQA = QuestionFormat("triviaqa", "TriviaQA, of the hub or its own files", _is_triviaqa, _parse_triviaqa)
SQUAD = QuestionFormat("squad", "SQuAD and others with answers as spans of a context", _is_squad, _parse_squad)
KILT = QuestionFormat("kilt", "KILT's tasks", _is_kilt, _parse_kilt)
POPQA = QuestionFormat("popqa", "PopQA", _is_popqa, _parse_popqa, is_tabular=True)
DROP = QuestionFormat("drop", "DROP, of the hub or its own files", _is_drop, _parse_drop)
FRAMES = QuestionFormat("frames", "FRAMES", _is_frames, _parse_frames, is_tabular=True)
