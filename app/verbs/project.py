"""`showhow project ...`: projects, and the tools that each of them offers."""

from typing import Annotated, Any

import typer

from app.registry import registry
from app.resources import database
from app.verbs.output import CommandFailed, emit, progress
from db import projects
from db.models import Project

app = typer.Typer(no_args_is_help=True, help="List projects and choose the tools that each of them offers.")

Name = Annotated[str, typer.Argument(help="The project's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """Every project with its world and how many questions and tools it has."""
    with database().read() as session:
        found = [(each, projects.question_count(session, each.id)) for each in projects.projects(session)]
    told = [{"name": p.name, "world": p.world, "questions": count, "tools": p.tools} for p, count in found]
    lines = [f"{p.name}  world {p.world}, {count} questions, {_tools(p)}" for p, count in found]
    emit(told, "\n".join(lines) or "no project yet; `showhow questions import` makes one", as_json=as_json)


@app.command()
def show(name: Name, *, as_json: AsJson = False) -> None:
    """A project's world, guidelines and tools, and what is missing of them."""
    with database().read() as session:
        found = _found(session, name)
        count = projects.question_count(session, found.id)
    problems = _problems(found)
    told: dict[str, Any] = {
        "name": found.name,
        "world": found.world,
        "questions": count,
        "tools": found.tools,
        "problems": problems,
        "guidelines": found.guidelines,
    }
    missing = [f"    {problem}" for problem in problems.values()]
    lines = [f"{found.name}: world {found.world}, {count} questions", _tools(found), *missing, found.guidelines]
    emit(told, "\n".join(line for line in lines if line), as_json=as_json)


@app.command()
def tools(
    name: Name,
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
    with database().begin() as session:
        found = _found(session, name)
        if chosen is not None or every:
            found = projects.set_tools(session, name, _chosen(chosen or ""))
    problems = _problems(found)
    for problem in problems.values():
        progress(problem)
    value = {"project": found.name, "tools": found.tools, "problems": problems}
    emit(value, f"{found.name}: {_tools(found)}", as_json=as_json)


def _chosen(written: str) -> list[str]:
    """The names, each of a tool that is known here, be it available now or not."""
    names = list(dict.fromkeys(part for part in (part.strip() for part in written.split(",")) if part))
    known = registry()
    for name in names:
        if known.find(name) is None and not known.expected(name):
            raise CommandFailed(str(known.problem(name)))
    return names


def _problems(project: Project) -> dict[str, str]:
    found = {name: registry().problem(name) for name in project.tools}
    return {name: problem for name, problem in found.items() if problem is not None}


def _tools(project: Project) -> str:
    return f"tools {', '.join(project.tools)}" if project.tools else "all of Showhow's own tools"


def _found(session: Any, name: str) -> Project:
    found = projects.project_by_name(session, name)
    if found is None:
        raise CommandFailed(f"there is no project {name!r}; `showhow project list` names them")
    return found
