"""A Slipway process with the real helm, and the sample CNF of a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slipway.kube.api import Api
from tests.functional.processes import Process
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.cnf_lab import CnfLab

CHART = "Files/charts/web"
# A Job that Helm waits for before it makes anything: so long is a release pending.
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-prepare
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.slipway.test/prepare:1"}]
"""


class HelmLab(CnfLab):
    sample = Path(__file__).parents[3] / "samples" / "cnf-helm"
    sample_id = "3b9d61f4-7c25-4d0b-8f5e-92a7c4e016d8"
    definitions = ("Definitions/helm_top.vnfd.yaml", "Definitions/helm_types.yaml")

    def __init__(self, directory: Path, kubeconfig: str, namespace: str, node: FakeNode, helm: Path) -> None:
        self.helm = helm
        super().__init__(directory, kubeconfig, namespace, node)

    def start(self) -> None:
        self.process = Process(
            "serve", self.directory, lease_seconds=5, allowed_networks="127.0.0.0/8", helm_program=self.helm
        )
        self.http = self.process.client()

    @property
    def release(self) -> str:
        return f"vnf-{self.vnf.replace('-', '')[:12]}"

    def revisions(self) -> dict[int, str]:
        """Their states, by number."""

        async def look(api: Api) -> dict[int, str]:
            path = f"/api/v1/namespaces/{self.namespace}/secrets"
            found = await api.list(path, labelSelector=f"owner=helm,name={self.release}")
            labels = [one["metadata"]["labels"] for one in found]
            return {int(one["version"]): str(one["status"]) for one in labels}

        return self.run_on_cluster(look)

    def image(self) -> str:
        found = self.get(f"apps/v1/deployments/{self.release}-front")
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    def replicas(self) -> int:
        return int(self.get(f"apps/v1/deployments/{self.release}-front")["spec"]["replicas"])

    def with_hook(self, number: int, *changes: tuple[str, str, str]) -> str:
        """The VNFD id of a variant whose chart has the hook."""
        old = "apiVersion: v1\nkind: Service\n"
        return self.variant(number, (f"{CHART}/templates/services.yaml", old, f"{HOOK}---\n{old}"), *changes)

    def instantiate(self, **parameters: Any) -> dict[str, Any]:
        return {"flavourId": "simple", "additionalParams": parameters}
