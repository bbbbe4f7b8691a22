"""Things to store, each with an id and a moment of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.model.vim import Vim

BEGIN = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def moments() -> Callable[[], datetime]:
    seconds = count()
    return lambda: BEGIN + timedelta(seconds=next(seconds))


@pytest.fixture
def new_instance(moments: Callable[[], datetime]) -> Callable[..., Instance]:
    def make(**attributes: Any) -> Instance:
        known: dict[str, Any] = {
            "id": str(uuid4()),
            "vnfd_id": "vnfd-1",
            "vnf_provider": "provider",
            "vnf_product_name": "product",
            "vnf_software_version": "1.0",
            "vnfd_version": "1.0",
            "instantiation_state": InstantiationState.NOT_INSTANTIATED,
        }
        return Instance(vnf=VnfInstance(**(known | attributes)), created_at=moments(), parameters={"a": [1, "b"]})

    return make


@pytest.fixture
def new_package(moments: Callable[[], datetime]) -> Callable[..., VnfPackage]:
    def make(**attributes: Any) -> VnfPackage:
        known: dict[str, Any] = {
            "id": str(uuid4()),
            "onboarding_state": OnboardingState.ONBOARDED,
            "operational_state": OperationalState.ENABLED,
            "usage_state": UsageState.NOT_IN_USE,
            "vnfd_id": "vnfd-1",
            "created_at": moments(),
        }
        return VnfPackage(**(known | attributes))

    return make


@pytest.fixture
def new_vim(moments: Callable[[], datetime]) -> Callable[..., Vim]:
    def make(name: str, **attributes: Any) -> Vim:
        return Vim(id=str(uuid4()), name=name, vim_type="TYPE", created_at=moments(), **attributes)

    return make
