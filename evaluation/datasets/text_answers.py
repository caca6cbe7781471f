"""Reads sets whose answers are texts without ids: HotpotQA, 2WikiMultihopQA, MuSiQue, AtomR's, BlendQA, CRAG ...

`details` holds all fields of the record but its id and question, and these long ones: CRAG's `search_results` and
PhantomWiki's `solution_traces`. AtomR's sets and BlendQA: `index`, `answers` (or `gold`, in the released predictions
with `predicted` and trees with `reasoning_tree`), BlendQA's `sub_q1`, `sub_source1` and so on; several answers are
names of one. CRAG: `answer` with `alternative_answers` or `alt_ans` as they are, `question_type`, `static_or_dynamic`,
`domain`; "invalid question" is the answer to a false premise. StrategyQA: `answer` (a boolean),
`decomposition` (texts), `evidence` (paragraph ids of each annotator), `facts`, `term`. PhantomWiki: `answer` (a set
that a correct answer names), `difficulty`, `prolog`, `template`, `type`.
"""

import re
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.unanswerable import UnanswerableReason
from showhow.evaluation.datasets.record import (
    Fields,
    QuestionFormat,
    UnreadableRecord,
    describe_type,
    distinct_golds,
    format_value,
    make_gold,
    optional_text,
    parse_aliases,
    require_list,
    require_text,
    unanswerable_gold,
    without,
)
from showhow.guard.json_input import load_json
from showhow.reasoners.answers.dates_and_numbers import DateNotation
from showhow.worlds.input_files import restore_rows

_CRAG_SPLITS = {0: "validation", 1: "test"}
_INVALID_QUESTION = "invalid question"
"""CRAG's answer to a question with a false premise."""


def _parse_atomr(fields: Fields, _: str) -> QuestionRecord:
    return _parse_indexed(fields, "atomr")


def _parse_blendqa(fields: Fields, _: str) -> QuestionRecord:
    return _parse_indexed(fields, "blendqa")


def _parse_indexed(fields: Fields, dataset: str) -> QuestionRecord:
    answers = require_list(fields, "answers" if "answers" in fields else "gold", (str, int, float))
    source_id = optional_text(fields.get("question_id"))
    kind = fields.get("type")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=source_id or optional_text(fields.get("index")),
        dataset=dataset,
        kind=kind if isinstance(kind, str) else parse_hop_count(source_id),
        gold_answers=[make_gold(answers[0], aliases=map(format_value, answers[1:]))] if answers else [],
        details=without(fields, "question_id", "question"),
    )


def _parse_crag(fields: Fields, _: str) -> QuestionRecord:
    answer = fields.get("answer")
    alternatives = _parse_alternatives(fields.get("alternative_answers", fields.get("alt_ans")))
    split, kind = fields.get("split"), fields.get("question_type")
    gold = [] if answer in (None, "") else [make_gold(answer, aliases=alternatives)]
    if str(answer).strip().casefold() == _INVALID_QUESTION:
        gold = unanswerable_gold(UnanswerableReason.FALSE_PREMISE, [_INVALID_QUESTION, *alternatives])
    return QuestionRecord(
        text=require_text(fields, "query"),
        source_id=optional_text(fields.get("interaction_id")),
        dataset="crag",
        split=_CRAG_SPLITS.get(split) if isinstance(split, int) else optional_text(split),
        kind=kind if isinstance(kind, str) else None,
        gold_answers=gold,
        details=without(fields, "interaction_id", "query", "search_results"),
    )


def _parse_alternatives(value: Any) -> list[str]:
    # Published files have the list itself, or its JSON in a text.
    if value in (None, ""):
        return []
    if isinstance(value, str):
        try:
            value = load_json(value)
        except ValueError as error:
            raise UnreadableRecord("the alternative answers are not a list") from error
    if not isinstance(value, list):
        raise UnreadableRecord(f"the alternative answers are {describe_type(value)}, not a list")
    return [format_value(alternative) for alternative in value]


def _parse_strategyqa(fields: Fields, _: str) -> QuestionRecord:
    answer = fields.get("answer")
    if not isinstance(answer, bool):
        raise UnreadableRecord(f"the field 'answer' is {describe_type(answer)}, not true or false")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("qid")),
        dataset="strategyqa",
        gold_answers=[make_gold(answer)],
        details=without(fields, "qid", "question"),
    )


def _parse_phantomwiki(fields: Fields, _: str) -> QuestionRecord:
    kind = optional_text(fields.get("type"))
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("id")),
        dataset="phantomwiki",
        kind=f"template {kind}" if kind else None,
        gold_answers=distinct_golds(make_gold(answer) for answer in require_list(fields, "answer"))
        or unanswerable_gold(UnanswerableReason.NOT_IN_SOURCES),
        details=without(fields, "id", "question", "solution_traces"),
    )


def _is_blendqa(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "sub_q1": str(), "sub_q2": str(), "answers": list()}:
            return True
    return False


def _is_atomr(fields: Fields) -> bool:
    match fields:
        case {"index": int(), "question": str(), "answers": answers} | {
            "index": int(),
            "question": str(),
            "gold": answers,
        }:
            return "sub_q1" not in fields and parse_aliases(answers) is not None
    return False


def _is_crag(fields: Fields) -> bool:
    return isinstance(fields.get("query"), str) and ("interaction_id" in fields or "static_or_dynamic" in fields)


def _is_strategyqa(fields: Fields) -> bool:
    match fields:
        case {"qid": _, "question": str(), "answer": bool()}:
            return any(name in fields for name in ("term", "facts", "decomposition", "evidence"))
    return False


def _is_phantomwiki(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answer": list(), "prolog": dict()}:
            return True
    return False


ATOMR = QuestionFormat(
    "atomr",
    "AtomR's sets, released predictions and trees",
    _is_atomr,
    _parse_atomr,
    date_notation=DateNotation.DAY_FIRST,
)
BLENDQA = QuestionFormat("blendqa", "BlendQA", _is_blendqa, _parse_blendqa, date_notation=DateNotation.MONTH_FIRST)
CRAG = QuestionFormat("crag", "CRAG", _is_crag, _parse_crag)
STRATEGYQA = QuestionFormat("strategyqa", "StrategyQA", _is_strategyqa, _parse_strategyqa)
PHANTOMWIKI = QuestionFormat("phantomwiki", "PhantomWiki", _is_phantomwiki, _parse_phantomwiki)


CONSUMED_FIELDS = ("_id", "id", "question", "answer", "answer_id", "type", "hops", "context")
"""Fields stored elsewhere: the paragraphs as articles of a world, the others in fields of QuestionRecord."""
_TUPLE_FIELDS = ("context", "supporting_facts", "evidences")
_LIST_FIELDS = (*_TUPLE_FIELDS, "paragraphs", "question_decomposition", "evidences_id", "answer_aliases", "hops")
_ORDER = (("title", "fact", "subject", "head"), ("relation", "predicate"), ("entity", "object", "tail"))
"""The names of a row's first, second and third field; others stand in the middle."""
RENAMED_FIELDS = {"subject_qid": "subject_id", "object_qid": "object_id"}
_HOTPOTQA_TYPES = ("bridge", "comparison")
_MUSIQUE_HOPS = re.compile(r"\d+hop")


def restore_columns(fields: Fields) -> dict[str, Any]:
    """The record with its paragraphs, facts and evidences as lists, which columns of the hub hold in other ways.

    Paragraphs are [title, sentences], facts [title, number] and evidences [subject, relation, object].
    """
    restored = {name: restore_rows(fields[name]) for name in _LIST_FIELDS if name in fields}
    return {**fields, **restored, **{name: _order_rows(restored[name]) for name in _TUPLE_FIELDS if name in fields}}


def _order_rows(rows: Any) -> Any:
    """The rows as lists: of a title and what is said of it, or of the two ends of a relation."""
    if not isinstance(rows, list):
        return rows
    return [_order_row(row) if isinstance(row, dict) else row for row in rows]


def _order_row(row: dict[str, Any]) -> list[Any]:
    names = sorted(row, key=lambda name: next((place for place, known in enumerate(_ORDER) if name in known), 1))
    return [row[name] for name in names]


def _parse_multihop(raw: Fields, _: str) -> QuestionRecord:
    fields = restore_columns(raw)
    aliases = parse_aliases(fields.get("answer_aliases"))
    consumed = (*CONSUMED_FIELDS, "answer_aliases") if aliases is not None else CONSUMED_FIELDS
    kind = fields.get("type")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("_id", fields.get("id"))),
        dataset="2wikimultihopqa" if _has_evidences(fields) else "hotpotqa",
        kind=kind if isinstance(kind, str) else None,
        gold_answers=_parse_answer(fields, aliases or []),
        decomposition=_parse_hops(fields),
        details=without(fields, *consumed),
    )


def _parse_answer(fields: Fields, aliases: list[str]) -> list[dict[str, Any]]:
    # 2WikiMultihopQA's test split has empty answers, HotpotQA's and MuSiQue's have none.
    if fields.get("answer") in (None, ""):
        return []
    entity = fields.get("answer_id")
    return [make_gold(require_text(fields, "answer"), entity, aliases)]


def _parse_hops(fields: Fields) -> list[dict[str, Any]]:
    """The hops of the record, or those of 2WikiMultihopQA's evidences."""
    if fields.get("hops") is not None:
        hops = require_list(fields, "hops", dict)
        return [{RENAMED_FIELDS.get(name, name): value for name, value in hop.items()} for hop in hops]
    if fields.get("evidences") is None:
        return []
    return [_parse_evidence(evidence) for evidence in require_list(fields, "evidences", list)]


def _parse_evidence(evidence: list[Any]) -> dict[str, Any]:
    match evidence:
        case [str(subject), str(relation), str(target)]:
            ends = {"subject": subject, "subject_id": None, "object": target, "object_id": None}
            return {**ends, "relation": relation, "pid": None}
    raise UnreadableRecord("an evidence is not [subject, relation, object]")


def _parse_musique(raw: Fields, _: str) -> QuestionRecord:
    fields = restore_columns(raw)
    paragraphs = require_list(fields, "paragraphs", dict)
    source_id = optional_text(fields.get("id"))
    golds = _parse_answer(fields, parse_aliases(fields.get("answer_aliases")) or [])
    if fields.get("answerable") is False:
        # Its paragraphs lack one that is needed; the answer of the record is that of the complete question.
        golds = unanswerable_gold(UnanswerableReason.NOT_IN_SOURCES)
    details = without(fields, "id", "question", "paragraphs")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=source_id,
        dataset="musique",
        kind=parse_hop_count(source_id),
        gold_answers=golds,
        details=details | {"paragraphs": [without(paragraph, "paragraph_text") for paragraph in paragraphs]},
    )


def parse_hop_count(source_id: str | None) -> str | None:
    """2hop, 3hop or 4hop, with which the ids of MuSiQue begin; None for another id."""
    match = _MUSIQUE_HOPS.match(source_id or "")
    return match.group() if match else None


def _has_evidences(fields: Fields) -> bool:
    return isinstance(fields.get("evidences"), list) or isinstance(fields.get("hops"), list)


def _is_two_wiki(fields: Fields) -> bool:
    return isinstance(fields.get("question"), str) and _has_evidences(restore_columns(fields))


def _is_hotpotqa(raw: Fields) -> bool:
    fields = restore_columns(raw)
    if not isinstance(fields.get("question"), str) or _has_evidences(fields):
        return False
    is_answered = isinstance(fields.get("answer"), str) and fields.get("type") in _HOTPOTQA_TYPES
    has_facts = "_id" in fields or isinstance(fields.get("supporting_facts"), list)
    return is_answered or (has_facts and isinstance(fields.get("context"), list))


def _is_musique(fields: Fields) -> bool:
    match restore_columns(fields):
        case {"question": str(), "paragraphs": [{"paragraph_text": str()}, *_]}:
            return True
    return False


_DAYS = DateNotation.DAY_FIRST
TWO_WIKI = QuestionFormat("2wiki", "2WikiMultihopQA", _is_two_wiki, _parse_multihop, date_notation=_DAYS)
HOTPOTQA = QuestionFormat("hotpotqa", "HotpotQA", _is_hotpotqa, _parse_multihop, date_notation=_DAYS)
MUSIQUE = QuestionFormat("musique", "MuSiQue", _is_musique, _parse_musique, date_notation=_DAYS)
