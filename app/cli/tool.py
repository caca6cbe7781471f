"""`showhow tool NAME --world W key=value ...`: call one tool as an annotator would."""

import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from app.cli.options import AsOfOption, OfflineOption, apply_record_options
from app.cli.output import CommandError, emit
from app.services import services
from tools.tool import Tool, ToolContext
from worlds.source import World


def tool(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: Annotated[str | None, typer.Argument(help="wikisearch, read, getWikiDataID ...; see --list")] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="the tool's arguments, each as key=value")] = None,
    world: Annotated[str | None, typer.Option(help="the world to work in; see showhow world list")] = None,
    as_of: AsOfOption = None,
    offline: OfflineOption = False,  # noqa: FBT002 - an option of the command line
    as_json: Annotated[bool, typer.Option("--json", help="print text, data and error as JSON")] = False,  # noqa: FBT002 - an option of the command line
    list_tools: Annotated[bool, typer.Option("--list", help="list the tools and their arguments")] = False,  # noqa: FBT002 - likewise
) -> None:
    """Call one tool over a world and print what it found; exit status 1 with one sentence when it fails."""
    if list_tools:
        with redirect_stdout(sys.stderr):
            known = list(services().tool_registry().all_tools().values())
        emit([_describe_tool(one) for one in known], "\n".join(map(_format_tool, known)), as_json=as_json)
        return
    if name is None:
        raise typer.BadParameter("name a tool and a world: showhow tool NAME --world W key=value ...")
    apply_record_options(as_of, offline=offline)
    given = dict(map(_parse_argument, arguments or []))
    # What others print while they are loaded and called is no part of the answer.
    with redirect_stdout(sys.stderr):
        called = services().tool_registry().get_tool(name)
    if world is None and called.origin is None:
        raise typer.BadParameter("name a world to work in: showhow tool NAME --world W key=value ...")
    # A tool of others knows no world.
    context = services().tool_context(world) if world is not None else ToolContext(World("none"), services().encoder)
    with redirect_stdout(sys.stderr):
        outcome = called.call(context, given)
    found = outcome.observation
    text, data = (found.text, found.data) if found else (None, None)
    if found or as_json:
        emit({"text": text, "data": data, "error": outcome.error}, text or "", as_json=as_json)
    if outcome.error is not None:
        raise CommandError(outcome.error)


def _parse_argument(argument: str) -> tuple[str, str]:
    key, found, value = argument.partition("=")
    if not found:
        raise typer.BadParameter(f"{argument!r} is no key=value; give each argument of the tool with its name.")
    return key.strip(), value


def _format_tool(one: Tool) -> str:
    return f"{one.name} {' '.join(f'{p.name}=...' for p in one.parameters)}\n    {one.description}"


def _describe_tool(one: Tool) -> dict[str, object]:
    parameters = [{"name": p.name, "kind": p.kind, "hint": p.hint} for p in one.parameters]
    return {"name": one.name, "title": one.title, "description": one.description, "parameters": parameters}
