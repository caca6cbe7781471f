"""`showhow questions import | list | formats`: the questions of a project, and the formats of question files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit
from app.services import current_services
from db import projects
from evaluation.datasets import QUESTION_FORMATS, list_format_names, open_question_file
from evaluation.datasets.reader import AUTO, QuestionReader, QuestionSurvey
from evaluation.datasets.record import QuestionRecord
from evaluation.value_format import format_count
from worlds.input_files import open_regular_file
from worlds.open import read_world_metadata

app = typer.Typer(no_args_is_help=True, help="Import and list a project's questions.")

ProjectOption = Annotated[str, typer.Option(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
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
    *,
    without_gold: Annotated[
        bool, typer.Option("--without-gold", help="Import a file although none of its questions has a gold answer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add the questions of a file to a project; existing ones stay as they are.

    Records that cannot be read are counted by reason, and the others are imported.
    """
    services = current_services()
    reader = open_question_file(file, form, language)
    survey = reader.survey()
    if survey.problem is not None and not without_gold:
        raise CommandError(
            f"{file}: {survey.problem}; nothing was imported. Import it with --without-gold to have its questions "
            "annotated, or name another format"
        )
    records = _select_records(reader, split, only)
    if world is not None:
        read_world_metadata(services.settings.worlds_folder, world)
    text = _read_guidelines(guidelines) if guidelines else None
    with services.database.begin() as session:
        stored = projects.get_or_create_project(session, project, world=world)
        if text is not None:
            stored.guidelines = text
        counts = projects.add_questions(session, stored.id, records)
    figures = {"added": counts.added, "already": counts.existing, "differing": counts.differing}
    lines = (f"{project}: {counts}", *_survey_lines(survey))
    emit({"project": project, **figures, **_survey_to_json(survey)}, "\n".join(lines), as_json=as_json)


def _survey_to_json(survey: QuestionSurvey) -> dict[str, Any]:
    return {
        "format": survey.format_name,
        "questions": survey.questions,
        "without_gold": survey.without_gold,
        "several_gold": survey.with_several,
        "unread": [unread.to_json() for unread in survey.unread_reasons],
    }


def _survey_lines(survey: QuestionSurvey) -> Iterator[str]:
    yield f"format {survey.format_name}: {format_count(survey.questions, 'question')} read"
    if survey.without_gold:
        yield f"{format_count(survey.without_gold, 'question')} without gold answers"
    if survey.with_several:
        yield f"{format_count(survey.with_several, 'question')} with several, all of which a correct answer names"
    for unread in survey.unread_reasons:
        yield (
            f"{format_count(unread.count, 'record')} not read: {unread.first.reason} (first in {unread.first.place})"
        )


def _select_records(reader: QuestionReader, split: str | None, only: list[str] | None) -> Iterator[QuestionRecord]:
    """The records with these ids, or all of them, in this split, or in their own."""
    if not only:
        return reader.iter_records(split)
    if missing := set(only) - {record.source_id for record in reader.iter_records()}:
        raise CommandError(f"the file has no question {', '.join(sorted(missing))}")
    return (record for record in reader.iter_records(split) if record.source_id in only)


def _read_guidelines(guidelines: Path) -> str:
    try:
        with open_regular_file(guidelines) as stream:
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
        {"position": q.position, "text": q.text, "kind": q.kind, "answers": q.gold_answers, "completed": q.completed}
        for q in rows
    ]
    emit(values, "\n".join(f"{q.position}. {q.text}" for q in rows) or "no questions", as_json=as_json)


@app.command()
def formats(*, as_json: AsJson = False) -> None:
    """List the formats of question files, as `import --format` takes them."""
    values = [{"name": form.name, "title": form.title} for form in QUESTION_FORMATS.values()]
    width = max(map(len, QUESTION_FORMATS))
    emit(values, "\n".join(f"{value['name']:<{width}}  {value['title']}" for value in values), as_json=as_json)
