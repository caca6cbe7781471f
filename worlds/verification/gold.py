"""All that a generated world's questions say beside their answers, made once more from what they ask."""

import json
from typing import Any

from worlds.questions.kinds import templates
from worlds.questions.names import Names
from worlds.questions.question import Gold
from worlds.questions.wording import wording
from worlds.universe.options import Options
from worlds.universe.universe import Told, Universe
from worlds.verification.answers import UNREADABLE_ROW, expression_of, name_of
from worlds.verification.check import Check


def check_gold(rows: list[dict[str, Any]], universe: Universe, told: Told, options: Options) -> Check:
    """The template, wording, difficulty, sources, query, tree, triples and sub-questions of every question."""
    check = Check("parts of gold")
    names = Names(universe, plain=options.plain)
    gold = Gold(universe, told, names)
    known = {(template.kind, template.text) for template in templates(options)}
    for number, row in enumerate(rows, 1):
        what = name_of(row)
        try:
            expression = expression_of(row)
            text, kind = wording(expression, names), (row["kind"], row["template"])
            # What was written is compared, in which every list is one of JSON's.
            derived = json.loads(json.dumps(gold.of(number, expression, text, kind).to_row()))
        except UNREADABLE_ROW as broken:
            check.broken(what, broken)
            continue
        if kind not in known:
            check.differs(f"template of {what}", ": ".join(map(str, kind)), "one of the templates")
        for name, value in derived.items():
            check.compare(f"{name} of {what}", row.get(name), value)
    return check
