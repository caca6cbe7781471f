"""Which question is shown to whom: a preference for different ones, which is bounded and expires."""

from uuid import UUID, uuid4

import pytest

from showhow.app.widgets.queue import ShownQuestions

PROJECT = uuid4()


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def show(shown: ShownQuestions, visitor: str, question: UUID) -> bool:
    return shown.show(PROJECT, visitor, question, shown.recall(PROJECT, visitor)[1])


def test_a_visitor_has_one_question_which_others_see_as_shown():
    shown, first, second = ShownQuestions(), uuid4(), uuid4()
    assert shown.recall(PROJECT, "ada") == (None, frozenset())
    assert show(shown, "ada", first)
    assert shown.recall(PROJECT, "ada") == (first, frozenset())
    assert shown.recall(PROJECT, "ben") == (None, {first})
    assert show(shown, "ada", second)
    assert shown.recall(PROJECT, "ben") == (None, {second})
    assert shown.recall(uuid4(), "ben") == (None, frozenset())


def test_of_two_who_choose_the_same_question_at_once_the_second_chooses_again():
    shown, question = ShownQuestions(), uuid4()
    _, known = shown.recall(PROJECT, "ben")
    assert show(shown, "ada", question)
    assert not shown.show(PROJECT, "ben", question, known)
    _, known = shown.recall(PROJECT, "ben")
    assert shown.show(PROJECT, "ben", question, known), "the last open question is shown to everybody"


def test_the_record_expires():
    clock, question = Clock(), uuid4()
    shown = ShownQuestions(clock)
    show(shown, "ada", question)
    clock.now = ShownQuestions.SECONDS
    assert shown.recall(PROJECT, "ben") == (None, {question})
    clock.now += 1
    assert shown.recall(PROJECT, "ben") == (None, frozenset())
    assert shown.recall(PROJECT, "ada") == (None, frozenset())


@pytest.mark.parametrize("visitors", [ShownQuestions.MAX_VISITORS, 10 * ShownQuestions.MAX_VISITORS])
def test_the_record_is_bounded(visitors: int):
    shown = ShownQuestions()
    questions = [uuid4() for _ in range(visitors)]
    for number, question in enumerate(questions):
        assert show(shown, f"visitor {number}", question)
    assert shown.recall(PROJECT, "ada")[1] == frozenset(questions[-ShownQuestions.MAX_VISITORS :])
