"""The answers of a world's questions, evaluated once more over its universe."""

from collections.abc import Iterable
from typing import Any

from worlds.generator.items import Items
from worlds.questions.evaluate import Answer, Evaluation
from worlds.questions.expressions import Expression, from_json
from worlds.questions.names import Names
from worlds.universe.universe import Universe
from worlds.verification.check import Check

UNREADABLE_ROW = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""What a row that is no question may raise."""


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> Check:
    """Every answer of every question, text and entity."""
    check = Check("answers")
    for row in rows:
        what = name_of(row)
        try:
            derived = written(Evaluation(universe).answer(expression_of(row)), universe)
            stated = [(each["text"], each.get("entity")) for each in row["answers"]]
            check.compare(what, sorted(map(_shown, stated)), sorted(map(_shown, derived)))
        except UNREADABLE_ROW as broken:
            check.broken(what, broken)
    return check


def name_of(row: dict[str, Any]) -> str:
    """What a difference calls a question."""
    return f"{row.get('text')} ({row.get('id')})"


def expression_of(row: dict[str, Any]) -> Expression:
    """What a row of questions.jsonl asks; KeyError or TypeError for what is no question."""
    return from_json(row["expression"])


def written(answer: Answer, universe: Universe) -> list[tuple[str, str | None]]:
    """Every answer as text, and its entity if it is one."""
    names, items = Names(universe), Items(universe)
    item_of = {
        "person": items.person,
        "job": items.job,
        "hobby": items.hobby,
        "town": items.town,
        "region": items.region,
        "country": items.country,
    }.get(answer.kind)
    return [(names.answer(answer.kind, value), item_of(value) if item_of else None) for value in answer.values]


def _shown(answer: tuple[str, str | None]) -> str:
    text, entity = answer
    return f"{text} ({entity})" if entity else text
