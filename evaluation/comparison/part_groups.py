"""What the parts of runs were: operators and chosen sources, facts beside the gold ones, mistakes of wrong answers.

Figures 5 and 6 of AtomR, and Tables 3 and 6 of GEEK, over stored runs. Gold facts are those of generated worlds.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from showhow.db.database import Conflict
from showhow.db.models import UNFINISHED_ENDINGS, Run
from showhow.db.runs import comparisons
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.comparisons import AttemptRow
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_traces
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.evaluation.comparison.fact_comparison import MISTAKES, FactComparison, compare_facts
from showhow.evaluation.comparison.gold_comparison import open_gold_reasoning
from showhow.oracles.reasoning import GoldReasoning
from showhow.reasoners.skills.skill import SkillSteps, read_reply
from showhow.reasoners.sources import SELECT_SOURCES
from showhow.runs.services import Services
from showhow.worlds.folder import WorldError

OPERATOR, CHOSEN, FACT, MISTAKE = "operator", "chosen-source", "fact", "mistake"
PART_GROUPINGS = {
    OPERATOR: "the operators of AtomR's operations",
    CHOSEN: "the sources that a method chose",
    FACT: "GEEK's facts beside the gold ones, in generated worlds",
    MISTAKE: "what went wrong in GEEK's wrong answers, in generated worlds",
}
PART_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "id", "by", "group", "metric"), str),
    **dict.fromkeys(("parts", "questions"), int),
    **dict.fromkeys(("share", "score"), float),
}
"""The columns of a table of parts; `questions` are those with such a part, and `score` is their mean.

`share` is that of all parts of the run; of missed facts that of all gold facts; of mistakes that of all wrong answers,
of which one may have several.
"""
FACT_GROUPS = {
    "matched": "gold facts that the run has",
    "missed": "gold facts that it has not",
    "wrong": "facts with other answers",
    "beside": "facts that the gold reasoning does not know",
}
FindGold = Callable[[str], GoldReasoning | None]


@dataclass(slots=True)
class _Tally:
    """Parts by group, with the scores of the questions that have them."""

    parts: Counter[str] = field(default_factory=Counter)
    scores: dict[str, list[float | None]] = field(default_factory=dict)
    wholes: Counter[str] = field(default_factory=Counter)
    """What a group is a share of; empty for all parts."""

    def add(self, groups: Mapping[str, int], score: float | None) -> None:
        self.parts.update(groups)
        for group, count in groups.items():
            self.scores.setdefault(group, []).extend([score] if count else [])

    def list_rows(self, order: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows of the groups, those of an order or else the most frequent first."""
        total = self.parts.total()
        for group in order or [name for name, _ in self.parts.most_common()]:
            scores = [score for score in self.scores.get(group, ()) if score is not None]
            whole = self.wholes[group] if self.wholes else total
            yield {
                "group": group,
                "parts": self.parts[group],
                "questions": len(self.scores.get(group, ())),
                "share": self.parts[group] / whole if whole else None,
                "score": fmean(scores) if scores else None,
            }


def list_part_rows(services: Services, comparison: RunComparison, by: str) -> list[dict[str, Any]]:
    """The rows of PART_COLUMNS, by run and group; Conflict if no run has such parts."""
    rows: list[dict[str, Any]] = []
    problem = f"no run has {PART_GROUPINGS[by]}"
    for run_id, label in comparison.labels.items():
        with services.database.read() as session:
            run = comparisons.find_comparable_run(session, run_id)
            attempts = list(comparisons.iterate_attempt_rows(session, [run_id], comparison.metric))
        if by in (FACT, MISTAKE):
            if run.reasoner != "geek":
                continue
            try:
                groups = list(_by_gold(services, run, attempts, by))
            except WorldError as error:
                problem = str(error)
                continue
        else:
            groups = list(_by_part(services, attempts, _list_operators if by == OPERATOR else _list_chosen))
        labels = {"run": label, "id": str(run_id), "by": by, "metric": comparison.metric.name}
        rows += [labels | row for row in groups]
    if not rows:
        raise Conflict(problem)
    return rows


def _load(services: Services, attempts: Sequence[AttemptRow]) -> Iterator[tuple[AttemptRow, TraceRecord]]:
    """The finished attempts with their traces, a few in memory at a time."""
    ended = {row.trace_id: row for row in attempts if row.trace_id and row.ending not in (None, *UNFINISHED_ENDINGS)}
    with services.database.read() as session:
        for record in load_traces(session, ended):
            yield ended[record.trace.id], record


def _by_part(
    services: Services, attempts: Sequence[AttemptRow], list_parts: Callable[[SkillSteps], Iterator[str]]
) -> Iterator[dict[str, Any]]:
    tally = _Tally()
    for row, record in _load(services, attempts):
        tally.add(Counter(list_parts(SkillSteps(record.steps))), row.score)
    return tally.list_rows(())


def _list_operators(steps: SkillSteps) -> Iterator[str]:
    operators = (steps.result(span).get("op") for span in steps.spans.values())
    return (str(operator) for operator in operators if operator not in (None, "DR"))


def _list_chosen(steps: SkillSteps) -> Iterator[str]:
    for step in steps.calls.get(SELECT_SOURCES.name, ()):
        yield from map(str, (read_reply(step) or {}).get("sources", ()))


def _by_gold(services: Services, run: Run, attempts: Sequence[AttemptRow], by: str) -> Iterator[dict[str, Any]]:
    find_gold = open_gold_reasoning(services, run.world)
    tally = _Tally()
    for row, record in _load(services, attempts):
        gold = find_gold(record.question.text)
        if gold is None:
            continue
        compared = compare_facts(record.steps, gold, record.trace.final_answer)
        if by == FACT:
            tally.add({name: getattr(compared, name) for name in FACT_GROUPS}, row.score)
        elif row.ending != "answered" or (row.score is not None and row.score < CORRECT_SCORE):
            tally.add(dict.fromkeys(_mistakes_of(row, compared), 1), row.score)
            tally.wholes.update(dict.fromkeys((*MISTAKES, NO_REPLY), 1))
    if by == FACT:
        gold_facts = tally.parts["matched"] + tally.parts["missed"]
        facts = tally.parts["matched"] + tally.parts["wrong"] + tally.parts["beside"]
        tally.wholes.update({"matched": gold_facts, "missed": gold_facts, "wrong": facts, "beside": facts})
    return tally.list_rows([*FACT_GROUPS] if by == FACT else [*MISTAKES, NO_REPLY])


NO_REPLY = "failure"
"""The group of runs that failed, and made no mistake of reasoning."""


def _mistakes_of(row: AttemptRow, compared: FactComparison) -> Sequence[str]:
    return (NO_REPLY,) if row.ending not in ("answered", "refused") else compared.mistakes


def format_part_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as lines of text, under the name of their run."""
    run = ""
    for row in rows:
        if row["id"] != run:
            run = row["id"]
            yield str(row["run"])
        share = "    -" if row["share"] is None else f"{row['share']:.3f}"
        score = "" if row["score"] is None else f", their score {row['score']:.3f}"
        yield f"  {row['group']:>13}  {row['parts']:6,}  share {share}  in {row['questions']:,} questions{score}"
