"""Self-Ask and IRCoT end to end with a scripted model: rounds, prompts, citations, limits, bad replies."""

from collections.abc import Callable

import pytest

from showhow.reasoners.skills.skill import skill_name
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import (
    QUESTION,
    BaselineRun,
    answers,
    passage_id,
    read_request,
    run_baseline,
    says,
)
from tests.servers.model import Request, Says

CAPTAIN, BIRTHPLACE = "captain of Sea Star is Ada Lund", "born in Gullhaven"
WHO, WHERE = "Who is the captain of Sea Star?", "Where was Ada Lund born?"
FIRST, SECOND = "The captain of Sea Star is Ada Lund.", "Ada Lund was born in Gullhaven, so the answer is Gullhaven."
GoldenComparison = Callable[[str, str], None]


def ask_two_follow_ups(request: Request) -> Says:
    asked = read_request(request)
    if asked.get("pending") is None:
        return says(intermediate=None, follow_up=WHO, final=None)
    if asked["pending"] == WHO:
        captain = answers("Ada Lund", support=(passage_id(request, CAPTAIN),))
        return says(intermediate=captain, follow_up=WHERE, final=None)
    town = answers("Gullhaven", support=(passage_id(request, BIRTHPLACE),))
    return says(intermediate=town, follow_up=None, final=answers("Gullhaven"))


def in_turn(*replies: Says | Callable[[Request], Says]) -> Callable[[Request], Says]:
    """A script of replies, which may be written when they are asked for."""
    waiting = iter(replies)

    def reply(request: Request) -> Says:
        written = next(waiting)
        return written if isinstance(written, Says) else written(request)

    return reply


def answer_from_the_captain(request: Request) -> Says:
    captain = answers("Ada Lund", support=(passage_id(request, CAPTAIN),))
    return says(intermediate=captain, follow_up=None, final=answers("Gullhaven"))


def searches(done: BaselineRun) -> list[str]:
    return [step.arguments["query"] for step in done.steps if step.tool == "wikisearch"]


def test_self_ask_looks_each_follow_up_up_and_cites_what_answered_them(
    ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    done = run_baseline("self-ask", ships, ask_two_follow_ups, {"articles": 2})
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    assert searches(done) == [WHO, WHERE]
    spans = [(step.node, step.thought, step.observation) for step in done.steps if step.skill == "node"]
    assert spans == [("round/1", WHO, "Ada Lund"), ("round/2", WHERE, "Gullhaven")]
    assert done.outcome.details["cited_steps"] == [done.position_of(CAPTAIN), done.position_of(BIRTHPLACE)]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 3
    assert [read_request(request)["left"] for request in done.requests] == [5, 4, 3]
    matches_golden("self-ask", done.prompts)


def test_self_ask_has_to_answer_when_no_follow_up_is_left(ships: ToolContext) -> None:
    script = in_turn(
        says(intermediate=None, follow_up=WHO, final=None),
        says(intermediate=answers("Ada Lund"), follow_up=WHERE, final=None),
        answer_from_the_captain,
    )
    done = run_baseline("self-ask", ships, script, {"rounds": 1, "articles": 1})
    assert "No follow-up is left" in done.requests[2].body["messages"][-1]["content"]
    assert (done.answers.final_answer, searches(done)) == ("Gullhaven", [WHO])
    assert (done.outcome.calls["model_calls"], done.outcome.calls["model_calls_expected"]) == (3, 2)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (says(intermediate=None, follow_up=WHERE, final=None), "has no intermediate answer"),
        (says(intermediate=answers("Ada Lund"), follow_up=f" {WHO.upper()}", final=None), "was asked before"),
        (says(intermediate=answers("Ada Lund"), follow_up=WHERE, final=answers("x")), "either the next follow-up"),
        (says(intermediate=answers("Ada Lund"), follow_up="", final=None), "either the next follow-up"),
        (says(intermediate=answers("x", support=("99.1",)), follow_up=WHERE, final=None), "no passage 99.1"),
        (says(intermediate=answers("x"), follow_up=None, final=answers("x", support=("2.1",))), "no passage 2.1"),
        (Says('{"intermediate": {"answers"', reason="length"), "cut off"),
        (Says("Ada Lund"), "no JSON object"),
    ],
)
def test_a_bad_reply_of_self_ask_is_asked_again_with_the_sentence_that_says_why(
    ships: ToolContext, bad: Says, words: str
) -> None:
    script = in_turn(says(intermediate=None, follow_up=WHO, final=None), bad, bad, answer_from_the_captain)
    done = run_baseline("self-ask", ships, script, {"articles": 1})
    assert all(words in request.body["messages"][-1]["content"] for request in done.requests[2:])
    assert (done.answers.final_answer, len(done.requests)) == ("Gullhaven", 4)


def test_an_intermediate_answer_before_the_first_follow_up_is_refused(ships: ToolContext) -> None:
    script = [says(intermediate=answers("x"), follow_up=WHO, final=None), *[Says("{}")] * 2]
    done = run_baseline("self-ask", ships, script)
    assert "No follow-up was asked yet" in done.requests[1].body["messages"][-1]["content"]
    assert done.outcome.ending == "failed"


def test_self_ask_refuses_a_question_whose_final_answer_is_unknown(ships: ToolContext) -> None:
    done = run_baseline("self-ask", ships, [says(intermediate=None, follow_up=None, final=answers(unknown=True))])
    assert (done.outcome.ending, "do not lead to an answer" in str(done.outcome.failure)) == ("refused", True)


def reason_in_two_sentences(request: Request) -> Says:
    asked = read_request(request)
    if "sentences" not in asked:
        return says(reasons=FIRST, **answers("Gullhaven", support=(passage_id(request, BIRTHPLACE),)))
    if not asked["sentences"]:
        return says(sentence=FIRST, final=None)
    support = (passage_id(request, CAPTAIN), passage_id(request, BIRTHPLACE))
    return says(sentence=SECOND, final=answers("Gullhaven", support=support))


def test_ircot_searches_by_each_sentence_and_a_reader_answers_from_what_was_gathered(
    ships: ToolContext, matches_golden: GoldenComparison
) -> None:
    done = run_baseline("ircot", ships, reason_in_two_sentences, {"articles": 2})
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    assert searches(done) == [QUESTION, FIRST]
    assert [skill_name(step) for step in done.steps if step.tool is None] == [
        "reason_sentence",
        "reason_sentence",
        "cot_rag",
    ]
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 3
    assert read_request(done.requests[2])["passages"] == read_request(done.requests[1])["passages"]
    matches_golden("ircot", done.prompts)


def test_ircot_without_a_reader_answers_with_its_last_sentence(ships: ToolContext) -> None:
    done = run_baseline("ircot", ships, reason_in_two_sentences, {"reader": "off"})
    assert done.answers.final_answer == "Gullhaven"
    assert f"{FIRST} {SECOND} So the answer is: Gullhaven." in (done.answers.final_thought or "")
    assert len(done.outcome.details["cited_steps"]) == 2
    assert done.outcome.calls["model_calls"] == done.outcome.calls["model_calls_expected"] == 2


def test_ircot_keeps_passages_of_so_many_articles_and_each_passage_once(ships: ToolContext) -> None:
    script = [*(says(sentence=f"Sea Star has captain {number}.", final=None) for number in range(3))]
    done = run_baseline("ircot", ships, script, {"reader": "off", "sentences": 3, "paragraphs": 2})
    gathered = [read_request(request)["passages"] for request in done.requests]
    assert [len({passage["title"] for passage in passages}) for passages in gathered] == [2, 2, 2]
    texts = [(passage["title"], passage["text"]) for passage in gathered[-1]]
    assert len(texts) == len(set(texts))
    assert (done.outcome.ending, "None of the 3 sentences" in str(done.outcome.failure)) == ("refused", True)


def test_at_the_limit_of_sentences_the_reader_answers_all_the_same(ships: ToolContext) -> None:
    def read(request: Request) -> Says:
        return says(reasons="So.", **answers("Gullhaven", support=(passage_id(request, CAPTAIN),)))

    script = in_turn(says(sentence=FIRST, final=None), read)
    done = run_baseline("ircot", ships, script, {"sentences": 1})
    assert (done.answers.final_answer, done.outcome.calls["model_calls_expected"]) == ("Gullhaven", 2)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (says(sentence=" ", final=None), "The sentence is empty"),
        (says(sentence=FIRST.upper(), final=None), "was written before"),
        (says(sentence=SECOND, final=answers("x", support=("99.9",))), "no passage 99.9"),
        (Says('{"sentence": "Ada', reason="length"), "cut off"),
    ],
)
def test_a_bad_sentence_is_asked_again_with_the_sentence_that_says_why(
    ships: ToolContext, bad: Says, words: str
) -> None:
    def conclude(request: Request) -> Says:
        return says(sentence=SECOND, final=answers("Gullhaven", support=(passage_id(request, CAPTAIN),)))

    script = in_turn(says(sentence=FIRST, final=None), bad, bad, conclude)
    done = run_baseline("ircot", ships, script, {"reader": "off"})
    assert all(words in request.body["messages"][-1]["content"] for request in done.requests[2:])
    assert (done.answers.final_answer, len(done.requests)) == ("Gullhaven", 4)


@pytest.mark.parametrize("reader", ["on", "off"])
def test_ircot_refuses_a_question_whose_answer_is_unknown(ships: ToolContext, reader: str) -> None:
    script = [
        says(sentence="Nothing tells.", final=answers(unknown=True)),
        says(reasons="No.", **answers(unknown=True)),
    ]
    done = run_baseline("ircot", ships, script, {"reader": reader})
    assert (done.outcome.ending, done.outcome.answers) == ("refused", None)
