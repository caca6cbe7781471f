"""`showhow questions import | blend | list | formats`: the questions of a project, and the formats of their files."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.project import store_guideline_pictures
from showhow.app.cli.removals import add_removal_commands
from showhow.app.services import current_services
from showhow.db.questions import projects
from showhow.db.removal.removal_kinds import Kind
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.evaluation.datasets.reader import QuestionSurvey
from showhow.evaluation.value_format import format_count
from showhow.tasks.blend import BlendQuestions, blend
from showhow.tasks.questions import ImportQuestions, import_file

app = typer.Typer(no_args_is_help=True, help="Import and list a project's questions.")
add_removal_commands(app, Kind.QUESTION)

ProjectOption = Annotated[str, typer.Option(help="The project's name.")]


@app.command("import")
@draw_options
def import_(request: ImportQuestions, *, as_json: AsJson = False) -> None:
    """Add the questions of a file to a project; existing ones stay as they are.

    Records that cannot be read are counted by reason, and the others are imported.
    """
    services, project = current_services(), request.project
    imported = import_file(services, request)
    if request.guidelines is not None:
        with services.database.begin() as session:
            store_guideline_pictures(session, projects.get_project(session, project).id, request.guidelines)
    counts, *remarks = imported.report.lines()
    lines = (f"{project}: {counts}", *remarks, *_survey_lines(imported.survey))
    value = {"project": project, **imported.report.value(), **_survey_to_json(imported.survey)}
    emit(value, "\n".join(lines), as_json=as_json)


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


@app.command("blend")
@draw_options
def blend_(request: BlendQuestions, *, as_json: AsJson = False) -> None:
    """Write questions that need two sources of a world, as BlendQA's: graph and text, graph and web, text and web.

    Each part of a question is stated by one source alone, and the gold answers are those of the world's facts.
    """
    written = blend(current_services(), request)
    lines = [f"{request.to}: {', '.join(f'{count:,} {kind}' for kind, count in written.counts.items())}"]
    emit(
        {"file": str(request.to), "questions": written.counts, "shortfalls": written.shortfalls},
        "\n".join([*lines, *written.shortfalls]),
        as_json=as_json,
    )


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
