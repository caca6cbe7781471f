"""`showhow tool NAME --world W key=value ...`: call one tool as an annotator would."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Annotated

import typer

from showhow.app.cli.output import CommandError, emit
from showhow.app.cli.world import AsOfOption, OfflineOption, apply_record_options
from showhow.app.services import current_services
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Tool, ToolContext
from showhow.worlds.source import World

TOOL_HELP = f"{', '.join(BUILT_IN_TOOLS)}, or an external tool; see --list."


def tool(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: Annotated[str | None, typer.Argument(help=TOOL_HELP)] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="The arguments of the tool, each as key=value.")] = None,
    world: Annotated[str | None, typer.Option(help="The world to work in; see `showhow world list`.")] = None,
    as_of: AsOfOption = None,
    offline: OfflineOption = False,  # noqa: FBT002 - an option of the command line
    as_json: Annotated[bool, typer.Option("--json", help="Print text, data and error as JSON.")] = False,  # noqa: FBT002 - an option of the command line
    list_tools: Annotated[bool, typer.Option("--list", help="List the tools and their arguments.")] = False,  # noqa: FBT002 - likewise
) -> None:
    """Call one tool over a world and print its observation; exit status 1 with one sentence if it fails."""
    services = current_services()
    if list_tools:
        with redirect_stdout(sys.stderr):
            tools = list(services.tool_registry().all_tools().values())
        emit([_describe_tool(tool) for tool in tools], "\n".join(map(_format_tool, tools)), as_json=as_json)
        return
    if name is None:
        raise typer.BadParameter("name a tool and a world: showhow tool NAME --world W key=value ...")
    services = apply_record_options(services, as_of, offline=offline)
    values = dict(map(_parse_argument, arguments or []))
    # External tools may print while they are loaded and called; only the observation belongs on stdout.
    with redirect_stdout(sys.stderr):
        selected = services.tool_registry().get_tool(name)
    if world is None and selected.origin is None:
        raise typer.BadParameter("name a world to work in: showhow tool NAME --world W key=value ...")
    # An external tool needs no world.
    context = (
        services.tool_context(world)
        if world is not None
        else ToolContext(World("none"), services.encoder, redactor=services.redactor)
    )
    with redirect_stdout(sys.stderr):
        outcome = selected.call(replace(context, by_person=True), values)
    observation = outcome.observation
    text, data = (observation.text, observation.data) if observation else (None, None)
    if observation or as_json:
        emit({"text": text, "data": data, "error": outcome.error}, text or "", as_json=as_json)
    if outcome.error is not None:
        raise CommandError(outcome.error)


def _parse_argument(argument: str) -> tuple[str, str]:
    key, equals, value = argument.partition("=")
    if not equals:
        raise typer.BadParameter(f"{argument!r} is not key=value; write each argument of the tool with its name.")
    return key.strip(), value


def _format_tool(tool: Tool) -> str:
    return f"{tool.name} {' '.join(f'{p.name}=...' for p in tool.parameters)}\n    {tool.description}"


def _describe_tool(tool: Tool) -> dict[str, object]:
    parameters = [{"name": p.name, "kind": p.kind, "hint": p.hint} for p in tool.parameters]
    return {"name": tool.name, "title": tool.title, "description": tool.description, "parameters": parameters}
