"""Demonstrations are compiled to slots and look-ups, by the origins of their arguments."""

from itertools import pairwise

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.provenance import TYPED_ORIGIN, resolve_origin, split_argument
from showhow.reasoners.replay.demonstration import ID, NAME, WORD, LookUp, build_program, list_parts, read_context
from showhow.reasoners.replay.derivations import ALL, derive_answer
from showhow.worlds.lexicon.english import phrase_key
from tests.fixtures.real_world import RealWorld
from tests.fixtures.town import Town
from tests.reasoners.example_traces import record_of


@pytest.fixture
def shown(real: RealWorld, town: Town) -> list[TraceRecord]:
    return [*real.shown, *town.gold]


def test_the_parts_of_each_argument_give_the_argument_again(shown: list[TraceRecord]) -> None:
    for record in shown:
        data = {step.position: step.data for step in record.steps}
        for step in record.steps:
            for name, value in step.arguments.items():
                parts = split_argument(value, step.origins.get(name, TYPED_ORIGIN))
                text = "".join(
                    part if origin["from"] == "typed" else resolve_origin(origin, record.question.text, data)
                    for part, origin in parts
                )
                whole = "".join(value) if isinstance(value, list) else str(value)
                assert text.casefold() == whole.strip().casefold()


def test_slots_are_spans_of_the_question_that_do_not_overlap(shown: list[TraceRecord]) -> None:
    for program in map(build_program, shown):
        assert [program.question[slot.start : slot.end] for slot in program.slots] == list(program.texts.values())
        assert all(one.end <= other.start for one, other in pairwise(program.slots))


def test_every_look_up_has_a_subject_that_is_a_name_or_an_earlier_look_up(shown: list[TraceRecord]) -> None:
    for program in map(build_program, shown):
        starts = [slot.start for slot in program.names]
        for place, lookup in enumerate(program.lookups):
            if isinstance(lookup.subject, LookUp):
                assert lookup.subject in program.lookups[:place]
                known = {value.key for _, values in lookup.subject.rows for value in values}
                assert {subject.key for subject, _ in lookup.rows} <= known
            else:
                assert lookup.subject in starts
                assert [subject.text for subject, _ in lookup.rows] == [program.texts[lookup.subject]]


def test_no_ask_holds_a_name_of_the_question(shown: list[TraceRecord]) -> None:
    for program in map(build_program, shown):
        assert not [slot for slot in program.names for lookup in program.lookups if slot.text in lookup.ask]


def test_an_ask_filled_with_its_own_slots_is_what_the_demonstration_asked(shown: list[TraceRecord]) -> None:
    values = [str(value) for record in shown for step in record.steps for value in step.arguments.values()]
    asked = [phrase_key(value) for value in values]
    for program in (program for program in map(build_program, shown) if program.problem is None):
        for lookup in (lookup for lookup in program.lookups if NAME in lookup.ask and ID not in lookup.ask):
            fillings = [lookup.fill(program.texts).replace(NAME, subject.text) for subject, _ in lookup.rows]
            assert WORD not in "".join(fillings)
            assert any(phrase_key(filling) in asked for filling in fillings), program.question


@pytest.mark.parametrize(
    ("sentence", "value", "context"),
    [
        ("Sea Star is a film directed by Ada Lund.", "Ada Lund", "directed by"),
        ("Sea Star was released in 1951.", "1951", "released in"),
        ("By Sea Star's director.", "director", f"By {NAME}'s"),
    ],
)
def test_the_context_of_a_value_is_the_two_words_before_it(sentence: str, value: str, context: str) -> None:
    assert read_context(sentence, sentence.index(value), "Sea Star") == context


def test_a_question_asked_as_a_whole_is_divided_at_its_name_and_a_dead_end_is_left_out() -> None:
    question, name = "At whose door would Ada Lund knock?", "Ada Lund"
    start = question.index(name)
    record = record_of(
        question,
        [
            ("", "generateQuery", {"question": question, "entity_ids": []}, "No query is written.", None),
            ("", "read", {"title": name, "question": question}, "Ada Lund calls on Eli Reed.", None),
        ],
        final_answer="Eli Reed",
    )
    whole = {"from": "question", "start": 0, "end": len(question)}
    written, read = record.steps
    written.data = {"candidates": []}
    part = {"start": start, "end": start + len(name), "origin": _span(start, name)}
    written.origins = {"question": {"from": "parts", "parts": [part]}}
    read.data = {
        "sentences": ["Ada Lund calls on Eli Reed."],
        "best": [{"place": 0, "text": "Ada Lund calls on Eli Reed.", "score": 0.5}],
    }
    read.origins = {"title": _span(start, name), "question": whole}
    program = build_program(record)
    assert (program.problem, program.derivation) == (None, "all")
    (lookup,) = program.lookups
    assert [slot.text for slot in program.names] == [name]
    assert lookup.fill(program.texts).replace(NAME, name) == question
    assert [value.text for _, values in lookup.rows for value in values] == ["Eli Reed"]


def test_each_look_up_in_words_is_a_demonstration_of_what_it_asks(town: Town) -> None:
    programs = [program for program in map(build_program, town.gold) if program.problem is None]
    parts = [(program, part) for program in programs for part in list_parts(program)]
    for program, part in parts:
        (lookup,) = part.lookups
        assert [part.question[slot.start : slot.end] for slot in part.slots] == [slot.text for slot in part.slots]
        assert lookup.fill(part.texts).replace(NAME, part.names[0].text) == part.question
        assert derive_answer(ALL, part.evidence({lookup: lookup.rows}, part.texts)) == part.answer
        assert part.key.startswith(f"{program.key}/")
    assert len({part.key for _, part in parts}) == len(parts) > 0


def _span(start: int, text: str) -> dict[str, object]:
    return {"from": "question", "start": start, "end": start + len(text)}
