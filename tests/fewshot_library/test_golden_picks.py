"""Golden file of the picks for the questions of the published libraries, with their figures.

`python -m tests.fewshot_library.test_golden_picks` writes the golden files anew; look at what changed first.
Demonstrations are told by their place in the published file.
"""

import json
import re
import tempfile
from pathlib import Path

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder, load_or_encode
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions
from tests.conftest import SHARED

GOLDEN = Path(__file__).with_name("golden")
LIBRARIES = ("mintaka", "compmix")
CLOSE = 2e-4
"""The tolerance for differences of embeddings between processors."""


def pool_of(data, name, folder):
    records = [result for result in read_traces(data / "humaniq" / f"{name}.json") if isinstance(result, TraceRecord)]
    encoder = SentenceEncoder(BUNDLED_MODEL)
    rows = load_or_encode(folder / f"{name}.npz", encoder.name, [record.question.text for record in records], encoder)
    return CandidatePool(rows, encode_actions(published_actions(data / "humaniq" / f"{name}.json")))


def published_actions(file):
    """The names of the tools in the text of each demonstration, as the paper compares them."""
    texts = [entry["One_Shot"] for entry in json.loads(file.read_text(encoding="utf-8"))]
    return [[name.strip() for name in re.findall(r"^Action:(.*)$", text, re.MULTILINE)] for text in texts]


def picks(pool, place):
    """Three picks for the question at this index, without itself."""
    selection = select_demonstrations(pool, pool.embeddings[place], SelectionConfig(left_out=frozenset({place})))
    return [
        {
            "item": pick.item,
            "relevance": round(float(selection.cosines[pick.item]), 4),
            "novelty": round(pick.novelty, 4),
            "gain": round(pick.gain, 4),
            "runner_up": pick.runner_up,
            "lead": round(pick.lead, 4),
        }
        for pick in selection.picks
    ]


@pytest.mark.parametrize("name", LIBRARIES)
def test_picks_and_their_figures_equal_the_golden_file(shared_data, tmp_path, name):
    pool = pool_of(shared_data, name, tmp_path)
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert len(golden) == len(pool)
    for place, expected in enumerate(golden):
        picked = picks(pool, place)
        assert [pick["item"] for pick in picked] == [pick["item"] for pick in expected]
        for pick, known in zip(picked, expected, strict=True):
            assert pick == {
                name: value if name in ("item", "runner_up") else pytest.approx(value, abs=CLOSE)
                for name, value in known.items()
            }


if __name__ == "__main__":
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as kept:
            known = pool_of(SHARED, library, Path(kept))
        rows = ",\n".join(json.dumps(picks(known, place)) for place in range(len(known)))
        (GOLDEN / f"{library}.json").write_text(f"[\n{rows}\n]\n", encoding="utf-8")
