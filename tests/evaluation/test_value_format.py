import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.evaluation.datasets import read_questions
from showhow.evaluation.value_format import neutralize_cell, restore_cell

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "\ufeff=1",
    "'=1",
    "''@x",
    '=HYPERLINK("http://127.0.0.1/","x")',
]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_begins_like_a_formula_is_written_as_text_and_restored(text: str):
    written = neutralize_cell(text)
    assert written[0] == "'"
    assert restore_cell(written) == text


@given(st.text())
def test_every_text_is_restored(text: str):
    assert restore_cell(neutralize_cell(text)) == text


@pytest.mark.parametrize("value", [None, -1, -0.5, 7, "", "plain", "a=b", "'quoted'"])
def test_other_values_are_written_unchanged(value: object):
    assert neutralize_cell(value) == value


def test_questions_in_neutralized_cells_are_imported_as_they_were(tmp_path):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["question", "answer"], *([neutralize_cell(cell), "-3"] for cell in FORMULAS[:4])])
    file = tmp_path / "questions.csv"
    file.write_text(buffer.getvalue(), encoding="utf-8")
    assert [question.text for question in read_questions(file, "csv")] == FORMULAS[:4]
