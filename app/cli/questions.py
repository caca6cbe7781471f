"""`showhow questions import | list`: the questions of a project."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit
from app.services import services
from db import projects
from evaluation.datasets import list_format_names, read_questions
from evaluation.datasets.record import QuestionRecord
from worlds.importers.files import open_regular_file
from worlds.open import read_world_metadata

app = typer.Typer(no_args_is_help=True, help="Import and list a project's questions.")

ProjectOption = Annotated[str, typer.Option(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    file: Path,
    project: ProjectOption,
    world: Annotated[str | None, typer.Option(help="The world of a new project.")] = None,
    form: Annotated[str, typer.Option("--format", help=f"{list_format_names()}.")] = "auto",
    guidelines: Annotated[Path | None, typer.Option(help="A Markdown file with the guidelines for annotators.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Import only the question with this id; may be repeated.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Add the questions of a file to a project; existing ones stay as they are."""
    parts = services()
    records = _filter_records(read_questions(file, form), only)
    if world is not None:
        read_world_metadata(parts.settings.worlds_folder, world)
    text = _read_guidelines(guidelines) if guidelines else None
    with parts.database.begin() as session:
        stored = projects.get_or_create_project(session, project, world=world)
        if text is not None:
            stored.guidelines = text
        counts = projects.add_questions(session, stored.id, records)
    value = {"project": project, "added": counts.added, "already": counts.existing}
    emit(value, f"{project}: {counts.added} questions added, {counts.existing} existed already", as_json=as_json)


def _filter_records(records: list[QuestionRecord], only: list[str] | None) -> list[QuestionRecord]:
    """Return the records with these ids, or all records if no ids are given."""
    if missing := set(only or ()) - {record.source_id for record in records}:
        raise CommandError(f"the file has no question {', '.join(sorted(missing))}")
    return [record for record in records if record.source_id in only] if only else records


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
    with services().database.read() as session:
        stored = projects.find_project(session, project)
        if stored is None:
            raise CommandError(f"there is no project {project!r}; `showhow questions import` makes one")
        rows = projects.list_questions(session, stored.id, limit=limit, after=after)
    values: list[dict[str, Any]] = [
        {"position": q.position, "text": q.text, "kind": q.kind, "answers": q.gold_answers, "completed": q.completed}
        for q in rows
    ]
    emit(values, "\n".join(f"{q.position}. {q.text}" for q in rows) or "no questions", as_json=as_json)
