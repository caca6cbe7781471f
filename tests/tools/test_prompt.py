from pathlib import Path

import pytest
from jinja2 import UndefinedError

from llm.prompts import PromptTemplates

FILES = sorted((Path(__file__).parents[2] / "tools" / "prompts").glob("*.jinja"))


def test_what_a_prompt_names_and_nobody_gave_is_an_error():
    with pytest.raises(UndefinedError, match="question"):
        PromptTemplates("tools")("read_question", title="T", passages=[])


def test_what_is_given_is_put_in_as_it_is():
    found = PromptTemplates("tools")("read_question", question="<b>{{ x }}</b>", title="T", passages=[None])
    assert found.startswith("Question: <b>{{ x }}</b>\n")
    assert "(sentences left out)" in found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_line_of_a_prompt_is_longer_than_a_line_of_code(file: Path):
    assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120
