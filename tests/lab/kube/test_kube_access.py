"""Tokens that a real API server accepts: a joining machine's, and Slipway's own; and that end when they shall."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slipway.kube import paths
from slipway.kube.account import NAME, ensure_account, remove_account, request_token
from slipway.kube.api import Api
from slipway.kube.bootstrap import make_token, remove_token
from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.waiting import Observation, wait_for

pytestmark = pytest.mark.journey

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def who_is(administrator: Credentials, token: str) -> Object:
    """As the server sees whoever shows the token."""
    async with Api(replace(administrator, client_certificate=None, client_key=None, token=token)) as api:
        answer = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)
    user: Object = answer["status"]["userInfo"]
    return user


async def test_a_bootstrap_token_lets_a_machine_in_until_it_is_removed(api: Api, administrator: Credentials) -> None:
    token = await make_token(api, timedelta(hours=2))
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token)

    async def known() -> Observation:
        try:
            user = await who_is(administrator, token)
        except KubeError as error:
            return Observation(False, error.detail)
        return Observation(True, str(user))

    await wait_for(known, "the token to be known", 20)
    user = await who_is(administrator, token)
    assert user["username"] == f"system:bootstrap:{token[:6]}"
    assert "system:bootstrappers:kubeadm:default-node-token" in user["groups"]

    removed = await make_token(api, timedelta(hours=2))
    for one in (token, removed, removed):
        await remove_token(api, one)
    await wait_for(lambda: refused(administrator, removed), "the token to be refused", 30)


async def test_a_bootstrap_token_is_made_as_kubeadm_makes_it(api: Api) -> None:
    token = await make_token(api, timedelta(hours=2))
    secret = await api.get(paths.namespaced("/api/v1", "kube-system", "secrets", f"bootstrap-token-{token[:6]}"))
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert set(secret["data"]) >= {"token-id", "token-secret", "expiration", "auth-extra-groups"}
    await remove_token(api, token)


async def test_an_account_whose_tokens_work_end_in_time_and_go_with_it(api: Api, administrator: Credentials) -> None:
    await ensure_account(api)
    await ensure_account(api)
    token, unused = await request_token(api, timedelta(hours=1)), await request_token(api, timedelta(hours=1))
    assert timedelta(minutes=59) < token.expires - datetime.now(UTC) < timedelta(minutes=61)
    assert token.value not in repr(token)
    user = await who_is(administrator, token.value)
    assert user["username"] == f"system:serviceaccount:kube-system:{NAME}"
    async with Api(replace(administrator, client_certificate=None, client_key=None, token=token.value)) as own:
        await own.list(paths.NODES)

    await remove_account(api)
    await remove_account(api)
    await wait_for(lambda: refused(administrator, unused.value), "the token to be refused", 30)
    with pytest.raises(KubeError, match="not found"):
        await request_token(api, timedelta(hours=1))


async def refused(administrator: Credentials, token: str) -> Observation:
    """For a token that was not shown before: one that was, an API server remembers for ten seconds."""
    try:
        user = await who_is(administrator, token)
    except KubeError as error:
        return Observation(error.status == 401, error.detail)
    return Observation(False, f"it is {user['username']}")
