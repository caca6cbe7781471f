"""`showhow project ...`: projects, and the tools that each of them offers."""

from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit
from app.progress import print_progress
from app.services import services
from db import projects
from db.models import Project
from tools.registry import ToolRegistry

app = typer.Typer(no_args_is_help=True, help="List projects and choose the tools that each of them offers.")

ProjectArgument = Annotated[str, typer.Argument(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List every project with its world, its number of questions and its tools."""
    with services().database.read() as session:
        question_counts = [
            (project, projects.count_questions(session, project.id)) for project in projects.list_projects(session)
        ]
    rows = [{"name": p.name, "world": p.world, "questions": count, "tools": p.tools} for p, count in question_counts]
    lines = [f"{p.name}  world {p.world}, {count} questions, {_format_tools(p)}" for p, count in question_counts]
    emit(rows, "\n".join(lines) or "no project yet; `showhow questions import` makes one", as_json=as_json)


@app.command()
def show(name: ProjectArgument, *, as_json: AsJson = False) -> None:
    """Show a project's world, guidelines and tools, and which tools are not available."""
    parts = services()
    with parts.database.read() as session:
        project = _get_project(session, name)
        count = projects.count_questions(session, project.id)
    problems = _tool_problems(parts.tool_registry(), project)
    value: dict[str, Any] = {
        "name": project.name,
        "world": project.world,
        "questions": count,
        "tools": project.tools,
        "problems": problems,
        "guidelines": project.guidelines,
    }
    lines = [
        f"{project.name}: world {project.world}, {count} questions",
        _format_tools(project),
        *(f"    {problem}" for problem in problems.values()),
        project.guidelines,
    ]
    emit(value, "\n".join(line for line in lines if line), as_json=as_json)


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
    parts = services()
    registry = parts.tool_registry()
    with parts.database.begin() as session:
        project = _get_project(session, name)
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
    for name in names:
        if registry.find(name) is None and not registry.is_declared(name):
            raise CommandError(str(registry.problem(name)))
    return names


def _tool_problems(registry: ToolRegistry, project: Project) -> dict[str, str]:
    problems = {name: registry.problem(name) for name in project.tools}
    return {name: problem for name, problem in problems.items() if problem is not None}


def _format_tools(project: Project) -> str:
    return f"tools {', '.join(project.tools)}" if project.tools else "all built-in tools"


def _get_project(session: Any, name: str) -> Project:
    project = projects.find_project(session, name)
    if project is None:
        raise CommandError(f"there is no project {name!r}; `showhow project list` lists them")
    return project
