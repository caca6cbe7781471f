"""Parser and writer of the Prolog subset of facts and queries, the parser of facts.pl into a universe, and its rules.

Terms are strings, atoms, numbers and variables. A universe is built from the facts alone; the rules that define
relations are kept as text, and evaluated for verification. Directives and SWI-Prolog's own clauses are skipped.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from showhow.fiction.phantomwiki.records import parse_day
from showhow.fiction.universe.relations import RELATIONS
from showhow.fiction.universe.universe import NONE, Friendships, IdArray, Places, Universe
from showhow.worlds.input_files import MalformedFile, require_storable_text

# Possessive, so that an unterminated string does not cause exponential backtracking.
_TOKEN_PATTERN = re.compile(r'\s*(?:"((?:[^"\\]|\\x[0-9a-fA-F]+\\|\\.|"")*+)"|([A-Za-z_]\w*)|(\d+)|([(),]))', re.DOTALL)
_ESCAPE_PATTERN = re.compile(r'\\x([0-9a-fA-F]+)\\|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|""', re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_MAX_DEPTH = 20


class PrologSyntaxError(ValueError):
    """The text is not a valid term; the message states the expected and the actual token."""


@dataclass(frozen=True, slots=True)
class PrologVariable:
    """A variable: a name that begins with a capital or an underscore."""

    name: str


@dataclass(frozen=True, slots=True)
class PrologTerm:
    """An atom or number (without arguments), or a compound term; strings are plain `str`."""

    name: str
    args: tuple["PrologValue", ...] = ()


PrologValue = str | PrologVariable | PrologTerm


def parse_goal(text: str) -> PrologTerm:
    """Parse a text that is a single term."""
    value, end = parse_value(text, 0)
    if not isinstance(value, PrologTerm):
        raise PrologSyntaxError("a goal must begin with the name of a relation")
    if text[end:].strip(" \t\r\n."):
        raise PrologSyntaxError(f"{_excerpt(text, end)} follows the goal")
    return value


def parse_value(text: str, start: int, depth: int = 0) -> tuple[PrologValue, int]:
    """Parse the value at `start`; returns it and its end."""
    if depth > _MAX_DEPTH:
        raise PrologSyntaxError(f"terms are nested more than {_MAX_DEPTH} deep")
    token = _TOKEN_PATTERN.match(text, start)
    if token is None or token[4]:
        raise PrologSyntaxError(f"a name, string or number is expected, not {_excerpt(text, start)}")
    string, name, number, _ = token.groups()
    if string is not None:
        return _decode_escapes(string), token.end()
    if number is not None:
        return PrologTerm(number), token.end()
    if name[0].isupper() or name[0] == "_":
        return PrologVariable(name), token.end()
    if not text.startswith("(", token.end()):
        return PrologTerm(name), token.end()
    args, end = _parse_arguments(text, token.end() + 1, depth)
    return PrologTerm(name, args), end


def _parse_arguments(text: str, start: int, depth: int) -> tuple[tuple[PrologValue, ...], int]:
    args: list[PrologValue] = []
    while True:
        value, end = parse_value(text, start, depth + 1)
        args.append(value)
        separator = _TOKEN_PATTERN.match(text, end)
        if separator is None or separator[4] not in (",", ")"):
            raise PrologSyntaxError(f"a comma or ) is expected, not {_excerpt(text, end)}")
        if separator[4] == ")":
            return tuple(args), separator.end()
        start = separator.end()


def _decode_escapes(text: str) -> str:
    return _ESCAPE_PATTERN.sub(_decode_escape, text) if "\\" in text or '""' in text else text


def _decode_escape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise PrologSyntaxError(f"{escape[0]} is not a character")
        return chr(number)
    if escape[4] is None:
        return '"'
    if escape[4] not in _SIMPLE_ESCAPES:
        raise PrologSyntaxError(f"the escape {escape[0]} is unknown")
    return _SIMPLE_ESCAPES[escape[4]]


def _excerpt(text: str, start: int) -> str:
    rest = text[start : start + 200].strip()
    return repr(rest[:30]) if rest else "the end of the text"


def quote_string(text: str) -> str:
    """Quote a text as a Prolog string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def format_fact(name: str, *values: str) -> str:
    """Format a ground fact of strings."""
    return f"{name}({', '.join(quote_string(value) for value in values)})."


_ARGUMENT_COUNTS = {
    "type": 2,
    "gender": 2,
    "parent": 2,
    "married_": 2,
    "dob": 2,
    "friend_": 2,
    "job": 2,
    "hobby": 2,
    "attribute": 1,
}
"""Predicates that are read. Published instances have no couples without children; married_ is our addition for them."""
_FACT_START = re.compile(rf"^(?:{'|'.join(_ARGUMENT_COUNTS)})\(", re.MULTILINE)
_FACT_END = re.compile(r"\s*\.(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """A universe, and the counts of the bare attributes that repeat its jobs and hobbies."""

    universe: Universe
    attributes: Counter[str]
    rules: tuple[str, ...] = ()
    """Clauses that define the relations of RELATIONS, and those that these need, in the order of the file."""


@dataclass(frozen=True, slots=True)
class _PrologFact:
    line: int
    args: tuple[str, ...]


def parse_facts(file: Path, text: str) -> InstanceFacts:
    """Parse the text of a facts.pl; MalformedFile if its facts are inconsistent."""
    facts_by_name: dict[str, list[_PrologFact]] = {name: [] for name in _ARGUMENT_COUNTS}
    for name, fact in _iter_facts(file, text):
        facts_by_name[name].append(fact)
    if not facts_by_name["type"]:
        raise MalformedFile(file, None, 'it declares no person with a fact like type("Ann Lee", person)')
    return InstanceFacts(
        _UniverseBuilder(file, facts_by_name["type"]).build(facts_by_name),
        Counter(fact.args[0] for fact in facts_by_name["attribute"]),
        tuple(_select_rules(text)),
    )


def _iter_facts(file: Path, text: str) -> Iterator[tuple[str, _PrologFact]]:
    line, counted_end = 1, 0
    for start in _FACT_START.finditer(text):
        line, counted_end = line + text.count("\n", counted_end, start.start()), start.start()
        try:
            value, end = parse_value(text, start.start())
            yield start[0][:-1], _PrologFact(line, _require_strings(value, text, end))
        except PrologSyntaxError as error:
            raise MalformedFile(file, line, f"not a fact: {error}") from error


def _require_strings(value: PrologValue, text: str, end: int) -> tuple[str, ...]:
    if not isinstance(value, PrologTerm) or not _FACT_END.match(text, end):
        raise PrologSyntaxError("a fact that ends with a full stop is expected here")
    args = tuple(arg.name if isinstance(arg, PrologTerm) and not arg.args else arg for arg in value.args)
    strings = tuple(arg for arg in args if isinstance(arg, str))
    if len(strings) != len(args) or len(args) != _ARGUMENT_COUNTS[value.name]:
        raise PrologSyntaxError(f"{value.name} takes {_ARGUMENT_COUNTS[value.name]} strings")
    return strings


class _UniverseBuilder:
    """Converts facts about people into arrays; errors name `file`."""

    def __init__(self, file: Path, people: list[_PrologFact]) -> None:
        self._file = file
        self._rows: dict[str, int] = {}
        for fact in people:
            name, kind = fact.args
            if kind != "person":
                raise MalformedFile(file, fact.line, f"{name!r} is a {kind}; only people are supported")
            if name in self._rows:
                raise MalformedFile(file, fact.line, f"two people are named {name!r}; names must be unique")
            self._rows[self._require_text(name, fact)] = len(self._rows)

    def build(self, facts_by_name: Mapping[str, list[_PrologFact]]) -> Universe:
        """Build the universe from facts grouped by predicate."""
        female = self._parse_genders(facts_by_name["gender"])
        father, mother = self._parse_parents(facts_by_name["parent"], female)
        jobs, job = self._parse_values(facts_by_name["job"], "job")
        hobbies, hobby = self._parse_values(facts_by_name["hobby"], "hobby")
        birth, empty_column = self._parse_births(facts_by_name["dob"]), self._empty_column()
        names = tuple(self._rows)
        return Universe(
            names=names,
            titles=names,
            female=female,
            father=father,
            mother=mother,
            spouse=self._build_spouses(self._iter_couples(father, mother, facts_by_name["married_"])),
            birth=birth,
            death=empty_column,
            wedding=empty_column,
            birthplace=empty_column,
            residence=empty_column,
            job=job,
            hobby=hobby,
            friends=self._parse_friendships(facts_by_name["friend_"]),
            places=Places(),
            jobs=jobs,
            hobbies=hobbies,
            today=int(birth.max()),
        )

    def _empty_column(self) -> IdArray:
        return np.full(len(self._rows), NONE, np.int32)

    def _require_text(self, text: str, fact: _PrologFact) -> str:
        if not text.strip() or "\n" in text:
            raise MalformedFile(self._file, fact.line, "a name or value is blank or contains a line break")
        return require_storable_text(text, self._file, fact.line)

    def _find_row(self, name: str, fact: _PrologFact) -> int:
        if name not in self._rows:
            raise MalformedFile(self._file, fact.line, f"{name!r} is unknown: no type({name!r}, person) is stated")
        return self._rows[name]

    def _require_one_each(self, facts: list[_PrologFact], noun: str) -> list[_PrologFact]:
        """Facts in the order of the people; MalformedFile unless each person has exactly one."""
        stated: dict[int, _PrologFact] = {}
        for fact in facts:
            if stated.setdefault(self._find_row(fact.args[0], fact), fact) is not fact:
                raise MalformedFile(self._file, fact.line, f"{fact.args[0]!r} has a second {noun}")
        for name, row in self._rows.items():
            if row not in stated:
                raise MalformedFile(self._file, None, f"no {noun} of {name!r} is stated")
        return [stated[row] for row in range(len(stated))]

    def _parse_genders(self, facts: list[_PrologFact]) -> npt.NDArray[np.bool_]:
        for fact in facts:
            if fact.args[1] not in ("female", "male"):
                raise MalformedFile(self._file, fact.line, f"the gender {fact.args[1]!r} is neither female nor male")
        return np.array([fact.args[1] == "female" for fact in self._require_one_each(facts, "gender")], np.bool_)

    def _parse_births(self, facts: list[_PrologFact]) -> IdArray:
        return np.array([self._parse_day(fact) for fact in self._require_one_each(facts, "date of birth")], np.int32)

    def _parse_day(self, fact: _PrologFact) -> int:
        try:
            return parse_day(fact.args[1])
        except ValueError as error:
            raise MalformedFile(self._file, fact.line, str(error)) from error

    def _parse_values(self, facts: list[_PrologFact], noun: str) -> tuple[tuple[str, ...], IdArray]:
        values = [self._require_text(fact.args[1], fact) for fact in self._require_one_each(facts, noun)]
        listed = tuple(sorted(set(values)))
        numbers = {value: number for number, value in enumerate(listed)}
        return listed, np.array([numbers[value] for value in values], np.int32)

    def _parse_parents(self, facts: list[_PrologFact], female: npt.NDArray[np.bool_]) -> tuple[IdArray, IdArray]:
        father, mother = self._empty_column(), self._empty_column()
        for fact in facts:
            child, parent = (self._find_row(name, fact) for name in fact.args)
            parents, noun = (mother, "mother") if female[parent] else (father, "father")
            if child == parent or parents[child] not in (NONE, parent):
                child_name = repr(fact.args[0])
                reason = (
                    f"{child_name} would be their own parent"
                    if child == parent
                    else f"a second {noun} of {child_name} is stated"
                )
                raise MalformedFile(self._file, fact.line, reason)
            parents[child] = parent
        return father, mother

    def _iter_couples(
        self, father: IdArray, mother: IdArray, married: list[_PrologFact]
    ) -> Iterator[tuple[int, int, int | None]]:
        """Rows of partners and the line that states them as married, if any; a couple may occur several times."""
        for child in np.flatnonzero((father >= 0) & (mother >= 0)):
            yield int(father[child]), int(mother[child]), None
        for fact in married:
            one, other = (self._find_row(name, fact) for name in fact.args)
            yield one, other, fact.line

    def _build_spouses(self, couples: Iterable[tuple[int, int, int | None]]) -> IdArray:
        spouse = self._empty_column()
        for left, right, line in couples:
            for one, other in ((left, right), (right, left)):
                if one == other or spouse[one] not in (NONE, other):
                    person = list(self._rows)[one]
                    reason = f"{person!r} has children with, or is married to, two people or themselves"
                    raise MalformedFile(self._file, line, f"{reason}; a person may have at most one partner")
                spouse[one] = other
        return spouse

    def _parse_friendships(self, facts: list[_PrologFact]) -> Friendships:
        pairs = set()
        for fact in facts:
            one, other = sorted(self._find_row(name, fact) for name in fact.args)
            if one == other:
                raise MalformedFile(self._file, fact.line, f"{fact.args[0]!r} is stated as their own friend")
            pairs.add((one, other))
        return Friendships(np.array(sorted(pairs), np.int32).reshape(-1, 2))


_CLAUSE = re.compile(
    rf'^(?!(?:{"|".join(_ARGUMENT_COUNTS)})\()([a-z]\w*)\((?:[^".]|"(?:[^"\\]|\\.)*"|\.(?!\s|\Z))*+\.(?=\s|\Z)',
    re.MULTILINE,
)
_UNEQUAL, _OPERATOR = "\\=", re.compile(r"\s*(:-|\\=|,|\.)")


def _select_rules(text: str) -> Iterator[str]:
    """The clauses that relations are derived by; a predicate is needed if a needed clause names it."""
    clauses = [(match[1], match[0]) for match in _CLAUSE.finditer(text)]
    needed, names = set[str](), list(RELATIONS)
    while names:
        name = names.pop()
        if name not in needed:
            needed.add(name)
            own_clauses = (clause for head, clause in clauses if head == name)
            names += (word for clause in own_clauses for word in re.findall(r"\b([a-z]\w*)\(", clause))
    return (clause for name, clause in clauses if name in needed)


@dataclass(frozen=True, slots=True)
class PrologRule:
    """A clause: its head holds if all goals hold. The goal named \\= holds if its two arguments differ."""

    head: PrologTerm
    goals: tuple[PrologTerm, ...]


def parse_rule(text: str) -> PrologRule:
    """Parse a clause whose goals are relations and inequalities; PrologSyntaxError if it has anything else."""
    terms: list[PrologTerm] = []
    position, separator = 0, ""
    while separator != ".":
        value, position = parse_value(text, position)
        operator = _OPERATOR.match(text, position)
        if operator and operator[1] == _UNEQUAL:
            other, position = parse_value(text, operator.end())
            value, operator = PrologTerm(_UNEQUAL, (value, other)), _OPERATOR.match(text, position)
        if operator is None or operator[1] not in ((":-", ".") if not terms else (",", ".")):
            raise PrologSyntaxError(f"a comma or full stop is expected, not {_excerpt(text, position)}")
        if not isinstance(value, PrologTerm) or len(value.args) not in (1, 2):
            raise PrologSyntaxError(f"{_excerpt(text, 0)} has a goal that is neither a relation nor an inequality")
        terms.append(value)
        position, separator = operator.end(), operator[1]
    return PrologRule(terms[0], tuple(terms[1:]))


Row = tuple[str, ...]
Tuples = set[Row]


class RuleEvaluator:
    """Derives predicates from rules over given facts, as sets of tuples of strings."""

    def __init__(self, rules: Iterable[PrologRule], facts: Mapping[str, Tuples]) -> None:
        self._tuples = dict(facts)
        self._open: set[str] = set()
        self._rules: dict[str, list[PrologRule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.head.name, []).append(rule)

    def derive(self, name: str) -> Tuples:
        """All tuples of a predicate, none if no rule defines it; PrologSyntaxError if a rule needs its own head."""
        if name not in self._tuples:
            if name in self._open:
                raise PrologSyntaxError(f"the rules of {name} need {name} itself")
            self._open.add(name)
            self._tuples[name] = {row for rule in self._rules.get(name, ()) for row in self._derive_rule(rule)}
        return self._tuples[name]

    def _derive_rule(self, rule: PrologRule) -> Tuples:
        relations = [goal for goal in rule.goals if goal.name != _UNEQUAL]
        inequalities = [goal for goal in rule.goals if goal.name == _UNEQUAL]
        for goal in inequalities:
            # In Prolog, an inequality of a variable that no earlier goal binds fails.
            if not _variables(goal) <= set().union(*map(_variables, rule.goals[: rule.goals.index(goal)])):
                return set()
        names: tuple[str, ...] = ()
        rows: Tuples = {()}
        while relations:
            goal = next((goal for goal in relations if _variables(goal) & set(names)), relations[0])
            relations.remove(goal)
            names, rows = _join(names, rows, goal, self.derive(goal.name))
            ready = [goal for goal in inequalities if _variables(goal) <= set(names)]
            inequalities = [goal for goal in inequalities if goal not in ready]
            for read in [_make_reader(goal.args, names) for goal in ready]:
                rows = {row for row in rows if len(set(read(row))) > 1}
            later = _variables(rule.head).union(*map(_variables, (*relations, *inequalities)))
            kept = [index for index, name in enumerate(names) if name in later]
            names, rows = tuple(names[i] for i in kept), {tuple([row[i] for i in kept]) for row in rows}
        if not _variables(rule.head) <= set(names):
            raise PrologSyntaxError(f"a rule of {rule.head.name} leaves a variable of its head unbound")
        return set(map(_make_reader(rule.head.args, names), rows))


def _variables(term: PrologTerm) -> set[str]:
    return {name for name in map(_variable_name, term.args) if name}


def _variable_name(argument: PrologValue) -> str:
    return argument.name if isinstance(argument, PrologVariable) else ""


def _make_reader(arguments: Iterable[PrologValue], names: Sequence[str]) -> Callable[[Row], Row]:
    """A function from a row, whose columns are these variables, to the values of the arguments."""
    columns = [names.index(a.name) if isinstance(a, PrologVariable) else getattr(a, "name", a) for a in arguments]
    return lambda row: tuple([row[column] if isinstance(column, int) else str(column) for column in columns])


def _join(names: Row, rows: Tuples, goal: PrologTerm, tuples: Tuples) -> tuple[Row, Tuples]:
    """Extend rows, whose columns are these variables, by the tuples of a goal that agree with them."""
    free = [i for i, argument in enumerate(goal.args) if (name := _variable_name(argument)) and name not in names]
    known = [i for i in range(len(goal.args)) if i not in free]
    columns = {_variable_name(goal.args[i]): i for i in free}
    # The same variable twice takes the same value.
    repeated = [(i, last) for i in free if (last := columns[_variable_name(goal.args[i])]) != i]
    by_key: dict[Row, list[Row]] = {}
    for entry in tuples:
        if len(entry) == len(goal.args) and all(entry[i] == entry[last] for i, last in repeated):
            by_key.setdefault(tuple([entry[i] for i in known]), []).append(tuple([entry[i] for i in columns.values()]))
    read = _make_reader([goal.args[i] for i in known], names)
    return (*names, *columns), {(*row, *extension) for row in rows for extension in by_key.get(read(row), ())}
