"""`showhow ...`: finds the verb, imports only its module, and turns a failure into one line and exit status 1."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from app.cli.output import CommandError

USER_ERRORS = (
    "db.database:StoreError",
    "worlds.source:SourceError",
    "worlds.folder:WorldError",
    "llm.errors:ChatError",
    "tools.errors:ToolError",
    "settings:SettingsError",
)


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb lives (`module:attribute`, a Typer app or a function) and what it is for."""

    target: str
    help: str


DESCRIPTION = "Record how people find answers, and have models follow."

VERBS = {
    "setup": Verb("app.cli.setup:setup", "Prepare the database and the default world with its questions."),
    "run": Verb("app.cli.run:run", "Serve the pages on this machine."),
    "world": Verb("app.cli.world:app", "Import, generate, list and query worlds."),
    "questions": Verb("app.cli.questions:app", "Import and list a project's questions."),
    "project": Verb("app.cli.project:app", "List projects and choose the tools that each of them offers."),
    "traces": Verb("app.cli.traces:app", "Import, export, list and show traces."),
    "library": Verb("app.cli.library:app", "Freeze, compare and choose from libraries of demonstrations."),
    "ask": Verb("app.cli.ask:ask", "Have a reasoner answer a question, and watch it."),
    "tool": Verb("app.cli.tool:tool", "Call one tool as an annotator would."),
    "tools": Verb("app.cli.tools:app", "Tell which tools there are, and what they are worth."),
    "evaluate": Verb("app.cli.evaluate:evaluate", "Measure how well a reasoner answers, by kind of question."),
    "verify": Verb("app.cli.verify:verify", "Ask questions with gold answers, and put failures in the queue."),
    "db": Verb("app.cli.db:app", "Upgrade, check and back up the database."),
}


def build_command_line(wanted: str | None) -> typer.Typer:
    """The command line with the wanted verb loaded and the others named only, so that --help stays quick."""
    line = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=DESCRIPTION)
    for name, verb in VERBS.items():
        if name == wanted:
            _mount_verb(line, name, verb)
        else:
            line.command(name, help=verb.help)(_run_unloaded_verb)
    return line


def _mount_verb(line: typer.Typer, name: str, verb: Verb) -> None:
    module, _, attribute = verb.target.partition(":")
    found: typer.Typer | Callable[..., None] = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        line.add_typer(found, name=name, help=verb.help)
    else:
        line.command(name, help=verb.help)(found)


def _run_unloaded_verb() -> None:
    raise AssertionError("a verb that was not asked for was run")


def user_error_types() -> tuple[type[Exception], ...]:
    """The errors that are the user's to read: one sentence each. Whatever else escapes is a fault of ours."""
    loaded = [CommandError]
    for place in USER_ERRORS:
        module, _, attribute = place.partition(":")
        # A room that the verb did not load cannot have raised.
        if module in sys.modules:
            loaded.append(getattr(sys.modules[module], attribute))
    return tuple(loaded)


def main() -> None:
    """Run the command line of this process."""
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    try:
        build_command_line(wanted)()
    except user_error_types() as failed:
        sys.stderr.write(f"showhow: {failed}\n")
        sys.exit(1)
