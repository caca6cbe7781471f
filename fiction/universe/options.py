"""Options of a generated world."""

from dataclasses import dataclass

from showhow.option_fields import list_options, option
from showhow.worlds.folder import WorldError

GENERATOR_VERSION = 3
"""Version of the generator; the same options give a different world under another version.

Version 1 words every set of people in the singular, and states one fact a sentence in fewer phrasings. Versions 1 and 2
draw friends who never lived at the same time and questions that lead back to where they start, write of people born too
long ago to live as if they did, and need sources that are not needed, or too few to be certain that there is nothing.
Version 2 words a set of people in the plural only where there are several.
"""

SPLIT_MODES = ("entity", "relation", "both")
"""By entity, all facts of a person share one source; by relation, all facts of a kind; by both, each fact is drawn."""

ABSENT_FACTS = ("hobby", "residence")
"""The facts that people lack if pairs of questions are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Size, families, split of facts and questions of a world; `check` validates them."""

    people: int = option(1000, "Number of people.", minimum=1, maximum=5_000_000)
    seed: int = option(1, "Random seed; the same seed and options give the same world.", minimum=0, maximum=2**63 - 1)
    family_size: int = option(25, "People per family.", label="Size of a family", minimum=1, maximum=500)
    """The last family tree has the remainder."""
    # With one level, or one child per couple, most tree sizes are impossible.
    generations: int = option(5, "Maximum generations of a family.", minimum=2, maximum=20)
    # More children do not fit into the years in which a mother may have children.
    branching: int = option(5, "Maximum children of a couple.", label="Children of a couple", minimum=2, maximum=20)
    friends: float = option(
        3.0, "Mean number of friends of a person.", label="Friends of a person", minimum=0, maximum=100
    )
    collisions: float = option(
        0.0,
        "The share of people who share their full name with another person, from 0 to 0.5.",
        label="Share of namesakes",
        minimum=0,
        maximum=0.5,
    )
    """The other person is of another family."""
    depth: int = option(
        20,
        "Depth of the question grammar; the longest chain is half of it.",
        label="Depth of the questions",
        minimum=1,
        maximum=100,
    )
    per_template: int = option(
        10, "Questions of each template.", label="Questions of each template", minimum=0, maximum=100_000
    )
    plain: bool = option(default=False, help="One phrasing for each fact, as in the paper.", label="Plain articles")
    split: str = option(
        "everywhere",
        "How the facts are split: everywhere, or percentages of text, graph and web as in text=50,graph=35,web=15.",
        label="Sources of the facts",
        choices=("text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    )
    """See fiction.generator.source_split."""
    split_by: str = option(
        "both", "Split the facts by entity, by relation, or by both.", label="Split by", choices=SPLIT_MODES
    )
    each: bool = option(
        default=False,
        help='The answer to "how many" is the set of the counts of each person, as in the paper.',
        label="Counts per person",
        flag="--each-count",
    )
    pairs: int = option(
        0,
        "Pairs of a question with and without a fact in the sources, for each of two kinds of facts.",
        label="Pairs with and without a fact",
        minimum=0,
        maximum=1000,
    )
    """No source states what one asks for, and the sources state it for the other; for each of ABSENT_FACTS. Twice as
    many people have no such fact."""
    generator: int = GENERATOR_VERSION
    """Version that generated the world; an earlier one is for its verification only."""

    def check(self) -> None:
        """Raise WorldError if an option is out of range."""
        for entry in list_options(type(self)):
            value, lowest, highest = getattr(self, entry.name), entry.note.minimum, entry.note.maximum
            # Unlike `value < lowest or value > highest`, this rejects NaN as well.
            if lowest is not None and highest is not None and not lowest <= value <= highest:
                raise WorldError(f"{entry.name} must be from {lowest:,} to {highest:,}, not {value}.")
        if 4 * self.pairs > self.people:
            raise WorldError(f"{self.pairs:,} pairs need {4 * self.pairs:,} people or more, not {self.people:,}.")
