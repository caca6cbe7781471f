"""Random generation options, and a hash of universes."""

from dataclasses import fields
from hashlib import sha256

import numpy as np
from hypothesis import strategies as st

from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import Universe


@st.composite
def options(
    draw: st.DrawFn, *, most: int = 150, collisions: st.SearchStrategy[float] | None = None
) -> GenerationOptions:
    """Strategy for options of a small universe, including the limits."""
    people = draw(st.integers(1, most))
    return GenerationOptions(
        people=people,
        pairs=draw(st.integers(0, people // 4)),
        seed=draw(st.integers(0, 2**63 - 1)),
        family_size=draw(st.one_of(st.integers(1, 60), st.just(500))),
        generations=draw(st.integers(2, 20)),
        branching=draw(st.integers(2, 20)),
        friends=draw(st.floats(0, 100) | st.integers(0, 8).map(float)),
        collisions=draw(st.just(0.0) if collisions is None else collisions),
    )


def digest(universe: Universe) -> str:
    """Hash of all arrays and texts of the universe."""
    whole = sha256()
    for part in (universe, universe.friends, universe.places):
        for attribute in fields(part):
            value = getattr(part, attribute.name)
            if isinstance(value, np.ndarray):
                whole.update(f"{attribute.name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
            elif isinstance(value, int | list | tuple):
                whole.update(f"{attribute.name} {value if isinstance(value, int) else tuple(value)}".encode())
    return whole.hexdigest()
