"""`showhow world generate`: generates a fictional world."""

from typing import Annotated

import typer

from app.cli.output import emit, fail_on_interrupt
from app.progress import make_stage_printer, print_progress
from app.services import services
from fiction.universe.options import GenerationOptions

_SPLIT_HELP = (
    "How the facts are split: everywhere, or percentages of text, graph and web as in text=50,graph=35,web=15."
)
_SPLIT_BY_HELP = "Split the facts by entity, by relation, or by both."
_EACH_COUNT_HELP = 'The answer to "how many" is the set of the counts of each person, as in the paper.'
_COLLISIONS_HELP = "The share of people who share their full name with another person, from 0 to 0.5."
_MAX_SHORTFALLS = 3
"""How many templates with too few questions are printed."""


def generate(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    people: Annotated[int, typer.Option(help="Number of people.")] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed and options give the same world.")] = 1,
    depth: Annotated[int, typer.Option(help="Depth of the question grammar; the longest chain is half of it.")] = 20,
    per_template: Annotated[int, typer.Option(help="Questions of each template.")] = 10,
    family_size: Annotated[int, typer.Option(help="People per family.")] = 25,
    generations: Annotated[int, typer.Option(help="Maximum generations of a family.")] = 5,
    branching: Annotated[int, typer.Option(help="Maximum children of a couple.")] = 5,
    friends: Annotated[float, typer.Option(help="Mean number of friends of a person.")] = 3.0,
    collisions: Annotated[float, typer.Option(help=_COLLISIONS_HELP)] = 0.0,
    split: Annotated[str, typer.Option(help=_SPLIT_HELP)] = "everywhere",
    split_by: Annotated[str, typer.Option(help=_SPLIT_BY_HELP)] = "both",
    processes: Annotated[
        int, typer.Option(min=0, max=64, help="Processes that write articles; 0 chooses the number.")
    ] = 0,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="One phrasing for each fact, as in the paper.")] = False,
    each_count: Annotated[bool, typer.Option("--each-count", help=_EACH_COUNT_HELP)] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing world of that name.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Generate a fictional world: families as articles, a graph and web pages, with questions and gold answers."""
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
    _generate(name, options, processes or None, replace=replace, as_json=as_json)


def _generate(name: str, options: GenerationOptions, processes: int | None, *, replace: bool, as_json: bool) -> None:
    """Generate the world, and print its sizes and shortfalls."""
    # Loaded only by this verb, since its libraries are large.
    from fiction.generator.build import generate_world  # noqa: PLC0415

    folder, progress = services().settings.worlds_folder, make_stage_printer()
    with fail_on_interrupt(f"The generation was stopped; the world {name} was not made."):
        metadata = generate_world(folder, name, options, progress=progress, replace=replace, processes=processes)
    _print_shortfalls(metadata["shortfalls"])
    sizes = ", ".join(f"{metadata[unit]:,} {unit}" for unit in ("articles", "pages", "triples", "questions"))
    emit(metadata, f"{name}: {sizes}", as_json=as_json)


def _print_shortfalls(shortfalls: list[str]) -> None:
    for shortfall in shortfalls[:_MAX_SHORTFALLS]:
        print_progress(shortfall)
    if len(shortfalls) > _MAX_SHORTFALLS:
        print_progress(f"{len(shortfalls) - _MAX_SHORTFALLS} more templates have too few questions; see world.toml.")
