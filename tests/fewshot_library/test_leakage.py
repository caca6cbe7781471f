"""Leakage detection and the library card: demonstrations that are questions of a test split."""

from uuid import uuid4

import pytest

from showhow.db.traces.libraries import DemonstrationFilter
from showhow.fewshot_library.library import FreezeOptions, LeakageError, build_card, find_leaks


@pytest.fixture(scope="module")
def split_questions(demonstrations):
    """Two questions of the library, by id and by text, a paraphrase of a third, and an unrelated question."""
    return [
        (demonstrations[0].question_id, "under another wording altogether"),
        (uuid4(), demonstrations[1].question.upper() + " "),
        (uuid4(), "What is the highest mountain in Alaska?"),
        (uuid4(), "Who painted the ceiling of the harbour office?"),
    ]


def test_leaks_are_found_by_id_by_text_and_by_similarity(demonstrations, split_questions, encoder):
    alaska = next(demonstration for demonstration in demonstrations if "alaska" in demonstration.question)
    leaks = find_leaks(demonstrations, split_questions, encoder)
    assert {leak.demonstration.trace_id for leak in leaks} == {
        demonstrations[0].trace_id,
        demonstrations[1].trace_id,
        alaska.trace_id,
    }
    assert {leak.cosine for leak in leaks if leak.demonstration is not alaska} == {1.0}


def test_tasks_with_equal_texts_leak_only_with_equal_attachments(demonstrations, encoder):
    mails = ["Our invoice was paid twice.", "The login page shows an error."]
    task = demonstrations[0]._replace(question="Triage it.", attachments={"mail": mails[0]})
    other = task._replace(trace_id=uuid4(), attachments={"mail": mails[1]})
    assert find_leaks([task], [(uuid4(), other.full_text)], encoder) == []
    (leak,) = find_leaks([task, other], [(uuid4(), other.full_text)], encoder)
    assert (leak.demonstration, str(leak)) == (other, "'Triage it.' is a question of a test split")


def test_no_demonstrations_or_no_test_questions_have_no_leaks(demonstrations, split_questions, encoder):
    assert find_leaks(demonstrations, [], encoder) == find_leaks([], split_questions, encoder) == []


def test_a_card_is_refused_for_leaks_unless_forced(demonstrations, split_questions, encoder):
    leaks = find_leaks(demonstrations, split_questions, encoder)
    with pytest.raises(LeakageError, match="3 demonstrations leak questions of the split 'test'"):
        build_card(demonstrations, DemonstrationFilter(), FreezeOptions(by="ada"), leaks)
    card = build_card(demonstrations, DemonstrationFilter(kind="simple"), FreezeOptions(by="ada", force=True), leaks)
    assert len(card["leaks"]) == 3
    assert card["conditions"] == {"kind": "simple"}
