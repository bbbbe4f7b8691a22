"""Each external connection point of an instance names its configuration; that of one without is its descriptor's."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# As text on both databases: the engine leaves JSON to the columns of the code.
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
INSTANCES = sa.table("instances", sa.column("id"), sa.column("doc", DOCUMENT), sa.column("state"))


def upgrade() -> None:
    connection = op.get_bind()
    document = sa.select(sa.cast(INSTANCES.c.doc, sa.Text)).where(INSTANCES.c.id == sa.bindparam("this"))
    changed = sa.update(INSTANCES).where(INSTANCES.c.id == sa.bindparam("this")).values(doc=sa.bindparam("new"))
    standing = sa.select(INSTANCES.c.id).where(INSTANCES.c.state == "INSTANTIATED")
    for instance_id in connection.scalars(standing).all():
        doc = json.loads(connection.scalars(document, {"this": instance_id}).one())
        if _name_configurations(doc):
            connection.execute(changed, {"this": instance_id, "new": json.dumps(doc)})


def _name_configurations(doc: dict[str, Any]) -> bool:
    unnamed = [cp for cp in doc.get("instantiatedVnfInfo", {}).get("extCpInfo", ()) if not cp.get("cpConfigId")]
    for cp in unnamed:
        cp["cpConfigId"] = cp["cpdId"]
    return bool(unnamed)
