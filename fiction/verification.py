"""Verification of a world: everything that it states is derived again from its universe and compared."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from showhow.fiction.phantomwiki.articles import (
    MARRIED_FACT,
    STATED_FACTS_FILE,
    StatedFacts,
    derive_facts,
    generate_facts,
    parse_sentence,
)
from showhow.fiction.phantomwiki.instance import INSTANCE_FORMAT
from showhow.fiction.phantomwiki.prolog import (
    PrologSyntaxError,
    RuleEvaluator,
    Tuples,
    format_fact,
    parse_facts,
    parse_goal,
    parse_rule,
)
from showhow.fiction.phantomwiki.published_questions import GRAMMAR_DEPTH, SolutionPaths, parse_query, to_chain
from showhow.fiction.phantomwiki.records import ValueCodec
from showhow.fiction.questions.expressions import Count
from showhow.fiction.questions.question import compute_difficulty, count_hops
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS, SPOUSE, KinshipRelation, find_related
from showhow.fiction.universe.universe import GRAPH, FactSources, Universe
from showhow.fiction.verification_checks import (
    MAX_DIFFERENCES,
    ROW_ERRORS,
    VerificationCheck,
    VerificationDifference,
    check_answers,
    check_articles,
    check_constraints,
    check_gold,
    check_graph,
    check_hops,
    check_needs,
    check_pages,
    check_queries,
    check_split,
    format_question_name,
    parse_row_expression,
    read_options,
)
from showhow.worlds.embedded.text import EmbeddedText
from showhow.worlds.folder import TEXT_FOLDER, WorldError, world_folder
from showhow.worlds.input_files import MalformedFile
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import NotFound

_MARRIED_RELATION = KinshipRelation("married", (SPOUSE,))
_MAX_DEPTH = 200
_PROBE_OPTIONS = GenerationOptions(people=240, seed=1, family_size=60, generations=6, branching=5)


def check_questions(rows: list[dict[str, Any]], values: ValueCodec) -> VerificationCheck:
    """Check query, text, template, number, difficulty and goals of all questions."""
    check = VerificationCheck("particulars of questions")
    depth = _find_grammar_depth(rows)
    for row in rows:
        try:
            _check_question(check, row, values, depth)
        except ROW_ERRORS as error:
            check.add_unreadable(format_question_name(row), error)
    return check


def _check_question(check: VerificationCheck, row: dict[str, Any], values: ValueCodec, depth: int) -> None:
    expression, name = parse_row_expression(row), format_question_name(row)
    query = row["prolog"]
    check.compare(f"query of {name}", parse_query(query["query"], query["answer"], values), expression)
    check.compare(f"difficulty of {name}", row["difficulty"], compute_difficulty(expression))
    check.compare(f"goals of {name}", row["hops"], count_hops(expression))
    check.compare(f"goals of {name}", row["hops"], len(query["query"]))
    if "is_aggregation_question" in row:
        is_count = isinstance(expression, Count)
        check.compare(f"is_aggregation_question of {name}", row["is_aggregation_question"], is_count)
    chain = to_chain(expression)
    if chain is None:
        check.undecided += 1
        return
    check.compare(f"wording of {name}", row["text"], chain.format_text(values))
    check.compare(f"template of {name}", row["template"], " ".join(chain.build_template()))
    check.compare(f"type of {name}", row["type"], chain.template_number(depth))


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


def check_rules(stated: StatedFacts, values: ValueCodec) -> VerificationCheck:
    """Check that the rules of facts.pl derive the relations, over the instance and over a generated universe.

    The generated universe has people of every relation, so that a rule without effect in a small instance counts too.
    """
    check = VerificationCheck("relations by rules")
    rules = []
    for text in stated.rules:
        try:
            rules.append(parse_rule(text))
        except PrologSyntaxError as error:
            check.add_unreadable(f"rule {text}", error)
    if rules:
        couples = any(goal.name == MARRIED_FACT for rule in rules for goal in rule.goals)
        tried = (
            (values, _list_pairs(values.universe), ""),
            (_make_probe(couples=couples), _list_pairs_of_probe(couples=couples), " in a generated universe"),
        )
        for codec, pairs, where in tried:
            facts: dict[str, Tuples] = {}
            for fact in map(parse_goal, generate_facts(codec)):
                facts.setdefault(fact.name, set()).add(tuple(str(argument) for argument in fact.args))
            # Predicates without a fact have no tuples.
            _check_derived_relations(check, RuleEvaluator(rules, {"friend_": set(), **facts}), pairs, where)
    return check


@cache
def _make_probe(*, couples: bool) -> ValueCodec:
    """A generated universe in which every relation occurs, for rules that know couples, or that do not."""
    codec = ValueCodec(make_universe(_PROBE_OPTIONS))
    lines = list(generate_facts(codec))
    if not couples:
        # The published rules know couples by their children only.
        lines = [line for line in lines if not line.startswith(f"{MARRIED_FACT}(")]
    return ValueCodec(parse_facts(Path("generated facts"), "\n".join(lines)).universe)


def _list_pairs(universe: Universe) -> dict[str, set[tuple[str, ...]]]:
    """The titles of each person and each relative, by relation."""
    titles = universe.titles
    return {
        name: {
            (titles[row], titles[relative])
            for row in range(len(universe))
            for relative in find_related(universe, relation, np.array([row], np.int32)).tolist()
        }
        for name, relation in RELATIONS.items()
    }


@cache
def _list_pairs_of_probe(*, couples: bool) -> dict[str, set[tuple[str, ...]]]:
    return _list_pairs(_make_probe(couples=couples).universe)


def _check_derived_relations(
    check: VerificationCheck, rules: RuleEvaluator, pairs: Mapping[str, set[tuple[str, ...]]], where: str
) -> None:
    for name, derived in pairs.items():
        try:
            stated = rules.derive(name)
        except PrologSyntaxError as error:
            check.add_unreadable(f"rules of {name}", error)
            continue
        check.checked += 1
        for pair in sorted(stated ^ derived)[:1]:
            fact = format_fact(name, *pair)
            sides = (fact, "") if pair in stated else ("", fact)
            check.add_difference(f"rules of {name}{where}", *sides)


def check_solutions(rows: list[dict[str, Any]], stated: StatedFacts, values: ValueCodec) -> VerificationCheck:
    """Check all solution traces, and that none is missing, of the questions that have them."""
    check = VerificationCheck("solution traces")
    paths = SolutionPaths(values)
    unknown = set(stated.solutions) - {row.get("id") for row in rows}
    check.require_equal("questions with solution traces that do not exist", sorted(unknown), [])
    for row in rows:
        if row.get("id") in stated.solutions:
            solutions, name = stated.solutions[row["id"]], format_question_name(row)
            try:
                wrong, count = paths.check(row["prolog"]["query"], solutions)
            except ROW_ERRORS as error:
                check.add_unreadable(f"solution traces of {name}", error)
                continue
            check.checked += len(solutions)
            for solution in wrong:
                check.add_difference(f"solution trace of {name}", json.dumps(solution, ensure_ascii=False), "")
            distinct = {tuple(sorted(solution.items())) for solution in solutions}
            check.require_equal(f"number of distinct solution traces of {name}", len(distinct), count)
    return check


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
            except ValueError as error:
                check.add_unreadable(title, error)
        check.compare_each(title, facts, derive_facts(values, row))
    return check


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Result of a verification."""

    world: str
    checks: tuple[VerificationCheck, ...]

    @property
    def different(self) -> int:
        """Total number of differences; 0 for a correct world."""
        return sum(check.different for check in self.checks)

    @property
    def undecided(self) -> int:
        """Total number of things that could not be compared within the limits."""
        return sum(check.undecided for check in self.checks)

    @property
    def first_differences(self) -> list[VerificationDifference]:
        """First differences, taken in turn from all checks that have any."""
        first_by_check = [check.first for check in self.checks]
        in_turn = [
            differences[rank]
            for rank in range(MAX_DIFFERENCES)
            for differences in first_by_check
            if rank < len(differences)
        ]
        return in_turn[:MAX_DIFFERENCES]

    def to_row(self) -> dict[str, Any]:
        """The JSON object that `showhow world verify --json` prints."""
        return {
            "world": self.world,
            "equal": not self.different,
            "different": self.different,
            "checks": [asdict(check) for check in self.checks],
        }


def verify_world(worlds: Path, name: str, progress: Callable[[VerificationCheck], None]) -> VerificationReport:
    """Verify a world; `progress` receives each check when it is complete.

    WorldError if the world has no universe, or a file is missing or damaged.
    """
    metadata = read_world_metadata(worlds, name)
    folder = world_folder(worlds, name)
    if not (folder / UNIVERSE_FILE).is_file():
        raise WorldError(
            f"The world {name} has no universe to derive answers from; only generated worlds and imported instances of "
            "PhantomWiki can be verified."
        )
    checks = []
    try:
        for check in _run_checks(folder, metadata):
            progress(check)
            checks.append(check)
    except MalformedFile as error:
        raise WorldError(f"{error.file} is damaged ({error.reason}); build the world again.") from error
    except OSError as error:
        raise WorldError(f"A part of the world {name} cannot be read ({error}); build the world again.") from error
    return VerificationReport(name, tuple(checks))


def _run_checks(folder: Path, metadata: dict[str, Any]) -> Iterator[VerificationCheck]:
    universe = Universe.load(folder / UNIVERSE_FILE)
    rows = read_question_rows(folder)
    answers = check_answers(rows, universe)
    answers.require_equal("number of questions", metadata.get("questions", 0), len(rows))
    yield answers
    if metadata.get("format") == INSTANCE_FORMAT:
        yield from _check_instance(folder, rows, ValueCodec(universe))
    else:
        yield from _check_generated_world(folder, rows, universe, read_options(metadata))


def _check_generated_world(
    folder: Path, rows: list[dict[str, Any]], universe: Universe, options: GenerationOptions
) -> Iterator[VerificationCheck]:
    yield check_constraints(universe, options)
    fact_sources = FactSources.load(folder / FACT_SOURCES_FILE)
    yield check_split(universe, fact_sources, options)
    yield check_gold(rows, universe, fact_sources, options)
    yield check_needs(rows, universe, fact_sources, options)
    yield check_hops(rows, universe, options)
    yield check_articles(folder, universe, fact_sources, options)
    yield check_pages(folder, universe, fact_sources, options)
    graph_universe = universe.restrict_to_sources(fact_sources, GRAPH)
    yield check_graph(folder, graph_universe)
    yield check_queries(folder, rows, graph_universe)


def _check_instance(folder: Path, rows: list[dict[str, Any]], values: ValueCodec) -> Iterator[VerificationCheck]:
    stated = StatedFacts.load(folder / STATED_FACTS_FILE)
    yield check_questions(rows, values)
    yield check_solutions(rows, stated, values)
    yield check_relations(stated, values)
    yield check_rules(stated, values)
    yield check_facts(stated, values)
    yield check_sentences(folder, values)
    yield check_graph(folder, values.universe)
    yield check_queries(folder, rows, values.universe)
