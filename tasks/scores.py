"""Tasks over the stored answers of runs: score them by a metric, and have a model judge them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

from showhow.db.models import Run
from showhow.db.review.review import add_labels
from showhow.db.runs import comparisons
from showhow.evaluation.comparison.fact_comparison import state_facts
from showhow.evaluation.datasets.gold_names import GoldNames, open_gold_names
from showhow.evaluation.scoring.model_judges import (
    JudgingOptions,
    JudgingResult,
    PersonLabel,
    judge_run,
    read_label_file,
)
from showhow.evaluation.scoring.predictions import score_run
from showhow.guard.files import open_regular
from showhow.option_fields import group, option
from showhow.runs.services import Services
from showhow.tasks.progress import print_count, print_progress
from showhow.tasks.task import TaskError, fail_on_interrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRun:
    """A run whose stored answers are scored by a metric of its data set."""

    run: str = option(help="The id of a run, or its beginning.", is_argument=True)
    metric: str = option(help="The metric's name; `list` shows those that the run can have.")
    dataset: str | None = option(None, "The data set of questions that do not name theirs.")
    world: str | None = option(None, "The world whose graph has the names of gold answers that are ids.")


def score_answers(services: Services, request: ScoreRun) -> dict[str, Any]:
    """Score the answers of the run with this id and store the scores; nothing is asked again.

    Gold answers that are ids have the names of the run's world, unless another one is named.
    """
    run_id = UUID(request.run)
    if request.world is None:
        with services.database.read() as session:
            names = GoldNames.of_world(services, session.get_one(Run, run_id).world)
    else:
        names = open_gold_names(services, request.world)
    report = score_run(services.database, run_id, request.metric, request.dataset, names)
    if names.named or names.unnamed:
        print_progress(names.summary)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRun:
    """A run whose answers a model judges, and people's labels that are stored first."""

    run: str = option(help="The id of the verification; `showhow verify --list` lists them.", is_argument=True)
    labels: Path | None = option(
        None, "People's labels to store first: CSV or JSON Lines with question, value, person, aspect."
    )
    options: JudgingOptions = group(JudgingOptions, "")


def judge_answers(services: Services, request: JudgeRun) -> JudgingResult:
    """Have a model judge the answers that it has not judged yet; what is left is the `problem` of the result."""
    try:
        run_id = UUID(request.run)
    except ValueError as error:
        message = f"{request.run!r} is not the id of a verification; `showhow verify --list` lists them"
        raise TaskError(message) from error
    with services.database.read() as session:
        comparisons.find_comparable_run(session, run_id)
    if request.labels is not None:
        labels = _read_label_file(request.labels)
        with services.database.begin() as session:
            print_progress(f"{add_labels(session, run_id, labels):,} new labels of people are stored")
    with fail_on_interrupt("the judging was stopped; the same command judges the rest"):
        count = partial(print_count, units="answers")
        return judge_run(services, run_id, request.options, state_facts, Event(), count, print_progress)


def _read_label_file(file: Path) -> list[PersonLabel]:
    try:
        with open_regular(file) as stream:
            return read_label_file(file.name, stream.read())
    except OSError as error:
        raise TaskError(f"{file} cannot be read as CSV or JSON Lines: {error.strerror or error}") from error
