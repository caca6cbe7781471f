"""Hand-made records of every question format: published variants that no file at hand has, broken records, layouts."""

import copy
import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.unanswerable import find_gold_reason
from showhow.evaluation.datasets import QUESTION_FORMATS, open_question_file
from showhow.evaluation.datasets.reader import UnknownQuestionFormat, UnreadRecord, list_claims
from showhow.evaluation.datasets.record import UnreadableRecord, parse_record
from showhow.worlds.article_files import read_articles
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile

Raw = dict[str, Any]

URI = "http://www.wikidata.org/entity/Q7"
RECORDS: dict[str, Raw] = {
    "jsonl": {"id": "1", "question": "Who?", "answers": ["Ada"]},
    "2wiki": {"_id": "1", "question": "Who?", "answer": "Ada", "type": "x", "evidences": [["A", "b", "C"]]},
    "hotpotqa": {"_id": "1", "question": "Who?", "answer": "Ada", "type": "bridge", "supporting_facts": [["A", 0]]},
    "musique": {
        **{"id": "2hop__1_2", "question": "Who?", "answer": "Ada", "answer_aliases": ["A."], "answerable": True},
        "paragraphs": [{"idx": 0, "title": "T", "paragraph_text": "Long.", "is_supporting": True}],
    },
    "mintaka": {
        **{"id": "1", "question": "Who?", "complexityType": "generic"},
        "answer": {"answerType": "entity", "answer": [{"name": "Q7", "label": {"en": "Ada", "de": "Adda"}}]},
        "translations": {"de": "Wer?"},
    },
    "compmix": {"question_id": "1", "question": "Who?", "answers": [{"id": "Q7", "label": "Ada"}], "domain": "books"},
    "qald": {
        **{"id": 1, "question": [{"language": "en", "string": "Who?"}, {"language": "de", "string": "Wer?"}]},
        "answers": [{"head": {}, "results": {"bindings": [{"uri": {"type": "uri", "value": URI}}]}}],
    },
    "qald-lcquad": {"uid": "1", "question": "Who?", "sparql_wikidata": "S", "answer": [URI], "solved_answer": [["A"]]},
    "lcquad2": {"id": "1", "question": "Who?", "sparql": "S", "ans": ["Ada"], "ans_id": ["Q7"], "answertype": "x"},
    "spinach": {"id": "1", "question": "Who?", "sparql": "SELECT", "title": "T", "url": "U"},
    "webqsp": {
        **{"QuestionId": "1", "RawQuestion": "Who?"},
        "Parses": [{"Answers": [{"AnswerType": "Entity", "AnswerArgument": "m.1", "EntityName": "Ada"}]}],
    },
    "cwq": {"ID": "1", "question": "Who?", "compositionality_type": "x", "answer": "Ada"},
    "grailqa": {
        **{"qid": 1, "question": "Who?", "level": "i.i.d."},
        "answer": [{"answer_type": "Entity", "answer_argument": "m.1", "entity_name": "Ada"}],
    },
    "pathquestion": {"question": "Who?", "answer": "ada_l(ada_l/b/)", "path": "x#y#ada_l"},
    "atomr": {"index": 0, "question_id": "1", "question": "Who?", "answers": ["Ada", "A."]},
    "blendqa": {"index": 0, "question": "Who?", "sub_q1": "A?", "sub_q2": "B?", "answers": ["Ada"], "type": "t"},
    "crag": {
        **{"interaction_id": "1", "query": "Who?", "answer": "Ada", "alternative_answers": '["A."]', "split": 1},
        **{"question_type": "simple", "search_results": [{"page_result": "<html>"}]},
    },
    "strategyqa": {"qid": "1", "question": "Who?", "answer": True, "term": "T", "decomposition": ["A?"]},
    "phantomwiki": {"id": "1", "question": "Who?", "answer": ["Ada", "Ben"], "prolog": {"query": []}, "type": 3},
    "triviaqa": {"question_id": "1", "question": "Who?", "answer": {"value": "Ada", "aliases": ["A."], "type": "x"}},
    "squad": {"id": "1", "question": "Who?", "context": "C", "answers": {"text": ["Ada"], "answer_start": [0]}},
    "kilt": {"id": "1", "input": "Who?", "output": [{"answer": "Ada"}, {"provenance": []}, {"answer": "A."}]},
    "drop": {"query_id": "1", "question": "Who?", "answer": {"number": "", "spans": ["Ada"], "date": {"year": ""}}},
    "frames": {"Unnamed: 0": 1, "Prompt": "Who?", "Answer": "Ada", "reasoning_types": "Tabular", "wiki_links": "['u']"},
    "popqa": {"id": 1, "question": "Who?", "prop": "p", "o_uri": URI, "possible_answers": '["Ada", "A."]'},
}
"""A record of each format; csv has its own tests."""


def write(folder: Path, *records: object, name: str = "q.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(map(json.dumps, records)), "utf-8")
    return file


def read_one(raw: Raw, language: str = "en") -> QuestionRecord:
    """The record in the one format that has its structure."""
    (name,) = list_claims(raw, QUESTION_FORMATS)
    return parse_record(QUESTION_FORMATS[name], raw, language)


def golds(raw: Raw, language: str = "en") -> list[Any]:
    """Each gold answer as (text, entity, *aliases)."""
    answers = read_one(raw, language).gold_answers
    return [(answer["text"], answer["entity"], *answer.get("aliases", ())) for answer in answers]


def change(form: str, **fields: Any) -> Raw:
    """The record of that format with other fields; ... removes a field."""
    return {name: value for name, value in {**RECORDS[form], **fields}.items() if value is not ...}


def test_every_format_but_csv_has_a_record_which_only_it_claims():
    assert {*RECORDS, "csv"} == QUESTION_FORMATS.keys()
    for form, raw in RECORDS.items():
        assert list_claims(raw, QUESTION_FORMATS) == [form]


def test_every_format_reads_its_record():
    ada, ada_with_alias = [("Ada", None)], [("Ada", None, "A.")]
    assert {form: golds(raw) for form, raw in RECORDS.items()} == {
        **{"jsonl": ada, "2wiki": ada, "hotpotqa": ada, "cwq": ada, "blendqa": ada, "strategyqa": [("yes", None)]},
        **{"musique": ada_with_alias, "atomr": ada_with_alias, "crag": ada_with_alias, "spinach": []},
        **{"mintaka": [("Ada", "Q7")], "compmix": [("Ada", "Q7")], "lcquad2": [("Ada", "Q7")]},
        **{"webqsp": [("Ada", "m.1")], "grailqa": [("Ada", "m.1")], "pathquestion": [("ada l", "ada_l", "b")]},
        **{"drop": ada, "frames": ada},
        **{"triviaqa": ada_with_alias, "squad": ada, "kilt": ada_with_alias, "popqa": [("Ada", "Q7", "A.")]},
        **{"qald": [("Q7", "Q7")], "qald-lcquad": [("A", "Q7")], "phantomwiki": [("Ada", None), ("Ben", None)]},
    }
    for form, raw in RECORDS.items():
        question = read_one(raw)
        assert question.text == "Who?"
        assert question.source_id == (None if form == "pathquestion" else "0" if form == "blendqa" else raw_id(raw))
    assert (read_one(RECORDS["crag"]).split, read_one(RECORDS["crag"]).kind) == ("test", "simple")
    assert "search_results" not in read_one(RECORDS["crag"]).details
    assert read_one(RECORDS["musique"]).details["paragraphs"] == [{"idx": 0, "title": "T", "is_supporting": True}]


def raw_id(raw: Raw) -> str:
    names = ("question_id", "query_id", "Unnamed: 0", "id", "_id", "uid", "qid", "QuestionId", "ID", "interaction_id")
    return str(next(raw[name] for name in names if name in raw))


def test_mintaka_chooses_labels_by_language_and_falls_back_to_english():
    assert (golds(RECORDS["mintaka"], "de"), read_one(RECORDS["mintaka"], "de").text) == ([("Adda", "Q7")], "Wer?")
    entity = {"name": "Q8", "label": {"en": "Ben"}}
    raw = change("mintaka", answer={"answerType": "entity", "answer": [entity], "mention": "Ben K."})
    assert golds(raw, "de") == [("Ben", "Q8", "Ben K.")]
    for answer, gold in (
        ({"answerType": "boolean", "answer": [False], "mention": "No"}, ("no", None)),
        ({"answerType": "numerical", "answer": [2.0], "mention": "two"}, ("2", None, "two")),
        ({"answerType": "date", "answer": ["1956-10-20"], "mention": "20-Oct-56"}, ("1956-10-20", None)),
        ({"answerType": "entity", "answer": None, "mention": "Decrease"}, ("Decrease", None)),
        ({"answerType": "entity", "answer": [{"name": "Q9", "label": None}], "mention": None}, ("Q9", "Q9")),
    ):
        assert golds(change("mintaka", answer=answer)) == [gold]
    assert golds(change("mintaka", answer={"answerType": "entity", "answer": None, "mention": None})) == []
    text = {"id": "1", "question": "Who?", "answerType": "string", "en_true_answer": "Ada", "fi_true_answer": "Aada"}
    assert (golds(text), golds(text, "fi")) == ([("Ada", None)], [("Aada", None)])


def test_qald_reads_every_value_of_every_variable_once():
    def term(kind: str, value: str) -> Raw:
        return {"type": kind, "value": value}

    rows = [
        {"a": term("uri", URI), "b": term("literal", "12")},
        {"a": term("uri", f"<{URI}>"), "b": term("typed-literal", "2001-02-03T00:00:00Z")},
        {"a": term("uri", "http://dbpedia.org/resource/S%C3%A3o_Paulo"), "b": term("literal", " ")},
        {"a": term("uri", "https://www.forbes.com")},
    ]
    assert golds(change("qald", answers=[{"results": {"bindings": rows}}, {"boolean": True}])) == [
        ("Q7", "Q7"),
        ("12", None),
        ("2001-02-03T00:00:00Z", None, "2001-02-03"),
        ("São Paulo", "http://dbpedia.org/resource/S%C3%A3o_Paulo"),
        ("https://www.forbes.com", None),
        ("yes", None),
    ]
    for answers in ([], [{"head": {}, "results": {"bindings": []}}], [{"head": {}, "results": {}}], None):
        question = read_one(change("qald", answers=answers))
        # No bindings and no answers differ in the details only.
        assert (question.gold_answers, question.details["answers"]) == ([], answers)
    assert golds(change("qald", answers=...)) == []


def test_languages_are_found_by_their_ranges():
    strings = [{"language": tag, "string": tag} for tag in ("en", "zh-CN", "pt_br", "zh-hant-TW", "fr", "de-AT")]
    strings += [{"language": "fr-CA", "string": " "}, {"string": "none"}, {"language": None, "string": "null"}]
    raw = change("qald", question=strings)
    asked = {"zh": "zh-CN", "zh-cn": "zh-CN", "ZH-Hant": "zh-hant-TW", "pt-BR": "pt_br", "pt": "pt_br", "de": "de-AT"}
    asked |= {"fr-CA": "fr", "en-GB": "en", "fr": "fr"}
    assert {language: read_one(raw, language).text for language in asked} == asked
    for language in ("ja", "de-CH", "z"):
        with pytest.raises(UnreadableRecord, match="no text in the language"):
            read_one(raw, language)
    entity = {"name": "Q8", "label": {"en": "Ben", "zh-cn": "Bo", "de": None}}
    answer = {"answerType": "entity", "answer": [entity]}
    mintaka = change("mintaka", answer=answer, translations={"zh-CN": "Wer?", "de": "Wer?"})
    assert [golds(mintaka, language) for language in ("zh", "de-DE")] == [[("Bo", "Q8")], [("Ben", "Q8")]]


def test_alternative_answers_are_names_of_one_answer_in_every_form_of_their_sets(tmp_path):
    own = {"Question": "Who?", "QuestionId": "1", "Answer": {"Value": "Ada", "Aliases": ["A.", "Ada"], "Type": "x"}}
    assert (golds(own), read_one(own).source_id) == ([("Ada", None, "A.")], "1")
    hidden = change("triviaqa", answer={"value": "<unk>", "aliases": [], "type": ""})
    spans = [{"text": "Ada", "answer_start": 3}, {"text": "Ada", "answer_start": 9}, {"text": "A.", "answer_start": 1}]
    assert golds(change("squad", answers=spans)) == [("Ada", None, "A.")]
    assert golds(hidden) == []
    assert golds(change("popqa", possible_answers=["Ada"], o_uri=...)) == [("Ada", None)]
    assert golds({"question": "Who?", "answer_0": "Ada", "answer_1": "A.", "answer_2": ""}) == [("Ada", None, "A.")]
    # The released files hold articles.
    qas = [{"id": str(n), "question": "Who?", "is_impossible": n == 2, "answers": spans[: 2 - n]} for n in (1, 2)]
    document = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "C", "qas": qas}]}]}
    one, two = open_question_file(write(tmp_path, document, name="q.json"))
    assert isinstance(one, QuestionRecord)
    assert isinstance(two, QuestionRecord)
    assert one.gold_answers == [{"text": "Ada", "entity": None}]
    assert find_gold_reason(two.gold_answers) == "not in the sources"
    assert (one.details["title"], one.details["context"]) == ("T", "C")
    table = tmp_path / "popQA.tsv"
    table.write_text('id\tquestion\tpossible_answers\tprop\n1\tWho?\t"[""Ada"", ""A.""]"\tp\n')
    reader = open_question_file(table)
    assert [record.gold_answers for record in reader.iter_records()] == [
        [{"text": "Ada", "entity": None, "aliases": ["A."]}]
    ]


def drop_answer(number: str = "", spans: tuple[str, ...] = (), **date: str) -> Raw:
    return {"number": number, "date": {"day": "", "month": "", "year": ""} | date, "spans": list(spans)}


def test_drop_has_numbers_days_and_spans_and_the_answers_of_others_are_names(tmp_path):
    others = [drop_answer("4"), drop_answer(spans=("four",)), drop_answer(spans=("x", "y"))]
    pairs = [
        {"query_id": "a", "question": "How many?", "answer": drop_answer("4"), "validated_answers": others},
        {"query_id": "b", "question": "When?", "answer": drop_answer(day="5", month="March", year="1931")},
        {"query_id": "c", "question": "Who?", "answer": drop_answer(spans=("Ada", "Ben", "Ada"))},
        {"query_id": "d", "question": "What year?", "answer": drop_answer(year="1931")},
        {"query_id": "e", "question": "Hidden?", "answer": drop_answer()},
    ]
    expected = [[("4", "four")], [("5 March 1931",)], [("Ada",), ("Ben",)], [("1931",)], []]
    document = {"nfl_1": {"passage": "P.", "qa_pairs": pairs[:3]}, "nfl_2": {"passage": "Q.", "qa_pairs": pairs[3:]}}
    files = {name: tmp_path / name for name in ("own.json", "indented.json", "hub.jsonl", "hub.parquet")}
    files["own.json"].write_text(json.dumps(document))
    files["indented.json"].write_text(json.dumps(document, indent=1))
    rows = [{"section_id": "nfl_1", "passage": "P."} | pair for pair in pairs]
    columns = [row | {"validated_answers": as_columns([list(a.values()) for a in others], *others[0])} for row in rows]
    files["hub.jsonl"].write_text("".join(f"{json.dumps(row)}\n" for row in [columns[0], *rows[1:]]))
    pq.write_table(pa.Table.from_pylist(rows), files["hub.parquet"])
    for file in files.values():
        records = list(open_question_file(file).iter_records())
        names = [[(gold["text"], *gold.get("aliases", ())) for gold in record.gold_answers] for record in records]
        assert names == expected, file
        assert [record.source_id for record in records] == list("abcde")
        assert (records[0].dataset, records[0].details["passage"]) == ("drop", "P.")
        assert records[0].details["section_id"] == "nfl_1"
    spans = {"query_id": "f", "question": "Who?", "answers_spans": {"spans": ["Ada", "Ben"], "types": ["span", "span"]}}
    assert golds(spans) == [("Ada", None), ("Ben", None)]


def test_frames_and_sets_with_other_names_of_columns_are_read_from_every_layout(tmp_path):
    table = tmp_path / "test.tsv"
    table.write_text(
        "\tPrompt\tAnswer\twikipedia_link_1\treasoning_types\twiki_links\n"
        "0\tWho?\tAda | Ben\thttps://a\tNumerical reasoning | Tabular reasoning\t\"['https://a']\"\n"
    )
    parquet = tmp_path / "frames.parquet"
    row = {"Unnamed: 0": 0, "Prompt": "Who?", "Answer": "Ada | Ben", "wikipedia_link_1": "https://a"}
    pq.write_table(
        pa.Table.from_pylist([row | {"reasoning_types": "Numerical reasoning | Tabular reasoning"}]), parquet
    )
    for file in (table, parquet):
        (record,) = open_question_file(file).iter_records()
        assert (record.source_id, record.text, record.dataset) == ("0", "Who?", "frames")
        assert record.gold_answers == [{"text": "Ada | Ben", "entity": None}]
        assert record.kind == "Numerical reasoning | Tabular reasoning"
        assert record.details["wikipedia_link_1"] == "https://a"
    simple = tmp_path / "simpleqa.csv"
    simple.write_text("metadata,problem,answer\n\"{'topic': 'x'}\",Who?,Ada\n")
    (record,) = open_question_file(simple).iter_records()
    assert (record.text, record.gold_answers[0]["text"], record.details) == (
        "Who?",
        "Ada",
        {"metadata": "{'topic': 'x'}"},
    )
    assert golds({"id": "1", "question": "Who?", "golden_answers": ["Ada", "A."]}) == [("Ada", None, "A.")]
    assert golds({"Question": "Who?", "Answers": ["Ada", "Ben"]}) == [("Ada", None), ("Ben", None)]
    by_id = write(
        tmp_path, {"q1": {"question": "Who?", "answer": "Ada"}, "q2": {"question": "When?", "answer": "1931"}}
    )
    assert [(r.source_id, r.text) for r in open_question_file(by_id).iter_records()] == [
        ("q1", "Who?"),
        ("q2", "When?"),
    ]


HOPS = [["Riverton", "founder", "Ida"], ["Ida", "father", "Tom"]]
PARAGRAPHS = [["Riverton", ["It is a town.", "It is old."]], ["Ida", ["She is."]]]
FACTS = [["Riverton", 0], ["Ida", 0]]


def as_columns(rows: list[list[Any]], *names: str) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def as_objects(rows: list[list[Any]], *names: str) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", ["lists", "columns", "columns in another order", "objects", "text", "text of columns"])
@pytest.mark.parametrize("is_parquet", [False, True])
def test_columns_of_the_hub_have_the_hops_facts_and_paragraphs_of_the_published_files(tmp_path, form, is_parquet):
    names = {"evidences": ("fact", "relation", "entity"), "supporting_facts": ("title", "sent_id")}
    names |= {"context": ("title", "sentences")}
    rows: dict[str, list[Any]] = {"evidences": HOPS, "supporting_facts": FACTS, "context": PARAGRAPHS}
    forms: dict[str, Callable[[list[Any], tuple[str, ...]], Any]] = {
        "lists": lambda values, _: values,
        "columns": lambda values, fields: as_columns(values, *fields),
        "columns in another order": lambda values, fields: dict(sorted(as_columns(values, *fields).items())),
        "objects": lambda values, fields: as_objects(values, *fields),
        "text": lambda values, _: json.dumps(values),
        "text of columns": lambda values, fields: json.dumps(as_columns(values, *fields)),
    }
    raw = {"id": "1", "question": "Who?", "type": "compositional", "answer": "Tom"}
    raw |= {name: forms[form](values, names[name]) for name, values in rows.items()}
    raws = [raw, {name: value for name, value in raw.items() if name != "evidences"} | {"type": "bridge", "id": "2"}]
    if is_parquet and form == "lists":
        # Arrow has no lists of a text and a number.
        raws = [{name: value for name, value in raw.items() if name == "evidences" or name not in rows} for raw in raws]
    for record in raws:
        if is_parquet:
            file = tmp_path / "train-00000-of-00001.parquet"
            pq.write_table(pa.Table.from_pylist([record]), file)
        else:
            file = write(tmp_path, record)
        (question,) = open_question_file(file)
        assert isinstance(question, QuestionRecord)
        has_hops = "evidences" in record
        assert question.dataset == ("2wikimultihopqa" if has_hops else "hotpotqa")
        ends = [(hop["subject"], hop["relation"], hop["object"]) for hop in question.decomposition]
        assert ends == (list(map(tuple, HOPS)) if has_hops else [])
        if "supporting_facts" in record:
            assert question.details["supporting_facts"] == FACTS
    if not is_parquet:
        articles = list(read_articles(write(tmp_path, raw, name="articles.jsonl")))
        assert [[article.title, list(article.sentences)] for article in articles] == PARAGRAPHS


def test_musique_is_read_from_parquet_and_from_columns(tmp_path):
    paragraphs = [{"idx": n, "title": f"T{n}", "paragraph_text": "Long.", "is_supporting": n == 0} for n in range(2)]
    steps = [{"id": 1, "question": "a", "answer": "b"}, {"id": 2, "question": "c", "answer": "d"}]
    lists = change("musique", paragraphs=paragraphs, question_decomposition=steps)
    turned = {
        name: {key: [row[key] for row in lists[name]] for key in lists[name][0]}
        for name in ("paragraphs", "question_decomposition")
    }
    expected = read_one(lists)
    assert expected.details["question_decomposition"] == steps
    assert read_one(lists | turned) == expected
    file = tmp_path / "q.parquet"
    pq.write_table(pa.Table.from_pylist([lists | turned, lists | turned | {"answer": None}]), file)
    one, two = open_question_file(file)
    assert one == expected
    # Arrow fills in null for a field that a row lacks.
    assert isinstance(two, QuestionRecord)
    assert two.gold_answers == []


def test_nulls_nan_and_bytes_of_parquet_are_absent(tmp_path):
    file = tmp_path / "q.parquet"
    answers = [{"boolean": None, "results": {"bindings": [{"a": {"type": "uri", "value": URI}, "b": None}]}}]
    rows = [change("qald", answers=answers), change("qald", answers=[{"boolean": True, "results": None}])]
    extra = {"score": float("nan"), "image": b"x", "at": datetime(2024, 5, 1, tzinfo=UTC)}
    pq.write_table(pa.Table.from_pylist([row | extra for row in rows]), file)
    one, two = open_question_file(file).iter_records()
    assert [gold["text"] for question in (one, two) for gold in question.gold_answers] == ["Q7", "yes"]
    assert (one.details["at"], "score" in one.details, "image" in one.details) == (
        "2024-05-01T00:00:00+00:00",
        False,
        False,
    )


def test_webqsp_takes_the_first_complete_parse_with_answers_and_has_all_in_its_details():
    def parse(name: str | None, quality: str) -> Raw:
        answers = [{"AnswerType": "Value", "AnswerArgument": name, "EntityName": None}] if name else []
        return {"AnnotatorComment": {"ParseQuality": quality, "QuestionQuality": "Good"}, "Answers": answers}

    parses = [parse("poor", "Partial"), parse(None, "Complete"), parse("first", "Complete"), parse("no", "Complete")]
    question = read_one(change("webqsp", Parses=parses))
    assert question.gold_answers == [{"text": "first", "entity": None}]
    assert question.details["Parses"] == parses
    assert golds(change("webqsp", Parses=parses[:2])) == [("poor", None)]
    assert golds(change("webqsp", Parses=parses[1:2])) == golds(change("webqsp", Parses=[])) == []


def test_other_published_variants_are_read():
    answers = [{"answer": "Ada", "answer_id": "m.1", "aliases": ["A.", "Ada"]}, {"answer": None, "answer_id": "m.2"}]
    assert golds(change("cwq", answer=..., answers=answers)) == [("Ada", "m.1", "A."), ("m.2", "m.2")]
    assert golds(change("crag", alternative_answers=..., alt_ans=["A.", 3])) == [("Ada", None, "A.", "3")]
    assert golds(change("lcquad2", ans=["True"], ans_id=[None], answertype="boolean")) == [("yes", None)]
    original = {"uid": 5, "NNQT_question": "{who}", "question": None, "sparql_wikidata": "S", "template": "T"}
    assert (read_one(original).text, read_one(original).source_id, golds(original)) == ("{who}", "5", [])
    date = {"id": "1997-01-01T00:00:00Z", "label": "1997"}
    assert golds(change("compmix", answers=[date, {"id": "Q1", "label": "B\\u00E9"}])) == [("1997", None), ("Bé", "Q1")]
    assert golds(change("compmix", answer_text="Ada L.")) == [("Ada", "Q7", "Ada L.")]
    assert golds({"index": 3, "question": "Who?", "predicted": "Ben", "gold": ["Ada"]}) == [("Ada", None)]


def test_questions_of_test_splits_have_no_gold_answers():
    paragraphs = RECORDS["musique"]["paragraphs"]
    for raw in (
        {"_id": "1", "question": "Who?", "context": [["T", ["A."]]]},
        change("2wiki", answer="", evidences=[]),
        {"id": "2hop__1_2", "question": "Who?", "paragraphs": paragraphs},
        change("grailqa", answer=..., s_expression=""),
        change("crag", answer=None),
        change("atomr", answers=[]),
    ):
        assert golds(raw) == []


BROKEN: list[tuple[str, Raw, str]] = [
    ("musique", {"paragraphs": ["x"]}, "the list 'paragraphs' contains a text"),
    ("musique", {"answer": ["x"]}, "the field 'answer' is a list, not a text"),
    ("mintaka", {"answer": {"answerType": "entity", "answer": "x"}}, "the field 'answer' is a text, not a list"),
    ("mintaka", {"answer": {"answerType": "entity", "answer": [{}]}}, "neither a label nor a name"),
    ("mintaka", {"answer": {"answerType": "date", "answer": [None]}}, "an answer is null, not a text or a number"),
    ("mintaka", {"answer": 3}, "not an object with 'answerType' and 'answer'"),
    ("compmix", {"answers": [{"id": "Q1", "label": " "}]}, "an answer is blank"),
    ("compmix", {"answers": "Ada"}, "the field 'answers' is a text, not a list"),
    ("qald", {"question": [{"language": "fr", "string": "Qui ?"}]}, "the question has no text in the language 'en'"),
    ("qald", {"answers": [{"head": {}}]}, "neither 'boolean' nor 'results' with 'bindings'"),
    ("qald", {"answers": [{"boolean": "true"}]}, "a 'boolean' answer is neither true nor false"),
    ("qald", {"answers": [{"results": {"bindings": [{"a": "x"}]}}]}, "not an object with 'type' and 'value'"),
    ("qald-lcquad", {"solved_answer": []}, "'answer' and 'solved_answer' differ in length"),
    ("qald-lcquad", {"solved_answer": [[1]]}, "the names of an answer are not texts"),
    ("lcquad2", {"ans_id": []}, "'ans' and 'ans_id' differ in length"),
    ("lcquad2", {"ans": [None]}, "the list 'ans' contains null"),
    ("spinach", {"sparql": " "}, "the field 'sparql' is blank"),
    ("webqsp", {"Parses": [{"Answers": None}]}, "the field 'Answers' is null, not a list"),
    ("webqsp", {"Parses": [{"Answers": [{"AnswerType": "Entity"}]}]}, "an answer has neither a name nor a value"),
    ("cwq", {"answer": {"text": "x"}}, "an answer has neither a name nor a value"),
    ("grailqa", {"answer": [{"entity_name": None}]}, "an answer has neither a name nor a value"),
    ("pathquestion", {"answer": "ada"}, "not a name with its alternatives"),
    ("atomr", {"answers": [{"text": "x"}]}, "the list 'answers' contains an object"),
    ("blendqa", {"answers": [" "]}, "an answer is blank"),
    ("crag", {"alternative_answers": "['x']"}, "the alternative answers are not a list"),
    ("crag", {"alternative_answers": {"a": 1}}, "the alternative answers are an object, not a list"),
    ("strategyqa", {"answer": "yes"}, "the field 'answer' is a text, not true or false"),
    ("phantomwiki", {"answer": "Ada"}, "the field 'answer' is a text, not a list"),
    ("triviaqa", {"answer": {"value": "Ada", "aliases": [3]}}, "the list 'aliases' contains a number"),
    ("triviaqa", {"answer": {"value": ["Ada"], "aliases": []}}, "an answer is a list"),
    ("drop", {"answer": "Ada"}, "an answer is not an object with 'number', 'date' and 'spans'"),
    ("frames", {"Answer": {"text": "Ada"}}, "an answer is an object"),
    ("squad", {"answers": ["Ada"]}, "not objects with 'text' and 'answer_start'"),
    ("kilt", {"output": ["Ada"]}, "the list 'output' contains a text"),
    ("popqa", {"possible_answers": "Ada"}, "the field 'possible_answers' is a text, not a list"),
]


@pytest.mark.parametrize("form", sorted(RECORDS))
def test_broken_records_are_counted_by_reason_with_the_first_position_and_the_others_are_read(tmp_path, form):
    text_name = {"webqsp": "RawQuestion", "crag": "query", "kilt": "input", "frames": "Prompt"}.get(form, "question")
    broken = [change(form, **fields) for name, fields, _ in BROKEN if name == form]
    reasons = [reason for name, _, reason in BROKEN if name == form]
    file = write(tmp_path, RECORDS[form], 3, *broken, change(form, **{text_name: ...}), RECORDS[form], None, 4)
    survey = open_question_file(file, form).survey()
    assert survey.questions == 2
    counts = [(unread.count, unread.first.place) for unread in survey.unread.values()]
    assert counts[0] == (2, "line 2")
    assert [place for _, place in counts[1:-1]] == [f"line {line}" for line in range(3, 4 + len(broken))]
    unread = list(survey.unread)
    assert [reason in text for reason, text in zip(reasons, unread[1:], strict=False)] == [True] * len(reasons)
    # The record without a question is the one before the last reason.
    assert "question" in unread[-2] or text_name.lower() in unread[-2].lower()
    assert unread[-1] == "a JSON object is required, not null"
    assert open_question_file(file).survey() == survey


UNLIKE: list[Any] = [
    *[10**400, "²", "9" * 5_000, "1e999", "\0", "\ud800"],
    *[None, True, 5, -1.5, 10**30, "", " ", "x", [], [None], [5], ["a"], [[]], [{}], {}, {"id": 1}, {"text": None}],
    ...,
]
"""Values that stand where a format expects others; ... for a field that is missing."""


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value in a record, at any depth."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from list_places(value[key], (*path, key))


def put(raw: Raw, path: tuple[Any, ...], value: Any) -> Raw:
    """The record with another value at a place."""
    changed = copy.deepcopy(raw)
    place: Any = reduce(getitem, path[:-1], changed)
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


# The fields of the two other kinds of an answer of DROP, which the record has not.
ALSO_TRIED = [
    ("drop", put(RECORDS["drop"], ("answer",), {"number": "", "spans": [], "date": {"day": "5", "month": "May"}})),
    ("frames", put(RECORDS["frames"], ("Answer",), ["a", "b"])),
]


@pytest.mark.parametrize(("form", "record"), [*RECORDS.items(), *ALSO_TRIED])
def test_a_record_with_any_other_value_at_any_place_is_read_or_has_a_reason(form, record):
    for raw in (put(record, path, value) for path in list_places(record) for value in UNLIKE):
        for name in {form, *list_claims(raw, QUESTION_FORMATS)}:
            try:
                question = parse_record(QUESTION_FORMATS[name], raw, "en")
            except UnreadableRecord as error:
                assert str(error)  # noqa: PT017 - being read and having a reason are both right
            else:
                assert question.text.strip()
                assert all(gold["text"].strip() and gold["entity"] != "" for gold in question.gold_answers)
                assert all(
                    isinstance(alias, str) for gold in question.gold_answers for alias in gold.get("aliases", ())
                )


LAYOUTS: dict[str, Callable[[list[Raw]], str]] = {
    "lines": lambda raws: "\n\n".join(map(json.dumps, raws)) + "\n",
    "list": json.dumps,
    "indented list": lambda raws: json.dumps(raws, indent=2),
    "document": lambda raws: json.dumps({"dataset": {"id": "x"}, "questions": raws}),
    "indented document": lambda raws: json.dumps({"Version": "1.0", "Questions": raws}, indent=1),
    "document of a record a line": lambda raws: '{"questions": [\n' + ",\n".join(map(json.dumps, raws)) + "\n]}",
    "byte order mark": lambda raws: "\ufeff" + json.dumps(raws),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_every_layout_has_the_same_questions(tmp_path, layout, is_compressed, number):
    raws = [change("qald", id=position) for position in range(number)]
    content = LAYOUTS[layout](raws).encode()
    file = tmp_path / ("q.json.gz" if is_compressed else "q.json")
    file.write_bytes(gzip.compress(content) if is_compressed else content)
    reader = open_question_file(file)
    assert reader.form.name == "qald"
    assert list(reader) == list(reader) == [read_one(raw) for raw in raws]


def test_records_of_a_document_are_counted_from_one(tmp_path):
    file = write(tmp_path, [RECORDS["cwq"], 3, change("cwq", question=" ")])
    assert [record.place for record in open_question_file(file) if isinstance(record, UnreadRecord)] == [
        "record 2",
        "record 3",
    ]


def test_a_line_that_is_no_json_or_no_text_is_passed_over_wherever_it_is(tmp_path):
    good = json.dumps(RECORDS["crag"]).encode()
    file = tmp_path / "q.jsonl"
    file.write_bytes(b'{"query": \n' + good + b"\n\xff\n" + good + b'\n{"query": "W')
    survey = open_question_file(file).survey()
    assert (survey.format_name, survey.questions) == ("crag", 2)
    assert [unread.first.place for unread in survey.unread.values()] == ["line 1", "line 3", "line 5"]


def test_a_truncated_archive_is_refused(tmp_path):
    file = tmp_path / "q.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n".join([json.dumps(RECORDS["cwq"]).encode()] * 5000))[:-20])
    with pytest.raises(MalformedFile, match="cannot be decompressed"):
        open_question_file(file).survey()


def test_a_file_that_is_only_named_like_an_archive_is_refused(tmp_path):
    with pytest.raises(MalformedFile, match="cannot be decompressed"):
        open_question_file(write(tmp_path, RECORDS["cwq"], name="q.json.gz"))


def test_a_csv_file_may_have_any_name_and_rows_that_cannot_be_read(tmp_path):
    file = tmp_path / "table.txt"
    file.write_text("id,question,answer\n1,Who?,Ada|Ben\n2,When?\n3,,x\n")
    survey = open_question_file(file, "csv").survey()
    assert (survey.questions, survey.with_several) == (1, 1)
    assert [(reason, unread.first.place) for reason, unread in survey.unread.items()] == [
        ("2 cells under 3 columns", "line 3"),
        ("the field 'question' is missing", "line 4"),
    ]


def test_a_mixture_of_formats_is_refused_until_one_is_chosen(tmp_path):
    file = write(tmp_path, RECORDS["cwq"], RECORDS["grailqa"])
    with pytest.raises(UnknownQuestionFormat, match=r"several formats \(cwq, grailqa\)"):
        open_question_file(file)
    survey = open_question_file(file, "cwq").survey()
    assert (survey.questions, [unread.first.place for unread in survey.unread.values()]) == (1, ["line 2"])


def test_a_broken_first_record_does_not_hide_the_format(tmp_path):
    file = write(tmp_path, {"x": 1}, *[RECORDS["musique"]] * 3)
    survey = open_question_file(file).survey()
    assert (survey.format_name, survey.questions, len(survey.unread)) == ("musique", 3, 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[1, 2]", "it holds no JSON object; record 1: a number"),
        ("[]", "the file holds no question"),
        ("", "the file holds no question"),
        ('{\n"a": 1\n}', "a list of questions is required, or an object with one; it is an object with 'a' (a number)"),
        ('{"questions": []}', "the file holds no question"),
        ("Who is it?\nAda", "invalid JSON"),
    ],
)
def test_a_file_without_records_is_refused_with_what_it_holds(tmp_path, content, reason):
    file = tmp_path / "q.json"
    file.write_text(content)
    with pytest.raises(WorldError) as refused:
        open_question_file(file)
    assert reason in str(refused.value)


def test_a_language_is_refused_for_a_format_that_has_none(tmp_path):
    with pytest.raises(UnknownQuestionFormat, match=r"format cwq.*mintaka, qald\."):
        open_question_file(write(tmp_path, RECORDS["cwq"]), language="de")


def test_lines_are_not_held_in_memory(tmp_path):
    file = tmp_path / "big.jsonl"
    record = change("musique", paragraphs=[{"idx": 0, "paragraph_text": "x" * 4000}])
    file.write_text((json.dumps(record) + "\n") * 5000)
    tracemalloc.start()
    survey = open_question_file(file).survey()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert survey.questions == 5000
    assert peak < file.stat().st_size / 20
