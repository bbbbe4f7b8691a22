"""What goes wrong while playbooks build a real cluster: the error names host and task, and a retry goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import PARAMETERS
from tests.lab.kubespray.kubespray_lab import KubesprayLab, a_kubespray_lab
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="kubespray")
FILL = "fallocate -l 64m /etc/haproxy/full 2>/dev/null || dd if=/dev/zero of=/etc/haproxy/full bs=4k 2>/dev/null; true"


@pytest.fixture(scope="module")
def life(kubernetes_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubesprayLab]:
    with a_kubespray_lab(tmp_path_factory.mktemp("kubespray"), kubernetes_engines) as lab:
        yield lab


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ip_address": "192.0.2.1", "host_key": None}, "192.0.2.1"),
        ({"private_key": None, "password": "never"}, "refused the login"),
        ({"kubespray_root_path": "/srv/nothing"}, "has no /srv/nothing"),
    ],
    ids=["address", "login", "root path"],
)
def test_a_wrong_ansible_server_is_told_before_any_machine_is_made(
    life: KubesprayLab, wrong: dict[str, Any], said: str
) -> None:
    life.create()
    asked = life.asked()
    server = {**asked[PARAMETERS]["ansible"], **wrong}
    asked[PARAMETERS]["ansible"] = {name: value for name, value in server.items() if value is not None}
    failed = life.run("instantiate", {"flavourId": "simple", "additionalParams": asked}, "FAILED_TEMP")
    assert said in failed["error"]["detail"]
    assert everything(life.engines.operations(LOCAL)) == {}
    life.decide(failed["id"], "rollback", "ROLLED_BACK")
    assert life.http.delete(f"{INSTANCES}/{life.vnf}").is_success
    assert not life.inventory.exists()


def test_built(life: KubesprayLab) -> None:
    life.create()
    life.run("instantiate", {"flavourId": "simple", "additionalParams": life.asked()}, within=900)


@needs(test_built)
def test_a_host_that_goes_away_in_a_play_is_named_and_the_rollback_leaves_the_others(life: KubesprayLab) -> None:
    before = life.nodes()
    operation = life.begin("scale", life.scale("SCALE_OUT"))
    life.until_step(operation, "scale.yml for workerNode-2", within=300)
    life.cut_power_of_new("workerNode-2")
    failed = life.ended(operation, "FAILED_TEMP", within=900)
    assert "workerNode-2" in failed["error"]["detail"]
    life.decide(operation, "rollback", "ROLLED_BACK")
    assert life.nodes() == before
    assert "workernode-2" not in (life.inventory / "hosts.yaml").read_text()


@needs(test_built)
def test_a_full_disk_of_the_balancer_is_told_and_a_retry_goes_on(life: KubesprayLab) -> None:
    life.inside("externalLB-0", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/etc/haproxy")
    life.inside("externalLB-0", "sh", "-c", FILL)
    failed = life.run("scale", life.scale("SCALE_OUT"), "FAILED_TEMP", within=900)
    assert "Load balancer externalLB-0" in failed["error"]["detail"]
    assert "free some space" in failed["error"]["detail"]
    life.inside("externalLB-0", "umount", "/etc/haproxy")
    life.decide(failed["id"], "retry", "COMPLETED", within=900)
    assert all(life.nodes().values())
    assert f"{life.address('masterNode-0')}:6443" in life.routes()


@needs(test_built)
def test_terminate_leaves_nothing(life: KubesprayLab) -> None:
    life.run("terminate", {"terminationType": "FORCEFUL"})
    assert everything(life.engines.operations(LOCAL)) == {}
    assert not life.inventory.exists()
