"""Questions that cannot be answered: in files of others, in scores, against counts by hand, and in the tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import UnanswerableReason, find_gold_reason, read_unanswerable, write_unanswerable
from showhow.evaluation.datasets import QUESTION_FORMATS, read_questions
from showhow.evaluation.datasets.reader import list_claims
from showhow.evaluation.datasets.record import parse_record
from showhow.evaluation.metrics import find_dataset_metric, score_by_metric
from showhow.evaluation.metrics.metric import Case
from showhow.evaluation.metrics.squad import score_squad
from showhow.evaluation.metrics.strategyqa_and_crag import score_crag
from showhow.evaluation.scoring.predictions import read_cases, score_cases
from showhow.evaluation.scoring.scoring import score_outcome, summarize_scores
from showhow.reasoners.answers.normalization import answers_equal

FALSE, ABSENT, AMBIGUOUS, UNSTATED = map(write_unanswerable, UnanswerableReason)
GOLD = [{"text": FALSE, "entity": None}]
ADA = [{"text": "Ada", "entity": None}]
SQUAD = {"id": "1", "question": "Who?", "context": "C"}
SPANS = [{"text": "the Ada", "answer_start": 1}, {"text": "Ada Lund", "answer_start": 1}]
PARAGRAPHS = [{"idx": 0, "title": "T", "paragraph_text": "P", "is_supporting": False}]
MUSIQUE = {"id": "2hop__1", "question": "Who?", "paragraphs": PARAGRAPHS, "answer": "Ada"}


def read(record: dict[str, Any]) -> QuestionRecord:
    (name,) = list_claims(record, QUESTION_FORMATS)
    return parse_record(QUESTION_FORMATS[name], record, "en")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (SQUAD | {"answers": {"text": [], "answer_start": []}}, "not in the sources"),
        (SQUAD | {"answers": [], "is_impossible": True, "plausible_answers": SPANS}, "not in the sources"),
        (SQUAD | {"answers": SPANS, "is_impossible": False}, None),
        (MUSIQUE | {"answerable": False}, "not in the sources"),
        (MUSIQUE | {"answerable": True}, None),
        ({"query": "Who?", "interaction_id": "1", "answer": "Invalid question"}, "false premise"),
        ({"query": "Who?", "interaction_id": "1", "answer": "Ada"}, None),
        ({"question": "Who?", "answer": [], "prolog": {"query": []}}, "not in the sources"),
        ({"question": "Who?", "unanswerable": "Ambiguous"}, "ambiguous"),
        ({"question": "Who?", "unanswerable": True, "answer": ""}, "no reason given"),
        ({"question": "Who?", "is_impossible": True, "answers": []}, "no reason given"),
        ({"question": "Who?", "answerable": "false"}, "no reason given"),
        ({"question": "Who?", "answer": AMBIGUOUS}, "ambiguous"),
        ({"question": "Who?", "answers": []}, None),
        ({"question": "Who?", "answers": ["Ada"], "unanswerable": False, "answerable": True}, None),
        ({"text": "Who?", "answers": [], "expression": {}, "false_premise": {"text": "None."}}, "false premise"),
        ({"text": "Who?", "answers": [], "expression": {}}, "not in the sources"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
def test_a_record_that_says_that_its_question_has_no_answer_is_read_so(
    record: dict[str, Any], reason: str | None
) -> None:
    assert find_gold_reason(read(record).gold_answers) == reason


def test_a_column_of_a_table_says_it_too(tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    file.write_text("question,answer,unanswerable\nWho?,,false premise\nWhen?,1901,\nWhere?,,\n", encoding="utf-8")
    assert [find_gold_reason(one.gold_answers) for one in read_questions(file)] == ["false premise", None, None]
    assert [len(one.gold_answers) for one in read_questions(file)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        *((answer, GOLD, 1.0) for answer in (FALSE, ABSENT, UNSTATED, "no answer", "None.")),
        ("Ada", GOLD, 0.0),
        # Words that it shares with a gold answer do not count.
        (FALSE, [{"text": "This Question", "entity": None}], 0.0),
        (FALSE, ADA, 0.0),
        (FALSE, [*ADA, {"text": "Bo", "entity": None}], 0.0),
        ("invalid question", [{"text": FALSE, "entity": None, "aliases": ["invalid question"]}], 1.0),
    ],
)
def test_it_is_right_if_both_sides_say_it_whatever_the_reason(answer: str, gold: list[Any], score: float) -> None:
    assert score_by_metric(answer, gold) == {"f1": score, "official_f1": score}


def test_two_people_who_say_it_for_different_reasons_agree() -> None:
    assert answers_equal(FALSE, AMBIGUOUS)
    assert not answers_equal(FALSE, "its premise is false")


def test_figures_count_it_apart_from_answers_refusals_and_failures() -> None:
    class Asked:
        def __init__(self, gold: list[dict[str, Any]]) -> None:
            self.kind, self.gold_answers = "bridge", gold

    outcomes = [
        (ADA, RunOutcome("answered", None, TraceAnswers("Ada"))),
        (ADA, RunOutcome("answered", None, TraceAnswers(ABSENT))),
        (ADA, RunOutcome("failed", "it broke")),
        (GOLD, RunOutcome("answered", None, TraceAnswers(ABSENT))),
        (GOLD, RunOutcome("answered", None, TraceAnswers("Bo"))),
        (GOLD, RunOutcome("refused", "it does not know")),
    ]
    report = summarize_scores([score_outcome(Asked(gold), outcome) for gold, outcome in outcomes])
    names = ("questions", "answered", "cannot_be_answered", "refused", "failed", "right")
    assert [report[name] for name in names] == [6, 4, 2, 1, 1, 2]
    groups = {kind: [group[name] for name in names] for kind, group in report["by_kind"].items()}
    assert groups == {"bridge": [3, 2, 1, 0, 1, 1], "cannot be answered": [3, 2, 1, 1, 0, 1]}
    assert (report["f1"], report["f1_answered"]) == (round(2 / 6, 4), 0.5)


@pytest.mark.parametrize(
    ("gold", "predicted", "em", "f1"),
    [
        # The official script: an empty answer is right exactly where there is none.
        ([], [], 1, 1),
        ([], "Ada", 0, 0),
        (SPANS, [], 0, 0),
        (SPANS, "Ada", 1, 1),
        (SPANS, "Ada Lund, a pilot", 0, 2 * (2 / 3) / (2 / 3 + 1)),
        (SPANS, "the", 0, 0),
        # No prediction, or a refused question, is no empty answer.
        ([], None, 0, 0),
    ],
)
def test_squads_figures_are_those_of_its_script(gold: list[Any], predicted: Any, em: float, f1: float) -> None:
    assert score_squad(Case({"answers": gold}, predicted, {})) == pytest.approx({"em": em, "f1": f1})


def test_the_rule_of_a_data_set_gets_its_own_form_of_it(tmp_path: Path) -> None:
    def score(metric: str, golds: list[dict[str, Any]], predicted: list[str]) -> float:
        rows = [{"id": gold["id"], "predicted": text} for gold, text in zip(golds, predicted, strict=True)]
        for name, records in (("gold.jsonl", golds), ("rows.jsonl", rows)):
            (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        rule = find_dataset_metric(metric, None)
        cases = read_cases(tmp_path / "rows.jsonl", tmp_path / "gold.jsonl", rule)
        return float(score_cases(cases, rule, tmp_path / "rows.jsonl")["value"])

    squad = [SQUAD | {"id": str(n), "answers": spans} for n, spans in enumerate([[], [], SPANS, SPANS])]
    assert score("squad_em", squad, [ABSENT, "Ada", ABSENT, "Ada"]) == score("squad_em", squad, ["", "Ada", "", "Ada"])
    assert score("squad_em", squad, [ABSENT, "Ada", ABSENT, "Ada"]) == 0.5
    crag = [{"id": str(n), "answer": answer} for n, answer in enumerate(["invalid question", "Ada"])]
    assert score("crag_score", crag, [FALSE, FALSE]) == 0.0
    assert score_crag(Case(crag[0], "invalid question", {}))["score"] == 1
    hotpot = [{"_id": "1", "id": "1", "question": "Who?", "answer": "This Question"}]
    assert score("hotpotqa_f1", hotpot, [FALSE]) == 0.0


def test_the_reasons_are_distinct_answers_in_one_form() -> None:
    assert list(map(read_unanswerable, (FALSE, ABSENT, AMBIGUOUS, UNSTATED))) == list(UnanswerableReason)
