"""Tools of others: real servers, and modules as their users write them."""

from collections.abc import Iterator

import pytest

from tests.servers.weather_started import PATIENCE, registry_of, weather_by_command
from tools.registry import Registry
from tools.tool import Context
from worlds.source import World


@pytest.fixture(scope="session")
def nowhere() -> Context:
    """What tools that know no world are called with."""
    return Context(World("none"), lambda texts: pytest.fail(f"the encoder was asked for {texts}"))


@pytest.fixture(scope="session")
def weather() -> Iterator[Registry]:
    """The weather server, started, with time enough for a busy machine."""
    found = registry_of(weather=weather_by_command(seconds=PATIENCE))
    yield found
    found.close()
