"""Whatever a world states, derived once more and compared."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from worlds.folder import WorldError, world_folder
from worlds.generator.blocks import TOLD, UNIVERSE
from worlds.importers.files import MalformedFile
from worlds.open import about_world
from worlds.phantomwiki.checks import check_facts, check_questions, check_relations, check_sentences
from worlds.phantomwiki.instance import FORMAT
from worlds.phantomwiki.stated import STATED, StatedFacts
from worlds.phantomwiki.values import Values
from worlds.questions.question_file import question_rows
from worlds.universe.options import Options
from worlds.universe.universe import GRAPH, Told, Universe
from worlds.verification.answers import check_answers
from worlds.verification.check import SHOWN, Check, Difference
from worlds.verification.gold import check_gold
from worlds.verification.graph import check_graph
from worlds.verification.sources import check_articles, check_constraints, check_pages, check_split, options_of
from worlds.verification.sparql import check_queries


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared in a world."""

    world: str
    checks: tuple[Check, ...]

    @property
    def different(self) -> int:
        """How many things differ; a world with none is what its universe says."""
        return sum(check.different for check in self.checks)

    @property
    def undecided(self) -> int:
        """How many things could not be compared within the limits."""
        return sum(check.undecided for check in self.checks)

    @property
    def first(self) -> list[Difference]:
        """The first differences, at least one of every check that has any."""
        found = [check.first for check in self.checks]
        in_turn = [each[place] for place in range(SHOWN) for each in found if place < len(each)]
        return in_turn[:SHOWN]

    def to_row(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "world": self.world,
            "equal": not self.different,
            "different": self.different,
            "checks": [asdict(check) for check in self.checks],
        }


def verify(worlds: Path, name: str, progress: Callable[[str], None]) -> Verification:
    """Derive everything once more; WorldError for a world that has no universe or whose files are damaged."""
    about = about_world(worlds, name)
    folder = world_folder(worlds, name)
    if not (folder / UNIVERSE).is_file():
        raise WorldError(
            f"The world {name} has no universe to derive answers from; only generated worlds and imported instances of "
            "PhantomWiki can be verified."
        )
    checks = []
    try:
        for check in _checks(folder, about):
            progress(str(check))
            checks.append(check)
    except MalformedFile as broken:
        raise WorldError(f"{broken.file} is damaged ({broken.reason}); make the world again.") from broken
    except OSError as missing:
        raise WorldError(f"A part of the world {name} cannot be read ({missing}); make the world again.") from missing
    return Verification(name, tuple(checks))


def _checks(folder: Path, about: dict[str, Any]) -> Iterator[Check]:
    universe = Universe.load(folder / UNIVERSE)
    rows = question_rows(folder)
    answers = check_answers(rows, universe)
    answers.require("number of questions", about.get("questions", 0), len(rows))
    yield answers
    if about.get("format") == FORMAT:
        yield from _of_an_instance(folder, rows, Values(universe))
    else:
        yield from _of_a_generated(folder, rows, universe, options_of(about))


def _of_a_generated(folder: Path, rows: list[dict[str, Any]], universe: Universe, options: Options) -> Iterator[Check]:
    yield check_constraints(universe, options)
    told = Told.load(folder / TOLD)
    yield check_split(universe, told, options)
    yield check_gold(rows, universe, told, options)
    yield check_articles(folder, universe, told, options)
    yield check_pages(folder, universe, told, options)
    by_graph = universe.told_by(told, GRAPH)
    yield check_graph(folder, by_graph)
    yield check_queries(folder, rows, by_graph)


def _of_an_instance(folder: Path, rows: list[dict[str, Any]], values: Values) -> Iterator[Check]:
    stated = StatedFacts.load(folder / STATED)
    yield check_questions(rows, values)
    yield check_relations(stated, values)
    yield check_facts(stated, values)
    yield check_sentences(folder, values)
    yield check_graph(folder, values.universe)
    yield check_queries(folder, rows, values.universe)
