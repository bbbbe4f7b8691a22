"""What goes wrong with charts: hostile ones, wrong values, somebody else's releases, repositories. By the real helm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import yaml

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.operation import OperationType
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.contract.life import TERMINATE
from tests.contract.plans import run_plan, undo_steps
from tests.lab.helm.charts import NAMED, RELEASE, Cnf, chart_of, instantiation, web
from tests.lab.kube.fake_kubelet import FakeNode
from tests.unit.vim.helm_targets import archive

pytestmark = pytest.mark.group(name="helm")


async def secrets(api: Api, namespace: str) -> list[str]:
    found = await api.list(paths.namespaced("/api/v1", namespace, "secrets"), labelSelector="owner=helm")
    return [one["metadata"]["name"] for one in found]


async def test_a_chart_reads_no_file_of_this_machine(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    seen = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  file: {{ .Files.Get "/etc/passwd" | quote }}
  above: {{ .Files.Get "../kubeconfig" | quote }}
  all: {{ range $path, $_ := .Files.Glob "**" }}{{ $path }} {{ end }}.
  home: {{ getHostByName "localhost" | quote }}
"""
    cnf = Cnf(connection, driver, chart_of(web(seen)))
    await cnf.instantiate()
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "seen"))
    assert found["data"] == {"file": "", "above": "", "all": ".", "home": ""}
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    assert await secrets(api, namespace) == []


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        ('{{ env "HOME" }}', "function \"env\" not defined"),
        ("{{ .Values.a.b.c }}", "nil pointer"),
        ("apiVersion: example.com/v1\nkind: Database\nmetadata: {name: a}\n", "Database"),
        (web().replace(NAMED, "other"), "VDU web: the chart makes no workload called 'web'"),
        (web().replace("{{ .Values.replicas }}", "1"), "has 1 replicas, and 2 are wanted"),
    ],
)  # fmt: skip
async def test_a_chart_that_can_t_be_is_told_before_anything_is_made(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, templates: str, said: str
) -> None:
    error = await Cnf(connection, driver, chart_of(templates)).refused()
    assert said in error.detail
    assert error.fault is VimFault.PERMANENT
    assert "slipway-helm-" not in error.detail
    assert await secrets(api, namespace) == []


async def test_what_a_chart_makes_is_ready_when_the_rules_of_the_package_say_so(
    connection: VimConnection, driver: KubernetesVimDriver, node: FakeNode
) -> None:
    """A ConfigMap is ready at once otherwise."""
    rules = """
apiVersion: slipway.io/v1
kind: ReadinessRules
rules:
- apiVersion: v1
  kind: ConfigMap
  ready: [{field: {path: data.state, equals: done}}]
  failed: [{field: {path: data.state, equals: broken}}]
"""
    job = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: job}\ndata: {state: STATE}\n"
    error = await Cnf(connection, driver, chart_of(web(job.replace("STATE", "broken"))), rules).refused()
    assert "/job: " in error.detail
    assert "data.state" in error.detail
    cnf = Cnf(connection, driver, chart_of(web(job.replace("STATE", "done"))), rules)
    await cnf.instantiate()
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)


async def test_a_chart_brings_definitions_and_objects_of_them(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sheets.helm.slipway.example}
spec:
  group: helm.slipway.example
  scope: Namespaced
  names: {kind: Sheet, plural: sheets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
    sheet = "\n---\napiVersion: helm.slipway.example/v1\nkind: Sheet\nmetadata: {name: a}\n"
    cnf = Cnf(connection, driver, chart_of(web(sheet), **{"crds/sheet.yaml": definition}))
    try:
        await cnf.instantiate()
        await cnf.life.agreed()
        await cnf.life.run(OperationType.TERMINATE, TERMINATE)
        sheets = paths.namespaced("/apis/helm.slipway.example/v1", namespace, "sheets")
        assert await api.list(sheets) == []
    finally:
        await api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sheets.helm.slipway.example")


async def test_values_that_the_charts_schema_refuses_are_named(
    connection: VimConnection, driver: KubernetesVimDriver
) -> None:
    schema = '{"properties": {"port": {"type": "integer"}}}'
    error = await Cnf(connection, driver, chart_of(web(), **{"values.schema.json": schema})).refused(
        helm_parameters={"port": "--set"}
    )
    assert "port" in error.detail
    assert "integer" in error.detail


async def test_a_chart_that_eats_memory_is_ended(connection: VimConnection, driver: KubernetesVimDriver) -> None:
    bomb = '{{ $x := "0123456789abcdef" }}{{ range until 28 }}{{ $x = print $x $x }}{{ end }}' + web()
    error = await Cnf(connection, driver, chart_of(bomb)).refused()
    assert "memory" in error.detail


async def test_an_object_of_somebody_else_is_left_as_it_is(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str
) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}
    await api.apply({**theirs, "data": {"key": "theirs"}})
    ours = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {key: ours}\n"
    error = await Cnf(connection, driver, chart_of(web(ours))).refused()
    assert "settings" in error.detail
    assert "invalid ownership metadata" in error.detail
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "settings"))
    assert found["data"] == {"key": "theirs"}


@pytest.mark.parametrize("more", [{}, {"crds/leaves.yaml": "# none\n"}])
async def test_a_hook_does_not_take_the_place_of_an_object_of_somebody_else(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, more: dict[str, str]
) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}
    before = await api.apply({**theirs, "data": {"key": "theirs"}})
    hook = "{name: settings, annotations: {helm.sh/hook: pre-install}}"
    ours = f"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {hook}\ndata: {{key: ours}}\n"
    error = await Cnf(connection, driver, chart_of(web(ours), **more)).refused()
    assert f"ConfigMap {namespace}/settings is there already" in error.detail
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "settings"))
    assert found["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("more", [{}, {"crds/leaves.yaml": "# none\n"}])
async def test_a_hook_that_only_a_cluster_makes_a_chart_show_is_seen_too(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, more: dict[str, str]
) -> None:
    """`lookup` finds nothing where no cluster is asked."""
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}
    before = await api.apply({**theirs, "data": {"key": "theirs"}})
    name = '{{ if lookup "v1" "Namespace" "" .Release.Namespace }}settings{{ else }}harmless{{ end }}'
    hook = f"{{name: {name}, annotations: {{helm.sh/hook: pre-install}}}}"
    ours = f"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {hook}\n"
    error = await Cnf(connection, driver, chart_of(web(ours), **more)).refused()
    assert f"ConfigMap {namespace}/settings is there already" in error.detail
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "settings"))
    assert found["metadata"]["uid"] == before["metadata"]["uid"]


async def test_what_was_rendered_is_not_rendered_again(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    text = "{{ fail `again` }} \u00fc \U0001f6a2"
    data = json.dumps({"key": text}, ensure_ascii=False).replace("{{ fail", '{{ "{{" }} fail')
    escaped = f"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: seen\ndata: {data}\n"
    cnf = Cnf(connection, driver, chart_of(web(escaped)))
    await cnf.instantiate()
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "seen"))
    assert found["data"] == {"key": text}
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)


async def test_a_chart_does_not_make_what_looks_like_a_release(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str
) -> None:
    forged = "{name: sh.helm.release.v1.other.v1, labels: {owner: helm, name: other, status: deployed, version: '1'}}"
    secret = f"\n---\napiVersion: v1\nkind: Secret\ntype: helm.sh/release.v1\nmetadata: {forged}\n"
    error = await Cnf(connection, driver, chart_of(web(secret))).refused()
    assert "Secret sh.helm.release.v1.other.v1, which is refused" in error.detail
    assert await secrets(api, namespace) == []


async def test_a_release_goes_only_when_its_hooks_have_nobody_elses_names(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    hook = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: goes, annotations: {helm.sh/hook: pre-delete}}\n"
    cnf = Cnf(connection, driver, chart_of(web(hook)))
    await cnf.instantiate()
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "goes", "namespace": namespace}}
    before = await api.apply({**theirs, "data": {"key": "theirs"}})
    with pytest.raises(VimError, match="goes is there already"):
        await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    place = paths.namespaced("/api/v1", namespace, "configmaps", "goes")
    assert (await api.get(place))["metadata"]["uid"] == before["metadata"]["uid"]
    await api.delete(place)
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    assert await secrets(api, namespace) == []


async def test_a_release_of_somebody_else_is_left_as_it_is(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str
) -> None:
    labels = {"owner": "helm", "name": RELEASE, "version": "1", "status": "deployed"}
    metadata = {"name": f"sh.helm.release.v1.{RELEASE}.v1", "namespace": namespace, "labels": labels}
    await api.apply({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata})
    context = (cnf := Cnf(connection, driver, chart_of(web()))).life.context()
    plan = await cnf.life.plan(OperationType.INSTANTIATE, instantiation({}))
    with pytest.raises(VimError, match="was not made for this VNF"):
        await run_plan(driver, plan, context)
    with pytest.raises(VimError, match="was not made for this VNF"):
        await undo_steps(driver, list(plan.steps), context)
    assert await secrets(api, namespace) == [metadata["name"]]


async def test_a_chart_that_does_not_get_ready_says_why_and_is_taken_back(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    job = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-job"}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: 1
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {nobody: has}
      containers: [{name: main, image: "registry.slipway.test/x:1"}]
"""
    error = await Cnf(connection, driver, chart_of(web(job))).refused()
    assert f"{RELEASE}-job" in error.detail
    assert "DeadlineExceeded" in error.detail
    assert await secrets(api, namespace) == []
    assert await api.list(paths.namespaced("/apis/apps/v1", namespace, "deployments")) == []


async def test_volume_claims_of_a_stateful_set_go_with_the_vnf_and_others_stay(
    api: Api, connection: VimConnection, driver: KubernetesVimDriver, namespace: str, node: FakeNode
) -> None:
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": namespace,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    for at in range(3):
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": namespace,
            "hostPath": {"path": "/nowhere"},
        }
        await api.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{namespace}-{at}"}, "spec": spec}
        )
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": wanted}
    await api.apply({**claim, "metadata": {"name": f"data-{RELEASE}-web-other", "namespace": namespace}})
    templates = json.dumps([{"metadata": {"name": "data"}, "spec": wanted}])
    text = web().replace("kind: Deployment", "kind: StatefulSet")
    text = text.replace("spec:", f"spec:\n  volumeClaimTemplates: {templates}", 1)
    cnf = Cnf(connection, driver, chart_of(text))
    try:
        await cnf.instantiate()
        claims = paths.namespaced("/api/v1", namespace, "persistentvolumeclaims")
        assert len(await api.list(claims)) == 3
        await cnf.life.run(OperationType.TERMINATE, TERMINATE)
        assert [one["metadata"]["name"] for one in await api.list(claims)] == [f"data-{RELEASE}-web-other"]
    finally:
        for at in range(3):
            await api.delete(f"/api/v1/persistentvolumes/{namespace}-{at}")


class Repository(BaseHTTPRequestHandler):
    files: dict[str, bytes]

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Basic bWU6c2VjcmV0":
            self.send_response(401)
            self.end_headers()
            return
        content = self.files.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def repository() -> Iterator[str]:
    packed = archive(chart_of(web()))
    entry = {"version": "1.0.0", "urls": ["charts/web-1.0.0.tgz"], "digest": sha256(packed).hexdigest()}
    wrong = {"version": "2.0.0", "urls": ["charts/web-1.0.0.tgz"], "digest": "0" * 64}
    index = yaml.safe_dump({"apiVersion": "v1", "entries": {"web": [entry, wrong]}}).encode()
    files = {"/stable/index.yaml": index, "/stable/charts/web-1.0.0.tgz": packed}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Repository,), {"files": files}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/stable"
    server.shutdown()
    thread.join()
    server.server_close()


def external(url: str, **more: Any) -> dict[str, Any]:
    chart = {
        "exthelmchart": True,
        "helmreleasename": "web",
        "helmchartname": "web",
        "helmchartversion": "1.0.0",
        "exthelmrepo_url": url,
        "repository_username": "me",
        "repository_password": "secret",
        **more,
    }
    return {"using_helm_install_param": [chart], "helm_replica_values": {"web": "replicas"}}


async def test_a_chart_of_a_repository_is_installed(
    connection: VimConnection, driver: KubernetesVimDriver, node: FakeNode, repository: str
) -> None:
    cnf = Cnf(connection, driver, {})
    await cnf.instantiate(**external(repository))
    assert await cnf.life.counts() == {"web": 2}
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"repository_password": "wrong"}, "401"),
        ({"helmchartversion": "3.0.0"}, "no version 3.0.0 of web; it has: 1.0.0, 2.0.0"),
        ({"helmchartversion": "2.0.0"}, "digest"),
        ({"helmchartname": "other"}, "no chart other; it has: web"),
    ],
)
async def test_what_a_repository_lacks_is_named(
    connection: VimConnection, driver: KubernetesVimDriver, repository: str, more: dict[str, str], said: str
) -> None:
    error = await Cnf(connection, driver, {}).refused(**external(repository, **more))
    assert said in error.detail
    assert "secret" not in error.detail
