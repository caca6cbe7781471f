"""Read articles from files: every supported form, and malformed files of every kind."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from showhow.worlds.article_files import ARTICLE_FORMATS, ENTITY_FIELDS, UnknownArticleFormat, read_articles
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile
from showhow.worlds.source import Article
from tests.examples import examples

in_any_file = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["title", "text", "sentences", "entity", "context"]), inner, max_size=4),
    ),
    max_leaves=8,
)
good_records = st.fixed_dictionaries(
    {"title": st.text(min_size=1), "sentences": st.lists(st.text(), max_size=3)}, optional={"entity": st.text()}
)


@pytest.fixture
def file_of(tmp_path) -> Callable[..., Path]:
    """Create a file with these contents, by default JSON Lines."""

    def make(content: str | bytes, name: str = "articles.jsonl") -> Path:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return make


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """The bytes truncated, or with a few of them changed, doubled or removed."""
    content = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content)


def json_lines(records: list[object]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode("utf-8", "surrogatepass")


def is_refused_by_name_or_read(file: Path, form: str = "auto") -> None:
    """Assert that the file's articles can be stored and shown, or that the error names the file."""
    try:
        articles = list(read_articles(file, form))
    except WorldError as refused:
        assert str(file) in str(refused)  # noqa: PT017 - being refused and being read are both right
        return
    for article in articles:
        assert article.title.strip()
        assert article.entity is None or article.entity.strip()
        assert b"\x00" not in "".join((article.title, *article.sentences)).encode()


def test_given_sentences_are_unchanged(file_of):
    file = file_of('{"title": " A ", "sentences": ["One.", "Two. Three."]}')
    assert list(read_articles(file)) == [Article("A", ("One.", "Two. Three."))]


def test_articles_and_questions_are_read_from_parquet_json_lists_and_lines_alike(tmp_path):
    articles = [
        {"id": "12", "url": "https://a", "title": "A", "text": "One. Two."},
        {"id": "Q7", "url": "https://b", "title": "B", "text": "Three."},
    ]
    paragraphs = [["A", ["One.", "Two."]], ["B", ["Three."]]]
    columns = {"title": ["A", "B"], "sentences": [["One.", "Two."], ["Three."]]}
    questions = [{"question": "Who?", "answer": "x", "context": context} for context in (paragraphs, columns)]
    texts = [("A", ("One.", "Two.")), ("B", ("Three.",))]
    for rows, tabular in ((articles, articles), (questions[:1], questions[1:])):
        lines, document, table = (tmp_path / name for name in ("a.jsonl", "a.json", "a.parquet"))
        lines.write_bytes(json_lines(rows))
        document.write_text(json.dumps(rows))
        pq.write_table(pa.Table.from_pylist(tabular), table)
        for file in (lines, document, table):
            assert [(article.title, article.sentences) for article in read_articles(file)] == texts
    assert [article.entity for article in read_articles(tmp_path / "a.jsonl")] == [None, None]
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, article in enumerate(articles):
        pq.write_table(pa.Table.from_pylist([article]), folder / f"train-{number}.parquet")
    assert [(article.title, article.entity) for article in read_articles(folder)] == [("A", None), ("B", "Q7")]
    (folder / "train-1.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(MalformedFile, match="it cannot be read as Parquet"):
        list(read_articles(folder))
    pq.write_table(pa.table({"title": ["A"]}), folder / "train-1.parquet")
    with pytest.raises(MalformedFile, match="'text' and 'sentences' are both missing"):
        list(read_articles(folder))


def test_a_text_is_cut_into_its_sentences(file_of):
    file = file_of('{"title": "A", "text": "Dr. Reed sailed. She came back.\\n\\nThen it rained"}')
    sentences = ("Dr. Reed sailed.", "She came back.", "Then it rained")
    assert list(read_articles(file)) == [Article("A", sentences, paragraphs=(0, 2))]


def test_an_empty_text_is_an_article_without_sentences(file_of):
    assert list(read_articles(file_of('{"title": "A", "text": ""}'))) == [Article("A", ())]


@pytest.mark.parametrize("name", ENTITY_FIELDS)
def test_the_entitys_id_may_have_any_of_its_usual_names(file_of, name):
    (article,) = read_articles(file_of(json.dumps({"title": "A", "text": "B.", name: " Q42 "})))
    assert article.entity == "Q42"


@pytest.mark.parametrize("name", ["id", "_id", "item"])
@pytest.mark.parametrize("value", [7, "5f3c", "", ["Q1"]])
def test_a_record_number_is_not_an_entity_id(file_of, name, value):
    (article,) = read_articles(file_of(json.dumps({"title": "A", "text": "B.", name: value})))
    assert article.entity is None


@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_entitys_id_that_is_blank_is_none(file_of, value):
    (article,) = read_articles(file_of(json.dumps({"title": "A", "text": "B.", "entity": value})))
    assert article.entity is None


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\n\n  \n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_line_ends_blank_lines_a_byte_order_mark_and_gzip_do_not_count(file_of, separator, mark, name):
    content = mark + separator.join(['{"title": "A", "text": "B."}', '{"title": "Ä", "text": "C."}', ""]).encode()
    file = file_of(gzip.compress(content) if name.endswith(".gz") else content, name)
    assert list(read_articles(file)) == [Article("A", ("B.",)), Article("Ä", ("C.",))]


def test_the_known_files_of_a_folder_are_read_in_the_order_of_their_names(file_of, tmp_path):
    file_of('{"title": "Two", "text": ""}', "2.jsonl")
    file_of('{"title": "One", "text": ""}', "1.ndjson")
    file_of('[{"context": [["Three", ["3."]]]}]', "3.json")
    file_of("no articles", "README.md")
    assert [article.title for article in read_articles(tmp_path)] == ["One", "Two", "Three"]


def test_a_folder_without_known_files_and_a_path_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(MalformedFile, match=r"no file that ends in \.jsonl"):
        list(read_articles(tmp_path))
    with pytest.raises(MalformedFile, match="no such file"):
        list(read_articles(tmp_path / "nothing"))


def test_articles_are_filtered_by_the_values_of_fields(file_of):
    records = [
        {"title": "A", "text": "", "side": "text", "year": 7},
        {"title": "B", "text": "", "side": "kg", "year": 7},
        {"title": "C", "text": "", "side": "text"},
    ]
    file = file_of(json_lines(records))
    assert [a.title for a in read_articles(file, where={"side": "text"})] == ["A", "C"]
    assert [a.title for a in read_articles(file, where={"side": "text", "year": "7"})] == ["A"]
    assert [a.title for a in read_articles(file, where={"year": ""})] == ["C"]
    assert list(read_articles(file, where={"side": "web"})) == []


def test_an_unknown_format_lists_the_known(file_of):
    with pytest.raises(UnknownArticleFormat, match="auto, jsonl, hotpotqa, 2wiki"):
        list(read_articles(file_of("{}"), "wikitext"))
    assert list(ARTICLE_FORMATS) == ["jsonl", "hotpotqa", "2wiki", "document"]


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("2wikimultihopqa/2wiki_dev_300.json", "2wiki"),
        ("2wikimultihopqa/2wiki_train_200.json", "2wiki"),
        ("hotpotqa/hotpot_dev_distractor_300.json", "hotpotqa"),
    ],
)
def test_the_paragraphs_of_real_question_files_come_each_once(shared_data, file, form):
    articles = list(read_articles(shared_data / file, form))
    expected = {
        (title.strip(), tuple(text.strip() for text in sentences if text.strip()))
        for record in json.loads((shared_data / file).read_text(encoding="utf-8"))
        for title, sentences in record["context"]
    }
    assert {(article.title, article.sentences) for article in articles} == expected
    assert len(articles) == len(expected)
    assert [article.title for article in read_articles(shared_data / file)] == [article.title for article in articles]


def test_the_real_paragraphs_come_with_their_entities_and_sides(shared_data):
    file = shared_data / "world_2wiki" / "paragraphs.jsonl"
    articles = list(read_articles(file))
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(articles) == len(records) == 7035
    assert [article.entity for article in articles] == [record["wikidata_id"] for record in records]
    sides = {side: len(list(read_articles(file, where={"side": side}))) for side in ("text", "kg")}
    assert sides == {side: sum(record["side"] == side for record in records) for side in sides}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"title": "B", "text": "x"', "invalid JSON"),
        ('{"title": "B" "text": "x"}', "invalid JSON: expecting ',' delimiter at column 15"),
        ("[1, 2]", "a JSON object is required, not a list"),
        ("7", "required, not a number"),
        ("null", "required, not null"),
        ("NaN", "NaN is not a JSON number"),
        ('{"text": "x"}', "the field 'title' is missing"),
        ('{"title": " ", "text": "x"}', "the field 'title' is blank"),
        ('{"title": 7, "text": "x"}', "the field 'title' is a number, not a text"),
        ('{"title": "B"}', "'text' and 'sentences' are both missing"),
        ('{"title": "B", "text": ["x"]}', "the field 'text' is not a text"),
        ('{"title": "B", "text": null}', "the field 'text' is not a text"),
        ('{"title": "B", "sentences": "x"}', "the field 'sentences' is not a list of texts"),
        ('{"title": "B", "sentences": ["x", 1]}', "the field 'sentences' is not a list of texts"),
        ('{"title": "B", "text": "x", "entity": 42}', "the field 'entity' is not a text"),
        ('{"title": "B", "text": "x\\u0000"}', "NUL"),
        ('{"title": "\\ud83d", "text": "x"}', "half of a surrogate pair"),
        ('{"title": "B", "text": ' + "[" * 100_000, "nested too deeply"),
        ('{"title": "B", "text": "x", "n": ' + "9" * 5000 + "}", "invalid JSON"),
        (b'{"title": "\xff", "text": "x"}', "it is not UTF-8 (byte 12 of the line)"),
    ],
    ids=lambda value: ascii(value[:40]),
)
def test_a_malformed_line_is_named_with_file_line_and_reason(file_of, line, reason):
    before = b'{"title": "A", "text": "a"}\n\n'
    file = file_of(before + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    with pytest.raises(MalformedFile) as refused:
        list(read_articles(file))
    assert (refused.value.file, refused.value.line) == (file, 3)
    assert f"{file}, line 3: " in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[1]",
        "[{}]",
        '[{"context": {}}]',
        '[{"context": [["A"]]}]',
        '[{"context": [["A", "text"]]}]',
        '[{"context": [["A", [1]]]}]',
        '[{"context": [[" ", ["a"]]]}]',
        '[{"context": [["A", ["\\u0000"]]]}]',
        '[{"context": [["A", ["a"]]]}',
        "[" * 100_000,
        b"[\xff]",
    ],
    ids=lambda content: ascii(content[:30]),
)
def test_a_malformed_question_file_is_named(file_of, content):
    file = file_of(content, "questions.json")
    with pytest.raises(MalformedFile, match=r"questions\.json") as refused:
        list(read_articles(file, "2wiki"))
    assert refused.value.reason


def test_the_error_names_a_truncated_or_invalid_gzip_file(file_of):
    packed = gzip.compress(b'{"title": "A", "text": "a long text that is packed"}\n' * 50)
    damaged = packed[:20] + bytes(byte ^ 0xFF for byte in packed[20:60]) + packed[60:]
    for content in (packed[:-20], damaged, b"no gzip at all", packed + b"rest"):
        for form in ("jsonl", "2wiki"):
            with pytest.raises(MalformedFile, match=r"a\.jsonl\.gz.*decompressed"):
                list(read_articles(file_of(content, "a.jsonl.gz"), form))


@given(damaged(st.lists(good_records, min_size=1, max_size=4).map(json_lines)))
@example(b'{"title": "A", "text": "\\ud800"}')
@example(b"\xff\xfe{}")
@in_any_file
def test_any_damaged_json_lines_file_is_read_or_named_in_the_error(file_of, content):
    is_refused_by_name_or_read(file_of(content))


@given(st.lists(json_values, max_size=4).map(json_lines))
@in_any_file
def test_any_json_is_read_or_the_error_names_the_file(file_of, content):
    is_refused_by_name_or_read(file_of(content))


@given(
    st.fixed_dictionaries({"title": st.text(min_size=1), "text": st.text()}).map(lambda record: json_lines([record]))
)
@in_any_file
def test_any_text_is_split_into_sentences_or_the_error_names_the_file(file_of, content):
    is_refused_by_name_or_read(file_of(content))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"context": st.lists(st.tuples(st.text(), st.lists(json_values, max_size=2)), max_size=2) | json_values},
            optional={"entity_ids": json_values | st.just("Q1_Q2"), "supporting_facts": json_values},
        )
        | json_values,
        max_size=3,
    ).map(lambda record: json.dumps(record).encode())
)
@in_any_file
def test_any_question_file_is_read_or_named_in_the_error(file_of, content):
    is_refused_by_name_or_read(file_of(content, "q.json"), "hotpotqa")


@given(damaged(st.lists(good_records, min_size=1, max_size=4).map(json_lines).map(gzip.compress)))
@in_any_file
def test_any_damaged_gzip_file_is_read_or_named_in_the_error(file_of, content):
    is_refused_by_name_or_read(file_of(content, "a.jsonl.gz"))
