"""`showhow ...`: finds the verb, imports only its module, and turns a failure into one line and exit status 1."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from app.verbs.output import CommandFailed

FAILURES = (
    "db.database:StoreError",
    "worlds.source:SourceError",
    "worlds.folder:WorldError",
    "tools.tool_error:ToolError",
    "settings:SettingError",
)


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb lives (`module:attribute`, a Typer app or a function) and what it is for."""

    place: str
    purpose: str


PURPOSE = "Record how people find answers, and have models follow."

VERBS = {
    "setup": Verb("app.verbs.setup:setup", "Prepare the database and the default world with its questions."),
    "run": Verb("app.verbs.run:run", "Serve the pages on this machine."),
    "world": Verb("app.verbs.world:app", "Import, generate, list and query worlds."),
    "questions": Verb("app.verbs.questions:app", "Import and list a project's questions."),
    "project": Verb("app.verbs.project:app", "List projects and choose the tools that each of them offers."),
    "traces": Verb("app.verbs.traces:app", "Import, export, list and show traces."),
    "library": Verb("app.verbs.library:app", "Freeze, compare and choose from libraries of demonstrations."),
    "ask": Verb("app.verbs.ask:ask", "Have a reasoner answer a question, and watch it."),
    "tool": Verb("app.verbs.tool:tool", "Call one tool as an annotator would."),
    "tools": Verb("app.verbs.tools:app", "Tell which tools there are, and what they are worth."),
    "evaluate": Verb("app.verbs.evaluate:evaluate", "Measure how well a reasoner answers, by kind of question."),
    "verify": Verb("app.verbs.verify:verify", "Ask questions with gold answers, and put failures in the queue."),
    "db": Verb("app.verbs.db:app", "Upgrade, check and back up the database."),
}


def command_line(wanted: str | None) -> typer.Typer:
    """The command line with the wanted verb loaded and the others named only, so that --help stays quick."""
    line = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=PURPOSE)
    for name, verb in VERBS.items():
        if name == wanted:
            _mount(line, name, verb)
        else:
            line.command(name, help=verb.purpose)(_named_only)
    return line


def _mount(line: typer.Typer, name: str, verb: Verb) -> None:
    module, _, attribute = verb.place.partition(":")
    found: typer.Typer | Callable[..., None] = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        line.add_typer(found, name=name, help=verb.purpose)
    else:
        line.command(name, help=verb.purpose)(found)


def _named_only() -> None:
    raise AssertionError("a verb that was not asked for was run")


def failures() -> tuple[type[Exception], ...]:
    """The errors that are the user's to read: one sentence each. Whatever else escapes is a fault of ours."""
    loaded = [CommandFailed]
    for place in FAILURES:
        module, _, attribute = place.partition(":")
        # A room that the verb did not load cannot have raised.
        if module in sys.modules:
            loaded.append(getattr(sys.modules[module], attribute))
    return tuple(loaded)


def main() -> None:
    """Run the command line of this process."""
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    try:
        command_line(wanted)()
    except failures() as failed:
        sys.stderr.write(f"showhow: {failed}\n")
        sys.exit(1)
