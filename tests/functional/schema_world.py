"""A world with something of everything in it, and requests made from its own OpenAPI document that meet those things.

Nothing in it calls anybody but this machine: names are not resolved, other addresses are refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from slipway.notify.client import NotificationClient
from slipway.notify.subscription_service import SubscriptionService
from slipway.onboarding.onboarding import Onboarding
from slipway.outgoing.addresses import read_networks
from slipway.outgoing.guard import Guard
from slipway.store.database import Database
from slipway.store.secrets import Vault
from tests.unit.api.world import World, a_world

Json = dict[str, Any]

RULES = "/slipway/v1/vims/sim/rules"
BROKEN = [{"kind": "error", "call": "make_machine", "machine": "workerNode-1", "fault": "permanent", "message": "no"}]
NOWHERE = "no-such-thing"
CALLBACK = "http://127.0.0.1:1/told"

# What a query may well say.
QUERIES = {
    "filter": ["(eq,id,1)", "(neq,id,x);(cont,id,a)", "(in,id,a,b)", "(gt,metadata/a,1)", "(x)"],
    "fields": ["id", "vnfInstanceName,metadata/a", "instantiatedVnfInfo/vnfcInfo", "nonsense"],
    "exclude_fields": ["id", "metadata", "operationParams,error", "checksum,id", "nonsense"],
    "nextpage_opaque_marker": ["nonsense"],
    "all_records": ["yes"],
}  # fmt: skip


def loopback_world(database: Database, directory: Path) -> AbstractAsyncContextManager[World]:
    guard = Guard(networks=read_networks(("127.0.0.0/8",)), loopback=True, resolver=_nobody)
    vault = Vault(directory / "secrets.key")
    subscription_service = SubscriptionService(database, vault, guard, NotificationClient(guard), test=False)
    onboarding = Onboarding(database, directory / "packages", vault, guard=guard)
    return a_world(database, directory, subscription_service=subscription_service, onboarding=onboarding)


async def _nobody(host: str, port: int) -> Sequence[str]:
    raise OSError(f"{host}: names are not resolved here")


async def fill(world: World) -> Json:
    """Names and ids of what is there, by where a request would have them."""
    running = await world.instantiated()
    package = (await world.call("GET", "/vnfpkgm/v1/vnf_packages", 200)).json()[0]
    vnfd_id = package["vnfdId"]
    await world.call("PUT", RULES, 200, json=BROKEN)  # from now on, so that what is tried again fails again
    broken = [await world.create(vnfd_id) for _ in range(2)]
    failed = [(await world.run(one, "instantiate", {"flavourId": "simple"}, "FAILED_TEMP"))["id"] for one in broken]
    fresh = await world.create(vnfd_id, metadata={"a": 1}, vnfInstanceName="fresh")
    await world.add_vim(name="other", isDefault=False, interfaceInfo={"endpoint": "sim://two"})
    empty = (await world.call("POST", "/vnfpkgm/v1/vnf_packages", 201, json={})).json()
    subscriptions = [
        (await world.call("POST", f"/{interface}/subscriptions", 201, json={"callbackUri": CALLBACK})).json()["id"]
        for interface in ("vnflcm/v1", "vnflcm/v2", "vnfpkgm/v1")
    ]
    await world.call("POST", "/slipway/v1/tokens", 201, json={"name": "reader", "role": "reader"})
    instances = [running, fresh, *broken]
    return {
        "vnf_instances": instances,
        "clusters": instances,
        "vnf_lcm_op_occs": failed,
        "operations": failed,
        "vnf_packages": [package["id"], empty["id"]],
        "onboarded_vnf_packages": [vnfd_id],
        "artifacts": ["Definitions/cluster_top.vnfd.yaml"],
        "vims": ["sim", "other", "sim.json"],
        "subscriptions": subscriptions,
        "tokens": ["reader"],
        "vnfdId": [vnfd_id, NOWHERE],
        "flavourId": ["simple", "ha", NOWHERE],
        "aspectId": ["workers", NOWHERE],
        "vnfInstanceId": [*instances, NOWHERE],
        "request": [{"flavourId": "simple"}, {"type": "SCALE_OUT", "aspectId": "workers"}, {}],
        "vimId": ["sim", NOWHERE],
        "vimType": ["SLIPWAY.SIMULATED.V_1", NOWHERE],
        "interfaceInfo": [{"endpoint": "sim://three"}, {}],
        "type": ["simulated"],
        "auth_url": ["sim://four"],
        "callbackUri": [CALLBACK],
        "addressInformation": [CALLBACK],
        "tokenEndpoint": [CALLBACK],
    }


def leading_to(document: Json, known: Json) -> Json:
    """The same document, whose paths lead to what is there. Types are closed: an answer has nothing undeclared."""
    document = copy.deepcopy(document)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for one in operation["parameters"]:
                if one["in"] == "path":
                    before = path.partition(f"/{{{one['name']}}}")[0].rpartition("/")[2]
                    one["schema"] = {"enum": [*known[before], NOWHERE]}
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


def telling_of(document: Json, known: Json) -> Json:
    """The same document, whose requests name what is there, and are small. Answers stay as they are declared."""
    document = leading_to(document, known)
    for methods in document["paths"].values():
        for operation in methods.values():
            if "requestBody" in operation:
                operation["requestBody"] = _moved(operation["requestBody"])
            for one in operation["parameters"]:
                if one["name"] in QUERIES:
                    one["schema"] = {"enum": QUERIES[one["name"]]}
    schemas = _moved(document["components"]["schemas"])
    for schema in schemas.values():
        for name, one in schema.get("properties", {}).items():
            if name in known and "$ref" not in one and "enum" not in one:
                schema["properties"][name] = {"enum": known[name]}
            for choice in one.get("anyOf", [one]):
                if choice.get("type") == "array":
                    choice["maxItems"] = 1  # longer ones take long to make up
    return document | {"x-requests": schemas}


def _moved(schemas: Json) -> Json:
    """A copy for requests alone, which refers to itself."""
    moved: Json = json.loads(json.dumps(schemas).replace('"#/components/schemas/', '"#/x-requests/'))
    return moved
