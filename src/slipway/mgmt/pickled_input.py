"""Scripts written for OpenStack Tacker's API v2 read a pickle from stdin, with names of their own.

A pickle is only ever written here, for a process in the sandbox: what such a script prints is read as JSON, like all.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

READS_PICKLE = b"pickle.load("
NAMES = {
    "vnfInstance": "vnf_instance",
    "grantRequest": "grant_request",
    "grant": "grant_response",
    "packageDirectory": "tmp_csar_dir",
    "userScriptErrHandlingData": "user_script_err_handling_data",
    "vnfcParam": "vnfc_param",
    "sshIp": "ssh_ip",
    "isRollback": "is_rollback",
    "vnfcInfoId": "vnfc_info_id",
}


def reads_pickle(script: Path) -> bool:
    return READS_PICKLE in script.read_bytes()


def pickled(given: dict[str, Any]) -> bytes:
    return pickle.dumps({NAMES.get(name, name): value for name, value in given.items()})
