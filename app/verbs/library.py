"""`showhow library freeze | list | show | compare | export | select | usage | map`."""

from collections.abc import Iterator
from dataclasses import asdict
from getpass import getuser
from typing import Annotated

import typer

from app.libraries import freeze_version, open_library
from app.registry import registry
from app.resources import database
from app.verbs import library_use
from app.verbs.conditions import By, Kind, OfProject, Rating, Text, conditions
from app.verbs.output import CommandFailed, emit
from app.verbs.wish import Alpha, Balance, Distance, Exchange, Gamma, K, LeaveOut, Mode, Reference, Seed
from db.libraries import Demonstration, demonstrations, version, versions
from db.projects import question_kinds
from fewshot_library.card import Leaking, Terms
from fewshot_library.difference import difference
from fewshot_library.library import Chosen, OpenLibrary
from fewshot_library.selection import ALPHA, GAMMA, SelectionError, Wish
from fewshot_library.statistics import Statistics, statistics

app = typer.Typer(no_args_is_help=True, help="Freeze demonstrations as numbered versions, and choose among them.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

app.command()(library_use.usage)
app.command("map")(library_use.map_)
app.command()(library_use.export)


@app.command("freeze")
def freeze_(  # noqa: PLR0913 - every option of the verb is one parameter
    name: Annotated[str, typer.Argument(help="The library's name.")],
    *,
    project: OfProject = None,
    kind: Kind = None,
    rating: Rating = None,
    by: By = None,
    text: Text = None,
    test_split: Annotated[str, typer.Option(help="The split whose questions must stay out.")] = "test",
    licence: Annotated[str, typer.Option(help="What may be done with it, for the card.")] = "",
    note: Annotated[str, typer.Option(help="Whatever else the card should say.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Freeze although tested questions leak.")] = False,
    as_json: AsJson = False,
) -> None:
    """Freeze the approved traces that fit as the library's next version."""
    wanted = conditions(project=project, kind=kind, rating=rating, by=by, text=text)
    terms = Terms(by=getuser(), licence=licence, note=note, test_split=test_split, force=force)
    try:
        made = freeze_version(name, wanted, terms)
    except Leaking as leaking:
        raise CommandFailed(f"{leaking} with --force") from leaking
    value = {"name": made.name, "number": made.number, "card": made.card}
    emit(value, f"{made.name}:{made.number} holds {made.card['demonstrations']} demonstrations", as_json=as_json)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """Every version of every library."""
    with database().read() as session:
        found = versions(session)
    lines = [f"{each.name}:{each.number}  {each.frozen_at:%F}  {each.demonstrations} demonstrations" for each in found]
    told = "\n".join(lines) or "no library yet; `showhow library freeze NAME` makes one of the approved traces"
    emit([each._asdict() for each in found], told, as_json=as_json)


@app.command()
def show(library: Reference, *, as_json: AsJson = False) -> None:
    """A version's card, its counts and its demonstrations."""
    with database().read() as session:
        found = version(session, library)
        inside = demonstrations(session, found.id)
        asked = question_kinds(session, sorted({each.project for each in inside}))
    counted = statistics(inside, tools=registry().all(), kinds=asked)
    value = {
        "name": found.name,
        "number": found.number,
        "frozen_at": found.frozen_at,
        "card": found.card,
        "statistics": counted.value(),
        "demonstrations": [each._asdict() for each in inside],
    }
    card = [f"{name}: {_flat(told)}" for name, told in found.card.items() if told]
    lines = [f"{found.name}:{found.number}, frozen {found.frozen_at:%F}", *card, *_counts(counted), ""]
    emit(value, "\n".join([*lines, *map(_line, inside)]), as_json=as_json)


@app.command()
def compare(before: Reference, after: Reference, *, as_json: AsJson = False) -> None:
    """What one version has and another has not."""
    with database().read() as session:
        old, new = (demonstrations(session, version(session, each).id) for each in (before, after))
    changed = difference(old, new)
    lines = [f"+ {_line(each)}" for each in changed.added] + [f"- {_line(each)}" for each in changed.removed]
    lines.append(f"{len(changed.added)} added, {len(changed.removed)} removed, {changed.kept} kept")
    emit(asdict(changed), "\n".join(lines), as_json=as_json)


@app.command("select")
def select_(  # noqa: PLR0913 - every option of the verb is one parameter
    library: Reference,
    question: Annotated[str, typer.Argument(help="The question that demonstrations are wanted for.")],
    *,
    k: K = 3,
    mode: Mode = "dpp",
    alpha: Alpha = ALPHA,
    gamma: Gamma = GAMMA,
    distance: Distance = "longer",
    exchange: Exchange = True,
    seed: Seed = 0,
    balance: Balance = 0.5,
    leave_out: LeaveOut = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each was chosen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose demonstrations for a question."""
    wish = Wish(
        k=k,
        mode=mode,
        alpha=alpha,
        gamma=gamma,
        distance=distance,
        exchange=exchange,
        seed=seed,
        balance=balance,
    )
    try:
        wish.check()
        found, opened = open_library(library)
        chosen = opened.choose(question, wish, leave_out_itself=leave_out)
    except SelectionError as wrong:
        raise CommandFailed(str(wrong)) from wrong
    value = {"library": found.name, "number": found.number, **chosen.value(opened)}
    emit(value, "\n".join(_picked(chosen, opened, explain=explain)) or "nothing to choose from", as_json=as_json)


def _picked(chosen: Chosen, library: OpenLibrary, *, explain: bool) -> Iterator[str]:
    for place, (pick, each) in enumerate(zip(chosen.selection.picks, chosen.demonstrations, strict=True), start=1):
        yield f"{place}. {each.question}"
        if not explain:
            continue
        yield f"   {' > '.join(each.tools)}"
        yield f"   relevance {chosen.selection.cosines[pick.item]:.3f}, novelty {pick.novelty:.3f}" + (
            ", there by relevance alone" if pick.filled else f", raises log det by {pick.gain:.3f}"
        )
        if pick.runner_up is not None and pick.lead is not None:
            second = library.demonstrations[pick.runner_up].question
            yield f"   next best: {second}, {pick.lead:.3f} behind"


def _line(each: Demonstration) -> str:
    stars = "" if each.rating is None else f"  {each.rating:.1f} stars"
    return f"{each.trace_id}  {each.question}  [{len(each.tools)} actions{stars}]"


def _counts(counted: Statistics) -> Iterator[str]:
    yield f"actions: {_flat(counted.tools)}"
    yield f"lengths: {_flat(counted.lengths)}"
    yield f"kinds: {_flat(counted.kinds) or 'not known'}"
    yield f"different sequences: {counted.sequences}; by people {counted.people}, by models {counted.models}"
    if counted.unused_tools:
        yield f"never used: {_flat(counted.unused_tools)}"
    if counted.missing_kinds:
        yield f"asked by its projects and never answered: {_flat(counted.missing_kinds)}"


def _flat(told: object) -> str:
    if isinstance(told, dict):
        return ", ".join(f"{name} {value}" for name, value in told.items())
    return ", ".join(map(str, told)) if isinstance(told, list) else str(told)
