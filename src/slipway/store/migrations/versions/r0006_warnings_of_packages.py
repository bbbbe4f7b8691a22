"""What is contradictory in a package and harms nothing is kept with it. Packages of before have no warnings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("packages", sa.Column("warnings", sa.JSON().with_variant(JSONB(), "postgresql")))
