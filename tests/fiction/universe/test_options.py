import pytest

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.worlds.folder import WorldError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"people": 0}, "people must be from 1 to 5,000,000, not 0."),
        ({"seed": -1}, f"seed must be from 0 to {2**63 - 1:,}, not -1."),
        ({"family_size": 501}, "family_size must be from 1 to 500, not 501."),
        ({"generations": 1}, "generations must be from 2 to 20, not 1."),
        ({"branching": 21}, "branching must be from 2 to 20, not 21."),
        ({"friends": float("nan")}, "friends must be from 0 to 100, not nan."),
        ({"collisions": 0.6}, "collisions must be from 0 to 0.5, not 0.6."),
        ({"depth": 0}, "depth must be from 1 to 100, not 0."),
        ({"per_template": -1}, "per_template must be from 0 to 100,000, not -1."),
    ],
)
def test_invalid_options_raise_a_clear_error(changes, message):
    options = GenerationOptions(**{"people": 10, "seed": 1, **changes})
    with pytest.raises(WorldError) as refused:
        make_universe(options)
    assert str(refused.value) == message


def test_default_options_are_those_of_the_paper():
    usual = GenerationOptions(people=10, seed=1)
    usual.check()
    assert (usual.family_size, usual.generations, usual.branching, usual.friends) == (25, 5, 5, 3.0)
    assert (usual.split, usual.split_by, usual.collisions) == ("everywhere", "both", 0.0)
