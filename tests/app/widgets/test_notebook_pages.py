"""The pages of a long trace: which one is drawn, and what leads from one to another."""

import json

import pytest
from uuid_utils.compat import uuid7

from showhow.app.widgets.notebook import STEPS_PER_PAGE, NotebookPosition, page_of_step
from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.showhow import (
    format_trace_json,
    format_trace_markdown,
    record_from_json,
    record_to_json,
)

TRACE = uuid7()


def steps(count: int) -> list[Step]:
    return [Step(trace_id=TRACE, position=position) for position in range(1, count + 1)]


def choose(looked_at: NotebookPosition, count: int, linked: int | None = None, **kind: bool) -> int:
    return looked_at.choose_page(steps(count), linked, **{"editable": False, "grows": False, **kind})


@pytest.mark.parametrize(
    ("count", "kind", "page"),
    [
        (0, {}, 0),
        (STEPS_PER_PAGE, {"editable": True}, 0),
        (STEPS_PER_PAGE + 1, {"editable": True}, 1),
        (10_000, {}, 0),
        (10_000, {"grows": True}, 199),
    ],
)
def test_a_trace_that_grows_opens_at_its_last_page_and_any_other_at_its_first(
    count: int, kind: dict[str, bool], page: int
) -> None:
    assert choose(NotebookPosition(), count, **kind) == page


def test_a_link_opens_the_page_of_its_step() -> None:
    assert choose(NotebookPosition(), 10_000, linked=777) == 15
    assert choose(NotebookPosition(), 120, linked=777) == 2
    assert page_of_step(steps(100), STEPS_PER_PAGE) == 0
    assert page_of_step(steps(100), STEPS_PER_PAGE + 1) == 1


def test_a_chosen_page_stays_until_a_new_step_is_recorded() -> None:
    looked_at = NotebookPosition()
    assert choose(looked_at, 120, editable=True) == 2
    assert looked_at.apply({"kind": "page", "page": 0}, steps(120))
    assert [choose(looked_at, count, editable=True) for count in (120, 120, 121)] == [0, 0, 2]


def test_an_earlier_page_stays_while_a_run_goes_on_and_the_last_one_follows_it() -> None:
    looked_at = NotebookPosition()
    assert [choose(looked_at, count, grows=True) for count in (50, 51, 101)] == [0, 1, 2]
    looked_at.apply({"kind": "page", "page": 0}, steps(101))
    assert choose(looked_at, 160, grows=True) == 0


def test_a_step_that_is_asked_for_again_is_shown_again() -> None:
    looked_at = NotebookPosition()
    for _ in range(2):
        assert looked_at.apply({"kind": "show", "step": 60}, steps(120))
        assert choose(looked_at, 120) == 1
    assert (looked_at.step, looked_at.requests) == (60, 2)
    assert not looked_at.apply({"kind": "rate", "step": 1, "rating": 5}, steps(120))


def test_fewer_steps_than_the_chosen_page_needs_show_the_last_page() -> None:
    looked_at = NotebookPosition(page=5)
    assert choose(looked_at, 70) == 1


def test_a_search_shows_the_next_match_and_then_the_first_again() -> None:
    matching = [
        Step(
            trace_id=TRACE, position=position, thought=f"Quay {position}", observation="A Lighthouse." * (position > 60)
        )
        for position in range(1, 63)
    ]
    looked_at = NotebookPosition()
    shown = []
    for _ in range(3):
        assert looked_at.apply({"kind": "search", "text": "lighthouse"}, matching)
        shown.append((looked_at.step, looked_at.page))
    assert shown == [(61, 1), (62, 1), (61, 1)]
    looked_at.apply({"kind": "search", "text": "windmill"}, matching)
    assert looked_at.step == 61


def test_a_copied_trace_can_be_read_back_and_by_people() -> None:
    project = Project(name="Harbours", world="harbour")
    question = Question(project_id=project.id, position=1, text="Who built it?", gold_answers=[])
    trace = Trace(question_id=question.id, id=TRACE, final_answer="Ada")
    step = Step(
        trace_id=TRACE, position=1, thought="Look.", tool="read", arguments={"title": "Quay"}, observation="Two\nlines"
    )
    record = TraceRecord(project, question, trace, [step])
    assert record_to_json(record_from_json(json.loads(format_trace_json(record)))) == record_to_json(record)
    written = format_trace_markdown(record)
    assert written.splitlines()[0] == "# Who built it?"
    assert '`read(title="Quay")`\n\n> Two\n> lines\n' in written
    assert written.endswith("## Answer\n\nAda\n")
