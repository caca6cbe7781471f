"""The answers of a world's questions, evaluated once more over its universe."""

from collections.abc import Iterable
from typing import Any

from worlds.generator.items import Items
from worlds.questions.evaluate import Answer, Evaluation
from worlds.questions.expressions import Expression, from_json
from worlds.questions.names import Names
from worlds.universe.universe import Universe
from worlds.verification.check import Check


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> Check:
    """Every answer of every question, text and entity."""
    check = Check("answers")
    names, items = Names(universe), Items(universe)
    for row in rows:
        what = name_of(row)
        try:
            answer = Evaluation(universe).answer(expression_of(row))
            derived = sorted(_written(answer, number, names, items) for number in answer.values)
            check.compare(what, sorted(_stated(each) for each in row["answers"]), derived)
        except (KeyError, TypeError, IndexError, ValueError) as broken:
            check.broken(what, broken)
    return check


def name_of(row: dict[str, Any]) -> str:
    """What a difference calls a question."""
    return f"{row.get('text')} ({row.get('id')})"


def expression_of(row: dict[str, Any]) -> Expression:
    """What a row of questions.jsonl asks; KeyError or TypeError for what is no question."""
    return from_json(row["expression"])


def _stated(answer: dict[str, Any]) -> str:
    return _with_entity(answer["text"], answer.get("entity"))


def _written(answer: Answer, number: int, names: Names, items: Items) -> str:
    item_of = {
        "person": items.person,
        "job": items.job,
        "hobby": items.hobby,
        "town": items.town,
        "region": items.region,
        "country": items.country,
    }.get(answer.kind)
    return _with_entity(names.answer(answer.kind, number), item_of(number) if item_of else None)


def _with_entity(text: str, entity: str | None) -> str:
    return f"{text} ({entity})" if entity else text
