"""Questions are aligned with demonstrations: names fill slots, and the other words mean the same."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.mentions import WorldWords
from showhow.reasoners.replay.alignment import (
    MAX_WRONG_SHARE,
    PRIOR_RIGHT,
    PRIOR_WEIGHT,
    Calibration,
    MaskedQuestion,
    QuestionAligner,
    mask_spans,
)
from showhow.reasoners.replay.demonstration import Program, build_program
from tests.fixtures.real_world import RealWorld


@dataclass(frozen=True)
class AlignedLibrary:
    programs: list[Program]
    aligner: QuestionAligner

    def fillers(self, question: MaskedQuestion) -> list[str]:
        return [question.text[start:end] for start, end in question.mentions]


@pytest.fixture(scope="module")
def library(real: RealWorld) -> AlignedLibrary:
    programs = [program for program in map(build_program, real.shown) if program.problem is None]
    world = WorldWords(real.context.world, real.context.encode)
    return AlignedLibrary(programs, QuestionAligner(programs, world, real.context.encode))


def exchange_names(program: Program, names: list[str]) -> str:
    """The question with these names in its slots."""
    text = program.question
    for slot, name in reversed(list(zip(program.names, names, strict=True))):
        text = text[: slot.start] + name + text[slot.end :]
    return text


def test_other_names_in_the_place_of_its_own_are_the_fillers_of_its_slots(library: AlignedLibrary) -> None:
    """The oracle puts names of another demonstration into the text; the alignment has to find them again."""
    for program, other in zip(library.programs, library.programs[1:] + library.programs[:1], strict=True):
        names = ([slot.text for slot in other.names] * 2)[: len(program.names)]
        alignments, _ = library.aligner.align_all(library.aligner.mask(exchange_names(program, names)))
        keys = [(own.key, [own.fillers[slot.start] for slot in own.program.names]) for own in alignments]
        assert (program.signature(program.texts), names) in keys, program.question


@pytest.mark.parametrize("change", [str.lower, lambda text: text.rstrip("?") + "."])
def test_names_are_found_in_any_case_and_before_a_full_stop(library: AlignedLibrary, change) -> None:
    for program in library.programs:
        fillers = library.fillers(library.aligner.mask(change(program.question)))
        assert [text.casefold() for text in fillers] == [slot.text.casefold() for slot in program.names]


def test_a_masked_question_has_no_name_and_all_its_other_characters(library: AlignedLibrary) -> None:
    for question in (form.question for form in library.aligner.forms):
        masked = mask_spans(question.text, question.mentions)
        assert len(masked) == len(question.text) - sum(end - start - 1 for start, end in question.mentions)
        assert not [name for name in library.fillers(question) if name in masked]


def test_relations_in_another_order_are_another_question(library: AlignedLibrary) -> None:
    program = next(p for p in library.programs if sum(slot.is_relation for slot in p.slots) > 1)
    (name,) = program.names
    relations = [slot.text for slot in program.slots if slot.is_relation]
    for words in (relations, relations[::-1]):
        text = f"Who is the {words[0]} of the {words[1]} of {name.text}?"
        start = text.index(name.text)
        question = MaskedQuestion.build(text, [(start, start + len(name.text))], library.aligner.world)
        alignments, _ = library.aligner.align_all(question)
        for alignment in alignments:
            asked = (lookup for lookup in alignment.program.lookups if lookup.word is not None)
            asks = [lookup.fill(alignment.fillers) for lookup in asked]
            chain = [ask for ask in asks if ask in words]
            assert chain == [word for word in words[::-1] if word in chain]


@pytest.mark.parametrize(
    ("shown", "asked", "derivation"),
    [("born later", "born earlier", "least"), ("died later", "died earlier", "least"), ("younger", "older", "least")],
)
def test_a_word_of_the_opposite_derivation_turns_that_of_a_demonstration(
    library: AlignedLibrary, shown: str, asked: str, derivation: str
) -> None:
    program = next(
        p
        for p in library.programs
        if f"Who was {shown}" in p.question or f"Who {shown}" in p.question or f"Who is {shown}" in p.question
    )
    alignments, _ = library.aligner.align_all(library.aligner.mask(program.question.replace(shown, asked)))
    assert program.derivation == "greatest"
    assert {own.program.derivation for own in alignments if own.program.id == program.id} <= {derivation}


OUTCOMES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


@given(OUTCOMES, st.floats(0, 1))
def test_a_confidence_is_the_share_of_right_ones_at_least_so_similar(outcomes, score):
    calibration = Calibration(tuple(sorted(outcomes, reverse=True)))
    right = [is_right for own, is_right in outcomes if own >= score]
    assert calibration.confidence(score) == pytest.approx((PRIOR_RIGHT + sum(right)) / (PRIOR_WEIGHT + len(right)))


@given(OUTCOMES)
def test_at_the_threshold_the_share_of_wrong_ones_is_small(outcomes):
    """Brute force: of the scores whose confidence reaches the threshold, none is the last of too many wrong ones."""
    calibration = Calibration(tuple(sorted(outcomes, reverse=True)))
    for count in range(1, len(outcomes) + 1):
        wrong = sum(not is_right for _, is_right in calibration.outcomes[:count])
        if wrong > MAX_WRONG_SHARE * count:
            assert calibration.confidence(calibration.outcomes[count - 1][0]) <= calibration.threshold
