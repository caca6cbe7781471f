"""Writes a reading of a question as SPARQL and in plain English."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.grammar.anchors import Anchor
from tools.grammar.english import Than
from tools.grammar.lexicon import Lexicon
from tools.grammar.parse import Leg, Question, Value
from tools.grammar.paths import Hop, Path, Pattern, Writer, entity_term, joined, reading
from tools.grammar.scan import Mention

ANSWER = "?answer"
Choice = Mapping[Mention, Path]


@dataclass(frozen=True, slots=True)
class Draft:
    """A query with its reading, and the pattern that must match something if the query is to answer."""

    sparql: str
    reading: str
    pattern: str
    cost: float = 0.0


@dataclass
class Composer:
    """Composes one draft from a question and a choice of a path for each mention."""

    question: Question
    choice: Choice
    lexicon: Lexicon
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self._writer = Writer(self.lexicon.gender)

    def draft(self) -> Draft | None:
        """The draft; None where this form cannot be asked with these paths."""
        match self.question.form:
            case "compare":
                return self._compare()
            case "same":
                return self._same()
            case "whether":
                return self._whether()
            case "count":
                return self._count()
            case _:
                return self._select()

    # Parts.

    def _paths(self, leg: Leg) -> tuple[Path, ...]:
        return tuple(self.choice[mention] for mention in (*leg.chain, *leg.asked))

    def _start(self, leg: Leg) -> tuple[str, tuple[str, ...], str]:
        """The term that a leg starts at, the lines that bind it, and what it is called."""
        if isinstance(leg.start, Anchor):
            return entity_term(leg.start.entity.id), (), leg.start.entity.label
        return self._holder(leg.start)

    def _holder(self, value: Value) -> tuple[str, tuple[str, ...], str]:
        holder = self._writer.variable("holder")
        paths = tuple(self.choice[mention] for mention in value.relation)
        if value.anchor:
            lines = self._follow(holder, joined(paths), entity_term(value.anchor.entity.id)).lines
        else:
            found = self._writer.variable("value")
            lines = (*self._follow(holder, joined(paths), found).lines, *self._writer.called(found, (value.text,)))
        return holder, lines, f"those whose {reading(paths[::-1], '').removesuffix(' of ')} is {value.text}"

    def _follow(self, start: str, hops: tuple[Hop, ...], end: str) -> Pattern:
        return self._writer.follow(start, hops, end)

    def _lines(self, leg: Leg, end: str) -> tuple[tuple[str, ...], str]:
        """The lines from a leg's start to the variable `end`, and their reading."""
        start, before, name = self._start(leg)
        paths = self._paths(leg)
        return (*before, *self._follow(start, joined(paths), end).lines), reading(paths, name)

    # Forms.

    def _select(self) -> Draft | None:
        lines: list[str] = []
        readings = []
        for leg in self.question.legs:
            start, before, name = self._start(leg)
            paths = self._paths(leg)
            if not paths and not before:
                return None
            follow = self._follow(start, joined(paths), ANSWER).lines if paths else ()
            lines += [line.replace(start, ANSWER) if not paths else line for line in (*before, *follow)]
            readings.append(reading(paths, name))
        pattern = " ".join(lines)
        return Draft(f"SELECT DISTINCT {ANSWER} WHERE {{ {pattern} }}", " that is also ".join(readings), pattern)

    def _count(self) -> Draft | None:
        if len(self.question.legs) != 1:
            return None
        leg = self.question.legs[0]
        start, before, name = self._start(leg)
        paths = self._paths(leg)
        if not paths:
            pattern, counted = " ".join(before), start
            return Draft(
                f"SELECT (COUNT(DISTINCT {counted}) AS ?count) WHERE {{ {pattern} }}", f"number of {name}", pattern
            )
        words = f"number of {reading(paths, name)}"
        if len(paths) == 1 and not before:
            pattern = self._follow(start, joined(paths), ANSWER).text
            return Draft(f"SELECT (COUNT(DISTINCT {ANSWER}) AS ?count) WHERE {{ {pattern} }}", words, pattern)
        # Each of those who are asked about gets its own count, be it none.
        holder = "?holder" if len(paths) > 1 else start
        lines = (*before, *(self._follow(start, joined(paths[:-1]), holder).lines if len(paths) > 1 else ()))
        last = self._follow(holder, paths[-1].hops, ANSWER).text
        pattern = " ".join(lines)
        return Draft(
            f"SELECT {holder} (COUNT(DISTINCT {ANSWER}) AS ?count) WHERE {{ {pattern} OPTIONAL {{ {last} }} }} "
            f"GROUP BY {holder}",
            words,
            pattern,
        )

    def _compare(self) -> Draft | None:
        than = self.question.than
        if than is None or any(isinstance(leg.start, Value) for leg in self.question.legs):
            return None
        if than.span:
            return self._compare_spans(than)
        paths = self._paths(self.question.legs[-1])
        if not paths:
            return None
        counted = paths[-1].hops[-1].value == "entity"
        if counted and not than.counts:
            return None
        measure = "COUNT(DISTINCT ?value)" if counted else "MIN(?value)"
        what = f"number of {paths[-1].phrase}" if counted else paths[-1].phrase
        return self._ranked(than, measure, f"{what}{_of(paths[:-1])}")

    def _compare_spans(self, than: Than) -> Draft | None:
        ends = [self.lexicon.plain(name) for name in than.span]
        if not all(ends):
            return None
        lines, names, proofs = [], [], []
        for leg in self.question.legs:
            start, _, name = self._start(leg)
            bridge = joined(self._paths(leg))
            node = "?of" if bridge else "?item"
            line = [f"VALUES ?item {{ {start} }}", *(self._follow("?item", bridge, node).lines if bridge else ())]
            line += [
                self._follow(node, end[0].hops, end_name).text
                for end, end_name in zip(ends, ("?from", "?to"), strict=True)
            ]
            lines.append("{ " + " ".join(line) + " }")
            proofs.append(self._lines_of(start, bridge, ends[1][0]))
            names.append(name)
        days = " ".join(f"BIND(YEAR({v}) * 372 + MONTH({v}) * 31 + DAY({v}) AS {v}_day)" for v in ("?from", "?to"))
        order = "DESC" if than.most else "ASC"
        return Draft(
            f"SELECT ?item WHERE {{ {' UNION '.join(lines)} {days} }} ORDER BY {order}(?to_day - ?from_day) LIMIT 1",
            f"which of {' and '.join(names)} has the {'longest' if than.most else 'shortest'} time "
            f"from {than.span[0]} to {than.span[1]}",
            " ".join(proofs),
        )

    def _lines_of(self, start: str, bridge: tuple[Hop, ...], last: Path) -> str:
        return self._follow(start, (*bridge, *last.hops), self._writer.variable("v")).text

    def _ranked(self, than: Than, measure: str, what: str) -> Draft:
        branches, proofs, names = [], [], []
        for leg in self.question.legs:
            start, _, name = self._start(leg)
            follow = self._follow("?item", joined(self._paths(leg)), "?value").text
            branches.append(f"{{ VALUES ?item {{ {start} }} {follow} }}")
            proofs.append(self._follow(start, joined(self._paths(leg)), self._writer.variable("v")).text)
            names.append(name)
        order, end = ("DESC", "greatest or latest") if than.most else ("ASC", "smallest or earliest")
        return Draft(
            f"SELECT ?item ({measure} AS ?measure) WHERE {{ {' UNION '.join(branches)} }} "
            f"GROUP BY ?item ORDER BY {order}(?measure) LIMIT 1",
            f"which of {' and '.join(names)} has the {end} {what}",
            " ".join(proofs),
        )

    def _same(self) -> Draft | None:
        if len(self.question.legs) < 2 or not all(self._paths(leg) for leg in self.question.legs):
            return None
        lines: list[str] = []
        proofs: list[str] = []
        readings = []
        for leg in self.question.legs:
            line, words = self._lines(leg, "?same")
            lines += line
            readings.append(words)
            proofs += self._lines(leg, self._writer.variable("v"))[0]
        return Draft(
            f"ASK {{ {' '.join(lines)} }}", f"whether {' and '.join(readings)} share a value", " ".join(proofs)
        )

    def _whether(self) -> Draft | None:
        first, *others = self.question.legs
        paths = self._paths(first)
        other = others[0] if len(others) == 1 else None
        if other is None or isinstance(other.start, Value):
            return None
        if not paths:
            # "Is A the R of B?": the relation leads from the second to the first.
            first, other, paths = other, first, self._paths(other)
        if not paths or not isinstance(other.start, Anchor) or self._paths(other):
            return None
        start, before, name = self._start(first)
        end = entity_term(other.start.entity.id)
        hops = joined(paths)
        proof = " ".join((*before, *self._follow(start, hops, self._writer.variable("v")).lines))
        pattern = " ".join((*before, *self._follow(start, hops, end).lines))
        return Draft(f"ASK {{ {pattern} }}", f"whether {reading(paths, name)} is {other.start.entity.label}", proof)


def _of(paths: tuple[Path, ...]) -> str:
    return "".join(f" of the {path.phrase}" for path in reversed(paths))
