"""What the columns of a file of questions mean: by their names, or as a person says."""

import json
from pathlib import Path

import pandas as pd
import pytest

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.datasets.survey_worker import columns_in_worker, survey_in_worker
from showhow.worlds.folder import WorldError

MEANINGS = {"Frage": "question", "Antwort": "answer", "Nr": "id"}


def write_table(folder: Path, kind: str) -> Path:
    """A table with German names of columns, and one that has a name of ours for something else."""
    file = folder / f"table.{kind.partition('-')[0]}"
    rows = {"Nr": ["7", "8"], "Frage": ["Wer?", "Was, bitte?"], "Antwort": ["Lena|Otis", "Salz"], "Text": ["x", "y"]}
    frame = pd.DataFrame(rows)
    match kind:
        case "csv":
            frame.to_csv(file, index=False, sep=";")
        case "csv-stated":
            file.write_text("sep=^\n" + frame.to_csv(index=False, sep="^"), encoding="utf-16")
        case "tsv":
            frame.to_csv(file, index=False, sep="\t")
        case "xlsx":
            frame.to_excel(file, index=False)
        case "parquet":
            frame.assign(Antwort=[["Lena", "Otis"], ["Salz"]]).to_parquet(file)
        case "jsonl":
            records = frame.assign(Antwort=[["Lena", "Otis"], ["Salz"]]).to_dict(orient="records")
            file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["csv", "csv-stated", "tsv", "xlsx", "parquet", "jsonl"])
def test_a_person_says_what_the_columns_mean(tmp_path: Path, kind: str):
    file = write_table(tmp_path, kind)
    assert [name.lower() for name in columns_in_worker(file)] == ["nr", "frage", "antwort", "text"]
    survey = survey_in_worker(file, "auto", "en", MEANINGS)
    assert (survey.questions, survey.with_gold, survey.with_several) == (2, 2, 1)
    records = list(open_question_file(file, columns=MEANINGS))
    assert all(isinstance(record, QuestionRecord) for record in records)
    assert [(record.text, record.source_id) for record in records] == [("Wer?", "7"), ("Was, bitte?", "8")]
    assert [answer["text"] for answer in records[0].gold_answers] == ["Lena", "Otis"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Question", "Gold answer"), ("question text", "GOLD ANSWERS"), ("Question-Text", "gold_answer")],
)
def test_names_of_columns_are_known_with_spaces_and_capitals(tmp_path: Path, question: str, answer: str):
    rows = {question: ["Who?"], answer: ["Lena|Otis"], "Remarks by hand": ["easy"]}
    pd.DataFrame(rows).to_excel(tmp_path / "q.xlsx", index=False)
    (record,) = open_question_file(tmp_path / "q.xlsx")
    assert (record.text, [gold["text"] for gold in record.gold_answers]) == ("Who?", ["Lena", "Otis"])
    assert record.details == {"remarks by hand": "easy"}
    (tmp_path / "q.json").write_text(json.dumps([{question: "Who?", answer: ["Lena"]}]), encoding="utf-8")
    (record,) = open_question_file(tmp_path / "q.json")
    assert (record.text, [gold["text"] for gold in record.gold_answers]) == ("Who?", ["Lena"])
    # A person may also name such a column as the file spells it.
    (record,) = open_question_file(tmp_path / "q.xlsx", columns={"Remarks by hand": "kind"})
    assert record.kind == "easy"


def test_a_column_with_a_name_of_ours_that_another_one_is_chosen_for_is_put_aside(tmp_path: Path):
    file = tmp_path / "q.csv"
    file.write_text("question,answer,better question\nold?,x,new?\n", encoding="utf-8")
    (record,) = open_question_file(file, columns={"better question": "question"})
    assert record.text == "new?"
    assert record.details == {"question (in the file)": "old?"}


def test_a_file_that_is_no_table_has_no_columns(tmp_path: Path):
    file = tmp_path / "q.xlsx"
    file.write_bytes(b"PK\x03\x04 no workbook")
    assert columns_in_worker(file) == []
    with pytest.raises(WorldError):
        survey_in_worker(file, "auto", "en", MEANINGS)
