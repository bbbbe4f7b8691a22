"""What Alembic runs: the revisions, in the transaction that `store/migrate.py` has begun."""

from __future__ import annotations

from alembic import context

from slipway.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    render_as_batch=True,
)
context.run_migrations()
