"""Redirects are judged like the address itself, and credentials stay with their server."""

from __future__ import annotations

import pytest

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.guard import Guard
from tests.unit.outgoing.guards import ok
from tests.unit.outgoing.loopback_server import Answer, Asked, serving


def leading(where: str, status: int = 302) -> Answer:
    return Answer(status, {"Location": where})


async def test_redirects_are_not_followed_unasked() -> None:
    async with serving(lambda asked: leading("/there")) as server, Guard(loopback=True).client(timeout=5) as client:
        assert (await client.get(server.url())).status_code == 302
    assert len(server.asked) == 1


@pytest.mark.parametrize("where", [
    "http://169.254.169.254/latest", "//169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://2852039166/",
    "http://10.0.0.1:22/", "ftp://files.example/", "http://a:b@files.example/", "http://[", "file:///etc/passwd",
])  # fmt: skip
async def test_a_redirect_is_judged_like_the_address_itself(where: str) -> None:
    async with (
        serving(lambda asked: leading(where)) as server,
        Guard(loopback=True).client(timeout=5, redirects=3) as client,
    ):
        with pytest.raises(OutgoingRequestError):
            await client.get(server.url())
    assert len(server.asked) == 1


async def test_redirects_are_followed_as_often_as_asked_for() -> None:
    def further(asked: Asked) -> Answer:
        number = int(asked.path[1:])
        return leading(f"/{number + 1}") if number < 3 else ok(asked)

    async with serving(further) as server:
        async with Guard(loopback=True).client(timeout=5, redirects=3) as client:
            assert (await client.get(server.url("/0"))).content == b"here"
        async with Guard(loopback=True).client(timeout=5, redirects=2) as client:
            with pytest.raises(OutgoingRequestError, match="more than 2 times"):
                await client.get(server.url("/0"))


async def test_a_redirected_post_is_not_sent_again() -> None:
    async with (
        serving(lambda asked: leading("/there", 307)) as server,
        Guard(loopback=True).client(timeout=5, redirects=3) as client,
    ):
        assert (await client.post(server.url(), content=b"x")).status_code == 307
    assert len(server.asked) == 1


async def test_credentials_stay_with_the_server_they_are_for() -> None:
    secret = {"X-Auth-Token": "secret", "Cookie": "a=b", "X-Anything": "secret", "Accept": "text/plain"}
    async with serving(ok) as stranger:

        def lead(asked: Asked) -> Answer:
            return leading("/again") if asked.path == "/" else leading(stranger.url("/theirs"))

        async with (
            serving(lead) as home,
            Guard(loopback=True).client(timeout=5, redirects=5, auth=("me", "secret")) as client,
        ):
            await client.get(home.url("/"), headers=secret)
    for asked in home.asked:
        assert asked.headers["x-auth-token"] == "secret"
        assert asked.headers["authorization"].startswith("Basic ")
    (theirs,) = stranger.asked
    assert "secret" not in str(theirs.headers)
    assert not {"authorization", "cookie", "x-auth-token"} & theirs.headers.keys()
    assert theirs.headers["accept"] == "text/plain"
    assert theirs.headers["host"] == f"127.0.0.1:{stranger.port}"
