"""The committed exemplars of PhantomWiki's baselines: what the command makes, from articles that show their facts."""

import json
from dataclasses import asdict
from importlib.resources import files

from showhow.oracles.exemplars import make_exemplars
from showhow.reasoners.baselines.phantomwiki import EXEMPLARS_FILE, load_exemplars


def test_the_committed_exemplars_are_those_that_the_command_makes() -> None:
    committed = json.loads(files("showhow.reasoners.baselines").joinpath(EXEMPLARS_FILE).read_text(encoding="utf-8"))
    assert json.loads(json.dumps([asdict(exemplar) for exemplar in make_exemplars()])) == committed


def test_there_are_ten_whose_observations_show_what_they_conclude() -> None:
    exemplars = load_exemplars()
    assert len({exemplar.question for exemplar in exemplars}) == 10
    assert {step["tool"] for exemplar in exemplars for step in exemplar.steps[:-1]} == {"RetrieveArticle", "Search"}
    for exemplar in exemplars:
        seen = "\n".join(step["observation"] for step in exemplar.steps[:-1])
        assert all(answer in seen or answer.isdecimal() for answer in exemplar.answers)
        assert exemplar.reasons.endswith(f"So the answer is {', '.join(exemplar.answers)}.")
        record = exemplar.to_trace()
        assert record.trace.final_answer == ", ".join(exemplar.answers)
        assert len(record.steps) == len(exemplar.steps) - 1
