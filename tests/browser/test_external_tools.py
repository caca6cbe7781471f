"""External tools on the Annotate page: typed forms, results, and traces of tools that were removed."""

import json
import re
import socket
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.servers.loopback import free_port
from tests.servers.weather_started import WEATHER, arguments_of_waiting_weather

pytestmark = pytest.mark.long

MODULE = '''
from langchain_core.tools import tool

@tool
def shout(text: str, times: int = 2, names: list[str] | None = None) -> dict:
    """Say it **louder** ![x](http://127.0.0.1:9/x.png)."""
    return {"title": text.upper() * times, "names": names}
'''
PROJECT = "Fictional people"
CHOSEN = "wikisearch,read,weather_forecast,weather_stations,shout,weather_die"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a LangChain tool and an MCP server."""
    showhow = Showhow(tmp_path_factory.mktemp("others"))
    (showhow.home / "my_tools_of_the_browser.py").write_text(MODULE)
    declare(showhow, weather=True)
    showhow.start()
    showhow.run("project", "tools", PROJECT, "--set", CHOSEN)
    yield showhow
    showhow.stop()


def declare(showhow: Showhow, *, weather: bool, arguments: Sequence[str] = (str(WEATHER), "stdio")) -> None:
    """Write the file of tools, with the MCP server or without it."""
    server = f"[servers.weather]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n"
    function = '[functions.shout]\nplace = "my_tools_of_the_browser:shout"\n'
    (showhow.home / "tools.toml").write_text(function + (server if weather else ""))


def steps_of(showhow: Showhow) -> list[tuple[str, dict[str, Any], dict[str, Any] | None, str | None]]:
    """The stored steps of people, oldest first."""
    with sqlite3.connect(showhow.home / "showhow.db") as store:
        rows = store.execute(
            "select s.tool, s.arguments, s.origins, s.error from step s join trace t on t.id = s.trace_id"
            " where t.reasoner = 'human' order by s.started_at"
        ).fetchall()
    store.close()
    return [(tool, json.loads(arguments), json.loads(origins), error) for tool, arguments, origins, error in rows]


def choose(ada: Annotator, field: str, option: str) -> None:
    """Choose an option of a radio field."""
    ada.page.get_by_role("radiogroup", name=field).get_by_text(option, exact=True).click()
    ada.settle()


def write(ada: Annotator, field: str, text: str) -> None:
    """Type into a field that has a tooltip."""
    ada.page.get_by_role("textbox", name=field, exact=True).fill(text)


def test_a_step_with_an_external_tool_is_recorded_with_typed_arguments(page: Page, home: Showhow):
    ada = Annotator(page, home.url, "ada", PROJECT)
    ada.choose("Alt+3")
    ada.thought.fill("What is the weather in Ghent?")
    write(ada, "City", "Ghent")
    expect(page.get_by_role("textbox", name="Days (optional)")).to_have_value("3")
    write(ada, "Days (optional)", "soon")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Days: 'soon' is not a whole number")
    write(ada, "Days (optional)", "5")
    choose(ada, "Unit (optional)", "fahrenheit")
    choose(ada, "Warnings (optional)", "yes")
    # The shortcut also runs the step while a radio button has the focus.
    step = ada.run()
    expect(step.locator(".tool")).to_have_text("Weather forecast")
    expect(step.locator(".tool")).to_have_attribute("title", "weather_forecast")
    expect(step.get_by_role("region", name="result")).to_contain_text("days: int")
    tool, arguments, origins, error = steps_of(home)[-1]
    assert (tool, error) == ("weather_forecast", None)
    assert arguments == {"city": "Ghent", "days": 5, "unit": "fahrenheit", "warnings": True}
    assert origins["days"] == {"from": "typed"}
    ada.rate(4)
    use_result_in_next_form(ada, home)
    reload_draft_of_choices(ada)
    restart_dead_server(ada)


def use_result_in_next_form(ada: Annotator, home: Showhow) -> None:
    """Click a title in a table; the next step stores the origin of its argument."""
    ada.choose("Alt+4")
    write(ada, "Region", "<b>Öst</b>")
    write(ada, "Near (optional)", "the sea\nthe lake")
    step = ada.run()
    expect(step.locator("tbody tr")).to_have_count(4)
    expect(step.locator("tbody b")).to_have_count(0)
    ada.choose("Alt+5")
    ada.value(step, "<b>Öst</b> the sea")
    step = ada.run()
    expect(step).to_contain_text("(from step 2)")
    expect(step.get_by_role("region", name="result")).to_contain_text("<B>ÖST</B> THE SEA<B>ÖST</B> THE SEA")
    _, arguments, origins, _ = steps_of(home)[-1]
    assert arguments == {"text": "<b>Öst</b> the sea", "times": 2}
    assert origins["text"] == {"from": "step", "step": 2, "pointer": "/result/2/title"}
    assert ada.page.locator(".st-key-composer img").count() == 0


def reload_draft_of_choices(ada: Annotator) -> None:
    """Reload the page; chosen options and typed text are kept."""
    ada.choose("Alt+3")
    choose(ada, "Unit (optional)", "fahrenheit")
    ada.wait_for_save(lambda: write(ada, "Days (optional)", "7"))
    ada.page.reload()
    ada.page.wait_for_selector("li.step")
    ada.settle()
    expect(ada.page.get_by_role("textbox", name="Days (optional)")).to_have_value("7")
    unit = ada.page.get_by_role("radiogroup", name="Unit (optional)")
    expect(unit.get_by_role("radio", name="fahrenheit")).to_be_checked()


def restart_dead_server(ada: Annotator) -> None:
    """Call a tool that kills its server: the error is shown, and the next call restarts the server."""
    ada.choose("Alt+6")
    expect(ada.run()).to_contain_text("the storm took the mast")
    expect(ada.page.get_by_text("it is started again at the next call").first).to_be_visible()
    ada.choose("Alt+4")
    write(ada, "Region", "West")
    expect(ada.run().locator("tbody tr")).to_have_count(2)
    expect(ada.page.get_by_text("it is started again at the next call")).to_have_count(0)


def test_traces_of_a_removed_tool_are_still_shown(page: Page, home: Showhow):
    ada = Annotator(page, home.url, "ben", PROJECT)
    ada.choose("Alt+4")
    write(ada, "Region", "Nord")
    ada.run()
    declare(home, weather=False)
    try:
        page.reload()
        page.wait_for_selector("li.step")
        ada.settle()
        expect(ada.steps.last.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_text("There is no tool 'weather_forecast'").first).to_be_visible()
        tools = page.locator(".st-key-tools [class*=st-key-tool_]")
        expect(tools).to_have_text([re.compile("Search"), re.compile("Read"), re.compile("Shout")])
        ada.steps.last.get_by_role("button", name="Run again").click()
        ada.settle()
        expect(page.get_by_role("alert").first).to_contain_text("its tool is not available")
        assert steps_of(home)[-1][3] is None
        ada.steps.last.get_by_role("button", name="Fork here").click()
        ada.settle()
        expect(ada.steps.last.locator("tbody tr")).to_have_count(2)
        exported = home.home / "exported.jsonl"
        trace = re.search(r"trace=([0-9a-f-]+)", page.url)
        assert trace is not None
        home.run("traces", "export", str(exported), "--format", "showhow", "--status", "draft")
        assert "weather_stations" in exported.read_text(encoding="utf-8")
        project = json.loads(home.run("project", "show", PROJECT, "--json"))
        assert set(project["problems"]) == {"weather_forecast", "weather_stations", "weather_die"}
    finally:
        declare(home, weather=True)


def test_tools_of_a_server_that_starts_slowly_are_announced_and_come_by_themselves(page: Page, home: Showhow):
    port = free_port()
    declare(home, weather=True, arguments=[*arguments_of_waiting_weather(port)])
    try:
        Annotator(page, home.url, "cleo", PROJECT)
        tools = page.locator(".st-key-tools [class*=st-key-tool_]")
        expect(page.get_by_text("The server weather is still starting")).to_have_count(1)
        expect(tools).to_have_count(3)
        with socket.create_server(("127.0.0.1", port)):
            expect(tools).to_have_count(6)
        expect(page.get_by_text("still starting")).to_have_count(0)
    finally:
        declare(home, weather=True)
