"""Evaluation of a reasoner: sample questions evenly over their kinds, score the answers, summarize by kind.

The report of a verification has the same figures as JSON, for pages and the command line.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import UNFINISHED_ENDINGS, Run
from showhow.db.run_spec import MODEL_SKILLS
from showhow.db.runs import attempts, verifications
from showhow.db.runs.attempts import AttemptGroup, ScoreGroup
from showhow.db.runs.runs import RunOutcome
from showhow.db.runs.verifications import CORRECTNESS_METRIC
from showhow.db.traces.model_calls import UnfinishedUsage, list_unfinished_usages
from showhow.db.unanswerable import group_of_question, read_unanswerable
from showhow.evaluation.metrics import DATASET_METRICS, METRICS, mean, score_by_metric
from showhow.evaluation.statistics import detectable_difference, pass_at_k, pass_hat_k
from showhow.evaluation.value_format import format_cost
from showhow.llm.usage import Usage
from showhow.reasoners.provenance import mask_names
from showhow.reasoners.registry import DEFAULT_PRESET

REFUSED = "refused"
RESUMABLE_ENDINGS = (None, *UNFINISHED_ENDINGS)
"""Endings of unfinished traces: None if the process was killed."""
EXPECTED_SHARE, EXPECTED_CORRELATION = 0.8, 0.5
"""The share of right answers, and the correlation of two runs over the same questions, that a power is computed for."""
VerificationReport = dict[str, Any]


class GoldQuestion(Protocol):
    """A question with its gold answers, from a file or from a project."""

    @property
    def kind(self) -> str | None: ...

    @property
    def gold_answers(self) -> list[dict[str, Any]]: ...


GoldQuestionType = TypeVar("GoldQuestionType", bound=GoldQuestion)


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """How a run over one question ended; `scores` by metric, None unless it was answered."""

    kind: str
    ending: str
    scores: Mapping[str, float] | None = None
    failure: str | None = None
    model_calls: int = 0
    model_calls_expected: int | None = None
    """The model calls that the method's plan needs; None if it does not tell."""
    retrievals: int = 0
    """The calls of tools."""
    refusal_reason: str | None = None
    """Why it was refused, with the names of its question."""
    says_unanswerable: bool = False
    """Whether the answer is that the question cannot be answered."""
    f1_from_retrieved: float | None = None
    """Gold replies only: the F1 of the answer that follows from what was retrieved alone; 0 if none does."""
    lacks: str | None = None
    """What that answer lacks."""


def sample_questions(questions: Sequence[GoldQuestionType], limit: int | None, seed: int) -> list[GoldQuestionType]:
    """Sample at most `limit` questions evenly over their kinds; None returns all. Deterministic by seed."""
    if limit is None:
        return list(questions)
    by_kind: dict[str, list[GoldQuestionType]] = defaultdict(list)
    for question in questions:
        by_kind[question.kind or ""].append(question)
    generator = random.Random(seed)  # noqa: S311 - a sample, no secret
    for group in by_kind.values():
        generator.shuffle(group)
    sample: list[GoldQuestionType] = []
    while len(sample) < min(limit, len(questions)):
        for group in by_kind.values():
            if group and len(sample) < limit:
                sample.append(group.pop())
    return sample


def score_outcome(question: GoldQuestion, outcome: RunOutcome) -> QuestionScore:
    """Score the outcome of a run against the question's gold answers."""
    answers = outcome.answers
    scores = None if answers is None else score_by_metric(answers.final_answer, question.gold_answers)
    return describe_outcome(question, outcome, scores)


def describe_outcome(question: GoldQuestion, outcome: RunOutcome, scores: Mapping[str, float] | None) -> QuestionScore:
    """How a run over the question ended, with the scores of its answer."""
    answers, calls = outcome.answers, outcome.calls
    retrieved = calls.get("retrieved")
    follows = score_by_metric(retrieved["answer"] or "", question.gold_answers) if retrieved else {}
    return QuestionScore(
        group_of_question(question.kind, question.gold_answers) or "unknown",
        outcome.ending,
        scores,
        outcome.failure,
        calls.get("model_calls", 0),
        calls.get("model_calls_expected"),
        calls.get("retrievals", 0),
        outcome.refusal_reason,
        answers is not None and read_unanswerable(answers.final_answer) is not None,
        follows.get(CORRECTNESS_METRIC),
        None if retrieved is None else retrieved["lacks"],
    )


def summarize_refusals(scores: Sequence[QuestionScore]) -> dict[str, int]:
    """The number of refused questions by reason, the most frequent first; what the reasons name is left open."""
    reasons = (score.refusal_reason for score in scores if score.ending == REFUSED)
    return dict(Counter(mask_names(reason or "no reason is recorded") for reason in reasons).most_common())


def summarize_scores(scores: Sequence[QuestionScore]) -> dict[str, Any]:
    """Counts and the mean of each metric, over all questions and by kind.

    A refusal or failure counts as 0 in `f1`; `f1_answered` is over answered questions, None if there are none. Among
    the answered are those whose answer is that they cannot be, which `cannot_be_answered` counts.
    """
    kinds = list(dict.fromkeys(score.kind for score in scores))
    return _summarize_group(scores) | {
        "by_kind": {kind: _summarize_group([score for score in scores if score.kind == kind]) for kind in kinds},
    }


def summarize_retrieved(scores: Sequence[QuestionScore]) -> dict[str, Any]:
    """With gold replies the F1 of what follows from what was retrieved alone, and what is lacked where it is below 1.

    Empty for other replies, and for methods that retrieve no passages.
    """
    figures = [(score.f1_from_retrieved, score.lacks) for score in scores if score.f1_from_retrieved is not None]
    if not figures:
        return {}
    lacks = Counter(reason for value, reason in figures if value < 1)
    return {
        "f1_from_retrieved": round(mean([value for value, _ in figures]), 4),
        "not_retrieved": dict(lacks.most_common()),
    }


def summarize_calls(scores: Sequence[QuestionScore]) -> dict[str, int | None]:
    """The calls of all questions; `model_calls_expected` is None unless every question tells its own."""
    expected = [score.model_calls_expected for score in scores]
    known = [calls for calls in expected if calls is not None]
    return {
        "model_calls": sum(score.model_calls for score in scores),
        "model_calls_expected": sum(known) if len(known) == len(expected) else None,
        "retrievals": sum(score.retrievals for score in scores),
    }


def _summarize_group(scores: Sequence[QuestionScore]) -> dict[str, Any]:
    endings = Counter(score.ending for score in scores)
    answered = [score.scores for score in scores if score.scores is not None]
    return {
        "questions": len(scores),
        "answered": len(answered),
        "cannot_be_answered": sum(score.says_unanswerable for score in scores),
        "refused": endings[REFUSED],
        "failed": len(scores) - len(answered) - endings[REFUSED],
        **summarize_metrics(answered, len(scores)),
        "right": sum(values[CORRECTNESS_METRIC] == 1.0 for values in answered),
    }


def summarize_metrics(answered: Sequence[Mapping[str, float]], questions: int) -> dict[str, float | None]:
    """The means of each metric: over all `questions` under its name, over the answered ones as `NAME_answered`.

    ValueError if there are no questions.
    """
    means: dict[str, float | None] = {}
    for name in METRICS:
        values = [scores[name] for scores in answered if name in scores]
        if len(values) < len(answered):
            # The metric of a plugin that failed for some of them has no mean.
            means |= {name: None, f"{name}_answered": None}
            continue
        means[name] = round(mean([*values, *[0.0] * (questions - len(values))]), 4)
        means[f"{name}_answered"] = round(mean(values), 4) if values else None
    return means


def load_verification_report(database: Database, run: Run) -> VerificationReport:
    """Build the report: the run's configuration, and its figures in total and by kind of question."""
    return {
        "id": str(run.id),
        **{"name": run.title, "note": run.note},
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "reasoner": run.reasoner,
        "preset": run.spec.preset,
        "model": run.spec.model,
        "profile": run.spec.profile,
        "library": run.spec.library,
        "again_of": None if run.spec.repeats is None else str(run.spec.repeats),
        **load_figures(database, run.id),
        **_summarize_repetitions(database, run),
    }


def _summarize_repetitions(database: Database, run: Run) -> dict[str, Any]:
    """How often repeated answers are right, by k; over the questions of which all repetitions are finished.

    `pass_at_k` is the chance that one of k answers is right, `pass_hat_k` that all are; empty without such a question.
    """
    repetitions = run.spec.repetitions
    if repetitions == 1:
        return {}
    with database.read() as session:
        groups = attempts.count_repeated_questions(session, run.id, CORRECTNESS_METRIC, repetitions)
    total = sum(group.questions for group in groups)
    numbers = range(1, repetitions + 1) if total else ()

    def average(rule: Callable[[int, int, int], float], k: int) -> float:
        return sum(group.questions * rule(repetitions, group.correct, k) for group in groups) / total

    return {
        "repetitions": repetitions,
        "pass_at_k": {k: average(pass_at_k, k) for k in numbers},
        "pass_hat_k": {k: average(pass_hat_k, k) for k in numbers},
    }


def load_figures(database: Database, run_id: UUID, *, asked_in: UUID | None = None) -> VerificationReport:
    """The figures of a run in total and `by_kind`; with `asked_in`, of the questions that have ended in that run.

    `f1` is over finished questions, where one without an answer counts as 0, `f1_answered` over answered ones; a mean
    over none is None, and so is one for which answers are not scored yet.
    """
    with database.read() as session:
        groups = attempts.group_attempts(session, run_id, asked_in=asked_in)
        scores = attempts.group_scores(session, run_id, asked_in=asked_in)
        unavailable = {} if asked_in else attempts.count_unavailable(session, run_id, CORRECTNESS_METRIC)
        unanswerable = verifications.count_unanswerable(session, run_id, asked_in=asked_in)
        is_finished = all(group.ending not in RESUMABLE_ENDINGS for group in groups)
        unfinished = [] if asked_in or is_finished else list_unfinished_usages(session, run_id)
    kinds = sorted({group.kind or "" for group in groups})
    return {
        **_summarize_groups(groups, scores, sum(unavailable.values()), sum(unanswerable.values()), unfinished),
        "by_kind": {
            kind: _summarize_groups(
                [group for group in groups if (group.kind or "") == kind],
                [group for group in scores if (group.kind or "") == kind],
                unavailable.get(kind or None, 0),
                unanswerable.get(kind or None, 0),
                [call for call in unfinished if (call.kind or "") == kind],
            )
            for kind in kinds
        },
    }


def _summarize_groups(
    groups: Sequence[AttemptGroup],
    scores: Sequence[ScoreGroup],
    unavailable: int,
    unanswerable: int,
    unfinished_usages: Sequence[UnfinishedUsage],
) -> VerificationReport:
    endings: Counter[str | None] = Counter()
    for group in groups:
        endings[group.ending] += group.attempts
    unfinished = sum(endings[ending] for ending in RESUMABLE_ENDINGS)
    questions, answered = endings.total(), endings["answered"]
    finished = questions - unfinished
    report = {
        "questions": questions,
        "left": unfinished,
        "answered": answered,
        "cannot_be_answered": unanswerable,
        "right": sum(group.correct for group in scores if group.metric == CORRECTNESS_METRIC),
        "refused": endings["refused"],
        "failed": finished - answered - endings["refused"],
        "unavailable": unavailable,
        **summarize_usage(sum(list_usages(groups, unfinished_usages), Usage())),
    }
    for name, metric in METRICS.items():
        of_metric = [group for group in scores if (group.metric, group.version) == (name, metric.version)]
        is_scored = sum(group.scores for group in of_metric) == answered
        total = sum(group.total for group in of_metric)
        report[name] = total / finished if finished and is_scored else None
        report[f"{name}_answered"] = total / answered if answered and is_scored else None
    return report


@dataclass(frozen=True, slots=True)
class MetricFigures:
    """The figures of a run by a metric of its data set, as the metric's rule combines those of the questions."""

    name: str
    version: int
    purpose: str
    components: Mapping[str, float]
    scored: int
    """The answers with a score; others could not be scored, or are left out by the rule."""
    answered: int


def load_metric_figures(database: Database, run_id: UUID) -> list[MetricFigures]:
    """The figures of a run by each metric of its data set that its answers are scored by (`predictions.score_run`)."""
    with database.read() as session:
        groups = [group for group in attempts.group_attempts(session, run_id) if group.ending is not None]
        stored = {(group.metric, group.version) for group in attempts.group_scores(session, run_id)}
        metrics = [metric for name, metric in DATASET_METRICS.items() if name not in METRICS]
        scores = {
            metric.name: [score.details for score in attempts.list_scores(session, run_id, metric.name, metric.version)]
            for metric in metrics
            if (metric.name, metric.version) in stored
        }
    answered = sum(group.attempts for group in groups if group.ending == "answered")
    unanswered = sum(group.attempts for group in groups if group.ending not in ("answered", *UNFINISHED_ENDINGS))
    figures = []
    for name, details in scores.items():
        metric = DATASET_METRICS[name]
        components = [row["components"] for row in details if "components" in row]
        missing = 0 if metric.scores_empty else unanswered
        rows = [*components, *[dict.fromkeys(metric.components, 0.0)] * missing]
        scored = len(components) - (unanswered if metric.scores_empty else 0)
        figures.append(
            MetricFigures(name, metric.version, metric.purpose, metric.summarize(rows), max(scored, 0), answered)
        )
    return figures


def find_earlier_cost(database: Database, project_id: UUID, reasoner: str, profile: str | None) -> float | None:
    """US dollars of an answer, at most, in the project's latest such verification; None without one or its price."""
    with database.read() as session:
        earlier = verifications.list_verifications(session, project_id)
        for run in earlier:
            if (run.reasoner, run.spec.profile_name) != (reasoner, profile):
                continue
            groups = [group for group in attempts.group_attempts(session, run.id) if group.ending is not None]
            ended = sum(group.attempts for group in groups)
            usage = sum(map(usage_of_group, groups), Usage())
            if ended and usage.calls:
                return None if usage.max_cost is None else usage.max_cost / ended
    return None


def describe_power(questions: int) -> str:
    """What a comparison of two runs over so many questions can show, as a sentence."""
    points = 100 * detectable_difference(questions, EXPECTED_SHARE, EXPECTED_CORRELATION)
    return (
        f"Two runs over these {questions:,} questions show a difference from about {points:.0f} points on (at "
        f"{EXPECTED_SHARE:.0%} right answers that correlate by {EXPECTED_CORRELATION:g}; power 80%)."
    )


def list_usages(groups: Iterable[AttemptGroup], unfinished: Iterable[UnfinishedUsage]) -> list[Usage]:
    """The usage of all model calls of a run so far, from its groups of attempts and its calls in unfinished traces.

    Finished attempts have it added up; a stopped one may have received replies that it has not used yet.
    """
    finished = [usage_of_group(group) for group in groups if group.ending not in RESUMABLE_ENDINGS]
    return [*finished, *(Usage(**call.usage) for call in unfinished)]


def usage_of_group(group: AttemptGroup) -> Usage:
    """What the attempts of a group used together."""
    return Usage(
        calls=group.model_calls,
        input_tokens=group.input_tokens,
        output_tokens=group.output_tokens,
        cost=group.cost,
        unreported_calls=group.unreported_calls,
        token_bound=group.token_bound,
        cost_bound=group.cost_bound,
    )


def summarize_usage(usage: Usage) -> dict[str, Any]:
    """The usage of all model calls: tokens and cost as reported, None if unknown, and the most that they can be."""
    return {
        "model_calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "token_bound": usage.max_tokens,
        "unreported_calls": usage.unreported_calls,
        "cost": usage.cost,
        "cost_bound": usage.max_cost,
    }


def format_model(report: Mapping[str, Any]) -> str | None:
    """The model of a report with its profile; None if it has no model."""
    profile, model = report["profile"], report["model"]
    return model if profile is None else f"{profile['name']} ({model})"


def format_usage(report: Mapping[str, Any]) -> str:
    """The model, its calls, tokens and cost, in one line."""
    model = format_model(report)
    if model is None and not report["model_calls"]:
        return "no model"
    tokens, bound = [report["input_tokens"], report["output_tokens"]], report["token_bound"]
    counts = "tokens unknown" if None in tokens else f"{sum(tokens):,} tokens"
    unreported = f"{report['unreported_calls']:,} of the calls reported none" if report["unreported_calls"] else ""
    most = f"at most {bound:,}" if unreported and bound is not None else ""
    notes = f" ({'; '.join(filter(None, (unreported, most)))})" if unreported else ""
    amount = format_cost(report["cost"], report["cost_bound"])
    return f"model {model or 'not recorded'}: {report['model_calls']:,} calls, {counts}{notes}, {amount}"


def label_runs(runs: Sequence[Run]) -> dict[UUID, str]:
    """Name each run as people did, or by reasoner, preset, library, model and skills; equal ones by options or time."""
    names = {run.id: _describe_run(run) for run in runs}
    for describe in (_describe_options, lambda run: f"{run.started_at:%Y-%m-%d %H:%M:%S}", lambda run: str(run.id)):
        counts = Counter(names.values())
        names |= {
            run.id: f"{names[run.id]}, {describe(run)}" for run in runs if counts[names[run.id]] > 1 and describe(run)
        }
    return names


def _describe_run(run: Run) -> str:
    spec = run.spec
    skills = None if spec.skills == MODEL_SKILLS else spec.skills
    name = spec.details.get("imported_as") or run.reasoner
    preset = None if spec.preset == DEFAULT_PRESET else spec.preset
    return run.title or ", ".join(str(part) for part in (name, preset, spec.library, spec.model, skills) if part)


def _describe_options(run: Run) -> str:
    repetitions = run.spec.repetitions
    values = {**run.spec.options, **({"repetitions": repetitions} if repetitions > 1 else {})}
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))
