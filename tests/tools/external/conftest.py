"""External tools: real MCP servers, and modules as users write them."""

from collections.abc import Iterator

import pytest

from showhow.tools.registry import ToolRegistry
from showhow.tools.tool import ToolContext
from showhow.worlds.source import World
from tests.servers.weather_started import PATIENCE, registry_of, weather_by_command


@pytest.fixture(scope="session")
def nowhere() -> ToolContext:
    """The context of tools that use no world."""
    return ToolContext(World("none"), lambda texts: pytest.fail(f"the encoder was asked for {texts}"))


@pytest.fixture(scope="session")
def weather() -> Iterator[ToolRegistry]:
    """The started weather server, with limits for a busy machine."""
    registry = registry_of(weather=weather_by_command(seconds=PATIENCE))
    yield registry
    registry.close()
