"""Metrics of data sets, against the values that the published scripts give on real files."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.evaluation.metrics import DATASET_METRICS, find_dataset_metric, list_dataset_metrics
from showhow.evaluation.metrics.answer_sets import score_spinach, score_webqsp
from showhow.evaluation.metrics.drop import score_drop
from showhow.evaluation.metrics.hits import match_pdrr, match_tog, split_dpr_tokens
from showhow.evaluation.metrics.metric import Case, MetricError, Unscorable, UnusableValue
from showhow.evaluation.metrics.multihop import score_evidence, score_musique_words, score_supporting_facts
from showhow.evaluation.metrics.strategyqa_and_crag import compute_sari, score_crag, score_decomposition, score_verdict
from showhow.evaluation.scoring.predictions import read_cases, score_cases

Row = dict[str, Any]
Score = Callable[..., dict[str, Any]]


def read_records(file: Path) -> list[Row]:
    """The records of a file of a data set."""
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8") as stream:
        text = stream.read()
    if ".jsonl" in file.name:
        return [json.loads(line) for line in text.splitlines()]
    document = json.loads(text)
    return document["questions"] if isinstance(document, dict) else document


@pytest.fixture
def score(shared_data: Path, tmp_path: Path) -> Score:
    """Scores rows, made of the records of a gold file, by a metric."""

    def score_rows(name: str, rows: Iterable[Row], gold: str | None = None) -> dict[str, Any]:
        file, metric = tmp_path / "predictions.jsonl", find_dataset_metric(name, None)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return score_cases(read_cases(file, shared_data / gold if gold else None, metric), metric, file)

    return score_rows


@pytest.fixture
def records(shared_data: Path) -> Callable[[str], list[Row]]:
    """Reads a file of the shared data."""
    return lambda name: read_records(shared_data / name)


def assert_values(report: Mapping[str, Any], **values: float) -> None:
    """The components have these values, to as many decimals as are published."""
    measured = {name: round(report["components"][name], 4) for name in values}
    assert measured == pytest.approx(values, abs=5.1e-5)


HOTPOTQA = "hotpotqa/hotpot_dev_distractor_300.json"


@pytest.mark.parametrize(
    ("keep_answer", "keep_facts", "values"),
    [
        (str, 1, {"em": 1, "support_em": 0, "support_f1": 0.5990, "joint_em": 0, "joint_f1": 0.5990}),
        (lambda text: text.split()[0], None, {"em": 0.33, "f1": 0.6729, "support_em": 1, "joint_f1": 0.6729}),
        (lambda _: "yes", None, {"f1": 0.0167, "joint_f1": 0.0167}),
    ],
)
def test_partial_predictions_have_the_scores_of_hotpotqas_script(score, records, keep_answer, keep_facts, values):
    rows = [
        {
            "id": record["_id"],
            "predicted": keep_answer(record["answer"]),
            "supporting_facts": record["supporting_facts"][:keep_facts],
        }
        for record in records(HOTPOTQA)
    ]
    assert_values(score("hotpotqa_joint_f1", rows, HOTPOTQA), **values)
    assert score("hotpotqa_support_f1", rows, HOTPOTQA)["value"] == pytest.approx(values.get("support_f1", 1), abs=1e-4)


ATOMR_VALUES = {
    "hotpotqa_test_500": ((0.562, 0.64, 0.7127), {"bridge": (412, 0.6896), "comparison": (88, 0.8207)}),
    "2Wiki_test_500": (
        (0.664, 0.828, 0.7872),
        {
            "compositional": (197, 0.5907),
            "inference": (79, 0.8004),
            "comparison": (119, 0.9748),
            "bridge_comparison": (105, 0.9333),
        },
    ),
    "musique_test_500": (
        (0.204, 0.326, 0.3611),
        {"2 hops": (254, 0.4563), "3 hops": (154, 0.2994), "4 hops": (92, 0.2015)},
    ),
}


@pytest.mark.parametrize("name", ATOMR_VALUES)
def test_atomrs_released_predictions_have_its_published_scores_by_kind(score, records, name):
    rows, (values, kinds) = records(f"atomr_released/{name}_predictions.jsonl"), ATOMR_VALUES[name]
    joined = score("atomr_f1", rows, f"atomr_sets/{name.lower()}.jsonl")
    for report in (joined, score("atomr_f1", rows)):
        assert_values(report, **dict(zip(("em", "cover_em", "f1"), values, strict=True)))
    by_kind = {kind: (group["n"], round(group["value"], 4)) for kind, group in joined["by_kind"].items()}
    assert by_kind == kinds


@pytest.mark.parametrize(
    ("metric", "name", "values"),
    [
        ("hotpotqa_f1", "hotpotqa_test_500", {"em": 0.56, "f1": 0.7106, "precision": 0.7236, "recall": 0.7343}),
        ("2wiki_f1", "2Wiki_test_500", {"em": 0.664, "f1": 0.7877}),
        ("musique_f1", "musique_test_500", {"em": 0.2, "f1": 0.3477}),
    ],
)
def test_atomrs_released_predictions_have_the_scores_of_the_data_sets_scripts(score, records, metric, name, values):
    assert_values(score(metric, records(f"atomr_released/{name}_predictions.jsonl")), **values)


def test_atomrs_predictions_on_blendqa_have_its_scores_in_the_order_of_the_files(score, records):
    rows = records("atomr_released/blendqa_predictions_public_296.jsonl")
    assert_values(score("atomr_f1", rows), em=0.2601, cover_em=0.3615, f1=0.4456)
    # The predictions of the three files are sorted by index; one question has another wording in its file.
    names = ("kg-web_132__first_88", "text-kg_163__first_108", "web-text_150__first_100")
    golds = {name: {record["index"] for record in records(f"blendqa/{name}.jsonl")} for name in names}
    order = [name for index in range(108) for name in names if index in golds[name]]
    shares = {
        name: score("atomr_f1", [row for row, own in zip(rows, order, strict=True) if own == name])["value"]
        for name in names
    }
    assert [round(100 * share, 2) for share in shares.values()] == [47.61, 41.60, 45.09]
    first = [row for row, own in zip(rows, order, strict=True) if own == names[0]]
    joined = score("atomr_f1", first, f"blendqa/{names[0]}.jsonl")
    assert {kind: group["n"] for kind, group in joined["by_kind"].items()} == {"type1_k2w": 60, "type2_w2k": 28}
    with pytest.raises(MetricError, match="its question is not that with the same index"):
        score("atomr_f1", first, f"blendqa/{names[1]}.jsonl")


def test_partial_predictions_have_the_scores_of_musiques_script(score, records):
    file = "musique/musique_ans_dev_120.jsonl"
    golds = records(file)
    aliases = [(record["answer_aliases"] or record["answer"].split()[:1])[-1] for record in golds]
    hops = [record["question_decomposition"][-2]["answer"] for record in golds]
    for answers, em, f1 in ((aliases, 0.450, 0.779), (hops, 0.008, 0.099)):
        rows = [{"id": record["id"], "predicted": text} for record, text in zip(golds, answers, strict=True)]
        report = score("musique_f1", rows, file)["components"]
        assert (round(report["em"], 3), round(report["f1"], 3)) == (em, f1)
    support = [
        {"id": record["id"], "predicted_support_idxs": [hop["paragraph_support_idx"] for hop in hops]}
        for record in golds
        for hops in [record["question_decomposition"]]
    ]
    assert score("musique_support_f1", support, file)["value"] == 1.0
    halves = [row | {"predicted_support_idxs": row["predicted_support_idxs"][:1]} for row in support]
    expected = [2 / (1 + len(row["predicted_support_idxs"])) for row in support]
    assert score("musique_support_f1", halves, file)["value"] == pytest.approx(sum(expected) / len(expected))


def test_a_musique_question_that_is_not_answerable_is_left_out():
    assert score_musique_words(Case({"answer": "x", "answerable": False}, "x", {})) is None
    assert score_musique_words(Case({"answer": "The"}, "a", {})) == {"em": 1.0, "f1": 1.0}
    assert score_musique_words(Case({"answer": "yes"}, "yes it is", {}))["f1"] == 0.5


def test_2wikis_own_answers_score_one_and_evidence_is_compared_without_case_and_punctuation(score, records):
    file = "2wikimultihopqa/2wiki_dev_300.json"
    golds = records(file)
    rows = [
        {
            "_id": gold["_id"],
            "predicted": gold["answer"],
            "sp": [[title.upper(), number] for title, number in gold["supporting_facts"]],
            "evidence": [[part.lower() + "." for part in triple] for triple in gold["evidences"]],
        }
        for gold in golds
    ]
    report = score("2wiki_joint_f1", rows, file)
    assert_values(report, em=1, support_em=1, evidence_em=1, joint_em=1, joint_f1=1)
    assert "id_aliases.json is not available" in report["note"]
    first = [row | {"evidence": row["evidence"][:1]} for row in rows]
    expected = [2 / (1 + len(gold["evidences"])) for gold in golds]
    assert score("2wiki_evidence_f1", first, file)["value"] == pytest.approx(sum(expected) / len(expected))


def test_supporting_facts_that_differ_in_case_are_two_predictions_in_2wiki():
    case = Case({"supporting_facts": [["Ada", 0]]}, None, {"sp": [["Ada", 0], ["ADA", 0]]})
    assert score_supporting_facts(case, lower_titles=True)["support_precision"] == 1.0
    assert score_supporting_facts(case, lower_titles=False)["support_precision"] == 0.5
    triples = Case({"evidences": [["a", "b", "c"]]}, None, {"evidence": [["A", "b", "c."], ["a", "b", "c"]]})
    assert score_evidence(triples)["evidence_em"] == 1.0


MINTAKA = "mintaka/mintaka_dev_300.json"


def list_ids(record: Row) -> list[Any] | None:
    answer = record["answer"]
    is_entity = answer["answerType"] == "entity" and answer["answer"]
    return [entity["name"] for entity in answer["answer"]] if is_entity else answer["answer"]


def join_labels(record: Row) -> str:
    answer = record["answer"]
    if answer["answer"] is None:
        return answer["mention"]
    if answer["answerType"] == "entity":
        return " ".join(entity["label"] for entity in answer["answer"])
    return str(answer["answer"][0])


@pytest.mark.parametrize(
    ("mode", "predict", "values"),
    [
        ("kg", lambda _, record: list_ids(record) and list_ids(record)[0], (0.8533, 0.9272, 1.0)),
        ("kg", lambda _, record: list_ids(record) and list_ids(record)[::-1], (0.8533, 1.0, 1.0)),
        ("kg", lambda index, record: list_ids(record) if index % 3 else None, (0.67, 0.67, 0.67)),
        ("text", lambda _, record: f"The answer is {join_labels(record)}.", (1.0, 0.2854, 1.0)),
        ("text", lambda _, record: join_labels(record).lower(), (1.0, 0.1916, 1.0)),
    ],
)
def test_predictions_have_the_scores_of_mintakas_script(score, records, mode, predict, values):
    rows = [{"id": record["id"], "predicted": predict(index, record)} for index, record in enumerate(records(MINTAKA))]
    report = score(f"mintaka_{mode}_f1", rows, MINTAKA)
    assert_values(report, **dict(zip(("em", "f1", "h1"), values, strict=True)))
    assert report["n"] == 300


def test_mintakas_example_predictions_have_the_scores_of_its_script(shared_data):
    file, metric = (
        shared_data / "mintaka/example_text_predictions_300.json",
        find_dataset_metric("mintaka_text_f1", None),
    )
    cases = read_cases(file, shared_data / "mintaka/mintaka_test_text_300.jsonl", metric)
    assert_values(score_cases(cases, metric, file), em=1, f1=0.9882, h1=1)


def test_mintakas_labels_by_language_are_read_like_texts(score):
    entities = [
        {"name": "Q1", "label": {"en": "Ada", "de": "Die Ada"}},
        {"name": "Q2", "label": {"en": "Ben", "de": None}},
    ]
    gold = {"answer": {"answerType": "entity", "answer": entities, "mention": ""}}
    assert score("mintaka_text_f1", [{"predicted": "Ada Ben", "gold": gold}])["value"] == 1.0
    assert score("mintaka_kg_h1", [{"predicted": ["Q2"], "gold": gold}])["value"] == 1.0
    # As in imports, an entity without a label in this language has its name.
    entities[1]["label"] = {"de": "Ben"}
    assert score("mintaka_text_f1", [{"predicted": "Ada Q2", "gold": gold}])["value"] == 1.0


def test_tokens_are_runs_of_letters_digits_and_marks_or_single_signs():
    assert split_dpr_tokens("Ré-2\u200b x_y\n¾") == ["re\u0301", "-", "2", "x", "_", "y", "¾"]


QALD = "qald10/qald_10_250.json"


def list_bound_values(record: Row) -> list[Any]:
    (answer,) = record["answers"]
    if "boolean" in answer:
        return [answer["boolean"]]
    return [term["value"] for binding in answer["results"]["bindings"] for term in binding.values()]


@pytest.mark.parametrize(
    ("predict", "values"),
    [
        (lambda _, values: values[:1], (0.8606, 0.9522, 0.9694)),
        (lambda index, values: values if index % 3 else [], (0.8029, 0.6640, 0.7981)),
        (lambda index, values: values if index % 3 else ["wrong"], (0.6970, 0.6640, 0.6640)),
    ],
)
def test_predictions_have_gerbils_scores_on_qald(score, records, predict, values):
    rows = [
        {"id": record["id"], "predicted": predict(index, list_bound_values(record))}
        for index, record in enumerate(records(QALD))
    ]
    report = score("qald_macro_f1_qald", rows, QALD)
    assert_values(report, **dict(zip(("micro_f1", "macro_f1", "macro_f1_qald"), values, strict=True)))
    assert report["value"] == report["components"]["macro_f1_qald"]
    # A question without a row, and one that was refused, have no answer either.
    kept = [row for row in rows if row["predicted"]]
    refused = [row if row["predicted"] else {"id": row["id"], "ending": "refused"} for row in rows]
    for others in (kept, refused):
        assert score("qald_micro_f1", others, QALD)["components"] == report["components"]


@pytest.mark.parametrize(
    ("file", "id_field", "predict"),
    [
        ("qald9plus/wikidata_answers_test_66.json", "uid", lambda record: record["answer"]),
        ("qald9plus/qald_9_plus_test_dbpedia_104.json", "id", list_bound_values),
        ("qald_hybrid/qald-7-test-hybrid.json", "id", list_bound_values),
    ],
)
def test_the_other_files_of_qald_are_gold_too(score, records, file, id_field, predict):
    rows = [{id_field: record[id_field], "predicted": predict(record)} for record in records(file)]
    assert_values(score("qald_macro_f1", rows, file), macro_f1=1, macro_f1_qald=1, micro_f1=1)
    report = score("qald_macro_f1", [row | {"predicted": [*row["predicted"], "wrong"]} for row in rows], file)
    values = [len({*row["predicted"]}) for row in rows]
    assert report["value"] == pytest.approx(sum(2 * size / (2 * size + 1) for size in values) / len(rows))


def test_qald_scores_one_where_nothing_is_asked_and_nothing_answered(score):
    rows = [{"predicted": [], "gold": []}, {"predicted": ["x"], "gold": []}, {"predicted": True, "gold": [True]}]
    assert score("qald_macro_f1", rows)["value"] == pytest.approx(2 / 3)


EXISTENTIAL = "is are was were am be being been did do does done doing has have had having".split()


@pytest.mark.parametrize(
    ("name", "p1", "verdicts"),
    [
        ("test_set_300", 0.0133, (11, 8)),
        ("dev_set_300", 0.0, (14, 11)),
        ("humaniq_compmix_questions_with_gold", 0.0201, (3, 0)),
    ],
)
def test_predictions_have_explaignns_scores_on_compmix(score, records, name, p1, verdicts):
    file = f"compmix/{name}.json"
    golds = records(file)
    topics = [
        {"question_id": gold["question_id"], "predicted": [entity["id"] for entity in gold["entities"][:1]]}
        for gold in golds
    ]
    assert score("compmix_p1", topics, file)["value"] == pytest.approx(p1, abs=5e-5)
    # The rule of the script for questions that begin with a verb, which answers "yes" first.
    rows = [
        {"predicted": ["yes", "no"], "gold": gold["answers"]}
        for gold in golds
        if gold["question"].strip().lower().split()[0] in EXISTENTIAL
    ]
    report = score("compmix_p1", rows)
    assert (report["n"], report["right"]) == verdicts


def test_compmix_ranks_ids_and_the_nearest_mentions(score):
    gold = [{"id": 'Q5"', "label": "Five"}]
    ranked = [{"answer": {"id": "Q1"}, "rank": 1}, {"answer": {"id": "+q5 "}, "rank": 3}]
    report = score("compmix_mrr", [{"predicted": ranked, "gold": gold}, {"predicted": "Q5", "gold": gold}])
    assert_values(report, p1=0.5, mrr=(1 / 3 + 1) / 2, hit5=1)
    mentions = [["Fifty", "Q50"], ["Five", "Q5"], ["Six", None]]
    assert score("compmix_p1", [{"predicted": "Fiv", "mentions": mentions, "gold": gold}])["value"] == 1.0


WEBQSP = "webqsp/WebQSP_100_full_parses.json"


@pytest.mark.parametrize(
    ("predict", "values"),
    [
        (lambda answers: answers[:1], (1, 0.6150, 0.6893, 0.7616, 0.45)),
        (lambda answers: [*answers, "wrong"], (0.6554, 1, 0.7808, 0.7918, 0)),
        (lambda _: [], (1, 0, 0, 0, 0)),
    ],
)
def test_predictions_have_the_scores_of_webqsps_script(score, records, predict, values):
    rows = [
        {
            "QuestionId": record["QuestionId"],
            "predicted": predict([answer["AnswerArgument"] for answer in record["Parses"][0]["Answers"]]),
        }
        for record in records(WEBQSP)
    ]
    names = ("precision", "recall", "f1", "f1_of_means", "accuracy")
    assert_values(score("webqsp_f1", rows, WEBQSP), **dict(zip(names, values, strict=True)))
    # A question without a row, or with one that failed, has a precision of 0, unlike one that is answered by nothing.
    assert score("webqsp_precision", rows[:1], WEBQSP)["value"] <= 0.01
    failed = [{"QuestionId": row["QuestionId"], "ending": "failed"} for row in rows]
    assert score("webqsp_precision", failed, WEBQSP)["value"] == 0.0
    blank = [row | {"predicted": ""} for row in rows]
    assert score("webqsp_precision", blank, WEBQSP)["value"] == 1.0


def test_webqsp_leaves_out_questions_without_a_complete_parse_and_prefers_the_best_one():
    def parse(*answers: str, quality: str = "Complete") -> Row:
        comment = {"QuestionQuality": "Good", "ParseQuality": quality}
        return {"AnnotatorComment": comment, "Answers": [{"AnswerArgument": answer} for answer in answers]}

    def figures(predicted: Any, *parses: Row) -> Any:
        return score_webqsp(Case({"Parses": list(parses)}, predicted, {"predicted": predicted}))

    assert figures(["a"], parse("a", quality="Partial")) is None
    assert figures(["a"], parse("b"), parse("a", quality="Partial"))["f1"] == 1.0
    assert figures([], parse())["f1"] == 1.0
    assert figures(["a"], parse()) == {"precision": 0.0, "recall": 1.0, "f1": 0.0, "accuracy": 0.0}
    # A parse with answers beats one without, although neither has a match.
    assert figures(["a"], parse(), parse("b"))["recall"] == 0.0
    assert figures(["a", "a", "x"], parse("a", "b"))["precision"] == 0.5


def test_hits_at_1_follow_the_rules_of_tog_pdrr_and_equality(score):
    loose = ["Not Cork", "Cork", "so {Cork}", "cork city"]
    for name, right in (("tog", 4), ("pdrr", 4), ("strict", 1)):
        rows = [{"predicted": answer, "gold": "Cork"} for answer in [*loose, "", "{}", " . ", "Dublin"]]
        report = score(f"hits1_{name}", rows)
        assert (report["right"], report["empty"]) == (right, 1), name
    assert score("hits1_pdrr", [{"predicted": "the United States and Canada", "gold": ["Canada"]}])["value"] == 1.0
    # Three of four words, in another order; accents and punctuation do not count.
    assert match_pdrr("Nuñez, José: poet", "Jose Nunez the poet")
    assert not match_tog("Nuñez, José: poet", "Jose Nunez the poet")
    # As in the scripts, whose metrics here never accept it.
    assert match_pdrr("", "Cork")
    assert match_tog("", "Cork")
    assert score("hits1_strict", [{"predicted": ["The Cork!", "x"], "gold": ["cork"]}])["value"] == 1.0


def test_hits_at_1_of_webqsp_compare_names(score, records):
    rows = [
        {"QuestionId": record["QuestionId"], "predicted": record["Parses"][0]["Answers"][-1]["EntityName"]}
        for record in records(WEBQSP)
    ]
    named = [row for row in rows if row["predicted"]]
    report = score("webqsp_hits1", named, WEBQSP)
    assert (report["right"], report["absent"]) == (len(named), 100 - len(named))
    simple = "webqsp/WebQSP_simplified_300.json"
    rows = [{"QuestionId": record["QuestionId"], "predicted": record["answer"]} for record in records(simple)]
    # The first gold answer of one question is an empty text, which matches nothing.
    report = score("webqsp_hits1", rows, simple)
    assert (report["n"], report["right"]) == (300, 299)
    assert score("hits1_tog", [{"predicted": "Ada", "gold": ["", "Ben"]}])["value"] == 0.0


def test_predictions_have_grailqas_f1_by_level(score, records):
    file = "grailqa/grailqa_100.json"
    rows = [{"qid": gold["qid"], "predicted": [gold["answer"][0]["answer_argument"]]} for gold in records(file)]
    report = score("grailqa_f1", rows, file)
    assert_values(report, f1=0.7786)
    levels = {level: round(group["value"], 4) for level, group in report["by_kind"].items()}
    assert levels == {"i.i.d.": 0.7955, "compositional": 0.7059, "zero-shot": 0.7939}
    assert score("grailqa_f1", [{"predicted": [], "gold": []}])["value"] == 0.0
    with pytest.raises(MetricError, match="ontology"):
        find_dataset_metric("grailqa_em", "grailqa")


STRATEGYQA = "strategyqa/dev_150.json"


def test_predictions_have_the_scores_of_strategyqas_script(score, records):
    golds = records(STRATEGYQA)
    for verdict, share in ((True, 0.48), ("No.", 0.52)):
        rows = [{"qid": gold["qid"], "predicted": verdict} for gold in golds]
        assert score("strategyqa_accuracy", rows, STRATEGYQA)["value"] == pytest.approx(share)
    rows = [{"qid": gold["qid"], "paragraphs": list_paragraphs(gold["evidence"][0])} for gold in golds]
    assert_values(score("strategyqa_recall10", rows, STRATEGYQA), recall10=1, recall1=0.5361)
    own = [{"qid": gold["qid"], "decomposition": gold["decomposition"]} for gold in golds]
    assert score("strategyqa_sari", own, STRATEGYQA)["value"] == pytest.approx(1)


def list_paragraphs(annotator: list[Any]) -> list[str]:
    names = [name for step in annotator for part in step if isinstance(part, list) for name in part]
    return list(dict.fromkeys(names))


def test_sari_is_the_mean_of_keep_add_and_delete_over_four_sizes():
    # Of words: keep 1/1 and 1/2, add 1/2 and 1/1, delete 1/2. Of pairs: keep "a b" missed, add none right, delete 1/2.
    # Of triples: nothing to keep, add none right, delete 1/1. Of four words there is nothing.
    total = (2 / 3 + 2 / 3 + 1 / 2) + (0 + 0 + 1 / 2) + (1 + 0 + 1) + (1 + 1 + 1)
    assert compute_sari("a b c".split(), "a d e".split(), "a b d".split()) == pytest.approx(total / 12)
    case = Case({"question": "Is it?", "decomposition": ["It ?"]}, None, {"decomposition": ["It?"]})
    figures = score_decomposition(case)
    assert figures["sari_marks"] == 1.0 > figures["sari"]


def test_a_verdict_that_is_no_verdict_is_wrong_and_a_number_is_refused():
    assert score_verdict(Case({"answer": False}, "perhaps", {})) == {"accuracy": 0.0}
    with pytest.raises(UnusableValue, match="true, false, yes or no"):
        score_verdict(Case({"answer": False}, 0, {}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("size_25_seed_1", (0.44, 0.6397, 0.7260)),
        ("size_50_seed_1", (0.338, 0.5580, 0.6563)),
        ("size_500_seed_5", (0.336, 0.5606, 0.6594)),
    ],
)
def test_first_answers_have_the_scores_of_phantomwikis_script(score, records, name, values):
    file = f"phantomwiki/depth_20_{name}/questions.json.gz"
    rows = [{"id": gold["id"], "predicted": f" {gold['answer'][0].upper()} "} for gold in records(file)]
    report = score("phantomwiki_f1", rows, file)
    assert_values(report, **dict(zip(("em", "recall", "f1"), values, strict=True)), precision=1)
    assert {int(kind) for kind in report["by_kind"]} == {gold["difficulty"] for gold in records(file)}


def test_phantomwikis_unit_is_the_instance(score):
    rows = [
        {"predicted": "Ada, Ben" if right else "Cy", "gold": ["Ben", "Ada"], "instance": seed}
        for seed, rights in (("1", [1, 1]), ("2", [1, 0, 0, 0]), ("3", [1, 0]))
        for right in rights
    ]
    report = score("phantomwiki_f1", rows)
    assert report["value"] == 0.5
    instances = report["instances"]
    assert (instances["n"], instances["value"]) == (3, pytest.approx((1 + 0.25 + 0.5) / 3))
    assert instances["standard_error"] == pytest.approx(0.2204793)
    refused = score("phantomwiki_f1", [*rows, {"gold": ["Ada"], "ending": "refused", "instance": "2"}])
    assert refused["instances"]["value"] == pytest.approx((1 + 0.2 + 0.5) / 3)


def iri(name: str) -> Row:
    return {"type": "uri", "value": name}


TERMS = st.sampled_from("abc").map(iri)
TABLES = st.lists(st.fixed_dictionaries({"x": TERMS, "y": TERMS}), min_size=1, max_size=4)


@given(TABLES, TABLES)
def test_row_major_f1_is_that_of_a_best_assignment_of_all(predicted, golds):
    few = min(len(predicted), len(golds))
    assignments = [
        [share_values(predicted[row], golds[place]) for row, place in zip(rows, places, strict=True)]
        for rows in permutations(range(len(predicted)), few)
        for places in permutations(range(len(golds)), few)
    ]
    best = max(map(sum, assignments))
    unassigned = len(predicted) + len(golds) - 2 * few
    possible = [
        2 * best / (2 * best + unassigned + sum(1 - share if share else 2 for share in shares))
        for shares in assignments
        if sum(shares) == best
    ]
    figures = score_spinach(Case({"gold": golds}, predicted, {}))
    assert any(figures["f1"] == pytest.approx(f1) for f1 in possible)
    assert figures["em"] == (figures["f1"] == 1)


def share_values(row: Row, gold: Row) -> float:
    left = [term["value"] for term in row.values()]
    shared = 0
    for term in gold.values():
        if term["value"] in left:
            left.remove(term["value"])
            shared += 1
    return shared / len(gold)


def test_row_major_f1_counts_rows_and_ignores_labels(score):
    gold = [{"item": iri("a"), "itemLabel": iri("A")}, {"item": iri("b"), "itemDescription": iri("B")}]
    rows = [
        ([{"z": iri("b")}, {"z": iri("a"), "more": iri("c")}], 1.0),
        ([{"z": iri("a")}], 2 / 3),
        ([{"z": iri("a")}, {"z": iri("x")}], 2 / 4),
        (None, 0.0),
    ]
    for predicted, value in rows:
        assert score("spinach_f1", [{"predicted": predicted, "gold": gold}])["value"] == pytest.approx(value)
    wide = [{"x": iri("a"), "y": iri("b")}]
    assert score("spinach_f1", [{"predicted": gold[:1], "gold": wide}])["value"] == pytest.approx(1 / (1 + 0.5))
    assert score("spinach_em", [{"predicted": True, "gold": {"boolean": True}}])["value"] == 1.0
    # The script divides by zero here, which is no wrong answer.
    report = score("spinach_f1", [{"predicted": [], "gold": []}, {"predicted": [], "gold": gold}])
    assert (report["value"], report["value_of_scored"], report["unscored"]) == (None, 0.0, 1)


def test_lcquad_compares_ids_or_values(score, records):
    file = "lcquad2/test_with_answers_300.json"
    rows = [{"id": gold["id"], "predicted": [i for i in gold["ans_id"] if i] or gold["ans"]} for gold in records(file)]
    report = score("lcquad2_f1", rows, file)
    assert (report["value"], report["by_kind"]["None"]["n"]) == (1.0, 23)
    pairs = [(["http://www.wikidata.org/entity/Q5"], ["Q5", None]), (["12.0"], None), (["nan"], None)]
    rows = [{"predicted": answer, "gold": {"ans": [12, "nan"], "ans_id": ids or [None, None]}} for answer, ids in pairs]
    assert_values(score("lcquad2_recall", rows), recall=(1 + 0.5 + 0.5) / 3, precision=1)


def crag(predicted: Any, answer: str, **fields: Any) -> Mapping[str, float] | None:
    gold = {"answer": answer, "alternative_answers": '["The Bard"]'}
    return score_crag(Case(gold, predicted, {"predicted": predicted, **fields}))


def test_crag_decides_by_rules_and_leaves_the_rest_to_a_judge():
    assert crag("Shakespeare ", "shakespeare")["score"] == 1
    assert crag("the bard", "shakespeare")["accuracy"] == 1
    assert crag("Sorry, I don't know.", "shakespeare") == {"score": 0, "accuracy": 0, "missing": 1, "hallucination": 0}
    assert crag(None, "shakespeare")["missing"] == 1
    assert crag("It is invalid", "invalid question")["score"] == 1
    with pytest.raises(Unscorable, match="no judgement"):
        crag("William", "shakespeare")
    with pytest.raises(Unscorable, match="neither true nor false"):
        crag("William", "shakespeare", judged="perhaps")
    assert crag("William", "shakespeare", judged=True)["score"] == 1
    assert crag("Marlowe", "shakespeare", judged=False)["hallucination"] == 1


def test_an_answer_that_no_judge_has_judged_is_not_wrong(score):
    rows = [{"predicted": answer, "gold": ["Ada"]} for answer in ("ada", "Ben", "i don't know", "invalid")]
    report = score("crag_score", rows)
    assert (report["value"], report["unscored"], report["right"], report["wrong"]) == (None, 1, 1, 1)
    assert report["value_of_scored"] == 0.0
    judged = score("crag_score", [row | {"judged": False} for row in rows])
    assert (judged["value"], judged["unscored"]) == (-0.25, 0)


def test_every_metric_names_its_data_set_its_version_and_its_source():
    listed = {metric.name for metrics in list_dataset_metrics().values() for metric in metrics}
    assert listed == DATASET_METRICS.keys()
    for metric in DATASET_METRICS.values():
        assert metric.source
        assert metric.version >= 1
    with pytest.raises(MetricError, match=r"does not have the metric 2wiki_f1; it has .*musique_em"):
        find_dataset_metric("2wiki_f1", "MuSiQue")
    with pytest.raises(MetricError, match="no data set 'trivia'"):
        find_dataset_metric("2wiki_f1", "trivia")
    with pytest.raises(MetricError, match="no metric 'bleu'"):
        find_dataset_metric("bleu", None)
    assert find_dataset_metric("2wiki_em", "2Wiki").value == "em"


@pytest.mark.parametrize(
    ("predicted", "gold", "em", "f1"),
    [
        (["78"], ["78.0"], 1, 1),
        (["td"], ["td", "td"], 0, 0.5),
        (["td"], ["the td"], 1, 1),
        (["the a NOT an ARTICLE the an a"], ["NOT ARTICLE"], 1, 1),
        (["John Elton"], ["Elton John"], 0, 1),
        (["Per.i.o.d...."], ["Period"], 1, 1),
        (["Spa     c  e   s     "], ["Spa c e s"], 1, 1),
        (["78-yard"], ["78 yard"], 1, 1),
        (["your"], ["your mother"], 0, 0.67),
        (["b"], ["a", "b"], 0, 0.5),
        (["4 yard", "30"], ["30", "4 yards"], 0, 0.75),
        (["12 yards"], ["4 yards"], 0, 0),
        (["Ida", "Ben", "Cy"], ["Ben", "Ida"], 0, 0.67),
    ],
)
def test_spans_have_the_scores_of_drops_script(predicted, gold, em, f1):
    record = {"answer": {"number": "", "date": {}, "spans": gold}}
    assert score_drop(Case(record, predicted, {"predicted": predicted})) == {"em": em, "f1": f1}


def test_an_answer_to_drop_has_the_best_score_over_all_people_and_a_text_is_split_where_several_spans_are_right():
    date = {"day": "", "month": "May", "year": "1790"}
    record = {
        "answer": {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["Ida", "Ben"]},
        "validated_answers": [{"number": "7", "spans": []}, {"number": "", "date": date, "spans": []}],
    }
    right = {"em": 1.0, "f1": 1.0}
    for predicted in ("Ben and Ida", ["Ida", "Ben"], "7.0", "may 1790"):
        assert score_drop(Case(record, predicted, {"predicted": predicted})) == right, predicted
    hub = {"answers_spans": {"spans": ["2", "3"], "types": ["number", "number"]}}
    assert score_drop(Case(hub, "3", {"predicted": "3"})) == right
    with pytest.raises(UnusableValue, match="no answer"):
        score_drop(Case({"answer": {"number": "", "spans": [], "date": {}}}, "x", {"predicted": "x"}))


WORDS = st.lists(st.sampled_from(["ida", "ben", "cy", "4", "the ida", "4 ben"]), min_size=1, max_size=4)


@given(WORDS, WORDS)
def test_the_spans_of_drop_are_matched_so_that_the_sum_is_the_greatest(predicted: list[str], gold: list[str]):
    pairs = {(a, b): score_drop(Case({"gold": [b]}, [a], {"predicted": [a]}))["f1"] for a in predicted for b in gold}
    longer, shorter = sorted((range(len(predicted)), range(len(gold))), key=len, reverse=True)
    best = max(
        sum(pairs[(predicted[x], gold[y]) if longer == range(len(predicted)) else (predicted[y], gold[x])]
            for x, y in zip(order, shorter, strict=False))
        for order in permutations(longer)
    )  # fmt: skip
    record = {"answer": {"number": "", "date": {}, "spans": gold}}
    f1 = score_drop(Case(record, predicted, {"predicted": predicted}))["f1"]
    assert f1 == pytest.approx(best / len(longer), abs=0.011)
