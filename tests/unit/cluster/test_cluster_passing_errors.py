"""Which of kubeadm's complaints are tried again."""

from __future__ import annotations

import pytest

from slipway.cluster.steps.machine import temporary_if_api_error
from slipway.model.errors import StepError


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("unable to fetch the kubeadm-config ConfigMap: Get https://10.0.0.1:6443: (Client.Timeout exceeded)", True),
        ("dial tcp 10.0.0.1:6443: connect: connection refused", True),
        ("etcdserver: leader changed", True),
        ("error promoting the learner: the etcd member 5cf3b2ad7f2e4a1 is not started", True),
        ("etcdserver: can only promote a learner member which is in sync with leader", True),
        ('configmaps "kubeadm-config" is forbidden: User "system:node:worker-0" cannot get resource', True),
        ('secrets "x" is forbidden: User "somebody" cannot get resource', False),
        ("[ERROR Port-10250]: Port 10250 is in use", False),
        ("the cluster CA found in cluster-info ConfigMap is invalid", False),
    ],
)
def test_only_an_api_that_was_silent_for_a_moment_is_tried_again(said: str, again: bool) -> None:
    assert temporary_if_api_error(StepError(said)).temporary is again
