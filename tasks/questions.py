"""The import of a file of questions into a project."""

from dataclasses import dataclass
from pathlib import Path

from showhow.evaluation.datasets import QUESTION_FORMATS, list_format_names, open_question_file
from showhow.evaluation.datasets.reader import AUTO, QuestionSurvey
from showhow.evaluation.datasets.record import COLUMN_MEANINGS
from showhow.guard.files import open_regular
from showhow.guard.input_bounds import bounded_work
from showhow.option_fields import option
from showhow.runs.services import Services
from showhow.tasks.imports import (
    QuestionImportPlan,
    QuestionImportReport,
    finish_interrupted_imports,
    import_questions,
    open_project_graph,
)
from showhow.tasks.progress import print_progress, print_result
from showhow.tasks.task import TaskError, fail_on_interrupt
from showhow.worlds.open import read_world_metadata
from showhow.worlds.terms import strip_marks

UNBOUNDED_HELP = "Read a trusted file whatever its size, its expansion and its memory."


def _describe_language() -> str:
    names = ", ".join(form.name for form in QUESTION_FORMATS.values() if form.has_languages)
    return f"The language of the questions; only these formats have several: {names}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportQuestions:
    """Which questions of which file are added to which project."""

    file: Path = option(is_argument=True)
    project: str = option(help="The project's name.")
    world: str | None = option(None, "The world of a new project.")
    form: str = option(AUTO, lambda: f"{list_format_names()}.", label="Format", flag="--format")
    split: str | None = option(None, "The split of all questions, such as test.")
    language: str = option("en", _describe_language)
    guidelines: Path | None = option(None, "A Markdown file with the guidelines for annotators.")
    only: tuple[str, ...] = option((), "Import only the question with this id; may be repeated.")
    column: tuple[str, ...] = option(
        (), f"What a column means, as in question=Frage: {', '.join(COLUMN_MEANINGS)}; may be repeated."
    )
    without_gold: bool = option(
        default=False,
        help="Import a file although none of its questions has a gold answer.",
        label="Import them without gold answers",
    )
    unbounded: bool = option(default=False, help=UNBOUNDED_HELP)


@dataclass(frozen=True, slots=True)
class ImportedQuestions:
    """What was added, and what the file holds."""

    report: QuestionImportReport
    survey: QuestionSurvey


def import_file(services: Services, request: ImportQuestions) -> ImportedQuestions:
    """Add the questions; existing ones stay as they are, and records that cannot be read are counted by reason."""
    for sentence in finish_interrupted_imports(services):
        print_progress(sentence)
    plan = QuestionImportPlan(
        request.project,
        request.world,
        request.form,
        request.language,
        request.split,
        list(map(strip_marks, request.only)),
        None if request.guidelines is None else _read_guidelines(request.guidelines),
        dict(map(parse_column, request.column)),
    )
    with fail_on_interrupt("The import was stopped; nothing was imported."):
        with bounded_work(request.file, unbounded=request.unbounded):
            survey = _survey(request.file, plan, without_gold=request.without_gold)
        if request.world is not None:
            read_world_metadata(services.settings.worlds_folder, request.world)
        if survey.with_bare_ids:
            # The memory of an open world is not that of the file.
            open_project_graph(services, plan)
        with bounded_work(request.file, unbounded=request.unbounded):
            report = import_questions(services, request.file, plan, survey.questions)
    print_result(f"{request.project}: {'; '.join(report.lines())}")
    return ImportedQuestions(report, survey)


def parse_column(text: str) -> tuple[str, str]:
    """A column and its meaning from MEANING=COLUMN."""
    meaning, equals, name = text.partition("=")
    if not equals or meaning not in COLUMN_MEANINGS:
        raise TaskError(f"--column takes MEANING=COLUMN with a meaning of {', '.join(COLUMN_MEANINGS)}, not {text!r}")
    return name, meaning


def _survey(file: Path, plan: QuestionImportPlan, *, without_gold: bool) -> QuestionSurvey:
    """What the file holds; TaskError if nothing of it is to be imported."""
    reader = open_question_file(file, plan.form, plan.language, plan.columns)
    survey = reader.survey()
    if survey.problem is not None and not without_gold:
        raise TaskError(
            f"{file}: {survey.problem}; nothing was imported. Import it with --without-gold to have its questions "
            "annotated, or name another format"
        )
    if plan.only and (missing := set(plan.only) - {record.source_id for record in reader.iter_records()}):
        raise TaskError(f"the file has no question {', '.join(sorted(missing))}")
    return survey


def _read_guidelines(guidelines: Path) -> str:
    try:
        with open_regular(guidelines) as stream:
            return stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the guidelines {guidelines} cannot be read: {error}") from error
