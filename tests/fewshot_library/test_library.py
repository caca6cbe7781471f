"""An opened library on the published demonstrations: what is chosen, kept embeddings, leaks, cards, statistics."""

import json
from uuid import uuid4

import numpy as np
import pytest

from db.libraries import Demonstration, DemonstrationFilter
from fewshot_library.card import FreezeOptions, LeakageError, build_card, find_leaks
from fewshot_library.embeddings import load_or_encode
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fewshot_library.formats import read_traces
from fewshot_library.library import LoadedLibrary
from fewshot_library.selection import SELECTION_MODES, SelectionConfig
from fewshot_library.statistics import compare_versions, compute_statistics


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(BUNDLED_MODEL)


@pytest.fixture(scope="module")
def published(shared_data):
    """The 20 demonstrations for Mintaka."""
    return [_demonstration(record) for record in read_traces(shared_data / "humaniq" / "mintaka.json")]


def _demonstration(record):
    tools = tuple(step.tool for step in record.steps if step.tool)
    trace, question = record.trace, record.question
    return Demonstration(
        trace.id,
        question.id,
        question.text,
        "simple",
        None,
        "Mintaka",
        "real",
        "human",
        "ada",
        trace.final_answer,
        tools,
    )


@pytest.fixture(scope="module")
def library(published, encoder, tmp_path_factory):
    return LoadedLibrary(published, encoder, tmp_path_factory.mktemp("library") / "1.npz")


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_each_mode_chooses_three_of_the_published_ones(library, mode):
    chosen = library.select("Which mountain is the highest in Alaska?", SelectionConfig(mode=mode, gamma=6.0))
    assert len({each.trace_id for each in chosen.demonstrations}) == 3
    told = chosen.to_json(library)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_question_of_the_library_finds_itself_unless_it_is_left_out(library, published):
    for each in published:
        found = library.select(f" {each.question}", SelectionConfig(mode="relevance", k=1))
        assert found.demonstrations == [each]
        other = library.select(each.question, SelectionConfig(k=3), leave_out_itself=True)
        assert other.excluded == [each]
        assert each not in other.demonstrations


def test_embeddings_are_computed_once_and_anew_when_the_model_or_a_text_is_another(tmp_path, encoder):
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return encoder(texts)

    file = tmp_path / "libraries" / "1.npz"
    first = load_or_encode(file, "model", ["a question", "another"], encode)
    assert np.array_equal(load_or_encode(file, "model", ["a question", "another"], encode), first)
    assert len(calls) == 1
    load_or_encode(file, "other model", ["a question", "another"], encode)
    load_or_encode(file, "other model", ["a question", "changed"], encode)
    assert len(calls) == 3
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"no zip at all"):
        file.write_bytes(damaged)
        assert load_or_encode(file, "model", ["a question"], encode).shape == (1, 384)
    assert [each.name for each in file.parent.iterdir()] == ["1.npz"]
    assert load_or_encode(tmp_path / "none.npz", "model", [], encode).shape == (0, 384)


def test_what_a_test_split_asks_is_noticed_by_id_by_text_and_by_meaning(published, encoder):
    alaska = next(each for each in published if "alaska" in each.question)
    tested = [
        (published[0].question_id, "under another wording altogether"),
        (uuid4(), published[1].question.upper() + " "),
        (uuid4(), "What is the highest mountain in Alaska?"),
        (uuid4(), "Who painted the ceiling of the harbour office?"),
    ]
    found = find_leaks(published, tested, encoder)
    assert {leak.demonstration.trace_id for leak in found} == {
        published[0].trace_id,
        published[1].trace_id,
        alaska.trace_id,
    }
    assert {leak.cosine for leak in found if leak.demonstration is not alaska} == {1.0}
    with pytest.raises(LeakageError, match="3 demonstrations give away questions of the split 'test'"):
        build_card(published, DemonstrationFilter(), FreezeOptions(by="ada"), found)
    forced = build_card(published, DemonstrationFilter(kind="simple"), FreezeOptions(by="ada", force=True), found)
    assert len(forced["leaks"]) == 3
    assert forced["conditions"] == {"kind": "simple"}
    assert find_leaks(published, [], encoder) == find_leaks([], tested, encoder) == []


def test_the_statistics_are_those_of_the_demonstrations(published):
    rated = [published[0]._replace(rating=4.4), published[1]._replace(kind=None, reasoner="humaniq"), *published[2:]]
    found = compute_statistics(rated, tools=["wikisearch", "websearch"], kinds=["simple", "count"])
    assert found.demonstrations == 20
    assert sum(found.lengths.values()) == 20
    assert sum(length * count for length, count in found.lengths.items()) == sum(found.tools.values())
    assert (found.ratings, found.unrated, found.people, found.models) == ({4: 1}, 19, 19, 1)
    assert found.sequences == len({each.tools for each in rated})
    assert (found.unused_tools, found.missing_kinds, found.kinds) == (["websearch"], ["count"], {"simple": 19})


def test_a_difference_is_by_trace(published):
    changed = compare_versions(published[:5], [*published[3:7]])
    assert (changed.added, changed.removed, changed.kept) == (published[5:7], published[:3], 2)
