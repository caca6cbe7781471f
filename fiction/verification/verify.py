"""Verification of a world: everything that it states is derived again from its universe and compared."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from fiction.phantomwiki.articles import STATED_FACTS_FILE, StatedFacts
from fiction.phantomwiki.instance import INSTANCE_FORMAT
from fiction.phantomwiki.records import ValueCodec
from fiction.questions.question_file import read_question_rows
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import GRAPH, FactSources, Universe
from fiction.verification.check import MAX_DIFFERENCES, VerificationCheck, VerificationDifference, check_answers
from fiction.verification.generated import (
    check_articles,
    check_constraints,
    check_gold,
    check_graph,
    check_pages,
    check_queries,
    check_split,
    read_options,
)
from fiction.verification.published import check_facts, check_questions, check_relations, check_sentences
from worlds.folder import WorldError, world_folder
from worlds.importers.files import MalformedFile
from worlds.open import read_world_metadata


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
            differences[place]
            for place in range(MAX_DIFFERENCES)
            for differences in first_by_check
            if place < len(differences)
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
    about = read_world_metadata(worlds, name)
    folder = world_folder(worlds, name)
    if not (folder / UNIVERSE_FILE).is_file():
        raise WorldError(
            f"The world {name} has no universe to derive answers from; only generated worlds and imported instances of "
            "PhantomWiki can be verified."
        )
    checks = []
    try:
        for check in _run_checks(folder, about):
            progress(check)
            checks.append(check)
    except MalformedFile as broken:
        raise WorldError(f"{broken.file} is damaged ({broken.reason}); make the world again.") from broken
    except OSError as missing:
        raise WorldError(f"A part of the world {name} cannot be read ({missing}); make the world again.") from missing
    return VerificationReport(name, tuple(checks))


def _run_checks(folder: Path, about: dict[str, Any]) -> Iterator[VerificationCheck]:
    universe = Universe.load(folder / UNIVERSE_FILE)
    rows = read_question_rows(folder)
    answers = check_answers(rows, universe)
    answers.require_equal("number of questions", about.get("questions", 0), len(rows))
    yield answers
    if about.get("format") == INSTANCE_FORMAT:
        yield from _check_instance(folder, rows, ValueCodec(universe))
    else:
        yield from _check_generated_world(folder, rows, universe, read_options(about))


def _check_generated_world(
    folder: Path, rows: list[dict[str, Any]], universe: Universe, options: GenerationOptions
) -> Iterator[VerificationCheck]:
    yield check_constraints(universe, options)
    fact_sources = FactSources.load(folder / FACT_SOURCES_FILE)
    yield check_split(universe, fact_sources, options)
    yield check_gold(rows, universe, fact_sources, options)
    yield check_articles(folder, universe, fact_sources, options)
    yield check_pages(folder, universe, fact_sources, options)
    by_graph = universe.restrict_to_sources(fact_sources, GRAPH)
    yield check_graph(folder, by_graph)
    yield check_queries(folder, rows, by_graph)


def _check_instance(folder: Path, rows: list[dict[str, Any]], values: ValueCodec) -> Iterator[VerificationCheck]:
    stated = StatedFacts.load(folder / STATED_FACTS_FILE)
    yield check_questions(rows, values)
    yield check_relations(stated, values)
    yield check_facts(stated, values)
    yield check_sentences(folder, values)
    yield check_graph(folder, values.universe)
    yield check_queries(folder, rows, values.universe)
