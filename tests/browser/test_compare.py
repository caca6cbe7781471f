"""The Compare page in the browser: runs of gold reasoning and of spoilt replies, their questions and traces."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.librarian import Librarian
from tests.browser.server import Showhow
from tests.servers.model import ModelServer, Reply, Request, Says

pytestmark = pytest.mark.long

PROJECT, EMPTY = "Walk", "Nothing run"
RUNS = ("atomr, default:1, oracle", "atomr, default:1, faulty:0.2:7:wrong", "pdrr, default:1, reader")


JUDGE = "openai:judge"


def judge_by_place(request: Request) -> Reply:
    """A judge that calls every third answer false."""
    label = "false" if request.place % 3 == 2 else "true"
    reply = {"reasons": "I looked.", "truthfulness": label, "informativeness": "somewhat", "quality": "high"}
    return Says(json.dumps(reply))


@pytest.fixture(scope="module")
def judge() -> Iterator[ModelServer]:
    with ModelServer(judge_by_place) as server:
        yield server


@pytest.fixture(scope="module")
def home(judge: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a judge, three runs over the same questions of a generated world, and a project without runs."""
    showhow = Showhow(tmp_path_factory.mktemp("compare"))
    showhow.environment |= {
        "SHOWHOW_MODEL": JUDGE,
        "SHOWHOW_MODEL_BASE_URL": judge.url,
        "SHOWHOW_MODEL_PRICE": "1/1",
        "OPENAI_API_KEY": "none",
    }
    showhow.run("world", "generate", "walk", "--people", "60", "--seed", "7")
    questions = showhow.home / "walk.json"
    rows = json.loads(showhow.run("world", "questions", "walk", "--limit", "10", "--json"))
    # Named as those of a data set with metrics of its own.
    dates = ["2020-05-01", "June 2022"] * 5
    named = [{**row, "dataset": "hotpotqa", "date": date} for row, date in zip(rows, dates, strict=True)]
    questions.write_text(json.dumps(named), encoding="utf-8")
    for project in (PROJECT, EMPTY):
        showhow.run("questions", "import", str(questions), "--project", project, "--world", "walk")
    for reasoner, skills in (("atomr", "oracle"), ("atomr", "faulty:0.2:7:wrong"), ("pdrr", "reader")):
        showhow.run("verify", "--project", PROJECT, "--reasoner", reasoner, "--skills", skills)
    showhow.start()
    yield showhow
    showhow.stop()


class Comparer(Librarian):
    """A person with a browser on the Compare page."""

    def compare(self, project: str = PROJECT, **query: str) -> None:
        """Open the page."""
        parameters = "".join(f"&{name}={value}" for name, value in query.items())
        self.page.goto(f"{self._url}/compare?you={self._name}&project={project}{parameters}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def query(self) -> dict[str, str]:
        """The parameters of the link."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query).items()}


def list_runs(home: Showhow) -> dict[str, str]:
    """The ids of the project's runs by their labels."""
    return {row["label"]: row["id"] for row in json.loads(home.run("runs", "list", "--project", PROJECT, "--json"))}


def test_runs_are_compared_down_to_the_step_that_differs(page: Page, home: Showhow):
    ids = list_runs(home)
    assert set(ids) == set(RUNS)
    answers = json.loads(home.run("compare", "--project", PROJECT, "--rows", "--format", "json"))
    wrong = {row["question"] for row in answers if row["run"] == RUNS[1] and (row["score"] or 0) < 1}
    assert 0 < len(wrong) < 10

    cora = Comparer(page, home.url, "cora")
    cora.compare(runs=",".join(ids[run] for run in RUNS))
    # The first chosen run is the baseline; the figures are those of the command line.
    figures = {row[0]: row for row in cora.rows("Figures of each run")}
    assert list(figures) == list(RUNS)
    assert figures[RUNS[0]][1:4] == ["10", "1.000 [1.000, 1.000]", "100% [72%, 100%]"]
    table = json.loads(home.run("compare", *(ids[run] for run in RUNS), "--format", "json"))
    differences = cora.rows("Differences from the baseline")
    assert [row[0] for row in differences] == list(RUNS[1:])
    assert differences[0][1].startswith(f"{table[1]['difference']:+.3f} [")
    assert differences[0][5:9] == [str(table[1][name]) for name in ("gains", "losses", "ties", "missing")]
    expect(page.get_by_text("Not all of these runs compare")).to_have_count(0)
    expect(page.locator("[class*=st-key-cost_chart] canvas, [class*=st-key-cost_chart] svg").first).to_be_visible()
    expect(page.get_by_text("confidence is the share of the three sources").first).to_be_visible()

    # The questions that the run has wrong and the baseline right.
    cora.choose_option("Answers", "Wrong, baseline right")
    assert {row[0] for row in cora.rows("Questions by difference")} <= wrong
    assert cora.query()["verdict"] == "loss"
    question = min(row[0] for row in cora.rows("Questions by difference"))
    page.get_by_role("region", name="Questions by difference").get_by_role("button", name=question, exact=True).click()
    expect(page.locator("#open_question")).to_have_text(question)
    cora.settle()
    marked = page.locator("li.step.focus")
    expect(marked).to_have_count(2)
    numbers = marked.locator("> .number").all_text_contents()
    said = re.search(r"The first difference is at step (\d+)", page.locator("body").inner_text())
    assert said is not None
    assert numbers == [said[1], said[1]]
    one, other = marked.all_inner_texts()
    assert one != other
    for mark in marked.all():
        expect(mark).to_be_in_viewport()

    # The link leads another person to the same view.
    dora = Comparer(page.context.new_page(), home.url, "dora")
    dora.page.goto(page.url.replace("you=cora", "you=dora"))
    expect(dora.page.locator("#open_question")).to_have_text(question)
    expect(dora.page.locator("li.step.focus")).to_have_count(2)
    dora.page.close()


def test_a_table_is_downloaded_and_a_run_opens_from_it(page: Page, home: Showhow):
    cora = Comparer(page, home.url, "cora")
    cora.compare()
    cora.choose_option("Baseline", RUNS[0])
    expect(page.get_by_role("heading", name=f"Against {RUNS[0]}")).to_be_visible()
    # A rerun that still goes on would draw the popover anew under the click.
    cora.settle()
    page.get_by_role("button", name="Export").click()
    cora.settle()
    with page.expect_download() as download:
        page.locator(".st-key-export_csv button").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert sorted(row["run"] for row in rows) == sorted(RUNS)
    assert {row["baseline"] for row in rows} == {RUNS[0]}
    cora.settle()
    with page.expect_download() as download:
        page.locator(".st-key-export_rows_json button").click()
    assert len(json.loads(Path(download.value.path()).read_text(encoding="utf-8"))) == 30
    page.keyboard.press("Escape")
    page.get_by_role("region", name="Figures of each run").get_by_role("button", name=RUNS[1], exact=True).click()
    page.wait_for_url("**/verify?**")
    expect(page.get_by_role("heading", name="atomr with default:1").first).to_be_visible()


@pytest.mark.parametrize(("title", "by"), [("Difficulty", "difficulty"), ("Source of the answer", "source")])
def test_scores_by_groups_are_those_of_the_command_line(page: Page, home: Showhow, title: str, by: str):
    ids = list_runs(home)
    cora = Comparer(page, home.url, "cora")
    cora.compare(runs=",".join(ids[run] for run in RUNS))
    cora.choose_option("Scores by", title)
    assert cora.query()["by"] == by
    table = json.loads(home.run("compare", *(ids[run] for run in RUNS), "--by", by, "--format", "json"))
    shown = [row[:3] for row in cora.rows(f"Scores by {title.casefold()}")]
    assert shown == [[row["run"], row["group"], str(row["questions"])] for row in table]
    assert len(shown) >= 6


def test_what_is_missing_is_said_with_what_to_do(page: Page, home: Showhow):
    cora = Comparer(page, home.url, "cora")
    cora.compare(EMPTY)
    expect(page.get_by_text("Run two reasoners on the Verify page")).to_be_visible()
    cora.compare(runs="")
    expect(page.get_by_text("Choose at least two runs.")).to_be_visible()
    cora.compare(text="zzzz")
    expect(page.get_by_text("No matches. Try fewer filters.")).to_be_visible()
    cora.compare(question="nothing")
    expect(page.get_by_text("The link names no question")).to_be_visible()


def test_a_point_of_the_chart_leads_to_its_run(page: Page, home: Showhow):
    cora = Comparer(page, home.url, "cora")
    cora.compare()
    points = page.locator(".st-key-cost_chart .points_marks path")
    expect(points).to_have_count(len(RUNS))
    # Points of runs with equal figures cover each other; the last one is drawn above the others.
    label = str(points.last.get_attribute("aria-label"))
    points.last.click()
    page.wait_for_url("**/verify?**")
    chosen = next(run for run in RUNS if run in label)
    expect(page.get_by_role("heading", name=chosen.split(",")[0]).first).to_be_visible()


def test_stored_answers_are_scored_by_the_official_metric_of_their_data_set(page: Page, home: Showhow):
    ids = list_runs(home)
    run = ids[RUNS[1]]
    cora = Comparer(page, home.url, "cora")
    cora.compare(runs=",".join(ids[label] for label in RUNS), scored=run)
    page.get_by_role("button", name="Score", exact=True).click()
    expect(cora.dialog).to_contain_text("Score the stored answers")
    cora.settle()
    cora.choose_option("Metric", "hotpotqa_f1")
    cora.dialog.get_by_role("button", name="Score").click()
    figures = page.get_by_role("region", name="Figures by metrics of the data set")
    expect(figures).to_contain_text("hotpotqa_f1", timeout=60_000)
    report = json.loads(home.run("runs", "score", run, "--metric", "hotpotqa_f1", "--json"))
    ((name, version, values, scored),) = cora.rows("Figures by metrics of the data set")
    assert (name, version, scored) == ("hotpotqa_f1", "1", f"{report['answered']} of {report['answered']}")
    assert f"f1 {report['value']:.4f}" in values


def write_labels(file: Path, answered: Iterable[Mapping[str, Any]]) -> None:
    """Labels of a person who knows which answers are right."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        written = csv.writer(stream)
        written.writerow(["question", "value", "person"])
        written.writerows([row["question"], "true" if row["score"] == 1 else "false", "ben"] for row in answered)


def test_a_judge_is_started_and_measured_by_the_labels_of_people(
    page: Page, home: Showhow, judge: ModelServer, tmp_path: Path
):
    run = list_runs(home)[RUNS[1]]
    answers = json.loads(home.run("compare", "--project", PROJECT, "--rows", "--format", "json"))
    answered = [row for row in answers if row["run_id"] == run and row["ending"] == "answered"]
    write_labels(tmp_path / "labels.csv", answered[:-1])
    cora = Comparer(page, home.url, "cora")
    cora.compare(scored=run)
    page.get_by_role("button", name="Judge", exact=True).click()
    page.locator(".st-key-judge_labels input[type=file]").set_input_files(tmp_path / "labels.csv")
    expect(cora.dialog).to_contain_text("labels.csv")
    cora.settle()
    cora.dialog.locator(".st-key-judge_now button").click()
    expect(page.get_by_text(f"Judged by {JUDGE}")).to_be_visible(timeout=60_000)
    cora.settle()
    assert len(judge.requests) == len(answered)
    report = json.loads(home.run("judge", run, "--json"))
    # The command line has the same figures, and asks nothing again.
    assert len(judge.requests) == len(answered)
    measured = report["agreement"]
    shown = {row[0]: row[1] for row in cora.rows(f"Agreement with {JUDGE}")}
    titles = {"share_true": "true, as judged", "sensitivity": "sensitivity", "specificity": "specificity"}
    assert {title: shown[title] for title in titles.values()} == {
        title: f"{measured[name]['value']:.3f}" for name, title in titles.items()
    }
    assert shown["Cohen's kappa"] == f"{measured['kappa']:.3f}"
    assert {row[0] for row in cora.rows(f"Labels of {JUDGE} and of people")} == set(report["aspects"])
    expect(page.get_by_text(f"{len(answered) - 1} answers have labels of both.")).to_be_visible()
    # The Verify page shows the same.
    page.goto(f"{home.url}/verify?you=cora&project={PROJECT}&verification={run}")
    expect(page.get_by_text(f"Judged by {JUDGE}")).to_be_visible()


def test_failures_get_categories_and_scores_are_by_category_and_before_and_after_a_cutoff(page: Page, home: Showhow):
    ids = list_runs(home)
    answers = json.loads(home.run("compare", *ids.values(), "--rows", "--format", "json"))
    failures = sum(row["run_id"] == ids[RUNS[1]] and row["score"] < 1 for row in answers)
    cora = Comparer(page, home.url, "cora")
    page.goto(f"{home.url}/verify?you=cora&project={PROJECT}&verification={ids[RUNS[1]]}")
    table = page.get_by_role("region", name="Answers of this verification")
    table.wait_for()
    for category in ("wrong document", "the map was old"):
        table.get_by_role("checkbox", name="Mark 1", exact=True).check()
        chosen = page.get_by_label("Category of the 1 marked")
        chosen.click()
        chosen.fill(category)
        chosen.press("Enter")
        page.get_by_role("button", name="Set category").click()
        expect(table.get_by_text(category)).to_have_count(1)
    # The latest category replaces the one before.
    expect(table.get_by_text("wrong document")).to_have_count(0)
    expect(page.get_by_text("Errors by category")).to_be_visible()
    cora.settle()

    cora.compare(runs=",".join(ids[run] for run in RUNS[:2]), by="error")
    rows = [row[1:4] for row in cora.rows("Scores by category of the error")]
    assert rows == [
        ["no category", str(failures - 1), f"{1 - 1 / failures:.3f}"],
        ["the map was old", "1", f"{1 / failures:.3f}"],
    ]
    cora.choose_option("Scores by", "Date")
    assert [row[1:3] for row in cora.rows("Scores by date")][:2] == [["2020", "5"], ["2022", "5"]]
    page.get_by_role("textbox", name="Cutoff").fill("2021-09")
    page.get_by_role("textbox", name="Cutoff").press("Enter")
    expect(page.get_by_text("until 2021-09").first).to_be_visible()
    cora.settle()
    assert [row[1:3] for row in cora.rows("Scores by date")][:2] == [["until 2021-09", "5"], ["after 2021-09", "5"]]
    assert cora.query()["cutoff"] == "2021-09"
    page.get_by_role("textbox", name="Cutoff").fill("soon")
    page.get_by_role("textbox", name="Cutoff").press("Enter")
    expect(page.get_by_text("The cutoff 'soon' is no date; write it as 2021-09-30, 2021-09 or 2021.")).to_be_visible()
    page.get_by_text("Compare thoughts with those of people").click()
    expect(page.get_by_role("button", name="Show data: Style of the thoughts")).to_be_visible()
    cora.settle()
    assert [row[:2] for row in cora.rows("Thoughts of each run and of people")] == [
        [RUNS[0], "10"],
        [RUNS[1], "10"],
        ["people", "0"],
    ]
    assert cora.query()["thoughts"] == "shown"
