"""Projects for all that is owned; grants; access tokens; subscriptions and the notifications that wait for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
PROJECT = sa.String(64)


def upgrade() -> None:
    for table in ("instances", "operations", "packages", "vims"):
        give_project(table)
    op.create_index("ix_instances_project_created_at_id", "instances", ["project", "created_at", "id"])
    op.create_index("ix_operations_project_started_at_id", "operations", ["project", "started_at", "id"])
    op.add_column("operations", sa.Column("grant", DOCUMENT))
    make_unique_in_project("packages", "vnfd_id")
    op.drop_index("uq_vims_one_default", "vims")
    make_unique_in_project("vims", "name")
    default = sa.text("is_default")
    op.create_index(
        "uq_vims_one_default", "vims", ["project"], unique=True, sqlite_where=default, postgresql_where=default
    )
    create_tokens()
    create_subscriptions()
    create_notifications()


def give_project(table: str) -> None:
    """What was there before there were projects belongs to the default one."""
    op.add_column(table, sa.Column("project", PROJECT, nullable=False, server_default="default"))
    if op.get_context().dialect.name == "postgresql":
        op.alter_column(table, "project", server_default=None)


def make_unique_in_project(table: str, column: str) -> None:
    with op.batch_alter_table(table) as changed:
        changed.drop_constraint(f"uq_{table}_{column}", type_="unique")
        changed.create_unique_constraint(f"uq_{table}_project_{column}", ["project", column])


def create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("project", PROJECT),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )


def create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project", PROJECT, nullable=False),
        sa.Column("interface", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.Column("worker_id", sa.String(64)),
        sa.Column("lease_until", sa.Float),
        sa.Column("retry_at", sa.Float),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("given_up", sa.Integer, nullable=False),
        sa.Column("delivered", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_subscriptions"),
    )
    op.create_index("ix_subscriptions_project_interface", "subscriptions", ["project", "interface"])


def create_notifications() -> None:
    op.create_table(
        "notifications",
        sa.Column("position", sa.Integer, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("subscription_id", sa.String(36), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_notifications"),
        sa.ForeignKeyConstraint(
            ["subscription_id"], ["subscriptions.id"], name="fk_notifications_subscription_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_notifications_subscription_id_position", "notifications", ["subscription_id", "position"])
