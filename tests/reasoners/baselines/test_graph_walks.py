"""Walks through a graph, end to end with a scripted model: prompts, what is pruned, answers, limits, bad replies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.reasoners.baselines.graph_skills import (
    MAX_CANDIDATES,
    MEMORY,
    REFLECT,
    SAMPLED,
    WeighedFact,
    WeighedRelation,
    keep_best,
)
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.values import AnswerValue, GraphFact, OfferedRelation
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import (
    QUESTION,
    BaselineRun,
    answers,
    passage_id,
    read_request,
    run_baseline,
    says,
    skill_name,
)
from tests.servers.model import Request, Says

GoldenComparison = Callable[[str, str], None]
CAPTAIN_AND_BIRTHPLACE = {"captain": 0.9, "place of birth": 0.8}
OBJECTIVES = ["Who is the captain of Sea Star?", "Where was the captain born?"]


@dataclass
class WalkModel:
    """A model that scores relations by their labels, and knows the answer once a relation was walked."""

    scores: Mapping[str, float] = field(default_factory=lambda: CAPTAIN_AND_BIRTHPLACE)
    last: str = "place of birth"
    """The relation whose facts suffice."""
    topics: tuple[str, ...] = ("Sea Star",)
    back: tuple[str, ...] = ()
    """The entities to which every reflection goes back."""
    bad: dict[str, list[Says]] = field(default_factory=dict)
    """Replies by skill that come before the good ones."""
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Says:
        name = skill_name(request)
        self.asked.append(name)
        if self.bad.get(name):
            return self.bad[name].pop(0)
        payload = read_request(request)
        reply: Says = getattr(self, f"_{name}")(payload)
        return reply

    def _topics(self, _payload: dict[str, Any]) -> Says:
        return says(topics=list(self.topics))

    def _objectives(self, _payload: dict[str, Any]) -> Says:
        return says(objectives=OBJECTIVES, topics=list(self.topics))

    def _score_relations(self, payload: dict[str, Any]) -> Says:
        scored = [
            {name: relation[name] for name in ("of", "id", "direction")} | {"score": self.scores[relation["label"]]}
            for relation in payload["relations"]
            # A walk does not go back the way it came; the members of a guild are its tails.
            if relation["label"] in self.scores
            and (relation["direction"] == "head" or relation["label"] == "member of")
        ]
        return says(relations=scored)

    def _score_facts(self, payload: dict[str, Any]) -> Says:
        return says(facts=[{"id": fact["id"], "score": 1} for fact in payload["candidates"]])

    def _reached(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        return [fact for fact in payload["walked"] if fact["relation"]["label"] == self.last]

    def _enough(self, payload: dict[str, Any]) -> Says:
        return says(reasons="I looked.", enough=bool(self._reached(payload)))

    def _answer_walk(self, payload: dict[str, Any]) -> Says:
        facts = self._reached(payload)
        texts = [fact["other"]["text"] for fact in facts]
        return says(reasons="The facts say so.", **answers(*texts, support=tuple(fact["id"] for fact in facts)))

    def _direct_answer(self, _payload: dict[str, Any]) -> Says:
        return says(**answers("Oslo"))

    def _memory(self, payload: dict[str, Any]) -> Says:
        kept = ", ".join(fact["other"]["text"] for fact in payload["walked"])
        return says(objectives=[{**entry, "finding": kept} for entry in payload["objectives"]])

    def _reflect(self, payload: dict[str, Any]) -> Says:
        offered = {value["entity"] for value in payload["earlier"]}
        return says(reasons="A fact is missing.", entities=[id_ for id_ in self.back if id_ in offered])

    def _reason_walk(self, payload: dict[str, Any]) -> Says:
        facts = self._reached(payload)
        if not facts:
            return says(reasons="Not yet.", clue=f"Where was {payload['walked'][-1]['other']['text']} born?",
                        **answers(unknown=True))  # fmt: skip
        texts = [fact["other"]["text"] for fact in facts]
        return says(
            reasons="The facts say so.", clue="", **answers(*texts, support=tuple(fact["id"] for fact in facts))
        )


def step_at(done: BaselineRun, node: str) -> Step:
    """The span or skill with this place."""
    return next(step for step in done.steps if step.node == node)


def test_tog_walks_to_the_answer_and_cites_the_step_that_lists_it(
    sailing_ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    model = WalkModel()
    done = run_baseline("tog", sailing_ships, model, {"width": 1})
    listed = [step for step in done.steps if step.tool == "getTailEntities"]
    assert (done.answers.final_answer, done.answers.answer_graph) == ("Gullhaven", "Gullhaven")
    assert done.outcome.details["cited_steps"] == [listed[-1].position]
    assert (done.answers.final_thought or "").endswith(f"So the answer is: Gullhaven. [step {listed[-1].position}]")
    hop = ["score_relations", "score_facts", "enough"]
    assert model.asked == ["topics", *hop, *hop, "answer_walk"]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 8
    assert set(done.tools) == {"getWikiDataID", "getRelationsAsHead", "getRelationsAsTail", "getTailEntities"}
    matches_golden("tog", done.prompts)


def test_the_steps_of_a_hop_are_a_tree_with_scores_and_what_was_pruned(sailing_ships: ToolContext) -> None:
    done = run_baseline("tog", sailing_ships, WalkModel(scores={"captain": 0.9, "home port": 0.4, "place of birth": 1}))
    hop, entity = step_at(done, "hop/1"), step_at(done, "hop/1/1")
    relations = {row["label"]: row for row in (entity.data or {})["relations"]}
    assert entity.parent_id == hop.id
    assert {label: (row["score"], row["pruned"]) for label, row in relations.items()} == {
        "captain": (0.9, False),
        "home port": (0.4, False),
    }
    narrow = run_baseline("tog", sailing_ships, WalkModel(scores={"captain": 0.9, "home port": 0.4}), {"width": 1})
    relations = {row["label"]: row for row in (step_at(narrow, "hop/1/1").data or {})["relations"]}
    assert {label: row["pruned"] for label, row in relations.items()} == {"captain": False, "home port": True}
    trail = step_at(narrow, "hop/1/1/r1")
    assert trail.parent_id == step_at(narrow, "hop/1/1").id
    (row,) = (trail.data or {})["facts"]
    assert (row["fact"]["other"], row["score"], row["pruned"]) == ({"text": "Ada Lund", "entity": "Q2"}, 0.9, False)
    assert (step_at(narrow, "hop/1").data or {})["frontier"] == [{"text": "Ada Lund", "entity": "Q2"}]
    assert all(step.finished_at is not None for step in [*done.steps, *narrow.steps])


@pytest.mark.parametrize("name", ["tog", "pog", "structgpt", "tog-2"])
def test_a_date_is_kept_as_a_value_and_no_walk_goes_on_from_it(sailing_ships: ToolContext, name: str) -> None:
    dates = WalkModel(scores={"captain": 1, "date of birth": 1}, last="date of birth")
    done = run_baseline(name, sailing_ships, dates)
    assert done.answers.final_answer == "1931-03-05"
    endless = WalkModel(scores={"captain": 1, "date of birth": 1}, last="nothing")
    done = run_baseline(name, sailing_ships, endless)
    assert done.outcome.ending == "refused"
    assert "A walk of 2 hops did not reach the answer" in str(done.outcome.failure)


@pytest.mark.parametrize("name", ["tog", "pog"])
def test_own_knowledge_answers_at_the_end_only_if_the_option_allows_it(sailing_ships: ToolContext, name: str) -> None:
    model = WalkModel(last="nothing")
    done = run_baseline(name, sailing_ships, model)
    assert (done.outcome.ending, model.asked.count("direct_answer")) == ("refused", 0)
    done = run_baseline(name, sailing_ships, WalkModel(last="nothing"), {"own": "fallback"})
    assert (done.answers.final_answer, done.answers.answer_model, done.answers.answer_graph) == ("Oslo", "Oslo", None)
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"]


def test_of_many_facts_a_sample_is_drawn_that_the_seed_determines(sailing_ships: ToolContext) -> None:
    def draw(seed: int) -> Step:
        members = WalkModel(scores={"member of": 1}, last="member of", topics=("Pilots Guild",))
        done = run_baseline("tog", sailing_ships, members, {"seed": seed, "depth": 1})
        assert len(done.outcome.details["answers"]) == 3
        return step_at(done, "hop/1/1/r1")

    first, again, other = draw(0), draw(0), draw(1)
    data = first.data or {}
    assert data["sample"] == {"of": 26, "drawn": SAMPLED, "seed": 0}
    assert len(data["facts"]) == SAMPLED < MAX_CANDIDATES < data["total"]
    assert "drawn from 26 with the seed 0" in (first.observation or "")
    assert [row["pruned"] for row in data["facts"]] == [False] * 3 + [True] * 2
    assert data["facts"] == (again.data or {})["facts"] != (other.data or {})["facts"]


def test_pog_keeps_all_facts_that_may_help(sailing_ships: ToolContext) -> None:
    members = WalkModel(scores={"member of": 1}, last="member of", topics=("Pilots Guild",))
    done = run_baseline("pog", sailing_ships, members)
    assert len(done.outcome.details["answers"]) == 26


def test_pog_leads_to_at_most_so_many_entities_and_says_how_many_it_left_out(sailing_ships: ToolContext) -> None:
    members = WalkModel(scores={"member of": 1}, last="nothing", topics=("Pilots Guild",))
    done = run_baseline("pog", sailing_ships, members, {"breadth": 10, "depth": 1})
    hop = step_at(done, "hop/1")
    assert (len((hop.data or {})["frontier"]), (hop.data or {})["left_out"]) == (10, 16)
    assert (hop.observation or "").endswith("16 more were left out")


def test_pog_notes_its_findings_and_goes_back_to_an_earlier_entity(
    sailing_ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    class PortFirst(WalkModel):
        """Follows the port first, and the captain only when it has come back."""

        def _score_relations(self, payload: dict[str, Any]) -> Says:
            self.scores = CAPTAIN_AND_BIRTHPLACE if payload["walked"] else {"home port": 1}
            return super()._score_relations(payload)

    model = PortFirst(back=("Q1",))
    done = run_baseline("pog", sailing_ships, model)
    assert done.answers.final_answer == "Gullhaven"
    first = ["score_relations", "score_facts", "memory", "enough", "reflect"]
    assert model.asked[:6] == ["objectives", *first]
    frontiers = [step.thought for step in done.steps if str(step.node).count("/") == 1 and step.skill == "node"]
    assert frontiers[:2] == ["Hop 1 from Sea Star", "Hop 2 from Saltmouth, Sea Star"]
    memory = [step for step in done.steps if step.skill == MEMORY.reference]
    assert "Saltmouth" in (memory[0].observation or "")
    assert {request.body["temperature"] for request in done.requests} == {0.3}
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == len(model.asked)
    matches_golden("pog", done.prompts.partition("\n\n===== request 7")[0])


def test_pog_goes_back_only_so_often(sailing_ships: ToolContext) -> None:
    for returns in (0, 1, 2):
        model = WalkModel(scores={"captain": 1}, last="nothing", back=("Q1",))
        done = run_baseline("pog", sailing_ships, model, {"returns": returns})
        hops = [step.thought for step in done.steps if str(step.node).count("/") == 1 and step.skill == "node"]
        assert sum("Sea Star" in thought for thought in hops) == 1 + returns
        assert (done.outcome.ending, model.asked.count("reflect")) == ("refused", returns)


def test_structgpt_follows_relations_from_sets_by_queries(
    sailing_ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    model = WalkModel()
    done = run_baseline("structgpt", sailing_ships, model)
    assert (done.answers.final_answer, done.answers.answer_graph) == ("Gullhaven", "Gullhaven")
    assert model.asked == ["topics", *["score_relations", "reason_walk"] * 2]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 5
    assert done.tools.count("runQuery") == 2
    assert "getTailEntities" not in done.tools
    matches_golden("structgpt", done.prompts)


def test_structgpt_says_how_many_facts_it_did_not_show(sailing_ships: ToolContext) -> None:
    members = WalkModel(scores={"member of": 1}, last="member of", topics=("Pilots Guild",))
    done = run_baseline("structgpt", sailing_ships, members, {"facts": 10})
    assert len(done.outcome.details["answers"]) == 10
    assert "16 more were left out" in (step_at(done, "hop/1").observation or "")


def sampled(*texts: str) -> Says:
    return says(reasons="I think so.", **answers(*texts))


def test_tog_2_ends_with_the_samples_that_agree(sailing_ships: ToolContext) -> None:
    votes = [sampled("Gullhaven")] * 4 + [sampled("Oslo")]
    model = WalkModel(bad={"cot_answer": votes})
    done = run_baseline("tog-2", sailing_ships, model, REASONERS["tog-2"].presets["published"] | {"skill_shots": 0})
    assert (done.answers.final_answer, done.answers.answer_model) == ("Gullhaven", "Gullhaven")
    assert done.outcome.details["votes"] == {"Gullhaven": 4, "Oslo": 1}
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 5
    assert done.tools == []


def test_tog_2_walks_without_agreement_and_reads_the_articles_of_entities(
    sailing_ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    votes = [sampled("Oslo")] * 3 + [sampled("Rome")] * 2
    model = WalkModel(bad={"cot_answer": votes})
    done = run_baseline("tog-2", sailing_ships, model, {"samples": 5, "sentences": 2})
    assert (done.answers.final_answer, done.answers.answer_graph) == ("Gullhaven", "Gullhaven")
    assert model.asked[5:] == ["topics", *["score_relations", "reason_walk"] * 2]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 10
    reads = [step for step in done.steps if step.tool == "read"]
    assert reads[0].arguments == {
        "title": "Ada Lund",
        "question": QUESTION,
    }
    assert reads[1].arguments == {"title": "Gullhaven", "question": "Where was Ada Lund born?"}
    first = next(request for request in done.requests if skill_name(request) == "reason_walk")
    assert [passage["title"] for passage in read_request(first)["passages"]] == ["Ada Lund"] * 2
    assert passage_id(first, "born in Gullhaven").startswith(f"{reads[0].position}.")
    matches_golden("tog-2", done.prompts[done.prompts.index("===== request 6") :])


def test_tog_2_ranks_entities_by_their_articles(sailing_ships: ToolContext) -> None:
    both = {"captain": 1, "home port": 1, "place of birth": 1}
    done = run_baseline("tog-2", sailing_ships, WalkModel(scores=both), {"width": 2})
    trails = [step for step in done.steps if str(step.node).startswith("hop/1/1/r")]
    scores = {
        row["fact"]["other"]["text"]: row["score"] for step in trails for row in (step.data or {}).get("facts", ())
    }
    # The town has no article.
    assert scores["Ada Lund"] > scores["Saltmouth"] == 0
    frontier = (step_at(done, "hop/1").data or {})["frontier"]
    assert [value["text"] for value in frontier] == ["Ada Lund", "Saltmouth"]


BAD = [
    ("score_relations", says(relations=[{"of": "Q1", "id": "P99", "direction": "head", "score": 1}]), "P99 as head"),
    ("score_relations", says(relations=[{"of": "Q1", "id": "P10", "direction": "head", "score": 2}]), "score 2 is not"),
    ("score_relations", says(relations=[{"of": "Q1", "id": "P10", "direction": "head"}]), "score: field required"),
    ("score_facts", says(facts=[{"id": "99.1", "score": 1}]), "There is no fact 99.1"),
    ("score_facts", Says('{"facts": [{"id', reason="length"), "cut off"),
    ("enough", Says("Perhaps."), "no JSON object"),
    ("answer_walk", says(reasons="", **answers("x", support=("99.1",))), "no passage 99.1"),
    ("topics", says(topics=[" "]), "A topic is empty"),
    ("topics", says(topics=["a"] * 6), "There are 6 topics; name at most 5"),
]


@pytest.mark.parametrize(("skill", "bad", "words"), BAD, ids=range(len(BAD)))
def test_a_bad_reply_is_asked_again_with_the_sentence_that_says_why(
    sailing_ships: ToolContext, skill: str, bad: Says, words: str
) -> None:
    done = run_baseline("tog", sailing_ships, WalkModel(bad={skill: [bad, bad]}))
    corrections = [request for request in done.requests if len(request.body["messages"]) > 2]
    assert [skill_name(request) for request in corrections] == [skill] * 2
    assert all(words in request.body["messages"][-1]["content"] for request in corrections)
    assert done.answers.final_answer == "Gullhaven"
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] + 2


@pytest.mark.parametrize(
    ("skill", "bad", "words"),
    [
        ("objectives", says(objectives=[" "], topics=["Sea Star"]), "There is no objective"),
        ("memory", says(objectives=[]), "The objectives differ"),
        ("reflect", says(reasons="", entities=["Q77"]), "There is no earlier entity Q77"),
    ],
)
def test_a_bad_reply_of_pog_is_asked_again(sailing_ships: ToolContext, skill: str, bad: Says, words: str) -> None:
    done = run_baseline("pog", sailing_ships, WalkModel(bad={skill: [bad]}))
    corrections = [request for request in done.requests if len(request.body["messages"]) > 2]
    assert [skill_name(request) for request in corrections] == [skill]
    assert words in corrections[0].body["messages"][-1]["content"]
    assert done.answers.final_answer == "Gullhaven"


@pytest.mark.parametrize(
    ("name", "skill", "ending", "words"),
    [
        ("tog", "topics", "failed", "gave no usable reply"),
        ("tog", "score_relations", "refused", "A walk of 1 hop did not reach"),
        ("tog", "score_facts", "refused", "A walk of 1 hop did not reach"),
        ("tog", "answer_walk", "failed", "gave no usable reply"),
        ("pog", "objectives", "failed", "gave no usable reply"),
        ("structgpt", "reason_walk", "failed", "gave no usable reply"),
    ],
)
def test_a_skill_that_is_never_usable_ends_the_run_with_a_sentence(
    sailing_ships: ToolContext, name: str, skill: str, ending: str, words: str
) -> None:
    done = run_baseline(name, sailing_ships, WalkModel(bad={skill: [Says("Well.")] * 3}))
    assert (done.outcome.ending, done.outcome.answers) == (ending, None)
    assert words in str(done.outcome.failure)


def test_a_fallback_is_named_in_the_trace_and_the_walk_goes_on(sailing_ships: ToolContext) -> None:
    done = run_baseline(
        "pog", sailing_ships, WalkModel(bad={name: [Says("Well.")] * 3 for name in ("memory", "reflect")})
    )
    fallbacks = {step.skill: step.data["fallback"] for step in done.steps if step.data and "fallback" in step.data}
    assert fallbacks == {MEMORY.reference: "unchanged", REFLECT.reference: "go on"}
    assert done.answers.final_answer == "Gullhaven"


@pytest.mark.parametrize("name", ["tog", "pog", "structgpt"])
def test_a_walk_that_cannot_begin_is_refused(sailing_ships: ToolContext, name: str) -> None:
    done = run_baseline(name, sailing_ships, WalkModel(topics=("Flying Dutchman", "Nemo")))
    assert done.outcome.failure == ("The graph has no entity named Flying Dutchman or Nemo, so no walk can begin.")
    done = run_baseline(name, sailing_ships, WalkModel(topics=()))
    assert (done.outcome.ending, "nothing is named in the question" in str(done.outcome.failure)) == ("refused", True)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("tog", "getHeadEntities"), ("pog", "getRelationsAsTail"), ("structgpt", "runQuery"), ("tog-2", "read")],
)
def test_missing_tools_are_named(sailing_ships: ToolContext, name: str, missing: str) -> None:
    tools = {"getWikiDataID", "getRelationsAsHead", "getRelationsAsTail", "getTailEntities", "getHeadEntities"}
    tools |= {"runQuery", "wikisearch", "read"}
    done = run_baseline(name, sailing_ships, WalkModel(), tools=tools - {missing})
    assert (done.outcome.ending, done.requests) == ("failed", [])
    assert str(done.outcome.failure).endswith(f"needs the tools {missing}. Offer them in the project.")


@pytest.mark.parametrize("name", ["tog", "pog", "structgpt"])
def test_a_run_at_its_limit_can_be_resumed_without_asking_again(sailing_ships: ToolContext, name: str) -> None:
    whole = run_baseline(name, sailing_ships, WalkModel())
    calls = whole.outcome.calls["model_calls"]
    # A walk refuses a hop for which it has too few calls; the limit of steps is no budget, so it ends a run anywhere.
    for limit in range(1, len(whole.steps), 3):
        cut = run_baseline(name, sailing_ships, WalkModel(), limits=RunLimits(steps=limit))
        assert (cut.outcome.ending, len(cut.steps)) == ("limit", limit)
        resumed = run_baseline(name, sailing_ships, WalkModel(), taken=cut.steps)
        assert resumed.answers.final_answer == "Gullhaven"
        assert len(cut.requests) + len(resumed.requests) == calls
        assert [step.node for step in resumed.steps] == [step.node for step in whole.steps]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tog", {"width": 0}, "width is 0; it must be 1 or more"),
        ("tog", {"own": "always"}, "there is no own 'always'; choose one of never, fallback"),
        ("pog", {"returns": -1}, "returns is -1; it must be 0 or more"),
        ("pog", {"temperature": 3}, "temperature is 3; it must be from 0 to 2"),
        ("tog-2", {"agreement": 0}, "agreement is 0; it must be above 0 and at most 1"),
        ("tog-2", {"samples": -1}, "samples is -1; it must be 0 or more"),
        ("structgpt", {"hops": 0}, "hops is 0; it must be 1 or more"),
    ],
)
def test_an_invalid_option_of_a_walk_is_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(AgentOptionsError, match=words):
        make_reasoner(name, options)


def test_the_best_candidates_are_kept_in_their_order_and_those_without_a_score_never() -> None:
    scores = [0.5, 0.9, 0.0, 0.5, 0.9]
    relations = [
        WeighedRelation(id=f"P{number}", label="x", direction="head", of="Q1", score=score)
        for number, score in enumerate(scores)
    ]
    assert [relation.id for relation in keep_best(relations, 3)] == ["P1", "P4", "P0"]
    assert [relation.pruned for relation in relations] == [False, False, True, True, False]
    assert [relation.id for relation in keep_best(relations)] == ["P1", "P4", "P0", "P3"]
    fact = GraphFact(
        id="1.1",
        known=AnswerValue(text="Ada"),
        relation=OfferedRelation(id="P1", label="mother", direction="tail"),
        other=AnswerValue(text="Bo"),
    )
    assert keep_best([WeighedFact(fact=fact)]) == []
    assert fact.passage.text == "Bo | mother | Ada"
