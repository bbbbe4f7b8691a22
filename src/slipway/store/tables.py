"""All tables. What the database filters, sorts or guards is a column; the rest is a JSON document beside it.

Migrations under `migrations/` lead here; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from slipway.model.descriptor import Descriptor
from slipway.model.grant import Granting
from slipway.model.instance import VimConnectionInfo, VnfInstance
from slipway.model.machine import Outcome
from slipway.model.operation import HOLDING, RUNNING, Operation, OperationType
from slipway.model.package import PackageWarning, VnfPackage
from slipway.model.plan import Effect
from slipway.model.subscription import Subscription
from slipway.model.vim import Vim
from slipway.store.column_types import JsonDocument

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _in_states(states: frozenset[Any]) -> Any:
    return text("state IN ({})".format(", ".join(f"'{state.value}'" for state in sorted(states))))


# Of operations; in these very words, because indexes know them. A bound parameter would hide it from the database.
HOLDS_INSTANCE = _in_states(HOLDING)
IS_RUNNING = _in_states(RUNNING)
CHANGES_PACKAGE = text(f"operation = '{OperationType.CHANGE_VNFPKG.value}' AND {HOLDS_INSTANCE}")

PROJECT = 64  # characters of a project's name

instances = Table(
    "instances",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(PROJECT), nullable=False),
    Column("name", String(255)),
    Column("vnfd_id", String(255), nullable=False),
    Column("state", String(32), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("doc", JsonDocument(VnfInstance), nullable=False),
    Column("summary", Text, nullable=False),  # what a list shows of it
    Column("parameters", JsonDocument(dict[str, Any]), nullable=False),
    Index(None, "created_at", "id"),
    Index(None, "project", "created_at", "id"),
    Index(None, "state", "created_at", "id"),
    Index(None, "project", "state", "created_at", "id"),
    Index(None, "name"),
    Index(None, "vnfd_id", "project"),
)

operations = Table(
    "operations",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(PROJECT), nullable=False),  # that of its instance
    Column("instance_id", String(36), nullable=False),
    Column("operation", String(32), nullable=False),
    Column("state", String(32), nullable=False),
    Column("started_at", Float, nullable=False),
    Column("doc", JsonDocument(Operation), nullable=False),
    Column("summary", Text, nullable=False),  # what a list shows of it
    Column("vim", JsonDocument(VimConnectionInfo)),
    Column("grant", JsonDocument(Granting)),  # what an NFVO was asked and what it answered
    Column("planned", Boolean, nullable=False),
    Column("cancel_mode", String(16)),
    # Who runs it. Each claim raises the epoch; a write with an old epoch is refused (`fence` in store/operations.py).
    Column("worker_id", String(64)),
    Column("epoch", Integer, nullable=False),
    Index(None, "started_at", "id"),
    Index(None, "project", "started_at", "id"),
    Index(None, "state", "started_at", "id"),
    Index(None, "project", "state", "started_at", "id"),
    Index(None, "instance_id"),
    Index("uq_operations_one_at_a_time", "instance_id", unique=True, sqlite_where=HOLDS_INSTANCE,
          postgresql_where=HOLDS_INSTANCE),
    Index("ix_operations_running", "state", sqlite_where=IS_RUNNING, postgresql_where=IS_RUNNING),
    Index("ix_operations_package_changes", "project", sqlite_where=CHANGES_PACKAGE, postgresql_where=CHANGES_PACKAGE),
)  # fmt: skip

steps = Table(
    "steps",
    metadata,
    Column("operation_id", String(36), ForeignKey("operations.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("action", String(128), nullable=False),
    Column("nodes", JsonDocument(tuple[str, ...]), nullable=False),
    Column("timeout", Float),
    Column("args", JsonDocument(dict[str, Any]), nullable=False),
    Column("after", JsonDocument(tuple[str, ...]), nullable=False),
    Column("effects", JsonDocument(tuple[Effect, ...]), nullable=False),
    Column("irreversible", Boolean, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("error", Text),
    Column("outcome", JsonDocument(Outcome, lenient=True)),  # so that every operation can be ended
    Column("progress", Text),
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("lease_until", Float, nullable=False),
)

vims = Table(
    "vims",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(PROJECT), nullable=False),
    Column("name", String(255), nullable=False),
    Column("vim_type", String(64), nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("doc", JsonDocument(Vim), nullable=False),
    UniqueConstraint("project", "name"),
    Index("uq_vims_one_default", "project", unique=True, sqlite_where=text("is_default"),
          postgresql_where=text("is_default")),
)  # fmt: skip

# Of clusters. CNFs on a cluster change its balancer as well: by its VIM they find it, if it is of their project.
load_balancers = Table(
    "load_balancers",
    metadata,
    Column("cluster_id", String(36), ForeignKey("instances.id", ondelete="CASCADE"), primary_key=True),
    Column("project", String(PROJECT), nullable=False),
    Column("vim_id", String(36), nullable=False, unique=True),
    Column("revision", Integer, nullable=False),  # grows each time that an operation takes it
    Column("holder", String(36)),  # the operation that changes it
    Column("doc", JsonDocument(dict[str, Any]), nullable=False),
)

packages = Table(
    "packages",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(PROJECT), nullable=False),
    Column("vnfd_id", String(255)),
    Column("created_at", Float, nullable=False),
    Column("doc", JsonDocument(VnfPackage), nullable=False),
    Column("descriptor", JsonDocument(Descriptor)),
    Column("warnings", JsonDocument(tuple[PackageWarning, ...])),
    UniqueConstraint("project", "vnfd_id"),
    Index(None, "created_at", "id"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("id", String(36), primary_key=True),
    # The instance, VIM or operation it belongs to: it can be read for that owner only, and goes when the owner goes.
    Column("owner", String(64), nullable=False),
    Column("key_id", String(16), nullable=False),  # which key of the key file opens it
    Column("ciphertext", LargeBinary, nullable=False),
    Index(None, "owner"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("role", String(16), nullable=False),
    Column("project", String(PROJECT)),  # none: all of them
    Column("digest", String(64), nullable=False, unique=True),  # of the token, which can't be read again
    Column("created_at", Float, nullable=False),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(PROJECT), nullable=False),
    Column("interface", String(16), nullable=False),  # what it is about, and in which version: model/subscription.py
    Column("created_at", Float, nullable=False),
    Column("doc", JsonDocument(Subscription), nullable=False),
    # Whose turn it is to deliver, and until when: one worker at a time, so that order holds.
    Column("worker_id", String(64)),
    Column("lease_until", Float),
    Column("retry_at", Float),  # not before: the subscriber did not answer
    Column("failures", Integer, nullable=False),  # in a row
    Column("last_error", Text),
    Column("given_up", Integer, nullable=False),  # notifications that were never delivered
    Column("delivered", Integer, nullable=False),
    Index(None, "project", "interface"),
)

notifications = Table(
    "notifications",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=True),  # the order in which they are delivered
    Column("id", String(36), nullable=False),
    Column("subscription_id", String(36), ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "subscription_id", "position"),
)
