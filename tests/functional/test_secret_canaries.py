"""Secrets planted wherever a caller can put one; then all is run, and every place they could leak to is searched."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import httpx

from tests.functional.cluster_rig import CLUSTER, parameters
from tests.functional.processes import running
from tests.functional.registry_rig import REGISTRY
from tests.functional.test_processes import LCM, onboard, wait_for

CANARY = f"canary-{uuid4().hex}"
# In clear, and as Base64 has it wherever it begins in what was encoded.
FORMS = (
    CANARY.encode(),
    *(b64encode(bytes(shift) + CANARY.encode())[4:-4] for shift in range(3)),
)


def planted(where: str) -> str:
    return f"{CANARY}-{where}"


def test_planted_secrets_are_nowhere_but_encrypted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    answers: list[str] = []
    with running("serve", data, log_level="debug", secret_parameters="community") as server, server.client() as client:
        client.event_hooks["response"] = [lambda answer: answers.append(answer.read().decode(errors="replace"))]
        live_a_life(client, tmp_path)
        build_a_cluster(client, tmp_path)
        arguments = Path(f"/proc/{server.pid}/cmdline").read_text()
        environment = Path(f"/proc/{server.pid}/environ").read_text()
        listed = [client.get(path).text for path in LISTS]
        assert all(answer.startswith("[") for answer in listed)
        server.end()
    assert len(answers) > 20
    told = {"an answer": "\n".join(answers), "arguments": arguments, "the environment": environment}
    files = {str(file): file.read_bytes() for file in data.rglob("*") if file.is_file()}
    assert any(name.endswith("slipway.db") for name in files)
    assert any(name.endswith("simulated/simulated.db") for name in files)
    for name, text in told.items():
        assert CANARY not in text, f"a secret is in {name}"
    with closing(sqlite3.connect(data / "slipway.db")) as database:
        assert database.execute("SELECT count(*) FROM secrets").fetchone()[0] >= 8, "they were not even stored"
    for name, content in files.items():
        assert not any(form in content for form in FORMS), f"a secret is in {name}"


LISTS = (
    f"{LCM}/vnf_instances?all_fields",
    f"{LCM}/vnf_lcm_op_occs?all_fields",
    "/slipway/v1/vims",
    "/vnfpkgm/v1/vnf_packages?all_fields",
)


def live_a_life(client: httpx.Client, place: Path) -> None:
    """Every request that can carry a secret, some that fail, and every answer that could show one."""
    vnfd_id = onboard(client, place)
    vim = {
        "name": "guarded",
        "vimType": "SLIPWAY.SIMULATED.V_1",
        "interfaceInfo": {"endpoint": "sim://guarded"},
        "accessInfo": {"username": "me", "password": planted("vim"), "bearer_token": planted("vim-token")},
    }
    assert client.post("/slipway/v1/vims", json=vim).status_code == 201
    client.patch("/slipway/v1/vims/guarded", json={"accessInfo": {"password": planted("vim-patched")}})
    client.post("/slipway/v1/vims/guarded/check")
    client.post("/slipway/v1/vims", json={**vim, "name": "wrong", "interfaceInfo": {"endpoint": "nowhere"}})

    instance = client.post(f"{LCM}/vnf_instances", json={"vnfdId": vnfd_id, "metadata": {"token": planted("meta")}})
    path = f"{LCM}/vnf_instances/{instance.json()['id']}"
    request = {
        "flavourId": "simple",
        "vimConnectionInfo": {
            "vim1": {
                "vimType": "SLIPWAY.SIMULATED.V_1",
                "interfaceInfo": {"endpoint": "sim://inline"},
                "accessInfo": {"username": "me", "password": planted("inline")},
            }
        },
        "additionalParams": {
            "k8s_cluster_installation_param": {
                "master_node": {"username": "ubuntu", "password": planted("master")},
                "worker_node": {"ssh_key": planted("worker")},
            },
            "community": planted("declared"),
        },
    }
    plan = {"vnfInstanceId": instance.json()["id"], "operation": "INSTANTIATE", "request": request}
    assert client.post("/slipway/v1/plans", json=plan).status_code == 200
    client.post(f"{path}/instantiate", json={**request, "flavourId": "none"})  # refused
    run(client, "POST", f"{path}/instantiate", request)
    for body in (
        {"type": "SCALE_OUT", "aspectId": "workers", "additionalParams": {"worker_node_password": planted("scale")}},
        {"type": "SCALE_OUT", "aspectId": "nothing", "additionalParams": {"password": planted("refused")}},
    ):
        run(client, "POST", f"{path}/scale", body)
    for name in ("metadata", "extensions", "vnfConfigurableProperties"):
        run(client, "PATCH", path, {name: {"shown": 1, "deep": [{"api_token": planted(name)}]}})
        assert client.get(path).json()[name]["deep"] == [{}]
    data = {"owner": "me", "registry": {"password": planted("user-data")}}
    package = client.post("/vnfpkgm/v1/vnf_packages", json={"userDefinedData": data})
    where = f"/vnfpkgm/v1/vnf_packages/{package.json()['id']}"
    patched = client.patch(where, json={"userDefinedData": {"community": planted("user-data-patched")}})
    assert patched.json() == {"userDefinedData": {}}
    assert client.get(where).json()["userDefinedData"] == {"owner": "me", "registry": {}}
    run(client, "POST", f"{path}/heal", {"additionalParams": {"master_node_password": planted("heal")}})
    run(client, "PATCH", path, {"vimConnectionInfo": {"vim1": {"accessInfo": {"password": planted("modified")}}}})
    assert client.get(path).json()["vimConnectionInfo"]["vim1"]["accessInfo"] == {"username": "me"}
    fail(client, path)
    run(client, "POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})


def build_a_cluster(client: httpx.Client, place: Path) -> None:
    """It stands in the end, so that its nodes still hold what they were given: proxies and logins to registries."""
    vnfd_id = onboard(client, place, CLUSTER)
    instance = client.post(f"{LCM}/vnf_instances", json={"vnfdId": vnfd_id}).json()
    proxy = {
        "http_proxy": f"http://me:{planted('proxy')}@proxy.example:3128",
        "https_proxy": f"http://me:{planted('proxy')}@proxy.example:3128",
    }
    registry = {"connection_type": 0, "server": build_a_registry(client, place), "username": "me",
                "password": planted("registry")}  # fmt: skip
    installation = parameters(proxy=proxy, private_registry_connection_info=[registry])
    for node in ("master_node", "worker_node"):
        installation["k8s_cluster_installation_param"][node]["password"] = planted("login")
    body = {"flavourId": "simple", "additionalParams": installation}
    operation = run(client, "POST", f"{LCM}/vnf_instances/{instance['id']}/instantiate", body)
    assert operation is not None
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    other = [registry | {"password": planted("mistyped")}]
    changed = {"vnfConfigurableProperties": {"private_registry_connection_info": other}}
    refused = run(client, "PATCH", f"{LCM}/vnf_instances/{instance['id']}", changed)
    assert refused is not None
    assert refused["operationState"] == "FAILED_TEMP"


def build_a_registry(client: httpx.Client, place: Path) -> str:
    """Where it serves."""
    instance = client.post(f"{LCM}/vnf_instances", json={"vnfdId": onboard(client, place, REGISTRY)}).json()
    asked = {"ssh_cp_name": "CP1", "ssh_username": "root", "ssh_password": planted("ssh"), "source": "package",
             "users": [{"username": "me", "password": planted("registry")}]}  # fmt: skip
    body = {"flavourId": "simple", "additionalParams": {"private_registry_installation_param": asked}}
    operation = run(client, "POST", f"{LCM}/vnf_instances/{instance['id']}/instantiate", body)
    assert operation is not None
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    shown = client.get(f"{LCM}/vnf_instances/{instance['id']}").json()
    return str(shown["instantiatedVnfInfo"]["metadata"]["registry"]["server"])


def fail(client: httpx.Client, path: str) -> None:
    """An operation that breaks while it holds secrets."""
    rules = [{"kind": "error", "call": "make_machine", "fault": "permanent"}]
    client.post(
        "/slipway/v1/vims",
        json={
            "name": "broken",
            "vimType": "SLIPWAY.SIMULATED.V_1",
            "interfaceInfo": {"endpoint": "sim://inline"},
            "extra": {"rules": rules},
        },
    )
    body = {"type": "SCALE_OUT", "aspectId": "workers", "additionalParams": {"passphrase": planted("broken")}}
    operation = run(client, "POST", f"{path}/scale", body)
    assert operation is not None
    assert operation["operationState"] == "FAILED_TEMP"
    client.post(f"{LCM}/vnf_lcm_op_occs/{operation['id']}/rollback")
    wait_for(lambda: state(client, str(operation["id"])) == "ROLLED_BACK")
    client.put("/slipway/v1/vims/broken/rules", json=[])


def run(client: httpx.Client, method: str, path: str, body: Mapping[str, object]) -> dict[str, object] | None:
    """The operation at rest, or None when the request was refused."""
    answer = client.request(method, path, json=body)
    if answer.status_code != 202:
        assert 400 <= answer.status_code < 500, answer.text
        return None
    operation_id = answer.headers["location"].rpartition("/")[2]
    wait_for(lambda: state(client, operation_id) not in ("STARTING", "PROCESSING"))
    operation: dict[str, object] = client.get(f"{LCM}/vnf_lcm_op_occs/{operation_id}").json()
    return operation


def state(client: httpx.Client, operation_id: str) -> str:
    answer: str = client.get(f"{LCM}/vnf_lcm_op_occs/{operation_id}").json()["operationState"]
    return answer
