"""`showhow tools list` and `check`: the tools that are here, ours and those of others, and what keeps one away."""

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from app.registry import registry, tools_file
from app.verbs.output import CommandFailed, emit
from tools.registry import State
from tools.tool import Tool

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_(*, as_json: AsJson = False) -> None:
    """Every tool that is known, where it comes from, and what is not available."""
    states = _states()
    lines = [line for state in states for line in _listed(state)]
    emit([_value(state) for state in states], "\n".join(lines), as_json=as_json)


def check(*, as_json: AsJson = False) -> None:
    """Load every function and start every server of the file of tools; exit status 1 where something does not work."""
    states = _states()
    problems = [state for state in states if state.problem]
    lines = [f"{_name(state)}: {_found(state)}" for state in states]
    if len(states) == 1:
        lines.append(f"{tools_file()} declares no other tools.")
    emit([_value(state) for state in states], "\n".join(lines), as_json=as_json)
    registry().close()
    if problems:
        raise CommandFailed(f"{len(problems)} of {len(states)} places of tools do not work as they should; see above")


def _states() -> list[State]:
    """All places of tools; what modules of others print while they are loaded is no part of the answer."""
    with redirect_stdout(sys.stderr):
        return registry().states()


def _listed(state: State) -> Iterator[str]:
    yield f"{_name(state)} ({state.place})"
    for tool in state.tools:
        takes = ", ".join(f"{p.name}: {p.kind}{'' if p.required else '?'}" for p in tool.parameters)
        first = tool.description.split("\n", maxsplit=1)[0]
        yield f"    {tool.name}({takes})  {first}"
    if state.problem:
        yield f"    {state.problem}"


def _name(state: State) -> str:
    return "Showhow's own" if state.kind == "ours" else f"{state.kind} {state.name}"


def _found(state: State) -> str:
    works = f"works, {len(state.tools)} {'tool' if len(state.tools) == 1 else 'tools'}" if state.tools else ""
    return "; ".join(filter(None, (works, state.problem)))


def _value(state: State) -> dict[str, Any]:
    tools = [_tool(tool) for tool in state.tools]
    return {"kind": state.kind, "name": state.name, "place": state.place, "tools": tools, "problem": state.problem}


def _tool(tool: Tool) -> dict[str, Any]:
    limits = {"seconds": tool.limits.seconds, "characters": tool.limits.characters} if tool.limits else None
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "schema": tool.schema,
        "limits": limits,
    }
