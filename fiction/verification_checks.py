"""Checks of a world and their results: every answer, and of a generated world also its universe and all its files.

A check counts the things that were compared and lists the first differences between what a world states and what is
derived from its universe. Of a generated world, its options derive everything again: articles, web pages, graph, gold
parts of questions and gold queries.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox

from showhow.fiction.generator.articles import generate_articles
from showhow.fiction.generator.build import PAGES_FILE
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.web_pages import MarkedWebPage, generate_pages
from showhow.fiction.generator.world_files import generate_triples
from showhow.fiction.questions.evaluate import ExpressionAnswer, ExpressionEvaluator, is_stated
from showhow.fiction.questions.expressions import Count, Expression, decode_expression, is_chain
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.questions.needs import SOURCE_SETS, find_absent_kinds
from showhow.fiction.questions.question import GoldBuilder, is_minimal
from showhow.fiction.questions.reasoning import ReasoningBuilder
from showhow.fiction.questions.templates import build_templates
from showhow.fiction.questions.wording import word_question
from showhow.fiction.universe.constraints import find_violations
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import FACTS, SOURCES, FactSources, Universe
from showhow.fiction.universe.universe import TEXT as BY_TEXT
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.graph_client import QueryLimits
from showhow.worlds.embedded.text import EmbeddedText, EmbeddedWeb
from showhow.worlds.folder import GRAPH_FOLDER, TEXT_FOLDER, WEB_FOLDER, WorldError
from showhow.worlds.input_files import iter_json_objects
from showhow.worlds.source import Article, Cell, NotFound, QueryRefused, SourceTimeout, Table

MAX_DIFFERENCES = 10
"""Differences listed per check; all are counted."""
_MAX_LENGTH = 300
"""Maximum characters of a value in a difference."""


@dataclass(frozen=True, slots=True)
class VerificationDifference:
    """A stated value that differs from the derived one; "" if there is none."""

    what: str
    stated: str
    derived: str

    def __str__(self) -> str:
        return f"{self.what}: stated {self.stated or 'nothing'}, derived {self.derived or 'nothing'}"


@dataclass(slots=True)
class VerificationCheck:
    """Result of comparing one kind of thing: numbers compared and different, and the first differences."""

    name: str
    checked: int = 0
    different: int = 0
    first: list[VerificationDifference] = field(default_factory=list)
    undecided: int = 0
    """Things that could not be compared within the limits, neither equal nor different."""

    def __str__(self) -> str:
        result = f"{self.different:,} differ" if self.different else "all equal"
        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return f"{self.checked:,} {self.name}: {result if self.checked else 'nothing to compare'}{undecided}"

    def compare(self, name: str, stated: object, derived: object) -> None:
        """Compare two values and count the comparison."""
        self.checked += 1
        self.require_equal(name, stated, derived)

    def require_equal(self, name: str, stated: object, derived: object) -> None:
        """Add a difference if the values differ, without counting a comparison."""
        if stated != derived:
            self.add_difference(name, _format_value(stated), _format_value(derived))

    def compare_each(self, name: str, stated: Iterable[object], derived: Iterable[object]) -> None:
        """Compare two multisets; each member that only one of them has is a difference."""
        left, right = Counter(map(str, stated)), Counter(map(str, derived))
        self.checked += (left | right).total()
        for item in sorted((left - right).elements()):
            self.add_difference(name, item, "")
        for item in sorted((right - left).elements()):
            self.add_difference(name, "", item)

    def add_unreadable(self, name: str, error: Exception) -> None:
        """Count a malformed thing as compared and different."""
        self.checked += 1
        self.add_difference(name, "an unreadable value", f"{type(error).__name__} {error}")

    def add_difference(self, name: str, stated: str, derived: str) -> None:
        """Add a difference."""
        self.different += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append(VerificationDifference(name, stated, derived))


def _format_value(value: object) -> str:
    text = ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


ROW_ERRORS = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""Errors that a malformed question row may raise."""


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> VerificationCheck:
    """Check the text and entity of all answers of all questions."""
    check = VerificationCheck("answers")
    for row in rows:
        name = format_question_name(row)
        try:
            derived = format_answers(ExpressionEvaluator(universe).evaluate(parse_row_expression(row)), universe)
            stated = [(answer["text"], answer.get("entity")) for answer in row["answers"]]
            check.compare(name, sorted(map(_format_answer, stated)), sorted(map(_format_answer, derived)))
        except ROW_ERRORS as error:
            check.add_unreadable(name, error)
    return check


def format_question_name(row: dict[str, Any]) -> str:
    """Name of a question in a difference."""
    return f"{row.get('text')} ({row.get('id')})"


def parse_row_expression(row: dict[str, Any]) -> Expression:
    """Expression of a row of questions.jsonl; KeyError or TypeError if it is malformed."""
    return decode_expression(row["expression"])


def format_answers(answer: ExpressionAnswer, universe: Universe) -> list[tuple[str, str | None]]:
    """Answers as (text, entity); the entity is None if the answer is no item."""
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


def check_gold(
    rows: list[dict[str, Any]], universe: Universe, fact_sources: FactSources, options: GenerationOptions
) -> VerificationCheck:
    """Check template, text, difficulty, sources, query, tree, triples and sub-questions of all questions."""
    check = VerificationCheck("parts of gold")
    names = NameFormatter(universe, plain=options.plain, generator=options.generator)
    gold = GoldBuilder(universe, fact_sources, names, options.generator)
    templates = {(template.kind, template.text) for template in build_templates(options)}
    for number, row in enumerate(rows, 1):
        question_name = format_question_name(row)
        try:
            expression = parse_row_expression(row)
            text, kind = word_question(expression, names), (row["kind"], row["template"])
            # A JSON round trip turns tuples into lists, as in the file.
            derived = json.loads(json.dumps(gold.build(number, expression, text, kind).to_row()))
            stated = row
            if options.generator < 3:
                stated, derived = _drop_later_rules(row), _drop_later_rules(derived)
        except ROW_ERRORS as error:
            check.add_unreadable(question_name, error)
            continue
        if kind not in templates:
            check.add_difference(f"template of {question_name}", ": ".join(map(str, kind)), "one of the templates")
        for name, value in derived.items():
            check.compare(f"{name} of {question_name}", stated.get(name), value)
    return check


_WORDS_OF_STEPS = ("question", "arguments", "facts")


def _drop_later_rules(part: Any) -> Any:
    """A row without what version 3 of the generator changed: the words of the steps, and the needed sources."""
    if isinstance(part, list):
        return [_drop_later_rules(member) for member in part]
    if isinstance(part, dict):
        return {key: _drop_later_rules(value) for key, value in part.items() if key not in (*_WORDS_OF_STEPS, "needs")}
    return part


def check_needs(
    rows: Iterable[dict[str, Any]], universe: Universe, fact_sources: FactSources, options: GenerationOptions
) -> VerificationCheck:
    """Check that the needed sources state all facts and give the answers; if each fact is needed, that no others do.

    Unlike the gold parts, this evaluates the question on every set of sources.
    """
    check = VerificationCheck("needs tried on every set of sources")
    reasoning = ReasoningBuilder(ThingCatalog(universe, ItemCatalog(universe), NameFormatter(universe)))
    universes = {
        chosen: universe.restrict_to_sources(fact_sources, sum(map(SOURCES.__getitem__, chosen)))
        for chosen in SOURCE_SETS
    }
    evaluators = {chosen: ExpressionEvaluator(restricted) for chosen, restricted in universes.items()}
    for row in rows:
        name = format_question_name(row)
        try:
            expression, needs = parse_row_expression(row), [set(sources) for sources in row["needs"]]
            answer = evaluators[tuple(SOURCES)].evaluate(expression)
            giving = [chosen for chosen in SOURCE_SETS if evaluators[chosen].evaluate(expression) == answer]
            facts = reasoning.list_supporting_facts(reasoning.build_tree(expression)) if options.generator > 1 else ()
        except ROW_ERRORS as error:
            check.add_unreadable(name, error)
            continue
        enough = [set(one) for one in giving if all(is_stated(universes[one], fact) for fact in facts)]
        check.compare(f"needs of {name}", _format_sets(needs), _format_sets(one for one in needs if one in enough))
        # Some counts of each of several people may be the same without several of them.
        counts_each = isinstance(expression, Count) and expression.each
        if options.generator > 2 and row.get("minimal") and not counts_each:
            others = [set(chosen) for chosen in giving if not any(needed <= set(chosen) for needed in needs)]
            check.require_equal(f"other sources of {name}", [], _format_sets(others))
    return check


def _format_sets(sets: Iterable[set[str]]) -> list[str]:
    return [" + ".join(sorted(sources)) for sources in sets]


def check_hops(rows: Iterable[dict[str, Any]], universe: Universe, options: GenerationOptions) -> VerificationCheck:
    """Check which questions need each of their facts, so that no hop can be skipped; the name states their number."""
    check = VerificationCheck("")
    reasoning = ReasoningBuilder(ThingCatalog(universe, ItemCatalog(universe), NameFormatter(universe)))
    minimal = 0
    for row in rows:
        if "minimal" in row:
            try:
                expression = parse_row_expression(row)
                root = reasoning.build_tree(expression)
                facts = reasoning.list_supporting_facts(root)
                absent = find_absent_kinds(expression, root, universe) if options.generator > 2 else ()
                derived = is_minimal(expression, facts, universe, absent)
            except ROW_ERRORS as error:
                check.add_unreadable(format_question_name(row), error)
                continue
            minimal += derived
            check.compare(f"whether {format_question_name(row)} needs each fact", row["minimal"], derived)
    check.name = f"questions tried without each of their facts ({minimal:,} need every fact)"
    return check


def check_graph(folder: Path, universe: Universe) -> VerificationCheck:
    """Check that the graph has exactly the triples of the universe."""
    check = VerificationCheck("triples")
    store = ox.Store.read_only(str(folder / GRAPH_FOLDER))
    count = 0
    for block in generate_triples(universe):
        for triple in ox.parse(block, format=ox.RdfFormat.N_TRIPLES):
            count += 1
            if triple not in store:
                check.add_difference("graph", "", _format_quad(triple))
    check.checked = max(count, len(store))
    if len(store) + check.different > count:
        _find_unexpected(check, store, universe)
    return check


def _find_unexpected(check: VerificationCheck, store: ox.Store, universe: Universe) -> None:
    expected = {line for block in generate_triples(universe) for line in block.decode().splitlines()}
    for quad in store:
        if f"{_format_quad(quad)} ." not in expected:
            check.add_difference("graph", _format_quad(quad), "")


def _format_quad(quad: ox.Quad) -> str:
    return f"{quad.subject} {quad.predicate} {quad.object}"


_QUERY_LIMITS = QueryLimits(timeout_seconds=20.0, max_rows=1_000_000, reply_bytes=64 << 20)


def check_queries(folder: Path, rows: Iterable[dict[str, Any]], universe: Universe) -> VerificationCheck:
    """Check the results of all gold queries.

    Expected are the gold answers if the graph alone suffices; else, for a chain, the answers that the graph implies.
    """
    check = VerificationCheck("answers of queries")
    with closing(EmbeddedGraph(folder, limits=_QUERY_LIMITS, workers=1)) as graph:
        for row in rows:
            name = f"query of {format_question_name(row)}"
            try:
                derived = _expected_answers(row, universe)
                if row.get("sparql") and derived is not None:
                    _compare_answers(check, name, graph.query(row["sparql"]), derived)
            except SourceTimeout:
                check.undecided += 1
            except (QueryRefused, *ROW_ERRORS) as error:
                check.add_unreadable(name, error)
    return check


def _expected_answers(row: dict[str, Any], universe: Universe) -> list[str] | None:
    if ["graph"] in row["needs"]:
        return [answer.get("entity") or answer["text"] for answer in row["answers"]]
    expression = parse_row_expression(row)
    if not is_chain(expression):
        # The graph does not distinguish a missing fact from a withheld one.
        return None
    return [
        entity or text for text, entity in format_answers(ExpressionEvaluator(universe).evaluate(expression), universe)
    ]


def _compare_answers(check: VerificationCheck, name: str, table: Table, derived: list[str]) -> None:
    if table.truncated:
        check.undecided += 1
        return
    check.compare(name, sorted(derived), sorted(set(_iter_values(table))))


def _iter_values(table: Table) -> Iterator[str]:
    if table.boolean is not None:
        yield "yes" if table.boolean else "no"
    for row in table.rows:
        if row and row[0] is not None:
            yield _format_cell(row[0])


def _format_cell(cell: Cell) -> str:
    if cell.datatype is not None and cell.datatype.endswith("#dateTime"):
        return cell.value.partition("T")[0]
    return cell.value


def read_options(about: dict[str, Any]) -> GenerationOptions:
    """Options of a generated world; WorldError if its world.toml lacks one."""
    names = [option.name for option in fields(GenerationOptions)]
    about = {"pairs": 0, **about}  # Worlds of this version of the generator had none at first.
    missing = [name for name in names if name not in about]
    if missing:
        raise WorldError(f"Its world.toml has no {missing[0]}; generate the world again with --replace.")
    return GenerationOptions(**{name: about[name] for name in names})


def check_constraints(universe: Universe, options: GenerationOptions) -> VerificationCheck:
    """Check all constraints of people, families and options."""
    check = VerificationCheck("people", checked=len(universe))
    for sentence in find_violations(universe, options):
        check.add_difference("constraints", sentence, "no violation")
    return check


def check_split(universe: Universe, fact_sources: FactSources, options: GenerationOptions) -> VerificationCheck:
    """Check the sources of all facts and friendships."""
    check = VerificationCheck("masks of facts")
    derived_sources = assign_sources(universe, parse_split(options.split, options.split_by), options.seed)
    kinds = [(fact, fact_sources.masks[fact], derived_sources.masks[fact]) for fact in FACTS]
    for kind, stated, derived in [*kinds, ("friend", fact_sources.friends, derived_sources.friends)]:
        if stated.shape != derived.shape:
            raise WorldError(
                f"The split of {kind} belongs to another universe; generate the world again with --replace."
            )
        check.checked += len(stated)
        for row in np.flatnonzero(stated != derived).tolist():
            check.add_difference(f"sources of {kind} {row}", str(stated[row]), str(derived[row]))
    return check


def check_articles(
    folder: Path, universe: Universe, fact_sources: FactSources, options: GenerationOptions
) -> VerificationCheck:
    """Check all sentences of all articles."""
    check = VerificationCheck("sentences of articles")
    text = EmbeddedText(folder / TEXT_FOLDER)
    text_universe = universe.restrict_to_sources(fact_sources, BY_TEXT)
    count = 0
    for article in generate_articles(text_universe, ItemCatalog(text_universe), options):
        count += 1
        _compare_article(check, text, article)
    check.require_equal("number of articles", len(text), count)
    return check


def _compare_article(check: VerificationCheck, text: EmbeddedText, article: Article) -> None:
    stored = _load_article(text, article)
    check.compare_each(article.title, stored.sentences, article.sentences)
    # Equal sentences with another order, other headings or another subject are also a difference.
    if sorted(stored.sentences) == sorted(article.sentences) and stored != article:
        check.add_difference(article.title, str(stored), str(article))


def _load_article(text: EmbeddedText, expected: Article) -> Article:
    try:
        return text.article(expected.title)
    except NotFound:
        return Article(expected.title, ())


def check_pages(
    folder: Path, universe: Universe, fact_sources: FactSources, options: GenerationOptions
) -> VerificationCheck:
    """Check all sentences of all web pages, and all marks on false statements."""
    check = VerificationCheck("sentences of web pages")
    generated_pages = generate_pages(universe, fact_sources, options)
    if (first := next(generated_pages, None)) is None and not (folder / WEB_FOLDER).is_dir():
        return check
    web = EmbeddedWeb(folder / WEB_FOLDER)
    rows = []
    for marked in chain([first] if first else [], generated_pages):
        check.compare_each(marked.page.address, _page_sentences(web, marked), marked.page.sentences)
        rows.append(_canonical_json(marked.to_row(universe)))
    check.require_equal("number of pages", len(web), len(rows))
    check.compare_each("marks", (_canonical_json(row) for _, row in iter_json_objects(folder / PAGES_FILE)), rows)
    return check


def _page_sentences(web: EmbeddedWeb, marked: MarkedWebPage) -> tuple[str, ...]:
    try:
        return web.fetch(marked.page.address).sentences
    except NotFound:
        return ()


def _canonical_json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)
