"""Add step nodes and error kinds, model calls, and what runs pin.

The kind of an error is stored from this revision on; for failed steps of the former version it is classified here once,
from their sentences, by the rules of that version. So are the nodes of the steps of late fusion, from their thoughts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BATCH_SIZE = 1000
RUN_COLUMNS = ("model", "encoder", "world_hash", "code_version")
STEP_COLUMNS = ("node", "skill", "error_kind")
PATTERNS_BY_KIND = {
    "refused query": (
        r"^The query (?:is|has|holds|would|calls|gives) ",
        r"^SERVICE |^Only SELECT and ASK are answered",
        r"^\S+ takes no query as long ",
    ),
    "not found": (
        r"^There is no (?:article|page) ",
        r"^Nothing in this world is called ",
        r"^This world knows none of ",
        r"^This world(?:'s graph)? does not know ",
        r"^No (?:entity|word) of ",
        r"^The question names no relation ",
        r" may mean several things; name ",
    ),
    "wrong arguments": (r"^\S+ cannot run: ", r"^\S+ needs (?:at least|a SPARQL) ", r" is no entity id; "),
    "model": (
        r"SHOWHOW_MODEL|language model|^The model |no reply\b",
        r"refuses the key |has no model |takes no more requests |does not take the request |failed \(\d+\)",
        r"^The reply of |did not reply in time|did not finish its reply|used up its tokens|an empty message",
    ),
    "time limit": (
        r"limit of (?:time|[\d.,e+-]+ (?:s|MB))\b",
        r"did not answer within |kept the graph busy for |places there were taken by other questions",
    ),
    "unavailable": (
        r"cannot be (?:opened|read|written|loaded)|^The (?:record|header|server|tool) |^The process .* has died",
        r"could not answer|times in a row|has no such address|does not let us ask",
        r" answered (?:in|with|something|\d+)\b",
        r"^\S+ (?:refused \(|redirects (?:to|more than) |sends more than |is busy \()|ha[sd] not been asked this ",
        r"broke off after |^Live sources are not asked |^Nothing is fetched from |^There is no (?:graph|world|tool) ",
        r"and the world .* has none|; try again .{1,20}\.$| leads from https to an open",
    ),
}
OTHER_KIND = "other"
FUSION = "fusion"
FUSION_PIPELINES = (("text", "From text only: "), ("graph", "From the graph only: "))
"""Sources of the pipelines of late fusion, and how the thought of the step began that had a pipeline's answer."""
NO_ANSWER = "none"
COMPILED_PATTERNS = {kind: re.compile("|".join(patterns)) for kind, patterns in PATTERNS_BY_KIND.items()}

# Column by column, not in batches: a batch copies the table on SQLite, which foreign keys to its rows forbid.


def upgrade() -> None:
    for name in STEP_COLUMNS:
        op.add_column("step", sa.Column(name, sa.Text(), nullable=True))
    for name in RUN_COLUMNS:
        op.add_column("run", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("run", sa.Column("tools", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("run", sa.Column("options", sa.JSON(none_as_null=True), nullable=False, server_default="{}"))
    _create_model_calls()
    _classify_errors(op.get_bind())
    _name_fusion_nodes(op.get_bind())
    _pin_runs(op.get_bind())


def _create_model_calls() -> None:
    op.create_table(
        "prompt_message",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_prompt_message")),
    )
    op.create_table(
        "model_call",
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("prompt", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("trace_id", sa.Uuid(), nullable=True),
        sa.Column("step_id", sa.Uuid(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reply", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("usage", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("price", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state in ('open', 'answered', 'failed', 'lost')", name=op.f("ck_model_call_state")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_model_call_step_id_step")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_model_call_trace_id_trace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_call")),
    )
    op.create_index("ix_model_call_trace", "model_call", ["trace_id", "state"])
    op.create_index("ix_model_call_step", "model_call", ["step_id"])


def _classify_errors(connection: sa.Connection) -> None:
    step = sa.table(
        "step", sa.column("id", sa.Uuid()), sa.column("error", sa.Text()), sa.column("error_kind", sa.Text())
    )
    rows = connection.execute(sa.select(step.c.id, step.c.error).where(step.c.error.is_not(None))).all()
    kinds = [{"step_id": row.id, "kind": _classify_error(row.error)} for row in rows]
    update = step.update().where(step.c.id == sa.bindparam("step_id")).values(error_kind=sa.bindparam("kind"))
    for start in range(0, len(kinds), BATCH_SIZE):
        connection.execute(update, kinds[start : start + BATCH_SIZE])


def _classify_error(error: str) -> str:
    return next((kind for kind, pattern in COMPILED_PATTERNS.items() if pattern.search(error)), OTHER_KIND)


def _name_fusion_nodes(connection: sa.Connection) -> None:
    """Name the nodes of the steps of late fusion, which resumes by them, and store the answers of its pipelines."""
    step, trace = _step_table(), sa.table("trace", sa.column("id", sa.Uuid()), sa.column("reasoner", sa.Text()))
    steps = connection.execute(
        sa.select(step.c.id, step.c.trace_id, step.c.tool, step.c.thought)
        .join(trace, trace.c.id == step.c.trace_id)
        .where(trace.c.reasoner == FUSION, step.c.removed_at.is_(None))
        .order_by(step.c.trace_id, step.c.position)
    ).all()
    for _, steps_of_trace in groupby(steps, key=lambda row: row.trace_id):
        for step_id, values in _fusion_values(list(steps_of_trace)):
            connection.execute(step.update().where(step.c.id == step_id).values(**values))


def _fusion_values(steps: Sequence[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The node of each step of one trace, and the data of a step with a pipeline's answer, by the step's id."""
    pipelines = iter(FUSION_PIPELINES)
    source, answer_prefix = next(pipelines)
    for row in steps:
        if row.tool is not None or not row.thought.startswith(answer_prefix):
            yield row.id, {"node": source}
            continue
        answer = row.thought.removeprefix(answer_prefix).partition("\n")[0]
        yield row.id, {"node": f"{source} answer", "data": {"answer": None if answer == NO_ANSWER else answer}}
        following = next(pipelines, None)
        if following is None:
            return
        source, answer_prefix = following


def _drop_fusion_answers(connection: sa.Connection) -> None:
    """Remove the answers of pipelines, which the former version reads from the thoughts."""
    step = _step_table()
    nodes = [f"{source} answer" for source, _ in FUSION_PIPELINES]
    connection.execute(step.update().where(step.c.node.in_(nodes), step.c.tool.is_(None)).values(data=sa.null()))


def _step_table() -> sa.TableClause:
    return sa.table(
        "step",
        *(sa.column(name, sa.Uuid()) for name in ("id", "trace_id")),
        *(sa.column(name, sa.Text()) for name in ("tool", "thought", "node")),
        sa.column("data", sa.JSON(none_as_null=True)),
        sa.column("position", sa.Integer()),
        sa.column("removed_at", sa.DateTime(timezone=True)),
    )


def _pin_runs(connection: sa.Connection) -> None:
    """Copy the model and the options from the configuration of each run; other values were not recorded."""
    columns = (sa.column("configuration", sa.JSON()), sa.column("model", sa.Text()), sa.column("options", sa.JSON()))
    run = sa.table("run", sa.column("id", sa.Uuid()), *columns)
    for run_id, configuration in connection.execute(sa.select(run.c.id, run.c.configuration)).all():
        pins = _pinned_values(configuration)
        if pins:
            connection.execute(run.update().where(run.c.id == run_id).values(**pins))


def _pinned_values(configuration: Any) -> dict[str, Any]:
    values = configuration if isinstance(configuration, dict) else {}
    run_config = values["way"] if isinstance(values.get("way"), dict) else values
    model, options = values.get("model"), run_config.get("options")
    pins = {
        "model": model if isinstance(model, str) else None,
        "options": options if isinstance(options, dict) else None,
    }
    return {name: value for name, value in pins.items() if value}


def downgrade() -> None:
    _drop_fusion_answers(op.get_bind())
    op.drop_table("model_call")
    op.drop_table("prompt_message")
    for name in ("options", "tools", *reversed(RUN_COLUMNS)):
        op.drop_column("run", name)
    for name in reversed(STEP_COLUMNS):
        op.drop_column("step", name)
