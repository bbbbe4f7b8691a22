"""A step names all nodes that it touches, and says itself whether it can be taken back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
# By action, when it was said of those.
IRREVERSIBLE = (
    "simulated.remove_network", "simulated.remove_machine", "simulated.unplug",
    "sandbox.remove_network", "sandbox.remove_machine", "sandbox.unplug",
    "kubernetes.unregister", "kubernetes.leave", "kubernetes.upgrade",
)  # fmt: skip


def upgrade() -> None:
    op.add_column("steps", sa.Column("nodes", DOCUMENT, nullable=False, server_default="[]"))
    op.add_column("steps", sa.Column("irreversible", sa.Boolean, nullable=False, server_default=sa.false()))
    steps = sa.table("steps", sa.column("node"), sa.column("nodes"), sa.column("action"), sa.column("irreversible"))
    one = sa.func.jsonb_build_array if op.get_context().dialect.name == "postgresql" else sa.func.json_array
    op.execute(steps.update().where(steps.c.node.is_not(None)).values(nodes=one(steps.c.node)))
    op.execute(steps.update().where(steps.c.action.in_(IRREVERSIBLE)).values(irreversible=sa.true()))
    with op.batch_alter_table("steps") as changed:
        changed.drop_column("node")
        changed.alter_column("nodes", server_default=None)
        changed.alter_column("irreversible", server_default=None)
