"""What PDRR asks, in which order, and what it answers with a scripted model: types, own knowledge, ablations."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import answers, read_request, run_baseline, says, skill_name
from tests.servers.model import Request, Says

CHAIN = [
    {"subject": "Sea Star", "relation": "captain", "object": "person#1"},
    {"subject": "person#1", "relation": "place of birth", "object": "town#2"},
]


@dataclass
class Planner:
    """Writes the question as a chain of two triples, and follows the relations of their names."""

    structure: str = "chain"
    answer: str = "Gullhaven"
    supported: bool = True
    score: float = 1.0
    bad_scores: int = 0
    last: Says | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, request: Request) -> Says:
        name, body = skill_name(request), read_request(request)
        self.asked.append((name, body))
        if name == "structure":
            return says(structure=self.structure)
        if name == "triples":
            return says(triples=CHAIN, answer="town#2")
        if name == "relations":
            self.bad_scores -= 1
            score = self.score if self.bad_scores >= 0 else 1.0
            right = [row for row in body["relations"] if row["label"] == body["triple"]["relation"]]
            return Says(json.dumps({"relations": [{**row, "score": score} for row in right]}))
        if name == "complete":
            return says(**answers(unknown=True))
        if name == "best_chain":
            return says(reasons="", chain=1)
        assert name == "answer_triples", name
        support = tuple(passage["id"] for passage in body["passages"]) if self.supported else ()
        return self.last or says(reasons="So it is.", **answers(self.answer, support=support))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]

    def last_request(self, name: str) -> dict[str, Any]:
        return [body for asked, body in self.asked if asked == name][-1]


@pytest.mark.parametrize("options", [{}, {"mode": "published"}, {"mode": "beam"}])
@pytest.mark.parametrize("structure", ["chain", "parallel"])
def test_the_type_is_asked_first_and_reaches_the_decomposition(
    sailing_ships: ToolContext, structure: str, options: dict[str, Any]
) -> None:
    planner = Planner(structure=structure)
    done = run_baseline("pdrr", sailing_ships, planner, options)
    assert planner.names[:2] == ["structure", "triples"]
    assert planner.asked[1][1] == {"question": planner.asked[0][1]["question"], "structure": structure}
    assert done.outcome.calls["model_calls"] >= done.outcome.calls["model_calls_expected"]
    assert done.outcome.calls["model_calls"] == len(done.requests)


@pytest.mark.parametrize(
    ("option", "gold_type", "structure"),
    [
        ("chain", None, "chain"),
        ("parallel", None, "parallel"),
        ("gold", "composition", "chain"),
        ("gold", "superlative", "parallel"),
    ],
)
def test_a_forced_or_gold_type_takes_the_place_of_the_prediction(
    sailing_ships: ToolContext, option: str, gold_type: str | None, structure: str
) -> None:
    planner = Planner()
    run_baseline("pdrr", sailing_ships, planner, {"structure": option}, gold_type=gold_type)
    assert planner.names[0] == "triples"
    assert planner.asked[0][1]["structure"] == structure


def test_a_gold_type_that_the_data_set_does_not_tell_is_one_sentence(sailing_ships: ToolContext) -> None:
    done = run_baseline("pdrr", sailing_ships, Planner(), {"structure": "gold"}, gold_type="bridge")
    assert done.outcome.ending == "failed"
    assert "structure=gold needs a question whose data set tells its type" in str(done.outcome.failure)


@pytest.mark.parametrize("mode", ["set", "published"])
def test_facts_go_to_the_answer_as_triples_or_as_sentences(sailing_ships: ToolContext, mode: str) -> None:
    planner = Planner()
    run_baseline("pdrr", sailing_ships, planner, {"mode": mode, "facts": "sentences"})
    texts = [passage["text"] for passage in planner.last_request("answer_triples")["passages"]]
    ids = ("", "") if mode == "published" else (" (Q1)", " (Q2)")
    assert texts[0] == f"The captain of Sea Star{ids[0]} is Ada Lund{ids[1]}."
    assert not [triple for triple in planner.last_request("answer_triples")["triples"] if "kept" in triple]
    triples = Planner()
    run_baseline("pdrr", sailing_ships, triples, {"mode": mode})
    assert " | " in triples.last_request("answer_triples")["passages"][0]["text"]


def test_without_retrieval_the_triples_alone_are_answered(sailing_ships: ToolContext) -> None:
    planner = Planner(supported=False)
    done = run_baseline("pdrr", sailing_ships, planner, {"retrieve": "off", "own": "free"})
    assert planner.names == ["structure", "triples", "answer_triples"]
    assert (done.answers.answer_model, done.tools) == ("Gullhaven", [])
    with pytest.raises(AgentOptionsError, match=r"retrieve=off .* own=free"):
        make_reasoner("pdrr", {"retrieve": "off"})


def test_a_parallel_question_is_answered_from_the_rest_of_its_triples(sailing_ships: ToolContext) -> None:
    published = REASONERS["pdrr"].apply_preset("published", {"structure": "parallel"})
    planner = Planner(answer="Saltmouth", supported=False)
    done = run_baseline("pdrr", sailing_ships, planner, published)
    assert [step.thought for step in done.steps if str(step.node).endswith("left_out")] == [
        "I go on without (person#1, place of birth, town#2): the question names none of its ends."
    ]
    asked = planner.last_request("answer_triples")
    assert [len(triple["kept"]) for triple in asked["triples"]] == [1, 0]
    assert asked["own"] is True
    assert (done.answers.final_answer, done.answers.answer_model) == ("Saltmouth", "Saltmouth")


def test_an_answer_without_support_is_asked_again_and_refused_in_the_end(sailing_ships: ToolContext) -> None:
    done = run_baseline("pdrr", sailing_ships, Planner(supported=False))
    assert done.outcome.ending == "refused"
    assert "names no fact on which its answer rests" in str(done.outcome.failure)
    assert sum("name in support" in request.prompt for request in done.requests) == 2
    free = run_baseline("pdrr", sailing_ships, Planner(supported=False), {"own": "free"})
    assert (free.answers.final_answer, free.answers.answer_model) == ("Gullhaven", "Gullhaven")


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 7.5, -1.0])
@pytest.mark.parametrize("times", [1, 999])
def test_a_bad_score_costs_a_repair_request_and_never_more_than_its_question(
    sailing_ships: ToolContext, score: float, times: int
) -> None:
    planner = Planner(score=score, bad_scores=times)
    done = run_baseline("pdrr", sailing_ships, planner, {"texts": "off"})
    relations = [
        (step.data or {})["reply"]["relations"] for step in done.steps if str(step.skill).startswith("relations")
    ]
    assert all(0 <= choice["score"] <= 1 for chosen in relations for choice in chosen)
    json.dumps([step.data for step in done.steps], allow_nan=False)
    if times == 1:
        assert done.answers.final_answer == "Gullhaven"
        assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] + 1


@pytest.mark.parametrize("broken", ["every reply", "the answer"])
def test_replies_that_never_parse_are_a_failure(sailing_ships: ToolContext, broken: str) -> None:
    nonsense = Says("It is Gullhaven, of course.")
    script = [nonsense] * 99 if broken == "every reply" else Planner(last=nonsense)
    done = run_baseline("pdrr", sailing_ships, script)
    assert done.outcome.ending == "failed"
    assert "JSON" in str(done.outcome.failure)
