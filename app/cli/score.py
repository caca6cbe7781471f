"""`showhow score` scores predictions by a metric of their data set; `showhow judge` has a model judge answers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import CommandError, UnboundedOption, emit
from showhow.app.services import current_services
from showhow.db.runs import comparisons
from showhow.evaluation.datasets.gold_names import open_gold_names
from showhow.evaluation.metrics import find_dataset_metric, list_dataset_metrics
from showhow.evaluation.scoring.model_judges import (
    report_preferences,
    report_ratings,
)
from showhow.evaluation.scoring.predictions import ENDINGS, read_cases, score_cases
from showhow.guard.input_bounds import bounded_work
from showhow.tasks import scores as tasks
from showhow.tasks.progress import print_progress
from showhow.tasks.scores import JudgeRun

LIST = "list"
"""The value of --metric that lists the metrics."""


def score(  # noqa: PLR0913 - every option of the verb is one parameter
    file: Annotated[
        Path | None, typer.Argument(help="Predictions: JSON Lines or a JSON list of rows with `predicted`.")
    ] = None,
    *,
    metric: Annotated[str, typer.Option(help="The metric's name; `list` shows the metrics of each data set.")],
    gold: Annotated[
        Path | None, typer.Option(help="The data set's own file, joined by id; default: `gold` of each row.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data set, so that a metric which it cannot have is refused.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="The world whose graph has the names of gold answers that are ids.")
    ] = None,
    unbounded: UnboundedOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON with value, components, counts and values by kind.")
    ] = False,
) -> None:
    """Score predictions with their gold answers by one metric, in total and by kind of question."""
    if metric == LIST:
        metrics = list_dataset_metrics()
        rows = {name: {known.name: known.unavailable or known.purpose for known in metrics[name]} for name in metrics}
        emit(rows, "\n".join(_metric_lines(rows)), as_json=as_json)
        return
    chosen = find_dataset_metric(metric, dataset)
    if file is None:
        raise CommandError("no file of predictions is named; name one, or list the metrics with --metric list")
    # The memory of an open world is not that of the file.
    names = None if world is None else open_gold_names(current_services(), world)
    with bounded_work(file, unbounded=unbounded):
        report = score_cases(read_cases(file, gold, chosen, names), chosen, file)
    emit(report, "\n".join(report_lines(report)), as_json=as_json)
    if names is not None:
        print_progress(names.summary)
    elif chosen.gold_values is not None and report["answered"] and not report["right"]:
        print_progress(
            "no answer equals the gold answer; if the gold answers are ids and these are in words, name the world "
            "whose graph has their names with --world"
        )


def _metric_lines(rows: dict[str, dict[str, str]]) -> Iterator[str]:
    for dataset, metrics in rows.items():
        yield dataset
        yield from (f"  {name:24} {purpose}" for name, purpose in metrics.items())


def report_lines(report: dict[str, Any]) -> Iterator[str]:
    """A report of evaluation/scoring/predictions.py in lines for people."""
    yield f"{report['metric']} (version {report['version']}, {report['source']}): {report['purpose']}"
    for kind, group in (*report["by_kind"].items(), ("all", report)):
        counts = ", ".join(f"{group[ending]:,} {ending}" for ending in ENDINGS if group[ending])
        yield f"{_format_value(group['value'])}  {counts} of {group['n']:,}  {kind}"
    yield ", ".join(f"{name} {_format_value(value)}" for name, value in report["components"].items())
    if report["unscored"]:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in report["unscored_because"].items())
        yield f"{report['unscored']:,} answers could not be scored, so there is no value ({reasons})"
    if report["excluded"]:
        yield f"{report['excluded']:,} questions are left out by the rule"
    if "note" in report:
        yield f"Note: {report['note']}"


def _format_value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


@draw_options
def judge(
    request: JudgeRun,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with the labels, shares and agreement.")] = False,
) -> None:
    """Have a model judge the answers of a verification that it has not judged yet, and report its verdicts."""
    services = current_services()
    result = tasks.judge_answers(services, request)
    with services.database.read() as session:
        stored = comparisons.find_comparable_run(session, UUID(request.run))
    compared = request.options.compared
    if compared is None:
        report = report_ratings(services.database, stored, result.judge)
        lines = list(_rating_lines(report))
    else:
        report = report_preferences(services.database, stored, result.judge, compared)
        lines = list(_preference_lines(report))
    report |= {"without_verdict": list(result.without_verdict), "left": result.left}
    emit(report, "\n".join([*lines, *result.without_verdict]), as_json=as_json)
    if result.problem:
        raise CommandError(result.problem)


def _rating_lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{report['judge']} has judged {report['judged']:,} answers"
    for aspect, rated in report["aspects"].items():
        counts = ", ".join(f"{count:,} {label}" for label, count in rated["labels"].items())
        people = ", ".join(f"{count:,} {label}" for label, count in rated["people"].items())
        yield f"  {aspect:16} {counts}" + (f"  (people: {people})" if any(rated["people"].values()) else "")
    agreement = report["agreement"]
    titles = {
        "share_true": "true, as judged",
        "sensitivity": "sensitivity",
        "specificity": "specificity",
        "corrected_share": "true, corrected by the judge's errors",
        "prediction_powered_share": "true, judge and people together",
    }
    yield from (f"  {_format_share(agreement[name])}  {title}" for name, title in titles.items() if name in agreement)
    if "kappa" in agreement:
        yield f"  {agreement['kappa']:.3f}  Cohen's kappa with people, over {agreement['labelled_by_both']:,} answers"
    if "note" in agreement:
        yield f"Note: {agreement['note']}"


def _preference_lines(report: Mapping[str, Any]) -> Iterator[str]:
    counts = f"{report['win']:,} won, {report['tie']:,} tied, {report['loss']:,} lost"
    yield f"{report['judge']} has compared {report['compared']:,} answers in both orders: {counts}"
    if report["compared"]:
        yield f"  {_format_share(report['mean'])}  mean (won 1, tied 0.5); sign test p = {report['sign_test_p']:.4f}"
        yield f"  {report['depends_on_order']:,} verdicts depend on the order, and count as ties"
        if report["first_preferred"] is not None:
            yield f"  {_format_share(report['first_preferred'])}  of the preferences are for the answer read first"


def _format_share(share: Mapping[str, Any]) -> str:
    interval = "" if share["interval"] is None else " ({:.3f} to {:.3f})".format(*share["interval"])
    return f"{share['value']:.3f}{interval}"
