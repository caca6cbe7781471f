"""Every error of a tool, a source or a model has a kind, and the result of a call carries it."""

import ast
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from showhow.llm import errors
from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError, ChatRateLimited, ChatUnavailable
from showhow.llm.structured_output import ReplyParseError
from showhow.llm.types import ChatModel, ModelProfile
from showhow.tools.arguments import ToolError
from showhow.tools.limits import ToolLimits
from showhow.tools.registry import get_tool
from showhow.tools.tool import Observation, Tool, ToolContext
from showhow.worlds.source import (
    AmbiguousTitle,
    ErrorKind,
    NotFound,
    QueryRefused,
    SearchHit,
    SourceError,
    SourceTimeout,
    SourceUnavailable,
    World,
)

ROOT = Path(__file__).resolve().parents[2]
MODEL_ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ChatError)]


def encode_nothing(texts: Any) -> np.ndarray:
    return np.zeros((len(texts), 1), np.float32)


EMPTY_CONTEXT = ToolContext(World("empty"), encode_nothing)


def tool_that_raises(error: Exception) -> Tool:
    def run(_context: ToolContext, _arguments: Any) -> Observation:
        raise error

    return Tool("broken", "Broken", "Fails.", {}, run, ())


def subclasses(base: type[SourceError]) -> Iterator[type[SourceError]]:
    for child in base.__subclasses__():
        yield child
        yield from subclasses(child)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SourceError("no"), "unavailable"),
        (SourceUnavailable("gone"), "unavailable"),
        (SourceTimeout("late"), "time limit"),
        (QueryRefused("no query"), "refused query"),
        (NotFound("missing"), "not found"),
        (AmbiguousTitle("Mercury", [SearchHit("Mercury (planet)", "")]), "not found"),
        (ChatError("no reply"), "model"),
        (ChatRateLimited("busy"), "model"),
        (ReplyParseError("no JSON"), "model"),
        (ToolError("its own words"), "other"),
        (ToolError("no such id", ErrorKind.NOT_FOUND), "not found"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_a_failed_call_carries_the_kind_of_its_error(error: Exception, kind: str):
    result = tool_that_raises(error).call(EMPTY_CONTEXT, {})
    assert (result.error, result.error_kind) == (str(error), kind)


def test_a_call_without_an_error_has_no_kind():
    tool = Tool("fine", "Fine", "Works.", {}, lambda _context, _arguments: Observation("fine", {}), ())
    assert tool.call(EMPTY_CONTEXT, {}).error_kind is None


def test_every_error_of_a_model_is_of_the_kind_model():
    assert len(MODEL_ERRORS) > 8
    assert {error.kind for error in MODEL_ERRORS} == {ErrorKind.MODEL}


def test_every_error_of_a_source_has_a_stored_kind():
    assert {error.kind for error in subclasses(SourceError)} <= set(ErrorKind)


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("wikisearch", {"words": "x"}, "wrong arguments"),
        ("wikisearch", {"query": "x"}, "unavailable"),
        ("runQuery", {"sparql": "ASK {}"}, "unavailable"),
        ("websearch", {"query": "x"}, "unavailable"),
    ],
)
def test_arguments_and_missing_sources_have_kinds_of_their_own(name: str, arguments: dict[str, Any], kind: str):
    assert get_tool(name).call(EMPTY_CONTEXT, arguments).error_kind == kind


def test_a_tool_whose_model_is_not_available_fails_with_the_kind_model():
    def load() -> ChatModel:
        raise ChatUnavailable("The model needs a package.")

    def ask(context: ToolContext, _arguments: Any) -> Observation:
        assert context.chat is not None
        return Observation(context.chat.ask([]).text, {})

    context = ToolContext(World("empty"), encode_nothing, ChatClient(ModelProfile("missing"), load))
    result = Tool("asks", "Asks", "Asks.", {}, ask, ()).call(context, {})
    assert (result.error, result.error_kind) == ("The model needs a package.", "model")


def external_tool(work: Callable[[], Observation]) -> Tool:
    return Tool("other", "Other", "Runs.", {}, lambda _context, _arguments: work(), (), limits=ToolLimits(seconds=0.05))


def test_an_external_tool_that_hangs_fails_at_its_time_limit_and_one_that_breaks_is_other():
    def hang() -> Observation:
        time.sleep(0.5)
        return Observation("late", {})

    def divide() -> Observation:
        return Observation(str(1 // 0), {})

    assert external_tool(hang).call(EMPTY_CONTEXT, {}).error_kind == "time limit"
    assert external_tool(divide).call(EMPTY_CONTEXT, {}).error_kind == "other"


def test_every_tool_error_of_a_built_in_tool_names_its_kind():
    unnamed = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted((ROOT / "tools").rglob("*.py"))
        if "external" not in file.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ToolError" and len(node.args) < 2
    ]
    assert unnamed == []


def test_the_stored_names_of_the_kinds_stay():
    assert [str(kind) for kind in ErrorKind] == [
        "refused query",
        "not found",
        "wrong arguments",
        "model",
        "time limit",
        "unavailable",
        "other",
    ]
