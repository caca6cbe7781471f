"""What is drawn and said of a choice on the published demonstrations."""

import re

import numpy as np
import pytest

from app.pages.library.selection import build_points, heat_map_chart, rank_candidates, scatter_chart
from app.widgets.pick_reasons import render_pick_reasons
from fewshot_library.dpp import likelihood_matrix, similarity_matrix
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fewshot_library.formats import read_traces
from fewshot_library.library import LoadedLibrary
from fewshot_library.map import build_sequence_map
from fewshot_library.selection import SELECTION_MODES, SelectionConfig
from tests.fewshot_library.test_library import _demonstration

ASKED = "Which mountain is the highest in Alaska?"


@pytest.fixture(scope="module")
def library(shared_data, tmp_path_factory):
    found = [_demonstration(each) for each in read_traces(shared_data / "humaniq" / "mintaka.json")]
    found[3] = found[3]._replace(question="<b>Who</b> & <script>")
    return LoadedLibrary(found, SentenceEncoder(BUNDLED_MODEL), tmp_path_factory.mktemp("library") / "1.npz")


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_candidates_are_the_picks_and_then_the_most_relevant_without_what_is_left_out(library, mode):
    chosen = library.select(
        library.demonstrations[5].question, SelectionConfig(mode=mode, gamma=6.0), leave_out_itself=True
    )
    picks = [pick.item for pick in chosen.selection.picks]
    found = rank_candidates(chosen, 10)
    assert found[:3] == picks
    rest = [item for item in range(20) if item not in (*picks, 5)]
    assert found[3:] == sorted(rest, key=lambda item: -chosen.selection.cosines[item])[:7]
    assert sorted(rank_candidates(chosen, 100)) == [item for item in range(20) if item != 5]


def test_every_candidate_is_a_point_and_the_picks_are_joined_in_order(library):
    chosen = library.select(ASKED, SelectionConfig(k=4))
    drawn = build_sequence_map(library.pool.actions)
    rows = build_points(chosen, library, drawn)
    assert [row["pick"] for row in rows] == [1, 2, 3, 4] + [0] * 16
    for row, item in zip(rows, rank_candidates(chosen, 100), strict=True):
        assert row["question"] == library.demonstrations[item].question
        assert row["relevance"] == pytest.approx(chosen.selection.cosines[item], abs=1e-4)
        assert row["place"] == pytest.approx(drawn.coordinates[library.pool.actions.groups.labels[item], 0], abs=1e-4)
    layers = scatter_chart(rows)["layer"]
    assert [len(layer["data"]["values"]) for layer in layers] == [16, 4, 4, 4]


def test_the_heat_map_shows_the_kernel(library):
    chosen = library.select(ASKED, SelectionConfig())
    items = rank_candidates(chosen, 6)
    kernel = library.build_kernel(chosen)
    for values in (similarity_matrix(kernel, items), likelihood_matrix(kernel, items)):
        drawn = heat_map_chart(values, [str(item) for item in items], "value", "linear")["data"]["values"]
        shown = {(row["row"], row["column"]): row["value"] for row in drawn}
        assert len(shown) == 36
        assert all(shown[one, two] == pytest.approx(values[one - 1, two - 1], abs=1e-4) for one, two in shown)
    # log det of the kernel's own block is what the gains of the picks add up to, up to the scale of the best quality.
    best = 2 * kernel.log_quality[items].max()
    block = likelihood_matrix(kernel, items[:3])
    assert np.linalg.slogdet(block)[1] + 3 * best == pytest.approx(chosen.selection.log_det)


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_the_reasons_escape_what_people_wrote_and_name_the_numbers(library, mode):
    chosen = library.select("Who?", SelectionConfig(mode=mode, gamma=6.0, k=20))
    told = [render_pick_reasons(chosen, library, place) for place in range(20)]
    assert not any(tag in each for each in told for tag in ("<b>", "<script>"))
    for pick, text in zip(chosen.selection.picks, told, strict=True):
        numbers = re.findall(r"<td class='number'>([^<]*)</td>", text)
        assert numbers[:2] == [f"{chosen.selection.cosines[pick.item]:.2f}", f"{pick.novelty:.2f}"]
        assert text.count("<li>") == len(library.demonstrations[pick.item].tools)
        assert ("Runner-up" in text) == (pick.runner_up is not None)
