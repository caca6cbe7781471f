"""Evaluate a reasoner over questions with gold answers."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from showhow.db.questions.projects import add_questions, get_or_create_project
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.run_spec import MODEL_SKILLS, RunLimits
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.datasets.record import parse_question
from showhow.evaluation.scoring.scoring import load_figures
from showhow.evaluation.shared_model import TotalLimits
from showhow.evaluation.verification.verify import (
    ExecutionOptions,
    NoQuestion,
    add_world_project,
    run_verification,
    start_verification,
)
from showhow.interface.demonstrations import Library
from showhow.interface.errors import ShowhowError, in_one_sentence
from showhow.interface.homes import Home, find_home, run_interruptibly
from showhow.interface.places import World
from showhow.interface.run_options import choose_spec, choose_world

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evaluation:
    """A run over questions; it is a verification of the home, for the pages Verify and Compare too."""

    run: str
    """The id of the run."""
    project: str
    """The project that has the questions."""
    figures: Mapping[str, Any]
    """questions, answered, refused, failed, right, f1 (over all questions, 0 without an answer), f1_answered, the other
    metrics, calls of the model, tokens and cost; `by_kind` has the same by kind of question, `left` is unfinished."""
    home: Home

    @property
    def scores(self) -> "pd.DataFrame":
        """A row for each question: question, kind, ending, answer, gold_answers, failure, and a column for each metric.

        A metric is 0 where there is no answer, as in the figures, and empty where the question is unfinished.
        """
        attempts, scores = self.home.attempts(self.run), self.home.scores(self.run)
        values = scores.pivot_table(index="attempt", columns="metric", values="value", aggfunc="first", sort=False)
        names = ["question", "kind", "ending", "answer", "gold_answers", "failure", "trace"]
        joined = attempts.set_index("attempt")[names].join(values)
        metrics = list(values.columns)
        has_failed = joined["ending"].notna() & joined["answer"].isna()
        joined.loc[has_failed, metrics] = joined.loc[has_failed, metrics].fillna(0.0)
        return joined.reset_index(drop=True)

    def __repr__(self) -> str:
        f1 = self.figures["f1"]
        return f"Evaluation({self.figures['questions']} questions, f1 {'unknown' if f1 is None else f'{f1:.3f}'})"


@in_one_sentence()
def evaluate(  # noqa: PLR0913 - those of the verb
    *,
    world: World | str | None = None,
    project: str | None = None,
    questions: "Iterable[Mapping[str, Any]] | pd.DataFrame | str | Path | None" = None,
    reasoner: str | None = None,
    preset: str | None = None,
    model: Any = None,
    library: Library | str | None = None,
    skills: str = MODEL_SKILLS,
    limit: int | None = None,
    seed: int = 0,
    answerable_only: bool = False,
    limits: RunLimits | None = None,
    total: TotalLimits | None = None,
    at_once: int = 2,
    on_progress: Callable[[int, int], None] | None = None,
    home: Home | None = None,
    **options: Any,
) -> Evaluation:
    """Have a reasoner answer questions, score the answers, and store the run with its traces.

    The questions are those of a project, those that a world was generated with, or `questions` about a world: a file in
    any format that `showhow questions import` reads, or mappings with question, answer or answers, and maybe id and
    kind (a frame too). `limit` takes a sample, evenly over their kinds, which `seed` decides. `reasoner`, `preset`,
    `model`, `library` and `options` are those of `ask`; `skills` is what replies to the skills of a reasoner, if not
    its model. `limits` are those of each question, `total` of all together. `on_progress` gets how many are done, and
    of how many. ShowhowError if the server of the model failed; what is stored then is continued by `showhow verify
    --go-on`.

    >>> result = evaluate(world=world, library=library, limit=3)
    >>> result.figures["questions"], len(result.scores)
    (3, 3)
    """
    chosen_home = find_home(
        home, world.home if isinstance(world, World) else None, library.home if isinstance(library, Library) else None
    )
    services = chosen_home.services
    name = choose_world(chosen_home, world, project)
    spec = choose_spec(chosen_home, reasoner, preset, model, library, options, limits, skills)
    if questions is not None:
        if name is None:
            raise ShowhowError("questions of your own are asked in a world: name one in place of the project")
        project = _store_questions(chosen_home, name, _read_questions(questions))
    elif name is not None:
        project = add_world_project(services, name).name
    spec = spec.replace(sample=limit, seed=seed, answerable_only=answerable_only)
    try:
        run = start_verification(services, str(project), spec, goes_on=False)
    except NoQuestion as error:
        raise ShowhowError(f"no question of {project} has a gold answer") from error
    stop = Event()
    execution = ExecutionOptions(at_once, total or TotalLimits())
    run_interruptibly(
        lambda: run_verification(services, run.id, execution, stop, on_progress or (lambda _done, _total: None)),
        stop.set,
    )
    return Evaluation(str(run.id), str(project), load_figures(services.database, run.id), chosen_home)


def _read_questions(source: Any) -> list[QuestionRecord]:
    if isinstance(source, str | Path):
        return read_questions(Path(source).expanduser())
    rows = source.to_dict("records") if hasattr(source, "to_dict") else list(source)
    records = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ShowhowError(f"question {number} is {row!r}, and no mapping with question and answer")
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}
        records.append(parse_question(fields, Path("questions"), number))
    return records


def _store_questions(home: Home, world: str, records: list[QuestionRecord]) -> str:
    """The project with exactly these questions, so that runs over them compare."""
    content = json.dumps([[record.text, record.gold_answers] for record in records], sort_keys=True, default=str)
    name = f"Questions about {world}, {hashlib.sha256(content.encode()).hexdigest()[:12]}"
    with home.services.database.begin() as session:
        project = get_or_create_project(session, name, world=world)
        add_questions(session, project.id, records)
    return name
