"""Runs side by side: the figures of each question in a run, and the questions of two runs, filtered, page by page.

The score of a question in a run is the mean over its finished repetitions, where one that ended without an answer
counts as 0; it is unknown while an answer has no score by the metric. A question is right if most of them are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Float, Integer, Select, String, Subquery, and_, case, cast, false, func, or_, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from showhow.db.database import RowNotFound
from showhow.db.models import UNFINISHED_ENDINGS, Attempt, Judgement, Question, Run, Score, Trace
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.error_categories import ERROR_CATEGORY_ASPECT
from showhow.db.runs.verifications import VERIFICATION_NAME
from showhow.db.unanswerable import CANNOT_BE_ANSWERED, gold_says_unanswerable, says_unanswerable

IMPORTED_RUN_NAME = "imported"
"""The name of runs that were read from evaluation logs."""
COMPARABLE_RUN_NAMES = (VERIFICATION_NAME, IMPORTED_RUN_NAME)
CLUSTER_FIELDS = ("universe", "instance", "article", "template")
"""Fields of a question's details whose equal values make questions depend on one another, the widest one first."""
VERDICTS = ("gain", "loss", "both wrong", "both right", CANNOT_BE_ANSWERED, "failed", "refused", "missing")
"""gain: the run is right and the baseline wrong; missing: one has no score; the others: in one of the two."""
_BATCH_SIZE = 500
ORDERS = ("gains", "losses", "asked")
"""The largest gain first, the largest loss first, or as in the project."""


@dataclass(frozen=True, slots=True)
class MetricVersion:
    """A metric by its name and version."""

    name: str
    version: int


class QuestionFigures(NamedTuple):
    """What a run made of one question."""

    question: str
    """The question's id as the database writes it: reading a million ids as UUIDs takes seconds."""
    attempts: int
    score: float | None
    """None while an answer has no score."""
    is_right: bool | None
    cost: float | None
    seconds: float
    """US dollars and seconds of an answer; the cost is None if that of one of them is unknown."""


class RunScores(NamedTuple):
    """The scores that a run has by one version of a metric."""

    run_id: UUID
    metric: str
    version: int
    scores: int


@dataclass(frozen=True, slots=True)
class ComparisonFilter:
    """Which questions are listed; None and "" choose all."""

    verdict: str | None = None
    kind: str | None = None
    hops: str | None = None
    sources: str | None = None
    """The needed sources as `list_question_values` returns them."""
    text: str = ""


class ComparedQuestion(NamedTuple):
    """A question with its score in two runs; None if it is unknown there."""

    question_id: UUID
    text: str
    kind: str | None
    hops: str | None
    sources: str | None
    gold: list[dict[str, Any]]
    score: float | None
    baseline_score: float | None


class AttemptRow(NamedTuple):
    """One answer of a run with its question, its score by the chosen metric and what it used."""

    run_id: UUID
    question_id: UUID
    repetition: int
    trace_id: UUID | None
    ending: str | None
    answer: str | None
    failure: str | None
    score: float | None
    model_calls: int
    input_tokens: int | None
    output_tokens: int | None
    token_bound: int | None
    """The most input and output tokens; None if they are unknown."""
    cost: float | None
    cost_bound: float | None
    """The most that it can have cost; None if a price is unknown."""
    seconds: float | None
    source_id: str | None
    dataset: str | None
    split: str | None
    kind: str | None
    text: str
    gold: list[dict[str, Any]]
    type: str | None
    difficulty: str | None
    """The type and the difficulty, or level, in the record of the data set."""
    hops: str | None
    needs: str | None
    """The needed sources as `list_question_values` returns them."""
    retrievals: str | None
    error_category: str | None


class ScoredAttempt(NamedTuple):
    """An attempt with its scores by all metrics."""

    attempt: Attempt
    scores: list[Score]


class AnswerSources(NamedTuple):
    """An answer with those of the single sources, for its confidence."""

    question_id: UUID
    answer: str | None
    text: str | None
    graph: str | None
    model: str | None
    score: float | None
    gold: Sequence[dict[str, Any]] = ()


def list_comparable_runs(session: Session, project_id: UUID | None = None) -> list[Run]:
    """List the runs over many questions, of one project or of all, the latest first."""
    runs = session.scalars(
        select(Run).where(Run.name.in_(COMPARABLE_RUN_NAMES)).order_by(Run.started_at.desc(), Run.id.desc())
    )
    return [run for run in runs if project_id is None or run.spec.project_id == project_id]


def find_comparable_run(session: Session, run_id: UUID) -> Run:
    """Find a run over many questions by its id."""
    run = session.get(Run, run_id)
    if run is None or run.name not in COMPARABLE_RUN_NAMES:
        raise RowNotFound(f"there is no run {run_id}; `showhow runs list` lists those that can be compared")
    return run


def iterate_scored_attempts(session: Session, run_id: UUID) -> Iterator[ScoredAttempt]:
    """Load the attempts of a run in order, few in memory at a time."""
    ids = list(session.scalars(select(Attempt.id).where(Attempt.run_id == run_id).order_by(Attempt.position)))
    for start in range(0, len(ids), _BATCH_SIZE):
        batch = ids[start : start + _BATCH_SIZE]
        scores: dict[UUID, list[Score]] = {}
        for score in session.scalars(select(Score).where(Score.attempt_id.in_(batch)).order_by(Score.metric)):
            scores.setdefault(score.attempt_id, []).append(score)
        attempts = session.scalars(select(Attempt).where(Attempt.id.in_(batch)).order_by(Attempt.position)).all()
        for attempt in attempts:
            yield ScoredAttempt(attempt, scores.get(attempt.id, []))
        session.expunge_all()


def list_run_scores(session: Session, run_ids: Sequence[UUID]) -> list[RunScores]:
    """List which metrics the answers of these runs are scored by, with the number of scores."""
    rows = session.execute(
        select(Score.run_id, Score.metric, Score.metric_version, func.count())
        .where(Score.run_id.in_(run_ids))
        .group_by(Score.run_id, Score.metric, Score.metric_version)
        .order_by(Score.metric, Score.metric_version)
    )
    return [RunScores(*row) for row in rows]


class RunSize(NamedTuple):
    """How many answers a run asks for, how many it has finished, and their mean score."""

    attempts: int
    ended: int
    score: float | None


def list_run_sizes(session: Session, run_ids: Sequence[UUID], metric: MetricVersion) -> dict[UUID, RunSize]:
    """The size of each of these runs that has attempts, and its score by the metric."""
    is_finished = Attempt.ending.not_in(UNFINISHED_ENDINGS)
    score = func.avg(case((is_finished, _attempt_score())))
    rows = (
        select(Attempt.run_id, func.count(), func.count(case((is_finished, 1))), score)
        .outerjoin(Score, _is_score_by(metric))
        .where(Attempt.run_id.in_(run_ids))
        .group_by(Attempt.run_id)
    )
    return {run_id: RunSize(*figures) for run_id, *figures in session.execute(rows)}


def list_datasets(session: Session, run_id: UUID) -> list[str | None]:
    """List the data sets that the run's questions are of; None for questions that name none."""
    rows = select(Question.dataset).join(Attempt, Attempt.question_id == Question.id).where(Attempt.run_id == run_id)
    return list(session.scalars(rows.distinct().order_by(Question.dataset), execution_options=WITH_REMOVED))


def count_ended_attempts(session: Session, run_ids: Sequence[UUID]) -> list[tuple[UUID, int]]:
    """Count the ended attempts of each of these runs."""
    rows = select(Attempt.run_id, func.count()).where(Attempt.run_id.in_(run_ids), Attempt.state == "ended")
    rows = rows.group_by(Attempt.run_id).order_by(Attempt.run_id)
    return [(run_id, count) for run_id, count in session.execute(rows)]


def _attempt_score() -> ColumnElement[float | None]:
    """The score of an attempt: 0 without an answer, unknown for an answer without a score."""
    # A score is also stored for an empty answer of an imported log.
    return func.coalesce(Score.value, case((Attempt.ending != "answered", 0.0)))


def _is_score_by(metric: MetricVersion) -> ColumnElement[bool]:
    """Whether a score is that of the joined attempt by this metric."""
    is_version = and_(Score.metric == metric.name, Score.metric_version == metric.version)
    return and_(Score.attempt_id == Attempt.id, is_version)


def _select_figures(run_ids: Sequence[UUID], metric: MetricVersion) -> Subquery:
    """The figures of each question in these runs, in one pass: columns NAME_0 for the first run, NAME_1 for the second.

    One pass, since a database may join the figures of two runs anew for each question.
    """
    value = _attempt_score()
    columns: list[ColumnElement[Any]] = [Attempt.question_id.label("question_id")]
    for place, run_id in enumerate(run_ids):
        is_run = Attempt.run_id == run_id
        # Counts attempts that are scored, so that a mean over only some of the answers is never shown.
        total, scored = func.count(case((is_run, 1))), func.count(case((is_run, value)))
        right = func.count(case((is_run & (value >= CORRECT_SCORE), 1)))
        is_scored = (total > 0) & (scored == total)
        columns += [
            case((is_scored, func.sum(case((is_run, value))) / total)).label(f"score_{place}"),
            case((is_scored, cast(2 * right > total, Integer))).label(f"is_right_{place}"),
        ]
    return (
        select(
            *columns,
            func.max(cast(Attempt.ending == "refused", Integer)).label("refused"),
            func.max(cast(Attempt.ending.not_in(("answered", "refused")), Integer)).label("failed"),
        )
        .select_from(Attempt)
        .outerjoin(Score, _is_score_by(metric))
        .where(Attempt.run_id.in_(run_ids), Attempt.ending.not_in(UNFINISHED_ENDINGS))
        .group_by(Attempt.question_id)
        .subquery()
    )


def load_question_figures(session: Session, run_id: UUID, metric: MetricVersion) -> list[QuestionFigures]:
    """Load what the run made of each question that it has finished, in no order."""
    value = _attempt_score()
    total, scored = func.count(), func.count(value)
    right = func.count(case((value >= CORRECT_SCORE, 1)))
    unknown_costs = func.sum(cast((Attempt.model_calls > 0) & Attempt.cost.is_(None), Integer))
    rows = session.execute(
        select(
            cast(Attempt.question_id, String),
            total,
            case((scored == total, func.sum(value) / total)),
            case((scored == total, cast(2 * right > total, Integer))),
            case((unknown_costs == 0, func.coalesce(func.sum(Attempt.cost), 0.0) / total)),
            func.coalesce(func.sum(Attempt.seconds), 0.0) / total,
        )
        .select_from(Attempt)
        .outerjoin(Score, _is_score_by(metric))
        .where(Attempt.run_id == run_id, Attempt.ending.not_in(UNFINISHED_ENDINGS))
        .group_by(Attempt.question_id)
    )
    return [
        QuestionFigures(question, count, score, None if is_right is None else bool(is_right), cost, seconds)
        for question, count, score, is_right, cost, seconds in rows
    ]


def load_cluster_fields(session: Session, run_id: UUID) -> dict[str, tuple[str | None, ...]]:
    """Load the values of CLUSTER_FIELDS for each question of the run, by its id as in QuestionFigures."""
    is_asked = (Attempt.question_id == Question.id) & (Attempt.run_id == run_id) & (Attempt.repetition == 1)
    rows = select(cast(Question.id, String), *map(_detail, CLUSTER_FIELDS)).join(Attempt, is_asked)
    return {question: tuple(fields) for question, *fields in session.execute(rows, execution_options=WITH_REMOVED)}


def _detail(name: str) -> ColumnElement[Any]:
    """A value of a question's details as text: JSON for a list."""
    return cast(Question.details[name].as_string(), String)


def _hops() -> ColumnElement[Any]:
    """The number of hops as text: as the question says, or else the length of its decomposition."""
    length = func.nullif(func.json_array_length(Question.decomposition), 0)
    return func.coalesce(_detail("hops"), cast(length, String))


# The kind is the group that figures count a question in (`group_of_question`).
_GROUP = case((gold_says_unanswerable(Question.gold_answers), CANNOT_BE_ANSWERED), else_=Question.kind)
_VALUES = {"kind": _GROUP, "hops": _hops(), "sources": _detail("needs")}
_GROUPS = _VALUES | {
    "difficulty": func.coalesce(_detail("difficulty"), _detail("level")),
    "answers": cast(func.json_array_length(Question.gold_answers), String),
    "date": _detail("date"),
    "tag": Question.tags,
}


def load_question_groups(session: Session, run_id: UUID, name: str) -> dict[str, Any]:
    """Load a value of _GROUPS for each question of the run, by its id as in QuestionFigures: tags are a list."""
    rows = select(cast(Question.id, String), _GROUPS[name]).join(Attempt, Attempt.question_id == Question.id)
    values = session.execute(rows.where(Attempt.run_id == run_id).distinct(), execution_options=WITH_REMOVED)
    return {row[0]: row[1] for row in values}


def list_question_values(session: Session, run_id: UUID, name: str) -> list[str]:
    """List the values that "kind", "hops" or "sources" has for the questions of a run."""
    rows = select(_VALUES[name]).join(Attempt, Attempt.question_id == Question.id).where(Attempt.run_id == run_id)
    values = [value for value in session.scalars(rows.distinct(), execution_options=WITH_REMOVED) if value is not None]
    return sorted(values, key=lambda value: (len(value), value) if name == "hops" else (0, value))


def count_compared_questions(
    session: Session, run_ids: tuple[UUID, UUID], metric: MetricVersion, chosen: ComparisonFilter
) -> int:
    """Count the questions of a run and its baseline that pass the filter."""
    figures = _select_figures(run_ids, metric)
    rows = select(func.count()).select_from(figures).where(*_conditions(figures, run_ids, chosen))
    # Questions are read only if they are filtered.
    if chosen != ComparisonFilter(verdict=chosen.verdict):
        rows = rows.join(Question, Question.id == figures.c.question_id)
    return session.scalar(rows, execution_options=WITH_REMOVED) or 0


def list_compared_questions(  # noqa: PLR0913, PLR0917 - a page of a list has an order, a limit and an offset
    session: Session,
    run_ids: tuple[UUID, UUID],
    metric: MetricVersion,
    chosen: ComparisonFilter = ComparisonFilter(),
    order: str = "gains",
    limit: int = 25,
    offset: int = 0,
) -> list[ComparedQuestion]:
    """List one page of the questions of a run and its baseline, in this order of ORDERS."""
    figures = _select_figures(run_ids, metric)
    score, baseline_score = figures.c.score_0, figures.c.score_1
    difference = score - baseline_score
    by_difference = [difference.is_(None), difference.desc() if order == "gains" else difference]
    rows = (
        select(Question.id, Question.position, score, baseline_score)
        .join(figures, figures.c.question_id == Question.id)
        .where(*_conditions(figures, run_ids, chosen))
        .order_by(*([] if order == "asked" else by_difference), Question.position, Question.id)
        .slice(offset, offset + limit)
        .subquery()
    )
    # Long texts and JSON are read for the questions of the page only.
    columns = (Question.id, Question.text, *_VALUES.values(), Question.gold_answers)
    page: Any = select(*columns, rows.c.score_0, rows.c.score_1).join(rows, rows.c.id == Question.id)
    shown = rows.c.score_0 - rows.c.score_1
    shown_order = [shown.is_(None), shown.desc() if order == "gains" else shown]
    page = page.order_by(*([] if order == "asked" else shown_order), Question.position, Question.id)
    return [ComparedQuestion(*row) for row in session.execute(page, execution_options=WITH_REMOVED)]


def _conditions(figures: Subquery, runs: Sequence[UUID], chosen: ComparisonFilter) -> list[ColumnElement[bool]]:
    run, baseline = figures.c.is_right_0, figures.c.is_right_1
    unanswerable = select(Attempt.question_id).join(Trace, Trace.id == Attempt.trace_id)
    unanswerable = unanswerable.where(Attempt.run_id.in_(runs), says_unanswerable(Trace.final_answer))
    verdicts: dict[str | None, ColumnElement[bool]] = {
        "gain": and_(run == 1, baseline == 0),
        "loss": and_(run == 0, baseline == 1),
        "both wrong": and_(run == 0, baseline == 0),
        "both right": and_(run == 1, baseline == 1),
        CANNOT_BE_ANSWERED: figures.c.question_id.in_(unanswerable),
        "failed": figures.c.failed == 1,
        "refused": figures.c.refused == 1,
        "missing": or_(run.is_(None), baseline.is_(None)),
    }
    conditions = [] if chosen.verdict is None else [verdicts.get(chosen.verdict, false())]
    conditions += [column == getattr(chosen, name) for name, column in _VALUES.items() if getattr(chosen, name)]
    if chosen.text:
        conditions.append(Question.text.icontains(chosen.text, autoescape=True))
    return conditions


def _select_attempts(run_ids: Sequence[UUID], metric: MetricVersion) -> Select[Any]:
    return (
        select(
            Attempt.run_id,
            Attempt.question_id,
            Attempt.repetition,
            Attempt.trace_id,
            Attempt.ending,
            Trace.final_answer,
            Trace.failure,
            cast(Score.value, Float),
            Attempt.model_calls,
            Attempt.input_tokens,
            Attempt.output_tokens,
            func.coalesce(Attempt.token_bound, Attempt.input_tokens + Attempt.output_tokens),
            Attempt.cost,
            func.coalesce(Attempt.cost_bound, Attempt.cost),
            Attempt.seconds,
            Question.source_id,
            Question.dataset,
            Question.split,
            Attempt.kind,
            Question.text,
            Question.gold_answers,
            _detail("type"),
            func.coalesce(_detail("difficulty"), _detail("level")),
            _hops(),
            _detail("needs"),
            cast(Trace.result["calls", "retrievals"].as_string(), String),
            _error_category(),
        )
        .join(Question, Question.id == Attempt.question_id)
        .outerjoin(Trace, Trace.id == Attempt.trace_id)
        .outerjoin(Score, _is_score_by(metric))
        .where(Attempt.run_id.in_(run_ids))
        .execution_options(**WITH_REMOVED)
    )


def _error_category() -> ColumnElement[str | None]:
    rows = select(Judgement.value).where(
        Judgement.trace_id == Attempt.trace_id, Judgement.aspect == ERROR_CATEGORY_ASPECT
    )
    return rows.order_by(Judgement.created_at.desc(), Judgement.id.desc()).limit(1).scalar_subquery()


def list_attempt_rows(
    session: Session, run_ids: Sequence[UUID], question_ids: Sequence[UUID], metric: MetricVersion
) -> list[AttemptRow]:
    """List the answers of these runs to these questions, each run's repetitions in order."""
    rows = _select_attempts(run_ids, metric).where(Attempt.question_id.in_(question_ids))
    return [AttemptRow(*row) for row in session.execute(rows.order_by(Attempt.repetition))]


def iterate_attempt_rows(session: Session, run_ids: Sequence[UUID], metric: MetricVersion) -> Iterator[AttemptRow]:
    """Load the answers of each run in the order of its attempts; few are in memory at a time."""
    for run_id in run_ids:
        rows = _select_attempts([run_id], metric).order_by(Attempt.position).execution_options(yield_per=1_000)
        yield from (AttemptRow(*row) for row in session.execute(rows))


def list_answer_sources(session: Session, run_id: UUID, metric: MetricVersion) -> list[AnswerSources]:
    """List the finished answers of a run with those of the single sources, by question."""
    rows = (
        select(
            Attempt.question_id,
            Trace.final_answer,
            Trace.answer_text,
            Trace.answer_graph,
            Trace.answer_model,
            _attempt_score(),
            Question.gold_answers,
        )
        .join(Trace, Trace.id == Attempt.trace_id)
        .join(Question, Question.id == Attempt.question_id)
        .outerjoin(Score, _is_score_by(metric))
        .where(Attempt.run_id == run_id, Attempt.ending.not_in(UNFINISHED_ENDINGS))
        .order_by(Attempt.question_id, Attempt.repetition)
    )
    return [AnswerSources(*row) for row in session.execute(rows, execution_options=WITH_REMOVED)]
