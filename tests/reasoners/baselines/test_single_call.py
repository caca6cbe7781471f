"""Baselines with one call, end to end with a scripted model: prompts, answers, votes, refusals, bad replies."""

import json
from collections.abc import Callable

import pytest

from showhow.reasoners.baselines.phantomwiki import load_exemplars
from showhow.reasoners.baselines.single_call import InContextOptions, vote_over_sets
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.values import AnswersReply, AnswerValue
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import QUESTION, answers, passage_id, read_request, run_baseline, says
from tests.reasoners.scripted import NOWHERE
from tests.servers.model import Request, Says

REASONS = "Ada Lund is the captain. She was born in Gullhaven."
BIRTHPLACE = "born in Gullhaven"
GoldenComparison = Callable[[str, str], None]


@pytest.mark.parametrize(("name", "reasons"), [("direct", {}), ("cot", {"reasons": REASONS})])
def test_a_closed_book_answer_is_the_models_own(
    ships: ToolContext, matches_golden: GoldenComparison, name: str, reasons: dict[str, str]
) -> None:
    done = run_baseline(name, ships, [says(**reasons, **answers("Gullhaven"))])
    assert (done.answers.final_answer, done.answers.answer_model) == ("Gullhaven", "Gullhaven")
    assert (done.answers.answer_text, done.answers.answer_graph, done.tools) == (None, None, [])
    assert (reasons.get("reasons") or "So") in (done.answers.final_thought or "")
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 1
    matches_golden(name, done.prompts)


@pytest.mark.parametrize(("name", "reasons"), [("rag", {}), ("cot-rag", {"reasons": REASONS})])
def test_one_retrieval_by_the_question_gives_the_passages_that_the_answer_cites(
    ships: ToolContext, matches_golden: GoldenComparison, name: str, reasons: dict[str, str]
) -> None:
    def script(request: Request) -> Says:
        return says(**reasons, **answers("Gullhaven", support=(passage_id(request, BIRTHPLACE),)))

    done = run_baseline(name, ships, script)
    cited = done.position_of(BIRTHPLACE)
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    assert done.answers.answer_model is None
    assert (done.answers.final_thought or "").endswith(f"So the answer is: Gullhaven. [step {cited}]")
    assert done.outcome.details["cited_steps"] == [cited]
    assert done.tools == ["wikisearch", *["read"] * 4]
    assert [step.arguments["query"] for step in done.steps if step.tool == "wikisearch"] == [QUESTION]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 1
    matches_golden(name, done.prompts)


@pytest.mark.parametrize("count", [1, 2])
def test_the_option_articles_limits_what_is_read(ships: ToolContext, count: int) -> None:
    done = run_baseline("rag", ships, [says(**answers(unknown=True))], {"articles": count})
    assert done.tools == ["wikisearch", *["read"] * count]
    assert (done.outcome.ending, "does not know" in str(done.outcome.failure)) == ("refused", True)


def test_a_source_that_is_not_offered_is_named_with_its_tools(ships: ToolContext) -> None:
    done = run_baseline("rag", ships, [], {"source": "web"})
    assert done.outcome.ending == "failed"
    assert "websearch and read" in str(done.outcome.failure)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rag", {"source": "papers"}, "there is no source 'papers'; choose one of text, web, graph, all"),
        ("rag", {"articles": 0}, "articles is 0; it must be 1 or more"),
        ("cot-sc", {"samples": 0}, "samples is 0"),
        ("cot-sc", {"temperature": 2.5}, "temperature is 2.5"),
        ("self-ask", {"rounds": 0}, "rounds is 0"),
        ("ircot", {"reader": "maybe"}, "there is no reader 'maybe'; choose one of on, off"),
    ],
)
def test_an_invalid_option_is_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(AgentOptionsError, match=words):
        make_reasoner(name, options)


def sampled(*texts: str, unknown: bool = False) -> Says:
    return says(reasons=f"It is {texts}.", **answers(*texts, unknown=unknown))


def test_answers_in_more_than_half_of_the_samples_win_and_samples_are_asked_at_the_temperature(
    ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    script = [
        sampled("Gullhaven", "Saltmouth"),
        sampled("gullhaven", "Saltmouth"),
        sampled("Gullhaven"),
        sampled("Saltmouth", "Oslo"),
        sampled(unknown=True),
    ]
    done = run_baseline("cot-sc", ships, script)
    assert sorted(done.outcome.details["answers"]) == ["Gullhaven", "Saltmouth"]
    assert done.outcome.details["votes"] == {"Gullhaven": 3, "Saltmouth": 3, "Oslo": 1}
    assert done.answers.answer_model == done.answers.final_answer
    assert [request.body["temperature"] for request in done.requests] == [0.7] * 5
    assert sorted(step.node or "" for step in done.steps) == [f"sample/{number}" for number in range(5)]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 5
    matches_golden("cot", done.prompts.partition("\n\n===== request 2")[0])


@pytest.mark.parametrize(
    "script",
    [
        [sampled("Gullhaven"), sampled("Oslo"), sampled("Gullhaven"), sampled("Oslo")],
        [sampled(unknown=True)] * 4,
        [sampled("Gullhaven")] * 2 + [sampled(unknown=True)] * 2,
        [sampled("Gullhaven")] * 2 + [sampled()] * 2,
    ],
    ids=["two and two", "all unknown", "half unknown", "half without answers"],
)
def test_without_a_majority_the_question_is_refused(ships: ToolContext, script: list[Says]) -> None:
    done = run_baseline("cot-sc", ships, script, {"samples": 4})
    assert (done.outcome.ending, done.outcome.answers) == ("refused", None)
    assert "No answer is in more than half of the 4 samples" in str(done.outcome.failure)


def test_a_majority_for_no_answers_at_all_says_that_the_question_cannot_be_answered(ships: ToolContext) -> None:
    done = run_baseline("cot-sc", ships, [sampled(), sampled(), sampled("Oslo")], {"samples": 3})
    assert done.answers.final_answer == "This question cannot be answered."


def test_a_sample_without_a_usable_reply_has_no_vote_but_counts_as_a_sample(ships: ToolContext) -> None:
    def script(request: Request) -> Says:
        # The first sample, with its two repetitions, is never usable.
        return Says("Gullhaven!") if len(request.body["messages"]) > 2 or request.place == 0 else sampled("Gullhaven")

    done = run_baseline("cot-sc", ships, script, {"samples": 2})
    assert (done.outcome.ending, done.outcome.calls["model_calls"]) == ("refused", 4)
    assert "Gullhaven in 1" in str(done.outcome.failure)


@pytest.mark.parametrize("name", ["cot", "cot-sc", "direct"])
def test_a_model_that_never_gives_a_usable_reply_fails_the_run(ships: ToolContext, name: str) -> None:
    options = {"samples": 1} if name == "cot-sc" else None
    done = run_baseline(name, ships, [Says("It is Gullhaven.")] * 3, options)
    assert (done.outcome.ending, done.outcome.calls["model_calls"]) == ("failed", 3)
    assert "gave no usable reply" in str(done.outcome.failure)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([Says("Gullhaven."), says(answers=[])], ("no JSON object", "reasons: field required")),
        (
            [Says('{"reasons": "Ada', reason="length"), says(reasons="", **answers("x", unknown=True))],
            ("cut off", "two"),
        ),
        (
            [says(reasons="", **answers("x", support=("1.1",))), says(reasons="", **answers(" "))],
            ("no passage", "empty"),
        ),
    ],
    ids=["malformed", "cut", "wrong"],
)
def test_a_bad_reply_is_asked_again_with_the_sentence_that_says_why(
    ships: ToolContext, bad: list[Says], words: tuple[str, str]
) -> None:
    done = run_baseline("cot", ships, [*bad, says(reasons=REASONS, **answers("Gullhaven"))])
    assert done.answers.final_answer == "Gullhaven"
    corrections = [request.body["messages"][-1]["content"] for request in done.requests[1:]]
    assert all(word in correction for word, correction in zip(words, corrections, strict=True))
    assert [len(request.body["messages"]) for request in done.requests] == [2, 4, 6]
    assert (done.outcome.calls["model_calls"], done.outcome.calls["model_calls_expected"]) == (3, 1)


def test_all_articles_are_in_the_prompt_and_the_answer_cites_the_step_that_read_them(
    ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    def script(request: Request) -> Says:
        return says(reasons=REASONS, **answers("Gullhaven", support=(passage_id(request, BIRTHPLACE),)))

    done = run_baseline("in-context", ships, script)
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    assert (done.outcome.details["cited_steps"], done.steps[0].data) == ([1], {"articles": 7})
    titles = [passage["title"] for passage in read_request(done.requests[0])["passages"]]
    assert sorted(titles) == ["Ada Lund", "Blue Wave", "Bo Reed", "Cy Holm", "Grey Seal", "Low Tide", "Sea Star"]
    assert (done.tools, done.outcome.calls["model_calls_expected"]) == ([], 1)
    matches_golden("in-context", done.prompts)


def test_zero_shot_in_context_asks_for_the_answer_alone(ships: ToolContext) -> None:
    options = REASONERS["in-context"].apply_preset("published", {})
    done = run_baseline("in-context", ships, [Says('{"answers": [{"text": "Gullhaven"}]}')], options)
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    (request,) = done.requests
    system, user = request.body["messages"]
    assert "Add no reasons" in system["content"]
    assert len(json.loads(user["content"])["passages"]) == 7


@pytest.mark.parametrize(("name", "preset"), [("in-context", "published-cot"), ("cot-rag", "published")])
def test_chains_of_thought_have_ten_fixed_exemplars_before_the_question(
    ships: ToolContext, name: str, preset: str
) -> None:
    options = REASONERS[name].apply_preset(preset, {})
    reply = says(reasons=REASONS, **answers("Gullhaven"))
    (request,) = run_baseline(name, ships, [reply], options).requests
    _, *shots, last = request.body["messages"]
    assert [message["role"] for message in shots] == ["user", "assistant"] * 10
    assert [json.loads(shot["content"])["question"] for shot in shots[::2]] == [e.question for e in load_exemplars()]
    for shot in shots[1::2]:
        shown = json.loads(shot["content"])
        assert shown["reasons"].endswith(".")
        assert shown["answers"]
    assert json.loads(last["content"])["question"] == QUESTION


def test_exemplars_with_reasons_do_not_go_with_answers_alone() -> None:
    with pytest.raises(AgentOptionsError, match="choose the prompting reasons, or no exemplars"):
        InContextOptions(prompting="zero-shot", exemplars="phantomwiki")


@pytest.mark.parametrize("window", [150, 1_600], ids=["by their number", "by their text"])
def test_articles_that_do_not_fit_are_refused_with_their_tokens_and_the_window(ships: ToolContext, window: int) -> None:
    done = run_baseline("in-context", ships, [], window=window)
    assert (done.outcome.ending, done.requests) == ("refused", [])
    assert f"of the {window:,} in the context window of scripted" in str(done.outcome.failure)
    assert "The 7 articles of the world fleet take at least" in str(done.outcome.failure)


def test_a_vote_counts_an_answer_once_a_sample_and_takes_its_most_frequent_wording() -> None:
    replies = [
        AnswersReply(answers=[AnswerValue(text=text) for text in texts])
        for texts in (["Ada Lund", "ada lund"], ["Ada Lund"], ["5 March 1931"], ["1931-03-05"], ["1931-03-05"])
    ]
    elected, votes = vote_over_sets(replies)
    assert [value.text for value in elected] == ["Ada Lund", "1931-03-05"]
    assert votes == {"Ada Lund": 2, "1931-03-05": 3}


def test_a_world_whose_articles_cannot_be_listed_fails_the_run() -> None:
    done = run_baseline("in-context", NOWHERE, [])
    assert done.outcome.ending == "failed"
    assert done.outcome.failure == ("The world nowhere cannot list its articles; use the reasoner rag, which searches.")
