"""Indexes for what is asked again and again, so that it costs the same however much is stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

CHANGES_PACKAGE = "operation = 'CHANGE_VNFPKG' AND state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')"


def upgrade() -> None:
    for table, moment in (("instances", "created_at"), ("operations", "started_at")):
        op.create_index(f"ix_{table}_state_{moment}_id", table, ["state", moment, "id"])
        op.create_index(f"ix_{table}_project_state_{moment}_id", table, ["project", "state", moment, "id"])
    op.drop_index("ix_instances_vnfd_id", "instances")
    op.create_index("ix_instances_vnfd_id_project", "instances", ["vnfd_id", "project"])
    condition = sa.text(CHANGES_PACKAGE)
    op.create_index(
        "ix_operations_package_changes",
        "operations",
        ["project"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
