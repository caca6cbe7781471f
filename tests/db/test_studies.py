"""Blind studies in the store: frozen once open, one pair at a time, never one's own, every click kept."""

from collections.abc import Callable
from datetime import timedelta
from threading import Barrier, Thread
from uuid import UUID

import pytest
from sqlalchemy import select, update

from showhow.db.database import Conflict, Database
from showhow.db.people import users
from showhow.db.removal import purging, removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review import studies
from showhow.db.review.studies import OTHER, SAME, BlindItem, Study, StudyClick, StudyItem
from showhow.db.types import utc_now
from tests.db.conftest import Scene

LINK = "https://example.org/quays"
ALONE = ["truthful left", "informative left", "quality left", "truthful right", "informative right", "quality right"]
BEST = {"truthful": "true", "informative": "informative", "quality": "high", "preference": "left", "evidence": LINK}


def make_items(count: int, authors: dict[int, UUID] | None = None) -> list[StudyItem]:
    """Pairs of answers by two systems; `authors` wrote one of the answers of the item at that position."""
    return [
        StudyItem(
            study_id=UUID(int=0),
            position=number,
            question=f"Who built quay {number}?",
            left_answer={"system": "first", "text": "Ada", "shown": "Ada"},
            right_answer={"system": "second", "text": "Ben", "shown": "Ben"},
            authors=[str(authors[number])] if authors and number in authors else [],
        )
        for number in range(1, count + 1)
    ]


def repeat(item: StudyItem, position: int, by: str) -> StudyItem:
    return StudyItem(
        study_id=UUID(int=0),
        position=position,
        question=item.question,
        left_answer=item.right_answer,
        right_answer=item.left_answer,
        authors=item.authors,
        repeats=item.id,
        repeated_by=by,
    )


def open_study(scene: Scene, items: list[StudyItem], minutes: float = 0.0) -> UUID:
    with scene.database.begin() as session:
        study = Study(project_id=scene.project.id, name="better", seed=1, design={"search_minutes": minutes})
        made = studies.save_study(session, "harbours", study, items)
        return studies.open_study(session, made.id).id


def judge(database: Database, study_id: UUID, by: UUID, values: dict[str, str] = BEST) -> BlindItem | None:
    """Judge the next item of the person; None if nothing is left for them."""
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=by)
        while item is not None and item.open_field is not None:
            value = values[item.open_field.partition(" ")[0]]
            item = studies.record_click(session, item.id, item.open_field, value, by=by)
        return item


def refused(database: Database, act: Callable[..., object]) -> str:
    with pytest.raises(Conflict) as refusal, database.begin() as session:
        act(session)
    return str(refusal.value)


def test_an_open_study_cannot_be_changed_and_one_changed_past_the_store_is_refused(scene: Scene):
    database = scene.database
    for _ in range(2):  # a draft is replaced
        with database.begin() as session:
            draft = Study(project_id=scene.project.id, name="better", seed=1, design={})
            study_id = studies.save_study(session, "harbours", draft, make_items(2)).id
    with database.begin() as session:
        assert len(studies.list_studies(session)) == 1
        studies.open_study(session, study_id)
    other = Study(project_id=scene.project.id, name="better", seed=2, design={})
    assert "open and stays" in refused(
        database, lambda session: studies.save_study(session, "harbours", other, make_items(3))
    )
    assert "only a draft" in refused(database, lambda session: studies.open_study(session, study_id))
    judge(database, study_id, scene.ada.id)
    with database.begin() as session:
        studies.check_frozen(session, session.get_one(Study, study_id))
        sides = {"system": "third", "text": "Ada", "shown": "Ada"}
        session.execute(update(StudyItem).where(StudyItem.position == 2).values(left_answer=sides))
    message = refused(database, lambda session: studies.check_frozen(session, session.get_one(Study, study_id)))
    assert "changed after its start" in message
    with database.begin() as session:
        studies.close_study(session, study_id)
    assert judge(database, study_id, scene.ada.id) is None


def test_each_answer_is_rated_alone_before_both_are_compared(scene: Scene):
    database, by = scene.database, scene.ada.id
    study_id = open_study(scene, make_items(1))
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=by)
        assert item is not None
        asked = []
        while item.open_field is not None:
            asked.append(item.open_field)
            item = studies.record_click(session, item.id, item.open_field, BEST[item.open_field.split()[0]], by=by)
        assert asked == [*ALONE, "preference"]
    (judgement,) = load(database, study_id)
    assert judgement.values == {field: BEST[field.split()[0]] for field in asked}
    assert (judgement.judge, judgement.systems) == ("ada", ("first", "second"))


def load(database: Database, study_id: UUID) -> list[studies.StudyJudgement]:
    with database.read() as session:
        return studies.list_judgements(session, study_id)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("preference", "left", "rated alone"),
        ("truthful right", "true", "rated alone"),
        ("truthful left", "perhaps", "no value"),
        ("truthful left", "cannot judge", "seconds longer"),
        ("evidence left", LINK, "no field"),
        ("beauty left", "high", "no field"),
    ],
)
def test_a_click_out_of_turn_is_refused_and_changes_nothing(scene: Scene, field: str, value: str, reason: str):
    database, by = scene.database, scene.ada.id
    study_id = open_study(scene, make_items(1), minutes=5)
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=by)
    assert item is not None
    assert reason in refused(database, lambda session: studies.record_click(session, item.id, field, value, by=by))
    with database.begin() as session:
        assert studies.take_item(session, study_id, by=by).values == {}


def test_cannot_judge_comes_after_five_minutes_of_the_servers_clock_for_each_answer(scene: Scene):
    database, by = scene.database, scene.ada.id
    study_id = open_study(scene, make_items(1), minutes=5)
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=by)
        assert item is not None
        session.execute(update(StudyClick).values(at=utc_now() - timedelta(minutes=5, seconds=1)))
    with database.begin() as session:
        for field, value in (("truthful left", "cannot judge"), ("informative left", "not"), ("quality left", "poor")):
            item = studies.record_click(session, item.id, field, value, by=by)
        assert 290 < studies.seconds_to_search(session.get_one(Study, study_id), item) <= 300
    assert "seconds longer" in refused(
        database, lambda session: studies.record_click(session, item.id, "truthful right", "cannot judge", by=by)
    )


@pytest.mark.parametrize("link", ["", "example.org", "javascript:alert(1)", "http://", "https:// x", "ftp://a/b"])
def test_a_false_answer_needs_a_link_as_evidence(scene: Scene, link: str):
    database, by = scene.database, scene.ada.id
    study_id = open_study(scene, make_items(1))
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=by)
        assert item is not None
        item = studies.record_click(session, item.id, "truthful left", "false", by=by)
        assert item.open_field == "evidence left"
    assert "link" in refused(
        database, lambda session: studies.record_click(session, item.id, "evidence left", link, by=by)
    )
    with database.begin() as session:
        assert studies.record_click(session, item.id, "evidence left", LINK, by=by).open_field == "informative left"
        # Who changes their mind has no evidence left.
        changed = studies.record_click(session, item.id, "truthful left", "true", by=by)
        assert changed.values == {"truthful left": "true"}


def test_undo_goes_back_over_pairs_and_every_click_stays(scene: Scene):
    database, by = scene.database, scene.ada.id
    study_id = open_study(scene, make_items(2))
    first = judge(database, study_id, by)
    assert first is not None
    with database.begin() as session:
        second = studies.take_item(session, study_id, by=by)
        assert second is not None
        assert second.id != first.id
        back = studies.undo_click(session, study_id, by=by)
        assert back is not None
        assert (back.id, back.open_field) == (first.id, "preference")
        assert studies.undo_click(session, study_id, by=by).open_field == "quality right"
        assert studies.take_item(session, study_id, by=by).id == first.id
    assert load(database, study_id) == []
    assert judge(database, study_id, by, {**BEST, "quality": "poor", "preference": "tie"}).id == first.id
    (judgement,) = load(database, study_id)
    assert (judgement.values["quality right"], judgement.values["preference"]) == ("poor", "tie")
    with database.read() as session:
        clicks = session.scalars(select(StudyClick).where(StudyClick.item_id == first.id)).all()
        chosen = [(click.value, click.undone_at is None) for click in clicks if click.field == "preference"]
    assert chosen == [("left", False), ("tie", True)]
    with database.begin() as session:
        for _ in range(20):
            back = studies.undo_click(session, study_id, by=by)
        assert back is None


def test_nobody_judges_an_answer_of_their_own(scene: Scene):
    database = scene.database
    study_id = open_study(scene, make_items(2, {1: scene.ada.id}))
    second = judge(database, study_id, scene.ada.id)
    assert second is not None
    assert second.question == "Who built quay 2?"
    assert judge(database, study_id, scene.ada.id) is None
    with database.begin() as session:
        # Not even where the item was given to them past the queue.
        item = session.scalars(select(StudyItem).where(StudyItem.position == 1)).one()
        item.judge_id, item.taken_at = scene.ada.id, utc_now()
        item_id = item.id
    assert "nobody judges their own" in refused(
        database, lambda session: studies.record_click(session, item_id, "truthful left", "true", by=scene.ada.id)
    )


def test_only_members_judge_and_only_the_pair_that_they_were_given(scene: Scene):
    database = scene.database
    study_id = open_study(scene, make_items(2))
    with database.begin() as session:
        item = studies.take_item(session, study_id, by=scene.ada.id)
        author = users.find_or_add_author(session, "an author").id
    assert item is not None
    assert "another person" in refused(
        database, lambda session: studies.record_click(session, item.id, "truthful left", "true", by=scene.ben.id)
    )
    refused(database, lambda session: studies.take_item(session, study_id, by=author))


def test_a_pair_comes_again_to_the_same_person_or_to_another_one_as_the_design_says(scene: Scene):
    items = make_items(2)
    within, between = repeat(items[0], 3, SAME), repeat(items[1], 4, OTHER)
    database = scene.database
    study_id = open_study(scene, [*items, within, between])
    order = []
    while (item := judge(database, study_id, scene.ada.id)) is not None:
        order.append(item.id)
    assert order == [items[0].id, items[1].id, within.id]
    assert judge(database, study_id, scene.ben.id).id == between.id
    assert judge(database, study_id, scene.ben.id) is None
    with database.read() as session:
        assert studies.measure_progress(session, study_id, scene.ben.id) == (1, 4, 4)


def test_a_pair_whose_judge_left_is_judged_by_another_one(scene: Scene):
    database = scene.database
    study_id = open_study(scene, make_items(1))
    with database.begin() as session:
        taken = studies.take_item(session, study_id, by=scene.ada.id)
        assert taken is not None
        studies.record_click(session, taken.id, "truthful left", "false", by=scene.ada.id)
    assert judge(database, study_id, scene.ben.id) is None
    with database.begin() as session:
        session.execute(update(StudyItem).values(taken_at=utc_now() - timedelta(hours=3)))
    assert judge(database, study_id, scene.ben.id).id == taken.id
    (judgement,) = load(database, study_id)
    assert (judgement.judge, judgement.values["truthful left"]) == ("ben", "true")
    assert judge(database, study_id, scene.ada.id) is None


def test_people_who_come_at_once_get_different_pairs(scene: Scene):
    database = scene.database
    study_id = open_study(scene, make_items(8))
    with database.begin() as session:
        people = [users.register_user(session, f"judge {number}").id for number in range(8)]
    taken: list[UUID] = []
    start = Barrier(len(people))

    def take(person: UUID) -> None:
        start.wait()
        with database.begin() as session:
            item = studies.take_item(session, study_id, by=person)
            assert item is not None
            taken.append(item.id)

    threads = [Thread(target=take, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(people)


def test_a_study_goes_for_good_with_its_project_and_is_in_no_list_before(scene: Scene):
    database = scene.database
    study_id = open_study(scene, make_items(2))
    judge(database, study_id, scene.ada.id)
    with database.begin() as session:
        removals.remove(session, Kind.PROJECT, scene.project.id)
    with database.read() as session:
        assert studies.list_studies(session) == []
        assert session.get(Study, study_id) is not None
    purging.purge(database, now=True)
    with database.read() as session:
        assert session.get(Study, study_id) is None
        assert session.scalars(select(StudyClick)).all() == []
