"""Run the migrations on the caller's connection, in the caller's transaction."""

from alembic import context

from showhow.db.types import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
