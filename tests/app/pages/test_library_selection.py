"""The charts and reasons of a selection from the published demonstrations."""

import re

import numpy as np
import pytest

from showhow.app.pages.library.selection import build_points, heat_map_chart, rank_candidates, scatter_chart
from showhow.app.widgets.selection_form import render_pick_reasons
from showhow.fewshot_library.dpp import likelihood_matrix, similarity_matrix
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.library import LoadedLibrary
from showhow.fewshot_library.selection import SELECTION_MODES, SelectionConfig
from showhow.fewshot_library.sequence_similarity import build_sequence_map
from tests.fewshot_library.conftest import to_demonstration

QUESTION = "Which mountain is the highest in Alaska?"


@pytest.fixture(scope="module")
def library(shared_data, tmp_path_factory):
    demonstrations = [to_demonstration(record) for record in read_traces(shared_data / "humaniq" / "mintaka.json")]
    demonstrations[3] = demonstrations[3]._replace(question="<b>Who</b> & <script>")
    return LoadedLibrary.load(
        demonstrations, SentenceEncoder(BUNDLED_MODEL), tmp_path_factory.mktemp("library") / "1.npz"
    )


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_candidates_are_the_picks_then_the_most_relevant_that_are_not_left_out(library, mode):
    selected = library.select(
        library.demonstrations[5].question, SelectionConfig(mode=mode, gamma=6.0), leave_out_itself=True
    )
    picks = [pick.item for pick in selected.selection.picks]
    candidates = rank_candidates(selected, 10)
    assert candidates[:3] == picks
    others = [item for item in range(20) if item not in (*picks, 5)]
    assert candidates[3:] == sorted(others, key=lambda item: -selected.selection.cosines[item])[:7]
    assert sorted(rank_candidates(selected, 100)) == [item for item in range(20) if item != 5]


def test_every_candidate_is_a_point_and_a_line_joins_the_picks_in_order(library):
    selected = library.select(QUESTION, SelectionConfig(k=4))
    sequence_map = build_sequence_map(library.pool.actions)
    rows = build_points(selected, library, sequence_map)
    assert [row["pick"] for row in rows] == [1, 2, 3, 4] + [0] * 16
    for row, item in zip(rows, rank_candidates(selected, 100), strict=True):
        assert row["question"] == library.demonstrations[item].question
        assert row["relevance"] == pytest.approx(selected.selection.cosines[item], abs=1e-4)
        assert row["place"] == pytest.approx(
            sequence_map.coordinates[library.pool.actions.groups.labels[item], 0], abs=1e-4
        )
    layers = scatter_chart(rows)["layer"]
    assert [len(layer["data"]["values"]) for layer in layers] == [16, 4, 4, 4]


def test_the_heat_map_shows_the_kernel(library):
    selected = library.select(QUESTION, SelectionConfig())
    candidates = rank_candidates(selected, 6)
    kernel = library.build_kernel(selected)
    for values in (similarity_matrix(kernel, candidates), likelihood_matrix(kernel, candidates)):
        rows = heat_map_chart(values, [str(item) for item in candidates], "value", "linear")["data"]["values"]
        cells = {(row["row"], row["column"]): row["value"] for row in rows}
        assert len(cells) == 36
        assert all(cells[one, two] == pytest.approx(values[one - 1, two - 1], abs=1e-4) for one, two in cells)
    # The log determinant of the picks' block equals the sum of their gains, up to the scale of the best quality.
    log_scale = 2 * kernel.log_quality[candidates].max()
    block = likelihood_matrix(kernel, candidates[:3])
    assert np.linalg.slogdet(block)[1] + 3 * log_scale == pytest.approx(selected.selection.log_det)


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_the_reasons_escape_texts_and_show_the_scores(library, mode):
    selected = library.select("Who?", SelectionConfig(mode=mode, gamma=6.0, k=20))
    reasons = [render_pick_reasons(selected, library, index) for index in range(20)]
    assert not any(tag in text for text in reasons for tag in ("<b>", "<script>"))
    for pick, text in zip(selected.selection.picks, reasons, strict=True):
        numbers = re.findall(r"<td class='number'>([^<]*)</td>", text)
        assert numbers[:2] == [f"{selected.selection.cosines[pick.item]:.2f}", f"{pick.novelty:.2f}"]
        assert text.count("<li>") == len(library.demonstrations[pick.item].tools)
        assert ("Runner-up" in text) == (pick.runner_up is not None)
