"""The Settings page: a profile is added, tested, chosen on Ask, and named in the trace and in an export."""

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from showhow.llm.profiles import PROFILES_FILE_NAME, ProfileFile
from tests.browser.asker import Asker
from tests.browser.server import Showhow
from tests.browser.session import Widget, open_session
from tests.browser.visitor import Visitor
from tests.servers.model import ModelServer, Reply, Request, Says

pytestmark = pytest.mark.long

KEY = "sk-planted-on-settings-41"
CITIES = [("population", {"city": city, "year": 2020, "unit": "people"}) for city in ("Oslo", "Lima")]


def reply(request: Request) -> Reply:
    """Call the tool of a connection check; answer any question at once."""
    if request.tools == ["population"]:
        return Says("I look up both cities.", calls=CITIES)
    return Says("I know it.\nFinal Answer: Gullhaven" if request.tools else "Answer: Gullhaven")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply, key=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world, without a model, whose environment has a key."""
    showhow = Showhow(tmp_path_factory.mktemp("settings"))
    showhow.environment["LOCAL_API_KEY"] = KEY
    showhow.appoint("grace")
    showhow.start()
    yield showhow
    showhow.stop()


class Administrator(Visitor):
    """A person with a browser on the Settings page."""

    def open(self, page: str = "settings", **query: str) -> None:
        """Open the page with these parameters, such as a profile."""
        self.page.goto(f"{self._url}/{page}?{urlencode({'you': self._name, **query})}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()


def add_profile(grace: Administrator, model: ModelServer) -> None:
    """Add the profile local; a wrong input is refused with a sentence, and nothing typed is lost."""
    page = grace.page
    grace.open()
    expect(page.get_by_text("No model is set up. Add a profile")).to_be_visible()
    grace.press("Alt+N")
    grace.choose("vLLM")
    expect(page.get_by_text("--enable-auto-tool-choice")).to_be_visible()
    grace.fill("Name", "local")
    grace.fill("Model", "openai:scripted")
    grace.fill("Base URL", model.url)
    grace.fill("Environment variable of the key", KEY)
    grace.fill("Extra body (JSON)", '{"top_k": }')
    grace.click("Save")
    expect(page.get_by_text("never the key itself")).to_be_visible()
    expect(page.get_by_text("The extra body is not JSON")).to_be_visible()
    expect(page.get_by_label("Base URL", exact=True)).to_have_value(model.url)
    expect(page.get_by_label("Extra body (JSON)", exact=True)).to_have_value('{"top_k": }')
    grace.fill("Environment variable of the key", "LOCAL_API_KEY")
    grace.fill("Extra body (JSON)", '{"top_k": 20}')
    allow_key(grace, model)
    grace.press("Control+Enter")
    row = page.get_by_role("region", name="Profiles of language models").locator("tbody tr")
    expect(row).to_contain_text("LOCAL_API_KEY is set")
    expect(row).to_contain_text("16,000 (assumed)")
    grace.settle()


def allow_key(grace: Administrator, model: ModelServer) -> None:
    """Test the connection, which sends nothing before the box is ticked that names the variable and the server."""
    page, origin = grace.page, model.url.removesuffix("/v1")
    box = page.get_by_role("checkbox", name=f"Send LOCAL_API_KEY to `{origin}`")
    expect(box).not_to_be_checked()
    page.keyboard.press("Alt+V")
    expect(page.get_by_text(f"LOCAL_API_KEY is not sent to {origin}, which is not allowed yet")).to_be_visible()
    assert model.requests == []
    assert page.locator(".st-key-profile_consent a").count() == 0
    # Streamlit hides the box itself behind its label.
    page.locator(".st-key-profile_consent label").click()
    expect(box).to_be_checked()
    grace.settle()


def check_connection(grace: Administrator, model: ModelServer) -> None:
    """Test the connection of the opened profile."""
    page = grace.page
    page.keyboard.press("Alt+V")
    # The first test loads LangChain.
    expect(page.get_by_text("openai:scripted answered in")).to_be_visible(timeout=120_000)
    grace.settle()
    rows = page.get_by_role("region", name="What the server can do").locator("tbody tr")
    names = ["Tools", "Parallel calls", "Argument schema", "Streaming", "Usage"]
    assert [row.locator("td").all_text_contents()[:2] for row in rows.all()] == [[name, "yes"] for name in names]
    assert model.requests[-1].body["top_k"] == 20
    # A report is about the values that were tested.
    grace.fill("Extra body (JSON)", '{"top_k": 30}')
    expect(page.get_by_text("openai:scripted answered in")).to_have_count(0)


def test_a_profile_is_added_tested_chosen_on_ask_and_named_in_trace_and_export(
    page: Page, home: Showhow, model: ModelServer
):
    grace = Administrator(page, home.url, "grace")
    add_profile(grace, model)
    check_connection(grace, model)

    asker = Asker(page, home.url, "grace")
    asker.open()
    grace.choose("Language model")
    asker.choose("Model", "local")
    asker.ask("Where was Ada Reed born?")
    expect(asker.answer).to_have_text("Gullhaven", timeout=120_000)
    expect(page.get_by_text("Answered by HumanIQ with local (openai:scripted)")).to_be_visible()
    assert model.requests[-1].body["top_k"] == 20
    trace = asker.trace
    asker.open(trace=trace, look="Settings")
    expect(page.get_by_test_id("stJson")).to_contain_text("LOCAL_API_KEY")

    file = home.home / "out.jsonl"
    home.run("traces", "export", str(file), "--status", "all", "--project", "Asked of default")
    (exported,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    profile = exported["run"]["spec"]["profile"]
    assert (profile["name"], profile["base_url"], profile["extra_body"]) == ("local", model.url, {"top_k": 20})
    assert KEY not in page.content()
    assert not any(KEY.encode() in path.read_bytes() for path in home.home.rglob("*") if path.is_file())


def test_a_change_made_meanwhile_is_not_overwritten_and_what_was_typed_stays(page: Page, home: Showhow):
    profiles = ProfileFile(home.home / PROFILES_FILE_NAME)
    grace = Administrator(page, home.url, "grace")
    grace.open(profile="local")
    profiles.save(replace(profiles.load()["local"], concurrency=3), replaces=profiles.load()["local"])
    grace.fill("Extra body (JSON)", '{"top_k": 40}')
    grace.click("Save")
    expect(page.get_by_text("The profile 'local' was changed meanwhile; open it again")).to_be_visible()
    expect(page.get_by_label("Extra body (JSON)", exact=True)).to_have_value('{"top_k": 40}')
    grace.open(profile="local")
    grace.fill("Extra body (JSON)", '{"top_k": 40}')
    grace.click("Save")
    expect(page.get_by_text("The profile local is saved.")).to_be_visible()
    stored = profiles.load()["local"]
    assert (stored.concurrency, stored.extra_body) == (3, {"top_k": 40})


def test_only_administrators_can_change_profiles(page: Page, home: Showhow):
    ida = Administrator(page, home.url, "ida")
    ida.open(profile="local")
    expect(page.get_by_text("Only administrators can change and test profiles.")).to_be_visible()
    expect(page.get_by_label("Base URL", exact=True)).to_be_disabled()
    for button in ("Add a profile", "Save", "Test connection", "Remove"):
        expect(page.get_by_role("button", name=button)).to_have_count(0)


def test_a_forged_click_of_a_visitor_sends_no_key(home: Showhow, model: ModelServer):
    """The widgets of an administrator's page, clicked in a session of somebody else."""
    with open_session(home.url, "settings", {"you": "grace", "profile": "local"}) as session:
        clicked = session.rerun(click="confirm_person").find("profile_test").id
    sent = len(model.requests)
    with open_session(home.url, "settings", {"you": "ida", "profile": "local"}) as session:
        session.widgets[clicked] = Widget(clicked, "")
        session.rerun(click="profile_test")
        assert len(model.requests) == sent
        assert b"Only administrators can change and test profiles." in session.received


def test_a_file_that_cannot_be_used_is_one_sentence_on_every_page_that_reads_it(page: Page, home: Showhow):
    path = home.home / PROFILES_FILE_NAME
    text = path.read_text(encoding="utf-8")
    path.write_text("{", encoding="utf-8")
    try:
        for name in ("settings", "ask"):
            Administrator(page, home.url, "grace").open(name)
            expect(page.get_by_text("models.json is no JSON")).to_be_visible()
            expect(page.get_by_text("Traceback")).to_have_count(0)
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_profile_is_removed(page: Page, home: Showhow):
    grace = Administrator(page, home.url, "grace")
    grace.open(profile="local")
    grace.click("Remove")
    page.get_by_role("button", name="Remove local").click()
    expect(page.get_by_text("No model is set up. Add a profile")).to_be_visible()
    assert ProfileFile(home.home / PROFILES_FILE_NAME).load() == {}
