"""A loaded library of the published demonstrations: selection, cached embeddings, statistics."""

import json

import numpy as np
import pytest

from showhow.fewshot_library.encoder import load_or_encode
from showhow.fewshot_library.library import LoadedLibrary, compare_versions, compute_statistics
from showhow.fewshot_library.selection import SELECTION_MODES, SelectionConfig


@pytest.fixture(scope="module")
def library(demonstrations, encoder, tmp_path_factory):
    return LoadedLibrary.load(demonstrations, encoder, tmp_path_factory.mktemp("library") / "1.npz")


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_each_mode_selects_three_demonstrations_and_its_json_round_trips(library, mode):
    selection = library.select("Which mountain is the highest in Alaska?", SelectionConfig(mode=mode, gamma=6.0))
    assert len({demonstration.trace_id for demonstration in selection.demonstrations}) == 3
    data = selection.to_json(library)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_question_of_the_library_selects_its_own_demonstration_unless_it_is_excluded(library, demonstrations):
    for demonstration in demonstrations:
        selection = library.select(f" {demonstration.question}", SelectionConfig(mode="relevance", k=1))
        assert selection.demonstrations == [demonstration]
        others = library.select(demonstration.question, SelectionConfig(k=3), leave_out_itself=True)
        assert others.excluded == [demonstration]
        assert demonstration not in others.demonstrations


@pytest.mark.parametrize("mode", ["random", "sample"])
def test_draws_differ_by_question_and_repeat_by_seed(library, demonstrations, mode):
    questions = [demonstration.question for demonstration in demonstrations[:12]]

    def draw(seed):
        config = SelectionConfig(mode=mode, seed=seed, gamma=6.0)
        return [
            frozenset(pick.item for pick in chosen.selection.picks) for chosen in library.select_each(questions, config)
        ]

    assert len({*draw(0)}) > 8
    assert draw(0) == draw(0) != draw(1)
    # A question draws the same alone as among others.
    alone = library.select(questions[5], SelectionConfig(mode=mode, gamma=6.0))
    assert frozenset(pick.item for pick in alone.selection.picks) == draw(0)[5]


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_no_selected_demonstration_shows_what_is_withheld(demonstrations, encoder, mode):
    def read(ids):
        # What no question tells: the observations of every third trace.
        return ["the hidden town" if places[key] % 3 == 0 else "nothing" for key in ids]

    places = {demonstration.trace_id: place for place, demonstration in enumerate(demonstrations)}
    library = LoadedLibrary.load(demonstrations, encoder, read_texts=read)
    asked = demonstrations[1]
    word = asked.question.split()[-1].strip("?")
    config = SelectionConfig(mode=mode, k=5, gamma=6.0)
    chosen = library.select(asked.question, config, withheld=["Hidden Town", word])
    assert len(chosen.demonstrations) == 5
    assert not [pick for pick in chosen.demonstrations if places[pick.trace_id] % 3 == 0]
    assert not [pick for pick in chosen.demonstrations if word.casefold() in pick.question.casefold().split()]
    if mode != "sample":
        assert library.select(asked.question, config, withheld=["nothing", "the hidden town"]).demonstrations == []


@pytest.mark.parametrize("words", [1, 400])
def test_a_task_leaves_out_the_demonstrations_with_its_text_and_its_attachments(
    demonstrations, encoder, tmp_path, words
):
    # The encoder does not see the end of a long text.
    tasks = [
        demonstrations[index]._replace(question="Compare it. " * words, attachments={"bill": {"town": town}})
        for index, town in enumerate(("Lund", "Oslo"))
    ]
    library = LoadedLibrary.load([*tasks, *demonstrations[2:]], encoder, tmp_path / "1.npz")
    for task, other in (tasks, reversed(tasks)):
        selected = library.select(task.full_text, SelectionConfig(mode="relevance", k=1), leave_out_itself=True)
        assert (selected.excluded, selected.demonstrations) == ([task], [other])


def test_embeddings_are_cached_until_the_model_or_a_text_changes_or_the_file_is_damaged(tmp_path, encoder):
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
    content = file.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"no zip at all"):
        file.write_bytes(damaged)
        assert load_or_encode(file, "model", ["a question"], encode).shape == (1, 384)
    assert [path.name for path in file.parent.iterdir()] == ["1.npz"]
    assert load_or_encode(tmp_path / "none.npz", "model", [], encode).shape == (0, 384)


def test_statistics_count_lengths_tools_ratings_authors_and_gaps(demonstrations):
    rated = [
        demonstrations[0]._replace(rating=4.4),
        demonstrations[1]._replace(kind=None, reasoner="humaniq"),
        *demonstrations[2:],
    ]
    statistics = compute_statistics(rated, tools=["wikisearch", "websearch"], kinds=["simple", "count"])
    assert statistics.demonstrations == 20
    assert sum(statistics.lengths.values()) == 20
    assert sum(length * count for length, count in statistics.lengths.items()) == sum(statistics.tools.values())
    assert (statistics.ratings, statistics.unrated, statistics.people, statistics.models) == ({4: 1}, 19, 19, 1)
    assert statistics.sequences == len({demonstration.tools for demonstration in rated})
    assert (statistics.unused_tools, statistics.missing_kinds, statistics.kinds) == (
        ["websearch"],
        ["count"],
        {"simple": 19},
    )


def test_versions_are_compared_by_trace_id(demonstrations):
    changed = compare_versions(demonstrations[:5], [*demonstrations[3:7]])
    assert (changed.added, changed.removed, changed.kept) == (demonstrations[5:7], demonstrations[:3], 2)
