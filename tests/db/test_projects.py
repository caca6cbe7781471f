"""Projects, people and questions."""

from dataclasses import replace

import pytest

from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.projects import MAX_OVERLAP, ProjectSettings, QuestionImportCounts
from showhow.db.questions.question_index import QuestionIndex
from showhow.db.types import join_attachments
from showhow.guard.redaction import redactor_of


def test_a_question_is_added_once_and_positions_continue(database, sample_question):
    with database.begin() as session:
        project = projects.create_project(session, "harbours", "harbour", tools=["read"])
        first = projects.add_questions(
            session, project.id, [sample_question("a?", "1"), sample_question("b?", "2"), sample_question("a?", "1")]
        )
        second = projects.add_questions(
            session, project.id, [sample_question("b?", "2"), sample_question("b?", "3"), sample_question("c?")]
        )
        questions = projects.list_questions(session, project.id)
    assert (first.added, first.existing, second.added, second.existing) == (2, 1, 2, 1)
    assert [(q.position, q.text, q.source_id) for q in questions] == [
        (1, "a?", "1"),
        (2, "b?", "2"),
        (3, "b?", "3"),
        (4, "c?", None),
    ]


def test_tasks_without_ids_that_differ_only_in_their_attachments_are_different_questions(database, sample_question):
    mails = [sample_question("Triage it.", details={"attachments": {"mail": mail}}) for mail in ("A é", {"b": [1.0]})]
    with database.begin() as session:
        project = projects.create_project(session, "mails", "harbour")
        assert projects.add_questions(session, project.id, [*mails, mails[0]]).added == 2
        assert projects.add_questions(session, project.id, mails).existing == 2
        assert projects.has_questions(session, project.id, mails)
        assert not projects.has_questions(session, project.id, [mails[0], sample_question("Triage it.")])
        stored = [projects.find_matching_question(session, project.id, mail) for mail in mails]
        assert [question.position for question in stored] == [1, 2]
        assert projects.list_question_texts(session, project.id) == [question.full_text for question in stored]
        with pytest.raises(RowNotFound):
            projects.find_matching_question(session, project.id, sample_question("Triage it."))


def test_a_question_with_a_secret_is_the_stored_one_without_it(database, sample_question):
    key = 'sk-planted"0123ü'
    asked = sample_question(
        f"What does {key} open?",
        f"of {key}",
        gold_answers=({"text": key, "entity": None},),
        details={"attachments": {"mail": f"It is {key}.", "header": {"key": key}}},
    )
    guarded = Database(database.url, lambda: redactor_of((key,)))
    with guarded.begin() as session:
        project = projects.create_project(session, "doors", "harbour")
        assert projects.add_questions(session, project.id, [asked]).added == 1
        assert projects.add_questions(session, project.id, [asked]) == QuestionImportCounts(0, 1, 0)
        assert projects.has_questions(session, project.id, [asked])
        assert not projects.has_questions(session, project.id, [replace(asked, gold_answers=())])
        stored = projects.find_matching_question(session, project.id, asked)
        assert key not in stored.full_text
        index = QuestionIndex(project.id)
        index.refresh(session)
        assert index.find_text(join_attachments(asked.text, asked.details["attachments"])) == stored.id
    guarded.close()


def test_questions_are_listed_by_page(scene):
    with scene.database.read() as session:
        assert [q.position for q in projects.list_questions(session, scene.project.id, limit=2)] == [1, 2]
        assert [q.position for q in projects.list_questions(session, scene.project.id, limit=2, after=2)] == [3]
        texts = [q.text for q in projects.list_questions(session, scene.project.id)]
        assert projects.list_question_texts(session, scene.project.id) == texts
        assert projects.count_questions(session, scene.project.id) == len(texts)


def test_every_field_of_a_question_is_stored(database, sample_question):
    record = sample_question(
        "who?", "7", "set", "test", "kg", ({"text": "Ada", "entity": "Q1"},), ({"question": "x"},), {"n": 1.5}
    )
    with database.begin() as session:
        project = projects.create_project(session, "p", "w")
        projects.add_questions(session, project.id, [record])
    with database.read() as session:
        (stored,) = projects.list_questions(session, project.id)
    assert (stored.source_id, stored.dataset, stored.split, stored.kind) == ("7", "set", "test", "kg")
    assert (stored.gold_answers, stored.decomposition, stored.details) == (
        [{"text": "Ada", "entity": "Q1"}],
        [{"question": "x"}],
        {"n": 1.5},
    )


def test_project_names_are_unique(database):
    with database.begin() as session:
        made = projects.create_project(session, "p", "w")
        assert projects.get_or_create_project(session, "p", world="w").id == made.id
        assert projects.get_or_create_project(session, "p").id == made.id
        assert users.register_user(session, "ada").id == users.register_user(session, "ada").id
        assert [project.name for project in projects.list_projects(session)] == ["p"]
        with pytest.raises(Conflict, match="already"):
            projects.create_project(session, "p", "w")
        with pytest.raises(Conflict, match="needs a name"):
            projects.create_project(session, "  ", "w")
        with pytest.raises(Conflict, match="over the world 'w', not 'v'"):
            projects.get_or_create_project(session, "p", world="v")
        with pytest.raises(RowNotFound, match="name its world"):
            projects.get_or_create_project(session, "q")


def test_editors_who_saw_the_same_settings_keep_each_others_changes(database):
    with database.begin() as session:
        seen = ProjectSettings.of(projects.create_project(session, "p", "w", guidelines="Read."))
        projects.edit_project(session, "p", instruction="Look.")
        projects.save_settings(session, "p", replace(seen, overlap=3), seen=seen)
        projects.save_settings(session, "p", replace(seen, answer_format=AnswerFormat(AnswerKind.NONE)), seen=seen)
    with database.read() as session:
        stored = ProjectSettings.of(projects.get_project(session, "p"))
    assert stored == ProjectSettings("Look.", AnswerFormat(AnswerKind.NONE), "Read.", 3)


def test_a_setting_that_somebody_else_changed_meanwhile_is_not_overwritten(database):
    with database.begin() as session:
        seen = ProjectSettings.of(projects.create_project(session, "p", "w", guidelines="Read."))
        projects.save_settings(session, "p", replace(seen, guidelines="Read twice."), seen=seen)
        projects.save_settings(session, "p", replace(seen, guidelines="Read twice."), seen=seen)
    with pytest.raises(Conflict, match="changed the guidelines of the project 'p'"), database.begin() as session:
        projects.save_settings(session, "p", replace(seen, guidelines="Skim.", overlap=2), seen=seen)
    with database.read() as session:
        assert ProjectSettings.of(projects.get_project(session, "p")) == replace(seen, guidelines="Read twice.")


def test_an_overlap_is_one_to_its_maximum(database):
    with database.begin() as session:
        projects.create_project(session, "p", "w")
        assert projects.edit_project(session, "p", overlap=MAX_OVERLAP).overlap == MAX_OVERLAP
        for overlap in (0, MAX_OVERLAP + 1):
            with pytest.raises(Conflict, match="the overlap is 1 to 1,000"):
                projects.edit_project(session, "p", overlap=overlap)


def test_a_project_without_a_world_keeps_its_tools(database):
    with database.begin() as session:
        projects.create_project(session, "chores", "", tools=["sweep"])
        projects.create_project(session, "towns", "w", tools=["read"])
        assert projects.set_tools(session, "towns", []).tools == []
        with pytest.raises(Conflict, match="no world, so it needs tools of its own"):
            projects.set_tools(session, "chores", [])
        assert projects.get_project(session, "chores").tools == ["sweep"]


def test_an_import_counts_the_questions_whose_gold_answers_differ_and_keeps_these(database, sample_question):
    gold = [{"text": "Ines Moor", "entity": None}]
    with database.begin() as session:
        project = projects.create_project(session, "quays", "harbour")
        quays = [sample_question(f"Who built quay {n}?", gold_answers=gold) for n in (1, 2)]
        projects.add_questions(session, project.id, quays)
        changed = [quays[0], sample_question(quays[1].text, gold_answers=[{"text": "Otto Moor", "entity": None}])]
        counts = projects.add_questions(session, project.id, changed)
        assert str(counts) == "0 questions added, 2 existed already, of which 1 keep other gold answers"
        assert [question.gold_answers for question in projects.list_questions(session, project.id)] == [gold, gold]
