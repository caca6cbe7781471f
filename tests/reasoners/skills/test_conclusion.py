"""The final answer: its text, its citations, and the source that it rests on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.skills.values import (
    AnswersReply,
    AnswerValue,
    Quotation,
    QuotingReply,
    SourcePassage,
    check_answers,
    conclude,
    conclude_from_passages,
)

ADA, BO = AnswerValue(text="Ada Reed", entity="Q1"), AnswerValue(text="Bo Reed", of="Q1")


@pytest.mark.parametrize(
    ("sources", "kinds"),
    [
        (["text"], (True, False, False)),
        (["web"], (True, False, False)),
        (["text", "web"], (True, False, False)),
        (["graph"], (False, True, False)),
        (["graph", "text"], (False, False, False)),
        (["model"], (False, False, True)),
        (["model", "text"], (False, False, False)),
        ([], (False, False, False)),
    ],
    ids=str,
)
def test_only_an_answer_that_rests_on_one_kind_of_source_is_the_answer_of_that_kind(
    sources: list[str], kinds: tuple[bool, bool, bool]
) -> None:
    answers = conclude([ADA], (), set(sources)).answers
    by_kind = (answers.answer_text, answers.answer_graph, answers.answer_model)
    assert by_kind == tuple("Ada Reed" if is_own else None for is_own in kinds)


def test_answers_are_joined_once_and_steps_are_cited_in_order() -> None:
    conclusion = conclude([ADA, BO, ADA], [7, 3, 7], {"text"}, "They are siblings.")
    assert conclusion.answers.final_answer == "Ada Reed, Bo Reed"
    expected = "They are siblings. So the answer is: Ada Reed, Bo Reed. [step 3] [step 7]"
    assert conclusion.answers.final_thought == expected
    assert conclusion.details == {"answers": ["Ada Reed", "Bo Reed"], "cited_steps": [3, 7]}


def test_no_values_are_the_answer_that_the_question_cannot_be_answered() -> None:
    conclusion = conclude([], [3], {"text"}, "Nobody is.")
    said = "This question cannot be answered: the sources do not say it."
    assert (conclusion.answers.final_answer, conclusion.details) == (said, {"answers": [], "cited_steps": [3]})
    assert conclusion.answers.final_thought == f"Nobody is. {said} [step 3]"
    assert conclude([], (), {"model"}).answers.final_answer == "This question cannot be answered."


def test_a_reply_rests_on_the_passages_that_it_names() -> None:
    passages = [
        SourcePassage(id="2.1", source="text", title="Ada Reed", text="Ada Reed is a pilot."),
        SourcePassage(id="4.3", source="graph", title="person", text="Ada Reed (Q1)"),
    ]
    conclusion = conclude_from_passages(AnswersReply(answers=[ADA], support=["4.3"]), passages)
    assert (conclusion.answers.answer_graph, conclusion.details["cited_steps"]) == ("Ada Reed", [4])


WORDS = ["Ada", "Reed", "was", "born", "near", "Gullhaven", "since", "March", "1931.", "His", "mother"]
sentences = st.lists(st.sampled_from(WORDS), min_size=6, max_size=14)


def reply_quoting(text: str) -> QuotingReply:
    return QuotingReply(answers=[ADA], support=["4.1"], quotes=[Quotation(id="4.1", text=text)])


@given(sentences, st.data())
def test_words_of_a_passage_are_its_quotation_whatever_the_spaces(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 5))
    quoted = words[start : data.draw(st.integers(start + 5, len(words)))]
    passage = SourcePassage(id="4.1", source="text", title="Ada Reed", text=" ".join(words))
    spaces = data.draw(st.sampled_from([" ", "  ", "\n"]))
    assert check_answers(reply_quoting(spaces.join(quoted)), [passage]) is None
    turned = quoted[::-1]
    occurs = any(words[place : place + len(turned)] == turned for place in range(len(words)))
    assert (check_answers(reply_quoting(" ".join(turned)), [passage]) is None) == occurs


def test_a_quotation_of_no_passage_and_of_another_wording_is_one_sentence() -> None:
    passage = SourcePassage(id="4.1", source="text", title="Bo Reed", text="His mother is Ada Reed, a baker.")
    problem = check_answers(reply_quoting("mother is Cora Reed"), [passage])
    assert problem == (
        "Passage 4.1 does not have the words 'mother is Cora Reed'; quote it word for word, at least a few words, or "
        "leave the quotation out."
    )
    elsewhere = QuotingReply(answers=[ADA], quotes=[Quotation(id="4.2", text="mother is Ada Reed")])
    assert check_answers(elsewhere, [passage]) == ("There is no passage 4.2; name ids of the passages that were given.")
