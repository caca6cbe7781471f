"""JSON of others is bounded before it is parsed, and long lists are read element by element."""

import ast
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.guard.input_bounds import ExpansionBudget, InputBoundExceeded, bounded_work
from showhow.guard.json_input import (
    MAX_DEPTH,
    JsonScanner,
    MalformedJson,
    check_json,
    iterate_json_list,
    load_json,
    load_python_literal,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)


def parts_of(text: str, size: int) -> Any:
    """A reader that returns at most `size` characters at a time."""
    stream = io.StringIO(text, newline="")
    return lambda _: stream.read(size)


@given(st.lists(VALUES, max_size=8), st.sampled_from([None, 1]), st.booleans(), st.integers(1, 40))
def test_a_list_read_in_parts_of_any_size_has_the_elements_of_the_whole(values, indent, ascii_only, size):
    text = f" {json.dumps(values, indent=indent, ensure_ascii=ascii_only)}\n"
    assert [value for _, value in iterate_json_list(parts_of(text, size))] == values


@given(st.text(alphabet='[]{}",:\\ a1\n', max_size=60), st.integers(1, 9))
def test_what_is_no_list_is_refused_as_the_standard_parser_refuses_it(text, size):
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    try:
        read = [value for _, value in iterate_json_list(parts_of(text, size))]
    except MalformedJson:
        read = None
    assert read == (expected if isinstance(expected, list) else None)


@pytest.mark.parametrize("size", [1, 2, 4, 7, 100])
@pytest.mark.parametrize("text", ['[1,\n {"a": 2},\n {"a" 3}]', '[1, {"a": 2}, {"a" 3}]', "[1,\n 2 \n 3]"])
def test_an_error_has_its_line_and_column(text: str, size: int):
    with pytest.raises(MalformedJson, match="delimiter") as refused:
        list(iterate_json_list(parts_of(text, size)))
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    assert (refused.value.line, refused.value.column) == (expected.value.lineno, expected.value.colno)


@given(VALUES, st.integers(1, 7))
def test_the_scanner_counts_brackets_outside_strings_in_parts_of_any_size(value, size):
    data = json.dumps(value).encode()
    scanner = JsonScanner()
    for start in range(0, len(data), size):
        scanner.feed(data[start : start + size])
    assert scanner.depth == 0
    assert scanner.containers == count_containers(value)


def count_containers(value: Any) -> int:
    """The lists and objects of a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, list | dict) + sum(map(count_containers, inner))


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', '"\\"[",[', "[1,"])
def test_deep_nesting_is_refused_before_it_is_parsed(opening):
    prefix = "[" if opening.startswith('"') else ""
    for text in (prefix + opening * 30_000, (prefix + opening * 30_000).encode()):
        with pytest.raises(InputBoundExceeded, match="nested too deeply"):
            load_json(text)
    assert load_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_brackets_in_strings_and_one_after_the_other_are_not_deep():
    check_json(json.dumps(["[" * 5_000, '\\"[{' * 5_000, *[[]] * 5_000]))


def test_a_value_of_many_small_parts_is_refused_with_its_size_unless_it_is_trusted():
    text = "[" + '{"a":1},' * 700_000 + "1]"
    with pytest.raises(InputBoundExceeded, match=r"would take \d+ MB of memory, more than the bound of 256 MB"):
        load_json(text)
    with bounded_work("file", unbounded=True):
        check_json(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9" * 1_000_000, "a number has 1,000,000 digits, more than the bound of 4,300"),
        *(
            ("-" + "9" * 4_300, "4,301 digits"),
            ("1e999", "the number 1e999 is too large"),
            ('{"a":-1e400}', "too large"),
        ),
        *(
            ("[NaN]", "NaN is not"),
            ("[-Infinity]", "-Infinity is not"),
            ('{"a":1', "delimiter"),
            ("", "."),
            ("\0", "."),
        ),
    ],
    ids=lambda text: text[:9],
)
def test_odd_values_are_refused_in_one_sentence(text: str, reason: str):
    with pytest.raises(ValueError, match=reason) as refused:
        load_json(text)
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=reason.replace("1,000,000", r"4,30\d")):
        list(iterate_json_list(parts_of(f"[1, {text}]", 7)))


def test_the_longest_numbers_and_with_constants_infinite_ones_are_read():
    assert load_json(f"[{'9' * 4_300}, 1e308, -0.0]") == [10**4_300 - 1, 1e308, 0]
    assert load_json("[1e999, NaN]", constants=True)[0] == float("inf")


@pytest.mark.parametrize("literal", ["{[1]: 2}", "{1}", "b'x'", "1j", "...", "1e999", f"0x{'f' * 5_000}", "f()"])
def test_a_literal_of_python_is_a_value_of_json_or_refused(literal: str):
    assert load_python_literal(ast.parse("{'a': (1, None), 'b': [True]}", mode="eval").body) == {
        "a": [1, None],
        "b": [True],
    }
    with pytest.raises(ValueError, match=r"."):
        load_python_literal(ast.parse(literal, mode="eval").body)


def test_a_repeated_name_among_very_many_is_named():
    names = [f'"{number}":1' for number in range(200_000)]
    with pytest.raises(ValueError, match="an object has '7' twice"):
        load_json("{" + ",".join([*names, '"7":2']) + "}", unique_names=True)


def test_an_expansion_ends_at_its_bound_unless_it_is_trusted():
    budget = ExpansionBudget(1_000)
    budget.spend(budget.bound)
    with pytest.raises(InputBoundExceeded, match="it expands to more than 64 MB"):
        budget.spend(1)
    with bounded_work("file", unbounded=True):
        ExpansionBudget(1_000).spend(1 << 40)


def test_a_lack_of_memory_or_stack_becomes_one_sentence_and_the_limit_ends_with_the_work():
    with (
        pytest.raises(InputBoundExceeded, match="big: reading it takes more than 640 MB of memory"),
        bounded_work("big"),
    ):
        bytearray(800 << 20)
    assert len(bytearray(800 << 20)) == 800 << 20

    def recurse() -> None:
        recurse()

    with pytest.raises(InputBoundExceeded, match="deep: it is nested too deeply"), bounded_work("deep"):
        recurse()
