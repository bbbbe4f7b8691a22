"""What Alembic runs: the revisions, in the transaction that `store/migrate.py` has begun."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
