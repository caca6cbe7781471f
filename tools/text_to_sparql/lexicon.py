"""Lexicon of one graph: phrases to paths of hops, by its labels and aliases and by English phrasings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from tools.arguments import ToolError
from worlds.lexicon.english import (
    MIN_ROOT_LETTERS,
    PathExpression,
    PathSegment,
    PhraseKey,
    load_lexicon,
    phrase_key,
    word_root,
)
from worlds.source import ErrorKind, Relation
from worlds.sparql_syntax import quote_literal
from worlds.terms import format_node, format_predicate

MALE_LABELS = ("male", "man", "boy", "trans man")
FEMALE_LABELS = ("female", "woman", "girl", "trans woman")
MAX_UNSTAGED_HOPS = 5
_MONTHS = "january february march april may june july august september october november december".split()
_MIN_MONTH_LETTERS = 3
_ORDINAL_ENDING = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
PatternLines = tuple[str, ...]


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
    """Whether it accounts for its phrase; False for a relation that only resembles it."""

    @property
    def label_stems(self) -> frozenset[str]:
        """The stems of the content words in the labels of its relations."""
        labels = (atom.relation.label for hop in self.hops for atom in hop.atoms)
        return frozenset(stem for label in labels for stem in phrase_key(label)) - _FUNCTION_WORDS


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


def to_iso_date(text: str) -> str | None:
    """A day in words, 16 October 1943 or October 16th, 1943, as graphs write it: 1943-10-16; None for anything else."""
    day, month, year, *more = [*text.lower().replace(",", " ").replace(" of ", " ").split(), "", "", ""]
    if not day[:1].isdecimal():
        day, month = month, day
    day = _ORDINAL_ENDING.sub("", day)
    number = next((n for n, name in enumerate(_MONTHS, 1) if name in {month, *_complete_month(month, name)}), None)
    if any(more) or not (day.isdecimal() and year.isdecimal()) or number is None:
        return None
    return f"{int(year):04}-{number:02}-{int(day):02}"


def _complete_month(abbreviation: str, name: str) -> tuple[str, ...]:
    """The month, if it is abbreviated so: Oct, Sept."""
    letters = abbreviation.removesuffix(".")
    return (name,) if len(letters) >= _MIN_MONTH_LETTERS and name.startswith(letters) else ()


@dataclass
class PatternWriter:
    """Writes paths as patterns, with variables that are all different."""

    gender_relation: Relation | None = None
    count: int = 0

    def new_variable(self, name: str = "x") -> str:
        """A variable that was not used before."""
        self.count += 1
        return f"?{name}{self.count}"

    def follow_paths(
        self, start: str, paths: tuple[GraphPath, ...], end: str, before: PatternLines = ()
    ) -> PatternLines:
        """The lines of a group that lead from a term along the paths to the term `end`; `before` binds the start.

        A long way is told in stages that each forget how they came, or every route to every node would be walked.
        """
        staged = sum(len(path.hops) for path in paths) > MAX_UNSTAGED_HOPS and (
            bool(before) or not start.startswith("?")
        )
        lines = before
        for path in paths[:-1]:
            middle = self.new_variable()
            lines = (*lines, *self._path_lines(start, path, middle))
            if staged:
                lines = (f"{{ SELECT DISTINCT {middle} WHERE {{ {' '.join(lines)} }} }}",)
            start = middle
        return (*lines, *self._path_lines(start, paths[-1], end)) if paths else lines

    def _path_lines(self, start: str, path: GraphPath, end: str) -> PatternLines:
        nodes = [start, *(self.new_variable() for _ in path.hops[1:]), end]
        lines: list[str] = []
        for place, hop in enumerate(path.hops, 1):
            lines.append(f"{nodes[place - 1]} {'|'.join(atom.sparql for atom in hop.atoms)} {nodes[place]} .")
            if hop.differs_from:
                lines.append(f"FILTER({nodes[place]} != {nodes[place - hop.differs_from]})")
            if hop.gender and self.gender_relation:
                lines += self._gender_lines(nodes[place], hop.gender, self.gender_relation)
        return tuple(lines)

    def _gender_lines(self, node: str, gender: str, relation: Relation) -> PatternLines:
        value = self.new_variable("gender")
        stated = f"{node} {predicate_term(relation.id)} {value} ."
        if gender == "unstated":
            return (f"FILTER NOT EXISTS {{ {stated} }}",)
        return (stated, *self.match_names(value, MALE_LABELS if gender == "male" else FEMALE_LABELS, relation.value))

    def match_names(self, node: str, names: tuple[str, ...], value: str) -> PatternLines:
        """Lines that hold when the node, a literal or an entity as `value` says, is of one of these names."""
        literals = ", ".join(quote_literal(name.lower()) for name in names)
        if value == "date" and (day := to_iso_date(names[0])):
            return (f"FILTER(STRSTARTS(STR({node}), {quote_literal(day)}))",)
        if value != "entity":
            return (f"FILTER(LCASE(STR({node})) IN ({literals}))",)
        label = self.new_variable("label")
        return (f"{node} rdfs:label {label} .", f"FILTER(LCASE(STR({label})) IN ({literals}))")


def describe_paths(paths: tuple[GraphPath, ...], start: str) -> str:
    """The paths in plain English: "place of burial of the father of Ada"."""
    text = start
    for place, path in enumerate(paths):
        text = f"{'the ' if place else ''}{text}"
        text = f"those whose {path.phrase} is {text}" if path.inverted else f"{path.phrase} of {text}"
    return text


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


MAX_SEGMENT_PATHS = 4
"""So many readings of a phrase are kept when it is a part of a longer one."""
RANK_COST = 1.0
DERIVATION_COST = 1.0
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
        self.max_phrase_length = max(
            (len(key) for key in (*self._labels, *self._aliases, *load_lexicon().words)), default=0
        )
        for key in dict.fromkeys((*self._labels, *self._aliases, *load_lexicon().words)):
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

    def has_meaning(self, key: PhraseKey) -> bool:
        """Whether the phrase has a meaning in this graph."""
        return bool(key) and (key in self._labels or key in self._aliases or bool(self.find_paths(key, None)))

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

    def direct_paths(self, name: str) -> tuple[GraphPath, ...]:
        """The path of each relation of that name."""
        return tuple(GraphPath((PathHop((PathAtom(r),)),), r.label) for r in self.find_relations(name))

    def _build_paths(self, key: PhraseKey, question_word: str | None, seen: frozenset[PhraseKey]) -> list[GraphPath]:
        paths: list[GraphPath] = []
        entry = load_lexicon().words.get(key)
        if entry:
            for rank, expression in enumerate(entry.paths_for(question_word)):
                for path in self._expand_expression(expression, seen | {key}):
                    first = path.hops[0]
                    plain = len(path.hops) == 1 and not first.gender and self._label_covers_word(entry.label, first)
                    phrase = path.phrase if plain else entry.label
                    cost = path.cost + rank * RANK_COST + EXTRA_HOP_COST * (len(path.hops) - 1)
                    paths.append(replace(path, phrase=phrase, cost=cost))
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
            if expression.excludes_start:
                hops = (*hops[:-1], replace(hops[-1], differs_from=len(hops)))
            yield GraphPath(hops, " ".join(p.phrase for p in reversed(parts)), sum(part.cost for part in parts))

    def _segment_paths(self, segment: PathSegment, seen: frozenset[PhraseKey]) -> Iterator[GraphPath]:
        for path in self._paths_of_any_gender(segment, seen):
            if not segment.gender:
                yield path
            elif self.gender_relation is None:
                yield replace(path, cost=path.cost + UNKNOWN_GENDER_COST / 3)
            else:
                last = replace(path.hops[-1], gender=segment.gender)
                yield replace(path, hops=(*path.hops[:-1], last))
                unstated = replace(path.hops[-1], gender="unstated")
                yield replace(path, hops=(*path.hops[:-1], unstated), cost=path.cost + UNKNOWN_GENDER_COST)

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
