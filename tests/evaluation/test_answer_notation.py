"""The notation of dates: one for all methods in a run, that of the question's data set."""

import json
from pathlib import Path
from typing import Any

import pytest

from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.answer_notation import DateNotations
from showhow.reasoners.answers.dates_and_numbers import DateNotation
from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer, Request, Says

DAYS = ("5 March 1931", "14 January 1987", "1 May 1604", "30 November 2001")
ISO_DAYS = ("1931-03-05", "1987-01-14", "1604-05-01", "2001-11-30")


@pytest.mark.parametrize(
    ("name", "notation"),
    [
        ("hotpotqa/hotpot_dev_distractor_300.json", DateNotation.DAY_FIRST),
        ("blendqa/kg-web_132__first_88.jsonl", DateNotation.MONTH_FIRST),
        # Their loaders declare none, but the files have days.
        ("qald10/qald_10_250.json", DateNotation.ISO),
        ("mintaka/mintaka_dev_300.json", DateNotation.ISO),
        ("strategyqa/dev_150.json", None),
    ],
)
def test_the_notation_is_that_of_the_loader_or_of_most_golds(shared_data: Path, name: str, notation: Any):
    questions = read_questions(shared_data / name)
    notations = DateNotations(questions)
    assert {notations.find(question) for question in questions} == {notation}


def answer_with_days(request: Request) -> Says:
    """Answers with the day of the question's number; a method without skills in the notation of a sentence."""
    asked = json.dumps(request.body["messages"])
    place = next(place for place in range(len(DAYS)) if f"event {place}?" in asked)
    if "year-month-day" in asked:
        answers = [{"text": ISO_DAYS[place]}]
        return Says(json.dumps({"reasons": "I know it.", "answers": answers, "support": [], "unknown": False}))
    month_first = f"{DAYS[place].split()[1]} {DAYS[place].split()[0]}, {DAYS[place].split()[2]}"
    return Says(f"Final Answer: {month_first}")


@pytest.mark.parametrize(
    ("record", "keep"),
    [({"type": "bridge", "level": "hard", "context": []}, ()), ({}, ("--keep",))],
    ids=["HotpotQA", "plain file"],
)
def test_right_days_are_right_by_the_official_rule_with_every_method(
    tmp_path: Path, record: dict[str, Any], keep: tuple[str, ...]
):
    rows = [
        {"_id": str(place), "question": f"When was event {place}?", "answer": day, **record}
        for place, day in enumerate(DAYS)
    ]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    articles = tmp_path / "articles.jsonl"
    articles.write_text('{"title": "Event 0", "text": "It was on 5 March 1931."}\n', encoding="utf-8")
    imported = run_in_process(tmp_path, "world", "import", "w", "--articles", str(articles))
    assert imported.returncode == 0, imported.stderr
    imported = run_in_process(tmp_path, "questions", "import", str(file), "--project", "Days", "--world", "w")
    assert imported.returncode == 0, imported.stderr
    with ModelServer(answer_with_days) as server:
        environ = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        for reasoner in ("cot", "humaniq"):
            options = ("--project", "Days", "--reasoner", reasoner, "--json", *keep)
            done = run_in_process(tmp_path, "evaluate", *options, **environ)
            assert done.returncode == 0, done.stderr
            summary = json.loads(done.stdout)
            assert (summary["right"], summary["f1"], summary["official_f1"]) == (4, 1.0, 1.0), reasoner
            # Whoever asks in the project gets the notation of its questions, and whoever asks the world the model's.
            question = ("ask", "When was event 2?", "--reasoner", reasoner)
            stored = run_in_process(tmp_path, *question, "--project", "Days", **environ)
            assert stored.stdout.splitlines()[0] == DAYS[2], stored.stderr
            assert f"as those of Days: {DateNotation.DAY_FIRST}" in stored.stderr
            given = run_in_process(tmp_path, *question, "--world", "w", **environ)
            assert given.stdout.splitlines()[0] in (ISO_DAYS[2], "May 1, 1604"), given.stderr
