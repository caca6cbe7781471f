"""Runs scored by the metrics of their data sets: published values over stored answers, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Database
from showhow.db.models import Question
from showhow.db.questions.projects import add_questions, create_project, list_questions
from showhow.db.runs import attempts
from showhow.db.runs.comparisons import MetricVersion
from showhow.db.storage.schema import upgrade
from showhow.evaluation.comparison.comparison import compare_runs, list_metrics
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.metrics.metric import MetricError
from showhow.evaluation.scoring.predictions import list_run_metrics, score_run
from tests.fixtures.compared_runs import ComparedRuns

Answer = Callable[[int, Question], str | None]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    return store


@pytest.fixture
def named_file(shared_data: Path, request: pytest.FixtureRequest) -> Path:
    """A file of the shared data."""
    return shared_data / str(request.param)


def ask(database: Database, file: Path, *answers: Answer) -> ComparedRuns:
    """Store runs over the questions of a file; each answers by a function of place and question, None refuses."""
    with database.begin() as session:
        project = create_project(session, file.name, "none")
        add_questions(session, project.id, read_questions(file))
        questions = [question for question in list_questions(session, project.id, limit=1_000) if question.gold_answers]
    made = ComparedRuns(database, project, questions)
    for answer in answers:
        outcomes = {}
        for place, question in enumerate(questions):
            text = answer(place, question)
            outcomes[question.id, 1] = {"ending": "refused" if text is None else "answered", "answer": text}
        made.add_run(questions, outcomes)
    return made


def name_first(_: int, question: Question) -> str:
    return str(question.gold_answers[0]["text"])


def name_but_every_third(place: int, question: Question) -> str | None:
    return name_first(place, question) if place % 3 else None


def stored_values(database: Database, run_id: UUID, name: str, version: int = 1) -> list[attempts.NamedScore]:
    with database.read() as session:
        return attempts.list_scores(session, run_id, name, version)


@pytest.mark.long
@pytest.mark.parametrize(
    ("named_file", "metric", "answer", "components"),
    [
        # Published: .8533, .9272, 1; one of the 300 gold answers is null, which no words can name.
        ("mintaka/mintaka_dev_300.json", "mintaka_kg_f1", name_first, {"em": 0.85, "f1": 0.9238, "h1": 0.9967}),
        ("qald10/qald_10_250.json", "qald_macro_f1_qald", name_first, {"macro_f1": 0.9522, "macro_f1_qald": 0.9694}),
        ("grailqa/grailqa_100.json", "grailqa_f1", name_first, {"f1": 0.7786}),
        ("compmix/test_set_300.json", "compmix_p1", name_first, {"p1": 1.0}),
        ("hotpotqa/hotpot_dev_distractor_300.json", "hotpotqa_f1", lambda *_: "yes", {"em": 0.0167}),
        ("2wikimultihopqa/2wiki_dev_300.json", "2wiki_f1", name_first, {"em": 1.0, "f1": 1.0}),
        ("musique/musique_ans_dev_120.jsonl", "musique_f1", name_first, {"em": 1.0, "f1": 1.0}),
        ("strategyqa/dev_150.json", "strategyqa_accuracy", lambda *_: "Yes", {"accuracy": 0.48}),
        ("phantomwiki/depth_20_size_25_seed_1/questions.slim.jsonl", "phantomwiki_f1", name_first, {"f1": 0.7260}),
        ("webqsp/WebQSP_100_full_parses.json", "webqsp_f1", name_first, {"precision": 1.0}),
        # The first gold answer of two questions has no id, though others of them have one.
        ("lcquad2/test_with_answers_300.json", "lcquad2_precision", name_first, {"precision": 0.9933}),
    ],
    indirect=["named_file"],
)
def test_the_first_gold_answer_in_words_has_the_published_values(
    named_file: Path, database: Database, metric: str, answer: Answer, components: dict[str, float]
):
    made = ask(database, named_file, answer)
    report = score_run(database, made.runs[0].id, metric)
    measured = {name: round(report["components"][name], 4) for name in components}
    assert measured == pytest.approx(components, abs=5.1e-5)
    # Values are by the types by which every other table of the run has them; PhantomWiki's own are by difficulty.
    kinds = {question.kind for question in made.questions}
    assert None in kinds or metric == "phantomwiki_f1" or set(report["by_kind"]) == kinds
    assert report["answered"] == report["n"] + report["excluded"] == len(made.questions)
    assert report["metric"] in {known.name for known in list_run_metrics(database, made.runs[0].id)}


def test_refused_questions_count_as_the_rule_says_and_the_figures_of_each_are_stored(
    shared_data: Path, database: Database
):
    made = ask(database, shared_data / "qald10" / "qald_10_250.json", name_but_every_third, name_first)
    run, other = (run.id for run in made.runs)
    report = score_run(database, run, "qald_macro_f1_qald")
    # Nothing is predicted for every third question; published with all gold answers given: .6640 and .7981.
    assert report["refused"] == 84
    assert report["components"]["qald_precision"] == pytest.approx(1.0)
    # A figure of all questions together is not that of one: what is stored is the mean's part.
    assert report["stored_as"] == "qald_macro_f1"
    scores = stored_values(database, run, "qald_macro_f1")
    assert len(scores) == len(made.questions)
    assert sum(score.value for score in scores) / len(scores) == pytest.approx(report["components"]["macro_f1"])
    assert scores[0].details["components"]["qald_precision"] == 1.0
    # Scored again, nothing is added; a comparison has the same means.
    assert score_run(database, run, "qald_macro_f1")["components"] == report["components"]
    assert len(stored_values(database, run, "qald_macro_f1")) == len(scores)
    full = score_run(database, other, "qald_macro_f1")
    assert MetricVersion("qald_macro_f1", 1) in list_metrics(database, [run, other])
    comparison = compare_runs(database, [run, other], run, MetricVersion("qald_macro_f1", 1))
    figures = {row.run_id: row.score for row in comparison.figures}
    assert figures == pytest.approx({run: report["components"]["macro_f1"], other: full["value"]})


def test_answers_that_the_rules_leave_to_a_judge_are_not_wrong(database: Database, tmp_path: Path):
    file = tmp_path / "crag.jsonl"
    golds = {"Who?": "Ada", "When?": "in 1815", "Where?": "invalid question"}
    rows = [
        {"interaction_id": text, "query": text, "answer": gold, "alternative_answers": "[]", "question_type": "simple"}
        for text, gold in golds.items()
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    answers: dict[str, Any] = {"Who?": "ada", "When?": "1815", "Where?": "London"}
    made = ask(database, file, lambda _, question: answers[question.text])
    report = score_run(database, made.runs[0].id, "crag_score")
    assert (report["value"], report["unscored"], report["value_of_scored"]) == (None, 1, 0.0)
    scores = stored_values(database, made.runs[0].id, "crag_score")
    assert [score.value for score in scores] == [1.0, -1.0]


def test_what_a_run_cannot_have_is_refused_in_one_sentence(shared_data: Path, database: Database, tmp_path: Path):
    made = ask(database, shared_data / "hotpotqa" / "hotpot_dev_distractor_300.json", name_first)
    run = made.runs[0].id
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"question": "Who?", "answer": "Ada"}\n', encoding="utf-8")
    other = ask(database, plain, name_first).runs[0].id
    queries = ask(database, shared_data / "qald10" / "qald_10_250.json", name_first).runs[0].id
    for run_id, name, dataset, sentence in (
        (run, "musique_f1", None, "The data set hotpotqa does not have the metric musique_f1"),
        (run, "nonsense", None, "There is no metric 'nonsense'"),
        (run, "hotpotqa_joint_f1", None, "which the answers of runs do not have"),
        (queries, "spinach_f1", None, "compares rows of a query's result"),
        (other, "hotpotqa_f1", None, "name no data set"),
        (other, "webqsp_f1", "webqsp", "its record has no field 'Parses'"),
        (other, "hotpotqa_f1", "hotpotatoes", "There is no data set 'hotpotatoes'"),
    ):
        with pytest.raises(MetricError, match=sentence) as error:
            score_run(database, run_id, name, dataset)
        assert "\n" not in str(error.value)
    assert score_run(database, other, "hotpotqa_f1", "hotpotqa")["value"] == 1.0
    assert list_run_metrics(database, other) == []
    # A metric that is newer than a run has no scores of it yet; those by which every run is scored need no data set.
    assert score_run(database, other, "official_f1")["value"] == 1.0
    assert len(stored_values(database, other, "official_f1", 2)) == 1
    with database.begin() as session:
        session.get_one(Question, made.questions[0].id).text = "Another question?"
    with pytest.raises(MetricError, match="changed since this run asked them"):
        score_run(database, run, "hotpotqa_f1")
