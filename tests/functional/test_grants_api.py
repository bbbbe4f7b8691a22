"""A whole Slipway with an NFVO: what callers see of grants."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from tests.functional.processes import serving_on
from tests.functional.small_nfvo import GRANTS, placed
from tests.functional.test_processes import LCM, instantiate, onboard, state_of, wait_for
from tests.unit.vim.loopback import Asked, Reply, serving

pytestmark = pytest.mark.sqlite_suffices


def test_operations_show_their_grant_and_previews_say_that_nobody_was_asked(database_url: URL, tmp_path: Path) -> None:
    heard: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        heard.append(asked)
        if len(heard) > 1:
            return Reply(403, {"status": 403, "detail": "enough"})
        return Reply(201, placed(asked.document, id="grant-1"))

    with (
        serving(answer) as nfvo,
        serving_on(database_url, tmp_path / "data", nfvo_url=nfvo) as (_, client),
    ):
        vnfd_id = onboard(client, tmp_path)
        instance_id, first = instantiate(client, vnfd_id)
        wait_for(lambda: state_of(client, first) == "COMPLETED")
        for version in (LCM, "/vnflcm/v1"):
            shown = client.get(f"{version}/vnf_lcm_op_occs/{first}").json()
            assert shown["grantId"] == "grant-1"
            assert shown["_links"]["grant"] == {"href": f"{nfvo}{GRANTS}/grant-1"}
        listed = client.get(f"{LCM}/vnf_lcm_op_occs", params={"filter": "(eq,grantId,grant-1)"}).json()
        assert [(one["id"], "grant" in one["_links"]) for one in listed] == [(first, True)]

        scale = {"type": "SCALE_OUT", "aspectId": "workers"}
        asked = {"vnfInstanceId": instance_id, "operation": "SCALE", "request": scale}
        plan = client.post("/slipway/v1/plans", json=asked).json()
        assert plan["note"].startswith("The NFVO was not asked.")
        assert len(heard) == 1

        begun = client.post(f"{LCM}/vnf_instances/{instance_id}/scale", json=scale)
        second = begun.headers["location"].rpartition("/")[2]
        wait_for(lambda: state_of(client, second) == "ROLLED_BACK")
        refused = client.get(f"{LCM}/vnf_lcm_op_occs/{second}").json()
        assert refused["error"]["detail"] == f"The NFVO at {nfvo}{GRANTS} refused the grant: enough"
        assert "grantId" not in refused
        assert "grant" not in refused["_links"]
