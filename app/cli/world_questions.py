"""`showhow world around | family | questions | trace | traces`: what the Worlds page shows, on the command line."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter, QuestionSummary
from showhow.runs.services import Services
from showhow.tasks.progress import print_progress
from showhow.tasks.task import open_atomically
from showhow.worlds.folder import world_folder
from showhow.worlds.neighbourhood import MAX_VALUES, RelationBranch, load_neighbourhood
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import GraphSource

if TYPE_CHECKING:
    from showhow.fiction.family import Family

_PROGRESS_INTERVAL = 25
"""Traces between two lines of progress."""


def around(
    name: str,
    entity: str,
    most: Annotated[int, typer.Option(min=1, max=100, help="Maximum values per relation.")] = MAX_VALUES,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the relations of an entity in the graph, with some values of each."""
    neighbourhood = load_neighbourhood(_graph_source(current_services(), name), entity, most)
    centre = neighbourhood.centre
    lines = [f"{centre.label} ({centre.id})", *map(_format_branch, neighbourhood.branches)]
    emit(asdict(neighbourhood), "\n".join(lines), as_json=as_json)


def show_family(
    name: str,
    entity: str,
    *,
    from_graph: Annotated[
        bool, typer.Option("--told", help="Show the family that the graph states, even if it is incomplete.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a person's family, from grandparents to grandchildren."""
    # Universes need NumPy, which takes 0.2 s to import.
    from showhow.fiction.family import GraphKinshipSource, build_family, build_universe_family  # noqa: PLC0415
    from showhow.fiction.generator.world_files import UNIVERSE_FILE  # noqa: PLC0415
    from showhow.fiction.universe.universe import Universe  # noqa: PLC0415

    services = current_services()
    file = _checked_folder(services, name) / UNIVERSE_FILE
    if from_graph or not file.is_file():
        family = build_family(GraphKinshipSource(_graph_source(services, name)), entity)
    else:
        family = build_universe_family(Universe.load(file), entity)
    if family is None:
        raise CommandError(f"{entity} has no family in the world {name}")
    emit(asdict(family), "\n".join(_format_family(family)), as_json=as_json)


def questions(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    text: Annotated[str, typer.Option(help="Only questions that contain this text.")] = "",
    kind: Annotated[str, typer.Option(help="Only questions of this kind.")] = "",
    needs: Annotated[str, typer.Option(help='Only questions that need these sources: "graph or text + web".')] = "",
    lowest: Annotated[int | None, typer.Option(help="Minimum difficulty.")] = None,
    highest: Annotated[int | None, typer.Option(help="Maximum difficulty.")] = None,
    limit: Annotated[int, typer.Option(min=1)] = 20,
    after: Annotated[int, typer.Option(min=0, help="Skip this many questions.")] = 0,
    *,
    as_json: AsJson = False,
) -> None:
    """List the questions of a generated world; --json prints all their gold data."""
    file = _open_questions(current_services(), name)
    matching = file.select(QuestionFilter(text, kind, needs, lowest, highest))[after : after + limit]
    rows: list[dict[str, Any]] = [file.load_row(summary) for summary in matching] if as_json else []
    emit(rows, "\n".join(map(_format_question, matching)) or "no questions", as_json=as_json)


def trace(name: str, question: str, *, as_json: AsJson = False) -> None:
    """Make the gold trace of a generated question by running the tools, and print it; nothing is stored."""
    # Loaded only by this verb.
    from showhow.app.cli.traces import format_trace  # noqa: PLC0415
    from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_trace  # noqa: PLC0415
    from showhow.fewshot_library.formats.showhow import record_to_json  # noqa: PLC0415

    services = current_services()
    file = _open_questions(services, name)
    summary = file.find(question)
    if summary is None:
        raise CommandError(f"the world {name} has no question {question}; `showhow world questions {name}` lists them")
    record = make_world_gold_trace(services, name, file.load_row(summary))
    emit(record_to_json(record), "\n".join(format_trace(record)), as_json=as_json)
    if record.trace.status == "failed":
        raise CommandError(record.trace.final_thought or "there is no gold trace")


def traces(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    to: Annotated[Path, typer.Option(help="The file to write, in the format that `showhow traces import` reads.")],
    kind: Annotated[str, typer.Option(help="Only for questions of this kind.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of questions.")] = None,
    reasoner: Annotated[
        str | None, typer.Option(help="Traces of this reasoner with gold skills, whose plans can be demonstrations.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the gold traces of a generated world's questions to a file; failures are printed with their reason."""
    # Loaded only by this verb.
    from showhow.evaluation.scoring.gold_demonstrations import check_gold_skills, make_world_gold_traces  # noqa: PLC0415
    from showhow.fewshot_library.formats.showhow import record_to_json  # noqa: PLC0415
    from showhow.reasoners.base import ReasonerError  # noqa: PLC0415
    from showhow.reasoners.registry import UnknownReasoner  # noqa: PLC0415

    services = current_services()
    file = _open_questions(services, name)
    if reasoner is not None:
        try:
            check_gold_skills(reasoner)
        except (UnknownReasoner, ReasonerError) as error:
            raise CommandError(str(error)) from error
    rows = map(file.load_row, file.select(QuestionFilter(kind=kind))[:limit])
    written_count, failed = 0, []
    with open_atomically(to, force=force) as stream:
        for record in make_world_gold_traces(services, name, rows, reasoner):
            if record.trace.status == "failed":
                failed.append({"question": record.question.source_id, "reason": record.trace.final_thought})
                print_progress(f"{record.question.source_id}: {record.trace.final_thought}")
                continue
            stream.write(json.dumps(record_to_json(record), ensure_ascii=False).encode() + b"\n")
            written_count += 1
            if not written_count % _PROGRESS_INTERVAL:
                print_progress(f"{written_count} traces made")
    emit(
        {"written": written_count, "failed": failed},
        f"{written_count} traces written, {len(failed)} failed",
        as_json=as_json,
    )


def _open_questions(services: Services, name: str) -> QuestionFile:
    file = _checked_folder(services, name) / QUESTIONS_FILE
    if not file.is_file():
        raise CommandError(f"the world {name} has no questions; generated worlds have some")
    return QuestionFile(file)


def _checked_folder(services: Services, name: str) -> Path:
    """The folder of a world; raises a WorldError if there is no such world."""
    read_world_metadata(services.settings.worlds_folder, name)
    return world_folder(services.settings.worlds_folder, name)


def _graph_source(services: Services, name: str) -> GraphSource:
    source = services.open_world(name).graph
    if source is None:
        raise CommandError(f"the world {name} has no graph")
    return source


def _format_branch(branch: RelationBranch) -> str:
    values = ", ".join(value.label for value in branch.values)
    return f"{branch.relation.label} {'->' if branch.outgoing else '<-'} {values}{', ...' if branch.more else ''}"


def _format_family(family: "Family") -> list[str]:
    label = {person.id: person.label for person in family.people.values()}
    kin = {
        "parents": family.parents.get(family.centre, ()),
        "siblings": family.siblings,
        "partners": family.partners.get(family.centre, ()),
        "children": family.children(family.centre),
    }
    lines = [
        f"{relation}: {', '.join(label[person] for person in people)}" for relation, people in kin.items() if people
    ]
    return [f"{label[family.centre]} ({family.centre})", *lines]


def _format_question(summary: QuestionSummary) -> str:
    needs = summary.needs or "unknown sources"
    return f"{summary.id}: {summary.text} ({summary.kind}, {summary.answers} answers, needs {needs})"
