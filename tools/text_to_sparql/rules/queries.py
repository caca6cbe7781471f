"""Writes a reading of a question as SPARQL and in plain English."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.text_to_sparql.rules.anchors import Anchor
from tools.text_to_sparql.rules.english import Comparison
from tools.text_to_sparql.rules.lexicon import GraphLexicon
from tools.text_to_sparql.rules.parse import ParsedQuestion, QuestionBranch, ValueRestriction
from tools.text_to_sparql.rules.paths import GraphPath, PatternLines, PatternWriter, describe_paths, entity_term
from tools.text_to_sparql.rules.scan import RelationMention

ANSWER_VARIABLE = "?answer"
PathChoice = Mapping[RelationMention, GraphPath]


@dataclass(frozen=True, slots=True)
class QueryDraft:
    """A query with its reading, and the pattern that must match something if the query is to answer."""

    sparql: str
    reading: str
    pattern: str
    cost: float = 0.0


@dataclass
class QueryComposer:
    """Composes one draft from a question and a choice of a path for each mention."""

    question: ParsedQuestion
    choice: PathChoice
    lexicon: GraphLexicon
    _writer: PatternWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = PatternWriter(self.lexicon.gender)

    def draft(self) -> QueryDraft | None:
        """The draft; None where this form cannot be asked with these paths."""
        match self.question.form:
            case "compare":
                return self._compare()
            case "exceeds":
                return self._exceeds()
            case "same":
                return self._same()
            case "whether":
                return self._whether()
            case "count":
                return self._count()
            case _:
                return self._select()

    # Parts.

    def _paths(self, leg: QuestionBranch) -> tuple[GraphPath, ...]:
        return tuple(self.choice[mention] for mention in (*leg.chain, *leg.asked))

    def _start(self, leg: QuestionBranch) -> tuple[str, PatternLines, str]:
        """The term that a leg starts at, the lines that bind it, and what it is called."""
        if isinstance(leg.start, Anchor):
            return entity_term(leg.start.entity.id), (), leg.start.entity.label
        return self._holder(leg.start)

    def _holder(self, value: ValueRestriction) -> tuple[str, PatternLines, str]:
        holder = self._writer.variable("holder")
        paths = tuple(self.choice[mention] for mention in value.relation)
        if value.anchor:
            lines = self._writer.follow(holder, paths, entity_term(value.anchor.entity.id))
        else:
            found = self._writer.variable("value")
            lines = self._writer.follow(holder, paths, found)
            lines += self._writer.called(found, (value.text,), paths[-1].hops[-1].value)
        names = " of the ".join(path.phrase for path in reversed(paths))
        return holder, lines, f"those whose {names} is {value.text}"

    def _lines(self, leg: QuestionBranch, end: str) -> tuple[PatternLines, str]:
        """The lines from a leg's start to the term `end`, and their reading."""
        start, before, name = self._start(leg)
        paths = self._paths(leg)
        return self._writer.follow(start, paths, end, before), describe_paths(paths, name)

    def _proof(self, leg: QuestionBranch, paths: tuple[GraphPath, ...]) -> PatternLines:
        start, before, _ = self._start(leg)
        return self._writer.follow(start, paths, self._writer.variable("v"), before)

    # Forms.

    def _select(self) -> QueryDraft | None:
        lines: list[str] = []
        readings = []
        for leg in self.question.legs:
            start, before, name = self._start(leg)
            paths = self._paths(leg)
            if not paths and not before:
                return None
            lines += self._writer.follow(start, paths, ANSWER_VARIABLE, before) if paths else ()
            lines += () if paths else (line.replace(start, ANSWER_VARIABLE) for line in before)
            readings.append(describe_paths(paths, name))
        pattern = " ".join(lines)
        return QueryDraft(
            f"SELECT DISTINCT {ANSWER_VARIABLE} WHERE {{ {pattern} }}", " that is also ".join(readings), pattern
        )

    def _count(self) -> QueryDraft | None:
        if len(self.question.legs) != 1:
            return None
        leg = self.question.legs[0]
        start, before, name = self._start(leg)
        paths = self._paths(leg)
        words = f"number of {describe_paths(paths, name)}"
        if not paths or (len(paths) == 1 and not before):
            counted = ANSWER_VARIABLE if paths else start
            pattern = " ".join(self._writer.follow(start, paths, ANSWER_VARIABLE, before))
            return QueryDraft(f"SELECT (COUNT(DISTINCT {counted}) AS ?count) WHERE {{ {pattern} }}", words, pattern)
        # Each of those who are asked about gets its own count, be it none.
        holder = "?holder" if len(paths) > 1 else start
        pattern = " ".join(self._writer.follow(start, paths[:-1], holder, before))
        last = " ".join(self._writer.follow(holder, paths[-1:], ANSWER_VARIABLE))
        return QueryDraft(
            f"SELECT {holder} (COUNT(DISTINCT {ANSWER_VARIABLE}) AS ?count) WHERE {{ {pattern} OPTIONAL {{ {last} }} }} "
            f"GROUP BY {holder}",
            words,
            pattern,
        )

    def _compare(self) -> QueryDraft | None:
        than = self.question.than
        if than is None or any(isinstance(leg.start, ValueRestriction) for leg in self.question.legs):
            return None
        if than.span:
            return self._compare_spans(than)
        paths = self._paths(self.question.legs[-1])
        counted = bool(paths) and paths[-1].hops[-1].value == "entity"
        if not paths or (counted and not than.counts):
            return None
        what = paths[-1].phrase + "".join(f" of the {path.phrase}" for path in reversed(paths[:-1]))
        if counted:
            return self._ranked(than, "COUNT(DISTINCT ?value)", f"{'most' if than.most else 'fewest'} {what}")
        return self._ranked(than, "MIN(?value)", f"{_superlative(than, paths[-1])} {what}")

    def _exceeds(self) -> QueryDraft | None:
        """Whether the first comes before or after the second."""
        than, legs = self.question.than, self.question.legs
        if than is None or than.span or len(legs) != 2 or not all(self._paths(leg) for leg in legs):
            return None
        last = self._paths(legs[0])[-1]
        if last.hops[-1].value == "entity":
            return None
        (one, first), (two, second) = self._lines(legs[0], "?one"), self._lines(legs[1], "?two")
        pattern = " ".join((*one, *two))
        words = f"whether {first} is {'after or above' if than.most else 'before or below'} {second}"
        return QueryDraft(f"ASK {{ {pattern} FILTER(?one {'>' if than.most else '<'} ?two) }}", words, pattern)

    def _compare_spans(self, than: Comparison) -> QueryDraft | None:
        """Which has the longest or shortest time between two dates, in days that every month has 31 of."""
        spans = [self.lexicon.plain(name)[:1] for name in than.span]
        if not all(spans):
            return None
        proofs: list[str] = []
        branches, names = [], []
        for leg in self.question.legs:
            start, _, name = self._start(leg)
            bridge = self._paths(leg)
            node = "?of" if bridge else "?item"
            lines = [f"VALUES ?item {{ {start} }}", *self._writer.follow("?item", bridge, node)]
            for span, date in zip(spans, ("?from", "?to"), strict=True):
                lines += self._writer.follow(node, span, date)
                proofs += self._proof(leg, (*bridge, *span))
            branches.append("{ " + " ".join(lines) + " }")
            names.append(name)
        days = " ".join(f"BIND(YEAR({v}) * 372 + MONTH({v}) * 31 + DAY({v}) AS {v}_day)" for v in ("?from", "?to"))
        order, end = ("DESC", "longest") if than.most else ("ASC", "shortest")
        return QueryDraft(
            f"SELECT ?item WHERE {{ {' UNION '.join(branches)} {days} }} ORDER BY {order}(?to_day - ?from_day) LIMIT 1",
            f"which of {' and '.join(names)} has the {end} time from {than.span[0]} to {than.span[1]}",
            " ".join(proofs),
        )

    def _ranked(self, than: Comparison, measure: str, what: str) -> QueryDraft:
        proofs: list[str] = []
        branches, names = [], []
        for leg in self.question.legs:
            start, _, name = self._start(leg)
            follow = " ".join(self._writer.follow("?item", self._paths(leg), "?value"))
            branches.append(f"{{ VALUES ?item {{ {start} }} {follow} }}")
            proofs += self._proof(leg, self._paths(leg))
            names.append(name)
        order = "DESC" if than.most else "ASC"
        return QueryDraft(
            f"SELECT ?item ({measure} AS ?measure) WHERE {{ {' UNION '.join(branches)} }} "
            f"GROUP BY ?item ORDER BY {order}(?measure) LIMIT 1",
            f"which of {' and '.join(names)} has the {what}",
            " ".join(proofs),
        )

    def _same(self) -> QueryDraft | None:
        if len(self.question.legs) < 2 or not all(self._paths(leg) for leg in self.question.legs):
            return None
        lines: list[str] = []
        proofs: list[str] = []
        readings = []
        for leg in self.question.legs:
            line, words = self._lines(leg, "?same")
            lines += line
            readings.append(words)
            proofs += self._proof(leg, self._paths(leg))
        return QueryDraft(
            f"ASK {{ {' '.join(lines)} }}", f"whether {' and '.join(readings)} share a value", " ".join(proofs)
        )

    def _whether(self) -> QueryDraft | None:
        if len(self.question.legs) != 2:
            return None
        leg, other = self.question.legs
        if not self._paths(leg):
            # "Is A the R of B?": the relation leads from the second to the first.
            leg, other = other, leg
        if not self._paths(leg) or self._paths(other) or isinstance(other.start, ValueRestriction):
            return None
        if self._paths(leg)[-1].hops[-1].value != "entity":
            return None
        lines, words = self._lines(leg, entity_term(other.start.entity.id))
        proof = " ".join(self._proof(leg, self._paths(leg)))
        return QueryDraft(f"ASK {{ {' '.join(lines)} }}", f"whether {words} is {other.start.entity.label}", proof)


def _superlative(than: Comparison, path: GraphPath) -> str:
    ends = ("earliest", "latest") if path.hops[-1].value == "date" else ("smallest", "greatest")
    return ends[than.most]
