"""What several people did on the same question, and what they said of the same answer."""

from showhow.db.models import Judgement
from showhow.db.review import shared_work
from tests.evaluation.scripted_annotators import read_article, record, search


def test_the_latest_traces_of_shared_questions_are_listed_with_their_steps_and_labels(scene):
    first, second, third = (question.id for question in scene.questions)
    one = record(scene.database, first, "ada", "yes", [search("quay"), read_article("Lund", 4)])
    record(scene.database, first, "ben", "no")
    other = record(scene.database, first, "ben", "perhaps", [search("harbour")])
    for question, person in ((second, "ada"), (third, "ben"), (third, "ben")):
        record(scene.database, question, person, "alone")
    with scene.database.begin() as session:
        labels = (("truthfulness", "true"), ("approval", "approved"))
        session.add_all(
            Judgement(trace_id=one, aspect=aspect, value=value, judge_id=scene.ben.id) for aspect, value in labels
        )
    with scene.database.read() as session:
        project = scene.project.id
        before = shared_work.describe_shared_work(session, project)
        listed = shared_work.list_shared_traces(session, project)
        assert [(trace.id, trace.person, trace.answer, trace.question.position) for trace in listed] == [
            (one, "ada", "yes", 1),
            (other, "ben", "perhaps", 1),
        ]
        steps = [step for step in shared_work.iterate_shared_steps(session, project) if step.trace_id == one]
        assert [(step.tool, step.rating) for step in steps] == [("wikisearch", None), ("read", 4)]
        (label,) = shared_work.list_trace_labels(session, project, ["truthfulness"])
        assert (label.trace_id, label.value, label.person, label.question.id) == (one, "true", "ben", first)
    record(scene.database, second, "ben", "two")
    with scene.database.read() as session:
        assert shared_work.describe_shared_work(session, project) != before
