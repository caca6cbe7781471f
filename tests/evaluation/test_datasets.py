"""Layouts of question files, the plain formats, the multihop ones, and the errors of malformed files."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets import QUESTION_FORMATS, open_question_file, read_questions
from showhow.evaluation.datasets.reader import UnknownQuestionFormat, UnreadRecord
from showhow.evaluation.datasets.record import Fields, QuestionFormat, require_text
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile
from tests.cli_help import option_help
from tests.examples import examples

REAL = {
    "world_2wiki/questions_300.json": (300, "2wikimultihopqa"),
    "2wikimultihopqa/2wiki_dev_300.json": (300, "2wikimultihopqa"),
    "2wikimultihopqa/2wiki_train_200.json": (200, "2wikimultihopqa"),
    "hotpotqa/hotpot_dev_distractor_300.json": (300, "hotpotqa"),
    "hotpotqa/hotpot_dev_v1_simplified_500.json": (500, "hotpotqa"),
}
HOP = {"subject", "subject_id", "relation", "pid", "object", "object_id"}

in_any_file = settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "entity"]), inner),
    max_leaves=6,
)


@pytest.fixture
def file_of(tmp_path):
    """A file with these contents."""

    def make(content: str | bytes, name: str) -> Path:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return make


def is_refused_by_name_or_read(file: Path, form: str = "auto") -> None:
    try:
        reader = open_question_file(file, form)
        records = list(reader)
    except WorldError as refused:
        assert str(file) in str(refused)  # noqa: PT017 - being refused and being read are both right
        return
    for record in records:
        if isinstance(record, UnreadRecord):
            assert record.reason
            assert record.position >= 1
            continue
        assert record.text.strip()
        assert all(answer["text"].strip() for answer in record.gold_answers)
        assert all(answer["entity"] is None or answer["entity"] for answer in record.gold_answers)
        json.dumps(record.details).encode()


@pytest.mark.parametrize("file", REAL)
def test_questions_of_a_published_file_keep_text_answer_kind_and_hops(shared_data, file):
    number, dataset = REAL[file]
    records = json.loads((shared_data / file).read_text(encoding="utf-8"))
    questions = read_questions(shared_data / file)
    assert len(questions) == len(records) == number
    assert {question.dataset for question in questions} == {dataset}
    for question, record in zip(questions, records, strict=True):
        assert question.text == record["question"].strip()
        assert question.kind == record["type"]
        assert question.source_id == record.get("_id")
        assert question.gold_answers == [{"text": record["answer"].strip(), "entity": record.get("answer_id") or None}]
        assert len(question.decomposition) == len(record.get("hops") or record.get("evidences") or [])
        assert all(set(hop) >= HOP for hop in question.decomposition)
        assert "context" not in question.details


def test_hops_have_ids_and_sources(shared_data):
    first = read_questions(shared_data / "world_2wiki" / "questions_300.json")[0]
    assert [(hop["subject_id"], hop["pid"], hop["object_id"]) for hop in first.decomposition] == [
        ("Q5079445", "P22", "Q18120934"),
        ("Q18120934", "P119", "Q36647"),
    ]
    assert first.details["needs"] == "kg"
    assert first.details["gold_titles"] == ["Charles Mathew", "James Charles Mathew"]


@pytest.mark.parametrize("form", ["2wiki", "hotpotqa"])
def test_both_names_of_the_multihop_format_read_the_same(shared_data, form):
    file = shared_data / "hotpotqa" / "hotpot_dev_distractor_300.json"
    assert read_questions(file, form) == read_questions(file)


def test_json_lines_are_read_with_any_common_field_names(file_of):
    lines = [
        {"question": " Who? ", "answer": "Ada", "id": 7, "level": "hard"},
        {"text": "When?", "answers": ["1931", 1932, {"text": "1933", "entity": "Q1"}], "_id": "x", "kind": "date"},
        {"question": "Is it?", "answer": True, "dataset": "own", "split": "dev"},
        {"question": "What?"},
    ]
    file = file_of("\n\n".join(map(json.dumps, lines)), "q.jsonl")
    one, two, three, four = read_questions(file)
    assert one == QuestionRecord("Who?", "7", gold_answers=[{"text": "Ada", "entity": None}], details={"level": "hard"})
    assert [answer["text"] for answer in two.gold_answers] == ["1931", "1932", "1933"]
    assert [answer["entity"] for answer in two.gold_answers] == [None, None, "Q1"]
    assert (two.source_id, two.kind) == ("x", "date")
    assert (three.gold_answers[0]["text"], three.dataset, three.split) == ("yes", "own", "dev")
    assert four == QuestionRecord("What?")


def test_a_decomposition_into_hops_is_stored_and_one_into_questions_stays_in_the_details(file_of):
    hop = dict.fromkeys(HOP, "x")
    lines = [{"question": "A?", "decomposition": [hop]}, {"question": "B?", "decomposition": ["C?", "D?"]}]
    one, two = read_questions(file_of("\n".join(map(json.dumps, lines)), "q.jsonl"))
    assert (one.decomposition, one.details) == ([hop], {})
    assert (two.decomposition, two.details) == ([], {"decomposition": ["C?", "D?"]})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["q.csv", "q.csv.gz"])
def test_csv_has_a_header_quoted_cells_and_several_answers(file_of, end, name):
    rows = ["\ufeffID,Question,Answers,Level", '1,"Who, then?",Ada | Bram,', '2,"Say ""hi""?",,3', ""]
    content = end.join(rows).encode()
    one, two = read_questions(file_of(gzip.compress(content) if name.endswith(".gz") else content, name))
    assert (one.text, one.source_id, one.details) == ("Who, then?", "1", {})
    assert [answer["text"] for answer in one.gold_answers] == ["Ada", "Bram"]
    assert (two.text, two.gold_answers, two.details) == ('Say "hi"?', [], {"level": "3"})


def test_a_csv_cell_may_contain_line_ends(file_of):
    (question,) = read_questions(file_of('question,answer\n"Who\nwas\n\nit?",Ada\n', "q.csv"))
    assert question.text == "Who\nwas\n\nit?"


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("id,answer\n1,Ada\n", 1, "no column is called question or text"),
        ("question,question\nA?,B?\n", 1, "two columns have the same name"),
        ("question,answer\nA?,x\nB?\n", 3, "1 cells under 2 columns"),
        ("question,answer\n\n\nA?,x,y\n", 4, "3 cells under 2 columns"),
        ('question,answer\nA?,"x\n', 2, "invalid CSV"),
        ('question,answer\n"A"?,x\n', 2, "invalid CSV"),
        ("question,answer\n ,x\n", 2, "the field 'question' is missing"),
        (b"question,answer\nA?,\xff\n", 2, "it is not UTF-8"),
        ("question,answer\nA?,x\x00\n", 2, "U+0000"),
    ],
)
def test_the_error_of_a_malformed_csv_row_names_it(file_of, content, line, reason):
    file = file_of(content, "q.csv")
    with pytest.raises(MalformedFile) as refused:
        read_questions(file)
    assert (refused.value.file, refused.value.line) == (file, line)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"question": "A?"', "invalid JSON"),
        ("[]", "a JSON object is required"),
        ('{"answer": "x"}', "the field 'question' is missing"),
        ('{"question": ""}', "the field 'question' is blank"),
        ('{"question": ["A?"]}', "the field 'question' is a list, not a text"),
        ('{"question": "A?", "answer": {"name": "x"}}', "an answer is not a text"),
        ('{"question": "A?", "answers": [["x"]]}', "an answer is not a text"),
        ('{"question": "A?", "answer": " "}', "an answer is blank"),
        ('{"question": "A?", "kind": 3}', "the field 'kind' is a number"),
        ('{"question": "A\\u0000?"}', "U+0000"),
        ('{"question": "A?", "x": [{"y": "\\ud800"}]}', "U+D800"),
        ('{"question": "A?", "x": 1e999}', "the number 1e999 is too large"),
        ('{"question": "A?", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_the_error_of_a_malformed_line_names_it(file_of, line, reason):
    file = file_of('{"question": "Fine?"}\n' + line + "\n", "q.jsonl")
    with pytest.raises(MalformedFile) as refused:
        read_questions(file)
    assert (refused.value.file, refused.value.line) == (file, 2)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"answer": "x", "evidences": []}', "the field 'question' is missing"),
        ('{"question": "A?", "answer": 3}', "the field 'answer' is a number, not a text"),
        ('{"question": "A?", "answer": " "}', "the field 'answer' is blank"),
        ('{"question": " ", "answer": "x"}', "the field 'question' is blank"),
        ('{"question": "A?", "answer": "x", "hops": {}}', "the field 'hops' is an object, not a list"),
        ('{"question": "A?", "answer": "x", "hops": [1]}', "the list 'hops' contains a number"),
        ('{"question": "A?", "answer": "x", "evidences": [["a", "b"]]}', "not [subject, relation, object]"),
        ('{"question": "A?", "answer": "x", "evidences": 3}', "the field 'evidences' is a number, not a list"),
        ("3", "a JSON object is required, not a number"),
    ],
)
def test_the_error_of_a_malformed_record_names_it(file_of, record, reason):
    file = file_of(f'[{{"question": "A?", "answer": "x", "type": "bridge"}}, {record}]', "q.json")
    with pytest.raises(MalformedFile) as refused:
        read_questions(file, "2wiki")
    assert refused.value.line is None
    assert str(file) in str(refused.value)
    assert "record 2: " in refused.value.reason
    assert reason in refused.value.reason


def test_a_truncated_document_is_refused_with_its_line(file_of):
    with pytest.raises(MalformedFile, match=r"q\.json, line 2: invalid JSON"):
        read_questions(file_of('[{"question": "A?"},\n{"question": "B?"', "q.json"))


@pytest.mark.parametrize(
    ("name", "content"), [("q.jsonl", "\n\n"), ("q.csv", "question\n"), ("q.csv", ""), ("q.json", "[]")]
)
def test_a_file_without_a_question_is_refused(file_of, name, content):
    with pytest.raises(MalformedFile, match="holds no question"):
        read_questions(file_of(content, name))
    with pytest.raises(MalformedFile, match="holds no question"):
        open_question_file(file_of(content, name)).survey()


def test_the_error_of_an_unknown_format_lists_the_formats_and_a_missing_file_is_named(file_of, tmp_path):
    with pytest.raises(UnknownQuestionFormat, match="auto, " + ", ".join(QUESTION_FORMATS)):
        read_questions(file_of("{}", "q.jsonl"), "xml")
    for name in ("no.csv", "no.jsonl", "no.json"):
        with pytest.raises(MalformedFile, match=name.replace(".", r"\.")):
            read_questions(tmp_path / name)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["question", "text", "answer", "answers", "id", "kind", "decomposition", "x"]), json_values
        ),
        min_size=1,
        max_size=3,
    )
)
@in_any_file
def test_any_json_lines_are_read_or_refused(file_of, records):
    is_refused_by_name_or_read(file_of("\n".join(map(json.dumps, records)), "q.jsonl"))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"question": st.just("A?") | json_values, "answer": st.just("x") | json_values},
            optional=dict.fromkeys(("_id", "type", "hops", "evidences", "answer_id", "context"), json_values),
        ),
        max_size=3,
    )
)
@in_any_file
def test_any_json_list_is_read_or_refused(file_of, records):
    is_refused_by_name_or_read(file_of(json.dumps(records), "q.json"))


@given(st.text('question,answer\n\r"|; aé\x00').map(lambda rest: "question,answer\n" + rest) | st.binary(max_size=40))
@in_any_file
def test_any_csv_is_read_or_refused(file_of, content):
    is_refused_by_name_or_read(file_of(content, "q.csv"))


def test_a_new_question_format_is_read_detected_and_offered_by_the_verb(file_of, monkeypatch):
    def parse(fields: Fields, language: str) -> QuestionRecord:
        return QuestionRecord(require_text(fields, f"query_{language}"))

    new_format = QuestionFormat("queries", "Queries", lambda fields: "query_en" in fields, parse, has_languages=True)
    monkeypatch.setitem(QUESTION_FORMATS, "queries", new_format)
    file = file_of('{"query_en": "Who?", "query_de": "Wer?"}', "q.jsonl")
    assert read_questions(file) == read_questions(file, "queries") == [QuestionRecord("Who?")]
    assert list(open_question_file(file, language="de")) == [QuestionRecord("Wer?")]
    assert option_help("showhow.app.cli.questions", "import", "--format").endswith("phantomwiki, queries.")
    with pytest.raises(UnknownQuestionFormat, match="phantomwiki, queries"):
        read_questions(file, "xml")


def test_aliases_of_an_answer_are_read(file_of):
    lines = [
        {"question": "Who?", "answer": "Ada Lund", "answer_aliases": ["A. Lund", " ", "A. Lund", "Lund"]},
        {"question": "Who?", "answers": [{"text": "Ada", "entity": "Q5", "aliases": ["Lund"]}, "Ben"]},
        {"question": "Who?", "answer": "Ada", "answer_aliases": []},
        {"question": "Who?", "answers": ["Ada", "Ben"], "answer_aliases": ["Lund"]},
    ]
    one, two, three, four = read_questions(file_of("\n".join(map(json.dumps, lines)), "q.jsonl"))
    assert one.gold_answers == [{"text": "Ada Lund", "entity": None, "aliases": ["A. Lund", "Lund"]}]
    assert two.gold_answers == [{"text": "Ada", "entity": "Q5", "aliases": ["Lund"]}, {"text": "Ben", "entity": None}]
    assert (three.gold_answers, three.details) == ([{"text": "Ada", "entity": None}], {})
    assert four.details == {"answer_aliases": ["Lund"]}
    record = [{"question": "Who?", "answer": "Ada", "answer_aliases": ["Lund"], "type": "bridge"}]
    (multihop,) = read_questions(file_of(json.dumps(record), "q.json"))
    assert (multihop.gold_answers[0]["aliases"], multihop.details) == (["Lund"], {})
