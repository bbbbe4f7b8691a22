"""A chart of a repository: fetched by Slipway within bounds, with a login that goes nowhere else, by its digest."""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256
from typing import Any

import pytest

from slipway.model.errors import VimError, VimFault
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.helm.parameters import Repository
from slipway.vim.kubernetes.helm.repository import fetch_chart
from tests.unit.vim.authority import Authority
from tests.unit.vim.helm_targets import CHART, archive
from tests.unit.vim.loopback import Asked, Reply, serving

PACKED = archive(CHART)
GUARD = Guard(loopback=True)


def index(url: str = "web-1.0.0.tgz", digest: str = sha256(PACKED).hexdigest()) -> bytes:
    entry = {"version": "1.0.0", "urls": [url], "digest": digest}
    return json.dumps({"apiVersion": "v1", "entries": {"web": [entry]}}).encode()


def served(files: dict[str, bytes], asked: list[Asked] | None = None) -> Any:
    def answer(request: Asked) -> Reply:
        if asked is not None:
            asked.append(request)
        content = files.get(request.path)
        return Reply(404) if content is None else Reply(200, content)

    return answer


def wanted(url: str, **more: Any) -> Repository:
    return dataclasses.replace(Repository(url, "web", "1.0.0"), **more)


async def test_a_certificate_of_its_own_authority_is_trusted_when_that_is_given() -> None:
    authority = Authority()
    files = {"/index.yaml": index(), "/web-1.0.0.tgz": PACKED}
    with serving(served(files), authority.server_context()) as url:
        with pytest.raises(VimError, match=r"certificate is not trusted.*repository_ca") as raised:
            await fetch_chart(GUARD, wanted(url))
        assert raised.value.fault is VimFault.PERMANENT
        assert str(await fetch_chart(GUARD, wanted(url, ca=authority.pem))) == "web 1.0.0"


async def test_a_login_is_not_given_to_another_server() -> None:
    first, second = list[Asked](), list[Asked]()
    with serving(served({"/web.tgz": PACKED}, second)) as elsewhere:
        files = {"/index.yaml": index(f"{elsewhere}/web.tgz")}
        with serving(served(files, first)) as url:
            await fetch_chart(GUARD, wanted(url, username="me", password="secret"))
    assert "authorization" in first[0].headers
    assert "authorization" not in second[0].headers


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "404.*exthelmrepo_url"),
        ({"/index.yaml": b"\x00"}, "index can't be read"),
        ({"/index.yaml": index(digest="0" * 64), "/web-1.0.0.tgz": PACKED}, "digest"),
        ({"/index.yaml": index(), "/web-1.0.0.tgz": b"no archive"}, "digest"),
        ({"/index.yaml": index("file:///etc/passwd")}, "scheme"),
        ({"/index.yaml": index("http://169.254.169.254/x.tgz")}, "never allowed"),
        ({"/index.yaml": bytes((8 << 20) + 1)}, "larger than"),
    ],
)
async def test_what_is_wrong_with_a_repository_is_said(files: dict[str, bytes], said: str) -> None:
    with serving(served(files)) as url, pytest.raises(VimError, match=said):
        await fetch_chart(GUARD, wanted(url))


async def test_a_repository_that_does_not_answer_is_tried_again() -> None:
    with serving(served({})) as url:
        pass
    with pytest.raises(VimError, match="does not answer") as raised:
        await fetch_chart(GUARD, wanted(url))
    assert raised.value.fault is VimFault.TEMPORARY
