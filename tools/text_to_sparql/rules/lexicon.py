"""Lexicon of one graph: phrases to paths, by its labels and aliases and by English phrasings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from tools.text_to_sparql.rules.english import PhraseKey, load_english_phrases, phrase_key
from tools.text_to_sparql.rules.paths import GraphPath, PathAtom, PathHop
from worlds.source import Relation

MAX_SEGMENT_PATHS = 4
"""So many readings of a phrase are kept when it is a part of a longer one."""
RANK_COST = 1.0
UNKNOWN_GENDER_COST = 1.5
ALIAS_COST = 0.5
EXTRA_HOP_COST = 0.25

# Words of relations' aliases that mean nothing without others.
_FUNCTION_WORDS = frozenset(
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
GENDER_RELATION = "sex or gender"


@dataclass
class GraphLexicon:
    """The phrases of a graph's vocabulary and of English, as paths through this graph."""

    vocabulary: Sequence[Relation]
    _labels: dict[PhraseKey, list[Relation]] = field(default_factory=dict, init=False)
    _aliases: dict[PhraseKey, list[Relation]] = field(default_factory=dict, init=False)
    _path_cache: dict[tuple[PhraseKey, str | None], tuple[GraphPath, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for relation in self.vocabulary:
            self._labels.setdefault(phrase_key(relation.label), []).append(relation)
            for alias in relation.aliases:
                key = phrase_key(alias)
                if not _FUNCTION_WORDS.issuperset(key):
                    self._aliases.setdefault(key, []).append(relation)
        self.max_phrase_length = max(
            (len(key) for key in (*self._labels, *self._aliases, *load_english_phrases().words)), default=0
        )
        gender = self.find_relations(GENDER_RELATION)
        self.gender_relation = gender[0] if gender else None

    def find_relations(self, name: str) -> list[Relation]:
        """The graph's relations of that name: by label, else by alias, else by what other graphs call it."""
        key = phrase_key(name)
        for names in (
            (key,),
            tuple(phrase_key(other) for other in load_english_phrases().relation_synonyms.get(key, ())),
        ):
            for table in (self._labels, self._aliases):
                relations = [relation for one in names for relation in table.get(one, ())]
                if relations:
                    return list(dict.fromkeys(relations))
        return []

    def has_meaning(self, key: PhraseKey) -> bool:
        """Whether the phrase has a meaning in this graph."""
        return bool(key) and (key in self._labels or key in self._aliases or bool(self.find_paths(key, None)))

    def find_paths(self, key: PhraseKey, question_word: str | None) -> tuple[GraphPath, ...]:
        """Paths that the phrase may mean, best first; `question_word` is where, when, why or who."""
        if (key, question_word) not in self._path_cache:
            self._path_cache[key, question_word] = tuple(self._build_paths(key, question_word, frozenset()))
        return self._path_cache[key, question_word]

    def direct_paths(self, name: str) -> tuple[GraphPath, ...]:
        """The path of each relation of that name."""
        return tuple(GraphPath((PathHop((PathAtom(r),)),), r.label) for r in self.find_relations(name))

    def _build_paths(self, key: PhraseKey, question_word: str | None, seen: frozenset[PhraseKey]) -> list[GraphPath]:
        paths: list[GraphPath] = []
        asking = load_english_phrases().words.get(key)
        if asking:
            for rank, expression in enumerate(asking.paths_for(question_word)):
                for path in self._expand_expression(expression, seen | {key}):
                    first = path.hops[0]
                    plain = len(path.hops) == 1 and not first.gender and self._label_covers_word(asking.name, first)
                    phrase = path.phrase if plain else _restore_hyphens(asking.name)
                    cost = path.cost + rank * RANK_COST + EXTRA_HOP_COST * (len(path.hops) - 1)
                    paths.append(replace(path, phrase=phrase, cost=cost))
        # What the question begins with says more than the verb's own name ("where ... died").
        named = RANK_COST if asking and question_word in asking.paths_by_question_word else 0.0
        for rank, table in enumerate((self._labels, self._aliases)):
            for atom in map(PathAtom, table.get(key, ())):
                if not any(len(path.hops) == 1 and atom in path.hops[0].atoms for path in paths):
                    paths.append(GraphPath((PathHop((atom,)),), atom.relation.label, named + rank * ALIAS_COST))
        cheapest: dict[tuple[PathHop, ...], GraphPath] = {}
        for path in sorted(_filter_by_gender(paths, self._labels.get(key, [])), key=lambda path: path.cost):
            cheapest.setdefault(path.hops, path)
        return list(cheapest.values())

    def _label_covers_word(self, word: str, hop: PathHop) -> bool:
        """Whether the label of the hop's first relation says what the word does: a father is not all of the parents."""
        first, relations = hop.atoms[0], {atom.relation for atom in hop.atoms}
        return not first.inverse and (len(relations) == 1 or first.relation in self.find_relations(word))

    def _expand_expression(self, expression: str, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        """The paths of an expression in the notation of english.toml that exist in this graph."""
        differs = expression.endswith("!")
        choices = [
            list(islice(self._segment_paths(part, seen), MAX_SEGMENT_PATHS))
            for part in expression.rstrip("!").split("/")
        ]
        for parts in islice(product(*choices), MAX_SEGMENT_PATHS * MAX_SEGMENT_PATHS):
            hops = tuple(hop for part in parts for hop in part.hops)
            if differs:
                hops = (*hops[:-1], replace(hops[-1], differs_from=len(hops)))
            yield GraphPath(hops, " ".join(p.phrase for p in reversed(parts)), sum(part.cost for part in parts))

    def _segment_paths(self, segment: str, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        name, _, gender = segment.partition(":")
        for path in self._paths_for_name(name, seen):
            if not gender:
                yield path
            elif self.gender_relation is None:
                yield replace(path, cost=path.cost + UNKNOWN_GENDER_COST / 3)
            else:
                last = replace(path.hops[-1], gender=gender)
                yield replace(path, hops=(*path.hops[:-1], last))
                unstated = replace(path.hops[-1], gender="unstated")
                yield replace(path, hops=(*path.hops[:-1], unstated), cost=path.cost + UNKNOWN_GENDER_COST)

    def _paths_for_name(self, name: str, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        """What the name stands for: a word's own entry, except inside that entry, else the relations so called."""
        key = phrase_key(name)
        if key in load_english_phrases().words and key not in seen and not set("|^") & set(name):
            yield from self._build_paths(key, None, seen)
            return
        atoms = [
            PathAtom(relation, part.startswith("^"))
            for part in name.split("|")
            for relation in self.find_relations(part.lstrip("^"))
        ]
        if atoms:
            yield GraphPath((PathHop(tuple(dict.fromkeys(atoms))),), atoms[0].relation.label)


def _filter_by_gender(paths: list[GraphPath], labelled: Sequence[Relation]) -> list[GraphPath]:
    """The paths without those that leave out the gender which the word tells: a sister is no brother, although graphs
    list both words among the names of one relation.
    """
    genders = {
        atom.relation for path in paths for hop in path.hops if len(path.hops) == 1 and hop.gender for atom in hop.atoms
    }
    return [
        path
        for path in paths
        if len(path.hops) > 1
        or path.hops[0].gender
        or path.hops[0].atoms[0].relation in labelled
        or not genders.issuperset(atom.relation for atom in path.hops[0].atoms)
    ]


def _restore_hyphens(phrase: str) -> str:
    return phrase.replace(" in law", "-in-law").replace("great grand", "great-grand")
