"""The options of verbs that choose demonstrations."""

from typing import Annotated

import typer

from fewshot_library.selection import MODES

Reference = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]
K = Annotated[int, typer.Option("-k", min=0, help="How many.")]
Mode = Annotated[str, typer.Option(help=", ".join(MODES))]
Alpha = Annotated[float, typer.Option(help="How much relevance counts.")]
Gamma = Annotated[float, typer.Option(help="How fast likeness falls with the distance of the actions.")]
Distance = Annotated[str, typer.Option(help="longer: over the longer sequence; metric: Yujian and Bo's.")]
Exchange = Annotated[bool, typer.Option(help="Exchange picks while that raises the determinant.")]
Seed = Annotated[int, typer.Option(help="Of the modes random and sample.")]
Balance = Annotated[float, typer.Option(help="Of mmr: 1 is relevance alone.")]
LeaveOut = Annotated[bool, typer.Option("--leave-out-itself", help="Not the question itself.")]
