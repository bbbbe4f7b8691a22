"""A kubeconfig for a program that is no part of Slipway: credentials in clear, for one file that nobody else reads."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from slipway.kube.credentials import Credentials

NAME = "slipway"


def kubeconfig_of(credentials: Credentials, namespace: str, proxy: str | None = None) -> bytes:
    cluster: dict[str, Any] = {"server": credentials.server}
    if credentials.verify:
        cluster |= {"certificate-authority-data": _data(credentials.ca)} if credentials.ca else {}
    else:
        cluster["insecure-skip-tls-verify"] = True
    if credentials.server_name:
        cluster["tls-server-name"] = credentials.server_name
    if proxy:
        cluster["proxy-url"] = proxy
    user: dict[str, Any] = {}
    if credentials.client_certificate and credentials.client_key:
        user["client-certificate-data"] = _data(credentials.client_certificate)
        user["client-key-data"] = _data(credentials.client_key)
    if credentials.token:
        user["token"] = credentials.token
    elif credentials.username is not None and credentials.password is not None:
        user |= {"username": credentials.username, "password": credentials.password}
    context = {"cluster": NAME, "user": NAME, "namespace": namespace}
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": user}],
            "contexts": [{"name": NAME, "context": context}],
            "current-context": NAME,
        }
    )


def _data(text: str) -> str:
    return b64encode(text.encode()).decode()
