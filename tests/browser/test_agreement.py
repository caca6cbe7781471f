"""The agreement of a team in the browser: from a figure to its questions, and from there to the traces."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from showhow.db.database import Database
from showhow.db.people import users
from tests.browser.server import Showhow
from tests.browser.settled import settle
from tests.browser.visitor import Visitor
from tests.evaluation.scripted_annotators import make_questions, record_team

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """Three people have recorded the same 30 questions; Rita reviews them."""
    showhow = Showhow(tmp_path_factory.mktemp("team"))
    showhow.appoint("lea")
    database = Database(f"sqlite:///{showhow.home / 'showhow.db'}", is_durable=False)
    record_team(database, make_questions(database, "Quays", 30, "default"), {"ada": 0.95, "ben": 0.9, "cyd": 0.4})
    with database.begin() as session:
        users.register_user(session, "rita")
        users.set_roles(session, "rita", [users.REVIEWER])
    database.close()
    showhow.start()
    yield showhow
    showhow.stop()


def open_agreement(page: Page, team: Showhow, person: str, project: str = "Quays") -> Visitor:
    visitor = Visitor(page, team.url, person)
    page.goto(f"{team.url}/project?you={person}&project={project}&view=agreement")
    page.wait_for_selector(".st-key-product_header")
    visitor.settle()
    return visitor


def test_a_reviewer_goes_from_a_figure_to_its_questions_and_to_the_traces_side_by_side(page: Page, team: Showhow):
    open_agreement(page, team, "rita")
    measures = page.get_by_role("region", name="Agreement by measure")
    expect(measures.get_by_role("row")).to_have_count(8)
    expect(measures).to_contain_text("Levenshtein over the longer length")
    measures.get_by_role("button", name="Tools in order").click()
    expect(page.get_by_role("heading", name="Tools in order")).to_be_visible()
    settle(page)
    pairs = page.get_by_role("region", name="By pair of people")
    pair = pairs.get_by_role("row", name="ada and cyd")
    figure = pair.get_by_role("button").inner_text()
    pair.get_by_role("button").click()
    expect(page.get_by_role("heading", name="Tools in order, pair of people: ada and cyd")).to_be_visible()
    expect(page.get_by_text("1–25 of 30 units")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("26–30 of 30 units")).to_be_visible()
    settle(page)
    page.reload()
    address = page.url
    questions = page.get_by_role("region", name="Questions of the figure")
    expect(questions.get_by_role("row")).to_have_count(6)
    questions.get_by_role("button", name="Who owns quay").first.click()
    expect(page.get_by_role("region", name="Traces side by side")).to_contain_text("cyd")
    page.goto(address)
    page.get_by_role("button", name="Back to the figures").click()
    expect(pairs.get_by_role("row", name="ada and cyd").get_by_role("button")).to_have_text(figure)


def test_people_who_annotate_see_no_agreement_and_a_project_of_one_person_says_what_is_needed(
    page: Page, team: Showhow
):
    open_agreement(page, team, "ada")
    expect(page.get_by_text("30 of 30 questions")).to_be_visible()
    expect(page.get_by_role("button", name="Agreement")).to_have_count(0)
    expect(page.get_by_text("alpha")).to_have_count(0)
    open_agreement(page, team, "rita", "Fictional people")
    expect(page.get_by_text("set People per question to 2 or more")).to_be_visible()
