"""`showhow repair list | fork | finish`: failures of verifications, their repairs, and a library with these repairs."""

from typing import Annotated, Any
from uuid import UUID

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.verify import print_asked
from showhow.app.services import current_services
from showhow.db.people.users import find_user
from showhow.db.traces import traces
from showhow.evaluation.verification.repairs import VerificationFailure, list_failures
from showhow.tasks.traces import parse_trace_id
from showhow.tasks.verification import FinishRepairs, finish_repairs, load_run

app = typer.Typer(no_args_is_help=True, help="List failures that wait for a repair, begin repairs, and ask them again.")


@app.command("list")
def list_repairs(
    run: Annotated[str, typer.Argument(help="The id of a verification; `runs list` lists them.")],
    *,
    as_json: AsJson = False,
) -> None:
    """List the failures of a verification: those that wait in the order of their benefit, then those with a repair."""
    services = current_services()
    rows = [_describe(failure) for failure in list_failures(services, load_run(services, run))]
    lines = [
        f"{row['trace']}  {row['repair'] or 'waits'}{' by ' + row['person'] if row['person'] else ''}  "
        f"{row['question']}  {row['answer'] or row['failure']}"
        for row in rows
    ]
    emit(rows, "\n".join(lines) or "every question was answered correctly", as_json=as_json)


def _describe(failure: VerificationFailure) -> dict[str, Any]:
    outcome, repair = failure.outcome, failure.repair
    return {
        "trace": str(outcome.trace_id),
        "question": outcome.question,
        "kind": outcome.kind,
        "gold": [answer["text"] for answer in outcome.gold],
        "ending": outcome.ending,
        "answer": outcome.answer,
        "failure": outcome.failure,
        "category": failure.category,
        "waits": failure.is_open,
        "repair": repair and repair.status,
        "repair_trace": repair and repair.repair_id and str(repair.repair_id),
        "person": repair and repair.person,
    }


@app.command()
def fork(
    trace: Annotated[str, typer.Argument(help="The trace of a failure; `repair list` lists them.")],
    *,
    person: Annotated[str, typer.Option("--as", help="Who repairs it, on the Annotate page.")],
    step: Annotated[int, typer.Option(min=0, help="The last step that is right and kept; 0 starts over.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Begin a repair: a draft of a person with the first steps of the trace."""
    trace_id: UUID = parse_trace_id(trace)
    with current_services().database.begin() as session:
        user = find_user(session, person)
        if user is None:
            raise CommandError(f"there is no person {person!r}; `showhow users list` lists them")
        draft = traces.fork_trace(session, trace_id, step, user.id)
    text = f"draft {draft.id}: {person} goes on with it on the Annotate page"
    emit({"trace": str(draft.id), "parent": trace, "step": step, "person": person}, text, as_json=as_json)


@app.command()
@draw_options
def finish(request: FinishRepairs, *, as_json: AsJson = False) -> None:
    """Freeze the approved repairs of a verification as the next version of its library, and ask its failures again."""
    services = current_services()
    print_asked(services, finish_repairs(services, request), as_json=as_json)
