"""A demonstration is followed only where its look-ups observe values of the same shape."""

import pytest

from reasoners.replay.agent import ReplayOptions
from reasoners.replay.compiler import build_program
from reasoners.replay.demonstration import Program
from reasoners.replay.follower import LibraryIndex
from tests.fixtures.real_world import RealWorld
from tests.fixtures.town import Town
from tools.registry import available_tools


@pytest.fixture
def programs(real: RealWorld, town: Town) -> list[Program]:
    built = map(build_program, [*real.shown, *town.gold])
    return [program for program in built if program.problem is None]


def test_the_index_of_a_library_says_of_each_ask_what_its_demonstrations_say(programs: list[Program]) -> None:
    index = LibraryIndex(programs, spreads_facts=False)
    lookups = [(program, lookup, lookup.fill(program.texts)) for program in programs for lookup in program.lookups]
    for ask in {ask for _, _, ask in lookups}:
        same = [lookup for _, lookup, own in lookups if own == ask]
        assert index.observed[ask] == [values for lookup in same for _, values in lookup.observed]
        others = {context for _, lookup, own in lookups if own != ask for context in lookup.contexts}
        assert index.contexts[ask] == {context for lookup in same for context in lookup.contexts} - others
    assert index.may_lack <= {ask for _, lookup, own in lookups for ask in (lookup.ask, own)}
    assert set(index.identifiers) == {pair for program in programs for pair in program.identifiers}


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
