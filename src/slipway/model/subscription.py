"""Subscriptions to notifications of lifecycle changes and of changes of packages."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from slipway.model.operation import OperationType, State
from slipway.model.package import OperationalState, UsageState

Uri = Annotated[str, Meta(min_length=1, max_length=2048)]


class Interface(StrEnum):
    """The API interface and version that a subscription belongs to."""

    LCM_V1 = "vnflcm/v1"
    LCM_V2 = "vnflcm/v2"
    PACKAGES = "vnfpkgm/v1"


class LcmNotice(StrEnum):
    OPERATION = "VnfLcmOperationOccurrenceNotification"
    CREATED = "VnfIdentifierCreationNotification"
    DELETED = "VnfIdentifierDeletionNotification"


class PackageNotice(StrEnum):
    ONBOARDED = "VnfPackageOnboardingNotification"
    CHANGED = "VnfPackageChangeNotification"


class AuthType(StrEnum):
    BASIC = "BASIC"
    OAUTH2 = "OAUTH2_CLIENT_CREDENTIALS"
    OAUTH2_CERTIFICATE = "OAUTH2_CLIENT_CERT"
    TLS_CERTIFICATE = "TLS_CERT"


class SubscriptionStruct(
    msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """Of a request to subscribe."""


class ProductVersion(SubscriptionStruct, frozen=True, kw_only=True):
    vnf_software_version: str
    vnfd_versions: tuple[str, ...] = ()


class Product(SubscriptionStruct, frozen=True, kw_only=True):
    vnf_product_name: str
    versions: tuple[ProductVersion, ...] = ()


class Products(SubscriptionStruct, frozen=True, kw_only=True):
    vnf_provider: str
    vnf_products: tuple[Product, ...] = ()


class InstanceFilter(SubscriptionStruct, frozen=True, kw_only=True):
    vnfd_ids: tuple[str, ...] = ()
    vnf_products_from_providers: tuple[Products, ...] = ()
    vnf_instance_ids: tuple[str, ...] = ()
    vnf_instance_names: tuple[str, ...] = ()


# The standard knows more operations than Slipway has; who waits for one of those waits for nothing.
FOREIGN_OPERATIONS = ("SCALE_TO_LEVEL", "CHANGE_FLAVOUR", "OPERATE", "CREATE_SNAPSHOT", "REVERT_TO_SNAPSHOT")
AnyOperation = StrEnum(  # type: ignore[misc]
    "AnyOperation", {name: name for name in (*(kind.value for kind in OperationType), *FOREIGN_OPERATIONS)}
)


class LcmFilter(SubscriptionStruct, frozen=True, kw_only=True):
    vnf_instance_subscription_filter: InstanceFilter = InstanceFilter()
    notification_types: tuple[LcmNotice, ...] = ()
    operation_types: tuple[AnyOperation, ...] = ()
    operation_states: tuple[State, ...] = ()


class PackageFilter(SubscriptionStruct, frozen=True, kw_only=True):
    notification_types: tuple[PackageNotice, ...] = ()
    vnf_products_from_providers: tuple[Products, ...] = ()
    vnfd_id: tuple[str, ...] | str = ()
    vnf_pkg_id: tuple[str, ...] | str = ()
    operational_state: tuple[OperationalState, ...] | OperationalState = ()
    usage_state: tuple[UsageState, ...] | UsageState = ()


class BasicParams(SubscriptionStruct, frozen=True, kw_only=True):
    user_name: str
    password: str


class Oauth2Params(SubscriptionStruct, frozen=True, kw_only=True):
    client_id: str
    client_password: str
    token_endpoint: Uri


class CertificateReference(SubscriptionStruct, frozen=True, kw_only=True):
    type: str
    value: str


class Oauth2CertificateParams(SubscriptionStruct, frozen=True, kw_only=True):
    client_id: str
    certificate_ref: CertificateReference
    token_endpoint: Uri


class Authentication(SubscriptionStruct, frozen=True, kw_only=True):
    """How Slipway shows who it is when it calls. What version 1 sends may lack `auth_type`: the parameters tell."""

    auth_type: tuple[AuthType, ...] | AuthType = ()
    params_basic: BasicParams | None = None
    params_oauth2_client_credentials: Oauth2Params | None = None
    params_oauth2_client_cert: Oauth2CertificateParams | None = None


class Verbosity(StrEnum):
    FULL = "FULL"
    SHORT = "SHORT"


class SubscriptionRequest(SubscriptionStruct, frozen=True, kw_only=True):
    callback_uri: Uri
    authentication: Authentication | None = None


class LcmSubscriptionRequest(SubscriptionRequest, frozen=True, kw_only=True):
    filter: LcmFilter | None = None
    verbosity: Verbosity = Verbosity.FULL


class PackageSubscriptionRequest(SubscriptionRequest, frozen=True, kw_only=True):
    filter: PackageFilter | None = None


def same_filter(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two filters mean the same: the order of lists, and empty lists, do not matter."""
    return bool(_ordered(one) == _ordered(other))


def _ordered(value: Any) -> Any:
    """One form for all that mean the same: lists sorted and without repetition, what is empty left out."""
    if isinstance(value, dict):
        # A single value stands for a list of one.
        lists = {key: item if isinstance(item, dict | list | tuple) else [item] for key, item in value.items()}
        return tuple(sorted((key, inner) for key, item in lists.items() if (inner := _ordered(item))))
    if isinstance(value, list | tuple):
        return tuple(sorted({_ordered(item) for item in value}, key=repr))
    return str(value)


class Subscription(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """As it is kept. `kept_back` are the attributes that are never shown; secrets among them are references."""

    kept_back: ClassVar = ("interface", "authentication", "createdAt")

    id: str
    interface: Interface
    callback_uri: str
    filter: dict[str, Any] = {}
    verbosity: Verbosity = msgspec.field(default_factory=lambda: Verbosity.FULL)  # by a function: never left out
    authentication: dict[str, Any] = {}
    created_at: datetime
