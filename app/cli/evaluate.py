"""`showhow evaluate`: scores a reasoner's answers to questions with gold answers; stores them with --keep only."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Annotated, Any

import typer

from app.cli.options import (
    DEFAULT_TIME_LIMIT,
    AnswerableOption,
    ConcurrencyOption,
    CostLimitOption,
    DemonstrationCountOption,
    LibraryOption,
    ModelCallLimitOption,
    ProfileOption,
    ReasonerOption,
    ReasonerSettingsOption,
    RetrievalLimitOption,
    SelectionOption,
    StepLimitOption,
    TimeLimitOption,
    TokenLimitOption,
    TotalCostLimitOption,
    TotalTimeLimitOption,
    TotalTokenLimitOption,
    build_limits,
    parse_run_config,
)
from app.cli.output import CommandError, emit, fail_on_interrupt
from app.progress import print_count, print_progress
from app.services import current_services
from db import attempts
from db.models import UNFINISHED_ENDINGS, Project, Question
from db.projects import count_questions, find_project, list_questions
from db.trace_configuration import MODEL_SKILLS
from db.unanswerable import find_gold_reason
from db.verifications import list_gold_questions
from evaluation.answer_notation import DateNotations
from evaluation.datasets import read_world_questions
from evaluation.datasets.gold_names import GoldNames
from evaluation.metrics import METRICS, format_means
from evaluation.scoring import (
    REFUSED,
    QuestionScore,
    format_usage,
    sample_questions,
    score_outcome,
    summarize_calls,
    summarize_refusals,
    summarize_scores,
    summarize_usage,
)
from evaluation.shared_model import SharedModel, TotalLimits, answer_in_parallel
from evaluation.skill_sources import (
    UnknownSkillSource,
    list_skill_choices,
    parse_skill_source,
)
from evaluation.value_format import format_seconds
from evaluation.verify import (
    AttemptWorker,
    ExecutionOptions,
    VerificationPlan,
    add_world_project,
    finish_verification,
    start_verification,
)
from reasoners.base import Task
from reasoners.skills.skill import Responder
from runs.budget import RunLimits
from runs.preparation import RunConfig, prepare_task, record_profile
from runs.process import LeaseKeeper, hold_run_lock
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from settings import DEFAULT_LIBRARY

PROGRESS_INTERVAL = 10
MAX_REASONS = 5
"""The most frequent reasons of failure, and of refusal, that are printed."""


def evaluate(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    world: Annotated[str | None, typer.Option(help="Ask the questions of this generated world.")] = None,
    project: Annotated[str | None, typer.Option(help="Ask the questions of this project, in its world.")] = None,
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    profile: ProfileOption = None,
    skills: Annotated[
        str, typer.Option(help=f"What replies to the skills of a reasoner: {list_skill_choices()}.")
    ] = MODEL_SKILLS,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Sample size, evenly over the kinds of questions; default: all.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the sample; the same seed gives the same questions.")
    ] = 0,
    steps: StepLimitOption = None,
    tokens: TokenLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    money: CostLimitOption = None,
    model_calls: ModelCallLimitOption = None,
    retrievals: RetrievalLimitOption = None,
    at_once: ConcurrencyOption = 2,
    most_money: TotalCostLimitOption = None,
    most_tokens: TotalTokenLimitOption = None,
    most_seconds: TotalTimeLimitOption = None,
    answerable: AnswerableOption = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Store the run with its traces and scores as a verification, for the pages Verify and Compare.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print JSON with the model, its usage, {', '.join(METRICS)}.")
    ] = False,
) -> None:
    """Have a reasoner answer questions with gold answers, and print its scores by kind of question.

    Questions that a limit or the server of the model left unfinished are counted as left, not as failed; the exit
    status is then 1.
    """
    services = current_services()
    try:
        skill_source = parse_skill_source(skills)
    except UnknownSkillSource as error:
        raise typer.BadParameter(str(error)) from error
    uses_model = skill_source is None
    config = parse_run_config(services, reasoner, library, k, mode, option, profile, uses_model=uses_model)
    model_profile = config.model_profile(services) if uses_model else None
    question_project, questions = _load_questions(services, world, project, keep=keep)
    questions = [question for question in questions if not (answerable and find_gold_reason(question.gold_answers))]
    if not questions:
        raise CommandError(f"there is no question to ask in {world or project}")
    sample = sample_questions(questions, limit, seed)
    if config.entry.uses_demonstrations and not config.entry.needs_model and config.library_version(services) is None:
        raise CommandError(
            f"{config.reasoner} follows demonstrations, and there is no library {DEFAULT_LIBRARY!r}: run "
            "showhow setup, or name another library with --library (showhow library list shows them)"
        )
    stop, started = Event(), time.monotonic()
    options = ExecutionOptions(at_once, TotalLimits(most_money, most_tokens, most_seconds), on_note=print_progress)
    limits = build_limits(config, RunLimits(steps, tokens, seconds, money, model_calls, retrievals))
    plan = VerificationPlan(question_project.name, replace(config, skills=skills), limits=limits)
    open_answers = _keep_answers if keep else partial(_answer_in_memory, project=question_project)
    with open_answers(services, plan, sample, options, stop) as asked:
        shared = asked.shared
        with fail_on_interrupt(f"The evaluation was stopped; {asked.how_to_continue}."):
            results = answer_in_parallel(sample, asked.answer, shared, lambda: at_once, stop)
            scores = list(_count_results(results, len(sample)))
    left = len(sample) - len(scores)
    reason = shared.error or shared.reason_for_stopping
    if not scores:
        raise CommandError(f"no question was answered: {reason}; {asked.how_to_continue}")
    model = {
        "reasoner": config.reasoner,
        "model": model_profile.model if model_profile else None,
        "profile": record_profile(model_profile) if model_profile else None,
        "skills": skills,
    }
    spent = summarize_usage(shared.used) | {"seconds": round(time.monotonic() - started, 3)}
    counts = summarize_scores(scores) | {"refusals": summarize_refusals(scores), "left": left}
    summary = model | counts | spent | summarize_calls(scores) | asked.stored
    emit(summary, "\n".join(_result_lines(summary)), as_json=as_json)
    if left:
        raise CommandError(f"{left:,} questions are left: {reason}; {asked.how_to_continue}")


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """How the questions are answered, and what is stored of it."""

    shared: SharedModel
    answer: Callable[[Question], QuestionScore | None]
    """None for a question that has to be asked again."""
    how_to_continue: str
    stored: dict[str, str] = field(default_factory=dict)
    """What the report says about the stored run."""


@contextmanager
def _answer_in_memory(  # noqa: PLR0913, PLR0917 - those of _keep_answers, and the project
    services: Services,
    plan: VerificationPlan,
    sample: Sequence[Question],
    options: ExecutionOptions,
    stop: Event,
    project: Project,
) -> Iterator[_Evaluation]:
    """Store nothing."""
    config, skill_source = plan.run_config, parse_skill_source(plan.run_config.skills)
    chat = services.chat_client(config.profile) if config.entry.needs_model and skill_source is None else None
    shared = SharedModel(chat, options.limits, stop, on_note=options.on_note)
    make_responder = None if skill_source is None else skill_source.open(services, project.world)
    prepare = partial(_prepare_task, services, project, config, shared, make_responder, DateNotations(sample))
    names = GoldNames.of_world(services, project.world)
    names.look_up(question.gold_answers for question in sample)
    for question in sample:
        question.gold_answers = names.name_all(question.gold_answers)
    answer = partial(_answer_question, prepare, config, RunControl(plan.limits, stop), shared)
    yield _Evaluation(shared, answer, "its results are not stored, and --keep would store them")


@contextmanager
def _keep_answers(
    services: Services, plan: VerificationPlan, sample: Sequence[Question], options: ExecutionOptions, stop: Event
) -> Iterator[_Evaluation]:
    """Store the answers in a new verification; what is unfinished at the end can be continued."""
    run = start_verification(services, plan, sample)
    with (
        hold_run_lock(services.settings.home, str(run.id), "another process is running this evaluation"),
        LeaseKeeper(services.database) as keeper,
    ):
        worker = AttemptWorker(services, run, keeper, options, stop)
        with services.database.read() as session:
            ids = attempts.list_unfinished_attempts(session, run.id)
        attempt_ids = {question.id: attempt_id for question, attempt_id in zip(sample, ids, strict=True)}

        def answer(question: Question) -> QuestionScore | None:
            outcome = worker.work(attempt_ids[question.id])
            question.gold_answers = worker.gold_names.name_all(question.gold_answers)
            return None if outcome is None else score_outcome(question, outcome)

        print_progress(f"the answers are stored in verification {run.id}")
        goes_on = f"`showhow verify --go-on {run.id}` continues it"
        yield _Evaluation(worker.shared_model, answer, goes_on, {"run": str(run.id)})
        finish_verification(services, run.id)


def _load_questions(
    services: Services, world: str | None, project: str | None, *, keep: bool
) -> tuple[Project, list[Question]]:
    """Load the questions, and the project that defines their world and tools; with `keep`, one that is stored."""
    if (world is None) == (project is None):
        raise typer.BadParameter("name either a world with --world or a project with --project")
    if project is not None:
        with services.database.read() as session:
            question_project = find_project(session, project)
            if question_project is None:
                raise CommandError(f"there is no project {project!r}")
            return question_project, list_gold_questions(session, question_project.id)
    if keep:
        stored = add_world_project(services, str(world))
        with services.database.read() as session:
            return stored, list_questions(session, stored.id, limit=count_questions(session, stored.id))
    question_project = Project(name=str(world), world=str(world))
    return question_project, [
        Question(
            project_id=question_project.id,
            position=position,
            text=row.text,
            kind=row.kind,
            gold_answers=row.gold_answers,
            details=row.details,
        )
        for position, row in enumerate(read_world_questions(services.settings.worlds_folder, str(world)), 1)
    ]


def _prepare_task(  # noqa: PLR0913, PLR0917 - each is a part of the task
    services: Services,
    project: Project,
    config: RunConfig,
    shared: SharedModel,
    make_responder: Callable[[Question], Responder] | None,
    notations: DateNotations,
    question: Question,
) -> Task:
    """The task of a question, with the responder to its skills; None for the model."""
    task = prepare_task(services, question, project, config).task
    task = replace(task, date_notation=notations.find(question))
    if make_responder is not None:
        return replace(task, responder=make_responder(question), context=replace(task.context, chat=None))
    if task.context.chat is not None:
        return replace(task, context=replace(task.context, chat=shared.guard(question.text)))
    return task


def _answer_question(
    prepare: Callable[[Question], Task],
    config: RunConfig,
    control: RunControl,
    shared: SharedModel,
    question: Question,
) -> QuestionScore | None:
    """Answer the question and score the answer; None if it has to be asked again."""
    if not shared.accepts_requests:
        return None
    outcome = run_reasoner(config.make_reasoner(), prepare(question), MemoryRecorder(), control)
    if outcome.ending in UNFINISHED_ENDINGS:
        return None
    return score_outcome(question, outcome)


def _count_results(results: Iterator[QuestionScore], total: int) -> Iterator[QuestionScore]:
    """The results, with progress and the most frequent reasons of failure on stderr."""
    failures: Counter[str] = Counter()
    for done, score in enumerate(results, 1):
        if done % PROGRESS_INTERVAL == 0 or done == total:
            print_count(done, total, "questions")
        if score.ending not in ("answered", REFUSED):
            failures[str(score.failure)] += 1
        yield score
    for reason, count in failures.most_common(MAX_REASONS):
        print_progress(f"{count:,} failed: {reason}")


def _result_lines(summary: dict[str, Any]) -> Iterator[str]:
    for name, group in (*summary["by_kind"].items(), ("all", summary)):
        yield (
            f"{format_means(group, decimals=3)}, F1 (answered only) {_format_score(group['f1_answered'])}  "
            f"{group['answered'] - group['cannot_be_answered']:4,} answered, "
            f"{group['cannot_be_answered']:4,} cannot be answered, {group['refused']:4,} refused, "
            f"{group['failed']:4,} failed of {group['questions']:4,}  {name}"
        )
    for reason, count in list(summary["refusals"].items())[:MAX_REASONS]:
        yield f"{count:4,} refused: {reason}"
    if summary["left"]:
        yield f"{summary['left']:,} questions are left unanswered and are not counted"
    if "run" in summary:
        yield f"stored as verification {summary['run']}: see the pages Verify and Compare, or `showhow compare`"
    yield f"{summary['reasoner']}, {format_usage(summary)}, {format_seconds(summary['seconds'])}"


def _format_score(score: float | None) -> str:
    return "    -" if score is None else f"{score:.3f}"
