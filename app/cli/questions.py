"""`showhow questions ...`: a project's questions in and listed."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit
from app.services import services
from db import projects
from evaluation.datasets import read_questions
from evaluation.datasets.record import QuestionRecord
from worlds.open import read_world_metadata

app = typer.Typer(no_args_is_help=True, help="Import and list a project's questions.")

ProjectOption = Annotated[str, typer.Option(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    file: Path,
    project: ProjectOption,
    world: Annotated[str | None, typer.Option(help="The world that a new project is over.")] = None,
    form: Annotated[str, typer.Option("--format", help="auto, jsonl, csv, 2wiki or hotpotqa.")] = "auto",
    guidelines: Annotated[Path | None, typer.Option(help="Markdown that annotators have at hand.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only the question of this id; may be repeated.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Add the file's questions to a project; those that it has already are left alone."""
    records = _filter_records(read_questions(file, form), only)
    if world is not None:
        read_world_metadata(services().settings.worlds_folder, world)
    words = _read_guidelines(guidelines) if guidelines else None
    with services().database.begin() as session:
        found = projects.get_or_create_project(session, project, world=world)
        if words is not None:
            found.guidelines = words
        added = projects.add_questions(session, found.id, records)
    told = {"project": project, "added": added.added, "already": added.existing}
    emit(told, f"{project}: {added.added} questions added, {added.existing} were there already", as_json=as_json)


def _filter_records(records: list[QuestionRecord], only: list[str] | None) -> list[QuestionRecord]:
    """The records of these ids; all of them without any."""
    if missing := set(only or ()) - {record.source_id for record in records}:
        raise CommandError(f"the file has no question {', '.join(sorted(missing))}")
    return [record for record in records if record.source_id in only] if only else records


def _read_guidelines(guidelines: Path) -> str:
    try:
        return guidelines.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise CommandError(f"the guidelines {guidelines} cannot be read: {failed}") from failed


@app.command("list")
def list_(
    project: ProjectOption, limit: Annotated[int, typer.Option(min=1)] = 20, after: int = 0, *, as_json: AsJson = False
) -> None:
    """The project's questions in order."""
    with services().database.read() as session:
        found = projects.find_project(session, project)
        if found is None:
            raise CommandError(f"there is no project {project!r}; `showhow questions import` makes one")
        rows = projects.list_questions(session, found.id, limit=limit, after=after)
    told: list[dict[str, Any]] = [
        {"position": q.position, "text": q.text, "kind": q.kind, "answers": q.gold_answers, "completed": q.completed}
        for q in rows
    ]
    emit(told, "\n".join(f"{q.position}. {q.text}" for q in rows) or "no questions", as_json=as_json)
