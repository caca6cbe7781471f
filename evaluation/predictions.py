"""Predictions with their gold records, of a file or of a run, scored by a metric of the data set.

    report = score_cases(read_cases(file, gold_file, metric), metric, file)
    report = score_run(database, run_id, "hotpotqa_f1")        # which also stores the score of each answer

A file is JSON Lines, a JSON list of rows, or a JSON object {id: prediction}. A row has its answer under `predicted`,
and its gold answers under `gold`, or an id, the question's text or an index by which it is joined with a gold file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID

from rapidfuzz.distance import Levenshtein

from db import attempts, comparisons
from db.attempts import FinishedAnswer, MetricScore
from db.database import Database
from evaluation.bounded_scoring import RuleResult, score_cases_within_limits
from evaluation.datasets import read_questions
from evaluation.datasets.layouts import open_table
from evaluation.datasets.text_answers import restore_columns
from evaluation.metrics import DATASET_METRICS, METRICS, find_dataset_metric, list_dataset_metrics
from evaluation.metrics.metric import (
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
from evaluation.statistics import mean_with_error
from worlds import terms
from worlds.input_files import MalformedFile, iter_json_objects, iter_nonblank_lines, parse_json, read_text_file

ID_FIELDS = ("id", "_id", "qid", "question_id", "QuestionId", "ID", "uid", "interaction_id", "source_id")
"""The fields that may hold a question's id, the first one first."""
JOIN_FIELDS = ("index", "question", "query")
"""The fields by which predictions without ids are joined with gold records."""
MIN_SIMILARITY = 0.5
"""Questions with the same index are the same from this Levenshtein similarity on."""
KIND_FIELDS = ("kind", "type", "level")
RECORD_LISTS = ("questions", "Questions", "predictions", "data")
"""The fields of a JSON object that may hold the list of rows or records."""
SCORES_A_COMMIT = 500
INSTANCE_FIELD = "instance"
"""The field that names the instance that a question is of; the unit of PhantomWiki's means."""
HOTPOTQA_PARTS = {"answer": "predicted", "sp": "supporting_facts", "evidence": "evidences"}
"""The parts of a file of predictions in the form of HotpotQA's script, and the names of rows for them."""
ANSWERED, EMPTY, REFUSED, FAILED, ABSENT = ENDINGS = ("answered", "empty", "refused", "failed", "absent")
"""How a question ended: with an answer, with an empty one, refused, failed, or without a prediction."""


class PredictionFileError(MetricError):
    """Predictions or gold records cannot be scored; names the file, the line or row, and the cause."""

    def __init__(self, file: Path | str, place: str | None, reason: str) -> None:
        location = f"{file}, {place}" if place else str(file)
        super().__init__(f"{location}: {reason}. Nothing was scored; correct the file and score it again.")


@dataclass(frozen=True, slots=True)
class _Row:
    """A record of a file; the place names its line or row."""

    place: str
    fields: dict[str, Any]


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


def read_cases(file: Path, gold_file: Path | None, metric: DatasetMetric) -> list[ScoringCase]:
    """Join predictions with their gold records, in the order of the gold file; PredictionFileError for bad input."""
    try:
        rows = _read_rows(file)
        golds = None if gold_file is None else _read_gold(gold_file)
    except MalformedFile as error:
        place = None if error.line is None else f"line {error.line}"
        raise PredictionFileError(error.file, place, error.reason) from error
    for records, source in ((rows, file), (golds, gold_file)):
        if source is not None and not records:
            raise PredictionFileError(source, None, "the file has no record")
    pairs: list[tuple[_Row | None, _Row]]
    if gold_file is None or golds is None:
        pairs = [(row, _read_inline_gold(row, file)) for row in rows]
        _index_rows([row for row in rows if _id_field(row.fields)], None, file)
    else:
        pairs = _join(rows, file, golds, gold_file)
    for _, gold in pairs:
        _require_fields(gold, metric.gold_fields, gold_file or file, "the gold of this record has no field")
    return [_make_case(row, gold, metric, file) for row, gold in pairs]


def _read_rows(file: Path) -> list[_Row]:
    records = _read_records(file)
    if isinstance(records, list):
        return records
    parts = {name: records[part] for part, name in HOTPOTQA_PARTS.items() if isinstance(records.get(part), dict)}
    by_id: dict[str, dict[str, Any]] = {}
    for name, part in (parts or {ANSWER_FIELDS[0]: records}).items():
        for question_id, value in part.items():
            by_id.setdefault(question_id, {"id": question_id})[name] = value
    return [_Row(f"row {place}", fields) for place, fields in enumerate(by_id.values(), 1)]


def _read_gold(file: Path) -> list[_Row]:
    table = open_table(file)
    if table is not None:
        own = {"id": "source_id", "question": "text", "kind": "kind", "gold": "gold_answers"}
        questions = read_questions(file) if table.is_table else ()
        rows = [{name: getattr(one, field) for name, field in own.items()} | one.details for one in questions]
        return [_Row(f"row {n}", restore_columns(row)) for n, row in enumerate(rows or table.sample(None), 1)]
    records = _read_records(file)
    if not isinstance(records, list):
        raise MalformedFile(file, None, f"it is an object without a list under {' or '.join(RECORD_LISTS)}")
    return [replace(row, fields=restore_columns(row.fields)) for row in records]


def _read_records(file: Path) -> list[_Row] | dict[str, Any]:
    """The rows of JSON Lines or of a JSON list; an object that has neither rows nor the fields of one, as it is."""
    lines = iter_nonblank_lines(file)
    _, first = next(lines, (0, ""))
    is_single = next(lines, None) is None
    if not first:
        raise MalformedFile(file, None, "the file is empty")
    if first.lstrip().startswith("{") and not is_single and first.rstrip().endswith("}"):
        return [_Row(f"line {line}", record) for line, record in iter_json_objects(file)]
    document = parse_json(read_text_file(file), file, None, unique_names=True)
    if isinstance(document, dict):
        lists = [document[name] for name in RECORD_LISTS if isinstance(document.get(name), list)]
        if not lists:
            is_row = any(name in document for name in (*ANSWER_FIELDS, *ID_FIELDS, "gold"))
            return [_Row("line 1", document)] if is_row else document
        document = lists[0]
    if not isinstance(document, list):
        raise MalformedFile(file, None, "a JSON list or object is required")
    for place, record in enumerate(document, 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, None, f"row {place} is not a JSON object")
    return [_Row(f"row {place}", record) for place, record in enumerate(document, 1)]


def _read_inline_gold(row: _Row, file: Path) -> _Row:
    if "gold" not in row.fields:
        raise PredictionFileError(file, row.place, "the field 'gold' is missing; name a gold file with --gold")
    gold = row.fields["gold"]
    return _Row(row.place, gold if isinstance(gold, dict) else {"gold": gold})


def _join(rows: list[_Row], file: Path, golds: list[_Row], gold_file: Path) -> list[tuple[_Row | None, _Row]]:
    fields = _choose_join_fields(rows, golds)
    if fields is None:
        reason = f"it has no id, question or index that the records of {gold_file} have too"
        raise PredictionFileError(file, rows[0].place, reason)
    row_field, gold_field = fields
    gold_keys = _index_rows(golds, gold_field, gold_file)
    row_keys = _index_rows(rows, row_field, file)
    for key, row in row_keys.items():
        if key not in gold_keys:
            raise PredictionFileError(
                file, row.place, f"the question with the {row_field} {key!r} is not in {gold_file}"
            )
        if row_field == "index":
            _require_same_question(row, gold_keys[key], file, gold_file)
    return [(row_keys.get(key), gold) for key, gold in gold_keys.items()]


def _require_same_question(row: _Row, gold: _Row, file: Path, gold_file: Path) -> None:
    """An index may be that of another file; published files differ in a few letters of the same question only."""
    question, gold_question = row.fields.get("question"), gold.fields.get("question")
    if not isinstance(question, str) or not isinstance(gold_question, str):
        return
    if Levenshtein.normalized_similarity(question, gold_question) < MIN_SIMILARITY:
        reason = f"its question is not that with the same index in {gold_file}, {gold.place}"
        raise PredictionFileError(file, row.place, reason)


def _choose_join_fields(rows: list[_Row], golds: list[_Row]) -> tuple[str, str] | None:
    """The field of the rows and that of the gold records that are equal for the same question; None if there is none.

    An index that several rows share, as in a file merged of several, is none; then the text of the question is.
    """
    row, gold = rows[0].fields, golds[0].fields
    row_id = _id_field(row)
    if row_id is not None:
        gold_id = row_id if row_id in gold else _id_field(gold)
        if gold_id is not None:
            return row_id, gold_id
    shared = [name for name in JOIN_FIELDS if isinstance(row.get(name), str | int) and name in gold]
    if shared[:1] == ["index"] and len({row.fields.get("index") for row in rows}) < len(rows):
        shared = shared[1:] or shared
    return (shared[0], shared[0]) if shared else None


def _id_field(record: Mapping[str, Any]) -> str | None:
    return next((name for name in ID_FIELDS if record.get(name) is not None), None)


def _index_rows(rows: list[_Row], field: str | None, file: Path) -> dict[str, _Row]:
    """The rows by the value of a field, or by their own id; PredictionFileError if it is missing or repeated."""
    by_key: dict[str, _Row] = {}
    for row in rows:
        name = field or _id_field(row.fields)
        value = row.fields.get(name) if name else None
        if not isinstance(value, str | int):
            raise PredictionFileError(file, row.place, f"the field {name!r} is missing or no text")
        if (first := by_key.setdefault(terms.strip_marks(str(value)), row)) is not row:
            raise PredictionFileError(file, row.place, f"the {name} {str(value)!r} is that of {first.place} too")
    return by_key


def _require_fields(row: _Row, groups: Sequence[Sequence[str]], file: Path | str, complaint: str) -> None:
    for names in groups:
        if not any(name in row.fields for name in names):
            raise PredictionFileError(file, row.place, f"{complaint} {' or '.join(map(repr, names))}")


def _make_case(row: _Row | None, gold: _Row, metric: DatasetMetric, file: Path) -> ScoringCase:
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
    return ScoringCase(Case(gold.fields, predicted, row.fields), row.place, ending, *groups)


def _find_kind(gold: Mapping[str, Any], row: Mapping[str, Any], metric: DatasetMetric) -> Any:
    names = (metric.kind_field, *KIND_FIELDS) if metric.kind_field else KIND_FIELDS
    kinds = (record[name] for record in (gold, row) for name in names if isinstance(record.get(name), str | int))
    question_id = str(gold.get(_id_field(gold) or "", ""))
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


def score_run(database: Database, run_id: UUID, name: str, dataset: str | None = None) -> dict[str, Any]:
    """Score a run's answers by a metric, store the scores, and return the metric's report.

    It is one of the questions' data set, or one by which every run is scored when it ends: an older run gets a new one.
    Nothing is asked again. `dataset` is needed for questions that name none. MetricError if they cannot have the
    metric, or if they changed since they were asked. A figure of all questions together, such as QALD's F1, is
    reported only; stored are the figures of each question that it is made of, under their own metric's name.
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
    cases = [_make_run_case(answer, metric) for answer in answers]
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


def _make_run_case(answer: FinishedAnswer, metric: DatasetMetric) -> ScoringCase:
    question = answer.question
    # The import keeps the type that the tables of the data set use as the question's kind.
    kind = {} if question.kind is None else {"kind": question.kind}
    gold = {"question": question.text, "id": question.source_id} | question.details | kind
    names = metric.gold_fields[0] if metric.gold_fields else ()
    if not names or (names == GOLD_TEXT_FIELDS and not any(name in gold for name in names)):
        gold["gold"] = question.gold_answers
    place = f"the question {question.text[:80]!r}"
    _require_fields(_Row(place, gold), metric.gold_fields, "the run", "its record has no field")
    instance = question.details.get(INSTANCE_FIELD)
    groups = (str(_find_kind(gold, {}, metric)), instance and str(instance))
    if answer.ending != ANSWERED or not (text := (answer.answer or "").strip()):
        ending = {ANSWERED: EMPTY, REFUSED: REFUSED}.get(answer.ending, FAILED)
        row: dict[str, Any] = {"predicted": []} if ending == EMPTY else {}
        return ScoringCase(Case(gold, row.get("predicted"), row), place, ending, *groups)
    predicted = (
        text if metric.gold_values is None else name_values(text, question.gold_answers, metric.gold_values(gold))
    )
    return ScoringCase(Case(gold, predicted, {"predicted": predicted}), place, ANSWERED, *groups)
