"""What is special to each kind of operation: each file (instantiate.py, scale.py, ...) ends with its OperationRules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.model.descriptor import Descriptor
from slipway.model.errors import BadRequest, Conflict
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.situation import Situation
from slipway.model.target import Change


def nothing_to_check(*_: object) -> None:
    pass


def same_parameters(instance: Instance, request: Any) -> dict[str, Any]:
    return instance.parameters


@dataclass(frozen=True, kw_only=True)
class OperationRules:
    """The functions are pure, but for those that are given a database connection. `Any` is the request's own type."""

    operation: OperationType
    request: type[Any]
    hook: str  # begins the names of its hooks in the VNFD

    # Before it is accepted: RequestError for what can be known to fail.
    check: Callable[[Situation, Any], None]
    check_stored: Callable[[Connection, Instance, Any], None] = nothing_to_check  # where that needs the database
    check_vim: Callable[[VnfInstance, VimConnectionInfo, Any], None] = nothing_to_check  # what does not fit its VIM

    # What it works on.
    choose_vim: Callable[[Connection, Instance, Any], VimConnectionInfo] | None = None  # None: the one it is on
    on_any_vim: bool = False  # also on one described in a former request that would have to be registered today
    vim_names: Callable[[Any], tuple[str, ...]] = lambda request: ()  # under which a cluster will be registered
    vnfd_id: Callable[[Any], str | None] = lambda request: None  # of another package that the VNF has from now on
    flavour_id: Callable[[Any], str | None] = lambda request: None  # None: that of the instance

    # The instance's vimConnectionInfo after it, where a request may change it. BadRequest when it may not be like that.
    connections: Callable[[VnfInstance, Any], dict[str, VimConnectionInfo]] | None = None

    # What it makes of the instance, before a grant says where. None: no VIM is touched and no NFVO is asked.
    change: Callable[[Situation, Any], Change] | None = None
    touches_vim: Callable[[Any], bool] = lambda request: True  # where that depends on the request
    # The VIM's work, with what else the request wants done around it, where the VNFD's hooks do not say the batches.
    coordinated: Callable[[Plan, Situation, Change], Plan] = lambda work, situation, change: work
    is_granted: bool = True  # an NFVO is asked before a VIM is touched
    grant_attributes: Callable[[Situation, Any], dict[str, Any]] = lambda situation, request: {}  # of its GrantRequest

    # After success.
    complete: Callable[[Situation, Any], VnfInstance]  # before the outcomes of the steps are added (record.py)
    parameters: Callable[[Instance, Any], dict[str, Any]] = same_parameters  # that later operations need
    # Attributes of the operation that say what it changed, beside its resources.
    report: Callable[[VnfInstance, VnfInstance, Any], dict[str, Any]] = lambda before, after, request: {}
    completes_partly: bool = False  # a failure that left something is recorded, too, so that it can be terminated

    def works_on_vim(self, request: Any) -> bool:
        return self.change is not None and self.touches_vim(request)


def flag_parameter(given: Mapping[str, Any], name: str) -> bool:
    """Of additionalParams; False when it is not there. BadRequest when it is no flag."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise BadRequest(f"additionalParams.{name}: it must be true or false, not {value!r}.")
    return value


def made_from(vnf: VnfInstance, descriptor: Descriptor) -> VnfInstance:
    """The same VNF, of another package from now on."""
    return replace(
        vnf,
        vnfd_id=descriptor.vnfd_id,
        vnf_provider=descriptor.provider,
        vnf_product_name=descriptor.product_name,
        vnf_software_version=descriptor.software_version,
        vnfd_version=descriptor.vnfd_version,
    )


def must_be_instantiated(vnf: VnfInstance) -> None:
    if vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {vnf.id} is not instantiated; instantiate it first.")
