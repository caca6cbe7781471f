"""ReAct alone and joined with CoT-SC, end to end with a scripted model: prompts, limits, handover, resumed runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from showhow.db.models import Step
from showhow.fewshot_library.selection import CandidatePool, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions
from showhow.reasoners.baselines.phantomwiki import load_exemplars, search_articles
from showhow.reasoners.baselines.rounds import HANDOVER_NODE
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.tools.tool import ToolContext
from showhow.worlds.source import Article
from tests.reasoners.baselines.scripted_runs import BaselineRun, answers, run_baseline, says
from tests.reasoners.fleet import fleet, recorded
from tests.servers.model import Request, Says

GoldenComparison = Callable[[str, str], None]
SEARCH = Says("I search for the ship.", calls=[("wikisearch", {"query": "Sea Star"})])
READ = Says(
    "I read who the captain is.", calls=[("read", {"title": "Sea Star", "question": "Who is the captain of Sea Star?"})]
)
READ_CAPTAIN = Says("I read the captain.", calls=[("read", {"title": "Ada Lund", "question": "Where was she born?"})])
ENDS = Says("She was born there.\n\nFinal Answer: Gullhaven")
NOTHING = {"thought": "I do not know.", "answers": [], "text_says": [], "found": False, "steps": []}
UNRUNNABLE = Says("Hm.", calls=[("google", {"q": "Ada"})])
GIVES_UP = Says(calls=[("finish", NOTHING)])


def test_react_without_shots_asks_once_a_round_and_once_for_the_answer(
    ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    done = run_baseline("react", ships, [SEARCH, READ, READ_CAPTAIN, ENDS])
    assert (done.answers.final_answer, done.tools) == ("Gullhaven", ["wikisearch", "read", "read"])
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 4
    assert done.outcome.details["demonstrations_shown"] == 0
    matches_golden("react", done.prompts.partition("\n\n===== request 2")[0])


def test_several_calls_of_a_message_are_one_round(ships: ToolContext) -> None:
    both = Says("I do both.", calls=[*SEARCH.calls, *READ.calls])
    done = run_baseline("react", ships, [both, READ_CAPTAIN, ENDS], {"rounds": 2})
    assert (done.answers.final_answer, len(done.tools)) == ("Gullhaven", 3)
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 3


def test_react_is_refused_when_it_calls_a_tool_after_its_last_round(ships: ToolContext) -> None:
    done = run_baseline("react", ships, [SEARCH, READ, READ_CAPTAIN, ENDS], {"rounds": 2})
    assert (done.outcome.ending, done.outcome.answers) == ("refused", None)
    assert done.outcome.failure == "There is no answer after 2 rounds; allow more of them."
    # The reply that was no answer is paid, and stored.
    assert (len(done.requests), done.outcome.usage["calls"], done.outcome.calls["model_calls"]) == (3, 3, 3)
    assert "The limit of 2 rounds is reached" in (done.steps[-1].error or "")


def test_seven_rounds_are_the_published_default(ships: ToolContext) -> None:
    calls = [Says("Again.", calls=[("wikisearch", {"query": f"Ship {number}"})]) for number in range(9)]
    done = run_baseline("react", ships, calls)
    assert (done.outcome.ending, len(done.tools), len(done.requests)) == ("refused", 7, 8)


def test_fixed_shots_are_the_first_of_the_library_whatever_the_question() -> None:
    config = REASONERS["react"].selection_config({"shots": "fixed", "k": 2})
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(6, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pool = CandidatePool(vectors[:4], encode_actions([["read"], ["wikisearch"], ["runQuery"], ["read"]]))
    picks = [[pick.item for pick in select_demonstrations(pool, vectors[row], config).picks] for row in (3, 4, 5)]
    assert picks == [[0, 1]] * 3
    assert REASONERS["react"].selection_config({}).k == 0


def test_fixed_shots_stand_in_the_prompt_and_are_required(ships: ToolContext) -> None:
    shot = recorded(
        ships,
        "Who is the captain of Low Tide?",
        [("I read the article.", "read", {"title": "Low Tide", "question": "Who is the captain of Low Tide?"})],
        "Cy Holm",
    )
    done = run_baseline("react", ships, [READ, ENDS], {"shots": "fixed"}, demonstrations=[shot])
    assert "Who is the captain of Low Tide?" in done.requests[0].prompt
    assert done.outcome.details["demonstrations_shown"] == 1
    without = run_baseline("react", ships, [], {"shots": "fixed"})
    assert (without.outcome.ending, without.requests) == ("failed", [])
    assert "needs a library" in str(without.outcome.failure)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("react", {"rounds": 0}, "rounds is 0"),
        ("react", {"shots": "dpp"}, "there is no shots 'dpp'; choose one of none, fixed"),
        ("react", {"sources": "web"}, "there is no sources 'web'"),
        ("react-cot-sc", {"samples": 0}, "samples is 0"),
        ("cot-sc-react", {"temperature": 3.0}, "temperature is 3.0"),
    ],
)
def test_an_invalid_option_is_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(AgentOptionsError, match=words):
        make_reasoner(name, options)


def sample(*texts: str) -> Says:
    return says(reasons="It seems so.", **answers(*texts, unknown=not texts))


def reply_in_turn(react: list[Says], samples: list[Says]) -> Callable[[Request], Says]:
    """Replies to requests of ReAct, which offer tools, and to those of samples, each in its own order."""
    queues: dict[bool, Iterator[Says]] = {True: iter(react), False: iter(samples)}
    return lambda request: next(queues[bool(request.body.get("tools"))])


def handover_of(done: BaselineRun) -> Step | None:
    return next((step for step in done.steps if step.node == HANDOVER_NODE), None)


def test_react_that_answers_asks_for_no_samples(ships: ToolContext) -> None:
    done = run_baseline("react-cot-sc", ships, [READ_CAPTAIN, ENDS])
    assert (done.answers.final_answer, handover_of(done)) == ("Gullhaven", None)
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 2


@pytest.mark.parametrize(
    ("react", "rounds", "reason"),
    [
        ([SEARCH, READ], 1, "no answer after 1 rounds"),
        ([GIVES_UP], 1, "have no answer"),
        ([UNRUNNABLE] * 3, 7, "cannot be run"),
    ],
    ids=["limit", "no answer", "unusable"],
)
def test_where_react_has_no_answer_the_samples_vote(
    ships: ToolContext, react: list[Says], rounds: int, reason: str
) -> None:
    script = reply_in_turn(react, [sample("Gullhaven"), sample("Oslo"), sample("Gullhaven")])
    done = run_baseline("react-cot-sc", ships, script, {"rounds": rounds, "samples": 3})
    handover = handover_of(done)
    assert handover is not None
    assert reason in handover.thought
    assert (done.answers.final_answer, done.answers.answer_model) == ("Gullhaven", "Gullhaven")
    assert done.outcome.details["answered_by"] == "cot-sc"
    assert done.outcome.calls["model_calls"] == len(react) + 3
    # Replies that cannot be run have no plan to be expected by.
    expected = None if reason == "cannot be run" else len(react) + 3
    assert done.outcome.calls.get("model_calls_expected") == expected


def test_samples_with_a_majority_need_no_tools(ships: ToolContext) -> None:
    done = run_baseline("cot-sc-react", ships, [sample("Gullhaven")] * 3, {"samples": 3})
    assert (done.answers.final_answer, done.tools, handover_of(done)) == ("Gullhaven", [], None)


SPLIT = [sample("Oslo"), sample("Saltmouth"), sample()]


def test_where_samples_have_no_majority_react_answers_with_steps_of_its_own(ships: ToolContext) -> None:
    script = reply_in_turn([READ, READ_CAPTAIN, ENDS], SPLIT)
    done = run_baseline("cot-sc-react", ships, script, {"samples": 3})
    assert (done.answers.final_answer, done.answers.answer_model) == ("Gullhaven", None)
    assert done.outcome.details["answered_by"] == "react"
    assert [step.position for step in done.steps] == list(range(1, 7))
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 6
    prompts = [request.prompt for request in done.requests[3:]]
    assert "Oslo" not in "".join(prompts)
    assert prompts[1].startswith(prompts[0])


def test_a_question_that_neither_method_answers_is_refused(ships: ToolContext) -> None:
    done = run_baseline("cot-sc-react", ships, reply_in_turn([GIVES_UP], SPLIT), {"samples": 3})
    assert (done.outcome.ending, done.outcome.answers, len(done.requests)) == ("refused", None, 4)


@pytest.mark.parametrize(
    ("name", "react", "samples"),
    [
        ("cot-sc-react", [READ, READ_CAPTAIN, ENDS], [sample()] * 3),
        ("react-cot-sc", [SEARCH, READ, READ_CAPTAIN], [sample("Gullhaven")] * 3),
    ],
)
def test_a_run_that_ended_anywhere_continues_and_asks_nothing_again(
    ships: ToolContext, name: str, react: list[Says], samples: list[Says]
) -> None:
    options = {"samples": 3, "rounds": 2}
    whole = run_baseline(name, ships, reply_in_turn(react, samples), options)
    for count in range(1, len(whole.steps)):
        taken = whole.steps[:count]
        asked_samples = sum(step.skill is not None for step in taken)
        asked_rounds = sum("thought" in step.usage for step in taken)
        script = reply_in_turn(react[asked_rounds:], samples[asked_samples:])
        done = run_baseline(name, ships, script, options, taken=taken)
        assert done.answers.final_answer == whole.answers.final_answer
        assert len(done.requests) == len(whole.requests) - asked_samples - asked_rounds
        assert [(step.node, step.tool) for step in done.steps] == [(step.node, step.tool) for step in whole.steps]


ARTICLES = [
    Says("I search.\nAction: Search\nAction Input: sea star"),
    Says("I retrieve.\nAction: RetrieveArticle\nAction Input: ada lund"),
    Says("I retrieve.\nAction: RetrieveArticle\nAction Input: Ada"),
    Says("She was born there.\nFinal Answer: Gullhaven"),
]


def test_phantomwikis_react_has_two_tools_over_all_articles_ten_exemplars_and_fifty_rounds(ships: ToolContext) -> None:
    options = REASONERS["react"].apply_preset("published", {})
    assert options["rounds"] == 50
    done = run_baseline("react", ships, ARTICLES, options)
    assert (done.answers.final_answer, done.tools) == ("Gullhaven", ["Search", "RetrieveArticle", "RetrieveArticle"])
    searched, retrieved, missed = done.steps
    text = ships.world.text
    assert text is not None
    having = [article.title for article in text.list_articles(7) if "sea star" in article.text.casefold()]
    assert (searched.data or {})["titles"] == having
    assert having
    assert retrieved.observation == text.article("Ada Lund").text
    assert (missed.observation, missed.error_kind) == (None, "not found")
    system = done.requests[0].body["messages"][0]["content"]
    assert [system.count(f"Question: {exemplar.question}") for exemplar in load_exemplars()] == [1] * 10
    assert "wikisearch" not in system


def test_a_search_of_all_articles_returns_every_title_however_many(tmp_path: Path) -> None:
    town = [Article(f"Person {number:04}", (f"Person {number:04} is a ferry pilot.",)) for number in range(1_200)]
    context = fleet(tmp_path, "town", town)
    observation = search_articles(context, " Ferry Pilot ")
    assert sorted(observation.data["titles"]) == [article.title for article in town]
    assert search_articles(context, "checkers (draughts)").data["titles"] == []
