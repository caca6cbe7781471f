"""`showhow VERB ...`: loads only the verb's module, and turns an expected failure into one line and exit status 1.

To add a verb: write its module in this folder and add one line to `VERBS`.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer

from showhow.app.cli.output import CommandError
from showhow.app.redacted_output import redact_output
from showhow.guard.environment import take_environment
from showhow.guard.user_errors import user_error_types
from showhow.tasks.progress import print_error, write_json_progress


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb is defined (`module:attribute`, a Typer app or a function), and its line in `showhow --help`."""

    target: str
    help: str


DESCRIPTION = "Record how people find answers, and have models follow."

VERBS = {
    "setup": Verb("showhow.app.cli.setup:setup", "Prepare the database and the default world with its questions."),
    "run": Verb("showhow.app.cli.run:run", "Serve the pages on this machine."),
    "world": Verb("showhow.app.cli.world:app", "Import, generate, list and query worlds."),
    "questions": Verb("showhow.app.cli.questions:app", "Import and list the questions of a project."),
    "project": Verb("showhow.app.cli.project:app", "List projects and choose the tools that each of them offers."),
    "traces": Verb("showhow.app.cli.traces:app", "Import, export, list, show, replay and repeat traces."),
    "library": Verb("showhow.app.cli.library:app", "Freeze, compare and export demonstrations, and select among them."),
    "ask": Verb("showhow.app.cli.ask:ask", "Have a reasoner answer a question, and watch it."),
    "tool": Verb("showhow.app.cli.tool:tool", "Call one tool as an annotator would."),
    "tools": Verb("showhow.app.cli.tools:app", "List and check the tools, and report their quality."),
    "plugins": Verb("showhow.app.cli.plugins:plugins", "List what other installed packages add."),
    "models": Verb("showhow.app.cli.models:app", "List the profiles of language models, and test their servers."),
    "evaluate": Verb("showhow.app.cli.evaluate:evaluate", "Measure how well a reasoner answers, by kind of question."),
    "judge": Verb(
        "showhow.app.cli.score:judge", "A model judges the answers of a verification, beside people's labels."
    ),
    "verify": Verb("showhow.app.cli.verify:verify", "Ask questions with gold answers, and put failures in the queue."),
    "compare": Verb("showhow.app.cli.runs:compare", "Compare runs over the same questions, with intervals and tests."),
    "runs": Verb(
        "showhow.app.cli.runs:app", "List, show, pause, continue and compare runs, and exchange them as logs."
    ),
    "studies": Verb(
        "showhow.app.cli.studies:app", "Make blind studies of answers, open and close them, and report them."
    ),
    "reasoners": Verb("showhow.app.cli.reasoners:app", "List the reasoners, and show the options of one."),
    "repair": Verb("showhow.app.cli.repair:app", "List failures that wait for a repair, and ask repaired ones again."),
    "worker": Verb("showhow.app.cli.verify:worker", "Work on shared verifications, as one of any number of machines."),
    "score": Verb("showhow.app.cli.score:score", "Score a file of predictions by a metric of its data set."),
    "users": Verb("showhow.app.cli.users:app", "List people and change their roles."),
    "audit": Verb("showhow.app.cli.audit:app", "Verify, list and export the log of who did what."),
    "licences": Verb("showhow.app.cli.licences:licences", "List the licences of the installed packages."),
    "db": Verb("showhow.app.cli.db:app", "Upgrade, check, back up and restore the database."),
    "backup": Verb("showhow.app.cli.backup:backup", "Copy the database and the worlds into a folder."),
    "restore": Verb("showhow.app.cli.backup:restore", "Restore the database and the worlds of a backup."),
}
JOB = Verb("showhow.app.cli.job:job", "Run the task that standard input has as JSON.")
"""What pages start in the background (app/jobs.py); it is no verb of people."""

JsonProgressOption = Annotated[
    bool, typer.Option("--json-progress", help="Write progress and errors on stderr as JSON, one object a line.")
]
PersonOption = Annotated[UUID | None, typer.Option("--person", hidden=True, help="Act as the person with this id.")]


def build_command_line(verb_name: str | None) -> typer.Typer:
    """Build the command line with only the named verb loaded; the others have a line in --help, which stays fast."""
    command_line = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=DESCRIPTION)
    command_line.callback(no_args_is_help=True, invoke_without_command=False)(_apply_global_options)
    for name, verb in VERBS.items():
        if name == verb_name:
            _mount_verb(command_line, name, verb)
        else:
            command_line.command(name, help=verb.help)(_run_unloaded_verb)
    if verb_name == "job":
        _mount_verb(command_line, verb_name, JOB)
    return command_line


def _apply_global_options(*, json_progress: JsonProgressOption = False, person: PersonOption = None) -> None:
    if json_progress:
        write_json_progress()
    if person is not None:
        from showhow.app.services import act_as  # noqa: PLC0415 - `--help` loads no room

        act_as(person)


def _mount_verb(command_line: typer.Typer, name: str, verb: Verb) -> None:
    import showhow.app.services  # noqa: F401, PLC0415 - decides whether plugins are loaded, which the help of verbs lists

    module, _, attribute = verb.target.partition(":")
    command: typer.Typer | Callable[..., None] = getattr(importlib.import_module(module), attribute)
    if isinstance(command, typer.Typer):
        command_line.add_typer(command, name=name, help=verb.help)
    else:
        command_line.command(name, help=verb.help)(command)


def _run_unloaded_verb() -> None:
    raise AssertionError("a verb was run without being loaded")


def _user_errors() -> tuple[type[Exception], ...]:
    """The errors that end a verb with one line; any other exception is a defect and keeps its traceback."""
    return CommandError, *user_error_types()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with these arguments, or with those of this process; always ends with SystemExit."""
    if arguments is None:
        # The process is ours alone.
        take_environment()
    argument_list = list(sys.argv[1:] if arguments is None else arguments)
    former_outputs = sys.stdout, sys.stderr
    outputs = redact_output()
    try:
        # A context of its own, so that the options of one call do not reach the next.
        copy_context().run(_run, argument_list)
    finally:
        for output in outputs:
            output.finish()
        if arguments is not None:
            # The caller goes on; a process that ends keeps them, for the traceback of a defect.
            sys.stdout, sys.stderr = former_outputs


def _run(arguments: list[str]) -> None:
    verb_name = next((word for word in arguments if not word.startswith("-")), None)
    try:
        build_command_line(verb_name)(arguments, prog_name="showhow")
    except _user_errors() as error:
        print_error(str(error))
        sys.exit(1)
