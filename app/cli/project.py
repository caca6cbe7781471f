"""`showhow project ...`: projects, and the tools that each of them offers."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.removals import add_removal_commands
from showhow.app.guideline_text import list_picture_names
from showhow.app.services import current_services
from showhow.db.database import Conflict
from showhow.db.models import Project
from showhow.db.questions import projects
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.guideline_pictures import MAX_PICTURE_BYTES, store_picture
from showhow.db.questions.projects import DEFAULT_INSTRUCTION, MAX_OVERLAP
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.renaming import rename_project
from showhow.db.types import load_json
from showhow.evaluation.comparison.project_agreement import (
    FIGURE_GROUPINGS,
    GROUPINGS,
    format_figure,
    format_figures,
    load_shared_work,
    measure_groups,
    measure_units,
    sort_by_distance,
)
from showhow.evaluation.value_format import format_count
from showhow.guard.files import open_regular
from showhow.tasks.progress import print_progress
from showhow.tools.registry import ToolRegistry
from showhow.worlds.open import NO_WORLD, read_world_metadata

app = typer.Typer(no_args_is_help=True, help="Create and list projects: their world, tools, instruction and answers.")
add_removal_commands(app, Kind.PROJECT)

ProjectArgument = Annotated[str, typer.Argument(help="The project's name.")]


GuidelinesOption = Annotated[
    Path | None, typer.Option("--guidelines", help="A Markdown file with the guidelines for annotators.")
]
InstructionOption = Annotated[
    str | None, typer.Option("--instruction", help="What people and agents are told to do, in a sentence or two.")
]
AnswerOption = Annotated[
    str | None,
    typer.Option("--answer", help="The format of answers: text, none, or a file with the JSON Schema of their values."),
]


@app.command()
def create(  # noqa: PLR0913 - every option of the verb is one parameter
    name: ProjectArgument,
    *,
    world: Annotated[
        str | None, typer.Option(help="The world of its tools; none for tools that need no world.")
    ] = None,
    chosen: Annotated[str | None, typer.Option("--tools", help="The tools to offer: a,b,c.")] = None,
    instruction: InstructionOption = None,
    answer: AnswerOption = None,
    guidelines: GuidelinesOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a project; `showhow questions import` adds its questions or other tasks."""
    services = current_services()
    if world is not None:
        read_world_metadata(services.settings.worlds_folder, world)
    registry, names = services.tool_registry(), _parse_tool_names(services.tool_registry(), chosen or "")
    opened = services.open_world(world or NO_WORLD)
    for tool in registry.find_all(names).values():
        if not tool.is_available_in(opened):
            raise CommandError(tool.missing_source_message())
    # The usual guidelines speak of articles and graphs.
    usual = files("showhow.app").joinpath("guidelines.md").read_text(encoding="utf-8") if world else ""
    with services.database.begin() as session:
        project = projects.create_project(
            session,
            name,
            world or NO_WORLD,
            guidelines=_read_file(guidelines) if guidelines else usual,
            tools=names,
            instruction=instruction or "",
            answer_format=_parse_answer_format(answer),
        )
        if guidelines is not None:
            store_guideline_pictures(session, project.id, guidelines)
        emit(_project_to_json(project, 0), "\n".join(_project_lines(project, 0)), as_json=as_json)


@app.command()
def edit(  # noqa: PLR0913 - every option of the verb is one parameter
    name: ProjectArgument,
    *,
    instruction: InstructionOption = None,
    answer: AnswerOption = None,
    guidelines: GuidelinesOption = None,
    overlap: Annotated[
        int | None, typer.Option(min=1, max=MAX_OVERLAP, help="How many people answer each question.")
    ] = None,
    shows_gold: Annotated[
        bool | None, typer.Option("--show-gold/--hide-gold", help="Whether annotators see gold answers.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change what a project asks for and shows; its traces stay as they are."""
    if all(value is None for value in (instruction, answer, guidelines, overlap, shows_gold)):
        raise typer.BadParameter(
            "name what to change: --instruction, --answer, --guidelines, --overlap, --show-gold or --hide-gold."
        )
    with current_services().database.begin() as session:
        project = projects.edit_project(
            session,
            name,
            instruction=instruction,
            answer_format=None if answer is None else _parse_answer_format(answer),
            guidelines=_read_file(guidelines) if guidelines else None,
            overlap=overlap,
            shows_gold=shows_gold,
        )
        if guidelines is not None:
            store_guideline_pictures(session, project.id, guidelines)
        count = projects.count_questions(session, project.id)
        emit(_project_to_json(project, count), "\n".join(_project_lines(project, count)), as_json=as_json)


@app.command()
def rename(name: ProjectArgument, new_name: Annotated[str, typer.Argument(help="Its new name.")]) -> None:
    """Rename a project."""
    with current_services().database.begin() as session:
        renamed = rename_project(session, name, new_name).name
    emit({"name": renamed}, f"the project {name!r} is called {renamed!r}", as_json=False)


@app.command()
def agreement(
    name: ProjectArgument,
    *,
    measure: Annotated[str, typer.Option(help="The measure whose groups and questions are shown.")] = "answer",
    questions: Annotated[
        bool,
        typer.Option("--questions", help="List the questions of the measure, those with the largest distance first."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how far people agree: Krippendorff's alpha by measure, pair of people, person, kind and week."""
    database = current_services().database
    with database.read() as session:
        project = projects.get_project(session, name)
    units = load_shared_work(database, project)
    if not units:
        raise CommandError(f"no question of {name} has been answered by two people; let several answer with --overlap")
    if measure not in units:
        raise CommandError(f"there is nothing to compare by {measure!r}; choose from {', '.join(units)}")
    overall = {measured: measure_units(measured, parts, measured) for measured, parts in units.items()}
    groups = {grouping: measure_groups(measure, units[measure], grouping) for grouping in FIGURE_GROUPINGS}
    listed = sort_by_distance(measure, units[measure]) if questions else []
    value = {
        "project": name,
        "measures": [entry.to_json() for entry in overall.values() if entry is not None],
        "measure": measure,
        "groups": {grouping: [entry.to_json() for entry in entries] for grouping, entries in groups.items()},
        "questions": [unit.to_json() | {"distance": distance} for distance, unit in listed],
    }
    lines = [format_figures(entry) for entry in overall.values() if entry is not None]
    own = overall[measure]
    lines += ["", f"{measure}: mean distance to the others"]
    lines += [f"{person:<20} {format_figure(mean)}" for person, mean in own.agreement.by_person.items()] if own else []
    for grouping, entries in groups.items():
        lines += ["", f"{measure} by {GROUPINGS[grouping]}", *map(format_figures, entries)]
    lines += ["", *(f"{distance:.2f}  {unit}" for distance, unit in listed)] if questions else []
    emit(value, "\n".join(lines), as_json=as_json)


def _parse_answer_format(answer: str | None) -> AnswerFormat:
    if answer is None or answer in (AnswerKind.TEXT, AnswerKind.NONE):
        return AnswerFormat(AnswerKind(answer or AnswerKind.TEXT))
    try:
        schema = load_json(_read_file(Path(answer)))
    except ValueError as error:
        raise CommandError(f"{answer} has no JSON Schema: {error}") from error
    if not isinstance(schema, dict):
        raise CommandError(f"{answer} has no JSON Schema: it is not an object")
    try:
        return AnswerFormat.from_json({"kind": AnswerKind.JSON, "schema": schema})
    except Conflict as error:
        raise CommandError(f"{answer}: {error}") from error


def store_guideline_pictures(session: Any, project_id: UUID, guidelines: Path) -> None:
    """Store the pictures that a file of guidelines names by relative links within its folder."""
    folder = guidelines.parent.resolve()
    for name in list_picture_names(_read_file(guidelines)):
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            raise CommandError(f"the picture {name} is outside of the folder of {guidelines}; copy it into that folder")
        try:
            with open_regular(file) as stream:
                store_picture(session, project_id, name, stream.read(MAX_PICTURE_BYTES + 1))
        except OSError as error:
            raise CommandError(f"the picture {name} of {guidelines} cannot be read: {error.strerror}") from error


def _read_file(file: Path) -> str:
    try:
        with open_regular(file) as stream:
            return stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List every project with its world, its number of questions and its tools."""
    with current_services().database.read() as session:
        question_counts = [
            (project, projects.count_questions(session, project.id)) for project in projects.list_projects(session)
        ]
    rows = [
        {"name": p.name, "world": p.world or None, "questions": count, "tools": p.tools} for p, count in question_counts
    ]
    lines = [
        f"{p.name}  {_format_world(p)}, {format_count(count, 'question')}, {_format_tools(p)}"
        for p, count in question_counts
    ]
    emit(rows, "\n".join(lines) or "no project yet; `showhow questions import` makes one", as_json=as_json)


@app.command()
def show(name: ProjectArgument, *, as_json: AsJson = False) -> None:
    """Show a project's world, guidelines and tools, and which tools are not available."""
    services = current_services()
    with services.database.read() as session:
        project = projects.get_project(session, name)
        count = projects.count_questions(session, project.id)
    problems = _tool_problems(services.tool_registry(), project)
    value = {**_project_to_json(project, count), "problems": problems}
    lines = [*_project_lines(project, count), *(f"    {problem}" for problem in problems.values()), project.guidelines]
    emit(value, "\n".join(line for line in lines if line), as_json=as_json)


def _project_to_json(project: Project, question_count: int) -> dict[str, Any]:
    answer_format = AnswerFormat.from_json(project.answer_format)
    return {
        "name": project.name,
        "world": project.world or None,
        "questions": question_count,
        "tools": project.tools,
        "instruction": project.instruction or DEFAULT_INSTRUCTION,
        "answer": {"kind": answer_format.kind, "schema": answer_format.schema or None},
        "guidelines": project.guidelines,
        "shows_gold": project.shows_gold,
    }


def _project_lines(project: Project, question_count: int) -> list[str]:
    answers = {
        AnswerKind.TEXT: "free text",
        AnswerKind.JSON: "a JSON value that fits the project's schema",
        AnswerKind.NONE: "none",
    }
    return [
        f"{project.name}: {_format_world(project)}, {format_count(question_count, 'question')}",
        _format_tools(project),
        f"instruction: {project.instruction or DEFAULT_INSTRUCTION}",
        f"answers: {answers[AnswerFormat.from_json(project.answer_format).kind]}",
    ]


def _format_world(project: Project) -> str:
    return f"world {project.world}" if project.world else "no world"


@app.command()
def tools(
    name: ProjectArgument,
    chosen: Annotated[
        str | None, typer.Option("--set", help="The tools to offer: a,b,c; see `showhow tools list`.")
    ] = None,
    *,
    all_tools: Annotated[bool, typer.Option("--all", help="Offer all built-in tools again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or choose the tools that a project offers to annotators and agents."""
    if chosen is not None and all_tools:
        raise typer.BadParameter("use either --set or --all, not both.")
    services = current_services()
    registry = services.tool_registry()
    with services.database.begin() as session:
        project = projects.get_project(session, name)
        if chosen is not None or all_tools:
            project = projects.set_tools(session, name, _parse_tool_names(registry, chosen or ""))
    problems = _tool_problems(registry, project)
    for problem in problems.values():
        print_progress(problem)
    value = {"project": project.name, "tools": project.tools, "problems": problems}
    emit(value, f"{project.name}: {_format_tools(project)}", as_json=as_json)


def _parse_tool_names(registry: ToolRegistry, text: str) -> list[str]:
    """Parse the names of tools; raises CommandError for one that is neither registered nor declared."""
    names = list(dict.fromkeys(part for part in (part.strip() for part in text.split(",")) if part))
    known = registry.find_all(names, waits_for_servers=True)
    for name in names:
        if name not in known and not registry.is_declared(name):
            raise CommandError(str(registry.problem(name)))
    return names


def _tool_problems(registry: ToolRegistry, project: Project) -> dict[str, str]:
    known = registry.find_all(project.tools, waits_for_servers=True)
    problems = {name: registry.problem(name) for name in project.tools if name not in known}
    return {name: problem for name, problem in problems.items() if problem is not None}


def _format_tools(project: Project) -> str:
    return f"tools {', '.join(project.tools)}" if project.tools else "all built-in tools"
