"""A small generated village in a home of its own, with demonstrations and a library, for tests of the interface."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from showhow import Home, Library, World


@dataclass(frozen=True)
class Village:
    """The home, its world, traces that are in no store, and the same ones as the version village:1."""

    home: Home
    world: World
    traces: Library
    library: Library


@pytest.fixture(scope="session")
def village() -> Iterator[Village]:
    with Home.temporary() as home:
        world = World.generate("village", people=60, seed=5, depth=4, per_template=1, home=home)
        traces = world.demonstrations(12)
        yield Village(home, world, traces, traces.store("village"))
