"""Runs the migrations on the engine that the caller hands over."""

from alembic import context
from sqlalchemy import Engine

from db.models import Base

engine: Engine = context.config.attributes["engine"]
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
