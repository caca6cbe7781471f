"""`showhow questions import | list | formats`: the questions of a project, and the formats of question files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, UnboundedOption, emit, fail_on_interrupt
from app.cli.project import store_guideline_pictures
from app.cli.removals import add_removal_commands
from app.imports import (
    QuestionImportPlan,
    finish_interrupted_imports,
    import_questions,
    open_project_graph,
)
from app.progress import print_progress, print_result
from app.services import current_services
from db import projects
from db.removal_kinds import Kind
from evaluation.datasets import QUESTION_FORMATS, list_format_names, open_question_file
from evaluation.datasets.reader import AUTO, QuestionSurvey
from evaluation.datasets.record import COLUMN_MEANINGS
from evaluation.value_format import format_count
from guard.files import open_regular
from guard.input_bounds import bounded_work
from worlds.open import read_world_metadata
from worlds.terms import strip_marks

app = typer.Typer(no_args_is_help=True, help="Import and list a project's questions.")
add_removal_commands(app, Kind.QUESTION)

ProjectOption = Annotated[str, typer.Option(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
COLUMN_HELP = f"What a column means, as in question=Frage: {', '.join(COLUMN_MEANINGS)}; may be repeated."
_WITH_LANGUAGES = ", ".join(form.name for form in QUESTION_FORMATS.values() if form.has_languages)


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    file: Path,
    project: ProjectOption,
    world: Annotated[str | None, typer.Option(help="The world of a new project.")] = None,
    form: Annotated[str, typer.Option("--format", help=f"{list_format_names()}.")] = AUTO,
    split: Annotated[str | None, typer.Option(help="The split of all questions, such as test.")] = None,
    language: Annotated[
        str, typer.Option(help=f"The language of the questions; only these formats have several: {_WITH_LANGUAGES}.")
    ] = "en",
    guidelines: Annotated[Path | None, typer.Option(help="A Markdown file with the guidelines for annotators.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Import only the question with this id; may be repeated.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help=COLUMN_HELP)] = None,
    *,
    without_gold: Annotated[
        bool, typer.Option("--without-gold", help="Import a file although none of its questions has a gold answer.")
    ] = False,
    unbounded: UnboundedOption = False,
    as_json: AsJson = False,
) -> None:
    """Add the questions of a file to a project; existing ones stay as they are.

    Records that cannot be read are counted by reason, and the others are imported.
    """
    services = current_services()
    for sentence in finish_interrupted_imports(services):
        print_progress(sentence)
    plan = QuestionImportPlan(
        project,
        world,
        form,
        language,
        split,
        list(map(strip_marks, only or ())),
        _read_guidelines(guidelines) if guidelines else None,
        dict(map(parse_column, column or ())),
    )
    with fail_on_interrupt("The import was stopped; nothing was imported."):
        with bounded_work(file, unbounded=unbounded):
            survey = _survey(file, plan, without_gold=without_gold)
        if world is not None:
            read_world_metadata(services.settings.worlds_folder, world)
        if survey.with_bare_ids:
            # The memory of an open world is not that of the file.
            open_project_graph(services, plan)
        with bounded_work(file, unbounded=unbounded):
            report = import_questions(services, file, plan, survey.questions)
    if guidelines is not None:
        with services.database.begin() as session:
            store_guideline_pictures(session, projects.get_project(session, project).id, guidelines)
    counts, *remarks = report.lines()
    print_result("; ".join((f"{project}: {counts}", *remarks)))
    lines = (f"{project}: {counts}", *remarks, *_survey_lines(survey))
    emit({"project": project, **report.value(), **_survey_to_json(survey)}, "\n".join(lines), as_json=as_json)


def parse_column(text: str) -> tuple[str, str]:
    """A column and its meaning from MEANING=COLUMN."""
    meaning, equals, name = text.partition("=")
    if not equals or meaning not in COLUMN_MEANINGS:
        raise CommandError(
            f"--column takes MEANING=COLUMN with a meaning of {', '.join(COLUMN_MEANINGS)}, not {text!r}"
        )
    return name, meaning


def _survey(file: Path, plan: QuestionImportPlan, *, without_gold: bool) -> QuestionSurvey:
    """What the file holds; CommandError if nothing of it is to be imported."""
    reader = open_question_file(file, plan.form, plan.language, plan.columns)
    survey = reader.survey()
    if survey.problem is not None and not without_gold:
        raise CommandError(
            f"{file}: {survey.problem}; nothing was imported. Import it with --without-gold to have its questions "
            "annotated, or name another format"
        )
    if plan.only and (missing := set(plan.only) - {record.source_id for record in reader.iter_records()}):
        raise CommandError(f"the file has no question {', '.join(sorted(missing))}")
    return survey


def _survey_to_json(survey: QuestionSurvey) -> dict[str, Any]:
    return {
        "format": survey.format_name,
        "questions": survey.questions,
        "without_gold": survey.without_gold,
        "cannot_be_answered": survey.unanswerable,
        "several_gold": survey.with_several,
        "repeated_ids": survey.repeated_ids,
        "doubtful_gold": survey.doubtful,
        "unread": [unread.to_json() for unread in survey.unread_reasons],
    }


def _survey_lines(survey: QuestionSurvey) -> Iterator[str]:
    yield f"format {survey.format_name}: {format_count(survey.questions, 'question')} read"
    if survey.without_gold:
        yield f"{format_count(survey.without_gold, 'question')} without gold answers"
    if survey.unanswerable:
        yield f"{format_count(survey.unanswerable, 'question')} that cannot be answered"
    if survey.with_several:
        yield f"{format_count(survey.with_several, 'question')} with several, all of which a correct answer names"
    if survey.repeated_ids:
        yield survey.repetition
    if survey.doubtful:
        yield survey.doubt
    for unread in survey.unread_reasons:
        yield (
            f"{format_count(unread.count, 'record')} not read: {unread.first.reason} (first in {unread.first.place})"
        )


def _read_guidelines(guidelines: Path) -> str:
    try:
        with open_regular(guidelines) as stream:
            return stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the guidelines {guidelines} cannot be read: {error}") from error


@app.command("list")
def list_(
    project: ProjectOption, limit: Annotated[int, typer.Option(min=1)] = 20, after: int = 0, *, as_json: AsJson = False
) -> None:
    """List the questions of a project in order."""
    with current_services().database.read() as session:
        stored = projects.find_project(session, project)
        if stored is None:
            raise CommandError(f"there is no project {project!r}; `showhow questions import` makes one")
        rows = projects.list_questions(session, stored.id, limit=limit, after=after)
    values: list[dict[str, Any]] = [
        {
            "id": str(q.id),
            "position": q.position,
            "text": q.text,
            "kind": q.kind,
            "answers": q.gold_answers,
            "completed": q.completed,
        }
        for q in rows
    ]
    emit(values, "\n".join(f"{q.position}. {q.text}" for q in rows) or "no questions", as_json=as_json)


@app.command()
def formats(*, as_json: AsJson = False) -> None:
    """List the formats of question files, as `import --format` takes them."""
    values = [{"name": form.name, "title": form.title} for form in QUESTION_FORMATS.values()]
    width = max(map(len, QUESTION_FORMATS))
    emit(values, "\n".join(f"{value['name']:<{width}}  {value['title']}" for value in values), as_json=as_json)
