"""Load balancers of clusters, and what they do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "load_balancers",
        sa.Column("cluster_id", sa.String(36), nullable=False),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("vim_id", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("holder", sa.String(36)),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", name="pk_load_balancers"),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["instances.id"], name="fk_load_balancers_cluster_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("vim_id", name="uq_load_balancers_vim_id"),
    )
