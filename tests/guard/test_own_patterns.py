"""No regular expression of the project takes more than linear time, whatever text it is given."""

from functools import cache

import pytest

from showhow.guard.worker import WorkLimitExceeded, WorkLimits, run_bounded
from tests.guard.pattern_attacks import OwnPattern, find_superlinear, list_patterns
from tests.test_shape import MODULES, ROOT

pytestmark = pytest.mark.long

LIMITS = WorkLimits(seconds=60)
BOUNDED_TEXTS = {
    "app/server.py:_INLINE_SCRIPT": "reads the page that Streamlit brings",
    "llm/text_tool_calls.py:_XML_PARAMETER": "reads up to the last end of a value, so that every beginning has an end",
    "llm/text_tool_calls.py:_TAGGED_PARAMETER": "as _XML_PARAMETER",
    "worlds/live/description.py:_MODEL_KEY_PATTERN": "reads a name of at most _MAX_VARIABLE_CHARACTERS",
    **dict.fromkeys(
        (
            f"worlds/live/sparql/protocol.py:{name}"
            for name in ("_TIMEOUT_PATTERN", "_QUERY_ECHO_PATTERN", "_JAVA_EXCEPTION_PATTERN", "_POSITION_PATTERN")
        ),
        "reads at most _MAX_BODY_LENGTH of a reply",
    ),
}
"""Patterns that are not linear, and why no text that they read is long."""


@cache
def own_patterns() -> list[OwnPattern]:
    return list_patterns(ROOT, MODULES)


def is_superlinear(pattern: str, method: str = "search") -> bool:
    try:
        return run_bounded(find_superlinear, pattern, 0, [method], limits=WorkLimits(seconds=1)) is not None
    except WorkLimitExceeded:
        return True


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*[;\n]\s*",
        r"\s+(?=\.)",
        r"\s*\([^()]*\)\s*$",
        r"\s*[\[(]\s*steps?\s*(\d(?:[\d\s,;&-]|and|to|steps?)*)[\])]",
        r"(\d+(?:\.\d+)?)\s*(ms|s|m)(?![a-z])",
        r"^(\w+\s?)*$",
        r"(a|a)*b",
        r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?:",
        r"<a>(.*?)</a>",
        r"\bbut\b.*\bnot\b",
    ],
)
def test_a_pattern_that_backtracks_is_seen(pattern: str):
    assert is_superlinear(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(?<!\s)\s*+[;\n]", r"\d{4}-\d\d-\d\d", r"[,\s]+", r"(?<!\w)\w++(?= is)", r"<[^<>]*>"]
)
def test_a_linear_pattern_is_not_blamed(pattern: str):
    assert not is_superlinear(pattern)


def test_the_patterns_of_every_room_are_read():
    rooms = {pattern.place.partition("/")[0] for pattern in own_patterns()}
    assert rooms >= {"app", "db", "evaluation", "fewshot_library", "fiction", "llm", "reasoners", "tools", "worlds"}
    assert {pattern.place for pattern in own_patterns()} >= BOUNDED_TEXTS.keys()


@pytest.mark.parametrize("pattern", own_patterns(), ids=lambda pattern: pattern.place)
def test_no_pattern_of_ours_backtracks(pattern: OwnPattern):
    if pattern.place in BOUNDED_TEXTS:
        return
    attack = run_bounded(find_superlinear, pattern.pattern, pattern.flags, list(pattern.methods), limits=LIMITS)
    assert attack is None
