from pathlib import Path

import pytest
from jinja2 import UndefinedError

from showhow.llm.prompts import PromptTemplates

FILES = sorted((Path(__file__).parents[2] / "tools" / "prompts").glob("*.jinja"))


def test_a_prompt_variable_without_a_value_is_an_error():
    with pytest.raises(UndefinedError, match="question"):
        PromptTemplates("showhow.tools")("read_question", title="T", passages=[])


def test_values_are_inserted_unescaped():
    prompt = PromptTemplates("showhow.tools")("read_question", question="<b>{{ x }}</b>", title="T", passages=[None])
    assert prompt.startswith("Question: <b>{{ x }}</b>\n")
    assert "(sentences left out)" in prompt


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_line_of_a_prompt_is_longer_than_a_line_of_code(file: Path):
    assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120
