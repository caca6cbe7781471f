"""A real MCP server with tools of every kind: `weather.py stdio`, or `weather.py http|sse PORT`."""

import os
import sys
import time
from typing import Annotated, Literal

from mcp.server.fastmcp import FastMCP, Image
from mcp.types import AudioContent, EmbeddedResource, ResourceLink, TextContent, TextResourceContents, ToolAnnotations
from pydantic import AnyUrl, BaseModel, Field

server = FastMCP("weather", port=int(sys.argv[2]) if len(sys.argv) > 2 else 8000, log_level="ERROR")


class Station(BaseModel):
    title: str
    height: float
    open: bool = True


@server.tool(annotations=ToolAnnotations(title="Forecast"))
def forecast(
    city: Annotated[str, Field(description="the city's name")],
    days: Annotated[int, Field(description="how many days ahead", ge=1, le=14)] = 3,
    unit: Annotated[Literal["celsius", "fahrenheit"], Field(description="of the temperature")] = "celsius",
    warnings: Annotated[bool, Field(description="whether warnings are told")] = False,  # noqa: FBT002 - an argument by name
    least_rain: Annotated[float | None, Field(description="millimetres a day")] = None,
) -> dict[str, object]:
    """Tell the weather of a city for some days.

    It is always the same."""
    forecast = {"city": city, "days": days, "unit": unit, "warnings": warnings, "least_rain": least_rain}
    return {**forecast, "kinds": {name: type(value).__name__ for name, value in forecast.items()}}


@server.tool()
def stations(region: str, near: list[str] | None = None) -> list[Station]:
    """List the stations of a region."""
    return [
        Station(title=f"{region} {place}", height=12.5 * n)
        for n, place in enumerate(["north", "süd 😀", *(near or [])])
    ]


@server.tool()
def say(text: str) -> str:
    """Return the text."""
    return text


@server.tool()
def parts() -> list[object]:
    """Answer with parts of every kind."""
    return [
        TextContent(type="text", text="A chart, a song and a file:"),
        Image(data=b"x" * 3000, format="png").to_image_content(),
        AudioContent(type="audio", data="QUJD" * 100, mimeType="audio/wav"),
        ResourceLink(type="resource_link", uri=AnyUrl("https://weather.example/report.pdf"), name="report"),
        EmbeddedResource(
            type="resource", resource=TextResourceContents(uri=AnyUrl("note://1"), text="Bring an <b>umbrella</b>.")
        ),
    ]


@server.tool()
def fail(why: str) -> str:
    """Fail with this reason."""
    raise ValueError(why)


@server.tool()
def key() -> str:
    """Return the key."""
    return f"the key is {os.environ.get('WEATHER_KEY')}"


@server.tool()
def large(characters: int) -> str:
    """Return a text of this length."""
    return "x" * characters


@server.tool()
def wait(seconds: float) -> str:
    """Answer after `seconds`, blocking all other calls."""
    time.sleep(seconds)
    return "done"


@server.tool()
def die() -> str:
    """End the server."""
    sys.stderr.write("the storm took the mast\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def process() -> int:
    """Return the id of the server's process."""
    return os.getpid()


if __name__ == "__main__":
    server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[sys.argv[1]])
