"""Writes a reading of a question as SPARQL and in plain English."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from showhow.tools.text_to_sparql.lexicon import (
    GraphLexicon,
    GraphPath,
    PathHop,
    RelationMention,
    entity_term,
    predicate_term,
)
from showhow.tools.text_to_sparql.vocabulary import Anchor
from showhow.worlds import terms
from showhow.worlds.lexicon.english import GENDERED_NOUNS, Comparison
from showhow.worlds.source import Relation
from showhow.worlds.sparql_syntax import quote_literal

ANSWER_VARIABLE = "?answer"
MALE_LABELS = ("male", "man", "boy", "trans man")
FEMALE_LABELS = ("female", "woman", "girl", "trans woman")
MAX_UNSTAGED_HOPS = 5
PatternLines = tuple[str, ...]
PathChoice = Mapping[RelationMention, GraphPath]
_MONTHS = "January February March April May June July August September October November December".split()
_DATE_PARTS = {
    "year": "YEAR({0})",
    "month": f'STRBEFORE(STRAFTER("{"".join(f"{n} {name};" for n, name in enumerate(_MONTHS, 1))}", '
    'CONCAT(STR(MONTH({0})), " ")), ";")',
}
"""The expression for each of PARTS_OF_DATES of a date."""
_MIN_MONTH_LETTERS = 3
_ORDINAL_ENDING = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_SELECT_ONE = re.compile(r"SELECT DISTINCT \?(\w+) WHERE \{(.*)\}\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ValueRestriction:
    """Those whose relation leads to a value: an entity, or the words of a literal."""

    relations: tuple[RelationMention, ...]
    anchor: Anchor | None
    text: str


@dataclass(frozen=True, slots=True)
class QuestionBranch:
    """One start and the relations that the question joins to it, in the order they are followed."""

    start: Anchor | ValueRestriction
    chain: tuple[RelationMention, ...]
    trailing: tuple[RelationMention, ...] = ()
    """The relations that follow the chain and that the question says apart from it ("where was ... born")."""
    chooses_end: bool = False
    """Whether it chooses from what the chain leads to ("the father of E or the father of F", "which of E's sons")."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question's form (select, count, compare, exceeds, same, whether) and its legs."""

    form: str
    branches: tuple[QuestionBranch, ...]
    comparison: Comparison | None = None
    content_words: Mapping[int, str] = field(default_factory=dict, hash=False)
    """By place, the words that the relations of a reading must account for."""
    named: frozenset[Anchor | ValueRestriction] = frozenset()
    """The entities and values that the question names; a reading must start at or lead to all."""
    question_word: str | None = None
    answer_nouns: frozenset[int] = frozenset()
    """The places of nouns that say what has an entity as its value ("which films did E direct")."""
    class_nouns: Mapping[int, str] = field(default_factory=dict, hash=False)
    """By place, the stems of the nouns that only say what the compared, or the asked, are."""
    mentioned: frozenset[int] = frozenset()
    """The places of all words that speak of relations, also of those that a reading leaves out."""
    asks_for_person: bool = False
    """Whether it asks who."""
    differs: bool = False
    """Whether values are to differ where others are to be the same."""
    date_part: str | None = None
    """The one of PARTS_OF_DATES that it asks for; None for whole values."""


@dataclass(frozen=True, slots=True)
class QueryDraft:
    """A query with its reading, and the pattern that must match something if the query is to answer."""

    sparql: str
    reading: str
    pattern: str
    cost: float = 0.0
    unexplained: tuple[str, ...] = ()
    """The words that it does not account for."""


def to_iso_date(text: str) -> str | None:
    """A day in words, 16 October 1943 or October 16th, 1943, as graphs write it: 1943-10-16; None for anything else."""
    day, month, year, *more = [*text.lower().replace(",", " ").replace(" of ", " ").split(), "", "", ""]
    if not day[:1].isdecimal():
        day, month = month, day
    day = _ORDINAL_ENDING.sub("", day)
    letters = month.removesuffix(".")
    names = (name.lower() for name in _MONTHS)
    months = (n for n, name in enumerate(names, 1) if len(letters) >= _MIN_MONTH_LETTERS and name.startswith(letters))
    number = next(months, None)
    if any(more) or not (day.isdecimal() and year.isdecimal()) or number is None:
        return None
    return f"{int(year):04}-{number:02}-{int(day):02}"


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

        A long way is followed in stages that each forget how they came, or every route to every node would be walked.
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
                lines.append(_difference_filter(hop, nodes[place - hop.differs_from], nodes[place]))
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


def _difference_filter(hop: PathHop, start: str, end: str) -> str:
    if not hop.excluded:
        return f"FILTER({end} != {start})"
    return f"FILTER NOT EXISTS {{ {start} {'|'.join(atom.sparql for atom in hop.excluded)} {end} . }}"


def describe_paths(paths: tuple[GraphPath, ...], start: str) -> str:
    """The paths in plain English: "place of burial of the father of Ada"."""
    text = start
    for place, path in enumerate(paths):
        text = f"{'the ' if place else ''}{text}"
        gender = f"{path.hops[-1].gender} ones" if path.hops[-1].gender else "those"
        text = f"{gender} whose {path.phrase} is {text}" if path.inverted else f"{path.phrase} of {text}"
    return text


@dataclass
class QueryComposer:
    """Composes one draft from a question and a choice of a path for each mention."""

    question: ParsedQuestion
    choice: PathChoice
    lexicon: GraphLexicon
    _writer: PatternWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = PatternWriter(self.lexicon.gender_relation)

    def compose(self) -> QueryDraft | None:
        """The draft; None where this form cannot be asked with these paths."""
        form = self.question.form
        if form in ("compare", "exceeds", "same") and not self._compares_alike():
            return None
        if form in ("exceeds", "same", "whether"):
            return self._compose_test()
        if form == "compare":
            return self._compose_comparison()
        return self._compose_count() if form == "count" else self._compose_select()

    # Parts.

    def _compares_alike(self) -> bool:
        """Whether all legs end in the same relation, so that their values can be compared."""
        ends = {paths[-1].hops[-1] if (paths := self._branch_paths(leg)) else None for leg in self.question.branches}
        return len(ends) == 1

    def _branch_paths(self, leg: QuestionBranch) -> tuple[GraphPath, ...]:
        return tuple(self.choice[mention] for mention in (*leg.chain, *leg.trailing))

    def _start_term(self, leg: QuestionBranch) -> tuple[str, PatternLines, str]:
        """The term that a leg starts at, the lines that bind it, and what it is called."""
        if isinstance(leg.start, Anchor):
            return entity_term(leg.start.entity.id), (), leg.start.entity.label
        return self._restricted_start(leg.start)

    def _restricted_start(self, value: ValueRestriction) -> tuple[str, PatternLines, str]:
        holder = variable = self._writer.new_variable("holder")
        paths = tuple(self.choice[mention] for mention in value.relations)
        if value.anchor:
            lines = self._writer.follow_paths(holder, paths, entity_term(value.anchor.entity.id))
        else:
            variable = self._writer.new_variable("value")
            lines = self._writer.follow_paths(holder, paths, variable)
            names = (value.text, GENDERED_NOUNS.get(value.text, value.text))
            lines += self._writer.match_names(variable, names, paths[-1].hops[-1].value_type)
        if self.question.form == "whether":
            return variable, lines, value.text
        way = " of the ".join(path.phrase for path in reversed(paths))
        return holder, lines, f"those whose {way} is {value.text}"

    def _proof_lines(self, leg: QuestionBranch, paths: tuple[GraphPath, ...]) -> PatternLines:
        start, before, _ = self._start_term(leg)
        return self._writer.follow_paths(start, paths, self._writer.new_variable("v"), before)

    # Forms.

    def _compose_select(self) -> QueryDraft | None:
        lines: list[str] = []
        readings = []
        for leg in self.question.branches:
            start, before, name = self._start_term(leg)
            paths = self._branch_paths(leg)
            if not paths and not before:
                return None
            if leg.chooses_end:
                paths, more = paths[: len(leg.chain)], paths[len(leg.chain) :]
                lines += self._writer.follow_paths(ANSWER_VARIABLE, more, self._writer.new_variable())
                name += "".join(f" that has a {path.phrase}" for path in more)
            lines += self._writer.follow_paths(start, paths, ANSWER_VARIABLE, before) if paths else ()
            lines += () if paths else (line.replace(start, ANSWER_VARIABLE) for line in before)
            readings.append(describe_paths(paths, name))
        if not lines:
            return None
        answer, reading, part = ANSWER_VARIABLE, " that is also ".join(readings), self.question.date_part
        is_date = bool(paths) and paths[-1].hops[-1].value_type == "date"
        if part == "month" and not is_date:
            return None
        if part and is_date:
            # Where only the year is known, graphs write the start of its first day.
            lines += [f'FILTER(!STRENDS(STR({answer}), "-01-01T00:00:00Z"))'] * (part == "month")
            answer = f"({_DATE_PARTS[part].format(answer)} AS ?{part})"
            reading = f"{part} of the {reading}"
        pattern = " ".join(lines)
        return QueryDraft(f"SELECT DISTINCT {answer} WHERE {{ {pattern} }}", reading, pattern)

    def _compose_count(self) -> QueryDraft | None:
        draft = self._compose_select() if len(self.question.branches) == 1 else None
        if draft is None:
            return None
        leg = self.question.branches[0]
        start, before, _ = self._start_term(leg)
        paths = self._branch_paths(leg)
        draft = replace(draft, reading=f"number of {draft.reading}")
        if leg.chooses_end or len(paths) + bool(before) < 2:
            counted = f"SELECT (COUNT(DISTINCT {ANSWER_VARIABLE}) AS ?count) WHERE {{ {draft.pattern} }}"
            return replace(draft, sparql=counted)
        # Each of those who are asked about gets its own count, be it none.
        holder = "?holder" if len(paths) > 1 else start
        pattern = " ".join(self._writer.follow_paths(start, paths[:-1], holder, before))
        last = " ".join(self._writer.follow_paths(holder, paths[-1:], ANSWER_VARIABLE))
        select = f"SELECT {holder} (COUNT(DISTINCT {ANSWER_VARIABLE}) AS ?count)"
        where = f"WHERE {{ {pattern} OPTIONAL {{ {last} }} }} GROUP BY {holder}"
        return replace(draft, sparql=f"{select} {where}", pattern=pattern)

    def _compose_comparison(self) -> QueryDraft | None:
        than = self.question.comparison
        legs = self.question.branches
        is_choice = len(legs) > 1 or any(leg.chooses_end for leg in legs)
        if than is None or not is_choice or any(isinstance(leg.start, ValueRestriction) for leg in legs):
            return None
        paths = self._branch_paths(legs[-1])[len(legs[-1].chain) if legs[-1].chooses_end else 0 :]
        spans, most = [self.lexicon.direct_paths(name)[:1] for name in than.date_span], than.most
        if not spans and paths and self._is_other_date(than, paths[-1]):
            # Who was older at death is not who died first: ages are compared.
            birth = self.lexicon.direct_paths(than.measures[0])[:1] if than.compares_ages else ()
            spans, most = [birth, paths[-1:]], not than.most
        if not all(spans):
            return None
        if spans:
            names = " to ".join(path.phrase for span in spans for path in span)
            what = f"{'longest' if most else 'shortest'} time from {names}"
            return self._compose_ranking(most=most, measure="MIN(?value)", what=what, spans=spans)
        counted = bool(paths) and paths[-1].hops[-1].value_type == "entity"
        if not paths or (counted and not than.can_count) or paths[-1].hops[-1].value_type == "text":
            return None
        what = paths[-1].phrase + "".join(f" of the {path.phrase}" for path in reversed(paths[:-1]))
        is_date = paths[-1].hops[-1].value_type == "date"
        ends = ("fewest", "most") if counted else ("earliest", "latest") if is_date else ("smallest", "greatest")
        measure = "COUNT(DISTINCT ?value)" if counted else "MIN(?value)"
        return self._compose_ranking(most=than.most, measure=measure, what=f"{ends[than.most]} {what}")

    def _compose_test(self) -> QueryDraft | None:
        """Whether the legs have the same value, or the first comes before or after the second; of one, whether any."""
        form, than = self.question.form, self.question.comparison
        legs = sorted(self.question.branches, key=lambda leg: form == "whether" and not self._branch_paths(leg))
        ways = [self._branch_paths(leg) for leg in legs]
        if not ways or not all(ways if form != "whether" else ways[:1]):
            return None
        last = ways[0][-1]
        values, names = [f"?value{place}" for place in range(1, len(legs) + 1)], []
        lines: PatternLines = ()
        for place, leg in enumerate(legs):
            start, before, name = self._start_term(leg)
            if not ways[place]:
                if isinstance(leg.start, Anchor) and last.hops[-1].value_type != "entity":
                    return None
                values[place] = start
            lines += self._writer.follow_paths(start, ways[place], values[place], before)
            names.append(describe_paths(ways[place], name))
        pattern = " ".join(lines)
        if form == "exceeds":
            if than is None or than.date_span or len(legs) != 2 or self._is_other_date(than, last):
                return None
            if last.hops[-1].value_type in ("entity", "text"):
                return None
            ends = "MAX" if than.most else "MIN"
            test = f"{ends}({values[0]}) {'>' if than.most else '<'} {ends}({values[1]})"
            words = f" is {'after or above' if than.most else 'before or below'} ".join(names)
        else:
            equal = " && ".join(f"{values[0]} = {value}" for value in values[1:]) or "true"
            test = f"MAX(IF({equal}, 1, 0)) = {int(not self.question.differs)}"
            words = (" is " if form == "whether" else " and ").join(names)
            if form == "same":
                words += " share no value" if self.question.differs else " share a value"
        # One group of all solutions; without GROUP BY there would be one of none, too.
        where = f"WHERE {{ {pattern} BIND(1 AS ?group) }} GROUP BY ?group"
        return QueryDraft(f'SELECT (IF({test}, "yes", "no") AS ?answer) {where}', f"whether {words}", pattern)

    def _is_other_date(self, than: Comparison, path: GraphPath) -> bool:
        """Whether the path ends in a date that is none of what the comparison's own word compares."""
        end = path.hops[-1]
        measured = (own.hops[-1] for name in than.measures for own in self.lexicon.direct_paths(name))
        return end.value_type == "date" and not than.orders_dates and end not in measured

    def _compared_item(self, leg: QuestionBranch) -> tuple[PatternLines, str, tuple[GraphPath, ...]]:
        """The lines that bind ?item to what a comparison chooses, its name, and the paths on from there."""
        start, _, name = self._start_term(leg)
        paths = self._branch_paths(leg)
        if not leg.chooses_end:
            return (f"VALUES ?item {{ {start} }}",), name, paths
        chain, rest = paths[: len(leg.chain)], paths[len(leg.chain) :]
        return self._writer.follow_paths(start, chain, "?item"), describe_paths(chain, name), rest

    def _compose_ranking(
        self, *, most: bool, measure: str, what: str, spans: Sequence[tuple[GraphPath, ...]] = ()
    ) -> QueryDraft:
        """Which has the most or least; with spans, of the days from one date to the other, as if months had 31."""
        proofs: list[str] = []
        branches, names = [], []
        for leg in self.question.branches:
            (lines, name, paths), way = self._compared_item(leg), self._branch_paths(leg)
            if spans and paths[-1:] == spans[1]:
                paths, way = paths[:-1], way[:-1]
            ends = [(*paths, *span) for span in spans] or [paths]
            for end, value in zip(ends, ("?from", "?to") if spans else ("?value",), strict=True):
                lines = (*lines, *self._writer.follow_paths("?item", end, value))
            for span in spans or [()]:
                proofs += self._proof_lines(leg, (*way, *span))
            branches.append(f"{{ {' '.join(lines)} }}")
            names.append(name)
        days = [f"YEAR({date}) * 372 + MONTH({date}) * 31 + DAY({date})" for date in ("?to", "?from") if spans]
        value = f"BIND({' - '.join(f'({day})' for day in days)} AS ?value) " if days else ""
        # What lacks a value is compared with nothing.
        bound = f"{{ SELECT (1 AS ?bound) WHERE {{ {' '.join(proofs)} }} LIMIT 1 }}"
        measured = (
            f"SELECT (?item AS ?one) ({measure} AS ?measure) "
            f"WHERE {{ {bound} {' UNION '.join(branches)} {value}}} GROUP BY ?item"
        )
        # Of two with the same value none is chosen.
        best = (
            f"SELECT (SAMPLE(?one) AS ?item) (COUNT(?one) AS ?tied) ?measure WHERE {{ {measured} }} "
            f"GROUP BY ?measure ORDER BY {'DESC' if most else 'ASC'}(?measure) LIMIT 1"
        )
        return QueryDraft(
            f"SELECT ?item{'' if spans else ' ?measure'} WHERE {{ {{ {best} }} FILTER(?tied = 1) }}",
            f"which of {' and '.join(names)} has the {what}",
            " ".join(proofs),
        )


def generalize_query(sparql: str | None, entity: str, entities: Sequence[str]) -> str | None:
    """A query about one entity as one about several, with a column ?known for the entity that a row is about.

    None for a query whose answers would change: one that counts, sorts, limits, or does not name the entity.
    """
    match = None if sparql is None else _SELECT_ONE.fullmatch(sparql)
    node, nodes = terms.format_node(entity), [terms.format_node(other) for other in entities]
    if match is None or node is None or None in nodes:
        return None
    column, body = match[1], match[2]
    named = re.compile(rf"{re.escape(node)}(?![\w-])")
    if not named.search(body) or re.search(r"\?known\b|\b(SELECT|GROUP|LIMIT|ORDER|MINUS)\b", body):
        return None
    listed = " ".join(str(other) for other in nodes)
    return f"SELECT DISTINCT ?known ?{column} WHERE {{ VALUES ?known {{ {listed} }} {named.sub('?known', body)}}}"
