"""`showhow judge` with a scripted judge over real HTTP: its known errors are measured, and nothing is asked twice."""

import csv
import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score, recall_score

from tests.evaluation.test_verify import PROJECT, Home, body_of, end_processes  # noqa: F401 - a fixture
from tests.servers.model import ModelServer, Reply, Request, Says
from tests.servers.pupil import pupil

COUNT = 40
WRONG = frozenset(range(0, COUNT, 3))
"""The questions that the judged model answers wrongly."""
JUDGE = "openai:judge"


def asked_of(request: Request) -> dict[str, Any]:
    """The judge's request."""
    return json.loads(request.body["messages"][1]["content"])


def verdict_on(number: int) -> str:
    """The judge's label: wrong about some right and some wrong answers, undecided about one."""
    if number == 1:
        return "cannot judge"
    is_right = number not in WRONG
    return "true" if is_right != (number % 5 == 2 or number % 9 == 0) else "false"


def better_of(asked: dict[str, Any], number: int) -> str:
    """The better answer; of every fourth question the one that is read first, whatever it is."""
    rights = [asked[side] == f"Answer {number}" for side in ("first", "second")]
    if number % 4 == 0:
        return "first"
    return "tie" if rights[0] == rights[1] else "first" if rights[0] else "second"


def respond(request: Request) -> Reply:
    if request.body["model"] != "judge":
        return pupil(request, wrong=WRONG if request.body["model"] == "scripted" else frozenset())
    asked = asked_of(request)
    number = int(asked["question"].removeprefix("Who is number ").removesuffix("?"))
    if "answer" not in asked:
        return Says(json.dumps({"reasons": "I compared.", "better": better_of(asked, number)}))
    if number == 5:
        return Says("I would rather not say.")
    label = verdict_on(number)
    quality = {"true": "high", "false": "poor", "cannot judge": "acceptable"}[label]
    reply = {"reasons": "I looked.", "truthfulness": label, "informativeness": "somewhat", "quality": quality}
    return Says(json.dumps(reply))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str, str]:
    """A home with two verifications of the same questions: one with wrong answers, one without."""
    home = Home(tmp_path_factory.mktemp("judged") / "home", COUNT)
    with ModelServer(respond) as server:
        runs = [
            str(home.verify(server, "--at-once", 8)["id"]),
            str(
                json.loads(
                    home.run(
                        "verify", "--project", PROJECT, "--json", "--at-once", 8, server=server, model="openai:better"
                    )[0]
                )["id"]
            ),
        ]
    return home, runs[0], runs[1]


def judge(home: Home, server: ModelServer, *words: object, status: int = 0, model: str = JUDGE) -> Any:
    out, err = home.run("judge", *words, "--json", server=server, status=status, model=model)
    return json.loads(out) if status == 0 else err.strip().splitlines()[-1]


def test_a_judge_is_measured_by_the_labels_of_people_and_asked_once(judged: tuple[Home, str, str], tmp_path: Path):
    home, run, _ = judged
    labels = tmp_path / "labels.csv"
    with labels.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["question", "value", "person"])
        for number in range(COUNT):
            rows.writerow([f"Who is number {number}?", "false" if number in WRONG else "true", "ben"])
    with ModelServer(respond) as server:
        report = judge(home, server, run, "--labels", labels)
        asked = len(server.requests)
        assert asked == COUNT + 2  # The reply that is no verdict is asked again twice.
        again = judge(home, server, run)
        assert {name: value for name, value in again.items() if name != "without_verdict"} == {
            name: value for name, value in report.items() if name != "without_verdict"
        }
        # What was no verdict is in the ledger, and not paid for again either.
        assert len(server.requests) == asked
    expected = Counter(verdict_on(number) for number in range(COUNT) if number != 5)
    assert report["judged"] == COUNT - 1
    assert report["aspects"]["truthfulness"]["labels"] == {
        name: expected[name] for name in ("true", "false", "cannot judge")
    }
    assert report["aspects"]["informativeness"]["labels"] == {"not": 0, "somewhat": COUNT - 1, "informative": 0}
    assert report["aspects"]["truthfulness"]["people"]["false"] == len(WRONG)
    (problem,) = report["without_verdict"]
    assert problem.startswith("no verdict on 'Who is number 5?'")
    numbers = [number for number in range(COUNT) if number not in (1, 5)]
    truth = [number not in WRONG for number in numbers]
    verdicts = [verdict_on(number) == "true" for number in numbers]
    agreement = report["agreement"]
    assert agreement["labelled_by_both"] == len(numbers)
    assert agreement["sensitivity"]["value"] == pytest.approx(recall_score(truth, verdicts))
    assert agreement["specificity"]["value"] == pytest.approx(recall_score(truth, verdicts, pos_label=False))
    assert agreement["kappa"] == pytest.approx(cohen_kappa_score(truth, verdicts))
    # Every judged answer has a label, so both corrections return the true share.
    share = sum(truth) / len(truth)
    assert agreement["corrected_share"]["value"] == pytest.approx(share)
    assert agreement["prediction_powered_share"]["value"] == pytest.approx(share)
    assert agreement["share_true"]["value"] == pytest.approx(sum(verdicts) / len(verdicts))
    # The metrics of the run are as they were.
    (figures,) = (
        row for row in json.loads(home.run("verify", "--project", PROJECT, "--list", "--json")[0]) if row["id"] == run
    )
    assert (figures["right"], figures["answered"]) == (COUNT - len(WRONG), COUNT)


def test_pairs_are_judged_in_both_orders_and_a_bias_for_the_first_is_told(judged: tuple[Home, str, str]):
    home, run, better = judged
    with ModelServer(respond) as server:
        report = judge(home, server, run, "--against", better, "--at-once", 4)
        assert len(server.requests) == 2 * COUNT
    lost = sum(number in WRONG and number % 4 != 0 for number in range(COUNT))
    assert (report["win"], report["loss"], report["tie"]) == (0, lost, COUNT - lost)
    assert report["depends_on_order"] == len(range(0, COUNT, 4))
    assert report["mean"]["value"] == pytest.approx((COUNT - lost) * 0.5 / COUNT)
    decided = 2 * len(range(0, COUNT, 4)) + 2 * lost
    assert report["first_preferred"]["value"] == pytest.approx((2 * len(range(0, COUNT, 4)) + lost) / decided)


def test_a_killed_judging_goes_on_without_asking_for_a_reply_that_it_has(judged: tuple[Home, str, str]):
    home, _, run = judged
    with ModelServer(lambda request: replace(respond(request), latency=0.05)) as server:
        working = home.command("judge", run, "--at-once", 2, server=server, model=JUDGE)
        assert working.stderr is not None
        assert any(line.startswith("10 of ") for line in working.stderr)
        working.send_signal(signal.SIGKILL)
        working.communicate()
        report = judge(home, server, run, "--at-once", 8)
        assert report["judged"] == COUNT - 1
        repeated = sum(count - 1 for count in Counter(map(body_of, server.requests)).values())
        assert repeated <= 2
    assert home.rows("SELECT count(*) FROM model_call WHERE state = 'open'") == [(0,)]


def test_bad_input_is_one_sentence(judged: tuple[Home, str, str], tmp_path: Path):
    home, run, _ = judged
    with ModelServer(respond) as server:
        assert "gave the answers itself" in judge(home, server, run, status=1, model="openai:scripted")
        assert "is not the id of a verification" in judge(home, server, "this-one", status=1)
        for row, sentence in [
            ({"question": "Who is number 3?", "value": "perhaps", "person": "ben"}, "truthfulness is not 'perhaps'"),
            ({"question": "Who is number 3?", "value": "true"}, "row 1 has no person"),
            ({"question": "Who is that?", "value": "true", "person": "ben"}, "has not answered 'Who is that?'"),
            (
                {"question": "Who is number 3?", "value": "true", "person": "ben", "aspect": "taste"},
                "no aspect 'taste'",
            ),
        ]:
            labels = tmp_path / "labels.jsonl"
            labels.write_text(json.dumps(row), encoding="utf-8")
            assert sentence in judge(home, server, run, "--labels", labels, status=1)
        os.mkfifo(tmp_path / "pipe")
        for special, kind in ((tmp_path / "pipe", "a named pipe"), ("/dev/zero", "a device"), (tmp_path, "a folder")):
            said = judge(home, server, run, "--labels", special, status=1)
            assert said == f"showhow: {special} cannot be read as CSV or JSON Lines: it is {kind}, not a regular file"
        assert server.requests == []
