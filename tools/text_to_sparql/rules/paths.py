"""Paths through a graph: the hops that a phrase stands for, and how they are written in SPARQL."""

from dataclasses import dataclass

from tools.errors import ToolError
from worlds.source import ErrorKind, Relation
from worlds.terms import format_node, format_predicate

MALE_LABELS = ("male", "man", "boy", "trans man")
FEMALE_LABELS = ("female", "woman", "girl", "trans woman")
MAX_UNSTAGED_HOPS = 5
_MONTHS = "january february march april may june july august september october november december".split()
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
    """A day in words, 16 October 1943, as graphs write it: 1943-10-16; None for anything else."""
    day, month, year, *more = [*text.lower().replace(",", "").split(), "", "", ""]
    if month.isdecimal():
        day, month = month, day
    if any(more) or not (day.isdecimal() and year.isdecimal()) or month not in _MONTHS:
        return None
    return f"{int(year):04}-{_MONTHS.index(month) + 1:02}-{int(day):02}"


def quote_literal(text: str) -> str:
    """A text as a literal of SPARQL, with everything escaped that could end it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


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
