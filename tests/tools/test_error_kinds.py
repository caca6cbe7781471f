"""The kind that a sentence tells is the kind of the class that raised it, for every sentence in the program."""

import ast
from collections.abc import Iterator
from pathlib import Path

from llm import errors
from llm.errors import ChatError
from tools import failures
from tools.failures import ERROR_KINDS, OTHER_KIND, classify_error
from worlds.source import AmbiguousTitle, SearchHit

ROOT = Path(__file__).resolve().parents[2]
BY_CLASS = {
    "SourceTimeout": "time limit",
    "QueryRefused": "refused query",
    "NotFound": "not found",
    **dict.fromkeys(("SourceUnavailable", "BadStatus", "NoAnswer", "Busy"), "unavailable"),
    **{name: "model" for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ChatError)},
}


def sentences() -> Iterator[tuple[str, str, str]]:
    """Where an error is made, its class, and its sentence with 7 for whatever is filled in."""
    for room in ("tools", "worlds"):
        for file in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            given = {node.name: list(returned(node)) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                place, raised = f"{file.relative_to(ROOT)}:{node.lineno}", name_of(node.func)
                first = node.args[0]
                called = name_of(first.func) if isinstance(first, ast.Call) and raised in BY_CLASS else ""
                found = given.get(called, []) if called else [written(first)]
                yield from ((place, raised, said) for said in found if said)


def name_of(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def returned(function: ast.FunctionDef) -> Iterator[str | None]:
    """The sentences that a function of the same file gives to be raised."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield written(node.value)


def written(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    return None


EVERY = list(sentences())
TYPED = [each for each in EVERY if each[1] in BY_CLASS]
OURS = [each for each in EVERY if each[1] == "ToolError" and "foreign" not in each[0]]


def test_there_are_sentences_of_every_class():
    assert {raised for _, raised, _ in TYPED} >= {"SourceTimeout", "QueryRefused", "NotFound", "ChatBusy"}
    assert len(TYPED) > 50
    assert len(OURS) >= 8


def test_every_sentence_of_a_class_has_its_kind():
    wrong = [
        f"{place} {raised}: {classify_error(said)!r} for {said!r}"
        for place, raised, said in TYPED
        if classify_error(said) != BY_CLASS[raised]
    ]
    assert wrong == []


def test_every_sentence_of_our_tools_has_a_kind():
    assert [f"{place} {said!r}" for place, _, said in OURS if classify_error(said) not in ERROR_KINDS[:-1]] == []


def test_what_a_tool_of_others_says_in_its_own_words_is_another_kind():
    assert (
        classify_error("add failed with ZeroDivisionError: division by zero; try other arguments, or another tool.")
        == OTHER_KIND
    )
    assert classify_error("") == OTHER_KIND


def test_a_title_of_many_meanings_is_not_found():
    assert classify_error(str(AmbiguousTitle("Mercury", [SearchHit("Mercury (planet)", "")]))) == "not found"


def test_words_of_a_question_or_a_page_do_not_make_the_kind():
    said = "There is no article titled 'The language model was stopped at its limit of 2 s'; search for it."
    assert classify_error(said) == "not found"
    said = 'The query is no valid SELECT or ASK: "SHOWHOW_MODEL, 3 times in a row". Mend it there and run it again.'
    assert classify_error(said) == "refused query"


def test_the_kinds_are_told_in_the_order_in_which_they_are_tried():
    told = failures.__doc__ or ""
    assert [line.split("  ")[0] for line in told.splitlines() if "   " in line] == list(ERROR_KINDS)
