"""Scores by groups of questions: by difficulty, by the size of the world, by the agreement of sources; and by source.

The papers' analyses over stored runs: PhantomWiki's Figures 3, 4, 7, 8 and 10 (difficulty, hops, answers, size), and
HumanIQ's Table 5 (source) and Figure 4 (agreement).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from showhow.db.database import Conflict, Database
from showhow.db.models import Run
from showhow.db.runs import comparisons
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.comparisons import AnswerSources, MetricVersion
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.evaluation.metrics import score_by_metric
from showhow.evaluation.statistics import cluster_mean
from showhow.reasoners.answers.normalization import answers_equal, measure_agreement

SIZE, AGREEMENT, SOURCE = "size", "agreement", "source"
GROUPINGS = {
    **dict.fromkeys(("kind", "hops", "difficulty", "answers"), ""),
    SIZE: "the articles of the world",
    AGREEMENT: "which of text, graph and model agree",
    SOURCE: "the answers of text, graph and model by themselves",
}
GROUP_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "id", "by", "group", "metric"), str),
    "questions": int,
    **dict.fromkeys(("share", "score", "score_low", "score_high", "chosen"), float),
}
"""The columns of a table by groups; `questions` are those of the group, `share` is their share of all of the run.

Of a source, `share` is its recall, `score` its precision, and `chosen` its prevalence: how often the final answer is
its answer, as HumanIQ's Table 5 has them.
"""
CountArticles = Callable[[str], int | None]
"""The number of articles of a world by its name; None if it is not known here."""


def list_group_rows(
    database: Database, comparison: RunComparison, by: str, count_articles: CountArticles
) -> list[dict[str, Any]]:
    """The rows of GROUP_COLUMNS, by run and group; Conflict for an unknown grouping."""
    if by not in GROUPINGS:
        raise Conflict(f"there is no grouping {by!r}; choose one of {', '.join(GROUPINGS)}")
    rows: list[dict[str, Any]] = []
    with database.read() as session:
        for run_id, label in comparison.labels.items():
            run, metric = comparisons.find_comparable_run(session, run_id), comparison.metric
            if by in (AGREEMENT, SOURCE):
                answers = comparisons.list_answer_sources(session, run_id, metric)
                groups = _by_source(answers, metric) if by == SOURCE else _by_agreement(answers)
            else:
                groups = _by_question(session, run, metric, by, count_articles)
            labels = {"run": label, "id": str(run_id), "by": by, "metric": metric.name}
            rows += [dict.fromkeys(GROUP_COLUMNS) | labels | row for row in groups]
    return rows


def _by_question(
    session: Any, run: Run, metric: MetricVersion, by: str, count_articles: CountArticles
) -> Iterator[dict[str, Any]]:
    figures = comparisons.load_question_figures(session, run.id, metric)
    if by == SIZE:
        count = count_articles(run.world)
        return _summarize((None if count is None else str(count), row.score) for row in figures)
    groups = comparisons.load_question_groups(session, run.id, by)
    return _summarize((groups.get(row.question), row.score) for row in figures)


def _by_agreement(answers: Sequence[AnswerSources]) -> Iterator[dict[str, Any]]:
    sources = ((measure_agreement({"text": row.text, "graph": row.graph, "model": row.model}), row) for row in answers)
    return _summarize((agreement.state, row.score) for agreement, row in sources)


def _summarize(scored: Any) -> Iterator[dict[str, Any]]:
    groups: defaultdict[str, list[float | None]] = defaultdict(list)
    for group, score in scored:
        groups[group if group is not None else "unknown"].append(score)
    total = sum(map(len, groups.values()))
    for group in sorted(groups, key=lambda name: (not name.isdecimal(), len(name) if name.isdecimal() else 0, name)):
        known = np.array([score for score in groups[group] if score is not None])
        row = {"group": group, "questions": len(groups[group]), "share": len(groups[group]) / total}
        yield row | _mean_cells(known)


def _mean_cells(scores: Any) -> dict[str, float]:
    if not len(scores):
        return {}
    cells = {"score": float(scores.mean())}
    if len(scores) > 1:
        interval = cluster_mean(scores, np.arange(len(scores))).interval
        cells |= {"score_low": max(interval.low, 0.0), "score_high": min(interval.high, 1.0)}
    return cells


def _by_source(answers: Sequence[AnswerSources], metric: MetricVersion) -> Iterator[dict[str, Any]]:
    for source in ("text", "graph", "model"):
        given = [(answer, row) for row in answers if (answer := getattr(row, source)) is not None]
        scores = [score_by_metric(answer, row.gold).get(metric.name) for answer, row in given if row.gold]
        right = np.array([float(score >= CORRECT_SCORE) for score in scores if score is not None])
        chosen = sum(row.answer is not None and answers_equal(answer, row.answer) for answer, row in given)
        share = {"share": len(given) / len(answers), "chosen": chosen / len(answers)} if answers else {}
        yield {"group": source, "questions": len(given), **share, **_mean_cells(right)}


def format_group_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as lines of text, under the name of their run."""
    run: UUID | str | None = None
    for row in rows:
        if row["id"] != run:
            run = row["id"]
            yield str(row["run"])
        chosen = "" if row["chosen"] is None else f", chosen {row['chosen']:.3f}"
        score = "     -" if row["score"] is None else f"{row['score']:6.3f}"
        low = "" if row["score_low"] is None else f" [{row['score_low']:.3f}, {row['score_high']:.3f}]"
        share = f"{row['questions']:6,} questions, share {row['share'] or 0:.3f}"
        yield f"  {row['group']:>12}  {score}{low}  {share}{chosen}"
