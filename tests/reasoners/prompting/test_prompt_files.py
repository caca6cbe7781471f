"""Prompt templates with their variables, and golden files of prompts in both formats."""

import re
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from jinja2 import Environment, UndefinedError, meta

from showhow.fewshot_library.formats.chat import to_json_text
from showhow.llm.types import Message
from showhow.reasoners.prompting.builder import PromptExample, PromptParts, build_example, render_prompt
from showhow.reasoners.prompting.chat_format import ChatFormat
from showhow.reasoners.prompting.react_format import ReActFormat
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import SourceKind
from tests.reasoners.example_traces import BURIED, PILOT, QUESTION, SO_FAR, steps_of

GOLDEN = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).parents[3] / "reasoners" / "prompting" / "prompts"
EVIDENCE = [{"position": 2, "thought": "I read.", "call": "read: Ada Reed", "text": "She is a ferry pilot."}]
VALUES = {
    "instruction": "Sort the message.",
    "answer_kind": "json",
    "schema": "{}",
    "unanswerable": ["This question cannot be answered."],
    "has_sources": True,
    "sources": "both",
    "finish": "finish",
    "max_calls": 4,
    "tools": [BUILT_IN_TOOLS["read"]],
    "demonstrations": ["Question: Who?\n"],
    "demonstrated_by": "people",
    "tool": "read",
    "several": True,
    "question": QUESTION,
    "evidence": EVIDENCE,
    "fence": "===== 1 =====",
    "decide": True,
    "weigh": True,
    "workflow": "Her article says so. Cora Reed",
    "answer": "Cora Reed",
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
    [tool for tool in BUILT_IN_TOOLS.values() if tool.source is not SourceKind.WEB],
    "both",
)


def declared(name: str) -> set[str]:
    """The variables of a template and of the templates that it includes."""
    tree = Environment(autoescape=False).parse((TEMPLATES / name).read_text())  # noqa: S701 - it is only parsed
    variables = meta.find_undeclared_variables(tree)
    return variables.union(*(declared(str(template)) for template in meta.find_referenced_templates(tree)))


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.jinja")))
def test_a_prompt_renders_only_with_all_its_variables(name: str) -> None:
    stem, wanted = name.removesuffix(".jinja"), declared(name)
    values = {variable: VALUES[variable] for variable in wanted}
    if stem == "chat":
        values["demonstrations"] = 2
    written = render_prompt(stem, **values)
    assert not re.search(r"\{[{%#]|[}%#]\}", written)
    assert "\n\n\n\n" not in written
    for left_out in wanted - {"several", "answer"}:
        with pytest.raises(UndefinedError):
            render_prompt(stem, **{variable: value for variable, value in values.items() if variable != left_out})


def shown(messages: list[Message]) -> str:
    """The messages as text."""
    parts = []
    for message in messages:
        head = f"=== {message.role}" + (f", answers {message.answers}" if message.answers else "")
        calls = [f"--> {call.id}: {call.name} {to_json_text(call.arguments)}" for call in message.calls]
        parts.append("\n".join(filter(None, [head, message.text, *calls])))
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("form", [ReActFormat(), ChatFormat()], ids=lambda form: form.name)
def test_prompts_of_both_formats_equal_the_golden_files(form: ReActFormat | ChatFormat) -> None:
    assert shown(form.messages(MATERIAL)) == (GOLDEN / f"{form.name}.txt").read_text()


@pytest.mark.parametrize("form", [ReActFormat(), ChatFormat()], ids=lambda form: form.name)
@pytest.mark.parametrize(
    ("reasoners", "words"),
    [
        (["human", "human"], "how people worked on "),
        (["generated", "generated"], "generated work on "),
        (["humaniq", "humaniq"], " work on "),
        (["human", "generated"], " work on "),
    ],
    ids=["people", "generated", "a model", "both"],
)
def test_the_prompt_says_people_only_of_what_people_recorded(
    form: ReActFormat | ChatFormat, reasoners: list[str], words: str
) -> None:
    demonstrations = []
    for record, reasoner in zip((BURIED, PILOT), reasoners, strict=True):
        trace = copy(record.trace)
        trace.reasoner = reasoner
        demonstrations.append(build_example(replace(record, trace=trace), None))
    system = form.messages(replace(MATERIAL, demonstrations=tuple(demonstrations)))[0].text
    assert words in system
    assert ("people" in system.replace("how people worked on", "", words.count("people"))) is False
    assert ("generated" in system) is ("generated" in words)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("response", {"style": "normal", "decide": False, "weigh": False}),
        ("response_merged", {"style": "normal", "decide": True, "weigh": False}),
        ("response_short", {"style": "short", "decide": True, "weigh": False, "evidence": [], "own_asked": False}),
        ("response_weighed", {"style": "short", "decide": True}),
    ],
)
def test_the_response_prompts_equal_their_golden_files(name: str, choices: dict[str, object]) -> None:
    values = {variable: VALUES[variable] for variable in declared("response.jinja")} | choices
    assert render_prompt("response", **values) + "\n" == (GOLDEN / f"{name}.txt").read_text()
