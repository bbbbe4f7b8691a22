"""The first tables: instances, operations and their steps, workers, VIMs, packages, secrets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

HOLDING = "state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')"
RUNNING = "state IN ('PROCESSING', 'ROLLING_BACK', 'STARTING')"

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    create_instances()
    create_operations()
    create_steps()
    create_workers()
    create_vims()
    create_packages()
    create_secrets()


def partial_index(name: str, table: str, column: str, where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, table, [column], unique=unique, sqlite_where=condition, postgresql_where=condition)


def create_instances() -> None:
    op.create_table(
        "instances",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("vnfd_id", sa.String(255), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("parameters", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
    )
    op.create_index("ix_instances_created_at_id", "instances", ["created_at", "id"])
    op.create_index("ix_instances_name", "instances", ["name"])
    op.create_index("ix_instances_vnfd_id", "instances", ["vnfd_id"])


def create_operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("instance_id", sa.String(36), nullable=False),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("vim", DOCUMENT),
        sa.Column("planned", sa.Boolean, nullable=False),
        sa.Column("cancel_mode", sa.String(16)),
        sa.Column("worker_id", sa.String(64)),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_started_at_id", "operations", ["started_at", "id"])
    op.create_index("ix_operations_instance_id", "operations", ["instance_id"])
    partial_index("uq_operations_one_at_a_time", "operations", "instance_id", HOLDING, unique=True)
    partial_index("ix_operations_running", "operations", "state", RUNNING)


def create_steps() -> None:
    op.create_table(
        "steps",
        sa.Column("operation_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("action", sa.String(128), nullable=False),
        sa.Column("node", sa.Text),
        sa.Column("timeout", sa.Float),
        sa.Column("args", DOCUMENT, nullable=False),
        sa.Column("after", DOCUMENT, nullable=False),
        sa.Column("effects", DOCUMENT, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Float),
        sa.Column("ended_at", sa.Float),
        sa.Column("error", sa.Text),
        sa.Column("outcome", DOCUMENT),
        sa.PrimaryKeyConstraint("operation_id", "position", name="pk_steps"),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name="fk_steps_operation_id", ondelete="CASCADE"
        ),
    )  # fmt: skip


def create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )


def create_vims() -> None:
    op.create_table(
        "vims",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("vim_type", sa.String(64), nullable=False),
        sa.Column("is_default", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vims"),
        sa.UniqueConstraint("name", name="uq_vims_name"),
    )
    partial_index("uq_vims_one_default", "vims", "is_default", "is_default", unique=True)


def create_packages() -> None:
    op.create_table(
        "packages",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("vnfd_id", sa.String(255)),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("doc", DOCUMENT, nullable=False),
        sa.Column("descriptor", DOCUMENT),
        sa.PrimaryKeyConstraint("id", name="pk_packages"),
        sa.UniqueConstraint("vnfd_id", name="uq_packages_vnfd_id"),
    )
    op.create_index("ix_packages_created_at_id", "packages", ["created_at", "id"])


def create_secrets() -> None:
    op.create_table(
        "secrets",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_secrets"),
    )
    op.create_index("ix_secrets_owner", "secrets", ["owner"])
