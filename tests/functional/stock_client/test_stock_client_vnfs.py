"""Every `openstack vnflcm` command of the stock client, in both versions: what it prints, and what it does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.stock_client.stock_program import Stock
from tests.functional.stock_client.stock_world import LCM, NEXT, RULES, VNFD, Slipway, Subscriber, a_subscriber, until

pytestmark = [pytest.mark.parametrize("major", ["1", "2"]), pytest.mark.sqlite_suffices]


def connected(major: str, network: str) -> dict[str, Any]:
    """The masters on a network from outside, in the words of each version."""
    points = {"1": {"cpdId": "masterNode_CP1", "cpConfig": [{}]}, "2": {"cpdId": "masterNode_CP1"}}
    return {"extVirtualLinks": [{"id": "outside", "resourceId": network, "extCps": [points[major]]}]}


def test_the_life_of_a_vnf(stock: Stock, slipway: Slipway, major: str) -> None:
    stock = stock.version(major)
    named = ("--name", f"vnf-{major}", "--description", "by the stock client")
    created = stock.json("vnflcm create", VNFD, *named)
    vnf = created["ID"]
    assert created["Instantiation State"] == "NOT_INSTANTIATED"
    assert slipway.instance(vnf)["vnfInstanceDescription"] == "by the stock client"
    (row,) = [row for row in stock.json("vnflcm list") if row["ID"] == vnf]
    assert (row["VNF Instance Name"], row["VNF Provider"], row["VNFD ID"]) == (f"vnf-{major}", "Slipway", VNFD)

    request = stock.file("instantiate.json", {"flavourId": "simple", **connected(major, "net-1")})
    assert "accepted" in stock.says("vnflcm instantiate", vnf, request)
    slipway.done(vnf, "INSTANTIATE")
    shown = stock.json("vnflcm show", vnf)
    assert (shown["Instantiation State"], shown["VNF Instance Name"]) == ("INSTANTIATED", f"vnf-{major}")
    assert shown["Instantiated Vnf Info"]["vnfState"] == "STARTED"
    assert set(shown["Links"]) >= {"self", "terminate", "scale", "heal"}

    aspect = ("--aspect-id", "workers")
    assert "accepted" in stock.says("vnflcm scale", vnf, "--type", "SCALE_OUT", *aspect, "--number-of-steps", "2")
    slipway.done(vnf, "SCALE")
    extra = stock.file("extra.json", {"additionalParams": {"why": "enough"}})
    stock.says("vnflcm scale", vnf, "--type", "SCALE_IN", *aspect, "--additional-param-file", extra)
    assert slipway.done(vnf, "SCALE")["operationParams"]["additionalParams"] == {"why": "enough"}
    before = slipway.machines(vnf)
    assert sorted(before) == ["masterNode-0", "workerNode-0", "workerNode-1", "workerNode-2"]

    info = shown["Instantiated Vnf Info"]
    (sick,) = [one for one in info["vnfcResourceInfo"] if one["metadata"]["name"] == "workerNode-1"]
    sick_id = sick["id"] if major == "1" else vnfc_of(info, sick["id"])
    healing = ("--cause", "it is sick", "--additional-param-file", extra, "--vnfc-instance", sick_id, "--", vnf)
    assert "accepted" in stock.says("vnflcm heal", *healing)
    assert slipway.done(vnf, "HEAL")["operationParams"]["cause"] == "it is sick"
    after = slipway.machines(vnf)
    assert [name for name in before if before[name] != after[name]] == ["workerNode-1"]

    request = stock.file("connect.json", connected(major, "net-2"))
    assert "accepted" in stock.says("vnflcm change-ext-conn", vnf, request)
    slipway.done(vnf, "CHANGE_EXT_CONN")
    (link,) = slipway.instance(vnf)["instantiatedVnfInfo"]["extVirtualLinkInfo"]
    assert link["resourceHandle"]["resourceId"] == "net-2"

    request = stock.file("update.json", {"vnfInstanceName": f"new-{major}", "metadata": {"team": "core"}})
    assert f"Update vnf:{vnf}" in stock.says("vnflcm update", vnf, "--I", request)
    slipway.done(vnf, "MODIFY_INFO")
    assert slipway.instance(vnf)["vnfInstanceName"] == f"new-{major}"

    if major == "2":
        request = stock.file("package.json", {"vnfdId": NEXT})
        assert "accepted" in stock.says("vnflcm change-vnfpkg", vnf, request)
        slipway.done(vnf, "CHANGE_VNFPKG")
        assert stock.json("vnflcm show", vnf)["VNFD ID"] == NEXT

    assert "is instantiated" in stock.refused("vnflcm delete", vnf)
    assert "accepted" in stock.says("vnflcm terminate", vnf, "--termination-type", "FORCEFUL")
    slipway.done(vnf, "TERMINATE")
    assert "deleted successfully" in stock.says("vnflcm delete", vnf)
    assert slipway.client.get(f"{LCM}/vnf_instances/{vnf}").status_code == 404


def vnfc_of(info: dict[str, Any], resource_id: str) -> str:
    (vnfc,) = [one["id"] for one in info["vnfcInfo"] if one["vnfcResourceInfoId"] == resource_id]
    return str(vnfc)


def test_versions(stock: Stock, major: str) -> None:
    number = {"1": "1.3.0", "2": "2.0.0"}[major]
    every = stock.version(major).json("vnflcm versions")
    assert [one["version"] for one in every["apiVersions"]] == ["1.3.0", "2.0.0"]
    one = stock.json("vnflcm versions", "--major-version", major)
    assert one == {"uriPrefix": f"/vnflcm/v{major}", "apiVersions": [{"version": number, "isDeprecated": False}]}


def scaled(slipway: Slipway, vnf: str) -> str:
    """The id of a scale that has come to rest, well or not."""
    body = {"type": "SCALE_OUT", "aspectId": "workers"}
    assert slipway.client.post(f"{LCM}/vnf_instances/{vnf}/scale", json=body).status_code == 202
    return str(slipway.last(vnf)["id"])


def test_operations_that_fail(stock: Stock, slipway: Slipway, major: str) -> None:
    stock = stock.version(major)
    simple = stock.file("simple.json", {"flavourId": "simple"})
    vnf = stock.json("vnflcm create", VNFD, "--I", simple)["ID"]
    slipway.done(vnf, "INSTANTIATE")
    slipway.rule("workerNode-2", kind="error", fault="permanent", message="no more room")
    assert "accepted" in stock.says("vnflcm scale", vnf, "--type", "SCALE_OUT", "--aspect-id", "workers")
    operation = slipway.last(vnf)["id"]
    mine = ("--filter", f"(eq,vnfInstanceId,{vnf});(eq,operationState,FAILED_TEMP)")
    row = {"ID": operation, "Operation State": "FAILED_TEMP", "VNF Instance ID": vnf, "Operation": "SCALE"}
    for more in (("--fields", "operationParams"), ("--exclude-fields", "operationParams")):
        assert stock.json("vnflcm op list", *mine, *more) == [row]
    shown = stock.json("vnflcm op show", operation)
    assert (shown["Operation State"], shown["VNF Instance ID"]) == ("FAILED_TEMP", vnf)
    assert "no more room" in shown["Error"]["detail"]
    assert shown["Operation Parameters"]["aspectId"] == "workers"

    assert "accepted" in stock.says("vnflcm op rollback", operation)
    assert slipway.last(vnf)["operationState"] == "ROLLED_BACK"
    operation = scaled(slipway, vnf)
    slipway.client.delete(RULES).raise_for_status()
    assert "accepted" in stock.says("vnflcm op retry", operation)
    slipway.done(vnf, "SCALE")
    assert "workerNode-2" in slipway.machines(vnf)
    assert "COMPLETED" in stock.refused("vnflcm op retry", operation)

    slipway.rule("workerNode-3", kind="error", fault="permanent")
    operation = scaled(slipway, vnf)
    assert stock.json("vnflcm op fail", operation)["Operation State"] == "FAILED"
    assert slipway.last(vnf)["operationState"] == "FAILED"
    if major == "1":  # the client has no cancel in version 2
        slipway.rule("workerNode-3", kind="latency", seconds=600)
        cancelled(stock, slipway, vnf)
    slipway.client.delete(RULES).raise_for_status()
    gone = stock.says("vnflcm terminate", vnf, "--graceful-termination-timeout", "1", "--D")
    assert "is deleted successfully" in gone
    assert slipway.client.get(f"{LCM}/vnf_instances/{vnf}").status_code == 404


def cancelled(stock: Stock, slipway: Slipway, vnf: str) -> None:
    assert "accepted" in stock.says("vnflcm scale", vnf, "--type", "SCALE_OUT", "--aspect-id", "workers")
    slipway.processing(vnf)
    (operation,) = [one["ID"] for one in stock.json("vnflcm op list") if one["Operation State"] == "PROCESSING"]
    # Its own mistake: it prints that the request was accepted, then stumbles over having nothing more to print.
    stumbled = stock.run("vnflcm op cancel", operation, "--cancel-mode", "FORCEFUL", code=1)
    assert f"Cancel request for LCM operation {operation} has been accepted" in stumbled.out
    assert slipway.last(vnf)["operationState"] == "FAILED_TEMP"
    stock.says("vnflcm op rollback", operation)
    assert slipway.last(vnf)["operationState"] == "ROLLED_BACK"


def test_subscriptions(stock: Stock, slipway: Slipway, major: str) -> None:
    with a_subscriber() as subscriber:
        subscribed(stock.version(major), slipway, subscriber, major)


def subscribed(stock: Stock, slipway: Slipway, subscriber: Subscriber, major: str) -> None:
    wanted = {"notificationTypes": ["VnfIdentifierCreationNotification"]}
    request = {"callbackUri": subscriber.url, "filter": wanted}
    created = stock.json("vnflcm subsc create", stock.file("subscription.json", request))
    subscription = created["ID"]
    assert (created["Callback URI"], created["Filter"]) == (subscriber.url, wanted)
    assert stock.json("vnflcm subsc show", subscription)["Callback URI"] == subscriber.url
    row = {"ID": subscription, "Callback URI": subscriber.url}
    assert stock.json("vnflcm subsc list") == [row]
    assert stock.json("vnflcm subsc list", "--filter", f"(eq,id,{subscription})") == [row]

    vnf = slipway.created()
    until(lambda: subscriber.notified)
    assert [one["vnfInstanceId"] for one in subscriber.notified] == [vnf]
    assert f"/vnflcm/v{major}/" in subscriber.notified[0]["_links"]["vnfInstance"]["href"]
    assert "deleted successfully" in stock.says("vnflcm subsc delete", subscription)
    assert subscription in stock.refused("vnflcm subsc show", subscription)
