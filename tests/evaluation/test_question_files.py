"""Question files as people bring them are read right, or each record has a plain reason; nothing is taken silently."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet
import pytest

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.datasets.record import restore_list
from showhow.worlds.folder import WorldError

Gold = list[str] | list[list[str]]
Read = list[tuple[str, Gold]]


def read(file: Path, **columns: str) -> Read:
    """Each question with the names of its gold answers: a text, or a list of alternatives."""
    reader = open_question_file(file, columns={name: meaning for meaning, name in columns.items()})
    return [
        (
            record.text,
            [[gold["text"], *gold["aliases"]] if gold.get("aliases") else gold["text"] for gold in record.gold_answers],
        )
        for record in reader
        if isinstance(record, QuestionRecord)
    ]


def reasons(file: Path) -> list[str]:
    """Why records of a file, or the file, cannot be read."""
    try:
        return list(open_question_file(file).survey().unread)
    except WorldError as error:
        return [str(error)]


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_lines(*values: Any) -> str:
    return "".join(as_json(value) + "\n" for value in values)


QA = {"question": "Who?", "answer": "Ida"}
FILES: dict[str, tuple[str, str, Read]] = {
    "a title above the header": ("q.csv", "Our questions,,\n\nquestion,answer,note\nWho?,Ida,\n", [("Who?", ["Ida"])]),
    "a title above semicolons": (
        "q.csv",
        "Unsere Fragen;;\nquestion;answer\nHow high?;3,5\n",
        [("How high?", ["3,5"])],
    ),
    "quotes in quotes": (
        "q.csv",
        'question,answer\n"Who said ""no, thanks""?","The ""one"""\n',
        [('Who said "no, thanks"?', ['The "one"'])],
    ),
    "lines in cells": ("q.csv", 'question,answer\n"Who?\nAnd when?","Ida\n"\n', [("Who?\nAnd when?", ["Ida"])]),
    "a list of Python in a cell": (
        "q.csv",
        'question,answers\nWho?,"[\'Ida\', ""Ben\'s""]"\n',
        [("Who?", ["Ida", "Ben's"])],
    ),
    "a list of JSON in a cell": (
        "q.csv",
        'question,answers\nWho?,"[""Id\\u00e9"", ""B|C""]"\n',
        [("Who?", ["Idé", "B|C"])],
    ),
    "an array of NumPy in a cell": (
        "q.csv",
        "question,answers\nWho?,\"['Ida' 'Ben'\n 'Cy']\"\n",
        [("Who?", ["Ida", "Ben", "Cy"])],
    ),
    "an array of objects": (
        "q.jsonl",
        as_lines({"question": "Who?", "answers": "array(['Ida', 'Ben'], dtype=object)"}),
        [("Who?", ["Ida", "Ben"])],
    ),
    "an interval": ("q.csv", 'question,answer\nWhich?,"[2, 5]"\n', [("Which?", ["[2, 5]"])]),
    "an empty list": ("q.csv", "question,answer\nWho?,[]\nWhen?,1790\n", [("Who?", []), ("When?", ["1790"])]),
    "no list of a column": (
        "q.jsonl",
        as_lines({"question": "Who?", "golden_answers": "['Ida', 'I. Vale']"}),
        [("Who?", [["Ida", "I. Vale"]])],
    ),
    "an object by id": (
        "q.json",
        as_json({"a": QA, "b": {"question": "When?", "answer": 1790}}),
        [("Who?", ["Ida"]), ("When?", ["1790"])],
    ),
    "a list in an object in an object": ("q.json", as_json({"data": {"questions": [QA]}}), [("Who?", ["Ida"])]),
    "a list under a name of its own": (
        "q.json",
        as_json({"version": 2, "examples": [QA, QA]}),
        [("Who?", ["Ida"])] * 2,
    ),
    "questions by id under a name": ("q.json", as_json({"questions": {"a": QA}}), [("Who?", ["Ida"])]),
    "columns of pandas": (
        "q.json",
        as_json({"question": {"0": "Who?", "1": "When?"}, "answer": {"0": "Ida", "1": None}}),
        [("Who?", ["Ida"]), ("When?", [])],
    ),
    "columns of lists": (
        "q.json",
        as_json({"question": ["Who?", "When?"], "answer": ["Ida", 1790]}),
        [("Who?", ["Ida"]), ("When?", ["1790"])],
    ),
    "rows of the hub's viewer": (
        "rows.json",
        as_json(
            {
                "features": [
                    {"feature_idx": 0, "name": "question", "type": {"dtype": "string", "_type": "Value"}},
                    {"feature_idx": 1, "name": "answer", "type": {"names": ["no", "yes"], "_type": "ClassLabel"}},
                ],
                "rows": [{"row_idx": 0, "row": {"question": "Is it?", "answer": 1}, "truncated_cells": []}],
                "num_rows_total": 1,
            }
        ),
        [("Is it?", ["yes"])],
    ),
    "true, false and null": (
        "q.jsonl",
        as_lines({"question": "Is it?", "answer": True}, {"question": "Or?", "answer": None}),
        [("Is it?", ["yes"]), ("Or?", [])],
    ),
    "the number of a choice": (
        "q.jsonl",
        as_lines({"question": "Who?", "choices": ["Ben", "Ida"], "answer": 1}),
        [("Who?", ["Ida"])],
    ),
    "the letter of a choice": (
        "q.jsonl",
        as_lines(
            {"question": "Who?", "options": {"A": "Ben", "B": "Ida"}, "answer": "B"},
            {"question": "Who?", "choices": {"text": ["Ben", "Ida"], "label": ["1", "2"]}, "answer": "2"},
            {"question": "Who?", "choices": ["Ben", "Ida"], "answer": "Ida"},
        ),
        [("Who?", ["Ida"])] * 3,
    ),
    "a choice in a table": ("q.csv", "question,options,answer\nWho?,\"['Ben', 'Ida']\",B\n", [("Who?", ["Ida"])]),
    "ASQA": (
        "asqa.json",
        as_json(
            {
                "dev": {
                    "-1": {
                        "ambiguous_question": "Who?",
                        "qa_pairs": [
                            {
                                "question": "Who in 1801?",
                                "short_answers": ["Ida Vale", "Ida"],
                                "context": "No context provided",
                            },
                            {"question": "Who in 1790?", "short_answers": ["Ben"]},
                        ],
                        "annotations": [],
                    }
                }
            }
        ),
        [("Who in 1801?", [["Ida Vale", "Ida"]]), ("Who in 1790?", ["Ben"])],
    ),
    "QAMPARI": (
        "qampari.jsonl",
        as_lines(
            {
                "qid": "1",
                "question_text": "Which films?",
                "answer_list": [
                    {"answer_text": "Dawn", "aliases": ["Dawn", "The Dawn"]},
                    {"answer_text": "Dusk", "aliases": ["Dusk"]},
                ],
            }
        ),
        [("Which films?", [["Dawn", "Dawn", "The Dawn"], ["Dusk", "Dusk"]])],
    ),
    "BrowseComp, decrypted": (
        "b.csv",
        "problem,answer,problem_topic,canary\nWhich town is it?,Riverton,Art,x\n",
        [("Which town is it?", ["Riverton"])],
    ),
    "HotpotQA": (
        "h.json",
        as_json(
            [
                {
                    "_id": "5a",
                    "question": "Who?",
                    "answer": "Ida",
                    "type": "bridge",
                    "level": "hard",
                    "supporting_facts": [["Riverton", 0]],
                    "context": [["Riverton", ["Ida."]]],
                }
            ]
        ),
        [("Who?", ["Ida"])],
    ),
    "StrategyQA": (
        "s.json",
        as_json([{"qid": "1", "term": "x", "question": "Could it?", "answer": False, "facts": []}]),
        [("Could it?", ["no"])],
    ),
    "DROP's numbers of several people": (
        "d.jsonl",
        as_lines(
            {
                "question": "How many?",
                "passage": "x",
                "answers_spans": {"spans": ["2", "3", "2"], "types": ["number", "number", "number"]},
            }
        ),
        [("How many?", [["2", "3"]])],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_with_the_answers_that_its_maker_means(tmp_path, name):
    file_name, content, expected = FILES[name]
    (tmp_path / file_name).write_text(content, encoding="utf-8")
    assert read(tmp_path / file_name) == expected
    assert reasons(tmp_path / file_name) == []


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "another encoding": ("q.csv", "question,answer\nOù?,là\n".encode("cp1252"), "save the table as CSV in UTF-8"),
    "a number that is too large": ("q.jsonl", b'{"question": "How many?", "answer": 1e999}', "too large"),
    "NaN": ("q.jsonl", b'{"question": "How many?", "answer": NaN}', "NaN is not a JSON number"),
    "no choice with that number": (
        "q.jsonl",
        as_lines({"question": "Who?", "choices": ["Ben"], "answer": 4}).encode(),
        "its answer 4 is the number of none of its choices",
    ),
    "an answer for each name": (
        "fanout.json",
        as_json([{"id": "1", "question": "How old?", "answer": {"Ida": 4}, "decomposition": []}]).encode(),
        "an answer is not a text, a number or an object with a 'text' or a 'value'",
    ),
    "encrypted": ("b.csv", b"problem,answer,canary\n" + b"q8Jx" * 20 + b",aGk=,BROWSECOMP\n", "decrypt the file"),
    "an answer longer than its row": ("q.csv", b"question,answer\nWho?,Ida,and Ben\n", "3 cells under 2 columns"),
    "no column for questions": (
        "q.csv",
        b"frage,antwort\nWer?,Ida\n",
        "no column is called question or text; there are",
    ),
    "a merged cell": ("q.csv", b"question,answer\nWho?,Ida\n,Ben\n", "the field 'question' is missing"),
    "texts only": ("q.json", b'["Who?", "When?"]', "it holds no JSON object; record 1: a text"),
    "a table of lists": ("q.json", b'{"columns": ["question"], "data": [["Who?"]]}', "no JSON object"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_has_a_plain_reason(tmp_path, name):
    file_name, content, expected = REFUSED[name]
    (tmp_path / file_name).write_bytes(content)
    (reason,) = reasons(tmp_path / file_name)
    assert expected in reason
    assert "\n" not in reason


def write_workbook(file: Path, fill: Callable[[Any], None]) -> None:
    book = openpyxl.Workbook()
    fill(book)
    book.save(file)


def test_a_workbook_has_titles_merged_cells_and_hidden_sheets(tmp_path):
    def fill(book: Any) -> None:
        sheet = book.active
        for row in (
            ["Questions of May"],
            [],
            ["Question", "Answer", None],
            ["Who?", "Ida"],
            ["When?", date(1790, 5, 1)],
        ):
            sheet.append(row)
        sheet.merge_cells("A1:C1")
        sheet.merge_cells("B3:C3")
        hidden = book.create_sheet("old")
        hidden.append(["question", "answer"])
        hidden.append(["Where?", "Riverton"])
        hidden.sheet_state = "hidden"

    write_workbook(tmp_path / "q.xlsx", fill)
    assert read(tmp_path / "q.xlsx") == [("Who?", ["Ida"]), ("When?", ["1790-05-01"])]
    write_workbook(tmp_path / "empty.xlsx", lambda _: None)
    assert "no column is called question or text; there is no cell" in reasons(tmp_path / "empty.xlsx")[0]


def test_the_classes_of_a_table_of_the_hub_have_their_names(tmp_path):
    features = {
        "answer": {"names": ["no", "yes"], "_type": "ClassLabel"},
        "question": {"dtype": "string", "_type": "Value"},
    }
    table = pa.table({"question": ["Is it?", "Or is it?", "Well?"], "answer": [1, 0, -1]})
    info = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(info), tmp_path / "q.parquet")
    assert read(tmp_path / "q.parquet") == [("Is it?", ["yes"]), ("Or is it?", ["no"]), ("Well?", ["-1"])]


def test_a_list_means_all_of_its_answers_unless_its_column_is_said_to_hold_alternatives(tmp_path):
    for name, content in (
        ("nq.jsonl", as_lines({"question": "Who?", "answer": ["Ida", "I. Vale"]})),
        ("nq.csv", "question,answer\nWho?,Ida|I. Vale\n"),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert read(tmp_path / name) == [("Who?", ["Ida", "I. Vale"])]
        assert read(tmp_path / name, alternatives="answer") == [("Who?", [["Ida", "I. Vale"]])]


def test_answers_that_look_like_several_or_none_are_told_with_the_first_of_them(tmp_path):
    rows = "question,answer\nWho?,Ida\nWhich?,A; B\nWhen?,N/A\n"
    (tmp_path / "q.csv").write_text(rows, encoding="utf-8")
    survey = open_question_file(tmp_path / "q.csv").survey()
    assert survey.doubtful == 2
    assert survey.doubt.startswith(
        "2 gold answers look like several or none, and are one text each (first 'A; B' in line 3)"
    )


@pytest.mark.parametrize("text", ["[citation needed]", "['Ida', Ben]", "['Ida'", "[1, 2]", "Ida [sic]", "['a', ['b']]"])
def test_a_text_that_is_no_printed_list_of_texts_stays_a_text(text):
    assert restore_list(text) == text
