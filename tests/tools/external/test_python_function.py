"""LangChain tools and plain functions, named by their place."""

import itertools
import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from showhow.tools.arguments import ToolError
from showhow.tools.external.config import ExternalToolsConfig, FunctionConfig
from showhow.tools.external.functions.host import FunctionHost, load_function
from showhow.tools.registry import ToolRegistry
from showhow.tools.tool import Tool, ToolContext, ToolResult
from tests.servers.weather_started import PATIENCE

Load = Callable[..., Tool]
HEAD = """
import asyncio, sys, time
from enum import Enum
from typing import Annotated, Literal
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from pydantic import BaseModel, Field
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FunctionHost]:
    """The process that imports the modules of all tests, from one folder."""
    host = FunctionHost(tmp_path_factory.mktemp("functions"), (), {"PATH": os.defpath}, load_seconds=PATIENCE)
    yield host
    host.close()


@pytest.fixture
def load(host: FunctionHost) -> Load:
    """Load the tool with this name from a module with this code."""

    def load(code: str, place: str = "found", **limits: float) -> Tool:
        module = f"foreign_module_{next(_numbers)}"
        assert host.folder is not None
        (host.folder / f"{module}.py").write_text(HEAD + textwrap.dedent(code))
        declared = FunctionConfig.model_validate({"place": f"{module}:{place}", **limits})
        return load_function("found", declared, host)

    return load


def error_of(outcome: ToolResult) -> str:
    assert outcome.observation is None
    assert outcome.error is not None
    assert "\n" not in outcome.error
    return outcome.error


def test_types_and_docstring_make_a_function_a_tool(load: Load, nowhere: ToolContext) -> None:
    tool = load('''
        class Unit(Enum):
            C = "celsius"
            F = "fahrenheit"

        class Place(BaseModel):
            city: str

        def found(place: Place, days: Annotated[int, Field(ge=1, le=14, description="ahead")] = 3, unit: Unit = Unit.C,
                  tags: list[str] | None = None, loud: bool = False):
            """Tell the weather.

            At length."""
            return {"city": place.city, "days": days, "unit": unit, "tags": tags, "loud": loud}
    ''')
    assert tool.title == "Found"
    assert tool.description.startswith("Tell the weather.")
    assert [(p.name, p.kind, p.required, p.default) for p in tool.parameters] == [
        ("place", "json", True, None),
        ("days", "whole number", False, 3),
        ("unit", "choice", False, "celsius"),
        ("tags", "list", False, None),
        ("loud", "yes/no", False, False),
    ]
    written = {"place": '{"city": "Öst"}', "days": "7", "unit": "fahrenheit", "tags": "a b\nc", "loud": "yes"}
    typed = {"place": {"city": "Öst"}, "days": 7, "unit": "fahrenheit", "tags": ["a b", "c"], "loud": True}
    for arguments in (written, typed):
        seen = tool.call(nowhere, arguments).observation
        assert seen is not None
        expected = {"city": "Öst", "days": 7, "unit": "fahrenheit", "tags": ["a b", "c"], "loud": True}
        assert seen.data == {"result": expected}
    assert "days: 15 is greater than the maximum of 14" in error_of(tool.call(nowhere, {**typed, "days": 15}))
    assert "'kelvin' is none of celsius, fahrenheit" in error_of(tool.call(nowhere, {**typed, "unit": "kelvin"}))
    assert "it has no argument town. It takes place" in error_of(tool.call(nowhere, {"town": "x"}))
    assert "'place' is a required property" in error_of(tool.call(nowhere, {}))


def test_langchain_tools_keep_their_name_of_arguments_and_their_artifact(load: Load, nowhere: ToolContext) -> None:
    tool = load('''
        @tool(response_format="content_and_artifact")
        def search(query: str, limit: int = 2) -> tuple[str, object]:
            """Search."""
            return f"Found {limit} for {query}", [{"title": query, "score": float("nan")}]
        found = search
    ''')
    seen = tool.call(nowhere, {"query": "Öst\x00", "limit": 1}).observation
    assert seen is not None
    assert seen.text == "Found 1 for Öst\ufffd"
    assert seen.data == {"result": [{"title": "Öst\ufffd", "score": "nan"}]}


@pytest.mark.parametrize(
    "code",
    [
        "class Mine(BaseTool):\n    name: str = 'mine'\n    description: str = 'Say it.'\n"
        "    def _run(self, text: str) -> str:\n        return text\nfound = Mine()",
        "async def found(text: str) -> str:\n    'Say it.'\n    return text",
        "async def say(text: str) -> str:\n    'Say it.'\n    return text\n"
        "found = StructuredTool.from_function(coroutine=say)",
        "class Box:\n    @staticmethod\n    def say(text: str) -> str:\n        'Say it.'\n        return text\n"
        "    class found: pass\nfound = Box.say",
    ],
)
def test_functions_coroutines_and_langchain_tools_are_called(load: Load, nowhere: ToolContext, code: str) -> None:
    seen = load(code).call(nowhere, {"text": "hé 😀 <b>"}).observation
    assert seen is not None
    assert (seen.text, seen.data) == ("hé 😀 <b>", {"text": "hé 😀 <b>"})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise KeyError('x' * 5000)", "found failed with KeyError: 'xxx"),
        ("sys.exit(3)", "found failed with SystemExit: 3"),
        ("raise ToolException('no such town')", "no such town"),
        ("raise TimeoutError('the door')", "found failed with TimeoutError: the door"),
        ("return (lambda deep: deep(deep))(lambda deep: deep(deep))", "found failed with RecursionError"),
        ("assert False", "found failed with AssertionError"),
        (
            "return __import__('os').environ['SHOP']",
            "found reads the environment variable SHOP, which it does not have",
        ),
        ("return {}['SHOP']", "found failed with KeyError: 'SHOP'"),
    ],
)
def test_any_exception_of_a_tool_is_a_failed_call(load: Load, nowhere: ToolContext, body: str, why: str) -> None:
    failed = error_of(load(f"def found():\n    'Fail.'\n    {body}").call(nowhere, {}))
    assert why in failed
    assert len(failed) < 500


def test_arguments_may_have_any_name(load: Load, nowhere: ToolContext) -> None:
    """Also the names that LangChain and pydantic reserve."""
    names = ("config", "callbacks", "run_manager", "self", "args", "kwargs", "schema", "copy", "model_config", "_under")
    annotated = ", ".join(f"{name}: Annotated[str, 'about {name}']" for name in names)
    tool = load(f"def found({annotated}):\n    'Say all.'\n    return [{', '.join(names)}]")
    assert [(p.name, p.hint) for p in tool.parameters] == [(name, f"about {name}") for name in names]
    seen = tool.call(nowhere, {name: f"<{name}>" for name in names}).observation
    assert seen is not None
    assert seen.data == {"result": [f"<{name}>" for name in names]}
    assert "'_under' is a required property" in error_of(tool.call(nowhere, dict.fromkeys(names[:-1], "")))


@pytest.mark.parametrize("text", ['{"a": ' + "9" * 5000 + "}", "[" * 5000, "[" * 90 + "]" * 90, '{"a": 1'])
def test_text_that_only_looks_like_json_stays_text(load: Load, nowhere: ToolContext, text: str) -> None:
    seen = load(f"def found():\n    'Say it.'\n    return {text!r}").call(nowhere, {}).observation
    assert seen is not None
    assert (seen.text, seen.data) == (text, {"text": text})


def test_an_exception_whose_message_raises_is_a_failed_call(load: Load, nowhere: ToolContext) -> None:
    tool = load("""
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no words")

        def found():
            'Fail.'
            raise Mute
    """)
    assert error_of(tool.call(nowhere, {})) == "found failed with Mute; try other arguments, or another tool."


def test_a_tool_that_hangs_ends_at_its_limit_and_the_next_call_works(load: Load, nowhere: ToolContext) -> None:
    tool = load("def found(wait: float):\n    'Wait.'\n    time.sleep(wait)\n    return 'done'", seconds=0.3)
    assert "did not answer within its limit of 0.3 s" in error_of(tool.call(nowhere, {"wait": 60}))
    seen = tool.call(nowhere, {"wait": 0}).observation
    assert seen is not None
    assert seen.text == "done"


def test_a_long_answer_is_truncated_with_a_note(load: Load, nowhere: ToolContext) -> None:
    tool = load(
        "def found(n: int, data: bool):\n    'Long.'\n    return ['x' * n] if data else 'x' * n", characters=1000
    )
    for data in (False, True):
        seen = tool.call(nowhere, {"n": 50_000_000, "data": data}).observation
        assert seen is not None
        assert len(seen.text) < 1100
        assert "cut at 1,000 characters; 49,999,0" in seen.text
        assert seen.data == {"cut": True}


@pytest.mark.parametrize(
    ("code", "place", "why"),
    [
        ("import nothing_of_this_name", "found", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def found(:", "found", "SyntaxError"),
        ("1 / 0", "found", "ZeroDivisionError"),
        ("x = 1", "found", "has no found"),
        ("found = 5", "found", "is of type int, neither a LangChain tool nor a function"),
        ("def found(x: int): return x", "found", "has no docstring"),
        ("def found(*words: str):\n    'Join.'", "found", "takes words without argument names"),
        ("def found(x: 'Nothing'):\n    'Say.'", "found", "has no usable types"),
        ("import math\nfound = math.log", "found", "has no usable types"),
        ("from collections.abc import Callable\ndef found(x: Callable):\n    'Say.'", "found", "has no usable types"),
    ],
)
def test_the_error_of_a_tool_that_does_not_load_says_why(load: Load, code: str, place: str, why: str) -> None:
    with pytest.raises(ToolError) as refused:
        load(code, place)
    assert why in str(refused.value)
    assert "found cannot be loaded" in str(refused.value)


def test_the_name_of_a_built_in_tool_is_refused(tmp_path: Path) -> None:
    registry = ToolRegistry(ExternalToolsConfig(functions={"read": FunctionConfig(place="json:dumps")}))
    assert registry.get_tool("read").origin is None
    (refused,) = [state for state in registry.provider_statuses() if state.kind == "file"]
    assert refused.problem is not None
    assert "has the name of a built-in tool" in refused.problem
