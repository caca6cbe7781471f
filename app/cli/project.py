"""`showhow project ...`: projects, and the tools that each of them offers."""

from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit, print_progress
from app.services import services
from db import projects
from db.models import Project

app = typer.Typer(no_args_is_help=True, help="List projects and choose the tools that each of them offers.")

ProjectArgument = Annotated[str, typer.Argument(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """Every project with its world and how many questions and tools it has."""
    with services().database.read() as session:
        found = [(each, projects.count_questions(session, each.id)) for each in projects.list_projects(session)]
    told = [{"name": p.name, "world": p.world, "questions": count, "tools": p.tools} for p, count in found]
    lines = [f"{p.name}  world {p.world}, {count} questions, {_format_tools(p)}" for p, count in found]
    emit(told, "\n".join(lines) or "no project yet; `showhow questions import` makes one", as_json=as_json)


@app.command()
def show(name: ProjectArgument, *, as_json: AsJson = False) -> None:
    """A project's world, guidelines and tools, and what is missing of them."""
    with services().database.read() as session:
        found = _get_project(session, name)
        count = projects.count_questions(session, found.id)
    problems = _tool_problems(found)
    told: dict[str, Any] = {
        "name": found.name,
        "world": found.world,
        "questions": count,
        "tools": found.tools,
        "problems": problems,
        "guidelines": found.guidelines,
    }
    missing = [f"    {problem}" for problem in problems.values()]
    lines = [f"{found.name}: world {found.world}, {count} questions", _format_tools(found), *missing, found.guidelines]
    emit(told, "\n".join(line for line in lines if line), as_json=as_json)


@app.command()
def tools(
    name: ProjectArgument,
    chosen: Annotated[
        str | None, typer.Option("--set", help="The tools to offer: a,b,c; see showhow tools list.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Offer all of Showhow's own again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell or choose which tools a project offers to annotators and agents."""
    if chosen is not None and every:
        raise typer.BadParameter("choose with --set or take --all, not both.")
    with services().database.begin() as session:
        found = _get_project(session, name)
        if chosen is not None or every:
            found = projects.set_tools(session, name, _parse_tool_names(chosen or ""))
    problems = _tool_problems(found)
    for problem in problems.values():
        print_progress(problem)
    value = {"project": found.name, "tools": found.tools, "problems": problems}
    emit(value, f"{found.name}: {_format_tools(found)}", as_json=as_json)


def _parse_tool_names(written: str) -> list[str]:
    """The names, each of a tool that is known here, be it available now or not."""
    names = list(dict.fromkeys(part for part in (part.strip() for part in written.split(",")) if part))
    known = services().tool_registry()
    for name in names:
        if known.find(name) is None and not known.is_declared(name):
            raise CommandError(str(known.problem(name)))
    return names


def _tool_problems(project: Project) -> dict[str, str]:
    found = {name: services().tool_registry().problem(name) for name in project.tools}
    return {name: problem for name, problem in found.items() if problem is not None}


def _format_tools(project: Project) -> str:
    return f"tools {', '.join(project.tools)}" if project.tools else "all of Showhow's own tools"


def _get_project(session: Any, name: str) -> Project:
    found = projects.find_project(session, name)
    if found is None:
        raise CommandError(f"there is no project {name!r}; `showhow project list` names them")
    return found
