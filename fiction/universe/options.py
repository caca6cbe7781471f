"""Options of a generated world."""

from dataclasses import dataclass

from worlds.folder import WorldError

GENERATOR_VERSION = 3
"""Version of the generator; the same options give a different world under another version.

Version 1 words every set of people in the singular, and states one fact a sentence in fewer phrasings. Versions 1 and 2
draw friends who never lived at the same time and questions that lead back to where they start, write of people born too
long ago to live as if they did, and need sources that are not needed, or too few to be certain that there is nothing.
Version 2 words a set of people in the plural only where there are several.
"""


ABSENT_FACTS = ("hobby", "residence")
"""The facts that people lack if pairs of questions are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Size, families, split of facts and questions of a world; `check` validates them."""

    people: int
    seed: int
    family_size: int = 25
    """People per family tree; the last tree has the remainder."""
    generations: int = 5
    """Maximum generations per tree."""
    branching: int = 5
    """Maximum children per couple."""
    friends: float = 3.0
    """Average number of friends per person."""
    collisions: float = 0.0
    """Share of people who share their full name with a person of another family."""
    depth: int = 20
    """Depth of the question grammar."""
    per_template: int = 10
    """Questions per template."""
    plain: bool = False
    """Use one phrasing per kind of fact, as in the paper, instead of several."""
    split: str = "everywhere"
    """Split of facts over text, graph and web (see fiction.generator.source_split)."""
    split_by: str = "both"
    """Unit of the split: "entity", "relation" or "both"."""
    each: bool = False
    """Answer "how many" with the set of counts of each person, as in the paper."""
    pairs: int = 0
    """Pairs of questions for each of ABSENT_FACTS: no source states what one asks for, and the sources state it for the
    other. Twice as many people have no such fact."""
    generator: int = GENERATOR_VERSION
    """Version that generated the world; an earlier one is for its verification only."""

    def check(self) -> None:
        """Raise WorldError if an option is out of range."""
        for name, lowest, highest in _OPTION_RANGES:
            value = getattr(self, name)
            # Unlike `value < lowest or value > highest`, this rejects NaN as well.
            if not lowest <= value <= highest:
                raise WorldError(f"{name} must be from {lowest:,} to {highest:,}, not {value}.")
        if 4 * self.pairs > self.people:
            raise WorldError(f"{self.pairs:,} pairs need {4 * self.pairs:,} people or more, not {self.people:,}.")


_OPTION_RANGES = (
    ("people", 1, 5_000_000),
    ("seed", 0, 2**63 - 1),
    ("family_size", 1, 500),
    # With one level, or one child per couple, most tree sizes are impossible.
    ("generations", 2, 20),
    # More children do not fit into the years in which a mother may have children.
    ("branching", 2, 20),
    ("friends", 0, 100),
    ("collisions", 0, 0.5),
    ("depth", 1, 100),
    ("per_template", 0, 100_000),
    ("pairs", 0, 1000),
)
