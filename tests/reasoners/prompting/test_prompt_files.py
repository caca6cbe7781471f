"""The prompts as they are written: every template by its own variables, both forms of one question as golden files."""

from pathlib import Path

import pytest
from jinja2 import Environment, UndefinedError, meta

from fewshot_library.formats.chat import to_json_text
from llm.types import Message
from reasoners.prompting.chat_format import ChatFormat
from reasoners.prompting.parts import PromptExample, PromptParts, build_example, render_prompt
from reasoners.prompting.react_format import ReActFormat
from tests.reasoners.told import BURIED, PILOT, QUESTION, SO_FAR, steps_of
from tools.registry import BUILT_IN_TOOLS

GOLDEN = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).parents[3] / "reasoners" / "prompting" / "prompts"
EVIDENCE = [{"position": 2, "call": "read: Ada Reed", "text": "She is a ferry pilot."}]
VALUES = {
    "sources": "both",
    "tools": [BUILT_IN_TOOLS["read"]],
    "demonstrations": ["Question: Who?\n"],
    "tool": "read",
    "several": True,
    "question": QUESTION,
    "evidence": EVIDENCE,
    "text": "Cora Reed",
    "graph": None,
    "own": "Ada",
    "own_asked": True,
    "agreement": "They agree.",
    "hedge": "Hm.",
    "style": "normal",
}
MATERIAL = PromptParts(
    PromptExample(QUESTION, tuple(steps_of(SO_FAR))),
    tuple(build_example(record, None) for record in (BURIED, PILOT)),
    [tool for tool in BUILT_IN_TOOLS.values() if not tool.needs_web],
    "both",
)


def declared(name: str) -> set[str]:
    """The variables that the template and those it includes name."""
    tree = Environment(autoescape=False).parse((TEMPLATES / name).read_text())  # noqa: S701 - it is only parsed
    found = meta.find_undeclared_variables(tree)
    return found.union(*(declared(str(each)) for each in meta.find_referenced_templates(tree)))


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.jinja")))
def test_a_prompt_renders_with_its_variables_and_not_without_one_of_them(name: str) -> None:
    stem, wanted = name.removesuffix(".jinja"), declared(name)
    values = {variable: VALUES[variable] for variable in wanted}
    if stem == "chat":
        values["demonstrations"] = 2
    written = render_prompt(stem, **values)
    assert "{" not in written.replace('{"title"', "")
    assert "\n\n\n\n" not in written
    for left_out in wanted - {"several"}:
        with pytest.raises(UndefinedError):
            render_prompt(stem, **{variable: value for variable, value in values.items() if variable != left_out})


def shown(messages: list[Message]) -> str:
    """The messages as a person reads them."""
    parts = []
    for message in messages:
        head = f"=== {message.role}" + (f", answers {message.answers}" if message.answers else "")
        calls = [f"--> {call.id}: {call.name} {to_json_text(call.arguments)}" for call in message.calls]
        parts.append("\n".join(filter(None, [head, message.text, *calls])))
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("form", [ReActFormat(), ChatFormat()], ids=lambda form: form.name)
def test_both_forms_of_one_question_are_written_as_they_were(form: ReActFormat | ChatFormat) -> None:
    assert shown(form.messages(MATERIAL)) == (GOLDEN / f"{form.name}.txt").read_text()


def test_a_response_is_asked_for_as_it_was() -> None:
    golden = (GOLDEN / "response.txt").read_text()
    assert render_prompt("response", **{name: VALUES[name] for name in declared("response.jinja")}) + "\n" == golden
