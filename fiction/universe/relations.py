"""The 45 relations of PhantomWiki, and partnership, as sequences of steps from person to person.

Steps, gender and wording come from the lexicon.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.universe import NONE, IdArray, Universe
from showhow.worlds.lexicon.english import FEMALE, pluralize
from showhow.worlds.lexicon.kinship import basic_path, relation_label

Rows = npt.NDArray[np.int64]
"""Rows of people."""
_COMMON_NOUNS = {"second_aunt": "great-great-aunt", "second_uncle": "great-great-uncle"}
UP, DOWN, SIDE, SPOUSE, FRIEND = "parent", "child", "sibling", "spouse", "friend"
"""Steps to the parents, the children, the other children of the parents, the partner and the friends."""


@dataclass(frozen=True, slots=True)
class KinshipRelation:
    """Definition of `relation of X`: the steps from X, and the gender of the result if the relation has one."""

    name: str
    """Name in the published queries."""
    steps: tuple[str, ...]
    women: bool | None = None

    @property
    def difficulty(self) -> int:
        """Number of articles to read, as the paper counts them."""
        return len(self.steps)

    @property
    def singular(self) -> str:
        """Singular noun: great-aunt, sister-in-law, female second cousin."""
        return relation_label(self.name.replace("_", " "))

    @property
    def plural(self) -> str:
        """Plural noun: great-aunts, sisters-in-law, wives."""
        return pluralize(self.singular)

    @property
    def common_noun(self) -> str:
        """Singular noun that English has for it, where that is not the paper's: great-great-aunt."""
        return _COMMON_NOUNS.get(self.name, self.singular)

    @property
    def is_single(self) -> bool:
        """Whether a person has at most one such relative: a mother, a wife, a father-in-law."""
        *before, last = self.steps
        return all(step == SPOUSE for step in before) and (last == SPOUSE or (last == UP and self.women is not None))


def _define_relation(name: str) -> KinshipRelation:
    path = basic_path(name.replace("_", " "))
    return KinshipRelation(name, path.steps, None if path.gender is None else path.gender == FEMALE)


_RELATION_NAMES = (
    *("parent", "mother", "father", "child", "daughter", "son", "sibling", "sister", "brother", "wife", "husband"),
    *("friend", "aunt", "uncle", "niece", "nephew", "grandparent", "grandmother", "grandfather"),
    *("grandchild", "granddaughter", "grandson", "mother_in_law", "father_in_law", "sister_in_law", "brother_in_law"),
    *("daughter_in_law", "son_in_law", "great_aunt", "great_uncle"),
    *("great_grandparent", "great_grandmother", "great_grandfather"),
    *("great_grandchild", "great_granddaughter", "great_grandson", "cousin", "female_cousin", "male_cousin"),
    *("female_first_cousin_once_removed", "male_first_cousin_once_removed", "second_aunt", "second_uncle"),
    *("female_second_cousin", "male_second_cousin"),
)
"""In the order of the paper, from which random walks draw."""
RELATIONS = {name: _define_relation(name) for name in _RELATION_NAMES}
"""The 45 relations of the paper, by name."""
PARTNER = _define_relation("spouse")
"""Not one of the 45: the paper has only wife and husband."""
BASIC_RELATIONS = tuple(name for name, relation in RELATIONS.items() if relation.difficulty == 1)


def get_relation(name: str) -> KinshipRelation:
    """Relation by name; KeyError if there is none."""
    return PARTNER if name == PARTNER.name else RELATIONS[name]


def find_related(universe: Universe, relation: KinshipRelation, people: IdArray) -> IdArray:
    """Rows of all people who have this relation to any of the people, each once, ascending."""
    return trace_frontiers(universe, relation, people)[-1]


def trace_frontiers(universe: Universe, relation: KinshipRelation, people: IdArray) -> list[IdArray]:
    """People after each step of the relation, and after its gender filter if it has one; each once, ascending."""
    frontiers = [people]
    for step in relation.steps:
        frontiers.append(_STEP_FUNCTIONS[step](universe, frontiers[-1]) if len(frontiers[-1]) else frontiers[-1])
    if relation.women is not None:
        related = frontiers[-1]
        frontiers.append(related[universe.female[related] == relation.women])
    return frontiers[1:]


def find_sibling_pairs(universe: Universe, people: IdArray) -> tuple[Rows, Rows]:
    """Pairs (person, sibling), each once, ascending; siblings share a parent that is not withheld."""
    pairs = []
    for parents in (universe.father[people], universe.mother[people]):
        has_parent = parents > NONE
        lists = universe.children
        sizes = lists.starts[parents[has_parent] + 1] - lists.starts[parents[has_parent]]
        pairs.append(
            np.repeat(people[has_parent], sizes).astype(np.int64) * len(universe) + lists.get_many(parents[has_parent])
        )
    whose, who = np.divmod(np.unique(np.concatenate(pairs)), max(len(universe), 1))
    others = whose != who
    return whose[others], who[others]


def sort_unique(values: IdArray) -> IdArray:
    """Distinct values, ascending."""
    if len(values) < 2:
        return values
    ordered = np.sort(values)
    keep = np.empty(len(ordered), np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _find_parents(universe: Universe, people: IdArray) -> IdArray:
    both = np.concatenate((universe.father[people], universe.mother[people]))
    return sort_unique(both[both > NONE])


def _find_children(universe: Universe, people: IdArray) -> IdArray:
    return sort_unique(universe.children.get_many(people))


def _find_siblings(universe: Universe, people: IdArray) -> IdArray:
    lists, parents = universe.children, (universe.father[people], universe.mother[people])
    if len(people) == 1:
        both = np.concatenate([lists.get_one(int(parent[0])) for parent in parents])
        return sort_unique(both[both != people[0]])
    # Vectorised over all people as pairs (whose, who); a loop would be slower.
    children, whose = [], []
    for parent in parents:
        has_parent = parent > NONE
        children.append(lists.get_many(parent[has_parent]))
        whose.append(people[has_parent].repeat(lists.starts[parent[has_parent] + 1] - lists.starts[parent[has_parent]]))
    who = np.concatenate(children)
    return sort_unique(who[who != np.concatenate(whose)])


def _find_spouses(universe: Universe, people: IdArray) -> IdArray:
    spouses = universe.spouse[people]
    return sort_unique(spouses[spouses > NONE])


def _find_friends(universe: Universe, people: IdArray) -> IdArray:
    return sort_unique(universe.friends_of.get_many(people))


_STEP_FUNCTIONS = {
    UP: _find_parents,
    DOWN: _find_children,
    SIDE: _find_siblings,
    SPOUSE: _find_spouses,
    FRIEND: _find_friends,
}
