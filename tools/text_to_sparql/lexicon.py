"""Lexicon of one graph: phrases to paths of hops, by its labels and aliases and by English phrasings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, product

from showhow.tools.arguments import ToolError
from showhow.worlds.lexicon.english import (
    MIN_ROOT_LETTERS,
    LexicalEntry,
    PathExpression,
    PathSegment,
    PhraseKey,
    load_lexicon,
    phrase_key,
    word_root,
)
from showhow.worlds.source import ErrorKind, Relation
from showhow.worlds.terms import format_node, format_predicate


@dataclass(frozen=True, slots=True)
class PathAtom:
    """One relation, followed forwards or backwards."""

    relation: Relation
    inverse: bool = False

    @property
    def sparql(self) -> str:
        """The relation as a part of a property path."""
        return ("^" if self.inverse else "") + predicate_term(self.relation.id)


@dataclass(frozen=True, slots=True)
class PathHop:
    """One step along any of its relations, to nodes of a gender (male, female, unstated) if one is asked for."""

    atoms: tuple[PathAtom, ...]
    gender: str | None = None
    differs_from: int = 0
    """So many hops back lies a node that this one must differ from; 0 for none."""
    excluded: tuple[PathAtom, ...] = ()
    """The relations by which the node that many hops back must not lead here; () for any node."""

    @property
    def value_type(self) -> str:
        """What it leads to: entity, date, number or text."""
        return "entity" if self.atoms[0].inverse else self.atoms[0].relation.value


@dataclass(frozen=True, slots=True)
class GraphPath:
    """One reading of a phrase: its hops, what to call it, and how far-fetched it is (0 is plain)."""

    hops: tuple[PathHop, ...]
    phrase: str
    cost: float = 0.0
    inverted: bool = False
    """It leads to what has the start as its value."""
    certain: bool = True
    """Whether it accounts for its phrase; False for a relation that only resembles or suggests it."""
    presumes_gender: bool = False
    """Whether the phrase states a gender that the graph does not: husband for a spouse. It may say of whom the question
    speaks, but is no answer.
    """

    @property
    def is_symmetric(self) -> bool:
        """Whether it leads back as well, whoever of the two it starts at: to a friend, but not to a sister."""
        return any(set(turned.hops[0].atoms) == set(self.hops[0].atoms) for turned in self.inverses)

    @property
    def is_plain(self) -> bool:
        """Whether it follows one relation forwards."""
        return len(self.hops) == 1 and len(self.hops[0].atoms) == 1 and not self.hops[0].atoms[0].inverse

    @property
    def inverses(self) -> "tuple[GraphPath, ...]":
        """The path from a value to what has it; none where that says nothing: from a date, to those of a gender."""
        hop = self.hops[0] if len(self.hops) == 1 else None
        if hop is None or hop.value_type != "entity" or hop.gender:
            return ()
        atoms = tuple(replace(atom, inverse=not atom.inverse) for atom in hop.atoms)
        return (replace(self, hops=(PathHop(atoms),), cost=self.cost + INVERSION_COST, inverted=True),)

    @property
    def label_stems(self) -> frozenset[str]:
        """The stems of the content words in the labels of its relations."""
        labels = (atom.relation.label for hop in self.hops for atom in hop.atoms)
        return frozenset(stem for label in labels for stem in phrase_key(label)) - _FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class RelationMention:
    """The words from `start` up to `end` that speak of a relation, and what they may mean; none for an unknown word."""

    start: int
    end: int
    paths: tuple[GraphPath, ...]
    text: str
    merged_places: frozenset[int] = frozenset()
    """The places of other words that say the same."""

    def __hash__(self) -> int:
        # Mentions are keys of choices; the hash of all paths would take longer than what it saves.
        return hash((self.start, self.end, self.text))

    @property
    def places(self) -> frozenset[int]:
        """The places of all words that the relation accounts for."""
        return self.merged_places.union(range(self.start, self.end))

    def doubt(self) -> "RelationMention":
        """The mention as one that accounts for none of its words."""
        return replace(self, paths=tuple(replace(path, certain=False) for path in self.paths))

    def ends_in_literals(self) -> bool:
        """Whether no path leads to entities, from which another could go on."""
        return bool(self.paths) and all(path.hops and path.hops[-1].value_type != "entity" for path in self.paths)

    @property
    def opened(self) -> "RelationMention":
        """The mention also of what has the entity as its value, where words leave the direction open."""
        paths = (turned for path in self.paths for turned in (path, *(path.inverses if path.is_plain else ())))
        return replace(self, paths=tuple(paths))

    def merge(self, other: "RelationMention") -> "RelationMention | None":
        """One mention of what both may mean; None if that is nothing."""
        costs = {path.hops: path.cost for path in other.paths}
        both = [replace(p, cost=p.cost + costs[p.hops]) for p in self.paths if p.hops in costs]
        least = min((path.cost for path in both), default=0.0)
        paths = tuple(sorted((replace(p, cost=p.cost - least) for p in both), key=lambda path: path.cost))
        return replace(self, paths=paths, merged_places=self.merged_places | other.places) if both else None


def entity_term(entity: str) -> str:
    """An entity's id as a term of SPARQL; ToolError if it is no id."""
    return _require_term(entity, format_node(entity))


def predicate_term(relation: str) -> str:
    """A relation's id as a predicate of SPARQL; ToolError if it is no id."""
    return _require_term(relation, format_predicate(relation))


def _require_term(id_or_iri: str, term: str | None) -> str:
    if term is None:
        raise ToolError(
            f"{id_or_iri!r} is no entity id; give ids such as Q42, or full IRIs, as getWikiDataID returns them.",
            ErrorKind.WRONG_ARGUMENTS,
        )
    return term


def join_paths(paths: Sequence[GraphPath], others: Sequence[GraphPath]) -> tuple[GraphPath, ...]:
    """Paths of one hop along either of two relations whose values are of one kind, best first."""
    joined = []
    for one, other in product(paths, others):
        if len(one.hops) == len(other.hops) == 1 and one.hops[0].value_type == other.hops[0].value_type:
            (hop,), (alternative,) = one.hops, other.hops
            gender = hop.gender if hop.gender == alternative.gender else None
            either = PathHop(tuple(dict.fromkeys((*hop.atoms, *alternative.atoms))), gender)
            phrase = " or ".join(dict.fromkeys((one.phrase, other.phrase)))
            joined.append(GraphPath((either,), phrase, one.cost + other.cost))
    return tuple(sorted(joined, key=lambda path: path.cost))


def merge_mentions(mentions: list[RelationMention]) -> tuple[RelationMention, ...]:
    """Two words for one relation ("which award ... received") become one mention of what both may mean."""
    merged: list[RelationMention] = []
    for mention in mentions:
        for place, other in enumerate(merged):
            if both := other.merge(mention):
                merged[place] = both
                break
        else:
            merged.append(mention)
    return tuple(merged)


MAX_SEGMENT_PATHS = 4
"""So many readings of a phrase are kept when it is a part of a longer one."""
RANK_COST = 1.0
DERIVATION_COST = 1.0
UNKNOWN_GENDER_COST = 1.5
INVERSION_COST = 1.2
ALIAS_COST = 0.5
EXTRA_HOP_COST = 0.25

# Words of relations' aliases that mean nothing without others.
_FUNCTION_WORDS = frozenset(
    "is of in at by the a an to on for and or it be was has have with as who what which ' 's".split()
)
GENDER_RELATION = "sex or gender"
MAX_CACHED_LEXICONS = 8
"""Vocabularies whose paths are kept: one of each small graph; large graphs have one for each question."""


@lru_cache(maxsize=MAX_CACHED_LEXICONS)
def load_graph_lexicon(vocabulary: tuple[Relation, ...]) -> "GraphLexicon":
    """The lexicon of a vocabulary, with the paths that earlier questions looked up."""
    return GraphLexicon(vocabulary)


@dataclass
class GraphLexicon:
    """The phrases of a graph's vocabulary and of English, as paths through this graph."""

    vocabulary: Sequence[Relation]
    _labels: dict[PhraseKey, list[Relation]] = field(default_factory=dict, init=False)
    _aliases: dict[PhraseKey, list[Relation]] = field(default_factory=dict, init=False)
    _keys_by_root: dict[str, list[PhraseKey]] = field(default_factory=dict, init=False)
    _path_cache: dict[tuple[PhraseKey, str | None], tuple[GraphPath, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for relation in self.vocabulary:
            self._labels.setdefault(phrase_key(relation.label), []).append(relation)
            synonyms = load_lexicon().other_names(phrase_key(relation.label))
            # "child of E" asks for a child, although a graph may call the parent so.
            for alias in (*relation.aliases, *(name for name in synonyms if not name.endswith(" of"))):
                key = phrase_key(alias)
                if not _FUNCTION_WORDS.issuperset(key):
                    self._aliases.setdefault(key, []).append(relation)
        keys = dict.fromkeys((*self._labels, *self._aliases, *load_lexicon().words))
        self.max_phrase_length = max(map(len, keys), default=0)
        for key in keys:
            if len(key) == 1 and len(key[0]) >= MIN_ROOT_LETTERS:
                self._keys_by_root.setdefault(word_root(key[0]), []).append(key)
        gender = self.find_relations(GENDER_RELATION)
        self.gender_relation = gender[0] if gender else None

    def find_relations(self, name: str) -> list[Relation]:
        """The graph's relations of that name: by label, else by alias, else by what other graphs call it."""
        key = phrase_key(name)
        for names in (
            (key,),
            tuple(map(phrase_key, load_lexicon().other_names(key))),
        ):
            for table in (self._labels, self._aliases):
                relations = [relation for one in names for relation in table.get(one, ())]
                if relations:
                    return list(dict.fromkeys(relations))
        return []

    def find_paths(self, key: PhraseKey, question_word: str | None) -> tuple[GraphPath, ...]:
        """Paths that the phrase may mean, best first; `question_word` is where, when, why or who."""
        if (key, question_word) not in self._path_cache:
            self._path_cache[key, question_word] = tuple(self._build_paths(key, question_word, frozenset()))
        return self._path_cache[key, question_word]

    def is_label(self, key: PhraseKey) -> bool:
        """Whether a relation of the graph has this label."""
        return key in self._labels

    def find_derived_paths(self, word: str, question_word: str | None) -> tuple[GraphPath, ...]:
        """The paths of the words with the same root as a word without a meaning of its own: fathered, father."""
        keys = self._keys_by_root.get(word_root(word), ()) if len(word) >= MIN_ROOT_LETTERS else ()
        paths = (path for key in keys for path in self.find_paths(key, question_word))
        cheapest: dict[tuple[PathHop, ...], GraphPath] = {}
        for path in sorted(paths, key=lambda path: path.cost):
            cheapest.setdefault(path.hops, replace(path, cost=path.cost + DERIVATION_COST))
        return tuple(cheapest.values())

    def is_done_by_value(self, path: GraphPath, verb: str) -> bool:
        """Whether the subject of the active verb is the value of the path's relation: who directs a film is its
        director, but who dies in a town has it as place of death. The relation's name says so: director, directed by.
        """
        atom = path.hops[0].atoms[0]
        if len(path.hops) > 1 or atom.inverse or path.hops[0].value_type != "entity" or verb.endswith(" with"):
            return False
        lexicon, relation, root = load_lexicon(), atom.relation, word_root(verb.split(maxsplit=1)[0])
        if [root] == [word_root(part) for part in phrase_key(relation.label) if part != "by"]:
            return True
        keys = (tuple(verb.split()), phrase_key(verb), *self._keys_by_root.get(root, ()))
        entry = next((lexicon.words[key] for key in keys if key in lexicon.words), None)
        names = (relation.label, *relation.aliases, *lexicon.other_names(phrase_key(relation.label)))
        # "Directed by E", and "starring E".
        passives = [name.removesuffix(" by") for name in names if name.endswith((" by", "ing"))]
        return root in map(word_root, passives) or (
            entry is not None and any(form.endswith(" by") for form in entry.forms)
        )

    def stated_gender(self, path: GraphPath) -> str | None:
        """The gender of all that the path leads to, by the name of its last relation or the word: father, sister."""
        hop = path.hops[-1]
        entry = load_lexicon().words.get(phrase_key(hop.atoms[0].relation.label))
        segments = (expression.segments[-1] for expression in entry.default_paths) if entry else ()
        named = next((segment.gender for segment in segments if segment.gender), None)
        return hop.gender or (named if len(hop.atoms) == 1 and not hop.atoms[0].inverse else None)

    def select_gender(self, mention: RelationMention, gender: str) -> RelationMention:
        """The mention as one of those of a gender; as it is in a graph without genders."""
        paths = []
        for path in mention.paths if self.gender_relation else ():
            if path.hops and path.hops[-1].value_type == "entity" and path.hops[-1].gender in (None, gender):
                hops = (*path.hops[:-1], replace(path.hops[-1], gender=gender))
                phrase = path.phrase if path.inverted else f"{gender} {path.phrase}"
                paths.append(replace(path, hops=hops, phrase=phrase))
        return replace(mention, paths=tuple(paths) or mention.paths)

    def direct_paths(self, name: str) -> tuple[GraphPath, ...]:
        """The path of each relation of that name."""
        return tuple(GraphPath((PathHop((PathAtom(r),)),), r.label) for r in self.find_relations(name))

    def _build_paths(self, key: PhraseKey, question_word: str | None, seen: frozenset[PhraseKey]) -> list[GraphPath]:
        paths: list[GraphPath] = []
        words = load_lexicon().words
        # What graphs also call a relation means all that its own name does: married to, as spouse.
        names = (key, *(phrase_key(relation.label) for relation in self._aliases.get(key, ())))
        entry = next((words[name] for name in names if name in words), None)
        if entry:
            for rank, expression in enumerate(entry.paths_for(question_word)):
                for path in self._expand_expression(expression, seen | {key}):
                    cost = path.cost + rank * RANK_COST + EXTRA_HOP_COST * (len(path.hops) - 1)
                    selects = path.presumes_gender and (len(expression.segments) > 1 or not _is_complement(entry))
                    phrase = self._name_path(entry.label, path, is_first=rank == 0)
                    paths.append(replace(path, phrase=phrase, cost=cost, certain=path.certain and not selects))
        # What the question begins with says more than the verb's own name ("where ... died").
        named = RANK_COST if entry and question_word in entry.paths_by_question_word else 0.0
        for rank, table in enumerate((self._labels, self._aliases)):
            for atom in map(PathAtom, table.get(key, ())):
                if not any(len(path.hops) == 1 and atom in path.hops[0].atoms for path in paths):
                    paths.append(GraphPath((PathHop((atom,)),), atom.relation.label, named + rank * ALIAS_COST))
        cheapest: dict[tuple[PathHop, ...], GraphPath] = {}
        for path in sorted(_filter_by_gender(paths, self._labels.get(key, [])), key=lambda path: path.cost):
            cheapest.setdefault(path.hops, path)
        return list(cheapest.values())

    def _name_path(self, word: str, path: GraphPath, *, is_first: bool) -> str:
        """The relation's name where it says what the word does, else the word; with its steps where another definition
        than the first is taken, or a gender is presumed.
        """
        first = path.hops[0]
        if len(path.hops) == 1:
            return path.phrase if not first.gender and self._label_covers_word(word, first) else word
        return word if is_first and not path.presumes_gender else f"{word} ({path.phrase})"

    def _label_covers_word(self, word: str, hop: PathHop) -> bool:
        """Whether the label of the hop's first relation says what the word does: a father is not all of the parents."""
        first, relations = hop.atoms[0], {atom.relation for atom in hop.atoms}
        return not first.inverse and (len(relations) == 1 or first.relation in self.find_relations(word))

    def _expand_expression(self, expression: PathExpression, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        """The paths of an expression that exist in this graph."""
        choices = [
            list(islice(self._segment_paths(segment, seen), MAX_SEGMENT_PATHS)) for segment in expression.segments
        ]
        for parts in islice(product(*choices), MAX_SEGMENT_PATHS * MAX_SEGMENT_PATHS):
            hops = tuple(hop for part in parts for hop in part.hops)
            excluded = self._excluded_atoms(expression.excluded) if expression.excluded else ()
            if expression.excludes_start or excluded:
                hops = (*hops[:-1], replace(hops[-1], differs_from=len(hops), excluded=excluded))
            yield GraphPath(
                hops,
                " of the ".join(part.phrase for part in reversed(parts)),
                sum(part.cost for part in parts),
                certain=all(part.certain for part in parts)
                and not expression.suggestive
                and (not expression.excluded or bool(excluded)),
                presumes_gender=any(part.presumes_gender for part in parts),
            )

    def _excluded_atoms(self, relation: str) -> tuple[PathAtom, ...]:
        """The relations of one step that state the relation: any parent for a mother."""
        paths = (path for path in self.find_paths(phrase_key(relation), None) if len(path.hops) == 1)
        return tuple(dict.fromkeys(atom for path in paths for atom in path.hops[0].atoms))

    def _segment_paths(self, segment: PathSegment, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        for path in self._paths_of_any_gender(segment, seen):
            if not segment.gender:
                yield path
            elif self.gender_relation is None:
                yield replace(path, cost=path.cost + UNKNOWN_GENDER_COST / 3, presumes_gender=True)
            else:
                last = replace(path.hops[-1], gender=segment.gender)
                yield replace(path, hops=(*path.hops[:-1], last))
                unstated = replace(path.hops[-1], gender="unstated")
                cost = path.cost + UNKNOWN_GENDER_COST
                yield replace(path, hops=(*path.hops[:-1], unstated), cost=cost, presumes_gender=True)

    def _paths_of_any_gender(self, segment: PathSegment, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        """What the segment stands for: a word's own entry, except inside that entry, else the relations so called."""
        key = phrase_key(segment.relation or "")
        if key in load_lexicon().words and key not in seen:
            yield from self._build_paths(key, None, seen)
            return
        atoms = [
            PathAtom(relation, term.inverse)
            for term in segment.terms
            for relation in self.find_relations(term.relation)
        ]
        if atoms:
            yield GraphPath((PathHop(tuple(dict.fromkeys(atoms))),), atoms[0].relation.label)


def _is_complement(entry: LexicalEntry) -> bool:
    """Whether the word is the other side of one for the other gender, and so selects none of a person's relatives: a
    husband has a wife, but a daughter may have a brother.
    """
    words = load_lexicon().words
    terms = (
        term for path in entry.default_paths for segment in path.segments for term in segment.terms if term.inverse
    )
    opposites = (words.get(phrase_key(term.relation)) for term in terms)
    return any(segment.gender for word in opposites if word for path in word.default_paths for segment in path.segments)


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
