"""How far the people of a project agree: their answers, tools, steps, sources and ratings, and what they judged.

load_shared_work  reads what several people recorded of the same questions, as units of each of MEASURES
group_units       parts units by pair of people, by person, by kind of question, by week
measure_units     Krippendorff's alpha of units with what stands beside it
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import combinations
from typing import Any
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.person_answers import PERIODS
from showhow.db.review.shared_work import (
    SharedQuestion,
    SharedStep,
    SharedTrace,
    TraceLabel,
    iterate_shared_steps,
    list_shared_traces,
    list_trace_labels,
)
from showhow.db.types import dump_json, load_json
from showhow.db.unanswerable import read_unanswerable
from showhow.evaluation.agreement import (
    MeasuredAgreement,
    Scale,
    by_pair,
    gwet_ac1,
    jaccard_distance,
    masi_distance,
    measure_agreement,
    nominal,
    ordinal,
    read_alpha,
    sequence_distance,
    step_distance,
)
from showhow.evaluation.scoring.model_judges import SCALES
from showhow.evaluation.statistics import cohen_kappa
from showhow.reasoners.answers.normalization import group_equal_answers, normalize_answer
from showhow.tools.registry import tool_title

WITHOUT_KIND = "no kind"
NOT_DEFINED = "not defined"
NO_VARIATION = "all values are the same, so nothing can be expected by chance"


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared, and how far two values are apart."""

    title: str
    distance: str
    scale: Scale


def _list_label_measures() -> Iterator[tuple[str, Measure]]:
    for aspect, labels in SCALES.items():
        if None in labels.values():
            without = next(label for label, value in labels.items() if value is None)
            left_out = f"0 the same, 1 another; without '{without}'"
            yield aspect, Measure(f"Judged: {aspect}", left_out, nominal)
            counted = f"0 the same, 1 another; '{without}' is one"
            yield f"{aspect}_all", Measure(f"Judged: {aspect}, all labels", counted, nominal)
        else:
            yield aspect, Measure(f"Judged: {aspect}", f"ordinal: {', '.join(labels)}", ordinal)


MEASURES: Mapping[str, Measure] = {
    "answer": Measure("Final answer", "0 equal, 1 another", nominal),
    "answer_set": Measure("Final answer, as a set", "1 - Jaccard's index of its parts", by_pair(jaccard_distance)),
    "answer_masi": Measure("Final answer, as a set (MASI)", "1 - MASI of its parts", by_pair(masi_distance)),
    "tools": Measure("Tools in order", "Levenshtein over the longer length", by_pair(sequence_distance)),
    "steps": Measure(
        "Steps in order", "0 the same, ½ the same tool, 1 else, over the longer length", by_pair(step_distance)
    ),
    "sources": Measure("Sources read", "1 - Jaccard's index of articles, entities, triples", by_pair(jaccard_distance)),
    "ratings": Measure("Ratings of the same step", "ordinal, 1 to 5", ordinal),
    **dict(_list_label_measures()),
}
ANSWER_MEASURES = ("answer", "answer_set", "answer_masi")
PAIR, PERSON, KIND, WEEK = "pair", "person", "kind", "week"
GROUPINGS = {PAIR: "pair of people", PERSON: "person", KIND: "kind of question", WEEK: "week"}
FIGURE_GROUPINGS = (PAIR, KIND, WEEK)
"""Those whose groups have an alpha; a person has the mean distance to the others."""


@dataclass(frozen=True, slots=True)
class AgreementUnit:
    """A question, a step or an answer that several people gave a value, by person."""

    question: SharedQuestion
    subject: str
    """The step or the answer; empty for the question itself."""
    values: Mapping[str, Hashable]
    shown: Mapping[str, str]
    """The values as people read them."""
    traces: Mapping[str, UUID]
    """The trace of each value: their own, or the judged one."""
    at: datetime
    """When the last of them was given."""

    def keep(self, *people: str) -> "AgreementUnit":
        """The unit with the values of these people alone."""
        return replace(self, values={name: self.values[name] for name in people if name in self.values})

    def __str__(self) -> str:
        subject = f" ({self.subject})" if self.subject else ""
        values = "; ".join(f"{person}: {self.shown[person] or '-'}" for person in self.values)
        return f"{self.question.position}. {self.question.summary}{subject}  {values}"

    def to_json(self) -> dict[str, Any]:
        """The question, the values as people read them, and their traces."""
        return {
            "number": self.question.position,
            "question": self.question.summary,
            "kind": self.question.kind,
            "subject": self.subject or None,
            "values": {person: self.shown[person] for person in self.values},
            "traces": {person: str(self.traces[person]) for person in self.values},
        }


Units = Mapping[str, Sequence[AgreementUnit]]
"""The units of each of MEASURES that has any with two values."""


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """The agreement in a group of units, with AC1 and, between two people, kappa where values are equal or not."""

    group: str
    agreement: MeasuredAgreement
    ac1: float | None
    kappa: float | None

    def to_json(self) -> dict[str, Any]:
        """The figures, each None where it is not defined, with the reason."""
        reason = NO_VARIATION if self.agreement.alpha is None else None
        figures = asdict(self.agreement)
        return {"group": self.group or None, **figures, "not_defined": reason, "ac1": self.ac1, "kappa": self.kappa}


def format_figure(value: float, digits: int = 3) -> str:
    """The figure with so many digits; none is minus zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def format_figures(entry: GroupAgreement) -> str:
    """The figures of a group on one line."""
    measured = entry.agreement
    ends = (
        []
        if measured.interval is None
        else [format_figure(measured.interval.low), format_figure(measured.interval.high)]
    )
    alpha, reading = NOT_DEFINED, NO_VARIATION
    if measured.alpha is not None:
        alpha, reading = format_figure(measured.alpha), read_alpha(measured.alpha)
    parts = [
        f"{entry.group:<20} {alpha}{f' [{ends[0]}, {ends[1]}]' if ends else ''}",
        reading,
        f"{measured.same:.0%} the same",
        f"{measured.units:,} units, {measured.pairs:,} pairs, {measured.people:,} people",
        *(
            f"{label} {format_figure(value)}"
            for label, value in (("AC1", entry.ac1), ("kappa", entry.kappa))
            if value is not None
        ),
    ]
    return "  ".join(parts)


def measure_units(measure: str, units: Sequence[AgreementUnit], group: str = "") -> GroupAgreement | None:
    """The agreement of the units by a measure; None if no unit has two values."""
    values = [unit.values for unit in units]
    scale = MEASURES[measure].scale
    agreement = measure_agreement(values, scale)
    if agreement is None:
        return None
    ac1 = kappa = None
    if scale is nominal and agreement.alpha is not None:
        ac1 = gwet_ac1(values, len({value for unit in values for value in unit.values()}))
        if agreement.people == 2:
            first, second = agreement.by_person
            both = [unit for unit in values if len(unit) > 1]
            kappa = cohen_kappa([unit[first] for unit in both], [unit[second] for unit in both])
    return GroupAgreement(group, agreement, ac1, kappa)


def group_units(
    units: Sequence[AgreementUnit], grouping: str, zone: tzinfo = UTC
) -> dict[str, Sequence[AgreementUnit]]:
    """Part the units by one of GROUPINGS, in order; weeks begin in that time zone. Groups without a pair are left out.

    The group of a person has their values beside those of all others.
    """
    groups: dict[str, list[AgreementUnit]] = defaultdict(list)
    for unit in units:
        if len(unit.values) < 2:
            continue
        if grouping == PAIR:
            for pair in combinations(sorted(unit.values), 2):
                groups[" and ".join(pair)].append(unit.keep(*pair))
        elif grouping == PERSON:
            for name in unit.values:
                groups[name].append(unit)
        elif grouping == WEEK:
            groups[f"{PERIODS['week'](unit.at.astimezone(zone).date()):%Y-%m-%d}"].append(unit)
        else:
            groups[unit.question.kind or WITHOUT_KIND].append(unit)
    return {group: groups[group] for group in sorted(groups)}


def measure_groups(
    measure: str, units: Sequence[AgreementUnit], grouping: str, zone: tzinfo = UTC
) -> list[GroupAgreement]:
    """The agreement in each group of the units."""
    measured = (measure_units(measure, part, group) for group, part in group_units(units, grouping, zone).items())
    return [entry for entry in measured if entry is not None]


def sort_by_distance(measure: str, units: Sequence[AgreementUnit]) -> list[tuple[float, AgreementUnit]]:
    """The units with two values or more, each with the mean distance of its values, the largest first."""
    shared = [unit for unit in units if len(unit.values) > 1]
    counts: dict[Hashable, int] = defaultdict(int)
    for unit in shared:
        for value in unit.values.values():
            counts[value] += 1
    distance = MEASURES[measure].scale(counts)

    def measure_unit(unit: AgreementUnit) -> float:
        apart = [distance(*pair) for pair in combinations(unit.values.values(), 2)]
        return sum(apart) / len(apart)

    return sorted(((measure_unit(unit), unit) for unit in shared), key=lambda entry: (-entry[0], entry[1].question[1]))


def load_shared_work(database: Database, project: Project) -> Units:
    """The units of each measure that has any, read in three queries; Conflict if the person may not see them."""
    answer_format = AnswerFormat.from_json(project.answer_format)
    with database.read() as session:
        shared = list_shared_traces(session, project.id)
        steps = _group_steps(iterate_shared_steps(session, project.id), {trace.id for trace in shared})
        labels = list_trace_labels(session, project.id, SCALES)
    by_question: dict[UUID, list[SharedTrace]] = defaultdict(list)
    for trace in shared:
        by_question[trace.question.id].append(trace)
    units: dict[str, list[AgreementUnit]] = {measure: [] for measure in MEASURES}
    for traces in by_question.values():
        if answer_format.kind != AnswerKind.NONE:
            answers = {trace.person: trace.answer for trace in traces}
            sets = read_answers(answers, is_text=answer_format.kind == AnswerKind.TEXT)
            for measure in ANSWER_MEASURES:
                units[measure].append(_make_unit(traces, sets, answers))
        calls = {trace.person: steps.get(trace.id, _TraceSteps((), (), {})) for trace in traces}
        tools = {person: tuple(tool for tool, _ in made.calls) for person, made in calls.items()}
        shown = {person: " → ".join(map(tool_title, named)) for person, named in tools.items()}
        units["tools"].append(_make_unit(traces, tools, shown))
        written = {person: "; ".join(map(_describe_call, made.calls)) for person, made in calls.items()}
        units["steps"].append(_make_unit(traces, {person: made.calls for person, made in calls.items()}, written))
        read = {person: frozenset(made.sources) for person, made in calls.items()}
        named_sources = {
            person: "; ".join(" ".join(source) for source in made.sources) for person, made in calls.items()
        }
        units["sources"].append(_make_unit(traces, read, named_sources))
        units["ratings"] += _list_rated_steps(traces, calls)
    for measure, unit in _list_label_units(labels):
        units[measure].append(unit)
    return {measure: kept for measure, kept in units.items() if any(len(unit.values) > 1 for unit in kept)}


def _make_unit(
    traces: Sequence[SharedTrace], values: Mapping[str, Hashable], shown: Mapping[str, str], subject: str = ""
) -> AgreementUnit:
    own = {trace.person: trace.id for trace in traces}
    return AgreementUnit(traces[0].question, subject, values, shown, own, max(trace.submitted_at for trace in traces))


def read_answers(answers: Mapping[str, str], *, is_text: bool) -> dict[str, frozenset[str]]:
    """The answers to one question as sets of their parts; answers that are equal have the same set, others another.

    Texts are equal as on the Review page. The parts of a JSON value are the fields of an object or the items of a list.
    """
    sets: dict[str, frozenset[str]] = {}
    texts = {name: answer for name, answer in answers.items() if is_text or read_unanswerable(answer)}
    taken: dict[frozenset[str], int] = defaultdict(int)
    for group in group_equal_answers({text: text for text in texts.values()}):
        parts = normalize_answer(group[0])
        taken[parts] += 1
        # Different people of one name are told apart, though their answers have the same parts.
        named = parts if taken[parts] == 1 else frozenset(f"{part} ({taken[parts]})" for part in parts)
        sets |= {name: named for name, text in texts.items() if text in group}
    return sets | {name: _list_json_parts(answer) for name, answer in answers.items() if name not in texts}


def _list_json_parts(answer: str) -> frozenset[str]:
    try:
        value = load_json(answer)
    except ValueError:
        return frozenset({answer})
    if isinstance(value, dict) and value:
        return frozenset(f"{name}: {dump_json(part)}" for name, part in value.items())
    return frozenset(map(dump_json, value)) if isinstance(value, list) and value else frozenset({dump_json(value)})


@dataclass(frozen=True, slots=True)
class _TraceSteps:
    """What is compared of the steps of a trace."""

    calls: tuple[tuple[str, str], ...]
    """Tools and arguments."""
    sources: tuple[tuple[str, ...], ...]
    ratings: Mapping[tuple[str, str], int]


def _group_steps(steps: Iterator[SharedStep], trace_ids: set[UUID]) -> dict[UUID, _TraceSteps]:
    """The steps of these traces; their data is not kept."""
    calls: dict[UUID, list[tuple[str, str]]] = defaultdict(list)
    sources: dict[UUID, dict[tuple[str, ...], None]] = defaultdict(dict)
    ratings: dict[UUID, dict[tuple[str, str], int]] = defaultdict(dict)
    for step in steps:
        if step.trace_id not in trace_ids:
            continue
        call = (step.tool, dump_json(dict(sorted(step.arguments.items()))))
        calls[step.trace_id].append(call)
        sources[step.trace_id].update(dict.fromkeys(list_sources(step.data or {})))
        if step.rating is not None:
            ratings[step.trace_id][call] = step.rating
    return {
        trace_id: _TraceSteps(tuple(made), tuple(sources[trace_id]), ratings.get(trace_id, {}))
        for trace_id, made in calls.items()
    }


def list_sources(data: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The articles, entities and triples that an observation tells of; what a search lists is not read yet."""
    match data:
        case {"title": str(title), "sentences": list()}:
            yield ("article", str(data.get("address") or title))
        case {"entity": str(entity), "relation": str(relation), "values": list(values), "direction": direction}:
            for value in values:
                end = str(value.get("id", value.get("literal")))
                yield ("triple", *((entity, relation, end) if direction == "head" else (end, relation, entity)))
        case {"entity": str(entity), "relations": list()}:
            yield ("entity", entity)
        case {"labels": list(labels)}:
            yield from (("entity", str(label["id"])) for label in labels)
        case {"columns": list(), "rows": list(rows)}:
            cells = (cell for row in rows for cell in row if cell is not None)
            yield from (("entity", str(cell["value"])) for cell in cells if cell.get("kind") == "entity")


def _describe_call(call: tuple[str, str]) -> str:
    tool, arguments = call
    return f"{tool_title(tool)} {', '.join(map(str, load_json(arguments).values()))}"


def _list_rated_steps(traces: Sequence[SharedTrace], calls: Mapping[str, _TraceSteps]) -> Iterator[AgreementUnit]:
    """The steps that several people took and rated."""
    rated: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for person, made in calls.items():
        for call, rating in made.ratings.items():
            rated[call][person] = rating
    for call, values in rated.items():
        if len(values) > 1:
            shown = {person: str(rating) for person, rating in values.items()}
            yield _make_unit(traces, values, shown, _describe_call(call))


def _list_label_units(labels: Sequence[TraceLabel]) -> Iterator[tuple[str, AgreementUnit]]:
    """The answers that people judged, for each aspect; a label without a value is once left out and once counted."""
    judged: dict[tuple[str, UUID], list[TraceLabel]] = defaultdict(list)
    for label in labels:
        judged[label.aspect, label.trace_id].append(label)
    for (aspect, trace_id), given in judged.items():
        names = list(SCALES[aspect])
        shown = {label.person: label.value for label in given if label.value in names}
        at = max(label.at for label in given)
        places = {person: names.index(value) for person, value in shown.items()}
        unit = AgreementUnit(given[0].question, "its answer", places, shown, dict.fromkeys(shown, trace_id), at)
        if f"{aspect}_all" in MEASURES:
            yield f"{aspect}_all", unit
        yield aspect, unit.keep(*(person for person, value in shown.items() if SCALES[aspect][value] is not None))
