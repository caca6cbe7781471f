"""The answers of a world's questions, evaluated once more over its universe."""

from collections.abc import Iterable
from typing import Any

from fiction.generator.items import ItemCatalog
from fiction.questions.evaluate import ExpressionAnswer, ExpressionEvaluator
from fiction.questions.expressions import Expression, decode_expression
from fiction.questions.names import NameFormatter
from fiction.universe.universe import Universe
from fiction.verification.check import VerificationCheck

ROW_ERRORS = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""What a row that is no question may raise."""


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> VerificationCheck:
    """Every answer of every question, text and entity."""
    check = VerificationCheck("answers")
    for row in rows:
        what = format_question_name(row)
        try:
            derived = format_answers(ExpressionEvaluator(universe).evaluate(parse_row_expression(row)), universe)
            stated = [(answer["text"], answer.get("entity")) for answer in row["answers"]]
            check.compare(what, sorted(map(_format_answer, stated)), sorted(map(_format_answer, derived)))
        except ROW_ERRORS as broken:
            check.add_unreadable(what, broken)
    return check


def format_question_name(row: dict[str, Any]) -> str:
    """What a difference calls a question."""
    return f"{row.get('text')} ({row.get('id')})"


def parse_row_expression(row: dict[str, Any]) -> Expression:
    """What a row of questions.jsonl asks; KeyError or TypeError for what is no question."""
    return decode_expression(row["expression"])


def format_answers(answer: ExpressionAnswer, universe: Universe) -> list[tuple[str, str | None]]:
    """Every answer as text, and its entity if it is one."""
    names, items = NameFormatter(universe), ItemCatalog(universe)
    item_of = {
        "person": items.person,
        "job": items.job,
        "hobby": items.hobby,
        "town": items.town,
        "region": items.region,
        "country": items.country,
    }.get(answer.kind)
    return [(names.answer_text(answer.kind, value), item_of(value) if item_of else None) for value in answer.values]


def _format_answer(answer: tuple[str, str | None]) -> str:
    text, entity = answer
    return f"{text} ({entity})" if entity else text
