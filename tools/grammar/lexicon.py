"""What phrases mean in one graph: its own labels and aliases, and the English ways to ask for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from tools.grammar.english import Key, english
from tools.grammar.paths import Atom, Hop, Path
from tools.grammar.words import key_of
from worlds.source import Relation

NARROW = 4
"""So many readings of a phrase are kept when it is a part of a longer one."""
FARTHER = 1.0
UNGENDERED = 1.5
OTHER_LABEL = 0.5
LONGER = 0.25

# Words of relations' aliases that mean nothing without others.
_EMPTY = frozenset(
    [
        "is",
        "of",
        "in",
        "at",
        "by",
        "the",
        "a",
        "an",
        "to",
        "on",
        "for",
        "and",
        "or",
        "it",
        "be",
        "was",
        "has",
        "have",
        "with",
        "as",
        "who",
        "what",
        "which",
        "'",
        "'s",
    ]
)
GENDER = "sex or gender"


@dataclass
class Lexicon:
    """The phrases of a graph's vocabulary and of English, as paths through this graph."""

    vocabulary: Sequence[Relation]
    _labels: dict[Key, list[Relation]] = field(default_factory=dict, init=False)
    _aliases: dict[Key, list[Relation]] = field(default_factory=dict, init=False)
    _read: dict[tuple[Key, str | None], tuple[Path, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for relation in self.vocabulary:
            self._labels.setdefault(key_of(relation.label), []).append(relation)
            for alias in relation.aliases:
                key = key_of(alias)
                if not _EMPTY.issuperset(key):
                    self._aliases.setdefault(key, []).append(relation)
        self.longest = max((len(key) for key in (*self._labels, *self._aliases, *english().words)), default=0)
        gender = self.relations(GENDER)
        self.gender = gender[0] if gender else None

    def relations(self, name: str) -> list[Relation]:
        """The graph's relations of that name: by label, else by alias, else by what other graphs call it."""
        key = key_of(name)
        for names in ((key,), tuple(key_of(other) for other in english().names.get(key, ()))):
            for table in (self._labels, self._aliases):
                found = [relation for one in names for relation in table.get(one, ())]
                if found:
                    return list(dict.fromkeys(found))
        return []

    def knows(self, key: Key) -> bool:
        """Whether the phrase has a meaning in this graph."""
        return bool(key) and (key in self._labels or key in self._aliases or bool(self.paths(key, None)))

    def paths(self, key: Key, asked: str | None) -> tuple[Path, ...]:
        """What the phrase may mean, best first; `asked` is how the question begins (where, when, why, who)."""
        if (key, asked) not in self._read:
            self._read[key, asked] = tuple(self._paths(key, asked, frozenset()))
        return self._read[key, asked]

    def plain(self, name: str) -> tuple[Path, ...]:
        """The path of each relation of that name."""
        return tuple(Path((Hop((Atom(r),)),), r.label) for r in self.relations(name))

    def _paths(self, key: Key, asked: str | None, seen: frozenset[Key]) -> list[Path]:
        found: list[Path] = []
        asking = english().words.get(key)
        if asking:
            for rank, expression in enumerate(asking.paths(asked)):
                for path in self._expand(expression, seen | {key}):
                    first = path.hops[0]
                    plain = len(path.hops) == 1 and not first.gender and self._says_all(asking.name, first)
                    phrase = path.phrase if plain else _spoken(asking.name)
                    cost = path.cost + rank * FARTHER + LONGER * (len(path.hops) - 1)
                    found.append(replace(path, phrase=phrase, cost=cost))
        # What the question begins with says more than the verb's own name ("where ... died").
        named = FARTHER if asking and asked in asking.by_question else 0.0
        for rank, table in enumerate((self._labels, self._aliases)):
            for atom in map(Atom, table.get(key, ())):
                if not any(len(path.hops) == 1 and atom in path.hops[0].atoms for path in found):
                    found.append(Path((Hop((atom,)),), atom.relation.label, named + rank * OTHER_LABEL))
        cheapest: dict[tuple[Hop, ...], Path] = {}
        for path in sorted(_narrowed(found, self._labels.get(key, [])), key=lambda path: path.cost):
            cheapest.setdefault(path.hops, path)
        return list(cheapest.values())

    def _says_all(self, word: str, hop: Hop) -> bool:
        """Whether the label of the hop's first relation says what the word does: a father is not all of the parents."""
        first, told = hop.atoms[0], {atom.relation for atom in hop.atoms}
        return not first.backwards and (len(told) == 1 or first.relation in self.relations(word))

    def _expand(self, expression: str, seen: frozenset[Key]) -> Iterator[Path]:
        """The paths of an expression in the notation of english.toml that exist in this graph."""
        differs = expression.endswith("!")
        choices = [list(islice(self._segment(part, seen), NARROW)) for part in expression.rstrip("!").split("/")]
        for parts in islice(product(*choices), NARROW * NARROW):
            hops = tuple(hop for part in parts for hop in part.hops)
            if differs:
                hops = (*hops[:-1], replace(hops[-1], differs=len(hops)))
            yield Path(hops, " ".join(p.phrase for p in reversed(parts)), sum(part.cost for part in parts))

    def _segment(self, segment: str, seen: frozenset[Key]) -> Iterator[Path]:
        name, _, gender = segment.partition(":")
        for path in self._named(name, seen):
            if not gender:
                yield path
            elif self.gender is None:
                yield replace(path, cost=path.cost + UNGENDERED / 3)
            else:
                last = replace(path.hops[-1], gender=gender)
                yield replace(path, hops=(*path.hops[:-1], last))
                unstated = replace(path.hops[-1], gender="unstated")
                yield replace(path, hops=(*path.hops[:-1], unstated), cost=path.cost + UNGENDERED)

    def _named(self, name: str, seen: frozenset[Key]) -> Iterator[Path]:
        """What the name stands for: a word's own entry, except inside that entry, else the relations so called."""
        key = key_of(name)
        if key in english().words and key not in seen and not set("|^") & set(name):
            yield from self._paths(key, None, seen)
            return
        atoms = [
            Atom(found, part.startswith("^")) for part in name.split("|") for found in self.relations(part.lstrip("^"))
        ]
        if atoms:
            yield Path((Hop(tuple(dict.fromkeys(atoms))),), atoms[0].relation.label)


def _narrowed(found: list[Path], labelled: Sequence[Relation]) -> list[Path]:
    """The paths without those that leave out the gender which the word tells: a sister is no brother, although graphs
    list both words among the names of one relation.
    """
    told = {
        atom.relation for path in found for hop in path.hops if len(path.hops) == 1 and hop.gender for atom in hop.atoms
    }
    return [
        path
        for path in found
        if len(path.hops) > 1
        or path.hops[0].gender
        or path.hops[0].atoms[0].relation in labelled
        or not told.issuperset(atom.relation for atom in path.hops[0].atoms)
    ]


def _spoken(phrase: str) -> str:
    return phrase.replace(" in law", "-in-law").replace("great grand", "great-grand")
