"""Replay repeats demonstrations on their own questions, and follows them on others or refuses."""

import json
import re
from copy import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.comparison.drift import check_repetition
from showhow.evaluation.metrics import score_answer
from showhow.fewshot_library.formats import read_traces
from showhow.reasoners.provenance import resolve_origin
from showhow.reasoners.replay.agent import ReplayOptions
from showhow.reasoners.replay.demonstration import build_program, list_parts
from showhow.tools.registry import available_tools
from showhow.worlds.text_normalization import normalize_name
from tests.fixtures.real_world import RealWorld, answer_by_replay
from tests.fixtures.town import Town

REFUSED = "I can't follow any demonstration here: "


def test_each_gold_demonstration_repeats_exactly_on_its_own_question(town: Town) -> None:
    tools = available_tools(town.context.world)
    failures = {record.question.text: check_repetition(record, town.context, tools) for record in town.gold}
    assert {text: why for text, why in failures.items() if why} == {}


def test_each_demonstration_of_real_questions_repeats_exactly(real: RealWorld) -> None:
    tools = available_tools(real.context.world)
    assert len(real.shown) == 32
    assert [why for record in real.shown if (why := check_repetition(record, real.context, tools))] == []


def test_of_each_published_demonstration_it_is_said_why_it_does_not_repeat_here(
    real: RealWorld, published: Path
) -> None:
    """Their sources were live wikis, and some of their tools and arguments are unknown here."""
    records = [
        record
        for name in ("mintaka", "compmix")
        for record in read_traces(published / f"{name}.json")
        if isinstance(record, TraceRecord)
    ]
    tools = available_tools(real.context.world)
    reasons = [check_repetition(record, real.context, tools) for record in records]
    assert len(reasons) == 40
    for record, why in zip(records, reasons, strict=True):
        assert why is None or re.match(rf"{re.escape(REFUSED)}step \d+ fails now: .+|call \d+ is .+", why), (
            record.question
        )
    assert any(reasons)


@pytest.mark.parametrize(("world", "least"), [("real", 32), ("town", 1)])
def test_each_demonstration_followed_with_its_own_slots_gives_its_own_answer(
    world: str, least: int, request: pytest.FixtureRequest
) -> None:
    """A second route to the answer: by look-ups and derivation, not by repetition. The town's sources differ."""
    opened: RealWorld | Town = request.getfixturevalue(world)
    shown = opened.shown if isinstance(opened, RealWorld) else opened.gold
    programs = [build_program(record) for record in shown]
    parts = [part for program in programs if program.problem is None for part in list_parts(program)]
    followed = 0
    for program in [*programs, *parts]:
        slots = list(program.texts.values())
        options = ReplayOptions(threshold=0.01, demonstration=program.key, slots=slots)
        outcome, _ = answer_by_replay(f"{program.question} Now.", opened.context, shown, options)
        if program.problem is None and outcome.answers is not None:
            answers = (outcome.answers.final_answer or "", program.answer)
            same, own = (sorted(normalize_name(answer).split(", ")) for answer in answers)
            assert same == own, program.question
            followed += 1
    assert followed >= least


def test_a_changed_world_is_told_by_the_step_that_fails_now(real: RealWorld, town: Town) -> None:
    why = check_repetition(real.shown[0], town.context, available_tools(town.context.world))
    assert why is not None
    assert why.startswith(f"{REFUSED}step 1 fails now: ")


def test_real_questions_are_answered_rightly_or_refused(real: RealWorld) -> None:
    """A fifth of the questions: at least a third right, and nearly none wrong."""
    asked = real.asked[::5]
    outcomes = [(question, real.answer(question.text)[0]) for question in asked]
    scores = [score_answer(o.answers.final_answer, q.gold_answers) for q, o in outcomes if o.answers]
    assert {o.ending for _, o in outcomes} == {"answered", "refused"}
    assert all((o.failure or "").startswith(REFUSED) for _, o in outcomes if o.ending == "refused")
    assert scores.count(1.0) >= len(asked) / 3
    assert len(scores) - scores.count(1.0) <= max(1, 0.03 * len(scores))


@pytest.mark.long
def test_where_articles_state_half_of_the_facts_a_third_is_answered_and_nothing_wrongly(real_sides: RealWorld) -> None:
    asked = real_sides.asked[::6]
    outcomes = [(question, real_sides.answer(question.text)[0]) for question in asked]
    answered = [(q, outcome.answers.final_answer) for q, outcome in outcomes if outcome.answers]
    assert [(q.text, own) for q, own in answered if score_answer(own, q.gold_answers) != 1.0] == []
    assert len(answered) >= len(asked) / 3


def test_names_are_slots_whatever_their_case(real: RealWorld) -> None:
    question = real.find("Which film has the director died earlier")
    for text in (question.text, question.text.lower()):
        outcome, _ = real.answer(text)
        assert outcome.answers is not None, outcome.failure
        assert score_answer(outcome.answers.final_answer, question.gold_answers) == 1.0


def test_an_opposite_word_is_never_taken_for_the_demonstration_s(real: RealWorld) -> None:
    question = real.find("Who died later, ")
    later, earlier = (real.answer(text)[0] for text in (question.text, question.text.replace("later", "earlier")))
    assert later.answers is not None
    assert earlier.answers is None or earlier.answers.final_answer != later.answers.final_answer


@pytest.mark.parametrize(
    "question",
    [
        "Who is the best director?",
        "Where was the director of film The Film Of No World born?",
        "Which film has the director who earned more, Hidden Power or Hiawanda'S Cross?",
        "",
    ],
)
def test_a_question_that_no_demonstration_shows_is_refused_with_the_nearest_one(real: RealWorld, question: str) -> None:
    outcome, _ = real.answer(question)
    assert outcome.ending == "refused"
    assert re.search(r": the nearest asks ['\"]", outcome.failure or "")


def test_the_details_name_demonstration_slots_and_confidence_and_a_corrected_slot_is_followed(real: RealWorld) -> None:
    question = real.find("Who is the maternal grandfather of")
    outcome, _ = real.answer(question.text)
    details = outcome.details["replay"]
    assert json.loads(json.dumps(details)) == details
    (slot,) = [slot for slot in details["alignment"]["slots"] if not slot["relation"]]
    assert slot["here"] in question.text
    assert details["threshold"] <= details["confidence"] <= 1
    demonstration = details["demonstrations"][0]
    shown = next(record for record in real.shown if str(record.trace.id) == demonstration["id"])
    assert shown.question.text == demonstration["question"]
    own = [slot["there"] for slot in details["alignment"]["slots"]]
    again, _ = real.answer(question.text, ReplayOptions(demonstration=demonstration["id"], slots=own))
    assert again.answers is not None
    assert again.answers.final_answer == shown.trace.final_answer


def test_corrected_slots_are_followed_in_their_own_demonstration_or_not_at_all(real: RealWorld) -> None:
    question = real.find("Who is the maternal grandfather of")
    outcome, _ = real.answer(question.text)
    replay = outcome.details["replay"]
    demonstration = replay["demonstrations"][0]["id"]
    texts = [slot["here"] for slot in replay["alignment"]["slots"]]
    for options in (
        ReplayOptions(demonstration=demonstration, slots=[*texts, "one more"]),
        ReplayOptions(demonstration=str(UUID(int=0)), slots=texts),
    ):
        refused, recorder = real.answer(question.text, options)
        assert (refused.ending, recorder.steps) == ("refused", [])
        assert f"is {options.demonstration} with {len(options.slots)} slots" in (refused.failure or "")
    # The question of another demonstration is no reason to repeat that one.
    own = next(record for record in real.shown if str(record.trace.id) != demonstration)
    again, _ = real.answer(own.question.text, ReplayOptions(demonstration=demonstration, slots=texts))
    assert again.answers == outcome.answers


def test_a_higher_threshold_refuses_and_says_so(real: RealWorld) -> None:
    question = real.find("Who is the maternal grandfather of")
    outcome, recorder = real.answer(question.text, ReplayOptions(threshold=1.0))
    assert (outcome.ending, recorder.steps) == ("refused", [])
    assert "is below 1.00" in (outcome.failure or "")


def test_every_argument_resolves_from_its_origin(real: RealWorld) -> None:
    question = real.find("Which film has the director who is older, ")
    outcome, recorder = real.answer(question.text)
    assert outcome.answers is not None
    data = {step.position: step.data for step in recorder.steps}
    for step in recorder.steps:
        for name, value in step.arguments.items():
            origin = step.origins[name]
            assert origin["from"] in ("question", "step")
            assert resolve_origin(origin, question.text, data).casefold() == value.casefold()


def test_without_demonstrations_it_refuses(town: Town) -> None:
    outcome, _ = answer_by_replay("Who?", town.context, [])
    assert (outcome.ending, "there is none" in (outcome.failure or "")) == ("refused", True)


@pytest.mark.parametrize(
    "question",
    [
        # Asked for yes or no, where the demonstration chooses one; compared with both, where it chooses one of them.
        "Is {one} younger than {other}?",
        "Who is younger than both {one} and {other}?",
        # Another relation whose word contains that of the demonstration; a chain of two; the reverse.
        "Who is the paternal great-grandfather of {one}?",
        "Where did {one}'s father's father die?",
        "Who is {one} the paternal grandfather of?",
        # It chooses from what the relation gives, where the demonstration chooses among what is named.
        "Which director died earlier, that of {one} or that of {other}?",
        "Which director is older, that of the film {one} or that of the film {other}?",
        # Two questions in one.
        "What is the place of birth and the father of {one}?",
    ],
)
def test_a_question_that_only_resembles_a_demonstration_is_refused(real: RealWorld, question: str) -> None:
    names = [slot.text for record in real.shown for slot in build_program(record).names if "(" not in slot.text]
    asked = [question.format(one=one, other=other) for one, other in pairwise(names)]
    answered = {text: answer_by_replay(text, real.context, real.shown)[0].answers for text in asked}
    assert {text: answers for text, answers in answered.items() if answers is not None} == {}


def test_a_demonstration_is_not_repeated_from_memory_where_it_observes_something_else(real: RealWorld) -> None:
    record = next(own for own in real.shown if build_program(own).derivation == "all")
    program = build_program(record)
    steps = [copy(step) for step in record.steps]
    steps[-1].id = uuid4()
    steps[-1].data = {"columns": ["answer"], "rows": [[{"kind": "entity", "value": "Q1", "label": "Elsewhere"}]]}
    changed = replace(record, steps=steps)
    changed.trace = copy(record.trace)
    changed.trace.final_answer = "Elsewhere"
    others = [own for own in real.shown if own is not record]
    outcome, _ = answer_by_replay(program.question, real.context, [changed, *others])
    assert outcome.answers is None or outcome.answers.final_answer == program.answer


def test_a_demonstration_is_repeated_where_a_tool_offers_other_queries_than_it_did(town: Town) -> None:
    record = next(own for own in town.gold if any((step.data or {}).get("candidates") for step in own.steps))
    steps = [copy(step) for step in record.steps]
    writing = next(step for step in steps if (step.data or {}).get("candidates"))
    writing.id = uuid4()
    writing.data = {**(writing.data or {}), "candidates": writing.data["candidates"][:1] * 2, "unexplained": ["word"]}
    changed = replace(record, steps=steps)
    assert check_repetition(changed, town.context, available_tools(town.context.world)) is None


@pytest.mark.parametrize("question", ["Where was \ud800 born?", "   ", "Who is the father of " * 1_000 + "Ada?"])
def test_a_question_that_is_no_text_or_too_long_is_refused(real: RealWorld, question: str) -> None:
    assert answer_by_replay(question, real.context, real.shown)[0].ending == "refused"
