"""A CNF whose claim wants one of the storage server's volumes. Its pod does not mount it: not every kernel has NFS."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.cluster_lab import REPOSITORY

SAMPLE = Path(__file__).parents[2] / "samples" / "cnf"
CLAIM = "cnf-data"
MANIFEST = f"""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {CLAIM}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: nfs-pv1
  resources:
    requests:
      storage: 100Mi
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {{app: cnf}}
  template:
    metadata:
      labels: {{app: cnf}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: web
          image: {REPOSITORY}/tools:1
          command: [sleep, "86400"]
"""
FLAVOUR = """\
tosca_definitions_version: tosca_simple_yaml_1_2

description: "Flavour simple: one web server and its data"

imports:
  - etsi_nfv_sol001_common_types.yaml
  - etsi_nfv_sol001_vnfd_types.yaml
  - cnf_types.yaml

topology_template:
  substitution_mappings:
    node_type: slipway.samples.Cnf
    properties:
      flavour_id: simple

  node_templates:
    VNF:
      type: slipway.samples.Cnf
      properties:
        flavour_description: One web server and its data

    web:
      type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit
      properties:
        name: web
        description: Serves the pages
        vdu_profile:
          min_number_of_instances: 1
          max_number_of_instances: 1

    cnf:
      type: tosca.nodes.nfv.Mciop
      artifacts:
        workload:
          file: ../Files/kubernetes/workload.yaml
          type: tosca.artifacts.nfv.Kubernetes
      requirements:
        - associatedVdu: web
"""


def claiming_cnf(directory: Path) -> Path:
    """The tree of its package."""
    tree = directory / "claiming-cnf"
    shutil.copytree(SAMPLE, tree)
    shutil.rmtree(tree / "Files")
    (tree / "Files" / "kubernetes").mkdir(parents=True)
    (tree / "Files" / "kubernetes" / "workload.yaml").write_text(MANIFEST)
    (tree / "Definitions" / "cnf_df_simple.yaml").write_text(FLAVOUR)
    return tree
