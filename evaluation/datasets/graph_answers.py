r"""Reads sets whose answers are entities and values of a graph: Mintaka, CompMix, WebQSP, CWQ, GrailQA, PathQuestion.

`details` holds all fields of the record but its id and question. Mintaka: `answer` {answerType, answer, mention} with
ids and labels in all languages (`answer` in it is null where no entity was linked; the gold answer is then the
annotator's mention), `questionEntity`, `category`, `complexityType`, `translations`. Mintaka's text file: `answerType`
and `en_true_answer`. CompMix: `answers` [{id, label}] as they are, with dates as 1997-01-01T00:00:00Z, `entities`,
`domain`, `answer_src`, `answer_text`.
"""

import re
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets.record import (
    Fields,
    QuestionFormat,
    UnreadableRecord,
    distinct_golds,
    format_value,
    make_gold,
    match_language,
    optional_text,
    parse_aliases,
    require_list,
    require_text,
    without,
)
from showhow.reasoners.answers.dates_and_numbers import DateNotation
from showhow.worlds import terms

_QID = re.compile(r"Q[1-9]\d*")
_ESCAPED_CHARACTER = re.compile(r"\\u([0-9A-Fa-f]{4})")
_TEXT_ANSWER = "_true_answer"


def find_qid(value: Any) -> str | None:
    """The value if it is the id of a Wikidata item, such as Q42; else None."""
    plain = terms.strip_marks(value) if isinstance(value, str) else ""
    return plain if _QID.fullmatch(plain) else None


def _parse_mintaka(fields: Fields, language: str) -> QuestionRecord:
    answer = fields.get("answer")
    if answer is None or isinstance(answer, dict):
        gold_answers = _parse_linked_answer(answer or {}, language)
    else:
        raise UnreadableRecord("the field 'answer' is not an object with 'answerType' and 'answer'")
    if text_fields := _list_text_fields(fields):
        tag = match_language([name.removesuffix(_TEXT_ANSWER) for name in text_fields], language)
        if tag is None:
            raise UnreadableRecord(f"there is no {language + _TEXT_ANSWER!r}; the record has {', '.join(text_fields)}")
        text = fields[tag + _TEXT_ANSWER]
        gold_answers = [] if text is None else [make_gold(text)]
    kind = fields.get("complexityType")
    return QuestionRecord(
        text=_choose_question(fields, language, is_translated=bool(text_fields)),
        source_id=optional_text(fields.get("id")),
        dataset="mintaka",
        kind=kind if isinstance(kind, str) else None,
        gold_answers=gold_answers,
        details=without(fields, "id", "question"),
    )


def _list_text_fields(fields: Fields) -> list[str]:
    return [name for name in fields if name.endswith(_TEXT_ANSWER)]


def _choose_question(fields: Fields, language: str, *, is_translated: bool) -> str:
    # The text file has one question; only its answers are named by language.
    if language == "en" or is_translated:
        return require_text(fields, "question")
    translations = fields.get("translations")
    texts: Fields = translations if isinstance(translations, dict) else {}
    tag = match_language(texts, language)
    if tag is None:
        raise UnreadableRecord(f"the question has no translation into the language {language!r}")
    return require_text(texts, tag)


def _parse_linked_answer(answer: Fields, language: str) -> list[dict[str, Any]]:
    mention = optional_text(answer.get("mention"))
    if answer.get("answer") is None:
        return [make_gold(mention)] if mention else []
    values = require_list(answer, "answer")
    if answer.get("answerType") == "entity":
        golds = [_parse_entity(value, language) for value in values]
    else:
        golds = [make_gold(value) for value in values]
    # A mention names all answers together; the mention of a date is a two-digit year's, as in 20-Oct-56.
    if len(golds) == 1 and mention and answer.get("answerType") in ("entity", "numerical", "number", "string"):
        golds = [make_gold(golds[0]["text"], golds[0]["entity"], [mention])]
    return distinct_golds(golds)


def _parse_entity(value: Any, language: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableRecord("an entity among the answers is not an object with 'name' and 'label'")
    name, label = value.get("name"), value.get("label")
    if isinstance(label, dict):
        # The first release has English labels only, the later one a label in each language, if there is one.
        named = {tag: text for tag, text in label.items() if optional_text(text)}
        label = named.get(match_language(named, language) or "en")
    text = optional_text(label) or optional_text(name)
    if text is None:
        raise UnreadableRecord("an entity among the answers has neither a label nor a name")
    return make_gold(text, find_qid(name))


def _parse_compmix(fields: Fields, _: str) -> QuestionRecord:
    golds = [_parse_compmix_answer(answer) for answer in require_list(fields, "answers", dict)]
    text = fields.get("answer_text")
    if len(golds) == 1 and isinstance(text, str):
        aliases = [*golds[0].get("aliases", ()), _decode_escapes(text)]
        golds = [make_gold(golds[0]["text"], golds[0]["entity"], aliases)]
    domain = fields.get("domain")
    return QuestionRecord(
        text=_decode_escapes(require_text(fields, "question")),
        source_id=optional_text(fields.get("question_id")),
        dataset="compmix",
        kind=domain if isinstance(domain, str) else None,
        gold_answers=distinct_golds(golds),
        details=without(fields, "question_id", "question"),
    )


def _parse_compmix_answer(answer: Fields) -> dict[str, Any]:
    label = answer.get("label", answer.get("id"))
    return make_gold(_decode_escapes(format_value(label)), find_qid(answer.get("id")))


def _decode_escapes(text: str) -> str:
    """Replace escapes such as \\u00E9, which some labels contain as six characters."""
    return _ESCAPED_CHARACTER.sub(lambda match: chr(int(match[1], 16)), text)


def _is_mintaka(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answer": {"answerType": str(), "answer": _}}:
            return True
        case {"question": str(), "answerType": str()}:
            return bool(_list_text_fields(fields))
    return False


def _is_compmix(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "question_id": _, "answers": [{"id": _, "label": _}, *_]}:
            return True
    return False


MINTAKA = QuestionFormat(
    "mintaka", "Mintaka, with entities or as texts", _is_mintaka, _parse_mintaka, has_languages=True
)
COMPMIX = QuestionFormat("compmix", "CompMix", _is_compmix, _parse_compmix, date_notation=DateNotation.DAY_FIRST)


_PATH_ANSWER = re.compile(r"([^()]+)\((.*)\)")


def _parse_webqsp(fields: Fields, _: str) -> QuestionRecord:
    if "qid_topic_entity" in fields and "answers" in fields:
        return _parse_mixed_names(fields)
    if "Parses" in fields:
        golds = _parse_parses(require_list(fields, "Parses", dict))
    else:
        names = require_list(fields, "answer") if "answer" in fields else []
        golds = [make_gold(name) for name in names if name != ""]
    return QuestionRecord(
        text=require_text(fields, "RawQuestion"),
        source_id=optional_text(fields.get("QuestionId")),
        dataset="webqsp",
        gold_answers=distinct_golds(golds),
        details=without(fields, "QuestionId", "RawQuestion"),
    )


def _parse_mixed_names(fields: Fields) -> QuestionRecord:
    names = [name for name in require_list(fields, "answers", str) if name.strip()]
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("id")),
        dataset="webqsp",
        gold_answers=[make_gold(names[0], aliases=names[1:])] if names else [],
        details=without(fields, "id", "question"),
    )


def _parse_parses(parses: list[Fields]) -> list[dict[str, Any]]:
    answered = [parse for parse in parses if require_list(parse, "Answers", dict)]
    chosen = next((parse for parse in answered if _is_complete(parse)), next(iter(answered), None))
    return [] if chosen is None else [_parse_webqsp_answer(answer) for answer in chosen["Answers"]]


def _is_complete(parse: Fields) -> bool:
    match parse:
        case {"AnnotatorComment": {"ParseQuality": "Complete", "QuestionQuality": "Good"}}:
            return True
    return False


def _parse_webqsp_answer(answer: Fields) -> dict[str, Any]:
    argument, name = optional_text(answer.get("AnswerArgument")), optional_text(answer.get("EntityName"))
    return _make_freebase_gold(name, argument, is_entity=answer.get("AnswerType") == "Entity")


def _make_freebase_gold(name: str | None, argument: str | None, *, is_entity: bool) -> dict[str, Any]:
    text = name or argument
    if text is None:
        raise UnreadableRecord("an answer has neither a name nor a value")
    return make_gold(text, argument if is_entity else None)


def _parse_cwq(fields: Fields, _: str) -> QuestionRecord:
    kind = fields.get("compositionality_type")
    answers = fields.get("answers", fields.get("answer"))
    values = answers if isinstance(answers, list) else [] if answers in (None, "") else [answers]
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("ID")),
        dataset="cwq",
        kind=kind if isinstance(kind, str) else None,
        gold_answers=distinct_golds(map(_parse_cwq_answer, values)),
        details=without(fields, "ID", "question"),
    )


def _parse_cwq_answer(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return make_gold(value)
    name, entity = optional_text(value.get("answer")), optional_text(value.get("answer_id"))
    gold = _make_freebase_gold(name, entity, is_entity=True)
    return make_gold(gold["text"], gold["entity"], parse_aliases(value.get("aliases")) or [])


def _parse_grailqa(fields: Fields, _: str) -> QuestionRecord:
    level = fields.get("level")
    answers = require_list(fields, "answer", dict) if fields.get("answer") is not None else []
    return QuestionRecord(
        text=require_text(fields, "question"),
        source_id=optional_text(fields.get("qid")),
        dataset="grailqa",
        kind=level if isinstance(level, str) else None,
        gold_answers=distinct_golds(map(_parse_grailqa_answer, answers)),
        details=without(fields, "qid", "question"),
    )


def _parse_grailqa_answer(answer: Fields) -> dict[str, Any]:
    argument, name = optional_text(answer.get("answer_argument")), optional_text(answer.get("entity_name"))
    return _make_freebase_gold(name, argument, is_entity=answer.get("answer_type") == "Entity")


def _parse_pathquestion(fields: Fields, _: str) -> QuestionRecord:
    match = _PATH_ANSWER.fullmatch(require_text(fields, "answer"))
    if match is None:
        raise UnreadableRecord("the answer is not a name with its alternatives, as in a(a/b/)")
    alternatives = [_format_name(name) for name in match[2].split("/")]
    return QuestionRecord(
        text=require_text(fields, "question"),
        dataset="pathquestion",
        gold_answers=[make_gold(_format_name(match[1]), match[1], alternatives)],
        details=without(fields, "question"),
    )


def _format_name(name: str) -> str:
    return name.replace("_", " ")


def _is_webqsp(fields: Fields) -> bool:
    match fields:
        case {"QuestionId": _, "RawQuestion": str()}:
            return True
        case {"id": _, "question": str(), "qid_topic_entity": dict(), "answers": list()}:
            return True
    return False


def _is_cwq(fields: Fields) -> bool:
    return isinstance(fields.get("question"), str) and "ID" in fields and "compositionality_type" in fields


def _is_grailqa(fields: Fields) -> bool:
    match fields:
        case {"qid": _, "question": str(), "answer": [{"answer_argument": _}, *_]}:
            return True
        case {"qid": _, "question": str(), "s_expression": _}:
            return True
    return False


def _is_pathquestion(fields: Fields) -> bool:
    match fields:
        case {"question": str(), "answer": str(), "path": str(path)}:
            return "#" in path
    return False


WEBQSP = QuestionFormat("webqsp", "WebQSP, with parses or with names only", _is_webqsp, _parse_webqsp)
CWQ = QuestionFormat("cwq", "ComplexWebQuestions", _is_cwq, _parse_cwq)
GRAILQA = QuestionFormat("grailqa", "GrailQA", _is_grailqa, _parse_grailqa)
PATHQUESTION = QuestionFormat("pathquestion", "PathQuestion", _is_pathquestion, _parse_pathquestion)
