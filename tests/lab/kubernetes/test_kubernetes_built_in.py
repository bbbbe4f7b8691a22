"""What is special about kinds of the API server itself, on a real one."""

from __future__ import annotations

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.deletion import Doomed, wait_gone
from slipway.kube.interface import ObjectRef
from slipway.model.action import VimConnection
from slipway.model.operation import OperationType
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.contract.life import ONE, UPDATE, out
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.small_cnf import Cnf
from tests.unit.vim.kubernetes_targets import together, workload

pytestmark = pytest.mark.group(name="kubernetes")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: prepare}
spec:
  ttlSecondsAfterFinished: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: "prepare:1"}]}
"""


async def test_a_service_that_becomes_a_headless_one_is_made_anew(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    headless = SERVICE.replace("spec: {", "spec: {clusterIP: None, ")
    cnf = Cnf(connection, together(SERVICE, workload()), together(headless, workload()))
    await cnf.instantiate()
    await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    found = await api.get(paths.namespaced("/api/v1", namespace, "services", "web"))
    assert found["spec"]["clusterIP"] == "None"
    await cnf.life.agreed()


async def test_a_job_that_goes_by_itself_is_run_once_and_not_missed(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    cnf = Cnf(connection, together(JOB, workload()))
    await cnf.instantiate()
    await wait_gone(api, [Doomed(ObjectRef("batch/v1", "Job", "prepare", namespace))], 60)
    await cnf.life.run(OperationType.SCALE, out())
    selector = "involvedObject.kind=Job,involvedObject.name=prepare,reason=Completed"
    ended = await api.list(paths.namespaced("/api/v1", namespace, "events"), fieldSelector=selector)
    assert len({event["involvedObject"]["uid"] for event in ended}) == 1
    assert await KubernetesVimDriver().drift(connection, ONE, cnf.life.recorded) == ()
