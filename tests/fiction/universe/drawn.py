"""Options drawn at random, and what tells two universes apart."""

from dataclasses import fields
from hashlib import sha256

import numpy as np
from hypothesis import strategies as st

from fiction.universe.options import GenerationOptions
from fiction.universe.universe import Universe


@st.composite
def options(
    draw: st.DrawFn, *, most: int = 150, collisions: st.SearchStrategy[float] | None = None
) -> GenerationOptions:
    """Options of a small universe, at the edges of what is allowed as well as in the middle."""
    return GenerationOptions(
        people=draw(st.integers(1, most)),
        seed=draw(st.integers(0, 2**63 - 1)),
        family_size=draw(st.one_of(st.integers(1, 60), st.just(500))),
        generations=draw(st.integers(2, 20)),
        branching=draw(st.integers(2, 20)),
        friends=draw(st.floats(0, 100) | st.integers(0, 8).map(float)),
        collisions=draw(st.just(0.0) if collisions is None else collisions),
    )


def digest(universe: Universe) -> str:
    """A hash of everything in the universe."""
    whole = sha256()
    for part in (universe, universe.friends, universe.places):
        for each in fields(part):
            value = getattr(part, each.name)
            if isinstance(value, np.ndarray):
                whole.update(f"{each.name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
            elif isinstance(value, int | list | tuple):
                whole.update(f"{each.name} {value if isinstance(value, int) else tuple(value)}".encode())
    return whole.hexdigest()
