"""`showhow world generate`: a fictional world of these options."""

from typing import Annotated

import typer

from app.cli.output import emit, fail_on_interrupt, make_stage_printer
from app.cli.output import print_progress as tell
from app.services import services
from fiction.universe.options import GenerationOptions

_SPLIT_HELP = (
    "How the facts are spread: everywhere, or hundredths of text, graph and web as in text=50,graph=35,web=15."
)
_SPLIT_BY_HELP = "Whether the shares are drawn for each entity, each relation, or both."
_EACH_COUNT_HELP = "A question for a number means the set of the numbers of each person, as in the paper."
_COLLISIONS_HELP = "The share of people who have their full name in common with somebody else, from 0 to 0.5."
_MAX_SHORTFALLS = 3
"""Templates without enough questions that are told of."""


def generate(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    people: Annotated[int, typer.Option(help="How many people live in it.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed and options give the same world.")] = 1,
    depth: Annotated[int, typer.Option(help="Of the questions' grammar; the longest chain is half of it.")] = 20,
    per_template: Annotated[int, typer.Option(help="Questions of each template.")] = 10,
    family_size: Annotated[int, typer.Option(help="People of a family.")] = 25,
    generations: Annotated[int, typer.Option(help="At most so many generations of a family.")] = 5,
    branching: Annotated[int, typer.Option(help="At most so many children of a couple.")] = 5,
    friends: Annotated[float, typer.Option(help="Friends of a person, on average.")] = 3.0,
    collisions: Annotated[float, typer.Option(help=_COLLISIONS_HELP)] = 0.0,
    split: Annotated[str, typer.Option(help=_SPLIT_HELP)] = "everywhere",
    split_by: Annotated[str, typer.Option(help=_SPLIT_BY_HELP)] = "both",
    processes: Annotated[
        int, typer.Option(min=0, max=64, help="Processes that write articles; 0 is as many as are useful.")
    ] = 0,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="One phrasing a fact, as in the paper.")] = False,
    each_count: Annotated[bool, typer.Option("--each-count", help=_EACH_COUNT_HELP)] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the world if there is one of that name.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a fictional world: families as articles, a graph and web pages, with questions and every right answer."""
    from fiction.generator.build import generate_world  # noqa: PLC0415 - its libraries serve this verb only

    options = GenerationOptions(
        people=people,
        seed=seed,
        family_size=family_size,
        generations=generations,
        branching=branching,
        friends=friends,
        collisions=collisions,
        depth=depth,
        per_template=per_template,
        plain=plain,
        split=split,
        split_by=split_by,
        each=each_count,
    )
    with fail_on_interrupt(f"The world {name} was not made: the work was stopped, and nothing of it stays."):
        about = generate_world(
            services().settings.worlds_folder,
            name,
            options,
            progress=make_stage_printer(),
            replace=replace,
            processes=processes or None,
        )
    _print_shortfalls(about["shortfalls"])
    sizes = ", ".join(f"{about[what]:,} {what}" for what in ("articles", "pages", "triples", "questions"))
    emit(about, f"{name}: {sizes}", as_json=as_json)


def _print_shortfalls(shortfalls: list[str]) -> None:
    for shortfall in shortfalls[:_MAX_SHORTFALLS]:
        tell(shortfall)
    if len(shortfalls) > _MAX_SHORTFALLS:
        tell(f"So it is with {len(shortfalls) - _MAX_SHORTFALLS} more templates, which world.toml names.")
