"""Every `openstack vim` command of the stock client: what it prints, and what it does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.stock_client.stock_program import Stock
from tests.functional.stock_client.stock_world import Slipway
from tests.unit.vim.cluster_standin import a_cluster
from tests.unit.vim.keystone_standin import a_keystone

pytestmark = pytest.mark.sqlite_suffices

VIMS = "/slipway/v1/vims"


def config(stock: Stock, name: str, **values: Any) -> tuple[str, str]:
    (stock.directory / name).write_text(yaml.safe_dump(values))
    return "--config-file", name


def test_an_openstack(stock: Stock, slipway: Slipway) -> None:
    with a_keystone() as keystone:
        login = {
            "auth_url": keystone.url,
            "username": "demo",
            "password": "demo-password",
            "project_name": "demo",
            "project_domain_name": "Default",
            "user_domain_name": "Default",
        }
        wrong = config(stock, "wrong.yaml", **{**login, "password": "no"})
        assert "does not let user demo" in stock.refused("vim register", "cloud", *wrong)
        described = ("--description", "ours", "--is-default")
        vim = stock.json("vim register", "cloud", *config(stock, "vim.yaml", **login), *described)
        assert (vim["name"], vim["type"], vim["status"]) == ("cloud", "openstack", "ACTIVE")
        assert (vim["auth_cred"]["password"], vim["placement_attr"]) == ("***", {"regions": ["RegionOne"]})
        ours = slipway.get(f"{VIMS}/cloud")
        assert (ours["id"], ours["isDefault"], ours["description"]) == (vim["id"], True, "ours")
        assert slipway.client.post(f"{VIMS}/cloud/check").json()["ok"] is True

        rows = {row["Name"]: row for row in stock.json("vim list")}
        assert (rows["cloud"]["Is Default"], rows["simulated"]["Is Default"]) == (True, False)
        (row,) = [row for row in stock.json("vim list", "--long") if row["Name"] == "cloud"]
        assert row["Placement attribution"] == {"regions": ["RegionOne"]}
        assert stock.json("vim show", "cloud") == stock.json("vim show", vim["id"])

        changed = stock.json("vim set", "cloud", "--name", "sky", "--description", "blue", "--is-default", "False")
        assert (changed["name"], changed["description"], changed["is_default"]) == ("sky", "blue", False)
        keystone.users["demo"].password = "new-password"
        assert slipway.client.post(f"{VIMS}/sky/check").json()["ok"] is False
        stock.says("vim set", "sky", *config(stock, "new.yaml", **{**login, "password": "new-password"}))
        assert slipway.client.post(f"{VIMS}/sky/check").json()["ok"] is True

    assert stock.json("vim set", "simulated", "--is-default", "True")["is_default"] is True
    assert "deleted successfully" in stock.says("vim delete", "sky")
    assert slipway.client.get(f"{VIMS}/sky").status_code == 404
    assert "sky" in stock.refused("vim show", "sky")


def test_a_kubernetes(stock: Stock, slipway: Slipway) -> None:
    with a_cluster() as cluster:
        login = {"type": "kubernetes", "auth_url": cluster.url, "project_name": "default", "bearer_token": "good-token"}
        file = config(stock, "cluster.yaml", **login, ssl_ca_cert=cluster.authority.pem)
        vim = stock.json("vim register", "cluster", *file)
        assert vim["placement_attr"] == {"regions": ["default", "kube-system"]}
        assert slipway.client.post(f"{VIMS}/cluster/check").json()["ok"] is True
        # As the peer's documentation writes it: no CA of its own. The certificate is verified all the same.
        documented = config(stock, "none.yaml", **login, ssl_ca_cert="None")
        assert "certificate was not accepted" in stock.refused("vim register", "other", *documented)
    stock.says("vim delete", vim["id"])
