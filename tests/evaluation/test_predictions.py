"""Files of predictions: what is joined, counted and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from showhow.evaluation.metrics import find_dataset_metric
from showhow.evaluation.metrics.metric import MetricError
from showhow.evaluation.scoring.predictions import read_cases, score_cases

Row = dict[str, Any]
GOLDS = [
    {"_id": "a", "question": "Who?", "answer": "Ada", "type": "bridge", "supporting_facts": [["Ada", 0]]},
    {"_id": "b", "question": "Is it?", "answer": "yes", "type": "comparison", "supporting_facts": [["It", 1]]},
    {"_id": "c", "question": "Where?", "answer": "Cork", "type": "bridge", "supporting_facts": [["Cork", 0]]},
]


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Scores the text of a file of predictions, with the gold records if there are any."""

    def score_text(metric_name: str, text: str, golds: Any = None) -> dict[str, Any]:
        file, gold_file = tmp_path / "predictions.json", None
        file.write_text(text, encoding="utf-8")
        if golds is not None:
            gold_file = tmp_path / "gold.json"
            gold_file.write_text(json.dumps(golds), encoding="utf-8")
        metric = find_dataset_metric(metric_name, None)
        return score_cases(read_cases(file, gold_file, metric), metric, file)

    return score_text


def write_lines(*rows: Row) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_lines_a_list_an_object_of_ids_and_hotpotqas_form_are_the_same(score):
    answers = {"c": "Cork", "a": "Ben", "b": "Yes"}
    rows = [{"id": key, "predicted": answer} for key, answer in answers.items()]
    texts = [
        write_lines(*rows),
        json.dumps(rows),
        json.dumps(rows, indent=1),
        json.dumps({"predictions": rows}, indent=1),
        json.dumps(answers),
        json.dumps(answers, indent=1),
        json.dumps({"answer": answers, "sp": {key: [] for key in answers}}),
        "\n" + write_lines(*[{"qid": row["id"], "prediction": row["predicted"]} for row in rows]),
        write_lines(*[{"question": gold["question"], "predicted": answers[gold["_id"]]} for gold in GOLDS]),
    ]
    reports = [score("hotpotqa_f1", text, GOLDS) for text in texts]
    assert all(report == reports[0] for report in reports)
    assert (reports[0]["value"], reports[0]["n"]) == (pytest.approx(2 / 3), 3)
    assert {kind: group["value"] for kind, group in reports[0]["by_kind"].items()} == {"bridge": 0.5, "comparison": 1.0}
    assert score("hotpotqa_f1", texts[0], {"questions": GOLDS}) == reports[0]


def test_a_single_row_is_a_file(score):
    assert score("atomr_f1", '{"predicted": "Ada", "gold": ["Ada"]}')["n"] == 1
    assert score("atomr_f1", '\n{"predicted": "Ada",\n "gold": "Ben"}\n')["value"] == 0.0


def test_questions_from_a_table_are_gold(score, tmp_path):
    file, gold_file = tmp_path / "predictions.jsonl", tmp_path / "gold.csv"
    file.write_text(write_lines({"id": "1", "predicted": "Ada"}, {"id": "2", "predicted": "Bea"}), encoding="utf-8")
    gold_file.write_text("id,question,answer,kind\n1,Who?,Ada,x\n2,Who else?,Ben,y\n", encoding="utf-8")
    metric = find_dataset_metric("f1", None)
    report = score_cases(read_cases(file, gold_file, metric), metric, file)
    assert {kind: group["value"] for kind, group in report["by_kind"].items()} == {"x": 1.0, "y": 0.0}
    metric = find_dataset_metric("atomr_em", None)
    assert score_cases(read_cases(file, gold_file, metric), metric, file)["value"] == 0.5


def test_refused_failed_empty_and_absent_are_counted_apart_from_wrong(score):
    rows = [
        {"id": "a", "predicted": "Ben"},
        {"id": "b", "ending": "refused", "predicted": "yes, but I will not say"},
        {"id": "c", "ending": "provider_error"},
    ]
    golds = [*GOLDS, {**GOLDS[0], "_id": "d"}, {**GOLDS[0], "_id": "e"}, {**GOLDS[0], "_id": "f"}]
    more = [{"id": "d", "predicted": "  "}, {"id": "e", "predicted": "Ada", "error": "no connection"}]
    report = score("hotpotqa_em", write_lines(*rows, *more), golds)
    counts = {name: report[name] for name in ("answered", "empty", "refused", "failed", "absent", "right", "wrong")}
    assert counts == {"answered": 1, "empty": 1, "refused": 1, "failed": 2, "absent": 1, "right": 0, "wrong": 1}
    assert (report["value"], report["n"]) == (0.0, 6)


@pytest.mark.parametrize("metric", ["f1", "official_f1", "atomr_cover_em", "hits1_pdrr", "musique_em", "hotpotqa_em"])
def test_an_empty_answer_never_matches(score, metric):
    rows = [{"predicted": answer, "gold": ["Cork"]} for answer in ("", None, " \n")]
    report = score(metric, write_lines(*rows))
    assert (report["value"], report["empty"]) == (0.0, 3)


def test_the_metrics_of_runs_score_files_too(score):
    rows = [
        {"predicted": "twelve", "gold": ["12"]},
        {"predicted": "Ada; Ben", "gold": [{"text": "Ben"}, {"text": "Ada"}]},
    ]
    assert score("f1", write_lines(*rows))["value"] == 1.0
    assert score("official_f1", write_lines(rows[0]))["value"] == 0.0


def test_the_metrics_of_runs_score_the_gold_answers_that_an_import_stores(score):
    phantomwiki = [{"id": "a", "question": "Who?", "answer": ["Ann", "Bob"], "prolog": {}}]
    assert score("f1", '{"a": "Bob, Ann"}', phantomwiki)["value"] == 1.0
    assert score("f1", '{"a": "Ann"}', phantomwiki)["value"] == pytest.approx(2 / 3)
    compmix = [{"question_id": "a", "question": "Who?", "answers": [{"id": "Q1", "label": "Ada"}]}]
    assert score("f1", '{"a": "Ada"}', compmix)["value"] == 1.0
    mintaka = [{"id": "a", "question": "Is it?", "answer": {"answerType": "boolean", "answer": [True]}}]
    assert score("official_f1", '{"a": "Yes"}', mintaka)["value"] == 1.0
    with pytest.raises(MetricError, match="the gold record has no answer"):
        score("f1", '{"a": "Ada"}', [{"id": "a", "question": "Who?", "answers": []}])


def test_hits_at_1_compare_the_names_and_aliases_of_the_published_file_of_cwq(score):
    answers = [{"answer": "One", "answer_id": "m.1", "aliases": ["Uno"]}, {"answer": None, "answer_id": "m.2"}]
    gold = {"ID": "a", "question": "Who?", "compositionality_type": "composition", "answers": answers}
    for answer, value in (("one", 1.0), ("UNO", 1.0), ("m.1", 0.0)):
        report = score("hits1_strict", write_lines({"ID": "a", "predicted": answer}), [gold])
        assert (report["value"], list(report["by_kind"])) == (value, ["composition"])


@pytest.mark.parametrize("metric", ["f1", "hotpotqa_f1", "musique_em", "atomr_cover_em", "2wiki_em", "mintaka_text_em"])
def test_a_gold_answer_that_is_blank_is_refused_and_no_answer_is_wrong(score, metric):
    with pytest.raises(MetricError, match="the gold record has no answer"):
        score(metric, '{"a": "Ada"}', [{"_id": "a", "question": "Who?", "answer": "", "type": "bridge"}])


BAD_FILES = [
    ("hotpotqa_f1", [{"id": "x", "predicted": "y"}], "line 1: the question with the id 'x' is not in"),
    ("hotpotqa_f1", [{"id": "a", "predicted": "y"}] * 2, "line 2: the id 'a' is that of line 1 too"),
    ("hotpotqa_f1", [{"id": "a", "predicted": "y"}, {"id": "b"}], "line 2: the prediction has no field 'predicted'"),
    ("hotpotqa_f1", [{"id": "a", "predicted": "y"}, {"predicted": "y"}], "line 2: the field 'id' is missing"),
    (
        "hotpotqa_f1",
        [{"id": "a", "predicted": ["y"]}, {"id": "b", "predicted": "x"}],
        "line 1: the prediction is a list",
    ),
    ("hotpotqa_f1", [{"predicted": "y"}, {"predicted": "x"}], "line 1: it has no id, question or index"),
    (
        "hotpotqa_joint_f1",
        [{"id": "a", "predicted": "y"}, {"id": "b", "predicted": "y"}],
        "no field 'supporting_facts' or",
    ),
    ("2wiki_evidence_f1", [{"id": "a", "evidence": []}, {"id": "b"}], r"gold.json, row 1: .* no field 'evidences'"),
    ("webqsp_f1", [{"id": "a", "predicted": []}, {"id": "b"}], "no field 'Parses'"),
    ("hotpotqa_support_f1", [{"id": "a", "sp": ["Ada"]}, {"id": "b", "sp": []}], "line 1: .* not a list of lists"),
]


@pytest.mark.parametrize(("metric", "rows", "reason"), BAD_FILES)
def test_what_cannot_be_scored_is_refused_with_its_file_and_line(score, metric, rows, reason):
    with pytest.raises(MetricError, match=reason) as caught:
        score(metric, write_lines(*rows), GOLDS)
    message = str(caught.value)
    assert message.endswith("Nothing was scored; correct the file and score it again.")
    assert "predictions.json" in message or "gold.json" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("[]", "the file has no record"),
        ("{}", "the file has no record"),
        ('{"predicted": "x", "gold": "y"}\n{"predicted": }\n', "line 2: invalid JSON"),
        ('[{"predicted": "x"}]', "row 1: the field 'gold' is missing; name a gold file with --gold"),
        ('[{"predicted": "x", "gold": []}]', "row 1: the gold record has no answer"),
        ('[{"predicted": "x", "gold": {"Parses": []}}]', "row 1: the gold of this record has no field 'gold' or"),
        ("[1, 2]", "row 1 is not a JSON object"),
        ('{"a": "x",\n "b": "y",\n "a": "z"}', "an object has 'a' twice"),
        ('{"answer": {"a": "x", "a": "z"}}', "an object has 'a' twice"),
        ("7", "a JSON list or object is required"),
    ],
)
def test_files_of_another_form_are_refused(score, text, reason):
    with pytest.raises(MetricError, match=reason):
        score("atomr_f1", text)


def test_gold_records_of_another_form_are_refused(score):
    golds = [{"QuestionId": "a", "Parses": [{"Answers": []}]}]
    with pytest.raises(MetricError, match="the prediction or its gold record has not the form of webqsp"):
        score("webqsp_f1", write_lines({"QuestionId": "a", "predicted": []}), golds)
    with pytest.raises(MetricError, match=r"gold.json, row 2: the _id 'a' is that of row 1 too"):
        score("hotpotqa_f1", write_lines({"id": "a", "predicted": "x"}), [GOLDS[0], GOLDS[0]])
    with pytest.raises(MetricError, match="an object without a list"):
        score("hotpotqa_f1", write_lines({"id": "a", "predicted": "x"}), {"a": "Ada"})
