"""Scores by groups of questions: by difficulty, date, size of the world, agreement of sources ...; and by source.

The papers' analyses over stored runs: PhantomWiki's Figures 3, 4, 7, 8 and 10 (difficulty, hops, answers, size), and
HumanIQ's Table 5 (source), Figure 4 (agreement), Table 7 (date) and Table 9 (error).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import numpy as np

from showhow.db.database import Conflict, Database
from showhow.db.models import Run
from showhow.db.runs import comparisons
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.comparisons import AnswerSources, MetricVersion
from showhow.db.runs.error_categories import UNCATEGORIZED, load_error_categories
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.evaluation.metrics import score_by_metric
from showhow.evaluation.statistics import cluster_mean, wilson_interval
from showhow.reasoners.answers.dates_and_numbers import DateNotation, read_days, write_date
from showhow.reasoners.answers.normalization import answers_equal, measure_agreement

SIZE, AGREEMENT, SOURCE, DATE, TAG, ERROR = "size", "agreement", "source", "date", "tag", "error"
UNKNOWN = "unknown"
GROUPINGS = {
    **dict.fromkeys(("kind", "hops", "difficulty", "answers"), ""),
    DATE: "the year of its date; or until and after a cutoff",
    TAG: "each of its tags",
    ERROR: "the category that people gave a failure",
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
    database: Database, comparison: RunComparison, by: str, count_articles: CountArticles, cutoff: str = ""
) -> list[dict[str, Any]]:
    """The rows of GROUP_COLUMNS, by run and group; Conflict for an unknown grouping, or a cutoff that is no date."""
    if by not in GROUPINGS:
        raise Conflict(f"there is no grouping {by!r}; choose one of {', '.join(GROUPINGS)}")
    if cutoff and _read_period(cutoff) is None:
        raise Conflict(f"the cutoff {cutoff!r} is no date; write it as 2021-09-30, 2021-09 or 2021")
    rows: list[dict[str, Any]] = []
    with database.read() as session:
        for run_id, label in comparison.labels.items():
            run, metric = comparisons.find_comparable_run(session, run_id), comparison.metric
            if by in (AGREEMENT, SOURCE):
                answers = comparisons.list_answer_sources(session, run_id, metric)
                groups = _by_source(answers, metric) if by == SOURCE else _by_agreement(answers)
            else:
                groups = _by_question(session, run, metric, by, count_articles, cutoff)
            labels = {"run": label, "id": str(run_id), "by": by, "metric": metric.name}
            rows += [dict.fromkeys(GROUP_COLUMNS) | labels | row for row in groups]
    return rows


def _by_question(  # noqa: PLR0913, PLR0917 - a grouping, and what two of them need
    session: Any, run: Run, metric: MetricVersion, by: str, count_articles: CountArticles, cutoff: str
) -> Iterator[dict[str, Any]]:
    figures = comparisons.load_question_figures(session, run.id, metric)
    if by == SIZE:
        count = count_articles(run.world)
        return _summarize((None if count is None else str(count), row.score) for row in figures)
    if by == ERROR:
        categories = load_error_categories(session, run.id)
        wrong = (row for row in figures if row.is_right is False)
        return _summarize((categories.get(UUID(row.question), UNCATEGORIZED), row.score) for row in wrong)
    groups = comparisons.load_question_groups(session, run.id, by)
    if by == TAG:
        tagged = ((tag, row.score) for row in figures for tag in groups[row.question] or ["no tag"])
        return _summarize(tagged, questions=len(figures))
    if by == DATE:
        groups = {question: describe_period(text or "", cutoff) for question, text in groups.items()}
    order = [f"{period} {cutoff}" for period in _PERIODS]
    return _summarize(((groups.get(row.question), row.score) for row in figures), order)


_PERIODS = _UNTIL, _AROUND, _AFTER = "until", "before or after", "after"


def describe_period(text: str, cutoff: str) -> str:
    """Whether a date is after the last day of the cutoff or not; its year without one.

    A month or a year in which the cutoff is may be on both sides, and is a group of its own.
    """
    period, limit = _read_period(text), _read_period(cutoff)
    if period is None:
        return UNKNOWN
    if limit is None:
        return f"{date.fromordinal(period[0]).year:04}"
    if period[0] <= limit[1] < period[1]:
        return f"{_AROUND} {cutoff}"
    return f"{_AFTER if period[0] > limit[1] else _UNTIL} {cutoff}"


def _read_period(text: str) -> tuple[int, int] | None:
    """The first and the last day of a date as ordinals; None if it is none, or before the year 1."""
    # A year is 2021.0 where a column has numbers and gaps.
    text = write_date(text.strip().removesuffix(".0"), DateNotation.ISO)
    try:
        # In answers, the first day of a year stands for the year; that of a question is a day.
        day = date.fromisoformat(text[:10]).toordinal()
    except ValueError:
        period = read_days(text)
        return period if period is not None and period[0] > 0 else None
    return day, day


def _by_agreement(answers: Sequence[AnswerSources]) -> Iterator[dict[str, Any]]:
    sources = ((measure_agreement({"text": row.text, "graph": row.graph, "model": row.model}), row) for row in answers)
    return _summarize((agreement.state, row.score) for agreement, row in sources)


def _summarize(scored: Any, order: Sequence[str] = (), questions: int | None = None) -> Iterator[dict[str, Any]]:
    """The groups of (group, score), those of `order` first; `questions` of all, where one may be in several groups."""
    groups: defaultdict[str, list[float | None]] = defaultdict(list)
    for group, score in scored:
        groups[group if group is not None else UNKNOWN].append(score)
    total = questions or sum(map(len, groups.values()))
    ranks = {name: (rank, 0) for rank, name in enumerate(order, -len(order))}
    for group in sorted(
        groups, key=lambda name: (*ranks.get(name, (not name.isdecimal(), len(name) if name.isdecimal() else 0)), name)
    ):
        known = np.array([score for score in groups[group] if score is not None])
        row = {"group": group, "questions": len(groups[group]), "share": len(groups[group]) / total}
        yield row | _mean_cells(known)


def _mean_cells(scores: Any) -> dict[str, float]:
    if not len(scores):
        return {}
    cells = {"score": float(scores.mean())}
    if np.isin(scores, (0.0, 1.0)).all():
        # Small groups of right and wrong answers are near 0 or 1, where a standard error says nothing.
        interval = wilson_interval(int(scores.sum()), len(scores))
        cells |= {"score_low": interval.low, "score_high": interval.high}
    elif len(scores) > 1:
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
