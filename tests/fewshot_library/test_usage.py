"""How often demonstrations are used, against choosing one question after the other."""

import json
from collections import Counter

import pytest

from evaluation.selection_usage import count_selections
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fewshot_library.formats import read_traces
from fewshot_library.library import LoadedLibrary
from fewshot_library.selection import SelectionConfig
from tests.fewshot_library.test_library import _demonstration


@pytest.fixture(scope="module")
def published(shared_data):
    """The demonstrations for Mintaka, and the questions of those for CompMix beside their own."""
    mine, others = ([*read_traces(shared_data / "humaniq" / f"{name}.json")] for name in ("mintaka", "compmix"))
    return [_demonstration(each) for each in mine], [each.question.text for each in [*others, *mine]]


@pytest.fixture(scope="module")
def library(published, tmp_path_factory):
    return LoadedLibrary(published[0], SentenceEncoder(BUNDLED_MODEL), tmp_path_factory.mktemp("library") / "1.npz")


@pytest.mark.parametrize("leave_out", [False, True])
def test_the_counts_are_those_of_choosing_one_by_one(library, published, leave_out):
    demonstrations, questions = published
    wish = SelectionConfig(k=2)
    heard = []
    found = count_selections(library, questions, wish, leave_out_itself=leave_out, done=heard.append)
    counted = Counter(
        each.trace_id
        for question in questions
        for each in library.select(question, wish, leave_out_itself=leave_out).demonstrations
    )
    assert heard == list(range(1, 41))
    assert [int(times) for times in found.counts] == [counted[each.trace_id] for each in demonstrations]
    told = json.loads(json.dumps(found.to_json(demonstrations)))
    assert (told["questions"], told["picks"], told["demonstrations"]) == (40, 80, 20)
    assert {each["id"]: each["times"] for each in told["used"]} == {str(key): n for key, n in counted.items()}
    assert [each["times"] for each in told["used"]] == sorted(counted.values(), reverse=True)
    unused = [str(each.trace_id) for each in demonstrations if each.trace_id not in counted]
    assert (told["never"], [each["id"] for each in told["never_used"]]) == (len(unused), unused)


def test_without_questions_nothing_is_used(library):
    found = count_selections(library, [], SelectionConfig())
    assert found.selected == []
    assert len(found.never_selected) == 20
