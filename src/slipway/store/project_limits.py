"""Limits of what one project may keep, checked while the project is locked (`hold_project`)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from slipway.model.errors import Forbidden, TooLarge
from slipway.store import packages, subscriptions, vims
from slipway.store.database import hold_project

GIB = 1024**3


@dataclass(frozen=True)
class ProjectLimits:
    packages: int = 1000
    package_bytes: int = 200 * GIB
    subscriptions: int = 1000
    vims: int = 1000

    def for_one_more_package(self, connection: Connection, project: str) -> None:
        hold_project(connection, project)
        if (there := packages.count(connection, project)) >= self.packages:
            raise _full(project, f"{there} VNF packages", "max_project_packages", self.packages)

    def for_one_more_subscription(self, connection: Connection, project: str) -> None:
        """The project must be held already."""
        if (there := subscriptions.count(connection, project)) >= self.subscriptions:
            raise _full(project, f"{there} subscriptions", "max_project_subscriptions", self.subscriptions)

    def for_one_more_vim(self, connection: Connection, project: str) -> None:
        hold_project(connection, project)
        if (there := vims.count(connection, project)) >= self.vims:
            raise _full(project, f"{there} VIMs", "max_project_vims", self.vims)

    def for_package_bytes(self, project: str, total: int) -> None:
        if total > self.package_bytes:
            raise TooLarge(
                f"With this content the VNF packages of the project {project!r} would have {total} bytes or more; the "
                f"setting max_project_package_bytes allows {self.package_bytes}. Delete some, or have it raised."
            )


def _full(project: str, what: str, setting: str, most: int) -> Forbidden:
    return Forbidden(
        f"The project {project!r} has {what}, and the setting {setting} allows {most}. Delete some, or have it raised."
    )
