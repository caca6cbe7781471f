"""What an instance states beside its answers, derived once more: wordings, relations, articles, attributes."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from worlds.folder import TEXT
from worlds.phantomwiki.articles import derived_facts, read_sentence
from worlds.phantomwiki.chains import DEPTH, chain_of
from worlds.phantomwiki.queries import read_query
from worlds.phantomwiki.stated import StatedFacts
from worlds.phantomwiki.values import Values
from worlds.questions.difficulty import difficulty, hops
from worlds.source import NotFound
from worlds.text import EmbeddedText
from worlds.universe.relations import RELATIONS, SPOUSE, Relation, related
from worlds.verification.answers import UNREADABLE_ROW, expression_of, name_of
from worlds.verification.check import Check

_MARRIED = Relation("married", (SPOUSE,), 1)
_DEEPEST = 200


def check_questions(rows: list[dict[str, Any]], values: Values) -> Check:
    """Of every question its query, wording, template, number, difficulty and goals."""
    check = Check("particulars of questions")
    depth = _grammar(rows)
    for row in rows:
        try:
            _check_question(check, row, values, depth)
        except UNREADABLE_ROW as broken:
            check.broken(name_of(row), broken)
    return check


def _check_question(check: Check, row: dict[str, Any], values: Values, depth: int) -> None:
    expression, what = expression_of(row), name_of(row)
    query = row["prolog"]
    check.compare(f"query of {what}", read_query(query["query"], query["answer"], values), expression)
    check.compare(f"difficulty of {what}", row["difficulty"], difficulty(expression))
    check.compare(f"goals of {what}", row["hops"], hops(expression))
    check.compare(f"goals of {what}", row["hops"], len(query["query"]))
    chain = chain_of(expression)
    if chain is None:
        check.undecided += 1
        return
    check.compare(f"wording of {what}", row["text"], chain.text(values))
    check.compare(f"template of {what}", row["template"], " ".join(chain.template()))
    check.compare(f"type of {what}", row["type"], chain.type(depth))


def _grammar(rows: list[dict[str, Any]]) -> int:
    """The depth of the grammar that numbers the first template as it is numbered; else the published one."""
    for row in rows:
        try:
            chain = chain_of(expression_of(row))
        except UNREADABLE_ROW:
            continue
        numbered = [depth for depth in range(4, _DEEPEST) if chain and chain.type(depth) == row.get("type")]
        return numbered[0] if numbered else DEPTH
    return DEPTH


def check_relations(stated: StatedFacts, values: Values) -> Check:
    """Every cell of every relation and of marriage, where the instance tells them."""
    check = Check("relation cells")
    if not stated.relations:
        return check
    known = {**RELATIONS, _MARRIED.name: _MARRIED}
    check.require("relations", sorted(stated.relations), sorted(known))
    for name, cells in stated.relations.items():
        if name in known:
            _check_cells(check, known[name], cells, values)
    return check


def _check_cells(check: Check, found: Relation, cells: Any, values: Values) -> None:
    titles = values.universe.titles
    for row, title in enumerate(titles):
        people = related(values.universe, found, np.array([row], np.int32))
        derived = values.texts("person", people.tolist())
        check.compare(f"{found.words} of {title}", sorted(cells.get(title, [])), derived)
    for title in sorted(set(cells) - set(titles)):
        check.require(f"{found.words} of {title}", sorted(cells[title]), [])


def check_facts(stated: StatedFacts, values: Values) -> Check:
    """Every fact under every article, and how often each job and hobby is stated as an attribute."""
    check = Check("facts under articles")
    for row, title in enumerate(values.universe.titles):
        check.compare_each(title, stated.articles.get(title, []), derived_facts(values, row))
    if stated.attributes:
        check.compare_each("attributes", Counter(stated.attributes).elements(), values.attributes())
    return check


def check_sentences(folder: Path, values: Values) -> Check:
    """Every sentence of every article of a world's folder."""
    check = Check("facts in sentences")
    text = EmbeddedText(folder / TEXT)
    check.require("number of articles", len(text), len(values.universe))
    for row, title in enumerate(values.universe.titles):
        try:
            article = text.article(title)
        except NotFound:
            check.differs(title, "", "an article")
            continue
        said = []
        for sentence in article.sentences:
            try:
                said += read_sentence(title, sentence)
            except ValueError as wrong:
                check.broken(title, wrong)
        check.compare_each(title, said, derived_facts(values, row))
    return check
