"""Every published question file: its format, counts made from the raw records, gold answers, and the database."""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.questions import projects
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.storage.schema import upgrade
from showhow.evaluation.datasets import QUESTION_FORMATS, open_question_file, read_questions
from showhow.evaluation.datasets.reader import list_claims
from showhow.worlds.folder import WorldError

Raw = dict[str, Any]

FILES = {
    "2wikimultihopqa/2wiki_dev_300.json": "2wiki",
    "2wikimultihopqa/2wiki_train_200.json": "2wiki",
    "world_2wiki/questions_300.json": "2wiki",
    "hotpotqa/hotpot_dev_distractor_300.json": "hotpotqa",
    "hotpotqa/hotpot_dev_v1_simplified_500.json": "hotpotqa",
    "musique/musique_ans_dev_120.jsonl": "musique",
    "mintaka/mintaka_dev_300.json": "mintaka",
    "mintaka/mintaka_test_text_300.jsonl": "mintaka",
    "compmix/dev_set_300.json": "compmix",
    "compmix/test_set_300.json": "compmix",
    "compmix/humaniq_compmix_questions_with_gold.json": "compmix",
    "qald10/qald_10_250.json": "qald",
    "qald9plus/qald_9_plus_test_dbpedia_104.json": "qald",
    "qald_hybrid/qald-6-test-hybrid.json": "qald",
    "qald_hybrid/qald-6-train-hybrid.json": "qald",
    "qald_hybrid/qald-7-test-hybrid.json": "qald",
    "qald_hybrid/qald-7-train-hybrid.json": "qald",
    "qald9plus/wikidata_answers_test_66.json": "qald-lcquad",
    "qald9plus/wikidata_answers_train_246.json": "qald-lcquad",
    "lcquad2/test_300.jsonl": "lcquad2",
    "lcquad2/test_with_answers_300.json": "lcquad2",
    "qald9plus/en_wikidata_sparql_test.json": "spinach",
    "qald9plus/en_wikidata_sparql_train.json": "spinach",
    "spinach/test.json": "spinach",
    "webqsp/WebQSP_100_full_parses.json": "webqsp",
    "webqsp/WebQSP_simplified_300.json": "webqsp",
    "webqsp/webqsp_test_wikidata_ids_300.json": "webqsp",
    "cwq/cwq_test_300.json": "cwq",
    "grailqa/grailqa_100.json": "grailqa",
    "pathquestion/PQ-2H_500.jsonl": "pathquestion",
    "pathquestion/PQ-3H_500.jsonl": "pathquestion",
    "strategyqa/dev_150.json": "strategyqa",
    "strategyqa/train_200.json": "strategyqa",
}
FOLDERS = {"atomr_sets": "atomr", "atomr_released": "atomr", "blendqa": "blendqa"}
IDS = ("_id", "id", "question_id", "qid", "QuestionId", "ID", "uid")


@cache
def raw_records(file: Path) -> list[Raw]:
    """The records by a second route: the whole text, as JSON or as a JSON value in each line."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    text = content.decode()
    lines = text.splitlines()
    document = [json.loads(line) for line in lines] if file.suffix == ".jsonl" else json.loads(text)
    return list(document["questions"] if isinstance(document, dict) else document)


def count_qald_answers(raw: Raw) -> int:
    values = set()
    for result in raw["answers"]:
        values |= {result["boolean"]} if "boolean" in result else set()
        for binding in result.get("results", {}).get("bindings", []):
            values |= {term["value"].strip("<> ") for term in binding.values()}
    return len(values - {""})


def count_webqsp_answers(raw: Raw) -> int:
    if "answers" in raw:
        return 1
    if "Parses" not in raw:
        return len(set(raw["answer"]) - {""})
    sets = [{answer["AnswerArgument"] for answer in parse["Answers"]} for parse in raw["Parses"]]
    good = [
        answers
        for answers, parse in zip(sets, raw["Parses"], strict=True)
        if parse["AnnotatorComment"]["ParseQuality"] == "Complete"
        and parse["AnnotatorComment"]["QuestionQuality"] == "Good"
    ]
    return len(next(filter(None, [*good, *sets]), ()))


def count_lcquad2_answers(raw: Raw) -> int:
    return len({qid or str(text) for text, qid in zip(raw.get("ans", ()), raw.get("ans_id", ()), strict=True)})


COUNTS: dict[str, Callable[[Raw], int]] = {
    "mintaka": lambda raw: len(set(map(str, (raw.get("answer") or {}).get("answer") or [None]))),
    "compmix": lambda raw: len({answer["id"] for answer in raw["answers"]}),
    "qald": count_qald_answers,
    "qald-lcquad": lambda raw: len(set(raw["answer"])),
    "lcquad2": count_lcquad2_answers,
    "spinach": lambda _: 0,
    "webqsp": count_webqsp_answers,
    "grailqa": lambda raw: len({answer["answer_argument"] for answer in raw["answer"]}),
    "phantomwiki": lambda raw: len(raw["answer"]),
}
"""The number of gold answers of a record; 1 in the other formats."""


@pytest.fixture(scope="session")
def question_files(shared_data: Path) -> dict[Path, str]:
    """Every question file with its format."""
    files = {shared_data / name: form for name, form in FILES.items()}
    for folder, form in FOLDERS.items():
        files |= dict.fromkeys((shared_data / folder).iterdir(), form)
    return files | dict.fromkeys((shared_data / "phantomwiki").glob("*/questions.*"), "phantomwiki")


@pytest.fixture(scope="session")
def everything(question_files: dict[Path, str]) -> dict[Path, list[QuestionRecord]]:
    """The questions of every file."""
    return {file: read_questions(file) for file in question_files}


def of_form(everything: dict[Path, list[QuestionRecord]], name: str) -> Iterator[tuple[QuestionRecord, Raw]]:
    """The questions of the files whose path ends so, each with its raw record."""
    for file, questions in everything.items():
        if str(file).endswith(name):
            yield from zip(questions, raw_records(file), strict=True)


def test_every_file_is_read_whole_in_its_format(question_files, everything):
    assert len(question_files) == 33 + 15 + 14
    for file, form in question_files.items():
        raws = raw_records(file)
        golds = [COUNTS.get(form, lambda _: 1)(raw) for raw in raws]
        survey = open_question_file(file).survey()
        assert (survey.format_name, survey.questions, survey.unread) == (form, len(raws), {}), file
        assert survey.with_gold == sum(map(bool, golds)), file
        assert [len(question.gold_answers) for question in everything[file]] == golds, file


def test_every_record_of_every_file_has_the_structure_of_one_format_only(question_files):
    for file, form in question_files.items():
        claims = {tuple(list_claims(raw, QUESTION_FORMATS)) for raw in raw_records(file)}
        assert claims == {(form,)}, file


def test_files_of_other_data_are_refused_or_have_no_gold_answers(question_files, shared_data):
    refused = 0
    for file in sorted(set(filter(Path.is_file, shared_data.rglob("*"))) - set(question_files)):
        try:
            survey = open_question_file(file).survey()
        except WorldError as error:
            assert str(file) in str(error)  # noqa: PT017 - being refused and having no gold answers are both right
            refused += 1
        else:
            assert survey.problem, file
    # HumanIQ's demonstrations and runs and a list of articles have texts of questions or articles, and no answers.
    assert refused == len(list(filter(Path.is_file, shared_data.rglob("*")))) - len(question_files) - 12


def test_texts_and_ids_are_those_of_the_file_and_details_hold_the_raw_fields(question_files, everything):
    omitted = {"context", "paragraphs", "solution_traces", "hops", "answer", "answer_id", "type", *IDS}
    for file, form in question_files.items():
        for question, raw in zip(everything[file], raw_records(file), strict=True):
            text = raw.get("RawQuestion", raw.get("question"))
            if form == "qald":
                text = next(string["string"] for string in text if string["language"] == "en")
            assert question.text == text.strip(), file
            ids = [str(raw[name]) for name in IDS if raw.get(name) is not None]
            assert question.source_id == (ids[0] if ids else str(raw["index"]) if "index" in raw else None), file
            for name in set(raw) - omitted - {"question", "RawQuestion"}:
                assert question.details[name] == raw[name], (file, name)


def test_every_question_is_stored_and_read_back(everything, tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'questions.db'}")
    upgrade(database)
    for file, questions in everything.items():
        distinct = list({(question.source_id, question.text): question for question in reversed(questions)}.values())
        distinct.reverse()
        with database.begin() as session:
            project = Project(name=str(file), world="any")
            session.add(project)
            session.flush()
            counts = projects.add_questions(session, project.id, open_question_file(file).iter_records())
        assert (counts.added, counts.existing) == (len(distinct), len(questions) - len(distinct))
        with database.read() as session:
            stored = projects.list_questions(session, project.id, limit=1000)
            names = ("text", "source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
            for name in names:
                assert [getattr(row, name) for row in stored] == [getattr(record, name) for record in distinct], file


def test_mintaka_has_labels_ids_and_mentions(everything):
    for question, raw in of_form(everything, "mintaka_dev_300.json"):
        answer, golds = raw["answer"], question.gold_answers
        assert question.kind == raw["complexityType"]
        if answer["answer"] is None:
            assert golds == [{"text": "Decrease", "entity": None}]
        elif answer["answerType"] == "entity":
            entities = dict.fromkeys((entity["label"], entity["name"]) for entity in answer["answer"])
            assert [(gold["text"], gold["entity"]) for gold in golds] == list(entities)
        elif answer["answerType"] == "boolean":
            assert golds == [{"text": answer["mention"].lower(), "entity": None}]
        else:
            assert golds[0]["text"] == str(answer["answer"][0])
    texts = [question.gold_answers[0]["text"] for question, _ in of_form(everything, "mintaka_test_text_300.jsonl")]
    raws = [raw["en_true_answer"] for _, raw in of_form(everything, "mintaka_test_text_300.jsonl")]
    assert texts == [{True: "yes", False: "no"}[raw] if isinstance(raw, bool) else str(raw) for raw in raws]


def test_mintaka_is_read_in_another_language(shared_data):
    file = shared_data / "mintaka" / "mintaka_dev_300.json"
    questions = list(open_question_file(file, language="ja").iter_records())
    assert [question.text for question in questions] == [raw["translations"]["ja"].strip() for raw in raw_records(file)]


def test_compmix_decodes_escapes_and_has_ids_of_entities_only(everything):
    pairs = list(of_form(everything, "_set_300.json"))
    assert len(pairs) == 600
    texts = {gold["text"]: gold["entity"] for question, _ in pairs for gold in question.gold_answers}
    assert texts["Beyoncé"] == "Q36153"
    assert texts["Fußball-Regionalliga West"] == "Q555836"
    assert texts["14 September 2008"] is None
    assert not any("\\u" in text for text in texts)
    entities = sum(bool(gold["entity"]) for question, _ in pairs for gold in question.gold_answers)
    assert entities == sum(answer["id"].startswith("Q") for _, raw in pairs for answer in raw["answers"]) == 439


def test_the_aliases_of_musique_are_read_and_supporting_paragraphs_are_marked(everything):
    pairs = list(of_form(everything, "musique_ans_dev_120.jsonl"))
    assert [question.gold_answers[0].get("aliases", []) for question, _ in pairs] == [
        raw["answer_aliases"] for _, raw in pairs
    ]
    assert sum("aliases" in question.gold_answers[0] for question, _ in pairs) == 38
    assert [sum(question.kind == f"{hops}hop" for question, _ in pairs) for hops in (2, 3, 4)] == [85, 19, 16]
    for question, raw in pairs:
        support = {paragraph["idx"] for paragraph in question.details["paragraphs"] if paragraph["is_supporting"]}
        assert support == {hop["paragraph_support_idx"] for hop in raw["question_decomposition"]}
        assert not any("paragraph_text" in paragraph for paragraph in question.details["paragraphs"])


def test_qald_has_ids_names_dates_and_booleans(everything):
    golds = {question.source_id: question.gold_answers for question, _ in of_form(everything, "qald_10_250.json")}
    assert golds["0"] == [{"text": "Q42299", "entity": "Q42299"}]
    booleans = [raw for _, raw in of_form(everything, "qald_10_250.json") if "boolean" in raw["answers"][0]]
    assert len(booleans) == 56
    for raw in booleans:
        assert golds[str(raw["id"])] == [{"text": "yes" if raw["answers"][0]["boolean"] else "no", "entity": None}]
    dates = [gold for values in golds.values() for gold in values if gold["text"].endswith("T00:00:00Z")]
    assert len(dates) == 9
    assert all(date["aliases"] == [date["text"].removesuffix("T00:00:00Z")] for date in dates)
    dbpedia = {
        question.source_id: question.gold_answers
        for question, _ in of_form(everything, "qald_9_plus_test_dbpedia_104.json")
    }
    assert dbpedia["99"][0] == {
        "text": "Mountain Time Zone",
        "entity": "http://dbpedia.org/resource/Mountain_Time_Zone",
    }
    # Apollo 11: three astronauts, and an empty text that only the details have.
    assert [gold["text"] for gold in dbpedia["164"]] == ["Buzz Aldrin", "Michael Collins (astronaut)", "Neil Armstrong"]
    (question, _) = next(of_form(everything, "wikidata_answers_test_66.json"))
    assert question.text == "What is the time zone of Salt Lake City?"
    assert [gold["entity"] for gold in question.gold_answers] == ["Q2212", "Q3134980"]
    assert "Mountain Standard Time" in question.gold_answers[0]["aliases"]


def read_solved(everything: dict[Path, list[QuestionRecord]]) -> dict[str, list[Raw]]:
    return {
        question.text: question.gold_answers for question, _ in of_form(everything, "wikidata_answers_test_66.json")
    }


def test_lcquad2_has_whole_numbers_verdicts_and_ids(everything):
    by_type: dict[str, list[Raw]] = {}
    for question, raw in of_form(everything, "test_with_answers_300.json"):
        by_type.setdefault(raw["answertype"], []).extend(question.gold_answers)
        assert question.kind == (None if raw["answertype"] == "None" else raw["answertype"])
    assert by_type["number"][0]["text"] == "9380854"
    assert {gold["text"] for gold in by_type["boolean"]} == {"yes", "no"}
    assert all(gold["entity"].startswith("Q") for gold in by_type["resource"])


def test_freebase_answers_have_names_and_ids(everything):
    questions = {question.source_id: question for question, _ in of_form(everything, "WebQSP_100_full_parses.json")}
    assert questions["WebQTest-459"].gold_answers == [{"text": "Kansas City", "entity": "m.04f_d"}]
    values = [gold for question in questions.values() for gold in question.gold_answers if not gold["entity"]]
    assert {value["text"] for value in values} >= {"2003-01-02", "1945-04-12"}
    assert sum(len(question.details["Parses"]) for question in questions.values()) == 111
    for question, raw in of_form(everything, "grailqa_100.json"):
        assert question.kind == raw["level"]
        assert {gold["entity"] for gold in question.gold_answers} == {
            answer["answer_argument"] for answer in raw["answer"]
        }
    for question, raw in of_form(everything, "cwq_test_300.json"):
        assert question.gold_answers == [{"text": raw["answer"].strip(), "entity": None}]
        assert question.kind == raw["compositionality_type"]
    (question, _) = next(
        pair for pair in of_form(everything, "PQ-2H_500.jsonl") if pair[1]["answer"] == "male(male/female/)"
    )
    assert question.gold_answers == [{"text": "male", "entity": "male", "aliases": ["female"]}]


def test_names_that_a_file_mixes_are_aliases_of_one_answer(everything):
    for question, raw in of_form(everything, "webqsp_test_wikidata_ids_300.json"):
        (gold,) = question.gold_answers
        assert {gold["text"], *gold.get("aliases", ())} == {name.strip() for name in raw["answers"]}


def test_sets_of_texts_keep_their_verdicts_sets_and_kinds(everything):
    strategyqa = [question.gold_answers[0]["text"] for question, _ in of_form(everything, "dev_150.json")]
    assert (strategyqa.count("yes"), strategyqa.count("no")) == (72, 78)
    for question, raw in of_form(everything, "questions.slim.jsonl"):
        assert {gold["text"] for gold in question.gold_answers} == set(raw["answer"])
        assert question.kind == f"template {raw['type']}"
    kinds = [question.kind for question, _ in of_form(everything, "atomr_sets/musique_test_500.jsonl")]
    assert [kinds.count(f"{hops}hop") for hops in (2, 3, 4)] == [254, 154, 92]
    predictions = list(of_form(everything, "musique_test_500_predictions.jsonl"))
    assert all(
        question.gold_answers[0]["text"] == raw["gold"][0].strip() and question.details["predicted"] == raw["predicted"]
        for question, raw in predictions
    )
