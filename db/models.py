"""The tables of Showhow as dataclasses that SQLAlchemy stores; others stand in the modules that alone use them.

Project 1-n Question 1-n Trace 1-n Step 1-n Edit
Question 1-n Assignment n-1 User; Trace 1-n Judgement n-1 User; Trace 1-1 Draft
Library 1-n LibraryItem n-1 Trace; Run 1-n Trace
Trace 1-n ModelCall n-1 Step; ModelCall n-n PromptMessage
Run 1-n Attempt n-1 Question; Attempt 1-1 Trace; Attempt 1-n Score
Conditions and columns of indexes are defined here too, because queries must use the same text.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, false, true
from sqlalchemy.orm import Mapped, mapped_column
from uuid_utils.compat import uuid7

from showhow.db.run_spec import RunResult, RunSpec
from showhow.db.types import Base, Removable, TagList, join_attachments, partial_index, summarize_task, utc_now

REMOVED_CONDITION = "removal_id is not null"
TOOL_CALL_COLUMNS = ("tool", "latency", "rating", "removed_at", "trace_id", "position", "started_at", "finished_at")
"""The columns of a step that tool reports read."""
CALLED_MODEL_CONDITION = """cast(usage as text) like '%"tool": {%'"""
"""Condition: the step's tool called a model. Queries use the same text, so that SQLite uses the index."""
_COUNTED_COLUMNS = ("model_calls", "input_tokens", "output_tokens", "unreported_calls")
ATTEMPT_USAGE_COLUMNS = (*_COUNTED_COLUMNS, "token_bound", "cost", "cost_bound", "seconds")
"""The columns of an attempt with what it used."""
GENERATED_REASONER = "generated"
"""The reasoner of traces that follow the gold reasoning of a generated world."""
WAITING = "waiting"
"""The ending of a run that can go on once a person has written the replies of skills that they play."""
UNFINISHED_ENDINGS = ("stopped", "interrupted", WAITING)
"""Endings of a run that a person stopped, whose process ended, or that waits; it is continued where it was."""
RUN_ENDINGS = ("answered", "refused", *UNFINISHED_ENDINGS, "limit", "failed")
"""How a run ended: with an answer, with a refusal, unfinished, at a limit, or with an error."""
SPAN_SKILL = "node"
"""The skill of a step that is a span: a part of a reasoner's work whose own steps are its children."""
MET_UNAVAILABLE_SOURCE_CONDITION = "met_unavailable_source"
"""Condition: a source was unavailable during the attempt. Queries use the same text, so that SQLite uses the index."""


class User(Base):
    """A person who records, reviews or administers; without a role, the author of imported traces (users.py)."""

    __tablename__ = "user"

    name: Mapped[str] = mapped_column(unique=True)
    roles: Mapped[list[str]] = mapped_column(default_factory=list)
    is_active: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether they may come in and change anything; an administrator switches people off (logins.py)."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Project(Removable, Base):
    """A set of questions or other tasks, with guidelines (Markdown), its tools, and the name of its world, if any."""

    __tablename__ = "project"

    name: Mapped[str] = mapped_column(unique=True)
    world: Mapped[str]
    guidelines: Mapped[str] = mapped_column(default="")
    tools: Mapped[list[str]] = mapped_column(default_factory=list)
    overlap: Mapped[int] = mapped_column(default=1)
    """The number of people who answer each question."""
    instruction: Mapped[str] = mapped_column(default="", server_default="")
    """What people and agents are told to do, in a sentence or two; empty for DEFAULT_INSTRUCTION of projects.py."""
    answer_format: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    """What its answers are, as AnswerFormat of db/questions/projects.py writes it."""
    allows_questions: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether people who annotate may add questions of their own; administrators always may."""
    shows_gold: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether people who annotate see gold answers; reviewers and administrators always do."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Question(Removable, Base):
    """A question or another task, with its tags, gold answers as {"text", "entity"} and, if known, gold decomposition.

    `details["attachments"]` has texts and JSON values that belong to it, by name.
    """

    __tablename__ = "question"
    __table_args__ = (
        UniqueConstraint("project_id", "position"),
        Index("ix_question_queue", "project_id", "completed", "position", "removal_id"),
        Index("ix_question_source", "project_id", "source_id"),
        partial_index(REMOVED_CONDITION, "ix_question_removed", "removal_id"),
    )

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    position: Mapped[int]
    text: Mapped[str]
    source_id: Mapped[str | None] = mapped_column(default=None)
    dataset: Mapped[str | None] = mapped_column(default=None)
    split: Mapped[str | None] = mapped_column(default=None)
    kind: Mapped[str | None] = mapped_column(default=None)
    gold_answers: Mapped[list[dict[str, Any]]] = mapped_column(default_factory=list)
    decomposition: Mapped[list[dict[str, Any]]] = mapped_column(default_factory=list)
    details: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    tags: Mapped[list[str]] = mapped_column(TagList, default_factory=list, server_default="[]")
    completed: Mapped[int] = mapped_column(default=0)
    """The number of people with a submitted or approved trace of it; projects.py updates it for the queue."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)

    @property
    def attachments(self) -> dict[str, Any]:
        """The texts and JSON values that belong to it, by name."""
        attachments = self.details.get("attachments")
        return attachments if isinstance(attachments, dict) else {}

    @property
    def full_text(self) -> str:
        """The text with its attachments below it, each under its name, as people and agents read it."""
        return join_attachments(self.text, self.attachments)

    @property
    def summary(self) -> str:
        """The text for a list, with the beginning of its attachments."""
        return summarize_task(self.text, self.attachments)


class Run(Removable, Base):
    """A reasoner over one or more questions, with everything needed to repeat it; fixed when it starts."""

    __tablename__ = "run"

    name: Mapped[str]
    """What it is a run of: a verification, a question that was asked, an import."""
    reasoner: Mapped[str]
    world: Mapped[str]
    title: Mapped[str] = mapped_column(default="", server_default="")
    """The name that people gave it."""
    note: Mapped[str] = mapped_column(default="", server_default="")
    spec: Mapped[RunSpec] = mapped_column(default_factory=RunSpec)
    library_id: Mapped[UUID | None] = mapped_column(default=None)
    """The library version of its demonstrations; no foreign key, since it may be in another database."""
    questions_hash: Mapped[str | None] = mapped_column(default=None)
    """The hash of the texts and gold answers of its questions; None for a run over one question, or if not recorded."""
    concurrency: Mapped[int | None] = mapped_column(default=None)
    """The number of attempts at work at the same time, which may change meanwhile; None at rest, or without a limit."""
    is_paused: Mapped[bool] = mapped_column(default_factory=bool, server_default=false())
    """Whether its workers begin no attempt."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    started_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class Trace(Removable, Base):
    """The solution process of a person or a reasoner; an approved one is a demonstration."""

    __tablename__ = "trace"
    __table_args__ = (
        CheckConstraint("status in ('draft', 'submitted', 'approved', 'rejected', 'failed')", name="status"),
        Index("ix_trace_status", "status", "submitted_at", "id", "removal_id"),
        Index("ix_trace_author", "author_id", "status", "started_at"),
        Index("ix_trace_question", "question_id", "status", "removal_id"),
        Index("ix_trace_parent", "parent_id"),
        Index("ix_trace_run", "run_id", "question_id"),
        partial_index(REMOVED_CONDITION, "ix_trace_removed", "removal_id"),
    )

    question_id: Mapped[UUID] = mapped_column(ForeignKey("question.id"))
    author_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), default=None)
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("run.id"), default=None)
    reasoner: Mapped[str] = mapped_column(default="human")
    status: Mapped[str] = mapped_column(default="draft")
    answer_text: Mapped[str | None] = mapped_column(default=None)
    """The answer according to the text sources."""
    answer_graph: Mapped[str | None] = mapped_column(default=None)
    """The answer according to the graph."""
    answer_model: Mapped[str | None] = mapped_column(default=None)
    """The author's answer without a source."""
    final_answer: Mapped[str | None] = mapped_column(default=None)
    """None before it is given; empty if the project asks for no answers."""
    final_thought: Mapped[str | None] = mapped_column(default=None)
    parent_id: Mapped[UUID | None] = mapped_column(default=None)
    """The trace that this one was forked from; no foreign key, since it may be in another database."""
    parent_position: Mapped[int | None] = mapped_column(default=None)
    """The position of the last step copied from the parent trace."""
    started_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    submitted_at: Mapped[datetime | None] = mapped_column(default=None)
    wall_seconds: Mapped[float | None] = mapped_column(default=None)
    active_seconds: Mapped[float | None] = mapped_column(default=None)
    result: Mapped[RunResult] = mapped_column(default_factory=RunResult)
    cost: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    """The total usage of the model calls, in the form of a step's usage."""
    ending: Mapped[str | None] = mapped_column(default=None)
    """How a run ended, one of RUN_ENDINGS; None while it is running, and for a person's trace."""
    failure: Mapped[str | None] = mapped_column(default=None)
    """One sentence on why a run ended without an answer."""
    version: Mapped[int] = mapped_column(default=1, nullable=False)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy requires this form


class Step(Base):
    """One span of a trace: thought, action, observation, rating.

    A step with a tool is written before the tool runs and completed after it. A step without a tool is finished when it
    is written, unless it is begun open: then it is completed after its children. Positions are in order of beginning.
    """

    __tablename__ = "step"
    __table_args__ = (
        CheckConstraint("rating is null or rating between 1 and 5", name="rating"),
        # Finds the steps of a trace, removed ones included; counts and mean ratings are read from the index alone.
        Index("ix_step_trace", "trace_id", "removed_at", "rating"),
        partial_index("removed_at is null", "ux_step_position", "trace_id", "position", unique=True),
        # Tool reports read these indexes alone and no long observations; ordered by latency, a percentile is a position
        # in the index. Errors and usage are read only for steps that have them.
        Index("ix_step_tool", *TOOL_CALL_COLUMNS),
        partial_index("error is not null", "ix_step_failed", "tool", "trace_id"),
        partial_index(CALLED_MODEL_CONDITION, "ix_step_modelled", "tool", "trace_id"),
    )

    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"))
    position: Mapped[int]
    """From 1; the steps that are not removed have no gaps."""
    thought: Mapped[str] = mapped_column(default="")
    tool: Mapped[str | None] = mapped_column(default=None)
    arguments: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    origins: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    """The origin of each argument's value, in the forms of reasoners/provenance.py."""
    observation: Mapped[str | None] = mapped_column(default=None)
    data: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    """The tool's result as JSON values, or the decision of a step without a tool."""
    error: Mapped[str | None] = mapped_column(default=None)
    error_kind: Mapped[str | None] = mapped_column(default=None)
    """The kind of the error, such as "not found" or "time limit"; None without an error, or if it is unknown."""
    node: Mapped[str | None] = mapped_column(default=None)
    """The name of the step's node in the reasoner's tree; None for a reasoner without one."""
    skill: Mapped[str | None] = mapped_column(default=None)
    """The name and version of the skill that decided the step."""
    rating: Mapped[int | None] = mapped_column(default=None)
    latency: Mapped[float | None] = mapped_column(default=None)
    """Seconds that the tool took."""
    usage: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    """Usage of model calls: "thought" for those that decided the step, "tool" for those of its tool or completion."""
    started_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    """None while the tool runs or the step is open, or if the process ended before completion."""
    wall_seconds: Mapped[float | None] = mapped_column(default=None)
    """Time from the previous step until this one was run."""
    active_seconds: Mapped[float | None] = mapped_column(default=None)
    """The part of wall_seconds in which the person was active: page visible, no pause of over 30 s."""
    parent_id: Mapped[UUID | None] = mapped_column(ForeignKey("step.id"), default=None)
    """The parent step, in the same trace."""
    removed_at: Mapped[datetime | None] = mapped_column(default=None)
    version: Mapped[int] = mapped_column(default=1, nullable=False)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy requires this form


class Attempt(Base):
    """One of the answers that a run asks for: a question, and the number of its repetition.

    Its figures are copied from its trace when that ends, so that reports read no trace.
    """

    __tablename__ = "attempt"
    __table_args__ = (
        UniqueConstraint("run_id", "question_id", "repetition"),
        CheckConstraint("state in ('open', 'leased', 'ended')", name="state"),
        Index("ix_attempt_state", "run_id", "state", "position"),
        Index("ix_attempt_trace", "trace_id"),
        # Reports read this index alone.
        Index("ix_attempt_figures", "run_id", "kind", "ending", *ATTEMPT_USAGE_COLUMNS),
        partial_index(MET_UNAVAILABLE_SOURCE_CONDITION, "ix_attempt_unavailable", "run_id", "kind"),
    )

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id"))
    question_id: Mapped[UUID] = mapped_column(ForeignKey("question.id"))
    position: Mapped[int]
    """The order in which the run's attempts begin; both from 1."""
    repetition: Mapped[int] = mapped_column(default=1)
    kind: Mapped[str | None] = mapped_column(default=None)
    """The kind that the question had when the run was started."""
    state: Mapped[str] = mapped_column(default="open")
    """open (not begun, or stopped), leased by a worker, or ended."""
    worker: Mapped[str | None] = mapped_column(default=None)
    """The process that works on it or did so last (runs/process.py)."""
    lease_token: Mapped[int] = mapped_column(default=0)
    """Goes up each time that a worker takes it; a write with an older token is refused."""
    leased_until: Mapped[datetime | None] = mapped_column(default=None)
    """Until then, by the clock of the database, no other worker takes it; its worker extends the lease."""
    trace_id: Mapped[UUID | None] = mapped_column(ForeignKey("trace.id"), default=None)
    ending: Mapped[str | None] = mapped_column(default=None)
    """How its trace ended, one of RUN_ENDINGS; None while it has not."""
    met_unavailable_source: Mapped[bool] = mapped_column(default=False)
    """Whether a source or a tool was unavailable in one of its steps, or did not answer in time."""
    model_calls: Mapped[int] = mapped_column(default=0)
    input_tokens: Mapped[int | None] = mapped_column(default=None)
    output_tokens: Mapped[int | None] = mapped_column(default=None)
    unreported_calls: Mapped[int] = mapped_column(default=0)
    """The model calls whose tokens were not reported."""
    token_bound: Mapped[int | None] = mapped_column(default=None)
    """The most input and output tokens that its calls can have used; None if it is their sum."""
    cost: Mapped[float | None] = mapped_column(default=None)
    """In US dollars; None if a price is unknown."""
    cost_bound: Mapped[float | None] = mapped_column(default=None)
    """The most that its calls can have cost; None if it is `cost`."""
    seconds: Mapped[float | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)


class Score(Base):
    """The value of a metric for the answer of an attempt; a newer version of the metric replaces it."""

    __tablename__ = "score"
    __table_args__ = (
        UniqueConstraint("attempt_id", "metric"),
        # Reports read this index alone.
        Index("ix_score_figures", "run_id", "metric", "metric_version", "kind", "value", "attempt_id"),
    )

    attempt_id: Mapped[UUID] = mapped_column(ForeignKey("attempt.id"))
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id"))
    kind: Mapped[str | None]
    metric: Mapped[str]
    metric_version: Mapped[int]
    value: Mapped[float]
    details: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    scored_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class ModelCall(Base):
    """One request to a language model: committed before it is sent, completed before its reply is used."""

    __tablename__ = "model_call"
    __table_args__ = (
        CheckConstraint("state in ('open', 'answered', 'failed', 'lost')", name="state"),
        Index("ix_model_call_trace", "trace_id", "state"),
        Index("ix_model_call_step", "step_id"),
    )

    purpose: Mapped[str]
    """The purpose of the reply: a step, the final answer, a tool's query ..."""
    model: Mapped[str]
    request_hash: Mapped[str]
    """SHA-256 of the model, the messages and the parameters: equal requests have equal hashes."""
    prompt: Mapped[list[list[str]]]
    """The hashes of the pieces of each message, in order; db/traces/model_calls.py joins them."""
    trace_id: Mapped[UUID | None] = mapped_column(ForeignKey("trace.id"), default=None)
    step_id: Mapped[UUID | None] = mapped_column(ForeignKey("step.id"), default=None)
    """The step that the reply decided, or whose tool sent the request."""
    state: Mapped[str] = mapped_column(default="open")
    """open, answered, failed, or lost: its process ended before the reply was stored."""
    reply: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    usage: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    """What it used; the most that it can have used while it is open or if it is lost."""
    price: Mapped[float | None] = mapped_column(default=None)
    """In US dollars; None if the price is unknown."""
    seconds: Mapped[float | None] = mapped_column(default=None)
    error: Mapped[str | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    answered_at: Mapped[datetime | None] = mapped_column(default=None)


class Edit(Base):
    """The values that a change of a trace or step replaced, with the editor and the time."""

    __tablename__ = "edit"

    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"), index=True)
    action: Mapped[str]
    """The kind of change: thought, rating, run again, undo, redo, answer, status ..."""
    before: Mapped[dict[str, Any]]
    step_id: Mapped[UUID | None] = mapped_column(ForeignKey("step.id"), default=None)
    editor_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), default=None)
    at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)


class Draft(Base):
    """What is being typed: the step or answer of a draft's author, or the comments of reviewers on any other trace."""

    __tablename__ = "draft"

    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"), primary_key=True)
    content: Mapped[dict[str, Any]]
    page_number: Mapped[int] = mapped_column(default=0, server_default="0")
    """The number of the page that stored it; a page with a lower number does not replace it."""
    saved_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Assignment(Base):
    """A question reserved for, skipped or answered by a person."""

    __tablename__ = "assignment"
    __table_args__ = (
        UniqueConstraint("question_id", "user_id"),
        CheckConstraint("state in ('open', 'skipped', 'done')", name="state"),
        Index("ix_assignment_user", "user_id", "state"),
    )

    question_id: Mapped[UUID] = mapped_column(ForeignKey("question.id"))
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"))
    state: Mapped[str] = mapped_column(default="open")
    reason: Mapped[str | None] = mapped_column(default=None)
    until: Mapped[datetime | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Judgement(Base):
    """A judgement of a trace, alone or against another one, or of one of its steps: approval, preference, a note ..."""

    __tablename__ = "judgement"
    __table_args__ = (partial_index("step_id is not null", "ix_judgement_step", "step_id"),)

    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"), index=True)
    aspect: Mapped[str]
    value: Mapped[str]
    judge_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), default=None)
    other_trace_id: Mapped[UUID | None] = mapped_column(default=None)
    """The trace that it was compared with; no foreign key, since it may be in another database."""
    step_id: Mapped[UUID | None] = mapped_column(ForeignKey("step.id"), default=None)
    """The step that is judged; None for the whole trace."""
    comment: Mapped[str] = mapped_column(default="")
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Library(Removable, Base):
    """A frozen, numbered version of a set of demonstrations; a run stores the name and number that it used."""

    __tablename__ = "library"
    __table_args__ = (UniqueConstraint("name", "number"),)

    name: Mapped[str]
    number: Mapped[int]
    card: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    frozen_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
