"""Question files: what is read, what is kept, and how a malformed one is refused."""

import csv
import gzip
import io
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.datasets import QUESTION_FORMATS, UnknownQuestionFormat, read_questions
from bench.datasets.record import QuestionRecord
from worlds.generator import generate
from worlds.importers.files import MalformedFile

MULTIHOP = {
    "_id": "a1",
    "type": "compositional",
    "question": "Who is the mother of the founder of Port Iver?",
    "answer": "Mara Holt",
    "answer_id": "Q7",
    "context": [["Port Iver", ["A port."]]],
    "supporting_facts": [["Port Iver", 0]],
    "evidences": [["Port Iver", "founded by", "Jon Holt"], ["Jon Holt", "mother", "Mara Holt"]],
    "evidences_id": [],
}


def file_with(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def answers(record: QuestionRecord) -> list[tuple[str, str | None]]:
    return [(answer["text"], answer["entity"]) for answer in record.gold_answers]


def test_the_real_questions_keep_their_hops_ids_and_what_they_need(shared_data):
    source = shared_data / "world_2wiki" / "questions_300.json"
    raw = json.loads(source.read_text(encoding="utf-8"))
    found = read_questions(source)
    assert [record.text for record in found] == [record["question"].strip() for record in raw]
    for record, given_ in zip(found, raw, strict=True):
        assert (record.source_id, record.kind, record.dataset) == (given_["_id"], given_["type"], "2wikimultihopqa")
        assert answers(record) == [(given_["answer"], given_["answer_id"] or None)]
        assert record.details == {"needs": given_["needs"], "gold_titles": given_["gold_titles"]}
        ends = [(hop["subject_id"], hop["pid"], hop["object_id"]) for hop in record.decomposition]
        assert ends == [(hop["subject_qid"], hop["pid"], hop["object_qid"]) for hop in given_["hops"]]
    assert sum(record.details["needs"] == "hybrid" for record in found) == 174


@pytest.mark.parametrize(
    ("file", "dataset"),
    [
        ("2wikimultihopqa/2wiki_dev_300.json", "2wikimultihopqa"),
        ("hotpotqa/hotpot_dev_distractor_300.json", "hotpotqa"),
    ],
)
def test_the_paragraphs_of_a_question_file_are_left_to_the_world(shared_data, file, dataset):
    found = read_questions(shared_data / file)
    assert len(found) == 300
    assert {record.dataset for record in found} == {dataset}
    assert all("context" not in record.details and record.details["supporting_facts"] for record in found)


def test_evidences_are_hops_and_are_kept_as_they_were(tmp_path):
    (record,) = read_questions(file_with(tmp_path, "q.json", json.dumps([MULTIHOP])))
    told = [(hop["subject"], hop["relation"], hop["object"]) for hop in record.decomposition]
    assert told == [tuple(evidence) for evidence in MULTIHOP["evidences"]]
    assert record.details["evidences"] == MULTIHOP["evidences"]
    assert answers(record) == [("Mara Holt", "Q7")]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"answer": "Cork"}, [("Cork", None)]),
        ({"answers": ["Cork", "Kerry"]}, [("Cork", None), ("Kerry", None)]),
        ({"answer": [{"text": "Cork", "entity": "Q36647"}]}, [("Cork", "Q36647")]),
        ({"answer": {"text": "Cork", "id": "Q36647"}}, [("Cork", "Q36647")]),
        ({"answer": True}, [("yes", None)]),
        ({"answer": 3}, [("3", None)]),
        ({"answer": None}, []),
        ({}, []),
    ],
)
def test_answers_come_as_a_text_a_list_or_objects(tmp_path, given_, expected):
    (record,) = read_questions(file_with(tmp_path, "q.jsonl", json.dumps({"question": "Where?", **given_})))
    assert answers(record) == expected


def test_other_fields_become_details_and_known_ones_their_own(tmp_path):
    line = {"text": "Where?", "id": 7, "split": "dev", "kind": "place", "level": "hard", "decomposition": ["Who?"]}
    (record,) = read_questions(file_with(tmp_path, "q.jsonl", json.dumps(line)))
    assert (record.text, record.source_id, record.split, record.kind) == ("Where?", "7", "dev", "place")
    assert record.details == {"level": "hard", "decomposition": ["Who?"]}


def test_generated_questions_written_as_lines_are_read_back(tmp_path):
    made = generate(20, 5).questions
    lines = [{**asdict(question), **question.details} for question in made]
    for line in lines:
        del line["details"]
    found = read_questions(file_with(tmp_path, "q.jsonl", "\n".join(map(json.dumps, lines))))
    assert [asdict(record) for record in found] == [asdict(question) for question in made]


cells = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)
answer_cells = st.lists(cells.filter(lambda text: "|" not in text), min_size=1, max_size=4)


@given(st.lists(st.tuples(cells, answer_cells), min_size=1, max_size=5))
def test_a_csv_file_is_read_back_as_it_was_written(tmp_path_factory, rows):
    written = io.StringIO()
    csv.writer(written).writerows([("question", "answer"), *((text, "|".join(told)) for text, told in rows)])
    file = file_with(tmp_path_factory.mktemp("csv"), "q.csv", written.getvalue())
    found = [(record.text, [text for text, _ in answers(record)]) for record in read_questions(file)]
    assert found == [(text.strip(), [each.strip() for each in told]) for text, told in rows]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["q.jsonl", "q.csv"])
def test_a_byte_order_mark_windows_line_ends_and_gzip_make_no_difference(tmp_path, name, packed):
    text = (
        'question,answer\r\n"Where, exactly?",Cork|Kerry\r\n'
        if name.endswith("csv")
        else '{"question": "Where, exactly?", "answer": ["Cork", "Kerry"]}\r\n\r\n'
    )
    content = b"\xef\xbb\xbf" + text.encode()
    file = file_with(tmp_path, name + (".gz" if packed else ""), gzip.compress(content) if packed else content)
    (record,) = read_questions(file)
    assert (record.text, answers(record)) == ("Where, exactly?", [("Cork", None), ("Kerry", None)])


GOOD = '{"question": "Who?", "answer": "Ada"}\n'


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"question": "Who?"', "no JSON"),
        ("[1, 2]", "a JSON object is needed"),
        ('{"answer": "Ada"}', "'question' is missing"),
        ('{"question": "  "}', "'question' is blank"),
        ('{"question": 5}', "not a text"),
        ('{"question": "Who?", "answer": ""}', "an answer is blank"),
        ('{"question": "Who?", "answer": [["Ada"]]}', "no text, number, or object"),
        ('{"question": "Who?", "score": NaN}', "NaN"),
        ('{"question": "Who\\ud800?"}', "surrogate"),
        ('{"question": "Who?", "split": 4}', "'split'"),
    ],
)
def test_a_malformed_line_stops_the_reading_with_file_line_and_reason(tmp_path, bad, reason):
    file = file_with(tmp_path, "q.jsonl", GOOD + bad + "\n" + GOOD)
    with pytest.raises(MalformedFile) as refused:
        read_questions(file)
    assert (refused.value.file, refused.value.line) == (file, 2)
    assert reason in str(refused.value)
    assert f"{file}, line 2" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("who,answer\nAda,1\n", 1, "no column is called question or text"),
        ("question,question\nA,B\n", 1, "same name"),
        ("question,answer\nWho?,Ada\nWho?\n", 3, "1 cells under 2 columns"),
        ("question,answer\n,Ada\n", 2, "'question' is missing"),
        ('question,answer\n"Who?,Ada\n', None, "no CSV"),
    ],
)
def test_a_malformed_table_names_its_line(tmp_path, content, line, reason):
    with pytest.raises(MalformedFile) as refused:
        read_questions(file_with(tmp_path, "q.csv", content))
    assert reason in str(refused.value)
    if line is not None:
        assert refused.value.line == line


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": None}, "no text under 'answer'"),
        ({"question": ""}, "no text under 'question'"),
        ({"hops": "two"}, "'hops'"),
        ({"evidences": [["only", "two"]]}, "evidence"),
    ],
)
def test_a_malformed_record_of_a_list_is_named_by_its_place(tmp_path, change, reason):
    file = file_with(tmp_path, "q.json", json.dumps([MULTIHOP, {**MULTIHOP, **change}]))
    with pytest.raises(MalformedFile, match="record 2") as refused:
        read_questions(file)
    assert reason in str(refused.value)


@given(st.binary(max_size=300), st.sampled_from(["q.jsonl", "q.csv", "q.json", "q.jsonl.gz"]))
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory, content, name):
    try:
        found = read_questions(file_with(tmp_path_factory.mktemp("any"), name, content))
    except MalformedFile:
        return
    assert all(record.text.strip() for record in found)


def test_a_file_without_questions_and_a_missing_file_are_errors(tmp_path):
    with pytest.raises(MalformedFile, match="holds no question"):
        read_questions(file_with(tmp_path, "q.jsonl", "\n\n"))
    with pytest.raises(MalformedFile, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(UnknownQuestionFormat) as refused:
        read_questions(file_with(tmp_path, "q.jsonl", GOOD), "tables")
    assert all(name in str(refused.value) for name in QUESTION_FORMATS)
