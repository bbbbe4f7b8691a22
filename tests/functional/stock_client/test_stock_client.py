"""The stock client as a whole: no command of it is untested, it logs in as its users do, and the README is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from slipway.model.vim import SIMULATED
from slipway.package.build import build_package
from tests.databases import setting
from tests.functional.processes import running
from tests.functional.readme import ROOT, block_after
from tests.functional.rig import SAMPLE
from tests.functional.stock_client.stock_program import Stock, Warm, command, commands, with_token
from tests.functional.stock_client.stock_world import VNFD, Slipway
from tests.unit.vim.keystone_standin import SERVICES, a_keystone

pytestmark = pytest.mark.sqlite_suffices

SERVICE = "nfv-orchestration"
VIM = {"name": "own", "vimType": SIMULATED, "isDefault": True, "interfaceInfo": {"endpoint": "sim://own"}}


def test_no_command_is_forgotten(program: Path) -> None:
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    assert {command for command in commands(program) if f'"{command}"' not in tests} == set()


def test_without_a_good_token_nothing_is_told(stock: Stock) -> None:
    stranger = Stock(stock.client, stock.directory, with_token(stock.login["OS_ENDPOINT"], "nobody's"))
    assert "token" in stranger.refused("vnflcm list")


def test_a_user_of_keystone(client: Warm, tmp_path: Path, database_url: URL) -> None:
    """The endpoint comes from Keystone's catalog, and Slipway asks Keystone whose the token is."""
    (tmp_path / "password").write_text("slipway-password\n")
    (tmp_path / "password").chmod(0o600)
    database = setting(database_url)
    with a_keystone() as keystone:
        asking = {
            "keystone_url": keystone.url,
            "keystone_user": "slipway",
            "keystone_password_file": tmp_path / "password",
        }
        with running("serve", tmp_path / "data", database_url=database, **asking) as server, server.client() as own:
            keystone.regions = {"RegionOne": (*SERVICES, SERVICE)}
            keystone.endpoints[SERVICE] = str(own.base_url)
            own.headers["X-Auth-Token"] = keystone.issue("demo", "demo")
            assert own.post("/slipway/v1/vims", json=VIM).status_code == 201
            Slipway(own).onboard(build_package(SAMPLE, tmp_path / "cluster.csar").path)
            login = {
                "OS_AUTH_URL": keystone.url,
                "OS_USERNAME": "demo",
                "OS_PASSWORD": "demo-password",
                "OS_PROJECT_NAME": "demo",
                "OS_USER_DOMAIN_NAME": "Default",
                "OS_PROJECT_DOMAIN_NAME": "Default",
            }
            stock = Stock(client, tmp_path, login)
            simple = stock.file("simple.json", {"flavourId": "simple"})
            vnf = stock.json("vnflcm create", VNFD, "--I", simple)["ID"]
            Slipway(own).done(vnf, "INSTANTIATE")
            assert [row["ID"] for row in stock.version("2").json("vnflcm list")] == [vnf]
            assert "is deleted" in stock.says("vnflcm terminate", vnf, "--termination-type", "FORCEFUL", "--D")


def test_the_commands_of_the_readme_work(client: Warm, tmp_path: Path) -> None:
    """In one shell, as they are typed: the next one when the one before has had its effect."""
    typed = [line.removeprefix("$ ") for line in block_after("tacker")]
    assert typed[0] == "slipway serve &"
    data = tmp_path / ".local" / "share" / "slipway"
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    plain = {name: value for name, value in os.environ.items() if not re.match("OS_|SLIPWAY_|XDG_", name)}
    (tmp_path / "bin").mkdir()
    with running("serve", data) as server, server.client() as own, command(client, tmp_path / "bin") as program:
        path = f"{program.parent}:{Path(sys.executable).parent}:{plain['PATH']}"
        url = str(own.base_url).rstrip("/")
        shell = subprocess.Popen(
            ["sh", "-e"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**plain, "HOME": str(tmp_path), "PATH": path, "SLIPWAY_URL": url},
        )
        assert shell.stdin is not None
        assert shell.stdout is not None
        printed = ""
        with shell:
            for line in typed[1:]:
                shell.stdin.write(line.replace("http://127.0.0.1:9890", url) + "\necho done\n")
                shell.stdin.flush()
                while (said := shell.stdout.readline()) != "done\n":
                    printed += said
                    assert said, f"{line}\n{printed}"
                Slipway(own).at_rest()
            shell.stdin.close()
        assert Slipway(own).get("/vnflcm/v2/vnf_instances") == []
    assert "INSTANTIATE" in printed
    assert "is deleted successfully" in printed
