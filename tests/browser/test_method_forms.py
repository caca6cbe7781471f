"""The forms of methods on the Ask page: they fill, are compared with gold, and a person's reply leads to a new run."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from showhow.db.run_spec import RunLimits
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.gold_comparison import find_gold_reasoning
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import PlanArgument, PlanReply
from showhow.reasoners.base import Task
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.sources import SELECT_SOURCES
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tools.registry import available_tools
from tests.browser.asker import LONG, Asker
from tests.browser.server import Showhow
from tests.servers.gold_model import GoldModel
from tests.servers.model import ModelServer

ROW_HEIGHT = 35
"""Pixels of a row, and of the head, of an editable table."""
TRIES = 20
"""How often a cell is clicked until its editor opens."""


@dataclass
class Scene:
    """A server over a generated world whose model replies with the gold reasoning of one question."""

    showhow: Showhow
    model: GoldModel
    question: str
    plan: PlanReply
    walked: str
    """A question that ToG answers from the graph in two hops."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    showhow = Showhow(tmp_path_factory.mktemp("methods"))
    showhow.appoint("ida")
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(showhow.home)}), {})
    heads = QuestionFile(showhow.home / "worlds" / "default" / QUESTIONS_FILE).heads
    question = next(head.text for head in heads if head.kind == "composition" and head.answers == 1)
    gold = find_gold_reasoning(services, "default", question)
    assert gold is not None
    oracle = OracleResponder(gold)
    walked = next(head.text for head in heads if head.kind == "composition" and count_hops(services, head.text) == 2)
    skills = {skill.name: skill for name in ("atomr", "pdrr") for skill in REASONERS[name].skills}
    model = GoldModel(oracle, skills.values())
    with ModelServer(model) as server:
        showhow.environment |= {"SHOWHOW_MODEL": "gold", "SHOWHOW_MODEL_BASE_URL": server.url}
        showhow.environment |= {"SHOWHOW_MODEL_KEY_VARIABLE": "OPENAI_API_KEY", "OPENAI_API_KEY": "sk-gold"}
        showhow.start()
        yield Scene(showhow, model, question, oracle.plan(None), walked)  # type: ignore[arg-type]
        showhow.stop()
    services.close()


def count_hops(services: Services, question: str) -> int:
    """The hops after which ToG answers the question with gold replies; 0 if it does not."""
    gold = find_gold_reasoning(services, "default", question)
    assert gold is not None
    context = replace(services.tool_context("default"), chat=None)
    tools = available_tools(context.world)
    recorder = MemoryRecorder()
    task = Task(question, context, tools, responder=OracleResponder(gold))
    run_reasoner(make_reasoner("tog"), task, recorder, RunControl(RunLimits(steps=None)))
    assert recorder.result is not None
    hops = sum(re.fullmatch(r"hop/\d+", step.node or "") is not None for step in recorder.steps)
    return hops if recorder.result.ending == "answered" else 0


@pytest.fixture
def ida(page: Page, scene: Scene) -> Asker:
    asker = Asker(page, scene.showhow.url, "ida")
    asker.open()
    page.get_by_role("radio", name="Language model").click()
    asker.settle()
    return asker


def test_a_reasoner_without_demonstrations_offers_none_and_says_what_it_costs(ida: Asker):
    page = ida.page
    ida.choose("Reasoner", "HumanIQ: one agent")
    expect(page.get_by_label("Demonstrations", exact=True)).to_be_visible()
    ida.choose("Reasoner", "Direct: own knowledge")
    expect(page.get_by_label("Demonstrations", exact=True)).to_have_count(0)
    expect(page.get_by_label("Library", exact=True)).to_be_disabled()
    ida.choose("Reasoner", "AtomR: a tree of operations")
    expect(page.get_by_label("Demonstrations", exact=True)).to_have_count(0)
    expect(page.get_by_text("it costs 1 call for the plan")).to_be_visible()


def test_a_wrong_plan_is_marked_changed_by_a_person_and_leads_to_the_gold_answer(ida: Asker, scene: Scene):
    """The relation of the last operation is wrong: its node differs first, and is mended in the table of the plan."""
    page, model = ida.page, scene.model
    last = next(node for node in reversed(scene.plan.nodes) if node.op == "Relate")
    right = str(last.args[1].text)
    wrong = "mother" if right != "mother" else "father"
    spoilt = last.model_copy(update={"args": [last.args[0], PlanArgument(text=wrong)]})
    nodes = [spoilt if node is last else node for node in scene.plan.nodes]
    model.changed = {"plan": PlanReply(nodes=nodes).model_dump_json()}
    model.changed["direct_rag"] = json.dumps({"answers": [{"text": "Nowhere"}], "support": [], "unknown": False})
    ida.choose("Reasoner", "AtomR: a tree of operations")
    ida.ask(scene.question)
    expect(page.locator(".conclusion .answer")).to_be_visible(timeout=LONG)
    ida.settle()
    first_trace = ida.trace
    cards = page.locator(".form .card")
    expect(cards).to_have_count(len(nodes))
    expect(page.locator(f"#card-{last.id} .mark").first).to_have_text("Relate")

    page.get_by_text("Compare with gold").click()
    expect(page.locator(".verdict")).to_contain_text(
        "The first difference from the gold answers is at step", timeout=LONG
    )
    expect(page.locator(".card.differs")).to_have_attribute("id", f"card-{last.id}")
    expect(page.locator(".card.differs .gold")).to_contain_text("Gold answer: ")
    gold_answer = page.locator(".card.differs .gold").inner_text().removeprefix("Gold answer: ")

    asked_before = len(model.asked)
    page.get_by_role("button", name="Change the plan").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Step 1, plan")).to_be_visible()
    ida.settle()
    replace_argument(page, wrong, right)
    dialog.get_by_role("button", name="Run on from here").click()
    page.wait_for_function("trace => !location.search.includes(trace)", arg=first_trace)
    expect(page.locator(f"#card-{last.id} .card-answer")).to_have_text(gold_answer, timeout=LONG)
    expect(page.locator(".conclusion .answer")).to_be_visible(timeout=LONG)
    ida.settle()
    expect(page.locator(".form-summary")).to_contain_text("written by ida")
    expect(page.locator("li.step").first).to_contain_text("written by ida")
    expect(page.get_by_text("results taken from the former run")).to_be_visible()
    assert "plan" not in model.asked[asked_before:]
    assert len(model.asked) - asked_before < asked_before

    page.goto(f"{scene.showhow.url}/review?you=ida&project=Asked+of+default&by=models&trace={ida.trace}")
    expect(page.locator(".form .card")).to_have_count(len(nodes))


def replace_argument(page: Page, old: str, new: str) -> None:
    """Type over a cell of the plan's arguments; the table is a canvas with a hidden table for screen readers."""
    grid = page.get_by_role("dialog").locator("[data-testid=stDataFrame]").last
    rows = grid.locator("table tbody tr")
    expect(rows.filter(has_text=old).first).to_be_attached()
    place = next(number for number, row in enumerate(rows.all()) if old in row.locator("td").all_inner_texts())
    editor = page.locator("#portal textarea, #portal input").last
    # The dialog may still move while it opens, so that a click misses the cell.
    for _ in range(TRIES):
        grid.scroll_into_view_if_needed()
        box = grid.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + ROW_HEIGHT * (place + 1.5))
        page.keyboard.press("Enter")
        try:
            editor.wait_for(timeout=3_000)
        except PlaywrightTimeoutError:
            continue
        break
    editor.fill(new)
    editor.press("Enter")
    expect(rows.filter(has_text=new).first).to_be_attached()


def test_an_unusable_reply_is_refused_in_one_sentence(ida: Asker, scene: Scene):
    page, model = ida.page, scene.model
    model.changed = {}
    ida.choose("Reasoner", "PDRR: triples with unknowns")
    ida.ask(scene.question)
    expect(page.locator(".conclusion .answer")).to_be_visible(timeout=LONG)
    ida.settle()
    expect(page.locator(".form .chip.filled").first).to_be_visible()
    expect(page.locator(".form .chip:not(.filled)")).to_have_count(0)
    trace = ida.trace
    page.get_by_role("button", name="Change the triples").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Answer", exact=True).fill("planet#9")
    dialog.get_by_role("button", name="Run on from here").click()
    expect(dialog.get_by_text("The answer planet#9 is in no triple")).to_be_visible()
    assert ida.trace == trace


@pytest.mark.long
def test_a_person_plays_a_skill_while_the_model_plays_the_others(ida: Asker, scene: Scene):
    """Operations that are independent wait at the same time; their forms are shown one after another."""
    page, model = ida.page, scene.model
    model.changed = {}
    ida.choose("Reasoner", "AtomR: a tree of operations")
    page.get_by_role("button", name="Options").click()
    ida.choose("Skills that you play", "select sources")
    page.keyboard.press("Escape")
    ida.settle()
    model.asked.clear()
    ida.ask(scene.question)
    trace = ida.trace
    form = page.locator(".st-key-awaited")
    written = 0
    while True:
        expect(form.or_(ida.answer).first).to_be_visible(timeout=LONG)
        if ida.answer.is_visible():
            break
        ida.settle()
        heading = form.get_by_text(re.compile(r"^Step \d+, select sources")).inner_text()
        expect(form.get_by_text("Sources", exact=True).first).to_be_visible()
        page.keyboard.press("Alt+Enter")
        written += 1
        # The form of the next reply, or none while the run goes on.
        expect(form.get_by_text(heading)).to_have_count(0)
    ida.settle()
    assert ida.trace == trace
    assert written >= 2
    assert "select_sources" not in model.asked
    assert model.asked.count("plan") == 1
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(scene.showhow.home)}), {})
    with services.database.read() as session:
        steps = load_trace(session, UUID(trace)).steps
    services.close()
    selections = [step for step in steps if step.skill == SELECT_SOURCES.reference]
    authors = {step.position: (step.data or {}).get("written_by") for step in selections}
    assert list(authors.values()) == ["ida"] * written


@pytest.mark.long
def test_gold_reasoning_plays_the_skills_of_a_walk_whose_hops_are_drawn(ida: Asker, scene: Scene):
    page, model = ida.page, scene.model
    ida.choose("Reasoner", "ToG: a beam through the graph")
    page.get_by_role("button", name="Options").click()
    ida.choose("Other skills are played by", "the gold reasoning of a generated world, whatever was retrieved")
    page.locator("h1.world").click()
    model.asked.clear()
    before = page.url
    page.get_by_label("Question", exact=True).fill("Who painted the ceiling?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("The world default has no gold reasoning for this question")).to_be_visible()
    assert page.url == before
    ida.ask(scene.walked)
    expect(ida.answer).to_be_visible(timeout=LONG)
    ida.settle()
    expect(page.locator(".form h4")).to_have_text(["Hop 1", "Hop 2"])
    first = page.locator(".form .group").first
    expect(first.locator(".line:not(.grey)", has_text="relation").first).to_contain_text(", score 1")
    expect(first.locator(".line:not(.grey)", has_text="fact").first).to_contain_text(", score 1")
    expect(first.locator(".line.grey", has_text="pruned").first).to_be_visible()
    expect(page.locator("#card-answer .card-answer")).to_have_text(ida.answer.inner_text())
    assert model.asked == []
