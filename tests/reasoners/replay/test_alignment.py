"""Questions are aligned with demonstrations: names fill slots, and the other words mean the same."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.replay.alignment import MAX_WRONG_SHARE, PRIOR_RIGHT, PRIOR_WEIGHT, Calibration, QuestionAligner
from reasoners.replay.compiler import build_program
from reasoners.replay.demonstration import MaskedQuestion, Program, WorldWords, mask_question
from tests.fixtures.real_world import RealWorld


@dataclass(frozen=True)
class AlignedLibrary:
    programs: list[Program]
    aligner: QuestionAligner
    world: WorldWords

    def mask(self, text: str) -> MaskedQuestion:
        return mask_question(text, self.world, self.aligner.vocabulary)


@pytest.fixture(scope="module")
def library(real: RealWorld) -> AlignedLibrary:
    programs = [program for program in map(build_program, real.shown) if program.problem is None]
    return AlignedLibrary(
        programs, QuestionAligner(programs, real.context.encode), WorldWords(real.context.world, real.context.encode)
    )


def exchange_names(program: Program, names: list[str]) -> str:
    """The question with these names in its slots."""
    text = program.question
    for slot, name in reversed(list(zip(program.names, names, strict=True))):
        text = text[: program.slots[slot].start] + name + text[program.slots[slot].end :]
    return text


def test_other_names_in_the_place_of_its_own_are_the_fillers_of_its_slots(library: AlignedLibrary) -> None:
    """The oracle puts names of another demonstration into the text; the alignment has to find them again."""
    for program, other in zip(library.programs, library.programs[1:] + library.programs[:1], strict=True):
        known = [other.texts[slot] for slot in other.names]
        names = (known * 2)[: len(program.names)]
        alignments, _ = library.aligner.align_all(library.mask(exchange_names(program, names)), library.world)
        keys = [(alignment.key, [alignment.fillers[s] for s in alignment.program.names]) for alignment in alignments]
        assert (program.signature(program.texts), names) in keys, program.question


@pytest.mark.parametrize("change", [str.lower, lambda text: text.rstrip("?") + "."])
def test_names_are_found_in_any_case_and_before_a_full_stop(library: AlignedLibrary, change) -> None:
    for program in library.programs:
        fillers = library.mask(change(program.question)).fillers
        assert [text.casefold() for text in fillers] == [program.texts[slot].casefold() for slot in program.names]


def test_a_masked_question_has_no_name_and_all_its_other_characters(library: AlignedLibrary) -> None:
    for question in library.aligner.questions:
        rest = sum(end - start - 1 for start, end in question.mentions)
        assert len(question.masked) == len(question.text) - rest
        assert not [name for name in question.fillers if name in question.masked]


def test_relations_in_another_order_are_another_question(library: AlignedLibrary) -> None:
    program = next(p for p in library.programs if sum(slot.is_relation for slot in p.slots) > 1)
    (name,) = (program.texts[slot] for slot in program.names)
    relations = [slot.text for slot in program.slots if slot.is_relation]
    for words in (relations, relations[::-1]):
        text = f"Who is the {words[0]} of the {words[1]} of {name}?"
        question = MaskedQuestion(text, ((text.index(name), text.index(name) + len(name)),))
        alignments, _ = library.aligner.align_all(question, library.world)
        for alignment in alignments:
            asked = (lookup for lookup in alignment.program.lookups if lookup.word is not None)
            asks = [lookup.fill(alignment.fillers) for lookup in asked]
            chain = [ask for ask in asks if ask in words]
            assert chain == [word for word in words[::-1] if word in chain]


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
