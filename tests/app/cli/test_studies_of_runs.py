"""Blind studies of runs and people: their answers and traces through making, judging, the page and the report."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from scipy.optimize import minimize
from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.database import Database
from showhow.db.models import Run, Step, Trace
from showhow.db.people import users
from showhow.db.people.users import ActingPerson
from showhow.db.removal import purging, removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review import studies
from showhow.db.review.studies import StudyItem
from showhow.db.runs.comparisons import list_comparable_runs
from showhow.db.storage.schema import upgrade
from showhow.db.types import utc_now
from tests.app.cli.in_process import run_in_process
from tests.fixtures.compared_runs import ComparedRuns, make_questions

MODELS = {"zebra": "openai:zebra-9", "okapi": "openai:okapi-7", "lemur": "openai:lemur-3"}
PREFERENCES = {"zebra": 3, "okapi": 2, "lemur": 1}
"""Which system the scripted judges prefer: the one with the larger number."""


@dataclass
class Team:
    """A home with a project of six questions, runs of three systems, and the traces of two people."""

    home: Path
    made: ComparedRuns
    runs: dict[str, Run]

    @property
    def database(self) -> Database:
        return self.made.database

    def run(self, *words: str) -> str:
        done = run_in_process(self.home, *words)
        assert done.returncode == 0, f"showhow {' '.join(words)}: {done.stderr}"
        return done.stdout

    def refuse(self, *words: str) -> str:
        done = run_in_process(self.home, *words)
        assert done.returncode == 1, done.stdout
        assert "Traceback" not in done.stderr
        return done.stderr

    def make(self, *words: str, name: str = "Nearer") -> dict[str, object]:
        """Make a study and open it; its design. Words without a sign of equality name runs."""
        made = self.run(*self.make_words(name, *words), "--json")
        self.run("studies", "open", name)
        return json.loads(made)["design"]

    def make_words(self, name: str, *words: str) -> list[str]:
        given = [word if word not in self.runs else f"{word}={self.runs[word].id}" for word in words]
        return ["studies", "make", name, "--project", self.made.project.name, "--search-minutes", "0", *given]

    def report(self, name: str = "Nearer") -> dict[str, object]:
        return json.loads(self.run("studies", "report", name, "--json"))

    def items(self, name: str = "Nearer") -> list[StudyItem]:
        with self.database.read() as session:
            study = studies.find_study(session, name)
            of_study = select(StudyItem).where(StudyItem.study_id == study.id)
            return list(session.scalars(of_study.order_by(StudyItem.position)))

    def judge(
        self, *people: str, name: str = "Nearer", most: int = 1_000, ratings: dict[str, str] | None = None
    ) -> int:
        """Have people judge: the one of PREFERENCES is better, each answer true and good; how many were judged."""
        sides = {item.id: (item.left_answer["system"], item.right_answer["system"]) for item in self.items(name)}
        values = {"truthful": "true", "informative": "informative", "quality": "high"} | (ratings or {})
        judged = 0
        with self.database.begin() as session:
            study_id = studies.find_study(session, name).id
            for person in people * 2:
                by = users.register_user(session, person).id
                while judged < most and (item := studies.take_item(session, study_id, by=by)) is not None:
                    left, right = (PREFERENCES.get(system, 0) for system in sides[item.id])
                    better = "left" if left > right else "right"
                    while item.open_field is not None:
                        value = values.get(item.open_field.split()[0], better)
                        item = studies.record_click(session, item.id, item.open_field, value, by=by)
                    judged += 1
        return judged


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(database)
    made = make_questions(database, 6)
    runs = {}
    for name, model in MODELS.items():
        outcomes = {
            # Exact match calls the answers to every second question wrong.
            (question.id, 1): {"ending": "answered", "answer": f"Ada of {name}", "score": float(number % 2)}
            for number, question in enumerate(made.questions)
        }
        runs[name] = made.add_run(made.questions, outcomes, model=model)
    with database.begin() as session:
        for person in ("ada", "ben"):
            users.register_user(session, person)
        for trace in session.scalars(select(Trace)):
            model = next(model for name, model in MODELS.items() if runs[name].id == trace.run_id)
            add_step(session, trace, f"As {model}, I look it up.")
        for place, question in enumerate(made.questions):
            # Ada answers all, Ben the first three, later.
            for person in ("ada", "ben") if place < 3 else ("ada",):
                author = users.find_named(session, person).id
                trace = Trace(
                    question_id=question.id,
                    author_id=author,
                    status="submitted",
                    final_answer="Ada",
                    submitted_at=utc_now(),
                )
                session.add(trace)
                session.flush()
                add_step(session, trace, f"I am {person} and look at Zebra-9's page.")
    yield Team(tmp_path, made, runs)
    database.close()


def add_step(session: Session, trace: Trace, thought: str) -> None:
    called = {"tool": "wikisearch", "arguments": {"query": "Ada"}, "observation": "Ada Reed built it."}
    session.add(Step(trace_id=trace.id, position=1, thought=thought, finished_at=utc_now(), **called))


def systems(*names: str) -> list[str]:
    return [word for name in names for word in ("--system", name)]


def test_processes_of_two_runs_are_compared_with_a_persons_from_the_store_to_the_report(team: Team):
    design = team.make("--mode", "processes", *systems("zebra", "okapi"))
    assert (design["questions"], list(design["scales"])) == (6, ["preference"])
    for item in team.items():
        shown = [item.left_answer["shown"], item.right_answer["shown"], item.reference or ""]
        assert all(
            "1. " in text and "wikisearch(query: Ada)" in text and "→ Ada Reed built it." in text for text in shown
        )
        assert not any(word in text.lower() for text in shown for word in ("zebra-9", "okapi-7"))
        assert "I am ada" in shown[2]
    # Nobody judges beside a trace of their own.
    assert team.judge("ada") == 0
    assert team.judge("ben", "cy") == len(team.items())
    assert team.report()["results"] is None
    team.run("studies", "close", "Nearer")
    results = team.report()["results"]
    (row,) = results["comparisons"]
    assert (row["wins"], row["ties"], row["losses"]) == (6, 0, 0)
    assert results["ratings"] == results["metrics"] == results["manual"] == results["corrections"] == []
    assert "6 judged" not in team.run("studies", "report", "Nearer").splitlines()[0]


def test_a_persons_trace_is_compared_with_that_of_another_person_and_never_with_itself(team: Team):
    design = team.make("--mode", "processes", *systems("people=people", "zebra"))
    # Only three questions have the traces of two people.
    assert design["questions"] == 3
    for item in team.items():
        (own,) = (side for side in (item.left_answer, item.right_answer) if side["system"] == "people")
        assert "I am ada" in own["shown"]
        assert "I am ben" in (item.reference or "")
        assert len(item.authors) == 2
    assert team.judge("ada", "ben") == 0
    assert team.judge("cy", "dee") == len(team.items())


def test_what_nobody_else_recorded_is_no_reference(team: Team):
    with team.database.begin() as session:
        for trace in session.scalars(select(Trace).where(Trace.author_id == users.find_named(session, "ben").id)):
            trace.status = "draft"
    words = team.make_words("Alone", "--mode", "processes", *systems("people=people", "zebra"))
    assert "no person answered these questions besides the systems" in team.refuse(*words)


def test_long_answers_are_the_written_responses_and_short_ones_do_not_stand_beside_them(team: Team):
    words = team.make_words("Long", "--length", "long", *systems("zebra", "okapi"))
    assert "no answer of this run has a written response" in team.refuse(*words)
    with team.database.begin() as session:
        for name in ("zebra", "okapi"):
            traces = session.scalars(select(Trace).where(Trace.run_id == team.runs[name].id).order_by(Trace.id)).all()
            for trace in traces[: 5 if name == "zebra" else 6]:
                trace.result = trace.result.model_copy(update={"response": f"It was Ada Reed, says {name}."})
    assert team.make("--length", "long", *systems("zebra", "okapi"), name="Long")["questions"] == 5
    shown = {side["shown"] for item in team.items("Long") for side in (item.left_answer, item.right_answer)}
    assert shown == {"It was Ada Reed, says ▮."}


def test_three_systems_have_the_strengths_of_greatest_likelihood(team: Team):
    team.make("--every-pair", "--within", "0", "--between", "0", *systems("zebra", "okapi", "lemur"))
    random = Random(3)
    with team.database.begin() as session:
        study_id = studies.find_study(session, "Nearer").id
        by = users.register_user(session, "cy").id
        while (item := studies.take_item(session, study_id, by=by)) is not None:
            while item.open_field is not None:
                values = studies.SCALES[item.open_field.split()[0]]
                value = random.choice([value for value in values if value != "false"])
                item = studies.record_click(session, item.id, item.open_field, value, by=by)
    team.run("studies", "close", "Nearer")
    strengths = {row["system"]: row["strength"] for row in team.report()["results"]["strengths"]}
    with team.database.read() as session:
        judgements = studies.list_judgements(session, study_id)
    points = dict.fromkeys(((one, other) for one in MODELS for other in MODELS if one != other), 0.5)
    for judgement in judgements:
        left, right = judgement.systems
        share = {"left": 1.0, "tie": 0.5, "right": 0.0}[judgement.values["preference"]]
        points[left, right] += share
        points[right, left] += 1 - share

    def cost(free: list[float]) -> float:
        at = dict(zip(MODELS, [*free, -sum(free)], strict=True))
        return sum(count * math.log1p(math.exp(at[other] - at[one])) for (one, other), count in points.items())

    best = minimize(cost, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    for name, strength in zip(MODELS, [*best, -sum(best)], strict=True):
        assert strengths[name] == pytest.approx(strength, abs=1e-5)


@pytest.mark.parametrize("judged", [0, 1, 2, 7])
def test_a_study_closed_early_reports_what_was_judged(team: Team, judged: int):
    team.make("--every-pair", *systems("zebra", "okapi", "lemur"))
    assert team.judge("cy", most=judged) == judged
    with team.database.begin() as session:
        # Somebody is at work when it is closed.
        by = users.register_user(session, "dee").id
        item = studies.take_item(session, studies.find_study(session, "Nearer").id, by=by)
        studies.record_click(session, item.id, "truthful left", "true", by=by)
    team.run("studies", "close", "Nearer")
    report = team.report()
    assert report["judged"] == judged
    assert sum(row["judged"] for row in report["results"]["comparisons"]) == judged
    compared = {row["system"] for row in report["results"]["strengths"]}
    assert compared <= set(MODELS)
    assert bool(compared) == (judged > 0)
    text = team.run("studies", "report", "Nearer", "--figure", "bars.svg", "--table", "ratings.csv")
    assert f"closed, {judged} of" in text


def test_a_study_stays_as_it_is_when_its_runs_and_questions_are_deleted_for_good(team: Team):
    team.make(*systems("zebra", "okapi"))
    team.judge("cy", most=2)
    with team.database.begin() as session:
        for run in team.runs.values():
            removals.remove(session, Kind.RUN, run.id)
    purging.purge(team.database, now=True)
    with team.database.read() as session:
        assert session.scalars(select(Run)).all() == []
    assert team.judge("cy", "dee") == len(team.items()) - 2
    team.run("studies", "close", "Nearer")
    report = team.report()
    assert report["judged"] == report["planned"] == len(team.items())


def test_an_excluded_question_is_in_no_figure_and_the_report_says_how_many_and_why(team: Team):
    team.make(*systems("zebra", "okapi"), "--within", "0", "--between", "0.5")
    team.judge("cy", most=3)
    first = team.items()[0].question
    digest = team.report()["digest"]
    for person in ("ada", "ben"):
        assert "only administrator" not in team.run("studies", "list")
        said = run_in_process(
            team.home, "studies", "exclude", "Nearer", first, "--reason", "It has no answer", "--as", person
        )
        assert (said.returncode == 0) == (person == "ada"), said.stderr + said.stdout
    left = [item for item in team.items() if item.question != first]
    assert team.report()["planned"] == len(left)
    team.judge("cy", "dee")
    assert all(item.finished_at is not None for item in team.items() if item.question != first)
    team.run("studies", "close", "Nearer")
    last = left[-1].question
    team.run("studies", "exclude", "Nearer", last, "--reason", "Two places have that name")
    assert "excluded already" in team.refuse("studies", "exclude", "Nearer", last, "--reason", "again")
    assert "no question begins" in team.refuse("studies", "exclude", "Nearer", "Whose", "--reason", "none")
    assert "has a reason" in team.refuse("studies", "exclude", "Nearer", left[0].question, "--reason", " ")
    report = team.report()
    assert report["digest"] == digest
    assert [(act["question"], act["by"], act["after_close"]) for act in report["excluded"]] == [
        (first, "ada", False),
        (last, "ada", True),
    ]
    assert report["planned"] == report["judged"] == sum(item.question not in (first, last) for item in team.items())
    assert report["results"]["comparisons"][0]["judged"] == 4
    assert {row["rated"] for row in report["results"]["ratings"]} == {4}
    text = team.run("studies", "report", "Nearer")
    assert "left out of all figures, for all systems: 2 questions" in text
    assert f"{last!r}, by ada after the study was closed: Two places have that name" in text


def test_true_answers_that_the_metric_calls_wrong_propose_gold_answers(team: Team):
    team.make(*systems("zebra", "okapi"), "--within", "0", "--between", "0")
    team.judge("cy")
    team.run("studies", "close", "Nearer")
    results = team.report()["results"]
    assert [(row["system"], row["exact"], row["m"]) for row in results["manual"]] == [
        ("zebra", 0.5, 1.0),
        ("okapi", 0.5, 1.0),
    ]
    proposed = {(row["question"], row["answer"], *row["systems"]) for row in results["corrections"]}
    wrong = [question.full_text for number, question in enumerate(team.made.questions) if number % 2 == 0]
    assert proposed == {(text, f"Ada of {name}", name) for text in wrong for name in ("zebra", "okapi")}
    assert "so check the gold answers: 6" in team.run("studies", "report", "Nearer")


def test_who_only_annotates_reads_nothing_of_the_compared_runs_while_the_study_is_open(team: Team):
    def count_visible(person: str) -> tuple[int, int, int]:
        """Runs, their traces, and traces of people, that this person reads."""
        acting = team.database.acting_as(ActingPerson(person, is_local=True))
        with acting.read() as session:
            runs = list_comparable_runs(session, team.made.project.id)
            traces = session.scalars(select(Trace)).all()
            own = [trace for trace in traces if trace.run_id is None]
            for run in team.runs.values():
                is_listed = run.id in {run.id for run in runs}
                assert (session.get(Run, run.id) is not None) == is_listed
            return len(runs), len(traces) - len(own), len(own)

    people = {"ada": (3, 18, 9), "ben": (3, 18, 9), "a newcomer": (3, 18, 9)}
    made = team.make_words("Nearer", *systems("zebra", "okapi"))
    team.run(*made)
    assert {person: count_visible(person) for person in people} == people
    team.run("studies", "open", "Nearer")
    hidden = (1, 6, 9)
    assert {person: count_visible(person) for person in people} == people | {"ben": hidden, "a newcomer": hidden}
    assert team.judge("ben") > 0
    team.run("studies", "close", "Nearer")
    assert count_visible("ben") == people["ben"]
