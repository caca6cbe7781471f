"""Reads QALD's JSON (QALD-9-plus, QALD-10, hybrid), LC-QuAD 2 and SPINACH: questions with a SPARQL query.

`details` holds all fields of the record but its id and, where it is one text, its question. QALD: `question` in all
languages, `query` with `sparql` or `pseudo`, and `answers` as SPARQL results (`head`, `results` or `boolean`), which
tell a question without answers (no bindings) from one whose answers are not given. QALD-9-plus in LC-QuAD's fields:
`answer` (RDF terms), `solved_answer` (labels and aliases), `sparql_wikidata`. LC-QuAD 2: `sparql`, `ans`, `ans_id`,
`answertype`, `paraphrases`. SPINACH and other files of questions with queries only: `sparql`, `title`, `url`; they have
no gold answers.

A gold answer of QALD is each value that the results bind, once: a Wikidata item with its label, if the results have one
as from Wikidata's label service (`?x` and `?xLabel`), else with its id as text; a DBpedia resource with its name as
text and its address as entity. Blank values, which no answer can name, are only in `details`.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets.graph_answers import find_qid
from showhow.evaluation.datasets.record import (
    Fields,
    QuestionFormat,
    UnreadableRecord,
    distinct_golds,
    make_gold,
    match_language,
    optional_text,
    parse_aliases,
    require_list,
    require_text,
    without,
)

_WIKIDATA = re.compile(r"https?://www\.wikidata\.org/(?:entity|wiki)/(Q[1-9]\d*)")
_DBPEDIA = re.compile(r"https?://(?:\w+\.)?dbpedia\.org/(?:resource|ontology|property|class/yago)/(.+)")
_MIDNIGHT = re.compile(r"(-?\d{4,}-\d\d-\d\d)T00:00:00(?:\.0+)?Z?")
_LABEL_END, _ALIASES_END = "Label", "AltLabel"
_NAME_ENDS = (_ALIASES_END, _LABEL_END, "Description")
"""The ends of the variables by which Wikidata's label service names the variable before them."""
_ANSWER_FIELDS = ("answer", "answers", "gold_answers", "gold", "ans", "solved_answer")


def _parse_qald(fields: Fields, language: str) -> QuestionRecord:
    results = require_list(fields, "answers", (dict, str)) if fields.get("answers") is not None else []
    golds = [gold for result in results for gold in _parse_result(result)]
    return QuestionRecord(
        text=_choose_string(fields, language),
        source_id=optional_text(fields.get("id")),
        dataset="qald",
        kind=optional_text(fields.get("answertype")) or _classify_answers(golds, results),
        gold_answers=distinct_golds(golds),
        details=without(fields, "id"),
    )


def _choose_string(fields: Fields, language: str) -> str:
    strings = [string for string in require_list(fields, "question", dict) if optional_text(string.get("string"))]
    by_language: dict[str, Fields] = {}
    for string in strings:
        if isinstance(string.get("language"), str):
            by_language.setdefault(string["language"], string)
    tag = match_language(by_language, language)
    if tag is None:
        raise UnreadableRecord(f"the question has no text in the language {language!r}")
    return require_text(by_language[tag], "string")


def _parse_result(result: Fields | str) -> list[dict[str, Any]]:
    """The golds of one SPARQL result: the boolean, or every value of every variable; or of a value by itself."""
    if isinstance(result, str):
        return [_parse_value(result)]
    if result.get("boolean") is not None:
        if not isinstance(result["boolean"], bool):
            raise UnreadableRecord("a 'boolean' answer is neither true nor false")
        return [make_gold(result["boolean"])]
    match result:
        case {"results": {"bindings": [*bindings]}} if all(isinstance(binding, dict) for binding in bindings):
            return [gold for binding in bindings for gold in _parse_binding(binding)]
        case {"results": {}} if not result["results"]:
            return []
    raise UnreadableRecord("an answer has neither 'boolean' nor 'results' with 'bindings'")


def _parse_binding(binding: Fields) -> Iterator[dict[str, Any]]:
    """The golds of one row, without unbound and blank values; a variable that names another one is no gold."""
    terms = {name: term for name, term in binding.items() if not _is_blank(term)}
    for name, term in terms.items():
        labelled = next((name.removesuffix(end) for end in _NAME_ENDS if name.endswith(end)), name)
        if labelled not in terms or labelled == name:
            yield _parse_term(term, [*_list_names(terms, name + _LABEL_END), *_list_names(terms, name + _ALIASES_END)])


def _list_names(terms: Fields, variable: str) -> list[str]:
    match terms.get(variable):
        case {"value": str(value)}:
            # The label service joins aliases by commas.
            return value.split(", ") if variable.endswith(_ALIASES_END) else [value.strip()]
    return []


def _is_blank(term: Any) -> bool:
    match term:
        case None:
            return True
        case {"value": str(value)}:
            return not value.strip()
    return False


def _parse_term(term: Any, names: list[str]) -> dict[str, Any]:
    match term:
        case {"type": "uri", "value": str(address)}:
            return _parse_address(address, names)
        case {"type": str(), "value": str() | int() | float() as value}:
            return _parse_literal(value)
    raise UnreadableRecord("a bound value is not an object with 'type' and 'value'")


def _parse_address(address: str, names: list[str] | None = None) -> dict[str, Any]:
    address = address.strip().removeprefix("<").removesuffix(">")
    own_names = names or []
    if match := _WIKIDATA.fullmatch(address):
        return make_gold(own_names[0] if own_names else match[1], match[1], own_names[1:])
    if match := _DBPEDIA.fullmatch(address):
        return make_gold(unquote(match[1]).replace("_", " "), address, own_names)
    # Such as the address of a web site, which is the answer itself.
    return make_gold(own_names[0] if own_names else address, None, own_names[1:])


def _parse_literal(value: Any) -> dict[str, Any]:
    gold = make_gold(value)
    if match := _MIDNIGHT.fullmatch(gold["text"]):
        return make_gold(gold["text"], aliases=[match[1]])
    return gold


def _classify_answers(golds: list[dict[str, Any]], results: list[Any]) -> str | None:
    if any("boolean" in result for result in results if isinstance(result, dict)):
        return "boolean"
    if not golds:
        return None
    return "resource" if all(gold["entity"] for gold in golds) else "literal"


def _parse_solved_qald(fields: Fields, _: str) -> QuestionRecord:
    terms = require_list(fields, "answer", str)
    labels = require_list(fields, "solved_answer", (str, list)) if "solved_answer" in fields else [[]] * len(terms)
    if len(labels) != len(terms):
        raise UnreadableRecord("'answer' and 'solved_answer' differ in length")
    pairs = zip(terms, labels, strict=True)
    golds = [_parse_solved_term(term, [names] if isinstance(names, str) else names) for term, names in pairs]
    return QuestionRecord(
        text=_choose_question(fields),
        source_id=optional_text(fields.get("uid")),
        dataset="qald-9-plus" if "solved_answer" in fields else "lcquad2",
        kind=_classify_answers(golds, []),
        gold_answers=distinct_golds(golds),
        details=without(fields, "uid", "question"),
    )


def _parse_solved_term(term: str, names: list[Any]) -> dict[str, Any]:
    texts = parse_aliases(names)
    if texts is None:
        raise UnreadableRecord("the names of an answer are not texts")
    return _parse_value(term, texts)


def _parse_value(value: str, names: list[str] | None = None) -> dict[str, Any]:
    if "://" in value:
        return _parse_address(value, names)
    return make_gold(value, value) if find_qid(value) and not names else _parse_literal(value)


def _choose_question(fields: Fields) -> str:
    # LC-QuAD 2 has records whose question was not written out; the generated text is there always.
    name = "question" if optional_text(fields.get("question")) else "NNQT_question"
    return require_text(fields, name if name in fields else "question")


def _parse_lcquad2(fields: Fields, _: str) -> QuestionRecord:
    kind = optional_text(fields.get("answertype"))
    answers = require_list(fields, "ans", (str, int, float)) if fields.get("ans") is not None else []
    ids = require_list(fields, "ans_id") if fields.get("ans_id") is not None else [None] * len(answers)
    if len(ids) != len(answers):
        raise UnreadableRecord("'ans' and 'ans_id' differ in length")
    pairs = zip(answers, ids, strict=True)
    return QuestionRecord(
        text=_choose_question(fields),
        source_id=optional_text(fields.get("id", fields.get("uid"))),
        dataset="lcquad2",
        kind=None if kind == "None" else kind,
        gold_answers=distinct_golds(_parse_lcquad2_answer(answer, qid, kind) for answer, qid in pairs),
        details=without(fields, "id", "uid", "question"),
    )


def _parse_lcquad2_answer(answer: Any, qid: Any, kind: str | None) -> dict[str, Any]:
    if kind == "boolean" and answer in ("True", "False"):
        return make_gold(answer == "True")
    return make_gold(answer, find_qid(qid))


def _parse_queries_only(fields: Fields, _: str) -> QuestionRecord:
    require_text(fields, "sparql")
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("id")),
        dataset="spinach" if "url" in fields else None,
        details=without(fields, "id", "question"),
    )


def _is_qald(fields: Fields) -> bool:
    match fields:
        case {"question": [{"language": str(), "string": _}, *_]}:
            return True
    return False


def _is_solved_qald(fields: Fields) -> bool:
    return isinstance(fields.get("sparql_wikidata"), str) and isinstance(fields.get("answer"), list)


def _is_lcquad2(fields: Fields) -> bool:
    if isinstance(fields.get("sparql_wikidata"), str):
        return not isinstance(fields.get("answer"), list)
    match fields:
        case {"question": _, "sparql": str(), "paraphrases": list()}:
            return not any(name in fields for name in _ANSWER_FIELDS)
        case {"question": _, "ans": list(), "answertype": _}:
            return True
    return False


def _is_queries_only(fields: Fields) -> bool:
    match fields:
        case {"id": _, "question": str(), "sparql": str()}:
            return not any(name in fields for name in ("paraphrases", *_ANSWER_FIELDS))
    return False


QALD = QuestionFormat("qald", "QALD-9-plus, QALD-10 and QALD's hybrid sets", _is_qald, _parse_qald, has_languages=True)
SOLVED_QALD = QuestionFormat(
    "qald-lcquad", "QALD-9-plus in LC-QuAD's fields, with labels", _is_solved_qald, _parse_solved_qald
)
LCQUAD2 = QuestionFormat("lcquad2", "LC-QuAD 2", _is_lcquad2, _parse_lcquad2)
SPINACH = QuestionFormat(
    "spinach", "SPINACH and others with a SPARQL query and no answers", _is_queries_only, _parse_queries_only
)
