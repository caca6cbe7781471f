"""ProbTree end to end with a scripted model: the surest answers, log-probabilities or agreement, trees, bad replies."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log
from random import Random
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL, Step
from showhow.reasoners.baselines.probtree import QUESTION_TREE, QuestionTreeReply, check_question_tree
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import make_reasoner
from showhow.reasoners.sources import BareQuestion
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import QUESTION, BaselineRun, passage_id, read_request, run_baseline
from tests.servers.model import Request, Says

CAPTAIN, TOWN = "Who is the captain of Sea Star?", "In which town was #1 born?"
DECOMPOSITION = {"of": 0, "into": [{"id": 1, "question": CAPTAIN}, {"id": 2, "question": TOWN}]}
WAYS = {
    "You take a question apart.": "plan",
    "You answer a question from what you know": "closed",
    "You answer a question from passages": "open",
    "You answer a question from facts": "children",
}
WAY_NAMES = {"closed": "closed-book", "open": "open-book", "children": "children"}


def way_of(request: Request) -> str:
    """Which of the skills a request calls."""
    system = request.body["messages"][0]["content"]
    return next(way for words, way in WAYS.items() if system.startswith(words))


def with_logprobs(fields: Mapping[str, Any], scores: Mapping[str, float | None]) -> Says:
    """A reply with these fields as JSON; the scores are the log-probabilities of fields, and of items of lists."""
    tokens: list[tuple[str, float | None]] = []
    for number, (name, value) in enumerate(fields.items()):
        tokens.append((f"{', ' if number else '{'}{json.dumps(name)}: ", -8.0))
        if name == "decompositions":
            tokens.append(("[", -8.0))
            tokens += [(json.dumps(item) + "," * (item is not value[-1]), scores.get(name)) for item in value]
            tokens.append(("]", -8.0))
        else:
            tokens.append((json.dumps(value), scores.get(name, -8.0)))
    tokens.append(("}", -8.0))
    return Says("".join(token for token, _ in tokens), logprobs=tokens)


@dataclass
class SureModel:
    """Replies with an answer for each way and question, whose reasons have the given log-probability."""

    sure: Mapping[tuple[str, str], float | None]
    """By way and question; -1 where none is given."""
    answers: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    """By way and question: None for unknown; else the way and the question in a word."""
    decompositions: list[dict[str, Any]] = field(default_factory=lambda: [DECOMPOSITION])
    split: float | None = -0.5

    def __call__(self, request: Request) -> Says:
        way, asked = way_of(request), read_request(request)
        if way == "plan":
            return with_logprobs({"decompositions": self.decompositions}, {"decompositions": self.split})
        place = (way, asked["question"])
        text = self.answers.get(place, f"{way} {asked['question'].split()[0]}")
        supporting = [passage["id"] for passage in asked.get("passages", ())][:1]
        reply = {
            "reasons": f"It is {text}.",
            "answers": [] if text is None else [{"text": text}],
            "support": supporting if way == "open" and text is not None else [],
            "unknown": text is None,
        }
        return with_logprobs(reply, {"reasons": self.sure.get(place, -1.0)})


def node_data(done: BaselineRun, node: int) -> dict[str, Any]:
    """What the span of a node stores."""
    step = next(step for step in done.steps if step.node == str(node) and step.skill == SPAN_SKILL)
    assert step.data is not None
    return step.data


def without_logprobs(reply: Callable[[Request], Says]) -> Callable[[Request], Says]:
    return lambda request: Says(reply(request).text)


@pytest.mark.parametrize("seed", range(8))
def test_at_each_node_the_answer_with_the_highest_confidence_wins(ships: ToolContext, seed: int) -> None:
    random = Random(seed)
    draw = lambda: -round(random.uniform(0.05, 2.5), 3)  # noqa: E731 - a shorthand
    sure = {(way, CAPTAIN): draw() for way in ("closed", "open")}
    # The second question names the answer to the first, whichever way that was found.
    first = max(("open", "closed"), key=lambda way: sure[way, CAPTAIN])
    town = f"In which town was {first} Who born?"
    sure |= {(way, town): draw() for way in ("closed", "open")}
    second = max(("open", "closed"), key=lambda way: sure[way, town])
    sure |= {(way, QUESTION): draw() for way in ("closed", "open", "children")}
    split = draw()
    done = run_baseline("probtree", ships, SureModel(sure, split=split), {"own": "free"})

    mean = (sure["children", QUESTION] + split + sure[first, CAPTAIN] + sure[second, town]) / 4
    confidences = {"closed": sure["closed", QUESTION], "open": sure["open", QUESTION], "children": mean}
    best = max(confidences, key=lambda way: confidences[way])
    assert done.answers.final_answer == f"{best} In"
    assert [node_data(done, node)["how"] for node in (0, 1, 2)] == [WAY_NAMES[way] for way in (best, first, second)]
    shown = {entry["how"]: entry["confidence"] for entry in node_data(done, 0)["candidates"]}
    assert shown == {WAY_NAMES[way]: pytest.approx(value) for way, value in confidences.items()}
    assert done.outcome.details["confidence"] == pytest.approx(confidences[best])
    assert done.outcome.details["confidence_measure"] == "mean log-probability"
    # 1 + 2 for each leaf + 3 for the inner node.
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 8
    assert all(request.body["logprobs"] is True for request in done.requests)
    used = {first, second} if best == "children" else {best}
    assert (done.answers.answer_text is not None) == (used == {"open"})
    assert (done.answers.answer_model is not None) == (used == {"closed"})


def test_nodes_that_do_not_wait_for_each_other_are_asked_in_the_same_round(ships: ToolContext) -> None:
    done = run_baseline("probtree", ships, SureModel({}), {"own": "free"})
    asked = [step.node for step in done.steps if step.skill is not None and step.skill != SPAN_SKILL]
    assert asked[0] == "plan"
    assert asked[-1] == "0/children"
    # The closed-book answers need no retrieval, so that those of the question and its first part come first.
    assert set(asked[1:3]) == {"0/closed", "1/closed"}
    spans = {step.node: step for step in done.steps if step.skill == SPAN_SKILL}
    assert spans["1"].parent_id == spans["2"].parent_id == spans["0"].id
    by_id = {step.id: step for step in done.steps}
    for step in done.steps:
        if step.parent_id is not None and step.node not in spans:
            assert by_id[step.parent_id].node == (step.node or "").partition("/")[0]


def test_the_answer_cites_the_steps_of_its_children_and_what_they_refer_to(ships: ToolContext) -> None:
    def script(request: Request) -> Says:
        way, asked = way_of(request), read_request(request)
        if way == "plan":
            return with_logprobs({"decompositions": [DECOMPOSITION]}, {"decompositions": -0.1})
        fields: dict[str, Any] = {"reasons": "So.", "answers": [], "support": [], "unknown": True}
        if way == "open" and asked["question"] == CAPTAIN:
            support = [passage_id(request, "captain of Sea Star is")]
            fields |= {"answers": [{"text": "Ada Lund"}], "support": support, "unknown": False}
        if way == "open" and asked["question"] == "In which town was Ada Lund born?":
            support = [passage_id(request, "born in Gullhaven")]
            fields |= {"answers": [{"text": "Gullhaven"}], "support": support, "unknown": False}
        if way == "children":
            assert [fact["fact"] for fact in asked["state"]] == [
                f"{CAPTAIN} Ada Lund.",
                "In which town was Ada Lund born? Gullhaven.",
            ]
            fields |= {"answers": [{"text": "Gullhaven"}], "used": [2], "unknown": False}
        return with_logprobs(fields, {"reasons": -0.3})

    done = run_baseline("probtree", ships, script)
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    captain, town = (done.steps[position - 1] for position in done.outcome.details["cited_steps"])
    assert ("captain of Sea Star is" in str(captain.observation), captain.node) == (True, "1/open/text/0/read0")
    assert ("born in Gullhaven" in str(town.observation), (town.node or "")[:6]) == (True, "2/open")
    assert done.outcome.details["closed_book"] == "left out, since own=never"
    # 1 + 1 for each leaf + 2 for the inner node.
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 5
    assert "closed" not in {way_of(request) for request in done.requests}


def test_without_log_probabilities_the_agreement_of_three_samples_decides_and_is_named(ships: ToolContext) -> None:
    counts: dict[tuple[str, str], int] = {}
    replies = {
        ("open", CAPTAIN): ["Bo Reed", "Cy Holm", "Ada Lund"],
        ("closed", CAPTAIN): ["Ada Lund", "ada lund", "Bo Reed"],
        ("open", "In which town was Ada Lund born?"): ["Gullhaven"] * 3,
        ("closed", "In which town was Ada Lund born?"): [None, None, "Oslo"],
        ("open", QUESTION): ["Saltmouth", "Oslo", "Gullhaven"],
        ("closed", QUESTION): [None] * 3,
        ("children", QUESTION): ["Gullhaven", "Gullhaven", "Oslo"],
    }

    def script(request: Request) -> Says:
        way, asked = way_of(request), read_request(request)
        if way == "plan":
            return Says(json.dumps({"decompositions": [DECOMPOSITION]}))
        place = (way, asked["question"])
        counts[place] = counts.get(place, 0) + 1
        text = replies[place][counts[place] - 1]
        reply = {"reasons": "So.", "answers": [] if text is None else [{"text": text}], "unknown": text is None}
        return Says(json.dumps(reply))

    # One call at a time, so that the replies to one place come in order.
    done = run_baseline("probtree", ships, script, {"own": "free"}, concurrency=1)
    assert done.outcome.details["confidence_measure"] == "agreement of 3 samples"
    assert node_data(done, 1)["measure"] == "agreement of 3 samples"
    assert (node_data(done, 1)["how"], node_data(done, 1)["confidence"]) == ("closed-book", pytest.approx(log(2 / 3)))
    assert (node_data(done, 2)["how"], node_data(done, 2)["confidence"]) == ("open-book", 0.0)
    # Of the reasoning 2/3, of the decomposition 3/3, of the children 2/3 and 3/3; the others have 1/3 or nothing.
    assert node_data(done, 0)["confidence"] == pytest.approx(2 * log(2 / 3) / 4)
    assert (done.answers.final_answer, node_data(done, 0)["how"]) == ("Gullhaven", "children")
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 24
    # Log-probabilities are asked for once, and never again of this server.
    assert ["logprobs" in request.body for request in done.requests] == [True] + [False] * 23
    assert {request.body.get("temperature") for request in done.requests[1:]} == {0.7}


def test_plans_that_split_otherwise_lower_the_confidence_in_a_decomposition(ships: ToolContext) -> None:
    plans = iter([[DECOMPOSITION], [], [DECOMPOSITION]])

    def script(request: Request) -> Says:
        if way_of(request) == "plan":
            return Says(json.dumps({"decompositions": next(plans)}))
        return Says(json.dumps({"reasons": "So.", "answers": [{"text": "Gullhaven"}]}))

    done = run_baseline("probtree", ships, script)
    assert node_data(done, 0)["candidates"][0]["confidence"] == pytest.approx(log(2 / 3) / 4)
    # So the answer without the children is surer.
    assert (node_data(done, 0)["how"], node_data(done, 0)["confidence"]) == ("open-book", 0.0)


def test_an_answer_without_a_log_probability_loses_and_is_counted(ships: ToolContext) -> None:
    missing = {("open", CAPTAIN): None, ("closed", CAPTAIN): -2.4}
    done = run_baseline("probtree", ships, SureModel(missing), {"own": "free"})
    assert node_data(done, 1)["how"] == "closed-book"
    assert "unmeasured_nodes" not in done.outcome.details
    # Where no way is measured, the node has an answer, but no confidence; its parent is surer without it.
    none = {("open", CAPTAIN): None, ("closed", CAPTAIN): None, ("open", QUESTION): -2.4, ("closed", QUESTION): -2.5}
    done = run_baseline("probtree", ships, SureModel(none), {"own": "free"})
    assert (node_data(done, 1)["how"], node_data(done, 1)["confidence"]) == ("open-book", None)
    assert (node_data(done, 0)["how"], done.outcome.details["unmeasured_nodes"]) == ("open-book", 1)
    assert done.outcome.details["confidence_measure"] == "mean log-probability"


def test_a_plan_with_a_decomposition_without_log_probability_is_sampled(ships: ToolContext) -> None:
    done = run_baseline("probtree", ships, SureModel({}, split=None))
    assert done.outcome.details["confidence_measure"] == "agreement of 3 samples"
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 15


def test_a_question_that_is_not_split_is_answered_alone(ships: ToolContext) -> None:
    done = run_baseline("probtree", ships, SureModel({("closed", QUESTION): -0.1}, decompositions=[]), {"own": "free"})
    assert (done.answers.final_answer, done.answers.answer_model) == ("closed In", "closed In")
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 3


def test_a_question_that_names_an_unknown_answer_is_not_asked(ships: ToolContext) -> None:
    unknown: dict[tuple[str, str], str | None] = {("open", CAPTAIN): None, ("open", QUESTION): "Saltmouth"}
    done = run_baseline("probtree", ships, SureModel({}, unknown))
    assert [node_data(done, node)["unknown"] for node in (1, 2)] == [True, True]
    assert node_data(done, 2)["question"] == TOWN
    assert (done.answers.final_answer, node_data(done, 0)["how"]) == ("Saltmouth", "open-book")
    assert {read_request(request)["question"] for request in done.requests} == {QUESTION, CAPTAIN}


def test_an_inner_node_that_names_an_unknown_answer_is_not_asked_in_any_way(ships: ToolContext) -> None:
    inner = {"of": 2, "into": [{"id": 3, "question": "Where is Gullhaven?"}, {"id": 4, "question": "Who was born?"}]}
    unknown: dict[tuple[str, str], str | None] = {("open", CAPTAIN): None}
    done = run_baseline("probtree", ships, SureModel({}, unknown, [DECOMPOSITION, inner]))
    assert [node_data(done, node)["unknown"] for node in (1, 2, 3, 4)] == [True, True, False, False]
    asked = {read_request(request)["question"] for request in done.requests}
    assert asked == {QUESTION, CAPTAIN, "Where is Gullhaven?", "Who was born?"}
    # No child has an answer, so that the question is answered without them.
    assert node_data(done, 0)["how"] == "open-book"
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 5


def test_where_no_way_knows_the_question_is_refused(ships: ToolContext) -> None:
    script = SureModel({}, {("open", question): None for question in (QUESTION, CAPTAIN)})
    done = run_baseline("probtree", ships, script)
    assert (done.outcome.ending, done.outcome.answers) == ("refused", None)
    assert "No node of the tree" in str(done.outcome.failure)


def test_a_model_that_never_gives_a_usable_reply_fails_the_run(ships: ToolContext) -> None:
    done = run_baseline("probtree", ships, lambda _request: Says("Gullhaven, I think."))
    assert (done.outcome.ending, done.outcome.answers) == ("failed", None)
    assert "gave no usable reply" in str(done.outcome.failure)
    plan = next(step for step in done.steps if step.node == "plan")
    assert (plan.data or {})["fallback"] == "the question is not split"


def tree(*splits: tuple[int, list[tuple[int, str]]]) -> QuestionTreeReply:
    return QuestionTreeReply.model_validate(
        {
            "decompositions": [
                {"of": of, "into": [{"id": number, "question": text} for number, text in into]} for of, into in splits
            ]
        }
    )


DEEP = [(number, [(2 * number + 1, "Who?"), (2 * number + 2, "Who?")]) for number in (0, 2, 6, 14, 30, 62)]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (tree((0, [(1, "Who?"), (1, "When?")])), "The number 1 is given twice"),
        (tree((0, [(0, "Who?"), (1, "When?")])), "The number 0 is given twice"),
        (tree((0, [(1, "Who?"), (2, "When?")]), (0, [(3, "Who?"), (4, "When?")])), "Question 0 is split twice"),
        (tree((0, [(1, "Who?"), (2, "When?")]), (9, [(3, "Who?"), (4, "When?")])), "There is no question 9 to split"),
        (tree((0, [(1, "Who?")])), "Question 0 is split into fewer than two"),
        (tree((0, [(1, "Who?"), (2, " ")])), "Question 2 is empty"),
        (tree((0, [(1, "Who?"), (2, "When was #7?")])), "Question 2 refers to #7"),
        (tree((0, [(1, "Who is #2?"), (2, "When was #1?")])), "waits for"),
        (tree((0, [(1, "Who is #0?"), (2, "When?")])), "waits for"),
        (tree((1, [(2, "Who?"), (3, "When?")]), (3, [(1, "Who?"), (4, "When?")])), "waits for"),
        (tree((0, [(number, "Who?") for number in range(1, 41)])), "There are 41 questions; use at most 40"),
        (tree(*DEEP), "levels deep"),
    ],
)
def test_a_tree_that_cannot_be_answered_is_refused_with_a_sentence(reply: QuestionTreeReply, words: str) -> None:
    assert words in (check_question_tree(BareQuestion(question=QUESTION), reply) or "")


def test_a_tree_is_accepted_whatever_its_question_writes() -> None:
    assert check_question_tree(BareQuestion(question="Who won #9?"), tree()) is None
    split = tree((0, [(1, "Who?"), (5, "When was #1?")]), (5, [(2, "What was #1?"), (3, "When was #2?")]))
    assert check_question_tree(BareQuestion(question="Who won #9?"), split) is None


def test_a_bad_tree_is_asked_again_with_the_sentence_that_says_why(ships: ToolContext) -> None:
    good = SureModel({})

    def script(request: Request) -> Says:
        if way_of(request) == "plan" and len(request.body["messages"]) == 2:
            bad = [{"of": 0, "into": [{"id": 1, "question": "Who?"}]}]
            return with_logprobs({"decompositions": bad}, {"decompositions": -0.1})
        return good(request)

    done = run_baseline("probtree", ships, script)
    assert "split into fewer than two" in done.requests[1].body["messages"][-1]["content"]
    # The score is that of the tree that was used.
    assert node_data(done, 0)["candidates"][0]["confidence"] == (-1.0 - 0.5 - 1.0 - 1.0) / 4
    assert (done.outcome.calls["model_calls"], done.outcome.calls["model_calls_expected"]) == (6, 5)


def test_a_run_that_ended_anywhere_continues_with_its_recorded_log_probabilities(ships: ToolContext) -> None:
    sure = {("open", CAPTAIN): -0.75, ("children", QUESTION): -0.25, ("open", QUESTION): -2.0}
    whole = run_baseline("probtree", ships, SureModel(sure))
    outcomes = []
    for count in range(1, len(whole.steps)):
        # Spans are left open; what was finished is not asked again.
        taken = [reopened(step) for step in whole.steps[:count]]
        done = run_baseline("probtree", ships, SureModel(sure), taken=taken)
        asked = sum(step.skill not in (None, SPAN_SKILL) for step in taken)
        assert len(done.requests) == len(whole.requests) - asked
        outcomes.append((done.answers.final_answer, done.outcome.details["confidence"]))
    assert set(outcomes) == {(whole.answers.final_answer, whole.outcome.details["confidence"])}


def reopened(step: Step) -> Step:
    """A copy of the step; a span begins again as it was before its completion."""
    values = {name: getattr(step, name) for name in Step.__table__.columns.keys()}  # noqa: SIM118 - a mapping of columns, which iterates over them
    if step.skill == SPAN_SKILL:
        values |= {"finished_at": None, "observation": None, "data": None}
    return Step(**values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"own": "fallback"}, "there is no own 'fallback'; choose one of never, free"),
        ({"source": "papers"}, "there is no source 'papers'"),
        ({"articles": 0}, "articles is 0"),
        ({"temperature": 2.5}, "temperature is 2.5"),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(AgentOptionsError, match=words):
        make_reasoner("probtree", options)


def test_the_tree_is_a_skill_with_a_named_fallback() -> None:
    assert QUESTION_TREE.fallback is not None
    assert QUESTION_TREE.fallback.build(BareQuestion(question=QUESTION)).decompositions == []
