"""Selection usage, against single selections."""

import json
from collections import Counter

import pytest

from showhow.evaluation.comparison.selection_usage import count_selections
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.library import LoadedLibrary
from showhow.fewshot_library.selection import SelectionConfig
from tests.fewshot_library.conftest import to_demonstration


@pytest.fixture(scope="module")
def published(shared_data):
    """The demonstrations for Mintaka, and the questions of CompMix and Mintaka."""
    mine, others = ([*read_traces(shared_data / "humaniq" / f"{name}.json")] for name in ("mintaka", "compmix"))
    return [to_demonstration(record) for record in mine], [record.question.text for record in [*others, *mine]]


@pytest.fixture(scope="module")
def library(published, tmp_path_factory):
    return LoadedLibrary.load(
        published[0], SentenceEncoder(BUNDLED_MODEL), tmp_path_factory.mktemp("library") / "1.npz"
    )


@pytest.mark.parametrize("leave_out", [False, True])
def test_counts_equal_those_of_single_selections(library, published, leave_out):
    demonstrations, questions = published
    config = SelectionConfig(k=2)
    streamed = []
    usage = count_selections(library, questions, config, leave_out_itself=leave_out, done=streamed.append)
    counted = Counter(
        demonstration.trace_id
        for question in questions
        for demonstration in library.select(question, config, leave_out_itself=leave_out).demonstrations
    )
    assert streamed == list(range(1, 41))
    assert [int(times) for times in usage.counts] == [
        counted[demonstration.trace_id] for demonstration in demonstrations
    ]
    data = json.loads(json.dumps(usage.to_json(demonstrations)))
    assert (data["questions"], data["picks"], data["demonstrations"]) == (40, 80, 20)
    assert {entry["id"]: entry["times"] for entry in data["used"]} == {str(key): n for key, n in counted.items()}
    assert [entry["times"] for entry in data["used"]] == sorted(counted.values(), reverse=True)
    unused = [str(demonstration.trace_id) for demonstration in demonstrations if demonstration.trace_id not in counted]
    assert (data["never"], [entry["id"] for entry in data["never_used"]]) == (len(unused), unused)


def test_no_questions_give_no_counts(library):
    usage = count_selections(library, [], SelectionConfig())
    assert usage.selected == []
    assert len(usage.never_selected) == 20
