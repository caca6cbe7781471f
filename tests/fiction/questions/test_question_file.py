import json
from pathlib import Path

import pytest

from showhow.fiction.questions.question_file import QuestionFile, QuestionFilter, format_needs
from showhow.worlds.input_files import MalformedFile

FIRST = {"id": "a", "text": "Who is the father of Øle?", "kind": "who", "template": "t1", "answers": [{"text": "Bo"}]}
ROWS = [
    FIRST | {"difficulty": 3, "hops": 1, "needs": [["graph"], ["text", "web"]], "sparql": "ASK {}"},
    {"id": "b", "text": "How many ☃?", "kind": "how many", "answers": [], "difficulty": 9, "needs": [["text"]]},
    {"text": "A question of little note"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS[:2]) + "\n\n" + json.dumps(ROWS[2]))
    return path


def test_a_summary_has_the_fields_of_a_list(file):
    first, second, third = QuestionFile(file).heads
    assert (first.id, first.kind, first.template, first.answers) == ("a", "who", "t1", 1)
    assert (first.difficulty, first.hops, first.needs) == (3, 1, "graph or text + web")
    assert (second.answers, second.hops, second.needs) == (0, None, "text")
    assert (third.id, third.line, third.kind, third.difficulty) == ("4", 4, "", None)


def test_a_row_is_loaded_from_its_offset(file):
    question_file = QuestionFile(file)
    assert [question_file.load_row(head) for head in question_file.heads] == ROWS
    assert question_file.find("b") is question_file.heads[1]
    assert question_file.find("z") is None


def test_questions_are_selected_by_filters(file):
    question_file = QuestionFile(file)

    def like(**conditions) -> list[str]:
        return [head.id for head in question_file.select(QuestionFilter(**conditions))]

    assert like() == ["a", "b", "4"]
    assert like(text=" FATHER of øle") == ["a"]
    assert like(text="B") == ["b"]
    assert like(kind="how many") == ["b"]
    assert like(needs="graph or text + web") == ["a"]
    # A question of unknown difficulty matches every range.
    assert like(min_difficulty=4) == ["b", "4"]
    assert like(max_difficulty=3) == ["a", "4"]
    assert like(min_difficulty=3, max_difficulty=9, kind="who") == ["a"]
    assert like(text="nowhere") == []


@pytest.mark.parametrize("line", ["[1]", '{"text": 3}', "{", "�"])
def test_a_malformed_line_is_reported_with_its_number(tmp_path, line):
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + line + "\n")
    with pytest.raises(MalformedFile, match=r"questions\.jsonl, line 2"):
        QuestionFile(path)


def test_needs_are_formatted():
    assert format_needs([["graph"], ["text", "web"]]) == "graph or text + web"
    assert format_needs(["graph", "text"]) == "graph or text"
    assert format_needs("either") == "either"
    assert format_needs(None) == ""
