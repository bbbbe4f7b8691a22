"""A VNF package as `/vnfpkgm/v1` shows it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from slipway.model.errors import ProblemDetails


class OnboardingState(StrEnum):
    CREATED = "CREATED"
    UPLOADING = "UPLOADING"
    PROCESSING = "PROCESSING"
    ONBOARDED = "ONBOARDED"


class OperationalState(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


class UsageState(StrEnum):
    IN_USE = "IN_USE"
    NOT_IN_USE = "NOT_IN_USE"


class Checksum(msgspec.Struct, frozen=True, rename="camel"):
    algorithm: str
    hash: str


def is_url(path: str) -> bool:
    """No file of a package has such a name (package/member_name.py)."""
    return "://" in path


class Artifact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """VnfPackageArtifactInfo: a file of the package, or one elsewhere, whose path is then its URL."""

    artifact_path: str
    checksum: Checksum
    size_bytes: int | None = None
    media_type: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def is_outside(self) -> bool:
        return is_url(self.artifact_path)


class SoftwareImage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """VnfPackageSoftwareImageInfo. Those with a factory are always shown: the standard requires them."""

    id: str
    name: str
    provider: str = msgspec.field(default_factory=str)
    version: str = msgspec.field(default_factory=str)
    checksum: Checksum | None = None
    container_format: str | None = None
    disk_format: str | None = None
    min_disk: int = msgspec.field(default_factory=int)
    min_ram: int = msgspec.field(default_factory=int)
    size: int | None = None
    image_path: str | None = None
    user_metadata: dict[str, Any] = {}
    created_at: datetime | None = None  # when the package was onboarded


class PackageWarning(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A contradiction in a package that harms nothing: where it is, what is ignored, and how to correct it."""

    file: str
    line: int | None = None
    what: str
    cure: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what} Cure: {self.cure}"


class VnfPackage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """VnfPkgInfo."""

    id: str
    onboarding_state: OnboardingState
    operational_state: OperationalState
    usage_state: UsageState
    vnfd_id: str | None = None
    vnf_provider: str | None = None
    vnf_product_name: str | None = None
    vnf_software_version: str | None = None
    vnfd_version: str | None = None
    checksum: Checksum | None = None
    software_images: tuple[SoftwareImage, ...] = ()
    additional_artifacts: tuple[Artifact, ...] = ()
    user_defined_data: dict[str, Any] = {}
    onboarding_failure_details: ProblemDetails | None = None
    created_at: datetime | None = None
