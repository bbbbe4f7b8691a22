"""What an NFVO is asked before each operation, and by whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.operation import OperationType
from slipway.model.requests import (
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ModifyRequest,
)
from tests.functional.grants.grant_world import (
    ALL,
    COMPUTES,
    FORCEFUL,
    IN,
    INSTANTIATE,
    LISTS,
    MASTER,
    NETWORK,
    OUT,
    WORKER,
    completed,
    info_of,
    machines,
    on,
    settings_for,
    standing,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, Rig, rig_in
from tests.functional.scripted_package import scripted_tree
from tests.functional.small_nfvo import SmallNfvo, placed, yes, yes_there
from tests.script_sandbox import needs_sandbox
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices


async def test_what_is_asked_for_an_instantiation(rig: Rig, nfvo: SmallNfvo) -> None:
    params = {"size": "big", "password": "canary-of-the-request", "nested": {"api_key": "canary-of-the-request"}}
    instance_id = await rig.create()
    request = InstantiateRequest(flavour_id="ha", instantiation_level_id="default", additional_params=params)
    operation = await completed(rig, OperationType.INSTANTIATE, instance_id, request)
    (asked,) = nfvo.requests
    computes = [one for one in asked["addResources"] if one["type"] == "COMPUTE"]
    masters = [one["id"] for one in computes if one["resourceTemplateId"] == "masterNode"]
    assert nfvo.resources("addResources") == sorted([*MASTER * 3, *WORKER * 2, *NETWORK])
    del asked["addResources"]
    place = "http://127.0.0.1:9890/vnflcm/v2"
    assert asked == {
        "vnfInstanceId": instance_id,
        "vnfLcmOpOccId": operation.id,
        "vnfdId": rig.vnfd_id,
        "flavourId": "ha",
        "instantiationLevelId": "default",
        "operation": "INSTANTIATE",
        "isAutomaticInvocation": False,
        "placementConstraints": [
            {
                "affinityOrAntiAffinity": "ANTI_AFFINITY",
                "scope": "NFVI_NODE",
                "resource": [{"idType": "GRANT", "resourceId": one} for one in masters],
            }
        ],
        "additionalParams": {"size": "big", "nested": {}},
        "_links": {
            "vnfLcmOpOcc": {"href": f"{place}/vnf_lcm_op_occs/{operation.id}"},
            "vnfInstance": {"href": f"{place}/vnf_instances/{instance_id}"},
        },
    }


async def test_what_is_asked_for_scaling(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await machines(rig, instance_id)
    await completed(rig, OperationType.SCALE, instance_id, OUT)
    assert [nfvo.resources(name) for name in LISTS] == [WORKER, [], []]
    (new,) = [one for name, one in (await machines(rig, instance_id)).items() if name not in before]
    assert new.id in {one["id"] for one in nfvo.requests[-1]["addResources"]}
    assert nfvo.requests[-1]["flavourId"] == "simple"
    assert "instantiationLevelId" not in nfvo.requests[-1]

    await completed(rig, OperationType.SCALE, instance_id, IN)
    assert [nfvo.resources(name) for name in LISTS] == [[], WORKER, []]
    gone = next(one for one in nfvo.requests[-1]["removeResources"] if one["type"] == "COMPUTE")
    assert gone == {
        "id": new.id,
        "type": "COMPUTE",
        "resourceTemplateId": "workerNode",
        "resource": {"resourceId": new.resource_id, "vimConnectionId": "vim"},
    }


async def test_what_is_asked_for_healing_and_terminating(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    (vnfc,) = [one for one in (await info_of(rig, instance_id)).vnfc_resource_info if one.vdu_id == "masterNode"]
    one = HealRequest(vnfc_instance_id=(f"masterNode-{vnfc.id}",))
    await completed(rig, OperationType.HEAL, instance_id, one)
    assert [nfvo.resources(name) for name in LISTS] == [[MASTER[0]], [MASTER[0]], []]

    (vnfc,) = [one for one in (await info_of(rig, instance_id)).vnfc_resource_info if one.vdu_id == "masterNode"]
    whole_one = HealRequest(vnfc_instance_id=(f"masterNode-{vnfc.id}",), additional_params={"all": True})
    await completed(rig, OperationType.HEAL, instance_id, whole_one)
    assert [nfvo.resources(name) for name in LISTS] == [MASTER, MASTER, []]

    await completed(rig, OperationType.HEAL, instance_id, HealRequest())
    assert [nfvo.resources(name) for name in LISTS] == [COMPUTES, COMPUTES, []]

    await completed(rig, OperationType.HEAL, instance_id, HealRequest(additional_params={"all": True}))
    assert [nfvo.resources(name) for name in LISTS] == [ALL, ALL, []]

    await completed(rig, OperationType.TERMINATE, instance_id, FORCEFUL)
    assert [nfvo.resources(name) for name in LISTS] == [[], ALL, []]
    assert await rig.inventory() == {}


async def test_what_is_asked_for_a_change_of_connectivity(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig, InstantiateRequest(flavour_id="simple", ext_virtual_links=on("net-1")))
    await completed(
        rig, OperationType.CHANGE_EXT_CONN, instance_id, ChangeExtConnRequest(ext_virtual_links=on("net-2"))
    )
    ports = [("LINKPORT", "workerNode_CP1")] * 2
    assert [nfvo.resources(name) for name in LISTS] == [ports, ports, [("COMPUTE", "workerNode")] * 2]


async def test_what_is_asked_for_another_package_and_that_its_images_are_its_own(
    rig: Rig, nfvo: SmallNfvo, tmp_path: Path
) -> None:
    instance_id = await standing(rig)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT_ID, hooks=())
    nfvo.decide = yes
    await completed(rig, OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID))
    assert (nfvo.requests[-1]["vnfdId"], nfvo.requests[-1]["dstVnfdId"]) == (rig.vnfd_id, NEXT_ID)
    assert [nfvo.resources(name) for name in LISTS] == [[], [], COMPUTES]
    assert {one.image for one in (await machines(rig, instance_id)).values()} == {"image-m", "image-w"}
    await completed(rig, OperationType.HEAL, instance_id, HealRequest())
    assert {one.image for one in (await machines(rig, instance_id)).values()} == {"cluster-node"}
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}


async def test_modifying_needs_no_grant_and_a_preview_asks_nobody(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await rig.create()
    await completed(rig, OperationType.MODIFY_INFO, instance_id, ModifyRequest(metadata={"a": 1}))
    plan = await rig.slipway.lcm.preview_plan(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    assert plan.steps
    assert rig.slipway.lcm.asks_nfvo
    assert nfvo.requests == []


@pytest.mark.parametrize("how", ["basic", "oauth2"])
async def test_slipway_shows_who_it_is(how: str, database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary-of-the-login\n")
    secret.chmod(0o600)
    login = {"nfvo_user": "slipway", "nfvo_password_file": secret}
    if how == "oauth2":
        login = {"nfvo_client_id": "c", "nfvo_client_secret_file": secret, "nfvo_token_url": f"{nfvo.url}/token"}
    settings = settings_for(database_url, tmp_path, nfvo, nfvo_auth=how, **login)

    def forgetful(request: dict[str, Any]) -> Answer:
        """Every third request the token is no longer good."""
        return Answer(401) if how == "oauth2" and len(nfvo.requests) == 2 else yes_there(request)

    nfvo.decide = forgetful
    async with rig_in(settings) as rig:
        await standing(rig)
        await standing(rig)
    shown = [headers["authorization"] for headers in nfvo.headers]
    if how == "basic":
        assert shown == ["Basic c2xpcHdheTpjYW5hcnktb2YtdGhlLWxvZ2lu"] * 2
    else:
        assert shown == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


@needs_sandbox
async def test_scripts_of_the_package_are_given_the_grant(database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> None:
    code = """
import json, sys
given = json.load(sys.stdin)
request, grant = given["grantRequest"], given["grant"]
told = {"asked": request["operation"], "zones": [zone["zoneId"] for zone in grant["zones"]],
        "vims": grant["vimConnectionInfo"], "keeps": len(grant["additionalParams"]["password"])}
print(json.dumps({"vnfInstance": {"metadata": {"told": told}}}))
"""
    tree = scripted_tree(tmp_path, ["instantiate_start"], code)
    vim = {"vim": {"vimId": "simulated", "accessInfo": {"password": "canary-of-the-vim"}}}
    params = {"password": "canary-of-the-nfvo"}
    nfvo.decide = lambda request: document(placed(request, vimConnectionInfo=vim, additionalParams=params), 201)
    async with rig_in(settings_for(database_url, tmp_path, nfvo), hooks=None, sample=tree) as rig:
        instance_id = await standing(rig)
        assert (await rig.instance(instance_id)).vnf.metadata["told"] == {
            "asked": "INSTANTIATE",
            "zones": ["az-1", "elsewhere"],
            "vims": {"vim": {"vimId": "simulated", "accessInfo": {}}},
            "keeps": len("canary-of-the-nfvo"),
        }
        assert "canary" not in json.dumps(nfvo.requests)
