"""MCP servers that flood their client: they are ended or refused, and no other server waits."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from showhow.tools.external.config import McpServerConfig
from showhow.tools.registry import ToolRegistry
from showhow.tools.tool import ToolContext
from tests.servers.weather_started import PATIENCE, registry_of, weather_by_command

pytestmark = pytest.mark.long

FLOODING = Path(__file__).parents[2] / "servers" / "flooding.py"
LONGEST_WAIT_SECONDS = 3.0
"""Of another server's call on a busy machine; before, it waited for 7 seconds and more."""


@pytest.fixture
def flooded(request: pytest.FixtureRequest) -> Iterator[ToolRegistry]:
    mode: str = request.param
    command = {"command": sys.executable, "args": [str(FLOODING), mode], "seconds": 8}
    registry = registry_of(
        weather=weather_by_command(seconds=PATIENCE), flooding=McpServerConfig.model_validate(command)
    )
    yield registry
    registry.close()


@pytest.mark.parametrize(
    ("flooded", "message"),
    [
        ("blank lines", "lines within a second"),
        ("other lines", "lines within a second"),
        ("notifications", "messages within a second"),
        ("progress", "messages within a second"),
        ("requests", "messages within a second"),
        ("elicitation", "messages within a second"),
        ("blocks", "more than 2,000 parts at once"),
        ("values", "more than 200,000 values at once"),
        ("many values", "more than 1,000,000 values at once"),
        ("depth", "did not answer within its limit of 8 s"),
        ("stderr", "did not answer within its limit of 8 s"),
        ("pattern", None),
    ],
    indirect=["flooded"],
)
def test_a_flood_of_one_server_delays_no_call_of_another(
    flooded: ToolRegistry, nowhere: ToolContext, message: str | None
) -> None:
    say, flood = flooded.get_tool("weather_say"), flooded.get_tool("flooding_flood")
    assert say.call(nowhere, {"text": "before"}).observation is not None
    waits = []
    with ThreadPoolExecutor(1) as other:
        flooding = other.submit(flood.call, nowhere, {})
        deadline = time.monotonic() + PATIENCE
        while not flooding.done() and time.monotonic() < deadline:
            started = time.monotonic()
            assert say.call(nowhere, {"text": "meanwhile"}).observation is not None
            waits.append(time.monotonic() - started)
        result = flooding.result()
    assert max(waits, default=0) < LONGEST_WAIT_SECONDS
    if message is None:
        # The patterns of a server are never matched in this process.
        assert result.observation is not None
    else:
        assert message in str(result.error)


@pytest.mark.parametrize("flooded", ["pages"], indirect=True)
def test_a_server_that_never_ends_its_list_of_tools_is_refused(flooded: ToolRegistry) -> None:
    assert "more than 2,000 tools" in str(flooded.problem("flooding_flood"))
    assert flooded.find("weather_say") is not None
