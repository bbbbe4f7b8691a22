"""A real API server as a VIM: a namespace of one's own, and a node that only says it is one."""

from __future__ import annotations

import pytest

from slipway.kube.credentials import Credentials
from slipway.model.action import VimConnection
from slipway.model.vim import KUBERNETES
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.lab.kube.conftest import administrator, api, kubeconfig, namespace, node

__all__ = ["administrator", "api", "kubeconfig", "namespace", "node"]


def vim_of(administrator: Credentials, namespace: str) -> VimConnection:
    return VimConnection(
        KUBERNETES,
        {"endpoint": administrator.server, "ssl_ca_cert": administrator.ca},
        {
            "client_certificate": administrator.client_certificate,
            "client_key": administrator.client_key,
            "namespace": namespace,
        },
        {},
    )


@pytest.fixture
def connection(administrator: Credentials, namespace: str) -> VimConnection:
    return vim_of(administrator, namespace)


@pytest.fixture
def driver() -> KubernetesVimDriver:
    return KubernetesVimDriver()
