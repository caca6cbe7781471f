"""Chain-of-Knowledge end to end with a scripted model: agreement, corrected rationales, own knowledge, bad replies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL
from showhow.reasoners.baselines.chain_of_knowledge import MAX_RATIONALES
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import make_reasoner
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import QUESTION, BaselineRun, answers, read_request, run_baseline, says
from tests.servers.model import Request, Says

WRONG = ["The captain of Sea Star is Bo Reed.", "Bo Reed was born in Saltmouth."]
RIGHT = ["The captain of Sea Star is Ada Lund.", "Ada Lund was born in Gullhaven."]
SKILLS = {
    "You choose where to look": "domains",
    "You reason towards the answer": "draft",
    "You write the next sentence of a reasoning whose": "next",
    "You correct a sentence": "correct",
    "You answer a question from facts": "answer",
}
Fields = dict[str, Any]


def skill_of(request: Request) -> str:
    """Which of the skills a request calls."""
    system = request.body["messages"][0]["content"]
    return next(skill for words, skill in SKILLS.items() if system.startswith(words))


def draft(*texts: str, rationales: Sequence[str] = WRONG, unknown: bool = False) -> Says:
    return says(rationales=list(rationales), **answers(*texts, unknown=unknown))


@dataclass
class Corrector:
    """Replies with drafts in order, and corrects their rationales by the passages that state the right ones."""

    drafts: Sequence[Says] = field(default_factory=lambda: [draft("Saltmouth")])
    told: Sequence[str] = tuple(RIGHT)
    """What the passages are read to state, in the order of the rationales."""
    given: dict[str, Callable[[Request], Says]] = field(default_factory=dict)
    """Other replies by skill."""
    drafted: int = 0

    def __call__(self, request: Request) -> Says:
        skill = skill_of(request)
        if skill in self.given:
            return self.given[skill](request)
        if skill == "draft":
            self.drafted += 1
            return self.drafts[self.drafted - 1]
        if skill == "correct":
            return self._correct(read_request(request))
        return {
            "domains": says(sources=["text"]),
            "next": says(rationale="Ada Lund was born in Saltmouth."),
            "answer": says(reasons="It follows.", used=[2], **answers("Gullhaven")),
        }[skill]

    def _correct(self, asked: Fields) -> Says:
        topic = "captain" if "captain" in asked["rationale"] else "born"
        for passage in asked["passages"]:
            for right in self.told:
                if topic in right and right in passage["text"]:
                    return says(rationale=right, support=[passage["id"]], unknown=False)
        return says(rationale=asked["rationale"], support=[], unknown=True)


def counts(done: BaselineRun) -> dict[str, int]:
    names = [skill_of(request) for request in done.requests]
    return {name: names.count(name) for name in SKILLS.values() if name in names}


def test_each_rationale_is_corrected_by_what_it_retrieves_and_the_next_is_written_after_it(ships: ToolContext) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector())
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    # 1 draft, 1 choice of sources, and 4 for two rationales, of which the first is not written anew.
    assert counts(done) == {"domains": 1, "draft": 1, "next": 1, "correct": 2, "answer": 1}
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 6
    after = next(read_request(request) for request in done.requests if skill_of(request) == "next")
    assert (after["corrected"], after["draft"]) == ([RIGHT[0]], [WRONG[1]])
    last = read_request(done.requests[-1])
    assert [fact["fact"] for fact in last["state"]] == RIGHT
    queries = [step.arguments["query"] for step in done.steps if step.tool == "wikisearch"]
    assert queries == [WRONG[0], "Ada Lund was born in Saltmouth."]
    assert len(done.outcome.details["cited_steps"]) == 1
    assert "born in Gullhaven" in str(done.steps[done.outcome.details["cited_steps"][0] - 1].observation)
    assert done.outcome.details["closed_book"] == "left out, since own=never"


def test_rationales_are_spans_with_what_was_drafted_written_and_corrected(ships: ToolContext) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector())
    spans = [step for step in done.steps if step.skill == SPAN_SKILL]
    assert [step.node for step in spans] == ["rationale/1", "rationale/2"]
    assert [step.observation for step in spans] == RIGHT
    data = [step.data or {} for step in spans]
    assert [entry["draft"] for entry in data] == WRONG
    assert [entry["rationale"] for entry in data] == [WRONG[0], "Ada Lund was born in Saltmouth."]
    assert [entry["how"] for entry in data] == ["sources", "sources"]
    inside = [step for step in done.steps if (step.node or "").startswith("rationale/") and step not in spans]
    assert {step.parent_id for step in inside} == {step.id for step in spans}


FREE = {"own": "free", "samples": 4}


@pytest.mark.parametrize(
    ("drafts", "agreed"),
    [
        ([draft("Oslo")] * 4, True),
        ([draft("Oslo"), draft("oslo"), draft("Bergen"), draft(unknown=True)], True),
        ([draft("Oslo", "Bergen"), draft("Bergen", "Oslo"), draft("Oslo"), draft("Bergen")], True),
        ([draft("Oslo"), draft("Bergen"), draft("Saltmouth"), draft("Oslo", "Bergen")], False),
        ([draft(unknown=True)] * 4, False),
        ([draft("Oslo"), *[Says("Oslo!")] * 3], False),
    ],
    ids=["all", "half", "half as sets", "none", "unknown", "unusable"],
)
def test_samples_that_agree_by_half_answer_without_sources(
    ships: ToolContext,
    drafts: list[Says],
    agreed: bool,  # noqa: FBT001 - a case
) -> None:
    script = Corrector([*drafts, *[Says("Oslo!")] * 6])
    done = run_baseline("chain-of-knowledge", ships, script, FREE, concurrency=1)
    assert (done.tools == []) == agreed
    if agreed:
        assert (done.answers.answer_model, done.answers.answer_text) == (done.answers.final_answer, None)
        assert "Oslo" in done.answers.final_answer
        assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 4
        assert {request.body["temperature"] for request in done.requests} == {0.7}
        assert done.outcome.details["samples_agreeing"] == (4 if drafts[3] == drafts[0] else 2)
    else:
        assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
        # n + 1 + 4 for two rationales.
        assert done.outcome.calls["model_calls_expected"] == 9


def test_the_option_agreement_is_the_share_that_suffices(ships: ToolContext) -> None:
    drafts = [draft("Oslo"), draft("Oslo"), draft("Oslo"), draft("Bergen")]
    for agreement, tools in ((0.75, False), (0.76, True)):
        done = run_baseline("chain-of-knowledge", ships, Corrector(drafts), FREE | {"agreement": agreement})
        assert bool(done.tools) == tools


def test_ten_samples_and_half_of_them_are_the_published_default(ships: ToolContext) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector([draft("Oslo")] * 10), {"own": "free"})
    assert (done.outcome.calls["model_calls"], done.outcome.details["samples"]) == (10, 10)


def test_the_draft_with_the_most_frequent_answers_is_corrected(ships: ToolContext) -> None:
    other = ["Sea Star is a ship.", *WRONG]
    drafts = [draft("Bergen"), draft("Oslo", rationales=other), draft("Oslo"), draft("Moss"), draft("Hamar")]
    script = Corrector(drafts)
    done = run_baseline("chain-of-knowledge", ships, script, FREE | {"samples": 5}, concurrency=1)
    assert next(step.thought for step in done.steps if step.node == "rationale/1") == "Sea Star is a ship."


def test_what_no_source_tells_is_left_out_or_marked_as_own_knowledge(ships: ToolContext) -> None:
    script = Corrector(told=RIGHT[1:])
    never = run_baseline("chain-of-knowledge", ships, script)
    state = read_request(never.requests[-1])["state"]
    assert (state[0]["fact"], state[0]["unknown"]) == ("The sources do not tell it.", True)
    assert "Bo Reed" not in str(state[0])

    drafts = [draft("Oslo"), draft("Bergen"), draft("Saltmouth"), draft("Moss")]

    def answer_from_both(_request: Request) -> Says:
        return says(reasons="It follows.", used=[1, 2], **answers("Gullhaven"))

    script = Corrector(drafts, RIGHT[1:], {"answer": answer_from_both})
    free = run_baseline("chain-of-knowledge", ships, script, FREE)
    state = read_request(free.requests[-1])["state"]
    assert [(fact["fact"], fact["unknown"]) for fact in state] == [(WRONG[0], False), (RIGHT[1], False)]
    assert free.outcome.details["own_rationales"] == [1]
    # It rests on both, so it is the answer of neither alone.
    assert (free.answers.final_answer, free.answers.answer_text, free.answers.answer_model) == ("Gullhaven", None, None)
    spans = [step.data or {} for step in free.steps if step.skill == SPAN_SKILL]
    assert [entry["how"] for entry in spans] == ["own knowledge", "sources"]


def test_a_rationale_that_follows_from_earlier_ones_rests_on_their_sources(ships: ToolContext) -> None:
    drafted = [RIGHT[0], "So Ada Lund commands a ship."]
    corrector = Corrector([draft("Saltmouth", rationales=drafted)])

    def correct(request: Request) -> Says:
        asked = read_request(request)
        if not asked["corrected"]:
            return corrector_reply(request)
        return says(rationale=asked["rationale"], support=[], unknown=False)

    corrector_reply = Corrector()
    corrector.given = {"correct": correct, "next": lambda request: says(rationale=read_request(request)["draft"][0])}
    done = run_baseline("chain-of-knowledge", ships, corrector)
    spans = [step.data or {} for step in done.steps if step.skill == SPAN_SKILL]
    assert [entry["how"] for entry in spans] == ["sources", "earlier rationales"]
    assert spans[1]["support"] == spans[0]["support"] != []
    assert (done.answers.answer_text, len(done.outcome.details["cited_steps"])) == ("Gullhaven", 1)


def test_where_the_sources_tell_nothing_the_question_is_refused_without_an_answer_call(ships: ToolContext) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector(told=()))
    assert (done.outcome.ending, done.outcome.answers, "answer" in counts(done)) == ("refused", None, False)
    assert "tell none of the rationales" in str(done.outcome.failure)


def test_an_answer_that_does_not_follow_refuses_the_question(ships: ToolContext) -> None:
    unknown = {"answer": lambda _request: says(reasons="No.", used=[], **answers(unknown=True))}
    done = run_baseline("chain-of-knowledge", ships, Corrector(given=unknown))
    assert (done.outcome.ending, done.outcome.answers) == ("refused", None)


@pytest.mark.parametrize("skill", ["draft", "answer"])
def test_a_call_without_a_usable_reply_fails_the_run(ships: ToolContext, skill: str) -> None:
    for options in ({}, {"own": "free", "samples": 2}):
        drafts = [draft("Oslo"), draft("Bergen"), draft("Moss")]
        script = Corrector(drafts, given={skill: lambda _request: Says("Gullhaven.")})
        # Two samples that differ: each is half of them, so that a whole agreement is asked for.
        agreement = {"agreement": 1.0} if options else {}
        done = run_baseline("chain-of-knowledge", ships, script, options | agreement)
        assert (done.outcome.ending, "no usable reply" in str(done.outcome.failure)) == ("failed", True)


@pytest.mark.parametrize(
    ("skill", "bad", "words"),
    [
        ("draft", says(rationales=[], **answers("Oslo")), "There is no rationale"),
        ("draft", says(rationales=["A.", " "], **answers("Oslo")), "or an empty one"),
        ("draft", says(rationales=["A."] * (MAX_RATIONALES + 1), **answers("Oslo")), "write at most 20"),
        ("draft", draft("Oslo", unknown=True), "give one of the two"),
        ("next", says(rationale=" "), "The rationale is empty"),
        ("next", says(rationale=RIGHT[0].upper()), "was written before"),
        ("correct", says(rationale="", unknown=True), "The rationale is empty"),
        ("correct", says(rationale="A.", support=["99.9"]), "no passage 99.9"),
        ("correct", says(rationale="A.", support=["1.1"], unknown=True), "names passages and says"),
        ("answer", says(reasons="", used=[9], **answers("Oslo")), "There is no fact 9"),
        ("correct", Says('{"rationale": "Ada', reason="length"), "cut off"),
    ],
)
def test_a_bad_reply_is_asked_again_with_the_sentence_that_says_why(
    ships: ToolContext, skill: str, bad: Says, words: str
) -> None:
    good = Corrector()

    def script(request: Request) -> Says:
        return bad if skill_of(request) == skill and len(request.body["messages"]) == 2 else good(request)

    done = run_baseline("chain-of-knowledge", ships, script)
    again = [request.body["messages"][-1]["content"] for request in done.requests if len(request.body["messages"]) > 2]
    assert all(words in correction for correction in again)
    assert len(again) == (2 if skill == "correct" else 1)
    assert (done.answers.final_answer, done.outcome.calls["model_calls_expected"]) == ("Gullhaven", 6)


@pytest.mark.parametrize(("skill", "fallback"), [("next", "the drafted rationale"), ("correct", "not told")])
def test_the_fallback_of_a_skill_is_named_in_the_trace(ships: ToolContext, skill: str, fallback: str) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector(given={skill: lambda _request: Says("Hm.")}))
    steps = [step for step in done.steps if (step.skill or "").startswith(f"{skill}_rationale")]
    assert {(step.data or {})["fallback"] for step in steps} == {fallback}
    assert done.outcome.ending == ("answered" if skill == "next" else "refused")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"own": "fallback"}, "there is no own 'fallback'"),
        ({"agreement": 0.0}, "agreement is 0.0; it must be above 0 and at most 1"),
        ({"samples": 0}, "samples is 0"),
        ({"articles": 0}, "articles is 0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(AgentOptionsError, match=words):
        make_reasoner("chain-of-knowledge", options)


def test_the_question_stands_in_every_request(ships: ToolContext) -> None:
    done = run_baseline("chain-of-knowledge", ships, Corrector())
    assert {read_request(request)["question"] for request in done.requests} == {QUESTION}
