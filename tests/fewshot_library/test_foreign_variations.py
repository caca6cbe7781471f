"""Files of every format, changed as other tools' files differ, are imported right or refused in one sentence.

No change may give another question, answer or result; what a change takes away is absent or remarked.
"""

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import FORMATS, read_traces
from showhow.fewshot_library.formats.format import FormatError, ReadResult, RecordRemark, RefusedRecord
from showhow.fewshot_library.formats.showhow import record_from_json, record_to_json
from tests.examples import examples
from tests.fewshot_library.conversations import FORMS
from tests.fewshot_library.foreign_samples import (
    EXPORTED,
    FOREIGN,
    TASKS,
    Sample,
    Task,
    make_sample,
    to_record,
    write_lines,
)
from tests.fewshot_library.traces import export

CONVERSATIONS = {form: Sample("chats", records, write_lines) for form, records in FORMS.items()}
SAMPLES = [*EXPORTED, *FOREIGN, *CONVERSATIONS]
ODD_PART = {"type": "hologram", "data": "Zz9"}
QUESTIONS = {task.question: task for task in TASKS}


def iterate_fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Yield each field of a JSON value: its container, its key, and its path."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key, (*path, key)
        yield from iterate_fields(inner, (*path, key))


def is_id(key: Any) -> bool:
    is_own = isinstance(key, str) and key.lower().rsplit(".", 1)[-1] == "id"
    return is_own or (isinstance(key, str) and key.endswith(("_id", "_id_", "Id")))


def set_ids(new: Any) -> Callable[[Any], None]:
    """A change of the ids of all calls."""

    def change(value: Any) -> None:
        for container, key, path in iterate_fields(value):
            is_of_span = any(isinstance(part, str) and part in ("context", "parent_id", "step_id") for part in path)
            if is_id(key) and isinstance(container[key], str) and not is_of_span:
                container[key] = new

    return change


def blank_span_ids(value: Any) -> None:
    for container, key, _ in iterate_fields(value):
        if key in ("span_id", "parent_id"):
            container[key] = ""


def add_parts(value: Any) -> None:
    for container, key, _ in iterate_fields(value):
        inner = container[key]
        if key in ("content", "parts", "message") and isinstance(inner, list):
            inner.append(ODD_PART)
        elif key in ("content", "message") and isinstance(inner, str) and "type" not in container:
            container[key] = [{"type": "text", "text": inner}, ODD_PART]


def reverse_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reverse_keys(value[key]) for key in reversed(value)}
    return [reverse_keys(inner) for inner in value] if isinstance(value, list) else value


def reverse_records(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "samples": value["samples"][::-1]}
    is_trajectory = isinstance(value[0], dict) and "steps" in value[0] and "agent" in value[0]
    return [{**one, "steps": one["steps"][::-1]} if is_trajectory else one for one in value[::-1]]


def add_fields(new: Any) -> Callable[[Any], None]:
    """A change that adds a field to each object."""

    def change(value: Any) -> None:
        objects = [inner for container, key, _ in iterate_fields(value) if isinstance(inner := container[key], dict)]
        for inner in [value, *objects] if isinstance(value, dict) else objects:
            # Arguments are what the model wrote; a field more is another call.
            if not {"title", "query"} & inner.keys():
                inner["x_weight"] = new

    return change


def spoil_numbers(value: Any) -> None:
    for container, key, _ in iterate_fields(value):
        if isinstance(container[key], float):
            container[key] = float("nan")


def fence_arguments(value: Any) -> None:
    for container, key, _ in iterate_fields(value):
        if str(key).rsplit(".", 1)[-1] == "arguments" and isinstance(container[key], str):
            container[key] = f"```json\n{container[key]}\n```"


CHANGES: dict[str, Callable[[Any], Any]] = {
    "ids blank": set_ids(""),
    "ids null": set_ids(None),
    "ids repeated": set_ids("same"),
    "spans without ids": blank_span_ids,
    "unknown parts": add_parts,
    "keys reversed": reverse_keys,
    "records reversed": reverse_records,
    "more fields": add_fields({"a": [1, None]}),
    "nulls beside": add_fields(None),
    "NaN beside": add_fields(float("nan")),
    "numbers NaN": spoil_numbers,
    "arguments fenced": fence_arguments,
}


def read(path: Path, format_name: str) -> list[ReadResult]:
    """What is read; a file that is refused as a whole is one refusal."""
    try:
        return list(read_traces(path, format_name))
    except FormatError as error:
        return [RefusedRecord("file", str(error))]


def without_placeholders(text: str) -> str:
    return re.sub(r"( ?\[hologram\])+\Z", "", text)


def list_faults(results: list[ReadResult], *, changes_content: bool, new: Any = "") -> list[str]:
    """What is wrong with the results of a changed sample; `new` is what may stand in place of a result."""
    text = "" if new is ... else json.dumps(new)
    is_remarked = any(isinstance(result, RecordRemark | RefusedRecord) for result in results)
    reasons = [result.reason for result in results if isinstance(result, RefusedRecord)]
    faults = [f"no sentence: {why!r}" for why in reasons if "\n" in why or not 10 < len(why) < 500]
    records = [result for result in results if isinstance(result, TraceRecord)]
    for record in records:
        question = without_placeholders(record.question.text)
        task = QUESTIONS.get(question)
        if task is None:
            # A question of which no part is known has a placeholder for each, and a remark.
            is_placeholder = is_remarked and re.fullmatch(r"(\[\w+\] ?)*", question)
            faults += [] if is_placeholder or question in ("", text) else [f"another question: {question!r}"]
            continue
        answer = without_placeholders(record.trace.final_answer or "")
        if answer not in ("", task.answer, text):
            faults.append(f"another answer: {answer!r}")
        faults += list_other_results(record, task, text)
        is_whole = answer == task.answer and sum(bool(step.observation) for step in record.steps) >= len(task.calls)
        if not is_whole and not is_remarked and not changes_content:
            faults.append(f"something of {question!r} is lost without a word")
    if len(records) < len(TASKS) and not is_remarked and not changes_content:
        faults.append(f"{len(records)} traces without a word")
    return faults


def list_other_results(record: TraceRecord, task: Task, new: str) -> Iterator[str]:
    results = {json.dumps([tool, arguments]): result for _, tool, arguments, result in task.calls}
    for step in record.steps:
        observation = without_placeholders(step.observation or "")
        key = json.dumps([step.tool, step.arguments])
        if step.tool and observation and observation not in (results.get(key, observation), new, f"[{new}]"):
            yield f"the result of {key} is {observation!r}"


def apply(change: Callable[[Any], Any], sample: Sample) -> Any:
    # Written and read, so that no two places have the same list.
    value = json.loads(json.dumps(sample.value))
    changed = change(value)
    return value if changed is None else changed


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_differs_in_form_is_imported_right_or_refused_in_one_sentence(tmp_path, name):
    sample = CONVERSATIONS.get(name) or make_sample(name, tmp_path)
    path = tmp_path / f"changed{sample.suffix}"
    for change_name, change in {"unchanged": copy.copy, **CHANGES}.items():
        sample.write(apply(change, sample), path)
        results = read(path, sample.format)
        assert list_faults(results, changes_content=False) == [], change_name
        if change_name in ("unchanged", "keys reversed", "records reversed"):
            assert Counter(type(result) for result in results)[TraceRecord] == len(TASKS), change_name


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_with_any_field_null_or_missing_gives_no_other_question_answer_or_result(tmp_path, name):
    sample = CONVERSATIONS.get(name) or make_sample(name, tmp_path)
    path = tmp_path / f"changed{sample.suffix}"
    places = [
        place
        for container, key, place in iterate_fields(sample.value)
        # A mark in the form of true says what the text beside it is.
        if (len(place) > 1 or sample.suffix == ".json") and container[key] is not True
    ]
    drawn = random.Random(name)
    for place in drawn.sample(places, min(len(places), examples(120))):
        for new in (None, ..., drawn.choice(["", [], {}, 7, float("inf"), ODD_PART])):
            value = json.loads(json.dumps(sample.value))
            container = value
            for key in place[:-1]:
                container = container[key]
            if new is ...:
                del container[place[-1]]
            elif isinstance(container[place[-1]], str) and new == 7:
                continue
            else:
                container[place[-1]] = new
            sample.write(value, path)
            results = read(path, sample.format)
            assert list_faults(results, changes_content=True, new=new) == [], (place, new)


HOSTILE = (
    *(10**4_000, -(10**400), 1e308, "9" * 5_000, "-" + "9" * 5_000, "²", "٣", "1e999", "NaN", f"0x{'f' * 5_000}"),
    *("\ud800", "\0", "\u202e", '{"a": 1e999}', f'{{"a": {"9" * 5_000}}}', "f(a={[1]: 2})", "f(a={1, 2}, b=b'x')"),
    *({"intValue": "9" * 5_000}, {"intValue": "x"}, {"²": 1}, {"9" * 5_000: 1}, {"\ud800": 1}, [[]] * 300),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", 2**63, [{"²": {"role": "user"}}]),
)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_hostile_value_at_any_place_is_refused_in_one_sentence_or_stored_as_it_is(tmp_path, name):
    sample = CONVERSATIONS.get(name) or make_sample(name, tmp_path)
    path = tmp_path / f"changed{sample.suffix}"
    places = [place for _, _, place in iterate_fields(sample.value)]
    drawn = random.Random(f"hostile {name}")
    for _ in range(examples(60)):
        place, new = drawn.choice(places), drawn.choice(HOSTILE)
        value = json.loads(json.dumps(sample.value))
        container = value
        for key in place[:-1]:
            container = container[key]
        container[place[-1]] = new
        sample.write(value, path)
        for result in read(path, sample.format):
            if isinstance(result, TraceRecord):
                # What is read can be stored: our own format refuses what cannot.
                record_from_json(json.loads(json.dumps(record_to_json(result), allow_nan=False)))
            elif isinstance(result, RefusedRecord):
                assert "\n" not in result.reason, (place, new)
                assert 10 < len(result.reason) < 1_000, (place, new)


def fenced(text: str) -> str:
    return f"```\n{text}```\n"


TEXT_CHANGES: dict[str, Callable[[str], str]] = {
    "fenced": fenced,
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "spaces": lambda text: text.replace("\n", "  \n"),
    "bold": lambda text: text.replace("Thought:", "**Thought:**").replace("Action:", "**Action:**"),
}


@pytest.mark.parametrize("change", TEXT_CHANGES)
@pytest.mark.parametrize("name", ["react", "openai", "langchain", "atif", "dspy", "humaniq"])
def test_a_text_that_is_laid_out_in_another_way_is_imported_right_or_refused_in_one_sentence(tmp_path, name, change):
    path = tmp_path / "x.txt"
    export(FORMATS[name], [to_record(task) for task in TASKS], path)
    path.write_bytes(TEXT_CHANGES[change](path.read_text(encoding="utf-8")).encode())
    assert list_faults(read(path, name), changes_content=False) == []
