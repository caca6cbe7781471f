"""Checks of an imported PhantomWiki instance: question details, relation tables, facts and articles."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fiction.phantomwiki.articles import StatedFacts, derive_facts, parse_sentence
from fiction.phantomwiki.chains import GRAMMAR_DEPTH, to_chain
from fiction.phantomwiki.published import parse_query
from fiction.phantomwiki.records import ValueCodec
from fiction.questions.difficulty import compute_difficulty, count_hops
from fiction.universe.relations import RELATIONS, SPOUSE, KinshipRelation, find_related
from fiction.verification.check import ROW_ERRORS, VerificationCheck, format_question_name, parse_row_expression
from worlds.embedded.text import EmbeddedText
from worlds.folder import TEXT_FOLDER
from worlds.source import NotFound

_MARRIED_RELATION = KinshipRelation("married", (SPOUSE,), 1)
_MAX_DEPTH = 200


def check_questions(rows: list[dict[str, Any]], values: ValueCodec) -> VerificationCheck:
    """Check query, text, template, number, difficulty and goals of all questions."""
    check = VerificationCheck("particulars of questions")
    depth = _find_grammar_depth(rows)
    for row in rows:
        try:
            _check_question(check, row, values, depth)
        except ROW_ERRORS as broken:
            check.add_unreadable(format_question_name(row), broken)
    return check


def _check_question(check: VerificationCheck, row: dict[str, Any], values: ValueCodec, depth: int) -> None:
    expression, what = parse_row_expression(row), format_question_name(row)
    query = row["prolog"]
    check.compare(f"query of {what}", parse_query(query["query"], query["answer"], values), expression)
    check.compare(f"difficulty of {what}", row["difficulty"], compute_difficulty(expression))
    check.compare(f"goals of {what}", row["hops"], count_hops(expression))
    check.compare(f"goals of {what}", row["hops"], len(query["query"]))
    chain = to_chain(expression)
    if chain is None:
        check.undecided += 1
        return
    check.compare(f"wording of {what}", row["text"], chain.format_text(values))
    check.compare(f"template of {what}", row["template"], " ".join(chain.build_template()))
    check.compare(f"type of {what}", row["type"], chain.template_number(depth))


def _find_grammar_depth(rows: list[dict[str, Any]]) -> int:
    """Grammar depth that gives the first template its stated number; the published depth if there is none."""
    for row in rows:
        try:
            chain = to_chain(parse_row_expression(row))
        except ROW_ERRORS:
            continue
        numbered = [
            depth for depth in range(4, _MAX_DEPTH) if chain and chain.template_number(depth) == row.get("type")
        ]
        return numbered[0] if numbered else GRAMMAR_DEPTH
    return GRAMMAR_DEPTH


def check_relations(stated: StatedFacts, values: ValueCodec) -> VerificationCheck:
    """Check all cells of the relation tables, if the instance has them."""
    check = VerificationCheck("relation cells")
    if not stated.relations:
        return check
    relations = {**RELATIONS, _MARRIED_RELATION.name: _MARRIED_RELATION}
    check.require_equal("relations", sorted(stated.relations), sorted(relations))
    for name, cells in stated.relations.items():
        if name in relations:
            _check_relation_cells(check, relations[name], cells, values)
    return check


def _check_relation_cells(check: VerificationCheck, relation: KinshipRelation, cells: Any, values: ValueCodec) -> None:
    titles = values.universe.titles
    for row, title in enumerate(titles):
        people = find_related(values.universe, relation, np.array([row], np.int32))
        derived = values.format_values("person", people.tolist())
        check.compare(f"{relation.singular} of {title}", sorted(cells.get(title, [])), derived)
    for title in sorted(set(cells) - set(titles)):
        check.require_equal(f"{relation.singular} of {title}", sorted(cells[title]), [])


def check_facts(stated: StatedFacts, values: ValueCodec) -> VerificationCheck:
    """Check all facts of all articles, and the counts of bare attributes."""
    check = VerificationCheck("facts under articles")
    for row, title in enumerate(values.universe.titles):
        check.compare_each(title, stated.articles.get(title, []), derive_facts(values, row))
    if stated.attributes:
        check.compare_each("attributes", Counter(stated.attributes).elements(), values.iter_attributes())
    return check


def check_sentences(folder: Path, values: ValueCodec) -> VerificationCheck:
    """Check all sentences of all articles."""
    check = VerificationCheck("facts in sentences")
    text = EmbeddedText(folder / TEXT_FOLDER)
    check.require_equal("number of articles", len(text), len(values.universe))
    for row, title in enumerate(values.universe.titles):
        try:
            article = text.article(title)
        except NotFound:
            check.add_difference(title, "", "an article")
            continue
        facts = []
        for sentence in article.sentences:
            try:
                facts += parse_sentence(title, sentence)
            except ValueError as wrong:
                check.add_unreadable(title, wrong)
        check.compare_each(title, facts, derive_facts(values, row))
    return check
