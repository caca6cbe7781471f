"""Projects with the format of their answers, their questions, and who has reserved or completed each question."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, insert, select, update
from sqlalchemy.orm import Session
from uuid_utils.compat import uuid7

from showhow.db.audit import record_act
from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Assignment, Project, Question, Run, Trace
from showhow.db.people.users import ADMIN, ROLES, require_acting_role
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.question_index import FULL_TEXT_COLUMNS, QuestionIndex
from showhow.db.types import join_attachments, redactor_of_dialect, utc_now

INSERT_BATCH_SIZE = 1_000
RESERVATION_PERIOD = timedelta(hours=2)
MAX_OVERLAP = 1_000
"""The maximum number of people who answer each question."""
COMPLETED_STATUSES = ("submitted", "approved")
"""The statuses of traces that count as a person's answer."""
DEFAULT_INSTRUCTION = "Answer the question by asking the sources with the tools."


class QuestionSource(Protocol):
    """A question read from a dataset file."""

    @property
    def text(self) -> str: ...
    @property
    def source_id(self) -> str | None: ...
    @property
    def dataset(self) -> str | None: ...
    @property
    def split(self) -> str | None: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def gold_answers(self) -> Sequence[dict[str, Any]]: ...
    @property
    def decomposition(self) -> Sequence[dict[str, Any]]: ...
    @property
    def details(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class QuestionImportCounts:
    """The numbers of questions added and of those that the project already had."""

    added: int
    existing: int
    differing: int
    """Of those that it had, how many have other gold answers there, which stay."""

    def __str__(self) -> str:
        added = f"{self.added:,} question{'' if self.added == 1 else 's'} added"
        differing = f", of which {self.differing:,} keep other gold answers" if self.differing else ""
        return f"{added}, {self.existing:,} existed already{differing}"


def list_projects(session: Session) -> list[Project]:
    """List all projects, the oldest first."""
    return list(session.scalars(select(Project).order_by(Project.created_at, Project.id)))


def edit_project(  # noqa: PLR0913 - each is a field of the project
    session: Session,
    name: str,
    *,
    instruction: str | None = None,
    answer_format: AnswerFormat | None = None,
    guidelines: str | None = None,
    overlap: int | None = None,
    allows_questions: bool | None = None,
    shows_gold: bool | None = None,
) -> Project:
    """Change the fields of a project that are given, as an administrator; its traces stay as they are."""
    require_acting_role(session, ADMIN)
    if overlap is not None and not 1 <= overlap <= MAX_OVERLAP:
        raise Conflict(f"{overlap:,} people cannot answer each question; the overlap is 1 to {MAX_OVERLAP:,}")
    project = get_project(session, name)
    project.instruction = project.instruction if instruction is None else instruction.strip()
    project.answer_format = project.answer_format if answer_format is None else answer_format.to_json()
    project.guidelines = project.guidelines if guidelines is None else guidelines
    project.overlap = project.overlap if overlap is None else overlap
    project.allows_questions = project.allows_questions if allows_questions is None else allows_questions
    if shows_gold is not None and shows_gold != project.shows_gold:
        project.shows_gold = shows_gold
        record_act(session, "showed gold" if shows_gold else "hid gold", "project", project.id)
    return project


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What an administrator sets for a project."""

    instruction: str
    answer_format: AnswerFormat
    guidelines: str
    overlap: int
    allows_questions: bool = False
    shows_gold: bool = False

    @classmethod
    def of(cls, project: Project) -> "ProjectSettings":
        """The settings that the project has."""
        stored = {setting.name: getattr(project, setting.name) for setting in fields(cls)}
        return cls(**stored | {"answer_format": AnswerFormat.from_json(project.answer_format)})


def save_settings(session: Session, name: str, written: ProjectSettings, *, seen: ProjectSettings) -> Project:
    """Store the settings that differ from those that their editor has seen; Conflict if one was changed meanwhile."""
    project = get_project(session, name)
    # The lock serializes editors, so that each sees what the one before has stored.
    session.refresh(project, with_for_update=True)
    stored = ProjectSettings.of(project)
    edited = {
        setting.name: getattr(written, setting.name)
        for setting in fields(written)
        if getattr(written, setting.name) != getattr(seen, setting.name)
    }
    changed = [
        setting.replace("_", " ")
        for setting, value in edited.items()
        if getattr(stored, setting) not in (getattr(seen, setting), value)
    ]
    if changed:
        raise Conflict(
            f"somebody else has changed the {' and the '.join(changed)} of the project {name!r} since you opened this "
            "page, so nothing is saved; copy what you typed, then reload the page and enter it again"
        )
    return edit_project(session, name, **edited)


def get_project(session: Session, name: str) -> Project:
    """Find the project with this name; RowNotFound if there is none."""
    project = find_project(session, name)
    if project is None:
        raise RowNotFound(f"there is no project {name!r}; `showhow project list` lists them")
    return project


ASKED_IN = "Asked in "
"""The beginning of the name of a project that collects what is asked in another one."""


def asked_questions_project(session: Session, world: str, asked_in: str | None = None) -> Project:
    """The project of questions that people ask of a world, or with the tools and task of the project `asked_in`.

    Annotators are not given them. It is new, not stored yet, if nobody asked before; a stored one of a world keeps the
    settings that it has.
    """
    if asked_in is None:
        name = f"Asked of {world}"
        stored = find_project(session, name)
        return stored if stored is not None and stored.world == world else Project(name=name, world=world)
    source = get_project(session, asked_in)
    return Project(
        name=f"{ASKED_IN}{source.name}",
        world=source.world,
        tools=list(source.tools),
        instruction=source.instruction,
        answer_format=dict(source.answer_format),
    )


def collect_asked_questions(session: Session, asked: Project) -> Project:
    """Store the project of asked questions, or find the stored one, which gets its settings."""
    stored = find_project(session, asked.name)
    if stored is None:
        session.add(asked)
        session.flush()
        return asked
    if stored.world != asked.world:
        raise Conflict(
            f"the project {asked.name!r} is over the world {stored.world!r}; rename it, or ask of that world"
        )
    stored.tools, stored.instruction, stored.answer_format = asked.tools, asked.instruction, asked.answer_format
    return stored


def list_project_worlds(session: Session) -> list[str]:
    """List the worlds of all projects."""
    return list(session.scalars(select(Project.world).distinct().order_by(Project.world)))


def list_world_hashes(session: Session) -> dict[str, str | None]:
    """List the worlds of all projects, each with the content hash that the latest run over it recorded."""
    worlds: dict[str, str | None] = dict.fromkeys(list_project_worlds(session))
    content_hash = Run.spec["world_hash"].as_string()
    recorded = select(Run.world, content_hash).where(content_hash.is_not(None), Run.world.in_(worlds))
    latest_last = recorded.group_by(Run.world, content_hash).order_by(func.max(Run.started_at))
    worlds.update((world, recorded_hash) for world, recorded_hash in session.execute(latest_last))
    return worlds


def find_project(session: Session, name: str) -> Project | None:
    """Find the project with this name."""
    return session.scalar(select(Project).where(Project.name == name))


def create_project(  # noqa: PLR0913 - each is a field of the project
    session: Session,
    name: str,
    world: str,
    *,
    guidelines: str = "",
    tools: Sequence[str] = (),
    instruction: str = "",
    answer_format: AnswerFormat | None = None,
) -> Project:
    """Create a project over the world, or over none if its name is empty; no tools means all built-in tools.

    Only administrators do.
    """
    require_acting_role(session, ADMIN)
    if not name.strip():
        raise Conflict("a project needs a name")
    if find_project(session, name) is not None:
        raise Conflict(f"there is a project {name!r} already; choose another name")
    _check_tools(name, world, tools)
    project = Project(
        name=name,
        world=world,
        guidelines=guidelines,
        tools=list(tools),
        instruction=instruction.strip(),
        answer_format=(answer_format or AnswerFormat()).to_json(),
    )
    session.add(project)
    session.flush()
    return project


def _check_tools(name: str, world: str, tools: Sequence[str]) -> None:
    if not world and not tools:
        raise Conflict(f"the project {name!r} has no world, so it needs tools of its own; name at least one")


def set_tools(session: Session, name: str, tools: Sequence[str]) -> Project:
    """Set the tools that the project offers, as an administrator; none means all built-in tools, which need a world."""
    require_acting_role(session, ADMIN)
    project = get_project(session, name)
    _check_tools(name, project.world, tools)
    project.tools = list(tools)
    return project


def get_or_create_project(session: Session, name: str, *, world: str | None = None) -> Project:
    """Find the project with this name, or create one over the world."""
    project = find_project(session, name)
    if project is not None:
        if world is not None and world != project.world:
            raise Conflict(
                f"the project {name!r} is over the world {project.world!r}, not {world!r}; choose another project"
            )
        return project
    if world is None:
        raise RowNotFound(f"there is no project {name!r}; to create it, name its world with --world")
    return create_project(session, name, world)


def add_questions(session: Session, project_id: UUID, records: Iterable[QuestionSource]) -> QuestionImportCounts:
    """Append, as an administrator, the questions whose source id, text and attachments the project does not have."""
    return QuestionAppender(project_id).add_all(session, records)


def add_question(session: Session, project_id: UUID, record: QuestionSource) -> QuestionImportCounts:
    """Append one question, which a person has asked or chosen, unless the project has it."""
    return QuestionAppender(project_id, roles=ROLES).add_all(session, [record])


class QuestionAppender:
    """Appends questions to a project in one or several transactions; `end_batch` ends the work of each of them."""

    def __init__(
        self, project_id: UUID, note: Callable[[UUID], None] | None = None, *, roles: Sequence[str] = (ADMIN,)
    ) -> None:
        self._index = QuestionIndex(project_id)
        self._roles = roles
        self._project_id = project_id
        self._note = note
        self._rows: list[dict[str, Any]] = []
        self._is_current = False
        self._added = self._existing = self._differing = 0

    @property
    def counts(self) -> QuestionImportCounts:
        """The numbers of questions so far."""
        return QuestionImportCounts(self._added, self._existing, self._differing)

    def add_all(self, session: Session, records: Iterable[QuestionSource]) -> QuestionImportCounts:
        """Append the questions in this transaction."""
        for record in records:
            self.add(session, record)
        self.end_batch(session)
        return self.counts

    def prepare(self, session: Session, _: Sequence[QuestionSource]) -> None:
        """Read the questions of the project, so that the transaction is short."""
        self._index.refresh(session)

    def add(self, session: Session, record: QuestionSource) -> None:
        """Append the question, if it is new."""
        if not self._is_current:
            # Others may have appended questions since the last transaction.
            self._index.refresh(session)
            self._is_current = True
        gold = list(record.gold_answers)
        text = _full_text(record)
        is_other = self._index.has_other_gold(record.source_id, text, gold)
        if is_other is not None:
            self._existing += 1
            self._differing += is_other
            return
        row = _question_row(record, self._project_id, self._index.last_position + 1)
        self._index.add(row["id"], row["position"], record.source_id, text, gold)
        self._rows.append(row)
        self._added += 1
        if len(self._rows) == INSERT_BATCH_SIZE:
            self._insert_rows(session)

    def end_batch(self, session: Session) -> None:
        """Insert the rows that are waiting; a commit follows. Conflict if the person who acts has none of the roles."""
        require_acting_role(session, *self._roles)
        self._insert_rows(session)
        self._is_current = False

    def _insert_rows(self, session: Session) -> None:
        if self._rows:
            session.execute(insert(Question), self._rows)
            for row in self._rows if self._note is not None else ():
                self._note(row["id"])  # type: ignore[misc]
            self._rows = []


def has_questions(session: Session, project_id: UUID, records: Sequence[QuestionSource]) -> bool:
    """Whether the project has exactly these questions, with these gold answers."""
    index = QuestionIndex(project_id)
    index.refresh(session)
    return index.has_exactly((record.source_id, _full_text(record), list(record.gold_answers)) for record in records)


def find_matching_question(session: Session, project_id: UUID, record: QuestionSource) -> Question:
    """Find the project's question with the record's source id, text and attachments; RowNotFound if there is none."""
    question = find_equal_question(session, project_id, record, Question.source_id == record.source_id)
    if question is None:
        raise RowNotFound("the project has no such question; add it first")
    return question


def find_equal_question(
    session: Session, project_id: UUID, record: QuestionSource, *conditions: ColumnElement[bool]
) -> Question | None:
    """Find the first question of the project with the record's text and attachments for which the conditions hold."""
    rows = select(Question.id, *FULL_TEXT_COLUMNS).where(Question.project_id == project_id, *conditions)
    rows = rows.where(Question.text == record.text).order_by(Question.position)
    full_text = redactor_of_dialect(session.connection().dialect).redact(_full_text(record))
    equal = (key for key, *texts in session.execute(rows) if join_attachments(*texts) == full_text)
    question_id = next(equal, None)
    return None if question_id is None else session.get_one(Question, question_id)


def _full_text(record: QuestionSource) -> str:
    return join_attachments(record.text, record.details.get("attachments"))


def _question_row(record: QuestionSource, project_id: UUID, position: int) -> dict[str, Any]:
    return {
        "id": uuid7(),
        "project_id": project_id,
        "position": position,
        "created_at": utc_now(),
        "completed": 0,
        "text": record.text,
        "source_id": record.source_id,
        "dataset": record.dataset,
        "split": record.split,
        "kind": record.kind,
        "gold_answers": list(record.gold_answers),
        "decomposition": list(record.decomposition),
        "details": dict(record.details),
    }


def list_questions(session: Session, project_id: UUID, *, limit: int | None = 100, after: int = 0) -> list[Question]:
    """List the project's questions after the position `after`, in order; all of them without a limit."""
    questions = select(Question).where(Question.project_id == project_id, Question.position > after)
    return list(session.scalars(questions.order_by(Question.position).limit(limit)))


def list_question_texts(session: Session, project_id: UUID) -> list[str]:
    """List the texts of the project's questions, with their attachments, in order."""
    rows = select(*FULL_TEXT_COLUMNS).where(Question.project_id == project_id).order_by(Question.position)
    return [join_attachments(*texts) for texts in session.execute(rows)]


def list_gold_answers(session: Session, project_id: UUID) -> list[list[dict[str, Any]]]:
    """List the gold answers of the project's questions, in the order of `list_question_texts`."""
    rows = select(Question.gold_answers).where(Question.project_id == project_id).order_by(Question.position)
    return list(session.scalars(rows))


def count_questions(session: Session, project_id: UUID) -> int:
    """Count the project's questions."""
    return session.scalar(select(func.count()).select_from(Question).where(Question.project_id == project_id)) or 0


def find_assignment(session: Session, question_id: UUID, user_id: UUID) -> Assignment | None:
    """Find the person's assignment of the question."""
    return session.scalar(
        select(Assignment).where(Assignment.question_id == question_id, Assignment.user_id == user_id)
    )


def reserve_question(session: Session, question_id: UUID, user_id: UUID) -> Assignment:
    """Reserve the question for RESERVATION_PERIOD, also a skipped or done one; one assigned by the lead has no end."""
    until = utc_now() + RESERVATION_PERIOD
    assignment = find_assignment(session, question_id, user_id)
    if assignment is None:
        assignment = Assignment(question_id=question_id, user_id=user_id, until=until)
        session.add(assignment)
    if assignment.state != "open" or assignment.until is not None:
        assignment.until = until
    assignment.state, assignment.reason = "open", None
    session.flush()
    return assignment


def complete_assignment(session: Session, question_id: UUID, user_id: UUID) -> None:
    """Mark the question as completed by the person and end the reservation."""
    assignment = reserve_question(session, question_id, user_id)
    assignment.state, assignment.until = "done", None
    session.flush()


def select_completed_traces() -> Select[Trace]:
    """Select the traces that count as a person's answer."""
    return select(Trace).where(Trace.status.in_(COMPLETED_STATUSES), Trace.author_id.is_not(None))


def update_completed_counts(session: Session, question_ids: Iterable[UUID]) -> None:
    """Update the counts of many questions in one statement each 500."""
    ids = list(question_ids)
    traces = select_completed_traces().where(Trace.question_id == Question.id)
    count = traces.with_only_columns(func.count(Trace.author_id.distinct())).correlate(Question).scalar_subquery()
    for start in range(0, len(ids), 500):
        change = update(Question).where(Question.id.in_(ids[start : start + 500])).values(completed=count)
        session.execute(change.execution_options(synchronize_session=False))


def update_completed_count(session: Session, question_id: UUID) -> None:
    """Update the number of people who completed the question; the queue depends on it."""
    question = session.get_one(Question, question_id, with_for_update=True)
    traces = select_completed_traces().where(Trace.question_id == question_id)
    question.completed = session.scalar(traces.with_only_columns(func.count(Trace.author_id.distinct()))) or 0
    session.flush()
