"""Secrets of a cluster go to the Ansible server that they were given for, whatever package comes in between."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray.driver import KubesprayDriver
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.descriptor import Hook
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import Situation
from tests.unit.cluster.cluster_situations import UNUSED, situation, slots

KEY = "k8s_cluster_installation_param"
MANAGEMENT = ManagementDrivers([KubesprayDriver(Dependencies(UNUSED, UNUSED, UNUSED)), Noop()])
STORED = {KEY: {"ansible": {"ip_address": "192.0.2.10", "username": "a", "password": {"$secret": "1"}}}}


def to_a_package_without_kubespray(**ansible: Any) -> Situation:
    request = ChangePackageRequest(vnfd_id="next", additional_params={KEY: {"ansible": ansible}})
    now = situation(OperationType.CHANGE_VNFPKG, request, slots(1, 1), slots(1, 1), 1)
    hooks = {"scale_end": Hook(operation="scale_end", implementation="noop")}
    flavour = msgspec.structs.replace(now.flavour, hooks=hooks)
    instance = msgspec.structs.replace(now.instance, parameters=STORED)
    return dataclasses.replace(now, flavour=flavour, flavour_before=now.flavour, instance=instance)


def test_a_package_that_does_not_name_kubespray_moves_no_secrets() -> None:
    """They are those of the next one that does."""
    with pytest.raises(BadRequest, match="give again: ansible"):
        MANAGEMENT.check(to_a_package_without_kubespray(ip_address="192.0.2.66"))
    MANAGEMENT.check(to_a_package_without_kubespray(username="another"))
    MANAGEMENT.check(to_a_package_without_kubespray(ip_address="192.0.2.66", password={"$secret": "2"}))
