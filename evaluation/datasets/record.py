"""A question read from a file, the type of a question format, the checks that formats share, and the plain formats.

The plain formats are JSON or CSV with common field names: `question` or `text`, `answer` or `answers`, `id`. A list of
answers means that a correct answer names all of them; of `answer_0`, `answer_1` and so on it names one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.types import UnstorableValue, check_storable_json, dump_json
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.evaluation.value_format import restore_cell
from showhow.reasoners.answers.dates_and_numbers import DateNotation
from showhow.worlds import terms
from showhow.worlds.input_files import MalformedFile

Fields = Mapping[str, Any]
"""One record of a file as it was read."""

_TYPE_NAMES = {
    **{dict: "an object", list: "a list", str: "a text", bool: "true or false"},
    **{type(None): "null", int: "a number", float: "a number"},
}


class UnreadableRecord(ValueError):
    """A record cannot be read as a question; the message says why, without its position in the file."""


@dataclass(frozen=True, slots=True)
class QuestionFormat:
    """A format of question files."""

    name: str
    """The value of `--format`."""
    title: str
    """The data set or the notation, for lists of formats."""
    claims: Callable[[Fields], bool]
    """Whether a record has the structure of this format: its field names and the types of their values."""
    parse: Callable[[Fields, str], QuestionRecord]
    """Reads one record in a language, such as en; UnreadableRecord says why it cannot be read."""
    has_languages: bool = False
    """Whether the questions, or the labels of their answers, are given in several languages."""
    date_notation: DateNotation | None = None
    """How the data set writes most days among its gold answers; None: as most of a file's are written."""
    is_tabular: bool = False
    """Whether its published files are tables, so that the columns of a table are looked at for its structure."""


def require_text(fields: Fields, name: str) -> str:
    """The stripped text of a required field; UnreadableRecord if it is missing, blank or not a text."""
    value = fields.get(name)
    if value is None:
        raise UnreadableRecord(f"the field {name!r} is missing")
    if not isinstance(value, str):
        raise UnreadableRecord(f"the field {name!r} is {describe_type(value)}, not a text")
    if not value.strip():
        raise UnreadableRecord(f"the field {name!r} is blank")
    return value.strip()


def require_list(fields: Fields, name: str, element: type | tuple[type, ...] = object) -> list[Any]:
    """The list in a required field; UnreadableRecord if it is none, or an element has another type."""
    value = fields.get(name)
    if not isinstance(value, list):
        raise UnreadableRecord(f"the field {name!r} is {describe_type(value)}, not a list")
    for entry in value:
        if not isinstance(entry, element):
            raise UnreadableRecord(f"the list {name!r} contains {describe_type(entry)}")
    return value


def describe_type(value: Any) -> str:
    """The JSON type of a value with its article."""
    return _TYPE_NAMES.get(type(value), "a number")


def optional_text(value: Any) -> str | None:
    """A number or a text that is not blank as a text; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return format_value(value).strip() or None


def format_value(value: Any) -> str:
    """An answer as a text: yes or no for a boolean, 42 for 42.0; UnreadableRecord for a list, an object or null."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float() if not isfinite(value):
            raise UnreadableRecord("an answer is a number that is infinite, or too large for JSON")
        case float() if value.is_integer():
            return str(int(value))
        case str() | int() | float():
            return str(value)
    raise UnreadableRecord(f"an answer is {describe_type(value)}, not a text or a number")


def make_gold(value: Any, entity: Any = None, aliases: Iterable[str] = ()) -> dict[str, Any]:
    """A gold answer; aliases that are blank or equal to the text are left out."""
    text = format_value(value).strip()
    if not text:
        raise UnreadableRecord("an answer is blank")
    gold: dict[str, Any] = {"text": text, "entity": terms.strip_marks(str(entity)) if entity else None}
    names = dict.fromkeys(alias.strip() for alias in aliases if alias.strip())
    if distinct := [name for name in names if name != text]:
        gold["aliases"] = distinct
    return gold


def unanswerable_gold(reason: UnanswerableReason, aliases: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The gold answers of a question that cannot be answered; `aliases` are what else its data set calls that."""
    return [make_gold(write_unanswerable(reason), aliases=aliases)]


def find_unanswerable_mark(fields: Fields) -> UnanswerableReason | None:
    """Why the record says that its question cannot be answered; None if it does not say so."""
    values = {name: str(value).strip().casefold() for name, value in fields.items() if isinstance(value, bool | str)}
    if values.get("unanswerable") in list(UnanswerableReason):
        return UnanswerableReason(values["unanswerable"])
    marks = {"unanswerable": "true", "is_impossible": "true", "answerable": "false", "is_answerable": "false"}
    return UnanswerableReason.UNSTATED if marks.items() & values.items() else None


def distinct_golds(golds: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The gold answers in order, each entity or text once."""
    by_name: dict[str, dict[str, Any]] = {}
    for gold in golds:
        by_name.setdefault(gold["entity"] or gold["text"], gold)
    return list(by_name.values())


def parse_aliases(aliases: Any) -> list[str] | None:
    """The distinct aliases of a gold answer; None if the value is not a list of texts."""
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        return None
    return list(dict.fromkeys(alias.strip() for alias in aliases if alias.strip()))


def match_language(tags: Iterable[str], language: str) -> str | None:
    """The tag of this language: the same one, else a narrower one (zh-cn for zh), else a wider one (zh for zh-cn).

    Letters of either case and _ for - are the same, as in RFC 4647.
    """
    by_range = {_format_tag(tag): tag for tag in reversed(list(tags))}
    asked = _format_tag(language)
    if asked not in by_range:
        narrower = [tag for tag in by_range if tag.startswith(f"{asked}-")]
        if narrower:
            return by_range[narrower[-1]]
        while "-" in asked and asked not in by_range:
            asked = asked.rpartition("-")[0]
    return by_range.get(asked)


def _format_tag(tag: str) -> str:
    return tag.strip().casefold().replace("_", "-")


def without(fields: Fields, *names: str) -> dict[str, Any]:
    """The fields except those with these names."""
    return {name: value for name, value in fields.items() if name not in names}


def parse_record(form: QuestionFormat, fields: Fields, language: str) -> QuestionRecord:
    """Read one record; UnreadableRecord also for a record that a database cannot store."""
    record = form.parse(fields, language)
    if record.source_id is not None and not record.source_id.isascii():
        record = replace(record, source_id=terms.strip_marks(record.source_id) or None)
    texts = [record.text, record.source_id, record.dataset, record.split, record.kind]
    try:
        check_storable_json([texts, record.gold_answers, record.decomposition, record.details])
    except UnstorableValue as error:
        raise UnreadableRecord(str(error)) from error
    return record


TEXT_NAMES = ("question", "text", "prompt", "problem", "question_text")
ANSWER_NAMES = ("answers", "answer", "gold_answers", "gold_answer", "answer_list")
ALTERNATIVES_NAMES = ("golden_answers", "short_answers")
"""The fields of a list of answers of which a correct answer names one, as in the files of FlashRAG and ASQA."""
CHOICES_NAMES = ("choices", "options")
"""The fields of the answers from which a question lets one choose."""
_LONGEST_WORD = 60
_NUMBERED_ANSWER = re.compile(r"answer_?\d+")
"""The fields of alternative answers, as FreshQA's answer_0 to answer_9."""
ID_NAMES = ("id", "_id", "qid", "question_id", "source_id")
_KNOWN_NAMES = frozenset({"date", *TEXT_NAMES, *ANSWER_NAMES, *ID_NAMES, *ALTERNATIVES_NAMES})
METADATA_NAMES = ("dataset", "split", "kind")
COLUMN_MEANINGS = ("question", "answer", "alternatives", "id", "kind", "date")
"""What a person may say that a column of a file means, whatever its name."""


def parse_question(fields: Fields, file: Path, line: int | None) -> QuestionRecord:
    """Read a row of a generated world's file; MalformedFile names what is missing or of the wrong type."""
    try:
        return parse_record(JSONL, fields, language="en")
    except UnreadableRecord as error:
        raise MalformedFile(file, line, str(error)) from error


def parse_cells(names: list[str], cells: list[str]) -> dict[str, Any]:
    """The fields of a CSV row; a | separates several answers, and blank cells are left out."""
    restored = zip(names, map(restore_cell, cells), strict=True)
    fields: dict[str, Any] = {name: cell for name, cell in restored if cell.strip()}
    for name in (*ANSWER_NAMES, *ALTERNATIVES_NAMES):
        if name in fields and isinstance(parts := restore_list(fields[name]), str):
            fields[name] = [part.strip() for part in parts.split("|") if part.strip()]
    return fields


_ELEMENT = re.compile(r"""\s*+('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")\s*+,?""", re.DOTALL)
_ARRAY_START, _ARRAY_TYPE = re.compile(r"(?:array\()?\["), re.compile(r"(?:,\s*+dtype=[\w<>.]++)?\)?")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


def restore_list(value: Any) -> Any:
    """The list of texts that a text is, as programs print it: ["A", "B"], ['A', 'B'], ['A' 'B']; else the value.

    Numbers between brackets are a text, such as an interval.
    """
    text = value.strip() if isinstance(value, str) else ""
    start, end = _ARRAY_START.match(text), text.rfind("]")
    if start is None or not _ARRAY_TYPE.fullmatch(text[end + 1 :]):
        return value
    inside, place, elements = text[start.end() : end].strip(), 0, list[str]()
    while place < len(inside):
        element = _ELEMENT.match(inside, place)
        if element is None:
            return value
        elements.append(_ESCAPE.sub(_unescape, element[1][1:-1]))
        place = element.end()
    return elements


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _CONTROLS.get(match[3], match[3])


def _parse_plain(raw: Fields, _: str) -> QuestionRecord:
    fields = _standardize_known_names(raw)
    name = next((name for name in TEXT_NAMES if name in fields), TEXT_NAMES[0])
    consumed = {name}
    source = next((field for field in ID_NAMES if isinstance(fields.get(field), str | int)), None)
    answers = next((field for field in ANSWER_NAMES if fields.get(field) is not None), None)
    alternatives = [] if answers else [field for field in fields if _NUMBERED_ANSWER.fullmatch(field) and fields[field]]
    names = ALTERNATIVES_NAMES if not answers else ()
    listing = next((name for name in names if parse_aliases(restore_list(fields.get(name)))), None)
    listed = parse_aliases(restore_list(fields[listing])) if listing else None
    consumed |= {field for field in (source, answers, *alternatives, listing) if field}
    if "canary" in fields and len(text := require_text(fields, name)) > _LONGEST_WORD and len(text.split()) == 1:
        raise UnreadableRecord("its question is encrypted, as BrowseComp's are; decrypt the file and import it again")
    own: dict[str, Any] = {}
    for metadata in METADATA_NAMES:
        if fields.get(metadata) is not None:
            own[metadata] = require_text(fields, metadata)
            consumed.add(metadata)
    if _is_hop_list(fields.get("decomposition")):
        own["decomposition"] = fields["decomposition"]
        consumed.add("decomposition")
    reason = find_unanswerable_mark(fields)
    gold_answers = _parse_answers(_find_choice(fields, fields[answers])) if answers and not reason else []
    if reason or (answers and not gold_answers and "expression" in fields):
        # A generated world's question has all answers that its expression has; one of a pair lacks a fact.
        is_false = fields.get("false_premise") and "pair" not in fields
        own_reason = UnanswerableReason.FALSE_PREMISE if is_false else UnanswerableReason.NOT_IN_SOURCES
        gold_answers = unanswerable_gold(reason or own_reason)
    if alternatives or listed:
        first, *others = listed or (format_value(fields[field]) for field in alternatives)
        gold_answers = [make_gold(first, aliases=others)]
    if not isinstance(fields.get("attachments", {}), dict):
        kind = describe_type(fields["attachments"])
        raise UnreadableRecord(f"'attachments' is {kind}, not an object of texts by name")
    aliases = parse_aliases(fields.get("answer_aliases"))
    if aliases is not None and len(gold_answers) == 1:
        consumed.add("answer_aliases")
        _add_aliases(gold_answers[0], aliases)
    return QuestionRecord(
        text=require_text(fields, name),
        source_id=str(fields[source]) if source else None,
        gold_answers=gold_answers,
        details={field: value for field, value in fields.items() if field not in consumed},
        **own,
    )


def standardize_name(name: str) -> str:
    """The name in lower case; that of questions, answers and ids as it is known, so "Gold answer" is gold_answer."""
    joined = "_".join(name.lower().replace("-", " ").split())
    return joined if joined in _KNOWN_NAMES else name.lower()


def _standardize_known_names(fields: Fields) -> Fields:
    """The fields with the names of questions, answers and ids as they are known, unless two would have the same one."""
    standard = {name: standardize_name(name) for name in fields}
    renamed = {name: known for name, known in standard.items() if known in _KNOWN_NAMES and known not in fields}
    return {renamed.get(name, name): value for name, value in fields.items()} if renamed else fields


def _is_hop_list(value: Any) -> bool:
    # A decomposition into questions, as in some data sets, stays in the details.
    return isinstance(value, list) and all(isinstance(hop, dict) and "question" not in hop for hop in value)


def _find_choice(fields: Fields, given: Any) -> Any:
    """The text of a choice whose number from 0, or letter, the answer is; any other answer as it is."""
    choices = next((restore_list(fields[name]) for name in CHOICES_NAMES if fields.get(name)), None)
    answer = given[0] if isinstance(given, list) and len(given) == 1 else given
    if isinstance(choices, dict) and isinstance(choices.get("text"), list) and isinstance(choices.get("label"), list):
        choices = dict(zip(map(str, choices["label"]), choices["text"], strict=False))
    if isinstance(choices, list):
        numbered = dict(enumerate(choices))
        choices = numbered | {chr(ord("A") + number): choice for number, choice in numbered.items()}
    is_key = isinstance(answer, str | int) and not isinstance(answer, bool)
    if not isinstance(choices, dict) or not is_key or answer in choices.values():
        return given
    if isinstance(answer, int) and answer not in choices:
        raise UnreadableRecord(f"its answer {answer} is the number of none of its choices, which are counted from 0")
    return choices.get(answer, given)


def _parse_answers(raw: Any) -> list[dict[str, Any]]:
    value = restore_list(raw)
    return [_parse_answer(answer) for answer in (value if isinstance(value, list) else [value])]


def _parse_answer(answer: Any) -> dict[str, Any]:
    match answer:
        case {"text": str(text), **rest} | {"answer_text": str(text), **rest}:
            gold = make_gold(text, rest.get("entity") or rest.get("id"))
            _add_aliases(gold, parse_aliases(rest.get("aliases")) or [])
            return gold
        case {"value": value}:
            # A value of the schema of a project's answers.
            return make_gold(dump_json(value))
        case str() | int() | float():
            return make_gold(answer)
    raise UnreadableRecord("an answer is not a text, a number or an object with a 'text' or a 'value'")


def _add_aliases(gold: dict[str, Any], aliases: list[str]) -> None:
    # Kept as they are, also when one equals the text: an export that is imported again has the same question.
    if aliases:
        gold["aliases"] = aliases


def _is_plain(fields: Fields) -> bool:
    return any(isinstance(value, str) for name, value in fields.items() if standardize_name(name) in TEXT_NAMES)


JSONL = QuestionFormat("jsonl", "JSON with the fields question or text, answer or answers, id", _is_plain, _parse_plain)
CSV = QuestionFormat("csv", "CSV with the columns question or text, answer or answers, id", _is_plain, _parse_plain)
