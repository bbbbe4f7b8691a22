"""A cluster with a storage server on machines of the sandbox: how it is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.lab.cluster_lab import PASSWORD, parameters
from tests.lab.stored_data import VOLUMES, storage_server

SERVER = storage_server("10.12.0.0/24", username="slipway", password=PASSWORD)


def instantiation(server: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """`server` over what the storage server is asked for, `more` over what the cluster is."""
    given = parameters(storage_server={**SERVER, **(server or {})}, pv_registration_params=VOLUMES, **more)
    return {"flavourId": "storage", "additionalParams": given}


def until(look: Callable[[], bool], what: str, within: float = 120) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, f"not within {within:g} s: {what}"
        time.sleep(0.5)
