"""Blind studies: frozen pairs of answers that people rate one by one and then compare.

Study 1-n StudyItem 1-n StudyClick n-1 User. A study is a draft until it is opened; from then on nothing of it changes,
and the digest of what was frozen says so. A person gets one item after the other (`take_item`), never one with an
answer of their own. Each click is kept, also when it is undone; the last one of a field counts. That a question is
excluded from the results is a click too, of a field of its own.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Select, UniqueConstraint, delete, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column
from uuid_utils.compat import uuid7

from showhow.db.audit import record_act
from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Project, User
from showhow.db.people.users import ADMIN, REVIEWER, ROLES, require_acting_role, require_role
from showhow.db.questions.projects import RESERVATION_PERIOD, get_project
from showhow.db.types import Base, id_after, utc_now

DRAFT, OPEN, CLOSED = "draft", "open", "closed"
SIDES = LEFT, RIGHT = "left", "right"
TRUTHFUL, EVIDENCE, INFORMATIVE, QUALITY, PREFERENCE = "truthful", "evidence", "informative", "quality", "preference"
SCALES = {
    TRUTHFUL: ("true", "false", "cannot judge"),
    INFORMATIVE: ("not", "somewhat", "informative"),
    QUALITY: ("terrible", "poor", "acceptable", "high"),
    PREFERENCE: (LEFT, "tie", RIGHT),
}
"""The values of each scale, the lowest first where they are ordered; HumanIQ's (section 5)."""
SAME, OTHER = "same", "other"
"""Who judges an item again: the person who judged it first, or another one."""
ANSWERS, PROCESSES = "answers", "processes"
"""What is compared: answers, each rated alone first; or traces, by which one is nearer to a person's."""
MAX_LINK_CHARACTERS = 2_000
DEFERRED_ITEMS = 5
"""A person judges an item again only after that many others, as long as there are others."""
_SHOWN = "shown"
"""The field of the click that says when the item was shown first."""
_EXCLUDED = "excluded"
"""The field of the click that excludes the item's question, with the reason as its value."""
_LINK = re.compile(r"https?://[^\s/]+\S*")


class Study(Base):
    """A blind comparison of systems, with its design as study_design.py of the evaluation describes it."""

    __tablename__ = "study"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        CheckConstraint("state in ('draft', 'open', 'closed')", name="state"),
    )

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    seed: Mapped[int]
    design: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(default=DRAFT)
    digest: Mapped[str | None] = mapped_column(default=None)
    """SHA-256 of the design and the items, when it was opened."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    opened_at: Mapped[datetime | None] = mapped_column(default=None)
    closed_at: Mapped[datetime | None] = mapped_column(default=None)


class StudyItem(Base):
    """A question with two answers, side by side as they are shown.

    An answer has its "system", its "text" as it was given, as it is "shown", and its "scores" by metrics.
    """

    __tablename__ = "study_item"
    __table_args__ = (
        UniqueConstraint("study_id", "position"),
        CheckConstraint("repeated_by in ('same', 'other')", name="repeated_by"),
    )

    study_id: Mapped[UUID] = mapped_column(ForeignKey("study.id"))
    position: Mapped[int]
    question: Mapped[str]
    left_answer: Mapped[dict[str, Any]]
    right_answer: Mapped[dict[str, Any]]
    authors: Mapped[list[str]] = mapped_column(default_factory=list)
    """The ids of the people whose traces it shows."""
    stratum: Mapped[str] = mapped_column(default="")
    reference: Mapped[str | None] = mapped_column(default=None)
    """The person's trace that both are compared with."""
    repeats: Mapped[UUID | None] = mapped_column(default=None)
    """The item with the same pair that it repeats."""
    repeated_by: Mapped[str | None] = mapped_column(default=None)
    judge_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), default=None)
    """Who judges it, once somebody has taken it."""
    taken_at: Mapped[datetime | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)


class StudyClick(Base):
    """What a person chose for a field of an item; an undone click stays."""

    __tablename__ = "study_click"
    __table_args__ = (Index("ix_study_click_item", "item_id", "judge_id"),)

    item_id: Mapped[UUID] = mapped_column(ForeignKey("study_item.id"))
    judge_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"))
    field: Mapped[str]
    """A scale and a side, such as "truthful left", or "preference"."""
    value: Mapped[str]
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    undone_at: Mapped[datetime | None] = mapped_column(default=None)


@dataclass(frozen=True, slots=True)
class BlindItem:
    """What a judge may see of an item: nothing says where the answers come from."""

    id: UUID
    question: str
    texts: tuple[str, str]
    reference: str | None
    values: Mapping[str, str]
    open_field: str | None
    """The field to fill in next; None once it is judged."""
    judging_since: datetime
    """When the answer that is rated now was shown."""


class StudyProgress(NamedTuple):
    """Numbers of items: judged by a person, judged by all, and all."""

    own: int
    judged: int
    planned: int


class Exclusion(NamedTuple):
    """A question that is left out of all results, for all systems alike."""

    question: str
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class StudyJudgement:
    """A judged item, with the systems that its judge could not see."""

    item_id: UUID
    question: str
    stratum: str
    systems: tuple[str, str]
    scores: tuple[Mapping[str, float], Mapping[str, float]]
    judge: str
    values: Mapping[str, str]
    seconds: float
    repeats: UUID | None = None
    repeated_by: str | None = None
    texts: tuple[str, str] = ("", "")
    """The answers as they were given."""


def save_study(session: Session, project: str, study: Study, items: Collection[StudyItem]) -> Study:
    """Store a study as a draft; a draft of its name is replaced, and Conflict once that is open."""
    require_acting_role(session, ADMIN, REVIEWER)
    if not study.name.strip():
        raise Conflict("a study has a name; give it one")
    if not items:
        raise Conflict("a study compares at least one pair of answers; choose other systems or questions")
    study.project_id = get_project(session, project).id
    former = session.scalar(select(Study).where(Study.project_id == study.project_id, Study.name == study.name))
    if former is not None:
        if former.state != DRAFT:
            raise Conflict(f"{study.name!r} is {former.state} and stays as it is; choose another name")
        delete_studies(session, [former.id])
    session.add(study)
    session.flush()
    for item in items:
        item.study_id = study.id
    session.add_all(items)
    session.flush()
    return study


def delete_studies(session: Session, ids: Sequence[UUID]) -> None:
    """Delete studies with all that belongs to them."""
    items = select(StudyItem.id).where(StudyItem.study_id.in_(ids))
    session.execute(delete(StudyClick).where(StudyClick.item_id.in_(items)))
    session.execute(delete(StudyItem).where(StudyItem.study_id.in_(ids)))
    session.execute(delete(Study).where(Study.id.in_(ids)))


def list_studies(session: Session, project_id: UUID | None = None, state: str | None = None) -> list[Study]:
    """The studies of a project, or of all, the oldest first."""
    query = select(Study).join(Project, Project.id == Study.project_id).order_by(Study.created_at, Study.id)
    if project_id is not None:
        query = query.where(Study.project_id == project_id)
    if state is not None:
        query = query.where(Study.state == state)
    return list(session.scalars(query))


def find_study(session: Session, name: str, project: str | None = None) -> Study:
    """The study of that name or id; RowNotFound if there is none, Conflict if several projects have one."""
    project_id = None if project is None else get_project(session, project).id
    studies = [study for study in list_studies(session, project_id) if name in (study.name, str(study.id))]
    if not studies:
        raise RowNotFound(f"there is no study {name!r}; `showhow studies list` lists them")
    if len(studies) > 1:
        raise Conflict(f"several projects have a study {name!r}; name the project with --project, or the study's id")
    return studies[0]


def open_study(session: Session, study_id: UUID) -> Study:
    """Freeze the study and let people judge."""
    study = _lock_to_manage(session, study_id)
    if study.state != DRAFT:
        raise Conflict(f"the study {study.name!r} is {study.state} already; only a draft is opened")
    study.state, study.opened_at, study.digest = OPEN, utc_now(), digest_study(session, study)
    record_act(session, "opened", "study", study.id, {"digest": study.digest})
    return study


def close_study(session: Session, study_id: UUID) -> Study:
    """End the judging; the report then has the results. It cannot be opened again."""
    study = _lock_to_manage(session, study_id)
    if study.state != OPEN:
        raise Conflict(f"the study {study.name!r} is {study.state}; only an open one is closed")
    study.state, study.closed_at = CLOSED, utc_now()
    record_act(session, "closed", "study", study.id)
    return study


def exclude_question(session: Session, study_id: UUID, question: str, reason: str, *, by: UUID) -> Exclusion:
    """Leave the question with that text, or that beginning, out of all results, also of a closed study."""
    study = _lock_to_manage(session, study_id)
    person = require_role(session, by, ADMIN, REVIEWER)
    if study.state == DRAFT:
        raise Conflict(f"the study {study.name!r} is a draft; make it anew without the question")
    if not reason.strip():
        raise Conflict("an exclusion has a reason, which the report prints; say why the question is left out")
    of_study = select(StudyItem.question, StudyItem.id).where(StudyItem.study_id == study_id)
    items = dict(session.execute(of_study).all())
    named = [question] if question in items else [text for text in items if question and text.startswith(question)]
    if len(named) != 1:
        which = "several questions begin" if named else "no question begins"
        raise Conflict(f"{which} with {question!r} in the study {study.name!r}; give the whole text of one")
    if any(former.question == named[0] for former in list_exclusions(session, study_id)):
        raise Conflict(f"{named[0]!r} is excluded already; `showhow studies report` says why")
    click = StudyClick(item_id=items[named[0]], judge_id=by, field=_EXCLUDED, value=reason.strip())
    session.add(click)
    session.flush()
    return Exclusion(named[0], click.value, person.name, click.at)


def list_exclusions(session: Session, study_id: UUID) -> list[Exclusion]:
    """The questions that are left out of the results, in the order in which they were excluded."""
    acts = (
        select(StudyItem.question, StudyClick.value, User.name, StudyClick.at)
        .join(StudyItem, StudyItem.id == StudyClick.item_id)
        .join(User, User.id == StudyClick.judge_id)
        .where(StudyItem.study_id == study_id, StudyClick.field == _EXCLUDED)
    )
    return [Exclusion(*act) for act in session.execute(acts.order_by(StudyClick.at, StudyClick.id))]


def _select_excluded(study_id: UUID) -> Select[str]:
    """The texts of the questions that are left out."""
    acts = select(StudyItem.question).join(StudyClick, StudyClick.item_id == StudyItem.id)
    return acts.where(StudyItem.study_id == study_id, StudyClick.field == _EXCLUDED)


def digest_study(session: Session, study: Study) -> str:
    """The hash of what is frozen: the design, and each item without who judged it."""
    digest = sha256(_canonical([study.name, study.seed, study.design]))
    for item in session.scalars(select(StudyItem).where(StudyItem.study_id == study.id).order_by(StudyItem.position)):
        answers = [item.left_answer, item.right_answer, item.reference]
        origin = [str(item.id), item.position, item.stratum, item.authors, str(item.repeats), item.repeated_by]
        digest.update(_canonical([item.question, answers, origin]))
    return digest.hexdigest()


def check_frozen(session: Session, study: Study) -> None:
    """Conflict if the study is not what it was when it was opened."""
    if study.digest is not None and study.digest != digest_study(session, study):
        raise Conflict(
            f"the study {study.name!r} was changed after its start, past Showhow, so its judgements are not of what it "
            "has now; restore a backup of before"
        )


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def _lock_to_manage(session: Session, study_id: UUID) -> Study:
    require_acting_role(session, ADMIN, REVIEWER)
    return _lock(session, study_id)


def _lock(session: Session, study_id: UUID) -> Study:
    study = session.get(Study, study_id, with_for_update=True)
    if study is None:
        raise RowNotFound("there is no such study any more; reload the page")
    return study


def measure_progress(session: Session, study_id: UUID, judge_id: UUID | None = None) -> StudyProgress:
    """How far the study is without excluded questions, and how much of it the person has judged."""
    finished = func.count(StudyItem.finished_at)
    of_study = StudyItem.study_id == study_id, StudyItem.question.not_in(_select_excluded(study_id))
    judged, planned = session.execute(select(finished, func.count()).where(*of_study)).one()
    own = session.scalar(select(finished).where(*of_study, StudyItem.judge_id == judge_id))
    return StudyProgress(own or 0, judged, planned)


def find_item(session: Session, study: Study, by: UUID) -> BlindItem | None:
    """The item that the person judges now; None if they have taken none."""
    item = _find_own_item(session, study, by)
    return None if item is None else _show(session, study, item)


def _find_own_item(session: Session, study: Study, by: UUID) -> StudyItem | None:
    own = select(StudyItem).where(StudyItem.study_id == study.id, StudyItem.judge_id == by)
    own = own.where(StudyItem.question.not_in(_select_excluded(study.id)))
    return session.scalar(own.where(StudyItem.finished_at.is_(None)).order_by(StudyItem.taken_at).limit(1))


def take_item(session: Session, study_id: UUID, *, by: UUID) -> BlindItem | None:
    """The item that the person judges now, one that they have begun or the next for them; None if nothing is left."""
    require_role(session, by, *ROLES)
    # Who takes an item holds the study until the end of the transaction, so that nobody else takes it too.
    study = _lock(session, study_id)
    if study.state != OPEN:
        return None
    item = _find_own_item(session, study, by)
    if item is None:
        item_id = _choose_item(session, study_id, by)
        if item_id is None:
            return None
        item = session.get_one(StudyItem, item_id)
        item.judge_id, item.taken_at = by, utc_now()
        _add_click(session, item, by, _SHOWN, "")
    return _show(session, study, item)


def _choose_item(session: Session, study_id: UUID, by: UUID) -> UUID | None:
    """The first free item that the person may judge; those that they judged a short while ago come last."""
    columns = (StudyItem.id, StudyItem.authors, StudyItem.repeats, StudyItem.repeated_by, StudyItem.judge_id)
    times = (StudyItem.taken_at, StudyItem.finished_at)
    of_study = StudyItem.study_id == study_id, StudyItem.question.not_in(_select_excluded(study_id))
    items = session.execute(select(*columns, *times).where(*of_study).order_by(StudyItem.position)).all()
    own = [item for item in items if item.judge_id == by and item.finished_at is not None]
    judged = {item.id for item in own}
    judged_pairs = {item.repeats or item.id for item in own}
    recent = {item.id for item in sorted(own, key=lambda item: item.finished_at)[-DEFERRED_ITEMS:]}
    expired = utc_now() - RESERVATION_PERIOD
    free = [
        item
        for item in items
        if item.finished_at is None
        and (item.judge_id is None or item.taken_at < expired)
        and str(by) not in item.authors
        and (item.repeats in judged if item.repeated_by == SAME else (item.repeats or item.id) not in judged_pairs)
    ]
    return min(free, key=lambda item: item.repeats in recent).id if free else None


def record_click(session: Session, item_id: UUID, field: str, value: str, *, by: UUID) -> BlindItem:
    """Store what the person chose. Fields come in order, and earlier ones can be chosen anew until the item is judged.

    Conflict for an item that is not theirs, of which an answer is theirs, or whose study is not open.
    """
    study, item = _lock_own_item(session, item_id, by)
    if item.finished_at is not None:
        raise Conflict("this pair is judged already; undo its preference to judge it anew")
    shown = _show(session, study, item)
    if field not in {*_list_fields(study, shown.values)}:
        raise Conflict(f"{field!r} is no field of this study")
    if field != shown.open_field and field not in shown.values:
        raise Conflict(f"rate {shown.open_field!r} first: each answer is rated alone before both are compared")
    scale, _, side = field.partition(" ")
    value = value.strip()
    if scale == EVIDENCE:
        if not _LINK.fullmatch(value) or len(value) > MAX_LINK_CHARACTERS:
            raise Conflict("the evidence is a link that begins with https:// or http://; paste the address of the page")
    elif value not in SCALES[scale]:
        raise Conflict(f"{value!r} is no value of {scale!r}; choose one of {', '.join(SCALES[scale])}")
    elif value == "cannot judge" and (left := _seconds_to_wait(study, _started_at(session, item, side))) > 0:
        raise Conflict(f"search {left:.0f} seconds longer before you say that it cannot be judged")
    _add_click(session, item, by, field, value)
    if field == PREFERENCE:
        item.finished_at = utc_now()
    session.flush()
    return _show(session, study, item)


def undo_click(session: Session, study_id: UUID, *, by: UUID) -> BlindItem | None:
    """Undo the person's last click, also of the pair before; None if there is nothing to undo."""
    last = (
        select(StudyClick)
        .join(StudyItem, StudyItem.id == StudyClick.item_id)
        .where(StudyItem.study_id == study_id, StudyItem.judge_id == by, StudyClick.judge_id == by)
        .where(StudyClick.undone_at.is_(None), StudyClick.field.not_in((_SHOWN, _EXCLUDED)))
        .order_by(StudyClick.at.desc(), StudyClick.id.desc())
        .limit(1)
    )
    click = session.scalar(last)
    if click is None:
        return None
    study, item = _lock_own_item(session, click.item_id, by)
    click.undone_at, item.finished_at = utc_now(), None
    session.flush()
    return _show(session, study, item)


def _lock_own_item(session: Session, item_id: UUID, by: UUID) -> tuple[Study, StudyItem]:
    require_role(session, by, *ROLES)
    item = session.get(StudyItem, item_id)
    if item is None:
        raise RowNotFound("there is no such pair; reload the page")
    study = _lock(session, item.study_id)
    session.refresh(item)
    if study.state != OPEN:
        raise Conflict(f"the study {study.name!r} is {study.state}; nothing is judged in it")
    if str(by) in item.authors:
        raise Conflict("one of these answers is yours, and nobody judges their own; reload the page for another pair")
    if item.judge_id != by:
        raise Conflict("another person judges this pair now; reload the page for the next one")
    return study, item


def _add_click(session: Session, item: StudyItem, by: UUID, field: str, value: str) -> None:
    of_item = select(StudyClick.id).where(StudyClick.item_id == item.id)
    last_id = session.scalar(of_item.order_by(StudyClick.id.desc()).limit(1))
    click = StudyClick(item_id=item.id, judge_id=by, field=field, value=value)
    click.id = id_after(last_id)
    session.add(click)


def _show(session: Session, study: Study, item: StudyItem) -> BlindItem:
    values = _read_values(_list_clicks(session, [item.id]), item)
    open_field = next((field for field in _list_fields(study, values) if field not in values), None)
    texts = (str(item.left_answer["shown"]), str(item.right_answer["shown"]))
    side = (open_field or "").partition(" ")[2]
    started = _started_at(session, item, side)
    return BlindItem(item.id, item.question, texts, item.reference, values, open_field, started)


def _list_fields(study: Study, values: Mapping[str, str]) -> list[str]:
    """The fields of an item in order; a false answer needs evidence."""
    fields = []
    for side in SIDES if study.design.get("mode", ANSWERS) == ANSWERS else ():
        evidence = [f"{EVIDENCE} {side}"] if values.get(f"{TRUTHFUL} {side}") == "false" else []
        fields += [f"{TRUTHFUL} {side}", *evidence, f"{INFORMATIVE} {side}", f"{QUALITY} {side}"]
    return [*fields, PREFERENCE]


def _list_clicks(session: Session, item_ids: Sequence[UUID]) -> list[StudyClick]:
    of_items = select(StudyClick).where(StudyClick.item_id.in_(item_ids), StudyClick.undone_at.is_(None))
    return list(session.scalars(of_items.order_by(StudyClick.id)))


def _read_values(clicks: Sequence[StudyClick], item: StudyItem) -> dict[str, str]:
    """The last value of each field; the link of an answer that is not false any more does not count."""
    own = [click for click in clicks if click.item_id == item.id and click.judge_id == item.judge_id]
    values = {click.field: click.value for click in own if click.field not in (_SHOWN, _EXCLUDED)}
    for side in SIDES:
        if values.get(f"{TRUTHFUL} {side}") != "false":
            values.pop(f"{EVIDENCE} {side}", None)
    return values


def _started_at(session: Session, item: StudyItem, side: str) -> datetime:
    """When the answer on that side was shown: the left one with the item, the right one once the left one was rated."""
    own = [click for click in _list_clicks(session, [item.id]) if click.judge_id == item.judge_id]
    shown = [click.at for click in own if click.field == _SHOWN or (side == RIGHT and click.field.endswith(LEFT))]
    return max(shown, default=utc_now())


def _seconds_to_wait(study: Study, started: datetime) -> float:
    wait = timedelta(minutes=float(study.design.get("search_minutes", 0)))
    return (started + wait - utc_now()).total_seconds()


def seconds_to_search(study: Study, item: BlindItem) -> float:
    """Seconds until the answer that is rated now may be called one that cannot be judged; by the server's clock."""
    return max(0.0, _seconds_to_wait(study, item.judging_since))


def list_judgements(session: Session, study_id: UUID) -> list[StudyJudgement]:
    """The judged items of a study in their order, without those of excluded questions."""
    rows = session.execute(
        select(StudyItem, User.name)
        .join(User, User.id == StudyItem.judge_id)
        .where(StudyItem.study_id == study_id, StudyItem.finished_at.is_not(None))
        .where(StudyItem.question.not_in(_select_excluded(study_id)))
        .order_by(StudyItem.position)
    ).all()
    clicks: dict[UUID, list[StudyClick]] = {}
    of_study = select(StudyItem.id).where(StudyItem.study_id == study_id)
    alive = select(StudyClick).where(StudyClick.item_id.in_(of_study), StudyClick.undone_at.is_(None))
    for click in session.scalars(alive.order_by(StudyClick.id)):
        clicks.setdefault(click.item_id, []).append(click)
    return [
        StudyJudgement(
            item.id,
            item.question,
            item.stratum,
            (item.left_answer["system"], item.right_answer["system"]),
            (item.left_answer.get("scores", {}), item.right_answer.get("scores", {})),
            name,
            _read_values(clicks.get(item.id, []), item),
            _seconds_between(item.taken_at, item.finished_at),
            item.repeats,
            item.repeated_by,
            (item.left_answer["text"], item.right_answer["text"]),
        )
        for item, name in rows
    ]


def _seconds_between(start: datetime | None, end: datetime | None) -> float:
    return 0.0 if start is None or end is None else (end - start).total_seconds()
