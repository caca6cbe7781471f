"""Predictions with their gold records, of a file or of a run, scored by a metric of the data set.

    report = score_cases(read_cases(file, gold_file, metric), metric, file)
    report = score_run(database, run_id, "hotpotqa_f1")        # which also stores the score of each answer

A file is JSON Lines, a JSON list of rows, or a JSON object {id: prediction}. A row has its answer under `predicted`,
and its gold answers under `gold`, or an id, the question's text or an index by which it is joined with a gold file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID

from showhow.db.database import Database
from showhow.db.runs import attempts, comparisons
from showhow.db.runs.attempts import FinishedAnswer, MetricScore
from showhow.db.unanswerable import group_of_question, read_unanswerable
from showhow.evaluation.datasets.gold_names import GoldNames
from showhow.evaluation.metrics import (
    DATASET_METRICS,
    METRICS,
    GoldAnswer,
    find_dataset_metric,
    list_dataset_metrics,
    list_gold_answers,
)
from showhow.evaluation.metrics.metric import (
    ANSWER_FIELDS,
    GOLD_TEXT_FIELDS,
    Case,
    Components,
    DatasetMetric,
    MetricError,
    Unscorable,
    UnusableValue,
    first_field,
    name_values,
)
from showhow.evaluation.scoring.bounded_scoring import RuleResult, score_cases_within_limits
from showhow.evaluation.scoring.prediction_files import (
    FileRow,
    PredictionFileError,
    find_id_field,
    index_rows,
    join_rows,
    read_gold,
    read_inline_gold,
    read_rows,
)
from showhow.evaluation.statistics import mean_with_error
from showhow.worlds.input_files import MalformedFile

KIND_FIELDS = ("kind", "type", "level")
SCORES_A_COMMIT = 500
INSTANCE_FIELD = "instance"
"""The field that names the instance that a question is of; the unit of PhantomWiki's means."""
ANSWERED, EMPTY, REFUSED, FAILED, ABSENT = ENDINGS = ("answered", "empty", "refused", "failed", "absent")
"""How a question ended: with an answer, with an empty one, refused, failed, or without a prediction."""


@dataclass(frozen=True, slots=True)
class ScoringCase:
    """A question to score, with the place of its prediction, how it ended, and its kind."""

    case: Case
    place: str | None
    ending: str
    kind: str
    instance: str | None
    """The instance that the question is of, such as a generated universe; None if it names none."""


RuleScore = Components | Unscorable | None
"""The figures of a case, why it has none, or None if the rule leaves it out."""
ScoredPair = tuple[ScoringCase, RuleScore]


def read_cases(
    file: Path, gold_file: Path | None, metric: DatasetMetric, names: GoldNames | None = None
) -> list[ScoringCase]:
    """Join predictions with their gold records, in the order of the gold file; PredictionFileError for bad input.

    With `names`, an answer may name gold answers that are ids.
    """
    try:
        rows = read_rows(file)
        golds = None if gold_file is None else read_gold(gold_file)
    except MalformedFile as error:
        place = None if error.line is None else f"line {error.line}"
        raise PredictionFileError(error.file, place, error.reason) from error
    for records, source in ((rows, file), (golds, gold_file)):
        if source is not None and not records:
            raise PredictionFileError(source, None, "the file has no record")
    pairs: list[tuple[FileRow | None, FileRow]]
    if gold_file is None or golds is None:
        pairs = [(row, read_inline_gold(row, file)) for row in rows]
        index_rows([row for row in rows if find_id_field(row.fields)], None, file)
    else:
        pairs = join_rows(rows, file, golds, gold_file)
    for _, gold in pairs:
        _require_fields(gold, metric.gold_fields, gold_file or file, "the gold of this record has no field")
    named = [None] * len(pairs) if names is None else list(_name_golds((gold for _, gold in pairs), names))
    return [_make_case(row, gold, metric, file, golds) for (row, gold), golds in zip(pairs, named, strict=True)]


def _name_golds(records: Iterable[FileRow], names: GoldNames) -> Iterator[list[dict[str, Any]]]:
    """The gold answers of each record with their names."""
    golds = []
    for record in records:
        try:
            golds.append(list(map(dict, list_gold_answers(record.fields))))
        except (MetricError, UnusableValue):
            # The rule says what it cannot use, and scores questions without answers.
            golds.append([])
    names.look_up(golds)
    return map(names.name_all, golds)


def _require_fields(row: FileRow, groups: Sequence[Sequence[str]], file: Path | str, complaint: str) -> None:
    for names in groups:
        if not any(name in row.fields for name in names):
            raise PredictionFileError(file, row.place, f"{complaint} {' or '.join(map(repr, names))}")


def _make_case(
    row: FileRow | None, gold: FileRow, metric: DatasetMetric, file: Path, golds: Sequence[GoldAnswer] | None
) -> ScoringCase:
    """The case of a prediction; `golds` are the named gold answers, None for those of the record."""
    compares_texts = metric.gold_values is None and metric.gold_fields[:1] in ((), (GOLD_TEXT_FIELDS,))
    if golds and compares_texts:
        gold = replace(gold, fields={**gold.fields, "gold": golds})
    fields = {} if row is None else row.fields
    instance = first_field({**fields, **gold.fields}, (INSTANCE_FIELD,))
    groups = (str(_find_kind(gold.fields, fields, metric)), None if instance is None else str(instance))
    if row is None:
        return ScoringCase(Case(gold.fields, None, {}), None, ABSENT, *groups)
    ending = _find_ending(row.fields, metric)
    if ending in (ANSWERED, EMPTY):
        _require_fields(row, metric.predicted_fields, file, "the prediction has no field")
    if ending in (REFUSED, FAILED):
        return ScoringCase(Case(gold.fields, None, {}), row.place, ending, *groups)
    predicted = first_field(row.fields, ANSWER_FIELDS)
    if predicted is not None and _is_blank(predicted):
        # An empty text is no answer, as an empty list is; null is kept, which a gold answer may be.
        predicted = []
    predicted = _say_officially(predicted, metric)
    if golds and metric.gold_values is not None and isinstance(predicted, str | list):
        predicted = name_values(predicted, golds, metric.gold_values(gold.fields))
    return ScoringCase(Case(gold.fields, predicted, row.fields), row.place, ending, *groups)


def _say_officially(predicted: Any, metric: DatasetMetric) -> Any:
    """The answer as the rule of a data set has it: one that says that its question cannot be answered in its words."""
    if not metric.datasets or not isinstance(predicted, str) or read_unanswerable(predicted) is None:
        return predicted
    return metric.unanswerable if metric.gold_values is None else []


def _find_kind(gold: Mapping[str, Any], row: Mapping[str, Any], metric: DatasetMetric) -> Any:
    names = (metric.kind_field, *KIND_FIELDS) if metric.kind_field else KIND_FIELDS
    kinds = (record[name] for record in (gold, row) for name in names if isinstance(record.get(name), str | int))
    question_id = str(gold.get(find_id_field(gold) or "", ""))
    # An id of MuSiQue begins with the number of hops.
    hops, is_musique, _ = question_id.partition("hop")
    return next(kinds, f"{hops} hops" if is_musique and hops.isdigit() else "unknown")


def _find_ending(fields: Mapping[str, Any], metric: DatasetMetric) -> str:
    ending = fields.get("ending")
    if ending not in (None, ANSWERED, EMPTY):
        return REFUSED if ending == REFUSED else FAILED
    if fields.get("error") or fields.get("failure"):
        return FAILED
    names = metric.predicted_fields[0]
    is_empty = any(name in fields for name in names) and _is_blank(first_field(fields, names))
    return EMPTY if is_empty else ANSWERED


def _is_blank(value: Any) -> bool:
    return value is None or (
        isinstance(value, str | list | dict) and not (value.strip() if isinstance(value, str) else value)
    )


def score_cases(cases: Sequence[ScoringCase], metric: DatasetMetric, file: Path) -> dict[str, Any]:
    """The metric's value with its components and counts, in total and by kind.

    `value` is None if an answer could not be scored; `value_of_scored` is then that of the others. A question without
    an answer has 0 in all components unless the metric's rule scores it.
    """
    return _build_report(_score_cases(cases, metric, file), metric)


def _build_report(pairs: Sequence[ScoredPair], metric: DatasetMetric) -> dict[str, Any]:
    kinds = dict.fromkeys(case.kind for case, _ in pairs)
    by_kind = {kind: _summarize([pair for pair in pairs if pair[0].kind == kind], metric) for kind in kinds}
    report = {
        "metric": metric.name,
        "version": metric.version,
        "purpose": metric.purpose,
        "source": metric.source,
        **_summarize(pairs, metric),
        "by_kind": by_kind,
    }
    if metric.note:
        report["note"] = metric.note
    if pairs and all(case.instance is not None for case, _ in pairs):
        report["instances"] = _summarize_instances(pairs, metric)
    return report


def _summarize_instances(pairs: Sequence[ScoredPair], metric: DatasetMetric) -> dict[str, Any]:
    """The mean over instances, such as generated universes, of their values, with its standard error (ddof 1)."""
    groups: dict[str, list[ScoredPair]] = {}
    for case, score in pairs:
        groups.setdefault(str(case.instance), []).append((case, score))
    values = [_summarize(group, metric)["value"] for group in groups.values()]
    if None in values:
        return {"n": len(values), "value": None}
    error = mean_with_error(values).standard_error if len(values) > 1 else None
    return {"n": len(values), "value": fmean(values), "standard_error": error}


def _score_cases(cases: Sequence[ScoringCase], metric: DatasetMetric, file: Path | str) -> list[ScoredPair]:
    scored = [case for case in cases if case.ending == ANSWERED or metric.scores_empty]
    results = zip(scored, score_cases_within_limits([case.case for case in scored], metric), strict=True)
    figures = {id(case): _read_result(result, case, metric, file) for case, result in results}
    return [(case, figures.get(id(case), dict.fromkeys(metric.components, 0.0))) for case in cases]


def _read_result(result: RuleResult, case: ScoringCase, metric: DatasetMetric, file: Path | str) -> RuleScore:
    if not isinstance(result, Exception) or isinstance(result, Unscorable):
        return result
    form = f"the prediction or its gold record has not the form of {' or '.join(metric.datasets)} ({result!r})"
    reason = str(result) if isinstance(result, UnusableValue) else form
    raise PredictionFileError(file, case.place, reason) from result


def _summarize(pairs: Sequence[ScoredPair], metric: DatasetMetric) -> dict[str, Any]:
    kept = [(case, score) for case, score in pairs if score is not None]
    scored = [(case, score) for case, score in kept if not isinstance(score, Unscorable)]
    unscored = [str(score) for _, score in kept if isinstance(score, Unscorable)]
    endings = Counter(case.ending for case, _ in kept)
    components = metric.summarize([score for _, score in scored]) if scored else {}
    value, main = components.get(metric.value), metric.main_component
    answered = [score for case, score in scored if case.ending == ANSWERED and not score.get("missing")]
    group: dict[str, Any] = {
        "value": None if unscored else value,
        "n": len(kept),
        "components": dict(components),
        **{ending: endings[ending] for ending in ENDINGS},
        "right": sum(score[main] == 1 for score in answered),
        "wrong": sum(score[main] <= 0 for score in answered),
        "unscored": len(unscored),
        "excluded": len(pairs) - len(kept),
    }
    if unscored:
        group |= {"value_of_scored": value, "unscored_because": dict(Counter(unscored))}
    if main == metric.value and len(scored) > 1:
        group["standard_error"] = mean_with_error([score[main] for _, score in scored]).standard_error
    return group


def list_run_metrics(database: Database, run_id: UUID) -> list[DatasetMetric]:
    """The metrics of the data sets of a run's questions that its answers can have, besides those of every run."""
    with database.read() as session:
        datasets = comparisons.list_datasets(session, run_id)
    shared = set.intersection(*map(_list_metrics_of, datasets)) if datasets else set()
    return [metric for name, metric in DATASET_METRICS.items() if name in shared]


def _list_metrics_of(dataset: str | None) -> set[str]:
    try:
        known = list_dataset_metrics(dataset) if dataset else {}
    except MetricError:
        return set()
    metrics = chain.from_iterable(known.values())
    return {metric.name for metric in metrics if metric.name not in METRICS and _find_run_problem(metric) is None}


def _find_run_problem(metric: DatasetMetric) -> str | None:
    """Why the answers of runs cannot have the metric, as a sentence; None if they can."""
    lacked = metric.runs_lack or " or ".join(
        chain(*(set(names) - set(ANSWER_FIELDS) for names in metric.predicted_fields))
    )
    return f"The metric {metric.name} compares {lacked}, which the answers of runs do not have." if lacked else None


def score_run(
    database: Database, run_id: UUID, name: str, dataset: str | None = None, names: GoldNames | None = None
) -> dict[str, Any]:
    """Score a run's answers by a metric, store the scores, and return the metric's report.

    It is one of the questions' data set, or one by which every run is scored when it ends: an older run gets a new one.
    Nothing is asked again. `names` are those of gold answers that are ids. `dataset` is needed for questions that name
    none. MetricError if they cannot have the metric, or if they changed since they were asked. A figure of all
    questions together, such as QALD's F1, is reported only; stored are the figures of each question that it is made
    of, under their own metric's name.
    """
    with database.read() as session:
        run = comparisons.find_comparable_run(session, run_id)
        datasets = [dataset] if dataset else comparisons.list_datasets(session, run_id)
        asked = attempts.list_asked_questions(session, run_id)
        answers = attempts.list_finished_answers(session, run_id)
    metric = find_dataset_metric(name, None)
    for known in datasets if metric.datasets else ():
        find_dataset_metric(name, known)
    if problem := _find_run_problem(metric):
        raise MetricError(problem)
    if None in datasets and metric.datasets:
        raise MetricError(f"Questions of this run name no data set, so whether {name} applies is unknown; name theirs.")
    if run.questions_hash not in (None, attempts.hash_questions(asked)):
        raise MetricError("Questions or gold answers changed since this run asked them; score a new run over them.")
    known_names = names or GoldNames(lambda: None)
    known_names.look_up(answer.question.gold_answers for answer in answers)
    cases = [_make_run_case(answer, metric, known_names.name_all(answer.question.gold_answers)) for answer in answers]
    pairs = _score_cases(cases, metric, f"run {run_id}")
    stored = next(
        other
        for other in DATASET_METRICS.values()
        if other.score is metric.score and other.value == metric.main_component
    )
    for start in range(0, len(answers), SCORES_A_COMMIT):
        batch = slice(start, start + SCORES_A_COMMIT)
        with database.begin() as session:
            for answer, (case, figures) in zip(answers[batch], pairs[batch], strict=True):
                if isinstance(figures, Mapping) and (case.ending == ANSWERED or metric.scores_empty):
                    details = {"components": dict(figures), "predicted": case.case.predicted}
                    score = MetricScore(stored.name, stored.version, figures[stored.value], details)
                    attempts.save_scores(session, answer.attempt_id, answer.lease_token, [score])
    return _build_report(pairs, metric) | {"stored_as": stored.name}


def _make_run_case(answer: FinishedAnswer, metric: DatasetMetric, golds: Sequence[GoldAnswer]) -> ScoringCase:
    question = answer.question
    # The import keeps the type that the tables of the data set use as the question's kind.
    group = group_of_question(question.kind, golds)
    kind = {} if group is None else {"kind": group}
    gold = {"question": question.text, "id": question.source_id} | question.details | kind
    names = metric.gold_fields[0] if metric.gold_fields else ()
    if not names or (names == GOLD_TEXT_FIELDS and not any(name in gold for name in names)):
        gold["gold"] = golds
    place = f"the question {question.text[:80]!r}"
    _require_fields(FileRow(place, gold), metric.gold_fields, "the run", "its record has no field")
    instance = question.details.get(INSTANCE_FIELD)
    groups = (str(_find_kind(gold, {}, metric)), instance and str(instance))
    if answer.ending != ANSWERED or not (text := (answer.answer or "").strip()):
        ending = {ANSWERED: EMPTY, REFUSED: REFUSED}.get(answer.ending, FAILED)
        row: dict[str, Any] = {"predicted": []} if ending == EMPTY else {}
        return ScoringCase(Case(gold, row.get("predicted"), row), place, ending, *groups)
    official = _say_officially(text, metric)
    predicted = official if metric.gold_values is None else name_values(official, golds, metric.gold_values(gold))
    return ScoringCase(Case(gold, predicted, {"predicted": predicted}), place, ANSWERED, *groups)
