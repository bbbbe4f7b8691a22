from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from slipway.cli.client import Client
from slipway.cli.errors import CliError, NotAllowed, NotReachable, Refused
from slipway.cli.paths import INSTANCES, equals, is_local, item_path
from tests.unit.cli.scripted_server import ScriptedServer


@pytest.fixture
def client(server: ScriptedServer) -> Client:
    return Client("http://127.0.0.1:9890/", "t0ken", server.environment().transport)


def test_every_request_has_the_token_and_the_lcm_version(server: ScriptedServer, client: Client) -> None:
    server.answer(f"GET {INSTANCES}", [])

    client.get(INSTANCES)

    assert server.requests[0].headers["X-Auth-Token"] == "t0ken"
    assert server.requests[0].headers["Version"] == "2.0.0"


def test_a_list_is_read_page_after_page_from_the_server_it_began_with(server: ScriptedServer, client: Client) -> None:
    more = '<http://elsewhere.example/vnflcm/v2/vnf_instances?nextpage_opaque_marker=m%2C1&filter=x>;rel="next"'
    server.answer(f"GET {INSTANCES}", [{"id": "1"}], Link=more)
    server.answer(f"GET {INSTANCES}", [{"id": "2"}])

    assert [one["id"] for one in client.pages(INSTANCES, {"filter": "x"})] == ["1", "2"]
    assert server.requests[1].url.host == "127.0.0.1"
    assert dict(server.requests[1].url.params) == {"nextpage_opaque_marker": "m,1", "filter": "x"}


def test_a_page_that_names_itself_as_next_ends_the_list(server: ScriptedServer, client: Client) -> None:
    server.answer(f"GET {INSTANCES}", [{"id": "1"}], Link='<http://x/y?marker=1>;rel="next"')

    assert len(list(client.pages(INSTANCES))) == 2


def test_a_refusal_carries_the_problem(server: ScriptedServer, client: Client) -> None:
    server.refuse("POST /x", 409, "Right request, wrong moment.")

    with pytest.raises(Refused, match="wrong moment") as caught:
        client.post("/x", {})
    assert caught.value.document == {"status": 409, "title": "No", "detail": "Right request, wrong moment."}
    assert caught.value.exit_code == 1


def test_a_refusal_without_a_problem_still_says_something(server: ScriptedServer, client: Client) -> None:
    server.answer("GET /x", None, 502)
    server.answer("GET /y", ["no problem document"], 500)

    for path in ("/x", "/y"):
        with pytest.raises(Refused, match="does not say why"):
            client.get(path)


@pytest.mark.parametrize("status", [401, 403])
def test_an_unknown_token_says_how_to_name_the_right_one(status: int, server: ScriptedServer, client: Client) -> None:
    server.refuse("GET /x", status, "The token is not valid.")

    with pytest.raises(NotAllowed, match="--token-file") as caught:
        client.get("/x")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("gone")])
def test_a_server_that_does_not_answer_is_not_reachable(
    error: Exception, server: ScriptedServer, client: Client
) -> None:
    server.breaks("GET /x", error)

    with pytest.raises(NotReachable, match=r"127\.0\.0\.1:9890") as caught:
        client.get("/x")
    assert caught.value.exit_code == 3


def test_something_that_is_not_slipway_is_said(client: Client) -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>"))

    with pytest.raises(CliError, match="not Slipway"):
        Client("http://127.0.0.1:1", None, page).get("/x")


def test_a_redirect_is_not_followed(server: ScriptedServer, client: Client) -> None:
    server.answer("GET /x", None, 302, Location="http://elsewhere.example/")

    with pytest.raises(Refused):
        client.get("/x")
    assert len(server.requests) == 1


def test_unchanged_is_an_answer(server: ScriptedServer, client: Client) -> None:
    server.answer("GET /x", None, 304, ETag='"1"')

    assert client.get("/x", etag='"1"').unchanged
    assert server.requests[0].headers["If-None-Match"] == '"1"'


def test_the_id_of_what_was_made_is_the_end_of_its_location(server: ScriptedServer, client: Client) -> None:
    server.answer("POST /x", None, 202, Location="http://h/vnflcm/v2/vnf_lcm_op_occs/abc")
    server.answer("POST /y", None, 202)

    assert client.post("/x").made == "abc"
    with pytest.raises(CliError, match="does not say where"):
        _ = client.post("/y").made


def test_a_download_that_fails_leaves_no_file(server: ScriptedServer, client: Client, tmp_path: Path) -> None:
    server.refuse("GET /x", 404, "There is no content.")

    with pytest.raises(Refused, match="no content"):
        client.download("/x", tmp_path / "a.csar")
    assert list(tmp_path.iterdir()) == []


def test_names_are_quoted_in_paths_and_filters() -> None:
    assert item_path("/vims", "a/../b?c", "check") == "/vims/a%2F..%2Fb%3Fc/check"
    assert equals(vnfInstanceName="plain") == {"filter": "(eq,vnfInstanceName,plain)"}
    assert equals(a="it's, (so)", b="x") == {"filter": "(eq,a,'it''s, (so)');(eq,b,x)"}


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:9890", True),
        ("http://localhost", True),
        ("http://[::1]:1", True),
        ("http://10.0.0.1", False),
        ("https://127.0.0.1.example.com", False),
        ("nonsense", False),
    ],
)
def test_this_machine_is_told_from_others(url: str, local: bool) -> None:
    assert is_local(url) is local


def test_a_token_that_can_not_be_sent_is_said() -> None:
    with pytest.raises(CliError, match="token"):
        Client("http://127.0.0.1:1", "tökén ✓")
