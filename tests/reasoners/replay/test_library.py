"""What demonstrations show together; one is followed only where its look-ups observe values of the same shape."""

from dataclasses import replace
from typing import Any

import pytest

from showhow.reasoners.mentions import WorldWords
from showhow.reasoners.replay.agent import ReplayOptions
from showhow.reasoners.replay.demonstration import build_program
from showhow.reasoners.replay.replay_library import ReplayLibrary
from showhow.reasoners.replay.statements import SentenceReader
from showhow.tools.registry import available_tools
from tests.fixtures.real_world import RealWorld, answer_by_replay
from tests.fixtures.town import Town


def test_a_library_says_of_each_ask_what_its_demonstrations_say(town: Town) -> None:
    reader = SentenceReader(WorldWords(town.context.world, town.context.encode))
    library = ReplayLibrary(town.gold, town.context, reader)
    programs = [program for program in library.programs if program.problem is None]
    lookups = [(lookup, lookup.key(program.texts)) for program in programs for lookup in program.lookups]
    for key in {key for _, key in lookups}:
        same = [lookup for lookup, own in lookups if own == key]
        assert library.observed[key] == [values for lookup in same for _, values in lookup.rows]
        assert library.contexts[key] == {context for lookup in same for context in lookup.contexts}
    assert set(library.identifiers) == {pair for program in programs for pair in program.identifiers}


@pytest.mark.parametrize(
    ("beginning", "texts", "reason"),
    [
        ("Who is the mother of ", {"name": "Nobody Of No World"}, "Nothing in this world is called"),
        ("Where was the director of ", {"relation": "publisher"}, "has no publisher in the graph"),
        ("Who is younger, ", {"name": "Peru"}, ""),
    ],
)
def test_a_look_up_of_another_shape_is_refused_with_what_did_not_fit(
    real: RealWorld, beginning: str, texts: dict[str, str], reason: str
) -> None:
    program = next(p for p in map(build_program, real.shown) if p.question.startswith(beginning))
    slots = [texts.get("relation" if slot.is_relation else "name", slot.text) for slot in program.slots]
    options = ReplayOptions(threshold=0.01, demonstration=str(program.id), slots=slots)
    outcome, recorder = real.answer("Something else?", options)
    assert outcome.ending == "refused"
    assert program.question in (outcome.failure or "")
    assert reason in (outcome.failure or "")
    assert {step.tool for step in recorder.steps} <= {tool.name for tool in available_tools(real.context.world)}


def test_a_resumed_run_takes_the_results_of_its_recorded_steps(real: RealWorld) -> None:
    question = real.find("Where was the father of")
    outcome, recorder = real.answer(question.text)
    again, second = real.answer(question.text, steps=recorder.steps[:2])
    assert outcome.answers is not None
    assert again.answers == outcome.answers
    made, resumed = ([(s.id, s.tool, s.arguments) for s in steps] for steps in (recorder.steps, second.steps))
    assert resumed[:2] == made[:2]
    assert [call[1:] for call in resumed] == [call[1:] for call in made]


@pytest.mark.parametrize("data", [None, {}])
def test_a_resumed_step_without_data_is_no_failure_and_is_not_made_again(real: RealWorld, data: Any) -> None:
    question = real.find("Where was the father of")
    _, recorder = real.answer(question.text)
    outcome, resumed = real.answer(question.text, steps=[replace(recorder.steps[0], data=data)])
    assert resumed.steps[0].id == recorder.steps[0].id
    calls = [(step.tool, step.arguments) for step in resumed.steps]
    assert (outcome.ending, calls.count(calls[0])) == ("refused", 1)


def test_a_library_that_cannot_be_followed_refuses_with_why(town: Town) -> None:
    unusable = [record for record in town.gold if build_program(record).problem is not None]
    outcome, recorder = answer_by_replay("Who is it?", town.context, unusable[:1])
    assert (outcome.ending, recorder.steps) == ("refused", [])
    assert str(build_program(unusable[0]).problem) in (outcome.failure or "")
